"""One pod released: what is sent, what each answer means, what is taken back; by whom a released pod is known again."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from placer.passes.cluster.planning.binding_plan import PlannedBinding
from placer.passes.cluster.reading.client import MERGE, STRATEGIC_MERGE, Response, Unanswered
from placer.passes.cluster.reading.earlier_passes import released_pods
from placer.passes.cluster.reading.gang_record import GangRecord, digests, mark
from placer.passes.cluster.reading.views import PodView, read_view
from placer.passes.cluster.writing.binding import BindingResult, BindingState, bind_pod, release
from placer.problem import GroupKey, Key
from placer.problem.pod_states import HOLD_GATE
from tests.cluster.snapshots import snapshot_of
from tests.support import Document, node, pod

BIND = PlannedBinding(Key("default", "p"), "uid-p", "n1", resource_version="7", by_release=True)
POD = "/api/v1/namespaces/default/pods/p"
Spoilt = Callable[[str, str, int], Response | Unanswered | None]


class Server:
    """Keeps one pod as an API server does; ``spoilt`` may answer in its place, by method, path and how often."""

    def __init__(self, spoilt: Spoilt = lambda *_: None, gates: tuple[str, ...] = (HOLD_GATE,)) -> None:
        self.spoilt, self.asked = spoilt, list[str]()
        self.kinds: list[str] = []
        self.pod: dict[str, Any] = {
            "metadata": {"name": "p", "uid": "uid-p", "resourceVersion": "7"},
            "spec": {"schedulerName": "default-scheduler", "schedulingGates": [{"name": each} for each in gates]},
            "status": {},
        }

    def get(self, *_: Any) -> Response:
        raise AssertionError("what is asked while binding is asked once")

    def send(self, method: str, path: str, body: Any = None, **options: Any) -> Response:
        what = method + path.removeprefix(POD)
        self.asked.append(what)
        self.kinds.append(options.get("kind", ""))
        answer = self.spoilt(method, path.removeprefix(POD), self.asked.count(what))
        if isinstance(answer, Unanswered):
            if answer.sent and "late" not in str(answer):
                self._write(method, path, body)
            raise answer
        return answer if answer is not None else self._write(method, path, body)

    def _write(self, method: str, path: str, body: Any) -> Response:
        metadata = self.pod["metadata"]
        if method == "PATCH":
            sent = body["metadata"]
            if sent["uid"] != metadata["uid"] or sent.get("resourceVersion", metadata["resourceVersion"]) != str(
                metadata["resourceVersion"]
            ):
                return Response(409, b'{"message": "it has changed"}')
            part = "status" if path.endswith("/status") else "spec"
            self.pod[part] = merged(self.pod[part], body[part])
            self.touch()
        return Response(200, json.dumps(self.pod).encode())

    def touch(self) -> None:
        """Have another client write something."""
        self.pod["metadata"]["resourceVersion"] = str(int(self.pod["metadata"]["resourceVersion"]) + 1)

    @property
    def nominated(self) -> str | None:
        found: str | None = self.pod["status"].get("nominatedNodeName")
        return found

    @property
    def released_for(self) -> str | None:
        view = read_view(json.dumps(self.pod).encode(), PodView)
        return None if view.spec.scheduling_gates else view.only_node


def merged(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON merge patch (RFC 7396)."""
    found = dict(one)
    for key, value in other.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = merged(found.get(key) or {}, value) if isinstance(value, dict) else value
    return found


def tried(server: Server, bind: PlannedBinding = BIND, **options: Any) -> BindingResult:
    """Release with a clock that only waiting moves."""
    slept: list[float] = []
    began = time.monotonic()

    def deadline() -> float:
        return began + 60 - sum(slept) if sum(slept) < 60 else 0.0

    return bind_pod(server, bind, deadline, sleep=slept.append, **options)


def only(what: str, answer: Response | Unanswered, times: int | None = 1) -> Spoilt:
    """Spoil one kind of request, the first time or always."""
    return lambda method, path, count: answer if method + path == what and count <= (times or count) else None


SAID = {"message": "no"}


def said(status: int) -> Response:
    return Response(status, json.dumps(SAID).encode(), 1.0 if status == 429 else None)


def test_it_is_nominated_then_released() -> None:
    server = Server()
    assert tried(server) == BindingResult(BIND, BindingState.BOUND)
    assert (server.asked, server.kinds) == (["PATCH/status", "PATCH"], [STRATEGIC_MERGE, MERGE])
    assert (server.nominated, server.released_for) == ("n1", "n1")


