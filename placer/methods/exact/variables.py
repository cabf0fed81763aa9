"""Decision variables of the exact model; what is expensive and rarely needed is made on first use."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from ortools.sat.python.cp_model import CpModel, IntVar, LinearExpr

from placer.dense import Dense, PodClass
from placer.linear import LinearExpression
from placer.methods.exact.bundles import Bundle, Bundles, Item, Reach
from placer.methods.exact.places import Place

__all__ = ["Linear", "Variables", "count_sizes", "solver_form", "value_at"]

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


#: A linear expression over variables of CP-SAT.
Linear: TypeAlias = LinearExpression[IntVar]


def solver_form(expression: Linear) -> LinearExpr:
    """Return the variable part of an expression as CP-SAT takes it: made in one call, which is the fast way."""
    return LinearExpr.weighted_sum(expression.variables, expression.coefficients)


def value_at(expression: Linear, values: list[int]) -> int:
    """Return the value of an expression where each variable has the value at its index."""
    return expression.at(lambda variable: values[variable.index])


class Variables:
    """What the model decides.

    Parameters
    ----------
    dense, bundles, places
        The instance, and how it is counted.

    Attributes
    ----------
    counts
        Per item: place to the number of its pods that go there. Only where they may be (C3) and one fits.
    active
        Per bundle, gangs first, then parts. Of whole members: how many are placed; of an elastic one: whether it is
        ready and may have pods. None where nothing has to be ready.
    homes
        Per bundle: domain to how many members have all their pods in it (0 or 1 with TREE). Empty with FREE.
    touched
        (bundle, unit of span) to whether a pod of it is there; made with ``span``.
    opened, filled
        Domain to whether it is empty no more, place to how many of its nodes are empty no more; made with packing.
    spread
        (bundle, tier) to placed pods, those that run included, where that is the tier of its home; made with
        ``locality`` for elastic bundles.
    derived
        Variables that follow from those made before them, each with its value where the others have theirs, by index.
    """

    def __init__(self, dense: Dense, bundles: Bundles, places: tuple[Place, ...]) -> None:
        self.dense, self.bundles, self.places = dense, bundles, places
        self.model = CpModel()
        self._paths: dict[int, tuple[int, ...]] = {}
        self.all: tuple[Bundle, ...] = (*bundles.gangs, *bundles.parts)
        #: Request of a pod of each item, per resource.
        self.requests = [tuple(map(int, dense.classes[item.classes[0]].request)) for item in bundles.items]
        #: Most pods of each item at each place.
        self.sizes = count_sizes(dense, bundles, places)
        self.unit_nodes: dict[int, list[int]] = defaultdict(list)
        self.unit_leaf: dict[int, int] = {}
        for place in places:
            self.unit_nodes[place.unit].extend(place.nodes)
            self.unit_leaf[place.unit] = place.leaf
        self.counts = self._counts()
        self.active = [self._active(bundle) for bundle in self.all]
        self.homes = [self._homes(bundle) for bundle in self.all]
        self.touched: dict[tuple[int, int], IntVar] = {}
        self.opened: dict[int, IntVar] = {}
        self.filled: dict[int, IntVar] = {}
        self.spread: dict[tuple[int, int], IntVar] = {}
        self.derived: list[tuple[IntVar, Callable[[list[int]], int]]] = []

    def integer(self, most: int) -> IntVar:
        """Make a variable of 0 .. ``most``, at least 1."""
        return self.model.new_bool_var("") if most == 1 else self.model.new_int_var(0, most, "")

    def _counts(self) -> list[dict[int, IntVar]]:
        return [{int(place): self.integer(int(row[place])) for place in np.flatnonzero(row)} for row in self.sizes]

    def _active(self, bundle: Bundle) -> IntVar | None:
        """C5 and C6: what is gated. A gang may have to be ready by role or policy alone."""
        gated = bundle.least > 0
        if bundle.policy < 0:
            group = self.dense.groups[bundle.members[0]]
            gated = gated or bool(group.short_by_role) or bool(group.short_by_policy)
        return self.integer(bundle.many) if gated else None

    def _homes(self, bundle: Bundle) -> dict[int, IntVar]:
        return {domain: self.integer(bundle.many) for domain in bundle.homes}

    # What the rules and the levels ask again and again

    def first(self, item: int) -> PodClass:
        """One of the classes of an item; they differ in nothing that matters."""
        return self.dense.classes[self.bundles.items[item].classes[0]]

    def placed(self, item: int) -> list[IntVar]:
        """Counts of an item over all places."""
        return list(self.counts[item].values())

    def by_leaf(self, item: int) -> dict[int, list[IntVar]]:
        """Leaf domain to the counts of an item there."""
        found: dict[int, list[IntVar]] = defaultdict(list)
        for place, variable in self.counts[item].items():
            found[self.places[place].leaf].append(variable)
        return found

    def by_unit(self, item: int) -> dict[int, list[IntVar]]:
        """Unit of ``span`` to the counts of an item there."""
        found: dict[int, list[IntVar]] = defaultdict(list)
        for place, variable in self.counts[item].items():
            found[self.places[place].unit].append(variable)
        return found

    def by_domain(self, item: int) -> dict[int, list[IntVar]]:
        """Domain to the counts of an item in it; only domains that have any."""
        found: dict[int, list[IntVar]] = defaultdict(list)
        for leaf, counts in self.by_leaf(item).items():
            for domain in self.path(leaf):
                found[domain].extend(counts)
        return found

    def path(self, domain: int) -> tuple[int, ...]:
        """A domain and all that hold it, the virtual root last."""
        if domain not in self._paths:
            parent = int(self.dense.domains.parent[domain])
            self._paths[domain] = (domain, *(self.path(parent) if parent >= 0 else ()))
        return self._paths[domain]

    @property
    def size(self) -> int:
        """Number of variables made so far."""
        return len(self.model.proto.variables)


def count_sizes(dense: Dense, bundles: Bundles, places: tuple[Place, ...]) -> list[IntArray]:
    """Most pods of each item at each place, by eligibility (C3), room, and reach: one row per item."""
    allowed = [np.ones(len(dense.nodes), dtype=bool) for _ in bundles.items]
    for bundle in (*bundles.gangs, *bundles.parts):
        if bundle.reach is not Reach.FREE:
            inside = _inside(dense, bundle)
            for item in bundle.items:
                allowed[item] = allowed[item] & inside
    nodes = np.array([node for place in places for node in place.nodes], dtype=np.int64)
    begins = np.cumsum([0, *(len(place.nodes) for place in places)])[:-1]
    return [_sizes(item, mask, nodes, begins) for item, mask in zip(bundles.items, allowed, strict=True)]


def _sizes(item: Item, allowed: BoolArray, nodes: IntArray, begins: IntArray) -> IntArray:
    if not len(begins):
        return np.zeros(0, dtype=np.int64)
    fits = np.where(allowed, np.minimum(item.fits, item.total), 0)[nodes]
    return np.minimum(np.add.reduceat(fits, begins), item.total)


def _inside(dense: Dense, bundle: Bundle) -> BoolArray:
    mask = np.zeros(len(dense.nodes), dtype=bool)
    for home in bundle.homes:
        mask[dense.domains.begin[home] : dense.domains.end[home]] = True
    return mask
