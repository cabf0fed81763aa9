"""How a server is found, and what is done when it does not answer as it should."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import urllib3

from placer.cluster import Client
from placer.errors import ClusterError, UsageError

#: Status, headers and text of an answer.
KubeletAnswer = tuple[int, dict[str, str], bytes]
FINE: KubeletAnswer = (200, {}, b"{}")


class Scripted:
    """A server on this machine that gives the answers it was told, the last one for ever."""

    def __init__(self, *answers: KubeletAnswer) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, str]] = []
        self.url = ""


@contextmanager
def serving(*answers: KubeletAnswer) -> Iterator[Scripted]:
    script = Scripted(*answers)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            script.asked.append((self.path, self.headers.get("Authorization", "")))
            status, headers, text = script.answers.pop(0) if len(script.answers) > 1 else script.answers[0]
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(text))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        script.url = f"http://127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield script
        finally:
            server.shutdown()


@contextmanager
def asking(script: Scripted, waits: list[float] | None = None) -> Iterator[Client]:
    sleep = ([] if waits is None else waits).append
    with urllib3.PoolManager() as pool:
        yield Client(script.url, pool, lambda: {"authorization": "Bearer t"}, sleep)


def refusal(status: int, message: str) -> KubeletAnswer:
    return (status, {}, json.dumps({"kind": "Status", "message": message}).encode())


# ------------------------------------------------------------------------------------------------------------- answers


def test_it_says_who_it_is_and_what_it_wants() -> None:
    with serving(FINE) as script, asking(script) as client:
        answer = client.get("/api/v1/pods", {"limit": "500", "continue": "a b&c"})
        assert (answer.status, answer.text) == (200, b"{}")
        assert script.asked == [("/api/v1/pods?limit=500&continue=a+b%26c", "Bearer t")]


@pytest.mark.parametrize("status", [404, 410])
def test_what_means_something_is_handed_on(status: int) -> None:
    with serving((status, {}, b"x")) as script, asking(script) as client:
        assert client.get("/apis").status == status
        assert len(script.asked) == 1


def test_a_server_that_is_busy_is_asked_again_when_it_says() -> None:
    waits: list[float] = []
    busy = (429, {"Retry-After": "3"}, b"{}")
    with serving(busy, busy, FINE) as script, asking(script, waits) as client:
        assert client.get("/apis").status == 200
    assert waits == [3, 3]


def test_a_server_that_wants_us_to_wait_for_ever_is_not_waited_for() -> None:
    waits: list[float] = []
    with serving((429, {"Retry-After": "86400"}, b"{}"), FINE) as script, asking(script, waits) as client:
        client.get("/apis")
    assert waits == [10]


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_trouble_is_tried_five_times_with_growing_waits(status: int) -> None:
    waits: list[float] = []
    with (
        serving(refusal(status, "etcd is away")) as script,
        asking(script, waits) as client,
        pytest.raises(ClusterError, match=rf"/apis: {status} etcd is away, 5 times$"),
    ):
        client.get("/apis")
    assert len(script.asked) == 5
    assert len(waits) == 4
    assert all(0.16 * 2**turn <= wait <= 0.24 * 2**turn for turn, wait in enumerate(waits))


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (401, r"the server does not know who we are \(401 no\)"),
        (403, r"/api/v1/pods: not allowed \(403 no\)"),
        (400, "/api/v1/pods: 400 no"),
    ],
)
def test_a_no_is_final(status: int, said: str) -> None:
    with (
        serving(refusal(status, "no")) as script,
        asking(script) as client,
        pytest.raises(ClusterError, match=said) as caught,
    ):
        client.get("/api/v1/pods")
    assert len(script.asked) == 1
    assert caught.value.exit_code == 6


def test_a_server_that_is_not_there_is_an_error() -> None:
    with serving(FINE) as script:
        pass
    with asking(script) as client, pytest.raises(ClusterError, match=r"refused.*, 5 times$"):
        client.get("/apis")


# ------------------------------------------------------------------------------------------------------ finding it


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    path = tmp_path / "config"
    document = {
        "current-context": "one",
        "clusters": [{"name": name, "cluster": {"server": f"http://{name}.invalid:1/"}} for name in ("one", "two")],
        "users": [{"name": "me", "user": {"token": "secret-token"}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": "me"}} for name in ("one", "two")],
    }
    path.write_text(json.dumps(document))
    return path


@pytest.fixture(autouse=True)
def _nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither a home with a kubeconfig nor a pod around us."""
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def test_a_kubeconfig_is_read(kubeconfig: Path) -> None:
    client = Client.connect(str(kubeconfig))
    assert client.url == "http://one.invalid:1"
    assert client._headers() == {"authorization": "Bearer secret-token"}


def test_a_context_is_chosen(kubeconfig: Path) -> None:
    assert Client.connect(str(kubeconfig), "two").url == "http://two.invalid:1"


def test_the_environment_names_one(kubeconfig: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    assert Client.connect().url == "http://one.invalid:1"


def test_the_one_at_home_is_the_default(kubeconfig: Path, tmp_path: Path) -> None:
    home = tmp_path / "home" / ".kube"
    home.mkdir(parents=True)
    kubeconfig.rename(home / "config")
    assert Client.connect().url == "http://one.invalid:1"


def test_without_any_the_message_says_where_it_looked() -> None:
    with pytest.raises(UsageError, match=r"--kubeconfig, KUBECONFIG, ~/.kube/config\), and this is no pod"):
        Client.connect()


def test_an_unknown_context_is_told(kubeconfig: Path) -> None:
    with pytest.raises(UsageError, match="three"):
        Client.connect(str(kubeconfig), "three")


@pytest.mark.parametrize("text", [None, "{", "[]", "a: b"])
def test_a_file_that_is_none_is_told(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "broken"
    if text is not None:
        path.write_text(text)
    with pytest.raises(UsageError, match=f"kubeconfig {path}: "):
        Client.connect(str(path))
