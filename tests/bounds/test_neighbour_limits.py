"""What neighbours let in at most: worked out by hand. A node has 4 GPUs, a pod asks for one."""

from __future__ import annotations

import pytest

from placer.answers.solving import solve
from placer.arrays import Dense, score_solution
from placer.arrays.dense_builder import make_dense
from placer.bounds import bounds_for, named_bounds
from placer.problem import PodState
from placer.problem.neighbours import Neighbours
from placer.search.greedy.multi_start import greedy
from tests.world import World, apart, hard, near, soft, spread

QUARTER = 250_000


def zones(text: str) -> World:
    """A node per letter, in the zone of that name, ``-``: in none."""
    world = World()
    for number, zone in enumerate(text):
        labels = {"host": str(number)} if zone == "-" else {"host": str(number), "zone": zone}
        world.node(f"n{number}", 4, labels=labels)
    return world


def pods(world: World, count: int, asks: Neighbours, app: str = "web") -> Dense:
    for number in range(count):
        world.pod(f"{app}{number}", labels={"app": app}, asks=asks)
    return make_dense(world.instance())


def placed(dense: Dense) -> int:
    """In pods: at most so many are placed, by counting."""
    return min(each.bound for each in named_bounds(dense) if each.criterion is None) // QUARTER


def value(dense: Dense, name: str) -> tuple[int, int]:
    """A value of the greedy's answer, and the best bound of it."""
    found = score_solution(dense, greedy(dense))
    criterion = next(number for number, each in enumerate(dense.criteria) if each[0] == name)
    return found[criterion], max(
        each.bound
        for each in bounds_for(dense, found)
        if each.criterion == criterion and each.context in ((), found[:criterion])
    )


def test_one_pod_in_a_zone() -> None:
    asks = apart("zone", app="web")
    assert placed(pods(zones("aabbcc"), 5, asks)) == 3
    assert placed(pods(zones("aabbc"), 2, asks)) == 2
    assert placed(pods(zones("aabbc-"), 5, asks)) == 5  # without a zone nothing keeps them apart


def test_pods_that_only_let_in_each_other_are_in_one_domain() -> None:
    asks = near("zone", app="web")
    assert placed(pods(zones("aab"), 12, asks)) == 8
    assert placed(pods(zones("aab-"), 12, near("host", app="web"))) == 4
    assert placed(pods(zones("aab"), 7, asks)) == 7


def test_pods_that_others_let_in_may_be_anywhere() -> None:
    world = zones("aab")
    world.pod("runs", labels={"app": "web"}, state=PodState.BOUND, node="n2")
    assert placed(pods(world, 12, near("zone", app="web"))) == 11
    world = zones("aab")
    world.pod("free", labels={"app": "web"})
    assert placed(pods(world, 11, near("zone", app="web"))) == 12


def test_a_zone_that_has_one_takes_no_other() -> None:
    world = zones("aabbcc")
    world.pod("runs", labels={"app": "web"}, asks=apart("zone", app="web"), state=PodState.BOUND, node="n0")
    assert placed(pods(world, 5, apart("zone", app="web"))) == 2


def test_a_zone_without_room_holds_down_what_is_spread() -> None:
    """Zone c has room for one pod, so a and b have two at most."""
    for skew, most in ((1, 5), (2, 7), (9, 9)):
        world = zones("aabbc")
        world.pod("full", gpu=3, state=PodState.BOUND, node="n4")
        assert placed(pods(world, 9, spread("zone", skew, app="web"))) == most


def test_with_fewer_zones_than_asked_for_each_has_the_skew() -> None:
    assert placed(pods(zones("aabb"), 9, spread("zone", 2, least=3, app="web"))) == 4


def test_two_applications_are_counted_apart() -> None:
    world = zones("aabbcc")
    pods(world, 5, apart("zone", app="web"))
    assert placed(pods(world, 4, apart("zone", app="db"), "db")) == 6


