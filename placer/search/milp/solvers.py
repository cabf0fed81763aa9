"""The solvers that PuLP knows: how one is made, asked and understood.

PuLP's ``status`` reads Optimal after a time limit with a solution in hand; only ``sol_status`` tells the two apart.

===========================  ================================================  =====================================
``sol_status``               native outcomes (HiGHS; CBC)                      means
===========================  ================================================  =====================================
LpSolutionOptimal            kOptimal; "Optimal"                               OPTIMAL: proved, gaps were asked to be 0
LpSolutionIntegerFeasible    kTimeLimit, kIterationLimit, kSolutionLimit,      FOUND: a solution, nothing proved
                             kInterrupt and so on with a solution; "Stopped ... objective"
LpSolutionNoSolutionFound    the same without one; kUnknown, kNotset, errors;  NOTHING
                             "Stopped", "Integer infeasible"
LpSolutionInfeasible         kInfeasible, kUnboundedOrInfeasible;              IMPOSSIBLE: to place nothing is always
                             "Infeasible"                                      allowed, so the solver is wrong
LpSolutionUnbounded          kUnbounded; "Unbounded"                           IMPOSSIBLE: every variable is bounded
===========================  ================================================  =====================================
"""

from __future__ import annotations

import inspect
import tempfile
from enum import Enum
from typing import Any

import pulp

from placer.base.linear import LESS_THAN_A_UNIT

#: The solver that is taken unless another one is named.
DEFAULT = "HiGHS"

#: A unit of ``--work-limit`` is so many nodes of branch and bound: this method has no other work that repeats.
NODES_PER_WORK = 1000


class SolveStatus(Enum):
    """How a solve ended."""

    OPTIMAL = "optimal"
    FOUND = "found"
    NOTHING = "nothing"
    IMPOSSIBLE = "impossible"


_OUTCOMES = {
    pulp.LpSolutionOptimal: SolveStatus.OPTIMAL,
    pulp.LpSolutionIntegerFeasible: SolveStatus.FOUND,
    pulp.LpSolutionNoSolutionFound: SolveStatus.NOTHING,
    pulp.LpSolutionInfeasible: SolveStatus.IMPOSSIBLE,
    pulp.LpSolutionUnbounded: SolveStatus.IMPOSSIBLE,
}


def solve_status(sol_status: int) -> SolveStatus:
    """Meaning of PuLP's ``sol_status``; ValueError for a number that PuLP 3 does not know."""
    if sol_status not in _OUTCOMES:
        raise ValueError(f"sol_status: found {sol_status}, expected one of {sorted(_OUTCOMES)}")
    return _OUTCOMES[sol_status]


class _HiGHS(pulp.HiGHS):  # type: ignore[misc]  # PuLP brings no types
    """PuLP's HiGHS, from a starting point, and with the endings that PuLP 3.3 does not expect."""

    def callSolver(self, lp: Any) -> None:  # noqa: N802  # PuLP's name
        import highspy

        values = [variable.varValue for variable in lp.variables()]
        if None not in values:
            start = highspy.HighsSolution()
            start.col_value = [float(value) for value in values]
            lp.solverModel.setSolution(start)
        lp.solverModel.run()

    def createAndConfigureSolver(self, lp: Any) -> None:  # noqa: N802  # PuLP's name
        """Its threads are started again, since their number may differ from the last call's."""
        import highspy

        highspy.Highs.resetGlobalScheduler(True)
        super().createAndConfigureSolver(lp)

    def findSolutionValues(self, lp: Any) -> tuple[int, int]:  # noqa: N802  # PuLP's name
        """A limit without a solution is none, whatever limit it was."""
        import highspy

        try:
            status, sol_status = super().findSolutionValues(lp)
        except KeyError:  # kSolutionLimit (nodes), kMemoryLimit, kHighsInterrupt: not in PuLP's table
            status, sol_status = pulp.LpStatusOptimal, pulp.LpSolutionIntegerFeasible
        some = lp.solverModel.getInfo().primal_solution_status == highspy.kSolutionStatusFeasible
        if sol_status == pulp.LpSolutionIntegerFeasible and not some:
            return pulp.LpStatusNotSolved, pulp.LpSolutionNoSolutionFound
        return status, sol_status


