"""Least cost of calls (O3): of running pods, and where every pod is placed that can be.

Pods of workloads connected by calls that need m nodes are cut into at least m pieces, and each piece has at least as
many pairs with the others as the thinnest cut.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from placer.arrays import Call, Dense, DenseNetwork
from placer.arrays.solution import IntArray

LARGE = 2**31


def standing_cost(dense: Dense) -> int:
    """O3 of running pods alone."""
    return dense.constant_network + (dense.network.total_cost(()) if dense.network is not None else 0)


class _Bond(NamedTuple):
    workloads: frozenset[int]
    cut: int
    near: int
    far: int


class CallCosts:
    """Least costs of the calls of each AppGroup."""

    def __init__(self, dense: Dense, network: DenseNetwork, sizes: Sequence[int]) -> None:
        self.dense, self.network, self.sizes = dense, network, sizes
        self.pods = [sum(sizes[index] for index in each.classes) for each in network.workloads]

    @cached_property
    def by_app(self) -> dict[int, int]:
        """The least that new pods of each AppGroup add to O3."""
        apps = dict.fromkeys((*self._beside_running, *self._bonds))
        return {app: self._beside_running.get(app, 0) + self._among_new.get(app, 0) for app in apps}

    def with_cuts(self, app: int, cuts: int) -> int:
        """The same of one AppGroup with so many pairs on two nodes."""
        near = cuts * self._cheapest[0]
        pairs = max(self._among_new.get(app, 0), near + self._sum_over_bonds(app, self._further))
        return self._beside_running.get(app, 0) + pairs

    @cached_property
    def _among_new(self) -> dict[int, int]:
        return {app: self._sum_over_bonds(app, self._least) for app in self._bonds}

    def _sum_over_bonds(self, app: int, least: Callable[[_Bond], int]) -> int:
        bonds = self._bonds.get(app, [])
        return max(sum(map(least, bonds)), sum(map(least, self._connected(bonds))))

    @cached_property
    def _beside_running(self) -> dict[int, int]:
        cost, workloads = self.network.cost, self.network.workloads
        slope = np.zeros((len(workloads), len(cost)), dtype=np.int64)
        saved: dict[int, IntArray] = {}
        for call in self.network.calls:
            for new, old, costs in ((call.origin, call.destination, cost), (call.destination, call.origin, cost.T)):
                for node, area, count in workloads[old].bound if self.pods[new] else ():
                    slope[new] += costs[:, area] * count
                    if node >= 0:
                        saved.setdefault(new, np.zeros(len(self.dense.nodes), dtype=np.int64))
                        saved[new][node] += costs[area, area] * count
        found: dict[int, int] = defaultdict(int)
        for workload in np.flatnonzero(slope.any(axis=1)).tolist():
            each = slope[workload][self.network.area] - saved.get(workload, 0)
            found[workloads[workload].app] += sum(
                int(each[self.dense.masks[self.dense.classes[index].mask]].min(initial=LARGE)) * self.sizes[index]
                for index in workloads[workload].classes
                if self.sizes[index]
            )
        return found

    @cached_property
    def _bonds(self) -> dict[int, list[_Bond]]:
        between: dict[tuple[int, int], list[Call]] = defaultdict(list)
        for call in self.network.calls:
            if self.pods[call.origin] and self.pods[call.destination]:
                between[min(call.origin, call.destination), max(call.origin, call.destination)].append(call)
        found: dict[int, list[_Bond]] = defaultdict(list)
        for (one, other), calls in between.items():
            if one != other or self.pods[one] > 1:
                # Two pods of a workload that calls itself are two pairs.
                cut = 2 * (self.pods[one] - 1) if one == other else min(self.pods[one], self.pods[other])
                ways = (len(calls) * each for each in self._cheapest)
                found[self.network.workloads[one].app].append(_Bond(frozenset((one, other)), cut, *ways))
        return found

    @cached_property
    def _cheapest(self) -> tuple[int, int]:
        cost = self.network.cost
        far = int(cost[~np.eye(len(cost), dtype=bool)].min(initial=LARGE))
        return min(int(cost.diagonal().min()), far), far

    def _connected(self, bonds: Sequence[_Bond]) -> list[_Bond]:
        """A cut of connected bonds cuts one of them."""
        found: list[_Bond] = []
        for bond in bonds:
            touched = [each for each in found if each.workloads & bond.workloads]
            found = [each for each in found if not each.workloads & bond.workloads]
            found.append(
                _Bond(
                    frozenset().union(bond.workloads, *(each.workloads for each in touched)),
                    *(min(numbers) for numbers in zip(*(each[1:] for each in (bond, *touched)), strict=True)),
                )
            )
        return found

    def _least(self, bond: _Bond) -> int:
        pairs, across = self._cuts(bond)
        return (pairs - across) * bond.near + across * bond.far

    def _further(self, bond: _Bond) -> int:
        return self._cuts(bond)[1] * (bond.far - bond.near)

    def _cuts(self, bond: _Bond) -> tuple[int, int]:
        classes = [index for workload in bond.workloads for index in self.network.workloads[workload].classes]
        sizes = np.array([self.sizes[index] for index in classes], dtype=np.int64)
        asked = sizes @ self.dense.requests[classes]
        nodes, areas = (_cut(_fewest(asked, rooms), bond.cut) for rooms in self._rooms)
        return nodes, areas

    @cached_property
    def _rooms(self) -> tuple[IntArray, IntArray]:
        """int64, shape (1, 2 ... of the largest, resources)."""
        areas = np.zeros((len(self.network.cost), self.dense.free.shape[1]), dtype=np.int64)
        np.add.at(areas, self.network.area, self.dense.free)
        nodes, areas = (np.cumsum(np.sort(rooms, axis=0)[::-1], axis=0) for rooms in (self.dense.free, areas))
        return nodes, areas


def _fewest(asked: IntArray, rooms: IntArray) -> int:
    return 1 + max(
        (int(np.searchsorted(rooms[:, resource], amount)) for resource, amount in enumerate(asked.tolist())), default=0
    )


def _cut(pieces: int, cut: int) -> int:
    return 0 if pieces < 2 else max(pieces - 1, -(-pieces * cut // 2))
