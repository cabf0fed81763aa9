"""Which pods are pending and ours, and which hold room."""

from __future__ import annotations

from typing import Any

import pytest

from placer.base.errors import BadInstance
from placer.problem import Key, PodState
from tests.support import instance_of, node, pod

DELETED = {"deletionTimestamp": "2026-01-02T00:00:00Z"}
HOLD = {"schedulingGates": [{"name": "placer.dev/hold"}]}
TWO_GATES = {"schedulingGates": [{"name": "placer.dev/hold"}, {"name": "quota"}]}
NOMINATED = {"nominatedNodeName": "n1"}


def state(written: Any, **options: Any) -> PodState | None:
    found = instance_of(node("n1"), written, **options).pods.get(Key("default", "p"))
    return found.state if found is not None else None


CASES: dict[str, tuple[Any, PodState | None]] = {
    "pending": (pod("p"), PodState.PENDING),
    "no phase": (pod("p", status={"phase": None}), PodState.PENDING),
    "bound, not started": (pod("p", node="n1", status={"phase": "Pending"}), PodState.BOUND),
    "running": (pod("p", node="n1"), PodState.BOUND),
    "phase unknown": (pod("p", node="n1", status={"phase": "Unknown"}), PodState.BOUND),
    "succeeded": (pod("p", node="n1", status={"phase": "Succeeded"}), None),
    "failed": (pod("p", node="n1", status={"phase": "Failed"}), None),
    "being deleted on its node": (pod("p", node="n1", metadata=DELETED), PodState.TERMINATING),
    "being deleted, over already": (pod("p", node="n1", metadata=DELETED, status={"phase": "Failed"}), None),
    "being deleted before it had a node": (pod("p", metadata=DELETED), None),
    "gated": (pod("p", spec={"schedulingGates": [{"name": "quota"}]}), None),
    "held by our gate alone": (pod("p", spec=HOLD), PodState.PENDING),
    "held by our gate and another": (pod("p", spec=TWO_GATES), None),
    "of any scheduler": (pod("p", spec={"schedulerName": "volcano"}), PodState.PENDING),
    "nominated, but ours": (pod("p", status=NOMINATED), PodState.PENDING),
}


@pytest.mark.parametrize("case", CASES)
def test_offline(case: str) -> None:
    written, expected = CASES[case]
    assert state(written) is expected


def named(scheduler: str | None, **rest: Any) -> Any:
    return pod("p", spec={"schedulerName": scheduler} if scheduler else {}, **rest)


#: What waits, told apart: ours alone, others', gated, and what waits for nothing.
WAITING = [
    pod("ours", spec={"schedulerName": "placer"}),
    pod("ours-gated", spec={"schedulerName": "placer", "schedulingGates": [{"name": "quota"}]}),
    pod("held", spec={**HOLD, "schedulerName": "placer"}),
    *(pod(f"v{number}", spec={"schedulerName": "volcano"}) for number in range(3)),
    pod("nominated", spec={"schedulerName": "volcano"}, status=NOMINATED),
    pod("gated", spec={"schedulerName": "volcano", **TWO_GATES}),
    pod("unnamed"),
    pod("bound", node="n1"),
    pod("deleted", metadata=DELETED),
    pod("over", status={"phase": "Succeeded"}),
]


@pytest.mark.parametrize(
    ("options", "whose", "ours", "others", "gated"),
    [
        ({}, None, 7, {}, 2),
        ({"scheduler_name": "*"}, None, 7, {}, 2),
        ({"scheduler_name": "placer"}, "placer", 2, {"volcano": 4, "default-scheduler": 1}, 2),
        ({"scheduler_name": "volcano"}, "volcano", 4, {"placer": 2, "default-scheduler": 1}, 2),
        ({"cluster": True}, "placer", 1, {"volcano": 4, "default-scheduler": 1}, 3),
        ({"cluster": True, "scheduler_name": "*"}, None, 6, {}, 3),
        ({"cluster": True, "gates": True}, "placer", 2, {"volcano": 4, "default-scheduler": 1}, 2),
    ],
)
def test_what_waits_and_is_not_ours_is_counted(
    options: dict[str, Any], whose: str | None, ours: int, others: dict[str, int], gated: int
) -> None:
    instance = instance_of(node("n1"), *WAITING, **options)
    assert (instance.scheduler_name, len(instance.pending)) == (whose, ours)
    assert (list(instance.set_aside.other_schedulers.items()), instance.set_aside.gated) == (
        list(others.items()),
        gated,
    )


def test_set_aside_in_words() -> None:
    assert str(instance_of(node("n1"), *WAITING, scheduler_name="placer").set_aside) == (
        "4 for volcano, 1 for default-scheduler, 2 gated"
    )
    assert str(instance_of(node("n1")).set_aside) == ""


NAMES: list[tuple[str | None, dict[str, Any], bool]] = [
    ("volcano", {"scheduler_name": "volcano"}, True),
    ("volcano", {"scheduler_name": "placer"}, False),
    (None, {"scheduler_name": "default-scheduler"}, True),
    ("placer", {"cluster": True}, True),
    (None, {"cluster": True}, False),
    ("volcano", {"cluster": True, "scheduler_name": "volcano"}, True),
    ("placer", {"cluster": True, "scheduler_name": "volcano"}, False),
]


@pytest.mark.parametrize(("scheduler", "options", "ours"), NAMES)
def test_whose_pods_are_ours(scheduler: str | None, options: dict[str, Any], ours: bool) -> None:
    assert state(named(scheduler), **options) is (PodState.PENDING if ours else None)


def test_another_scheduler_holds_room_where_it_nominated() -> None:
    instance = instance_of(node("n1"), named("other", status=NOMINATED, cpu=3, group="gang"), scheduler_name="placer")
    held = instance.pods[Key("default", "p")]
    assert (held.state, held.node, held.group, held.queue) == (PodState.NOMINATED, "n1", None, None)
    assert instance.held["n1"]["cpu"] == 3000
    assert instance.groups == {}
    assert instance.findings == ()


@pytest.mark.parametrize(
    ("spec", "options", "expected"),
    [
        (HOLD, {"cluster": True}, None),
        (HOLD | {"schedulerName": "placer"}, {"cluster": True}, None),
        (HOLD | {"schedulerName": "other"}, {"cluster": True, "gates": True}, PodState.PENDING),
        (TWO_GATES, {"cluster": True, "gates": True}, None),
        ({"schedulerName": "placer"}, {"cluster": True, "gates": True}, PodState.PENDING),
    ],
)
def test_the_hold_gate_in_a_cluster(spec: dict[str, Any], options: dict[str, Any], expected: PodState | None) -> None:
    assert state(pod("p", spec=spec), **options) is expected


def test_a_bound_pod_on_a_node_that_is_not_there_stays_and_is_a_finding() -> None:
    instance = instance_of(node("n1"), pod("p", node="gone", cpu=1), pod("q", node="gone", cpu=1))
    assert instance.pods[Key("default", "p")].node == "gone"
    (finding,) = instance.findings
    assert (finding.code, finding.object) == ("UnknownReference", "Node gone")
    assert finding.message == "Node gone, named by Pod default/p and 1 other, is not in the instance"


def test_pods_pending_without_any_node_are_a_bad_instance() -> None:
    with pytest.raises(BadInstance, match=r"Node: found none, expected at least one: pending pods 2"):
        instance_of(pod("p"), pod("q"))
    assert instance_of(pod("p", status={"phase": "Succeeded"})).pods == {}
