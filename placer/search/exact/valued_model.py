"""What a search asks of every CP-SAT model: a value as the objective, values that are kept, bounds that are known."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from ortools.sat.python.cp_model import CpModel

from placer.arrays import Dense
from placer.problem.placement import MAXIMISED
from placer.search.exact.count_model import Linear, solver_form


class ValuedModel:
    """A model, ``proto``, with the values of ``Dense.criteria`` as expressions.

    ``makers``: name of a value to what makes its expression for a priority. Other values are always kept.
    """

    dense: Dense
    proto: CpModel
    makers: dict[str, Callable[[int | None], Linear]]

    @cached_property
    def _made(self) -> dict[int, Linear]:
        return {}

    def criterion(self, index: int) -> Linear:
        """Return the expression of ``Dense.criteria[index]``."""
        if index not in self._made:
            name, priority = self.dense.criteria[index]
            self._made[index] = self.makers[name](priority)
        return self._made[index]

    def maximised(self, criterion: int) -> bool:
        """Whether more of a criterion is better."""
        return self.dense.criteria[criterion][0] in MAXIMISED

    def aim(self, criterion: int, row: Linear | None = None) -> Linear:
        """Make a criterion, or ``row`` in its place, the objective; return the expression of the criterion."""
        value = self.criterion(criterion)
        row = value if row is None else row
        self.proto.proto.clear_objective()
        (self.proto.maximize if self.maximised(criterion) else self.proto.minimize)(solver_form(row) + row.constant)
        return value

    def keep(self, criterion: int, reached: int) -> None:
        """From now on a criterion is at least as good as ``reached``."""
        if self.dense.criteria[criterion][0] in self.makers:
            self._bound(criterion, reached, above=self.maximised(criterion))

    def limit(self, criterion: int, bound: int) -> None:
        """From now on a criterion is not better than a bound that is proved."""
        self._bound(criterion, bound, above=not self.maximised(criterion))

    def _bound(self, criterion: int, bound: int, *, above: bool) -> None:
        value = self.criterion(criterion)
        row = solver_form(value)
        self.proto.add(row >= bound - value.constant if above else row <= bound - value.constant)
