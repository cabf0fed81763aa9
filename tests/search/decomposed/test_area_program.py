"""The program of AppGroups in areas against trying every way; its parts against their definitions."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator

import numpy as np
import pytest

from placer.arrays import Dense, Solution, score_solution
from placer.arrays.dense_builder import make_dense
from placer.bounds.splits import AppGroupSplits
from placer.problem import Instance
from placer.rules import verify
from placer.search.decomposed import area_program
from placer.search.decomposed.area_program import AreaProgram
from tests.world import World, calls

APPS, PODS = 2, 3


def drawn(seed: int) -> Instance:
    """Two areas of two nodes that differ, two AppGroups of three pods, some of which may not be on some nodes."""
    chance, world = random.Random(seed), World()
    for number in range(4):
        world.nodes(f"n{number}", chance.randint(1, 2), cpu=chance.randint(2, 3), area=f"r/z{number // 2}")
    world.links("zone", "z0=z1", 10)
    pairs = list(itertools.combinations(range(PODS), 2))
    for name in "ab"[:APPS]:
        chosen = chance.sample(pairs, 2)
        app = world.app_group(name, *(calls(f"w{one}>w{other}", 10) for one, other in chosen))
        for one in range(PODS):
            not_on = (f"n{chance.randrange(4)}",) if chance.random() < 0.3 else ()
            many = chance.randint(1, 2)
            world.pod(f"{name}-{one}", None, 0, cpu=many, app=app, workload=f"w{one}", not_on=not_on)
    return world.instance()


def ways(dense: Dense) -> Iterator[Solution]:
    """Every way to give all pods nodes, each AppGroup in one area."""
    assert dense.network is not None
    area, of = dense.network.area, dense.workload_of
    apps = [dense.network.workloads[of[index]].app for index in range(len(dense.classes))]
    for nodes in itertools.product(range(len(dense.nodes)), repeat=len(dense.classes)):
        homes = {(app, int(area[node])) for app, node in zip(apps, nodes, strict=True)}
        if len(homes) == len(set(apps)):
            yield Solution(dict.fromkeys(enumerate(nodes), 1))


def cost_of(dense: Dense, solution: Solution) -> int:
    return score_solution(dense, solution)[dense.criteria.index(("networkCost", None))]


def solved(dense: Dense) -> Solution | None:
    assert dense.network is not None
    splits = AppGroupSplits(dense, dense.network)
    apps = []
    for app in splits.classes:
        found = splits.of(app)
        if found is None:
            return None
        apps.append((splits.graph(app), found.parts))
    nodes = {area: np.flatnonzero(dense.network.area == area) for area in range(2)}
    return AreaProgram(dense, dense.network, dense.free, nodes, apps).solved(math.inf)


def test_no_way_is_cheaper() -> None:
    possible, impossible = 0, 0
    for seed in range(16):
        instance = drawn(seed)
        dense = make_dense(instance)
        kept = [each for each in ways(dense) if not verify(instance, dense.placement(each))]
        best = min((cost_of(dense, each) for each in kept), default=None)
        found = solved(dense)
        assert (found is None) == (best is None), seed
        if found is None:
            impossible += 1
            continue
        assert verify(instance, dense.placement(found)) == []
        assert cost_of(dense, found) == best
        possible += 1
    assert possible > 5
    assert impossible > 2


def test_nodes_that_can_be_laid_out_in_too_many_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    dense = next(each for each in map(make_dense, map(drawn, range(16))) if solved(each) is not None)
    monkeypatch.setattr(area_program, "MOST_FILLINGS", 0)
    assert solved(dense) is None
