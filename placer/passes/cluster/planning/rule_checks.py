"""Rules that are no sums on a node, checked again for a gang before its bindings, against changes by others.

* C7: members bound by others; changed labels of nodes, since HyperNodes may go by them.
* C8, C9: all pods of AppGroups, by :mod:`placer.rules`.
* C10: zones are unknown from here, so after changes on an aligning node no pod with zones is bound.
* C11: the current requests in a queue.
* C12 to C15, and C7 by label: the pods that are asked about, by :mod:`placer.rules`.

Objects other than pods and nodes are as in the snapshot.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING

from placer.base.quantity import format_amount
from placer.kube.manifests import Objects
from placer.kube.pod import PodManifest
from placer.passes.cluster.planning.binding_plan import PlannedBinding
from placer.problem import Group, GroupKey, Instance, Key, Node, Pod, PodState
from placer.problem.instance_builder import make_instance
from placer.problem.neighbours import PodSelector
from placer.problem.network_objects import areas_of
from placer.problem.node_resource_topology import DemandPool
from placer.problem.numa import NumaDemand, aligns
from placer.problem.outcome import Outcome
from placer.problem.placement import Placement
from placer.problem.pod_index import PodIndex
from placer.rules import RULES, Rule
from placer.rules.neighbour_rules import one_domain

if TYPE_CHECKING:
    from placer.passes.cluster.reading.snapshot import Snapshot

__all__ = ["RuleChecks"]

#: Kinds that say nothing about where a pod belongs.
_APART = ("Pod", "Node", "HyperNode", "NodeResourceTopology", "PersistentVolume", "PersistentVolumeClaim")
_CALLS = ("C8", "C9")
_APART_RULES: Sequence[Rule] = tuple(rule for name, rule in RULES if name == "C13")
_NEAR_RULES: Sequence[Rule] = (*(rule for name, rule in RULES if name in ("C12", "C14", "C15")), one_domain)


class _Around:
    """All pods with a node, and those that have changed since the snapshot.

    A plan was judged as a whole, so only changed pods can break a rule, and only for pods that ask about them. A pass
    binds thousands of pods, so no check may look at all pods for each.
    """

    def __init__(self, instance: Instance) -> None:
        self._namespaces = instance.namespaces
        self.pods: dict[Key, Pod] = {}
        self.came: dict[Key, Pod] = {}
        self._changed: list[Pod] = []  # as they were before, or are since
        self._new: list[Pod] = []  # of the plan, since the index was made
        self._index: PodIndex | None = None
        self._changed_index: PodIndex | None = None
        self.nodes_changed = False

    def stands(self, pod: Pod) -> None:
        self.pods[pod.key] = pod
        if self._index is not None:
            self._new.append(pod)

    def comes(self, pod: Pod) -> None:
        self.pods[pod.key] = self.came[pod.key] = pod
        self._note_change(pod)

    def drop(self, key: Key) -> Pod | None:
        self.came.pop(key, None)
        pod = self.pods.pop(key, None)
        if pod is not None:
            self._note_change(pod)
        return pod

    def _note_change(self, pod: Pod) -> None:
        self._changed.append(pod)
        self._index = self._changed_index = None

    def concerns(self, pod: Pod) -> bool:
        if _has_unit(pod):
            return bool(self._changed)
        if self._changed_index is None:
            self._changed_index = PodIndex(self._changed, self._namespaces)
        return any(map(self._changed_index.matching, _selectors(pod)))

    def asked_about(self, pods: Iterable[Pod]) -> Iterator[Pod]:
        if self._index is None:
            self._index, self._new = PodIndex(self.pods.values(), self._namespaces), []
        if any(map(_has_unit, pods)):
            yield from filter(_has_unit, self.pods.values())
        for selector in dict.fromkeys(chain.from_iterable(map(_selectors, pods))):
            yield from self._index.matching(selector)
            yield from (pod for pod in self._new if selector.matches(pod, self._namespaces))


def _has_unit(pod: Pod) -> bool:
    return bool(pod.neighbours.units or pod.neighbours.jobs)


def _selectors(pod: Pod) -> Iterator[PodSelector]:
    return (each.pods for asked in (pod.neighbours.affinity, pod.neighbours.spread) for each in asked)


class _QueueUsage:
    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._requested: Counter[tuple[str, str]] = Counter()  # by queue and resource
        self._paths: dict[str, tuple[str, ...]] = {}

    def count(self, pod: Pod, sign: int) -> None:
        for queue in self.limiting(pod):
            for resource, amount in pod.requests.items():
                self._requested[queue, resource] += sign * amount

    def limiting(self, pod: Pod) -> tuple[str, ...]:
        if pod.queue is None or "C11" in self._instance.policy.rules_off:
            return ()
        if pod.queue not in self._paths:
            path, queues = self._instance.queue_path(pod.queue), self._instance.queues
            self._paths[pod.queue] = tuple(name for name in path if queues[name].capability)
        return self._paths[pod.queue]

    def refusal(self, pods: Iterable[Pod]) -> str | None:
        wanted: Counter[tuple[str, str]] = Counter()
        for pod in pods:
            for queue in self.limiting(pod):
                wanted.update({(queue, resource): amount for resource, amount in pod.requests.items()})
        for (queue, resource), amount in sorted(wanted.items()):
            limit = self._instance.queues[queue].capability.get(resource)
            if limit is not None and amount and self._requested[queue, resource] + amount > limit:
                room = max(0, limit - self._requested[queue, resource])
                amounts = " of ".join(format_amount(resource, each) for each in (amount, room))
                return f"the capability of Queue {queue} is used up: {resource} {amounts} left"
        return None


class RuleChecks:
    """Current pods of a snapshot's instance, as far as rules look at them."""

    def __init__(self, snapshot: Snapshot, instance: Instance) -> None:
        self._snapshot, self._instance = snapshot, instance
        self._queues, self._demands = _QueueUsage(instance), DemandPool()
        self._stirred: set[str] = set()  # nodes whose kubelets align, on which pods have come or gone
        self._unread: dict[Key, PodManifest] = {}
        self._members: dict[Key, GroupKey] = {}  # pods that have come to the gang they name
        self._relabelled: set[Key] = set()  # pods that were there before and have come to none
        self._around = _Around(instance)
        self.version = 0  #: it changes with every change by others
        self._call_rules = [rule for name, rule in RULES if name in _CALLS and name not in instance.policy.rules_off]
        self._calls_changed = False

    @cached_property
    def _objects(self) -> Objects:
        return self._snapshot.without(_APART).objects()

    # ------------------------------------------------------------------------------------------------- what happens

    def stands(self, key: Key, node: str) -> None:
        """Note a pod of the instance that is on a node, from the beginning or now."""
        pod = self._instance.pods[key]
        if pod.state is PodState.PENDING:
            pod = replace(pod, state=PodState.BOUND, node=node)
        if pod.state.on_node:
            self._around.stands(pod)
            self._queues.count(pod, 1)

    def came(self, key: Key, written: PodManifest, node: str, state: PodState) -> None:
        """Note a pod that another scheduler bound, or that changed."""
        if state is PodState.NOMINATED:
            return
        self._unread[key] = written
        self.version += 1
        self._stir(node, self._demands.of(written.spec))

    def relabelled(self, key: Key, written: PodManifest, state: PodState) -> None:
        """Note a pod with other labels on the same node."""
        if state is PodState.NOMINATED:
            return
        before = self._around.pods.get(key)
        has_come = key in self._members or (key in self._unread and key not in self._relabelled)
        self._calls_changed |= before is not None and before.app_group is not None
        self._drop(key)
        self._unread[key] = written
        self.version += 1
        if not has_come:
            self._relabelled.add(key)

    def went(self, key: Key) -> None:
        """Note that a pod holds nothing any more."""
        pod, written = self._around.pods.get(key), self._unread.get(key)
        if pod is not None:
            self._stir(pod.node, pod.numa)
            self._calls_changed |= pod.app_group is not None
        elif written is not None:
            self._stir(written.spec.node_name, self._demands.of(written.spec))
        self.forget(key)

    def _stir(self, node: str | None, demand: NumaDemand | None) -> None:
        zones = self._instance.aligning_nodes.get(node or "")
        if node is not None and zones is not None and aligns(zones, demand):
            self._stirred.add(node)

    def forget(self, key: Key) -> None:
        """Take back a pod that was never on its node."""
        self._drop(key)
        self.version += 1

    def _drop(self, key: Key) -> None:
        self._unread.pop(key, None)
        self._members.pop(key, None)
        self._relabelled.discard(key)
        pod = self._around.drop(key)
        if pod is not None:
            self._queues.count(pod, -1)

    def nodes_changed(self, nodes: Mapping[str, Node]) -> None:
        """Note the current nodes."""
        network = self._instance.network
        if network is not None and any(network.area(name) != area for name, area in areas_of(nodes).items()):
            self._calls_changed = True
        known = self._instance.nodes
        if any(name not in known or known[name].labels != node.labels for name, node in nodes.items()):
            self.version += 1
            self._around.nodes_changed = True

    def _read(self) -> None:
        if not self._unread:
            return
        objects = replace(self._objects, pods=tuple(self._unread.values()))
        self._unread.clear()
        name, gates = self._snapshot.scheduler_name, self._snapshot.gates
        for key, pod in make_instance(objects, scheduler_name=name, cluster=True, gates=gates).pods.items():
            if pod.state.on_node:
                self._around.comes(pod)
                self._queues.count(pod, 1)
            if pod.group is not None and key not in self._relabelled:
                self._members[key] = pod.group
            self._calls_changed |= pod.app_group is not None

    # -------------------------------------------------------------------------------------------------- what may not be

    def refusal(
        self,
        gangs: Iterable[GroupKey],
        binds: Sequence[PlannedBinding],
        nodes: Mapping[str, Node],
    ) -> str | None:
        """A sentence on why gangs may not be bound now; None where these rules allow it."""
        pods = [self._instance.pods[bind.pod] for bind in binds]
        limited = list(filter(attrgetter("limited"), map(self._instance.groups.__getitem__, gangs)))
        if limited or self.version or any(map(self._is_counted, pods)):
            self._read()
        return (
            self._aligned_refusal(binds)
            or self._neighbours_refusal(pods, binds, nodes)
            or self._tier_refusal(limited, binds, nodes)
            or self._calls_refusal(pods, binds, nodes)
            or self._queues.refusal(pods)
        )

    def late_refusal(self, binds: Sequence[PlannedBinding], nodes: Mapping[str, Node]) -> str | None:
        """:meth:`refusal` for bindings of one batch whose pods count as bound already."""
        pods = [self._instance.pods[bind.pod] for bind in binds]
        counted = [pod for pod in pods if pod.key in self._around.pods]
        for pod in counted:
            self._queues.count(pod, -1)
        try:
            groups = dict.fromkeys(pod.group for pod in pods if pod.group is not None)
            return self.refusal([key for key in groups if key in self._instance.groups], binds, nodes)
        finally:
            for pod in counted:
                self._queues.count(pod, 1)

    def _is_counted(self, pod: Pod) -> bool:
        return pod.app_group is not None or bool(self._queues.limiting(pod))

    def _aligned_refusal(self, binds: Iterable[PlannedBinding]) -> str | None:
        found = next((each.node for each in binds if each.numa_zones and each.node in self._stirred), None)
        return None if found is None else f"pods have come or gone on Node {found}, whose kubelet aligns them"

    def _neighbours_refusal(
        self, pods: Sequence[Pod], binds: Iterable[PlannedBinding], nodes: Mapping[str, Node]
    ) -> str | None:
        if not self.version:
            return None
        around = self._around
        if around.nodes_changed:
            return self._broken((*_APART_RULES, *_NEAR_RULES), around.pods.values(), pods, binds, nodes)
        why = None
        if any(pod.neighbours.anti_affinity for pod in (*pods, *around.came.values())):
            why = self._broken(_APART_RULES, around.came.values(), pods, binds, nodes)
        if why is None and any(map(around.concerns, pods)):
            why = self._broken(_NEAR_RULES, around.asked_about(pods), pods, binds, nodes)
        return why

    def _broken(
        self,
        rules: Iterable[Rule],
        around: Iterable[Pod],
        pods: Iterable[Pod],
        binds: Iterable[PlannedBinding],
        nodes: Mapping[str, Node],
    ) -> str | None:
        there = {pod.key: pod for pod in (*around, *pods)}
        now = replace(self._instance, nodes={**self._instance.nodes, **nodes}, pods=there)
        outcome = Outcome(now, Placement.of((each.pod, each.node) for each in binds))
        return next((violation.message for rule in rules for violation in rule(outcome)), None)

    def _tier_refusal(
        self, groups: Iterable[Group], binds: Iterable[PlannedBinding], nodes: Mapping[str, Node]
    ) -> str | None:
        limited = {group.key for group in groups}
        if not limited:
            return None
        for key, group in sorted(self._members.items()):
            if group in limited:
                return f"Pod {key} of {group} has been bound by another client"
        for each in binds:
            if nodes[each.node].labels != self._instance.nodes[each.node].labels:
                return f"labels of Node {each.node} have changed, and HyperNodes may go by them"
        return None

    def _calls_refusal(
        self, pods: Sequence[Pod], binds: Iterable[PlannedBinding], nodes: Mapping[str, Node]
    ) -> str | None:
        if not self._calls_changed or all(pod.app_group is None for pod in pods):
            return None
        now = self._as_it_stands(pods, nodes)
        if now.network is None:
            return None
        outcome = Outcome(now, Placement.of({each.pod: each.node for each in binds}))
        return next((violation.message for rule in self._call_rules for violation in rule(outcome)), None)

    def _as_it_stands(self, pods: Iterable[Pod], nodes: Mapping[str, Node]) -> Instance:
        callers = {key: pod for key, pod in self._around.pods.items() if pod.app_group is not None}
        network = self._instance.network
        return replace(
            self._instance,
            nodes=nodes,
            pods=dict(sorted((callers | {pod.key: pod for pod in pods}).items())),
            network=replace(network, areas=areas_of(nodes)) if network is not None else None,
        )
