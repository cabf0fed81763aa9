"""Whether one group can be ready at all: the exact model asked for that alone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from ortools.sat.python import cp_model

from placer.arrays import Dense, Solution
from placer.base.deadline import Deadline
from placer.search.events import TooLarge
from placer.search.exact.count_model import limited_solver, solver_form
from placer.search.exact.method import ExactModel, presolve_with_care


def ready_solution(dense: Dense, deadline: Deadline, *, seed: int = 0) -> tuple[bool | None, Solution | None]:
    """Find a solution in which the only group is ready (True), or prove that there is none (False).

    The first criterion is ``admitted`` of its only priority. None where there was no time, or the model would be too
    large.
    """
    try:
        model = ExactModel(replace(dense, criteria=dense.criteria[:1]), seconds=max(0.0, deadline.left))
    except TooLarge:
        return None, None
    value = model.criterion(0)
    needed = sum(group.need_weight for group in dense.groups)
    if not value.variables:
        return (None if value.constant >= needed else False), None
    model.proto.add(solver_form(value) >= needed - value.constant)
    return _admitted(model, deadline, seed)


def _admitted(model: ExactModel, deadline: Deadline, seed: int) -> tuple[bool | None, Solution | None]:
    for _ in range(50):  # solutions that kubelets refuse (C10) are excluded one by one
        status, found = _solved(model, deadline, seed)
        if found is None:
            return (False if status == cp_model.INFEASIBLE and not model.unsure else None), None
        admitted = model.admitted(found)
        if admitted is not None:
            return True, admitted
        if not model.exclude(found):
            break
    return None, None


def _solved(model: ExactModel, deadline: Deadline, seed: int) -> tuple[cp_model.CpSolverStatus, Solution | None]:
    """In a thread, so that this one hears signals; CP-SAT's own handler would end the process at the next Ctrl-C."""
    solver = limited_solver(seconds=min(1e6, deadline.left), random_seed=seed, catch_sigint_signal=False)
    presolve_with_care(solver)
    with ThreadPoolExecutor(1) as thread:
        solving = thread.submit(solver.solve, model.proto)
        try:
            status = solving.result()
        except BaseException:
            solver.stop_search()
            raise
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return status, model.read(list(solver.response_proto.solution))
    return status, None
