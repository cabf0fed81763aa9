"""Homes by hand on small trees, against every placement of tiny instances, and steps on planted ones."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from ortools.sat.python import cp_model

from placer.arrays import Dense, Solution, beats, score_solution
from placer.arrays.dense_builder import make_dense
from placer.base.deadline import Budget
from placer.kube.manifests import from_documents, validate
from placer.lab.generate import PlantedOptions, planted
from placer.problem.instance_builder import make_instance
from placer.problem.placement import Placement
from placer.rules import verify
from placer.search.decomposed.pooled_search import PooledSearch
from placer.search.exact.pooled_model import PooledModel
from tests.examples import exhaustive
from tests.search.decomposed.test_tree_master import criterion_of, solver

SMALL = {"nodes": 24, "leaf_size": 4, "leaves_per_spine": 3, "pod_sizes": (1, 2, 4, 8), "gang_pods": (2, 9)}
PLANTED = {
    "mixed": PlantedOptions(**SMALL),  # type: ignore[arg-type]
    "subgroups": PlantedOptions(**SMALL, subgroups=0.9, subgroup_sizes=(2, 3, 5), tight=0.5),  # type: ignore[arg-type]
    "odd": PlantedOptions(**{**SMALL, "pod_sizes": (1, 2, 3, 5, 6, 8)}, held=0.3),  # type: ignore[arg-type]
    "types": PlantedOptions(**SMALL, node_types=3, uneven=0.5),  # type: ignore[arg-type]
    "running": PlantedOptions(**SMALL, running=0.3, anchored=0.3),  # type: ignore[arg-type]
}


# Steps


def full(dense: Dense, solution: Solution) -> bool:
    return sum(solution.values()) == sum(one.size for one in dense.classes)


@pytest.mark.parametrize("workers", [2, *exhaustive(1)])
@pytest.mark.parametrize("seed", [0, *exhaustive(1, 2)])
@pytest.mark.parametrize("name", ["span", *exhaustive("locality", "packedHyperNodes", "packedNodes")])
@pytest.mark.parametrize("shape", PLANTED)
def test_steps_gain_and_keep_all_rules(shape: str, name: str, seed: int, workers: int) -> None:
    found = planted(replace(PLANTED[shape], seed=seed))
    instance = make_instance(validate(from_documents(found.documents)))
    dense = make_dense(instance)
    assert found.planted is not None
    start = dense.solution(Placement.of(found.planted))
    criterion = criterion_of(dense, name)
    reached = score_solution(dense, start)[:criterion]
    search = PooledSearch(dense, criterion, reached, workers, Random(seed))
    told: list[Solution] = []

    def heard(solution: Solution) -> bool:
        told.append(solution)
        return False

    search.improved(start, Budget(most=3), heard)
    values = [score_solution(dense, each)[: criterion + 1] for each in (start, *told)]
    # The score of one told may be less than the model knows, so no more is asked.
    assert all(each[-1] <= values[0][-1] and not beats(dense, reached, each[:-1], criterion) for each in values)
    assert all(verify(instance, dense.placement(each)) == [] and full(dense, each) for each in told)


def test_steps_come_to_the_optimum_of_the_whole() -> None:
    found = planted(PLANTED["mixed"])
    dense = make_dense(make_instance(validate(from_documents(found.documents))))
    assert found.planted is not None
    start, told = dense.solution(Placement.of(found.planted)), list[Solution]()
    criterion, reached = criterion_of(dense, "locality"), score_solution(dense, start)
    search = PooledSearch(dense, criterion, reached[:criterion], 1, Random(0))

    def heard(solution: Solution) -> bool:
        told.append(solution)
        return False

    search.improved(start, Budget(most=5), heard)
    whole, one = PooledModel(dense), solver()
    whole.aim(criterion)
    whole.hint(told[-1])
    assert one.solve(whole.proto) == cp_model.OPTIMAL
    assert score_solution(dense, told[-1])[criterion] == round(one.objective_value) < reached[criterion]


def test_steps_of_one_worker_are_repeatable() -> None:
    found = planted(PLANTED["mixed"])
    dense = make_dense(make_instance(validate(from_documents(found.documents))))
    assert found.planted is not None
    start, answers = dense.solution(Placement.of(found.planted)), []
    criterion = criterion_of(dense, "locality")
    reached = score_solution(dense, start)[:criterion]
    for _ in range(2):
        search, told = PooledSearch(dense, criterion, reached, 1, Random(3)), list[Solution]()

        def heard(solution: Solution, to: list[Solution] = told) -> bool:
            to.append(solution)
            return False

        search.improved(start, Budget(most=2), heard)
        answers.append(told)
    assert answers[0]
    assert answers[0] == answers[1]
