"""The model of pooled pods for the values after ``placed``, where everything is placed."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from functools import partial

from ortools.sat.python.cp_model import IntVar

from placer.arrays import Dense, Solution
from placer.problem.placement import MAXIMISED
from placer.search.events import TooLarge
from placer.search.exact.packing import PackingValues, PodCount
from placer.search.exact.pooled_program import PooledProgram, tells_all
from placer.search.exact.variables import Bundle, Linear, Reach, reaches, set_hint, solver_form

__all__ = ["PooledModel"]


class PooledModel:
    """One CP-SAT model for the values after ``placed``; the search asks it as it asks the exact one.

    Of calls it knows none but those between pods that run: ``networkCost`` is then a constant. :meth:`knows` must hold.
    TooLarge where it would have more than ``most`` columns.
    """

    #: No model of it tells nodes of an area apart: there are no calls.
    apart = False
    #: No order excludes anything that it allows (C10, C12).
    unsure = False

    def __init__(self, dense: Dense, most: float = math.inf) -> None:
        self.dense, self.program = dense, PooledProgram(dense)
        self.columns = self.program.columns
        if self.columns > most:
            raise TooLarge(f"{self.columns:,} columns, at most {int(most):,}")
        self.program.build()
        self.proto = self.program.model
        self._packing: PackingValues | None = None
        self._values: dict[int, Linear] = {}
        #: Name of a value to what makes its expression.
        self.makers: dict[str, Callable[[], Linear]] = {
            "locality": lambda: self.program.value,
            "span": self._span,
            "networkCost": lambda: Linear(constant=self.dense.constant_network),
            "packedHyperNodes": lambda: self.packing.hyper_nodes(),
            "packedNodes": lambda: self.packing.nodes(),
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

    def encode(self, solution: Solution) -> list[int]:
        """Value of every variable for a solution that places everything."""
        found = self.program.encode(solution)
        if self._packing is not None:
            self._packing.encode(self.program.place_of, solution, found)
        return found

    def hint(self, solution: Solution) -> None:
        """Hint every variable with a solution that places everything."""
        set_hint(self.proto, self.encode(solution))

    def read(self, values: list[int]) -> Solution:
        """Solution of some values of the variables."""
        return self.program.read(values)

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
        program, total = self.program, Linear(constant=self.dense.constant_span)
        program.count_by_unit()
        for index, bundle in enumerate(program.all):
            if self.dense.scopes[bundle.scope].wanted and program.homes[index]:
                if bundle.reach is Reach.LEAF:
                    total.add(1, *program.homes[index].values())
                else:
                    self._touch(total, index, bundle)
        return total

    def _touch(self, total: Linear, index: int, bundle: Bundle) -> None:
        scope = self.dense.scopes[bundle.scope]
        before = {int(self.dense.span_leaf[node]) for node in scope.bound if node >= 0}
        total.constant += len(before) + scope.lost_leaves
        touched: dict[int, IntVar] = {}
        for unit in self.program.units:
            there = [] if unit in before else list(self._counts_at(unit, bundle))
            if there:
                row = Linear().add(1, *(variable for variable, _ in there))
                touched[unit] = self.program.integer(1, self.program.leaf_of_unit(unit), partial(reaches, row, 1))
                for variable, most in there:
                    self.proto.add(solver_form(Linear().add(1, variable).add(-most, touched[unit])) <= 0)
        total.add(1, *touched.values())
        self._cover(index, bundle, touched, beyond=bool(scope.bound))

    def _counts_at(self, unit: int, bundle: Bundle) -> list[tuple[IntVar, int]]:
        program, found = self.program, list[tuple[IntVar, int]]()
        leaf = program.leaf_of_unit(unit)
        for owner in dict.fromkeys(program.owners[item] for item in bundle.items):
            one = program.all[owner]
            if one.reach is Reach.LEAF and leaf in program.homes[owner]:
                found.append((program.homes[owner][leaf], one.many))
        for item in bundle.items:
            if (there := program.at.get((item, unit))) is not None:
                found.append((there, program.room_at(program.shape_of[item], program.units[unit])))
        return found

    def _cover(self, index: int, bundle: Bundle, touched: dict[int, IntVar], *, beyond: bool) -> None:
        inside: dict[int, list[int]] = defaultdict(list)
        for unit in touched:
            for domain in self.program.path(self.program.leaf_of_unit(unit)):
                inside[domain].append(unit)
        homes = self.program.homes[index]
        for unit, variable in touched.items():
            above = (homes[domain] for domain in self.program.path(self.program.leaf_of_unit(unit)) if domain in homes)
            self.proto.add(solver_form(Linear().add(1, variable).add(-1, *above)) <= 0)
        for domain, home in homes.items() if not beyond else ():
            least = self.program.fewest(bundle, inside[domain])
            row = Linear().add(1, *(touched[unit] for unit in inside[domain])).add(-least, home)
            self.proto.add(solver_form(row) >= 0)

    # O4

    @property
    def packing(self) -> PackingValues:
        """O4; pods of DaemonSets leave a node empty."""
        if self._packing is None:
            program, there = self.program, defaultdict[int, list[PodCount]](list)
            for (shape, place), variable in program.counts.items():
                one = program.shapes[shape]
                if not one.daemon:
                    there[place].append(
                        PodCount(one.request, min(one.total, program.room_at(shape, [place])), variable)
                    )
            self._packing = PackingValues(self.dense, self.proto, program.places, there, program.fillings)
        return self._packing
