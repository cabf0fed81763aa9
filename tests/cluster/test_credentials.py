"""Who we are at a server: what is read anew when it ends or is refused, and what is said where it cannot be read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import urllib3

from placer.base.errors import ClusterError
from placer.cli import main
from placer.passes.cluster import Client
from placer.passes.cluster.reading import credentials
from placer.passes.cluster.reading.client import Unanswered
from placer.passes.cluster.reading.credentials import Account, Credentials
from tests.cluster.played import Asked, Said, played
from tests.cluster.plugins import EXEC, FUTURE, PAST, Plugin


class Doorkeeper:
    """A server that knows some tokens, and answers 401 to all others."""

    def __init__(self) -> None:
        self.known = {"one"}
        self.asked: list[tuple[str, str]] = []
        self.url = ""

    def answer(self, asked: Asked) -> Said:
        token = asked.headers.get("authorization", "").partition(" ")[2]
        self.asked.append((asked.method, token))
        if token not in self.known:
            return 401, {}, [b'{"message": "Unauthorized"}']
        return 200, {}, [b'{"type": "BOOKMARK", "object": {}}\n']

    @property
    def tokens(self) -> list[str]:
        return [token for _, token in self.asked]


@pytest.fixture
def server() -> Iterator[Doorkeeper]:
    door = Doorkeeper()
    with played(door.answer) as door.url:
        yield door


@pytest.fixture
def plugin(tmp_path: Path) -> Plugin:
    found = Plugin(tmp_path)
    found.gives("one")
    return found


def kubeconfig(folder: Path, url: str, user: dict[str, Any], name: str = "me") -> str:
    path = folder / "config"
    document = {
        "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": url}}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
    }
    path.write_text(json.dumps(document))
    return str(path)


def watched(client: Client) -> list[bytes]:
    return list(client.follow("/api/v1/pods", {"watch": "true"}, lambda _: None))


#: A list, something that is written, a watch: whether the server answers.
WAYS: dict[str, Callable[[Client], bool]] = {
    "get": lambda client: client.get("/api/v1/pods").status == 200,
    "send": lambda client: client.send("POST", "/api/v1/pods", {}).status == 200,
    "follow": lambda client: len(watched(client)) == 1,
}


def asked_in_each_way(client: Client) -> None:
    assert all(asked(client) for asked in WAYS.values())


@contextmanager
def at_once() -> Iterator[None]:
    """Without the seconds for which what was read stays as it is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(credentials, "_FRESH", 0.0)
        patch.setattr(credentials, "_AGAIN", 0.0)
        yield


# ---------------------------------------------------------------------------------------------------------- token files


