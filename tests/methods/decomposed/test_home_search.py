"""Homes by hand on small trees, against every placement of tiny instances, and steps on planted ones."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import islice
from random import Random

import pytest
from ortools.sat.python import cp_model

from placer.dense import Dense, Solution, score_solution
from placer.dense.dense_builder import make_dense
from placer.instance import SubGroupPolicy
from placer.instance.instance_builder import make_instance
from placer.laboratory.generate import PlantedOptions, planted
from placer.manifests import from_documents, validate
from placer.methods.decomposed.home_program import HomeProgram, tells_all
from placer.methods.decomposed.home_search import HomeSearch
from placer.placement import Placement
from placer.verify import verify
from tests.bounds.test_bounds_hold import MOST
from tests.examples import exhaustive, seed_blocks
from tests.methods.decomposed.test_tree_master import criterion_of, solver, spines
from tests.oracle import placements
from tests.tiny import tiny, tiny_network
from tests.world import World, hard, soft

SMALL = {"nodes": 24, "leaf_size": 4, "leaves_per_spine": 3, "pod_sizes": (1, 2, 4, 8), "gang_pods": (2, 9)}
PLANTED = {
    "mixed": PlantedOptions(**SMALL),  # type: ignore[arg-type]
    "subgroups": PlantedOptions(**SMALL, subgroups=0.9, subgroup_sizes=(2, 3, 5), tight=0.5),  # type: ignore[arg-type]
    "odd": PlantedOptions(**{**SMALL, "pod_sizes": (1, 2, 3, 5, 6, 8)}, held=0.3),  # type: ignore[arg-type]
    "types": PlantedOptions(**SMALL, node_types=3, uneven=0.5),  # type: ignore[arg-type]
    "running": PlantedOptions(**SMALL, running=0.3, anchored=0.3),  # type: ignore[arg-type]
}


def least(program: HomeProgram) -> int:
    """The optimum."""
    found = solver()
    assert found.solve(program.model) == cp_model.OPTIMAL
    return round(found.objective_value)


def of_world(world: World) -> tuple[int, int]:
    """Least ``locality`` as the coarse program and the other one have it."""
    dense = make_dense(world.instance())
    return least(HomeProgram(dense, coarse=True)), least(HomeProgram(dense))


# By hand


def test_what_fits_alone_does_not_fit_together() -> None:
    # Five gangs of 5 GPUs, leaves of 8: the fifth is in what is left of two leaves.
    world = spines()
    for name in "pqrst":
        world.pods_of(" ".join(f"{name}{number}" for number in range(5)), world.gang(name, 5, topology=soft()))
    assert of_world(world) == (30, 30)


def test_spines_are_full_before_their_leaves_are() -> None:
    # Three gangs of 6 GPUs and one of 12 take 30 of 32. The 12 beside a 6 are more than a spine of 16: either they are
    # on both spines (36) and each 6 in a leaf (18), or they are in one (24), two of the 6 in leaves (12), one on both.
    world = spines()
    for name in "pqr":
        world.pods_of(" ".join(f"{name}{number}" for number in range(6)), world.gang(name, 6, topology=soft()))
    world.pods_of(" ".join(f"s{number}" for number in range(12)), world.gang("s", 12, topology=soft()))
    assert of_world(world) == (54, 54)


def test_the_coarse_program_sees_leaves_and_no_nodes() -> None:
    # Two nodes of 4 GPUs in a leaf hold no two pods of 3 and a pod of 2, which takes 8 as well.
    world = World()
    world.nodes("a b c d")
    world.hyper("spine", 2, f"{world.hyper('leaf0', 1, 'a b')} {world.hyper('leaf1', 1, 'c d')}")
    gang = world.gang("g", 3, topology=soft())
    world.pods_of("p q", gang, 3)
    world.pod("r", gang, 2)
    coarse, fine = of_world(world)
    assert (coarse, fine) == (3, 6)


def test_homes_of_subgroups_are_inside_those_of_their_group() -> None:
    # Two subgroups of 5, each in a leaf of 8, and the group in one spine.
    world = spines()
    gang = world.gang("g", 10, topology=hard(2), policies=[SubGroupPolicy("part", 5, 0, hard(1))])
    for part in "xy":
        world.pods_of(" ".join(f"{part}{number}" for number in range(5)), gang, part=part)
    assert of_world(world) == (10 * 2 + 10 * 1, 10 * 2 + 10 * 1)


def test_it_says_nothing_where_pods_of_one_shape_differ() -> None:
    assert not any(tells_all(dense) for seed in range(20) if (dense := make_dense(tiny_network(seed).instance)).network)


# Against every placement


def full(dense: Dense, solution: Solution) -> bool:
    return sum(solution.values()) == sum(one.size for one in dense.classes)


blocks = pytest.mark.parametrize("seeds", seed_blocks(500, 50, quick=2))


@blocks
def test_it_is_the_least_of_all_placements_of_everything(seeds: range) -> None:
    looked_at = 0
    for seed in seeds:
        instance = tiny(seed).instance
        dense = make_dense(instance)
        if ("locality", None) not in dense.criteria or not dense.classes or not tells_all(dense):
            continue
        criterion = criterion_of(dense, "locality")
        every = [dense.solution(each) for each in islice(placements(instance), MOST)]
        whole = [each for each in every if full(dense, each)]
        if not whole:
            continue
        looked_at += 1
        program, coarse = HomeProgram(dense), HomeProgram(dense, coarse=True)
        values = [score_solution(dense, each)[criterion] for each in whole]
        found = solver()
        assert found.solve(program.model) == cp_model.OPTIMAL, seed
        assert program.possible, seed
        read = program.read(list(found.response_proto.solution))
        assert verify(instance, dense.placement(read)) == [], seed
        assert full(dense, read), seed
        assert score_solution(dense, read)[criterion] == round(found.objective_value), seed
        assert round(found.objective_value) <= min(values), seed
        assert len(every) == MOST or round(found.objective_value) == min(values), seed
        assert least(coarse) <= round(found.objective_value), seed
    assert looked_at


@blocks
def test_every_placement_is_a_point_of_it(seeds: range) -> None:
    for seed in seeds:
        instance = tiny(seed).instance
        dense = make_dense(instance)
        if ("locality", None) not in dense.criteria or not dense.classes or not tells_all(dense):
            continue
        criterion = criterion_of(dense, "locality")
        for placement in islice(placements(instance), 40):
            solution = dense.solution(placement)
            if full(dense, solution):
                for coarse in (False, True):
                    program = HomeProgram(dense, coarse=coarse)
                    for index, value in program.encoded(solution).items():
                        domain = program.model.proto.variables[index].domain
                        domain.clear()
                        domain.extend([value, value])
                    assert least(program) == score_solution(dense, solution)[criterion], seed


# Steps


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("seed", [0, *exhaustive(1, 2)])
@pytest.mark.parametrize("shape", PLANTED)
def test_steps_gain_and_keep_all_rules(shape: str, seed: int, workers: int) -> None:
    found = planted(replace(PLANTED[shape], seed=seed))
    instance = make_instance(validate(from_documents(found.documents)))
    dense = make_dense(instance)
    assert found.planted is not None
    start = dense.solution(Placement.of(found.planted))
    criterion, search = criterion_of(dense, "locality"), HomeSearch(dense, workers, Random(seed))
    told: list[Solution] = []

    def heard(solution: Solution) -> bool:
        told.append(solution)
        return False

    search.improved(start, lambda: (math.inf, 3 - search.spent) if search.spent < 3 else None, heard)
    values = [score_solution(dense, each)[criterion] for each in (start, *told)]
    assert max(values) == values[0]  # the score of one told may be less than the program knows, so no more is asked
    assert all(verify(instance, dense.placement(each)) == [] and full(dense, each) for each in told)
    bound = search.bound(solver())
    assert bound is not None
    assert bound <= values[-1]


def test_steps_of_one_worker_are_repeatable() -> None:
    found = planted(PLANTED["mixed"])
    dense = make_dense(make_instance(validate(from_documents(found.documents))))
    assert found.planted is not None
    start, answers = dense.solution(Placement.of(found.planted)), []
    for _ in range(2):
        search, told = HomeSearch(dense, 1, Random(3)), list[Solution]()

        def heard(solution: Solution, to: list[Solution] = told) -> bool:
            to.append(solution)
            return False

        def left(steps: HomeSearch = search) -> tuple[float, float] | None:
            return (math.inf, 2 - steps.spent) if steps.spent < 2 else None

        search.improved(start, left, heard)
        answers.append(told)
    assert answers[0]
    assert answers[0] == answers[1]
