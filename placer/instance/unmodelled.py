"""Pods that need rules which are not here yet: network cost and bandwidth (C8, C9) and NUMA alignment (C10).

Until those rules stand beside the others, a pod that they would decide about is refused (C4) and not placed as if they
did not exist. This module is the one place that goes away with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from placer.instance.network import Network
from placer.instance.network.app_groups import Application
from placer.instance.network.members import Member
from placer.instance.numa import NumaNode
from placer.instance.numa.demand import DemandPool
from placer.instance.numa.model import is_device
from placer.instance.pod import Key
from placer.instance.policy import Policy
from placer.kube.pod import Pod, PodSpec

__all__ = ["UnmodelledRules", "known_network"]

#: Whether the methods know C8, C9 and O3. Until then pods with dependencies are refused, and no network is in the
#: instance, so that O3 has no value. With the constant go ``known_network`` and the parameters that lead to it.
NETWORK_IS_KNOWN = False
#: Whether the methods know C10. Until then pods that a strict kubelet would align are refused.
NUMA_IS_KNOWN = False


def known_network(network: Network | None) -> Network | None:
    """The network as far as the methods know it."""
    return network if NETWORK_IS_KNOWN else None


class UnmodelledRules:
    """Which of the rules to come apply in an instance, and to which pods.

    Parameters
    ----------
    policy
        A rule that it switches off applies to nobody.
    network
        Where there is one, C8 and C9 apply to pods of AppGroups with dependencies.
    applications, members
        The AppGroups, and which pod is of which.
    numa
        What the kubelets say of their nodes' zones, by node.
    demands
        Reads what a pod asks of zones.
    """

    def __init__(
        self,
        policy: Policy,
        network: Network | None,
        applications: Mapping[Key, Application],
        members: Mapping[Key, Member],
        numa: Mapping[str, NumaNode],
        demands: DemandPool,
    ) -> None:
        applies = network is not None and not NETWORK_IS_KNOWN and not {"C8", "C9"} <= policy.rules_off
        dependent = {key for key, each in applications.items() if applies and each.app_group.dependencies}
        self._dependent = {pod: member for pod, member in members.items() if member.app_group in dependent}
        strict = {} if NUMA_IS_KNOWN else {name: node for name, node in numa.items() if node.strict}
        self._strict_node = min(strict, default=None)
        self._devices = {name for node in strict.values() for name in node.lists if is_device(name)}
        self._demands = demands

    def refusals(self, pod: Pod) -> Iterator[str]:
        """Fields of a pod that need one of the rules, each as ``field: what``."""
        member = self._dependent.get(Key(pod.namespace, pod.name))
        if member is not None:
            yield f"{member.field}: network costs of AppGroup {member.app_group.name} (C8, C9)"
        if self._strict_node is not None:
            field = self._aligned(pod.spec)
            if field is not None:
                yield f"{field}: NUMA alignment on nodes such as {self._strict_node} (C10)"

    def _aligned(self, spec: PodSpec) -> str | None:
        """The field that asks the kubelet for alignment; None where none does."""
        demand = self._demands.of(spec)
        if demand is None:
            return None
        if demand.pinned:
            return "spec.containers: Guaranteed pod"
        for container in demand.containers:
            devices = sorted(self._devices.intersection(container.requests))
            if devices:
                return f"spec.containers[{container.name}].resources.requests[{devices[0]}]"
        return None
