"""What is told of a pass, by whose clock, and what is not told again."""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from placer.answers.solving import solve
from placer.base.quantity import Resources
from placer.passes.cluster.planning.binding_plan import BindingPlan
from placer.passes.cluster.planning.gang_outcome import GangOutcome, GangState
from placer.passes.cluster.reading.client import Response
from placer.passes.cluster.reading.views import PodView, read_view
from placer.passes.cluster.writing.pod_group_status import PodGroupStatus
from placer.passes.cluster.writing.status_writer import _OthersHidden, _says, _WaitingReason, _waits
from placer.passes.cluster.writing.volcano_pod_groups import _phase
from placer.passes.scheduling_pass import Pass, PassOptions, PassSession, run_pass
from placer.problem import Constraints, GroupKey, Instance, Key, Pod, PodState
from tests.cluster.test_any_object import Double
from tests.cluster.things import live_pod
from tests.support import Document, instance_of, node, pod_group

#: The server's clock is years ahead of ours.
NOW = datetime(2031, 1, 1, 12, 0, tzinfo=UTC)


class Told(Double):
    """A double with a clock of its own, and PodGroups that can be asked for one by one."""

    def __init__(self, documents: list[Document]) -> None:
        super().__init__(documents, [])

    def now(self) -> datetime:
        return NOW

    def send(self, method: str, path: str, body: Any = None, **options: Any) -> Response:
        if method == "GET" and path.rpartition("/")[0].endswith("podgroups"):
            found = next(each for each in self.lists[GROUPS] if each["metadata"]["name"] == path.rpartition("/")[2])
            return Response(200, json.dumps(found).encode())
        return super().send(method, path, body, **options)

    def told(self, end: str) -> list[Any]:
        """Bodies of what was written to paths that end so."""
        return [body for path, body in self.written if path.endswith(end)]


PODS = {
    key: Pod(*key, PodState.BOUND, Resources(), Constraints(), priority=5) for key in (Key("b", "y"), Key("a", "x"))
}
GROUPS = "/apis/scheduling.volcano.sh/v1beta1/podgroups"


def test_all_that_is_written_is_by_the_servers_clock() -> None:
    """Conditions, Events, phases, the Lease and the line of the pass; and the record of what is under way."""
    members = [live_pod(f"train-{number}", group="train", cpu=1) for number in range(2)]
    server = Told([node("n1"), pod_group("train", minMember=2), *members, live_pod("huge", cpu=99)])
    done = Pass(PassOptions(method="greedy", time_limit=None))
    run_pass(PassSession(server, threading.Event()), done)  # type: ignore[arg-type]  # it has what a pass asks of a client
    (condition,) = server.told("/pods/huge/status")[0]["status"]["conditions"]
    assert condition["lastTransitionTime"] == "2031-01-01T12:00:00Z"
    assert {each["eventTime"] for each in server.told("/events")} == {"2031-01-01T12:00:00.000000Z"}
    (phase,) = server.told("/podgroups/train")
    assert phase["status"]["conditions"][0]["lastTransitionTime"] == "2031-01-01T12:00:00Z"
    assert {each["spec"]["renewTime"] for each in server.told("/leases")} == {"2031-01-01T12:00:00.000000Z"}
    assert (done.began.year, done.began.month) in ((2030, 12), (2031, 1))
    assert abs((done.began - NOW).total_seconds()) < 600


def waiting(message: str, reason: str = "Unschedulable", status: str = "False") -> PodView:
    condition = {"type": "PodScheduled", "status": status, "reason": reason, "message": message}
    found = {**live_pod("a", cpu=1), "status": {"conditions": [condition]}}
    return read_view(json.dumps(found).encode(), PodView)


@pytest.mark.parametrize(
    ("there", "is_said"),
    [
        (waiting("needs cpu 8; the nodes have 7500m in all"), True),
        (waiting("needs cpu 16.5; the nodes have 0 in all"), True),
        (waiting("needs memory 8; the nodes have 7500m in all"), False),
        (waiting("needs cpu 8; the nodes have 7500m in all", reason="SchedulerError"), False),
        (waiting("needs cpu 8; the nodes have 7500m in all", status="True"), False),
        (read_view(json.dumps(live_pod("a", cpu=1)).encode(), PodView), False),
    ],
)
def test_other_amounts_alone_are_no_other_cause(there: PodView, is_said: bool) -> None:
    wait = _WaitingReason("Unschedulable", "needs cpu 8; the nodes have 6 in all")
    assert _says(there, wait) is is_said


