"""The action allocate: HyperNodes, subjobs and pods one after another; all tries but the best are undone.

Source: Volcano ``pkg/scheduler/actions/allocate/allocate.go``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from placer.policies.ledger import FloatArray, IntArray, Ledger, Task
from placer.policies.step import Filter, Score, Step
from placer.policies.volcano.domains import Domains
from placer.policies.volcano.jobs import Job, SubJob, is_best_effort, required, subjob_order
from placer.policies.volcano.queues import Proportion
from placer.policies.volcano.topology import TopologyAware

__all__ = ["Allocate", "Move", "Worksheet"]


class Move(NamedTuple):
    """A pod that takes room on a node, or (``waits``) that waits for room there."""

    subjob: SubJob
    task: Task
    node: int
    waits: bool


@dataclass(slots=True)
class Worksheet:
    """What is left to try of a job.

    Parameters
    ----------
    left
        Subjob to its pods that were not tried yet, in order. A pod that found no node is gone from it.
    first
        Uids of subjobs that go before the rest.
    """

    left: dict[SubJob, list[Task]] = field(default_factory=dict)
    first: frozenset[str] = frozenset()

    @classmethod
    def of(cls, job: Job) -> Worksheet:
        """Begin with all pending pods that request anything."""
        tasks = {each: [task for task in each.tasks if not is_best_effort(task)] for each in job.subjobs}
        return cls({each: mine for each, mine in tasks.items() if mine}, frozenset(required(job)))

    def clone(self) -> Worksheet:
        """Copy, for a try."""
        return Worksheet({each: list(tasks) for each, tasks in self.left.items()}, self.first)

    def pop(self, job: Job) -> SubJob:
        """The next subjob."""
        return min(self.left, key=lambda each: (each.uid not in self.first, *subjob_order(job, each)))


class _Solution(NamedTuple):
    """A try that worked."""

    domain: int
    score: float
    moves: list[Move]
    worksheet: Worksheet
    anchors: dict[SubJob, int | None]


class Allocate:
    """One session's tries.

    Parameters
    ----------
    ledger, domains
        What is where.
    proportion
        Whether a queue may have more.
    topology
        The plug-in network-topology-aware; None: it is off, and only the whole cluster is tried.
    filters, scores
        Of pods on nodes, besides room and the topology's own score.
    """

    def __init__(
        self,
        ledger: Ledger,
        domains: Domains,
        proportion: Proportion,
        topology: TopologyAware | None,
        filters: Iterable[Filter],
        scores: Iterable[Score],
    ) -> None:
        self.ledger = ledger
        self.domains = domains
        self.proportion = proportion
        self.topology = topology
        self._subjob: SubJob | None = None
        self._anchor: int | None = None
        scores = list(scores)
        if topology is not None:
            scores.append(Score("network-topology-aware", 1, self._topology_score))
        self.step = Step(ledger, (ledger.fits_later, *filters), scores)

    def _topology_score(self, task: Task, nodes: IntArray) -> FloatArray:
        assert self.topology is not None
        assert self._subjob is not None
        return self.topology.nodes(self._subjob, self._anchor, task, nodes)

    # ---------------------------------------------------------------------------------------------------------- moves

    def do(self, job: Job, move: Move) -> None:
        """Carry out a move."""
        if move.waits:
            self.ledger.wait(move.task, move.node)
            job.pipeline(move.subjob, move.task)
        else:
            self.ledger.assume(move.task, move.node)
            job.place(move.subjob, move.task, move.node)

    def undo(self, job: Job, moves: list[Move]) -> None:
        """Take moves back, last one first."""
        for move in reversed(moves):
            if move.waits:
                self.ledger.wait(move.task, move.node, -1)
                job.pipeline(move.subjob, move.task, -1)
            else:
                self.ledger.forget(move.task)
                job.place(move.subjob, move.task, move.node, -1)

    # ---------------------------------------------------------------------------------------------------------- tries

    def for_job(self, job: Job, worksheet: Worksheet) -> list[Move]:
        """Place a job's next pods; its worksheet and anchors follow. No moves: nothing worked."""
        for gradient in self._gradients(job, None, self.domains.top):
            solutions = []
            for domain in gradient:
                solution = self._try_job(job, worksheet.clone(), domain)
                if solution is not None:
                    solutions.append(solution)
            if solutions:
                best = self._best(solutions, np.array([each.score for each in solutions]))
                for move in best.moves:
                    self.do(job, move)
                worksheet.left = best.worksheet.left
                if job.ready():
                    self._keep_anchors(job, best)
                return best.moves
        return []

    def _keep_anchors(self, job: Job, solution: _Solution) -> None:
        job.anchor = self.domains.common(job.anchor, solution.domain)
        for subjob, anchor in solution.anchors.items():
            subjob.anchor = anchor

    def _try_job(self, job: Job, worksheet: Worksheet, domain: int) -> _Solution | None:
        """Subjob after subjob inside one HyperNode, until the job is ready; all is taken back."""
        job.failed.clear()
        moves, score = list[Move](), 0.0
        before = {subjob: subjob.anchor for subjob in job.subjobs}
        while worksheet.left:
            subjob = worksheet.pop(job)
            tasks = worksheet.left.pop(subjob)
            found = self._for_subjob(job, subjob, tasks, domain)
            if found is None:
                continue
            moves += found.moves
            score += found.score
            if found.worksheet.left:
                worksheet.left |= found.worksheet.left
            if job.ready():
                break
        works = bool(moves) and (job.ready() or job.ready(pipelined=True))
        anchors = {subjob: subjob.anchor for subjob in job.subjobs}
        for subjob, anchor in before.items():
            subjob.anchor = anchor
        self.undo(job, moves)
        return _Solution(domain, score, moves, worksheet, anchors) if works else None

    def _for_subjob(self, job: Job, subjob: SubJob, tasks: list[Task], within: int) -> _Solution | None:
        """The best HyperNode of the lowest gradient that works; its moves are carried out."""
        for gradient in self._gradients(job, subjob, within):
            solutions = []
            for domain in gradient:
                for task in [task for task, where in job.failed.items() if where is subjob]:
                    del job.failed[task]
                left = list(tasks)
                moves = self.for_tasks(job, subjob, left, domain)
                if moves:
                    self.undo(job, moves)
                    rest = Worksheet({subjob: left} if left else {})
                    solutions.append(_Solution(domain, 0.0, moves, rest, {}))
            if solutions:
                scores = self._hyper_scores(subjob, [each.domain for each in solutions])
                best = self._best(solutions, scores)
                for move in best.moves:
                    self.do(job, move)
                subjob.anchor = self.domains.common(subjob.anchor, best.domain)
                return best._replace(score=float(scores.max()))
        return None

    def for_tasks(self, job: Job, subjob: SubJob, left: list[Task], domain: int) -> list[Move]:
        """Pod after pod on the nodes of a HyperNode, until the subjob is ready.

        Returns
        -------
        list of Move
            Carried out; empty where the subjob does not become ready, or was and nothing more fits.
        """
        nodes, moves = self.domains.nodes[domain], list[Move]()
        self._subjob, self._anchor = subjob, subjob.anchor
        while left and len(nodes):
            task = left.pop(0)
            if not self.proportion.allows(job.queue, task):
                continue
            if task.pod.role and task.pod.role in job.failed_roles(subjob):
                job.failed[task] = subjob
                continue
            feasible = self.step.feasible(task, nodes)
            if not len(feasible):
                job.failed[task] = subjob
                if job.goes_on(subjob):
                    continue
                break
            moves.append(self._move(subjob, task, feasible))
            self.do(job, moves[-1])
            if subjob.wanted is not None and self.topology is not None:
                self._anchor = self.topology.moved(self._anchor, moves[-1].node)
            if job.subjob_ready(subjob):
                break
        if job.subjob_ready(subjob) or job.subjob_ready(subjob, pipelined=True):
            return moves
        self.undo(job, moves)
        return []

    def _move(self, subjob: SubJob, task: Task, feasible: IntArray) -> Move:
        """The best node among those with room now, else among those that will have it."""
        now = feasible[self.ledger.fits(task, feasible)] if self.ledger.any_releasing else feasible
        return Move(subjob, task, self.step.best(task, now if len(now) else feasible), not len(now))

    # --------------------------------------------------------------------------------------------------------- choice

    def _gradients(self, job: Job, subjob: SubJob | None, within: int) -> list[list[int]]:
        if self.topology is None:
            return [[within]]
        if subjob is None:
            return self.topology.gradients(job.wanted, job.anchor, within, None)
        pending = [task for task in subjob.tasks if task.index not in self.ledger.place]
        request = sum((task.request for task in pending), start=np.zeros_like(subjob.request))
        return self.topology.gradients(subjob.wanted, subjob.anchor, within, request)

    def _hyper_scores(self, subjob: SubJob, domains: list[int]) -> FloatArray:
        return np.zeros(len(domains)) if self.topology is None else self.topology.hyper_nodes(subjob, domains)

    def _best(self, solutions: list[_Solution], scores: FloatArray) -> _Solution:
        """The one with the highest score; of several one at random."""
        ties = np.flatnonzero(scores == scores.max())
        return solutions[int(ties[self.ledger.random.randrange(len(ties))])]
