"""Amounts that are counted on nodes, by name, and their exact scaling to small integers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from placer.arrays.solution import IntArray
from placer.base.quantity import Resources
from placer.problem import Instance, Pod

#: Sums over all nodes or all pods stay below this, so that no array and no solver overflows.
SAFE = 2**60


class NodeAmounts:
    """Amounts that are counted on nodes, by name, neither scaled nor cut: of a pod, and left on a node.

    A rule that counts pods on a node names its amount here: it becomes a column of ``Dense.requests`` and
    ``Dense.free``, which every method, bound and reason keeps.
    """

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self._left: dict[str, Resources] = {}
        #: Nodes that have the same and hold the same share one vector; on large clusters most do.
        self._differences: dict[tuple[Resources, Resources], Resources] = {}

    def asked(self, pod: Pod) -> Resources:
        """Amounts that a pod takes of its node."""
        return pod.requests

    def left(self, node: str) -> Resources:
        """Allocatable minus the amounts of bound, terminating and nominated pods; may be negative."""
        if node not in self._left:
            held, allocatable = self.instance.held.get(node), self.instance.nodes[node].allocatable
            self._left[node] = allocatable if held is None else self._difference(allocatable, held)
        return self._left[node]

    def _difference(self, allocatable: Resources, held: Resources) -> Resources:
        pair = allocatable, held
        if pair not in self._differences:
            self._differences[pair] = allocatable - held
        return self._differences[pair]


class Scale:
    """Amounts as array entries: divided by the greatest common divisor of all requests, so that nothing is lost.

    A request that exceeds every node counts as the least that does. Where sums would not fit into 60 bits, a larger
    divisor is taken and requests are rounded up: then ``exact`` is False.
    """

    def __init__(self, asked: Iterable[Resources], room: Sequence[Resources]) -> None:
        every, rooms = Counter(asked), Counter(room)
        names = dict.fromkeys(name for requests in every for name in requests)
        self._largest = {name: max((0, *(entry[name] for entry in rooms))) for name in names}
        amounts = self._fitting(every)
        self.resources = tuple(sorted(amounts))
        self._demand = {name: sum(amount * count for amount, count in amounts[name]) for name in self.resources}
        commons = {name: _common(amounts[name]) for name in self.resources}
        self.divisors = tuple(
            _divisor(commons[name], self._demand[name], self._usable(name, rooms)) for name in self.resources
        )
        self.exact = all(by == commons[name] for name, by in zip(self.resources, self.divisors, strict=True))
        self._cache: dict[Resources, IntArray] = {}

    def _usable(self, name: str, rooms: Mapping[Resources, int]) -> int:
        return sum(self._cut(name, entry[name]) * count for entry, count in rooms.items())

    def _fitting(self, asked: Mapping[Resources, int]) -> dict[str, list[tuple[int, int]]]:
        found: dict[str, list[tuple[int, int]]] = {name: [] for name in self._largest}
        for requests, count in asked.items():
            for name, amount in requests.items():
                if amount <= self._largest[name]:
                    found[name].append((amount, count))
        return found

    def request(self, requests: Resources) -> IntArray:
        """Scale a request, rounded up: int64, shape (resources,)."""
        if requests not in self._cache:
            row = [
                self._asked(name, requests[name], by) for name, by in zip(self.resources, self.divisors, strict=True)
            ]
            self._cache[requests] = np.array(row, dtype=np.int64)
        return self._cache[requests]

    def room(self, rows: Iterable[Resources]) -> IntArray:
        """Scale rooms, rounded down, cut to 0 .. total demand: int64, shape (rows, resources)."""
        made: dict[Resources, list[int]] = {}
        scaled = []
        for entry in rows:
            if entry not in made:
                made[entry] = [self.limit(name, entry[name]) for name in self.resources]
            scaled.append(made[entry])
        return np.array(scaled, dtype=np.int64).reshape(len(scaled), len(self.resources))

    def limit(self, resource: str, amount: int) -> int:
        """Scale one limit on a sum of requests, as :meth:`room` does."""
        return self._cut(resource, amount) // self.divisors[self.resources.index(resource)]

    def _cut(self, resource: str, amount: int) -> int:
        return max(0, min(amount, self._demand[resource]))

    def _asked(self, resource: str, amount: int, by: int) -> int:
        largest = self._largest.get(resource, 0)
        return self._cut(resource, largest) // by + 1 if amount > largest else -(-amount // by)

    def fits_nowhere(self, requests: Resources) -> bool:
        """Whether a request exceeds every node."""
        return any(amount > self._largest.get(name, 0) for name, amount in requests.items())


def _common(amounts: Iterable[tuple[int, int]]) -> int:
    return max(1, math.gcd(*(amount for amount, _ in amounts)))


def _divisor(common: int, demand: int, room: int) -> int:
    largest = max(demand, room) // common
    return common if largest < SAFE else common * -(-largest // SAFE)
