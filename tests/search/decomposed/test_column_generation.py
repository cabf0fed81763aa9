"""Column generation: fillings against enumeration, answers against every rule, the value against a planted filling."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from placer.arrays import Dense, Solution, score_solution
from placer.arrays.dense_builder import make_dense
from placer.base.deadline import Budget
from placer.problem import Instance
from placer.rules import verify
from placer.search.decomposed.column_generation import refilled
from placer.search.decomposed.node_fillings import Pricing, make_filling_problem
from placer.search.greedy.multi_start import greedy
from tests.support import instance_of, node, pod, pod_group, queue
from tests.tiny import crowded, tiny

#: Enough for every search here to end by itself; the clock never ends it.


#: Kinds of nodes: cpu, GiB of memory, GPUs.
KINDS = ((16, 64, 4), (32, 64, 8), (24, 96, 0))


def drawn(seed: int, nodes: int) -> Instance:
    """Nodes of three kinds, cut at random into pods that fill them (``planted-…``), and a quarter more (``more-…``)."""
    chance = random.Random(seed)
    documents, planted = [], []
    for number in range(nodes):
        cpu, memory, gpus = chance.choice(KINDS)
        documents.append(node(f"n{number}", cpu=cpu, memory=f"{memory}Gi", gpu=gpus))
        while cpu and memory:
            one = (
                chance.randint(1, min(7, cpu)),
                chance.randint(1, min(20, memory)),
                min(gpus, chance.choice([0, 0, 1, 2])),
            )
            cpu, memory, gpus = cpu - one[0], memory - one[1], gpus - one[2]
            planted.append(one)
    for name, those in (("planted", planted), ("more", chance.choices(planted, k=len(planted) // 4))):
        for number, (cpu, memory, gpus) in enumerate(those):
            asked: dict[str, Any] = {"cpu": cpu, "memory": f"{memory}Gi"} | ({"gpu": gpus} if gpus else {})
            documents.append(pod(f"{name}-{number}", **asked))
    return instance_of(*documents)


def broken(instance: Instance, dense: Dense, solution: Solution) -> list[str]:
    return [violation.message for violation in verify(instance, dense.placement(solution))]


@pytest.mark.parametrize("seed", range(8))
def test_pricing_finds_the_best_filling(seed: int) -> None:
    """On nodes so small that all fillings can be listed; the relaxation is never below it."""
    chance = random.Random(seed)
    dense = make_dense(drawn(seed, 3))
    problem = make_filling_problem(dense, Solution(), 0)
    assert problem is not None
    some = sorted(chance.sample(range(len(problem.size)), 5))
    prices = np.zeros(len(problem.size), dtype=np.int64)
    prices[some] = [chance.randint(1, 50) * 1000 for _ in some]
    pricing = Pricing(problem)
    for kind in range(len(problem.nodes)):
        best = 0
        for counts in itertools.product(*(range(int(problem.most[shape, kind]) + 1) for shape in some)):
            if (np.array(counts) @ problem.request[some] <= problem.room[kind]).all():
                best = max(best, int(np.array(counts) @ prices[some]))
        bound, worth = pricing.relaxed(kind, prices)
        pods, _ = pricing.best(kind, prices, problem.most[:, kind], worth, seed=1, effort=10)
        assert (pods @ problem.request <= problem.room[kind]).all()
        assert int(pods @ prices) == best
        assert bound >= best


def starts() -> Iterator[tuple[int, Instance, Dense, Solution]]:
    for seed in range(60):
        instance = (tiny if seed % 2 else crowded)(seed).instance
        dense = make_dense(instance)
        yield seed, instance, dense, random.Random(seed).choice([Solution(), greedy(dense)])


def test_it_keeps_every_rule_and_what_is_not_decided() -> None:
    """Whatever else is in the cluster: gangs, limits, queues, ports, calls."""
    changed = 0
    for seed, instance, dense, solution in starts():
        for priority in sorted({group.priority for group in dense.groups}):
            problem = make_filling_problem(dense, solution, priority)
            found = refilled(dense, solution, priority, Budget(), 1, seed)
            assert broken(instance, dense, found) == []
            if problem is None:
                assert found is solution
                continue
            decided = {index for classes in problem.classes for index in classes}
            held = {place: count for place, count in solution.items() if place[0] not in decided}
            assert {place: count for place, count in found.items() if place[0] not in decided} == held
            changed += found != solution
    assert changed > 10


@pytest.mark.parametrize("seed", [1, 2])
def test_it_fills_what_can_be_filled(seed: int) -> None:
    """The planted pods fit: 97 % of what they weigh is reached, from nothing."""
    dense = make_dense(drawn(seed, 14))
    found = refilled(dense, Solution(), 0, Budget(most=0.5), 2, 0)
    planted = sum(one.weight for one in dense.classes for pod in one.pods if pod.name.startswith("planted"))
    assert score_solution(dense, found)[0] >= 0.97 * planted


def test_one_seed_gives_one_answer() -> None:
    dense = make_dense(drawn(3, 5))
    answers = [refilled(dense, Solution(), 0, Budget(most=0.2), workers, 7) for workers in (1, 2, 1)]
    assert answers[0] == answers[1] == answers[2]


def test_a_queue_takes_no_more_than_its_capability() -> None:
    """Pods of one shape, half of them in a queue that takes three."""
    instance = instance_of(
        *(node(f"n{number}", cpu=8) for number in range(2)),
        queue("narrow", {"cpu": 6}),
        *(pod_group(f"g{number}", minMember=1, queue="narrow") for number in range(8)),
        *(pod(f"a{number}", group=f"g{number}", cpu=2) for number in range(8)),
        *(pod(f"b{number}", cpu=3) for number in range(4)),
    )
    dense = make_dense(instance)
    found = refilled(dense, Solution(), 0, Budget(), 1, 0)
    assert broken(instance, dense, found) == []
    names = sorted(pod.name for pod in dense.placement(found).node_of)
    assert [sum(name.startswith(kind) for name in names) for kind in "ab"] == [2, 4]


def test_a_higher_priority_comes_first() -> None:
    """One pod of a high priority is worth more than four of a low one that would fill the node better."""

    def of(priority: int) -> dict[str, object]:
        return {"priority": priority}

    instance = instance_of(
        node("n", cpu=8),
        pod("high", cpu=5, spec=of(10)),
        *(pod(f"low{number}", cpu=2, spec=of(0)) for number in range(4)),
    )
    dense = make_dense(instance)
    found = refilled(dense, Solution(), 10, Budget(), 1, 0)
    assert "high" in {pod.name for pod in dense.placement(found).node_of}
