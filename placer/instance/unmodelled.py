"""Pods that need rules which are not here yet: network cost and bandwidth (C8, C9) and NUMA alignment (C10).

Until those rules stand beside the others, a pod that they would decide about is refused (C4) and not placed as if they
did not exist. This module is the one place that goes away with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from placer.instance.owners import controller
from placer.instance.policy import Policy
from placer.instance.requests import container_requests
from placer.kube.apps import ReplicaSet
from placer.kube.diktyo import AppGroup, NetworkTopology
from placer.kube.numa import NodeResourceTopology
from placer.kube.pod import Container, Pod, PodSpec

__all__ = ["APP_GROUP_LABEL", "UnmodelledRules"]

APP_GROUP_LABEL = "appgroup.diktyo.x-k8s.io"
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


class UnmodelledRules:
    """Which of the rules to come apply in an instance, and to which pods.

    Parameters
    ----------
    policy
        A rule that it switches off applies to nobody.
    app_groups, network_topologies
        Together they make C8 and C9 apply.
    replica_sets
        Lead from a pod to its Deployment.
    numa
        What the kubelets say of their nodes' zones.
    """

    def __init__(
        self,
        policy: Policy,
        app_groups: Sequence[AppGroup],
        network_topologies: Sequence[NetworkTopology],
        replica_sets: Sequence[ReplicaSet],
        numa: Sequence[NodeResourceTopology],
    ) -> None:
        network = bool(network_topologies) and not {"C8", "C9"} <= policy.rules_off
        dependent = [group for group in app_groups if network and _has_dependency(group)]
        self._labelled = {group.name for group in dependent}
        self._workloads = {
            (each.workload.kind, each.workload.name): group.name
            for group in dependent
            for each in (group.spec.workloads or () if group.spec is not None else ())
        }
        self._deployments = {
            (each.namespace, each.name): owner
            for each in replica_sets
            if self._workloads and (owner := controller(each.metadata)) is not None
        }
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
        group = self._app_group(pod) if self._workloads else None
        if group is not None:
            yield f"{group[1]}: network costs of AppGroup {group[0]} (C8, C9)"
        if self._strict_node is not None:
            field = self._aligned(pod.spec)
            if field is not None:
                yield f"{field}: NUMA alignment on nodes such as {self._strict_node} (C10)"

    def _app_group(self, pod: Pod) -> tuple[str, str] | None:
        """AppGroup of a pod, and the field that says so: its label, else its owner's kind and name."""
        label = (pod.metadata.labels or {}).get(APP_GROUP_LABEL)
        if label is not None:
            return (label, f"metadata.labels[{APP_GROUP_LABEL}]") if label in self._labelled else None
        owner = controller(pod.metadata)
        if owner is not None and owner.kind == "ReplicaSet":
            owner = self._deployments.get((pod.namespace, owner.name), owner)
        name = self._workloads.get((owner.kind, owner.name)) if owner is not None else None
        return (name, "metadata.ownerReferences") if name is not None else None

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


def _has_dependency(group: AppGroup) -> bool:
    workloads = group.spec.workloads if group.spec is not None else None
    return any(each.dependencies for each in workloads or ())


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
