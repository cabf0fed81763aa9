"""One step: a part of the instance decided again by CP-SAT. Carried out anywhere: what goes in and out travels."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np
from ortools.sat.python import cp_model

from placer.dense import Dense, Solution, beats, score_solution
from placer.methods.exact.model import Model, Must, TooLarge
from placer.methods.exact.variables import Linear
from placer.methods.numa.ejection_chains import place_by_ejection_chains
from placer.placement import MAXIMISED

__all__ = ["Step", "Stepped", "carry_out"]

#: How near to the most that can be gathered is near enough, as a share of it.
GATHERED = 0.02

#: How often a step is solved where kubelets refuse what comes of it (C10).
TRIES = 6


@dataclass(frozen=True)
class Step:
    """What to decide.

    Parameters
    ----------
    dense, start, must
        Of a :class:`~placer.methods.decomposed.part.Part`.
    level
        The value that is to get better; those before it must not get worse.
    seconds, work
        Most wall-clock and deterministic time; infinite: no limit.
    seed
        Of the solver.
    gather
        Beside the value, leave the room that is left in few leaves.
    fresh
        Look for a solution without a hint: what comes of it is seldom the start once more.
    walk
        Exchange pods between zones instead, one or two at a time.
    """

    dense: Dense
    start: Solution
    must: Must
    level: int
    seconds: float
    work: float
    seed: int
    gather: bool = False
    fresh: bool = False
    walk: bool = False


@dataclass(frozen=True)
class Stepped:
    """What came of it.

    Parameters
    ----------
    solution
        Of the part, no worse than the start; None: none was found in time.
    gains
        How much each value is larger than at the start; empty without a solution.
    optimal
        Whether nothing in the part is better.
    too_large
        The model was not built.
    work
        Deterministic time it took.
    fault
        What the solver said that cannot be; None: nothing.
    """

    solution: Solution | None
    gains: tuple[int, ...] = ()
    optimal: bool = False
    too_large: bool = False
    work: float = 0.0
    fault: str | None = None


def carry_out(step: Step) -> Stepped:
    """Carry out a step, on one thread."""
    return _walked(step) if step.walk else _solved(step)


def _walked(step: Step) -> Stepped:
    found, work = place_by_ejection_chains(step.dense, step.start, step.seed, step.work, step.seconds)
    start, values = score_solution(step.dense, step.start), score_solution(step.dense, found)
    if beats(step.dense, start, values, step.level + 1):
        return Stepped(None, work=work)
    return Stepped(found, tuple(new - old for new, old in zip(values, start, strict=True)), work=work)


def _solved(step: Step) -> Stepped:
    try:
        model = Model(step.dense, step.must, step.seconds / 2, level=step.level)
    except TooLarge:
        return Stepped(None, too_large=True)
    start = score_solution(step.dense, step.start)
    for before in range(step.level):
        model.keep(before, start[before])
    aside = _aside(step, model) if step.gather and step.dense.levels[step.level][0] in MAXIMISED else None
    model.aim(step.level, aside)
    work, end = 0.0, time.monotonic() + step.seconds
    for _ in range(TRIES):
        solver = _solver(step, step.work - work, end - time.monotonic(), 0 if aside is None else model.most(aside))
        model.hint(step.start)
        if step.fresh:
            model.proto.proto.clear_solution_hint()
        status = solver.solve(model.proto)
        work += solver.response_proto.deterministic_time
        if status in (cp_model.INFEASIBLE, cp_model.MODEL_INVALID):
            fault = f"{solver.status_name(status)} where leaving all as it was is possible"
            return Stepped(None, work=work, fault=fault)
        if status == cp_model.UNKNOWN:
            break
        found = model.read(list(solver.response_proto.solution))
        admitted = model.admitted(found)
        if admitted is not None:
            gains = tuple(new - old for new, old in zip(score_solution(step.dense, found), start, strict=True))
            return Stepped(admitted, gains, status == cp_model.OPTIMAL and not model.unsure, work=work)
        model.exclude(found)
        if work >= step.work or time.monotonic() >= end:
            break
    return Stepped(None, work=work)


def _solver(step: Step, work: float, seconds: float, most: int) -> cp_model.CpSolver:
    """A solver with what is left; ``most`` is what can be gathered."""
    solver = cp_model.CpSolver()
    parameters = solver.parameters
    parameters.num_workers = 1
    parameters.random_seed = step.seed
    # A step is small and one of many: presolving it thoroughly takes longer than solving it.
    parameters.cp_model_probing_level = 0
    parameters.max_presolve_iterations = 1
    parameters.absolute_gap_limit = GATHERED * most
    parameters.max_deterministic_time = max(1e-6, work)
    if seconds < math.inf:
        parameters.max_time_in_seconds = max(0.01, seconds)
    return solver


def _aside(step: Step, model: Model) -> Linear:
    """Placed weight, in twentieths of a node, worth more where less room is left: the emptiest leaves get emptier."""
    free = step.dense.free.astype(np.float64)
    for (index, node), count in step.start.items():
        free[node] -= step.dense.classes[index].request * count
    room = (free / np.maximum(step.dense.free.max(axis=0, initial=0), 1)).min(axis=1) if free.shape[1] else free[:, :0]
    units, number = np.unique(step.dense.leaf_unit, return_inverse=True)
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
