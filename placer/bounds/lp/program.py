"""A linear program in integers, and a bound on its optimum that needs no trust in the solver.

The program is: maximise c v where G v <= h and 0 <= v <= u, all numbers integers. For any prices y >= 0,

    c v  <=  y h + sum over columns j of u(j) max(0, c(j) - sum over rows i of y(i) G(i, j))

holds for every v of the program: y G v <= y h, and what a column gains beyond its prices it gains at most u(j) times.
So the solver (OR-Tools' GLOP) is asked for prices only. They are rounded to fractions with one denominator, and the
right hand side is worked out in whole numbers: what floats lose makes the bound weaker, never wrong.

Source: weak duality; used like this in Neumaier and Shcherbina, "Safe bounds in linear and mixed-integer linear
programming" (2004), here with integers in the place of directed rounding.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

__all__ = ["Answer", "Program", "Row", "certified"]

#: Denominator for prices that are no simple fractions.
FINE = 2**40

#: A price is also taken for the nearest fraction with a denominator up to this: data are integers, and so the prices of
#: a basis are often simple fractions, with which the bound is exact.
SIMPLE = 1000


@dataclass(frozen=True)
class Row:
    """``sum of coefficient * column <= room``."""

    columns: tuple[int, ...]
    coefficients: tuple[int, ...]
    room: int

    @classmethod
    def of(cls, terms: Mapping[int, int], room: int) -> Row:
        """Make a row of column to coefficient."""
        return cls(tuple(terms), tuple(terms.values()), room)


@dataclass(frozen=True)
class Answer:
    """A bound that holds whatever the solver did, and where the solver thinks the optimum is (None: it has none)."""

    bound: int
    point: tuple[float, ...] | None


class Program:
    """Columns and rows, to which more can be added between solves.

    Attributes
    ----------
    upper
        Most that each column can be, at least 0.
    rows
        All rows.
    """

    def __init__(self) -> None:
        self.upper: list[int] = []
        self.rows: list[Row] = []

    def column(self, upper: int) -> int:
        """Add a column of 0 .. ``upper``."""
        self.upper.append(upper)
        return len(self.upper) - 1

    def at_most(self, terms: Mapping[int, int], room: int) -> None:
        """Add ``sum of coefficient * column <= room``, unless that is always so."""
        if sum(max(0, coefficient) * self.upper[column] for column, coefficient in terms.items()) > room:
            self.rows.append(Row.of(terms, room))

    def solve(self, gains: Mapping[int, int], extra: Sequence[Row] = (), seconds: float = math.inf) -> Answer:
        """Bound the optimum.

        Parameters
        ----------
        gains
            Column to what a unit of it is worth; others are worth nothing.
        extra
            Rows for this solve only.
        seconds
            How long the solver may take; cut short it gives worse prices or none.

        Returns
        -------
        Answer
            With a bound in any case: without prices that of the columns alone.
        """
        from ortools.linear_solver import pywraplp

        rows = [*self.rows, *extra]
        solver = pywraplp.Solver.CreateSolver("GLOP")
        columns = [solver.NumVar(0.0, float(upper), "") for upper in self.upper]
        handles = []
        for row in rows:
            handle = solver.Constraint(-solver.infinity(), float(row.room))
            for column, coefficient in zip(row.columns, row.coefficients, strict=True):
                handle.SetCoefficient(columns[column], float(coefficient))
            handles.append(handle)
        goal = solver.Objective()
        goal.SetMaximization()
        for column, gain in gains.items():
            goal.SetCoefficient(columns[column], float(gain))
        if seconds < math.inf:
            solver.SetTimeLimit(max(1, int(seconds * 1000)))
        if solver.Solve() not in (pywraplp.Solver.OPTIMAL, pywraplp.Solver.FEASIBLE):
            return Answer(certified(self.upper, rows, gains, [0.0] * len(rows)), None)
        prices = [handle.dual_value() for handle in handles]
        if not all(map(math.isfinite, prices)):
            return Answer(certified(self.upper, rows, gains, [0.0] * len(rows)), None)
        point = tuple(column.solution_value() for column in columns)
        return Answer(certified(self.upper, rows, gains, prices), point)


def certified(upper: Sequence[int], rows: Sequence[Row], gains: Mapping[int, int], prices: Sequence[float]) -> int:
    """Bound the optimum by prices, in whole numbers.

    Parameters
    ----------
    upper, rows, gains
        The program and its objective.
    prices
        Of the rows; negative ones are taken as 0.

    Returns
    -------
    int
        The least of the bounds of several roundings of the prices; each of them holds.
    """
    fair = [max(0.0, price) for price in prices]
    return min(_bound(upper, rows, gains, whole, unit) for whole, unit in _rounded(fair))


def _rounded(prices: Sequence[float]) -> Iterator[tuple[list[int], int]]:
    """The prices as integers over a common denominator: as they are, and as simple fractions if there is one."""
    yield [round(price * FINE) for price in prices], FINE
    simple = [Fraction(price).limit_denominator(SIMPLE) for price in prices]
    unit = math.lcm(*(price.denominator for price in simple))
    if unit <= FINE:
        yield [int(price * unit) for price in simple], unit


def _bound(
    upper: Sequence[int], rows: Sequence[Row], gains: Mapping[int, int], prices: Sequence[int], unit: int
) -> int:
    left = [0] * len(upper)
    for column, gain in gains.items():
        left[column] = gain * unit
    total = 0
    for row, price in zip(rows, prices, strict=True):
        if price:
            total += price * row.room
            for column, coefficient in zip(row.columns, row.coefficients, strict=True):
                left[column] -= price * coefficient
    return (total + sum(gain * most for gain, most in zip(left, upper, strict=True) if gain > 0)) // unit
