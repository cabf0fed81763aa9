"""Columns and rows in whole numbers: a bound from the linear relaxation, and points with some columns whole.

The bound needs no trust in the solver: GLOP gives prices, and what they prove is worked out in whole numbers
(:mod:`placer.bounds.lp.program`). Points come from HiGHS.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import highspy
from ortools.math_opt import model_pb2
from ortools.math_opt.python import mathopt

from placer.bounds.lp.program import Row, certified

__all__ = ["Program", "Sum"]


@dataclass
class Sum:
    """A sum of columns that grows."""

    columns: list[int] = field(default_factory=list)
    coefficients: list[int] = field(default_factory=list)

    def add(self, coefficient: int, *columns: int) -> Sum:
        """Add ``coefficient`` times each column."""
        if coefficient:
            self.columns.extend(columns)
            self.coefficients.extend([coefficient] * len(columns))
        return self

    def merged(self) -> dict[int, int]:
        """Column to coefficient, each column once, in ascending order."""
        found: dict[int, int] = {}
        for column, coefficient in zip(self.columns, self.coefficients, strict=True):
            found[column] = found.get(column, 0) + coefficient
        return dict(sorted(found.items()))

    def at(self, point: Sequence[float]) -> float:
        """Value at a point."""
        return sum(point[column] * many for column, many in zip(self.columns, self.coefficients, strict=True))


class Program:
    """Columns of 0 .. their most, all whole in truth, and rows."""

    def __init__(self) -> None:
        self.most: list[int] = []
        self.rows: list[tuple[dict[int, int], bool, int]] = []

    def column(self, most: int) -> int:
        """Add a column of 0 .. ``most``."""
        self.most.append(most)
        return len(self.most) - 1

    def equal(self, total: Sum, right: int) -> None:
        """Add ``total == right``."""
        self.rows.append((total.merged(), True, right))

    def at_most(self, total: Sum, right: int) -> None:
        """Add ``total <= right``."""
        self.rows.append((total.merged(), False, right))

    def least(self, value: Sum, seconds: float) -> int | None:
        """A number that ``value`` is never below; None where the solver has no prices.

        Parameters
        ----------
        value
            What is bounded.
        seconds
            How long the solver may take.
        """
        model = self._model(value.merged())
        solved = mathopt.solve(model, mathopt.SolverType.GLOP, params=_limits(seconds))
        if not solved.has_dual_feasible_solution():
            return None
        prices = solved.dual_values()
        rows: list[Row] = []
        fair: list[float] = []
        for handle, (terms, equal, right) in zip(model.linear_constraints(), self.rows, strict=True):
            price = -prices[handle]  # of the program that maximises what is minimised here
            rows.append(Row.of(terms, right))
            fair.append(price)
            if equal:
                rows.append(Row.of({column: -many for column, many in terms.items()}, -right))
                fair.append(-price)
        if not all(map(math.isfinite, fair)):
            return None
        return -certified(self.most, rows, {column: -many for column, many in value.merged().items()}, fair)

    def point(self, value: Sum, whole: Collection[int], seconds: float, nodes: int, gap: float) -> list[float] | None:
        """A point at which ``value`` is small; None where none is found.

        Parameters
        ----------
        value
            What is minimised.
        whole
            Columns that are whole there; the others may be fractions.
        seconds, nodes
            How long the solver may take, and how many nodes of its tree.
        gap
            How near to the least is near enough, as a share of it.
        """
        solver = highspy.Highs()
        for name, setting in (
            ("output_flag", False),
            ("time_limit", max(0.01, seconds)),
            ("mip_max_nodes", nodes),
            ("mip_rel_gap", gap),
        ):
            solver.setOptionValue(name, setting)
        chosen = set(whole)
        solver.passModel(self._lp(value.merged(), chosen))
        solver.run()
        if solver.getInfo().primal_solution_status != highspy.kSolutionStatusFeasible:
            return None
        values: list[float] = list(solver.getSolution().col_value)
        return [float(round(each)) if index in chosen else each for index, each in enumerate(values)]

    def _lp(self, value: dict[int, int], whole: Collection[int]) -> highspy.HighsLp:
        """The program as HiGHS takes it; the same HiGHS as in ``milp``, for two of them in one process crash."""
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = len(self.most), len(self.rows)
        lp.col_cost_ = [float(value.get(column, 0)) for column in range(len(self.most))]
        lp.col_lower_ = [0.0] * len(self.most)
        lp.col_upper_ = [float(most) for most in self.most]
        lp.row_lower_ = [float(right) if equal else -math.inf for _, equal, right in self.rows]
        lp.row_upper_ = [float(right) for _, _, right in self.rows]
        kind = highspy.HighsVarType
        lp.integrality_ = [kind.kInteger if column in whole else kind.kContinuous for column in range(len(self.most))]
        entries = [[(column, many) for column, many in terms.items() if many] for terms, _, _ in self.rows]
        matrix = lp.a_matrix_
        matrix.format_, matrix.num_col_, matrix.num_row_ = highspy.MatrixFormat.kRowwise, lp.num_col_, lp.num_row_
        matrix.start_ = [0, *accumulate(map(len, entries))]
        matrix.index_ = [column for row in entries for column, _ in row]
        matrix.value_ = [float(many) for row in entries for _, many in row]
        return lp

    def _model(self, value: dict[int, int]) -> mathopt.Model:
        proto = model_pb2.ModelProto()
        proto.variables.ids.extend(range(len(self.most)))
        proto.variables.lower_bounds.extend([0.0] * len(self.most))
        proto.variables.upper_bounds.extend(map(float, self.most))
        proto.variables.integers.extend([False] * len(self.most))
        proto.linear_constraints.ids.extend(range(len(self.rows)))
        proto.linear_constraints.upper_bounds.extend(float(right) for _, _, right in self.rows)
        proto.linear_constraints.lower_bounds.extend(
            float(right) if equal else -math.inf for _, equal, right in self.rows
        )
        matrix = proto.linear_constraint_matrix
        for number, (terms, _, _) in enumerate(self.rows):
            entries = {column: many for column, many in terms.items() if many}
            matrix.row_ids.extend([number] * len(entries))
            matrix.column_ids.extend(entries)
            matrix.coefficients.extend(map(float, entries.values()))
        entries = {column: many for column, many in value.items() if many}
        proto.objective.linear_coefficients.ids.extend(entries)
        proto.objective.linear_coefficients.values.extend(map(float, entries.values()))
        return mathopt.Model.from_model_proto(proto)


def _limits(seconds: float) -> mathopt.SolveParameters:
    time = None if seconds == math.inf else datetime.timedelta(seconds=max(0.01, seconds))
    return mathopt.SolveParameters(time_limit=time)
