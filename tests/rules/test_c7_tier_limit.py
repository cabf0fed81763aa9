"""C7: with a hard limit t, all placed pods of the scope lie under one HyperNode of tier at most t."""

import pytest

from placer.problem import NetworkTopology, PodState, SubGroupPolicy
from placer.problem.instance import NO_TIER
from tests.judge import broken, messages
from tests.world import World, hard, soft

GANG = ("PodGroup default/train",)


def _cluster() -> World:
    """Tier 1: leaf1 = n1 n2, leaf2 = n3 n4, leaf3 = n5; tier 3: spine = leaf1 leaf2; n6 in none; root 4."""
    world = World()
    world.nodes("n1 n2 n3 n4 n5 n6")
    world.hyper("leaf1", 1, "n1 n2")
    world.hyper("leaf2", 1, "n3 n4")
    world.hyper("leaf3", 1, "n5")
    world.hyper("spine", 3, "leaf1 leaf2")
    return world


def _gang(topology: NetworkTopology | None) -> World:
    world = _cluster()
    world.pods_of("a b", world.gang("train", 0, topology=topology))
    return world


@pytest.mark.parametrize(
    ("text", "tier"),
    [
        ("a@n1", 1),
        ("a@n1 b@n1", 1),
        ("a@n1 b@n2", 1),
        ("a@n1 b@n3", 3),
        ("a@n1 b@n5", 4),
        ("a@n6", 4),
        ("a@n6 b@n6", 4),
    ],
)
@pytest.mark.parametrize("limit", [0, 1, 2, 3, 4, 9])
def test_tiers_above_the_limit_are_the_amount(text: str, tier: int, limit: int) -> None:
    assert broken(_gang(hard(limit)), text) == ([("C7", GANG, tier - limit)] if tier > limit else [])


def test_the_sentence_names_tier_and_hyper_node() -> None:
    said = "the smallest common HyperNode of its 2 new pods is"
    assert messages(_gang(hard(2)), "a@n1 b@n3") == [
        f"PodGroup default/train asks for highest tier 2: {said} HyperNode spine, tier 3"
    ]
    assert messages(_gang(hard(2)), "a@n1 b@n5") == [
        f"PodGroup default/train asks for highest tier 2: {said} the virtual root, tier 4"
    ]


@pytest.mark.parametrize("topology", [None, soft(), soft(1), hard()])
def test_what_never_forbids(topology: NetworkTopology | None) -> None:
    assert broken(_gang(topology), "a@n1 b@n6") == []


def test_an_unknown_tier_name_admits_nothing() -> None:
    """Tier 1 is 2 above the limit -1, which stands below every tier."""
    assert broken(_gang(hard(NO_TIER)), "a@n1") == [("C7", GANG, 2)]
    assert "asks for a tierName that admits nothing" in messages(_gang(hard(NO_TIER)), "a@n1")[0]


def test_without_hyper_nodes_the_root_is_of_tier_1() -> None:
    world = World()
    world.nodes("n1 n2")
    world.pods_of("a b", world.gang("train", 0, topology=hard(1)))
    assert broken(world, "a@n1 b@n2") == []


def test_tier_0_is_a_tier() -> None:
    world = World()
    world.nodes("n1 n2")
    world.hyper("host", 0, "n1")
    world.hyper("leaf", 1, "host n2")
    world.pods_of("a b", world.gang("train", 0, topology=hard(0)))
    assert broken(world, "a@n1 b@n1") == []
    assert broken(world, "a@n1 b@n2") == [("C7", GANG, 1)]


def test_a_node_listed_twice_belongs_to_the_lower_one() -> None:
    """The spine lists n1 besides its child that lists it: n1 is under both, lowest the leaf."""
    world = World()
    world.nodes("n1 n2")
    world.hyper("leaf", 1, "n1")
    world.hyper("spine", 2, "leaf n1 n2")
    world.pods_of("a b", world.gang("train", 0, topology=hard(1)))
    assert broken(world, "a@n1 b@n1") == []
    assert broken(world, "a@n1 b@n2") == [("C7", GANG, 1)]


@pytest.mark.parametrize(("node", "amount"), [("n2", 0), ("n3", 2), ("n5", 3)])
def test_bound_pods_pin_the_group(node: str, amount: int) -> None:
    world = _cluster()
    gang = world.gang("train", 0, topology=hard(1))
    world.pods_of("a", gang)
    world.running("r", "n1", gang)
    assert broken(world, f"a@{node}") == ([("C7", GANG, amount)] if amount else [])


def test_a_group_that_spans_more_already_gets_nothing_new() -> None:
    world = _cluster()
    gang = world.gang("train", 0, topology=hard(1))
    world.pods_of("a", gang)
    world.running("r", "n1", gang)
    world.running("s", "n3", gang)
    assert broken(world, "") == []
    assert broken(world, "a@n1") == [("C7", GANG, 2)]


def test_a_bound_pod_on_a_node_that_is_gone_is_under_the_root_only() -> None:
    world = _cluster()
    gang = world.gang("train", 0, topology=hard(3))
    world.pods_of("a", gang)
    world.running("r", "gone", gang)
    assert broken(world, "a@n1") == [("C7", GANG, 1)]


def test_a_terminating_member_pins_nothing() -> None:
    world = _cluster()
    gang = world.gang("train", 0, topology=hard(1))
    world.pods_of("a", gang)
    world.pod("t", gang, state=PodState.TERMINATING, node="n3")
    assert broken(world, "a@n1") == []


def test_a_subgroup_has_a_limit_of_its_own() -> None:
    """The group may span the spine, each of its pairs one leaf."""
    world = _cluster()
    policy = SubGroupPolicy("pair", 2, 0, hard(1))
    gang = world.gang("train", 0, topology=hard(3), policies=[policy])
    world.pods_of("x1 x2", gang, part="x")
    world.pods_of("y1 y2", gang, part="y")
    assert broken(world, "x1@n1 x2@n2 y1@n3 y2@n4") == []
    assert broken(world, "x1@n1 x2@n3 y1@n2 y2@n4") == [
        ("C7", ("SubGroup default/train/pair-x",), 2),
        ("C7", ("SubGroup default/train/pair-y",), 2),
    ]
    assert broken(world, "x1@n1 x2@n2 y1@n5 y2@n5") == [("C7", GANG, 1)]


def test_a_subgroup_that_spans_too_much_stops_only_itself() -> None:
    """x runs on two leaves already: y may grow, x may not."""
    world = _cluster()
    gang = world.gang("train", 0, policies=[SubGroupPolicy("pair", 1, 0, hard(1))])
    world.running("x1", "n1", gang, part="x")
    world.running("x2", "n3", gang, part="x")
    world.pods_of("x3", gang, part="x")
    world.pods_of("y1", gang, part="y")
    assert broken(world, "y1@n5") == []
    assert broken(world, "x3@n1") == [("C7", ("SubGroup default/train/pair-x",), 2)]
