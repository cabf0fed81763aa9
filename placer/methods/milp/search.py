"""The search: the values one after another, each keeping what the former reached."""

from __future__ import annotations

import time

from placer.dense import Dense, Solution, beats, score_solution
from placer.methods.events import BoundFound, Emit, Improved, SearchOptions, SolverFault, TooLarge
from placer.methods.milp.model import MilpModel
from placer.methods.milp.program import Linear
from placer.methods.milp.solvers import NODES_PER_WORK, SolveStatus, ask, make_solver, nodes_used, proves

__all__ = ["search"]

#: Share of what is left of the limit that a value may take while others come after it.
SHARE = 0.6

#: Share of the limit that is used at all: handing a program to a solver takes time that no solver's limit counts.
USED = 0.95

#: A solve that would have less than this is not started.
LEAST_SECONDS = 0.05


def search(dense: Dense, options: SearchOptions, emit: Emit) -> str:
    """Find the best placement and prove it, value after value.

    Parameters
    ----------
    dense
        The instance.
    options
        Limits, threads, seed, the solver and a solution to start from. A unit of ``work`` is
        :data:`~placer.methods.milp.solvers.NODES_PER_WORK` nodes of branch and bound.
    emit
        Told the solution of every value, rounded and checked in integers, and every value that is proved. Nothing
        comes between: PuLP tells nothing before a solve ends.

    Returns
    -------
    str
        ``proved``: every value is. ``time``: a limit was reached. ``finished``: the program would be too large
        (:data:`~placer.methods.milp.variables.MOST_VARIABLES`, :data:`~placer.methods.milp.program.LARGEST`,
        :data:`~placer.methods.milp.zones.MOST_CROWDS`), or the solver cannot prove, or what it found broke a rule once
        it was rounded.

    Raises
    ------
    SolverFault
        The solver says that there is no solution, or calls optimal what is worse than what is known.
    """
    return _MilpSearch(dense, options, emit).run()


class _MilpSearch:
    """One search: the best solution so far, the model, and what is left of the limits."""

    def __init__(self, dense: Dense, options: SearchOptions, emit: Emit) -> None:
        self.dense, self.options, self.emit = dense, options, emit
        self._end = None if options.seconds is None else time.monotonic() + USED * options.seconds
        self._nodes = None if options.work is None else max(1, int(options.work * NODES_PER_WORK))
        self.solution: Solution | None = None
        self.values = score_solution(dense, {})
        self.cut = False

    def run(self) -> str:
        """Decide the values in order."""
        try:
            return self._run(MilpModel(self.dense))
        except TooLarge:
            return "finished"

    def _run(self, model: MilpModel) -> str:
        proved = True
        for level in range(len(self.dense.levels)):
            value = model.aim(level)
            if value.variables:
                proved = self._solve(level, model) and proved
                if self.solution is None:
                    return self._ended()
            else:
                self._same_for_all(level, value)
            if proved:
                self.emit(BoundFound(level, self.values[level], "milp", self.values[:level]))
            model.keep(level, self.values[level])
        if self.solution is None:
            self._take({}, "nothing to decide")
        return "proved" if proved else self._ended()

    def _ended(self) -> str:
        return "time" if self.cut else "finished"

    def _same_for_all(self, level: int, value: Linear) -> None:
        """A value without a variable is what it is: nothing is asked."""
        if value.constant != self.values[level]:
            raise SolverFault(self._differs(level, value.constant))

    def _solve(self, level: int, model: MilpModel) -> bool:
        """Solve for a level; say whether its value is proved (as far as those before are)."""
        last = level + 1 == len(self.dense.levels)
        seconds, nodes = self._seconds_for(last), self._nodes_for(last)
        if (seconds is not None and seconds < LEAST_SECONDS) or nodes == 0:
            self.cut = True
            return False
        solver = make_solver(
            self.options.solver,
            seconds=seconds,
            nodes=nodes,
            workers=self.options.workers,
            seed=self.options.seed,
            start=model.start_from(self.options.hint if self.solution is None else self.solution),
        )
        status = ask(solver, model.program.problem)
        if self._nodes is not None and nodes is not None:
            self._nodes -= nodes_used(solver, model.program.problem, nodes)
        return self._judge(level, model, status)

    def _judge(self, level: int, model: MilpModel, status: SolveStatus) -> bool:
        name = self.dense.levels[level][0]
        if status is SolveStatus.IMPOSSIBLE:
            raise SolverFault(f"{self.options.solver} finds no solution for {name}, where there is one")
        self.cut = self.cut or status is not SolveStatus.OPTIMAL
        found = None if status is SolveStatus.NOTHING else model.read()
        return found is not None and self._judge_solution(level, model, found, optimal=status is SolveStatus.OPTIMAL)

    def _judge_solution(self, level: int, model: MilpModel, found: Solution, *, optimal: bool) -> bool:
        name = self.dense.levels[level][0]
        values = score_solution(self.dense, found)
        if model.value(level, found) != values[level]:
            raise SolverFault(self._differs(level, model.value(level, found)))
        if self.solution is not None and optimal and beats(self.dense, self.values, values, level + 1):
            raise SolverFault(f"{name}: {values[level]} was called optimal, but there is {self.values[level]}")
        if self.solution is None or beats(self.dense, values, self.values):
            self._take(found, name)
        return optimal and proves(self.options.solver) and self.values[level] == values[level]

    def _take(self, solution: Solution, phase: str) -> None:
        self.solution, self.values = solution, score_solution(self.dense, solution)
        self.emit(Improved(solution, phase))

    def _differs(self, level: int, said: int) -> str:
        name = self.dense.levels[level][0]
        return f"{name}: the program says {said}, the arrays another value"

    # Limits

    def _seconds_for(self, last: bool) -> float | None:
        return None if self._end is None else (1.0 if last else SHARE) * (self._end - time.monotonic())

    def _nodes_for(self, last: bool) -> int | None:
        if self._nodes is None:
            return None
        return max(min(1, self._nodes), int(self._nodes * (1.0 if last else SHARE)), 0)
