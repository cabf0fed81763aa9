"""A model as an integer program: the same points, whatever kind of row says so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

import pytest
from ortools.sat.python import cp_model
from ortools.sat.python.cp_model import CpModel, IntVar

from placer.search.exact.count_model import Linear, limited_solver
from placer.search.exact.integer_form import IntegerForm, columns_of

#: Adds a row about two 0/1 variables and a count of 0 .. 3.
Case = Callable[[CpModel, Sequence[IntVar]], object]

CASES: dict[str, Case] = {
    "at most": lambda model, of: model.add(2 * of[2] - of[0] <= 3),
    "at least": lambda model, of: model.add(of[2] - 2 * of[1] >= 0),
    "equal": lambda model, of: model.add(of[2] == of[0] + 2 * of[1]),
    "between": lambda model, of: model.add_linear_constraint(of[2] + of[0], 1, 2),
    "enforced": lambda model, of: model.add(of[2] >= 2).only_enforce_if(of[0]),
    "enforced where not": lambda model, of: model.add(of[2] <= 1).only_enforce_if(~of[0]),
    "enforced by two": lambda model, of: model.add(of[2] == 2).only_enforce_if(of[0], ~of[1]),
    "one of two": lambda model, of: model.add_bool_or([of[0], ~of[1]]),
    "one of none": lambda model, _: model.add_bool_or([]),
    "not both": lambda model, of: model.add_at_most_one(of[:2]),
    "implied": lambda model, of: model.add_implication(of[0], of[1]),
    "implies the opposite": lambda model, of: model.add_implication(of[0], ~of[1]),
}


def allowed(model: CpModel, point: Sequence[int]) -> bool:
    fixed = model.clone()
    for index, value in enumerate(point):
        fixed.add(fixed.get_int_var_from_proto_index(index) == value)
    return limited_solver().solve(fixed) in (cp_model.OPTIMAL, cp_model.FEASIBLE)


@pytest.mark.parametrize("case", CASES)
def test_every_kind_of_row_allows_the_same_points(case: str) -> None:
    model = CpModel()
    form = IntegerForm(model)
    CASES[case](model, (model.new_bool_var(""), model.new_bool_var(""), model.new_int_var(0, 3, "")))
    form.update()
    form.update()
    assert form.upper == [1, 1, 3]
    assert len(form.rows) <= 2
    for point in product((0, 1), (0, 1), range(4)):
        assert form.allows(point) == allowed(model, point), point


def test_an_enforced_row_has_the_least_constant() -> None:
    """x <= 1 where a is true, of 0 .. 3: x + 2 a <= 3, and none where it holds anyway."""
    model = CpModel()
    literal, count = model.new_bool_var(""), model.new_int_var(0, 3, "")
    model.add(count <= 1).only_enforce_if(literal)
    model.add(count <= 3).only_enforce_if(literal)
    (row,) = IntegerForm(model).rows
    assert dict(zip(row.columns, row.coefficients, strict=True)) == {literal.index: 2, count.index: 1}
    assert row.room == 3


def test_an_expression_by_column() -> None:
    model = CpModel()
    variables = [model.new_bool_var("") for _ in range(3)]
    found = columns_of(Linear(constant=7).add(2, variables[2]).add(5, variables[0], variables[2]))
    assert (found.merged(), found.constant) == ({2: 7, 0: 5}, 7)
