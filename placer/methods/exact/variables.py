"""Decision variables of the exact model; what is expensive and rarely needed is made on first use."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from ortools.sat.python.cp_model import CpModel, IntVar, LinearExpr

from placer.dense import Dense, PodClass, Solution
from placer.dense.score import ready
from placer.linear import LinearExpression
from placer.methods.exact.aggregation import Bundle, Bundles, Item, NodeSet, Reach

__all__ = ["ExactVariables", "Linear", "count_sizes", "decode", "encode", "solver_form", "value_at"]


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


class ExactVariables:
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

    def __init__(self, dense: Dense, bundles: Bundles, places: tuple[NodeSet, ...]) -> None:
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


def count_sizes(dense: Dense, bundles: Bundles, places: tuple[NodeSet, ...]) -> list[IntArray]:
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


def encode(variables: ExactVariables, solution: Solution) -> list[int]:
    """Value of every variable of the model for a solution that keeps all rules: a complete hint."""
    return _Encoder(variables, solution).values()


def decode(variables: ExactVariables, values: Sequence[int]) -> Solution:
    """Solution that the values of the variables mean: pods of places put on nodes, pods of bundles given to members."""
    return _Decoder(variables, values).solution()


class _Encoder:
    def __init__(self, variables: ExactVariables, solution: Solution) -> None:
        self.variables, self.dense = variables, variables.dense
        self.found = [0] * variables.size
        self.place_of = {node: place for place, where in enumerate(variables.places) for node in where.nodes}
        self.counts: dict[int, dict[int, int]] = defaultdict(dict)
        for (index, node), count in solution.items():
            self.counts[index][node] = self.counts[index].get(node, 0) + count
        self.totals = {index: sum(at.values()) for index, at in self.counts.items()}

    def values(self) -> list[int]:
        for item, by_place in enumerate(self.variables.counts):
            for index in self.variables.bundles.items[item].classes:
                for node, count in self.counts.get(index, {}).items():
                    self._add(by_place[self.place_of[node]], count)
        for index, bundle in enumerate(self.variables.all):
            self._bundle(index, bundle)
        self._packing()
        for variable, value in self.variables.derived:
            self.found[variable.index] = value(self.found)
        return self.found

    def _add(self, variable: IntVar, amount: int) -> None:
        self.found[variable.index] += amount

    def _bundle(self, index: int, bundle: Bundle) -> None:
        active, homes = self.variables.active[index], self.variables.homes[index]
        for position, member in enumerate(bundle.members):
            classes = self._classes(bundle, position)
            nodes = self._nodes(classes)
            if active is not None and self._active(bundle, member, classes):
                self._add(active, 1)
            if homes and (nodes or self.dense.scopes[bundle.scope].bound):
                self._home(index, bundle, nodes, sum(self.totals.get(each, 0) for each in classes))
        if bundle.reach is Reach.TREE:
            self._touched(index, self._nodes(self._classes(bundle, 0)))

    def _nodes(self, classes: Iterable[int]) -> list[int]:
        return [node for each in classes for node in self.counts.get(each, ())]

    def _touched(self, index: int, nodes: Iterable[int]) -> None:
        for unit in {self.variables.places[self.place_of[node]].unit for node in nodes}:
            touched = self.variables.touched.get((index, unit))
            if touched is not None:
                self._add(touched, 1)

    def _classes(self, bundle: Bundle, position: int) -> list[int]:
        """Classes of one member; of a group those of its subgroups too."""
        if bundle.policy < 0:
            return list(self.dense.groups[bundle.members[position]].classes)
        return list(self.dense.sub_groups[bundle.members[position]].classes)

    def _active(self, bundle: Bundle, member: int, classes: Iterable[int]) -> bool:
        if bundle.policy < 0:
            return ready(self.dense, member, self.totals)
        return sum(self.totals.get(index, 0) for index in classes) >= bundle.least

    def _home(self, index: int, bundle: Bundle, nodes: list[int], pods: int) -> None:
        bound = self.dense.scopes[bundle.scope].bound
        common = self.dense.common([*bound, *nodes])
        assert common is not None
        homes = self.variables.homes[index]
        home = next(domain for domain in self.variables.path(common) if domain in homes)
        self._add(homes[home], 1)
        spread = self.variables.spread.get((index, int(self.dense.domains.tier[home])))
        if spread is not None:
            self._add(spread, pods + len(bound))

    def _packing(self) -> None:
        filled: dict[int, set[int]] = defaultdict(set)
        for index, at in self.counts.items():
            if not self.dense.classes[index].daemon:
                for node in at:
                    filled[self.place_of[node]].add(node)
        opened: set[int] = set()
        for place, nodes in filled.items():
            if place in self.variables.filled:
                self._add(self.variables.filled[place], len(nodes))
                opened.update(self.variables.path(self.variables.places[place].leaf))
        for domain in opened & self.variables.opened.keys():
            self._add(self.variables.opened[domain], 1)


class _Decoder:
    def __init__(self, variables: ExactVariables, values: Sequence[int]) -> None:
        self.variables, self.dense, self.values = variables, variables.dense, values
        self.items = variables.bundles.items

    def solution(self) -> Solution:
        nodes = self._nodes()
        found: Solution = {}
        owned = {item for part in self.variables.bundles.parts for item in part.items}
        for bundle in self.variables.all:
            items = [item for item in bundle.items if bundle.policy >= 0 or item not in owned]
            for index, node in self._shared_out(bundle, {item: nodes[item] for item in items}):
                found[index, node] = found.get((index, node), 0) + 1
        return found

    def _nodes(self) -> dict[int, list[int]]:
        """Per item the node of each of its placed pods, ascending."""
        at: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for item, counts in enumerate(self.variables.counts):
            for place, variable in counts.items():
                count = self.values[variable.index]
                if count:
                    at[place].append((item, count))
        nodes: dict[int, list[int]] = defaultdict(list)
        for place, counts_there in at.items():
            for item, node in self._packed(self.variables.places[place], counts_there):
                nodes[item].append(node)
        for each in nodes.values():
            each.sort()
        return nodes

    def _packed(self, place: NodeSet, counts: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        """Put the pods of a place on its nodes, the largest first, each where it leaves least room: what counts
        fits.
        """
        if place.resource is None:
            yield from ((item, place.nodes[0]) for item, count in counts for _ in range(count))
            return
        resource = place.resource
        room = {node: int(self.dense.free[node, resource]) for node in place.nodes}
        for item, count in sorted(counts, key=lambda pair: (-self.variables.requests[pair[0]][resource], pair[0])):
            size = self.variables.requests[item][resource]
            for _ in range(count):
                node = min((node for node, left in room.items() if left >= size), key=lambda node: (room[node], node))
                room[node] -= size
                yield item, node

    def _shared_out(self, bundle: Bundle, nodes: dict[int, list[int]]) -> Iterator[tuple[int, int]]:
        """Class and node of each pod: members are filled one after another, home by home."""
        for item, where in nodes.items():
            each = self.items[item]
            ordered = where if bundle.reach is not Reach.LEAF else sorted(where, key=self._leaf_then_node)
            yield from ((each.classes[number // each.size], node) for number, node in enumerate(ordered))

    def _leaf_then_node(self, node: int) -> tuple[int, int]:
        return int(self.dense.leaf[node]), node
