"""The judge of a soak finds everything that it is there to find: each check is shown what it must refuse."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.cluster.passes import gang
from tests.cluster.soak.faults import FAULTS, drawn_faults
from tests.cluster.soak.judge import CHECKS, Limits, Records, Sample, judge
from tests.cluster.soak.ledger import Ledger, OverfullBinding
from tests.cluster.things import live_pod
from tests.support import Document, node

LIMITS = Limits(passes=100)
NOTHING = frozenset[str]()


def sample(number: int, **changed: Any) -> Sample:
    """After a pass of one process, in which nothing went wrong."""
    found = Sample(
        number,
        6.0 * number,
        "",
        "process 1",
        NOTHING,
        NOTHING,
        {"process 1": 100_000 + number % 7, "process 2": 70_000},
    )
    return replace(found, **changed)


def good(**changed: Any) -> Records:
    """Records in which nothing is wrong."""
    found = Records(
        samples=[sample(number) for number in range(1, 101)],
        bound={"u1": 1, "u2": 1},
        overfull=[OverfullBinding("p", "n", 0.2)],
        writes={("POST", "pods/binding"): 90, ("PATCH", "pods/status"): 20, ("PUT", "leases"): 500},
        changes={"binding": 90, "condition": 10},
        holders=["a", "b", "c"],
        exits=[0, 6],
        seconds=1_000.0,
    )
    return replace(found, **changed)


def with_samples(change: Callable[[Sample], Mapping[str, Any]]) -> Records:
    return good(samples=[replace(each, **change(each)) for each in good().samples])


def at(*numbers: int, **changed: Any) -> Records:
    return with_samples(lambda each: changed if each.number in numbers else {})


WRONG: Mapping[str, tuple[str, Records]] = {
    "too few passes": ("long enough", good(samples=good().samples[:99])),
    "nothing bound": ("long enough", good(changes={"condition": 100})),
    "memory that grows by a thousandth in each pass": (
        "memory is flat",
        with_samples(lambda each: {"memory": {"process 1": 100_000 + 200 * each.number}}),
    ),
    "memory that jumps in the middle": (
        "memory is flat",
        with_samples(lambda each: {"memory": {"process 1": 100_000 + 20_000 * (each.number > 50)}}),
    ),
    "nobody who made enough passes": (
        "memory is flat",
        with_samples(lambda each: {"leader": f"p{each.number // 20}", "memory": {f"p{each.number // 20}": 1}}),
    ),
    "an eighth too many writes": (
        "nothing is written needlessly",
        good(writes={("POST", "pods/binding"): 90, ("PUT", "configmaps"): 21}),
    ),
    "a Lease that is renewed twice as often": (
        "nothing is written needlessly",
        good(writes={("PUT", "leases"): 1_000}),
    ),
    "a pod bound twice": ("bound once", good(bound={"u1": 1, "u2": 2})),
    "a pod that moved": ("bound once", good(rebound=["p"])),
    "a node over-full by what was long known": ("no node over-full", good(overfull=[OverfullBinding("p", "n", 1.5)])),
    "a gang half-bound after two passes without a fault": ("no gang half-bound", at(50, 51, half_bound=frozenset("g"))),
    "a gang half-bound at the end": ("no gang half-bound", at(100, half_bound=frozenset("g"))),
    "one hand-over": ("handed over", good(holders=["a", "b"])),
    "a process that ends by a traceback": ("handed over", good(exits=[0, 1])),
    "a gang that would have fitted for nine passes": ("no gang starved", at(*range(40, 49), fits=frozenset("g"))),
    "a gang that fits at the end": ("no gang starved", at(100, fits=frozenset("g"))),
}


def test_where_nothing_is_wrong_nothing_is_found() -> None:
    assert judge(good(), LIMITS) == {}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_found(what: str) -> None:
    check, records = WRONG[what]
    assert list(judge(records, LIMITS)) == [check]


def test_every_check_is_shown_something_wrong() -> None:
    assert {check for check, _ in WRONG.values()} == set(CHECKS)


# ------------------------------------------------------------------------------------------------------- the ledger


class Told:
    """Tells a ledger what a server would."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.ledger = Ledger([["n1", "n2"], ["n3"]], clock=lambda: self.seconds)
        for name in ("n1", "n2", "n3"):
            self.ledger.node_is(node(name, cpu=8))

    def pod(self, name: str, kind: str = "MODIFIED", uid: str = "", scheduler: str = "placer", **options: Any) -> None:
        found = {**live_pod(name, scheduler=scheduler, **({"cpu": 4} | options))}
        found["metadata"] = {**found["metadata"], "uid": uid or f"uid of {name}"}
        self.ledger.pod_happened(kind, found)

    def waits(self, name: str, message: str) -> None:
        told = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
        self.pod(name, status={"conditions": [told]})

    def gang(self, name: str, pods: int, **options: Any) -> None:
        group, *_ = gang(name, pods, **options)
        self.group(group)
        for number in range(pods):
            self.pod(f"{name}-{number}", group=name, cpu=options.get("cpu", 4))

    def group(self, document: Document, kind: str = "MODIFIED", **status: Any) -> None:
        self.ledger.group_happened(kind, {**document, "status": status})

    def event(self, note: str, reason: str = "FailedScheduling", by: str = "placer", kind: str = "ADDED") -> None:
        about = {"kind": "PodGroup", "name": "g"}
        self.ledger.event_happened(
            kind, {"regarding": about, "reason": reason, "note": note, "reportingController": by}
        )


