"""The decomposed method: parts are instances like any other, steps keep every rule, and nothing that breaks loses an
answer.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor

import numpy as np
import pytest

from placer.dense import Dense, Solution, beats, make_dense, score_solution
from placer.laboratory.generate import generate
from placer.methods.decomposed import large_neighbourhood, search
from placer.methods.decomposed.destroy import DestroyOperators
from placer.methods.decomposed.incumbent_state import IncumbentState
from placer.methods.decomposed.large_neighbourhood import LargeNeighbourhoodSearch, StepLimits, WorkerPool
from placer.methods.decomposed.repair import RepairResult, RepairTask, repair
from placer.methods.decomposed.subproblem import make_subproblem
from placer.methods.events import Improved, SearchOptions, SolverFault
from placer.methods.greedy import greedy
from placer.placement import MAXIMISED
from placer.verify import verify
from tests.support import instance_of
from tests.tiny import tiny

#: The module; as an attribute of its package it is the function.
SEARCH = sys.modules["placer.methods.decomposed.lexicographic"]


def starts(seeds: range) -> Iterator[tuple[int, Dense, Solution, random.Random]]:
    """Tiny instances with a solution to start from: nothing, or the greedy's."""
    for seed in seeds:
        dense = make_dense(tiny(seed).instance)
        chance = random.Random(seed)
        yield seed, dense, chance.choice([{}, greedy(dense, seed=seed)]), chance


# A subproblem of an instance


