"""Scores by requests and capacity of a node: NodeResourcesFit and NodeResourcesBalancedAllocation.

Integer formulas as upstream has them. A resource other than cpu and memory counts only for pods that request it, and
only on nodes that have it.

Source: Kubernetes ``pkg/scheduler/framework/plugins/noderesources`` (``resource_allocation.go``,
``{least,most}_allocated.go``, ``requested_to_capacity_ratio.go``, ``balanced_allocation.go``, as of 1.35).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from placer.base.quantity import CPU

if TYPE_CHECKING:
    from placer.lab.policies.framework import BoolArray, ClusterState, FloatArray, IntArray, Task

__all__ = ["balanced", "least_allocated", "most_allocated", "scorer", "to_capacity_ratio"]

_ALWAYS = (CPU, "memory", "ephemeral-storage")


@dataclass(frozen=True, slots=True)
class Allocation:
    """Parameters
    ----------
    requested, capacity
        int64, shape (nodes, resources that count).
    weights
        int64, shape (resources that count,).
    """

    requested: IntArray
    capacity: IntArray
    weights: IntArray

    @classmethod
    def of(
        cls, state: ClusterState, task: Task, nodes: IntArray, weights: Mapping[str, int], *, least: bool
    ) -> Allocation:
        """``least``: a pod without requests counts as the least amounts of cpu and memory."""
        counted = [
            (state.column[name], weight)
            for name, weight in weights.items()
            if name in state.column and (name in _ALWAYS or task.request[state.column[name]])
        ]
        columns = np.array([column for column, _ in counted], dtype=np.int64)
        cells = nodes[:, None], columns
        capacity = state.alloc[cells]
        requested = (
            state.scored[cells] + task.scored[columns]
            if least
            else capacity - state.idle[cells] + task.request[columns]
        )
        return cls(requested, capacity, np.array([weight for _, weight in counted], dtype=np.int64))

    @property
    def there(self) -> BoolArray:
        found: BoolArray = self.capacity > 0
        return found

    def sums(self, scores: IntArray, counts: BoolArray) -> tuple[IntArray, IntArray]:
        return (scores * self.weights * counts).sum(axis=1), (self.weights * counts).sum(axis=1)

    def mean(self, scores: IntArray, counts: BoolArray) -> IntArray:
        total, weight = self.sums(scores, counts)
        return np.where(weight > 0, total // np.maximum(weight, 1), 0)


def scorer(
    state: ClusterState, weights: Mapping[str, int], formula: Callable[[Allocation], FloatArray], *, least: bool
) -> Callable[[Task, IntArray], FloatArray]:
    """Score nodes for a pod by a formula; ``least`` as :meth:`Allocation.of` takes it."""
    return lambda task, nodes: formula(Allocation.of(state, task, nodes, weights, least=least))


def least_allocated(part: Allocation) -> FloatArray:
    """Mean free share, 0 .. 100."""
    room = np.maximum(part.capacity, 1)
    scores = np.where(part.requested > part.capacity, 0, _percent(part.capacity - part.requested, room))
    return part.mean(scores, part.there).astype(np.float64)


def most_allocated(part: Allocation) -> FloatArray:
    """Mean requested share, 0 .. 100."""
    scores = _percent(np.minimum(part.requested, part.capacity), np.maximum(part.capacity, 1))
    return part.mean(scores, part.there).astype(np.float64)


def to_capacity_ratio(part: Allocation, shape: Sequence[tuple[int, int]]) -> FloatArray:
    """Mean of the broken line at the share requested; resources that score 0 do not count.

    Parameters
    ----------
    shape
        Points (utilization 0 .. 100, score 0 .. 10), utilization growing.
    """
    line = np.array([broken_line(shape, share) for share in range(101)], dtype=np.int64)
    full = (part.capacity == 0) | (part.requested > part.capacity)
    share = _percent(np.minimum(part.requested, part.capacity), np.maximum(part.capacity, 1))
    scores = line[np.where(full, 100, share)]
    counts = (scores > 0) & part.there
    total, weight = part.sums(scores, counts)
    # Go's math.Round: halves away from zero.
    return np.where(weight > 0, np.floor(total / np.maximum(weight, 1) + 0.5), 0.0)


def broken_line(shape: Sequence[tuple[int, int]], share: int) -> int:
    """Score 0 .. 100 at a utilization: points joined by lines, integers rounded towards zero."""
    points = [(utilization, 10 * score) for utilization, score in shape]
    for index, (utilization, score) in enumerate(points):
        if share <= utilization:
            if index == 0:
                return score
            before, low = points[index - 1]
            return low + int((score - low) * (share - before) / (utilization - before))
    return points[-1][1]


def balanced(part: Allocation) -> FloatArray:
    """100 less the standard deviation of the shares requested, in percent, rounded down."""
    there = part.there
    shares = np.where(there, np.minimum(part.requested / np.maximum(part.capacity, 1), 1.0), 0.0)
    count = np.maximum(there.sum(axis=1), 1)
    mean = shares.sum(axis=1) / count
    spread = np.where(there, (shares - mean[:, None]) ** 2, 0.0).sum(axis=1) / count
    deviation = np.sqrt(spread)
    if part.capacity.shape[1] == 2:
        # Of two shares half the difference, which keeps exact what is exact.
        both = there.all(axis=1)
        deviation = np.where(both, np.abs(shares[:, 0] - shares[:, 1]) / 2, deviation)
    scores: FloatArray = np.floor((1 - deviation) * 100)
    return scores


def _percent(part: IntArray, whole: IntArray) -> IntArray:
    """``part * 100 // whole`` without leaving 64 bits."""
    large = np.abs(part) > 2**56
    quick = np.where(large, 0, part) * 100 // whole
    return np.where(large, (part // 128) * 100 // np.maximum(whole // 128, 1), quick)
