"""Parts and steps of instances with calls: what they gain, what they hold, and how they are chosen."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from placer.arrays import Dense, Solution, score_solution
from placer.arrays.dense_builder import make_dense
from placer.lab.generate import generate
from placer.problem.placement import Placement
from placer.rules import verify
from placer.search.decomposed import large_neighbourhood, search
from placer.search.decomposed.destroy import DestroyOperators
from placer.search.decomposed.incumbent_state import IncumbentState
from placer.search.decomposed.large_neighbourhood import LargeNeighbourhoodSearch, WorkerPool
from placer.search.decomposed.repairing import RepairTask, repair
from placer.search.decomposed.subproblem import Subproblem, make_subproblem
from placer.search.events import SearchOptions
from placer.search.exact import method as exact
from tests.examples import seed_blocks
from tests.search.decomposed.test_decomposed import so_many, starts
from tests.support import instance_of
from tests.tiny import tiny_network


def planted() -> tuple[Dense, Solution]:
    """Four AppGroups on nine nodes in nine zones, and where they were planted."""
    options = {"app_groups": 4, "workloads": (5, 5), "replicas": (1, 4), "regions": 3, "zones": 3, "nodes": 9}
    made = generate("network", seed=8, **options)
    assert made.planted is not None
    dense = make_dense(instance_of(*made.documents))
    return dense, dense.solution(Placement.of(made.planted))


# A subproblem of an instance


@pytest.mark.parametrize("seeds", seed_blocks(300, 50, quick=2))
def test_a_part_says_what_the_whole_says(seeds: range) -> None:
    """What a step gains in the subproblem it gains in the whole, on every value, and no rule is broken there."""
    changed, calling = 0, 0
    for seed, dense, solution, chance in starts(seeds, tiny_network):
        subproblem, incumbent = some_subproblem(dense, solution, chance)
        if not subproblem.dense.classes:
            continue
        criterion = chance.randrange(len(dense.criteria))
        repaired = repair(RepairTask(subproblem.dense, subproblem.start, subproblem.must, criterion, 600.0, 1.0, seed))
        assert repaired.fault is None, seed
        assert repaired.solution is not None
        old = incumbent.values
        incumbent.change(subproblem.named(subproblem.start), subproblem.named(repaired.solution))
        assert verify(tiny_network(seed).instance, dense.placement(incumbent.solution)) == [], seed
        assert list(repaired.gains) == [new - was for new, was in zip(incumbent.values, old, strict=True)], seed
        changed += any(repaired.gains)
        calling += any(repaired.gains) and subproblem.dense.network is not None
    assert changed >= 5
    assert calling >= 3


def some_subproblem(dense: Dense, solution: Solution, chance: random.Random) -> tuple[Subproblem, IncumbentState]:
    incumbent = IncumbentState(dense, solution)
    nodes = chance.sample(range(len(dense.nodes)), 1 + len(dense.nodes) // 2)
    groups = range(len(dense.groups))
    pending = chance.sample(groups, (1 + len(groups)) // 2)
    still = chance.sample(groups, chance.randint(0, len(groups) // 3))
    waits = [group for group in pending if group not in still]
    return make_subproblem(incumbent, nodes, waits, locked=still, slack=chance.random() < 0.5), incumbent


def test_without_slack_a_part_may_only_use_what_its_pods_had_of_a_link() -> None:
    """The subproblem is everything: it had all that is used, and with slack all there is."""
    dense, solution = planted()
    assert dense.network is not None
    incumbent, everything = IncumbentState(dense, solution), (range(len(dense.nodes)), range(len(dense.groups)))
    own = make_subproblem(incumbent, *everything, slack=False).dense.network
    ample = make_subproblem(incumbent, *everything).dense.network
    assert own is not None
    assert ample is not None
    left = incumbent.shared_room().links
    assert list(own.room) == [room - each for room, each in zip(dense.network.room, left, strict=True)]
    assert sum(own.room) > 0
    assert ample.room == dense.network.room


def test_calls_are_counted_as_if_it_were_made_anew() -> None:
    for _, dense, solution, chance in starts(range(60), tiny_network):
        incumbent = IncumbentState(dense, Solution())
        incumbent.change(Solution(), solution)
        drop = Solution({at: chance.randint(1, count) for at, count in solution.items() if chance.random() < 0.5})
        incumbent.change(drop, Solution())
        counted, fresh = incumbent.communication, IncumbentState(dense, incumbent.solution).communication
        if dense.network is None or counted is None or fresh is None:
            assert counted is fresh
            continue
        assert counted.left() == fresh.left()
        assert counted.costs == fresh.costs
        assert (counted.pull == fresh.pull).all()
        assert [dict(each) for each in counted.placed] == [dict(each) for each in fresh.placed]
        assert [dict(each) for each in counted.on] == [dict(each) for each in fresh.on]
        cost = dense.network.total_cost(incumbent.solution.items()) - dense.network.total_cost(())
        assert counted.cost == cost


# Choosing


def test_every_operator_chooses_allowed_nodes_once() -> None:
    """Where one AppGroup is looked at alone, all other groups are fixed, and the subproblem decides about it only."""
    dense, solution = planted()
    criterion = [name for name, _ in dense.criteria].index("networkCost")
    incumbent = IncumbentState(dense, solution)
    operators, blocked = DestroyOperators(incumbent, criterion, random.Random(1)), np.arange(len(dense.nodes)) == 4
    seen = Counter[tuple[int, bool]]()
    for _ in range(40):
        operator, nodes, pending, fixed, _ = operators.choose([4, 6], blocked, {0, 1})
        seen[operator, bool(fixed)] += 1
        assert len(set(nodes.tolist())) == len(nodes)
        assert not blocked[nodes].any()
        assert not {0, 1} & set(pending)
        assert fixed.isdisjoint(pending)
        subproblem = make_subproblem(incumbent, nodes.tolist(), pending, locked={0, 1} | fixed)
        assert len(subproblem.apps) <= 1 or not fixed
        assert not fixed or len(nodes) == 6
    assert {operator for operator, _ in seen} == set(range(len(operators.operators)))
    assert any(fixed for _, fixed in seen)


# Steps


def test_steps_bring_pods_that_call_each_other_together() -> None:
    """From where they were planted, which the limits allow but nothing recommends."""
    dense, solution = planted()
    criterion = [name for name, _ in dense.criteria].index("networkCost")
    before = score_solution(dense, solution)
    steps = LargeNeighbourhoodSearch(dense, criterion, solution, 0, random.Random(0), WorkerPool("inline", 1))
    steps.run(so_many(10), lambda _: False)
    assert steps.incumbent.values[:criterion] == before[:criterion]
    assert steps.incumbent.values[criterion] < before[criterion] / 2


def test_a_small_cluster_whose_model_is_too_large_is_looked_at_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """All nine nodes, a leaf, are too many for one model; steps shrink to what is not, after a few."""
    dense, solution = planted()
    monkeypatch.setattr(exact, "MOST_VARIABLES", 400)
    made: list[int] = []
    monkeypatch.setattr(large_neighbourhood, "repair", lambda step: made.append(len(step.dense.nodes)) or repair(step))
    end = search(dense, SearchOptions(work=1.0, hint=solution), lambda _: None)
    assert end == "time"
    assert min(made) < large_neighbourhood.LEAST
    assert made.count(len(dense.nodes)) < 100
