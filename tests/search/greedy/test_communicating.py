"""Calls in the greedy, by hand: who is kept from where by network costs and bandwidth (C8, C9), gangs among them."""

from __future__ import annotations

import pytest

from placer.arrays import Solution
from placer.arrays.dense_builder import make_dense
from placer.problem import Dependency, Key, Policy
from placer.rules import verify
from placer.search.greedy.communicating import Way, place_communicating
from placer.search.greedy.gang_admission import ruin_and_recreate
from placer.search.greedy.multi_start import complete
from placer.search.greedy.state import GreedyLayout, GreedyState
from tests.judge import placement
from tests.kep import kep_cluster
from tests.search.greedy.test_greedy import nodes
from tests.world import World, calls, hard

SHOP = Key("default", "shop")
MAJORITY = Policy(network_cost="majority")


def shop(world: World, *dependencies: Dependency, **pods: str) -> World:
    """Lone pods by workload, which call as the dependencies say."""
    world.app_group("shop", *dependencies)
    for workload, names in pods.items():
        for name in names.split():
            world.pod(name, app=SHOP, workload=workload)
    return world


# C8: network cost


def test_pods_that_all_wait_go_to_the_only_zone_that_holds_them() -> None:
    world = kep_cluster(gpu=1)
    world.node("n9", 1, area="us-east-1/Z4")
    found = nodes(shop(world, calls("web>db", 0), web="a", db="b c"))
    assert sorted(found.values()) == ["n7", "n8", "n9"]


def test_a_chain_of_calls_keeps_each_pair_near() -> None:
    """Z1 and Z2 are near enough, and hold two each; a and c never meet, so that the chain may lie over both."""
    world = kep_cluster(gpu=1)
    found = nodes(shop(world, calls("a>b", 5), calls("b>c", 5), a="a", b="b1 b2", c="c"))
    assert set(found.values()) == {"n1", "n2", "n3", "n4"}


# C8 as the plugin reads it


def test_a_callee_that_is_placed_too_makes_up_for_a_far_one() -> None:
    """Alone web would have a callee too far and none near; y, which nothing ties, comes to where web finds room."""
    world = kep_cluster(World(MAJORITY), gpu=1)
    world.running("x", "n5", gpu=1, app=SHOP, workload="x")
    for index in (3, 6, 7, 8):
        world.running(f"r{index}", f"n{index}")
    found = nodes(shop(world, calls("web>x", 5), calls("web>y", 0), web="w", y="y"))
    assert found.keys() == {"w", "y"}
    assert set(found.values()) == {"n1", "n2"}


def test_no_callee_comes_that_leaves_a_new_caller_with_too_many_far() -> None:
    """A caller fits in Z1 only and callees in Z3 only: one caller with a callee near it takes one far callee more."""
    world = kep_cluster(World(MAJORITY), gpu=1)
    for index in (2, 3, 4, 7, 8):
        world.running(f"r{index}", f"n{index}")
    world.running("s", "n2", gpu=0, app=SHOP, workload="db")
    shop(world, calls("web>db", 5), db="d1 d2")
    world.pod("w", None, 1, priority=10, selector={"disk": "ssd"}, app=SHOP, workload="web")
    world.node("n1", 1, area="us-west-1/Z1", labels={"disk": "ssd"})
    found = nodes(world)
    assert found["w"] == "n1"
    assert len(found) == 2
    assert set(found.values()) - {"n1"} <= {"n5", "n6"}


# C9: bandwidth


def two_regions(forth: int = 100, back: int = 100, between: int = 100) -> World:
    """Zones x = n1 and y = n2 of region r, zone z = n3 of region s; capacities of the links x>y, y>x and r=s."""
    world = World()
    for name, area in (("n1", "r/x"), ("n2", "r/y"), ("n3", "s/z")):
        world.node(name, 3, area=area)
    world.links("zone", "x>y", 1, forth)
    world.links("zone", "y>x", 1, back)
    world.links("region", "r=s", 1, between)
    return world


def full(world: World, *names: str) -> World:
    """Leave no room on the nodes."""
    for name in names:
        world.running(f"full-{name}", name, gpu=world.node_list[name].allocatable["nvidia.com/gpu"])
    return world


@pytest.mark.parametrize(("capacity", "callers"), [(10**24, 3), (10**18, 1), (10**18 - 1, 0)])
def test_amounts_beyond_64_bits_are_counted_all_the_same(capacity: int, callers: int) -> None:
    world = full(two_regions(capacity), "n2", "n3")
    world.running("s", "n2", gpu=0, app=SHOP, workload="db")
    assert len(nodes(shop(world, calls("web>db", 100, 10**18), web="a b c"))) == callers


# Gangs that call


def racks(limit: int) -> World:
    """A rack of tier 1 per zone of the KEP's cluster; a gang of four callers in one rack, their callee runs in Z3."""
    world = kep_cluster(gpu=2)
    for number in range(4):
        world.hyper(f"l{number}", 1, f"n{2 * number + 1} n{2 * number + 2}")
    world.running("s", "n5", app=SHOP, workload="db")
    gang = world.gang("g", 4, topology=hard(1))
    world.app_group("shop", calls("web>db", limit))
    for name in "abcd":
        world.pod(name, gang, app=SHOP, workload="web")
    return world


