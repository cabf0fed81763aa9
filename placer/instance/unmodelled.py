"""Pods that need a rule which is not here yet: NUMA alignment (C10).

Until that rule stands beside the others, a pod that it would decide about is refused (C4) and not placed as if it
did not exist. This module is the one place that goes away with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from placer.instance.numa import NumaNode
from placer.instance.numa.demand import DemandPool
from placer.instance.numa.model import is_device
from placer.kube.pod import Pod, PodSpec

__all__ = ["UnmodelledRules"]

#: Whether the methods know C10. Until then pods that a strict kubelet would align are refused.
NUMA_IS_KNOWN = False


class UnmodelledRules:
    """Whether the rule to come applies in an instance, and to which pods.

    Parameters
    ----------
    numa
        What the kubelets say of their nodes' zones, by node.
    demands
        Reads what a pod asks of zones.
    """

    def __init__(self, numa: Mapping[str, NumaNode], demands: DemandPool) -> None:
        strict = {} if NUMA_IS_KNOWN else {name: node for name, node in numa.items() if node.strict}
        self._strict_node = min(strict, default=None)
        self._devices = {name for node in strict.values() for name in node.lists if is_device(name)}
        self._demands = demands

    def refusals(self, pod: Pod) -> Iterator[str]:
        """Fields of a pod that need the rule, each as ``field: what``."""
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
