"""The plug-in proportion: what each queue deserves, and who has had it.

Weight and capability of queues count; guarantees are not part of an instance.

Source: Volcano ``pkg/scheduler/plugins/proportion/proportion.go``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from placer.laboratory.policies.cluster_state import ClusterState, FloatArray, Task
from placer.laboratory.policies.volcano.jobs import JobInfo
from placer.quantity import PODS

__all__ = ["Proportion"]

#: Amounts nearer than this are the same.
_TOLERANCE = 0.1


class Proportion:
    """Deserved and allocated resources of each queue.

    Parameters
    ----------
    state
        What is where; pods that take and leave room are heard of.
    jobs
        All jobs that want something.
    on
        Whether the plug-in is configured; where it is not, no queue is overused.
    """

    def __init__(self, state: ClusterState, jobs: Sequence[JobInfo], *, on: bool) -> None:
        self.on = on
        self._queue_of = {job.group.key: job.queue for job in jobs}
        self._counted = np.array([name != PODS for name in state.resources])
        names = sorted({group.queue or "default" for group in state.instance.groups.values()})
        nothing = np.zeros(len(state.resources))
        self.allocated = {name: nothing.copy() for name in names}
        request = {name: nothing.copy() for name in names}
        for key, group in state.instance.groups.items():
            queue = group.queue or "default"
            self._queue_of.setdefault(key, queue)
            for pod in (*group.bound, *group.pending):
                request[queue] += state.row(state.instance.pods[pod].requests)
            for pod in group.bound:
                self.allocated[queue] += state.row(state.instance.pods[pod].requests)
        limits = {name: self._limit(state, name) for name in names}
        known = state.instance.queues
        weights = {name: known[name].weight if name in known else 1 for name in names}
        self.deserved = deserved(state.alloc.sum(axis=0).astype(np.float64), request, limits, weights)
        state.listeners.append(self._hear)

    @staticmethod
    def _limit(state: ClusterState, queue: str) -> FloatArray:
        known = state.instance.queues.get(queue)
        capability = known.capability if known is not None else {}
        return np.array([capability.get(name, np.inf) for name in state.resources], dtype=np.float64)

    def _hear(self, task: Task, _node: int, sign: int) -> None:
        if task.pod.group is not None and task.pod.group in self._queue_of:
            self.allocated[self._queue_of[task.pod.group]] += sign * task.request

    def overused(self, queue: str) -> bool:
        """Whether a queue has all that it deserves, of every resource."""
        return self.on and bool((self.deserved[queue] <= self.allocated[queue] + _TOLERANCE)[self._counted].all())

    def allows(self, queue: str, task: Task, count: int = 1) -> bool:
        """Whether so many equal pods fit into what their queue deserves; only what they request is looked at."""
        if not self.on:
            return True
        after = self.allocated[queue] + count * task.request
        return bool((after <= self.deserved[queue] + _TOLERANCE)[task.asked].all())

    def share(self, queue: str) -> float:
        """Largest share of what is deserved that is allocated: queues with less are first."""
        allocated, deserves = self.allocated[queue], self.deserved[queue]
        shares = np.where(deserves > 0, allocated / np.maximum(deserves, 1e-9), (allocated > 0).astype(np.float64))
        return float(shares[self._counted].max(initial=0.0)) if self.on else 0.0


def deserved(
    total: FloatArray,
    request: Mapping[str, FloatArray],
    limits: Mapping[str, FloatArray],
    weights: Mapping[str, int],
) -> dict[str, FloatArray]:
    """Share out what there is among queues by their weight, to none more than it requests or may have.

    Parameters
    ----------
    total
        What all nodes have, shape (resources,).
    request
        Queue to what its pods request.
    limits
        Queue to its capability, infinite where it has none.
    weights
        Queue to its weight, at least 1.
    """
    found = {name: np.zeros_like(total) for name in request}
    remaining, open_ = total.copy(), sorted(request)
    while open_ and (remaining > _TOLERANCE).any():
        share = remaining / sum(weights[name] for name in open_)
        before = {name: found[name].copy() for name in open_}
        for name in open_:
            found[name] = np.minimum(np.minimum(found[name] + weights[name] * share, request[name]), limits[name])
        given = sum((found[name] - before[name] for name in open_), start=np.zeros_like(total))
        remaining = remaining - given
        open_ = [n for n in open_ if (found[n] + _TOLERANCE < np.minimum(request[n], limits[n])).any()]
        if not (given > _TOLERANCE).any():
            break
    return found
