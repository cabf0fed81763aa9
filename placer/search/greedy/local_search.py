"""Local search: pods relocated to other nodes, or swapped with others, while that makes calls cheaper (O3)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from placer.arrays.solution import BoolArray, IntArray
from placer.search.greedy.state import STEP, GreedyState
from placer.search.partial import Mobility


def move_pods(state: GreedyState, classes: Iterable[int], limit: int) -> None:
    """Move pods of some classes, or exchange two, each time to a lower O3, up to ``GreedyState.work`` of ``limit``.

    O1 and O2 stay as they are: of a group with a tier limit, or one that counts in O2, pods stay within their leaves.
    """
    _LocalSearch(state, limit).run(sorted(classes))


class _LocalSearch:
    def __init__(self, state: GreedyState, limit: int) -> None:
        assert state.communication is not None
        self.state, self.communication, self.limit = state, state.communication, limit
        self.of = state.dense.workload_of
        self.area = self.communication.calls.area
        self._known: dict[int, Mobility] = {}

    def _may(self, index: int) -> Mobility:
        if index not in self._known:
            self._known[index] = self.state.mobility(index)
        return self._known[index]

    def run(self, classes: Sequence[int]) -> None:
        workloads = self.communication.calls.network.workloads
        apps = {workloads[self.of[index]].app for index in classes}
        for _ in range(4):
            moved = set()
            for index in classes:
                app = workloads[self.of[index]].app
                for node in sorted(self.state.where.get(index, ())) if app in apps and self._may(index) else ():
                    if self.state.work > self.limit:
                        return
                    while self.state.where[index].get(node) and self._improve(index, node):
                        moved.add(app)
            apps = moved

    def _improve(self, index: int, node: int) -> bool:
        state, workload = self.state, self.of[index]
        state.work += STEP // 5
        if not self.communication.cost_of(workload, node):
            return False
        gain = self._gain(index, node)
        able = np.flatnonzero(gain > 0)
        if not len(able):
            return False
        order = able[np.lexsort((able, state.price[able], ~state.used[able], -gain[able]))]
        room = state.has_room(state.layout.shape_of[index])
        for tried, target in enumerate(order.tolist()):
            if room[target]:
                self._move(index, node, target)
                return True
            if tried < 6 and self._exchange(index, node, target, int(gain[target])):
                return True
        return False

    def _gain(self, index: int, node: int) -> IntArray:
        """What O3 falls by where a pod moves to each node; at most 0 where rules or O2 keep it away, room apart."""
        state, communication, workload = self.state, self.communication, self.of[index]
        state.work += STEP // 2 + 2 * len(self.area)
        calls_itself = bool(communication.calls.to_itself[workload])
        if calls_itself:
            communication.take(workload, node, -1)
        costs = communication.added_cost(workload)
        gain: IntArray = np.where(state.dense.masks[state.dense.classes[index].mask], costs[node] - costs, 0)
        if calls_itself:
            communication.take(workload, node, 1)
        if self._may(index) == Mobility.LEAF:
            gain[state.layout.leaf_number != state.layout.leaf_number[node]] = 0
        away = self.area != self.area[node]
        if (gain[away] > 0).any():
            gain[away & ~self._near(workload, node)[self.area]] = 0
        return gain

    def _near(self, workload: int, node: int) -> BoolArray:
        if self.communication.calls.network.majority:
            return np.zeros(self.communication.calls.areas, dtype=bool)
        self.communication.take(workload, node, -1)
        areas: BoolArray = self.communication.most(workload) > 0
        self.communication.take(workload, node, 1)
        return areas

    def _move(self, index: int, origin: int, target: int) -> None:
        self.state.take(index, [origin], [-1])
        self.state.take(index, [target], [1])

    def _exchange(self, index: int, node: int, target: int, gain: int) -> bool:
        state, shapes = self.state, self.state.layout.shapes
        mine = shapes[state.layout.shape_of[index]]
        for other in sorted(state.on[target]):
            theirs = shapes[state.layout.shape_of[other]]
            state.work += STEP // 10
            if other == index or not self._could_go(other, target, node) or self._loss(other, target, node) >= gain:
                continue
            change = mine.request - theirs.request
            if (state.free[target] >= change).all() and (state.free[node] >= -change).all():
                before = self.communication.cost
                if self._legal(index, other, node, target):
                    self._move(index, node, target)
                    self._move(other, target, node)
                    if self.communication.cost < before:
                        return True
                    self._move(other, node, target)
                    self._move(index, target, node)
        return False

    def _could_go(self, index: int, origin: int, target: int) -> bool:
        state = self.state
        if not self._may(index) or not state.dense.masks[state.dense.classes[index].mask, target]:
            return False
        leaf = state.layout.leaf_number
        return self._may(index) == Mobility.FREE or bool(leaf[origin] == leaf[target])

    def _loss(self, index: int, origin: int, target: int) -> int:
        if index not in self.of:
            return 0
        return self.communication.cost_of(self.of[index], target) - self.communication.cost_of(self.of[index], origin)

    def _legal(self, index: int, other: int, node: int, target: int) -> bool:
        if self.area[node] == self.area[target]:
            return True
        if self.communication.calls.network.majority:
            return False
        ends = [(self.of[index], node, target)]
        if other in self.of:
            ends.append((self.of[other], target, node))
        for workload, origin, _ in ends:
            self.communication.take(workload, origin, -1)
        done: list[tuple[int, int]] = []
        for workload, _, goal in ends:
            area = int(self.area[goal])
            if self.communication.near(workload)[area] and self.communication.carried(workload, area):
                self.communication.take(workload, goal, 1)
                done.append((workload, goal))
        for workload, goal in done:
            self.communication.take(workload, goal, -1)
        for workload, origin, _ in ends:
            self.communication.take(workload, origin, 1)
        return len(done) == len(ends)