@pytest.mark.parametrize("lost", ["Lease", "time"])
def test_no_gate_goes_after_the_lease_or_the_time_is_lost_while_it_was_nominated(lost: str) -> None:
    """The answer to a nomination may come late, and a gate cannot be put back: the nomination is taken back instead."""
    server, over = Server(), False

    def nominated(method: str, path: str, _: int) -> None:
        nonlocal over
        over = over or (method, path) == ("PATCH", "/status")

    server.spoilt = nominated
    ends = time.monotonic() + 60
    found = bind_pod(
        server,
        BIND,
        lambda: 0.0 if over and lost == "time" else ends,
        refusal=lambda: "another has the Lease" if over and lost == "Lease" else None,
        sleep=lambda _: None,
    )
    assert found.state is BindingState.REFUSED
    assert "PATCH" not in server.asked
    assert (server.nominated, server.released_for) == (None, None)


def test_zones_go_with_it() -> None:
    document = {"metadata": {"resourceVersion": "8"}, "spec": {}}
    found = release(BIND, json.dumps(document).encode(), {"placer.dev/numa-zones": "node-0"})
    assert found["metadata"] == {
        "uid": "uid-p",
        "resourceVersion": "8",
        "annotations": {"placer.dev/numa-zones": "node-0"},
    }


@pytest.mark.parametrize("what", ["PATCH/status", "PATCH"])
@pytest.mark.parametrize("answer", [429, 401, 500, 503, Unanswered("lost"), Unanswered("dropped", sent=False)])
def test_what_may_pass_is_tried_again(what: str, answer: int | Unanswered) -> None:
    """An answer that got lost is found done, one that never arrived is asked for again; in either case it is once."""
    server = Server(only(what, said(answer) if isinstance(answer, int) else answer))
    assert tried(server).state is BindingState.BOUND
    assert (server.nominated, server.released_for) == ("n1", "n1")


def test_a_pod_that_another_client_writes_to_is_read_again() -> None:
    server = Server()
    server.touch()
    assert tried(server).state is BindingState.BOUND
    assert server.asked == ["PATCH/status", "GET", "PATCH/status", "PATCH"]


@pytest.mark.parametrize("status", [403, 404, 422])
def test_what_is_nominated_and_refused_is_nominated_no_longer(status: int) -> None:
    server = Server(only("PATCH", said(status), None))
    found = tried(server)
    assert (found.state, found.reason) == (BindingState.REFUSED, f"{status} no")
    assert (server.nominated, server.released_for) == (None, None)
    (condition,) = server.pod["status"]["conditions"]
    assert (condition["reason"], server.asked.count("PATCH")) == ("SchedulingGated", 1)


@pytest.mark.parametrize("status", [403, 422])
def test_what_may_not_be_nominated_is_not_released(status: int) -> None:
    server = Server(only("PATCH/status", said(status), None))
    assert tried(server) == BindingResult(BIND, BindingState.REFUSED, f"{status} no")
    assert server.asked == ["PATCH/status"]


def test_an_answer_that_is_no_pod_is_looked_into() -> None:
    server = Server(only("PATCH/status", Response(200, b'{"metadata": {')))
    assert tried(server).state is BindingState.BOUND
    assert server.asked == ["PATCH/status", "GET", "PATCH/status", "PATCH"]


def test_a_release_on_its_way_is_fenced() -> None:
    """It got no answer and may arrive at any time: after the fence it comes to nothing."""
    server = Server(only("PATCH", Unanswered("late"), None))
    found = tried(server)
    assert (found.state, server.nominated, server.released_for) == (BindingState.REFUSED, None, None)
    version = {"uid": "uid-p", "resourceVersion": "8"}  # as what was nominated first
    late = server._write("PATCH", POD, {"metadata": version, "spec": {"schedulingGates": None}})
    assert (late.status, server.released_for) == (409, None)


def test_what_cannot_be_fenced_is_unknown() -> None:
    def silent(method: str, path: str, count: int) -> Unanswered | None:
        return Unanswered("late") if method != "PATCH" or path != "/status" or count > 1 else None

    assert tried(Server(silent)).state is BindingState.UNKNOWN


