"""What is measured of a placement, against values worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from placer.lab.placement_metrics import OfPriority, excess_spans, measure
from placer.problem import Instance, Key
from placer.problem.gpus import Placeable, gpus_placed, is_gpu
from placer.problem.numa import NumaNode
from placer.problem.outcome import Outcome
from placer.problem.placement import Placement
from tests.numa_words import numa
from tests.support import Document, hyper_node, instance_of, node, pod, pod_group
from tests.world import World

#: Two leaves of two nodes of 8 GPUs; on a 5 GPUs are in use.
CLUSTER: tuple[Document, ...] = (
    *(node(name, gpu=8, cpu=64) for name in "abcd"),
    hyper_node("l1", 1, nodes=("a", "b")),
    hyper_node("l2", 1, nodes=("c", "d")),
    hyper_node("s", 2, children=("l1", "l2")),
    pod("runs", node="a", gpu=5),
)


def place(**nodes: str) -> Placement:
    return Placement.of({Key("default", name): on for name, on in nodes.items()})


def gang(name: str, count: int, minimum: int | None = None, *, spec: Any = None, **requests: Any) -> list[Document]:
    pods = [pod(f"{name}{index}", group=name, spec=spec, **requests) for index in range(count)]
    return [pod_group(name, minMember=count if minimum is None else minimum), *pods]


@pytest.fixture
def busy() -> Instance:
    """Gang g of three pods of 4 GPUs, gang h of two pods without, and a pod of 1 GPU with priority 10."""
    return instance_of(*CLUSTER, *gang("g", 3, gpu=4), *gang("h", 2, cpu=1), pod("z", gpu=1, spec={"priority": 10}))


SPREAD = {"g0": "b", "g1": "c", "g2": "d", "h0": "a", "h1": "a", "z": "b"}


@pytest.mark.parametrize(
    ("name", "expected"),
    [("nvidia.com/gpu", True), ("amd.com/gpu", True), ("cpu", False), ("nvidia.com/mig-1g.5gb", False), ("gpu", False)],
)
def test_a_gpu_is_what_any_vendor_calls_so(name: str, expected: bool) -> None:
    assert is_gpu(name) is expected


def test_gpus_are_counted_whole(busy: Instance) -> None:
    # 5 of 32 are in use; g adds 12 and z 1.
    assert measure(busy, Placement()).gpu_allocation_ratio == 5 / 32
    assert measure(busy, place(**SPREAD)).gpu_allocation_ratio == 18 / 32
    assert gpus_placed(Outcome(busy, Placement())) == 0
    assert gpus_placed(Outcome(busy, place(**SPREAD))) == 13
    assert gpus_placed(Outcome(busy, place(g0="nowhere", h0="a", z="a", ghost="b"))) == 1


def test_what_is_free_is_broken_up(busy: Instance) -> None:
    # Before: a 3, b 8, c 8, d 8, together 27. Threes of 4: 0 + 2 + 2 + 2; together they would be 6.
    before = (Placeable(1, 27, 27), Placeable(2, 13, 13), Placeable(4, 6, 6), Placeable(8, 3, 3))
    assert measure(busy, Placement()).placeable == before
    # After: a 3, b 8 - 4 - 1 = 3, c 4, d 4, together 14.
    after = (Placeable(1, 14, 14), Placeable(2, 6, 7), Placeable(4, 2, 3), Placeable(8, 0, 1))
    assert measure(busy, place(**SPREAD)).placeable == after


def test_cordoned_nodes_take_no_more_pods_and_overfull_ones_have_none_free() -> None:
    cordoned = {**node("x", gpu=8), "spec": {"unschedulable": True}}
    full = pod("runs", node="y", gpu=9)
    found = measure(instance_of(cordoned, node("y", gpu=8), node("z", gpu=3), full), Placement())
    assert found.placeable == (Placeable(1, 3, 3), Placeable(2, 1, 1), Placeable(4, 0, 0), Placeable(8, 0, 0))
    assert found.gpu_allocation_ratio == 9 / 19


@pytest.mark.parametrize(
    ("zones", "expected"),
    [
        (numa("single", "container", "2 of 4 gpu", "4 gpu"), [6, 3, 1, 0]),
        (numa("single", "pod", "1 of 4 gpu", "1 of 4 gpu"), [2, 0, 0, 0]),
        (numa("restricted", "container", "4 gpu", "4 gpu"), [8, 4, 2, 1]),  # 8 take both zones
        (numa("unknown", "container", "4 gpu", "4 gpu"), [0, 0, 0, 0]),
        (numa("best-effort", "container", "2 of 4 gpu", "4 gpu"), [16, 8, 4, 2]),  # nothing is refused
        (numa("single", "container", "4 cpu", "4 cpu"), [8, 4, 2, 1]),  # GPUs are in no zone
    ],
)
def test_what_zones_forbid_does_not_fit(zones: NumaNode, expected: list[int]) -> None:
    """The node has 8 GPUs more than its zones list."""
    world = World()
    world.node("n1", 8, numa=zones)
    found = measure(world.instance(), Placement()).placeable
    assert [each.pods for each in found] == expected


def test_without_gpus_there_is_nothing_to_say_of_them() -> None:
    found = measure(instance_of(node("a"), pod("p", cpu=1)), place(p="a"))
    assert (found.gpu_allocation_ratio, found.placeable) == (None, ())


def test_tiers_are_those_of_gangs_with_new_pods(busy: Instance) -> None:
    # g lies under s (2), h in l1 (1); z is in no gang.
    assert measure(busy, place(**SPREAD)).tiers == {1: 0.5, 2: 0.5}
    assert measure(busy, place(g0="c", g1="d", g2="c", z="a")).tiers == {1: 1.0}
    assert measure(busy, Placement()).tiers == {}
    outside = instance_of(*CLUSTER, node("e", cpu=64), *gang("h", 2, cpu=1))
    assert measure(outside, place(h0="a", h1="e")).tiers == {3: 1.0}  # only the virtual root holds both
    flat = instance_of(node("a"), node("b"), *gang("h", 2, cpu=1))
    assert measure(flat, place(h0="a", h1="b")).tiers == {}


def test_pods_that_run_count_for_the_tier_of_their_gang() -> None:
    grows = instance_of(*CLUSTER, *gang("h", 1, 2, cpu=1), pod("old", node="c", group="h", cpu=1))
    assert measure(grows, place(h0="d")).tiers == {1: 1.0}
    assert measure(grows, place(h0="b")).tiers == {2: 1.0}


def test_subgroups_have_tiers_of_their_own() -> None:
    part = {"name": "part", "subGroupSize": 2, "matchLabelKeys": ["rank"]}
    pods = [pod(f"p{i}", group="t", labels={"rank": str(i // 2)}, cpu=1) for i in range(4)]
    instance = instance_of(*CLUSTER, pod_group("t", minMember=4, subGroupPolicy=[part]), *pods)
    found = measure(instance, place(p0="a", p1="b", p2="c", p3="d"))
    assert (found.tiers, found.sub_group_tiers) == ({2: 1.0}, {1: 1.0})
    found = measure(instance, place(p0="a", p1="b", p2="b", p3="d"))
    assert (found.tiers, found.sub_group_tiers) == ({2: 1.0}, {1: 0.5, 2: 0.5})


def test_excess_span_is_beyond_the_fewest_leaves(busy: Instance) -> None:
    # Alone, g takes two pods in l1 (none on a, two on b) and four in l2: one leaf would do, and it touches two.
    assert excess_spans(Outcome(busy, place(**SPREAD))) == [1, 0]
    found = measure(busy, place(**SPREAD))
    assert (found.excess_span, found.worst_excess_span) == (1, 1)
    assert excess_spans(Outcome(busy, place(g0="c", g1="c", g2="d", h0="a", h1="d"))) == [0, 1]
    found = measure(busy, Placement())
    assert (found.excess_span, found.worst_excess_span) == (0, 0)


def test_what_does_not_fit_into_one_leaf_needs_two() -> None:
    # Three pods of 6 GPUs: one in l1 (on b), two in l2.
    uniform = instance_of(*CLUSTER, *gang("u", 3, gpu=6))
    assert excess_spans(Outcome(uniform, place(u0="b", u1="c", u2="d"))) == [0]
    # One of 8 and two of 6 fit into a leaf kind by kind, but 20 GPUs are more than the 11 of l1 and the 16 of l2.
    mixed = instance_of(*CLUSTER, *gang("m", 1, 3, gpu=8), *(pod(f"n{i}", group="m", gpu=6) for i in range(2)))
    assert excess_spans(Outcome(mixed, place(m0="c", n0="d", n1="b"))) == [0]


def test_nodes_that_pods_may_not_use_count_for_nothing() -> None:
    # On b and d alone, two pods of 4 GPUs each: three pods need both leaves.
    labelled = (node(name, {"pool": "x" if name in "bd" else "y"}, gpu=8, cpu=64) for name in "abcd")
    others = CLUSTER[4:]
    held = instance_of(*labelled, *others, *gang("g", 3, spec={"nodeSelector": {"pool": "x"}}, gpu=4))
    assert excess_spans(Outcome(held, place(g0="b", g1="d", g2="d"))) == [0]


def test_a_node_in_no_hypernode_is_a_leaf_of_its_own() -> None:
    flat = instance_of(node("a", gpu=2), node("b", gpu=2), *gang("g", 2, gpu=1))
    assert excess_spans(Outcome(flat, place(g0="a", g1="b"))) == [1]
    assert excess_spans(Outcome(flat, place(g0="a", g1="a"))) == [0]


def test_a_placement_that_cannot_be_has_no_excess_below_zero() -> None:
    # Three pods of 2 GPUs on one node of 2: even all leaves are too few.
    flat = instance_of(node("a", gpu=2), node("b", gpu=2), *gang("g", 3, gpu=2))
    assert excess_spans(Outcome(flat, place(g0="a", g1="a", g2="a"))) == [0]


def test_every_priority_has_its_share(busy: Instance) -> None:
    # The average node has 8 GPUs and 64 cpu: 4 GPUs weigh 500,000, 1 GPU 125,000, 1 cpu 15,625.
    one, none = measure(busy, place(**SPREAD)).priorities
    assert one == OfPriority(
        10, pods=1, pending_pods=1, groups=1, pending_groups=1, weight=125_000, pending_weight=125_000
    )
    weight = 3 * 500_000 + 2 * 15_625
    assert none == OfPriority(
        0, pods=5, pending_pods=5, groups=2, pending_groups=2, weight=weight, pending_weight=weight
    )
    one, none = measure(busy, place(g0="b", g1="b", h0="a", h1="a")).priorities
    assert (one.pods, one.groups, one.weight) == (0, 0, 0)
    assert (none.pods, none.groups, none.weight) == (4, 1, 2 * 500_000 + 2 * 15_625)


def test_a_group_counts_when_this_placement_makes_it_ready() -> None:
    instance = instance_of(
        node("a"),
        *gang("grows", 1, 2, cpu=1),
        pod("one", node="a", group="grows", cpu=1),
        *gang("more", 1, 1, cpu=1),
        pod("two", node="a", group="more", cpu=1),
        *gang("short", 2, 2, cpu=1),
        *gang("free", 1, 0, cpu=1),
        pod("alone", cpu=1),
    )
    placed = place(grows0="a", more0="a", short0="a", free0="a", alone="a")
    # more was ready before; short lacks a pod; free asks for none and has its first.
    assert sorted(group.key.name for group in Outcome(instance, placed).made_ready) == ["alone", "free", "grows"]
    assert Outcome(instance, Placement()).made_ready == ()


def test_plain_data_has_names_in_camel_case(busy: Instance) -> None:
    found = measure(busy, place(**SPREAD)).as_dict()
    assert list(found) == [
        "gpuAllocationRatio",
        "tiers",
        "subGroupTiers",
        "excessSpan",
        "worstExcessSpan",
        "placeable",
        "priorities",
    ]
    assert found["tiers"] == {"1": 0.5, "2": 0.5}
    assert found["placeable"]["8"] == {"pods": 0, "atBest": 1}
    assert found["priorities"][0] == {
        "priority": 10,
        "pods": 1,
        "pendingPods": 1,
        "groups": 1,
        "pendingGroups": 1,
        "weight": 125_000,
        "pendingWeight": 125_000,
    }