@pytest.mark.parametrize(("size", "ready"), [(3, 3), (4, 0)])
def test_a_gang_that_needs_more_zones_than_there_are_is_never_ready(size: int, ready: int) -> None:
    world = zones("aabbcc")
    gang = world.gang("gang", size)
    for number in range(size):
        world.pod(f"g{number}", gang, labels={"app": "g"}, asks=apart("zone", app="g"))
    assert placed(make_dense(world.instance())) == ready


@pytest.mark.parametrize(("tier", "ready"), [(1, 0), (2, 3)])
def test_a_gang_of_one_per_host_needs_a_domain_of_so_many(tier: int, ready: int) -> None:
    world = zones("aabb")
    for leaf, members in (("l1", "n0 n1"), ("l2", "n2 n3")):
        world.hyper(leaf, 1, members)
    world.hyper("s", 2, "l1 l2")
    gang = world.gang("gang", 3, topology=hard(tier))
    for number in range(3):
        world.pod(f"g{number}", gang, labels={"app": "g"}, asks=apart("host", app="g"))
    assert placed(make_dense(world.instance())) == ready


def test_elastic_gangs_share_the_zones() -> None:
    """Two gangs of two with one application: of four pods three zones take three, and one gang's worth and a half."""
    world = zones("abc")
    for name in ("first", "second"):
        gang = world.gang(name, 2)
        for number in range(2):
            world.pod(f"{name}{number}", gang, labels={"app": "g"}, asks=apart("zone", app="g"))
    dense = make_dense(world.instance())
    assert placed(dense) == 3
    assert [each.bound for each in named_bounds(dense) if each.criterion == 0] == [3 * QUARTER]


def test_one_pod_per_host_opens_as_many_nodes() -> None:
    dense = pods(zones("aabbcc"), 5, apart("host", app="web"))
    assert value(dense, "packedNodes") == (5, 5)
    assert value(pods(zones("aabbcc"), 5, Neighbours()), "packedNodes") == (2, 2)


@pytest.mark.parametrize(("count", "skew", "opened"), [(5, 1, 5), (5, 2, 3), (9, 1, 6), (14, 2, 6)])
def test_pods_spread_over_hosts_open_as_many_nodes(count: int, skew: int, opened: int) -> None:
    """With more pods than so many for each host every host has one."""
    world = zones("aabbcc")
    for number in range(count):
        asks = spread("host", skew, app="web")
        world.pod(f"p{number}", labels={"app": "web"}, asks=asks)
    dense = make_dense(world.instance())
    assert value(dense, "packedNodes") == (opened, opened)
    world.pod("runs", labels={"app": "web"}, state=PodState.BOUND, node="n0")
    assert value(make_dense(world.instance()), "packedNodes")[1] <= opened


@pytest.mark.parametrize(("name", "apart_from", "best"), [("span", True, 2), ("span", False, 1), ("locality", True, 8)])
def test_one_pod_per_host_takes_as_many_leaves(name: str, apart_from: bool, best: int) -> None:
    world = zones("aabb")
    for leaf, members in (("l1", "n0 n1"), ("l2", "n2 n3")):
        world.hyper(leaf, 1, members)
    world.hyper("s", 2, "l1 l2")
    gang = world.gang("gang", 4, topology=soft())
    for number in range(4):
        world.pod(f"g{number}", gang, labels={"app": "g"}, asks=apart("host", app="g") if apart_from else Neighbours())
    assert value(make_dense(world.instance()), name) == (best, best)


def test_what_is_placed_is_proved_without_a_search() -> None:
    """Twelve of twenty one-per-zone pods, of two priorities, in six zones."""
    world = zones("aabbccddeeff")
    for name, priority in (("web", 5), ("db", 1)):
        for number in range(10):
            world.pod(f"{name}{number}", labels={"app": name}, asks=apart("zone", app=name), priority=priority)
    result = solve(world.instance(), method="greedy")
    found = [(each.value.value, each.bound.value) for each in result.objective if each.bound is not None]
    assert found[:4] == [(6 * QUARTER, 6 * QUARTER)] * 4
