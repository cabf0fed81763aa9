"""The decomposed method: parts are instances like any other, steps keep every rule, and nothing that breaks loses an
answer.
"""

from __future__ import annotations

import os
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from dataclasses import replace
from itertools import takewhile

import numpy as np
import pytest

from placer.arrays import Dense, Solution, beats, score_solution
from placer.arrays.dense_builder import make_dense
from placer.base.deadline import Budget
from placer.lab.generate import generate
from placer.problem.placement import MAXIMISED
from placer.rules import verify
from placer.search.decomposed import large_neighbourhood, search
from placer.search.decomposed.destroy import DestroyOperators
from placer.search.decomposed.incumbent_state import IncumbentState
from placer.search.decomposed.large_neighbourhood import LargeNeighbourhoodSearch, WorkerPool
from placer.search.decomposed.repairing import RepairResult, RepairTask, repair
from placer.search.decomposed.subproblem import Subproblem, make_subproblem
from placer.search.events import Improved, SearchOptions, SolverFault
from placer.search.greedy.multi_start import complete, greedy
from placer.search.numa.binding_order import aligned
from tests.examples import seed_blocks
from tests.support import instance_of
from tests.tiny import Tiny, tiny, tiny_network
from tests.tiny_neighbours import tiny_neighbours
from tests.tiny_numa import tiny_numa

#: The module; as an attribute of its package it is the function.
SEARCH = sys.modules["placer.search.decomposed.lexicographic"]


def starts(seeds: range, make: Callable[[int], Tiny] = tiny) -> Iterator[tuple[int, Dense, Solution, random.Random]]:
    """Tiny instances with a solution to start from: nothing, or the greedy's."""
    for seed in seeds:
        dense = make_dense(make(seed).instance)
        chance = random.Random(seed)
        yield seed, dense, chance.choice([Solution(), greedy(dense)]), chance


# A subproblem of an instance


@pytest.mark.parametrize("make", [tiny, tiny_network, tiny_neighbours, tiny_numa], ids=lambda make: str(make.__name__))
@pytest.mark.parametrize("seeds", seed_blocks(300, 50))
def test_a_part_says_what_the_whole_says(seeds: range, make: Callable[[int], Tiny]) -> None:
    """What a step gains in the part it gains in the whole, on every value; with what stayed, no rule is broken."""
    changed = 0
    for seed, dense, solution, chance in starts(seeds, make):
        subproblem, incumbent = some_subproblem(dense, solution, chance)
        if not subproblem.dense.classes:
            continue
        criterion = chance.randrange(len(dense.criteria))
        chains = subproblem.dense.numa is not None and chance.random() < 0.3
        task = RepairTask(subproblem.dense, subproblem.start, subproblem.must, criterion, 600.0, 1.0, seed)
        repaired = repair(replace(task, chains=chains, criterion=0 if chains else criterion))
        assert repaired.fault is None, seed
        if repaired.solution is None:
            assert chains, seed
            continue
        old = incumbent.values
        incumbent.change(subproblem.named(subproblem.start), subproblem.named(repaired.solution))
        instance = make(seed).instance
        assert verify(instance, aligned(instance, dense.placement(incumbent.solution))) == [], seed
        assert list(repaired.gains) == [new - was for new, was in zip(incumbent.values, old, strict=True)], seed
        changed += any(repaired.gains)
    assert changed > len(seeds) // 20


