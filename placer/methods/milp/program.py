"""An integer program in PuLP with small numbers, whose rows can be checked without a float.

A solver works with doubles and tolerances: a variable that is off by 1e-6 times a coefficient of 10^9 (bytes of memory
that have no large common divisor) is off by a thousand. So every row is divided by its common divisor, and one whose
coefficients are still large is written digit by digit. With K = :data:`BASE`, a = K A + r, b = K B + c, 0 <= r, c < K::

    sum a x <= b   is the same as   sum A x + q <= B  and  sum r x <= K q + c   for some integer q >= 0

(take q as small as the second row allows). The carry q changes neither the integer points nor, for real q, the LP.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import pulp

from placer.linear import LinearExpression
from placer.methods.events import TooLarge

__all__ = ["BASE", "LARGEST", "Linear", "PulpProgram", "Values", "Variable"]

#: What PuLP calls LpVariable; it brings no types.
Variable: TypeAlias = pulp.LpVariable

#: A linear expression over variables of a program.
Linear: TypeAlias = LinearExpression[pulp.LpVariable]

#: An integer for each variable of a program.
Values: TypeAlias = dict[Variable, int]

#: Coefficients of a row stay below this: times the 1e-6 that solvers call integral, it is less than a unit.
BASE = 2**16

#: Sums beyond this are refused: doubles hold integers exactly up to 2^53, and sums of them are formed.
LARGEST = 2**50


@dataclass(frozen=True)
class _Carry:
    """The carry of a row written digit by digit: the least q >= 0 with sum ``low`` <= BASE q + ``rest``."""

    variable: Variable
    low: dict[Variable, int]
    rest: int

    def at(self, values: Mapping[Variable, int]) -> int:
        excess = sum(digit * values[variable] for variable, digit in self.low.items()) - self.rest
        return max(0, -(-excess // BASE))


class PulpProgram:
    """Rows and variables of one integer program; every variable is at least 0."""

    def __init__(self) -> None:
        self.problem = pulp.LpProblem("placer", pulp.LpMinimize)
        self.variables: list[Variable] = []
        self._carries: list[_Carry] = []
        self._rows = 0

    def integer(self, name: str, most: int) -> Variable:
        """Make an integer variable of 0 .. ``most``."""
        return self._variable(name, most, pulp.LpInteger)

    def real(self, name: str, most: int) -> Variable:
        """Make a variable that is an integer by itself wherever the integer ones are."""
        return self._variable(name, most, pulp.LpContinuous)

    def _variable(self, name: str, most: int, kind: str) -> Variable:
        variable = self.problem.add_variable(name, 0, most, kind)
        self.variables.append(variable)
        return variable

    def at_most(self, rule: str, row: Linear, most: int) -> None:
        """Row <= ``most``; left out where no values can break it.

        Raises
        ------
        TooLarge
            The row's sum could be beyond :data:`LARGEST`.
        """
        terms = {variable: coefficient for variable, coefficient in row.merged().items() if coefficient}
        most -= row.constant
        if max(_most(terms), -_least(terms), abs(most)) > LARGEST:
            raise TooLarge(f"{rule}: a sum of more than 2^{LARGEST.bit_length() - 1}")
        if _most(terms) <= most:
            return
        common = math.gcd(*terms.values()) if terms else 1
        self._split(rule, {variable: coefficient // common for variable, coefficient in terms.items()}, most // common)

    def at_least(self, rule: str, row: Linear, least: int) -> None:
        """Row >= ``least``."""
        self.at_most(rule, Linear().plus(-1, row), -least)

    def equal(self, rule: str, row: Linear, value: int) -> None:
        """Row = ``value``; only for rows with small coefficients."""
        self._add(rule, row.merged(), pulp.LpConstraintEQ, value - row.constant)

    def _split(self, rule: str, terms: dict[Variable, int], most: int) -> None:
        """Add terms <= ``most`` digit by digit, the lowest first."""
        while any(abs(coefficient) >= BASE for coefficient in terms.values()):
            low = {variable: coefficient % BASE for variable, coefficient in terms.items() if coefficient % BASE}
            terms = {variable: coefficient // BASE for variable, coefficient in terms.items() if coefficient // BASE}
            most, rest = divmod(most, BASE)
            highest = -(-max(0, _most(low) - rest) // BASE)
            if highest:
                carry = self.integer(f"q_{len(self._carries)}", highest)
                self._carries.append(_Carry(carry, low, rest))
                self._add(f"{rule}_digit", {**low, carry: -BASE}, pulp.LpConstraintLE, rest)
                terms[carry] = 1
        self._add(rule, terms, pulp.LpConstraintLE, most)

    def _add(self, rule: str, terms: dict[Variable, int], sense: int, value: int) -> None:
        self._rows += 1
        expression = pulp.LpAffineExpression(list(terms.items()))
        self.problem += pulp.LpConstraint(expression, sense, f"{rule}_{self._rows}", value)

    def minimise(self, row: Linear, sign: int) -> None:
        """Make ``sign`` times the row the objective, divided by its common divisor; the constant is left out.

        Raises
        ------
        TooLarge
            The sum could be beyond :data:`LARGEST`.
        """
        merged = row.merged()
        if max(_most(merged), -_least(merged)) > LARGEST:
            raise TooLarge(f"objective: a sum of more than 2^{LARGEST.bit_length() - 1}")
        common = math.gcd(*merged.values()) or 1
        terms = [(variable, sign * coefficient // common) for variable, coefficient in merged.items() if coefficient]
        self.problem.setObjective(pulp.LpAffineExpression(terms))

    def carry(self, values: Values) -> Values:
        """Add the values of the carries, which follow from the others."""
        for carry in self._carries:
            values[carry.variable] = carry.at(values)
        return values

    def broken(self, values: Values) -> str | None:
        """Name of the first row or variable that does not hold, in exact arithmetic; None where all do."""
        for variable in self.variables:
            if not 0 <= values[variable] <= variable.upBound:
                return str(variable.name)
        for row in self.problem.constraints():
            excess = sum(coefficient * values[variable] for variable, coefficient in row.items()) + int(row.constant)
            # sense is -1 for <=, 0 for =, 1 for >=
            if excess != 0 and (row.sense == 0 or (excess > 0) == (row.sense < 0)):
                return str(row.name)
        return None

    def start_from(self, values: Values | None) -> None:
        """Give the solver a point to start from, or none."""
        for variable in self.variables:
            variable.varValue = None if values is None else values[variable]

    def found(self, variables: Iterable[Variable]) -> dict[Variable, float]:
        """What the solver found; a variable in no row that is left keeps what it started from, or is 0."""
        return {variable: variable.varValue or 0.0 for variable in variables}


def _most(terms: Mapping[Variable, int]) -> int:
    return sum(coefficient * int(variable.upBound) for variable, coefficient in terms.items() if coefficient > 0)


def _least(terms: Mapping[Variable, int]) -> int:
    return sum(coefficient * int(variable.upBound) for variable, coefficient in terms.items() if coefficient < 0)
