"""Kinds that the plugins of scheduler-plugins read: coscheduling, network awareness and NUMA.

* PodGroup of scheduling.x-k8s.io; older manifests use the groups of its first releases.
* NodeResourceTopology of topology.node.k8s.io, v1alpha1 and v1alpha2: the NUMA zones of a node.
* AppGroup and NetworkTopology of diktyo.x-k8s.io, as shipped and as KEP-260 spells them; both spellings become the same
  schema:

=============  ==================================  ====================================
level          shipped                             KEP-260
=============  ==================================  ====================================
weights        ``topologyList``                    ``costList``
topology       ``originList``                      ``originCosts``
origin         ``costList``                        ``costs``
spec           ``configmapName``                   ``configMapName``
workload       ``selector`` required               no selector
=============  ==================================  ====================================

What a link has left of its bandwidth (``bandwidthAllocated``, in the KEP also ``bandwidthAllocatable``) is written by
controllers and not read here, so it is no field.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta, field

from placer.kube.base import Count, Metadata, Name, NamespacedObject, ObjectBase, Quantities, Quantity, Schema, Time

__all__ = [
    "AppGroupManifest",
    "AppGroupSpec",
    "AppGroupWorkload",
    "Attribute",
    "CoschedulingPodGroupManifest",
    "CoschedulingPodGroupSpec",
    "CoschedulingPodGroupStatus",
    "Cost",
    "CostList",
    "DependencyEntry",
    "ManagedField",
    "NetworkTopologyManifest",
    "NetworkTopologySpec",
    "NodeResourceTopologyManifest",
    "NumaMetadata",
    "OriginCosts",
    "TopologyCosts",
    "TopologyOrder",
    "WorkloadDependencies",
    "ZoneCost",
    "ZoneEntry",
    "ZoneResource",
]


class CoschedulingPodGroupSpec(Schema, frozen=True, kw_only=True):
    """What a gang needs."""

    min_member: Count | None = None
    min_resources: Quantities | None = None


class CoschedulingPodGroupStatus(Schema, frozen=True, kw_only=True):
    """Whether the gang was scheduled once; Koordinator alone counts ``scheduled``."""

    phase: str | None = None
    scheduled: int | None = None


class CoschedulingPodGroupManifest(NamespacedObject, frozen=True, kw_only=True):
    """scheduling.x-k8s.io/v1alpha1 PodGroup."""

    spec: CoschedulingPodGroupSpec | None = None
    status: CoschedulingPodGroupStatus | None = None


class Attribute(Schema, frozen=True, kw_only=True):
    """A named property, such as ``topologyManagerPolicy``."""

    name: str
    value: str | None = None


class ZoneCost(Schema, frozen=True, kw_only=True):
    """Distance to another zone."""

    name: str
    value: int


class ZoneResource(Schema, frozen=True, kw_only=True):
    """What one zone has of a resource, in nano-units; ``available`` left out is what is allocatable."""

    name: Name
    capacity: Quantity | None = None
    allocatable: Quantity | None = None
    available: Quantity | None = None


class ZoneEntry(Schema, frozen=True, kw_only=True):
    """A NUMA zone."""

    name: Name
    type: str | None = None
    costs: tuple[ZoneCost, ...] | None = None
    resources: tuple[ZoneResource, ...] | None = None


class ManagedField(Schema, frozen=True, kw_only=True):
    """When the object was last written."""

    time: Time | None = None


class NumaMetadata(Metadata, frozen=True, kw_only=True):
    """Metadata with the times of the writes, which tell the pods that the object cannot know yet."""

    managed_fields: tuple[ManagedField, ...] | None = None


class NodeResourceTopologyManifest(ObjectBase, frozen=True, kw_only=True):
    """topology.node.k8s.io NodeResourceTopology; its name is that of the node."""

    metadata: NumaMetadata
    topology_policies: tuple[str, ...] | None = None
    attributes: tuple[Attribute, ...] | None = None
    zones: tuple[ZoneEntry, ...] | None = None


class AppGroupWorkload(Schema, frozen=True, kw_only=True):
    """Reference to a workload; the KEP knows no selector."""

    kind: str
    name: Name
    selector: str | None = None
    api_version: str | None = None
    namespace: str | None = None


class DependencyEntry(Schema, frozen=True, kw_only=True):
    """A workload that is called, and what the calls need; a cost left out is 0."""

    workload: AppGroupWorkload
    min_bandwidth: Quantity | None = None
    max_network_cost: Annotated[int, Meta(ge=0, le=10000)] | None = None


class WorkloadDependencies(Schema, frozen=True, kw_only=True):
    """A workload and those that it calls."""

    workload: AppGroupWorkload
    dependencies: tuple[DependencyEntry, ...] | None = None


class AppGroupSpec(Schema, frozen=True, kw_only=True):
    """The workloads of an application and their dependencies."""

    num_members: Count | None = None
    topology_sorting_algorithm: str | None = None
    workloads: tuple[WorkloadDependencies, ...] | None = None


class TopologyOrder(Schema, frozen=True, kw_only=True):
    """Place of a workload in the order that the controller computed."""

    workload: AppGroupWorkload
    index: Count | None = None


class AppGroupStatus(Schema, frozen=True, kw_only=True):
    """What the controller stored."""

    schedule_start_time: Time | None = None
    topology_calculation_time: Time | None = None
    topology_order: tuple[TopologyOrder, ...] | None = None


class AppGroupManifest(NamespacedObject, frozen=True, kw_only=True):
    """appgroup.diktyo.x-k8s.io/v1alpha1 AppGroup."""

    spec: AppGroupSpec | None = None
    status: AppGroupStatus | None = None


class Cost(Schema, frozen=True, kw_only=True):
    """Cost and bandwidth of the link to one destination; a capacity left out is unlimited."""

    destination: str
    network_cost: Count
    bandwidth_capacity: Quantity | None = None


class OriginCosts(Schema, frozen=True, kw_only=True):
    """Costs from one region or zone."""

    SPELLINGS: ClassVar = ("costList", "costs")

    origin: str
    shipped: tuple[Cost, ...] | None = field(default=None, name="costList")
    proposed: tuple[Cost, ...] | None = field(default=None, name="costs")

    @property
    def costs(self) -> tuple[Cost, ...] | None:
        """Costs to destinations, under whichever name."""
        return self.proposed if self.shipped is None else self.shipped


class TopologyCosts(Schema, frozen=True, kw_only=True):
    """Costs between regions or between zones."""

    SPELLINGS: ClassVar = ("originList", "originCosts")

    topology_key: str
    shipped: tuple[OriginCosts, ...] | None = field(default=None, name="originList")
    proposed: tuple[OriginCosts, ...] | None = field(default=None, name="originCosts")

    @property
    def origins(self) -> tuple[OriginCosts, ...] | None:
        """Costs by origin, under whichever name."""
        return self.proposed if self.shipped is None else self.shipped


class CostList(Schema, frozen=True, kw_only=True):
    """One named list of costs."""

    SPELLINGS: ClassVar = ("topologyList", "costList")

    name: str
    shipped: tuple[TopologyCosts, ...] | None = field(default=None, name="topologyList")
    proposed: tuple[TopologyCosts, ...] | None = field(default=None, name="costList")

    @property
    def topologies(self) -> tuple[TopologyCosts, ...] | None:
        """Costs by kind of area, under whichever name."""
        return self.proposed if self.shipped is None else self.shipped


class NetworkTopologySpec(Schema, frozen=True, kw_only=True):
    """Costs by hand or from measurements in a ConfigMap."""

    SPELLINGS: ClassVar = ("configmapName", "configMapName")

    shipped: str | None = field(default=None, name="configmapName")
    proposed: str | None = field(default=None, name="configMapName")
    weights: tuple[CostList, ...] | None = None

    @property
    def configmap_name(self) -> str | None:
        """Name of the ConfigMap, under whichever name of the field."""
        return self.proposed if self.shipped is None else self.shipped


class NetworkTopologyManifest(NamespacedObject, frozen=True, kw_only=True):
    """networktopology.diktyo.x-k8s.io/v1alpha1 NetworkTopology."""

    spec: NetworkTopologySpec | None = None
