"""Pods that call each other: where they may still be (C8), what links have left (C9), what their calls cost (O3)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import cached_property
from math import gcd
from typing import NamedTuple

import numpy as np

from placer.arrays.network import Call, DenseNetwork
from placer.arrays.solution import BoolArray, IntArray

#: More pods than there can be.
LIMITLESS = 2**40


class Partner(NamedTuple):
    """A dependency seen from one of its ends; arrays have shape (areas, areas), my area first.

    ``other``: the workload at the other end; one that calls itself has two entries. ``calling``: the other end is the
    caller. ``far``: bool: too far from each other (C8). ``cost``: int64: of a pair on two nodes. ``link``: int64; -1:
    none. ``bandwidth``: in the unit of :attr:`CallGraph.room`.
    """

    other: int
    calling: bool
    far: BoolArray
    cost: IntArray
    link: IntArray
    bandwidth: int


class CallGraph:
    """The network of an instance, arranged by workload."""

    def __init__(self, network: DenseNetwork) -> None:
        self.network = network
        self.area = network.area
        self.areas = len(network.cost)
        self._nodes = np.argsort(network.area, kind="stable")
        self._ends = np.searchsorted(network.area[self._nodes], np.arange(self.areas + 1))
        #: bit/s in the unit of links: the largest of which every call takes a whole number, so that sums stay small.
        self.unit = gcd(*(call.bandwidth for call in network.calls)) or 1
        #: int64, shape (links,): what the links have left for new pairs.
        # No link has more in its unit, so that sums of a few are 64-bit numbers.
        self.room: IntArray = np.array([min(2**50, each // self.unit) for each in network.room], dtype=np.int64)
        self._far: dict[int, tuple[BoolArray, BoolArray]] = {}
        self._cost = np.ascontiguousarray(network.cost.T)
        self._link = np.ascontiguousarray(network.link.T)
        partners: list[list[Partner]] = [[] for _ in network.workloads]
        for call in network.calls:
            for end, partner in self._seen_from_both(call):
                partners[end].append(partner)
        self.partners = [tuple(each) for each in partners]

    @cached_property
    def to_itself(self) -> list[int]:
        """Per workload how often it calls itself."""
        return [sum(p.other == w and not p.calling for p in each) for w, each in enumerate(self.partners)]

    @cached_property
    def linked(self) -> list[tuple[Partner, ...]]:
        """Per workload the partners with whom it shares links."""
        return [tuple(p for p in each if p.bandwidth and len(self.room)) for each in self.partners]

    def _seen_from_both(self, call: Call) -> tuple[tuple[int, Partner], tuple[int, Partner]]:
        network = self.network
        if call.limit not in self._far:
            far = ~network.near(call.limit)
            self._far[call.limit] = far, np.ascontiguousarray(far.T)
        far, back_far = self._far[call.limit]
        # A pair that takes more than any link has is as much too wide as one that takes a little more.
        bandwidth = min(call.bandwidth // self.unit, 1 + int(self.room.max(initial=0)))
        out = Partner(call.destination, False, far, network.cost, network.link, bandwidth)
        back = Partner(call.origin, True, back_far, self._cost, self._link, bandwidth)
        return (call.origin, out), (call.destination, back)

    def nodes_of(self, area: int) -> IntArray:
        """Nodes of an area, rising."""
        return self._nodes[self._ends[area] : self._ends[area + 1]]

    def never_apart(self, partner: Partner) -> bool:
        """Whether the two ends may never be in two areas (C8)."""
        return not self.network.majority and int(partner.far.sum()) == self.areas * (self.areas - 1)


class Communication:
    """Pods of every workload by area and by node, running ones too, and what is left of the links."""

    def __init__(self, calls: CallGraph) -> None:
        self.calls = calls
        network = calls.network
        size = (len(network.workloads), calls.areas)
        #: Placed pods of partners that keep a workload out of an area, by pairs; int64, shape (workloads, areas).
        self.far: IntArray = np.zeros(size, dtype=np.int64)
        #: What one more pod of a workload adds to O3 in an area, on a node without any of its partners.
        self.pull: IntArray = np.zeros(size, dtype=np.int64)
        #: Callees of a pod in an area that are too far, less those near enough; itself counted where it calls itself.
        self.surplus: IntArray = np.zeros(size, dtype=np.int64)
        #: int64, shape (links,), as :attr:`CallGraph.room`.
        self.room = calls.room.copy()
        #: Per workload its pods by area; those that use links, which pods that are being deleted do too; those by node.
        self.placed: list[dict[int, int]] = [defaultdict(int) for _ in network.workloads]
        self.held: list[dict[int, int]] = [defaultdict(int) for _ in network.workloads]
        self.on: list[dict[int, int]] = [defaultdict(int) for _ in network.workloads]
        #: O3 of what is placed now, AppGroup by AppGroup, pairs of two running pods left out.
        self.costs = dict.fromkeys((network.workloads[call.origin].app for call in network.calls), 0)
        self._count_running()
        self.room = calls.room.copy()  # it is what is left beside pairs of running pods
        self.bound = [dict(each) for each in self.placed]
        self._kept = self.surplus.copy() if network.majority else self.surplus

    def _count_running(self) -> None:
        for workload, each in enumerate(self.calls.network.workloads):
            for node, area, count in each.bound:
                self.count_in(workload, area, count)
                if node >= 0:
                    self.on[workload][node] += count
            for _, area, count in each.leaving:
                self.held[workload][area] += count

    def take(self, workload: int, node: int, count: int) -> None:
        """Count pods in on a node, or out where ``count`` is negative."""
        area = int(self.calls.area[node])
        if count < 0:
            self._count_on(workload, node, count)
            self.count_in(workload, area, count)
        # Pods that come or go together are on one node: among themselves they cost nothing.
        app = self.calls.network.workloads[workload].app
        self.costs[app] = self.costs.get(app, 0) + count * self.cost_of(workload, node)
        if count > 0:
            self.count_in(workload, area, count)
            self._count_on(workload, node, count)

    @property
    def cost(self) -> int:
        """O3 of placed pods, pairs of two running ones left out."""
        return sum(self.costs.values())

    def _count_on(self, workload: int, node: int, count: int) -> None:
        there = self.on[workload]
        there[node] += count
        if not there[node]:
            del there[node]

    def count_in(self, workload: int, area: int, count: int) -> None:
        """Count pods in or out by area alone."""
        majority = self.calls.network.majority
        for other, calling, far, cost, link, bandwidth in self.calls.partners[workload]:
            self.far[other] += count * far[area]
            self.pull[other] += count * cost[area]
            if majority and calling:
                self.surplus[other] += np.where(far[area], count, -count)
            if bandwidth:
                for there, pods in self.held[other].items():
                    number = int(link[area, there])
                    if number >= 0:
                        self.room[number] -= count * pods * bandwidth
        for counts in (self.placed[workload], self.held[workload]):
            counts[area] += count
            if not counts[area]:
                del counts[area]

    def left(self) -> list[int]:
        """What new pairs leave of each link, in bit/s."""
        taken = (self.calls.room - self.room).tolist()
        return [room - each * self.calls.unit for room, each in zip(self.calls.network.room, taken, strict=True)]

    def cost_of(self, workload: int, node: int) -> int:
        """What one more pod of a workload adds to O3 on a node."""
        return int(self.pull[workload, self.calls.area[node]]) - self.shared(workload, node)

    def shared(self, workload: int, node: int) -> int:
        """Part of ``pull`` that a pod on the node saves, by partners there."""
        area = self.calls.area[node]
        on = self.on
        return sum(int(each.cost[area, area]) * on[each.other].get(node, 0) for each in self.calls.partners[workload])

    def saved(self, workload: int) -> dict[int, int]:
        """:meth:`shared` of every node that has a partner."""
        found: dict[int, int] = defaultdict(int)
        for each in self.calls.partners[workload]:
            for node, pods in self.on[each.other].items():
                area = self.calls.area[node]
                found[node] += int(each.cost[area, area]) * pods
        return found

    def added_cost(self, workload: int) -> IntArray:
        """:meth:`cost_of` of every node: int64, shape (nodes,)."""
        costs: IntArray = self.pull[workload, self.calls.area]
        for node, saved in self.saved(workload).items():
            costs[node] -= saved
        return costs

    def near(self, workload: int, *, unbalanced: bool = False) -> BoolArray:
        """Areas where C8 lets a pod of a workload be: bool, shape (areas,); ``unbalanced``: without ``majority``."""
        if not self.calls.network.majority:
            found: BoolArray = self.far[workload] == 0
        else:
            found = np.ones(self.calls.areas, dtype=bool) if unbalanced else self._majority(workload)
        return found

    def carried(self, workload: int, area: int) -> int:
        """How many more pods of a workload in an area the links carry (C9)."""
        asked: dict[int, int] = defaultdict(int)
        for each in self.calls.linked[workload]:
            row = each.link[area]
            for there, pods in self.held[each.other].items():
                if row[there] >= 0:
                    asked[int(row[there])] += pods * each.bandwidth
        return min((int(self.room[link]) // amount for link, amount in asked.items()), default=LIMITLESS)

    def carried_by_area(self, workload: int) -> IntArray:
        """:meth:`carried` of every area: int64, shape (areas,)."""
        columns, amounts = [], []
        for each in self.calls.linked[workload]:
            for there, pods in self.held[each.other].items():
                columns.append(each.link[:, there])
                amounts.append(pods * each.bandwidth)
        found: IntArray = np.full(self.calls.areas, LIMITLESS, dtype=np.int64)
        links, each_takes = np.array(columns), np.array(amounts)
        for column in columns:
            # One pod may take a link several times, by calls to several areas behind it.
            asked = np.where(links == column, each_takes[:, None], 0).sum(axis=0)
            np.minimum(found, np.where(column >= 0, self.room[column] // asked, LIMITLESS), out=found)
        return found

    def most(self, workload: int, *, unbalanced: bool = False) -> IntArray:
        """How many more pods of a workload each area may take, one area at a time (C8, C9): int64, shape (areas,)."""
        each = 1 if self.calls.network.majority and not unbalanced else LIMITLESS
        carried = np.minimum(self.carried_by_area(workload), each)
        found: IntArray = np.where(self.near(workload, unbalanced=unbalanced), carried, 0)
        return found

    def _majority(self, workload: int) -> BoolArray:
        able: BoolArray = self.surplus[workload] <= 0
        more: dict[int, IntArray] = {}
        for each in self.calls.partners[workload]:
            if each.calling:
                more[each.other] = more.get(each.other, 0) + 2 * each.far.astype(np.int64) - 1
        for caller, matrix in more.items():
            for there in self.placed[caller]:
                able &= matrix[:, there] <= self._spare(caller, there)
        return able

    def _spare(self, workload: int, area: int) -> int:
        fresh = self.placed[workload][area] > self.bound[workload].get(area, 0)
        itself = self.calls.to_itself[workload]
        allowed = 0 if fresh else max(0, int(self._kept[workload, area]) + itself)
        return allowed - int(self.surplus[workload, area]) - itself

    def balanced(self, workloads: Iterable[int]) -> bool:
        """Whether no pod of these workloads and their callers has too much surplus (``majority``)."""
        if not self.calls.network.majority:
            return True
        concerned = set(workloads)
        concerned |= {each.other for workload in concerned for each in self.calls.partners[workload] if each.calling}
        return all(self._spare(workload, area) >= 0 for workload in concerned for area in self.placed[workload])
