"""A method's decision: how many pods of each class go to each node, and the order in which a node's pods are bound."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]

#: (class, node) to how many pods, at least 1 each.
Counts = Mapping[tuple[int, int], int]


def placed_by_class(counts: Counts) -> Counter[int]:
    """Class to its placed pods; a class without any is absent."""
    placed = Counter[int]()
    for (index, _), count in counts.items():
        placed[index] += count
    return placed


class Solution(dict[tuple[int, int], int]):
    """Pods by class and node, and the binding order of nodes where it matters (C10); equal where their counts are.

    ``Solution({(2, 9): 5, (4, 7): 3, (6, 7): 1}, {7: (6, 4)})`` has node 7 get a pod of class 6, then three of class 4.
    ``counts``: (class, node) to how many pods, at least 1 each. ``order``: node to classes, first bound first; others
    come after them, lower ones first.
    """

    def __init__(self, counts: Counts | None = None, order: Mapping[int, Iterable[int]] | None = None) -> None:
        super().__init__(counts or {})
        self.order = {node: tuple(classes) for node, classes in (order or {}).items()}

    def copy(self) -> Solution:
        """An independent copy."""
        return Solution(self, self.order)

    def only(self, kept: Callable[[int, int], bool]) -> Solution:
        """The part that ``kept`` accepts by class and node."""
        order = {node: [index for index in classes if kept(index, node)] for node, classes in self.order.items()}
        counts = {at: count for at, count in self.items() if kept(*at)}
        return Solution(counts, {node: classes for node, classes in order.items() if classes})

    def renumbered(self, class_of: Callable[[int], int], node_of: Callable[[int], int]) -> Solution:
        """The same in other numbers of classes and nodes."""
        counts = {(class_of(index), node_of(node)): count for (index, node), count in self.items()}
        return Solution(counts, {node_of(node): map(class_of, classes) for node, classes in self.order.items()})

    def in_order(self) -> list[tuple[int, int, int]]:
        """Class, node and count of each entry, those of a node in binding order."""
        named = {(index, node): 0 for node, classes in self.order.items() for index in classes}
        return [(index, node, self[index, node]) for index, node in {**named, **dict.fromkeys(sorted(self))}]
