"""One binding: what each answer means, what is tried again, what is looked at before."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from placer.passes.cluster.planning.binding_plan import PlannedBinding
from placer.passes.cluster.reading.client import Response, Unanswered
from placer.passes.cluster.writing.binding import BindingResult, BindingState, bind_pod
from placer.problem import Key

BIND = PlannedBinding(Key("default", "p"), "uid-p", "n1", ("node-0", "node-1"))


class Server:
    """Answers bindings with what it is told, the last one for ever; ``pod`` is what it shows."""

    def __init__(self, *answers: Response | None, pod: Mapping[str, Any] | None = None) -> None:
        self.answers = list(answers)
        self.pod = pod
        self.sent = True  #: whether what gets no answer may have arrived
        self.asked: list[str] = []
        self.bodies: list[Any] = []
        self.parameters: list[Any] = []
        self.fences: list[Any] = []
        self.unfenced: Response | None = None  #: the answer to a fence, None: it is taken

    def get(self, *_: Any) -> Response:
        raise AssertionError("what is asked while binding is asked once")

    def send(self, method: str, path: str, body: object = None, **options: Any) -> Response:
        self.asked.append(method)
        if method == "GET":
            assert path == "/api/v1/namespaces/default/pods/p"
            return Response(404, b"{}") if self.pod is None else Response(200, json.dumps(self.pod).encode())
        if method == "PATCH":
            assert path == "/api/v1/namespaces/default/pods/p/status"
            self.fences.append(body)
            if self.unfenced is not None:
                return self.unfenced
            return Response(404, b"{}") if self.pod is None else Response(200, json.dumps(self.pod).encode())
        assert path == "/api/v1/namespaces/default/pods/p/binding"
        self.bodies.append(body)
        self.parameters.append(options.get("parameters"))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer is None:
            raise Unanswered("no answer", sent=self.sent)
        return answer


def said(status: int, message: str = "", after: float | None = None) -> Response:
    return Response(status, json.dumps({"message": message}).encode(), after)


def pod(uid: str = "uid-p", node: str | None = None, gates: bool = False, deleted: bool = False) -> dict[str, Any]:
    spec: dict[str, Any] = {"nodeName": node} if node else {}
    if gates:
        spec["schedulingGates"] = [{"name": "example.com/hold"}]
    metadata = {"uid": uid, "resourceVersion": "7"} | ({"deletionTimestamp": "2026-01-01T00:00:00Z"} if deleted else {})
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
        (pod(node="n2"), BindingState.REFUSED, "another client bound it to Node n2"),
        (pod(uid="other"), BindingState.REFUSED, "another pod has its name now"),
        (pod(uid="other", node="n1"), BindingState.REFUSED, "another pod has its name now"),
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


@pytest.mark.parametrize("status", [400, 403, 404, 405, 422])
def test_what_is_refused_is_not_tried_again(status: int) -> None:
    server = Server(said(status, "no"), pod=pod())
    assert tried(server) == BindingResult(BIND, BindingState.REFUSED, f"{status} no")
    assert server.asked == ["POST"]


@pytest.mark.parametrize("status", [409, 500])
def test_a_pod_that_is_too_long_to_have_a_node_is_not_tried_again(status: int) -> None:
    """As its author has made it: each try would keep a worker from others, for as long as a gang's grace lasts."""
    why = 'Operation cannot be fulfilled on pods/binding "p": etcdserver: request is too large'
    server = Server(said(status, why), pod=pod())
    assert tried(server) == BindingResult(BIND, BindingState.REFUSED, f"{status} {why}")
    assert (server.asked, server.fences) == (["POST"], [])


def test_too_many_requests_waits_as_long_as_it_is_told() -> None:
    waits: list[float] = []
    server = Server(said(429, "slow down", after=3.0), said(429, "slow down", after=30.0), said(201))
    assert tried(server, waits=waits).state is BindingState.BOUND
    assert server.asked == ["POST"] * 3  # nothing has happened, so nothing is looked at
    assert [3.0 <= waits[0] <= 3.3, 30.0 <= waits[1] <= 33.0, len(waits)] == [True, True, 2]


@pytest.mark.parametrize("answer", [said(500), said(503), said(504), said(401), None])
def test_what_may_have_happened_is_looked_at_before_it_is_tried_again(answer: Response | None) -> None:
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


@pytest.mark.parametrize("answer", [said(500), said(504), None])
def test_what_is_in_doubt_at_the_end_is_fenced(answer: Response | None) -> None:
    """The pod gets another version, so a binding that is still on its way is a conflict when it arrives."""
    server = Server(answer, pod=pod())
    assert tried(server, seconds=1.0).state is BindingState.REFUSED
    (fence,) = server.fences
    assert fence["metadata"] == {"uid": "uid-p"}
    again = Server(answer, pod=pod())
    tried(again, seconds=1.0)
    assert again.fences != server.fences  # what is written already would change nothing


