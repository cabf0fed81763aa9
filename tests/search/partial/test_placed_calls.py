"""What the greedy counts of calls, step by step against the rules; and what becomes of it when pods are moved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from random import Random

from placer.arrays import Dense, Solution
from placer.arrays.dense_builder import make_dense
from placer.problem import Instance
from placer.problem.placement import Placement
from placer.rules import verify
from placer.rules.scoring import score
from placer.search.greedy.gang_admission import ruin_and_recreate
from placer.search.greedy.local_search import move_pods
from placer.search.greedy.state import GreedyLayout, GreedyState
from placer.search.numa.binding_order import aligned
from placer.search.partial import LIMITLESS
from tests.oracle import placements
from tests.search.greedy.test_call_costs import cost
from tests.tiny import tiny_network
from tests.tiny_numa import tiny_numa


def broken(instance: Instance, dense: Dense, solution: Solution) -> bool:
    """Whether C8 or C9 say no."""
    return any(found.rule in ("C8", "C9") for found in verify(instance, dense.placement(solution)))


def may(state: GreedyState, workload: int, area: int) -> bool:
    """Whether one more pod may be in an area, by what the state has counted."""
    communication = state.communication
    assert communication is not None
    carried = communication.carried(workload, area)
    assert min(carried, LIMITLESS) == communication.carried_by_area(workload)[area]
    assert (communication.most(workload)[area] > 0) == bool(communication.near(workload)[area] and carried)
    return bool(communication.near(workload)[area] and carried)


def walked(dense: Dense, random: Random) -> Iterator[tuple[GreedyState, int, int]]:
    """Take pods that may be where they are put and undo some; yield the state with a class and a node to ask about."""
    layout = GreedyLayout(dense)
    state = GreedyState(layout)
    marks = [state.mark()]
    calling = sorted(dense.workload_of)
    for _ in range(25):
        index, node = random.choice(calling), random.randrange(len(dense.nodes))
        if not (state.left(index) and state.fits(layout.shape_of[index])[node]):
            continue
        yield state, index, node
        if random.random() < 0.2:
            state.undo(marks.pop() if len(marks) > 1 else marks[0])
        elif may(state, dense.workload_of[index], layout.calls.area[node] if layout.calls is not None else -1):
            marks.append(state.mark())
            state.take(index, [node], [1])
    state.undo(0)
    yield state, calling[0], 0


def test_what_may_be_where_is_what_the_rules_say() -> None:
    """Asked at every step of a random walk, under both readings of C8; what pods cost is counted as O3 counts them."""
    answers: Counter[tuple[bool, bool]] = Counter()
    for seed in range(120):
        instance = tiny_network(seed).instance
        dense = make_dense(instance)
        if dense.network is None or not dense.workload_of:
            continue
        nothing = cost(instance, Placement()) if "networkCost" in instance.policy.levels else None
        for state, index, node in walked(dense, Random(seed)):
            solution = state.solution()
            assert not broken(instance, dense, solution)
            assert state.communication is not None
            if nothing is not None:
                assert state.communication.cost == cost(instance, dense.placement(solution)) - nothing
            if state.left(index):
                more = Solution({**solution, (index, node): solution.get((index, node), 0) + 1}, solution.order)
                allowed = may(state, dense.workload_of[index], int(dense.network.area[node]))
                assert allowed != broken(instance, dense, more), f"seed {seed}: {index} on {node} beside {solution}"
                answers[allowed, dense.network.majority] += 1
    assert min(answers[allowed, majority] for allowed in (True, False) for majority in (True, False)) > 50


def test_undone_is_as_if_never_done() -> None:
    for seed in range(60):
        dense = make_dense(tiny_network(seed).instance)
        if dense.network is not None and dense.workload_of:
            *_, (state, _, _) = walked(dense, Random(seed))
            fresh = GreedyState(state.layout).communication
            assert state.communication is not None
            assert fresh is not None
            assert state.communication.cost == fresh.cost == 0
            for name in ("far", "pull", "surplus", "room"):
                assert (getattr(state.communication, name) == getattr(fresh, name)).all()
            for name in ("placed", "held", "on"):
                assert [dict(each) for each in getattr(state.communication, name)] == [
                    dict(each) for each in getattr(fresh, name)
                ]


def starts(step: int) -> Iterator[tuple[Instance, Placement, GreedyState]]:
    """Every ``step``-th placement of tiny instances that have calls."""
    for seed in range(60):
        instance = tiny_network(seed).instance
        dense = make_dense(instance)
        if dense.network is not None:
            for start in islice(placements(instance), 0, 400, step):
                yield instance, start, GreedyState(GreedyLayout(dense), dense.solution(start))


def test_moving_pods_makes_calls_cheaper_and_nothing_worse() -> None:
    """Begun from valid placements of tiny instances: O1 and O2 stay, O3 falls or stays, and all rules are kept."""
    fell = 0
    for instance, start, state in starts(8):
        move_pods(state, state.dense.workload_of, 10**9)
        end = state.dense.placement(state.solution())
        assert verify(instance, end) == []
        for before, after in zip(score(instance, start), score(instance, end), strict=True):
            if before.name in ("admitted", "placed", "locality", "span"):
                assert before.value == after.value
            elif before.name == "networkCost":
                assert after.value <= before.value
                fell += after.value < before.value
    assert fell > 20


def test_placing_app_groups_again_keeps_the_rules_and_places_no_less() -> None:
    grew = 0
    for instance, start, state in starts(16):
        ruin_and_recreate(state, 10**9)
        end = state.dense.placement(state.solution())
        assert verify(instance, end) == []
        before, after = (
            [value.value for value in score(instance, each) if value.name == "placed"] for each in (start, end)
        )
        assert after >= before
        grew += after > before
    assert grew > 20


def test_kubelets_admit_what_is_moved_and_placed_again() -> None:
    """Instances with calls and NUMA zones: C10 holds as it did, whatever moves."""
    changed = 0
    for seed in range(2, 200, 3):
        instance = tiny_numa(seed).instance
        dense = make_dense(instance)
        if dense.network is None or dense.numa is None:
            continue
        for start in islice(placements(instance), 0, 400, 8):
            state = GreedyState(GreedyLayout(dense), dense.solution(start))
            move_pods(state, dense.workload_of, 10**9)
            ruin_and_recreate(state, 10**9)
            end = aligned(instance, dense.placement(state.solution()))
            assert verify(instance, end) == [], f"seed {seed}"
            changed += end.node_of != start.node_of
    assert changed > 10
