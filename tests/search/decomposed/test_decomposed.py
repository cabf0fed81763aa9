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
from itertools import takewhile

import numpy as np
import pytest

from placer.arrays import Dense, Solution, beats, score_solution
from placer.arrays.dense_builder import make_dense
from placer.base.deadline import Budget
from placer.lab.generate import generate
from placer.problem import Key
from placer.problem.placement import MAXIMISED, Placement
from placer.rules import verify
from placer.search.decomposed import large_neighbourhood, search
from placer.search.decomposed.destroy import DestroyOperators
from placer.search.decomposed.incumbent_state import IncumbentState
from placer.search.decomposed.large_neighbourhood import LargeNeighbourhoodSearch, WorkerPool
from placer.search.decomposed.repairing import RepairResult, RepairTask, repair
from placer.search.decomposed.subproblem import make_subproblem
from placer.search.events import Improved, SearchOptions, SolverFault
from placer.search.greedy.multi_start import complete, greedy
from tests.examples import seed_blocks
from tests.support import instance_of
from tests.tiny import Tiny, tiny, tiny_network
from tests.tiny_neighbours import tiny_neighbours
from tests.world import World, near

#: The module; as an attribute of its package it is the function.
SEARCH = sys.modules["placer.search.decomposed.lexicographic"]


def starts(seeds: range, make: Callable[[int], Tiny] = tiny) -> Iterator[tuple[int, Dense, Solution, random.Random]]:
    """Tiny instances with a solution to start from: nothing, or the greedy's."""
    for seed in seeds:
        dense = make_dense(make(seed).instance)
        chance = random.Random(seed)
        yield seed, dense, chance.choice([Solution(), greedy(dense)]), chance


# A subproblem of an instance


