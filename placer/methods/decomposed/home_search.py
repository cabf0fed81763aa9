"""Homes decided anew, a few leaves at a time: large neighbourhood search on the program that only counts pods.

A step holds what has its home in other leaves, and what is on their nodes; all other homes are decided anew together
with pods that no leaf ties. Where it looks at all leaves it is the whole, and its optimum is one. What leaves cannot
hold whatever the nodes say is proved by the coarse program.

Source: Shaw, "Using Constraint Programming and Local Search Methods to Solve Vehicle Routing Problems", CP 1998.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from ortools.sat.python import cp_model

from placer.dense import Dense, Solution
from placer.methods.decomposed.home_program import HomeProgram, tells_all
from placer.methods.events import SolverFault

__all__ = ["HomeSearch", "StepBudget"]

#: Deterministic time of a step.
STEP_WORK = 0.6

#: What a step counts as at least.
LEAST_WORK = 0.05

#: Leaves of the first step, and of the smallest one; after a step that was solved to the end it is some more.
FIRST, LEAST, MORE = 10, 3, 0.1

#: After so many steps without gain, all of as many leaves as can be solved to the end or not, they are given up.
IDLE = 24

#: A step of leaves of one domain, else of leaves anywhere.
TOGETHER = 0.6

#: With more variables it is not tried: a step would take longer to be made than to be solved.
MOST_VARIABLES = 60_000

#: Seconds and deterministic time that are left for steps; None: no more.
StepBudget = Callable[[], tuple[float, float] | None]


@dataclass(frozen=True)
class _SolvedStep:
    """What came of a step: values of all variables, None where none were found; whether solved to the end; its work."""

    values: list[int] | None
    value: int
    optimal: bool
    work: float


class HomeSearch:
    """Steps on the homes of one instance, and bounds; who asks has to know that everything is placed.

    Parameters
    ----------
    dense
        The instance.
    workers
        How many steps may be under way at once.
    chance
        Source of all chance.

    Attributes
    ----------
    spent
        Deterministic time so far.
    """

    def __init__(self, dense: Dense, workers: int, chance: random.Random) -> None:
        self.dense, self.workers, self.chance = dense, workers, chance
        self.spent = 0.0
        self._program: HomeProgram | None = None
        self._values: list[int] = []
        self._size = float(FIRST)
        self.idle = 0
        self.useful = tells_all(dense) and len(dense.classes) > 0

    def _made(self) -> HomeProgram | None:
        """The program, None where it says nothing, or would be too large."""
        if self.useful and self._program is None:
            program = HomeProgram(self.dense)
            self.useful = program.possible and len(program.model.proto.variables) <= MOST_VARIABLES
            self._program = program
        return self._program if self.useful else None

    def improved(self, solution: Solution, budget: StepBudget, told: Callable[[Solution], bool]) -> None:
        """Make steps from a solution that places everything, until nothing is gained any more.

        Parameters
        ----------
        solution
            To start from.
        budget
            Asked before each step.
        told
            Told each gain; says whether that is enough.
        """
        program = self._made()
        if program is None or not self._begin(program, solution):
            return
        with ThreadPoolExecutor(self.workers) as threads:
            while self.idle < IDLE and (left := budget()) is not None:
                if self._gained(program, threads, left) and told(program.read(self._values)):
                    return

    def _gained(self, program: HomeProgram, threads: ThreadPoolExecutor, left: tuple[float, float]) -> bool:
        """Make a step with each worker; say whether one of them gained anything."""
        drawn = [(self._drawn(program), self.chance.randrange(2**31)) for _ in range(self.workers)]
        steps = list(threads.map(lambda each: _step(program, self._values, each[0], left, each[1]), drawn))
        self.spent += max(step.work for step in steps)
        return self._taken(program, steps)

    def _begin(self, program: HomeProgram, solution: Solution) -> bool:
        """Set out from a solution; say whether it is one of the program."""
        known = program.encoded(solution)
        if self._values and all(self._values[index] == value for index, value in known.items()):
            return True
        started = _step(program, known, frozenset(), (10.0, 10.0), 0)
        if started.values is not None:
            self._values, self.idle = started.values, 0
        return started.values is not None

    def _drawn(self, program: HomeProgram) -> frozenset[int]:
        """Leaves for a step: of one domain above leaves, as far as it has so many, or anywhere."""
        size, leaves = min(int(self._size), len(program.leaves)), program.leaves
        if self.chance.random() < TOGETHER:
            above = int(self.dense.domains.parent[self.chance.choice(leaves)])
            near = [leaf for leaf in leaves if int(self.dense.domains.parent[leaf]) == above]
            chosen = self.chance.sample(near, min(size, len(near)))
            others = [leaf for leaf in leaves if leaf not in chosen]
            return frozenset([*chosen, *self.chance.sample(others, size - len(chosen))])
        return frozenset(self.chance.sample(leaves, size))

    def _taken(self, program: HomeProgram, steps: Sequence[_SolvedStep]) -> bool:
        """Take the best of some steps unless it is worse; say whether it is better."""
        before = program.value.at(lambda variable: self._values[variable.index])
        ends = sum(step.optimal for step in steps)
        self._size = max(LEAST, self._size * (1 + MORE) if 2 * ends > len(steps) else self._size * (1 - MORE))
        self._size = min(self._size, len(program.leaves))
        found = min((step for step in steps if step.values is not None), key=lambda step: step.value, default=None)
        better = found is not None and found.value < before
        self.idle = 0 if better else self.idle + len(steps)
        if found is not None and found.values is not None and found.value <= before:
            self._values = found.values
        return better

    def bound(self, solver: cp_model.CpSolver) -> float | None:
        """What ``locality`` is never below by the room of leaves; None where nothing was found out.

        Parameters
        ----------
        solver
            Set up with its limits.
        """
        program = HomeProgram(self.dense, coarse=True) if self._made() is not None else None
        if program is None:
            return None
        status = solver.solve(program.model)
        self.spent += solver.response_proto.deterministic_time
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE, cp_model.UNKNOWN):
            raise SolverFault(f"{solver.status_name(status)} while homes are decided")
        return None if status == cp_model.UNKNOWN else solver.best_objective_bound


def _step(
    program: HomeProgram,
    values: dict[int, int] | list[int],
    leaves: frozenset[int],
    left: tuple[float, float],
    seed: int,
) -> _SolvedStep:
    """Solve the program with what is in other leaves held; from a dict, with all that it names held."""
    model = program.model.clone()
    for index in _held(program, values, leaves):
        domain = model.proto.variables[index].domain
        domain.clear()
        domain.extend([values[index]] * 2)
    if isinstance(values, list):
        _hint(model, values)
    solver = cp_model.CpSolver()
    parameters = solver.parameters
    parameters.num_workers, parameters.random_seed, parameters.linearization_level = 1, seed, 2
    seconds, work = left
    parameters.max_deterministic_time = min(STEP_WORK, work)
    if seconds < float("inf"):
        parameters.max_time_in_seconds = max(0.01, seconds)
    status = solver.solve(model)
    work = max(LEAST_WORK, solver.response_proto.deterministic_time)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return _SolvedStep(None, 0, status == cp_model.INFEASIBLE, work)
    found = list(solver.response_proto.solution)
    value = program.value.at(lambda variable: found[variable.index])
    return _SolvedStep(found, value, status == cp_model.OPTIMAL, work)


def _held(program: HomeProgram, values: dict[int, int] | list[int], leaves: frozenset[int]) -> Iterator[int]:
    if isinstance(values, dict):
        yield from values
    else:
        yield from (index for index, leaf in program.leaf_of.items() if leaf not in leaves)


def _hint(model: cp_model.CpModel, values: Sequence[int]) -> None:
    hint = model.proto.solution_hint
    hint.vars.extend(range(len(values)))
    hint.values.extend(values)
