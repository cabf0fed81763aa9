"""An integer program in PuLP, with numbers that doubles can hold.

A variable that is off by 1e-6 times a coefficient of 10^9 is off by a thousand. So every row is divided by its common
divisor, and one whose coefficients are still large is written digit by digit. With K = :data:`BASE`, a = K A + r,
b = K B + c, 0 <= r, c < K::

    sum a x <= b   is the same as   sum A x + q <= B  and  sum r x <= K q + c   for some integer q >= 0
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import pulp

from placer.base.linear import ColumnSum
from placer.search.events import TooLarge
from placer.search.exact.integer_form import IntegerForm

#: A variable (LpVariable) of PuLP, which brings no types.
Variable: TypeAlias = pulp.LpVariable

#: Coefficients of a row stay below this: times the 1e-6 that solvers call integral, it is less than a unit.
BASE = 2**16

#: Objectives beyond this are refused: doubles hold integers exactly up to 2^53.
LARGEST = 2**50


class PulpProgram:
    """The columns and rows of a model, as far as they are there at an :meth:`update`."""

    def __init__(self, program: IntegerForm) -> None:
        self.program, self.problem = program, pulp.LpProblem("placer", pulp.LpMinimize)
        self.variables: list[Variable] = []
        self._carries: list[tuple[Variable, dict[Variable, int], int]] = []
        self._rows = 0
        self.update()

    def update(self) -> None:
        """Add the columns and rows that the model has got since the last time."""
        self.program.update()
        for column in range(len(self.variables), len(self.program.upper)):
            self.variables.append(self._variable(f"x_{column}", self.program.upper[column]))
        for row in self.program.rows[self._rows :]:
            common = math.gcd(*row.coefficients) or 1
            terms = {self.variables[at]: each // common for at, each in zip(row.columns, row.coefficients, strict=True)}
            if row.equal and _small(terms) and not row.room % common:
                self._add(terms, pulp.LpConstraintEQ, row.room // common)
                continue
            self._at_most(terms, row.room // common)
            if row.equal:
                self._at_most({variable: -each for variable, each in terms.items()}, -row.room // common)
        self._rows = len(self.program.rows)

    def _variable(self, name: str, most: int) -> Variable:
        return self.problem.add_variable(name, 0, most, pulp.LpInteger)

    def _at_most(self, terms: dict[Variable, int], most: int) -> None:
        while not _small(terms):
            low = {variable: coefficient % BASE for variable, coefficient in terms.items() if coefficient % BASE}
            terms = {variable: coefficient // BASE for variable, coefficient in terms.items() if coefficient // BASE}
            most, rest = divmod(most, BASE)
            highest = -(-max(0, _most(low) - rest) // BASE)
            if highest:
                carry = self._variable(f"q_{len(self._carries)}", highest)
                self._carries.append((carry, low, rest))
                self._add({**low, carry: -BASE}, pulp.LpConstraintLE, rest)
                terms[carry] = 1
        self._add(terms, pulp.LpConstraintLE, most)

    def _add(self, terms: dict[Variable, int], sense: int, value: int) -> None:
        expression = pulp.LpAffineExpression(list(terms.items()))
        self.problem += pulp.LpConstraint(expression, sense, None, value)

    def minimise(self, value: ColumnSum, sign: int) -> None:
        """Make ``sign`` times an expression the objective, without its constant; TooLarge beyond :data:`LARGEST`."""
        terms = {self.variables[column]: sign * many for column, many in value.merged().items() if many}
        if max(_most(terms), _most({variable: -each for variable, each in terms.items()})) > LARGEST:
            raise TooLarge(f"objective: a sum of more than 2^{LARGEST.bit_length() - 1}")
        common = math.gcd(*terms.values()) or 1
        self.problem.setObjective(pulp.LpAffineExpression([(each, many // common) for each, many in terms.items()]))

    def start_from(self, values: Sequence[int] | None) -> None:
        """Give the solver a point to start from, by column, or none."""
        for column, variable in enumerate(self.variables):
            variable.varValue = None if values is None else values[column]
        for carry, low, rest in self._carries:
            if values is None:
                carry.varValue = None
            else:
                excess = sum(digit * variable.varValue for variable, digit in low.items()) - rest
                carry.varValue = max(0, -(-excess // BASE))

    def read(self) -> list[int] | None:
        """Values as the solver left them, in integers that keep all rows; None where they are none.

        A variable in no row that is left keeps its start, or is 0.
        """
        found = [variable.varValue or 0.0 for variable in self.variables]
        values = [round(value) for value in found]
        # The rows are checked in integers anyway.
        near = all(abs(value - whole) <= 1e-4 for value, whole in zip(found, values, strict=True))
        return values if near and self.program.allows(values) else None


def _small(terms: Mapping[Variable, int]) -> bool:
    return all(abs(coefficient) < BASE for coefficient in terms.values())


def _most(terms: Mapping[Variable, int]) -> int:
    return sum(coefficient * int(variable.upBound) for variable, coefficient in terms.items() if coefficient > 0)
