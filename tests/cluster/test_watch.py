"""A watch that goes on: events in order, connections that break, a server that has forgotten."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest

from placer.base.errors import ClusterError
from placer.passes.cluster.reading.client import Busy, Response, Unanswered
from placer.passes.cluster.reading.watch import Watch, Watches
from tests.waiting import wait_until

PATH = "/api/v1/pods"
PODS = {"kind": "PodList", "apiVersion": "v1"}  #: what a list of pods says of itself


def line(kind: str, name: str, version: int) -> bytes:
    return json.dumps({"type": kind, "object": {"metadata": {"name": name, "resourceVersion": str(version)}}}).encode()


class Server:
    """Gives what it is told for each watch in turn: lines, or an error; the last one stays open."""

    def __init__(self, *watches: list[bytes] | Exception, lists: Sequence[Mapping[str, Any]] = ()) -> None:
        self.watches, self.lists = list(watches), list(lists)
        self.asked: list[str] = []
        self.shut = threading.Event()

    def get(self, path: str, parameters: Mapping[str, str] | None = None) -> Response:
        assert path == PATH
        self.asked.append(f"list {(parameters or {}).get('continue', '')}".strip())
        return Response(200, json.dumps(self.lists.pop(0)).encode())

    def follow(
        self, path: str, parameters: Mapping[str, str], opened: Callable[[Callable[[], None]], None]
    ) -> Iterator[bytes]:
        assert (path, parameters["allowWatchBookmarks"]) == (PATH, "true")
        self.asked.append(f"watch {parameters['resourceVersion']}")
        lines = self.watches.pop(0)
        if isinstance(lines, Exception):
            raise lines
        opened(self.shut.set)
        yield from lines
        if not self.watches:
            self.shut.wait()


class Quiet:
    """Has watches that are open until they are shut, and no answer to what is asked."""

    def __init__(self) -> None:
        self.questions, self.windows = 0, list[str]()

    def get(self, path: str, parameters: Mapping[str, str] | None = None) -> Response:
        assert (path, parameters) == ("/api/v1/namespaces/placer-nothing/pods", {"limit": "1"})
        self.questions += 1
        raise ClusterError("503 away")

    def follow(
        self, path: str, parameters: Mapping[str, str], opened: Callable[[Callable[[], None]], None]
    ) -> Iterator[bytes]:
        assert path == PATH
        shut = threading.Event()
        opened(shut.set)
        self.windows.append(parameters["timeoutSeconds"])
        shut.wait()
        yield b""


class Heard:
    """Notes what a watch says."""

    def __init__(self, server: Server, until: int, *, hurried: bool = False) -> None:
        self.events: list[str] = []
        self._enough, self._until = threading.Event(), until
        self.watch = Watch(server, PATH, "5", self.happened, self.replaced, hurried=hurried)
        self.watch.start()
        assert self._enough.wait(60), self.events
        self.lost = self.watch.lost
        self.watch.close()

    def happened(self, kind: str, item: bytes) -> None:
        self._note(f"{kind} {json.loads(item)['metadata']['name']}")

    def replaced(self, items: Sequence[bytes]) -> None:
        self._note(" ".join(json.loads(item)["metadata"]["name"] for item in items))

    def _note(self, text: str) -> None:
        self.events.append(text)
        if len(self.events) >= self._until:
            self._enough.set()


def test_events_come_in_their_order_and_bookmarks_do_not() -> None:
    server = Server([line("ADDED", "a", 6), b"", line("BOOKMARK", "", 8), line("DELETED", "a", 9)])
    heard = Heard(server, 2)
    assert heard.events == ["ADDED a", "DELETED a"]
    assert heard.lost is None
    assert server.asked == ["watch 5"]


def test_a_broken_watch_goes_on_where_it_was() -> None:
    server = Server([line("ADDED", "a", 6), line("BOOKMARK", "", 8)], Unanswered("away"), [line("ADDED", "b", 9)])
    assert Heard(server, 2).events == ["ADDED a", "ADDED b"]
    assert server.asked == ["watch 5", "watch 8", "watch 8"]


def test_what_the_server_has_forgotten_is_listed() -> None:
    forgotten = b'{"type": "ERROR", "object": {"code": 410}}'
    pages = [
        {**PODS, "metadata": {"resourceVersion": "20", "continue": "x"}, "items": [{"metadata": {"name": "a"}}]},
        {**PODS, "metadata": {"resourceVersion": "20"}, "items": [{"metadata": {"name": "b"}}]},
    ]
    server = Server([line("ADDED", "a", 6), forgotten], [line("ADDED", "c", 21)], lists=pages)
    assert Heard(server, 3).events == ["ADDED a", "a b", "ADDED c"]
    assert server.asked == ["watch 5", "list", "list x", "watch 20"]


def test_other_errors_begin_it_anew() -> None:
    trouble = b'{"type": "ERROR", "object": {"code": 500}}'
    server = Server([trouble], ClusterError("403"), [line("ADDED", "a", 6)])
    assert Heard(server, 1).events == ["ADDED a"]
    assert server.asked == ["watch 5"] * 3


def test_one_that_is_checked_soon_is_opened_anew_after_each_bookmark() -> None:
    """The next round of bookmarks has none for a watch that has had its own."""
    server = Server([line("BOOKMARK", "", 8), line("ADDED", "never", 9)], [line("ADDED", "a", 9)])
    assert Heard(server, 1, hurried=True).events == ["ADDED a"]
    assert server.asked == ["watch 5", "watch 8"]


@pytest.mark.parametrize(("count", "opened"), [(501, 2), (500, 1)])
def test_a_list_that_is_long_is_hurried_and_a_short_one_listed_when_it_is_checked(count: int, opened: int) -> None:
    """Each question makes the server find out what is current; its answer is of no use then, and its trouble none."""
    server = Quiet()
    watch = Watch(server, PATH, "5", lambda *_: None, lambda *_: None, count, window=10)
    watch.start()
    wait_until(lambda: server.windows == ["10"], "its beginning")
    watch.hurry()
    watch.nudge()
    wait_until(lambda: server.windows == ["10", "3"][:opened], "its second beginning")
    assert server.questions == opened - 1
    watch.close()


@pytest.mark.parametrize(
    ("quiet", "trouble"), [(0.0, "it has not begun"), (60.0, "the server ended the watch at once")]
)
def test_one_that_ends_with_nothing_said_is_in_trouble_only_if_it_ends_at_once(
    quiet: float, trouble: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("placer.passes.cluster.reading.watch._QUIET", quiet)
    assert Heard(Server([], [line("ADDED", "a", 6)]), 1).watch.trouble == trouble


def test_a_quiet_watch_that_the_server_ends_in_order_was_heard_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a kind that never changes there is no bookmark either: it need not be listed anew."""
    monkeypatch.setattr("placer.passes.cluster.reading.watch._QUIET", 0.0)
    watch = Watch(Server([], []), PATH, "5", lambda *_: None, lambda *_: None)
    before = watch.heard
    assert watch._follow()
    assert watch.heard > before


