"""One pod, one step: filter the nodes, score those that are left, take one of the best.

Source: Kubernetes ``pkg/scheduler/schedule_one.go``; Volcano ``pkg/scheduler/util/scheduler_helper.go``, which looks at
part of the nodes by the same rule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from placer.laboratory.policies.cluster_state import BoolArray, ClusterState, FloatArray, IntArray, Task

__all__ = ["Filter", "SchedulingCycle", "Score", "enough"]

#: Which of the nodes a pod may go to.
Filter = Callable[[Task, IntArray], BoolArray]
#: Up to so many nodes all are looked at, and so many feasible ones are looked for at least.
_FEW = 100


@dataclass(frozen=True, slots=True)
class Score:
    """A score plug-in.

    Parameters
    ----------
    name
        What its scheduler calls it.
    weight
        Of its normalised score in the sum.
    of
        Raw scores of feasible nodes.
    normalise
        Raw scores of all feasible nodes to 0 .. 100; None: they are already.
    """

    name: str
    weight: float
    of: Callable[[Task, IntArray], FloatArray]
    normalise: Callable[[FloatArray], FloatArray] | None = None

    def __call__(self, task: Task, nodes: IntArray) -> FloatArray:
        """Weighted scores of feasible nodes."""
        raw = self.of(task, nodes)
        return self.weight * (raw if self.normalise is None else self.normalise(raw))


def enough(nodes: int, percentage: int = 0) -> int:
    """How many feasible nodes end the search for more.

    Parameters
    ----------
    nodes
        How many there are to look at.
    percentage
        ``percentageOfNodesToScore``; 0: 50 less one for each 125 nodes, at least 5.
    """
    if nodes <= _FEW or percentage >= 100:
        return nodes
    share = percentage or max(5, 50 - nodes // 125)
    return max(_FEW, nodes * share // 100)


class SchedulingCycle:
    """Filters and scores of one policy.

    Parameters
    ----------
    state
        What is where.
    filters
        All must let a node through.
    scores
        Their weighted sum decides; of several best nodes one is taken at random.
    percentage
        As in :func:`enough`.
    """

    def __init__(
        self, state: ClusterState, filters: Sequence[Filter], scores: Sequence[Score], percentage: int = 0
    ) -> None:
        self.state = state
        self.filters = tuple(filters)
        self.scores = tuple(scores)
        self.percentage = percentage
        self._start = 0

    def feasible(self, task: Task, nodes: IntArray) -> IntArray:
        """Nodes that pass the filters; of many nodes the first so many, from where the last search ended."""
        most = enough(len(nodes), self.percentage)
        if most < len(nodes):
            start = self._start % len(nodes)
            nodes = np.concatenate((nodes[start:], nodes[:start]))
        left = nodes
        for each in self.filters:
            if not len(left):
                break
            left = left[each(task, left)]
        if most < len(nodes):
            looked = len(nodes)
            if len(left) >= most:
                left = left[:most]
                looked = int(np.flatnonzero(nodes == left[-1])[0]) + 1
            self._start = (self._start + looked) % len(nodes)
        return left

    def total(self, task: Task, nodes: IntArray) -> FloatArray:
        """Weighted sum of all scores."""
        total = np.zeros(len(nodes))
        for score in self.scores:
            total += score(task, nodes)
        return total

    def best(self, task: Task, nodes: IntArray) -> int:
        """The node with the best sum; a single one is not scored."""
        if len(nodes) == 1:
            return int(nodes[0])
        total = self.total(task, nodes)
        ties = np.flatnonzero(total == total.max())
        return int(nodes[ties[self.state.random.randrange(len(ties))]])

    def choose(self, task: Task, nodes: IntArray) -> int | None:
        """The node for a pod; None where none is feasible."""
        left = self.feasible(task, nodes)
        return self.best(task, left) if len(left) else None
