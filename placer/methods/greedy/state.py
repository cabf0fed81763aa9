"""What is placed while the greedy runs, and how many pods of a shape fit where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from placer.dense import Solution
from placer.methods.greedy.layout import GreedyLayout, IntArray, Shape
from placer.methods.partial import PartialSolution

__all__ = ["STEP", "BoolArray", "GreedyState"]

BoolArray = npt.NDArray[np.bool_]

#: What a step of a few numpy calls costs whatever the size of its arrays, in array elements.
STEP = 10_000

#: What counting a pod among those that call and are called costs, in the same unit.
CALL = 6_000

#: What looking at the zones of a node costs, in the same unit.
ZONES = 40

#: Moves between areas while areas are looked for, in all (about 0.5 milliseconds each).
MOVES = 1_000

#: Entries that the cached counts of all shapes together may have (8 bytes each).
CACHE_ENTRIES = 16 * 10**6


class GreedyState(PartialSolution):
    """A partial solution that counts how many pods of a shape each node still takes, and the work that this is.

    Parameters
    ----------
    layout
        Of the instance.
    solution
        Where to start; must keep the rules.
    """

    def __init__(self, layout: GreedyLayout, solution: Mapping[tuple[int, int], int] | None = None) -> None:
        super().__init__(layout.dense, layout.calls)
        self.layout = layout
        #: int64, shape (nodes,): the price of what each node has left.
        self.price = layout.prices(self.dense.free)
        #: How often pods that call each other may still be moved while areas for them are looked for.
        self.moves = MOVES
        #: Array elements looked at so far and :data:`STEP` per step: work, the same on every machine.
        self.work = 0
        self._changed: list[int] = []
        self._fits: dict[int, tuple[IntArray, int]] = {}
        self._most_fits = max(8, CACHE_ENTRIES // max(1, len(self.dense.nodes)))
        # Kubelets may admit pods in the order of the solution only.
        given = (solution or {}).items()
        for (index, node), count in sorted(given) if self.dense.numa is None else given:
            self.take(index, [node], [count])

    def take(self, index: int, nodes: Sequence[int], counts: Sequence[int]) -> None:
        """Place ``counts`` pods of a class on ``nodes``, distinct ones; take them away where a count is negative."""
        self.work += STEP // 50 * len(nodes)
        super().take(index, nodes, counts)

    def take_one_each(self, classes: Sequence[int], nodes: Sequence[int], counts: Sequence[int]) -> None:
        """Place one pod of each class, all of one shape: ``counts`` of them on each of ``nodes``, in order."""
        left = iter(classes)
        self.work += STEP // 50 * len(classes)
        for node, count in zip(nodes, counts, strict=True):
            for _ in range(count):
                self._enter(next(left), node, 1)
        self._fill(classes[0], nodes, counts)

    def undo(self, mark: int) -> None:
        """Take back everything since ``mark``."""
        self.work += STEP // 10 * (len(self._log) - mark)
        super().undo(mark)

    def _count(self, index: int, node: int, count: int) -> None:
        if index in self.dense.workload_of:
            self.work += CALL
        super()._count(index, node, count)

    def _fill(self, index: int, nodes: Sequence[int], counts: Sequence[int]) -> None:
        super()._fill(index, nodes, counts)
        price = self.layout.class_prices[index]
        if len(nodes) == 1:
            self.price[nodes[0]] -= price * counts[0]
        else:
            self.price[np.asarray(nodes)] -= price * np.asarray(counts)
        self._changed.extend(nodes)

    def fits(self, number: int) -> IntArray:
        """How many pods of a shape each node could still take: int64, shape (nodes,), read-only, at most its total."""
        shape = self.layout.shapes[number]
        known = self._fits.get(number)
        if known is None or shape.ports or 2 * (len(self._changed) - known[1]) > len(self.price):
            counts = self._fitting(shape, None)
            if len(self._fits) >= self._most_fits:
                self._fits.clear()
        else:
            counts, seen = known
            if seen < len(self._changed):
                nodes = np.array(self._changed[seen:], dtype=np.int64)
                counts[nodes] = self._fitting(shape, nodes)
        self._fits[number] = (counts, len(self._changed))
        return counts

    def _fitting(self, shape: Shape, nodes: IntArray | None, *, zones: bool = True) -> IntArray:
        """Count what fits on some nodes, None: on all."""
        mask = self.dense.masks[shape.mask]
        allowed = mask if nodes is None else mask[nodes]
        self.work += STEP // 4 + len(allowed) * (1 + len(shape.asked))
        counts = np.full(len(allowed), 1 if shape.ports else shape.total, dtype=np.int64)
        for resource in shape.asked:
            room = self.room[resource] if nodes is None else self.room[resource, nodes]
            np.minimum(counts, room // shape.request[resource], out=counts)
        self.close(shape.first, nodes, counts, zones=zones)
        counts *= allowed
        return counts

    def close(self, index: int, nodes: IntArray | None, counts: IntArray, *, zones: bool = True) -> None:
        """Lower counts of further pods of a class as the partial solution does, and count the work."""
        if zones and self.zones is not None and self.dense.classes[index].zones >= 0:
            self.work += ZONES * len(counts)
        super().close(index, nodes, counts, zones=zones)

    def has_room(self, number: int) -> BoolArray:
        """Where one pod of a shape fits: bool, shape (nodes,); cheaper than counting for a shape that comes once."""
        shape = self.layout.shapes[number]
        if shape.ports or number in self._fits:
            able: BoolArray = self.fits(number) > 0
            return able
        self.work += len(self.price) * (1 + len(shape.asked)) // 4
        where: BoolArray = self.dense.masks[shape.mask].copy()
        for resource in shape.asked:
            where &= self.room[resource] >= shape.request[resource]
        if self.closes(shape.first):
            counts = where.astype(np.int64)
            self.close(shape.first, None, counts)
            where = counts > 0
        return where

    def left_by(self, number: int) -> IntArray:
        """What tells a tight node from a roomy one for a pod of a shape, the less the better; only where one fits.

        The price of the room; where kubelets align the pod, what it leaves in its zones.
        """
        shape = self.layout.shapes[number]
        if self.zones is None or self.dense.classes[shape.first].zones < 0:
            return self.price
        self.work += ZONES * len(self.price)
        return self.zones.left(shape.first)

    def able(self, index: int, *, zones: bool = True) -> IntArray:
        """How many pods of a class each node takes, by all rules but those of its group and queues; not to be changed.

        Of several nodes in one area each alone: pods on one may close the others (C9). What C8 says under ``majority``
        is left out; without ``zones`` so is C10.
        """
        number = self.layout.shape_of[index]
        fits = self.fits(number) if zones else self._fitting(self.layout.shapes[number], None, zones=False)
        workload = self.dense.workload_of.get(index) if self.communication is not None else None
        if self.communication is None or workload is None:
            return fits
        most = self.communication.most(workload, unbalanced=True)[self.communication.calls.area]
        least: IntArray = np.minimum(fits, most)
        return least

    def takes(self, number: int, node: int) -> bool:
        """Whether one pod of a shape fits on a node."""
        shape = self.layout.shapes[number]
        if self.closes(shape.first):
            return bool(self.fits(number)[node] > 0)
        free = self.free[node]
        return bool(self.dense.masks[shape.mask, node]) and all(free[r] >= shape.request[r] for r in shape.asked)

    def touched_leaves(self, scope: int) -> set[int]:
        """Leaves on which a scope has pods, before or now."""
        it = self.dense.scopes[scope]
        nodes = [node for node in it.bound if node >= 0] + self.nodes_of(it.classes)
        return {int(leaf) for leaf in self.layout.leaf_number[nodes]} if nodes else set()

    def solution(self) -> Solution:
        """What is placed; pods on a node stand in an order in which its kubelet admits them."""
        found = {(index, node): count for index, there in self.where.items() for node, count in there.items()}
        if self.zones is None:
            return found
        ordered = ((index, node) for node, classes in self.zones.order.items() for index in classes)
        return {place: found[place] for place in dict.fromkeys((*ordered, *found))}
