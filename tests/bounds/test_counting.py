"""Bounds by counting on instances worked out by hand: volume, pieces, and the values in hand.

A node has 4 GPUs unless said otherwise, so a pod of 1 GPU weighs 250,000 micro-nodes on a cluster of such nodes.
"""

from __future__ import annotations

from dataclasses import replace

from placer.arrays import score_solution
from placer.arrays.dense_builder import make_dense
from placer.bounds import NamedBound, bounds_for, named_bounds
from placer.bounds.lp import lp_bounds
from tests.world import World, soft

QUARTER = 250_000


def named(world: World) -> dict[tuple[str, int | None], NamedBound]:
    """Bounds of every placement by criterion; ("weight", None) the sum."""
    dense = make_dense(world.instance())
    return {
        ("weight", None) if bound.criterion is None else dense.criteria[bound.criterion]: bound
        for bound in named_bounds(dense)
    }


def given(world: World, **values: int) -> dict[tuple[str, int | None], int]:
    """Best bounds for values in hand, ``admitted100=3`` and so on, the others 0."""
    dense = make_dense(world.instance())
    hand = tuple(values.get(f"{name}{'' if priority is None else priority}", 0) for name, priority in dense.criteria)
    found: dict[tuple[str, int | None], int] = {}
    for bound in bounds_for(dense, hand):
        if bound.criterion is not None and bound.context in ((), hand[: bound.criterion]):
            criterion = dense.criteria[bound.criterion]
            better = min if criterion[0] in ("admitted", "placed") else max
            found[criterion] = better(found.get(criterion, bound.bound), bound.bound)
    return found


# Volume


def test_the_room_in_all_is_not_enough() -> None:
    # 8 GPUs; five lone pods of 2 weigh 10 quarters.
    world = World()
    world.nodes("a b")
    for name in "pqrst":
        world.pod(name, None, 2)
    assert named(world)["placed", 0] == NamedBound(1, 8 * QUARTER, "volume")


def test_pieces_are_counted_node_by_node() -> None:
    # 3 GPUs are left on each of 4 nodes, 12 in all: each node takes one pod of 2 or of 3, so 3 + 2 + 2 + 2 at most.
    world = World()
    for name in world.nodes("a b c d"):
        world.running(f"runs-{name}", name)
    world.pod("three", None, 3)
    for name in "pqrstu":
        world.pod(name, None, 2)
    found = named(world)
    assert found["placed", 0] == NamedBound(1, 9 * QUARTER, "counting")
    assert found["weight", None] == NamedBound(None, 9 * QUARTER, "counting")


def test_an_elastic_gang_needs_only_its_least() -> None:
    # 8 GPUs; two gangs need 4 pods of 6 and 3 of 6: 7 GPUs, both admitted; 12 pods are asked, 8 placed.
    world = World()
    world.nodes("a b")
    for name, least in (("p", 4), ("q", 3)):
        world.pods_of(" ".join(f"{name}{i}" for i in range(6)), world.gang(name, least))
    found = named(world)
    assert (found["admitted", 0].bound, found["placed", 0].bound) == (7 * QUARTER, 8 * QUARTER)


# Given the values before


def two_priorities() -> World:
    """16 GPUs; the upper priority asks for 12 of them in lone pods of 2, the lower one for 12 in lone pods of 3."""
    world = World()
    world.nodes("a b c d")
    for index in range(6):
        world.pod(f"high{index}", None, 2, priority=100)
    for index in range(4):
        world.pod(f"low{index}", None, 3, priority=1)
    return world


def test_what_a_higher_priority_holds_is_gone() -> None:
    # 16 - 12 GPUs are left for the lower one: 4 quarters by volume. Nothing known above: all of its 12.
    assert named(two_priorities())["admitted", 1].bound == 12 * QUARTER
    found = given(two_priorities(), admitted100=12 * QUARTER, placed100=12 * QUARTER)
    assert found["admitted", 1] == 4 * QUARTER


