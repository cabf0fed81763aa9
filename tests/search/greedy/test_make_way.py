"""Making way: a pod that waits comes where another one leaves, and no rule is broken by either."""

from __future__ import annotations

import pytest

from placer.arrays import score_solution
from placer.arrays.dense_builder import make_dense
from placer.lab.generate import generate
from placer.problem.neighbours import Neighbours
from placer.rules import verify
from placer.search.greedy import multi_start
from placer.search.greedy.making_way import empty_nodes, make_way
from placer.search.greedy.multi_start import greedy
from placer.search.greedy.state import GreedyLayout, GreedyState
from tests.support import instance_of
from tests.tiny_neighbours import tiny_neighbours
from tests.world import World, apart


def hosts(racks: str) -> World:
    """A node of two GPUs per letter, in the rack of that name, which is a HyperNode, or in none: n0, n1, ..."""
    world = World()
    for number, rack in enumerate(racks):
        labels = {"host": str(number)} if rack == "-" else {"host": str(number), "rack": rack}
        world.node(f"n{number}", 2, labels=labels)
    for rack in sorted({*racks} - {"-"}):
        world.hyper(rack, 1, " ".join(f"n{number}" for number, each in enumerate(racks) if each == rack))
    return world


class Started:
    """A greedy that has placed ``pod@node ...`` of a world."""

    def __init__(self, world: World, start: str) -> None:
        self.instance = world.instance()
        self.dense = make_dense(self.instance)
        index = {key.name: number for key, number in self.dense.class_of.items()}
        node = {name: number for number, name in enumerate(self.dense.nodes)}
        self.state = GreedyState(GreedyLayout(self.dense))
        for each in start.split():
            pod, _, where = each.partition("@")
            self.state.take(index[pod], [node[where]], [1])

    @property
    def now(self) -> str:
        """Where everything is, which keeps every rule."""
        placement = self.dense.placement(self.state.solution())
        assert verify(self.instance, placement) == []
        return " ".join(sorted(f"{key.name}@{where}" for key, where in placement.node_of.items()))


def ends(world: World, start: str, waiting: str) -> str | None:
    """Where everything is once a group was made ready, from ``pod@node ...`` on; None where it was not."""
    started = Started(world, start)
    before = started.state.solution()
    group = next(number for number, each in enumerate(started.dense.groups) if each.key.name == waiting)
    if make_way(started.state, [group]) != [group]:
        assert started.state.solution() == before
        return None
    return started.now


def replicas(world: World, *, asks: Neighbours | None = None) -> World:
    """Two pods of web on different hosts, and two others of one GPU."""
    for name in ("w0", "w1"):
        world.pod(name, labels={"app": "web"}, asks=apart("host", app="web"))
    for name in ("x", "y"):
        world.pod(name, labels={"app": name}, asks=asks or Neighbours())
    return world


def test_a_pod_that_may_be_elsewhere_leaves_its_room_to_one_that_may_not() -> None:
    """What is left is beside w0; x, or y, goes there."""
    assert ends(replicas(hosts("aa")), "w0@n0 x@n1 y@n1", "w1") == "w0@n0 w1@n1 x@n0 y@n1"


def test_a_pod_with_room_comes_without_anybody_moving() -> None:
    assert ends(replicas(hosts("aa")), "w0@n0 x@n0 y@n1", "w1") == "w0@n0 w1@n1 x@n0 y@n1"


def test_a_gang_of_which_one_pod_finds_no_way_gets_nothing() -> None:
    for size in (2, 3):
        world = hosts("aa")
        for name in ("x", "y"):
            world.pod(name)
        gang = world.gang("gang", size)
        for number in range(size):
            world.pod(f"g{number}", gang, labels={"app": "g"}, asks=apart("host", app="g"))
        assert (ends(world, "x@n0 y@n0", "gang") is None) == (size == 3)


def packed(world: World, start: str) -> str:
    """Where everything is once nodes were emptied."""
    started = Started(world, start)
    done = empty_nodes(started.state)
    assert done == (started.now != " ".join(sorted(start.split())))
    return started.now


def pairs(racks: str, *, apart_from: str = "c") -> World:
    """Two pods of each of three applications, one of them with one pod per host."""
    world = hosts(racks)
    for name in "abc":
        for number in range(2):
            asks = apart("host", app=name) if name in apart_from else Neighbours()
            world.pod(f"{name}{number}", labels={"app": name}, asks=asks)
    return world


def test_a_node_is_emptied_though_others_have_one_of_its_pods_already() -> None:
    """c1 may be beside c0 only where another pod has made way, for which there is room on n2."""
    assert packed(pairs("----"), "a0@n0 b0@n0 a1@n1 b1@n1 c0@n2 c1@n3") in (
        "a0@n2 a1@n1 b0@n0 b1@n1 c0@n2 c1@n0",
        "a0@n3 a1@n1 b0@n0 b1@n1 c0@n0 c1@n3",
    )
    three = pairs("----", apart_from="abc")
    assert packed(three, "a0@n0 b0@n0 a1@n1 b1@n1 c0@n2 c1@n3").count("@n2") != 1


def test_no_node_is_emptied_where_all_of_an_application_need_one_each() -> None:
    world = hosts("---")
    for number in range(3):
        world.pod(f"c{number}", labels={"app": "c"}, asks=apart("host", app="c"))
    start = "c0@n0 c1@n1 c2@n2"
    assert packed(world, start) == start


@pytest.mark.parametrize("apart_from", ["", "abcdefghij"])
def test_one_pod_per_host_takes_no_more_nodes_than_any_pods(apart_from: str) -> None:
    """Ten applications of four pods: four nodes take eight of them, and two would have four further nodes."""
    world = World()
    for number in range(12):
        world.node(f"n{number}", 8, labels={"host": str(number)})
    for name in "abcdefghij":
        for number in range(4):
            asks = apart("host", app=name) if name in apart_from else Neighbours()
            world.pod(f"{name}{number}", labels={"app": name}, asks=asks)
    dense = make_dense(world.instance())
    assert score_solution(dense, greedy(dense))[-1] == 5


def test_the_greedy_keeps_every_rule_where_it_moves_pods_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    """On full clusters and on drawn instances."""
    admitted = 0

    def counted(state: GreedyState, groups: list[int]) -> list[int]:
        nonlocal admitted
        found = make_way(state, groups)
        admitted += len(found)
        return found

    monkeypatch.setattr(multi_start, "make_way", counted)
    drawn = (tiny_neighbours(seed).instance for seed in range(60))
    full = (instance_of(*generate("neighbours", nodes=48, seed=seed).documents) for seed in range(6))
    for instance in (*drawn, *full):
        dense = make_dense(instance)
        assert verify(instance, dense.placement(greedy(dense))) == []
    assert admitted > 6
