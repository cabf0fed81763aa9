"""Zones as bins: what each has left, whose pods are in it, and which one or two of them could leave it together."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt

from placer.dense import Dense, Solution
from placer.methods.gather.facts import Facts

__all__ = ["SINGLE", "Bins", "Bundle"]

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

#: Pods of a zone that are looked at in pairs; of more, some are drawn.
MOST = 8
#: Every choice of at most two of them: nobody first.
BUNDLES = ((), *((one,) for one in range(MOST)), *combinations(range(MOST), 2))

#: Those of one pod.
SINGLE = slice(1, 1 + MOST)

#: A zone, and classes of pods in it.
Bundle = tuple[int, tuple[int, ...]]
#: A node, classes of pods that leave it, and the change of the node, which says whether its kubelet admits it.
_Side = tuple[int, Sequence[int], Callable[[], bool]]


class Bins:
    """The zones of all nodes under a solution that may change pod by pod.

    The kubelet is replayed for every change: pods of a node come in the order of their zones where all of them take
    part, else one in the place of another if that is admitted.

    Parameters
    ----------
    dense
        The instance; C10 concerns it.
    solution
        Keeps all rules; is not changed.
    chance
        Which pods of a crowded zone are looked at.

    Attributes
    ----------
    facts
        Of the classes.
    node
        int64, shape (zones,): the node of each zone; those of a node stand together.
    room
        int64, shape (zones, zone resources + node resources): what the zone has left, then what its node has.
    asked, sorts
        int64, shapes (zones, bundles, resources) and (zones, bundles, 2): what each of ``BUNDLES`` asks for, and the
        sorts of its pods.
    real
        bool, shape (zones, bundles): whether there are such pods.
    waiting
        Classes of pods that are not placed and could be, one entry per pod.
    """

    def __init__(self, dense: Dense, solution: Solution, chance: random.Random) -> None:
        assert dense.numa is not None
        self.dense, self.numa, self.chance = dense, dense.numa, chance
        self.facts = facts = Facts(dense, solution)
        self.first: IntArray = np.concatenate(([0], np.cumsum(self.numa.zones)))
        self.node: IntArray = np.repeat(np.arange(len(dense.nodes)), self.numa.zones)
        count, width = len(self.node), facts.asked.shape[1]
        self.room: IntArray = np.zeros((count, width), dtype=np.int64)
        self.asked: IntArray = np.zeros((count, len(BUNDLES), width), dtype=np.int64)
        self.sorts: IntArray = np.full((count, len(BUNDLES), 2), -1, dtype=np.int64)
        self.real: BoolArray = np.zeros((count, len(BUNDLES)), dtype=bool)
        self.real[:, 0] = True  # nobody
        self.pods: list[list[int]] = [[] for _ in range(count)]
        self.order: dict[int, list[int]] = {}
        self.highest: dict[int, list[int]] = {}
        self.mixed: set[int] = set()
        self.others: Solution = {}
        free = dense.free.copy()
        for (index, node), pods in solution.items():
            free[node] -= dense.classes[index].request * pods
            if self.numa.of(index, node) and node not in self.numa.held:
                self.order.setdefault(node, []).extend([index] * pods)
            else:
                self.others[index, node] = pods
        self.room[:, facts.zone_width :] = free[self.node]
        self._queues(solution)
        for node in np.flatnonzero(self.numa.kind >= 0).tolist():
            if not self._replay(node, self._ordered(node)):
                self._close(node)
        self.waiting = [
            index
            for index, one in enumerate(dense.classes)
            if facts.welcome[index] and facts.allowed[facts.sort[index]].any()
            for _ in range(one.size - facts.placed[index])
        ]

    def _queues(self, solution: Solution) -> None:
        """What each queue row has left (C11), and what a pod of each class takes of which."""
        self.left = [row.room for row in self.dense.queue_rows]
        self.takes: list[list[tuple[int, int]]] = [[] for _ in self.dense.classes]
        for number, row in enumerate(self.dense.queue_rows):
            for index in row.classes:
                self.takes[index].append((number, int(self.dense.classes[index].request[row.resource])))
        for (index, _), pods in solution.items():
            for number, amount in self.takes[index]:
                self.left[number] -= pods * amount

    def _ordered(self, node: int) -> list[int]:
        """The pods of a node in an order that its kubelet admits, as far as one is known."""
        pods = self.order.get(node, [])
        order = self.numa.order(node, [self.numa.of(index, node) for index in pods])
        return pods if order is None else [pods[place] for place in order]

    def _close(self, node: int) -> None:
        """Leave a node as it is: other pods stay there, or no order is known in which it admits its own."""
        self.facts.allowed[:-1, node] = self.facts.open[node] = False
        self.mixed.add(node)
        self.room[self.first[node] : self.first[node + 1]] = -1

    def solution(self) -> Solution:
        """What is placed now, the pods of each node in the order that was replayed, as far as classes allow it."""
        found = dict(self.others)
        for node, order in self.order.items():
            for index in order:
                found[index, node] = found.get((index, node), 0) + 1
        return found

    def ordered(self) -> Solution | None:
        """The same in an order that kubelets admit; None where none was found that keeps classes together."""
        return self.numa.ordered(self.solution())

    def bundle(self, zone: int, number: int) -> Bundle:
        """Zone and classes of one of its bundles."""
        return zone, tuple(self.pods[zone][place] for place in BUNDLES[number])

    def zone_of(self, node: int, index: int) -> int:
        """The zone of a pod that takes part, by its class."""
        return next(zone for zone in range(self.first[node], self.first[node + 1]) if index in self.pods[zone])

    # -------------------------------------------------------------------------------------------------------- changes

    def exchange(self, one: Bundle, other: Bundle) -> bool:
        """Exchange pods of two zones; say whether the kubelets admit it, else nothing is changed."""
        node, second = int(self.node[one[0]]), int(self.node[other[0]])
        if node == second:
            return self._change(node, {one[0]: (one[1], other[1]), other[0]: (other[1], one[1])})
        return self._both(
            (node, one[1], lambda: self._change(node, {one[0]: (one[1], other[1])})),
            (second, other[1], lambda: self._change(second, {other[0]: (other[1], one[1])})),
        )

    def trade(self, node: int, index: int, second: int, others: Sequence[int]) -> bool:
        """Exchange a pod of whatever units for others of another node; say whether the kubelets admit it."""
        return self._both(
            (node, (index,), lambda: self._put_in_place(node, (index,), others)),
            (second, others, lambda: self._put_in_place(second, others, (index,))),
        )

    def _both(self, one: _Side, other: _Side) -> bool:
        """Change two nodes that give each other pods, or none of them; say whether both admit it."""
        before = self.order.get(one[0], [])
        if not one[2]():
            return False
        if not other[2]():
            self._replay(one[0], before)
            return False
        self._move(one[0], one[1], other[1])
        self._move(other[0], other[1], one[1])
        return True

    def _put_in_place(self, node: int, gone: Sequence[int], come: Sequence[int]) -> bool:
        """Have pods come in the place of others: in the order of the pods, or by the zones of them."""
        pods = list(zip(self.highest[node], self.order[node], strict=True))
        place, zone = len(pods), 0
        for index in gone:
            place = next(number for number, pod in enumerate(pods) if pod[1] == index)
            zone = pods.pop(place)[0]
        pods[place:place] = [(zone, index) for index in come]
        by_zone = sorted(pods, key=lambda pod: pod[0])
        return any(self._replay(node, [index for _, index in each]) for each in (pods, by_zone))

    def replace(self, zone: int, gone: Sequence[int], come: Sequence[int]) -> bool:
        """Have pods of a zone wait and others come; say whether the kubelet admits it, else nothing is changed."""
        left = list(self.left)
        for sign, pods in ((1, gone), (-1, come)):
            for number, amount in (take for index in pods for take in self.takes[index]):
                left[number] += sign * amount
        if min(left, default=0) < 0 or not self._change(int(self.node[zone]), {zone: (gone, come)}):
            return False
        self.left = left
        self._move(int(self.node[zone]), gone, come)
        for index in come:
            self.waiting.remove(index)
        self.waiting.extend(gone)
        return True

    def _change(self, node: int, changes: Mapping[int, tuple[Sequence[int], Sequence[int]]]) -> bool:
        """Have pods leave zones of a node and others come; say whether some order of all of them is admitted."""
        orders = [self._by_zone(node, changes)]
        if node in self.mixed and len(changes) == 1:
            orders = [*self._in_place(node, *next(iter(changes.values()))), *orders]
        return any(self._replay(node, order) for order in orders)

    def _in_place(self, node: int, gone: Sequence[int], come: Sequence[int]) -> list[list[int]]:
        """Orders of a node's pods in which those that come are where the last one was that goes, or first, or last."""
        order = list(self.order.get(node, ()))
        place = len(order)
        for index in gone:
            place = order.index(index)
            del order[place]
        return [[*order[:place], *come, *order[place:]], *([] if gone else [[*come, *order]])]

    def _by_zone(self, node: int, changes: Mapping[int, tuple[Sequence[int], Sequence[int]]]) -> list[int]:
        """The pods of a node by their highest zone, the largest first, where some leave zones and others come."""
        first = int(self.first[node])
        pods = list(zip(self.highest.get(node, ()), self.order.get(node, ()), strict=True))
        for zone, (gone, come) in changes.items():
            for index in gone:
                pods.remove((zone - first, index))
            pods += [(zone - first, index) for index in come]
        return [index for _, index in sorted(pods, key=lambda pod: (pod[0], -int(self.facts.asked[pod[1], 0])))]

    def _move(self, node: int, gone: Iterable[int], come: Iterable[int]) -> None:
        """Count what a node has left after pods go and come."""
        rows = self.room[self.first[node] : self.first[node + 1], self.facts.zone_width :]
        for index in gone:
            rows += self.dense.classes[index].request
        for index in come:
            rows -= self.dense.classes[index].request

    def _replay(self, node: int, order: list[int]) -> bool:
        """Have the pods of a node come in an order; say whether all are admitted, else nothing is changed."""
        kubelet, state = self.numa.kubelet(node), self.numa.start[node]
        zones = []
        for index in order:
            answer = kubelet.admit(state, self.numa.of(index, node))
            if answer is None:
                return False
            state = answer[0]
            zones.append(answer[1].bit_length() - 1)
        begin, end = int(self.first[node]), int(self.first[node + 1])
        self.order[node], self.highest[node] = order, zones
        self.room[begin:end, self.facts.columns[int(self.numa.kind[node])]] = self.numa.amounts(node, state)
        pods: list[list[int]] = [[] for _ in range(begin, end)]
        self.mixed.discard(node)
        for index, zone in zip(order, zones, strict=True):
            if self.facts.takes_part(index, node):
                pods[zone].append(index)
            else:
                self.mixed.add(node)
        for zone, those in enumerate(pods, begin):
            if self.pods[zone] != those:
                self._fill(zone, those)
        return True

    def _fill(self, zone: int, pods: list[int]) -> None:
        """Set the pods of a zone that take part, and their bundles."""
        if len(pods) > MOST:
            self.chance.shuffle(pods)
        self.pods[zone] = pods
        few = np.full(MOST + 1, -1, dtype=np.int64)
        few[: min(len(pods), MOST)] = pods[:MOST]
        asked = np.where(few[:, None] >= 0, self.facts.asked[few], 0)
        sorts = np.where(few >= 0, self.facts.sort[few], -1)
        self.asked[zone] = asked[_ONE] + asked[_TWO]
        self.sorts[zone, :, 0], self.sorts[zone, :, 1] = sorts[_ONE], sorts[_TWO]
        self.real[zone] = len(pods) > _HIGHEST


#: Per bundle its pods by number, ``MOST`` for nobody; and the highest number of a pod, -1 for nobody.
_ONE = np.array([bundle[0] if bundle else MOST for bundle in BUNDLES])
_TWO = np.array([bundle[1] if len(bundle) > 1 else MOST for bundle in BUNDLES])
_HIGHEST = np.array([max(bundle, default=-1) for bundle in BUNDLES])
