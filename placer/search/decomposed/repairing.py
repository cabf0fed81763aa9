"""Repair: a subproblem is decided again, by CP-SAT or by ejection chains, on one thread.

Tasks and results can be pickled, so a repair runs on any machine.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from operator import sub

import numpy as np
from ortools.sat.python import cp_model

from placer.arrays import Dense, Solution, beats, score_solution
from placer.problem.placement import MAXIMISED
from placer.search.events import TooLarge
from placer.search.exact.count_model import Linear, limited_solver
from placer.search.exact.method import ExactModel, Must
from placer.search.numa.ejection_chains import place_by_ejection_chains

__all__ = ["RepairResult", "RepairTask", "repair"]


@dataclass(frozen=True)
class RepairTask:
    """A subproblem, and how it is to be repaired; values before ``criterion`` must not get worse.

    ``work`` is deterministic time. ``compact``: also gather the remaining room in few leaves. ``unhinted``: the result
    is seldom the start once more. ``chains``: by ejection chains over NUMA zones instead of a model.
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
    found, work = place_by_ejection_chains(task.dense, task.start, task.seed, task.work, task.seconds)
    start, values = score_solution(task.dense, task.start), score_solution(task.dense, found)
    if beats(task.dense, start, values, task.criterion + 1):
        return RepairResult(None, work=work)
    return RepairResult(found, tuple(map(sub, values, start)), work=work)


def _by_model(task: RepairTask) -> RepairResult:
    start = score_solution(task.dense, task.start)
    try:
        model, most = _model(task, start)
    except TooLarge:
        return RepairResult(None, too_large=True)
    work, end = 0.0, time.monotonic() + task.seconds
    for _ in range(6):
        solver = _solver(task, task.work - work, end - time.monotonic(), most)
        model.hint(task.start)
        if task.unhinted:
            model.proto.proto.clear_solution_hint()
        status = solver.solve(model.proto)
        work += solver.response_proto.deterministic_time
        if status in (cp_model.INFEASIBLE, cp_model.MODEL_INVALID):
            fault = f"{solver.status_name(status)} where leaving all as it was is possible"
            return RepairResult(None, work=work, fault=fault)
        if status == cp_model.UNKNOWN:
            break
        found = model.read(list(solver.response_proto.solution))
        admitted = model.admitted(found)
        if admitted is not None:
            gains = tuple(map(sub, score_solution(task.dense, found), start))
            return RepairResult(admitted, gains, status == cp_model.OPTIMAL and not model.unsure, work=work)
        model.exclude(found)
        if work >= task.work or time.monotonic() >= end:
            break
    return RepairResult(None, work=work)


def _model(task: RepairTask, start: tuple[int, ...]) -> tuple[ExactModel, int]:
    model = ExactModel(task.dense, task.must, task.seconds / 2, criterion=task.criterion)
    for before in range(task.criterion):
        model.keep(before, start[before])
    compact = task.compact and task.dense.criteria[task.criterion][0] in MAXIMISED
    row = _compactness(task, model) if compact else None
    model.aim(task.criterion, row)
    return model, 0 if row is None else model.highest(row)


def _solver(task: RepairTask, work: float, seconds: float, most: int) -> cp_model.CpSolver:
    # A subproblem is small and one of many: presolving it thoroughly takes longer than solving it.
    solver = limited_solver(
        work=work, seconds=seconds, random_seed=task.seed, cp_model_probing_level=0, max_presolve_iterations=1
    )
    solver.parameters.absolute_gap_limit = 0.02 * most
    dense = task.dense
    if dense.criteria[task.criterion][0] in MAXIMISED and dense.numa is None and dense.network is None:
        solver.parameters.linearization_level = 2  # measured where pods are only counted
    return solver


def _compactness(task: RepairTask, model: ExactModel) -> Linear:
    free = task.dense.free.astype(np.float64)
    for (index, node), count in task.start.items():
        free[node] -= task.dense.classes[index].request * count
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