def test_while_nothing_is_read_it_says_why() -> None:
    watch = Watch(Server(ClusterError("403 not allowed")), PATH, "5", lambda *_: None, lambda *_: None)
    assert watch.lost is not None
    watch.start()
    wait_until(lambda: watch.trouble == "403 not allowed", "the trouble")
    assert watch.lost is not None
    watch.close()


def test_a_server_without_time_is_watched_again_when_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    server = Server(Busy("429 no time", 7.0), Busy("429 no time", 0.0), ClusterError("500"), [line("ADDED", "a", 6)])
    watch = Watch(server, PATH, "5", lambda *_: None, lambda *_: None)

    def wait(seconds: float | None = None) -> bool:
        waited.append(seconds or 0.0)
        return watch._over.is_set()

    monkeypatch.setattr(watch._over, "wait", wait)
    watch.start()
    wait_until(lambda: watch.lost is None, "the watch to be open")
    watch.close()
    assert waited == [7.0, 0.2, 0.4]


def test_a_listener_that_stumbles_is_not_taken_for_a_quiet_cluster() -> None:

    def stumble(*_: object) -> None:
        raise RuntimeError("a bug")

    watch = Watch(Server([line("ADDED", "a", 6)]), PATH, "5", stumble, stumble)
    watch.start()
    wait_until(lambda: watch.trouble == "RuntimeError: a bug", "the trouble")
    wait_until(lambda: watch.lost is not None, "its loss")
    watch.close()


def test_what_is_not_read_is_lost_at_once_whenever_it_was_checked_last() -> None:
    """An event may have come since the last check that nobody has heard."""
    server = Server([line("ADDED", "a", 6)])
    watch = Watch(server, PATH, "5", lambda *_: None, lambda *_: None)
    watches = Watches([watch])
    assert watches.lost() == f"{PATH} cannot be watched: it has not begun"
    with watches.open():
        wait_until(lambda: watch.lost is None, "the watch to be open")
        assert watches.lost() == f"{PATH} cannot be watched: changes since the snapshot have not arrived yet"
        watches._since[watch] = time.monotonic()
        assert watches.lost() is None
        watch._lose("the connection broke")
        assert watches.lost() == f"{PATH} cannot be watched: the connection broke"
