"""Parts and steps of instances with calls: what they gain, what they hold, and how they are chosen."""

from __future__ import annotations

import random

import pytest

from placer.arrays import Dense, Solution, score_solution
from placer.arrays.dense_builder import make_dense
from placer.lab.generate import generate
from placer.problem.placement import Placement
from placer.search.decomposed import large_neighbourhood, search
from placer.search.decomposed.incumbent_state import IncumbentState
from placer.search.decomposed.large_neighbourhood import LargeNeighbourhoodSearch, WorkerPool
from placer.search.decomposed.repairing import repair
from placer.search.decomposed.subproblem import make_subproblem
from placer.search.events import SearchOptions
from placer.search.exact import method as exact
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
