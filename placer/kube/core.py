"""v1 Node, ConfigMap, Namespace, PersistentVolumeClaim, PersistentVolume; scheduling.k8s.io/v1 PriorityClass."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from placer.kube.base import NamespacedObject, NodeSelector, ObjectBase, Quantities, schema

__all__ = [
    "ConfigMapManifest",
    "NamespaceManifest",
    "NodeCondition",
    "NodeManifest",
    "NodeSpec",
    "NodeStatus",
    "PersistentVolumeClaimManifest",
    "PersistentVolumeClaimSpec",
    "PersistentVolumeManifest",
    "PersistentVolumeSpec",
    "PriorityClassManifest",
    "TaintEntry",
]


@schema
class TaintEntry:
    """What keeps pods off a node unless they tolerate it."""

    key: str
    value: str | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


@schema
class NodeSpec:
    """What is wanted of a node."""

    unschedulable: bool | None = None
    taints: tuple[TaintEntry, ...] | None = None


@schema
class NodeCondition:
    """One condition of a node; ``Ready`` is the one that is read."""

    type: str
    status: str


@schema
class NodeStatus:
    """What a node has."""

    allocatable: Quantities | None = None
    capacity: Quantities | None = None
    conditions: tuple[NodeCondition, ...] | None = None


@schema
class NodeManifest(ObjectBase):
    """v1 Node."""

    spec: NodeSpec | None = None
    status: NodeStatus | None = None

    @property
    def allocatable(self) -> Quantities:
        """What pods may use, in nano-units: ``status.allocatable``, or the capacity where that is left out."""
        if self.status is None:
            return {}
        if self.status.allocatable is not None:
            return self.status.allocatable
        return self.status.capacity or {}


@schema
class ConfigMapManifest(NamespacedObject):
    """v1 ConfigMap."""

    data: dict[str, str] | None = None


@schema
class NamespaceManifest(ObjectBase):
    """v1 Namespace."""


@schema
class PersistentVolumeClaimSpec:
    """What a claim asks for."""

    volume_name: str | None = None
    access_modes: tuple[str, ...] | None = None


@schema
class PersistentVolumeClaimStatus:
    """Whether a claim is bound."""

    phase: str | None = None


@schema
class PersistentVolumeClaimManifest(NamespacedObject):
    """v1 PersistentVolumeClaim."""

    spec: PersistentVolumeClaimSpec | None = None
    status: PersistentVolumeClaimStatus | None = None


@schema
class VolumeNodeAffinity:
    """Nodes from which a volume can be reached."""

    required: NodeSelector | None = None


@schema
class ClaimReference:
    """The claim that a volume is bound to."""

    namespace: str | None = None
    name: str | None = None
    uid: str | None = None


@schema
class PersistentVolumeSpec:
    """Where a volume can be used and who has it."""

    node_affinity: VolumeNodeAffinity | None = None
    claim_ref: ClaimReference | None = None


@schema
class PersistentVolumeManifest(ObjectBase):
    """v1 PersistentVolume."""

    spec: PersistentVolumeSpec | None = None


@schema
class PriorityClassManifest(ObjectBase):
    """scheduling.k8s.io/v1 PriorityClass."""

    value: Annotated[int, Field(ge=-(2**31), lt=2**31)]
    global_default: bool | None = None