@pytest.mark.parametrize("way", WAYS)
def test_a_token_file_that_was_replaced_is_read_when_the_old_token_is_refused(
    way: str, server: Doorkeeper, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("one\n")
    client = Client.connect(kubeconfig(tmp_path, server.url, {"tokenFile": str(token)}))
    asked_in_each_way(client)
    (tmp_path / "new").write_text("two\n")
    (tmp_path / "new").replace(token)
    server.known, server.asked = {"two"}, []
    assert WAYS[way](client)
    assert server.tokens == ["one", "two"]
    asked_in_each_way(client)
    assert server.tokens[2:] == ["two"] * 3


def test_a_token_that_stays_refused_is_told_and_asked_no_more_than_once(server: Doorkeeper, tmp_path: Path) -> None:
    client = Client.connect(kubeconfig(tmp_path, server.url, {"token": "two"}))
    with pytest.raises(ClusterError, match=r"the server does not know who we are \(401 Unauthorized\)"):
        client.get("/api/v1/pods")
    assert client.send("POST", "/api/v1/pods", {}).status == 401
    with pytest.raises(ClusterError, match="401 Unauthorized"):
        watched(client)
    assert server.tokens == ["two"] * 3


def test_a_token_file_that_is_away_is_told_and_read_when_it_is_back(server: Doorkeeper, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("one")
    client = Client.connect(kubeconfig(tmp_path, server.url, {"tokenFile": str(token)}))
    token.unlink()
    asked_in_each_way(client)  # nobody looks as long as the token is taken
    server.known = {"two"}
    with at_once():
        with pytest.raises(
            ClusterError, match=rf"\(401\), and that cannot be read again: .*No such file or directory: '{token}'"
        ):
            client.get("/api/v1/pods")
        with pytest.raises(Unanswered, match=r"cannot be read again: .*No such file") as caught:
            client.send("POST", "/api/v1/pods", {})
        assert not caught.value.sent
        token.write_text("two")
        asked_in_each_way(client)


def test_many_that_are_refused_at_once_ask_a_plug_in_once(server: Doorkeeper, plugin: Plugin, tmp_path: Path) -> None:
    plugin.gives("one", FUTURE)
    client = Client.connect(kubeconfig(tmp_path, server.url, plugin.user))
    plugin.gives("two", FUTURE)
    server.known = {"two"}
    with ThreadPoolExecutor(8) as threads:
        statuses = list(threads.map(lambda _: client.send("POST", "/api/v1/pods", {}).status, range(8)))
    assert (statuses, plugin.called) == ([200] * 8, 2)


def test_a_kubeconfig_that_names_another_server_by_now_is_not_followed(server: Doorkeeper, tmp_path: Path) -> None:
    """What it says of the other server's user is for that one's ears only."""
    client = Client.connect(kubeconfig(tmp_path, server.url, {"token": "one"}))
    kubeconfig(tmp_path, "http://other.invalid:1", {"token": "two"})
    server.known = {"two"}
    with pytest.raises(ClusterError, match=rf"names the server http://other.invalid:1 now, not {server.url}"):
        client.get("/api/v1/pods")
    assert server.tokens == ["one"]


def test_the_context_stays_that_of_the_beginning(server: Doorkeeper, tmp_path: Path) -> None:
    """Somebody has another cluster as the current one meanwhile: that is for what is begun then."""
    path = Path(kubeconfig(tmp_path, server.url, {"token": "one"}))
    client = Client.connect(str(path))
    document = json.loads(path.read_text())
    document["users"] = [{"name": "me", "user": {"token": "two"}}, {"name": "you", "user": {"token": "three"}}]
    document["contexts"].append({"name": "other", "context": {"cluster": "me", "user": "you"}})
    path.write_text(json.dumps(document | {"current-context": "other"}))
    server.known = {"two", "three"}
    assert client.get("/api/v1/pods").status == 200
    assert server.tokens == ["one", "two"]


# -------------------------------------------------------------------------------------------------------- exec plug-ins


def test_a_plug_in_is_asked_once_for_a_token_that_lasts(server: Doorkeeper, plugin: Plugin, tmp_path: Path) -> None:
    plugin.gives("one", FUTURE)
    client = Client.connect(kubeconfig(tmp_path, server.url, plugin.user))
    asked_in_each_way(client)
    asked_in_each_way(client)
    assert (server.tokens, plugin.called) == (["one"] * 6, 1)
    told = json.loads(plugin.calls.read_text())
    assert (told["apiVersion"], told["kind"]) == (EXEC, "ExecCredential")


def test_a_plug_in_is_asked_again_when_its_token_has_expired(
    server: Doorkeeper, plugin: Plugin, tmp_path: Path
) -> None:
    """But not for each request: a token that lasts for less than five minutes has expired from the beginning."""
    plugin.gives("one", PAST)
    client = Client.connect(kubeconfig(tmp_path, server.url, plugin.user))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(credentials, "_FRESH", 1_000_000.0)
        asked_in_each_way(client)
        asked_in_each_way(client)
    assert plugin.called == 1
    plugin.gives("two", FUTURE)
    server.known = {"one", "two"}
    with at_once():
        asked_in_each_way(client)
    assert (server.tokens[-3:], plugin.called) == (["two"] * 3, 2)


@pytest.mark.parametrize("way", WAYS)
def test_a_plug_in_is_asked_again_when_its_token_is_refused(
    way: str, server: Doorkeeper, plugin: Plugin, tmp_path: Path
) -> None:
    plugin.gives("one", FUTURE)
    client = Client.connect(kubeconfig(tmp_path, server.url, plugin.user))
    plugin.gives("two", FUTURE)
    server.known = {"two"}
    assert WAYS[way](client)
    assert (server.tokens, plugin.called) == (["one", "two"], 2)


def test_a_plug_in_that_fails_when_a_token_expires_ends_nothing_before_that_is_refused(
    server: Doorkeeper, plugin: Plugin, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    plugin.gives("one", PAST)
    client = Client.connect(kubeconfig(tmp_path, server.url, plugin.user))
    plugin.fails("no network")
    with at_once():
        asked_in_each_way(client)
        server.known = set()
        with pytest.raises(ClusterError, match=r"cannot be read again: .*plug-in.*process returned 1. no network"):
            client.get("/api/v1/pods")
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("says", "told"),
    [
        ("rubbish", "failed to decode process output"),
        ("{}", "missing key 'apiVersion'"),
        (json.dumps({"apiVersion": "v9", "kind": "ExecCredential", "status": {"token": "one"}}), "v9 does not match"),
        (json.dumps({"apiVersion": EXEC, "kind": "ExecCredential", "status": {}}), "missing token or client"),
        (json.dumps({"apiVersion": EXEC, "kind": "ExecCredential", "status": {"token": "a\nb"}}), "a header cannot"),
        (json.dumps({"apiVersion": EXEC, "kind": "ExecCredential", "status": {"token": "\u20ac"}}), "a header cannot"),
        (
            json.dumps({"apiVersion": EXEC, "kind": "E", "status": {"token": "one", "expirationTimestamp": "soon"}}),
            "plug-in",
        ),
    ],
)
def test_what_a_plug_in_says_that_is_of_no_use_is_told(
    says: str, told: str, server: Doorkeeper, plugin: Plugin, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """And nobody is asked as nobody."""
    plugin.says(says)
    assert main(["check", "--kubeconfig", kubeconfig(tmp_path, server.url, plugin.user)]) == 6
    captured = capfd.readouterr()
    assert told in captured.err
    assert "Traceback" not in captured.err
    assert "ERROR:root" not in captured.err
    assert server.asked == []


def test_a_plug_in_that_fails_is_told(
    server: Doorkeeper, plugin: Plugin, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    plugin.fails("log in first")
    assert main(["check", "--kubeconfig", kubeconfig(tmp_path, server.url, plugin.user)]) == 6
    said = capfd.readouterr().err
    assert f"kubeconfig {tmp_path}/config, context me: the plug-in of its user" in said
    assert "process returned 1. log in first" in said
    assert server.asked == []


def test_a_certificate_that_is_refused_is_read_anew_though_its_file_has_the_same_name() -> None:
    """A pool keeps what it has read of the file."""
    accounts = [
        Account("https://server", urllib3.PoolManager(cert_file="/cert"), {}),
        Account("https://server", urllib3.PoolManager(cert_file="/cert"), {}),
    ]
    found = Credentials(iter(accounts).__next__)
    before = found.caller()
    now = found.renewed(before)
    assert now is not None
    assert (before.pool, now.pool) == tuple(each.pool for each in accounts)
    assert found.caller() is now