@pytest.mark.parametrize("answer", [said(429), said(401), said(403), said(409)])
def test_what_is_in_no_doubt_is_not_written_to(answer: Response) -> None:
    server = Server(answer, pod=pod())
    assert tried(server, seconds=1.0).state is BindingState.REFUSED
    assert server.fences == []


def test_what_was_never_sent_is_in_no_doubt() -> None:
    server = Server(None, pod=pod())
    server.sent = False
    assert tried(server, seconds=1.0) == BindingResult(BIND, BindingState.REFUSED, "no answer")
    assert server.fences == []


def test_doubt_outlives_a_refusal_that_comes_after_it() -> None:
    server = Server(None, said(403, "no"), pod=pod())
    assert tried(server) == BindingResult(BIND, BindingState.REFUSED, "403 no")
    assert len(server.fences) == 1


@pytest.mark.parametrize(("node", "fate"), [("n1", BindingState.BOUND), (None, BindingState.UNKNOWN)])
def test_a_fence_that_a_policy_refuses_tells_whether_the_pod_is_bound(
    node: str | None, fate: BindingState, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No status is written of a pod that has a node by now; of one that has none, nothing was fenced."""
    server = Server(None, pod=pod())
    really = server.send

    def send(method: str, path: str, body: object = None, **options: Any) -> Response:
        if method == "PATCH":
            server.pod, server.unfenced = pod(node=node), said(422, "placer writes of conditions PodScheduled alone")
        return really(method, path, body, **options)

    monkeypatch.setattr(server, "send", send)
    assert tried(server).state is fate
    assert len(server.fences) == 1


def test_a_fence_that_finds_the_pod_bound_tells_so() -> None:
    class Late(Server):
        def send(self, method: str, path: str, body: object = None, **options: Any) -> Response:
            if method == "PATCH":
                self.pod = pod(node="n1")
            return super().send(method, path, body, **options)

    assert tried(Late(None, pod=pod()), seconds=1.0) == BindingResult(BIND, BindingState.BOUND)


def test_the_version_that_was_read_last_is_the_one_that_is_bound() -> None:
    bind = replace(BIND, resource_version="5")
    server = Server(said(409, "the object has been modified"), said(201), pod=pod())
    made = bind_pod(server, bind, lambda: time.monotonic() + 60.0, sleep=lambda _: None)
    assert made == BindingResult(bind, BindingState.BOUND)
    assert [each["metadata"]["resourceVersion"] for each in server.bodies] == ["5", "7"]


def test_before_each_try_it_is_asked_whether_it_may_be_made() -> None:
    server, answers = Server(said(429, after=0.0), pod=pod()), [None, None, "Node n1 is gone"]
    made = bind_pod(server, BIND, lambda: time.monotonic() + 60.0, refusal=lambda: answers.pop(0), sleep=lambda _: None)
    assert made == BindingResult(BIND, BindingState.REFUSED, "Node n1 is gone")
    assert server.asked == ["POST", "POST"]


def test_a_server_that_never_answers_leaves_it_unknown() -> None:
    class Dead(Server):
        def send(self, method: str, *_: Any, **__: Any) -> Response:
            self.asked.append(method)
            raise Unanswered("nobody there")

    server = Dead(None)
    assert tried(server, seconds=1.0) == BindingResult(BIND, BindingState.UNKNOWN, "nobody there")
    assert server.asked[:3] == ["POST", "GET", "GET"]


def test_after_the_deadline_nothing_is_tried() -> None:
    server = Server(said(201))
    assert bind_pod(server, BIND, lambda: 0.0) == BindingResult(BIND, BindingState.REFUSED, "it was not tried in time")
    assert server.asked == []


def test_nothing_is_sent_after_the_deadline_though_the_pod_was_read_before_it() -> None:
    """The answer to a question may take seconds, in which the Lease lapses."""
    server, over = Server(said(409), pod=pod()), False

    def deadline() -> float:
        return 0.0 if over else time.monotonic() + 60.0

    class Slow:
        def get(self, *asked: Any) -> Response:
            return server.get(*asked)

        def send(self, method: str, path: str, body: object = None, **options: Any) -> Response:
            nonlocal over
            over = over or method == "GET"
            return server.send(method, path, body, **options)

    made = bind_pod(Slow(), BIND, deadline, sleep=lambda _: None)
    assert (made.state, made.reason) == (BindingState.REFUSED, "its time was over before all of it was sent")
    assert server.asked.count("POST") == 1
