"""Pods that need rules which are not here yet: network cost and bandwidth (C8, C9) and NUMA alignment (C10).

Until those rules stand beside the others, a pod that they would decide about is refused (C4) and not placed as if they
did not exist. This module is the one place that goes away with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from placer.instance.network import Network
from placer.instance.network.app_groups import Application
from placer.instance.network.members import Member
from placer.instance.pod import Key
from placer.instance.policy import Policy
from placer.instance.requests import container_requests
from placer.kube.numa import NodeResourceTopology
from placer.kube.pod import Container, Pod, PodSpec

__all__ = ["UnmodelledRules", "known_network"]

#: Whether the methods know C8, C9 and O3. Until then pods with dependencies are refused, and no network is in the
#: instance, so that O3 has no value. With the constant go ``known_network`` and the parameters that lead to it.
NETWORK_IS_KNOWN = False
_STRICT = ("single-numa-node", "restricted")
_NATIVE = ("cpu", "memory", "ephemeral-storage", "storage", "pods")
#: ``topologyPolicies`` is the older way to say what the attributes say.
_OLD_POLICIES = {
    "SingleNUMANode": "single-numa-node",
    "SingleNUMANodePodLevel": "single-numa-node",
    "SingleNUMANodeContainerLevel": "single-numa-node",
    "Restricted": "restricted",
    "RestrictedPodLevel": "restricted",
    "RestrictedContainerLevel": "restricted",
}


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
        What the kubelets say of their nodes' zones.
    """

    def __init__(
        self,
        policy: Policy,
        network: Network | None,
        applications: Mapping[Key, Application],
        members: Mapping[Key, Member],
        numa: Sequence[NodeResourceTopology],
    ) -> None:
        applies = network is not None and not NETWORK_IS_KNOWN and not {"C8", "C9"} <= policy.rules_off
        dependent = {key for key, each in applications.items() if applies and each.app_group.dependencies}
        self._dependent = {pod: member for pod, member in members.items() if member.app_group in dependent}
        strict = [each for each in numa if _policy(each) in _STRICT] if "C10" not in policy.rules_off else []
        self._strict_node = min((each.name for each in strict), default=None)
        self._devices = {
            resource.name
            for each in strict
            for zone in each.zones or ()
            for resource in zone.resources or ()
            if resource.name not in _NATIVE and not resource.name.startswith("hugepages-")
        }

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
        containers = (*(spec.containers or ()), *(spec.init_containers or ()))
        if containers and (_guaranteed_pod(spec) or all(map(_guaranteed, containers))):
            return "spec.containers: Guaranteed pod"
        for container in containers:
            devices = sorted(self._devices.intersection(container_requests(container.resources)))
            if devices:
                return f"spec.containers[{container.name or ''}].resources.requests[{devices[0]}]"
        return None


def _policy(numa: NodeResourceTopology) -> str | None:
    """Topology manager policy of a node: its attribute, else the older list."""
    for attribute in numa.attributes or ():
        if attribute.name == "topologyManagerPolicy" and attribute.value:
            return attribute.value
    return _OLD_POLICIES.get((numa.topology_policies or ("",))[0])


def _guaranteed(container: Container) -> bool:
    limits = (container.resources.limits if container.resources is not None else None) or {}
    requests = container_requests(container.resources)
    return all(limits.get(name) and limits[name] == requests.get(name) for name in ("cpu", "memory"))


def _guaranteed_pod(spec: PodSpec) -> bool:
    if spec.resources is None:
        return False
    limits, requests = spec.resources.limits or {}, spec.resources.requests or {}
    return all(limits.get(name) and limits[name] == requests.get(name, limits[name]) for name in ("cpu", "memory"))
