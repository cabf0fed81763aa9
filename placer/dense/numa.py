"""What the kubelets that refuse pods make of the classes, by index (C10)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from placer.instance import Instance
from placer.instance.numa import Kubelet, NumaDemand, Ordering, Orders, State, Unit, Units, some_order

__all__ = ["Crowd", "DenseNuma", "read_numa"]

IntArray = npt.NDArray[np.int64]

#: More pods than there are.
LIMITLESS = 2**31

#: The order of no pods.
NOBODY = Ordering(Orders.ANY, ())

#: Pods that are the same to a kubelet, and how many of them.
Crowd = tuple[tuple[Units, int], ...]


@dataclass(frozen=True)
class DenseNuma:
    """Kubelets, what their zones have, and what each class is to each of them.

    Parameters
    ----------
    kubelets
        One per kind of node.
    kind
        int64, shape (nodes,): index into ``kubelets``; -1: a node where every pod is admitted.
    start
        Per node what its zones have before any new pod; empty where the kind is -1.
    units
        Per class, what one of its pods is to each kubelet; empty: nothing of it is aligned there.
    held
        Node to new pods that stay there whatever is decided, which are bound among the others in any order.
    """

    kubelets: tuple[Kubelet, ...]
    kind: IntArray
    start: tuple[State, ...]
    units: tuple[tuple[Units, ...], ...]
    held: Mapping[int, Crowd] = field(default_factory=dict)

    @cached_property
    def _orders(self) -> dict[object, Ordering]:
        return {}

    def of(self, index: int, node: int) -> Units:
        """What a pod of a class is to the kubelet of a node; empty where C10 says nothing of it."""
        kind = int(self.kind[node])
        return () if kind < 0 else self.units[index][kind]

    def crowd(self, node: int, counts: Iterable[tuple[int, int]]) -> Crowd:
        """Pods of some classes on a node, and those that stay there, as its kubelet tells them apart; sorted.

        Parameters
        ----------
        node
            The node.
        counts
            Class and how many of its pods.
        """
        found: Counter[Units] = Counter(dict(self.held.get(node, ())))
        for index, count in counts:
            units = self.of(index, node)
            if units and count:
                found[units] += count
        return tuple(sorted(found.items()))

    def admits(self, node: int, counts: Iterable[tuple[int, int]]) -> bool:
        """Whether the kubelet admits all pods of some classes on a node in some order that was found.

        Parameters
        ----------
        node
            The node.
        counts
            Class and how many of its pods.
        """
        return self.admits_crowd(node, self.crowd(node, counts))

    def admits_crowd(self, node: int, crowd: Crowd) -> bool:
        """The same of pods told by :meth:`crowd`; asked once about equal nodes."""
        return self.order(node, crowd).sequence is not None

    def order(self, node: int, crowd: Crowd) -> Ordering:
        """An order for a crowd, by positions in it spelt out pod by pod."""
        key = (int(self.kind[node]), self.start[node], crowd)
        if key not in self._orders:
            pods = [units for units, count in crowd for _ in range(count)]
            self._orders[key] = some_order(self.kubelets[key[0]], self.start[node], pods) if crowd else NOBODY
        return self._orders[key]

    def refused(self, solution: Mapping[tuple[int, int], int]) -> list[int]:
        """Nodes whose kubelet admits what a solution puts there in no order that was found, sorted.

        Parameters
        ----------
        solution
            (class, node) to count.
        """
        by_node: dict[int, list[tuple[int, int]]] = {}
        for (index, node), count in solution.items():
            if self.of(index, node):
                by_node.setdefault(node, []).append((index, count))
        return [node for node, counts in sorted(by_node.items()) if not self.admits(node, counts)]

    def most(self, index: int) -> IntArray:
        """How many pods of a class the zones of each node could hold at most; each unit is looked at by itself.

        Returns
        -------
        int64, shape (nodes,); :data:`LIMITLESS` where C10 does not concern the class.
        """
        found = np.full(len(self.kind), LIMITLESS, dtype=np.int64)
        for kind, units in enumerate(self.units[index]):
            for unit in units:
                nodes, which, rooms = self._rooms[kind]
                found[nodes] = np.minimum(found[nodes], _most(rooms, unit)[which])
        return found

    @cached_property
    def _rooms(self) -> list[tuple[IntArray, IntArray, IntArray]]:
        """Per kind its nodes, the number of each one's start, and what is available per start, zone and resource."""
        found = []
        for kind, kubelet in enumerate(self.kubelets):
            nodes = np.flatnonzero(self.kind == kind).astype(np.int64)
            starts = list(dict.fromkeys(self.start[node] for node in nodes))
            number = {start: position for position, start in enumerate(starts)}
            which = np.array([number[self.start[node]] for node in nodes], dtype=np.int64)
            shape = (len(starts), len(kubelet.zones), len(kubelet.resources))
            rooms = np.array([kubelet.amounts(start) for start in starts], dtype=np.int64).reshape(shape)
            found.append((nodes, which, rooms))
        return found

    def at(self, nodes: IntArray, classes: Sequence[int], held: Mapping[int, Crowd]) -> DenseNuma:
        """The same over some nodes and classes, in that order.

        Parameters
        ----------
        nodes, classes
            Their indices here; classes may repeat.
        held
            Node, by its number *there*, to new pods that stay.
        """
        return replace(
            self,
            kind=self.kind[nodes],
            start=tuple(self.start[node] for node in nodes),
            units=tuple(self.units[index] for index in classes),
            held=held,
        )


def _most(rooms: IntArray, unit: Unit) -> IntArray:
    """How often a unit fits into zones with these rooms, shape (starts, zones, resources): int64, shape (starts,)."""
    if not unit.width:
        return np.zeros(len(rooms), dtype=np.int64)
    if unit.width > 1:
        rooms = rooms.sum(axis=1, keepdims=True)
    count = np.full(rooms.shape[:2], LIMITLESS, dtype=np.int64)
    for resource, need, take in unit.amounts:
        count[rooms[:, :, resource] < need] = 0
        if take:
            count = np.minimum(count, rooms[:, :, resource] // take)
    most: IntArray = np.minimum(count.sum(axis=1), LIMITLESS)
    return most


def read_numa(instance: Instance, nodes: Sequence[str], demands: Sequence[NumaDemand | None]) -> DenseNuma | None:
    """What kubelets say of some classes; None where that is nothing.

    Parameters
    ----------
    instance
        The problem.
    nodes
        Node names in tree order.
    demands
        What a pod of each class asks of zones.
    """
    number: dict[int, int] = {}
    kubelets: list[Kubelet] = []
    kind = np.full(len(nodes), -1, dtype=np.int64)
    start: list[State] = [()] * len(nodes)
    for index, name in enumerate(nodes):
        kubelet, node = instance.kubelets.get(name), instance.nodes[name].numa
        if kubelet is not None and node is not None:
            if id(kubelet) not in number:
                number[id(kubelet)] = len(kubelets)
                kubelets.append(kubelet)
            kind[index], start[index] = number[id(kubelet)], kubelet.start(node)
    units = tuple(tuple(kubelet.units(demand) for kubelet in kubelets) for demand in demands)
    if not any(any(each) for each in units):
        return None
    return DenseNuma(tuple(kubelets), kind, tuple(start), units)
