"""A CP-SAT model as an integer program, for solvers that know rows of integers only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ortools.sat.python.cp_model import CpModel

from placer.base.linear import ColumnSum, IntegerProgram
from placer.search.exact.count_model import Linear

#: Beyond it an end of a domain stands for none.
NO_END = 2**60


class IntegerForm(IntegerProgram):
    """The rows of a model; the number of a column is the index of the variable, all of which begin at 0.

    A row that literals enforce gets the least constant with which it says nothing where one of them is false.
    """

    def __init__(self, model: CpModel) -> None:
        super().__init__()
        self._model = model
        self._read = 0
        self.update()

    def update(self) -> None:
        """Add the columns and rows that the model has got since the last time."""
        variables, rows = self._model.proto.variables, self._model.proto.constraints
        for index in range(len(self.upper), len(variables)):
            self.column(list(variables[index].domain)[-1])
        for index in range(self._read, len(rows)):
            row = rows[index]
            unless = [-1 - each for each in row.enforcement_literal]
            if row.has_linear():
                least, most = row.linear.domain
                self._between(ColumnSum(list(row.linear.vars), list(row.linear.coeffs)), least, most, unless)
            elif row.has_at_most_one():
                self._at_most(_true(row.at_most_one.literals), 1, unless)
            elif row.has_bool_or():
                self._at_most(ColumnSum().plus(-1, _true(row.bool_or.literals)), -1, unless)
            elif row.has_bool_and():
                for each in row.bool_and.literals:
                    self._at_most(_true([-1 - each]), 0, unless)
            else:  # else a rule would be lost without a word
                raise TypeError(f"no integer rows for {row}")
        self._read = len(rows)

    def _between(self, terms: ColumnSum, least: int, most: int, unless: Sequence[int]) -> None:
        if least == most and not unless:
            self.equal(terms, most)
            return
        if most < NO_END:
            self._at_most(terms, most, unless)
        if least > -NO_END:
            self._at_most(ColumnSum().plus(-1, terms), -least, unless)

    def _at_most(self, terms: ColumnSum, most: int, unless: Sequence[int]) -> None:
        whole, room = terms.merged(), most - terms.constant
        excess = sum(max(0, many) * self.upper[column] for column, many in whole.items()) - room
        if excess > 0:
            row = ColumnSum([*whole], [*whole.values()]).plus(-excess, _true(unless))
            self.at_most(row, room - row.constant)


def _true(literals: Iterable[int]) -> ColumnSum:
    """How many literals hold; that of ``-1 - index`` is the opposite of the variable's."""
    found = ColumnSum()
    for each in literals:
        found.add(1 if each >= 0 else -1, max(each, -1 - each)).constant += each < 0
    return found


def columns_of(value: Linear) -> ColumnSum:
    """Return an expression of a model by column."""
    return ColumnSum([each.index for each in value.variables], [*value.coefficients], value.constant)
