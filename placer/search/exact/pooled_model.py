"""The model of pooled pods for the values after ``placed``, where everything is placed."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from ortools.sat.python.cp_model import IntVar

from placer.arrays import Dense, Solution
from placer.problem.placement import MAXIMISED
from placer.search.events import TooLarge
from placer.search.exact.count_model import Linear, reaches, set_hint, solver_form
from placer.search.exact.pooled_program import PooledProgram, tells_all
from placer.search.exact.variables import Bundle, Reach

__all__ = ["PooledModel"]


class PooledModel(PooledProgram):
    """One CP-SAT model for the values after ``placed``; the search asks it as it asks the exact one.

    Of calls it knows none but those between pods that run: ``networkCost`` is then a constant. :meth:`knows` must hold.
    TooLarge where it would have more than ``most`` columns.
    """

    #: No model of it tells nodes of an area apart: there are no calls.
    apart = False
    #: No order excludes anything that it allows (C10, C12).
    unsure = False

    def __init__(self, dense: Dense, most: float = math.inf) -> None:
        super().__init__(dense)
        if self.columns > most:
            raise TooLarge(f"{self.columns:,} columns, at most {int(most):,}")
        self.build()
        self.proto = self.model
        self._values: dict[int, Linear] = {}
        #: Name of a value to what makes its expression.
        self.makers: dict[str, Callable[[], Linear]] = {
            "locality": lambda: self.value,
            "span": self._span,
            "networkCost": lambda: Linear(constant=self.dense.constant_network),
            "packedHyperNodes": self.packed_hyper_nodes,
            "packedNodes": self.packed_nodes,
        }

    @staticmethod
    def knows(dense: Dense) -> bool:
        """Whether it is exact for an instance: pods of one shape are alike, and leaves are below other domains."""
        tree = dense.domains
        return tells_all(dense) and bool((tree.parent == tree.root).any())

    # As the exact model

    def aim(self, criterion: int) -> Linear:
        """Make a criterion the objective, and return its expression."""
        value = self._value(criterion)
        self.proto.proto.clear_objective()
        self.proto.minimize(solver_form(value) + value.constant)
        return value

    def keep(self, criterion: int, reached: int) -> None:
        """From now on a criterion is at least as good as ``reached``; everything is placed anyway."""
        if self.dense.criteria[criterion][0] not in MAXIMISED:
            value = self._value(criterion)
            self.proto.add(solver_form(value) <= reached - value.constant)

    def limit(self, criterion: int, bound: int) -> None:
        """From now on a criterion is not better than a bound that is proved."""
        value = self._value(criterion)
        self.proto.add(solver_form(value) >= bound - value.constant)

    def fill(self) -> None:
        """From now on everything is placed: it always is."""

    def hint(self, solution: Solution) -> None:
        """Hint every variable with a solution that places everything."""
        set_hint(self.proto, self.encode(solution))

    def admitted(self, solution: Solution) -> Solution:
        """The solution: without NUMA zones and neighbours every order admits it (C10, C12)."""
        return solution

    def exclude(self, solution: Solution) -> bool:  # noqa: ARG002  # the exact model looks at it
        """Nothing is to be excluded: every order is admitted."""
        return False

    # Values

    def _value(self, criterion: int) -> Linear:
        if criterion not in self._values:
            self._values[criterion] = self.makers[self.dense.criteria[criterion][0]]()
        return self._values[criterion]

    def _span(self) -> Linear:
        total = Linear(constant=self.dense.constant_span)
        self.count_by_unit()
        for index, bundle in enumerate(self.all):
            if self.dense.scopes[bundle.scope].wanted and self.homes[index]:
                if bundle.reach is Reach.LEAF:
                    total.add(1, *self.homes[index].values())
                else:
                    self._touch(total, index, bundle)
        return total

    def _touch(self, total: Linear, index: int, bundle: Bundle) -> None:
        scope = self.dense.scopes[bundle.scope]
        before = {int(self.dense.span_leaf[node]) for node in scope.bound if node >= 0}
        total.constant += len(before) + scope.lost_leaves
        touched: dict[int, IntVar] = {}
        for unit in self.units:
            there = [] if unit in before else list(self._counts_at(unit, bundle))
            if there:
                row = Linear().add(1, *(variable for variable, _ in there))
                touched[unit] = self.at_leaf(self.leaf_of_unit(unit), 1, partial(reaches, row, 1))
                for variable, most in there:
                    self.proto.add(solver_form(Linear().add(1, variable).add(-most, touched[unit])) <= 0)
        total.add(1, *touched.values())
        self._cover(index, bundle, touched, beyond=bool(scope.bound))

    def _counts_at(self, unit: int, bundle: Bundle) -> list[tuple[IntVar, int]]:
        found = list[tuple[IntVar, int]]()
        leaf = self.leaf_of_unit(unit)
        for owner in dict.fromkeys(self.owners[item] for item in bundle.items):
            one = self.all[owner]
            if one.reach is Reach.LEAF and leaf in self.homes[owner]:
                found.append((self.homes[owner][leaf], one.many))
        for item in bundle.items:
            if (there := self.at.get((item, unit))) is not None:
                found.append((there, self.room_at(self.shape_of[item], self.units[unit])))
        return found

    def _cover(self, index: int, bundle: Bundle, touched: dict[int, IntVar], *, beyond: bool) -> None:
        inside = self.by_inner(touched)
        homes = self.homes[index]
        for unit, variable in touched.items():
            above = (homes[domain] for domain in self.paths[self.leaf_of_unit(unit)] if domain in homes)
            self.proto.add(solver_form(Linear().add(1, variable).add(-1, *above)) <= 0)
        for domain, home in homes.items() if not beyond else ():
            least = self.fewest(bundle, inside[domain])
            row = Linear().add(1, *(touched[unit] for unit in inside[domain])).add(-least, home)
            self.proto.add(solver_form(row) >= 0)
