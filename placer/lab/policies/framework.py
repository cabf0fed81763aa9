"""Shared by all policies: the state by index, one step for a pod (filter, score, take one of the best), one loop.

Source: Kubernetes ``pkg/scheduler/schedule_one.go``; Volcano ``pkg/scheduler/util/scheduler_helper.go``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from placer.arrays.eligibility import Eligibility
from placer.base.deadline import NEVER, Deadline
from placer.base.quantity import CPU, Resources
from placer.problem import Constraints, HostPort, Instance, Key, Pod, PodState
from placer.problem.placement import Placement

__all__ = [
    "BoolArray",
    "ClusterState",
    "Filter",
    "FloatArray",
    "IntArray",
    "Scheduler",
    "SchedulingCycle",
    "Score",
    "Settlement",
    "Task",
    "eligible",
    "enough",
    "priority_sort",
    "schedule",
]


BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

#: Amounts above this are cut to it, so that sums over a node fit into 64 bits.
_MOST = 2**60
#: What a pod counts as in scores where it requests none: 100 milli-cpu, 200 MiB.
#: Source: Kubernetes ``pkg/scheduler/util/pod_resources.go``.
_LEAST_SCORED = {CPU: 100, "memory": 200 * 2**20}


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """A pending pod as the policies see it.

    Parameters
    ----------
    request, scored
        int64, shape (resources,); the second with the least amounts of cpu and memory that scores count.
    asked
        Indices of the resources that it requests.
    eligible
        bool, shape (nodes,): where it may run (C3); nowhere, where it asks for something that is not modelled (C4).
    """

    index: int
    pod: Pod
    request: IntArray
    asked: IntArray
    scored: IntArray
    eligible: BoolArray

    @property
    def key(self) -> Key:
        """Namespace and name."""
        return self.pod.key


#: Hears of every pod that takes room (+1) or gives it back (-1) on a node.
Listener = Callable[[Task, int, int], None]


class ClusterState:
    """Nodes and pending pods by index; the seed is of every random choice: ties, and the order of the nodes."""

    def __init__(self, instance: Instance, seed: int) -> None:
        self.instance = instance
        self.random = Random(seed)
        self.names = list(instance.nodes)
        self.number = {name: index for index, name in enumerate(self.names)}
        self.resources = _resources(instance)
        self.column = {name: index for index, name in enumerate(self.resources)}
        rows = [self.row(node.allocatable) for node in instance.nodes.values()]
        self.alloc: IntArray = np.array(rows, dtype=np.int64).reshape(len(rows), len(self.resources))
        self.idle = self.alloc.copy()
        self.releasing = np.zeros_like(self.alloc)
        self.pipelined = np.zeros_like(self.alloc)
        self.scored = np.zeros_like(self.alloc)
        self.ports: dict[int, list[HostPort]] = defaultdict(list)
        self._take_held()
        self.any_releasing = bool(self.releasing.any())
        self.listeners: list[Listener] = []
        self.place: dict[int, int] = {}
        #: Pods that were evicted, in this order.
        self.evicted: dict[Key, Pod] = {}
        order = list(range(len(self.names)))
        self.random.shuffle(order)
        #: All nodes, in the order in which this scheduler happens to hold them.
        self.everywhere: IntArray = np.array(order, dtype=np.int64)
        self.tasks = self._tasks()
        self.task_of = {task.key: task for task in self.tasks}

    def row(self, requests: Resources) -> IntArray:
        """Amounts in the order of ``resources``."""
        return np.array([min(requests[name], _MOST) for name in self.resources], dtype=np.int64)

    def requested(self, pods: Iterable[Key]) -> IntArray:
        """Sum of the requests of pods, shape (resources,)."""
        rows = (self.row(self.instance.pods[key].requests) for key in pods)
        return sum(rows, start=np.zeros(len(self.resources), dtype=np.int64))

    def best(self, scores: FloatArray) -> int:
        """Index of the highest score; of several one at random."""
        ties = np.flatnonzero(scores == scores.max())
        return int(ties[self.random.randrange(len(ties))])

    def _take_held(self) -> None:
        for pod in self.instance.pods.values():
            node = self.number.get(pod.node) if pod.node is not None else None
            if node is None:
                continue
            request = self.row(pod.requests)
            self.idle[node] -= request
            self.scored[node] += self._scored(request)
            self.ports[node].extend(pod.host_ports)
            if pod.state is PodState.TERMINATING:
                self.releasing[node] += request

    def _scored(self, request: IntArray) -> IntArray:
        counted = request.copy()
        for name, least in _LEAST_SCORED.items():
            if name in self.column and not counted[self.column[name]]:
                counted[self.column[name]] = least
        return counted

    def _tasks(self) -> list[Task]:
        eligibility = Eligibility(list(self.instance.nodes.values()))
        nowhere = np.zeros(len(self.names), dtype=bool)
        rows: dict[Constraints, BoolArray] = {}
        vectors: dict[Resources, tuple[IntArray, IntArray, IntArray]] = {}
        found = []
        for index, pod in enumerate(self.instance.pending):
            if pod.requests not in vectors:
                request = self.row(pod.requests)
                vectors[pod.requests] = request, np.flatnonzero(request), self._scored(request)
            if pod.constraints not in rows:
                rows[pod.constraints] = eligibility.row(pod.constraints)
            eligible = nowhere if pod.unsupported else rows[pod.constraints]
            found.append(Task(index, pod, *vectors[pod.requests], eligible))
        return found

    @property
    def used(self) -> IntArray:
        """Amounts that pods take of each node, shape (nodes, resources)."""
        return self.alloc - self.idle

    def fits(self, task: Task, nodes: IntArray, ignored: Sequence[int] = ()) -> BoolArray:
        """Where the request fits into the idle room; ignored resources, by column, do not count."""
        asked = task.asked if not ignored else task.asked[~np.isin(task.asked, ignored)]
        found: BoolArray = np.all(self.idle[nodes[:, None], asked] >= task.request[asked], axis=1)
        return found

    def fits_later(self, task: Task, nodes: IntArray) -> BoolArray:
        """Where it fits once terminating pods are gone, less the pods that wait for room there."""
        if not self.any_releasing:
            return self.fits(task, nodes)
        cells = nodes[:, None], task.asked
        future = self.idle[cells] + self.releasing[cells] - self.pipelined[cells]
        found: BoolArray = np.all(future >= task.request[task.asked], axis=1)
        return found

    def ports_free(self, task: Task, nodes: IntArray) -> BoolArray:
        """Where no host port of the pod is taken."""
        mine = task.pod.host_ports
        if not mine:
            return np.ones(len(nodes), dtype=bool)
        taken = (self.ports.get(int(node), ()) for node in nodes)
        return np.array([not any(one.clashes(other) for one in mine for other in there) for there in taken], dtype=bool)

    def assume(self, task: Task, node: int) -> None:
        """Let a pod take its room."""
        self._change(task, node, 1)
        self.place[task.index] = node

    def forget(self, task: Task) -> None:
        """Give back the room of an assumed pod."""
        self._change(task, self.place.pop(task.index), -1)

    def wait(self, task: Task, node: int, sign: int = 1) -> None:
        """Let a pod wait for room that terminating pods will leave, or (sign -1) wait no more."""
        self.pipelined[node] += sign * task.request

    def evict(self, pod: Pod, sign: int = 1) -> None:
        """Let a bound pod leave its node, or (sign -1) come back."""
        node, request = self.number[pod.node or ""], self.row(pod.requests)
        self.idle[node] += sign * request
        self.scored[node] -= sign * self._scored(request)
        for port in pod.host_ports:
            if sign > 0:
                self.ports[node].remove(port)
            else:
                self.ports[node].append(port)
        if sign > 0:
            self.evicted[pod.key] = pod
        else:
            del self.evicted[pod.key]

    def running(self) -> dict[int, list[Pod]]:
        """Node to the pods that run there, sorted by key."""
        found: dict[int, list[Pod]] = defaultdict(list)
        for pod in self.instance.pods.values():
            if pod.state is PodState.BOUND and pod.node in self.number:
                found[self.number[pod.node]].append(pod)
        return found

    def _change(self, task: Task, node: int, sign: int) -> None:
        self.idle[node] -= sign * task.request
        self.scored[node] += sign * task.scored
        for port in task.pod.host_ports:
            if sign > 0:
                self.ports[node].append(port)
            else:
                self.ports[node].remove(port)
        for listener in self.listeners:
            listener(task, node, sign)

    def named(self, tasks: Sequence[Task]) -> list[tuple[Key, str]]:
        """Pods and the names of the nodes that they are assumed on."""
        return [(task.key, self.names[self.place[task.index]]) for task in tasks]


def _resources(instance: Instance) -> tuple[str, ...]:
    names = {CPU, "memory"}
    for node in instance.nodes.values():
        names.update(node.allocatable)
    for pod in instance.pods.values():
        names.update(pod.requests)
    return tuple(sorted(names))


#: Which of the nodes a pod may go to.
Filter = Callable[[Task, IntArray], BoolArray]
#: Up to so many nodes all are looked at, and so many feasible ones are looked for at least.
_FEW = 100


@dataclass(frozen=True, slots=True)
class Score:
    """A score plug-in: raw scores ``of`` feasible nodes, brought to 0 .. 100 over all of them by ``normalise``, if they
    are not there already, times its weight.
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
    """Number of feasible nodes that ends the search for more.

    ``percentage`` is ``percentageOfNodesToScore``; 0: 50 less one for each 125 nodes, at least 5.
    """
    if nodes <= _FEW or percentage >= 100:
        return nodes
    share = percentage or max(5, 50 - nodes // 125)
    return max(_FEW, nodes * share // 100)


def eligible(task: Task, nodes: IntArray) -> BoolArray:
    """Taints, cordons, selectors and affinity: one row per pod (C3)."""
    return task.eligible[nodes]


def priority_sort(task: Task) -> tuple[int, float, tuple[str, str]]:
    """PrioritySort: higher priority, then older; of equal age by key."""
    return -task.pod.priority, task.pod.created, task.key


class SchedulingCycle:
    """Filters of one policy, all of which must let a node through, and scores, whose weighted sum decides."""

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
        return int(nodes[self.state.best(self.total(task, nodes))])

    def choose(self, task: Task, nodes: IntArray) -> int | None:
        """The node for a pod; None where none is feasible."""
        left = self.feasible(task, nodes)
        return self.best(task, left) if len(left) else None


#: What is tried at once: a pod, or a job.
Unit = TypeVar("Unit")


@dataclass(frozen=True, slots=True)
class Settlement:
    """The decision of the gang rule: pods that are bound now, and assumed pods that give their room back."""

    bind: Sequence[Task] = ()
    release: Sequence[Task] = ()


class Scheduler(Protocol, Generic[Unit]):
    """The protocol of a policy for the loop."""

    state: ClusterState

    def next(self) -> Unit | None:
        """The next unit by the queue's order; None: none is left."""

    def attempt(self, unit: Unit) -> None:
        """Filter, score, and assume pods on the nodes chosen for them."""

    def settle(self, unit: Unit) -> Settlement:
        """Apply the gang rule to the assumed pods."""


def schedule(scheduler: Scheduler[Unit], deadline: Deadline = NEVER) -> tuple[Placement, bool]:
    """Run a policy to its end, or until a deadline; whether it came to its end."""
    state, bound = scheduler.state, list[tuple[Key, str]]()
    while (unit := scheduler.next()) is not None:
        if deadline.over:
            return Placement.of(bound), False
        scheduler.attempt(unit)
        settlement = scheduler.settle(unit)
        for task in settlement.release:
            state.forget(task)
        bound += state.named(settlement.bind)
    return Placement.of(bound), True