@pytest.mark.parametrize("first", range(0, 120, 40))
def test_a_part_says_what_the_whole_says(first: int) -> None:
    """What a step gains in the subproblem it gains in the whole, on every value, and no rule is broken there."""
    changed = 0
    for seed, dense, solution, chance in starts(range(first, first + 40)):
        incumbent = IncumbentState(dense, solution)
        nodes = chance.sample(range(len(dense.nodes)), 1 + len(dense.nodes) // 2)
        pending = chance.sample(range(len(dense.groups)), (1 + len(dense.groups)) // 2)
        subproblem = make_subproblem(incumbent, nodes, pending)
        if not subproblem.dense.classes:
            continue
        before = score_solution(subproblem.dense, subproblem.start)
        repaired = repair(RepairTask(subproblem.dense, subproblem.start, subproblem.must, 0, 10.0, 1.0, seed))
        assert repaired.fault is None
        assert repaired.solution is not None
        after = score_solution(subproblem.dense, repaired.solution)
        old = incumbent.values
        incumbent.change(subproblem.named(subproblem.start), subproblem.named(repaired.solution))
        assert verify(tiny(seed).instance, dense.placement(incumbent.solution)) == []
        gained = [new - was for new, was in zip(after, before, strict=True)]
        assert gained == [new - was for new, was in zip(incumbent.values, old, strict=True)], seed
        changed += any(gained)
    assert changed > 3


def test_a_part_has_no_node_that_it_does_not_need() -> None:
    dense = make_dense(instance_of(*generate("planted", nodes=64, seed=1).documents))
    incumbent = IncumbentState(dense, greedy(dense))
    subproblem = make_subproblem(incumbent, [0, 1, 2], [])
    assert set(subproblem.nodes[subproblem.dense.masks.any(axis=0)].tolist()) <= {0, 1, 2}
    leaves = dense.leaf_unit[subproblem.nodes]
    outside = leaves[~np.isin(subproblem.nodes, [0, 1, 2])]
    assert len(set(outside.tolist())) == len(outside)  # one per leaf, and none where a chosen node stands for the leaf
    assert not set(outside.tolist()) & set(dense.leaf_unit[[0, 1, 2]].tolist())


def test_groups_that_stay_still_keep_their_pods_and_hold_their_room() -> None:
    dense = make_dense(instance_of(*generate("planted", nodes=16, seed=2).documents))
    incumbent = IncumbentState(dense, greedy(dense))
    nodes = list(range(8))
    still = {dense.classes[index].group for index, node in incumbent.solution if node == 0}
    subproblem = make_subproblem(incumbent, nodes, range(len(dense.groups)), locked=still)
    assert still.isdisjoint(subproblem.groups)
    assert not any(node == 0 for _, node in subproblem.named(subproblem.start))
    assert (subproblem.dense.free[subproblem.nodes == 0] == incumbent.free[0]).all()


def test_without_slack_a_part_may_only_use_what_its_pods_had_of_a_queue() -> None:
    for seed in range(200):
        dense = make_dense(tiny(seed).instance)
        solution = greedy(dense)
        if not dense.queue_rows or not solution:
            continue
        incumbent = IncumbentState(dense, solution)
        everywhere = range(len(dense.nodes))
        subproblem = make_subproblem(incumbent, everywhere, range(len(dense.groups)), slack=False)
        for row in subproblem.dense.queue_rows:
            used = sum(
                count * int(subproblem.dense.classes[index].request[row.resource])
                for (index, _), count in subproblem.start.items()
                if index in row.classes
            )
            assert row.room == used
        return
    pytest.fail("no tiny instance has a queue")


def test_the_standing_solution_is_indexed_as_if_it_were_made_anew() -> None:
    for _, dense, solution, chance in starts(range(30)):
        incumbent = IncumbentState(dense, {})
        incumbent.change({}, solution)
        drop = {place: chance.randint(1, count) for place, count in solution.items() if chance.random() < 0.5}
        incumbent.change(drop, {})
        fresh = IncumbentState(dense, incumbent.solution)
        assert (incumbent.free == fresh.free).all()
        assert (incumbent.used == fresh.used).all()
        assert incumbent.placed == fresh.placed
        assert incumbent.values == fresh.values == score_solution(dense, incumbent.solution)
        assert {k: v for k, v in incumbent.on.items() if v} == fresh.on


# Choosing


@pytest.mark.parametrize("level", range(6))
def test_every_operator_chooses_allowed_nodes_once(level: int) -> None:
    dense = make_dense(instance_of(*generate("planted", nodes=64, seed=3, overfull=0.3).documents))
    incumbent = IncumbentState(dense, greedy(dense))
    operators = DestroyOperators(incumbent, level, random.Random(1))
    blocked = np.arange(64) % 3 == 0
    seen = set()
    for _ in range(60):
        operator, nodes, pending, fixed, chains = operators.choose(20, 20, blocked, {0, 1})
        seen.add(operator)
        assert not fixed
        assert not chains
        assert len(set(nodes.tolist())) == len(nodes)
        assert not blocked[nodes].any()
        assert 1 <= len(nodes) <= 36
        assert not {0, 1} & set(pending)
    assert seen == set(range(len(operators.operators)))


def test_where_kubelets_refuse_pods_some_repairs_are_by_ejection_chains() -> None:
    """Ejection chains get all nodes that may be freed, or half as many as there are, and all groups that wait."""
    made = generate("numa", nodes=40, zones=(2,), seed=3)
    dense = make_dense(instance_of(*made.documents))
    start = {place: count for place, count in greedy(dense).items() if place[0] % 4}
    operators = DestroyOperators(IncumbentState(dense, start), 0, random.Random(1))
    blocked = np.arange(40) < 4
    sizes = set()
    for _ in range(60):
        choice = operators.choose(4, 4, blocked, {0, 1})
        waiting = {group for group in range(2, len(dense.groups)) if dense.groups[group].classes[0] % 4 == 0}
        if choice.chains:
            sizes.add(len(choice.nodes))
            assert set(choice.pending) == waiting
        else:
            assert len(choice.pending) <= 36
    assert sizes == {20, 36}


# Steps


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("first", range(0, 60, 20))
def test_steps_keep_every_rule_and_never_lose_a_value(first: int, workers: int, small_steps: None) -> None:
    del small_steps
    for seed, dense, solution, chance in starts(range(first, first + 20)):
        for level in range(len(dense.levels)):
            steps = LargeNeighbourhoodSearch(dense, level, solution, seed, chance, OutOfOrder(workers, chance))
            before = steps.incumbent.values
            steps.run(so_many(8), lambda _: False)
            solution = dict(steps.incumbent.solution)
            assert verify(tiny(seed).instance, dense.placement(solution)) == []
            for (name, _), old, new in zip(dense.levels[: level + 1], before, steps.incumbent.values, strict=False):
                if old != new:
                    assert (new > old) == (name in MAXIMISED)
                    break


def so_many(steps: int) -> StepLimits:
    """Allow so many steps of a second each."""
    left = iter(range(steps))
    return lambda _: (10.0, 1.0) if next(left, None) is not None else None


class OutOfOrder(WorkerPool):
    """Steps that are all under way before any of them is done."""

    def __init__(self, workers: int, chance: random.Random) -> None:
        super().__init__("inline", workers)
        self.chance = chance
        self.waiting: list[tuple[Future[RepairResult], RepairTask]] = []

    def submit(self, step: RepairTask) -> Future[RepairResult]:
        self.waiting.append((Future(), step))
        future = self.waiting[-1][0]
        if len(self.waiting) == self.workers or self.chance.random() < 0.3:
            self.chance.shuffle(self.waiting)
            for each, todo in self.waiting:
                each.set_result(repair(todo))
            self.waiting.clear()
        elif self.workers > 1:
            # Nobody comes back to finish the last ones: answer them as steps that found nothing.
            future.set_result(RepairResult(None))
            self.waiting.pop()
        return future


def odd_sizes(nodes: int, seed: int) -> Dense:
    options = {"pod_sizes": (1, 2, 4, 8), "uneven": 0.2, "node_types": 3}
    return make_dense(instance_of(*generate("planted", nodes=nodes, seed=seed, **options).documents))


def test_neighbourhoods_place_what_the_greedy_left() -> None:
    dense = odd_sizes(120, 5)
    hint = greedy(dense)
    found = told(dense, SearchOptions(work=4.0, hint=hint))
    assert beats(dense, score_solution(dense, found[-1]), score_solution(dense, hint))


def told(dense: Dense, options: SearchOptions) -> list[Solution]:
    found: list[Solution] = []
    search(dense, options, lambda event: found.append(event.solution) if isinstance(event, Improved) else None)
    return found


def test_one_worker_repeats_itself() -> None:
    dense = odd_sizes(120, 5)
    options = SearchOptions(work=2.0, hint=greedy(dense))
    assert told(dense, options) == told(dense, options)


# What breaks


def aborts_at_first(step: RepairTask) -> RepairResult:
    """A solver that aborts its process on every other seed."""
    if step.seed % 2:
        os.abort()
    return repair(step)


def always_aborts(step: RepairTask) -> RepairResult:
    del step
    os.abort()


def crew_with(monkeypatch: pytest.MonkeyPatch, task: Callable[[RepairTask], RepairResult]) -> WorkerPool:
    monkeypatch.setattr(large_neighbourhood, "repair", task)
    return WorkerPool("local", 2)


def test_a_worker_that_dies_loses_its_step_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    dense = odd_sizes(60, 1)
    hint = greedy(dense)
    pool = crew_with(monkeypatch, aborts_at_first)
    steps = LargeNeighbourhoodSearch(dense, 0, hint, 0, random.Random(0), pool)
    steps.run(so_many(4), lambda _: False)
    pool.close()
    assert not beats(dense, score_solution(dense, hint), steps.incumbent.values)


def test_workers_that_always_die_end_the_search_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    dense = odd_sizes(60, 1)
    pool = crew_with(monkeypatch, always_aborts)
    steps = LargeNeighbourhoodSearch(dense, 0, greedy(dense), 0, random.Random(0), pool)
    with pytest.raises(SolverFault, match="cannot be carried out"):
        steps.run(lambda _: (10.0, 1.0), lambda _: False)
    pool.close()


def two_processes(workers: int) -> Executor:
    return ProcessPoolExecutor(workers)


def test_the_users_own_executor_carries_the_steps() -> None:
    dense = odd_sizes(60, 1)
    pool = WorkerPool("tests.test_decomposed:two_processes", 2)
    steps = LargeNeighbourhoodSearch(dense, 0, greedy(dense), 0, random.Random(0), pool)
    steps.run(so_many(4), lambda _: False)
    pool.close()
    assert steps.steps >= 3


def test_a_fault_of_the_solver_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_neighbourhood, "repair", lambda _: RepairResult(None, fault="INFEASIBLE"))
    dense = odd_sizes(60, 1)
    steps = LargeNeighbourhoodSearch(dense, 0, greedy(dense), 0, random.Random(0), WorkerPool("inline", 1))
    with pytest.raises(SolverFault, match="INFEASIBLE"):
        steps.run(lambda _: (10.0, 1.0), lambda _: False)


def test_auto_uses_neighbourhoods_where_the_cluster_is_not_small(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[int] = []

    def count(*_: object) -> bool:
        used.append(1)
        return False

    monkeypatch.setattr(SEARCH.DecomposedSearch, "neighbourhoods", count)
    told(odd_sizes(120, 5), SearchOptions(work=0.5))
    assert used
