"""How many pods of each class a placement can have at most: what cannot stand alone adds nothing to any bound.

A group is put alone on what running pods leave. What counting then excludes, no placement has: other new pods only take
room away. Counted are nodes with room for a pod of the class, the domains that the tier limits (C7) of the group and of
its subgroups leave, resources and pieces of one size in each of them, room in queues (C11), and whether what is left
makes subgroups (C6) and the group (C5) ready.

Source: solver-notes on bounds for vector bin packing, points (1), (3) and (4), group by group.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placer.bounds.kinds import Block, Kind, Place, cheapest, make_kinds
from placer.bounds.remembered import Remembered
from placer.bounds.rooms import Measure, Rooms
from placer.bounds.shapes import BoolArray, IntArray, Shapes
from placer.dense import Dense

__all__ = ["Alone"]


class Alone:
    """The cluster without any new pod, in which groups are counted one at a time.

    Parameters
    ----------
    dense
        The instance.

    Attributes
    ----------
    kinds
        Equal groups, with the pods of each class that can be placed; groups that can never be ready are left out.
    sizes
        int64, shape (classes,): most pods of each class that a placement has.
    """

    def __init__(self, dense: Dense) -> None:
        self.dense = dense
        self.shapes = Shapes(dense)
        self.rooms = Rooms(dense, self.shapes)
        self._stands = Remembered(self._stand)
        self.sizes: IntArray = np.zeros(len(dense.classes), dtype=np.int64)
        found = []
        for kind in make_kinds(dense, self.shapes.of_class):
            sizes = self._sizes(kind)
            if sizes.any() or kind.ready:  # a group that is ready counts as admitted, whatever fits
                found.append(kind.resized(sizes.tolist()))
                for member in kind.members:
                    self.sizes[list(member)] = sizes
        self.kinds: tuple[Kind, ...] = tuple(found)

    def _sizes(self, kind: Kind) -> IntArray:
        """Most pods per class of a group: in the best of the domains where it can be ready."""
        kind = kind.resized(self._by_nodes_and_queues(kind))
        stands = [self._stands[block, kind.place] for block in kind.blocks]
        able = self._ready(kind, stands)
        if len(kind.sizes) > 1:  # of a single class this has all been counted
            able &= self._together(kind)
        if not able.any() or not self._queues_allow(kind):
            return np.zeros(len(kind.sizes), dtype=np.int64)
        most: IntArray = np.concatenate([stand[1:] for stand in stands])[:, able].max(axis=1)
        return most

    def _by_nodes_and_queues(self, kind: Kind) -> list[int]:
        sizes = [min(size, int(self.shapes.most[shape])) for size, shape in zip(kind.sizes, kind.shapes, strict=True)]
        for index, rows in enumerate(kind.rows):
            for row in map(self.dense.queue_rows.__getitem__, rows):
                sizes[index] = min(sizes[index], row.room // int(self.shapes.request[kind.shapes[index], row.resource]))
        return sizes

    def _stand(self, key: tuple[Block, Place]) -> IntArray:
        """Count a block in every domain of its own inside those of its group; the best one counts.

        Returns
        -------
        int64, shape (1 + classes, domains of the group): most pods in all, then of each class; 0 where the block cannot
        be ready.
        """
        block, outer = key
        above = self.rooms.within(block.place, outer)[1]
        sizes = np.array(block.sizes, dtype=np.int64)
        fits = [self.rooms.of(self._pods_of(shape), block.place, outer) for shape in block.shapes]
        classes = np.minimum(sizes[:, None], np.array(fits, dtype=np.int64))
        if block.short:
            able = classes.sum(axis=0) >= block.short
            if len(block.shapes) > 1:
                measures = self.measures(block.shapes)
                least = cheapest(self.rooms.costs(measures, block.shapes), sizes, block.short)
                able &= self._hold(least, measures, block.place, outer)
            classes = np.where(able, classes, 0)
        best = np.zeros((len(self.rooms.within(outer)[0].begin), 1 + len(sizes)), dtype=np.int64)
        np.maximum.at(best, above, np.concatenate((classes.sum(axis=0, keepdims=True), classes)).T)
        return best.T

    def _ready(self, kind: Kind, stands: Sequence[IntArray]) -> BoolArray:
        """Where the counts that C5 asks for can be reached: bool, shape (domains,)."""
        pods = np.array([stand[0] for stand in stands])
        able: BoolArray = pods.sum(axis=0) >= max(1, kind.short)
        roles = np.array([role for block in kind.blocks for role in block.roles])
        classes = np.concatenate([stand[1:] for stand in stands])
        for role, short in kind.short_by_role:
            able &= classes[roles == role].sum(axis=0) >= short
        for policy, short in kind.short_by_policy:
            mine = [block.policy == policy and block.short > 0 for block in kind.blocks]
            able &= (pods[mine] > 0).sum(axis=0) >= short
        return able

    def _together(self, kind: Kind) -> BoolArray:
        """Where there is room for the least that makes the group ready: bool, shape (domains,)."""
        measures = self.measures(kind.shapes)
        least = kind.least(self.rooms.costs(measures, kind.shapes))
        return self._hold(least, measures, kind.place, None)

    def _hold(self, least: IntArray, measures: Sequence[Measure], place: Place, outer: Place) -> BoolArray:
        """Domains with room for ``least``, shape (measures,), by every measure."""
        rooms = np.array([self.rooms.of(measure, place, outer) for measure in measures])
        held: BoolArray = np.logical_and.reduce(rooms >= least[:, None])
        return held

    def _queues_allow(self, kind: Kind) -> bool:
        """Whether each queue has room for the least that makes the group ready."""
        for number in {row for rows in kind.rows for row in rows}:
            row = self.dense.queue_rows[number]
            asked = [
                int(self.shapes.request[shape, row.resource]) if number in rows else 0
                for shape, rows in zip(kind.shapes, kind.rows, strict=True)
            ]
            if kind.least(np.array(asked, dtype=np.int64)[:, None])[0] > row.room:
                return False
        return True

    def _pods_of(self, shape: int) -> Measure:
        return Measure(-1, shape, frozenset())

    def measures(self, shapes: Sequence[int]) -> list[Measure]:
        """Ways to count what pods of some shapes take together: amounts, pieces of the smallest request, pods."""
        each = sorted(set(shapes))
        masks = frozenset(int(self.shapes.mask[shape]) for shape in each)
        found = [self._pods_of(shape) for shape in each]
        for resource, asked in enumerate(self.shapes.request[each].T):
            found += [Measure(resource, size, masks) for size in sorted({1, *asked[asked > 0].tolist()})[:2]]
        return found
