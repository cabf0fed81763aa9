"""AppGroup and NetworkTopology, as shipped and as KEP-260 spells them; both spellings become the same schema.

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

from typing import Annotated, Any

from pydantic import AliasChoices, AwareDatetime, Field

from placer.kube.base import Count, Name, NamespacedObject, Quantity, schema

__all__ = [
    "AppGroupManifest",
    "AppGroupSpec",
    "AppGroupWorkload",
    "Cost",
    "CostList",
    "DependencyEntry",
    "NetworkTopologyManifest",
    "NetworkTopologySpec",
    "OriginCosts",
    "TopologyCosts",
    "TopologyOrder",
    "WorkloadDependencies",
]


def _either(shipped: str, proposed: str) -> Any:
    """Read a field under the shipped name or, where that is left out, under the KEP's."""
    return Field(validation_alias=AliasChoices(shipped, proposed))


@schema
class AppGroupWorkload:
    """Reference to a workload; the KEP knows no selector."""

    kind: str
    name: Name
    selector: str | None = None
    api_version: str | None = None
    namespace: str | None = None


@schema
class DependencyEntry:
    """A workload that is called, and what the calls need; a cost left out is 0."""

    workload: AppGroupWorkload
    min_bandwidth: Quantity | None = None
    max_network_cost: Annotated[int, Field(ge=0, le=10000)] | None = None


@schema
class WorkloadDependencies:
    """A workload and those that it calls."""

    workload: AppGroupWorkload
    dependencies: tuple[DependencyEntry, ...] | None = None


@schema
class AppGroupSpec:
    """The workloads of an application and their dependencies."""

    num_members: Count | None = None
    topology_sorting_algorithm: str | None = None
    workloads: tuple[WorkloadDependencies, ...] | None = None


@schema
class TopologyOrder:
    """Place of a workload in the order that the controller computed."""

    workload: AppGroupWorkload
    index: Count | None = None


@schema
class AppGroupStatus:
    """What the controller stored."""

    schedule_start_time: AwareDatetime | None = None
    topology_calculation_time: AwareDatetime | None = None
    topology_order: tuple[TopologyOrder, ...] | None = None


@schema
class AppGroupManifest(NamespacedObject):
    """appgroup.diktyo.x-k8s.io/v1alpha1 AppGroup."""

    spec: AppGroupSpec | None = None
    status: AppGroupStatus | None = None


@schema
class Cost:
    """Cost and bandwidth of the link to one destination; a capacity left out is unlimited."""

    destination: str
    network_cost: Count
    bandwidth_capacity: Quantity | None = None


@schema
class OriginCosts:
    """Costs from one region or zone."""

    origin: str
    costs: Annotated[tuple[Cost, ...] | None, _either("costList", "costs")] = None


@schema
class TopologyCosts:
    """Costs between regions or between zones."""

    topology_key: str
    origins: Annotated[tuple[OriginCosts, ...] | None, _either("originList", "originCosts")] = None


@schema
class CostList:
    """One named list of costs."""

    name: str
    topologies: Annotated[tuple[TopologyCosts, ...] | None, _either("topologyList", "costList")] = None


@schema
class NetworkTopologySpec:
    """Costs by hand or from measurements in a ConfigMap."""

    configmap_name: Annotated[str | None, _either("configmapName", "configMapName")] = None
    weights: tuple[CostList, ...] | None = None


@schema
class NetworkTopologyManifest(NamespacedObject):
    """networktopology.diktyo.x-k8s.io/v1alpha1 NetworkTopology."""

    spec: NetworkTopologySpec | None = None
