"""What the kubelets that refuse pods make of the classes, by index (C10)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from placer.instance import Instance
from placer.instance.numa import Kubelet, NumaDemand, State, Units, some_order

__all__ = ["DenseNuma", "read_numa"]

IntArray = npt.NDArray[np.int64]

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
    def _known(self) -> dict[object, bool]:
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
        if not crowd:
            return True
        key = (int(self.kind[node]), self.start[node], crowd)
        if key not in self._known:
            pods = [units for units, count in crowd for _ in range(count)]
            self._known[key] = some_order(self.kubelets[key[0]], self.start[node], pods) is not None
        return self._known[key]

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
