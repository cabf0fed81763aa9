"""Classes of nodes: few, so that the program stays small however many free rows running pods leave.

Nodes may be put together without doing wrong: the room of a class is the sum of what its nodes have, by every measure
node by node, and pods may go to it that may go to one of its nodes. What is lost is that room of one node cannot be
used on another; so nodes are put together that have much the same.
"""

from __future__ import annotations

import numpy as np

from placer.bounds.shapes import BoolArray, IntArray, Shapes

__all__ = ["NodeClasses"]

#: No more classes than this, and no more than COLUMNS pairs of a shape and a class.
MOST_CLASSES = 48
COLUMNS = 6_000


class NodeClasses:
    """Kinds of nodes put together.

    Parameters
    ----------
    shapes
        The instance.
    alive
        int64: shapes of which some pod can be placed.

    Attributes
    ----------
    of_kind
        int64, shape (kinds,): class of each kind of node; -1: no pod that can be placed fits there.
    number
        How many there are.
    room
        int64, shape (classes, resources): how much pods can use in all.
    held
        Shape to int64, shape (classes,): how many pods of it alone there is room for.
    """

    def __init__(self, shapes: Shapes, alive: IntArray) -> None:
        self.shapes = shapes
        useful: BoolArray = np.zeros(len(shapes.nodes), dtype=bool)
        for shape in alive.tolist():
            useful |= shapes.fits(shape) > 0
        most = min(MOST_CLASSES, COLUMNS // max(1, len(alive)))
        parts = self._parts(np.flatnonzero(useful), max(1, most))
        self.number = len(parts)
        self.of_kind: IntArray = np.full(len(shapes.nodes), -1, dtype=np.int64)
        for number, kinds in enumerate(parts):
            self.of_kind[kinds] = number
        self.room = self.sums(shapes.free)
        self.held = {shape: self.sums(shapes.fits(shape)) for shape in alive.tolist()}

    def _parts(self, kinds: IntArray, most: int) -> list[IntArray]:
        """Divide kinds into at most so many parts: by eligibility if that is not too many, then by free room."""
        if len(kinds) <= most:
            return [kinds[index : index + 1] for index in range(len(kinds))]
        sets = np.unique(np.packbits(self.shapes.allowed[:, kinds], axis=0), axis=1, return_inverse=True)[1].reshape(-1)
        count = int(sets.max()) + 1
        parts = [kinds[sets == number] for number in range(count)] if count <= most else [kinds]
        spreads = [self._spread(part) for part in parts]
        while len(parts) < most and max(spread for spread, _ in spreads) > 0:
            widest = max(range(len(parts)), key=lambda index: spreads[index][0])
            halves = self._halves(parts[widest], spreads[widest][1])
            parts[widest : widest + 1] = halves
            spreads[widest : widest + 1] = map(self._spread, halves)
        return parts

    def _spread(self, kinds: IntArray) -> tuple[float, int]:
        """How unequal nodes are in that resource in which they are most so, as a share of all its room."""
        free, nodes = self.shapes.free[kinds].astype(np.float64), self.shapes.nodes[kinds]
        unequal = nodes @ np.abs(free - nodes @ free / nodes.sum())
        unequal /= np.maximum(self.shapes.nodes @ self.shapes.free.astype(np.float64), 1)
        resource = int(np.argmax(unequal))
        return float(unequal[resource]), resource

    def _halves(self, kinds: IntArray, resource: int) -> list[IntArray]:
        """Part those that have less of a resource than their nodes have on average from the others; both are some."""
        free = self.shapes.free[kinds, resource]
        middle = int(np.average(free, weights=self.shapes.nodes[kinds]))
        low = free <= min(max(middle, int(free.min())), int(free.max()) - 1)
        return [kinds[low], kinds[~low]]

    def sums(self, per_kind: IntArray) -> IntArray:
        """Sum over the nodes of each class what a node of each kind has: int64, shape (classes, ...)."""
        found = np.zeros((self.number, *per_kind.shape[1:]), dtype=np.int64)
        useful = self.of_kind >= 0
        many = self.shapes.nodes[useful].reshape(-1, *(1 for _ in per_kind.shape[1:]))
        np.add.at(found, self.of_kind[useful], per_kind[useful] * many)
        return found
