"""Parts and steps of instances with calls: what they gain, what they hold, and how they are chosen."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

from placer.dense import Dense, Solution, make_dense, score_solution
from placer.dense.network import network_cost
from placer.laboratory.generate import generate
from placer.methods.decomposed import neighbourhoods, search
from placer.methods.decomposed.choose import Chooser
from placer.methods.decomposed.incumbent_state import IncumbentState
from placer.methods.decomposed.neighbourhoods import Crew, Neighbourhoods
from placer.methods.decomposed.part import Part, make_part
from placer.methods.decomposed.step import Step, carry_out
from placer.methods.events import SearchOptions
from placer.methods.exact import model
from placer.methods.greedy import greedy
from placer.placement import MAXIMISED, Placement
from placer.verify import verify
from tests.support import instance_of
from tests.test_decomposed import OutOfOrder, so_many
from tests.tiny import tiny_network


def starts(seeds: range) -> Iterator[tuple[int, Dense, Solution, random.Random]]:
    """Tiny instances with a solution to start from: nothing, or the greedy's."""
    for seed in seeds:
        dense, chance = make_dense(tiny_network(seed).instance), random.Random(seed)
        yield seed, dense, chance.choice([{}, greedy(dense, seed=seed)]), chance


def planted() -> tuple[Dense, Solution]:
    """Four AppGroups on nine nodes in nine zones, and where they were planted."""
    options = {"app_groups": 4, "workloads": (5, 5), "replicas": (1, 4), "regions": 3, "zones": 3, "nodes": 9}
    made = generate("network", seed=8, **options)
    assert made.planted is not None
    dense = make_dense(instance_of(*made.documents))
    return dense, dense.solution(Placement.of(made.planted))


# A part of an instance


@pytest.mark.parametrize("first", range(0, 300, 50))
def test_a_part_says_what_the_whole_says(first: int) -> None:
    """What a step gains in the part it gains in the whole, on every value, and no rule is broken there."""
    changed, calling = 0, 0
    for seed, dense, solution, chance in starts(range(first, first + 50)):
        part, standing = some_part(dense, solution, chance)
        if not part.dense.classes:
            continue
        level = chance.randrange(len(dense.levels))
        stepped = carry_out(Step(part.dense, part.start, part.must, level, 10.0, 1.0, seed))
        assert stepped.fault is None, seed
        assert stepped.solution is not None
        old = standing.values
        standing.change(part.named(part.start), part.named(stepped.solution))
        assert verify(tiny_network(seed).instance, dense.placement(standing.solution)) == [], seed
        assert list(stepped.gains) == [new - was for new, was in zip(standing.values, old, strict=True)], seed
        changed += any(stepped.gains)
        calling += any(stepped.gains) and part.dense.network is not None
    assert changed >= 5
    assert calling >= 3