def test_a_gang_under_a_tier_limit_goes_where_its_calls_may() -> None:
    """The rack of Z3 has room for three only; that of Z4 is 10 away, and the others 20."""
    assert set(nodes(racks(10)).values()) == {"n7", "n8"}
    assert nodes(racks(9)) == {}


def test_of_racks_that_hold_a_gang_the_one_with_cheap_calls_is_taken() -> None:
    """All but that of Z3 hold it, and are near enough; those of Z1 and Z2 would be taken by number."""
    assert set(nodes(racks(20)).values()) == {"n7", "n8"}


# Callees that come, or leave, together with their callers


def test_a_caller_whose_callee_found_no_node_is_not_left_alone() -> None:
    """Zone a has 6 GPUs for w and y, of 2 each, but its nodes have 3: w has one of y there, and both of x too far."""
    world = World(MAJORITY)
    world.nodes("n1 n2", 3, cpu=10, area="r/a")
    world.node("n3", 4, area="r/b", labels={"disk": "ssd"})
    world.links("zone", "a=b", 5)
    shop(world, calls("web>x", 0), calls("web>y", 0))
    world.pod("w", None, 2, cpu=10, app=SHOP, workload="web")
    for name in ("y1", "y2"):
        world.pod(name, None, 2, cpu=4, not_on=["n3"], app=SHOP, workload="y")
    for name in ("x1", "x2"):
        world.pod(name, None, 1, selector={"disk": "ssd"}, app=SHOP, workload="x")
    instance = world.instance()
    dense = make_dense(instance)
    state = GreedyState(GreedyLayout(dense))
    items = [(index, pods.size) for index, pods in enumerate(dense.classes)]
    place_communicating(state, items, Way((0, len(dense.nodes))), whole=False)
    assert verify(instance, dense.placement(state.solution())) == []
    assert sorted(name[0] for name in nodes(world)) == ["w", "x", "y"]


def test_optional_pods_that_need_each_other_are_added_together() -> None:
    """Each of web and y has a callee too far, and the other one as a near callee; the gang as a whole does not fit."""
    world = kep_cluster(World(MAJORITY))
    full(world, "n5", "n6", "n7", "n8")
    world.running("x", "n5", gpu=0, app=SHOP, workload="x")
    world.app_group("shop", calls("web>x", 5), calls("web>y", 5), calls("y>x", 5), calls("y>web", 5))
    gang = world.gang("g", 1)
    world.pod("p", gang)
    world.pod("big", gang, 9)
    for name in ("web", "y"):
        world.pod(name, gang, app=SHOP, workload=name)
    assert set(nodes(world)) == {"p", "web", "y"}


def test_completing_begins_again_where_a_callee_was_added() -> None:
    """Web comes first and has but a far callee, until the gang of its callees is squeezed in: 3 + 3 and 3 + 2 + 2."""
    world = World(MAJORITY)
    for name, gpu, area in (("n0", 6, "r/a"), ("n1", 7, "r/a"), ("n2", 1, "r/a"), ("n3", 0, "r/b")):
        world.node(name, gpu, area=area)
    world.links("zone", "a=b", 5)
    world.running("x", "n3", gpu=0, app=SHOP, workload="x")
    shop(world, calls("web>x", 0), calls("web>y", 0))
    world.pod("w", None, 1, priority=10, app=SHOP, workload="web")
    gang = world.gang("g", 5)
    for index, gpu in enumerate((3, 3, 3, 2, 2)):
        world.pod(f"y{index}", gang, gpu, app=SHOP, workload="y")
    instance = world.instance()
    dense = make_dense(instance)
    found = dense.placement(complete(dense, Solution()))
    assert verify(instance, found) == []
    assert len(found.node_of) == 6


def test_an_app_group_is_not_placed_again_away_from_its_callers() -> None:
    """The gang holds web's only near callee y; with the heavier w it would fit elsewhere, but web would stay behind."""
    world = World(MAJORITY)
    for name, gpu, area in (("n1", 1, "r/a"), ("n2", 4, "r/a"), ("n3", 2, "r/b"), ("n4", 1, "r/b"), ("n5", 0, "r/c")):
        world.node(name, gpu, area=area)
    world.links("zone", "a=b", 5)
    for number, members in enumerate(("n1", "n2", "n3 n4", "n5")):
        world.hyper(f"l{number}", 1, members)
    one, two = world.app_group("one", calls("w>z", 100)), world.app_group("two", calls("web>x", 0), calls("web>y", 0))
    world.running("z", "n5", gpu=0, app=one, workload="z")
    world.running("x", "n5", gpu=0, app=two, workload="x")
    gang = world.gang("g", 0, topology=hard(1))
    world.pod("w", gang, 2, app=one, workload="w")
    world.pod("y", gang, 1, app=two, workload="y")
    world.pod("web", None, 4, app=two, workload="web")
    instance = world.instance()
    dense = make_dense(instance)
    start = placement("web@n2 y@n1")
    assert verify(instance, start) == []
    state = GreedyState(GreedyLayout(dense), dense.solution(start))
    ruin_and_recreate(state, 10**9)
    assert dense.placement(state.solution()).node_of == start.node_of