@pytest.mark.parametrize("make", [tiny, tiny_neighbours], ids=lambda make: str(make.__name__))
@pytest.mark.parametrize("seeds", seed_blocks(120, 40))
def test_a_part_says_what_the_whole_says(seeds: range, make: Callable[[int], Tiny]) -> None:
    """What a step gains in the subproblem it gains in the whole, on every value, and no rule is broken there."""
    changed = 0
    for seed, dense, solution, chance in starts(seeds, make):
        incumbent = IncumbentState(dense, solution)
        nodes = chance.sample(range(len(dense.nodes)), 1 + len(dense.nodes) // 2)
        pending = chance.sample(range(len(dense.groups)), (1 + len(dense.groups)) // 2)
        subproblem = make_subproblem(incumbent, nodes, pending)
        if not subproblem.dense.classes:
            continue
        before = score_solution(subproblem.dense, subproblem.start)
        repaired = repair(RepairTask(subproblem.dense, subproblem.start, subproblem.must, 0, 600.0, 1.0, seed))
        assert repaired.fault is None
        assert repaired.solution is not None
        after = score_solution(subproblem.dense, repaired.solution)
        old = incumbent.values
        incumbent.change(subproblem.named(subproblem.start), subproblem.named(repaired.solution))
        assert verify(make(seed).instance, dense.placement(incumbent.solution)) == []
        gained = [new - was for new, was in zip(after, before, strict=True)]
        assert gained == [new - was for new, was in zip(incumbent.values, old, strict=True)], seed
        changed += any(gained)
    assert changed > 3


def test_a_part_has_no_node_that_it_does_not_need() -> None:
    dense = make_dense(instance_of(*generate("planted", nodes=64, seed=1).documents))
    incumbent = IncumbentState(dense, greedy(dense))
    subproblem = make_subproblem(incumbent, [0, 1, 2], [])
    assert set(subproblem.nodes[subproblem.dense.masks.any(axis=0)].tolist()) <= {0, 1, 2}
    leaves = dense.span_leaf[subproblem.nodes]
    outside = leaves[~np.isin(subproblem.nodes, [0, 1, 2])]
    assert len(set(outside.tolist())) == len(outside)  # one per leaf, and none where a chosen node stands for the leaf
    assert not set(outside.tolist()) & set(dense.span_leaf[[0, 1, 2]].tolist())


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
        incumbent = IncumbentState(dense, Solution())
        incumbent.change(Solution(), solution)
        drop = Solution({at: chance.randint(1, count) for at, count in solution.items() if chance.random() < 0.5})
        incumbent.change(drop, Solution())
        fresh = IncumbentState(dense, incumbent.solution)
        assert (incumbent.free == fresh.free).all()
        assert (incumbent.used == fresh.used).all()
        assert incumbent.placed == fresh.placed
        assert incumbent.values == fresh.values == score_solution(dense, incumbent.solution)
        assert {k: v for k, v in incumbent.on.items() if v} == fresh.on


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


def test_one_operator_frees_whole_leaves_where_those_are_that_a_waiting_group_must_be_near() -> None:
    """A pod of server is in one rack of 16; where the client that must be near it waits, that rack is always freed."""
    world = World()
    for number in range(64):
        world.node(f"n{number}", labels={"rack": f"r{number // 4}"})
    for rack in range(16):
        world.hyper(f"h{rack}", 1, " ".join(f"n{number}" for number in range(4 * rack, 4 * rack + 4)))
    world.pod("server", labels={"app": "server"})
    world.pod("client", gpu=4, asks=near("rack", app="server"))
    world.pod("other", gpu=4)
    dense = make_dense(world.instance())
    number = {key.name: index for key, index in dense.class_of.items()}
    home = dense.nodes.index("n20")
    there, always = set(range(home, home + 4)), []
    for placed in ([("server", home)], [("server", home), ("client", home + 1)]):
        start = Solution({(number[name], node): 1 for name, node in placed})
        operators = DestroyOperators(IncumbentState(dense, start), 0, random.Random(1))
        operator = operators.operators.index(operators._around_those_asked_for)
        operators.gained = [float(each == operator) * 10**6 for each in range(len(operators.operators))]
        chosen = [operators.choose([8] * len(operators.operators), np.zeros(64, dtype=bool), ()) for _ in range(20)]
        always.append(all(there <= set(each.nodes.tolist()) for each in chosen if each.operator == operator))
    assert always == [True, False]


@pytest.mark.parametrize("criterion", range(6))
def test_no_operator_frees_a_whole_leaf_where_the_model_of_a_few_nodes_is_too_large(criterion: int) -> None:
    dense = make_dense(instance_of(*generate("planted", nodes=64, leaf_size=16, seed=3, overfull=0.3).documents))
    operators = DestroyOperators(IncumbentState(dense, greedy(dense)), criterion, random.Random(1))
    for _ in range(30):
        chosen = operators.choose([4] * len(operators.operators), np.zeros(64, dtype=bool), ())
        assert 1 <= len(chosen.nodes) <= 8


def test_where_kubelets_refuse_pods_some_repairs_are_by_ejection_chains() -> None:
    """Ejection chains get all nodes that may be freed, or half as many as there are, and all groups that wait."""
    made = generate("numa", nodes=40, zones=(2,), seed=3)
    dense = make_dense(instance_of(*made.documents))
    start = greedy(dense).only(lambda index, _: index % 4 > 0)
    operators = DestroyOperators(IncumbentState(dense, start), 0, random.Random(1))
    blocked = np.arange(40) < 4
    sizes = set()
    for _ in range(60):
        choice = operators.choose([4] * len(operators.operators), blocked, {0, 1})
        waiting = {group for group in range(2, len(dense.groups)) if dense.groups[group].classes[0] % 4 == 0}
        if choice.chains:
            sizes.add(len(choice.nodes))
            assert set(choice.pending) == waiting
        else:
            assert len(choice.pending) <= 36
    assert sizes == {20, 36}


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


def test_gangs_return_to_where_they_were_unless_one_pod_has_no_room() -> None:
    """Of two gangs on four nodes the one whose nodes are free is put back; the other is placed where it fits."""
    world = World()
    world.nodes("a b c d")
    world.pods_of("high-0", world.gang("high", 1, priority=10), 4)
    world.pods_of("x-0 x-1", world.gang("x", 2), 3)
    world.pods_of("y-0", world.gang("y", 1), 3)
    instance = world.instance()
    dense = make_dense(instance)

    def solution(places: str) -> Solution:
        named = (each.split(">") for each in places.split())
        return dense.solution(Placement.of((Key("default", pod), node) for pod, node in named))

    former, start = solution("x-0>d x-1>b y-0>c"), solution("high-0>b")
    found = dense.placement(complete(dense, start, former=former)).node_of
    assert found[Key("default", "high-0")] == "b"
    assert found[Key("default", "y-0")] == "c"
    assert {found[Key("default", "x-0")], found[Key("default", "x-1")]} == {"a", "d"}


def test_neighbourhoods_of_a_priority_begin_without_the_lower_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """From an answer in which the lowest priority is in the way of all others."""
    options = {"pod_sizes": (1, 2, 4, 8), "priorities": 3, "overfull": 0.33}
    instance = instance_of(*generate("planted", nodes=120, seed=2, **options).documents)
    dense = make_dense(instance)
    least = min(group.priority for group in dense.groups)
    lowest = [number for number, group in enumerate(dense.groups) if group.priority == least]
    alone = make_subproblem(IncumbentState(dense, Solution()), range(len(dense.nodes)), lowest)
    hint, begun = alone.named(greedy(alone.dense)), dict[int, Solution]()
    run = LargeNeighbourhoodSearch.run

    def watched(self: LargeNeighbourhoodSearch, limits: Budget, heard: Callable[[Solution], bool]) -> None:
        begun.setdefault(self.criterion, self.incumbent.solution.copy())
        run(self, limits, heard)

    monkeypatch.setattr(LargeNeighbourhoodSearch, "run", watched)
    monkeypatch.setattr(SEARCH.DecomposedSearch, "packed", lambda *_: False)
    found = told(dense, SearchOptions(work=0.7, hint=hint))[-1]
    assert hint
    assert begun[0] == {}
    assert score_solution(dense, found)[0] > 0
    assert verify(instance, dense.placement(found)) == []
    # What is left goes to lower priorities when the steps are over.
    assert complete(dense, found) == found


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


def test_auto_uses_neighbourhoods_where_the_cluster_is_not_small(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[int] = []

    def count(*_: object) -> bool:
        used.append(1)
        return False

    for name in ("gangs_relaxed", "neighbourhoods"):
        monkeypatch.setattr(SEARCH.DecomposedSearch, name, count)
    told(odd_sizes(120, 5), SearchOptions(work=0.5))
    assert used