def some_part(dense: Dense, solution: Solution, chance: random.Random) -> tuple[Part, IncumbentState]:
    standing = IncumbentState(dense, solution)
    nodes = chance.sample(range(len(dense.nodes)), 1 + len(dense.nodes) // 2)
    groups = range(len(dense.groups))
    pending = chance.sample(groups, (1 + len(groups)) // 2)
    still = chance.sample(groups, chance.randint(0, len(groups) // 3))
    waits = [group for group in pending if group not in still]
    return make_part(standing, nodes, waits, still=still, slack=chance.random() < 0.5), standing


def test_without_slack_a_part_may_only_use_what_its_pods_had_of_a_link() -> None:
    """The part is everything: it had all that is used, and with slack all there is."""
    dense, solution = planted()
    assert dense.network is not None
    standing, everything = IncumbentState(dense, solution), (range(len(dense.nodes)), range(len(dense.groups)))
    own = make_part(standing, *everything, slack=False).dense.network
    ample = make_part(standing, *everything).dense.network
    assert own is not None
    assert ample is not None
    assert standing.communication is not None
    assert list(own.room) == standing.communication.used()
    assert sum(own.room) > 0
    assert ample.room == dense.network.room


def test_calls_are_counted_as_if_it_were_made_anew() -> None:
    for _, dense, solution, chance in starts(range(60)):
        standing = IncumbentState(dense, {})
        standing.change({}, solution)
        drop = {place: chance.randint(1, count) for place, count in solution.items() if chance.random() < 0.5}
        standing.change(drop, {})
        counted, fresh = standing.communication, IncumbentState(dense, standing.solution).communication
        if dense.network is None or counted is None or fresh is None:
            assert counted is fresh
            continue
        assert counted.used() == fresh.used()
        assert counted.costs == fresh.costs
        assert (counted.pull == fresh.pull).all()
        assert [dict(each) for each in counted.placed] == [dict(each) for each in fresh.placed]
        assert [dict(each) for each in counted.on] == [dict(each) for each in fresh.on]
        cost = network_cost(dense.network, standing.solution.items()) - network_cost(dense.network, ())
        assert counted.cost == cost


# Choosing


def test_every_way_chooses_allowed_nodes_once() -> None:
    """Where one AppGroup is looked at alone, all groups of the others are held, and the part decides about it only."""
    dense, solution = planted()
    level = [name for name, _ in dense.levels].index("networkCost")
    standing = IncumbentState(dense, solution)
    chooser, barred = Chooser(standing, level, random.Random(1)), np.arange(len(dense.nodes)) == 4
    seen = Counter[tuple[int, bool]]()
    for _ in range(40):
        way, nodes, pending, held, _ = chooser.choose(4, 6, barred, {0, 1})
        seen[way, bool(held)] += 1
        assert len(set(nodes.tolist())) == len(nodes)
        assert not barred[nodes].any()
        assert not {0, 1} & set(pending)
        assert held.isdisjoint(pending)
        part = make_part(standing, nodes.tolist(), pending, still={0, 1} | held)
        assert len(part.apps) <= 1 or not held
        assert not held or len(nodes) == 6
    assert {way for way, _ in seen} == set(range(len(chooser.ways)))
    assert any(held for _, held in seen)


# Steps


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("first", range(0, 60, 20))
def test_steps_keep_every_rule_and_never_lose_a_value(first: int, workers: int, small_steps: None) -> None:
    del small_steps
    for seed, dense, solution, chance in starts(range(first, first + 20)):
        for level in range(len(dense.levels)):
            steps = Neighbourhoods(dense, level, solution, seed, chance, OutOfOrder(workers, chance))
            before = steps.standing.values
            steps.run(so_many(8), lambda _: False)
            solution = dict(steps.standing.solution)
            assert verify(tiny_network(seed).instance, dense.placement(solution)) == [], seed
            for (name, _), old, new in zip(dense.levels[: level + 1], before, steps.standing.values, strict=False):
                if old != new:
                    assert (new > old) == (name in MAXIMISED)
                    break


def test_steps_bring_pods_that_call_each_other_together() -> None:
    """From where they were planted, which the limits allow but nothing recommends."""
    dense, solution = planted()
    level = [name for name, _ in dense.levels].index("networkCost")
    before = score_solution(dense, solution)
    steps = Neighbourhoods(dense, level, solution, 0, random.Random(0), Crew("inline", 1))
    steps.run(so_many(30), lambda _: False)
    assert steps.standing.values[:level] == before[:level]
    assert steps.standing.values[level] < before[level] / 2


def test_a_small_cluster_whose_model_is_too_large_is_looked_at_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """All nine nodes are too many for one model; steps shrink to what is not."""
    dense, solution = planted()
    monkeypatch.setattr(model, "MOST_VARIABLES", 400)
    made: list[int] = []
    monkeypatch.setattr(neighbourhoods, "carry_out", lambda step: made.append(len(step.dense.nodes)) or carry_out(step))
    end = search(dense, SearchOptions(work=3.0, hint=solution), lambda _: None)
    assert end == "time"
    assert min(made) < neighbourhoods.LEAST
