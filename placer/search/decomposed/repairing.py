"""Repair: a subproblem is decided again, by CP-SAT or by ejection chains, on one thread.

Tasks and results can be pickled, so a repair runs on any machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import sub

import numpy as np
from ortools.sat.python import cp_model

from placer.arrays import Dense, Solution, beats, score_solution
from placer.base.deadline import Budget, Deadline
from placer.problem.placement import MAXIMISED
from placer.search.events import TooLarge
from placer.search.exact.count_model import Linear, limited_solver
from placer.search.exact.method import ExactModel, Must
from placer.search.numa.ejection_chains import place_by_ejection_chains


@dataclass(frozen=True)
class RepairTask:
    """A subproblem, and how it is to be repaired; values before ``criterion`` must not get worse.

    ``seconds`` are no deadline, since another machine may carry it out; ``work`` is deterministic time. ``compact``:
    also gather the remaining room in few leaves. ``unhinted``: the result is seldom the start once more. ``chains``: by
    ejection chains over NUMA zones instead of a model.
    """

    dense: Dense
    start: Solution
    must: Must
    criterion: int
    seconds: float
    work: float
    seed: int
    compact: bool = False
    unhinted: bool = False
    chains: bool = False

    @property
    def budget(self) -> Budget:
        """From now on, nothing spent."""
        return Budget(Deadline.within(self.seconds), self.work)


@dataclass(frozen=True)
class RepairResult:
    """The result of a repair: a solution no worse than the start, or None, and the growth of each value.

    ``work`` is deterministic time; ``fault`` an impossible answer of the solver.
    """

    solution: Solution | None
    gains: tuple[int, ...] = ()
    optimal: bool = False
    too_large: bool = False
    work: float = 0.0
    fault: str | None = None


def repair(task: RepairTask) -> RepairResult:
    """Repair a subproblem."""
    return _by_ejection_chains(task) if task.chains else _by_model(task)


def _by_ejection_chains(task: RepairTask) -> RepairResult:
    budget = task.budget
    found = place_by_ejection_chains(task.dense, task.start, task.seed, budget)
    start, values = score_solution(task.dense, task.start), score_solution(task.dense, found)
    if beats(task.dense, start, values, task.criterion + 1):
        return RepairResult(None, work=budget.spent)
    return RepairResult(found, tuple(map(sub, values, start)), work=budget.spent)


def _by_model(task: RepairTask) -> RepairResult:
    start = score_solution(task.dense, task.start)
    try:
        model, most = _model(task, start)
    except TooLarge:
        return RepairResult(None, too_large=True)
    budget = task.budget
    for _ in range(6):
        solver = _solver(task, budget, most)
        model.hint(task.start)
        if task.unhinted:
            model.proto.proto.clear_solution_hint()
        status = solver.solve(model.proto)
        budget.spend(solver.response_proto.deterministic_time)
        if status in (cp_model.INFEASIBLE, cp_model.MODEL_INVALID):
            fault = f"{solver.status_name(status)} where leaving all as it was is possible"
            return RepairResult(None, work=budget.spent, fault=fault)
        if status == cp_model.UNKNOWN:
            break
        found = model.read(list(solver.response_proto.solution))
        admitted = model.admitted(found)
        if admitted is not None:
            gains = tuple(map(sub, score_solution(task.dense, found), start))
            optimal = status == cp_model.OPTIMAL and not model.unsure
            return RepairResult(admitted, gains, optimal, work=budget.spent)
        model.exclude(found)
        if budget.over:
            break
    return RepairResult(None, work=budget.spent)


def _model(task: RepairTask, start: tuple[int, ...]) -> tuple[ExactModel, int]:
    model = ExactModel(task.dense, task.must, task.seconds / 2, criterion=task.criterion)
    for before in range(task.criterion):
        model.keep(before, start[before])
    if not task.compact or not model.maximised(task.criterion):
        model.aim(task.criterion)
        return model, 0
    value, room = model.criterion(task.criterion), _compactness(task, model)
    most = model.highest(room)
    row = Linear([*value.variables], [(1 + most) * each for each in value.coefficients]).plus(1, room)
    # The value still comes first.
    model.aim(task.criterion, row if (1 + most) * max(1, model.highest(value)) < 2**60 else value)
    return model, most


def _solver(task: RepairTask, budget: Budget, most: int) -> cp_model.CpSolver:
    # A subproblem is small and one of many: presolving it thoroughly takes longer than solving it.
    settings = {"random_seed": task.seed, "cp_model_probing_level": 0, "max_presolve_iterations": 1}
    solver = limited_solver(work=budget.work, seconds=budget.seconds, **settings)
    solver.parameters.absolute_gap_limit = 0.02 * most
    dense = task.dense
    if dense.criteria[task.criterion][0] in MAXIMISED and dense.numa is None and dense.network is None:
        solver.parameters.linearization_level = 2  # measured where pods are only counted
    return solver


def _compactness(task: RepairTask, model: ExactModel) -> Linear:
    free = task.dense.free_beside(task.start).astype(np.float64)
    room = (free / np.maximum(task.dense.free.max(axis=0, initial=0), 1)).min(axis=1) if free.shape[1] else free[:, :0]
    units, number = np.unique(task.dense.span_leaf, return_inverse=True)
    order = np.argsort(np.argsort(-np.bincount(number.reshape(-1), weights=room.reshape(-1))))
    worth_of = {int(unit): 4 + 4 * int(place) // max(1, len(units)) for unit, place in zip(units, order, strict=True)}
    row = Linear()
    for item, counts in enumerate(model.variables.counts):
        worth = max(1, model.variables.first(item).weight // 50_000)
        for place, variable in counts.items():
            row.add(worth * worth_of[model.variables.places[place].unit], variable)
    if model.zones is not None:
        for worth, variable in model.zones.low():
            row.add(worth, variable)
    return row
