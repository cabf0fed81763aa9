"""NUMA zones as bins that exchange pods: room, pods, and other places for these.

A pod takes part in exchanges where it is one unit for one zone (:func:`placer.arrays.admission_orders.is_plain`) and
nothing but room says where it may be: no host port, no call of a network, and within the HyperNode that its scopes are
in where they are limited. All others stay where they are, or are swapped as a whole (:meth:`ExchangeFacts.free`).
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain, combinations

import numpy as np

from placer.arrays import Dense, Solution
from placer.arrays.admission_orders import is_plain
from placer.arrays.packed_kubelet import Units
from placer.arrays.solution import BoolArray, IntArray
from placer.search.partial import PartialSolution

#: Pods of a zone that are looked at in pairs; of more, some are drawn.
MOST = 8
#: Every choice of at most two of them: none of them first.
BUNDLES = ((), *((one,) for one in range(MOST)), *combinations(range(MOST), 2))

#: Those of one pod.
SINGLE = slice(1, 1 + MOST)

#: A zone, and classes of pods in it.
Bundle = tuple[int, tuple[int, ...]]
#: A node, classes of pods that leave it, and the change of the node, which says whether its kubelet admits it.
_Side = tuple[int, Sequence[int], Callable[[], bool]]

#: Per bundle its pods by number, ``MOST`` for none; and the highest number of a pod, -1 for none.
_ONE = np.array([bundle[0] if bundle else MOST for bundle in BUNDLES])
_TWO = np.array([bundle[1] if len(bundle) > 1 else MOST for bundle in BUNDLES])
_HIGHEST = np.array([max(bundle, default=-1) for bundle in BUNDLES])


class ExchangeFacts:
    """Facts of each class that no exchange changes, as arrays per class.

    ``asked`` is the request to a zone, then to its node (``columns`` says where, per kind of kubelet). ``sort`` is the
    row of ``allowed``, (sorts + 1, nodes): where pods may come and go, the last row of no pod. ``worth`` is higher
    where placing counts more; ``lone`` the only pod of its group; ``welcome``: one more may come. ``open`` is per node:
    C10 applies, and no pod that stays is bound among the others.
    """

    def __init__(self, partial: PartialSolution) -> None:
        dense = partial.dense
        assert dense.numa is not None
        self.dense, self.numa = dense, dense.numa
        names = sorted(set(chain.from_iterable(kubelet.resources for kubelet in self.numa.kubelets)))
        self.zone_width = len(names)
        self.columns = [list(map(names.index, kubelet.resources)) for kubelet in self.numa.kubelets]
        self.asked = np.zeros((len(dense.classes), len(names) + len(dense.resources)), dtype=np.int64)
        self.asked[:, len(names) :] = dense.requests
        self.open: BoolArray = self.numa.kind >= 0
        self.open[list(self.numa.held)] = False
        self.sort: IntArray = np.zeros(len(dense.classes), dtype=np.int64)
        self.allowed = self._allowed(partial.where)
        worth = [(dense.groups[one.group].priority, one.weight) for one in dense.classes]
        ranks = sorted(set(worth))
        self.worth = np.array([bisect_left(ranks, each) for each in worth], dtype=np.int64)
        sizes = [sum(dense.classes[index].size for index in group.classes) for group in dense.groups]
        self.lone = np.array([sizes[each.group] == 1 for each in dense.classes], dtype=bool)
        welcome = [self._welcome(index, partial.placed) for index in range(len(dense.classes))]
        self.welcome = np.array(welcome, dtype=bool)

    def takes_part(self, index: int, node: int) -> bool:
        """Whether a pod of a class may be exchanged on a node as one unit of a zone."""
        return bool(self.allowed[self.sort[index], node])

    def free(self, index: int, node: int) -> bool:
        """Whether only its node's room and kubelet say whether a pod may be on a node, of however many units it is."""
        one = self.dense.classes[index]
        limited = self.dense.scopes[self.dense.groups[one.group].scope].limit is not None
        tied = bool(one.host_ports) or one.neighbours >= 0 or index in self.dense.workload_of or limited
        return bool(self.lone[index] and self.open[node] and self.dense.masks[one.mask, node]) and not tied

    def units(self, index: int, node: int) -> IntArray:
        """Requests of each unit of a pod to a zone on a node: int64, shape (units, zone resources)."""
        kind = int(self.numa.kind[node])
        rows = [self._row(kind, (unit,)) for unit in self.numa.of(index, node)]
        return np.array(rows, dtype=np.int64).reshape(len(rows), self.zone_width)

    def _welcome(self, index: int, placed: Sequence[int]) -> bool:
        one = self.dense.classes[index]
        group = self.dense.groups[one.group]
        if self.lone[index]:
            return True
        ready = group.short <= sum(placed[each] for each in group.classes)
        return ready and one.sub_group < 0 and not group.short_by_role and not group.short_by_policy

    def _allowed(self, places: Mapping[int, Collection[int]]) -> BoolArray:
        dense, numa = self.dense, self.numa
        homes = [self._home(scope, places) for scope in range(len(dense.scopes))]
        number: dict[object, int] = {}
        rows: list[BoolArray] = []
        for index, one in enumerate(dense.classes):
            kinds = self._plain_kinds(index)
            limited = tuple(scope for scope in dense.scopes_of(index) if homes[scope] is not None)
            key = (one.mask, tuple(kinds), limited)
            if key not in number:
                number[key] = len(rows)
                row = dense.masks[one.mask] & self.open & np.array([*kinds, False])[numa.kind]
                for scope in limited:
                    row &= homes[scope]
                rows.append(row)
            self.sort[index] = number[key]
        rows.append(np.ones(len(dense.nodes), dtype=bool))
        return np.array(rows, dtype=bool)

    def _home(self, scope: int, places: Mapping[int, Collection[int]]) -> BoolArray | None:
        domains = self.dense.limit_domains(scope)
        if domains is None:
            return None
        tree = self.dense.domains
        nodes = [node for index in self.dense.scopes[scope].classes for node in places.get(index, ())]
        row = np.zeros(len(self.dense.nodes), dtype=bool)
        for domain in domains:
            if all(tree.begin[domain] <= node < tree.end[domain] for node in nodes):
                row[tree.begin[domain] : tree.end[domain]] = True
        return row

    def _plain_kinds(self, index: int) -> list[bool]:
        one = self.dense.classes[index]
        plain = [is_plain(units) for units in self.numa.units[index]]
        asked = {self._row(kind, units) for kind, units in enumerate(self.numa.units[index]) if plain[kind]}
        if len(asked) != 1 or one.host_ports or one.neighbours >= 0 or index in self.dense.workload_of:
            return [False] * len(plain)
        self.asked[index, : self.zone_width] = asked.pop()
        return plain

    def _row(self, kind: int, units: Units) -> tuple[int, ...]:
        row = [0] * self.zone_width
        for resource, need, _ in units[0].amounts:
            row[self.columns[kind][resource]] = need
        return tuple(row)


