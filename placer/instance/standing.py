"""What the pods that have a node break by themselves: findings, never an invalid instance (models/reading.md,
"bound pods").

Looked at are capacity and host ports (C2), tier limits of groups and subgroups (C7), network costs (C8), bandwidth (C9)
and queue capability (C11). New pods must not add to any of it, so whoever reads that nothing more fits finds the reason
here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from placer.instance.findings import Findings
from placer.instance.group import NetworkTopology
from placer.instance.model import Instance
from placer.instance.network.standing import broken_costs, broken_links
from placer.instance.pod import HostPort, Key, Pod, PodState
from placer.quantity import format_amount

__all__ = ["note_broken_rules"]

CODE: Final = "BoundPodsViolate"


def note_broken_rules(instance: Instance, findings: Findings) -> None:
    """Note what bound and terminating pods break of the rules by themselves."""
    standing: dict[str, list[Pod]] = defaultdict(list)
    for pod in instance.pods.values():
        if pod.node is not None and pod.state is not PodState.NOMINATED:
            standing[pod.node].append(pod)
    _capacity(instance, standing, findings)
    _host_ports(standing, findings)
    _tier_limits(instance, findings)
    for rule, broken in (("C8", broken_costs), ("C9", broken_links)):
        if rule not in instance.policy.rules_off:
            for subject, message in broken(instance):
                findings.add(CODE, subject, message)
    if "C11" not in instance.policy.rules_off:
        _queues(instance, (pod for pods in standing.values() for pod in pods), findings)


def _capacity(instance: Instance, standing: Mapping[str, Sequence[Pod]], findings: Findings) -> None:
    for name, pods in standing.items():
        node = instance.nodes.get(name)
        if node is None:
            continue
        amounts = _sums(pods)
        over = [
            f"{resource} {format_amount(resource, amount)} of {format_amount(resource, node.allocatable[resource])}"
            for resource, amount in sorted(amounts.items())
            if amount > node.allocatable[resource]
        ]
        if over:
            message = f"C2: pods bound to Node {name} request more than is allocatable: {', '.join(over)}"
            findings.add(CODE, f"Node {name}", message)


def _host_ports(standing: Mapping[str, Sequence[Pod]], findings: Findings) -> None:
    for name, pods in standing.items():
        open_ports: dict[tuple[str, int], list[tuple[HostPort, Key]]] = defaultdict(list)
        for pod in pods:
            for port in pod.host_ports:
                for other, holder in open_ports[port.protocol, port.port]:
                    if holder != pod.key and port.clashes(other):
                        what = f"{port.protocol} host port {port.port}"
                        message = f"C2: Pod {holder} and Pod {pod.key} both take {what} of Node {name}"
                        findings.add(CODE, f"Node {name}", message)
                open_ports[port.protocol, port.port].append((port, pod.key))


def _tier_limits(instance: Instance, findings: Findings) -> None:
    for key, group in instance.groups.items():
        if group.topology is not None:
            _tier_limit(instance, str(key), str(key), group.bound, group.topology, findings)
        for sub_group in group.sub_groups:
            topology = group.policies[sub_group.policy].topology
            if topology is not None:
                scope = f"subgroup {sub_group.name} of {key}"
                _tier_limit(instance, str(key), scope, sub_group.bound, topology, findings)


def _tier_limit(
    instance: Instance, subject: str, scope: str, bound: Sequence[Key], topology: NetworkTopology, findings: Findings
) -> None:
    if topology.limit is None or not bound:
        return
    tree = instance.topology
    nodes = [pod.node for pod in map(instance.pods.__getitem__, bound) if pod.node is not None]
    tier = tree.tier(tree.smallest_common(nodes))
    if tier > topology.limit:
        allowed = f"at most tier {topology.limit}" if topology.limit >= 0 else "no tier at all"
        message = f"C7: the bound pods of {scope} span tier {tier}, where {allowed} is allowed"
        findings.add(CODE, subject, message)


def _queues(instance: Instance, standing: Iterable[Pod], findings: Findings) -> None:
    members: dict[str, list[Pod]] = defaultdict(list)
    for pod in standing:
        for queue in instance.queue_path(pod.queue):
            members[queue].append(pod)
    for name, pods in members.items():
        amounts = _sums(pods)
        over = [
            f"{resource} {format_amount(resource, amounts[resource])} of {format_amount(resource, limit)}"
            for resource, limit in sorted(instance.queues[name].capability.items())
            if amounts[resource] > limit
        ]
        if over:
            message = f"C11: bound pods in Queue {name} request more than its capability: {', '.join(over)}"
            findings.add(CODE, f"Queue {name}", message)


def _sums(pods: Iterable[Pod]) -> dict[str, int]:
    amounts: dict[str, int] = defaultdict(int)
    for pod in pods:
        for resource, amount in pod.requests.items():
            amounts[resource] += amount
    return amounts
