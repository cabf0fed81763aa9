"""The instance: one immutable value that holds the whole problem by name."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

from placer.codes import FindingCode
from placer.instance.group import Group, GroupKey
from placer.instance.network import AppGroup, Link, Network, Spread
from placer.instance.node import Node
from placer.instance.numa import Kubelet, kubelets_of
from placer.instance.pod import Key, Pod, PodState
from placer.instance.policy import Policy
from placer.instance.queue import Queue
from placer.instance.set_aside import SetAside
from placer.instance.topology import TopologyTree
from placer.quantity import Resources

__all__ = ["Finding", "Instance"]

#: Weight of a pod that fills an average node (models/README.md, O1).
MICRO = 10**6


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """Something in the input that cannot be as meant; ``--strict`` makes it an error.

    Parameters
    ----------
    code
        Which; :data:`placer.codes.FINDINGS` says what each means.
    object
        ``Kind namespace/name`` of what it is about.
    message
        One sentence that names the objects and values involved.
    """

    code: FindingCode
    object: str
    message: str

    def __str__(self) -> str:
        """Code and message, with the object between them where the message does not name it."""
        named = re.search(rf"(?<![\w./-]){re.escape(self.object)}(?![\w/-]|\.\w)", self.message)
        return f"{self.code} {self.message}" if named else f"{self.code} {self.object}: {self.message}"


@dataclass(frozen=True)
class Instance:
    """The problem.

    Parameters
    ----------
    nodes
        Name to node, sorted by name.
    pods
        Key to pod, sorted by key: pending ones of ours, bound, terminating and nominated ones.
    groups
        Every PodGroup, and one group per pending pod that names none; sorted by key.
    topology
        The tier tree.
    queues
        Volcano queues by name.
    policy
        What decides.
    app_groups
        AppGroups by key, sorted, those without pods included.
    network
        The NetworkTopology that decides; None: there is none, so C8, C9 and O3 do not apply.
    network_costs
        Every NetworkTopology to its lists, by name, to costs of links, for schedulers that are told which one counts.
    findings
        What cannot be as meant, sorted.
    digest
        SHA-256 of the text the instance was read from, hexadecimal; empty where it was made otherwise.
    skipped
        Objects of kinds that placer does not read: kind to count.
    scheduler_name
        Whose pending pods are ours; None: any scheduler's.
    set_aside
        Pods that wait and are not ours.
    """

    nodes: Mapping[str, Node]
    pods: Mapping[Key, Pod]
    groups: Mapping[GroupKey, Group]
    topology: TopologyTree = field(default_factory=lambda: TopologyTree({}))
    queues: Mapping[str, Queue] = field(default_factory=dict)
    policy: Policy = field(default_factory=Policy)
    app_groups: Mapping[Key, AppGroup] = field(default_factory=dict)
    network: Network | None = None
    network_costs: Mapping[Key, Mapping[str, Mapping[Link, int]]] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    digest: str = ""
    skipped: Mapping[str, int] = field(default_factory=dict)
    scheduler_name: str | None = None
    set_aside: SetAside = field(default_factory=SetAside)

    def __repr__(self) -> str:
        """Say in one line how large it is."""
        groups = sum(bool(group.pending) for group in self.groups.values())
        counts = ((len(self.nodes), "nodes"), (len(self.topology.hyper_nodes), "HyperNodes"), (len(self.pods), "pods"))
        sizes = ", ".join(f"{count:,} {word}" for count, word in counts if count or word != "HyperNodes")
        findings = f"; {len(self.findings):,} findings" if self.findings else ""
        return f"<Instance: {sizes}, {len(self.pending):,} of them pending in {groups:,} groups{findings}>"

    @cached_property
    def pending(self) -> tuple[Pod, ...]:
        """Pods that are ours to place, sorted by key."""
        return tuple(pod for pod in self.pods.values() if pod.state is PodState.PENDING)

    @cached_property
    def held(self) -> Mapping[str, Resources]:
        """Node name to what bound, terminating and nominated pods take of it; an untouched node is absent."""
        sums: dict[str, dict[str, int]] = {}
        for pod in self.pods.values():
            if pod.node is not None:
                amounts = sums.setdefault(pod.node, {})
                for resource, amount in pod.requests.items():
                    amounts[resource] = amounts.get(resource, 0) + amount
        return {node: Resources(amounts) for node, amounts in sums.items()}

    @cached_property
    def weights(self) -> Mapping[Key, int]:
        """Weight of each pending pod in micro-nodes, at least 1 (models/README.md, O1)."""
        shares = self._average_shares()
        cache: dict[Resources, int] = {}
        for pod in self.pending:
            if pod.requests not in cache:
                cache[pod.requests] = _weight(pod.requests, shares)
        return {pod.key: cache[pod.requests] for pod in self.pending}

    def _average_shares(self) -> dict[str, Fraction]:
        """Micro-nodes per unit of each resource that decides: 10^6 x k / total, times its number in the policy."""
        totals: dict[str, tuple[int, int]] = {}
        for node in self.nodes.values():
            for resource, amount in node.allocatable.items():
                if amount > 0:
                    count, total = totals.get(resource, (0, 0))
                    totals[resource] = (count + 1, total + amount)
        chosen = self.policy.resource_weights
        return {
            resource: MICRO * Fraction(count, total) * chosen.get(resource, Fraction(1))
            for resource, (count, total) in totals.items()
            if not chosen or resource in chosen
        }

    @cached_property
    def need_weights(self) -> Mapping[GroupKey, int]:
        """What each group needs at least, in micro-nodes: its share in ``admitted`` where it is ready."""
        return {
            key: sum(sorted(self.weights[pod] for pod in group.pending)[: group.need])
            for key, group in self.groups.items()
        }

    @cached_property
    def priorities(self) -> tuple[int, ...]:
        """Distinct priorities of groups that have a pending pod, highest first."""
        return tuple(sorted({group.priority for group in self.groups.values() if group.pending}, reverse=True))

    @cached_property
    def workload_pods(self) -> Mapping[tuple[Key, str], tuple[Pod, ...]]:
        """AppGroup and workload to its pods, sorted by key: pending, bound and terminating ones; none: absent."""
        found: dict[tuple[Key, str], list[Pod]] = defaultdict(list)
        for pod in self.pods.values():
            if pod.app_group is not None and pod.workload is not None and pod.state is not PodState.NOMINATED:
                found[pod.app_group, pod.workload].append(pod)
        return {workload: tuple(pods) for workload, pods in found.items()}

    @cached_property
    def bound_spreads(self) -> Mapping[tuple[Key, str], Spread]:
        """AppGroup and workload to where its bound pods are; one without any, and all without a network, are absent."""
        return self._spreads(PodState.BOUND)

    @cached_property
    def leaving_spreads(self) -> Mapping[tuple[Key, str], Spread]:
        """The same of its terminating pods, which hold bandwidth (C9) and count for nothing else."""
        return self._spreads(PodState.TERMINATING)

    def _spreads(self, state: PodState) -> dict[tuple[Key, str], Spread]:
        if self.network is None:
            return {}
        nodes = {
            workload: [pod.node for pod in pods if pod.state is state and pod.node is not None]
            for workload, pods in self.workload_pods.items()
        }
        return {workload: Spread(self.network, on) for workload, on in nodes.items() if on}

    @cached_property
    def kubelets(self) -> Mapping[str, Kubelet]:
        """The kubelets that refuse pods that they cannot align, by node, sorted: where C10 applies."""
        if "C10" in self.policy.rules_off:
            return {}
        numa = {name: node.numa for name, node in self.nodes.items() if node.numa is not None}
        return kubelets_of({name: node for name, node in numa.items() if node.strict})

    def queue_path(self, queue: str | None) -> tuple[str, ...]:
        """The queue and its ancestors, as far as they are known; empty for a pod in no known queue."""
        path: list[str] = []
        while queue is not None and queue in self.queues and queue not in path:
            path.append(queue)
            queue = self.queues[queue].parent
        return tuple(path)

    def closed_queue(self, queue: str | None) -> str | None:
        """The first queue on the way up from ``queue`` that takes no new pods; None where all are open (C11)."""
        return next((name for name in self.queue_path(queue) if not self.queues[name].open), None)


def _weight(requests: Resources, shares: Mapping[str, Fraction]) -> int:
    """Largest share over the requested resources, floored, at least 1."""
    largest = max((amount * shares[name] for name, amount in requests.items() if name in shares), default=Fraction(0))
    return max(1, largest.numerator // largest.denominator)
