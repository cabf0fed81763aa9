"""The action allocate: HyperNodes, subjobs and pods one after another; all tries but the best are undone.

Source: Volcano ``pkg/scheduler/actions/allocate/allocate.go``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from placer.lab.policies.framework import (
    ClusterState,
    Filter,
    FloatArray,
    IntArray,
    SchedulingCycle,
    Score,
    Task,
)
from placer.lab.policies.volcano.jobs import (
    HyperNodesInfo,
    JobInfo,
    SubJob,
    is_best_effort,
    required,
    subjob_order,
)

if TYPE_CHECKING:
    from placer.lab.policies.volcano.queues import Proportion
    from placer.lab.policies.volcano.topology import TopologyAware

__all__ = ["Allocate", "Move", "Worksheet"]


class Move(NamedTuple):
    """A pod that takes room on a node, or (``waits``) that waits for room there."""

    subjob: SubJob
    task: Task
    node: int
    waits: bool


#: A subjob with its pods that were not tried yet, in order, behind the key of its turn.
Entry = tuple[tuple[Any, ...], SubJob, list[Task]]


@dataclass(slots=True)
class Worksheet:
    """The rest of a job: a heap of subjobs, without pods that found no node, and uids of those that go first."""

    queue: list[Entry] = field(default_factory=list)
    first: frozenset[str] = frozenset()

    @classmethod
    def of(cls, job: JobInfo) -> Worksheet:
        """Begin with all pending pods that request anything."""
        sheet = cls(first=frozenset(required(job)))
        for each in job.subjobs:
            sheet.push(job, each, [task for task in each.tasks if not is_best_effort(task)])
        return sheet

    def push(self, job: JobInfo, subjob: SubJob, tasks: list[Task]) -> None:
        """Add a subjob, unless nothing is left of it."""
        if tasks:
            heappush(self.queue, ((subjob.uid not in self.first, *subjob_order(job, subjob)), subjob, tasks))

    def pop(self) -> tuple[SubJob, list[Task]]:
        """The next subjob and its pods."""
        return heappop(self.queue)[1:]

    def clone(self) -> Worksheet:
        """Copy, for a try."""
        return Worksheet(list(self.queue), self.first)


class _DomainPlan(NamedTuple):
    """A try for a domain that works, undone, and the sum of the scores of its subjobs' HyperNodes.

    ``subjob`` is the last one, ``inner`` its HyperNode; ``tasks`` are pods that are known to fit, where ``moves`` are
    not made yet.
    """

    domain: int
    score: float
    subjob: SubJob
    inner: int
    anchors: dict[SubJob, int | None]
    moves: list[Move]
    queue: list[Entry]
    tasks: tuple[Task, ...] = ()

    def carried_out(self, moves: list[Move]) -> _DomainPlan:
        return self._replace(moves=moves, tasks=())


class Allocate:
    """One session's tries; without ``topology`` only the whole cluster is tried."""

    def __init__(
        self,
        state: ClusterState,
        domains: HyperNodesInfo,
        proportion: Proportion,
        topology: TopologyAware | None,
        filters: Iterable[Filter],
        scores: Iterable[Score],
    ) -> None:
        self.state = state
        self.domains = domains
        self.proportion = proportion
        self.topology = topology
        self._numbers = np.arange(len(state.names))
        # Room that is being left, and nodes that are over-full, keep sums from telling.
        self._blurred = state.any_releasing or bool((state.idle < 0).any())
        self._subjob: SubJob | None = None
        self._anchor: int | None = None
        scores = list(scores)
        if topology is not None:
            scores.append(Score("network-topology-aware", 1, self._topology_score))
        self.step = SchedulingCycle(state, (state.fits_later, *filters), scores)

    def _topology_score(self, task: Task, nodes: IntArray) -> FloatArray:
        assert self.topology is not None
        assert self._subjob is not None
        return self.topology.nodes(self._subjob, self._anchor, task, nodes)

    def scores(self, subjob: SubJob, task: Task, nodes: IntArray) -> FloatArray:
        """Scores of nodes for a pod of a subjob, room apart."""
        self._subjob, self._anchor = subjob, subjob.anchor
        return self.step.total(task, nodes)

    def fill(self, subjob: SubJob, task: Task) -> int | None:
        """The node that backfill takes: the best of all; to a pod that comes by backfill no HyperNode is near."""
        self._subjob, self._anchor = subjob, None
        return self.step.choose(task, self.state.everywhere)

    def do(self, job: JobInfo, move: Move, sign: int = 1) -> None:
        """Carry out a move, or (sign -1) take it back."""
        if move.waits:
            self.state.wait(move.task, move.node, sign)
            job.pipeline(move.subjob, move.task, sign)
            return
        if sign > 0:
            self.state.assume(move.task, move.node)
        else:
            self.state.forget(move.task)
        job.place(move.subjob, move.task, move.node, sign)

    def undo(self, job: JobInfo, moves: list[Move]) -> None:
        """Take moves back, last one first."""
        for move in reversed(moves):
            self.do(job, move, -1)

    def for_job(self, job: JobInfo, worksheet: Worksheet) -> list[Move]:
        """Place a job's next pods; its worksheet and anchors follow. No moves: nothing worked."""
        for gradient in self._gradients(job, None, self.domains.top):
            solutions = self._solutions(job, worksheet, gradient)
            if solutions:
                best = solutions[self.state.best(np.array([each.score for each in solutions]))]
                if best.tasks:
                    best = best.carried_out(self.for_tasks(job, best.subjob, list(best.tasks), best.inner))
                else:
                    for move in best.moves:
                        self.do(job, move)
                worksheet.queue = best.queue
                if job.ready():
                    self._keep_anchors(job, best)
                return best.moves
        return []

    def in_domain(self, job: JobInfo, worksheet: Worksheet, domain: int) -> list[Move]:
        """Place a job's pods in one HyperNode, moves carried out; none where it does not become ready there."""
        plan = self._try_job(job, worksheet.clone(), domain)
        for move in plan.moves if plan is not None else ():
            self.do(job, move)
        return plan.moves if plan is not None else []

    def _solutions(self, job: JobInfo, worksheet: Worksheet, gradient: list[int]) -> list[_DomainPlan]:
        if not job.group.policies:
            ((_, subjob, tasks),) = worksheet.queue
            slots = self._slots(job, subjob, tasks)
            if slots is not None:
                return [each for domain in gradient if (each := self._counted(job, subjob, tasks, slots, domain))]
        tries = (self._try_job(job, worksheet.clone(), domain) for domain in gradient)
        return [each for each in tries if each is not None]

    def _counted(
        self, job: JobInfo, subjob: SubJob, tasks: list[Task], slots: IntArray, domain: int
    ) -> _DomainPlan | None:
        for gradient in self._gradients(job, subjob, domain):
            inner = [each for each in gradient if slots[self.domains.nodes[each]].sum() >= len(tasks)]
            if inner:
                scores = self._hyper_scores(subjob, inner)
                chosen = inner[self.state.best(scores)]
                anchor = self.domains.common(subjob.anchor, chosen)
                return _DomainPlan(domain, float(scores.max()), subjob, chosen, {subjob: anchor}, [], [], tuple(tasks))
        return None

    def _keep_anchors(self, job: JobInfo, solution: _DomainPlan) -> None:
        job.anchor = self.domains.common(job.anchor, solution.domain)
        for subjob, anchor in solution.anchors.items():
            subjob.anchor = anchor

    def _try_job(self, job: JobInfo, worksheet: Worksheet, domain: int) -> _DomainPlan | None:
        job.failed.clear()
        moves, score, last = list[Move](), 0.0, None
        before = {subjob: subjob.anchor for subjob in job.subjobs}
        while worksheet.queue:
            subjob, tasks = worksheet.pop()
            found, left = self._for_subjob(job, subjob, tasks, domain)
            if found is None:
                continue
            moves, score, last = moves + found.moves, score + found.score, found
            worksheet.push(job, subjob, left)
            if job.ready():
                break
        works = job.ready() or job.ready(pipelined=True)
        anchors = {subjob: subjob.anchor for subjob in job.subjobs}
        for subjob, anchor in before.items():
            subjob.anchor = anchor
        self.undo(job, moves)
        if last is None or not works:
            return None
        return _DomainPlan(domain, score, last.subjob, last.inner, anchors, moves, worksheet.queue)

    def _for_subjob(
        self, job: JobInfo, subjob: SubJob, tasks: list[Task], within: int
    ) -> tuple[_DomainPlan | None, list[Task]]:
        """The best HyperNode of the lowest gradient that works, its moves carried out; and the pods not tried there."""
        slots = self._slots(job, subjob, tasks)
        if slots is not None:
            found = self._counted(job, subjob, tasks, slots, within)
            if found is not None:
                found = found.carried_out(self._dry_run(job, subjob, list(tasks), found.inner))
                subjob.anchor = found.anchors[subjob]
            return found, []
        for gradient in self._gradients(job, subjob, within):
            tries = list(self._tries(job, subjob, tasks, gradient))
            if tries:
                scores = self._hyper_scores(subjob, [domain for domain, _, _ in tries])
                domain, moves, left = tries[self.state.best(scores)]
                for move in moves:
                    self.do(job, move)
                subjob.anchor = self.domains.common(subjob.anchor, domain)
                return _DomainPlan(within, float(scores.max()), subjob, domain, {}, moves, []), left
        return None, []

    def _tries(
        self, job: JobInfo, subjob: SubJob, tasks: list[Task], gradient: Iterable[int]
    ) -> Iterator[tuple[int, list[Move], list[Task]]]:
        """HyperNodes that work, each with its moves, taken back, and the pods that were not tried there."""
        needed = self._needed(subjob, tasks)
        for domain in gradient:
            if needed is not None and (needed > self.domains.alloc[domain] - self.domains.used[domain]).any():
                continue
            left = list(tasks)
            moves = self._dry_run(job, subjob, left, domain)
            if moves:
                self.undo(job, moves)
                yield domain, moves, left

    def _dry_run(self, job: JobInfo, subjob: SubJob, left: list[Task], domain: int) -> list[Move]:
        for task in [task for task, where in job.failed.items() if where is subjob]:
            del job.failed[task]
        return self.for_tasks(job, subjob, left, domain)

    def _needed(self, subjob: SubJob, tasks: list[Task]) -> IntArray | None:
        """None where pods may be missing. Volcano tries all the same, having only the idle sums of the start."""
        if subjob.size < subjob.total or self._blurred:
            return None
        return sum((task.request for task in tasks), start=np.zeros_like(subjob.request))

    def _slots(self, job: JobInfo, subjob: SubJob, tasks: list[Task]) -> IntArray | None:
        """How many of the pods each node has room for, shape (nodes,): then counting shows the result of a try.

        None where pods differ or have host ports, not all of them are needed or not even all are enough, the queue
        allows only some, or room is still being left.
        """
        first, state = tasks[0], self.state
        alike = all(
            task.request is first.request and task.eligible is first.eligible and not _looks_around(task)
            for task in tasks
        )
        if not alike or subjob.size != subjob.total or state.any_releasing or not len(first.asked):
            return None
        if not self.proportion.allows(job.queue, first, len(tasks)):
            return None
        feasible = np.ones(len(state.names), dtype=bool)
        for each in self.step.filters:
            feasible &= each(first, self._numbers)
        found: IntArray = (state.idle[:, first.asked] // first.request[first.asked]).min(axis=1)
        return np.where(feasible, found, 0)

    def for_tasks(self, job: JobInfo, subjob: SubJob, left: list[Task], domain: int) -> list[Move]:
        """Pod after pod on the nodes of a HyperNode, until the subjob is ready; no moves where it does not become
        so.
        """
        nodes, moves = self.domains.nodes[domain], list[Move]()
        self._subjob, self._anchor = subjob, subjob.anchor
        while left and len(nodes):
            task = left.pop(0)
            if not self.proportion.allows(job.queue, task):
                continue
            alike_failed = task.pod.role in job.failed_roles(subjob) - {""}
            feasible = nodes[:0] if alike_failed else self.step.feasible(task, nodes)
            if len(feasible):
                moves.append(self._move(subjob, task, feasible))
                self._carry_out(job, moves[-1])
                if job.subjob_ready(subjob):
                    break
            else:
                job.failed[task] = subjob
                if not (alike_failed or job.goes_on(subjob)):
                    break
        return self._kept(job, subjob, moves)

    def _kept(self, job: JobInfo, subjob: SubJob, moves: list[Move]) -> list[Move]:
        if job.subjob_ready(subjob) or job.subjob_ready(subjob, pipelined=True):
            return moves
        self.undo(job, moves)
        return []

    def _carry_out(self, job: JobInfo, move: Move) -> None:
        self.do(job, move)
        if move.subjob.wanted is not None and self.topology is not None:
            self._anchor = self.topology.moved(self._anchor, move.node)

    def _move(self, subjob: SubJob, task: Task, feasible: IntArray) -> Move:
        now = feasible[self.state.fits(task, feasible)] if self.state.any_releasing else feasible
        return Move(subjob, task, self.step.best(task, now if len(now) else feasible), not len(now))

    def _gradients(self, job: JobInfo, subjob: SubJob | None, within: int) -> list[list[int]]:
        if self.topology is None:
            return [[within]]
        if subjob is None:
            least = self.state.row(job.group.min_resources)
            return self.topology.gradients(job.wanted, job.anchor, within, least)
        pending = [task for task in subjob.tasks if task.index not in self.state.place]
        request = sum((task.request for task in pending), start=np.zeros_like(subjob.request))
        return self.topology.gradients(subjob.wanted, subjob.anchor, within, request)

    def _hyper_scores(self, subjob: SubJob, domains: list[int]) -> FloatArray:
        return np.zeros(len(domains)) if self.topology is None else self.topology.hyper_nodes(subjob, domains)


def _looks_around(task: Task) -> bool:
    return bool(task.pod.host_ports or task.pod.neighbours)
