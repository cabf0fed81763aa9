"""The MILP of one instance: variables, rules and values, and the way between it and solutions."""

from __future__ import annotations

from placer.dense import Dense, Solution
from placer.methods.milp.constraints import MilpConstraints
from placer.methods.milp.objective import MilpObjective
from placer.methods.milp.program import Linear, PulpProgram
from placer.methods.milp.variables import MilpVariables
from placer.placement import MAXIMISED

__all__ = ["TOLERANCE", "MilpModel"]

#: How far from an integer a solver's count may be; what is rounded is checked in integers anyway.
TOLERANCE = 1e-4


class MilpModel:
    """One program for all values; values reached are kept by rows that are added one after another.

    Parameters
    ----------
    dense
        The instance.

    Raises
    ------
    TooLarge
        Too many variables, or too large numbers.
    """

    def __init__(self, dense: Dense) -> None:
        self.dense = dense
        self.variables = MilpVariables(dense)
        self.program: PulpProgram = self.variables.program
        MilpConstraints(self.variables).add()
        self.objective = MilpObjective(self.variables)

    def aim(self, level: int) -> Linear:
        """Make a level the objective, and return its expression."""
        value = self.objective.level(level)
        self.program.minimise(value, -1 if self._maximised(level) else 1)
        return value

    def keep(self, level: int, reached: int) -> None:
        """From now on a level is at least as good as ``reached``."""
        value, name = self.objective.level(level), self.dense.levels[level][0]
        if self._maximised(level):
            self.program.at_least(f"keep_{name}", value, reached)
        else:
            self.program.at_most(f"keep_{name}", value, reached)

    def start_from(self, solution: Solution | None) -> bool:
        """Give the solver a solution to start from, and say whether it can be said here."""
        values = None if solution is None else self.variables.values(solution)
        self.program.start_from(values)
        return values is not None

    def read(self) -> Solution | None:
        """Solution that the solver found; None where it is not integer, or breaks a row once it is."""
        solution = self.variables.read(self.program.found(self.program.variables), TOLERANCE)
        return None if solution is None or self.broken(solution) is not None else solution

    def broken(self, solution: Solution) -> str | None:
        """Name of a row that the solution breaks, in exact arithmetic; None where it keeps all."""
        values = self.variables.values(solution)
        return "eligibility" if values is None else self.program.broken(values)

    def value(self, level: int, solution: Solution) -> int:
        """Value of a level as the program sees a solution that keeps its rows."""
        values = self.variables.values(solution)
        assert values is not None
        return self.objective.level(level).at(values.__getitem__)

    def _maximised(self, level: int) -> bool:
        return self.dense.levels[level][0] in MAXIMISED
