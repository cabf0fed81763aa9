"""The program and its search: the values one after another, each keeping those before."""

from __future__ import annotations

import math

import pulp

from placer.arrays import Dense, Solution, beats, score_solution
from placer.problem.placement import MAXIMISED
from placer.search.events import BoundFound, Emit, Improved, SearchOptions, SolverFault, TooLarge
from placer.search.milp.constraints import MilpConstraints
from placer.search.milp.flows import Flows, size_of_flows
from placer.search.milp.neighbour_variables import NeighbourVariables
from placer.search.milp.objective import MilpObjective
from placer.search.milp.solvers import NODES_PER_WORK, SolveStatus, ask, make_solver, nodes_used, proves
from placer.search.milp.variables import CountBounds, Linear, MilpVariables, Values
from placer.search.milp.zones import ZoneRows, plans_of, size_of_plans

__all__ = ["MOST_VARIABLES", "TOLERANCE", "MilpModel", "search"]

#: A program with more counts and homes than this is not built: PuLP alone would take minutes and gigabytes for it, and
#: no solver it knows gets anywhere.
MOST_VARIABLES = 300_000

#: How far from an integer a solver's count may be; what is rounded is checked in integers anyway.
TOLERANCE = 1e-4

#: Share of what is left of the limit that a value may take while others come after it.
SHARE = 0.6


#: Said of a solution that keeps all rows and has no order in which each pod is admitted (C12).
NO_ORDER = "order of pod_affinity"


