"""The search: the exact model as a program in PuLP, the values one after another, each keeping those before."""

from __future__ import annotations

import math

from placer.arrays import Dense, Solution, beats, score_solution
from placer.base.deadline import Budget
from placer.problem.placement import MAXIMISED
from placer.search.events import BoundFound, Emit, Improved, SearchOptions, SolverFault, TooLarge
from placer.search.exact.count_model import Linear, value_at
from placer.search.exact.integer_form import IntegerForm, columns_of
from placer.search.exact.method import ExactModel
from placer.search.milp.program import PulpProgram
from placer.search.milp.solvers import NODES_PER_WORK, SolveStatus, ask, make_solver, nodes_used, proves


class MilpModel:
    """The exact model and the same as a program in PuLP; TooLarge as for the exact one, or for too large numbers."""

    def __init__(self, dense: Dense) -> None:
        self.dense, self.exact = dense, ExactModel(dense)
        self.program = PulpProgram(IntegerForm(self.exact.proto))

    def aim(self, criterion: int) -> Linear:
        """Make a criterion the objective, and return its expression."""
        value = self.exact.criterion(criterion)
        self.program.update()
        self.program.minimise(columns_of(value), -1 if self.dense.criteria[criterion][0] in MAXIMISED else 1)
        return value

    def start_from(self, solution: Solution | None) -> None:
        """Give the solver a solution to start from, or none; rows added to the exact model count from now on."""
        values = None if solution is None else self.exact.hint(solution)
        self.program.update()
        self.program.start_from(values)


def search(dense: Dense, options: SearchOptions, emit: Emit) -> str:
    """Find the best placement and prove it, value after value.

    A unit of work is :data:`~placer.search.milp.solvers.NODES_PER_WORK` nodes of branch and bound; solutions are
    emitted per value, rounded and checked in integers.

    Returns
    -------
    str
        ``proved``: every value is. ``time``: a limit was reached. ``finished``: the program would be too large, the
        solver cannot prove, or its solution broke a rule once it was rounded.

    Raises
    ------
    SolverFault
        The solver says that there is no solution, or calls optimal a value that is worse than a known one.
    """
    return _MilpSearch(dense, options, emit).run()


class _MilpSearch:
    def __init__(self, dense: Dense, options: SearchOptions, emit: Emit) -> None:
        self.dense, self.options, self.emit = dense, options, emit
        # Handing a program to a solver takes time that no limit of the solver counts.
        self.limits = Budget(options.deadline.part(0.95), options.work)
        self.solution: Solution | None = None
        self.values = score_solution(dense, {})
        self.cut = False

    def run(self) -> str:
        try:
            return self._run(MilpModel(self.dense))
        except TooLarge:
            return "finished"

    def _run(self, model: MilpModel) -> str:
        proved = True
        for criterion in range(len(self.dense.criteria)):
            value = model.aim(criterion)
            if value.variables:
                proved = self._solve(criterion, model, value) and proved
                if self.solution is None:
                    return self._ended()
            else:
                self._check(criterion, value.constant, self.values)
            if proved:
                self.emit(BoundFound(criterion, self.values[criterion], "milp", self.values[:criterion]))
            model.exact.keep(criterion, self.values[criterion])
        if self.solution is None:
            self._take(Solution(), "nothing to decide")
        return "proved" if proved else self._ended()

    def _ended(self) -> str:
        return "time" if self.cut else "finished"

    def _solve(self, criterion: int, model: MilpModel, value: Linear) -> bool:
        """Improve one value; say whether it is proved as far as those before it are."""
        start = self.options.hint if self.solution is None else self.solution
        # Others come after it.
        turn = self.limits.part(1.0 if criterion + 1 == len(self.dense.criteria) else 0.6)
        for _ in range(200):  # solutions that no order admits are excluded one by one (C10, C12)
            model.start_from(start)
            status = self._asked(model, turn, start=start is not None)
            if status is SolveStatus.IMPOSSIBLE:
                name = self.dense.criteria[criterion][0]
                raise SolverFault(f"{self.options.solver} finds no solution for {name}, where there is one")
            optimal = status is SolveStatus.OPTIMAL
            self.cut |= not optimal
            point = None if status is SolveStatus.NOTHING else model.program.read()
            if point is None:
                return False
            found = model.exact.read(point)
            admitted = model.exact.admitted(found)
            if admitted is not None:
                said = value_at(value, point)
                return self._judge(criterion, admitted, said, optimal=optimal) and not model.exact.unsure
            if not model.exact.exclude(found):
                break
        return False

    def _asked(self, model: MilpModel, turn: Budget, *, start: bool) -> SolveStatus:
        seconds, nodes = turn.seconds, None if turn.work == math.inf else max(1, round(turn.work * NODES_PER_WORK))
        if seconds < 0.05 or turn.work <= 0:
            return SolveStatus.NOTHING
        solver = make_solver(
            self.options.solver,
            seconds=None if seconds == math.inf else seconds,
            nodes=nodes,
            workers=self.options.workers,
            seed=self.options.seed,
            start=start,
        )
        status = ask(solver, model.program.problem)
        if nodes is not None:
            turn.spend(nodes_used(solver, model.program.problem, nodes) / NODES_PER_WORK)
        return status

    def _judge(self, criterion: int, found: Solution, said: int, *, optimal: bool) -> bool:
        name, values = self.dense.criteria[criterion][0], score_solution(self.dense, found)
        if optimal:
            self._check(criterion, said, values)
        if self.solution is not None and optimal and beats(self.dense, self.values, values, criterion + 1):
            raise SolverFault(f"{name}: {values[criterion]} was called optimal, but there is {self.values[criterion]}")
        if self.solution is None or beats(self.dense, values, self.values):
            self._take(found, name)
        return optimal and proves(self.options.solver) and self.values[criterion] == values[criterion]

    def _check(self, criterion: int, said: int, values: tuple[int, ...]) -> None:
        if said != values[criterion]:
            raise SolverFault(f"{self.dense.criteria[criterion][0]}: the program says {said}, the arrays another value")

    def _take(self, solution: Solution, phase: str) -> None:
        self.solution, self.values = solution, score_solution(self.dense, solution)
        self.emit(Improved(solution, phase))
