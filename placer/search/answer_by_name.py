"""First fit by name: the answer where the time is over before anything was decided.

The namespace that took least work comes next, so that the objects of one cannot use up the time of all others. Only
groups are placed of which C2, C3, queues, host ports and the terms of running pods say everything.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush
from itertools import chain

from placer.base.deadline import Deadline
from placer.base.quantity import Resources
from placer.problem import Constraints, Group, Instance, Key, Pod
from placer.problem.instance import TakenPorts
from placer.problem.outcome import Outcome
from placer.problem.placement import Placement
from placer.problem.pod_index import PodIndex, domain_of, owners_of_terms

#: Seconds for it, where nothing is decided a second after the limit.
FIRST_FIT = 0.5


def first_fit(instance: Instance, deadline: Deadline) -> Placement:
    """Place plain groups, each whole or as far as it needs, on the first nodes with room; every hard rule is kept."""
    fit = _FirstFit(instance)
    fit.place_all(deadline)
    placed = Placement.of(fit.chosen)
    outcome = Outcome(instance, placed)
    ready = {key for group in instance.groups.values() if outcome.ready(group) for key in group.pending}
    return Placement.of({key: node for key, node in fit.chosen.items() if key in ready})


class _FirstFit:
    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.chosen: dict[Key, str] = {}
        self._nodes = [name for name, node in instance.nodes.items() if node.ready and not node.unschedulable]
        held = instance.held
        self._free = {name: instance.nodes[name].allocatable - held.get(name, Resources()) for name in self._nodes}
        self._queued: dict[str, Resources] = defaultdict(Resources)
        self._ports = TakenPorts()
        #: Nodes and host ports looked at so far.
        self.work = 0
        for pod in instance.pods.values():
            if pod.node is not None:
                self._ports.take(pod.node, pod.host_ports)
            if pod.state.on_node:
                self._count(pod)
        #: Where the search for room goes on, by what a pod asks; room only falls until a group is given up.
        self._next: dict[tuple[Constraints, Resources], int] = {}
        self._closed = _closed_to(instance)

    def place_all(self, deadline: Deadline) -> None:
        groups = (group for group in self.instance.groups.values() if group.pending)
        waiting: dict[str, list[Group]] = defaultdict(list)
        for group in sorted(groups, key=lambda each: (-each.priority, each.created, each.key), reverse=True):
            waiting[group.key.namespace].append(group)
        # A large group comes as late as if its pods had been looked at already.
        turns = [(len(mine[-1].pending), name) for name, mine in waiting.items()]
        heapify(turns)
        while turns and not deadline.over:
            spent, name = heappop(turns)
            group = waiting[name].pop()
            spent -= len(group.pending) + self.work
            self.place(group, deadline)
            if waiting[name]:
                heappush(turns, (spent + self.work + len(waiting[name][-1].pending), name))

    def place(self, group: Group, deadline: Deadline) -> None:
        pods = [self.instance.pods[key] for key in group.pending]
        if not self._plain(group, pods):
            return
        found: dict[Key, str] = {}
        for pod in pods:
            node = None if deadline.over else self._node(pod)
            if node is not None:
                found[pod.key] = node
                self._take(pod, node)
        if len(found) < group.need:
            for key, node in found.items():
                self._give_back(self.instance.pods[key], node)
            self._next.clear()
            return
        self.chosen |= found

    def _plain(self, group: Group, pods: Sequence[Pod]) -> bool:
        beyond = any(pod.key in self.instance.beyond_budget for pod in pods)
        if beyond or group.invalid is not None or group.limited or group.policies:
            return False
        calls = self.instance.network is not None
        return not any(pod.unsupported or pod.neighbours or (calls and pod.app_group is not None) for pod in pods)

    def _node(self, pod: Pod) -> str | None:
        if not self._queues_take(pod):
            return None
        shape = (pod.constraints, pod.requests)
        repelled = self._closed.get(pod.key, ())
        first = self._next.get(shape, 0)
        for position in range(first, len(self._nodes)):
            self.work += 1
            name = self._nodes[position]
            if not self._has_room(pod, name):
                if position == self._next.get(shape, 0):
                    self._next[shape] = position + 1
            elif name not in repelled and not self._clashes(pod, name):
                return name
        return None

    def _has_room(self, pod: Pod, name: str) -> bool:
        node = self.instance.nodes[name]
        if not pod.requests.fits(self._free[name]):
            return False
        return (pod.numa is None or name not in self.instance.aligning_nodes) and pod.constraints.admits(node)

    def _clashes(self, pod: Pod, name: str) -> bool:
        self.work += len(pod.host_ports)
        return self._ports.clash(name, pod.host_ports) is not None

    def _queues_take(self, pod: Pod) -> bool:
        if "C11" in self.instance.policy.rules_off:
            return True
        queues = [self.instance.queues[name] for name in self.instance.queue_path(pod.queue)]
        return self.instance.closed_queue(pod.queue, pod.namespace) is None and all(
            self._queued[queue.name][resource] + pod.requests[resource] <= limit
            for queue in queues
            for resource, limit in queue.capability.items()
            if pod.requests[resource]
        )

    def _count(self, pod: Pod, sign: int = 1) -> None:
        amounts = pod.requests if sign > 0 else Resources() - pod.requests
        for name in self.instance.queue_path(pod.queue):
            self._queued[name] += amounts

    def _take(self, pod: Pod, node: str) -> None:
        self._free[node] -= pod.requests
        self._ports.take(node, pod.host_ports)
        self._count(pod)

    def _give_back(self, pod: Pod, node: str) -> None:
        self._free[node] += pod.requests
        self._ports.give_back(node, pod.host_ports)
        self._count(pod, -1)


def _closed_to(instance: Instance) -> dict[Key, set[str]]:
    found, pending = defaultdict[Key, set[str]](set), PodIndex(instance.pending, instance.namespaces)
    for nodes, matched in _closing(instance, pending):
        for pod in matched:
            found[pod.key] |= nodes
    return found


def _closing(instance: Instance, pending: PodIndex) -> Iterator[tuple[set[str], tuple[Pod, ...]]]:
    """Nodes, and the pods that they are closed to; terms that mean the same pods close nodes together."""
    owners = owners_of_terms(pod for pod in instance.pods.values() if pod.state.on_node)
    domains = {key: _domains(instance, key) for key in {term.topology_key for term in owners}}
    values: dict[tuple[str, int], set[str | None]] = defaultdict(set)
    meant: dict[int, tuple[Pod, ...]] = {}
    for term, pods in owners.items():
        matched = pending.matching(term.pods)
        meant[id(matched)] = matched
        there = {domain_of(instance.nodes, pod.node, term.topology_key) for pod in pods}
        values[term.topology_key, id(matched)] |= there
    for (key, number), those in values.items():
        yield set(chain.from_iterable(domains[key].get(value or "", ()) for value in those - {None})), meant[number]


def _domains(instance: Instance, key: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for name, node in instance.nodes.items():
        if key in node.labels:
            found[node.labels[key]].append(name)
    return found
