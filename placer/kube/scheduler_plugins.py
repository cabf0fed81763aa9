"""Kinds that the plugins of scheduler-plugins read: coscheduling, network awareness and NUMA.

AppGroup and NetworkTopology (diktyo.x-k8s.io) have two spellings, as shipped and of KEP-260, which become one schema:

=============  ==================================  ====================================
level          shipped                             KEP-260
=============  ==================================  ====================================
weights        ``topologyList``                    ``costList``
topology       ``originList``                      ``originCosts``
origin         ``costList``                        ``costs``
spec           ``configmapName``                   ``configMapName``
workload       ``selector`` required               no selector
=============  ==================================  ====================================
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta, field

from placer.kube.base import (
    Count,
    Metadata,
    Name,
    ObjectBase,
    Quantities,
    Quantity,
    Schema,
    Specified,
    SpecifiedWithStatus,
    Time,
)


class CoschedulingPodGroupSpec(Schema, frozen=True, kw_only=True):
    min_member: Count | None = None
    min_resources: Quantities | None = None


class CoschedulingPodGroupStatus(Schema, frozen=True, kw_only=True):
    """Koordinator alone counts ``scheduled``."""

    phase: str | None = None
    scheduled: int | None = None


CoschedulingPodGroupManifest = SpecifiedWithStatus[CoschedulingPodGroupSpec, CoschedulingPodGroupStatus]


class Attribute(Schema, frozen=True, kw_only=True):
    name: str
    value: str | None = None


class ZoneCost(Schema, frozen=True, kw_only=True):
    name: str
    value: int


class ZoneResource(Schema, frozen=True, kw_only=True):
    """In nano-units; ``available`` left out is the allocatable amount."""

    name: Name
    capacity: Quantity | None = None
    allocatable: Quantity | None = None
    available: Quantity | None = None


class ZoneEntry(Schema, frozen=True, kw_only=True):
    name: Name
    type: str | None = None
    costs: tuple[ZoneCost, ...] | None = None
    resources: tuple[ZoneResource, ...] | None = None


class ManagedField(Schema, frozen=True, kw_only=True):
    time: Time | None = None


class NumaMetadata(Metadata, frozen=True, kw_only=True):
    """Metadata with the times of the writes."""

    managed_fields: tuple[ManagedField, ...] | None = None


class NodeResourceTopologyManifest(ObjectBase, frozen=True, kw_only=True):
    """Its name is that of the node."""

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
    """A cost left out is 0."""

    workload: AppGroupWorkload
    min_bandwidth: Quantity | None = None
    max_network_cost: Annotated[int, Meta(ge=0, le=10000)] | None = None


class WorkloadDependencies(Schema, frozen=True, kw_only=True):
    workload: AppGroupWorkload
    dependencies: tuple[DependencyEntry, ...] | None = None


class AppGroupSpec(Schema, frozen=True, kw_only=True):
    num_members: Count | None = None
    topology_sorting_algorithm: str | None = None
    workloads: tuple[WorkloadDependencies, ...] | None = None


class TopologyOrder(Schema, frozen=True, kw_only=True):
    workload: AppGroupWorkload
    index: Count | None = None


class AppGroupStatus(Schema, frozen=True, kw_only=True):
    schedule_start_time: Time | None = None
    topology_calculation_time: Time | None = None
    topology_order: tuple[TopologyOrder, ...] | None = None


AppGroupManifest = SpecifiedWithStatus[AppGroupSpec, AppGroupStatus]


class Cost(Schema, frozen=True, kw_only=True):
    """A capacity left out is unlimited."""

    destination: str
    network_cost: Count
    bandwidth_capacity: Quantity | None = None


class OriginCosts(Schema, frozen=True, kw_only=True):
    SPELLINGS: ClassVar = ("costList", "costs")

    origin: str
    shipped: tuple[Cost, ...] | None = field(default=None, name="costList")
    proposed: tuple[Cost, ...] | None = field(default=None, name="costs")

    @property
    def costs(self) -> tuple[Cost, ...] | None:
        """Costs to destinations, in either spelling."""
        return self.proposed if self.shipped is None else self.shipped


class TopologyCosts(Schema, frozen=True, kw_only=True):
    SPELLINGS: ClassVar = ("originList", "originCosts")

    topology_key: str
    shipped: tuple[OriginCosts, ...] | None = field(default=None, name="originList")
    proposed: tuple[OriginCosts, ...] | None = field(default=None, name="originCosts")

    @property
    def origins(self) -> tuple[OriginCosts, ...] | None:
        """Costs by origin, in either spelling."""
        return self.proposed if self.shipped is None else self.shipped


class CostList(Schema, frozen=True, kw_only=True):
    SPELLINGS: ClassVar = ("topologyList", "costList")

    name: str
    shipped: tuple[TopologyCosts, ...] | None = field(default=None, name="topologyList")
    proposed: tuple[TopologyCosts, ...] | None = field(default=None, name="costList")

    @property
    def topologies(self) -> tuple[TopologyCosts, ...] | None:
        """Costs by kind of area, in either spelling."""
        return self.proposed if self.shipped is None else self.shipped


class NetworkTopologySpec(Schema, frozen=True, kw_only=True):
    SPELLINGS: ClassVar = ("configmapName", "configMapName")

    shipped: str | None = field(default=None, name="configmapName")
    proposed: str | None = field(default=None, name="configMapName")
    weights: tuple[CostList, ...] | None = None

    @property
    def configmap_name(self) -> str | None:
        """Name of the ConfigMap, in either spelling."""
        return self.proposed if self.shipped is None else self.shipped


NetworkTopologyManifest = Specified[NetworkTopologySpec]
