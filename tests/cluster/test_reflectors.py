"""Lists that are kept: what they hold after events, and whom they tell; with a server that says what it is told to."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import pytest

from placer.kube.kinds import BY_ATTRIBUTE, KindInfo
from placer.passes.cluster.reading.client import Response
from placer.passes.cluster.reading.reflectors import Reflectors
from placer.passes.cluster.reading.served_kinds import ServedKinds
from placer.passes.cluster.reading.snapshot import whole_kind
from placer.passes.cluster.reading.views import Rejection
from placer.passes.scheduling_pass import LoopMemory, Pass, PassOptions, PassSession, read_cluster
from tests.cluster.test_any_object import Double
from tests.support import Document, node
from tests.waiting import wait_until

PATH = "/api/v1/nodes"
NODES = BY_ATTRIBUTE["nodes"]


def versioned(number: int, name: str, **amounts: object) -> Document:
    found = {**node(name, **amounts)}
    return {**found, "metadata": {**found["metadata"], "resourceVersion": str(number)}}


class Server:
    """Has lists for each time it is asked for one; its watches say what they are told while they are open."""

    def __init__(self, *lists: Sequence[Document]) -> None:
        self.lists = list(lists)
        self.watched: list[str] = []
        self._said: list[bytes] = []
        self._changed = threading.Condition()

    def say(self, kind: str, thing: Document) -> None:
        with self._changed:
            self._said.append(json.dumps({"type": kind, "object": thing}).encode())
            self._changed.notify_all()

    def get(self, path: str, parameters: Mapping[str, str] | None = None) -> Response:
        assert (path, "watch" in (parameters or {})) == (PATH, False)
        items = [{k: v for k, v in each.items() if k not in ("kind", "apiVersion")} for each in self.lists.pop(0)]
        page = {"kind": "NodeList", "apiVersion": "v1", "metadata": {"resourceVersion": "5"}, "items": items}
        return Response(200, json.dumps(page).encode())

    def follow(
        self, path: str, parameters: Mapping[str, str], opened: Callable[[Callable[[], None]], None]
    ) -> Iterator[bytes]:
        assert path == PATH
        over = threading.Event()

        def shut() -> None:
            over.set()
            with self._changed:
                self._changed.notify_all()

        self.watched.append(parameters["resourceVersion"])
        opened(shut)
        while not over.is_set():
            with self._changed:
                self._changed.wait_for(lambda: bool(self._said) or over.is_set())
                said, self._said = self._said, []
            yield from said


class Changes:
    """Notes who was told to have changed."""

    def __init__(self) -> None:
        self.noted: list[tuple[str, bool, bool]] = []

    def __call__(self, info: KindInfo, before: bytes | None, after: bytes | None) -> None:
        assert info is NODES
        name = json.loads(after or before or b"")["metadata"]["name"]
        self.noted.append((name, before is not None, after is not None))


def taken(lists: Reflectors) -> tuple[list[str], str]:
    items, version = lists(PATH, NODES, "v1", lambda _: None)
    return [json.loads(item)["metadata"]["name"] for item in items], version


@pytest.fixture
def changes() -> Changes:
    return Changes()


def test_a_list_is_taken_once_and_events_are_written_into_it(changes: Changes) -> None:
    server = Server([versioned(1, "b"), versioned(2, "c")])
    lists = Reflectors(server, changes)
    assert taken(lists) == (["b", "c"], "5")
    server.say("ADDED", versioned(6, "a"))
    server.say("MODIFIED", versioned(7, "c", cpu=3))
    server.say("DELETED", versioned(8, "b"))
    wait_until(lambda: len(changes.noted) == 3, "three changes")
    assert changes.noted == [("a", False, True), ("c", True, True), ("b", True, False)]
    wait_until(lambda: taken(lists) == (["a", "c"], "8"), "the version of the last")
    assert lists.troubles == []
    lists.close()


def test_what_is_kept_is_what_a_list_gives(changes: Changes) -> None:
    """To the byte, so that an object that is the same is known to be."""
    later = [versioned(6, "a", cpu=3), versioned(9, "b")]
    server = Server([versioned(1, "a")], later)
    lists = Reflectors(server, changes)
    taken(lists)
    for each in later:
        server.say("MODIFIED", each)
    wait_until(lambda: len(changes.noted) == 2, "two changes")
    kept, _ = lists(PATH, NODES, "v1", lambda _: None)
    assert list(kept) == whole_kind(server, PATH, NODES, "v1", lambda _: None)[0]
    lists.close()


def test_an_event_that_cannot_be_read_is_set_aside_as_in_a_list(changes: Changes) -> None:
    broken = {**versioned(6, "a"), "status": 3}
    server = Server([versioned(1, "a")], [broken])
    lists = Reflectors(server, changes)
    taken(lists)
    server.say("MODIFIED", broken)
    wait_until(lambda: len(changes.noted) == 1, "the change")
    (kept,), _ = lists(PATH, NODES, "v1", lambda _: None)
    assert kept == whole_kind(server, PATH, NODES, "v1", lambda _: None)[0][0]
    assert b"placer.dev/unreadable" in kept
    lists.close()


def test_after_a_silence_the_list_is_taken_anew_and_what_changed_meanwhile_is_told(
    changes: Changes, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Server([versioned(1, "a"), versioned(2, "b")], [versioned(1, "a"), versioned(7, "c")])
    lists = Reflectors(server, changes)
    taken(lists)
    monkeypatch.setattr("placer.passes.cluster.reading.reflectors._SILENCE", 0.0)
    assert taken(lists) == (["a", "c"], "5")
    assert sorted(changes.noted) == [("b", True, False), ("c", False, True)]
    (trouble,) = lists.troubles
    assert trouble == f"{PATH} was listed again: nothing was heard for 0 s"
    lists.close()


def test_who_follows_hears_of_all_since_the_list_and_of_nothing_after_that(changes: Changes) -> None:
    server = Server([versioned(1, "b")])
    lists = Reflectors(server, changes)
    heard: list[str] = []

    def listen(kind: str, item: bytes) -> None:
        heard.append(f"{kind} {json.loads(item)['metadata']['name']}")

    def say(number: int, kind: str, name: str) -> None:
        server.say(kind, versioned(number, name, cpu=number))
        wait_until(lambda: len(changes.noted) == number, f"change {number}")

    taken(lists)
    say(1, "ADDED", "before")
    taken(lists)
    say(2, "ADDED", "a")
    say(3, "MODIFIED", "a")
    (watch,) = lists.follow({PATH: (listen, lambda _: None)})
    assert (heard, watch.path) == (["ADDED a", "MODIFIED a"], PATH)
    say(4, "DELETED", "b")
    wait_until(lambda: len(heard) == 3, "the event")
    assert heard[2:] == ["DELETED b"]
    lists.unfollow()
    say(5, "ADDED", "after")
    assert len(heard) == 3
    lists.close()


def test_who_follows_hears_of_a_list_that_the_watch_has_taken(changes: Changes) -> None:
    server = Server([versioned(1, "a")], [versioned(2, "a"), versioned(3, "b")])
    lists = Reflectors(server, changes)
    taken(lists)
    heard: list[list[str]] = []
    names = lambda items: heard.append([json.loads(each)["metadata"]["name"] for each in items])  # noqa: E731
    lists.follow({PATH: (lambda *_: None, names)})
    server.say("ERROR", {"code": 410})
    wait_until(lambda: heard == [["a", "b"]], "the list")
    lists.close()


def test_what_nobody_asks_for_any_more_is_forgotten(changes: Changes) -> None:
    server = Server([versioned(1, "a")], [versioned(1, "a"), versioned(2, "b")])
    lists = Reflectors(server, changes)
    taken(lists)
    lists.close_unasked()
    assert taken(lists)[0] == ["a"]  # it was asked for
    lists.close_unasked()
    lists.close_unasked()
    assert taken(lists)[0] == ["a", "b"]
    assert changes.noted == []  # a list that is taken for the first time is no change
    lists.close()


def test_which_kinds_there_are_is_asked_once_a_minute(changes: Changes, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    class Discovery(Server):
        def get(self, path: str, _: Mapping[str, str] | None = None) -> Response:
            asked.append(path)
            groups = [{"name": name, "versions": [{"version": "v1"}]} for name in ("apps", "scheduling.k8s.io")]
            resources = [{"name": "replicasets"}, {"name": "priorityclasses"}]
            return Response(200, json.dumps({"groups": groups, "resources": resources}).encode())

    lists = Reflectors(Discovery(), changes)
    first = lists.served()
    count = len(asked)
    assert "/apis" in asked
    assert lists.served() is first
    assert len(asked) == count
    lists.forget_served()
    assert lists.served() is not first
    monkeypatch.setattr("placer.passes.cluster.reading.reflectors._SERVED", 0.0)
    lists.served()
    assert len(asked) == 3 * count


def test_a_list_that_was_taken_tells_so_and_what_a_watch_has_listed_is_heard_of(changes: Changes) -> None:
    """Else a pod that has failed in between would have no event, and no list of failed pods either."""
    heard: list[str] = []
    lists = Reflectors(
        Server([versioned(1, "a")]), changes, lambda _, item: heard.append(json.loads(item)["metadata"]["name"])
    )
    assert lists.is_listed_anew(PATH)
    taken(lists)
    assert lists.is_listed_anew(PATH)
    taken(lists)
    assert not lists.is_listed_anew(PATH)
    lists._of[PATH]._relisted(1, [json.dumps(versioned(2, "b")).encode()])
    assert heard == ["b"]
    lists.close()


@pytest.mark.parametrize(("heard", "anew", "asked"), [(None, False, 1), ([], True, 1), ([], False, 0)])
def test_failed_pods_are_asked_for_only_where_events_of_them_were_not_heard(
    heard: list[Rejection] | None, anew: bool, asked: int
) -> None:
    selectors: list[str] = []

    class Asked(Double):
        def get(self, path: str, parameters: Mapping[str, str] | None = None) -> Response:
            selectors.append((parameters or {}).get("fieldSelector", ""))
            return super().get(path, parameters)

    class Lists:
        def __init__(self) -> None:
            self.served, self.kept = partial(ServedKinds, server), None

        def __call__(self, *asked: Any) -> Any:
            return whole_kind(server, *asked)

        def is_listed_anew(self, _: str) -> bool:
            return anew

    server = Asked([node("n1")], [])
    session = PassSession(server, threading.Event())  # type: ignore[arg-type]
    read_cluster(session, Pass(PassOptions(), LoopMemory(heard=heard)), Lists())  # type: ignore[arg-type]
    assert sum(each.startswith("status.phase=Failed") for each in selectors) == asked
