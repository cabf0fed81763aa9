"""Cheapest splits against trying every way to part an AppGroup; the bound against the optimum of whole instances."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import numpy as np
import pytest

from placer.arrays import score_solution
from placer.arrays.dense_builder import make_dense
from placer.base.deadline import Budget
from placer.bounds import splits
from placer.bounds.splits import AppGroupSplits, CallingPods, WidestNodes, find_splits, least_cuts
from placer.search.events import Event, Improved, SearchOptions
from placer.search.exact.method import ExactSearch
from placer.search.greedy.multi_start import greedy
from tests.examples import seed_blocks
from tests.tiny import tiny_network
from tests.world import World, calls

MOST_PODS = 6

blocks = pytest.mark.parametrize("seeds", seed_blocks(4000, 100, quick=4))


def drawn(seed: int) -> tuple[CallingPods, WidestNodes]:
    """A few workloads that call each other or themselves, two resources, up to three kinds of nodes, some eligible."""
    chance = Random(seed)
    types = chance.randint(1, 5)
    counts = [1] * types
    for _ in range(chance.randint(0, MOST_PODS - types)):
        counts[chance.randrange(types)] += 1
    density = chance.choice([0.2, 0.4, 0.8])
    pairs = [[chance.random() < density / (3 if one == two else 1) for two in range(types)] for one in range(types)]
    kinds, masks = chance.randint(1, 3), chance.randint(1, 2)
    graph = CallingPods(
        tuple((number,) for number in range(types)),
        np.array(counts),
        np.array([[chance.randint(1, 4), chance.randint(0, 3)] for _ in range(types)]),
        tuple(chance.randrange(masks) for _ in range(types)),
        np.array(pairs, dtype=np.int64) * (1 + (chance.random() < 0.2)),
    )
    room = np.array([[chance.randint(4, 12), chance.randint(3, 8)] for _ in range(kinds)])
    eligible = np.array([[chance.random() < 0.8 for _ in range(kinds)] for _ in range(masks)])
    return graph, WidestNodes(room, eligible)


def ways(many: int) -> Iterator[list[int]]:
    """Every way to part so many things: per thing the number of its part, each new part with the next number."""
    if not many:
        yield []
        return
    for way in ways(many - 1):
        yield from ([*way, part] for part in range(max(way, default=-1) + 2))


def fits(graph: CallingPods, widest: WidestNodes, pods: list[int]) -> bool:
    return any(
        all(widest.eligible[graph.masks[pod]][kind] for pod in pods)
        and all(sum(graph.requests[pod][each] for pod in pods) <= room[each] for each in range(len(room)))
        for kind, room in enumerate(widest.room)
    )


def fewest(graph: CallingPods, widest: WidestNodes) -> int | None:
    """The fewest calls between parts, of all ways; None where there is no way."""
    pods = [pod for pod, many in enumerate(graph.counts) for _ in range(many)]
    best = None
    for way in ways(len(pods)):
        members: dict[int, list[int]] = {}
        for pod, part in zip(pods, way, strict=True):
            members.setdefault(part, []).append(pod)
        if all(fits(graph, widest, each) for each in members.values()):
            cut = sum(
                int(graph.calls[one][two])
                for one, here in zip(pods, way, strict=True)
                for two, there in zip(pods, way, strict=True)
                if here != there
            )
            best = cut if best is None else min(best, cut)
    return best


@blocks
def test_the_cheapest_split_is_the_cheapest_of_all_ways(seeds: range) -> None:
    several = 0
    for seed in seeds:
        graph, widest = drawn(seed)
        found, best = find_splits(graph, widest), fewest(graph, widest)
        assert (found is None) == (best is None)
        if found is None or best is None:
            continue
        assert found.least == best
        assert least_cuts(graph, widest)[0] <= best
        assert found.cheapest is not None
        parts = found.parts[list(found.cheapest)]
        assert (parts.sum(axis=0) == graph.counts).all()
        assert widest.hold(graph, parts).all()
        assert graph.all_pairs - found.pairs[list(found.cheapest)].sum() == best
        assert (found.losses >= 0).all()
        assert found.losses[list(found.cheapest)].sum() == found.slack
        several += best > 0
    assert several > len(seeds) // 4


def test_a_search_that_is_cut_short_still_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left of the proof is the relaxation and the values that were refuted."""
    monkeypatch.setattr(splits, "MOST_STEPS", 2)
    short = 0
    for seed in range(150):
        graph, widest = drawn(seed)
        found, best = find_splits(graph, widest), fewest(graph, widest)
        if found is not None and best is not None:
            assert found.least <= best
            short += found.cheapest is None
    assert short > 20


