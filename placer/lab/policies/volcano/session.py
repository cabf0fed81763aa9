"""One session of Volcano: the queue with the least share, its first job, tried, and bound where it is ready.

Before the action allocate comes enqueue; after it backfill, for pods that request nothing.

Source: Volcano ``pkg/scheduler/actions/{allocate,backfill}``, ``pkg/scheduler/plugins/{priority,gang,drf}``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from typing import Any

import numpy as np

from placer.lab.policies.faults import ConfigReader
from placer.lab.policies.framework import (
    BoolArray,
    ClusterState,
    Filter,
    IntArray,
    Score,
    Settlement,
    Task,
    eligible,
)
from placer.lab.policies.neighbourhood import neighbour_filters
from placer.lab.policies.volcano.allocate import Allocate, Move, Worksheet
from placer.lab.policies.volcano.jobs import (
    HyperNodesInfo,
    JobInfo,
    SubJob,
    is_best_effort,
    job_priority,
    read_jobs,
    task_order,
)
from placer.lab.policies.volcano.queues import Proportion, enqueue
from placer.lab.policies.volcano.scores import binpack, first_nodes, label_nearness, label_values, node_order
from placer.lab.policies.volcano.settings import VolcanoSettings, read_settings
from placer.lab.policies.volcano.topology import TopologyAware
from placer.problem import GroupKey

__all__ = ["Session", "Turn"]

#: Findings that leave Volcano without any topology (its cache cannot be built).
_BROKEN_TREE = ("HyperNodeCycle", "HyperNodeTwoParents")


@dataclass(frozen=True, slots=True)
class Turn:
    """A job that is tried; with ``fill`` only that pod, which requests nothing."""

    job: JobInfo
    number: int
    fill: tuple[SubJob, Task] | None = None


class Session:
    """Volcano for the loop."""

    def __init__(self, state: ClusterState, written: Mapping[str, Any], reader: ConfigReader) -> None:
        settings = read_settings(written, reader)
        reader.raise_any()
        self.state = state
        self.settings = settings
        domains = HyperNodesInfo(state)
        waiting = [job for job in read_jobs(state, domains) if self._has_queue(job)]
        self.proportion = Proportion(state, waiting, on=settings.proportion)
        self._total = np.maximum(state.alloc.sum(axis=0), 1)
        self._used = {job.group.key: state.requested(job.group.bound) for job in waiting}
        self.outside: frozenset[GroupKey] = frozenset()
        self.jobs = jobs = [job for job in self._enqueued(waiting) if self._considered(job)]
        self.allocate = _allocate(settings, state, domains, self.proportion)
        self.worksheets = {job.group.key: Worksheet.of(job) for job in jobs}
        self._waiting: dict[str, list[tuple[tuple[Any, ...], int, JobInfo]]] = defaultdict(list)
        for number, job in enumerate(jobs if "allocate" in settings.actions else ()):
            self._wait(job, number)
        self._fill = self._without_requests()
        self._moves: list[Move] = []
        self._unbound: dict[GroupKey, list[Task]] = defaultdict(list)
        state.listeners.append(self._hear)

    def _wait(self, job: JobInfo, number: int) -> None:
        if self.worksheets[job.group.key].queue:
            heappush(self._waiting[job.queue], (self.job_order(job), number, job))

    def _has_queue(self, job: JobInfo) -> bool:
        instance = self.state.instance
        there = job.queue == "default" or job.queue in instance.queues
        return there and instance.closed_queue(job.group.queue, None) is None

    def _enqueued(self, jobs: list[JobInfo]) -> list[JobInfo]:
        """The order of queues does not change meanwhile: all jobs of the one with the least share come first."""
        if "enqueue" not in self.settings.actions:
            return jobs
        shares = {job.queue: (self.proportion.share(job.queue), job.queue) for job in jobs}
        found = enqueue(jobs, self.state, self.settings.overcommit, lambda job: shares[job.queue] + self.job_order(job))
        self.outside = frozenset(job.group.key for job in jobs) - found
        return [job for job in jobs if job.group.key in found]

    def _considered(self, job: JobInfo) -> bool:
        broken = any(finding.code in _BROKEN_TREE for finding in self.state.instance.findings)
        return job.valid() and not (broken and job.has_topology)

    def _hear(self, task: Task, _node: int, sign: int) -> None:
        if task.pod.group in self._used:
            self._used[task.pod.group] += sign * task.request

    def job_order(self, job: JobInfo) -> tuple[Any, ...]:
        """JobOrderFn: by the plug-ins in their order, then by age, then by name."""
        keys: Mapping[str, Any] = {"priority": -job_priority(job.group), "gang": job.ready(), "drf": self.share(job)}
        return (*(keys[name] for name in self.settings.job_order), job.group.created, job.uid)

    def share(self, job: JobInfo) -> float:
        """Largest share of the whole cluster that a job has of a resource (drf)."""
        return float((self._used[job.group.key] / self._total).max(initial=0.0))

    def next(self) -> Turn | None:
        """The first job of the queue with the least share; then pods without requests, in the same order."""
        while self._waiting:
            queue = min(self._waiting, key=lambda name: (self.proportion.share(name), name))
            if not self._waiting[queue] or self.proportion.overused(queue):
                del self._waiting[queue]
            else:
                _, number, job = heappop(self._waiting[queue])
                return Turn(job, number)
        return next(self._fill, None)

    def _without_requests(self) -> Iterator[Turn]:
        filled = self.jobs if "backfill" in self.settings.actions else []
        for job in sorted(filled, key=lambda job: (self.proportion.share(job.queue), job.queue, *self.job_order(job))):
            mine = [(subjob, task) for subjob in job.subjobs for task in subjob.tasks if is_best_effort(task)]
            yield from (Turn(job, 0, each) for each in sorted(mine, key=lambda each: task_order(each[1])))

    def attempt(self, unit: Turn) -> None:
        """Place the next pods of a job: HyperNode after HyperNode where it has a limit or policies."""
        job, worksheet = unit.job, self.worksheets[unit.job.group.key]
        if unit.fill is not None:
            self._moves = self._backfill(job, *unit.fill)
        elif job.searches:
            self._moves = self.allocate.for_job(job, worksheet)
        else:
            # Without limit and policies there is one subjob, and it may try any node.
            subjob, left = worksheet.pop()
            self._moves = self.allocate.for_tasks(job, subjob, left, self.allocate.domains.top)
            worksheet.push(job, subjob, left)

    def _backfill(self, job: JobInfo, subjob: SubJob, task: Task) -> list[Move]:
        node = self.allocate.fill(subjob, task)
        if node is None:
            return []
        move = Move(subjob, task, node, waits=False)
        self.allocate.do(job, move)
        subjob.best_effort -= 1
        return [move]

    def settle(self, unit: Turn) -> Settlement:
        """Bind a job that is ready, and try its other pods; one that is not ready tries no more.

        Pods that wait for room of others keep theirs until the session ends (#5044).
        """
        job = unit.job
        held = self._unbound[job.group.key]
        held += [move.task for move in self._moves if not move.waits]
        ready, tried = self._ready(job), bool(self._moves) or not job.searches
        if unit.fill is None and ready and tried:
            self._wait(job, unit.number)
        if not ready:
            return Settlement()
        del self._unbound[job.group.key]
        return Settlement(bind=held)

    def _ready(self, job: JobInfo) -> bool:
        return job.ready() or not self.settings.gang


def _modelled(task: Task, nodes: IntArray) -> BoolArray:
    """Without the plug-in predicates only pods that cannot be judged are kept off (C4)."""
    return np.full(len(nodes), not task.pod.unsupported)


def _allocate(
    settings: VolcanoSettings, state: ClusterState, domains: HyperNodesInfo, proportion: Proportion
) -> Allocate:
    topology = TopologyAware(state, domains, settings.topology) if settings.topology is not None else None
    filters: list[Filter] = (
        [eligible, state.ports_free, *neighbour_filters(state)] if settings.predicates else [_modelled]
    )
    return Allocate(state, domains, proportion, topology, filters, _scores(settings, state))


def _scores(settings: VolcanoSettings, state: ClusterState) -> list[Score]:
    found = node_order(state, settings.node_order)
    weight, resources = settings.binpack
    if weight:
        found.append(replace(binpack(state, resources), weight=weight))
    if settings.keys is not None:
        weight, keys = settings.keys
        found.append(label_nearness(label_values(state, keys), first_nodes(state), weight))
    return found
