"""Gangs placed pod by pod: only whole ones come back, the best set of them, and no rule is broken on the way."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from itertools import chain, combinations

import pytest

from placer.arrays import Dense, Solution, beats, score_solution
from placer.arrays.dense_builder import make_dense
from placer.lab.generate import generate
from placer.problem import Instance
from placer.rules import verify
from placer.search.decomposed.gang_relaxation import GangRelaxation, relaxable
from placer.search.decomposed.large_neighbourhood import LargeNeighbourhoodSearch, WorkerPool
from placer.search.decomposed.lexicographic import DecomposedSearch
from placer.search.events import Improved, SearchOptions
from placer.search.greedy.multi_start import greedy
from tests.examples import seed_blocks
from tests.search.decomposed.test_decomposed import so_many
from tests.support import instance_of
from tests.tiny import crowded, tiny
from tests.world import World, apart, both, near


def relaxations(seeds: range) -> Iterator[tuple[int, Instance, int, Solution, GangRelaxation]]:
    """Relaxations of small instances, for each value for which there is one, and what they begin with."""
    for seed in seeds:
        for instance in (tiny(seed).instance, crowded(seed).instance):
            dense = make_dense(instance)
            for criterion in range(len(dense.criteria)):
                if relaxable(dense, criterion):
                    lowest = dense.criteria[criterion][1] or 0
                    start = random.Random(seed).choice([Solution(), greedy(dense)])
                    start = start.only(lambda index, _: _priority(dense, index) >= lowest)  # noqa: B023
                    yield seed, instance, criterion, start, GangRelaxation(dense, criterion, start)


def _priority(dense: Dense, index: int) -> int:
    return dense.groups[dense.classes[index].group].priority


@pytest.mark.parametrize("seeds", seed_blocks(60, 20))
def test_only_whole_gangs_come_back_and_no_value_is_lost(seeds: range, small_steps: None) -> None:
    del small_steps
    better = relaxed = 0
    for seed, instance, criterion, start, relaxation in relaxations(seeds):
        dense, last = relaxation.whole, len(relaxation.dense.criteria) - 1
        assert relaxation.restored(relaxation.relaxed(start)) is not None
        before = score_solution(dense, start)[: criterion + 1]
        relaxed += len(relaxation.gangs) > 0
        steps = LargeNeighbourhoodSearch(
            relaxation.dense, last, relaxation.relaxed(start), seed, random.Random(seed), WorkerPool("inline", 1)
        )
        steps.run(so_many(6), lambda _: False)
        for found in (relaxation.relaxed(start), steps.incumbent.solution):
            whole = relaxation.restored(found)
            assert whole is not None
            assert verify(instance, dense.placement(whole)) == [], seed
            after = score_solution(dense, whole)
            assert not beats(dense, before[:criterion], after[:criterion], criterion), seed
            better += beats(dense, after, before, criterion + 1)
    assert better > 3
    assert relaxed > 10


def pieces(pods: int = 6) -> World:
    """Six nodes of 8 GPUs, each half taken, and a gang of at most one pod for each of the halves that are left."""
    world = World()
    world.nodes("a b c d e f", gpu=8)
    for node in "abcdef":
        world.running(f"old-{node}", node, gpu=4)
    gang = world.gang("whole", least=pods)
    world.pods_of(" ".join(f"g{number}" for number in range(pods)), gang, gpu=4)
    return world


def test_a_gang_is_built_over_steps_none_of_which_could_admit_it(small_steps: None) -> None:
    del small_steps
    dense = make_dense(pieces().instance())
    rigid = LargeNeighbourhoodSearch(dense, 0, Solution(), 1, random.Random(1), WorkerPool("inline", 1))
    rigid.run(so_many(12), lambda _: False)
    assert rigid.incumbent.solution == {}
    relaxation = GangRelaxation(dense, 0, Solution())
    steps = LargeNeighbourhoodSearch(
        relaxation.dense, 0, relaxation.relaxed(Solution()), 1, random.Random(1), WorkerPool("inline", 1)
    )
    steps.run(so_many(12), lambda _: False)
    whole = relaxation.restored(steps.incumbent.solution)
    assert whole is not None
    assert sum(whole.values()) == 6
    part = steps.incumbent.solution.only(lambda _, node: node > 0)
    assert relaxation.restored(part) == {}


def test_pods_are_shared_out_to_the_gangs_that_are_worth_most() -> None:
    """Against every set of gangs, for all numbers of pods that may be placed."""
    world = World()
    world.nodes("a b c d e f", gpu=8)
    sizes = {"three": (3, 0), "two": (2, 1), "five": (4, 1), "one": (0, 2)}
    for name, (small, large) in sizes.items():
        gang = world.gang(name, least=small + large)
        for kind, count, gpu in (("s", small, 1), ("l", large, 2)):
            if count:
                world.pods_of(" ".join(f"{name}-{kind}{number}" for number in range(count)), gang, gpu=gpu)
    dense = make_dense(world.instance())
    relaxation = GangRelaxation(dense, 0, Solution())
    by_gpu = {int(one.request.max()): number for number, one in enumerate(relaxation.dense.classes)}
    assert len(relaxation.dense.classes) == 2
    for small in range(10):
        for large in range(5):
            counts = Counter({(by_gpu[1], 0): min(small, 4), (by_gpu[1], 1): max(0, small - 4), (by_gpu[2], 2): large})
            whole = relaxation.restored(Solution(+counts))
            sets = chain.from_iterable(combinations(sizes.values(), many) for many in range(5))
            fitting = [each for each in sets if sum(s for s, _ in each) <= small and sum(b for _, b in each) <= large]
            most = max(sum(s + 2 * b for s, b in each) for each in fitting)
            assert whole is not None
            assert sum(count * int(dense.requests[index].max()) for (index, _), count in whole.items()) == most


def test_higher_priorities_that_are_whole_stay_so_and_others_are_as_they_were() -> None:
    world = World()
    world.nodes("a b", gpu=4)
    for name, priority in (("high", 9), ("also", 9), ("mine", 5), ("low", 1)):
        world.pods_of(f"{name}-0 {name}-1", world.gang(name, 2, priority=priority))
    dense = make_dense(world.instance())
    criterion = dense.criteria.index(("admitted", 5))
    of = {group.key.name: number for number, group in enumerate(dense.groups)}
    start = Solution({(dense.groups[of["high"]].classes[0], 0): 2, (dense.groups[of["low"]].classes[0], 1): 2})
    relaxation = GangRelaxation(dense, criterion, start)
    assert set(relaxation.gangs) == {of["high"], of["mine"]}
    assert relaxation.dense.criteria == (*dense.criteria[:criterion], ("placed", 5))
    begun = relaxation.relaxed(start)
    assert sum(begun.values()) == 2  # what the lowest has is left out
    assert relaxation.restored(Solution()) is None
    assert relaxation.restored(begun) == {(dense.groups[of["high"]].classes[0], 0): 2}


def test_where_calls_or_kubelets_decide_nothing_is_relaxed() -> None:
    dense = make_dense(pieces().instance())
    assert relaxable(dense, 0)
    assert not relaxable(dense, 1)
    numa = make_dense(instance_of(*generate("numa", nodes=4, zones=(2,), seed=3).documents))
    assert numa.numa is not None
    assert not relaxable(numa, 0)


def test_the_search_admits_by_it_what_no_step_could(small_steps: None, monkeypatch: pytest.MonkeyPatch) -> None:
    del small_steps
    run = LargeNeighbourhoodSearch.run
    monkeypatch.setattr(LargeNeighbourhoodSearch, "run", lambda self, _, heard: run(self, so_many(12), heard))
    dense = make_dense(pieces().instance())
    found: list[Solution] = []
    told = DecomposedSearch(
        dense,
        SearchOptions(work=1.0, workers=1, hint=Solution()),
        lambda event: found.append(event.solution) if isinstance(event, Improved) else None,
        WorkerPool("inline", 1),
    )
    told.neighbourhoods(0, 0.001)
    assert not any(map(len, found))
    told.gangs_relaxed(0, 0.001)
    assert sum(found[-1].values()) == 6
    assert not told.gangs_relaxed(1, 0.001)


def test_a_gang_with_one_pod_per_host_near_another_workload_is_built_over_steps(small_steps: None) -> None:
    del small_steps
    world = World()
    for node in "abcdef":
        world.node(node, gpu=8, labels={"host": node})
        world.running(f"old-{node}", node, gpu=3)
    anchor = world.gang("anchor", least=6, priority=1)
    for number in range(6):
        world.pod(f"h{number}", anchor, labels={"app": "anchor"})
    gang = world.gang("whole", least=6, priority=5)
    asks = both(near("host", app="anchor"), apart("host", job="whole"))
    for number in range(6):
        world.pod(f"g{number}", gang, 4, labels={"job": "whole"}, asks=asks)
    instance = world.instance()
    dense = make_dense(instance)
    of = {group.key.name: number for number, group in enumerate(dense.groups)}
    start = Solution({(dense.groups[of["anchor"]].classes[0], node): 1 for node in range(6)})
    relaxation = GangRelaxation(dense, 0, start)
    # Whoever lets others in stays whole, and is there though its priority is lower.
    assert relaxation.gangs == [of["whole"]]
    assert len(relaxation.relaxed(start)) == 6
    steps = LargeNeighbourhoodSearch(
        relaxation.dense, 0, relaxation.relaxed(start), 1, random.Random(1), WorkerPool("inline", 1)
    )
    steps.run(so_many(16), lambda _: False)
    whole = relaxation.restored(steps.incumbent.solution)
    assert whole is not None
    assert sum(whole.values()) == 12
    assert verify(instance, dense.placement(whole)) == []
    mine = {relaxation.class_of[index] for index in dense.groups[of["whole"]].classes}
    part = steps.incumbent.solution.only(lambda index, node: node > 0 or index not in mine)
    assert relaxation.restored(part) == start