@pytest.mark.parametrize(
    ("change", "state", "reason"),
    [
        ({"nodeName": "n1", "schedulingGates": None}, BindingState.BOUND, ""),
        ({"nodeName": "n2"}, BindingState.REFUSED, "another client bound it to Node n2"),
        ({"schedulingGates": None}, BindingState.REFUSED, "another client took its scheduling gate away"),
        ({"schedulingGates": [{"name": HOLD_GATE}, {"name": "a"}]}, BindingState.REFUSED, "it has scheduling gates"),
    ],
)
def test_what_became_of_it_meanwhile_is_told(change: dict[str, Any], state: BindingState, reason: str) -> None:
    server = Server()
    server.pod["spec"] = merged(server.pod["spec"], change)
    server.touch()
    assert tried(server) == BindingResult(BIND, state, reason)
    assert server.nominated is None


def test_before_each_try_it_is_asked_whether_it_may_be() -> None:
    server = Server(only("PATCH", said(500)))
    answers = iter([None, "the room is gone"])
    found = tried(server, refusal=lambda: next(answers))
    assert (found.state, found.reason) == (BindingState.REFUSED, "the room is gone")
    assert (server.nominated, server.released_for) == (None, None)


# ------------------------------------------------------------------------------------------------------ what is written


NAME = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
SSD = {"key": "disk", "operator": "In", "values": ["ssd"]}
NOT_N2 = {"key": "metadata.name", "operator": "NotIn", "values": ["n2"]}


@pytest.mark.parametrize(
    ("terms", "written"),
    [
        (None, [{"matchFields": [NAME]}]),
        ([{"matchExpressions": [SSD]}], [{"matchExpressions": [SSD], "matchFields": [NAME]}]),
        ([{"matchFields": [NOT_N2]}, {}], [{"matchFields": [NOT_N2, NAME]}, {}]),
        ([{"matchFields": [NAME]}], [{"matchFields": [NAME]}]),
        ([{"matchFields": None, "matchExpressions": [SSD]}], [{"matchFields": [NAME], "matchExpressions": [SSD]}]),
    ],
)
def test_each_term_gets_the_node(terms: list[Any] | None, written: list[Any]) -> None:
    selector = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    spec = {"affinity": {"nodeAffinity": selector}} if terms is not None else {}
    document = {"metadata": {"resourceVersion": "8"}, "spec": spec}
    found = release(BIND, json.dumps(document).encode(), {})["spec"]
    required = found["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert (required["nodeSelectorTerms"], found["schedulingGates"]) == (written, None)
    view = read_view(json.dumps({"spec": {"affinity": found["affinity"]}}).encode(), PodView)
    assert view.only_node == "n1"


# --------------------------------------------------------------------------------------------------- who is known again


GANG = GroupKey("scheduling.volcano.sh", "default", "train")
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def pinned(*terms: dict[str, Any], gates: bool = False, **rest: Any) -> Document:
    selector = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    spec: dict[str, Any] = {"schedulerName": "default-scheduler", "affinity": {"nodeAffinity": selector}}
    if gates:
        spec["schedulingGates"] = [{"name": HOLD_GATE}]
    metadata = {"uid": "uid-p"} | rest.pop("metadata", {})
    return pod("p", spec=spec | rest.pop("spec", {}), metadata=metadata, **rest)


@pytest.mark.parametrize(
    ("document", "found"),
    [
        (pinned({"matchFields": [NAME]}), True),
        (pinned({"matchFields": [NAME], "matchExpressions": [SSD]}, {}), True),
        (pinned({"matchFields": [NAME]}, {"matchExpressions": [SSD]}), False),  # the other term leaves a choice
        (pinned({"matchFields": [{**NAME, "values": ["n2"]}]}), False),  # not the node that was recorded
        (pinned({"matchFields": [{**NAME, "values": ["n1", "n2"]}]}), False),
        (pinned({"matchFields": [NAME]}, gates=True), False),
        (pinned({"matchFields": [NAME]}, metadata={"uid": "another"}), False),
        (pinned({"matchFields": [NAME]}, node="n1"), False),
        (pinned({"matchFields": [NAME]}, metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}), False),
        (pinned({"matchFields": [NAME]}, status={"phase": "Failed"}), False),
        (pinned(), False),
    ],
)
def test_who_counts_as_released(document: Document, found: bool) -> None:
    """Whose uid and node are recorded, and who waits for its scheduler there and nowhere else."""
    record = {GANG: GangRecord(NOW, digests([mark("uid-p", "n1")]))}
    taken = replace(snapshot_of([node("n1"), node("n2"), document]), gates=True)
    assert {key.name: each.node for key, each in released_pods(taken, record).items()} == ({"p": "n1"} if found else {})
    assert released_pods(taken, {GANG: GangRecord(NOW, digests(["uid-p"]))}) == {}  # a binding is no release
