"""O3: ``networkCost``, the sum over all placed pairs of a caller and a callee of their cost."""

import pytest

from placer.problem import Key, PodState, Policy
from placer.problem.placement import Placement
from placer.rules.scoring import score
from tests.judge import values
from tests.kep import kep_cluster
from tests.world import World, calls

SHOP = Key("default", "shop")


def o3(world: World, text: str) -> list[int]:
    return values(world, text, "networkCost")


def _pair() -> World:
    world = kep_cluster()
    shop = world.app_group("shop", calls("web>db", 10))
    world.pod("a", app=shop, workload="web")
    world.pod("b", app=shop, workload="db")
    return world


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("", 0),
        ("a@n1", 0),
        ("a@n1 b@n1", 0),
        ("a@n1 b@n2", 1),
        ("a@n2 b@n1", 1),
        ("a@n1 b@n3", 5),
        ("a@n5 b@n8", 10),
        ("a@n1 b@n5", 20),
    ],
)
def test_what_a_pair_costs(text: str, cost: int) -> None:
    assert o3(_pair(), text) == [cost]


def test_bound_pairs_count_and_terminating_and_nominated_ones_do_not() -> None:
    world = _pair()
    world.running("r", "n1", app=SHOP, workload="web")
    world.running("s", "n3", app=SHOP, workload="db")
    world.pod("t", app=SHOP, workload="db", state=PodState.TERMINATING, node="n5")
    world.pod("u", app=SHOP, workload="db", state=PodState.NOMINATED, node="n5")
    assert o3(world, "") == [5]
    assert o3(world, "a@n3") == [5 + 0]
    assert o3(world, "a@n2 b@n2") == [5 + 1 + 5 + 0]


def test_nodes_in_no_region_and_nodes_that_are_gone_cost_100_from_anywhere_but_themselves() -> None:
    world = _pair()
    world.node("x")
    world.node("y")
    world.running("r", "gone", app=SHOP, workload="web")
    assert o3(world, "a@x b@x") == [0 + 100]
    assert o3(world, "a@x b@y") == [100 + 100]
    assert o3(world, "b@n1") == [100]


def test_without_a_network_or_the_level_there_is_no_value() -> None:
    world = _pair()
    world.network = None
    assert o3(world, "a@n1 b@n5") == []
    assert o3(_pair_with(Policy(levels=("placed", "packing"))), "a@n1 b@n5") == []


def _pair_with(policy: Policy) -> World:
    world = _pair()
    world.policy = policy
    return world


def test_it_stands_where_the_policy_puts_it() -> None:
    names = [value.name for value in score(_pair().instance(), Placement())]
    assert names == ["admitted", "placed", "locality", "span", "networkCost", "packedHyperNodes", "packedNodes"]
    first = _pair_with(Policy(levels=("networkCost", "placed"))).instance()
    assert [value.name for value in score(first, Placement())] == ["networkCost", "admitted", "placed"]


# the cases of the plugin's own tests: what one more pod adds


BASIC = {"p1": "n2", "p2": "n5", "p3": "n1"}


@pytest.mark.parametrize(
    ("pod", "costs"),
    [
        ("p1", [20, 20, 20, 20, 0, 1, 10, 10]),
        ("p2", [0, 1, 5, 5, 20, 20, 20, 20]),
        ("p3", [0, 0, 0, 0, 0, 0, 0, 0]),
    ],
)
def test_cases_of_the_plugin(pod: str, costs: list[int]) -> None:
    """TestNetworkOverheadScore: p1 calls p2, p2 calls p3. The plugin counts own calls only, so callers stay away."""
    callers = {"p2": "p1", "p3": "p2"}
    world = kep_cluster()
    group = world.app_group("basic", calls("p1>p2"), calls("p2>p3"))
    for name, node in BASIC.items():
        if name not in (pod, callers.get(pod)):
            world.running(name, node, app=group, workload=name)
    world.pod("new", app=group, workload=pod)
    before = o3(world, "")[0]
    assert [o3(world, f"new@n{node}")[0] - before for node in range(1, 9)] == costs


def test_the_example_of_the_kep() -> None:
    """P2 runs on N1: P1 costs 0 on N1, 1 on N2, 5 on N3 and N4."""
    world = kep_cluster()
    group = world.app_group("a1", calls("P1>P2", 15))
    world.running("p2", "n1", app=group, workload="P2")
    world.pod("p1", app=group, workload="P1")
    assert [o3(world, f"p1@n{node}") for node in range(1, 5)] == [[0], [1], [5], [5]]
