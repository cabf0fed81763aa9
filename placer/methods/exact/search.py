"""The exact search: the values one after another, each keeping what the former reached."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

from ortools.sat.python import cp_model

from placer.bounds import NamedBound, bounds_for, named_bounds
from placer.dense import Dense, Solution, score_solution
from placer.methods.events import BoundFound, Emit, Improved, SearchOptions
from placer.methods.exact.model import Model, TooLarge
from placer.placement import MAXIMISED

__all__ = ["SolverFault", "safe_bound", "search"]

#: Share of what is left of the limit that a value may take while others come after it.
SHARE = 0.6

#: With so few workers the default portfolio has no subsolver that uses the LP fully, and it is the LP that proves
#: bounds here; the workers that are left over do neighbourhood search.
FEW_WORKERS = 3


class SolverFault(RuntimeError):
    """The solver contradicted itself or us; nothing it said afterwards can be trusted."""


def search(dense: Dense, options: SearchOptions, emit: Emit) -> str:
    """Find the best placement and prove it, value after value.

    Parameters
    ----------
    dense
        The instance.
    options
        Limits, threads, seed and a solution to start from. With one worker and without ``seconds`` the same input gives
        the same events.
    emit
        Told every better solution at once, and every bound.

    Returns
    -------
    str
        ``proved``: every value met its bound. ``time``: a limit was reached. ``finished``: the model would be too large
        (:data:`placer.methods.exact.model.MOST_VARIABLES`); named bounds only.

    Raises
    ------
    SolverFault
        The solver called a model infeasible or invalid that has a solution, or proved a bound that does not hold.
    """
    return _Search(dense, options, emit).run()


def safe_bound(bound: float, maximised: bool) -> int:
    """Return the solver's bound as an integer that is certainly one, whatever the float lost."""
    slack = max(1e-6, abs(bound) * 1e-15)
    return math.floor(bound + slack) if maximised else math.ceil(bound - slack)


class _Limits:
    """What is left of seconds and of work."""

    def __init__(self, options: SearchOptions) -> None:
        self._end = None if options.seconds is None else time.monotonic() + options.seconds
        self._work = options.work
        self.spent = 0.0

    @property
    def seconds(self) -> float:
        """Seconds left; infinite where there is no limit."""
        return math.inf if self._end is None else self._end - time.monotonic()

    @property
    def work(self) -> float:
        """Deterministic time left; infinite where there is no limit."""
        return math.inf if self._work is None else self._work - self.spent

    @property
    def over(self) -> bool:
        """Whether a limit is reached."""
        return self.seconds <= 0 or self.work <= 0


