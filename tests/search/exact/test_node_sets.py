"""Which nodes the exact model counts together, and how: by sizes of one resource, by fillings, or each for itself."""

from __future__ import annotations

from itertools import product
from operator import le

import pytest
from hypothesis import given
from hypothesis import strategies as some

from placer.arrays.dense_builder import make_dense
from placer.search.exact import node_sets
from placer.search.exact.method import ExactModel
from placer.search.exact.node_sets import make_node_sets, maximal_fillings
from placer.search.greedy.multi_start import greedy
from tests.examples import examples
from tests.oracle import best
from tests.solving import solve_tiny
from tests.tiny import tiny
from tests.world import World, apart

amounts = some.tuples(some.integers(0, 4), some.integers(0, 4)).filter(any)


@given(room=some.tuples(some.integers(0, 9), some.integers(0, 9)), requests=some.sets(amounts, min_size=1, max_size=4))
@examples(100)
def test_fillings_are_what_fits_and_leaves_room_for_nothing(
    room: tuple[int, ...], requests: set[tuple[int, ...]]
) -> None:
    asked = tuple(sorted(requests))
    every = product(*(range(min(b // a for a, b in zip(each, room, strict=True) if a) + 1) for each in asked))
    fits = {counts for counts in every if all(map(le, taken(counts, asked), room))}
    more = {each: [(*each[:at], each[at] + 1, *each[at + 1 :]) for at in range(len(asked))] for each in fits}
    found = maximal_fillings(room, asked)
    assert set(found) == {counts for counts in fits if fits.isdisjoint(more[counts])}
    assert len(set(found)) == len(found)


def taken(counts: tuple[int, ...], requests: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    """What so many of each request ask for together."""
    return tuple(sum(many * each[at] for many, each in zip(counts, requests, strict=True)) for at in range(2))


def test_too_many_fillings_are_not_listed() -> None:
    requests = tuple((number, 20 - number) for number in range(1, 17))
    assert maximal_fillings((100, 100), requests) == ()
    assert maximal_fillings((20, 20), requests) != ()
    assert maximal_fillings((20, 20), (*requests, (17, 3))) == ()


def mixed() -> World:
    """Two leaves of nodes with 4 GPUs and 6 CPUs, one partly used; pods of 3 GPUs, of 2 with 1 CPU, of 1 with 4."""
    world = World()
    world.nodes("a b c d e", cpu=6)
    world.hyper("left", 1, "a b c")
    world.hyper("right", 1, "d e")
    world.running("runs", "c", gpu=1, cpu=1)
    world.pods_of("p q r", world.gang("gang", 3), 3)
    for name in "xyz":
        world.pod(name, gpu=1, cpu=4)
        world.pod(f"2{name}", gpu=2, cpu=1)
    return world


def test_nodes_of_equal_fillings_are_counted_together() -> None:
    dense = make_dense(mixed().instance())
    places = make_node_sets(dense)
    assert [[dense.nodes[node] for node in place.nodes] for place in places] == [["a", "b"], ["c"], ["d", "e"]]
    assert all(len(place.requests) == 3 for place in places)
    # 3 and 1, 2 and 2, or 2 and 1 GPUs; beside the pod that runs 3, or 2 and 1
    assert [len(place.fillings) for place in places] == [3, 2, 3]


def test_a_solution_is_the_same_after_the_way_through_fillings() -> None:
    dense = make_dense(mixed().instance())
    model, solution = ExactModel(dense), greedy(dense)
    values = model.variables.encode(solution)
    filled = [[values[each.index] for each in fillings] for fillings in model.variables.fillings.values()]
    assert sum(map(sum, filled)) == len({node for _, node in solution})
    back = model.variables.decode(values)
    assert sorted(back.items()) == sorted(solution.items()) or model.variables.encode(back) == values


@pytest.mark.parametrize("seed", range(12))
def test_the_optimum_is_the_same_with_and_without_fillings(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    instance = tiny(seed).instance
    known, _ = best(instance)
    listed = solve_tiny(instance, "exact")
    monkeypatch.setattr(node_sets, "MOST_REQUESTS", 0)
    maximal_fillings.cache_clear()
    apart = solve_tiny(instance, "exact")
    maximal_fillings.cache_clear()
    assert listed.proved
    assert apart.proved
    assert listed.score == apart.score == known


def test_nodes_that_what_runs_closes_to_some_pods_are_not_counted_with_others() -> None:
    """A running pod keeps off one of the pods of one node; no row is left that says so, and the nodes are not equal."""
    world = World()
    world.node("a", 2, labels={"host": "a"})
    world.node("b", 2, labels={"host": "b"})
    world.running("keeps", "a", None, 1, asks=apart("host", app="web"))
    world.running("other", "b", None, 1)
    gang = world.gang("gang", 2)
    world.pod("web", gang, 1, labels={"app": "web"})
    world.pod("db", gang, 1, labels={"app": "db"})
    dense = make_dense(world.instance())
    assert [place.nodes for place in make_node_sets(dense)] == [(0,), (1,)]


@pytest.mark.parametrize("method", ["exact", "decomposed"])
def test_where_a_daemon_set_may_be_nodes_are_looked_at_one_by_one(method: str) -> None:
    """Two pods fill a node, and the pod of a DaemonSet is best on the other one, which stays empty (O4)."""
    world = World()
    world.nodes("a b", 2)
    world.hyper("core", 2, world.hyper("leaf", 1, "a b"))
    for name in "dxy":
        world.pod(name, gpu=1, daemon=name == "d")
    instance = world.instance()
    assert [place.nodes for place in make_node_sets(make_dense(instance))] == [(0,), (1,)]
    solved = solve_tiny(instance, method)
    assert solved.proved
