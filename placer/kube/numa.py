"""topology.node.k8s.io NodeResourceTopology, v1alpha1 and v1alpha2: the NUMA zones of a node."""

from __future__ import annotations

from pydantic import AwareDatetime

from placer.kube.base import Metadata, Name, ObjectBase, Quantity, schema

__all__ = [
    "Attribute",
    "ManagedField",
    "NodeResourceTopologyManifest",
    "NumaMetadata",
    "ZoneCost",
    "ZoneEntry",
    "ZoneResource",
]


@schema
class Attribute:
    """A named property, such as ``topologyManagerPolicy``."""

    name: str
    value: str | None = None


@schema
class ZoneCost:
    """Distance to another zone."""

    name: str
    value: int


@schema
class ZoneResource:
    """What one zone has of a resource, in nano-units; ``available`` left out is what is allocatable."""

    name: Name
    capacity: Quantity | None = None
    allocatable: Quantity | None = None
    available: Quantity | None = None


@schema
class ZoneEntry:
    """A NUMA zone."""

    name: Name
    type: str | None = None
    costs: tuple[ZoneCost, ...] | None = None
    resources: tuple[ZoneResource, ...] | None = None


@schema
class ManagedField:
    """When the object was last written."""

    time: AwareDatetime | None = None


@schema
class NumaMetadata(Metadata):
    """Metadata with the times of the writes, which tell the pods that the object cannot know yet."""

    managed_fields: tuple[ManagedField, ...] | None = None


@schema
class NodeResourceTopologyManifest(ObjectBase):
    """topology.node.k8s.io NodeResourceTopology; its name is that of the node."""

    metadata: NumaMetadata
    topology_policies: tuple[str, ...] | None = None
    attributes: tuple[Attribute, ...] | None = None
    zones: tuple[ZoneEntry, ...] | None = None