def test_its_lightest_way_to_that_value_counts() -> None:
    # Upper pods weigh by cpu: 2,000 of 4,000 milli-cpu are half a node, with 1 GPU or with 3. A value of half a node
    # must take 1 GPU, so of 8 GPUs 7 are left.
    world = World()
    world.nodes("a b", 4, cpu=4000)
    world.pod("lean", None, 1, cpu=2000, priority=100)
    world.pod("fat", None, 2, cpu=2000, priority=100)
    for index in range(8):
        world.pod(f"low{index}", None, 1, priority=1)
    found = given(world, admitted100=2 * QUARTER, placed100=2 * QUARTER)
    assert found["admitted", 1] == 7 * QUARTER


def test_pods_without_room_count_as_if_they_were_not_there() -> None:
    # The optional third pod asks for more than any node has: the gang is whole, and with two pods all is placed.
    world = World()
    world.nodes("a b")
    world.hyper("leaf", 1, "a b")
    gang = world.gang("almost", 2, topology=soft())
    world.pods_of("p q", gang, 3)
    world.pod("r", gang, 5)
    full = 6 * QUARTER
    found = given(world, admitted0=full, placed0=full)
    assert found["placed", 0] == full
    assert (found["locality", None], found["span", None]) == (2, 1)
    assert found["packedNodes", None] == 2


def test_locality_and_span_are_bounded_only_where_all_is_placed() -> None:
    world = World()
    world.nodes("a b")
    world.hyper("leaf", 1, "a b")
    world.pods_of("p q", world.gang("pair", 1, topology=soft()), 3)
    found = given(world, admitted0=3 * QUARTER, placed0=3 * QUARTER)
    assert (found["locality", None], found["span", None]) == (0, 0)
    found = given(world, admitted0=3 * QUARTER, placed0=6 * QUARTER)
    assert (found["locality", None], found["span", None]) == (2, 1)


def test_placed_weight_needs_nodes_whatever_waits() -> None:
    # 5 quarters of priority 1 and 4 of priority 0 are placed, of 16: at least 9 GPUs, 2 of them on the node in use.
    world = World()
    world.nodes("a b c d")
    world.running("runs", "a", gpu=2)
    world.hyper("left", 1, "a b")
    world.hyper("right", 1, "c d")
    for number in range(8):
        world.pod(f"high-{number}", None, 1, priority=1)
        world.pod(f"low-{number}", None, 1)
    reached = {"admitted1": 5 * QUARTER, "placed1": 5 * QUARTER, "admitted0": 4 * QUARTER, "placed0": 4 * QUARTER}
    found = given(world, **reached)
    assert (found["packedHyperNodes", None], found["packedNodes", None]) == (1, 2)
    reached["placed0"] = QUARTER
    found = given(world, **reached)
    assert (found["packedHyperNodes", None], found["packedNodes", None]) == (0, 1)
    world.pod("watches", None, 1, daemon=True)
    assert given(world, **reached)["packedNodes", None] == 0


# Odds and ends


def test_a_group_that_is_ready_as_it_is_counts_though_nothing_fits() -> None:
    world = World()
    world.node("a", 1)
    world.pods_of("p", world.gang("g", 0), 2)
    dense = make_dense(world.instance())
    dense = replace(dense, groups=(replace(dense.groups[0], need_weight=7),))
    assert [bound.bound for bound in named_bounds(dense) if bound.criterion in (0, 1)] == [7, 0]
    assert [bound.bound for bound in lp_bounds(dense, (0,) * len(dense.criteria)) if bound.criterion in (0, 1)] == []


def test_an_instance_without_pods_or_nodes() -> None:
    empty = World()
    assert [bound.bound for bound in named_bounds(make_dense(empty.instance())) if bound.criterion is None] == [0]
    bare = World()
    bare.pod("p")
    dense = make_dense(bare.instance())
    assert [bound.bound for bound in bounds_for(dense, score_solution(dense, {})) if bound.criterion is None] == [0]