class ZoneBins:
    """The zones of all nodes under a solution that may change pod by pod.

    The kubelet is replayed for every change: pods of a node come in the order of their zones where all of them take
    part, else one in the place of another if that is admitted. Arrays are per zone: ``node``; ``room`` of the zone,
    then of its node; ``asked``, ``sorts`` and ``real`` per bundle of ``BUNDLES``: requests, sorts of its pods, whether
    there are any.
    """

    def __init__(self, dense: Dense, solution: Solution, chance: random.Random) -> None:
        assert dense.numa is not None
        self.dense, self.numa, self.chance = dense, dense.numa, chance
        self.partial = PartialSolution(dense, zones=False)
        self.order: dict[int, list[int]] = {}
        self._place(solution)
        self.facts = facts = ExchangeFacts(self.partial)
        self.first: IntArray = np.concatenate(([0], np.cumsum(self.numa.zones)))
        self.node: IntArray = np.repeat(np.arange(len(dense.nodes)), self.numa.zones)
        count, width = len(self.node), facts.asked.shape[1]
        self.room: IntArray = np.zeros((count, width), dtype=np.int64)
        self.asked: IntArray = np.zeros((count, len(BUNDLES), width), dtype=np.int64)
        self.sorts: IntArray = np.full((count, len(BUNDLES), 2), -1, dtype=np.int64)
        self.real: BoolArray = np.zeros((count, len(BUNDLES)), dtype=bool)
        self.real[:, 0] = True  # no pod
        self.pods: list[list[int]] = [[] for _ in range(count)]
        self.highest: dict[int, list[int]] = {}
        self.mixed: set[int] = set()
        self.others = solution.only(lambda index, node: not self._replayed(index, node))
        self.room[:, facts.zone_width :] = self.partial.free[self.node]
        for node in np.flatnonzero(self.numa.kind >= 0).tolist():
            if not self._replay(node, self._ordered(node)):
                self._close(node)
        self.waiting = [
            index
            for index in range(len(dense.classes))
            if facts.welcome[index] and facts.allowed[facts.sort[index]].any()
            for _ in range(self.partial.left(index))
        ]

    def _place(self, solution: Solution) -> None:
        for index, node, pods in solution.in_order():
            self.partial.take(index, [node], [pods])
            if self._replayed(index, node):
                self.order.setdefault(node, []).extend([index] * pods)

    def _replayed(self, index: int, node: int) -> bool:
        return bool(self.numa.of(index, node)) and node not in self.numa.held

    def _ordered(self, node: int) -> list[int]:
        pods = self.order.get(node, [])
        order = self.numa.order(node, [self.numa.of(index, node) for index in pods])
        return pods if order is None else [pods[place] for place in order]

    def _close(self, node: int) -> None:
        """Other pods stay there, or no order is known in which the node admits its own."""
        self.facts.allowed[:-1, node] = self.facts.open[node] = False
        self.mixed.add(node)
        self.room[self.first[node] : self.first[node + 1]] = -1

    def solution(self) -> Solution:
        """The placed pods, those of each node in the order that was replayed, as far as classes allow it."""
        found = Counter((index, node) for node, order in self.order.items() for index in order)
        replayed = {node: dict.fromkeys(order) for node, order in self.order.items()}
        return Solution({**self.others, **found}, {**self.others.order, **replayed})

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

    def swap(self, node: int, index: int, second: int, others: Sequence[int]) -> bool:
        """Exchange a pod of whatever units for others of another node; say whether the kubelets admit it."""
        return self._both(
            (node, (index,), lambda: self._put_in_place(node, (index,), others)),
            (second, others, lambda: self._put_in_place(second, others, (index,))),
        )

    def _both(self, one: _Side, other: _Side) -> bool:
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
        node, mark = int(self.node[zone]), self.partial.mark()
        self._move(node, gone, come)
        if min(self.partial.queue_room, default=0) < 0 or not self._change(node, {zone: (gone, come)}):
            self.partial.undo(mark)
            self._show(node)
            return False
        for index in come:
            self.waiting.remove(index)
        self.waiting.extend(gone)
        return True

    def _change(self, node: int, changes: Mapping[int, tuple[Sequence[int], Sequence[int]]]) -> bool:
        orders = [self._by_zone(node, changes)]
        if node in self.mixed and len(changes) == 1:
            orders = [*self._in_place(node, *next(iter(changes.values()))), *orders]
        return any(self._replay(node, order) for order in orders)

    def _in_place(self, node: int, gone: Sequence[int], come: Sequence[int]) -> list[list[int]]:
        order = list(self.order.get(node, ()))
        place = len(order)
        for index in gone:
            place = order.index(index)
            del order[place]
        return [[*order[:place], *come, *order[place:]], *([] if gone else [[*come, *order]])]

    def _by_zone(self, node: int, changes: Mapping[int, tuple[Sequence[int], Sequence[int]]]) -> list[int]:
        first = int(self.first[node])
        pods = list(zip(self.highest.get(node, ()), self.order.get(node, ()), strict=True))
        for zone, (gone, come) in changes.items():
            for index in gone:
                pods.remove((zone - first, index))
            pods += [(zone - first, index) for index in come]
        return [index for _, index in sorted(pods, key=lambda pod: (pod[0], -int(self.facts.asked[pod[1], 0])))]

    def _move(self, node: int, gone: Iterable[int], come: Iterable[int]) -> None:
        for index in gone:
            self.partial.take(index, [node], [-1])
        for index in come:
            self.partial.take(index, [node], [1])
        self._show(node)

    def _show(self, node: int) -> None:
        self.room[self.first[node] : self.first[node + 1], self.facts.zone_width :] = self.partial.free[node]

    def _replay(self, node: int, order: list[int]) -> bool:
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
