"""Linear expressions and integer programs in whole numbers, for every solver.

A program maximises c v where G v <= h (or = h) and 0 <= v <= u. Weak duality bounds it for any prices y, at least 0 for
the rows with <=: c v <= y h + sum over columns j of u(j) max(0, c(j) - y G(j)). GLOP gives prices, which are rounded to
fractions with one denominator; the right hand side is exact, so errors of floats make a bound weaker, never wrong
(Neumaier and Shcherbina, "Safe bounds in linear and mixed-integer linear programming", 2004).
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate
from threading import Event
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

if TYPE_CHECKING:
    import highspy
    from ortools.math_opt import sparse_containers_pb2
    from ortools.math_opt.python import mathopt

V = TypeVar("V", bound=Hashable)

#: What a variable may be worth: integers, or the fractions of a relaxation.
Number = TypeVar("Number", int, float)


@dataclass
class LinearExpression(Generic[V]):
    """A sum of terms, coefficient times variable, and a constant; it can still grow.

    A variable that was added twice is there twice.

    Examples
    --------
    >>> total = LinearExpression[str]().add(2, "x", "y").add(3, "x")
    >>> total.merged()
    {'x': 5, 'y': 2}
    >>> total.at({"x": 1, "y": 10}.__getitem__)
    25
    """

    variables: list[V] = field(default_factory=list)
    coefficients: list[int] = field(default_factory=list)
    constant: int = 0

    def add(self, coefficient: int, *variables: V) -> LinearExpression[V]:
        """Add ``coefficient`` times each variable; return the expression."""
        if coefficient:
            self.variables.extend(variables)
            self.coefficients.extend([coefficient] * len(variables))
        return self

    def plus(self, factor: int, *others: LinearExpression[V]) -> LinearExpression[V]:
        """Add ``factor`` times each of the other expressions; return the expression."""
        for other in others if factor else ():
            self.constant += factor * other.constant
            self.variables.extend(other.variables)
            self.coefficients.extend(factor * coefficient for coefficient in other.coefficients)
        return self

    def merged(self) -> dict[V, int]:
        """Variable to coefficient, each variable once, in the order in which they came first; without the constant."""
        found: dict[V, int] = {}
        for variable, coefficient in zip(self.variables, self.coefficients, strict=True):
            found[variable] = found.get(variable, 0) + coefficient
        return found

    def at(self, value_of: Callable[[V], Number]) -> Number:
        """Value of the expression, constant included."""
        terms = zip(self.variables, self.coefficients, strict=True)
        return self.constant + sum(coefficient * value_of(variable) for variable, coefficient in terms)


#: A linear expression over columns, which are numbers.
ColumnSum: TypeAlias = LinearExpression[int]

#: The same, or column to coefficient.
Terms: TypeAlias = ColumnSum | Mapping[int, int]

#: Denominator for prices that are no simple fractions.
FINE = 2**40

#: Values in whole numbers that are no further from their bound are best.
LESS_THAN_A_UNIT = 0.49

#: A price is also taken for the nearest fraction with a denominator up to this: data are integers, and so the prices of
#: a basis are often simple fractions, with which the bound is exact.
SIMPLE = 1000


@dataclass(frozen=True)
class Row:
    """``sum of coefficient * column <= room``, or ``= room`` where it is ``equal``."""

    columns: tuple[int, ...]
    coefficients: tuple[int, ...]
    room: int
    equal: bool = False

    @classmethod
    def of(cls, terms: Terms, room: int, *, equal: bool = False) -> Row:
        """Make a row; columns of an expression get ascending order."""
        merged = dict(sorted(terms.merged().items())) if isinstance(terms, LinearExpression) else terms
        kept = {column: coefficient for column, coefficient in merged.items() if coefficient}
        return cls(tuple(kept), tuple(kept.values()), room, equal)


@dataclass(frozen=True)
class Relaxed:
    """The answer of the linear relaxation; without prices these are zeros, and ``bound`` is that of the columns."""

    bound: int
    point: tuple[float, ...] | None
    prices: tuple[float, ...]


@dataclass(frozen=True)
class Branched:
    """The answer of branch and cut.

    ``values`` keep all rows in whole numbers; ``bound`` is below the expression without its constant; ``infeasible``:
    the solver says that there are no values at all; ``iterations`` are those of the simplex method.
    """

    values: list[int] | None
    bound: float
    optimal: bool
    infeasible: bool
    iterations: int


class IntegerProgram:
    """Columns and rows, to which more can be added between solves."""

    def __init__(self) -> None:
        self.upper: list[int] = []
        self.rows: list[Row] = []

    def column(self, upper: int) -> int:
        """Add a column of 0 .. ``upper``; return its number."""
        self.upper.append(upper)
        return len(self.upper) - 1

    def at_most(self, total: Terms, room: int) -> None:
        """Add the row ``total <= room``, unless that is always so."""
        row = Row.of(total, room)
        terms = zip(row.columns, row.coefficients, strict=True)
        if sum(max(0, many) * self.upper[column] for column, many in terms) > room:
            self.rows.append(row)

    def equal(self, total: Terms, value: int) -> None:
        """Add the row ``total = value``."""
        self.rows.append(Row.of(total, value, equal=True))

    def maximum(self, gains: Mapping[int, int], extra: Sequence[Row] = (), seconds: float = math.inf) -> Relaxed:
        """Bound the maximum of an objective.

        Parameters
        ----------
        gains
            Column to its gain per unit; absent: 0.
        extra
            Rows for this solve only.
        """
        from ortools.math_opt.python import mathopt

        rows = [*self.rows, *extra]
        model = _glop_model(self.upper, rows, gains)
        time = None if seconds == math.inf else datetime.timedelta(seconds=max(0.01, seconds))
        solved = mathopt.solve(model, mathopt.SolverType.GLOP, params=mathopt.SolveParameters(time_limit=time))
        if solved.has_dual_feasible_solution() and solved.has_primal_feasible_solution():
            by_row, by_column = solved.dual_values(), solved.variable_values()
            prices = [by_row[handle] for handle in model.linear_constraints()]
            if all(map(math.isfinite, prices)):
                point = tuple(by_column[handle] for handle in model.variables())
                return Relaxed(certified(self.upper, rows, gains, prices), point, tuple(prices))
        none = (0.0,) * len(rows)
        return Relaxed(certified(self.upper, rows, gains, none), None, none)

    def minimum(self, value: ColumnSum, seconds: float = math.inf) -> int | None:
        """Return a lower bound of an expression without its constant; None: the solver has no prices."""
        relaxed = self.maximum({column: -many for column, many in sorted(value.merged().items())}, (), seconds)
        return None if relaxed.point is None else -relaxed.bound

    def point(
        self, value: ColumnSum, whole: Collection[int], seconds: float, nodes: int, gap: float
    ) -> list[float] | None:
        """Look for a point at which an expression is small; None where none is found.

        ``whole`` columns are no fractions there; ``nodes`` limits the tree, ``gap`` is relative.
        """
        import highspy

        solver = _highs(seconds, nodes, mip_rel_gap=gap)
        chosen = set(whole)
        solver.passModel(_highs_model(self.upper, self.rows, value.merged(), chosen))
        solver.run()
        if solver.getInfo().primal_solution_status != highspy.kSolutionStatusFeasible:
            return None
        values: list[float] = list(solver.getSolution().col_value)
        return [float(round(each)) if index in chosen else each for index, each in enumerate(values)]

    def branched(
        self,
        value: ColumnSum,
        start: Sequence[int] | None,
        seconds: float,
        nodes: int,
        *,
        seed: int,
        ended: Event,
        enough: float = -math.inf,
    ) -> Branched:
        """Minimise an expression over whole numbers by branch and cut, in a thread that asks HiGHS nothing else.

        Its bound is as exact as floats are; where ``nodes`` ends it, the answer is the same on every machine. Once
        ``ended`` is set, or the expression without its constant is at most ``enough``, the solver ends with its best
        values.
        """
        import highspy

        # Without a number of threads it takes half of the machine's, whatever a container has of it. It refuses another
        # number than the thread that calls it had before, so this is called in a thread of its own.
        solver = _highs(seconds, nodes, mip_rel_gap=0.0, mip_abs_gap=LESS_THAN_A_UNIT, random_seed=seed, threads=1)
        solver.setOptionValue("objective_target", enough + LESS_THAN_A_UNIT)

        def interrupt(event: highspy.HighsCallbackEvent) -> None:
            if ended.is_set():
                event.interrupt()

        solver.cbMipInterrupt.subscribe(interrupt)
        taken = solver.passModel(_highs_model(self.upper, self.rows, value.merged(), range(len(self.upper))))
        if start is not None:
            point = highspy.HighsSolution()
            point.col_value = list(map(float, start))
            solver.setSolution(point)
        if highspy.HighsStatus.kError in (taken, solver.run()):
            return Branched(None, -math.inf, optimal=False, infeasible=False, iterations=0)
        info, status = solver.getInfo(), solver.getModelStatus()
        values = [round(each) for each in solver.getSolution().col_value]
        found = info.primal_solution_status == highspy.kSolutionStatusFeasible and self.allows(values)
        return Branched(
            values if found else None,
            info.mip_dual_bound,
            found and status == highspy.HighsModelStatus.kOptimal,
            status == highspy.HighsModelStatus.kInfeasible,
            max(0, info.simplex_iteration_count),
        )

    def allows(self, values: Sequence[int]) -> bool:
        """Whether whole numbers keep the ends of all columns and all rows."""
        if not all(0 <= value <= most for value, most in zip(values, self.upper, strict=True)):
            return False
        for row in self.rows:
            total = sum(many * values[column] for column, many in zip(row.columns, row.coefficients, strict=True))
            if total > row.room or (row.equal and total < row.room):
                return False
        return True


def _highs(seconds: float, nodes: int, **settings: float) -> highspy.Highs:
    import highspy

    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("time_limit", max(0.01, seconds))
    solver.setOptionValue("mip_max_nodes", nodes)
    for name, setting in settings.items():
        solver.setOptionValue(name, setting)
    return solver


def _glop_model(upper: Sequence[int], rows: Sequence[Row], gains: Mapping[int, int]) -> mathopt.Model:
    """A message is much faster than the same program term by term."""
    from ortools.math_opt import model_pb2
    from ortools.math_opt.python import mathopt

    proto = model_pb2.ModelProto()
    proto.variables.ids.extend(range(len(upper)))
    proto.variables.lower_bounds.extend([0.0] * len(upper))
    proto.variables.upper_bounds.extend(map(float, upper))
    proto.variables.integers.extend([False] * len(upper))
    proto.linear_constraints.ids.extend(range(len(rows)))
    proto.linear_constraints.upper_bounds.extend(float(row.room) for row in rows)
    proto.linear_constraints.lower_bounds.extend(float(row.room) if row.equal else -math.inf for row in rows)
    _fill_matrix(proto.linear_constraint_matrix, rows)
    terms = sorted((column, many) for column, many in gains.items() if many)
    proto.objective.maximize = True
    proto.objective.linear_coefficients.ids.extend(column for column, _ in terms)
    proto.objective.linear_coefficients.values.extend(float(many) for _, many in terms)
    return mathopt.Model.from_model_proto(proto)


def _fill_matrix(matrix: sparse_containers_pb2.SparseDoubleMatrixProto, rows: Sequence[Row]) -> None:
    for number, row in enumerate(rows):
        terms = sorted(zip(row.columns, row.coefficients, strict=True))
        matrix.row_ids.extend([number] * len(terms))
        matrix.column_ids.extend(column for column, _ in terms)
        matrix.coefficients.extend(float(many) for _, many in terms)


def _highs_model(
    upper: Sequence[int], rows: Sequence[Row], value: Mapping[int, int], whole: Collection[int]
) -> highspy.HighsLp:
    """By the HiGHS that ``milp`` uses, because two of them in one process crash."""
    import highspy

    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(upper), len(rows)
    lp.col_cost_ = [float(value.get(column, 0)) for column in range(len(upper))]
    lp.col_lower_ = [0.0] * len(upper)
    lp.col_upper_ = [float(most) for most in upper]
    kind = highspy.HighsVarType
    lp.integrality_ = [kind.kInteger if column in whole else kind.kContinuous for column in range(len(upper))]
    _fill_rows(lp, rows)
    return lp


def _fill_rows(lp: highspy.HighsLp, rows: Sequence[Row]) -> None:
    import highspy

    lp.row_lower_ = [float(row.room) if row.equal else -math.inf for row in rows]
    lp.row_upper_ = [float(row.room) for row in rows]
    matrix = lp.a_matrix_
    matrix.format_, matrix.num_col_, matrix.num_row_ = highspy.MatrixFormat.kRowwise, lp.num_col_, lp.num_row_
    matrix.start_ = [0, *accumulate(len(row.columns) for row in rows)]
    matrix.index_ = [column for row in rows for column in row.columns]
    matrix.value_ = [float(many) for row in rows for many in row.coefficients]


def certified(upper: Sequence[int], rows: Sequence[Row], gains: Mapping[int, int], prices: Sequence[float]) -> int:
    """Bound the maximum by prices, in whole numbers: the least bound of several roundings of the prices.

    Negative prices count as 0 where the row is no equation.
    """
    fair = [price if row.equal else max(0.0, price) for row, price in zip(rows, prices, strict=True)]
    return min(_bound(upper, rows, gains, whole, unit) for whole, unit in _rounded(fair))


def _rounded(prices: Sequence[float]) -> Iterator[tuple[list[int], int]]:
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
