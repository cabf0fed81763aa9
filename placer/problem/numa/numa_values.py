"""NUMA zones of a node, and a pod's demands on them, as values (C10)."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from placer.base.quantity import Resources

#: Policies of the kubelet's Topology Manager, weakest first.
TOPOLOGY_MANAGER_POLICIES = ("none", "best-effort", "restricted", "single-numa-node")
#: Stands for a policy or scope that is written and not known: that kubelet may refuse any pod that it aligns.
UNKNOWN = "unknown"
STRICT = frozenset({"restricted", "single-numa-node", UNKNOWN})
SCOPES = ("container", "pod")
#: ``maxNUMANodes`` of a kubelet by default.
MAX_NUMA_NODES = 8
HUGE_PAGES = "hugepages-"
_NATIVE = frozenset({"cpu", "memory", "ephemeral-storage", "storage", "pods"})


@dataclass(frozen=True, slots=True)
class NumaZone:
    """A NUMA zone of a node; amounts in milli-cpu, bytes, counts.

    ``id``: 0 .. 63. ``capacity``: decides widths of ``restricted``. ``available``: for the next pod. ``lists``:
    resources that it names, also with 0. ``costs``: no rule uses them.
    """

    id: int
    name: str
    capacity: Resources
    available: Resources
    allocatable: Resources
    lists: frozenset[str]
    costs: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class NumaNode:
    """Settings and zones of the kubelet of a node.

    ``policy``: of :data:`TOPOLOGY_MANAGER_POLICIES`, or :data:`UNKNOWN`. ``scope``: of :data:`SCOPES`.
    ``max_numa_nodes``: for a scheduler's score.
    """

    policy: str
    scope: str
    zones: tuple[NumaZone, ...]
    max_numa_nodes: int = field(default=MAX_NUMA_NODES, compare=False)

    @property
    def strict(self) -> bool:
        """Whether C10 applies: this kubelet refuses pods that it cannot align."""
        return self.policy in STRICT

    @property
    def lists(self) -> frozenset[str]:
        """Resources that any zone names; no other is aligned."""
        return frozenset().union(*(zone.lists for zone in self.zones))


class Qos(Enum):
    """Quality of service class of a pod, by Kubernetes' rule."""

    GUARANTEED = "Guaranteed"
    BURSTABLE = "Burstable"
    BEST_EFFORT = "BestEffort"


class Stage(Enum):
    """When a container runs."""

    INIT = "init container"  #: before the others and alone; ends
    SIDECAR = "sidecar"  #: an init container that stays
    APP = "container"


@dataclass(frozen=True, slots=True)
class NumaContainer:
    """A container as the kubelet aligns it; a request left out is its limit."""

    name: str = field(compare=False)
    stage: Stage
    requests: Resources


@dataclass(frozen=True, slots=True)
class NumaDemand:
    """A pod's demands on the zones of its node.

    ``containers``: in the order of admission. ``overhead``: counts with scope pod. ``pod_level``: requests are the
    pod's, so only devices are aligned.
    """

    qos: Qos
    containers: tuple[NumaContainer, ...]
    overhead: Resources = field(default_factory=Resources)
    pod_level: bool = False

    @property
    def pinned(self) -> bool:
        """Whether its cpu, memory and hugepages are aligned."""
        return self.qos is Qos.GUARANTEED and not self.pod_level


def is_device(resource: str) -> bool:
    """Whether a resource is aligned for pods of every QoS class."""
    return resource not in _NATIVE and not resource.startswith(HUGE_PAGES)
