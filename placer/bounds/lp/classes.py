"""Classes of nodes: few, so that the program stays small however many free rows running pods leave.

Nodes may be put together without doing wrong: the room of a class is the sum of what its nodes have, by every measure
node by node, and pods may go to it that may go to one of its nodes. What is lost is that room of one node cannot be
used on another.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from placer.bounds.shapes import BoolArray, IntArray, Shapes

__all__ = ["NodeClasses"]

#: No more classes than this, and no more than COLUMNS pairs of a shape and a class.
MOST_CLASSES = 48
COLUMNS = 12_000

#: Room is made up from requests exactly up to so many units, beyond that it is taken as it is.
EXACT_ROOM = 20_000


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
        fits: BoolArray = np.array([shapes.fits(shape) > 0 for shape in alive], dtype=bool)
        fits = fits.reshape(len(alive), len(shapes.nodes))
        useful = fits.any(axis=0)
        patterns = np.unique(np.packbits(fits, axis=0), axis=1, return_inverse=True)[1].reshape(-1)
        self.of_kind: IntArray = np.full(len(shapes.nodes), -1, dtype=np.int64)
        self.number = 0
        for label in self._labels(patterns):
            found = np.unique(label[useful], axis=0, return_inverse=True)[1]
            self.of_kind[useful] = found.reshape(-1)
            self.number = int(self.of_kind.max(initial=-1)) + 1
            if self.number <= MOST_CLASSES and self.number * len(alive) <= COLUMNS:
                break
        self.room = self.sums(self._usable(alive, fits, patterns))
        self.held = {shape: self.sums(shapes.fits(shape)) for shape in alive.tolist()}

    def _labels(self, patterns: IntArray) -> Iterator[IntArray]:
        """What tells kinds apart, int64, shape (kinds, parts): less and less of it."""
        kinds = len(patterns)
        bits = np.ceil(np.log2(self.shapes.free + 1)).astype(np.int64)
        masks = np.unique(np.packbits(self.shapes.allowed, axis=0), axis=1, return_inverse=True)[1].reshape(kinds, 1)
        yield np.arange(kinds, dtype=np.int64)[:, None]
        yield np.concatenate((patterns[:, None], bits), axis=1)
        yield np.concatenate((patterns[:, None], masks), axis=1)
        yield masks
        yield np.zeros((kinds, 1), dtype=np.int64)

    def sums(self, per_kind: IntArray) -> IntArray:
        """Sum over the nodes of each class what a node of each kind has: int64, shape (classes, ...)."""
        found = np.zeros((self.number, *per_kind.shape[1:]), dtype=np.int64)
        useful = self.of_kind >= 0
        many = self.shapes.nodes[useful].reshape(-1, *(1 for _ in per_kind.shape[1:]))
        np.add.at(found, self.of_kind[useful], per_kind[useful] * many)
        return found

    def _usable(self, alive: IntArray, fits: BoolArray, patterns: IntArray) -> IntArray:
        """The most of each resource that pods on one node of a kind can take together: int64, as ``Shapes.free``.

        What no sum of requests makes up stays free: of 3 GPUs pods of 2 use 2.
        """
        usable = self.shapes.free.copy()
        together = int(patterns.max(initial=0)) < MOST_CLASSES
        for pattern in np.unique(patterns) if together else [-1]:
            kinds = np.flatnonzero((patterns == pattern) | (pattern < 0))
            there = alive[fits[:, kinds].any(axis=1)]
            for resource in range(usable.shape[1]):
                free = usable[kinds, resource]
                if int(free.max(initial=0)) <= EXACT_ROOM:
                    sums = _sums_of(np.unique(self.shapes.request[there, resource]).tolist(), int(free.max(initial=0)))
                    most = [(sums & ((2 << amount) - 1)).bit_length() - 1 for amount in free.tolist()]
                    usable[kinds, resource] = most
        return usable


def _sums_of(amounts: list[int], most: int) -> int:
    """All sums up to ``most`` of the amounts, each used any number of times: bit i is set where i is a sum."""
    sums, within = 1, (1 << (most + 1)) - 1
    for amount in amounts:
        step = amount
        while 0 < step <= most:
            sums |= (sums << step) & within
            step *= 2
    return sums
