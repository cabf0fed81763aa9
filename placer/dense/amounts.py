"""Exact scaling of resource amounts to small integers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from placer.instance import Instance, Pod
from placer.quantity import Resources

__all__ = ["Scale", "free_on"]

IntArray = npt.NDArray[np.int64]

#: Sums over all nodes or all pods stay below this, so that no array and no solver overflows.
SAFE = 2**60


def free_on(instance: Instance, node: str) -> Resources:
    """Allocatable minus what bound, terminating and nominated pods hold; negative where they hold more."""
    held = instance.held.get(node)
    allocatable = instance.nodes[node].allocatable
    return allocatable if held is None else allocatable - held


class Scale:
    """How amounts become array entries: divided by the greatest common divisor of all requests.

    Room is rounded down, which loses nothing since every request is a multiple of the divisor. A request that is more
    than any node has room for counts as the least of which that is true. Only where sums would not fit into 60 bits all
    the same is a larger, inexact divisor taken: requests are then rounded up, never down.

    Parameters
    ----------
    pods
        The pods whose requests matter.
    room
        Room on each node; entries may be negative.

    Attributes
    ----------
    exact
        Whether no divisor is inexact: else what does not fit by these numbers may fit in truth.
    """

    def __init__(self, pods: Sequence[Pod], room: Sequence[Resources]) -> None:
        amounts: dict[str, list[int]] = {}
        self._largest: dict[str, int] = {}
        for pod in pods:
            for name, amount in pod.requests.items():
                if name not in self._largest:
                    self._largest[name] = max((0, *(entry[name] for entry in room)))
                fitting = amounts.setdefault(name, [])
                if amount <= self._largest[name]:
                    fitting.append(amount)
        self.resources = tuple(sorted(amounts))
        self._demand = {name: sum(amounts[name]) for name in self.resources}
        commons = {name: max(1, math.gcd(*amounts[name])) for name in self.resources}
        self.divisors = tuple(
            _divisor(commons[name], self._demand[name], sum(self._cut(name, entry[name]) for entry in room))
            for name in self.resources
        )
        self.exact = all(by == commons[name] for name, by in zip(self.resources, self.divisors, strict=True))
        self._cache: dict[Resources, IntArray] = {}

    def request(self, requests: Resources) -> IntArray:
        """Scale a request, rounded up: int64, shape (resources,); equal requests share one array."""
        if requests not in self._cache:
            row = [
                self._asked(name, requests[name], by) for name, by in zip(self.resources, self.divisors, strict=True)
            ]
            self._cache[requests] = np.array(row, dtype=np.int64)
        return self._cache[requests]

    def room(self, rows: Iterable[Resources]) -> IntArray:
        """Scale rooms, rounded down, cut to 0 .. total demand: int64, shape (rows, resources)."""
        scaled = [[self.limit(name, entry[name]) for name in self.resources] for entry in rows]
        return np.array(scaled, dtype=np.int64).reshape(len(scaled), len(self.resources))

    def limit(self, resource: str, amount: int) -> int:
        """Scale one limit on a sum of requests, as :meth:`room` does."""
        return self._cut(resource, amount) // self.divisors[self.resources.index(resource)]

    def _cut(self, resource: str, amount: int) -> int:
        """An amount, of which no more than everything that is asked for matters."""
        return max(0, min(amount, self._demand[resource]))

    def _asked(self, resource: str, amount: int, by: int) -> int:
        largest = self._largest.get(resource, 0)
        return self._cut(resource, largest) // by + 1 if amount > largest else -(-amount // by)

    def fits_nowhere(self, requests: Resources) -> bool:
        """Whether a request is more than any node has room for."""
        return any(amount > self._largest.get(name, 0) for name, amount in requests.items())


def _divisor(common: int, demand: int, room: int) -> int:
    largest = max(demand, room) // common
    return common if largest < SAFE else common * -(-largest // SAFE)
