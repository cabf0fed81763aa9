"""What passes of a loop have to say, written while the next pass runs: in their order, bounded, and ended cleanly."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from placer.answers.solving import solve
from placer.passes.cluster.planning.binding_plan import BindingPlan, PlannedBinding
from placer.passes.cluster.planning.gang_outcome import GangOutcome, GangState
from placer.passes.cluster.reading.client import Response
from placer.passes.cluster.writing import status_writer
from placer.passes.cluster.writing.pod_group_status import PodGroupStatus
from placer.passes.cluster.writing.status_writer import StatusNews, StatusOptions, Teller, status_news
from placer.problem import GroupKey, Key
from tests.cluster.test_any_object import PODS
from tests.cluster.test_status_writer import Told
from tests.cluster.things import live_pod
from tests.support import Document, instance_of, node

#: Seconds after which what would wait for ever fails.
_NEVER = 10.0


class Slow(Told):
    """Takes nothing until it is told to; keeps conditions, and says no to a version that is another one by now."""

    def __init__(self, *documents: Document) -> None:
        super().__init__([node("n1"), *documents])
        self.reached, self.go = threading.Event(), threading.Event()

    def send(self, method: str, path: str, body: Any = None, **options: Any) -> Response:
        if method in ("PATCH", "POST"):
            self.reached.set()
            assert self.go.wait(_NEVER)
        if path.endswith("/status") and "/pods/" in path:
            pod = next(each for each in self.lists[PODS] if each["metadata"]["name"] == path.split("/")[6])
            if body["metadata"]["resourceVersion"] != pod["metadata"]["resourceVersion"]:
                return Response(409, b'{"message": "has changed"}')
        return super().send(method, path, body, **options)

    @property
    def conditions(self) -> list[tuple[str, str]]:
        """Pod and message of those that were taken, in their order."""
        found = [(path, body) for path, body in self.bodies if path.endswith("/status") and "/pods/" in path]
        return [(path.split("/")[6], body["status"]["conditions"][0]["message"]) for path, body in found]

    @property
    def events(self) -> list[str]:
        return [body["reason"] for path, body in self.bodies if path.endswith("/events")]


@contextmanager
def telling(server: Slow, stop: threading.Event | None = None, **changes: Any) -> Iterator[Teller]:
    teller = Teller(lambda: server, "placer", StatusOptions(**changes), stop or threading.Event(), gates=False)
    try:
        yield teller
    finally:
        server.go.set()
        teller.close()


def waiting(*pods: Document, why: str = "no room", bound: tuple[str, ...] = ()) -> StatusNews:
    """What a pass says in which all pods wait but those that it has bound."""
    instance = instance_of(node("n1", cpu=1), *pods)
    result = solve(instance, method="greedy")
    gangs = [
        GangOutcome(GroupKey("", "default", name), GangState.BOUND, (PlannedBinding(Key("default", name), "u", "n1"),))
        for name in bound
    ]
    found = status_news(result, BindingPlan(), gangs, (), StatusOptions())
    reason = status_writer._WaitingReason("Unschedulable", why)
    waits = {key: reason for key in found.waits if key.name not in bound}
    return StatusNews(found.groups, waits, found.half_bound, found.statuses, found.events, found.nominated)


HUGE = [live_pod(f"huge-{number}", cpu=9) for number in range(3)]


def may() -> str | None:
    return None


def test_whoever_has_to_tell_does_not_wait_and_all_is_written() -> None:
    server = Slow(*HUGE)
    with telling(server) as teller:
        teller.tell(waiting(*HUGE), may)  # returns, though the server takes nothing
        assert server.reached.wait(_NEVER)
        assert teller.told(0.0).conditions == 0
        server.go.set()
        report = teller.told(_NEVER)
        assert (report.conditions, report.events, report.troubles) == (3, 3, [])
        assert teller.told(_NEVER).conditions == 0  # each is told once
    assert {name for name, _ in server.conditions} == {"huge-0", "huge-1", "huge-2"}


def test_what_comes_meanwhile_is_told_as_one_and_in_order() -> None:
    """Conditions of the last pass count; Events of no pass are lost."""
    server = Slow(*HUGE)
    with telling(server) as teller:
        teller.tell(waiting(*HUGE, why="first"), may)
        assert server.reached.wait(_NEVER)
        for number, name in enumerate(("a", "b", "c")):
            teller.tell(waiting(*HUGE, live_pod(name, cpu=1), why=f"cause {number}", bound=(name,)), may)
        server.go.set()
        teller.told(_NEVER)
    assert [why for _, why in server.conditions] == ["first"] * 3 + ["cause 2"] * 3
    assert server.events.count("Scheduled") == 3


def test_the_last_status_that_was_said_of_a_group_counts() -> None:
    keys = [GroupKey("scheduling.volcano.sh", "default", name) for name in "ab"]
    earlier, later = waiting(*HUGE), waiting(*HUGE)
    waits = {key: PodGroupStatus(key, False, False, "Unschedulable", "no room") for key in keys}
    ready = {keys[0]: PodGroupStatus(keys[0], True, True)}
    fields = [getattr(earlier, name) for name in ("groups", "waits", "half_bound")]
    first = StatusNews(*fields, waits, earlier.events, {})
    second = StatusNews(*fields, ready, later.events, {})
    assert second.after(first).statuses == {keys[0]: ready[keys[0]], keys[1]: waits[keys[1]]}


def test_what_waits_to_be_told_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_writer, "_MOST_EVENTS", 5)
    news = waiting(*HUGE)
    for number in range(9):
        news = waiting(*HUGE, live_pod(f"s{number}", cpu=1), bound=(f"s{number}",)).after(news)
    assert [event.name for event in news.events] == [f"s{number}" for number in range(4, 9)]


def test_no_condition_is_written_to_a_pod_that_a_later_pass_has_bound() -> None:
    server = Slow(*HUGE)
    with telling(server) as teller:
        teller.tell(waiting(*HUGE), may)
        assert server.reached.wait(_NEVER)  # it has read the pods
        server.lists[PODS][0]["metadata"]["resourceVersion"] = "6"
        server.go.set()
        report = teller.told(_NEVER)
    assert (report.conditions, report.troubles) == (2, [])
    assert {name for name, _ in server.conditions} == {"huge-1", "huge-2"}


@pytest.mark.parametrize("ends", ["stop", "lost", "close"])
def test_once_it_is_to_end_nothing_more_is_begun(ends: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_writer, "_WORKERS", 1)
    server, stop, lost = Slow(*HUGE), threading.Event(), threading.Event()
    with telling(server, stop) as teller:
        teller.tell(waiting(*HUGE), lambda: "another leads" if lost.is_set() else None)
        assert server.reached.wait(_NEVER)
        if ends == "close":
            monkeypatch.setattr("placer.passes.cluster.writing.status_writer._END", 0.0)
            teller.close()
        else:
            {"stop": stop, "lost": lost}[ends].set()
        server.go.set()
        assert teller.told(_NEVER).conditions <= 1  # what was under way
    assert len(server.conditions) <= 1
    assert server.events == []


def test_an_error_of_the_server_is_told_and_the_next_news_are_written() -> None:
    server = Slow(*HUGE)
    server.go.set()
    servers = iter([None, server])
    teller = Teller(lambda: next(servers), "placer", StatusOptions(), threading.Event(), gates=False)  # type: ignore[arg-type, return-value]
    try:
        teller.tell(waiting(*HUGE), may)
        assert "NoneType" in " ".join(teller.told(_NEVER).troubles)
        teller.tell(waiting(*HUGE), may)
        assert teller.told(_NEVER).conditions == 3
    finally:
        teller.close()
