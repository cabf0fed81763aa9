"""The actions preempt and gangpreempt: evictions for jobs that are not ready after allocate.

Jobs without a networkTopology are of preempt: pod after pod, on the node that scores best and has enough victims. Jobs
with one are of gangpreempt: HyperNode after HyperNode, victims job by job until a try of allocate works there (#5984).

Source: Volcano ``pkg/scheduler/actions/{preempt,gangpreempt,utils}``, ``pkg/scheduler/plugins/{priority,conformance}``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import itemgetter

import numpy as np

from placer.lab.policies.framework import ClusterState, IntArray, Task
from placer.lab.policies.volcano.allocate import Move, Worksheet
from placer.lab.policies.volcano.jobs import JobInfo, SubJob, is_best_effort, job_priority
from placer.lab.policies.volcano.session import Session
from placer.problem import Group, Key, Pod
from placer.problem.queues import SYSTEM_PRIORITY

__all__ = ["preempt"]

#: The most HyperNodes that gangpreempt looks at for a job.
_MOST_DOMAINS = 8


#: Pods of one job in a HyperNode that go together, behind the key of their turn: who breaks no gang, low priority, the
#: youngest, the larger share of its gang, name.
_VictimBundle = tuple[tuple[bool, int, float, float, str], Sequence[Pod]]


def preempt(session: Session) -> list[tuple[Key, str]]:
    """Evict for the jobs of a session that are not ready, and return the bindings that this makes."""
    actions = _Preempt(session)
    jobs = sorted((job for job in session.jobs if not job.ready()), key=session.job_order)
    for job in jobs:
        if not job.has_topology:
            actions.between_jobs(job)
    for job in jobs:
        if not (job.has_topology or job.ready()):
            actions.within_job(job)
    for job in jobs:
        if job.has_topology:
            actions.in_domains(job)
    return actions.bound


class _Preempt:
    def __init__(self, session: Session) -> None:
        self.state: ClusterState = session.state
        self.session = session
        self.allocate = session.allocate
        self.bound: list[tuple[Key, str]] = []
        self._running = self.state.running()
        self._groups = self.state.instance.groups

    def between_jobs(self, job: JobInfo) -> None:
        moves, gone = list[Move](), list[Pod]()
        for subjob in job.subjobs:
            for task in self._pending(subjob.tasks):
                if job.ready():
                    break
                found = self._for_task(job, subjob, task, lambda pod: self._of_other_job(pod, job))
                if found is not None:
                    node, victims = found
                    gone += victims
                    moves.append(Move(subjob, task, node, waits=False))
                    self.allocate.do(job, moves[-1])
        if job.ready():
            self._keep(moves)
        else:
            self.allocate.undo(job, moves)
            self._restore(gone)

    def within_job(self, job: JobInfo) -> None:
        """Evictions stand in any case."""
        moves = list[Move]()
        for subjob in job.subjobs:
            for task in self._pending(subjob.tasks):
                found = self._for_task(job, subjob, task, partial(_less, task))
                if found is None:
                    break
                moves.append(Move(subjob, task, found[0], waits=False))
                self.allocate.do(job, moves[-1])
        if job.ready():
            self._keep(moves)

    def _pending(self, tasks: Sequence[Task]) -> Iterator[Task]:
        return (task for task in tasks if task.index not in self.state.place and not is_best_effort(task))

    def _for_task(
        self, job: JobInfo, subjob: SubJob, task: Task, may_go: Callable[[Pod], bool]
    ) -> tuple[int, list[Pod]] | None:
        nodes = self.state.everywhere
        for each in self.allocate.step.filters[1:]:
            nodes = nodes[each(task, nodes)]
        scores = self.allocate.scores(subjob, task, nodes)
        for node in nodes[np.argsort(-scores, kind="stable")].tolist():
            gone = self._make_room(job, task, node, sorted(filter(may_go, self._there(node)), key=self._victim_order))
            if gone is not None:
                return node, gone
        return None

    def _make_room(self, job: JobInfo, task: Task, node: int, victims: Sequence[Pod]) -> list[Pod] | None:
        room = self.state.idle[node] + self.state.requested(pod.key for pod in victims)
        if not victims or not _covers(room, task.request):
            return None
        gone = list[Pod]()
        while not self._fits(job, task, node):
            if len(gone) == len(victims):
                self._restore(gone)
                return None
            gone.append(victims[len(gone)])
            self._evict(gone[-1])
        return gone

    def _fits(self, job: JobInfo, task: Task, node: int) -> bool:
        return self.session.proportion.allows(job.queue, task) and _covers(self.state.idle[node], task.request)

    def _victim_order(self, pod: Pod) -> tuple[float, ...]:
        """Against the orders of jobs and of pods: low priority first, then the youngest."""
        group = self._group(pod)
        age = (-group.created,) if group is not None else (-pod.created,)
        return (self._priority(pod), *age, pod.priority, -pod.created)

    def in_domains(self, job: JobInfo) -> None:
        sheet = Worksheet.of(job)
        need = sum((task.request for _, _, tasks in sheet.queue for task in tasks), np.zeros_like(self.state.alloc[0]))
        for domain in self._domains(job, need):
            gone = list[Pod]()
            for _, pods in sorted(self._bundles(job, domain, need), key=itemgetter(0)):
                for pod in pods:
                    self._evict(pod)
                gone += pods
                if _covers(self.state.idle[self.allocate.domains.nodes[domain]].sum(axis=0), need):
                    plan = self.allocate.in_domain(job, sheet, domain)
                    if plan:
                        self._keep(plan)
                        return
            self._restore(gone)

    def _domains(self, job: JobInfo, need: IntArray) -> list[int]:
        domains = self.allocate.domains
        limit = domains.max_tier if job.limit is None else job.limit
        found = [
            each
            for each in domains.below(domains.top)
            if domains.tier[each] <= limit and _covers(domains.alloc[each], need)
        ]
        self.state.random.shuffle(found)
        return sorted(found, key=lambda each: -domains.tier[each])[:_MOST_DOMAINS]

    def _bundles(self, job: JobInfo, domain: int, need: IntArray) -> Iterator[_VictimBundle]:
        of_job: dict[object, list[Pod]] = defaultdict(list)
        for node in self.allocate.domains.nodes[domain].tolist():
            for pod in self._there(node):
                if self._of_other_job(pod, job):
                    of_job[pod.group or pod.key].append(pod)
        for pods in of_job.values():
            pods.sort(key=lambda pod: (pod.priority, pod.key))
            spare = self._spare(pods)
            for safe, part in ((True, pods[:spare]), (False, pods[spare:])):
                if part:
                    yield self._bundle(safe, part, need)

    def _spare(self, pods: Sequence[Pod]) -> int:
        """How many of some pods of a job can go without it; all of them where it is not ready anyway."""
        group = self._group(pods[0])
        if group is None:
            return 0
        spare = len(group.bound) - group.min_member
        return len(pods) if spare < 0 else spare

    def _bundle(self, safe: bool, pods: Sequence[Pod], need: IntArray) -> _VictimBundle:
        group, first = self._group(pods[0]), pods[0]
        size, created = (1, first.created) if group is None else (len(group.bound), group.created)
        taken = np.minimum(self.state.requested(pod.key for pod in pods), need)
        share = float((taken / np.maximum(need, 1)).sum()) / size
        return (not safe, self._priority(first), -created, -share, str(first.key)), pods

    def _there(self, node: int) -> Iterator[Pod]:
        return (pod for pod in self._running.get(node, ()) if pod.key not in self.state.evicted)

    def _group(self, pod: Pod) -> Group | None:
        return None if pod.group is None else self._groups[pod.group]

    def _priority(self, pod: Pod) -> int:
        group = self._group(pod)
        return pod.priority if group is None else job_priority(group)

    def _queue(self, pod: Pod) -> str:
        group = self._group(pod)
        return (pod.queue if group is None else group.queue) or "default"

    def _of_other_job(self, pod: Pod, job: JobInfo) -> bool:
        system = pod.priority >= SYSTEM_PRIORITY or pod.namespace == "kube-system"
        return (
            pod.group != job.group.key
            and not system
            and self._queue(pod) == job.queue
            and self._priority(pod) < job_priority(job.group)
        )

    def _evict(self, pod: Pod, sign: int = 1) -> None:
        self.state.evict(pod, sign)
        self.allocate.domains.leave(self.state.number[pod.node or ""], sign * self.state.row(pod.requests))
        if pod.group is not None:
            self.session.proportion.allocated[self._queue(pod)] -= sign * self.state.row(pod.requests)

    def _restore(self, gone: Sequence[Pod]) -> None:
        for pod in reversed(gone):
            self._evict(pod, -1)

    def _keep(self, moves: Sequence[Move]) -> None:
        self.bound += [(move.task.key, self.state.names[move.node]) for move in moves]


def _covers(room: IntArray, request: IntArray) -> bool:
    return bool((request <= np.maximum(room, 0))[request > 0].all())


def _less(task: Task, pod: Pod) -> bool:
    return pod.group == task.pod.group and pod.priority < task.pod.priority