@pytest.fixture
def told() -> Told:
    return Told()


def test_a_binding_is_one_change_whatever_else_becomes_of_the_pod(told: Told) -> None:
    told.pod("a")
    told.pod("a", node="n1", status={"phase": "Pending"})
    told.pod("a", node="n1")
    told.pod("theirs", node="n1", scheduler="default-scheduler")
    told.pod("a", "DELETED", node="n1")
    assert told.ledger.changes == {"binding": 1}


def test_a_condition_is_a_change_where_it_says_another_cause(told: Told) -> None:
    told.pod("a")
    told.waits("a", "InsufficientResources: cpu 60 of 40 left on n-01")
    told.waits("a", "InsufficientResources: cpu 60 of 38500m left on n-01")
    told.waits("a", "InsufficientResources: cpu 60 of 40 left on n-01; Node n-02 comes nearest")
    assert told.ledger.changes["condition"] == 1
    told.waits("a", "InsufficientResources: cpu 60 of 40 left on n-02")
    assert told.ledger.changes["condition"] == 2
    told.waits("a", "Outcompeted: cpu 60 of 40 left on n-02")
    told.waits("a", "Outcompeted: cpu 60 of 40 left on n-02; held by b")
    assert told.ledger.changes["condition"] == 4


def test_an_event_is_a_change_where_the_one_before_it_said_something_else(told: Told) -> None:
    told.event("3 of 4 pods")
    told.event("2 of 4 pods")
    told.event("theirs", by="kube-scheduler")
    assert told.ledger.changes["Event"] == 1
    told.event("no room")
    told.event("3 of 4 pods")
    told.event("3 of 4 pods", kind="MODIFIED")
    assert told.ledger.changes["Event"] == 3


def test_a_binding_to_a_node_without_room_is_noted_with_what_others_did_there(told: Told) -> None:
    told.pod("a", node="n1")
    told.pod("b", node="n1")
    assert told.ledger.overfull == []
    told.pod("c", node="n1")
    told.pod("web", node="n2", scheduler="default-scheduler", cpu=6)
    told.seconds = 3.0
    told.pod("d", node="n2")
    assert told.ledger.overfull == [OverfullBinding("c", "n1", float("inf")), OverfullBinding("d", "n2", 3.0)]


def test_what_has_ended_or_is_gone_takes_no_room(told: Told) -> None:
    told.pod("a", node="n1", cpu=8)
    told.pod("a", node="n1", cpu=8, status={"phase": "Succeeded"})
    told.pod("b", node="n1", cpu=8)
    told.pod("b", "DELETED", node="n1", cpu=8)
    told.pod("a", "DELETED", node="n1", cpu=8, status={"phase": "Succeeded"})
    told.pod("c", node="n1", cpu=8)
    assert told.ledger.overfull == []
    assert told.ledger.free("n1")["cpu"] == 0


def test_a_gang_is_half_bound_until_it_has_what_it_needs(told: Told) -> None:
    told.gang("g", 3, least=2)
    assert told.ledger.half_bound() == NOTHING
    told.pod("g-0", group="g", node="n1")
    assert told.ledger.half_bound() == {"g"}
    told.pod("g-1", group="g", node="n1")
    assert told.ledger.half_bound() == NOTHING


@pytest.mark.parametrize(
    ("pods", "options", "fits"),
    [
        (6, {"cpu": 4}, True),
        (7, {"cpu": 4}, False),
        (4, {"cpu": 4, "tier": 1}, True),
        (5, {"cpu": 4, "tier": 1}, False),
        (4, {"cpu": 5}, False),
    ],
)
def test_a_gang_that_waits_fits_where_its_pods_have_room_alone(
    told: Told, pods: int, options: dict[str, Any], fits: bool
) -> None:
    told.gang("g", pods, **options)
    assert told.ledger.fit() == (frozenset("g") if fits else NOTHING)
    told.pod("g-0", group="g", node="n1", cpu=options["cpu"])
    assert told.ledger.fit() == NOTHING  # it does not wait as a whole


def test_holders_of_the_lease_are_noted_one_after_another(told: Told) -> None:
    for holder in ("a", "a", None, "a", "b", None, "a"):
        told.ledger.lease_happened("MODIFIED", {"spec": {"holderIdentity": holder} if holder else {}})
    assert told.ledger.holders == ["a", "b", "a"]


# ------------------------------------------------------------------------------------------------------------- parts


def test_each_fault_comes_before_any_comes_again() -> None:
    drawn = drawn_faults(3)
    first, second = ([next(drawn) for _ in FAULTS] for _ in "ab")
    assert set(first) == set(second) == set(FAULTS)
    assert first != second
