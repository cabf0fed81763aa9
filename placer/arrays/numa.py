"""The classes as kubelets that refuse pods see them, by index (C10)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from placer.arrays.admission_orders import Orders, find_order, some_order
from placer.arrays.packed_kubelet import PackedKubelet, State, Unit, Units, packed_kubelets
from placer.arrays.solution import IntArray, Solution
from placer.problem import Instance
from placer.problem.numa import NumaDemand

#: The most room of a zone that arrays hold, and the most that they add up over the 64 zones that a node may have.
MOST_ROOM, MOST_SUMMED = 2**62, 2**56

#: More pods than there are.
LIMITLESS = 2**31


#: The pods in an order that is admitted, None where none was found; and whether it is proved that there is none.
_KnownOrder = tuple[tuple[Units, ...] | None, bool]


@dataclass(frozen=True)
class DenseNuma:
    """Kubelets, the room of their zones, and each class as each of them sees it.

    ``kind``: int64, shape (nodes,): index into ``kubelets``; -1: every pod is admitted. ``start``: per node the room of
    its zones before any new pod. ``units``: per class one of its pods for each kubelet; empty: nothing of it is aligned
    there. ``held``: node to new pods that stay there whatever is decided. ``asked``: per kubelet and resource the need
    of all pods together: more room makes no difference.
    """

    kubelets: tuple[PackedKubelet, ...]
    kind: IntArray
    start: tuple[State, ...]
    units: tuple[tuple[Units, ...], ...]
    held: Mapping[int, tuple[Units, ...]] = field(default_factory=dict)
    asked: tuple[tuple[int, ...], ...] = ()
    _orders: dict[object, _KnownOrder] = field(default_factory=dict, init=False, repr=False)
    _any_order: dict[object, bool] = field(default_factory=dict, init=False, repr=False)

    def _crowd(self, node: int, pods: Sequence[Units]) -> object:
        return int(self.kind[node]), self.start[node], tuple(sorted(pods))

    def kubelet(self, node: int) -> PackedKubelet:
        """The kubelet of a node that refuses pods."""
        return self.kubelets[int(self.kind[node])]

    def amounts(self, node: int, state: State) -> list[list[int]]:
        """Room left in each zone, in the order of the kubelet's resources, cut at the need of all pods."""
        kind = int(self.kind[node])
        return self._cut(kind, self.kubelets[kind].amounts(state))

    def _cut(self, kind: int, amounts: list[list[int]]) -> list[list[int]]:
        return [[min(pair) for pair in zip(each, self.asked[kind], strict=True)] for each in amounts]

    @cached_property
    def zones(self) -> IntArray:
        """int64, shape (nodes,): zones of each node; 0 where every pod is admitted."""
        # The last one is for nodes of kind -1.
        counts: IntArray = np.array([*(len(kubelet.zones) for kubelet in self.kubelets), 0], dtype=np.int64)
        return counts[self.kind]

    def of(self, index: int, node: int) -> Units:
        """A pod of a class as the kubelet of a node sees it; empty where C10 does not concern it."""
        kind = int(self.kind[node])
        return () if kind < 0 else self.units[index][kind]

    def admits_in_turn(self, node: int, classes: Iterable[int]) -> bool:
        """Whether the kubelet of a node admits one pod of each class in this order."""
        units = (self.of(index, node) for index in classes)
        return self.kubelet(node).admit_all(self.start[node], units) is not None

    def pods(self, node: int, counts: Iterable[tuple[int, int]]) -> list[Units]:
        """Pods that C10 concerns on a node, one by one, from pairs of class and count."""
        return [units for index, count in counts if (units := self.of(index, node)) for _ in range(count)]

    def order(self, node: int, pods: Sequence[Units]) -> tuple[int, ...] | None:
        """Positions of all pods of a node, held ones too, in an order that is admitted; None where none is known."""
        sequence, _ = self._known(node, pods)
        if sequence is None:
            return None
        positions: dict[Units, list[int]] = {}
        for position in range(len(pods) - 1, -1, -1):
            positions.setdefault(pods[position], []).append(position)
        return tuple(positions[units].pop() for units in sequence)

    def in_any_order(self, node: int, pods: Sequence[Units]) -> bool:
        """Whether it is known that the kubelet of a node admits pods in any order."""
        key = self._crowd(node, pods)
        if key not in self._any_order:
            found = find_order(self.kubelet(node), self.start[node], pods, [0.0] * len(pods))
            self._any_order[key] = found.orders is Orders.CREATION
        return self._any_order[key]

    def refuses(self, node: int, pods: Sequence[Units]) -> bool:
        """Whether it is proved that the kubelet of a node admits pods in no order."""
        sequence, proved = self._known(node, pods)
        return sequence is None and proved

    def _known(self, node: int, pods: Sequence[Units]) -> _KnownOrder:
        kubelet, start, key = self.kubelet(node), self.start[node], self._crowd(node, pods)
        known = self._orders.get(key)
        if known is None or known[0] is None:
            if kubelet.admit_all(start, pods) is not None:
                self._orders[key] = known = tuple(pods), True
            elif known is None:
                found = some_order(kubelet, start, pods)
                sequence = None if found.sequence is None else tuple(pods[position] for position in found.sequence)
                self._orders[key] = known = sequence, found.proved
        return known

    def admits(self, node: int, counts: Iterable[tuple[int, int]]) -> bool:
        """Whether an order was found in which the kubelet admits pods and those that stay."""
        pods = self.pods(node, counts)
        return not pods or self.order(node, [*self.held.get(node, ()), *pods]) is not None

    def in_order(self, node: int, counts: Sequence[tuple[int, int]]) -> list[tuple[int, int]] | None:
        """Classes and counts on a node in an order in which its kubelet admits the pods, class by class; None: none
        found.

        The given order is tried first, and classes that C10 does not concern come last.
        """
        held = self.held.get(node, ())
        classes = [index for index, count in counts if self.of(index, node) for _ in range(count)]
        order = self.order(node, [*held, *self.pods(node, counts)]) if classes else ()
        if order is None:
            return None
        first: dict[int, int] = {}
        for place, position in enumerate(order):
            if position >= len(held):
                first.setdefault(classes[position - len(held)], place)
        found = sorted(counts, key=lambda pair: first.get(pair[0], len(order)))
        if not held and self.kubelet(node).admit_all(self.start[node], self.pods(node, found)) is None:
            return None
        return found

    def refused(self, solution: Solution) -> dict[int, list[tuple[int, int]]]:
        """Nodes for which :meth:`in_order` finds nothing: class and count there."""
        by_node = self.by_node(solution)
        return {node: counts for node, counts in sorted(by_node.items()) if self.in_order(node, counts) is None}

    def ordered(self, solution: Solution) -> Solution | None:
        """A solution in which each kubelet admits the pods of its node in their binding order; None where none was
        found.
        """
        order: dict[int, list[int]] = {}
        for node, counts in self.by_node(solution).items():
            ordered = self.in_order(node, counts)
            if ordered is None:
                return None
            order[node] = [index for index, _ in ordered]
        return Solution(solution, order)

    def by_node(self, solution: Solution) -> dict[int, list[tuple[int, int]]]:
        """Pods of a solution that C10 concerns, by node, in binding order."""
        found: dict[int, list[tuple[int, int]]] = {}
        for index, node, count in solution.in_order():
            if self.of(index, node):
                found.setdefault(node, []).append((index, count))
        return found

    def most(self, index: int) -> IntArray:
        """How many pods of a class the zones of each node could hold at most, unit by unit: int64, shape (nodes,).

        :data:`LIMITLESS` where C10 does not concern the class.
        """
        found = np.full(len(self.kind), LIMITLESS, dtype=np.int64)
        for kind, units in enumerate(self.units[index]):
            for unit in units:
                nodes, which, rooms = self.rooms[kind]
                found[nodes] = np.minimum(found[nodes], _most(rooms, unit)[which])
        return found

    @cached_property
    def rooms(self) -> list[tuple[IntArray, IntArray, IntArray]]:
        """Per kind its nodes, the number of each one's start, and room per start, zone and resource."""
        found = []
        for kind, kubelet in enumerate(self.kubelets):
            nodes = np.flatnonzero(self.kind == kind).astype(np.int64)
            starts = list(dict.fromkeys(self.start[node] for node in nodes))
            number = {start: position for position, start in enumerate(starts)}
            which = np.array([number[self.start[node]] for node in nodes], dtype=np.int64)
            shape = (len(starts), len(kubelet.zones), len(kubelet.resources))
            amounts = [self._cut(kind, kubelet.amounts(start)) for start in starts]
            rooms = np.array(amounts, dtype=np.int64).reshape(shape)
            found.append((nodes, which, rooms))
        return found

    def only(self, nodes: IntArray, classes: Sequence[int], held: Mapping[int, tuple[Units, ...]]) -> DenseNuma:
        """The same over some nodes and classes, in that order; classes may repeat.

        ``held``: node, by its number *there*, to new pods that stay.
        """
        return replace(
            self,
            kind=self.kind[nodes],
            start=tuple(self.start[node] for node in nodes),
            units=tuple(self.units[index] for index in classes),
            held=held,
        )


