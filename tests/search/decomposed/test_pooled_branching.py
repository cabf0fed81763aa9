"""Branch and cut against every placement of tiny instances, and against CP-SAT on planted ones."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Event

import pytest
from ortools.sat.python import cp_model

from placer.arrays import Dense, Solution, score_solution
from placer.arrays.dense_builder import make_dense
from placer.base.linear import Branched, ColumnSum, IntegerProgram
from placer.kube.manifests import from_documents, validate
from placer.lab.generate import planted
from placer.problem.instance_builder import make_instance
from placer.problem.placement import Placement
from placer.search.decomposed.pooled_branching import BranchedSolution, branch_and_cut
from placer.search.events import SolverFault
from placer.search.exact.count_model import Linear
from placer.search.exact.integer_form import IntegerForm, columns_of
from placer.search.exact.pooled_model import PooledModel
from tests.examples import exhaustive, seed_blocks
from tests.search.decomposed.test_pooled_search import PLANTED
from tests.search.decomposed.test_tree_master import criterion_of, solver
from tests.search.exact.test_pooled_model import PlacementsOfEverything
from tests.tiny import tiny


def aimed(dense: Dense, start: Solution, criterion: int) -> tuple[PooledModel, Linear]:
    """A model of a value that keeps what a solution reaches of those before it, and the expression."""
    model = PooledModel(dense)
    for before, value in enumerate(score_solution(dense, start)[:criterion]):
        model.keep(before, value)
    return model, model.aim(criterion)


def decided(
    dense: Dense,
    start: Solution,
    criterion: int,
    known: tuple[int, ...] = (),
    *,
    work: float = math.inf,
    trees: int = 1,
) -> BranchedSolution:
    """A value decided while those before it stay as good as they are."""
    model, value = aimed(dense, start, criterion)
    return branch_and_cut(model, value, known, start, seconds=math.inf, work=work, workers=trees, seed=0)


def planted_instance(shape: str, seed: int) -> tuple[Dense, Solution]:
    found = planted(replace(PLANTED[shape], seed=seed, nodes=12))
    dense = make_dense(make_instance(validate(from_documents(found.documents))))
    assert found.planted is not None
    return dense, dense.solution(Placement.of(found.planted))


@pytest.mark.parametrize("seeds", seed_blocks(500, 50))
def test_value_after_value_is_the_best_of_all_placements_of_everything(seeds: range) -> None:
    looked_at = 0
    for seed in seeds:
        every = PlacementsOfEverything(tiny(seed).instance)
        if not every.whole:
            continue
        looked_at += 1
        solution = max(every.whole, key=every.values)  # the worst of all
        for criterion in every.criteria:
            found = decided(every.dense, solution, criterion)
            assert found.optimal
            assert found.solution is not None
            solution = found.solution
            assert found.bound == score_solution(every.dense, solution)[criterion], seed
        every.assert_best(solution, seed)
    assert looked_at


@pytest.mark.parametrize("trees", [2, *exhaustive(1)])
@pytest.mark.parametrize("seed", [0, *exhaustive(1, 2)])
@pytest.mark.parametrize("name", ["span", *exhaustive("locality", "packedHyperNodes", "packedNodes")])
@pytest.mark.parametrize("shape", PLANTED)
def test_its_optimum_is_none_that_another_solver_excludes(shape: str, name: str, seed: int, trees: int) -> None:
    dense, start = planted_instance(shape, seed)
    criterion = criterion_of(dense, name)
    found = decided(dense, start, criterion, trees=trees)
    (model, _), reached = aimed(dense, start, criterion), score_solution(dense, start)
    other = solver()
    other.parameters.max_deterministic_time = 2.0
    model.hint(start)
    assert other.solve(model.proto) in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    assert found.optimal
    assert found.bound is not None
    assert math.ceil(other.best_objective_bound - 1e-6) <= found.bound <= round(other.objective_value)
    assert found.solution is not None
    values = score_solution(dense, found.solution)
    assert values[:criterion] <= reached[:criterion]
    assert values[criterion] == found.bound


@pytest.mark.parametrize("work", [1e-9, 0.1])
def test_cut_short_it_claims_no_more_than_it_knows(work: float) -> None:
    dense, start = planted_instance("odd", 3)
    criterion = criterion_of(dense, "span")
    whole, short = decided(dense, start, criterion), decided(dense, start, criterion, work=work)
    assert whole.bound is not None
    assert whole.optimal
    assert whole.work > 0
    assert short.bound is None or short.bound <= whole.bound
    assert decided(dense, start, criterion, work=work) == short


@pytest.mark.parametrize("trees", [1, 2])
def test_what_reaches_a_bound_that_is_known_ends_all_trees(trees: int) -> None:
    dense, start = planted_instance("odd", 3)
    criterion = criterion_of(dense, "span")
    whole = decided(dense, start, criterion, trees=trees)
    assert whole.bound is not None
    known = score_solution(dense, start)[criterion]
    assert known > whole.bound
    ended = decided(dense, start, criterion, (0, known), trees=trees)  # as if that were proved
    assert not ended.optimal
    assert ended.work < whole.work
    assert ended.solution is not None
    assert score_solution(dense, ended.solution)[criterion] <= known
    assert ended.bound is None or ended.bound <= whole.bound  # what is known is no row of it


def test_a_tree_without_any_point_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    dense, start = planted_instance("mixed", 0)
    nothing = Branched(None, math.inf, optimal=False, infeasible=True, iterations=1)
    monkeypatch.setattr(IntegerProgram, "branched", lambda *_, **__: nothing)
    with pytest.raises(SolverFault, match="infeasible"):
        decided(dense, start, criterion_of(dense, "span"))


def test_the_program_allows_what_the_model_does() -> None:
    dense, start = planted_instance("types", 0)
    model = PooledModel(dense)
    columns = columns_of(model.aim(criterion_of(dense, "packedNodes")))
    program = IntegerForm(model.proto)
    values = model.encode(start)
    assert program.allows(values)
    assert columns.at(values.__getitem__) == score_solution(dense, start)[-1]
    for index in range(0, len(values), max(1, len(values) // 20)):
        assert not program.allows([*values[:index], program.upper[index] + 1, *values[index + 1 :]])
        assert not program.allows([*values[:index], -1, *values[index + 1 :]])
    count = next(iter(model.counts.values())).index
    assert not program.allows([*values[:count], values[count] + 1, *values[count + 1 :]])


def test_what_keeps_no_row_in_whole_numbers_is_no_optimum(monkeypatch: pytest.MonkeyPatch) -> None:
    dense, start = planted_instance("mixed", 0)
    criterion = criterion_of(dense, "packedNodes")
    best = decided(dense, start, criterion)
    monkeypatch.setattr(IntegerProgram, "allows", lambda *_: False)
    refused = decided(dense, start, criterion)
    assert (refused.solution, refused.optimal) == (None, False)
    assert refused.bound == best.bound


def test_what_the_solver_does_not_take_proves_nothing() -> None:
    program = IntegerProgram()
    column = program.column(3)
    program.at_most({column: 2 * 10**15}, 3 * 10**15)
    with ThreadPoolExecutor(1) as thread:
        asked = thread.submit(
            program.branched, ColumnSum().add(1, column), [0], math.inf, 2**31 - 1, seed=0, ended=Event()
        )
        found = asked.result()
    assert (found.values, found.bound, found.optimal) == (None, -math.inf, False)
