"""What is where while a policy runs, by index: room on nodes, pods that are assumed there, and the way back."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
import numpy.typing as npt

from placer.dense.eligibility import Eligibility
from placer.instance import Constraints, HostPort, Instance, Key, Pod, PodState
from placer.quantity import CPU, Resources

__all__ = ["BoolArray", "ClusterState", "FloatArray", "IntArray", "Listener", "Task"]

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
    index
        Its place among the pending pods.
    pod
        The pod.
    request
        int64, shape (resources,).
    asked
        Indices of the resources that it requests.
    scored
        Its request with the least amounts of cpu and memory that scores count for a pod, shape (resources,).
    eligible
        bool, shape (nodes,): where it may run (C3); nowhere, where it asks for what is not modelled (C4).
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
    """Nodes and pending pods by index.

    Parameters
    ----------
    instance
        The problem.
    seed
        Of every random choice: ties, and the order in which a scheduler happens to hold its nodes.
    """

    def __init__(self, instance: Instance, seed: int) -> None:
        self.instance = instance
        self.random = Random(seed)
        self.names = list(instance.nodes)
        self.number = {name: index for index, name in enumerate(self.names)}
        self.resources = _resources(instance)
        self.column = {name: index for index, name in enumerate(self.resources)}
        self.alloc = self._rows(node.allocatable for node in instance.nodes.values())
        self.idle = self.alloc.copy()
        self.releasing = np.zeros_like(self.alloc)
        self.pipelined = np.zeros_like(self.alloc)
        self.scored = np.zeros_like(self.alloc)
        self.ports: dict[int, list[HostPort]] = defaultdict(list)
        self._take_held()
        self.any_releasing = bool(self.releasing.any())
        self.listeners: list[Listener] = []
        self.place: dict[int, int] = {}
        order = list(range(len(self.names)))
        self.random.shuffle(order)
        #: All nodes, in the order in which this scheduler happens to hold them.
        self.everywhere: IntArray = np.array(order, dtype=np.int64)
        self.tasks = self._tasks()
        self.task_of = {task.key: task for task in self.tasks}

    def row(self, requests: Resources) -> IntArray:
        """Amounts in the order of ``resources``."""
        return np.array([min(requests[name], _MOST) for name in self.resources], dtype=np.int64)

    def _rows(self, amounts: object) -> IntArray:
        rows = [self.row(each) for each in amounts]  # type: ignore[attr-defined]
        return np.array(rows, dtype=np.int64).reshape(len(rows), len(self.resources))

    def _take_held(self) -> None:
        """Take off what bound, terminating and nominated pods hold."""
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

    # ------------------------------------------------------------------------------------------------------- as it is

    @property
    def used(self) -> IntArray:
        """What pods take of each node, shape (nodes, resources)."""
        return self.alloc - self.idle

    def fits(self, task: Task, nodes: IntArray, ignored: Sequence[int] = ()) -> BoolArray:
        """Where the request fits into what is idle now; of ignored resources, by column, all do."""
        asked = task.asked if not ignored else task.asked[~np.isin(task.asked, ignored)]
        found: BoolArray = np.all(self.idle[nodes[:, None], asked] >= task.request[asked], axis=1)
        return found

    def fits_later(self, task: Task, nodes: IntArray) -> BoolArray:
        """Where it fits once terminating pods are gone, less what other pods wait for there."""
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

    # ------------------------------------------------------------------------------------------------------- changing

    def assume(self, task: Task, node: int) -> None:
        """Let a pod take its room."""
        self._change(task, node, 1)
        self.place[task.index] = node

    def forget(self, task: Task) -> None:
        """Give back what an assumed pod took."""
        self._change(task, self.place.pop(task.index), -1)

    def wait(self, task: Task, node: int, sign: int = 1) -> None:
        """Let a pod wait for room that terminating pods will leave, or (sign -1) wait no more."""
        self.pipelined[node] += sign * task.request

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