def make_solver(
    name: str,
    *,
    seconds: float | None = None,
    nodes: int | None = None,
    workers: int = 1,
    seed: int = 0,
    start: bool = False,
) -> Any:
    """Make a solver that is asked for a proof without any gap, with limits as far as PuLP can pass them on.

    ``COIN_CMD`` is the ``cbc`` on the path, else the one that comes with PuLP, as is ``PULP_CBC_CMD``.
    """
    kind = _kind(name)
    wanted: dict[str, Any] = {
        "msg": False,
        "timeLimit": seconds,
        "gapRel": 0.0,
        "gapAbs": LESS_THAN_A_UNIT,
        "threads": workers,
        "maxNodes": nodes,
        "warmStart": start,
    }
    if kind is _HiGHS:
        options = {} if nodes is None else {"mip_max_nodes": nodes}
        return kind(**_accepted(kind, wanted), random_seed=seed, **options)
    if kind is pulp.COIN_CMD:
        wanted["options"] = [f"randomCbcSeed {seed}"]
        wanted["path"] = _cbc(name)
    return kind(**_accepted(kind, wanted))


def ask(solver: Any, problem: Any) -> SolveStatus:
    """Solve; the variables of the problem get their values. PulpSolverError where the program crashes without a time
    limit.

    CBC 2.10 crashes where a limit ends before it has begun; that is no solution.
    """
    with tempfile.TemporaryDirectory() as folder:
        if hasattr(solver, "tmpDir"):
            solver.tmpDir = folder  # what a crash leaves behind goes with it
        try:
            problem.solve(solver)
        except pulp.PulpSolverError:
            if solver.timeLimit is None:
                raise
            return SolveStatus.NOTHING
    return solve_status(problem.sol_status)


def proves(name: str) -> bool:
    """Whether a solver's Optimal is a proof: only where it could be told to leave no gap."""
    return "gapRel" in inspect.signature(_kind(name).__init__).parameters


def nodes_used(solver: Any, problem: Any, most: int) -> int:
    """How many nodes a solve with a limit of ``most`` took, so far as one can know."""
    if isinstance(solver, _HiGHS):
        return max(1, int(problem.solverModel.getInfo().mip_node_count))
    return most


def complaint(name: str, work: float | None) -> str | None:
    """The fault of a solver's name, for people; None where it can be used with such a work limit."""
    known = {kind.name for kind in pulp.apis._all_solvers}
    if name not in known:
        return f"found {name}, expected a name that PuLP knows: {', '.join(sorted(known))}"
    if work is not None and name != DEFAULT and "maxNodes" not in inspect.signature(_kind(name).__init__).parameters:
        return f"found {name}, which takes no work limit; expected {DEFAULT} or COIN_CMD, or a time limit"
    if not make_solver(name).available():
        return f"found {name}, which PuLP knows but is not installed here; expected one that is, such as {DEFAULT}"
    return None


def _kind(name: str) -> Any:
    if name == DEFAULT:
        return _HiGHS
    if name == pulp.PULP_CBC_CMD.name:
        return pulp.COIN_CMD
    return next(kind for kind in pulp.apis._all_solvers if kind.name == name)


def _accepted(kind: Any, wanted: dict[str, Any]) -> dict[str, Any]:
    parameters = inspect.signature(kind.__init__).parameters
    return {name: value for name, value in wanted.items() if name in parameters and value is not None}


def _cbc(name: str) -> str:
    """PULP_CBC_CMD itself is deprecated, the program it would call is there all the same."""
    own = pulp.COIN_CMD(msg=False)
    if name == pulp.COIN_CMD.name and own.available():
        return str(own.path)
    return str(pulp.PULP_CBC_CMD.pulp_cbc_path)
