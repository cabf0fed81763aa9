from itertools import pairwise

import pytest

from placer.problem import Key, Policy
from placer.problem.placement import Binding, Placement, Value, better
from placer.rules.scoring import score
from tests.world import World, soft


def test_the_first_value_that_differs_decides() -> None:
    least = (Value("admitted", 5, 1), Value("placed", 5, 1), Value("locality", 9), Value("packedNodes", 1))
    nearer = (Value("admitted", 5, 1), Value("placed", 5, 1), Value("locality", 8), Value("packedNodes", 7))
    fuller = (Value("admitted", 5, 1), Value("placed", 6, 1), Value("locality", 99), Value("packedNodes", 7))
    more = (Value("admitted", 6, 1), Value("placed", 0, 1), Value("locality", 99), Value("packedNodes", 7))
    for worse, good in pairwise((least, nearer, fuller, more)):
        assert better(good, worse)
        assert not better(worse, good)


def test_equal_scores_are_not_better() -> None:
    assert not better((Value("placed", 5, 1),), (Value("placed", 5, 1),))
    assert not better((), ())


@pytest.mark.parametrize(
    "other", [(Value("locality", 5),), (Value("placed", 5, 2),), (Value("placed", 5, 1), Value("locality", 5)), ()]
)
def test_scores_of_different_instances_cannot_be_compared(other: tuple[Value, ...]) -> None:
    with pytest.raises(ValueError, match=r"compared|zip"):
        better((Value("placed", 5, 1),), other)


def test_a_pod_bound_twice_is_where_it_was_bound_first() -> None:
    pod = Key("default", "a")
    assert Placement((Binding(pod, "n1"), Binding(pod, "n2"))).node_of == {pod: "n1"}


def _world(policy: Policy) -> World:
    world = World(policy)
    world.nodes("n1")
    gang = world.gang("train", 1, topology=soft(), priority=7)
    world.pods_of("a", gang)
    world.pod("b", priority=3)
    return world


def test_values_stand_in_the_order_of_the_default_policy() -> None:
    names = [(value.name, value.priority) for value in score(_world(Policy()).instance(), Placement())]
    assert names == [
        ("admitted", 7),
        ("placed", 7),
        ("admitted", 3),
        ("placed", 3),
        ("locality", None),
        ("span", None),
        ("packedHyperNodes", None),
        ("packedNodes", None),
    ]


def test_a_policy_orders_the_levels_and_leaves_some_out() -> None:
    instance = _world(Policy(levels=("packing", "locality"))).instance()
    names = [value.name for value in score(instance, Placement())]
    assert names == ["packedHyperNodes", "packedNodes", "locality", "span"]
