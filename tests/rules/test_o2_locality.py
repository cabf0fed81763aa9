"""O2: ``locality``, placed pods × tier of their smallest common HyperNode; ``span``, the leaves they touch."""

import pytest

from placer.problem import NetworkTopology, PodState, SubGroupPolicy
from tests.judge import values
from tests.world import World, hard, soft


def o2(world: World, text: str) -> list[int]:
    return values(world, text, "locality", "span")


def _cluster() -> World:
    """Tier 1: leaf1 = n1 n2, leaf2 = n3 n4; tier 3: spine = leaf1 leaf2; n5 and n6 in none. The root is of tier 4."""
    world = World()
    world.nodes("n1 n2 n3 n4 n5 n6")
    world.hyper("leaf1", 1, "n1 n2")
    world.hyper("leaf2", 1, "n3 n4")
    world.hyper("spine", 3, "leaf1 leaf2")
    return world


@pytest.mark.parametrize("topology", [soft(), hard(), hard(4)])
@pytest.mark.parametrize(
    ("text", "locality", "span"),
    [
        ("", 0, 0),
        ("a@n1", 1, 1),
        ("a@n1 b@n2 c@n2", 3, 1),
        ("a@n1 b@n3", 6, 2),
        ("a@n1 b@n3 c@n4", 9, 2),
        ("a@n5", 4, 1),
        ("a@n5 b@n5", 8, 1),
        ("a@n5 b@n6", 8, 2),
        ("a@n1 b@n3 c@n5", 12, 3),
    ],
)
def test_pods_times_tier_and_leaves(topology: NetworkTopology, text: str, locality: int, span: int) -> None:
    world = _cluster()
    world.pods_of("a b c", world.gang("train", 0, topology=topology))
    assert o2(world, text) == [locality, span]


def test_groups_that_ask_for_nothing_count_nothing() -> None:
    world = _cluster()
    world.pods_of("a", world.gang("train", 0))
    world.pod("b")
    assert o2(world, "a@n1 b@n5") == [0, 0]


def test_bound_pods_count_with_the_new_ones() -> None:
    """One runs in leaf1. New in leaf1: 2 pods x 1; new in leaf2: 2 pods x 3, two leaves."""
    world = _cluster()
    gang = world.gang("train", 0, topology=soft())
    world.running("r", "n1", gang)
    world.pods_of("a", gang)
    assert o2(world, "") == [1, 1]
    assert o2(world, "a@n2") == [2, 1]
    assert o2(world, "a@n3") == [6, 2]


def test_a_group_without_pending_pods_is_a_constant() -> None:
    world = _cluster()
    gang = world.gang("runs", 0, topology=soft())
    world.running("r", "n1", gang)
    world.running("s", "n3", gang)
    world.pod("a")
    assert o2(world, "") == o2(world, "a@n1") == [6, 2]


def test_terminating_and_succeeded_members_count_nothing() -> None:
    world = _cluster()
    gang = world.gang("train", 0, topology=soft())
    world.pod("t", gang, state=PodState.TERMINATING, node="n3")
    world.finished(gang)
    world.pods_of("a", gang)
    assert o2(world, "a@n1") == [1, 1]


def test_a_bound_pod_on_a_node_that_is_gone_is_under_the_root_and_a_leaf_of_its_own() -> None:
    world = _cluster()
    gang = world.gang("train", 0, topology=soft())
    world.running("r", "gone", gang)
    world.pods_of("a", gang)
    assert o2(world, "") == [4, 1]
    assert o2(world, "a@n1") == [8, 2]


def test_group_and_subgroups_are_counted_each() -> None:
    """x in leaf1: 2 x 1; y in leaf2: 2 x 1; the group over the spine: 4 x 3. Leaves: 1 + 1 + 2."""
    world = _cluster()
    gang = world.gang("train", 0, topology=soft(), policies=[SubGroupPolicy("pair", 2, 0, hard(1))])
    world.pods_of("x1 x2", gang, part="x")
    world.pods_of("y1 y2", gang, part="y")
    assert o2(world, "x1@n1 x2@n2 y1@n3 y2@n4") == [16, 4]


def test_the_leaf_is_the_lowest_hyper_node_that_lists_the_node() -> None:
    """The spine lists n1 besides its child leaf, and n2 alone: n1's leaf is leaf, n2's is the spine itself."""
    world = World()
    world.nodes("n1 n2")
    world.hyper("leaf", 1, "n1")
    world.hyper("spine", 2, "leaf n1 n2")
    world.pods_of("a b", world.gang("train", 0, topology=soft()))
    assert o2(world, "a@n1 b@n1") == [2, 1]
    assert o2(world, "a@n2 b@n2") == [4, 1]
    assert o2(world, "a@n1 b@n2") == [4, 2]


def test_without_hyper_nodes_every_node_is_a_leaf_under_a_root_of_tier_1() -> None:
    world = World()
    world.nodes("n1 n2")
    world.pods_of("a b", world.gang("train", 0, topology=soft()))
    assert o2(world, "a@n1 b@n2") == [2, 2]