def some_subproblem(dense: Dense, solution: Solution, chance: random.Random) -> tuple[Subproblem, IncumbentState]:
    incumbent = IncumbentState(dense, solution)
    nodes = chance.sample(range(len(dense.nodes)), 1 + len(dense.nodes) // 2)
    groups = range(len(dense.groups))
    pending = chance.sample(groups, (1 + len(groups)) // 2)
    still = chance.sample(groups, chance.randint(0, len(groups) // 3))
    waits = [group for group in pending if group not in still]
    return make_subproblem(incumbent, nodes, waits, locked=still, slack=chance.random() < 0.5), incumbent


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


def test_pods_that_are_away_for_a_block_leave_what_there_would_be_without_them() -> None:
    for _, dense, solution, chance in starts(range(30)):
        incumbent = IncumbentState(dense, solution)
        away = Solution({at: chance.randint(1, count) for at, count in solution.items() if chance.random() < 0.5})
        rest = Counter(solution)
        rest.subtract(away)
        states = [IncumbentState(dense, solution), IncumbentState(dense, Solution(+rest))]
        with incumbent.without(away):
            alike(incumbent, states[1])
        alike(incumbent, states[0])
        assert incumbent.values == states[0].values


def alike(one: IncumbentState, other: IncumbentState) -> None:
    assert one.solution == other.solution
    assert (one.free == other.free).all()
    assert (one.used == other.used).all()
    assert one.placed == other.placed
    assert one.shared_room() == other.shared_room()
    assert [sorted(one.ports_of(node)) for node in range(len(one.dense.nodes))] == [
        sorted(other.ports_of(node)) for node in range(len(other.dense.nodes))
    ]


# Choosing


@pytest.mark.parametrize("criterion", range(6))
def test_every_operator_chooses_allowed_nodes_once(criterion: int) -> None:
    dense = make_dense(instance_of(*generate("planted", nodes=64, seed=3, overfull=0.3).documents))
    incumbent = IncumbentState(dense, greedy(dense))
    operators = DestroyOperators(incumbent, criterion, random.Random(1))
    blocked = np.arange(64) % 3 == 0
    seen = set()
    for _ in range(60):
        operator, nodes, pending, fixed, chains = operators.choose([20] * len(operators.operators), blocked, {0, 1})
        seen.add(operator)
        assert not fixed
        assert not chains
        assert len(set(nodes.tolist())) == len(nodes)
        assert not blocked[nodes].any()
        assert 1 <= len(nodes) <= 36
        assert not {0, 1} & set(pending)
    assert seen == set(range(len(operators.operators)))


# Steps


@pytest.mark.parametrize("make", [tiny, tiny_network], ids=lambda make: str(make.__name__))
@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("seeds", seed_blocks(60, 10))
def test_steps_keep_every_rule_and_never_lose_a_value(
    seeds: range, workers: int, make: Callable[[int], Tiny], small_steps: None
) -> None:
    del small_steps
    for seed, dense, solution, chance in starts(seeds, make):
        for criterion in range(len(dense.criteria)):
            steps = LargeNeighbourhoodSearch(dense, criterion, solution, seed, chance, OutOfOrder(workers, chance))
            before = steps.incumbent.values
            steps.run(so_many(8), lambda _: False)
            solution = steps.incumbent.solution.copy()
            assert verify(make(seed).instance, dense.placement(solution)) == [], seed
            for (name, _), old, new in zip(
                dense.criteria[: criterion + 1], before, steps.incumbent.values, strict=False
            ):
                if old != new:
                    assert (new > old) == (name in MAXIMISED)
                    break


def so_many(steps: int) -> Budget:
    """Allow so many steps of a second each."""
    return Steps(steps)


class Steps(Budget):
    """Over after so many looks."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self.left = steps

    @property
    def over(self) -> bool:
        self.left -= 1
        return self.left < 0

    @property
    def work(self) -> float:
        return 1.0


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


def test_neighbourhoods_place_what_the_greedy_left_and_one_worker_repeats_itself() -> None:
    dense = odd_sizes(120, 5)
    hint = greedy(dense)
    options = SearchOptions(work=0.4, hint=hint)
    found = told(dense, options)
    assert told(dense, options) == found
    assert beats(dense, score_solution(dense, found[-1]), score_solution(dense, hint))


def told(dense: Dense, options: SearchOptions) -> list[Solution]:
    found: list[Solution] = []
    search(dense, options, lambda event: found.append(event.solution) if isinstance(event, Improved) else None)
    return found


# Priorities from the top


@pytest.mark.parametrize("seeds", seed_blocks(120, 40))
def test_what_stays_needs_nothing_of_what_lower_priorities_have(seeds: range) -> None:
    """Without it no rule is broken, no value down to the criterion changes, nothing of its priority is gone."""
    removed = 0
    for seed, dense, solution, _ in starts(seeds):
        steps = SEARCH.DecomposedSearch(dense, SearchOptions(hint=solution), lambda _: None, WorkerPool("inline", 1))
        for criterion, (_, priority) in enumerate(dense.criteria):
            start = steps.steps_from(criterion)
            assert verify(tiny(seed).instance, dense.placement(start)) == [], seed
            assert score_solution(dense, start)[: criterion + 1] == steps.values[: criterion + 1], seed
            gone = {dense.groups[dense.classes[index].group].priority for index, _ in solution.keys() - start.keys()}
            assert all(priority is not None and each < priority for each in gone)
            removed += bool(gone)
    assert removed > 3


@pytest.mark.parametrize("seeds", seed_blocks(120, 40))
def test_what_lower_priorities_had_is_put_back_where_it_was(seeds: range) -> None:
    """Where nothing else has come meanwhile no priority has less than before, and all rules are kept."""
    back = 0
    for seed, dense, solution, _ in starts(seeds):
        steps = SEARCH.DecomposedSearch(dense, SearchOptions(hint=solution), lambda _: None, WorkerPool("inline", 1))
        counted = len(list(takewhile(lambda criterion: criterion[0] in MAXIMISED, dense.criteria)))
        for start in map(steps.steps_from, range(len(dense.criteria))):
            if start == solution:
                continue
            filled = complete(dense, start, former=solution)
            assert verify(tiny(seed).instance, dense.placement(filled)) == [], seed
            assert not beats(dense, score_solution(dense, solution), score_solution(dense, filled), counted), seed
            back += all(filled.get(place, 0) >= count for place, count in solution.items())
    assert back > 3


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


@pytest.mark.exhaustive
def test_workers_that_always_die_end_the_search_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    dense = odd_sizes(60, 1)
    pool = crew_with(monkeypatch, always_aborts)
    steps = LargeNeighbourhoodSearch(dense, 0, greedy(dense), 0, random.Random(0), pool)
    with pytest.raises(SolverFault, match="cannot be carried out"):
        steps.run(Budget(), lambda _: False)
    pool.close()


def two_processes(workers: int) -> Executor:
    return ProcessPoolExecutor(workers)


def test_the_users_own_executor_carries_the_steps() -> None:
    dense = odd_sizes(60, 1)
    pool = WorkerPool("tests.search.decomposed.test_decomposed:two_processes", 2)
    steps = LargeNeighbourhoodSearch(dense, 0, greedy(dense), 0, random.Random(0), pool)
    steps.run(so_many(4), lambda _: False)
    pool.close()
    assert steps.steps >= 3


def test_a_fault_of_the_solver_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_neighbourhood, "repair", lambda _: RepairResult(None, fault="INFEASIBLE"))
    dense = odd_sizes(60, 1)
    steps = LargeNeighbourhoodSearch(dense, 0, greedy(dense), 0, random.Random(0), WorkerPool("inline", 1))
    with pytest.raises(SolverFault, match="INFEASIBLE"):
        steps.run(Budget(), lambda _: False)
