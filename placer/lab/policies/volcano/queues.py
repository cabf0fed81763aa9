"""The action enqueue with overcommit, and the plug-in proportion.

A PodGroup whose phase is Pending waits outside. It is let in while its ``minResources``, with those of all that are in
and do not run yet, fit into the capacity of all nodes times a factor, less running pods. Guarantees of queues are not
part of an instance.

Source: Volcano ``pkg/scheduler/actions/enqueue/enqueue.go``, ``pkg/scheduler/plugins/{overcommit,proportion}``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from placer.base.quantity import CPU, PODS, Resources
from placer.problem import Group, GroupKey, Queue

if TYPE_CHECKING:
    from placer.lab.policies.framework import ClusterState, FloatArray, Task
    from placer.lab.policies.volcano.jobs import JobInfo

__all__ = ["Proportion", "enqueue"]


#: What counts for a queue that no object describes.
_UNKNOWN = Queue("default", {})
#: Amounts nearer than this are the same.
_TOLERANCE = 0.1
_NATIVE = (CPU, "memory", PODS, "ephemeral-storage")


def enqueue(
    jobs: Iterable[JobInfo],
    state: ClusterState,
    overcommit: Mapping[str, float] | None,
    order: Callable[[JobInfo], tuple[Any, ...]],
) -> set[GroupKey]:
    """Jobs that are in once the action has run.

    PodGroups that the snapshot shows as Inqueue are in, and what they ask for is taken, whether they have pods or not.
    ``overcommit`` has factors of the capacity, 1 or more, of single resources, and ``""`` of all others; without it the
    plug-in is off, and all are let in.
    """
    if overcommit is None:
        return {job.group.key for job in jobs}
    idle, found = _idle(state, overcommit), set()
    asked: Counter[str] = Counter()
    for group in state.instance.groups.values():
        asked.update(_reserved(group, state))
    for job in sorted(jobs, key=order):
        least = {} if job.group.placed_before or job.group.inqueue else _counted(job.group.min_resources)
        if all(asked[name] + amount <= idle.get(name, 0.0) + _TOLERANCE for name, amount in least.items()):
            asked.update(least)
            found.add(job.group.key)
    return found


def _idle(state: ClusterState, overcommit: Mapping[str, float]) -> dict[str, float]:
    total, used = state.alloc.sum(axis=0).tolist(), state.used.sum(axis=0).tolist()
    rows = zip(state.resources, total, used, strict=True)
    return {name: there * overcommit.get(name, overcommit[""]) - taken for name, there, taken in rows}


def _reserved(group: Group, state: ClusterState) -> dict[str, int]:
    if group.inqueue:
        return _counted(group.min_resources)
    if not group.bound or len(group.bound) < group.min_member:
        return {}
    pods = (state.instance.pods[key].requests for key in group.bound)
    taken = sum(pods, start=Resources())
    return {name: max(0, amount - taken[name]) for name, amount in _counted(group.min_resources).items()}


def _counted(least: Resources) -> dict[str, int]:
    """Quotas such as ``requests.cpu`` and ``count/pods``, which the job controller adds to ``minResources``, do not
    count.
    """
    return {
        name: amount
        for name, amount in least.items()
        if amount
        and (
            name in _NATIVE
            or name.startswith(("hugepages-", "attachable-volumes-"))
            or ("/" in name and not name.startswith(("requests.", "limits.", "count/")))
        )
    }


class Proportion:
    """Deserved and allocated resources of each queue; where the plug-in is not ``on``, no queue is overused."""

    def __init__(self, state: ClusterState, jobs: Sequence[JobInfo], *, on: bool) -> None:
        self.on = on
        instance = state.instance
        self._queue_of = {key: group.queue or "default" for key, group in instance.groups.items()}
        self._queue_of |= {job.group.key: job.queue for job in jobs}
        self._counted = np.array([name != PODS for name in state.resources])
        names = sorted({group.queue or "default" for group in instance.groups.values()})
        queues = {name: instance.queues.get(name, _UNKNOWN) for name in names}
        weights = {name: queue.weight for name, queue in queues.items()}
        limits = {name: _limit(queue, state.resources) for name, queue in queues.items()}
        self.allocated, request = _amounts(state, names)
        self.deserved = deserved(state.alloc.sum(axis=0).astype(np.float64), request, limits, weights)
        state.listeners.append(self._hear)

    def _hear(self, task: Task, _node: int, sign: int) -> None:
        if task.pod.group is not None and task.pod.group in self._queue_of:
            self.allocated[self._queue_of[task.pod.group]] += sign * task.request

    def overused(self, queue: str) -> bool:
        """Whether a queue has all that it deserves, of every resource."""
        return self.on and bool((self.deserved[queue] <= self.allocated[queue] + _TOLERANCE)[self._counted].all())

    def allows(self, queue: str, task: Task, count: int = 1) -> bool:
        """Whether so many equal pods fit into the deserved amounts of their queue, of the resources that they
        request.
        """
        if not self.on:
            return True
        after = self.allocated[queue] + count * task.request
        return bool((after <= self.deserved[queue] + _TOLERANCE)[task.asked].all())

    def share(self, queue: str) -> float:
        """Largest allocated share of the deserved amounts: queues with less are first."""
        allocated, deserves = self.allocated[queue], self.deserved[queue]
        shares = np.where(deserves > 0, allocated / np.maximum(deserves, 1e-9), (allocated > 0).astype(np.float64))
        return float(shares[self._counted].max(initial=0.0)) if self.on else 0.0


def _amounts(state: ClusterState, queues: Sequence[str]) -> tuple[dict[str, FloatArray], dict[str, FloatArray]]:
    allocated, request = ({name: np.zeros(len(state.resources)) for name in queues} for _ in range(2))
    for group in state.instance.groups.values():
        queue, bound = group.queue or "default", state.requested(group.bound)
        allocated[queue] += bound
        request[queue] += bound + state.requested(group.pending)
    return allocated, request


def _limit(queue: Queue, resources: Sequence[str]) -> FloatArray:
    return np.array([queue.capability.get(name, np.inf) for name in resources], dtype=np.float64)


def deserved(
    total: FloatArray,
    request: Mapping[str, FloatArray],
    limits: Mapping[str, FloatArray],
    weights: Mapping[str, int],
) -> dict[str, FloatArray]:
    """To none more than it requests or may have; limits are infinite where there are none, weights at least 1."""
    most = {name: np.minimum(request[name], limits[name]) for name in request}
    found = {name: np.zeros_like(total) for name in request}
    remaining, open_ = total.copy(), sorted(request)
    while open_ and (remaining > _TOLERANCE).any():
        share = remaining / sum(map(weights.__getitem__, open_))
        more = {name: np.minimum(found[name] + weights[name] * share, most[name]) for name in open_}
        given = sum((more[name] - found[name] for name in open_), start=np.zeros_like(total))
        found |= more
        remaining = remaining - given
        open_ = [name for name in open_ if (found[name] + _TOLERANCE < most[name]).any()]
        if not (given > _TOLERANCE).any():
            break
    return found
