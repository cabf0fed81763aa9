"""What zones have left while the greedy runs: the kubelet is replayed, pod after pod as they come."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placer.arrays.admission_orders import is_plain
from placer.arrays.numa import LIMITLESS, DenseNuma
from placer.arrays.packed_kubelet import PackedKubelet, State, Unit, Units
from placer.arrays.solution import BoolArray, FloatArray, IntArray


class ZoneRooms:
    """The zones of all nodes whose kubelet refuses pods.

    A node's pods stand in the order in which they came, as long as the kubelet admits them so, else in any order that
    it admits. Where there is none, the node takes no more pods until it is as it was.
    """

    def __init__(self, numa: DenseNuma) -> None:
        self.numa = numa
        #: Per node the classes of its pods that C10 concerns, in an order that is admitted.
        self.order: dict[int, tuple[int, ...]] = {}
        self._states: list[State | None] = list(numa.start)
        self._broken: set[int] = set()
        self._log: list[tuple[State | None, tuple[int, ...]]] = []
        self._nodes = [nodes for nodes, _, _ in numa.rooms]
        self._row: IntArray = np.zeros(len(numa.kind), dtype=np.int64)
        #: Per kind int64, shape (nodes of it, zones, resources): what is left; below 0 where a node takes no pod.
        self._rooms: list[IntArray] = [rooms[which] for _, which, rooms in numa.rooms]
        self._rates: list[FloatArray] = [
            10**6 / np.maximum(rooms.max(axis=(0, 1), initial=1), 1) for rooms in self._rooms
        ]
        for nodes in self._nodes:
            self._row[nodes] = np.arange(len(nodes))

    def take(self, index: int, node: int, count: int) -> None:
        """Place pods of a class on a node, or take them away."""
        units = self.numa.of(index, node)
        if not units:
            return
        state, order = self._states[node], self.order.get(node, ())
        self._log.append((state, order))
        if state is not None:
            state = self.numa.kubelet(node).admit_all(state, [units] * count)
        after = [*order, *[index] * count] if count > 0 else _without(order, index, -count)
        if count < 0 or state is None:
            state, after = self._again(node, after)
        self._set(node, state, tuple(after))

    def undo(self, index: int, node: int) -> None:
        """Take back the last :meth:`take`."""
        if self.numa.of(index, node):
            self._set(node, *self._log.pop())

    def _again(self, node: int, classes: list[int]) -> tuple[State | None, list[int]]:
        pods = [self.numa.of(index, node) for index in classes]
        order = self.numa.order(node, pods)
        if order is None:
            return None, classes
        state = self.numa.kubelet(node).admit_all(self.numa.start[node], (pods[position] for position in order))
        return state, [classes[position] for position in order]

    def _set(self, node: int, state: State | None, order: tuple[int, ...]) -> None:
        self._states[node], self.order[node] = state, order
        (self._broken.discard if state is not None else self._broken.add)(node)
        rooms = self._rooms[int(self.numa.kind[node])]
        rooms[self._row[node]] = -1 if state is None else self.numa.amounts(node, state)

    def kind(self, node: int) -> object:
        """Equal for nodes whose zones are alike."""
        pods = (self.numa.of(index, node) for index in self.order.get(node, ()))
        return int(self.numa.kind[node]), self.numa.start[node], tuple(sorted(pods))

    def admits(self, index: int, node: int) -> bool:
        """Whether one pod more of a class may be admitted; so where a pod is not
        :func:`~placer.arrays.admission_orders.is_plain`.
        """
        units = self.numa.of(index, node)
        pods = [self.numa.of(each, node) for each in self.order.get(node, ())]
        return not units or not all(map(is_plain, (*pods, units))) or self.numa.order(node, [*pods, units]) is not None

    def admits_any(self, index: int, node: int) -> bool:
        """Whether one pod more is admitted in an order of all pods that is found."""
        units = self.numa.of(index, node)
        pods = [self.numa.of(each, node) for each in self.order.get(node, ())]
        return node not in self.numa.held and self.numa.order(node, [*pods, units]) is not None

    @property
    def stand(self) -> bool:
        """Whether the pods of every node are admitted in some order."""
        return not self._broken

    def most(self, index: int, nodes: IntArray | None, most: int) -> IntArray | None:
        """Pods of a class that kubelets admit now, up to ``most``: int64, shape (nodes,); None: no limit."""
        of_kind = self.numa.units[index]
        if not any(of_kind):
            return None
        kinds = self.numa.kind if nodes is None else self.numa.kind[nodes]
        found = np.full(len(kinds), LIMITLESS, dtype=np.int64)
        for kind, units in enumerate(of_kind):
            if not units:
                continue
            where = self._nodes[kind] if nodes is None else np.flatnonzero(kinds == kind)
            if len(where):
                rows = slice(None) if nodes is None else self._row[nodes[where]]
                found[where] = self._most(kind, units, rows, most)
        return found

    def left(self, index: int) -> IntArray:
        """Millionths of room that a pod of a class leaves in its zones: int64, shape (nodes,); only where one fits."""
        found = np.full(len(self.numa.kind), LIMITLESS, dtype=np.int64)
        for kind, units in enumerate(self.numa.units[index]):
            if units and all(unit.width == 1 for unit in units):
                found[self._nodes[kind]] = _leaves(self._rooms[kind], units, self._rates[kind])
        return found

    def _most(self, kind: int, units: Units, rows: slice | IntArray, most: int) -> IntArray:
        rooms = self._rooms[kind][rows]
        if any(unit.width != 1 for unit in units):
            nodes = self._nodes[kind][rows].tolist()
            counts = [_replayed(self.numa.kubelets[kind], self._states[node], units, most) for node in nodes]
            return np.array(counts, dtype=np.int64)
        if len(units) == 1:
            return _fills(rooms, units[0])
        return _follow(rooms.copy(), units, most)


def _without(classes: Sequence[int], index: int, count: int) -> list[int]:
    rest = list(classes)
    for _ in range(count):
        rest.pop(len(rest) - 1 - rest[::-1].index(index))
    return rest


def _fills(rooms: IntArray, unit: Unit) -> IntArray:
    """How often one unit fits into zones, shape (nodes, zones, resources), zone after zone: int64, shape (nodes,)."""
    count = np.full(rooms.shape[:2], LIMITLESS, dtype=np.int64)
    for resource, need, take in unit.amounts:
        left = rooms[:, :, resource] - need
        count[left < 0] = 0
        if take:
            count = np.minimum(count, np.maximum(left // take + 1, 0))
    most: IntArray = np.minimum(count.sum(axis=1), LIMITLESS)
    return most


def _follow(rooms: IntArray, units: Units, most: int) -> IntArray:
    """How many pods of several units fit, each unit in the lowest zone that has it; ``rooms`` are used up.

    A unit that gets again what one before it had gets it in that one's zone.
    """
    count = np.zeros(len(rooms), dtype=np.int64)
    rows = np.arange(len(rooms))
    for _ in range(most):
        again = np.zeros_like(rooms) if any(unit.again for unit in units) else None
        for unit in units:
            if not len(rows):
                return count
            rows, zone = _lowest(rooms, rows, unit, again)
            for resource, _, take in unit.amounts:
                rooms[rows, zone, resource] -= take
            if again is not None:
                _use_again(again, rows, zone, unit)
        count[rows] += 1
    return count


def _lowest(rooms: IntArray, rows: IntArray, unit: Unit, again: IntArray | None) -> tuple[IntArray, IntArray]:
    able: BoolArray = np.ones((len(rows), rooms.shape[1]), dtype=bool)
    for resource, need, _ in unit.amounts:
        able &= rooms[rows, :, resource] >= need
        if again is not None:
            had = again[rows, :, resource] > 0
            able &= had | ~had.any(axis=1, keepdims=True)
    zone, fits = able.argmax(axis=1), able.any(axis=1)
    return rows[fits], zone[fits]


def _use_again(again: IntArray, rows: IntArray, zone: IntArray, unit: Unit) -> None:
    for resource, need, take in unit.amounts:
        had = again[rows, zone, resource]
        again[rows, zone, resource] = np.maximum(had, need) if resource in unit.again else np.maximum(had - take, 0)


def _leaves(rooms: IntArray, units: Units, rates: FloatArray) -> IntArray:
    """What units leave in the lowest zones that have them, each by itself, in millionths: int64, shape (nodes,)."""
    total: IntArray = np.zeros(len(rooms), dtype=np.int64)
    for unit in units:
        able: BoolArray = np.ones(rooms.shape[:2], dtype=bool)
        taken = np.zeros(rooms.shape[2], dtype=np.int64)
        for resource, need, take in unit.amounts:
            able &= rooms[:, :, resource] >= need
            taken[resource] = take
        there = rooms[np.arange(len(rooms)), able.argmax(axis=1)] - taken
        total += np.rint(there @ rates).astype(np.int64)
    return total


def _replayed(kubelet: PackedKubelet, state: State | None, units: Units, most: int) -> int:
    for count in range(most):
        answer = None if state is None else kubelet.admit(state, units)
        if answer is None:
            return count
        state = answer[0]
    return most