def test_more_parts_than_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Halves bound then, and none of them is worth nothing everywhere."""
    monkeypatch.setattr(splits, "MOST_PARTS", 6)
    halved = 0
    for seed in range(150):
        graph, widest = drawn(seed)
        best = fewest(graph, widest)
        if best is not None and find_splits(graph, widest) is None:
            least = least_cuts(graph, widest)[0]
            assert least <= best
            halved += least > 0
    assert halved > 10


def test_app_groups_in_more_parts_than_python_recurses() -> None:
    """A chain of two workloads whose pods fill a node each."""
    many = 1500
    one = np.array([[1], [1]])
    graph = CallingPods(((0,), (1,)), np.array([many, many]), one, (0, 0), np.array([[0, 1], [0, 0]]))
    found = find_splits(graph, WidestNodes(np.array([[1]]), np.array([[True]])))
    assert found is not None
    assert found.least == many * many


def test_many_kinds_of_nodes_count_as_one_that_is_as_wide_as_all(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    world.nodes("a b", 1, cpu=4)
    world.nodes("c", 3, cpu=2)
    world.nodes("d", 2, cpu=2)
    for name in "pqrs":
        world.pod(name, None, 1, cpu=1)
    dense = make_dense(world.instance())
    assert len(WidestNodes.of(dense).room) == 2
    monkeypatch.setattr(splits, "MOST_KINDS", 1)
    assert WidestNodes.of(dense).room.tolist() == [dense.free.max(axis=0).tolist()]


def test_equal_app_groups_are_looked_at_once() -> None:
    world = World()
    world.nodes("n0 n1", 0, cpu=2, area="r/z0")
    world.nodes("n2 n3 n4", 0, cpu=2, area="r/z1")
    world.links("zone", "z0=z1", 10)
    for name in "abc":
        app = world.app_group(name, calls("x>y", 10), calls("y>z", 10))
        for workload in "xyz":
            world.pod(f"{name}-{workload}", None, 0, cpu=1, app=app, workload=workload)
    dense = make_dense(world.instance())
    assert dense.network is not None
    found = AppGroupSplits(dense, dense.network)
    assert found.cost_bound(Budget()) == (3, True)
    assert AppGroupSplits(dense, dense.network).cost_bound(Budget(most=0.0))[1] is False
    assert len({id(found.of(app)) for app in found.classes}) == 1


def test_the_bound_is_never_above_the_optimum() -> None:
    """Running pods, limits and links included."""
    looked_at = 0
    for seed in range(90):
        dense = make_dense(tiny_network(seed).instance)
        if dense.network is None or ("networkCost", None) not in dense.criteria:
            continue
        best = greedy(dense)

        def told(event: Event) -> None:
            nonlocal best
            best = event.solution if isinstance(event, Improved) else best

        ended = ExactSearch(dense, SearchOptions(workers=1, hint=best), told).run()
        if ended == "proved" and sum(best.values()) == sum(one.size for one in dense.classes):
            bound = AppGroupSplits(dense, dense.network).cost_bound(Budget())[0]
            assert bound <= score_solution(dense, best)[dense.criteria.index(("networkCost", None))]
            looked_at += bound > 0
    assert looked_at > 2
