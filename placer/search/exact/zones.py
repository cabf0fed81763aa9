"""NUMA zones in the model (C10, ``models/exact.md``): zones of each aligned unit of the pods of a node.

Where every pod of a node is one unit for one zone that keeps all it needs, that is all of C10
(:func:`placer.arrays.admission_orders.is_plain`). Elsewhere the kubelet may still refuse a pod in every order: such
counts are excluded one by one, and nothing else, since a pod less may make things worse.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from math import gcd

from ortools.sat.python.cp_model import IntVar

from placer.arrays import Dense, Solution
from placer.arrays.numa import DenseNuma
from placer.arrays.packed_kubelet import Unit, Units
from placer.arrays.solution import IntArray
from placer.search.exact.count_model import Linear, solver_form
from placer.search.exact.node_sets import NodeSet
from placer.search.exact.variables import Bundles, ExactVariables

#: Unit of a pod, by the pod's units and its number among them, and a choice of zones as a bit mask.
Choice = tuple[Units, int, int]


@dataclass
class _Alike:
    counts: list[tuple[int, IntVar]] = field(default_factory=list)
    most: int = 0
    held: int = 0

    def row(self) -> Linear:
        return Linear(constant=self.held).add(1, *(variable for _, variable in self.counts))

    def at(self, values: Sequence[int]) -> int:
        return self.held + sum(values[variable.index] for _, variable in self.counts)


class Zones:
    """C10 in the model of ``variables``; nodes with a kubelet that refuses pods are places of their own.

    ``unsure``: whether counts were excluded of which it is not proved that no order works: then no bound of the model
    counts.
    """

    def __init__(self, variables: ExactVariables, numa: DenseNuma) -> None:
        self.variables, self.model, self.numa = variables, variables.model, numa
        self.dense: Dense = variables.dense
        self.unsure = False
        self.there = self._there()
        #: Node, units and number among them: choices of zones, and how many take each; None: all of them.
        self.chosen: dict[tuple[int, Units, int], list[tuple[int, IntVar | None]]] = {}

    def _there(self) -> dict[int, dict[Units, _Alike]]:
        found: dict[int, dict[Units, _Alike]] = defaultdict(lambda: defaultdict(_Alike))
        for item, counts in enumerate(self.variables.counts):
            index = self.variables.bundles.items[item].classes[0]
            for place, variable in counts.items():
                node = self.variables.places[place].nodes[0]
                units = self.numa.of(index, node)
                if units:
                    found[node][units].counts.append((index, variable))
                    found[node][units].most += int(self.variables.sizes[item][place])
        for node, alike in found.items():
            for units in self.numa.held.get(node, ()):
                alike[units].held += 1
        return found

    def add(self) -> None:
        """C10: add the choices of zones and their room, node by node; counts without an order are excluded later."""
        for node, alike in self.there.items():
            _ZoneRows(self, node, alike).add()

    def dealt(self, node: int, values: Sequence[int]) -> Counter[Choice]:
        """Units per choice of zones, in an order that the kubelet admits; none where there is no such order."""
        pods = [units for units, each in self.there[node].items() for _ in range(each.at(values))]
        kubelet, state = self.numa.kubelet(node), self.numa.start[node]
        found: Counter[Choice] = Counter()
        for position in self.numa.order(node, pods) or ():
            answer = kubelet.follow(state, pods[position])
            assert answer is not None
            state, chosen = answer
            found.update((pods[position], number, zones) for number, zones in enumerate(chosen))
        return found

    def low(self) -> Iterator[tuple[int, IntVar]]:
        """Counts of units by choice of zones, worth more in lower ones, in twentieths of a zone: the last get empty."""
        for (node, units, number), chosen in self.chosen.items():
            kubelet = self.numa.kubelet(node)
            size = max(1, round(20 * len(kubelet.zones) * kubelet.share((units[number],))))
            for mask, variable in chosen:
                if variable is not None:
                    yield size * (1 + len(kubelet.zones) - mask.bit_length()), variable

    def arranged(self, solution: Solution, values: Sequence[int]) -> Solution:
        """The solution with the pods of each node bound in the order of their zones in the model, lowest first.

        The kubelet admits them in that order where each is in one zone and keeps all it needs.
        """
        by_node = self.numa.by_node(solution)
        return Solution(solution, {node: self._by_zone(node, counts, values) for node, counts in by_node.items()})

    def _by_zone(self, node: int, counts: list[tuple[int, int]], values: Sequence[int]) -> list[int]:
        highest: dict[Units, list[int]] = {}
        keys = []
        for index, count in counts:
            units = self.numa.of(index, node)
            if units not in highest:
                highest[units] = self._highest(node, units, values)
            given = [highest[units].pop() for _ in range(count) if highest[units]]
            keys.append((max(given, default=0), -self.numa.kubelet(node).share(units)))
        return [counts[place][0] for place in sorted(range(len(counts)), key=keys.__getitem__)]

    def _highest(self, node: int, units: Units, values: Sequence[int]) -> list[int]:
        """Of pods that are the same to the kubelet, the highest zone that any unit has; the lowest pod last."""
        alike = self.there[node][units]
        zones = []
        for number in range(len(units)):
            chosen = self.chosen[node, units, number]
            counts = [alike.at(values) if variable is None else values[variable.index] for _, variable in chosen]
            every = (mask.bit_length() for (mask, _), count in zip(chosen, counts, strict=True) for _ in range(count))
            zones.append(sorted(every, reverse=True))
        return [max(each) for each in zip(*zones, strict=False)]

    # ------------------------------------------------------------------------------------------------ what has no order

    def exclude(self, solution: Solution) -> bool:
        """Exclude the counts on nodes whose kubelet admits a solution in no order; say whether there were any."""
        refused = self.numa.refused(solution)
        for node, counts in refused.items():
            pods = [*self.numa.held.get(node, ()), *self.numa.pods(node, counts)]
            self.unsure |= not self.numa.refuses(node, pods)
            for other, alike in self.there.items():
                if self._same(node, other):
                    self._exclude(alike, Counter(pods))
        return bool(refused)

    def _same(self, one: int, other: int) -> bool:
        numa = self.numa
        return (
            numa.kind[one] == numa.kind[other]
            and numa.start[one] == numa.start[other]
            and numa.held.get(one, ()) == numa.held.get(other, ())
        )

    def _exclude(self, alike: Mapping[Units, _Alike], crowd: Mapping[Units, int]) -> None:
        if crowd.keys() <= alike.keys():
            self.variables.exclude((each.row(), crowd.get(units, 0)) for units, each in alike.items())


def count_choices(dense: Dense, bundles: Bundles, places: Sequence[NodeSet], sizes: Sequence[IntArray]) -> int:
    """About how many variables choices of zones will need, before there are any."""
    if dense.numa is None:
        return 0
    zones = dense.numa.zones[[place.nodes[0] for place in places]]
    total = 0
    for item, row in zip(bundles.items, sizes, strict=True):
        units = max(map(len, dense.numa.units[item.classes[0]]))
        total += units * int(zones[row > 0].sum()) if units else 0
    return total


class _ZoneRows:
    """The rows of one node; its first variable has the node's pods dealt out again, the others look that up."""

    def __init__(self, zones: Zones, node: int, alike: Mapping[Units, _Alike]) -> None:
        self.zones, self.node, self.alike, self.model = zones, node, alike, zones.model
        self.amounts = zones.numa.kubelet(node).amounts(zones.numa.start[node])
        #: (choice of zones, resource) to what units take of it.
        self.taken: dict[tuple[int, int], Linear] = defaultdict(Linear)
        self.dealt: Counter[Choice] = Counter()
        self.begun = False

    def add(self) -> None:
        for units, alike in self.alike.items():
            for number, unit in enumerate(units):
                self._unit(units, alike, number, unit)
        masks = {mask for mask, _ in self.taken}
        if any(mask.bit_count() > 1 for mask in masks):
            masks.add((1 << len(self.amounts)) - 1)
        for mask, resource in product(sorted(masks), sorted({resource for _, resource in self.taken})):
            self._fit(mask, resource)

    def _fit(self, mask: int, resource: int) -> None:
        parts = self.taken.items()
        row = Linear().plus(1, *(part for (own, of), part in parts if of == resource and own & mask == own))
        # Amounts of bytes have many zeros at their ends, and the solver adds up in 63 bits.
        step = gcd(*row.coefficients) or 1
        row.coefficients = [each // step for each in row.coefficients]
        room = (self._room(mask, resource) - row.constant) // step
        self.model.add(solver_form(row) <= min(room, 2**62))  # more is no number for the solver

    def _unit(self, units: Units, alike: _Alike, number: int, unit: Unit) -> None:
        masks = self._choices(unit)
        total = alike.row()
        chosen = self.zones.chosen[self.node, units, number] = []
        if len(masks) == 1:
            chosen.append((masks[0], None))
            self._take(masks[0], unit, total)
            return
        parts = Linear()
        for mask in masks:
            value = self._value((units, number, mask))
            variable = self.zones.variables.integer(max(1, alike.most + alike.held), value)
            parts.add(1, variable)
            chosen.append((mask, variable))
            self._take(mask, unit, Linear([variable], [1]))
        self.model.add(solver_form(parts) == solver_form(total) + total.constant)

    def _value(self, choice: Choice) -> Callable[[list[int]], int]:
        if self.begun:
            return lambda _: self.dealt[choice]
        self.begun = True
        return lambda values: self._deal(values)[choice]

    def _deal(self, values: Sequence[int]) -> Counter[Choice]:
        self.dealt = self.zones.dealt(self.node, values)
        return self.dealt

    def _choices(self, unit: Unit) -> list[int]:
        numbers = range(len(self.amounts))
        masks = (sum(1 << zone for zone in chosen) for chosen in combinations(numbers, unit.width))
        needs = [(resource, need) for resource, need, _ in unit.amounts]
        return [mask for mask in masks if mask and all(self._room(mask, which) >= need for which, need in needs)]

    def _room(self, mask: int, resource: int) -> int:
        return sum(room[resource] for zone, room in enumerate(self.amounts) if mask >> zone & 1)

    def _take(self, mask: int, unit: Unit, count: Linear) -> None:
        for resource, _, take in unit.amounts:
            if take:
                self.taken[mask, resource].plus(take, count)
