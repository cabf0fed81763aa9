"""Places of a leaf that are counted together, by hand; ``test_pooled_bundles`` holds them against all placements."""

from __future__ import annotations

import pytest

from placer.dense import Dense, score_solution
from placer.dense.dense_builder import make_dense
from placer.methods.exact.pooled_model import PooledModel
from placer.methods.exact.pooled_program import PooledPods
from placer.verify import verify
from tests.methods.exact.test_pooled_model import decided, full
from tests.world import World, hard


def leaf(*used: int, empty: int = 0, gpu: int = 4) -> World:
    """One leaf in a spine: used nodes with so many GPUs free, and empty ones."""
    world, names = World(), []
    for number, free in enumerate(used):
        names.append(world.node(f"u{number}", gpu=free + 1))
        world.running(f"before{number}", names[-1])
    names += [world.node(f"e{number}", gpu=gpu) for number in range(empty)]
    world.node("other", gpu=0)
    world.hyper("spine", 2, f"{world.hyper('leaf', 1, ' '.join(names))} {world.hyper('beside', 1, 'other')}")
    return world


def sets(dense: Dense) -> list[int]:
    """Of each set how many places it has."""
    return [len(each.places) for each in PooledPods(dense).sets]


def packed(world: World) -> int:
    """``packedNodes`` of what is read from the model, verified."""
    instance = world.instance()
    dense = make_dense(instance)
    read = decided(dense, PooledModel(dense))
    assert verify(instance, dense.placement(read)) == []
    assert full(dense, read)
    return score_solution(dense, read)[-1]


@pytest.mark.parametrize(
    ("used", "sizes", "nodes"),
    [
        ((3,), (1, 2, 4, 4), 2),  # 1 and 2 fill what is used
        ((3,), (1, 2, 2, 4), 2),  # one of the 2 has no room there
        ((3,), (1, 1, 1, 1), 1),
        ((3, 3), (2, 2, 2, 1), 1),  # as many free as three of 2 ask for, of no node
        ((3, 2), (2, 1, 1, 1), 0),
        ((3,), (2, 2, 2, 2, 4), 3),
    ],
)
def test_used_and_empty_nodes_are_one_set_and_no_more_is_opened_than_must_be(
    used: tuple[int, ...], sizes: tuple[int, ...], nodes: int
) -> None:
    world = leaf(*used, empty=3)
    gang = world.gang("g", len(sizes), topology=hard(1))
    for number, gpu in enumerate(sizes):
        world.pod(f"g{number}", gang, gpu)
    assert sets(make_dense(world.instance())) == [2]
    assert packed(world) == nodes


@pytest.mark.parametrize(
    ("used", "sizes", "nodes"),
    [((3,), (2, 3), 1), ((3, 2), (2, 3), 0), ((1, 3), (3, 3, 2, 2), 2), ((2, 2), (3, 2, 2), 1)],
)
def test_fillings_of_several_places_make_one_sum(used: tuple[int, ...], sizes: tuple[int, ...], nodes: int) -> None:
    world = leaf(*used, empty=3)
    gang = world.gang("g", len(sizes), topology=hard(1))
    for number, gpu in enumerate(sizes):
        world.pod(f"g{number}", gang, gpu)
    dense = make_dense(world.instance())
    assert [bool(each.fillings) for each in PooledPods(dense).node_sets] == [True] * (len(set(used) - {1}) + 1)
    assert len(sets(dense)) == 1
    assert packed(world) == nodes


def test_where_a_daemon_set_has_pods_each_place_is_a_set() -> None:
    """The DaemonSet's pod fits on the used node alone, and another one has to open the empty node then."""
    world = leaf(4, empty=1, gpu=2)
    world.pod("daemon", None, 4, daemon=True)
    world.pods_of("p", world.gang("g", 1, topology=hard(1)), 2)
    world.running("near", world.node("far", gpu=9))
    world.pods_of("q r s t u v w x", world.gang("h", 8))  # so that GPUs decide and not how many pods a node takes
    assert sets(make_dense(world.instance())) == [1, 1, 1]
    assert packed(world) == 1


def test_nodes_of_other_selectors_and_leaves_are_other_sets() -> None:
    world = World()
    world.node("a", labels={"type": "x"})
    world.nodes("b c d")
    world.hyper("spine", 2, f"{world.hyper('leaf0', 1, 'a b')} {world.hyper('leaf1', 1, 'c d')}")
    world.running("before", "c")
    world.pod("p", None, 2, selector={"type": "x"})
    world.pods_of("q r s t", world.gang("g", 4), 2)
    assert sets(make_dense(world.instance())) == [1, 1, 2]
