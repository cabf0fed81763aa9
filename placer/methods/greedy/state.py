"""Room left while the greedy runs: take, undo, and how many pods of a shape fit where."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from placer.dense import Solution
from placer.instance import HostPort
from placer.methods.greedy.layout import IntArray, Layout, Shape
from placer.methods.greedy.traffic import Traffic
from placer.methods.numa.zone_rooms import ZoneRooms

__all__ = ["STEP", "BoolArray", "State"]

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


class State:
    """What is placed so far and the room that is left.

    Parameters
    ----------
    layout
        Of the instance.
    solution
        Where to start; must keep the rules.
    """

    def __init__(self, layout: Layout, solution: Mapping[tuple[int, int], int] | None = None) -> None:
        dense = layout.dense
        self.layout, self.dense = layout, dense
        #: int64, shape (resources, nodes): a row per resource is what the counting below reads at once.
        self.free = layout.free.copy()
        self.price = layout.prices(dense.free)
        self.used = dense.node_used.copy()
        self.queue_room = [row.room for row in dense.queue_rows]
        self.placed = [0] * len(dense.classes)
        self.where: dict[int, dict[int, int]] = defaultdict(dict)
        self.ports: dict[int, list[HostPort]] = defaultdict(list)
        #: Who calls whom and where it stands; None where nobody calls.
        self.traffic = None if layout.calls is None else Traffic(layout.calls)
        #: What zones have left; None where no kubelet refuses anybody.
        self.zones = None if dense.numa is None else ZoneRooms(dense.numa)
        #: New pods by node and class, where anybody calls.
        self.guests: dict[int, dict[int, int]] = defaultdict(dict)
        #: How often pods that call each other may still be moved while areas for them are looked for.
        self.moves = MOVES
        #: Array elements looked at so far and :data:`STEP` per step: work, the same on every machine.
        self.work = 0
        self._log: list[tuple[int, int, int, bool]] = []
        self._changed: list[int] = []
        self._fits: dict[int, tuple[IntArray, int]] = {}
        self._most_fits = max(8, CACHE_ENTRIES // max(1, len(dense.nodes)))
        # Kubelets may admit pods in the order of the solution only.
        given = (solution or {}).items()
        for (index, node), count in sorted(given) if dense.numa is None else given:
            self.take(index, [node], [count])

    def take(self, index: int, nodes: Sequence[int], counts: Sequence[int]) -> None:
        """Place ``counts`` pods of a class on ``nodes``, distinct ones; take them away where a count is negative."""
        pods = self.dense.classes[index]
        for node, count in zip(nodes, counts, strict=True):
            opened = not (pods.daemon or self.used[node])
            self._log.append((index, node, count, opened))
            self._add(index, node, count)
            if self.zones is not None:
                self.zones.take(index, node, count)
            if opened:
                self.used[node] = True
        self.work += STEP // 50 * len(nodes)
        self._move(self.layout.shapes[self.layout.shape_of[index]], nodes, counts)

    def take_one_each(self, classes: Sequence[int], nodes: Sequence[int], counts: Sequence[int]) -> None:
        """Place one pod of each class, all of one shape: ``counts`` of them on each of ``nodes``, in order."""
        left = iter(classes)
        self.work += STEP // 50 * len(classes)
        for node, count in zip(nodes, counts, strict=True):
            for _ in range(count):
                index = next(left)
                opened = not (self.dense.classes[index].daemon or self.used[node])
                self._log.append((index, node, 1, opened))
                self._add(index, node, 1)
                if self.zones is not None:
                    self.zones.take(index, node, 1)
                if opened:
                    self.used[node] = True
        self._move(self.layout.shapes[self.layout.shape_of[classes[0]]], nodes, counts)

    def _add(self, index: int, node: int, count: int) -> None:
        """Count pods in or out, everything but the room on the node."""
        self.placed[index] += count
        there = self.where[index]
        now = there.get(node, 0) + count
        if now:
            there[node] = now
        else:
            del there[node]
        for row, amount in self.layout.rows_of[index]:
            self.queue_room[row] -= amount * count
        ports = self.dense.classes[index].host_ports
        if ports and count > 0:
            self.ports[node].extend(ports)
        for port in ports if count < 0 else ():
            self.ports[node].remove(port)
        if self.traffic is not None:
            guests = self.guests[node]
            guests[index] = guests.get(index, 0) + count
            if not guests[index]:
                del guests[index]
            if index in self.dense.workload_of:
                self.work += CALL
                self.traffic.take(self.dense.workload_of[index], node, count)

    def _move(self, shape: Shape, nodes: Sequence[int], counts: Sequence[int]) -> None:
        """Take room on distinct nodes (counts may be negative)."""
        if len(nodes) == 1:
            node, count = nodes[0], counts[0]
            self.free[:, node] -= shape.request * count
            self.price[node] -= shape.price * count
        else:
            where, many = np.asarray(nodes), np.asarray(counts)
            self.free[:, where] -= shape.request[:, None] * many
            self.price[where] -= shape.price * many
        self._changed.extend(nodes)

    def mark(self) -> int:
        """Return a point to come back to."""
        return len(self._log)

    def since(self, mark: int) -> list[tuple[int, int, int]]:
        """What was placed since ``mark``, as (class, node, pods) in that order; taken away: fewer than 0 pods."""
        return [(index, node, count) for index, node, count, _ in self._log[mark:]]

    def undo(self, mark: int) -> None:
        """Take back everything since ``mark``."""
        self.work += STEP // 10 * (len(self._log) - mark)
        while len(self._log) > mark:
            index, node, count, opened = self._log.pop()
            self._add(index, node, -count)
            if self.zones is not None:
                self.zones.undo(index, node)
            if opened:
                self.used[node] = False
            self._move(self.layout.shapes[self.layout.shape_of[index]], [node], [-count])

    def fits(self, number: int) -> IntArray:
        """How many pods of a shape each node could still take: int64, shape (nodes,), read-only, at most its total."""
        shape = self.layout.shapes[number]
        known = self._fits.get(number)
        if known is None or shape.ports or 2 * (len(self._changed) - known[1]) > len(self.price):
            counts = self._count(shape, None)
            if shape.ports:
                self._close_ports(shape, counts)
            if len(self._fits) >= self._most_fits:
                self._fits.clear()
        else:
            counts, seen = known
            if seen < len(self._changed):
                nodes = np.array(self._changed[seen:], dtype=np.int64)
                counts[nodes] = self._count(shape, nodes)
        self._fits[number] = (counts, len(self._changed))
        return counts

    def _count(self, shape: Shape, nodes: IntArray | None, *, zones: bool = True) -> IntArray:
        """Count what fits on some nodes, None: on all, new host ports apart."""
        mask = self.dense.masks[shape.mask]
        allowed = mask if nodes is None else mask[nodes]
        self.work += STEP // 4 + len(allowed) * (1 + len(shape.asked))
        counts = np.full(len(allowed), 1 if shape.ports else shape.total, dtype=np.int64)
        for resource in shape.asked:
            room = self.free[resource] if nodes is None else self.free[resource, nodes]
            np.minimum(counts, room // shape.request[resource], out=counts)
        if self.zones is not None and zones:
            self._count_zones(self.zones, shape, nodes, counts)
        counts *= allowed
        return counts

    def _without_zones(self, shape: Shape) -> IntArray:
        counts = self._count(shape, None, zones=False)
        if shape.ports:
            self._close_ports(shape, counts)
        return counts

    def _count_zones(self, zones: ZoneRooms, shape: Shape, nodes: IntArray | None, counts: IntArray) -> None:
        most = zones.most(shape.first, nodes, int(counts.max(initial=0)))
        if most is not None:
            self.work += ZONES * len(counts)
            np.minimum(counts, most, out=counts)

    def _close_ports(self, shape: Shape, counts: IntArray) -> None:
        for taken in (self.dense.ports, self.ports):
            for node, ports in taken.items():
                if any(port.clashes(other) for port in shape.ports for other in ports):
                    counts[node] = 0

    def has_room(self, number: int) -> BoolArray:
        """Where one pod of a shape fits: bool, shape (nodes,); cheaper than counting for a shape that comes once."""
        shape = self.layout.shapes[number]
        if shape.ports or number in self._fits:
            able: BoolArray = self.fits(number) > 0
            return able
        self.work += len(self.price) * (1 + len(shape.asked)) // 4
        where: BoolArray = self.dense.masks[shape.mask].copy()
        for resource in shape.asked:
            where &= self.free[resource] >= shape.request[resource]
        if self.zones is not None:
            most = self.zones.most(shape.first, None, 1)
            if most is not None:
                self.work += ZONES * len(where)
                where &= most > 0
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
        fits = self.fits(number) if zones else self._without_zones(self.layout.shapes[number])
        workload = self.dense.workload_of.get(index) if self.traffic is not None else None
        if self.traffic is None or workload is None:
            return fits
        least: IntArray = np.minimum(fits, self.traffic.most(workload, unbalanced=True)[self.traffic.calls.area])
        return least

    def takes(self, number: int, node: int) -> bool:
        """Whether one pod of a shape fits on a node."""
        shape = self.layout.shapes[number]
        if shape.ports or self.zones is not None:
            return bool(self.fits(number)[node] > 0)
        free = self.free[:, node]
        return bool(self.dense.masks[shape.mask, node]) and all(free[r] >= shape.request[r] for r in shape.asked)

    def queue_limit(self, index: int) -> int:
        """How many more pods of a class its queues allow, at most the size of the class (C11)."""
        rows = self.layout.rows_of[index]
        return min((self.queue_room[row] // amount for row, amount in rows), default=self.dense.classes[index].size)

    def nodes_of(self, classes: Iterable[int]) -> list[int]:
        """Nodes that have new pods of the classes."""
        return [node for index in classes if index in self.where for node in self.where[index]]

    def left(self, index: int) -> int:
        """Pods of a class that are not placed."""
        return self.dense.classes[index].size - self.placed[index]

    def solution(self) -> Solution:
        """What is placed; pods on a node stand in an order in which its kubelet admits them."""
        found = {(index, node): count for index, there in self.where.items() for node, count in there.items()}
        if self.zones is None:
            return found
        ordered = ((index, node) for node, classes in self.zones.order.items() for index in classes)
        return {place: found[place] for place in dict.fromkeys((*ordered, *found))}
