"""Rows that cut off what only fractions could do: pieces of one size, on nodes and in domains.

For any size s the whole parts floor(a / s) of amounts a that lie together add up to no more than that of the room they
lie in. So, summed over the nodes of a class, floor(request / s) per pod is at most floor(free / s) per node: of nodes
with 3 GPUs left each takes one pod of 2. And summed over the domains within a tier limit, floor(need / s) per group or
subgroup that must lie in one of them is at most floor(room / s) per domain: a spine of 64 nodes takes one gang of 40.

There are too many such rows to write them all down; those that a point of the program breaks are found and added.

Source: solver-notes on bounds for vector bin packing, points (2) and (3).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from placer.bounds.kinds import Kind, cheapest
from placer.bounds.lp.relaxation import Item, Relaxation, Terms
from placer.bounds.rooms import Measure
from placer.bounds.shapes import IntArray
from placer.bounds.volume import some_of
from placer.linear import Row

__all__ = ["Cuts"]

#: Sizes tried per measure, and pieces that the room of domains is counted in, per resource.
SIZES, PIECES = 64, 4

#: Sets of nodes that are looked at apart, those that most groups and subgroups may use.
SETS = 16

#: Rows added at a time.
ROWS = 40

#: A row is broken where it is exceeded by this share.
BROKEN = 1e-6

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class _Family:
    """Things that lie together in places, counted by one measure.

    Parameters
    ----------
    things
        int64, shape (things,): their indices.
    amounts
        int64, shape (things,): what each takes.
    sizes
        int64, shape (sizes,): pieces to try.
    rooms
        int64, shape (sizes,): how many pieces of each size all places hold.
    """

    things: IntArray
    amounts: IntArray
    sizes: IntArray
    rooms: IntArray


class Cuts:
    """All such rows of a relaxation.

    Parameters
    ----------
    relaxation
        What is cut.
    """

    def __init__(self, relaxation: Relaxation) -> None:
        self.to, self.shapes = relaxation, relaxation.shapes
        items: list[Terms] = [{item.column: item.many} for item in relaxation.items]
        self._terms = [*relaxation.on.values(), *items]
        self._families = [*self._on_nodes(), *self._in_domains()]

    def broken(self, point: Sequence[float]) -> list[Row]:
        """Return the rows that a point breaks most."""
        counts = np.array([sum(point[column] * many for column, many in terms.items()) for terms in self._terms])
        found = [pair for family in self._families for pair in self._broken(family, counts)]
        found.sort(key=lambda pair: -pair[0])
        return [row for _, row in found[:ROWS]]

    def _broken(self, family: _Family, counts: FloatArray) -> Iterator[tuple[float, Row]]:
        """Rows of a family, with the share by which the counts exceed them."""
        taken = counts[family.things] @ (family.amounts[:, None] // family.sizes[None, :])
        excess = (taken - family.rooms) / np.maximum(family.rooms, 1)
        for index in np.flatnonzero(excess > BROKEN).tolist():
            pieces = (family.amounts // family.sizes[index]).tolist()
            row: Terms = {}
            for thing, each in zip(family.things.tolist(), pieces, strict=True):
                for column, many in self._terms[thing].items() if each else ():
                    row[column] = row.get(column, 0) + each * many
            yield float(excess[index]), Row.of(row, int(family.rooms[index]))

    def _on_nodes(self) -> Iterator[_Family]:
        """Pods on the nodes of each class, by resource."""
        classes, request = self.to.classes, self.shapes.request
        pairs = np.array(list(self.to.on), dtype=np.int64).reshape(-1, 2)
        for where in range(classes.number):
            things = np.flatnonzero(pairs[:, 1] == where)
            kinds = np.flatnonzero(classes.of_kind == where)
            for resource in range(request.shape[1]):
                amounts = request[pairs[things, 0], resource]
                asked = np.unique(amounts)
                sizes = np.array(some_of(asked[asked > 1], SIZES), dtype=np.int64)
                if len(sizes):
                    pieces = self.shapes.free[kinds, resource][:, None] // sizes[None, :]
                    yield _Family(things, amounts, sizes, (pieces * self.shapes.nodes[kinds][:, None]).sum(axis=0))

    def _in_domains(self) -> Iterator[_Family]:
        """Groups and subgroups in the domains of each tier limit; also those apart that may use some nodes only."""
        items = self.to.items
        masks = [frozenset(self.shapes.mask[list(item.what.shapes)].tolist()) for item in items]
        pieces = list(self._pieces())
        needs = np.array([self._need(item, pieces) for item in items], dtype=np.int64).reshape(len(items), len(pieces))
        for limit in sorted({item.limit for item in items}):
            low = [index for index, item in enumerate(items) if item.limit <= limit]
            every: frozenset[int] = frozenset().union(*(masks[index] for index in low))
            often = Counter(masks[index] for index in low).most_common(SETS)
            for allowed in dict.fromkeys([every, *(allowed for allowed, _ in often)]):
                inside = np.array([index for index in low if masks[index] <= allowed], dtype=np.int64)
                for (resource, size), amounts in zip(pieces, needs[inside].T, strict=True):
                    rooms = self.to.alone.rooms.of(Measure(resource, size, allowed), (limit, -1))
                    yield from self._of(inside + len(self.to.on), amounts, rooms)

    def _of(self, things: IntArray, amounts: IntArray, rooms: IntArray) -> Iterator[_Family]:
        sizes = np.array(some_of(np.unique(amounts[amounts > 0]), SIZES), dtype=np.int64)
        if len(sizes):
            yield _Family(things, amounts, sizes, (rooms[:, None] // sizes[None, :]).sum(axis=0))

    def _pieces(self) -> Iterator[tuple[int, int]]:
        """Resources and sizes in which the needs of groups are counted."""
        shapes = sorted({shape for item in self.to.items for shape in item.what.shapes})
        for resource in range(self.shapes.request.shape[1]):
            asked = np.unique(self.shapes.request[shapes, resource])
            for size in (1, *some_of(asked[asked > 1], PIECES)):
                yield resource, size

    def _need(self, item: Item, pieces: Sequence[tuple[int, int]]) -> IntArray:
        """Least that one of them takes, in each kind of pieces: int64, shape (pieces,)."""
        request = self.shapes.request[list(item.what.shapes)]
        costs = np.stack([request[:, resource] // size for resource, size in pieces], axis=1)
        if isinstance(item.what, Kind):
            return item.what.least(costs)
        return cheapest(costs, np.array(item.what.sizes, dtype=np.int64), item.what.short)
