"""The master by hand on small trees, against every placement of tiny instances, and against the exact method."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from itertools import product
from random import Random

import pytest
from ortools.sat.python import cp_model

from placer.arrays import Dense, Solution, score_solution
from placer.arrays.dense_builder import make_dense
from placer.base.deadline import NEVER
from placer.base.linear import ColumnSum, IntegerProgram, Row
from placer.kube.manifests import from_documents, validate
from placer.lab.generate import PlantedOptions, planted
from placer.problem import Instance
from placer.problem.instance_builder import make_instance
from placer.rules import verify
from placer.search.decomposed import search
from placer.search.decomposed.master import TreeMaster
from placer.search.decomposed.master.measured import measure_instance
from placer.search.decomposed.master.program import add_arc_flow
from placer.search.events import BoundFound, Event, Improved, SearchOptions
from placer.search.exact.method import search as exact_search
from placer.search.greedy.multi_start import greedy
from tests.bounds.test_bounds_hold import beaten, hands, known
from tests.examples import exhaustive, seed_blocks
from tests.world import World, soft

SMALL = {"nodes": 16, "leaf_size": 4, "leaves_per_spine": 2, "pod_sizes": (1, 2, 4, 8), "gang_pods": (2, 9)}
PLANTED = {
    "whole": PlantedOptions(nodes=24, leaf_size=4, leaves_per_spine=2),
    "mixed": PlantedOptions(**SMALL),  # type: ignore[arg-type]
    "subgroups": PlantedOptions(**SMALL, subgroups=0.9, subgroup_sizes=(2, 3, 5), tight=0.5),  # type: ignore[arg-type]
    "elastic": PlantedOptions(**SMALL, elastic=0.6, roles=0.5, priorities=3),  # type: ignore[arg-type]
    "tiers": PlantedOptions(**{**SMALL, "leaf_size": 2}, spines_per_pod=2),  # type: ignore[arg-type]
    "loose": PlantedOptions(**SMALL, fill=0.7),  # type: ignore[arg-type]
    "running": PlantedOptions(**SMALL, running=0.3, anchored=0.3),  # type: ignore[arg-type]
    "odd": PlantedOptions(**{**SMALL, "pod_sizes": (1, 2, 3, 5, 7, 8)}),  # type: ignore[arg-type]
}


def solver() -> cp_model.CpSolver:
    """One that gives the same answer again."""
    found = cp_model.CpSolver()
    found.parameters.num_workers = 1
    found.parameters.max_deterministic_time = 10.0
    return found


def criterion_of(dense: Dense, name: str) -> int:
    return [each for each, _ in dense.criteria].index(name)


def spines() -> World:
    """Two spines (tier 2) of two leaves of two nodes of 4 GPUs: a leaf has 8, a spine 16."""
    world = World()
    world.nodes("a b c d e f g h")
    leaves = [world.hyper(f"leaf{number}", 1, names) for number, names in enumerate(("a b", "c d", "e f", "g h"))]
    world.hyper("spine0", 2, " ".join(leaves[:2]))
    world.hyper("spine1", 2, " ".join(leaves[2:]))
    return world


def full(dense: Dense) -> tuple[int, ...]:
    """Values in which all is placed; of the others it does not matter what they are."""
    totals = Counter[int]()
    for one in dense.classes:
        totals[dense.groups[one.group].priority] += one.weight * one.size
    return tuple(0 if priority is None else totals[priority] for _, priority in dense.criteria)


def least(world: World) -> tuple[int, int]:
    """Bounds of ``locality``, and of ``span`` among the placements that reach it."""
    dense = make_dense(world.instance())
    master, criterion = TreeMaster(dense), criterion_of(dense, "locality")
    first = master.bound(criterion, full(dense), NEVER)
    assert first is not None
    assert first.by == "master"
    values = (*full(dense)[:criterion], first.bound)
    second = master.bound(criterion + 1, values, NEVER)
    assert second is not None
    assert second.context == values
    return first.bound, second.bound


# By hand


def test_what_fits_alone_does_not_fit_together() -> None:
    # Five gangs of 5 GPUs: each fits into a leaf of 8, but a leaf holds one. The fifth gets what is left in the two
    # leaves of a spine: 4 * 5 * 1 + 5 * 2, and two leaves.
    world = spines()
    for name in "pqrst":
        world.pods_of(" ".join(f"{name}{number}" for number in range(5)), world.gang(name, 5, topology=soft()))
    assert least(world) == (30, 6)


def test_spines_are_filled_like_leaves() -> None:
    # Three gangs of 9 GPUs: none fits into a leaf, and of the two spines of 16 each holds one. The third is under the
    # root, of tier 3. Of 32 GPUs 27 are taken, so that 4 leaves are enough for 2 + 2 and another 2 pieces.
    world = spines()
    for name in "pqr":
        world.pods_of(" ".join(f"{name}{number}" for number in range(9)), world.gang(name, 9, topology=soft()))
    assert least(world) == (9 * 2 + 9 * 2 + 9 * 3, 6)


def test_pods_that_run_are_where_they_are() -> None:
    # The gang runs on both spines: its two new pods count at the root's tier like the two that run.
    world = spines()
    gang = world.gang("g", 4, topology=soft())
    world.running("r0", "a", gang)
    world.running("r1", "h", gang)
    world.pods_of("p0 p1", gang)
    assert least(world) == (12, 2)


def test_no_tree_no_master() -> None:
    world = World()
    world.nodes("a b")
    world.pods_of("p q", world.gang("g", 2, topology=soft()))
    assert measure_instance(make_dense(world.instance())) is None
    world.hyper("leaf", 1, "a")  # b lies in no leaf
    assert measure_instance(make_dense(world.instance())) is None


# Its parts


def test_flows_hold_every_filling_and_no_other() -> None:
    # All multisets of items of 2, 3 and 5 pieces that fit into 7, for one bin: a point for each, none beyond.
    for counts in product(range(4), repeat=3):
        program = IntegerProgram()
        used = add_arc_flow(program, 7, 1, [2, 3, 5]).used()
        for volume, count in zip((2, 3, 5), counts, strict=True):
            program.equal(ColumnSum().add(1, *used.get(volume, ())), count)
        fits = sum(volume * count for volume, count in zip((2, 3, 5), counts, strict=True)) <= 7
        found = program.point(ColumnSum(), range(len(program.upper)), math.inf, 1000, 0.0)
        assert (found is not None) == fits, counts


@pytest.mark.parametrize("seed", range(30))
def test_the_bound_of_a_program_is_below_every_point(seed: int) -> None:
    chance = Random(seed)
    program = IntegerProgram()
    columns = [program.column(chance.randint(1, 4)) for _ in range(4)]
    inside = [chance.randint(0, most) for most in program.upper]
    for number in range(3):
        row = ColumnSum()
        for column in columns:
            row.add(chance.randint(-3, 3), column)
        reached = int(row.at(inside.__getitem__))
        if number:
            program.at_most(row, reached + chance.randint(0, 2))
        else:
            program.equal(row, reached)
    value = ColumnSum()
    for column in columns:
        value.add(chance.randint(-5, 5), column)
    points = [
        point
        for point in product(*(range(most + 1) for most in program.upper))
        if all(_keeps(row, point) for row in program.rows)
    ]
    best = min(int(value.at(point.__getitem__)) for point in points)
    bound = program.minimum(value, math.inf)
    assert bound is not None
    assert bound <= best
    found = program.point(value, columns, math.inf, 1000, 0.0)
    assert found is not None
    assert value.at(found.__getitem__) == best


def _keeps(row: Row, point: tuple[int, ...]) -> bool:
    total = sum(point[column] * many for column, many in zip(row.columns, row.coefficients, strict=True))
    return total == row.room if row.equal else total <= row.room


# Against everything


@pytest.mark.parametrize("seeds", seed_blocks(500, 50))
def test_no_placement_beats_what_the_master_says(seeds: range) -> None:
    seen = exact = 0
    for seed in seeds:
        dense, values, _ = known(seed)
        master = TreeMaster(dense)
        for hand, criterion in product(hands(dense, values, seed), range(len(dense.criteria))):
            if master.knows(criterion) and _all_placed(dense, hand, criterion):
                bound = master.bound(criterion, hand, NEVER)
                assert bound is not None
                assert bound.context == hand[:criterion]
                assert not [found for found in values if beaten(dense, bound, found)], (seed, bound)
                seen += 1
                exact += bound.bound == min(each[criterion] for each in values if each[:criterion] == hand[:criterion])
    assert seen > 10
    assert exact > 0.8 * seen


def _all_placed(dense: Dense, values: tuple[int, ...], criterion: int) -> bool:
    """Whether the values before a criterion say that every pod is placed."""
    wanted = full(dense)
    told = {dense.criteria[before] for before in range(criterion) if values[before] == wanted[before]}
    return all(("placed", group.priority) in told for group in dense.groups)


def made(options: PlantedOptions) -> tuple[Instance, Dense]:
    instance = make_instance(validate(from_documents(planted(options).documents)))
    return instance, make_dense(instance)


def proved(dense: Dense) -> Solution:
    """The best solution, as the exact method proves it without knowing the master."""
    best = [Solution()]

    def emit(event: Event) -> None:
        if isinstance(event, Improved):
            best[0] = event.solution

    assert exact_search(dense, SearchOptions(workers=1, hint=greedy(dense)), emit) == "proved"
    return best[0]


@pytest.mark.parametrize("seed", [0, *exhaustive(1, 2)])
@pytest.mark.parametrize("shape", PLANTED)
def test_the_master_agrees_with_the_exact_method(shape: str, seed: int) -> None:
    instance, dense = made(replace(PLANTED[shape], seed=seed))
    values, criterion = score_solution(dense, proved(dense)), criterion_of(dense, "locality")
    master = TreeMaster(dense)
    for each in (criterion, criterion + 1):
        bound = master.bound(each, values, NEVER)
        assert bound is not None
        assert bound.bound <= values[each]
    for _ in range(2):
        found = master.propose(criterion, values, NEVER, solver())
        if found is None:
            assert shape in ("odd", "running", "whole"), "where sizes divide one another layouts are found"
            continue
        assert verify(instance, dense.placement(found)) == []
        reached = score_solution(dense, found)
        assert reached[:criterion] == values[:criterion]
        assert reached[criterion] >= values[criterion]
        assert reached[criterion] == values[criterion] or shape in ("odd", "running", "whole")


def test_a_search_of_a_larger_cluster_ends_with_the_masters_proof() -> None:
    _, dense = made(PlantedOptions(nodes=128, seed=1, pod_sizes=(1, 2, 4, 8)))
    start = greedy(dense)
    events: list[Event] = []
    assert search(dense, SearchOptions(work=60.0, workers=1, hint=start), events.append) == "proved"
    values = [score_solution(dense, event.solution) for event in events if isinstance(event, Improved)][-1]
    told = [event for event in events if isinstance(event, BoundFound) and event.by == "master"]
    for criterion in (criterion_of(dense, "locality"), criterion_of(dense, "span")):
        assert values[criterion] < score_solution(dense, start)[criterion]
        assert any(bound.criterion == criterion and bound.bound == values[criterion] for bound in told)
