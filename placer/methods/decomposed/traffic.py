"""Pods of workloads that call each other, by area, and what they take of limited links: of the solution at hand."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import product

import numpy as np
import numpy.typing as npt

from placer.dense import Dense

__all__ = ["Traffic"]

IntArray = npt.NDArray[np.int64]


class Traffic:
    """Who calls from where to where, call by call; what has changed is counted anew when somebody asks.

    Parameters
    ----------
    dense
        The instance; without a network there is no traffic.

    Attributes
    ----------
    pods, bound
        int64, shape (workloads, areas): new pods, and running ones.
    on
        Per workload: node to its new pods there.
    """

    def __init__(self, dense: Dense) -> None:
        self.dense, self.network = dense, dense.network
        workloads = () if self.network is None else self.network.workloads
        calls = () if self.network is None else self.network.calls
        self.pods: IntArray = np.zeros(
            (len(workloads), 0 if self.network is None else len(self.network.cost)), np.int64
        )
        self.on: list[Counter[int]] = [Counter() for _ in workloads]
        self.bound, self._before = np.zeros_like(self.pods), np.zeros_like(self.pods)
        self._bound_on: list[Counter[int]] = [Counter() for _ in workloads]
        self._count_before()
        self._calls: dict[int, list[int]] = defaultdict(list)
        for number, call in enumerate(calls):
            for end in {call.origin, call.destination}:
                self._calls[end].append(number)
        self._uses: dict[int, Counter[int]] = defaultdict(Counter)
        self._used: Counter[int] = Counter()
        self._costs = {number: self._cost(number) for number in range(len(calls))}
        self._standing = Counter[int]()
        for number, cost in self._costs.items():
            self._standing[workloads[calls[number].origin].app] += cost
        self._stale, self._dear = set(self._costs), set[int]()

    def _count_before(self) -> None:
        for number, workload in enumerate(() if self.network is None else self.network.workloads):
            for node, area, count in workload.bound:
                self.bound[number, area] += count
                self._before[number, area] += count
                if node >= 0:
                    self._bound_on[number][node] += count
            for _, area, count in workload.leaving:
                self._before[number, area] += count

    def put(self, index: int, node: int, count: int) -> None:
        """Count pods of a class on a node, or fewer of them."""
        workload = self.dense.workload_of.get(index)
        if workload is not None and self.network is not None:
            self.pods[workload, self.network.area[node]] += count
            self.on[workload][node] += count
            if not self.on[workload][node]:
                del self.on[workload][node]
            self._stale.update(self._calls[workload])
            self._dear.update(self._calls[workload])

    def costs(self) -> Counter[int]:
        """AppGroup to what its calls cost (O3), what running pods cost among each other apart."""
        for number in self._dear:
            self._costs[number] = self._cost(number)
        self._dear.clear()
        found = Counter[int]()
        for number, call in enumerate(() if self.network is None else self.network.calls):
            found[self._app(call.origin)] += self._costs[number]
        found.subtract(self._standing)
        return found

    def _app(self, workload: int) -> int:
        assert self.network is not None
        return self.network.workloads[workload].app

    def _cost(self, number: int) -> int:
        assert self.network is not None
        call, network = self.network.calls[number], self.network
        callers, callees = (self.pods[end] + self.bound[end] for end in (call.origin, call.destination))
        total = int(callers @ network.cost @ callees)
        mine, theirs = (self.on[end] + self._bound_on[end] for end in (call.origin, call.destination))
        for node in mine.keys() & theirs.keys():
            area = network.area[node]
            total -= mine[node] * theirs[node] * int(network.cost[area, area])
        return total

    def used(self) -> Counter[int]:
        """Link to what new pods take of it, in bit/s, each with new, running and leaving ones."""
        for number in self._stale:
            now = self._use(number, self.pods)
            self._used.update(now)
            self._used.subtract(self._uses[number])
            self._uses[number] = now
        self._stale.clear()
        return self._used

    def freed(self, pods: IntArray, workloads: Iterable[int]) -> Counter[int]:
        """What of it is no more where only some new pods are left.

        Parameters
        ----------
        pods
            int64, shape (workloads, areas): those that are left.
        workloads
            Of which there are fewer.
        """
        total: Counter[int] = Counter()
        for number in {each for workload in workloads for each in self._calls[workload]}:
            total.update(self._use(number, self.pods))
            total.subtract(self._use(number, pods))
        return total

    def _use(self, number: int, pods: IntArray) -> Counter[int]:
        assert self.network is not None
        call, found = self.network.calls[number], Counter[int]()
        if not call.bandwidth or not self.network.room:
            return found
        callers, callees = (pods[end] + self._before[end] for end in (call.origin, call.destination))
        for area, to in product(np.flatnonzero(callers).tolist(), np.flatnonzero(callees).tolist()):
            link = int(self.network.link[area, to])
            pairs = int(
                callers[area] * callees[to] - self._before[call.origin, area] * self._before[call.destination, to]
            )
            if link >= 0 and pairs:
                found[link] += call.bandwidth * pairs
        return found
