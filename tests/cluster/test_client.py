"""How a server is found, and what is done when it does not answer as it should."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
import urllib3

from placer.base.errors import ClusterError, UsageError
from placer.base.version import __version__
from placer.passes.cluster import Client
from placer.passes.cluster.reading.client import Busy, Response, ServerClock, TooLong, listed, server_time
from placer.passes.cluster.reading.credentials import Account, Credentials
from placer.passes.cluster.reading.views import ObjectView
from tests.cluster.played import Asked, Said, played

#: Status, headers and text of an answer.
KubeletAnswer = tuple[int, dict[str, str], bytes]
#: What gives the answer to the parameters of a question.
Answering = Callable[[Mapping[str, str]], KubeletAnswer]
FINE: KubeletAnswer = (200, {}, b"{}")


class Scripted:
    """A server on this machine that gives the answers it was told, the last one for ever."""

    def __init__(self, *answers: KubeletAnswer | Answering) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, str]] = []
        self.agents: set[str | None] = set()
        self.url = ""


@contextmanager
def serving(*answers: KubeletAnswer | Answering) -> Iterator[Scripted]:
    script = Scripted(*answers)

    def answer(asked: Asked) -> Said:
        script.asked.append((asked.path, asked.headers.get("authorization", "")))
        script.agents.add(asked.headers.get("user-agent"))
        told = script.answers.pop(0) if len(script.answers) > 1 else script.answers[0]
        status, headers, text = told(dict(parse_qsl(urlsplit(asked.path).query))) if callable(told) else told
        return status, headers, [text] if text else []

    with played(answer) as script.url:
        yield script


@contextmanager
def asking(script: Scripted, waits: list[float] | None = None) -> Iterator[Client]:
    sleep = ([] if waits is None else waits).append
    with urllib3.PoolManager() as pool:
        account = Account(script.url, pool, {"authorization": "Bearer t"})
        yield Client(Credentials(lambda: account), sleep)


def refusal(status: int, message: str) -> KubeletAnswer:
    return (status, {}, json.dumps({"kind": "Status", "message": message}).encode())


# ------------------------------------------------------------------------------------------------------------- answers


def test_it_says_who_it_is_and_what_it_wants() -> None:
    with serving(FINE) as script, asking(script) as client:
        answer = client.get("/api/v1/pods", {"limit": "500", "continue": "a b&c"})
        assert (answer.status, answer.text) == (200, b"{}")
        assert script.asked == [("/api/v1/pods?limit=500&continue=a+b%26c", "Bearer t")]


def test_every_request_names_placer_and_is_heard_of() -> None:
    """So that audit logs say whose it was, and metrics how it ended."""
    heard: list[tuple[str, str, int]] = []
    with serving(FINE, FINE, (401, {}, b"{}")) as script, asking(script) as client:
        client.heard.append(lambda method, url, status, _: heard.append((method, url.removeprefix(script.url), status)))
        client.get("/api")
        client.send("POST", "/apis", {})
        with pytest.raises(ClusterError):
            list(client.follow("/api/v1/pods", {"watch": "1"}, lambda _: None))
    assert script.agents == {f"placer/{__version__}"}
    assert heard == [("GET", "/api", 200), ("POST", "/apis", 200), ("GET", "/api/v1/pods?watch=1", 401)]


@pytest.mark.parametrize("status", [404, 410])
def test_what_means_something_is_handed_on(status: int) -> None:
    with serving((status, {}, b"x")) as script, asking(script) as client:
        assert client.get("/apis").status == status
        assert len(script.asked) == 1


def test_the_clock_is_the_servers() -> None:
    """Ours may be off by hours; what the answer to a read or a write says counts, and goes on from there."""
    told = {"Date": "Thu, 01 Jan 2026 10:00:00 GMT"}
    later = {"Date": "Thu, 01 Jan 2026 12:00:00 GMT"}
    with serving((200, told, b"{}"), *[(201, later, b"{}")] * 3) as script, asking(script) as client:
        assert abs(server_time(client) - datetime.now(UTC)) < timedelta(seconds=5)  # until it has said anything
        client.get("/apis")
        assert timedelta() <= server_time(client) - datetime(2026, 1, 1, 10, tzinfo=UTC) < timedelta(seconds=60)
        for _ in range(3):
            client.send("POST", "/apis", {})
        assert timedelta() <= server_time(client) - datetime(2026, 1, 1, 12, tzinfo=UTC) < timedelta(seconds=60)


def test_the_servers_time_does_not_go_back_from_one_answer_to_the_next() -> None:
    """A Date is rounded down: at 10:00:00.9 it says what it said at 10:00:00.0, and 0.9 s have passed all the same."""
    mine = [5.0]
    clock = ServerClock(lambda: mine[0])

    def heard(at: float, date: str, asked: float | None = None) -> str:
        mine[0] = at
        clock.note({"Date": f"Thu, 01 Jan 2026 {date} GMT"}, at if asked is None else asked)
        return clock.now().strftime("%H:%M:%S.%f")[:10]

    assert heard(5.0, "10:00:00") == "10:00:00.0"
    assert heard(5.9, "10:00:00") == "10:00:00.9"
    assert heard(6.2, "10:00:01") == "10:00:01.2"
    assert heard(6.6, "10:00:02") == "10:00:02.0"  # so it was 10:00:00.4 when the first answer came
    assert heard(9.8, "10:00:03", asked=6.7) == "10:00:05.2"  # an answer that took three seconds says nothing new
    assert heard(10.0, "10:00:01") == "10:00:01.0"  # the server's clock was put back
    for at, date in ((11.0, "12:00:00"), (12.0, "10:00:03"), (13.0, "12:00:02"), (14.0, "12:00:03")):
        assert heard(at, date).startswith("10:00:0")  # one server of several is ahead
    assert heard(15.0, "12:00:04") == "12:00:04.0"


@pytest.mark.parametrize("date", ["", "soon", "Thu, 99 Jan 2026 10:00:00 GMT"])
def test_a_date_that_is_none_is_not_believed(date: str) -> None:
    with serving((200, {"Date": date}, b"{}")) as script, asking(script) as client:
        client.get("/apis")
        assert abs(server_time(client) - datetime.now(UTC)) < timedelta(seconds=60)


class Pages:
    """Answers to questions for pages, one after another, and the limits that were asked for."""

    def __init__(self, *answers: Response) -> None:
        self._answers = list(answers)
        self.limits: list[int] = []

    def __call__(self, _: str, parameters: Mapping[str, str]) -> Response:
        self.limits.append(int(parameters["limit"]))
        return self._answers.pop(0)


def page_of(*names: str, more: str = "", size: int = 0) -> Response:
    items = [{"metadata": {"name": name, "annotations": {"x": "y" * size}}} for name in names]
    return Response(200, json.dumps({"metadata": {"continue": more}, "items": items}).encode())


FORGOTTEN = Response(410, b"{}")


def test_a_list_that_was_forgotten_is_begun_anew_and_told_once() -> None:
    ask = Pages(page_of("a", more="1"), FORGOTTEN, page_of("a", more="1"), page_of("b"))
    assert [each.metadata.name for each in listed(ask, "/x", ObjectView)] == ["a", "b"]


def test_a_list_that_is_forgotten_every_time_is_an_error() -> None:
    with pytest.raises(ClusterError, match="the list took too long 3 times"):
        list(listed(Pages(*[FORGOTTEN] * 9), "/x", ObjectView))


def test_large_objects_come_in_small_pages() -> None:
    """Of 1 MiB each, four at a time; of the first page it is not known yet, so it has few."""
    ask = Pages(page_of("a", "b", more="1", size=2**20), page_of("c", more="2"), page_of("d"))
    assert [each.metadata.name for each in listed(ask, "/x", ObjectView)] == ["a", "b", "c", "d"]
    assert ask.limits == [5, 3, 30]
    assert 5 * 1.5 * 2**20 < 8 * 2**20  # the largest that a server keeps


def test_of_a_page_of_larger_objects_than_before_no_more_than_8_mib_are_read() -> None:
    """After small objects many are asked for, and these have 50 MiB: nothing of them is kept, fewer are asked for."""
    large = [{"metadata": {"name": f"l{at}", "annotations": {"x": "y" * 2**20}}} for at in range(60)]
    small = [{"metadata": {"name": f"s{at}"}} for at in range(5)]
    told: list[int] = []

    def page(parameters: Mapping[str, str]) -> KubeletAnswer:
        limit, start = int(parameters["limit"]), int(parameters.get("continue", "0"))
        told.append(limit)
        every = [*small, *large]
        more = str(start + limit) if start + limit < len(every) else ""
        document = {"metadata": {"continue": more}, "items": every[start : start + limit]}
        return (200, {}, json.dumps(document).encode())

    with serving(page) as script, asking(script) as client:
        names = [each.metadata.name for each in listed(client.get, "/x", ObjectView)]
    assert names == [each["metadata"]["name"] for each in [*small, *large]]
    assert told[:3] == [5, 50, 5]
    assert all(limit * 2**20 <= 8 * 2**20 for limit in told[2:])


def test_a_page_of_one_object_is_read_whole() -> None:
    with serving((200, {}, b"x" * (9 * 2**20))) as script, asking(script) as client:
        assert len(client.get("/x", {"limit": "1"}).text) == 9 * 2**20
        with pytest.raises(TooLong, match=r"^/x: a page of more than 8,388,608 bytes$"):
            client.get("/x", {"limit": "2"})


def test_an_object_of_another_shape_is_left_out() -> None:
    odd = Response(200, b'{"metadata":{},"items":[{"metadata":{"name":"a"}},{"metadata":null},7]}')
    assert [each.metadata.name for each in listed(Pages(odd), "/x", ObjectView)] == ["a"]


def test_a_server_that_is_busy_is_asked_again_when_it_says() -> None:
    waits: list[float] = []
    busy = (429, {"Retry-After": "3"}, b"{}")
    with serving(busy, busy, FINE) as script, asking(script, waits) as client:
        assert client.get("/apis").status == 200
    assert waits == [3, 3]


@pytest.mark.parametrize(("after", "until", "waits"), [("3600", None, []), ("50", 20.0, []), ("50", 60.0, [50])])
def test_a_server_is_asked_when_it_wants_to_be_or_not_at_all(
    after: str, until: float | None, waits: list[float]
) -> None:
    waited: list[float] = []
    with serving((429, {"Retry-After": after}, b"{}"), FINE) as script, asking(script, waited) as client:
        client.until = None if until is None else time.monotonic() + until
        if waits:
            assert client.get("/apis").status == 200
        else:
            with pytest.raises(Busy, match=f"the server wants to be asked again after {after} s, there are [12]"):
                client.get("/apis")
    assert waited == waits


def test_when_to_ask_again_may_be_a_date_and_what_cannot_be_read_says_nothing() -> None:
    waits: list[float] = []
    past, odd = ((503, {"Retry-After": text}, b"{}") for text in ("Wed, 21 Oct 2015 07:28:00 GMT", "when I have time"))
    with serving(past, odd, FINE) as script, asking(script, waits) as client:
        assert client.get("/apis").status == 200
    assert waits[0] == 0
    assert 0.32 <= waits[1] <= 0.48


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
    assert client._credentials.caller().headers == {"authorization": "Bearer secret-token"}


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