class _Search:
    """One search: the best solution so far, the model, and what is proved of it."""

    def __init__(self, dense: Dense, options: SearchOptions, emit: Emit) -> None:
        self.dense, self.options, self.emit = dense, options, emit
        self.limits = _Limits(options)
        self.solution: Solution = dict(options.hint or {})
        self.values = score_solution(dense, self.solution)
        self.told: tuple[int, ...] | None = None
        self.model: Model | None = None
        self.kept = 0
        self.cut = self.filled = False

    def run(self) -> str:
        """Decide the values in order."""
        for bound in named_bounds(self.dense):
            self._tell(bound)
        proved, limited = True, False
        for level in range(len(self.dense.levels)):
            met = self._met(level)
            if not met and not limited:
                try:
                    met = self._solve(level, proved)
                except TooLarge:
                    limited = True
            if proved and not met:
                proved = False
            if proved:
                self.offer(self.solution, "bound")
        if proved:
            self.offer(self.solution, "bound")  # also where there is no value at all to decide
            return "proved"
        return "time" if self.cut else "finished"

    def offer(self, solution: Solution, phase: str) -> None:
        """Take and tell a solution that is better than what was told before, or the first one."""
        values = score_solution(self.dense, solution)
        if self._better(values, self.values):
            self.solution, self.values = solution, values
        if self.told is None or self._better(values, self.told):
            self.told = values
            self.emit(Improved(solution, phase))

    def _better(self, values: Sequence[int], others: Sequence[int]) -> bool:
        for (name, _), mine, other in zip(self.dense.levels, values, others, strict=True):
            if mine != other:
                return (mine > other) == (name in MAXIMISED)
        return False

    def _met(self, level: int) -> bool:
        """Whether counting alone proves that nothing beats the value; tells the bounds it finds."""
        for bound in bounds_for(self.dense, self.values):
            if bound.level == level and self.values[level] == bound.bound:
                self._tell(bound)
                return True
        return False

    def _tell(self, bound: NamedBound) -> None:
        self.emit(BoundFound(bound.level, bound.bound, bound.by, bound.context))

    def _solve(self, level: int, proved: bool) -> bool:
        """Solve for a level; say whether its value is proved (as far as those before are)."""
        model = self._model_for(level)
        value = model.aim(level)
        model.hint(self.solution)
        solver = self._solver(level)
        status = solver.solve(model.proto, _Watch(self, model, self.dense.levels[level][0]))
        self.limits.spent += solver.response_proto.deterministic_time
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE, cp_model.UNKNOWN):
            raise SolverFault(f"{solver.status_name(status)} while {self.dense.levels[level][0]} is decided")
        if status != cp_model.UNKNOWN:
            self.offer(model.read(list(solver.response_proto.solution)), self.dense.levels[level][0])
        # Without a variable in it the value is the same for every placement, and the solver has no bound to tell.
        bound = safe_bound(solver.best_objective_bound, self._maximised(level)) if value.variables else value.constant
        return self._judge(level, bound, status == cp_model.OPTIMAL, proved)

    def _maximised(self, level: int) -> bool:
        return self.dense.levels[level][0] in MAXIMISED

    def _judge(self, level: int, bound: int, optimal: bool, proved: bool) -> bool:
        """Compare the value in hand with the solver's bound."""
        name, maximised = self.dense.levels[level][0], self._maximised(level)
        value = self.values[level]
        if (value > bound) if maximised else (value < bound):
            raise SolverFault(f"{name}: a bound of {bound} was proved, but there is {value}")
        if optimal and value != bound:
            raise SolverFault(f"{name}: {bound} was called optimal, the solution has {value}")
        if proved:
            self.emit(BoundFound(level, bound, "exact", self.values[:level]))
        self.cut = self.cut or value != bound
        return value == bound

    def _model_for(self, level: int) -> Model:
        """Make the model on first use, and keep what the values before ``level`` reached."""
        if self.model is None:
            self.model = Model(self.dense)
        for before in range(self.kept, level):
            self.model.keep(before, self.values[before])
        self.kept = level
        if not self.filled and self._everything_kept(level):
            self.filled = True
            self.model.fill()
        return self.model

    def _everything_kept(self, level: int) -> bool:
        """Whether the values before ``level`` leave no choice but to place every pod."""
        kept = {self.dense.levels[before] for before in range(level)}
        if any(("placed", group.priority) not in kept for group in self.dense.groups):
            return False
        return sum(self.solution.values()) == sum(pod_class.size for pod_class in self.dense.classes)

    def _solver(self, level: int) -> cp_model.CpSolver:
        solver = cp_model.CpSolver()
        share = SHARE if level + 1 < len(self.dense.levels) else 1.0
        parameters = solver.parameters
        parameters.num_workers = self.options.workers
        parameters.random_seed = self.options.seed
        if self.options.workers <= FEW_WORKERS:
            parameters.subsolvers.extend(["max_lp"])
        if self.limits.seconds < math.inf:
            parameters.max_time_in_seconds = max(0.01, share * self.limits.seconds)
        if self.limits.work < math.inf:
            parameters.max_deterministic_time = max(1e-6, share * self.limits.work)
        return solver


class _Watch(cp_model.CpSolverSolutionCallback):
    """Tells every better solution as soon as it is found, so that a killed process loses nothing."""

    def __init__(self, search: _Search, model: Model, phase: str) -> None:
        super().__init__()
        self._search, self._model, self._phase = search, model, phase

    def on_solution_callback(self) -> None:
        """Read the solution and offer it."""
        self._search.offer(self._model.read(list(self.response_proto.solution)), self._phase)
