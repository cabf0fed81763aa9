"""Evictions: the answer to each, and one after another, where a mark that comes in between is heeded."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from placer.answers.solving import solve
from placer.passes import preempt_pass
from placer.passes.cluster.reading.client import Response, Unanswered
from placer.passes.cluster.reading.snapshot import Identity
from placer.passes.cluster.writing import making_room
from placer.passes.cluster.writing.making_room import evict_pods, evictions_refused
from placer.passes.scheduling_pass import Pass, PassOptions
from placer.problem import Key
from tests.support import instance_of, node, pod

PODS = [Key("default", name) for name in "abc"]
IDENTITIES = {key: Identity(f"uid-{key.name}", "1") for key in PODS}


class Server:
    """Tells of each pod what it says of itself, and evicts."""

    def __init__(self, metadata: Mapping[str, Any], *, tells: bool = True) -> None:
        self.metadata, self.tells = metadata, tells
        self.evicted: list[str] = []

    def send(self, method: str, path: str, _body: Any = None, **_: Any) -> Response:
        name = path.split("/pods/")[1].split("/")[0]
        if method == "POST":
            self.evicted.append(name)
            return Response(201, b"{}")
        if not self.tells:
            raise Unanswered("no answer")
        return Response(200, json.dumps({"metadata": {"name": name, **self.metadata.get(name, {})}}).encode())


@pytest.mark.parametrize(
    ("metadata", "evicted", "mark"),
    [
        ({}, "a b c", None),
        ({"b": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}}, "a", 'karpenter.sh/do-not-disrupt: "true"'),
        ({"a": {"labels": {"volcano.sh/preemptable": "false"}}}, "", 'volcano.sh/preemptable: "false"'),
        ({"a": {"labels": {"volcano.sh/preemptable": "true"}}}, "a b c", None),
    ],
)
def test_a_mark_that_came_since_ends_the_plan(metadata: Mapping[str, Any], evicted: str, mark: str | None) -> None:
    server, gone = Server(metadata), list[Key]()
    why = evict_pods(server, PODS, IDENTITIES, gone, 0.0, lambda: None, [])
    assert [key.name for key in gone] == server.evicted == evicted.split()
    named = next((name for name in "abc" if name in metadata), "")
    assert why == (None if mark is None else f"Pod default/{named} is not evicted: {mark} protects it by now")


def test_a_server_that_does_not_answer_leaves_it_to_what_was_judged() -> None:
    server, gone = Server({"a": {"labels": {"volcano.sh/preemptable": "false"}}}, tells=False), list[Key]()
    assert evict_pods(server, PODS[:1], IDENTITIES, gone, 0.0, lambda: None, []) is None
    assert gone == PODS[:1]


TWO = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."


@pytest.mark.parametrize("message", [TWO, "etcdserver: request is too large"])
def test_who_can_never_be_evicted_is_asked_for_once_and_named(message: str) -> None:
    class Refusing(Server):
        def send(self, method: str, path: str, body: Any = None, **options: Any) -> Response:
            answer = super().send(method, path, body, **options)
            refused = method == "POST" and self.evicted[-1] in "ac"
            return Response(500, json.dumps({"message": message}).encode()) if refused else answer

    server, refused = Refusing({}), list[Key]()
    why = evictions_refused(server, PODS, IDENTITIES, lambda: None, refused)
    assert why == f"Pod default/a cannot be evicted: 500 {message}"
    assert (server.evicted, [key.name for key in refused]) == (["a", "b", "c"], ["a", "c"])


BUDGET = b'{"details": {"causes": [{"reason": "DisruptionBudget"}]}}'
RUNS, ENDS = {"uid": "uid-a"}, {"uid": "uid-a", "deletionTimestamp": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("first", "there", "insist", "tries", "goes"),
    [
        (Response(429, BUDGET), RUNS, False, 1, False),
        (Response(429, BUDGET), RUNS, True, 2, True),
        (Response(429, b"{}", 7.0), RUNS, False, 2, True),
        (Response(403, b"{}"), RUNS, True, 1, False),
        (Response(404, b"{}"), None, False, 1, True),
        (Response(409, b"{}"), {"uid": "another"}, False, 1, True),
        (Response(503, b"{}"), ENDS, False, 1, True),
        (Response(503, b"{}"), None, False, 1, True),
        (Response(503, b"{}"), RUNS, False, 2, True),
        (Unanswered("no answer"), ENDS, False, 1, True),
        (Unanswered("no answer"), RUNS, False, 2, True),
    ],
)
def test_each_answer_to_an_eviction(
    first: Response | Unanswered,
    there: Mapping[str, str] | None,
    insist: bool,
    tries: int,
    goes: bool,
    slept: list[float],
) -> None:
    """The table of ``models/faults.md``: an unclear answer has the pod read; each try names the uid."""
    answers, tried = [first, Response(201, b"{}")], list[Any]()

    class Answering:
        def send(self, method: str, path: str, body: Any = None, **_: Any) -> Response:
            if method == "GET":
                return Response(200, json.dumps({"metadata": there}).encode()) if there else Response(404, b"{}")
            tried.append((path, body["deleteOptions"]["preconditions"]["uid"]))
            answer = answers[len(tried) - 1]
            if isinstance(answer, Unanswered):
                raise answer
            return answer

    failed = making_room._evict(Answering(), PODS[0], "uid-a", math.inf, insist=insist)
    assert (failed is None) == goes
    assert tried == [("/api/v1/namespaces/default/pods/a/eviction", "uid-a")] * tries
    assert slept == [(first.again_after if isinstance(first, Response) else None) or 0.5] * (tries - 1)


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that are waited, which takes no time."""
    found = list[float]()
    clock = SimpleNamespace(monotonic=lambda: 0.0, sleep=found.append)
    monkeypatch.setattr(making_room, "time", clock)
    return found


@pytest.mark.parametrize(("status", "doubt"), [(500, True), (429, False), (403, False)])
def test_without_time_for_another_try_an_eviction_that_may_happen_is_in_doubt(
    status: int, doubt: bool, slept: list[float]
) -> None:
    class Silent(Server):
        def send(self, method: str, path: str, body: Any = None, **options: Any) -> Response:
            return Response(status, b"{}") if method == "POST" else super().send(method, path, body, **options)

    server, gone = Silent({"a": RUNS}), list[Key]()
    identities = {PODS[0]: Identity("uid-a", "1")}
    why = evict_pods(server, PODS[:1], identities, gone, -1.0, lambda: None, [])
    how = "got no answer, and may have happened" if doubt else "was refused"
    assert (gone, str(why).partition(": ")[0]) == ([], f"the eviction of Pod default/a {how}")
    assert making_room._evict(server, PODS[0], "uid-a", -1.0, dry_run=True) == (f"{status} {{}}", None, False)
    assert slept == []


def test_of_groups_that_are_as_urgent_namespaces_take_turns() -> None:
    """Four are tried in a pass: who has a thousand that nothing helps takes one place of each round."""
    pods = [pod(f"e{number}", namespace="evil", cpu=8, spec={"priority": 7}) for number in range(9)]
    others = [pod("fair", namespace="other", cpu=8, spec={"priority": 7}), pod("low", namespace="third", cpu=8)]
    result = solve(instance_of(node("n1", cpu=8), pod("runs", node="n1", cpu=8), *pods, *others), method="greedy")
    maker = object.__new__(preempt_pass._RoomMaker)
    maker.done = Pass(PassOptions())
    maker.done.result = result
    assert [key.name for key in maker._waiting()] == ["e0", "fair", "e1", "e2"]
