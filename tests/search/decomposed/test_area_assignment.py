"""AppGroups by area: splits against enumeration, answers against every rule, the bound against the optimum."""

from __future__ import annotations

import itertools
import math
import random

import pytest

from placer.arrays import Dense, DenseNetwork, Solution, score_solution
from placer.arrays.dense_builder import make_dense
from placer.base.deadline import Budget
from placer.problem import Instance
from placer.rules import verify
from placer.search.decomposed import area_assignment
from placer.search.decomposed.area_assignment import AreaAssignment
from placer.search.greedy.multi_start import greedy
from tests.tiny import crowded_network, tiny_network
from tests.world import World, calls

ZONES, PODS, PER_NODE = 4, 6, 3


def fleet(seed: int) -> Instance:
    """As many AppGroups of six pods as zones of two nodes with room for three each: a ring of calls, and three more."""
    chance, world = random.Random(seed), World()
    for zone in range(ZONES):
        world.nodes(f"n{zone}-0 n{zone}-1", 0, cpu=PER_NODE, area=f"r/z{zone}")
        for other in range(zone):
            world.links("zone", f"z{zone}=z{other}", 10)
    for number in range(ZONES):
        pairs = {(one, (one + 1) % PODS) for one in range(PODS)}
        pairs |= {(one, other) for one, other in (chance.sample(range(PODS), 2) for _ in range(3))}
        app = world.app_group(f"a{number}", *(calls(f"w{one}>w{other}", 10) for one, other in sorted(pairs)))
        for one in range(PODS):
            world.pod(f"a{number}-{one}", None, 0, cpu=1, app=app, workload=f"w{one}")
    return world.instance()


def network_of(dense: Dense) -> DenseNetwork:
    assert dense.network is not None
    return dense.network


def interleaved(dense: Dense) -> Solution:
    """Every AppGroup over all zones."""
    return Solution({(index, index % len(dense.nodes)): 1 for index in range(len(dense.classes))})


def cost_of(dense: Dense, solution: Solution) -> int:
    return score_solution(dense, solution)[dense.criteria.index(("networkCost", None))]


def enumerated(dense: Dense, assignment: AreaAssignment, app: int) -> int:
    """The fewest calls that are cut where an AppGroup is parted over two nodes."""
    pods = assignment.classes[app]
    workload = [dense.workload_of[index] for index in pods]
    best = math.inf
    for half in itertools.combinations(range(PODS), PER_NODE):
        mine = {workload[position] for position in half}
        theirs = set(workload) - mine
        cut = sum(
            (each.origin in mine) != (each.destination in mine)
            for each in network_of(dense).calls
            if {each.origin, each.destination} <= mine | theirs
        )
        best = min(best, cut)
    assert best < math.inf
    return int(best)


#: Columns of a program: all areas by one program, and each by one.
WAYS = {"at once": 5_000, "by area": 130}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", range(4))
def test_every_app_group_gets_its_cheapest_split(seed: int, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the worst start to the sum of what enumeration finds for each alone, which the bound proves."""
    monkeypatch.setattr(area_assignment, "MOST_COLUMNS", WAYS[way])
    instance = fleet(seed)
    dense = make_dense(instance)
    assignment = AreaAssignment(dense, network_of(dense), random.Random(seed))
    least = sum(enumerated(dense, assignment, app) for app in assignment.classes)
    assert len(assignment.classes) == ZONES
    assert assignment.splits.cost_bound(Budget()) == (least, True)
    solution = interleaved(dense)
    for _ in range(20):
        found = assignment.proposed(solution, Budget())
        if found is not None:
            assert verify(instance, dense.placement(found)) == []
            solution = min(solution, found, key=lambda each: cost_of(dense, each))
    assert cost_of(dense, solution) == least


def test_proposals_keep_every_rule_and_every_pod() -> None:
    """Whatever else is there: running pods, limits, gangs, links with little capacity."""
    proposals = 0
    for seed in range(70):
        instance = (tiny_network if seed % 2 else crowded_network)(seed).instance
        dense = make_dense(instance)
        if dense.network is None:
            continue
        solution = greedy(dense)
        assignment = AreaAssignment(dense, dense.network, random.Random(seed))
        for _ in range(3):
            found = assignment.proposed(solution, Budget())
            if found is not None:
                proposals += 1
                assert verify(instance, dense.placement(found)) == []
                assert sum(found.values()) == sum(solution.values())
    assert proposals > 8
