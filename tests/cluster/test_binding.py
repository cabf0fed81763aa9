"""One binding: what each answer means, what is tried again, what is looked at before."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

import pytest

from placer.cluster.planning.binding_plan import PlannedBinding
from placer.cluster.reading.client import Answer, Unanswered
from placer.cluster.writing.binding import BindingResult, BindingState, bind_pod
from placer.instance import Key

BIND = PlannedBinding(Key("default", "p"), "uid-p", "n1", ("node-0", "node-1"))


class Server:
    """Answers bindings with what it is told, the last one for ever; ``pod`` is what it shows."""

    def __init__(self, *answers: Answer | None, pod: Mapping[str, Any] | None = None) -> None:
        self.answers = list(answers)
        self.pod = pod
        self.asked: list[str] = []
        self.bodies: list[Any] = []
        self.parameters: list[Any] = []

    def get(self, *_: Any) -> Answer:
        raise AssertionError("what is asked while binding is asked once")

    def send(self, method: str, path: str, body: object = None, **options: Any) -> Answer:
        self.asked.append(method)
        if method == "GET":
            assert path == "/api/v1/namespaces/default/pods/p"
            return Answer(404, b"{}") if self.pod is None else Answer(200, json.dumps(self.pod).encode())
        assert path == "/api/v1/namespaces/default/pods/p/binding"
        self.bodies.append(body)
        self.parameters.append(options.get("parameters"))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer is None:
            raise Unanswered("no answer")
        return answer


def said(status: int, message: str = "", after: float | None = None) -> Answer:
    return Answer(status, json.dumps({"message": message}).encode(), after)


def pod(uid: str = "uid-p", node: str | None = None, gates: bool = False, deleted: bool = False) -> dict[str, Any]:
    spec: dict[str, Any] = {"nodeName": node} if node else {}
    if gates:
        spec["schedulingGates"] = [{"name": "example.com/hold"}]
    metadata = {"uid": uid} | ({"deletionTimestamp": "2026-01-01T00:00:00Z"} if deleted else {})
    return {"metadata": metadata, "spec": spec}


def tried(
    server: Server, seconds: float = 60.0, waits: list[float] | None = None, dry_run: bool = False
) -> BindingResult:
    """Bind with a clock that only waiting moves."""
    slept = [] if waits is None else waits
    began = time.monotonic()

    def deadline() -> float:
        return began + seconds - sum(slept) if sum(slept) < seconds else 0.0

    return bind_pod(server, BIND, deadline, dry_run=dry_run, sleep=slept.append)


def test_a_binding_carries_uid_zones_and_node() -> None:
    server = Server(said(201))
    assert tried(server) == BindingResult(BIND, BindingState.BOUND)
    assert server.asked == ["POST"]
    assert server.bodies == [
        {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {
                "name": "p",
                "namespace": "default",
                "uid": "uid-p",
                "annotations": {"placer.dev/numa-zones": "node-0,node-1"},
            },
            "target": {"apiVersion": "v1", "kind": "Node", "name": "n1"},
        }
    ]


def test_a_dry_run_says_so() -> None:
    server = Server(said(201))
    tried(server, dry_run=True)
    assert server.parameters == [{"dryRun": "All"}]


@pytest.mark.parametrize(
    ("found", "fate", "reason"),
    [
        (pod(node="n1"), BindingState.BOUND, ""),
        (pod(node="n2"), BindingState.REFUSED, "somebody else bound it to Node n2"),
        (pod(uid="other"), BindingState.REFUSED, "it was made anew under its name"),
        (pod(uid="other", node="n1"), BindingState.REFUSED, "it was made anew under its name"),
        (pod(gates=True), BindingState.REFUSED, "it has scheduling gates"),
        (pod(deleted=True), BindingState.REFUSED, "it is being deleted"),
        (None, BindingState.REFUSED, "it is gone"),
    ],
)
def test_after_a_conflict_the_pod_says_what_became_of_it(
    found: dict[str, Any] | None, fate: BindingState, reason: str
) -> None:
    server = Server(said(409, "conflict"), pod=found)
    assert tried(server) == BindingResult(BIND, fate, reason)
    assert server.asked == ["POST", "GET"]


def test_a_conflict_that_leaves_the_pod_as_it_was_is_tried_again() -> None:
    server = Server(said(409, "the object has been modified"), said(201), pod=pod())
    assert tried(server).state is BindingState.BOUND
    assert server.asked == ["POST", "GET", "POST"]


@pytest.mark.parametrize("status", [400, 403, 404, 405, 422])
def test_what_is_refused_is_not_tried_again(status: int) -> None:
    server = Server(said(status, "no"), pod=pod())
    assert tried(server) == BindingResult(BIND, BindingState.REFUSED, f"{status} no")
    assert server.asked == ["POST"]


def test_too_many_requests_waits_as_long_as_it_is_told() -> None:
    waits: list[float] = []
    server = Server(said(429, "slow down", after=3.0), said(429, "slow down", after=60.0), said(201))
    assert tried(server, waits=waits).state is BindingState.BOUND
    assert server.asked == ["POST"] * 3  # nothing has happened, so nothing is looked at
    assert waits == [3.0, 10.0]


@pytest.mark.parametrize("answer", [said(500), said(503), said(504), said(401), None])
def test_what_may_have_happened_is_looked_at_before_it_is_tried_again(answer: Answer | None) -> None:
    server = Server(answer, said(201), pod=pod())
    assert tried(server).state is BindingState.BOUND
    assert server.asked == ["POST", "GET", "POST"]


def test_an_answer_that_got_lost_is_found_in_the_pod() -> None:
    server = Server(None, pod=pod(node="n1"))
    assert tried(server).state is BindingState.BOUND
    assert server.asked == ["POST", "GET"]


def test_pauses_double_and_end_with_the_deadline() -> None:
    waits: list[float] = []
    server = Server(said(503, "away"), pod=pod())
    assert tried(server, seconds=10.0, waits=waits) == BindingResult(BIND, BindingState.REFUSED, "503 away")
    for place, pause in enumerate((0.1, 0.2, 0.4, 0.8, 1.6, 2.0)):
        assert 0.79 * pause <= waits[place] <= 1.21 * pause
    assert sum(waits) == pytest.approx(10.0, abs=0.1)


def test_a_server_that_never_answers_leaves_it_unknown() -> None:
    class Dead(Server):
        def send(self, method: str, *_: Any, **__: Any) -> Answer:
            self.asked.append(method)
            raise Unanswered("nobody there")

    server = Dead(None)
    assert tried(server, seconds=1.0) == BindingResult(BIND, BindingState.UNKNOWN, "nobody there")
    assert server.asked[:3] == ["POST", "GET", "GET"]


def test_after_the_deadline_nothing_is_tried() -> None:
    server = Server(said(201))
    assert bind_pod(server, BIND, lambda: 0.0) == BindingResult(BIND, BindingState.REFUSED, "it was not tried in time")
    assert server.asked == []
