"""The model of pooled pods for the values after ``placed``, where everything is placed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ortools.sat.python.cp_model import IntVar

from placer.arrays import Dense, Solution
from placer.search.events import TooLarge
from placer.search.exact.count_model import Linear, set_hint
from placer.search.exact.pooled_program import PooledProgram, tells_all
from placer.search.exact.valued_model import ValuedModel
from placer.search.exact.variables import Bundle, Reach


class PooledModel(PooledProgram, ValuedModel):
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
        self.makers = {
            "locality": lambda _: self.value,
            "span": lambda _: self._span(),
            "networkCost": lambda _: Linear(constant=self.dense.constant_network),
            "packedHyperNodes": lambda _: self.packed_hyper_nodes(),
            "packedNodes": lambda _: self.packed_nodes(),
        }

    @staticmethod
    def knows(dense: Dense) -> bool:
        """Whether it is exact for an instance: pods of one shape are alike, and leaves are below other domains."""
        tree = dense.domains
        return tells_all(dense) and bool((tree.parent == tree.root).any())

    # As the exact model

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
        touched = self.touch(total, self.dense.scopes[bundle.scope], self._counts_at(bundle))
        homes = self.homes[index]
        for unit, variable in touched.items():
            above = (homes[domain] for domain in self.paths[self.leaf_of_unit(unit)] if domain in homes)
            self.at_most(Linear().add(1, variable).add(-1, *above))
        if not self.dense.scopes[bundle.scope].bound:
            self.cover(touched, homes, lambda units: self.fewest(bundle, units))

    def _counts_at(self, bundle: Bundle) -> Iterator[tuple[int, Sequence[IntVar], int]]:
        owners = dict.fromkeys(self.owners[item] for item in bundle.items)
        for unit, places in self.units.items():
            leaf = self.leaf_of_unit(unit)
            for owner in owners:
                if self.all[owner].reach is Reach.LEAF and leaf in self.homes[owner]:
                    yield unit, [self.homes[owner][leaf]], self.all[owner].many
            for item in bundle.items:
                if (there := self.at.get((item, unit))) is not None:
                    yield unit, [there], self.room_at(self.shape_of[item], places)