def test_a_namespace_reads_nothing_of_another_one() -> None:
    """Conditions, Events and PodGroups say how many pods of others are in the way and of which priority, no name."""
    term = {"labelSelector": {"matchLabels": {"team": "qbravoq"}}, "topologyKey": "qbravoq.example/rack"}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{**term, "namespaceSelector": {}}]}}
    gang = [live_pod(f"qbravoq-{at}", namespace="qbravoq", group="qbravoq", cpu=3) for at in range(2)]
    server = Told(
        [
            *(node(f"n{at}", {"qbravoq.example/rack": f"r{at}"}, cpu=4) for at in range(2)),
            pod_group("qbravoq", namespace="qbravoq", minMember=2, priority=7),
            *({**each, "spec": {**each["spec"], "priority": 7}} for each in gang),
            live_pod("qbravoq-off", namespace="qbravoq", node="n0", cpu=0, spec={"affinity": apart, "priority": 5}),
            live_pod("late", namespace="qalfaq", cpu=3),
            pod_group("train", namespace="qalfaq", minMember=2),
            *(live_pod(f"train-{at}", namespace="qalfaq", group="train", cpu=4) for at in range(2)),
            live_pod("off", namespace="qalfaq", cpu=0, labels={"team": "qbravoq"}, spec={"nodeName": None}),
        ]
    )
    off = next(each for each in server.lists["/api/v1/pods"] if each["metadata"]["name"] == "off")
    off["spec"] |= {"nodeSelector": {"qbravoq.example/rack": "r0"}}
    done = Pass(PassOptions(method="greedy", time_limit=None))
    run_pass(PassSession(server, threading.Event()), done)  # type: ignore[arg-type]
    bodies = [json.dumps(body) for path, body in server.written if "/namespaces/qalfaq/" in path]
    said = " ".join(bodies).replace("team=qbravoq", "").replace("qbravoq.example/rack=r0", "")
    assert "1 group of other Namespaces (1 pod, priority 7)" in said
    assert "others keep its pods off where they are: 1 pod of other Namespaces (priority 5) in r0 is in the way" in said
    assert "qbravoq" not in said
    assert done.result is not None
    assert "qbravoq/qbravoq" in " ".join(each.message for each in done.result.reasons.values())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Pod a/x of PodGroup a/train is gone", None),
        (
            "Pod b/y, which comes before Pod a/x on Node n1, was not bound",
            "Pod of another Namespace (priority 5), which",
        ),
        ("Node n1 cools down: Pod b/new-1 on it cannot be read", "Pod of another Namespace on it cannot be read"),
        ("keeps off Pod b/y-2: 1 pair too many", "keeps off Pod of another Namespace: 1 pair"),
        ("AppGroup b/shop: web -> db allows cost 5", "AppGroup of another Namespace: web -> db"),
        (
            "Lease ops/lease is annotated placer.dev/paused: b/c",
            "Lease of another Namespace is annotated placer",
        ),
        ("0/3 nodes have room for a pod of nvidia.com/gpu 1; places (pods) 0/3", None),
        ("10.0.0.1:80/TCP and fabric/b/y", None),
    ],
)
def test_no_text_gets_a_name_of_another_namespace_past_the_last_look(text: str, expected: str | None) -> None:
    hidden = _OthersHidden(Instance({}, PODS, {}, namespaces={"0": {}}))
    told = hidden.told(text, "a")
    assert (told == text) if expected is None else (expected in told and "b/" not in told and "ops/l" not in told)


def test_a_gang_that_an_earlier_pass_left_half_bound_says_so_and_until_when() -> None:
    """Not only that there is no room for its last pod; an autoscaler looks for the reason of that all the same."""
    members = [live_pod(f"train-{at}", group="train", cpu=2, node="n1" if at < 5 else None) for at in range(6)]
    instance = instance_of(node("n1", cpu=10), pod_group("train", minMember=6), *members)
    result, key = solve(instance, method="greedy"), GroupKey("scheduling.volcano.sh", "default", "train")
    since = datetime(2026, 1, 1, 12, tzinfo=UTC)
    times = {"since": since, "until": since + timedelta(seconds=300)}
    (wait,) = _waits(result, BindingPlan(), [GangOutcome(key, GangState.HALF_BOUND, **times)]).values()
    said = "half-bound: 5 of 6 run since 12:00:00 UTC, rolled back at 12:05:00 UTC unless it is complete; "
    assert wait.message.startswith(f"{said}InsufficientResources: ")
    assert wait.reason == "Unschedulable"
    missing = {Key("default", "train-5"): "no answer within 5 s"}
    (wait,) = _waits(result, BindingPlan(), [GangOutcome(key, GangState.HALF_BOUND, missing=missing)]).values()
    assert (wait.reason, wait.message) == (
        "SchedulerError",
        "half-bound: 5 of 6 run; Pod default/train-5: no answer within 5 s",
    )


@pytest.mark.parametrize(
    ("phase", "ready", "some", "expected"),
    [
        ("Pending", False, True, "Unknown"),
        ("Inqueue", False, True, "Unknown"),
        ("Inqueue", False, False, "Inqueue"),
        ("Unknown", False, False, "Pending"),
        ("Unknown", True, True, "Running"),
    ],
)
def test_a_group_of_which_some_runs_is_not_pending(phase: str, ready: bool, some: bool, expected: str) -> None:
    key = GroupKey("scheduling.volcano.sh", "default", "train")
    assert _phase(phase, PodGroupStatus(key, ready, some)) == expected
