"""Making way: a pod that waits comes where another one leaves, and no rule is broken by either."""

from __future__ import annotations

import pytest

from placer.dense.dense_builder import make_dense
from placer.instance.problem import Neighbours
from placer.laboratory.generate import generate
from placer.methods.greedy import multi_start
from placer.methods.greedy.make_way import make_way
from placer.methods.greedy.multi_start import greedy
from placer.methods.greedy.state import GreedyLayout, GreedyState
from placer.verify import verify
from tests.support import instance_of
from tests.tiny_neighbours import tiny_neighbours
from tests.world import World, apart, hard, near, spread


def hosts(racks: str) -> World:
    """A node of two GPUs per letter, in the rack of that name, which is a HyperNode, or in none: n0, n1, ..."""
    world = World()
    for number, rack in enumerate(racks):
        labels = {"host": str(number)} if rack == "-" else {"host": str(number), "rack": rack}
        world.node(f"n{number}", 2, labels=labels)
    for rack in sorted({*racks} - {"-"}):
        world.hyper(rack, 1, " ".join(f"n{number}" for number, each in enumerate(racks) if each == rack))
    return world


def ends(world: World, start: str, waiting: str) -> str | None:
    """Where everything is once a group was made ready, from ``pod@node ...`` on; None where it was not."""
    instance = world.instance()
    dense = make_dense(instance)
    index = {key.name: number for key, number in dense.class_of.items()}
    node = {name: number for number, name in enumerate(dense.nodes)}
    state = GreedyState(GreedyLayout(dense))
    for each in start.split():
        pod, _, where = each.partition("@")
        state.take(index[pod], [node[where]], [1])
    before = state.solution()
    group = next(number for number, each in enumerate(dense.groups) if each.key.name == waiting)
    if make_way(state, [group]) != [group]:
        assert state.solution() == before
        return None
    placement = dense.placement(state.solution())
    assert verify(instance, placement) == []
    return " ".join(sorted(f"{key.name}@{where}" for key, where in placement.node_of.items()))


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


def test_nobody_leaves_the_domain_that_its_group_is_limited_to() -> None:
    for limit, end in ((1, None), (2, "w0@n0 w1@n1 x@n0 y@n1")):
        world = hosts("ab")
        gang = world.gang("gang", 2, topology=hard(limit))
        for name in ("w0", "w1"):
            world.pod(name, labels={"app": "web"}, asks=apart("host", app="web"))
        world.pods_of("x y", gang)
        assert ends(world, "w0@n0 x@n1 y@n1", "w1") == end


def test_nobody_leaves_those_that_must_be_near_it() -> None:
    """Whoever asks for a pod keeps it where it is, and stays there itself."""
    assert ends(replicas(hosts("ab"), asks=near("rack", app="x")), "w0@n0 x@n1 y@n1", "w1") is None


@pytest.mark.parametrize(("spread_pods", "moves"), [("x0@n2", True), ("x0@n2 x1@n2", False)])
def test_nobody_leaves_a_domain_that_is_needed_for_what_is_spread(spread_pods: str, moves: bool) -> None:
    """The large pod is counted by those that are spread, and asks for nothing: without it rack a has none of them."""
    world = hosts("aab-")
    for name in ("w0", "w1"):
        world.pod(name, labels={"app": "web"}, asks=apart("host", app="web"), not_on=("n2", "n3"))
    for name in ("x0", "x1"):
        world.pod(name, labels={"app": "x"}, asks=spread("rack", app="x"))
    world.pod("large", gpu=2, labels={"app": "x"})
    world.pod("z")
    found = ends(world, f"w0@n0 z@n0 large@n1 {spread_pods}", "w1")
    assert found == (f"large@n3 w0@n0 w1@n1 {spread_pods} z@n0" if moves else None)


def test_a_queue_without_room_stays_without() -> None:
    world = replicas(hosts("aa"))
    world.queue("full", gpu=0)
    world.pod("q", queue="full", labels={"app": "web"}, asks=apart("host", app="web"))
    assert ends(world, "w0@n0 x@n1 y@n1", "q") is None


def test_a_gang_of_which_one_pod_finds_no_way_gets_nothing() -> None:
    for size in (2, 3):
        world = hosts("aa")
        for name in ("x", "y"):
            world.pod(name)
        gang = world.gang("gang", size)
        for number in range(size):
            world.pod(f"g{number}", gang, labels={"app": "g"}, asks=apart("host", app="g"))
        assert (ends(world, "x@n0 y@n0", "gang") is None) == (size == 3)


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