def _most(rooms: IntArray, unit: Unit) -> IntArray:
    """Shapes: rooms (starts, zones, resources), result int64 (starts,)."""
    if not unit.width:
        return np.zeros(len(rooms), dtype=np.int64)
    if unit.width > 1:
        if int(rooms.max(initial=0)) > MOST_SUMMED:
            return np.full(len(rooms), LIMITLESS, dtype=np.int64)
        rooms = rooms.sum(axis=1, keepdims=True)
    count = np.full(rooms.shape[:2], LIMITLESS, dtype=np.int64)
    for resource, need, take in unit.amounts:
        count[rooms[:, :, resource] < need] = 0
        if take:
            count = np.minimum(count, rooms[:, :, resource] // take)
    most: IntArray = np.minimum(count.sum(axis=1), LIMITLESS)
    return most


def read_numa(
    instance: Instance, nodes: Sequence[str], demands: Sequence[NumaDemand | None], sizes: Sequence[int]
) -> DenseNuma | None:
    """Kubelets for some classes, each with its demand and size; None where C10 concerns none."""
    number: dict[int, int] = {}
    kubelets: list[PackedKubelet] = []
    kind = np.full(len(nodes), -1, dtype=np.int64)
    start: list[State] = [()] * len(nodes)
    of_node = packed_kubelets(instance.aligning_nodes)
    for index, name in enumerate(nodes):
        if name in of_node:
            kubelet = of_node[name]
            if id(kubelet) not in number:
                number[id(kubelet)] = len(kubelets)
                kubelets.append(kubelet)
            kind[index], start[index] = number[id(kubelet)], kubelet.start(instance.aligning_nodes[name])
    units = tuple(tuple(kubelet.units(demand) for kubelet in kubelets) for demand in demands)
    if not any(any(each) for each in units):
        return None
    asked = [_asked(kubelet, [each[number] for each in units], sizes) for number, kubelet in enumerate(kubelets)]
    return DenseNuma(tuple(kubelets), kind, tuple(start), units, asked=tuple(asked))


def _asked(kubelet: PackedKubelet, pods: Sequence[Units], sizes: Sequence[int]) -> tuple[int, ...]:
    sums = [0] * len(kubelet.resources)
    for units, size in zip(pods, sizes, strict=True):
        for index, need, take in (amount for unit in units if unit.width for amount in unit.amounts):
            sums[index] += size * max(need, take)
    return tuple(min(each, MOST_ROOM) for each in sums)