class MilpModel:
    """One program for all values; values reached are kept by rows that are added one after another.

    Raises
    ------
    TooLarge
        More than :data:`MOST_VARIABLES`, too many crowds before kubelets, or too large numbers.
    """

    def __init__(self, dense: Dense) -> None:
        self.dense = dense
        bounds = CountBounds(dense)
        plans = plans_of(dense, bounds.fits)
        size = bounds.size + size_of_flows(dense, bounds.fits) + size_of_plans(plans)
        if size > MOST_VARIABLES:
            raise TooLarge(f"{size:,} variables, at most {MOST_VARIABLES:,}")
        self.variables = MilpVariables(bounds)
        self.program = self.variables.program
        self.flows = None if dense.network is None else Flows(self.variables, dense.network)
        self.zones = ZoneRows(self.variables, plans)
        self.neighbours = None if dense.neighbours is None else NeighbourVariables(self.variables, dense.neighbours)
        MilpConstraints(self.variables, self.flows, self.zones, self.neighbours).add()
        self.objective = MilpObjective(self.variables, self.flows)
        #: Whether more may have been excluded than C12 asks for, so that nothing counts as proved.
        self.unsure = False

    def aim(self, criterion: int) -> Linear:
        """Make a criterion the objective, and return its expression."""
        value = self.objective.criterion(criterion)
        self.program.minimise(value, -1 if self._maximised(criterion) else 1)
        return value

    def keep(self, criterion: int, reached: int) -> None:
        """From now on a criterion is at least as good as ``reached``."""
        value, name = self.objective.criterion(criterion), self.dense.criteria[criterion][0]
        if self._maximised(criterion):
            self.program.at_least(f"keep_{name}", value, reached)
        else:
            self.program.at_most(f"keep_{name}", value, reached)

    def start_from(self, solution: Solution | None) -> bool:
        """Give the solver a solution to start from; False where it cannot be expressed here."""
        values = None if solution is None else self.values(solution)
        self.program.start_from(values)
        return values is not None

    def read(self) -> Solution | None:
        """Solution that the solver found; None where it is not integer, or breaks a row once it is."""
        solution = self.variables.read(TOLERANCE)
        return None if solution is None or self.broken(solution) is not None else solution

    def exclude(self) -> bool:
        """Exclude the solver's solution where its pods have no order in which each is admitted (C12); say whether it
        was.
        """
        found = self.variables.read(TOLERANCE) if self.neighbours is not None else None
        if found is None or self.neighbours is None or self.broken(found) != NO_ORDER:
            return False
        self.unsure |= self.neighbours.neighbours.order(list(found)) is not None
        self.neighbours.exclude(found)
        return True

    def values(self, solution: Solution) -> Values | None:
        """Value of every variable for a solution; None where it cannot be expressed here."""
        values = self.variables.values(solution)
        if values is not None:
            self.zones.fill(values, solution)
            self.program.derive(values)
        return values

    def broken(self, solution: Solution) -> str | None:
        """Name of a row that the solution breaks, in exact arithmetic; None where it keeps all."""
        values = self.values(solution)
        if values is None:
            return "eligibility"
        row = self.program.broken(values)
        return NO_ORDER if row is None and not self.dense.orderable(solution) else row

    def value(self, criterion: int, solution: Solution) -> int:
        """Value of a criterion as the program sees a solution that keeps its rows."""
        values = self.values(solution)
        assert values is not None
        return self.objective.criterion(criterion).at(values.__getitem__)

    def _maximised(self, criterion: int) -> bool:
        return self.dense.criteria[criterion][0] in MAXIMISED


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
        self.deadline = options.deadline.part(0.95)
        self._nodes = None if options.work == math.inf else max(1, int(options.work * NODES_PER_WORK))
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
                proved = self._solve(criterion, model) and proved
                if self.solution is None:
                    return self._ended()
            elif value.constant != self.values[criterion]:
                raise SolverFault(self._differs(criterion, value.constant))
            if proved:
                self.emit(BoundFound(criterion, self.values[criterion], "milp", self.values[:criterion]))
            model.keep(criterion, self.values[criterion])
        if self.solution is None:
            self._take(Solution(), "nothing to decide")
        return "proved" if proved else self._ended()

    def _ended(self) -> str:
        return "time" if self.cut else "finished"

    def _solve(self, criterion: int, model: MilpModel) -> bool:
        last = criterion + 1 == len(self.dense.criteria)
        seconds, nodes = self._seconds_for(last), self._nodes_for(last)
        if (seconds is not None and seconds < 0.05) or nodes == 0:
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
        status = _ask(solver, model)
        if self._nodes is not None and nodes is not None:
            self._nodes -= nodes_used(solver, model.program.problem, nodes)
        return self._judge(criterion, model, status)

    def _judge(self, criterion: int, model: MilpModel, status: SolveStatus) -> bool:
        name = self.dense.criteria[criterion][0]
        if status is SolveStatus.IMPOSSIBLE:
            raise SolverFault(f"{self.options.solver} finds no solution for {name}, where there is one")
        self.cut = self.cut or status is not SolveStatus.OPTIMAL
        found = None if status is SolveStatus.NOTHING else model.read()
        return found is not None and self._judge_solution(
            criterion, model, found, optimal=status is SolveStatus.OPTIMAL
        )

    def _judge_solution(self, criterion: int, model: MilpModel, found: Solution, *, optimal: bool) -> bool:
        name = self.dense.criteria[criterion][0]
        values = score_solution(self.dense, found)
        if model.value(criterion, found) != values[criterion]:
            raise SolverFault(self._differs(criterion, model.value(criterion, found)))
        if self.solution is not None and optimal and beats(self.dense, self.values, values, criterion + 1):
            raise SolverFault(f"{name}: {values[criterion]} was called optimal, but there is {self.values[criterion]}")
        if self.solution is None or beats(self.dense, values, self.values):
            self._take(found, name)
        return (
            optimal and not model.unsure and proves(self.options.solver) and self.values[criterion] == values[criterion]
        )

    def _take(self, solution: Solution, phase: str) -> None:
        self.solution, self.values = solution, score_solution(self.dense, solution)
        self.emit(Improved(solution, phase))

    def _differs(self, criterion: int, said: int) -> str:
        name = self.dense.criteria[criterion][0]
        return f"{name}: the program says {said}, the arrays another value"

    # Limits

    def _seconds_for(self, last: bool) -> float | None:
        return None if self.deadline.at == math.inf else (1.0 if last else SHARE) * self.deadline.left

    def _nodes_for(self, last: bool) -> int | None:
        if self._nodes is None:
            return None
        return max(min(1, self._nodes), int(self._nodes * (1.0 if last else SHARE)), 0)


def _ask(solver: pulp.LpSolver, model: MilpModel) -> SolveStatus:
    status = ask(solver, model.program.problem)
    for _ in range(200):
        if status in (SolveStatus.IMPOSSIBLE, SolveStatus.NOTHING) or not model.exclude():
            break
        status = ask(solver, model.program.problem)
    return status
