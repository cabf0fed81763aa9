"""v1 Node, ConfigMap, Namespace, PersistentVolumeClaim, PersistentVolume; scheduling.k8s.io/v1 PriorityClass."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from placer.kube.base import NamespacedObject, NodeSelector, ObjectBase, Quantities, Schema

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


class TaintEntry(Schema, frozen=True, kw_only=True):
    """What keeps pods off a node unless they tolerate it."""

    key: str
    value: str | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


class NodeSpec(Schema, frozen=True, kw_only=True):
    """What is wanted of a node."""

    unschedulable: bool | None = None
    taints: tuple[TaintEntry, ...] | None = None


class NodeCondition(Schema, frozen=True, kw_only=True):
    """One condition of a node; ``Ready`` is the one that is read."""

    type: str
    status: str


class NodeStatus(Schema, frozen=True, kw_only=True):
    """What a node has."""

    allocatable: Quantities | None = None
    capacity: Quantities | None = None
    conditions: tuple[NodeCondition, ...] | None = None


class NodeManifest(ObjectBase, frozen=True, kw_only=True):
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


class ConfigMapManifest(NamespacedObject, frozen=True, kw_only=True):
    """v1 ConfigMap."""

    data: dict[str, str] | None = None


class NamespaceManifest(ObjectBase, frozen=True, kw_only=True):
    """v1 Namespace."""


class PersistentVolumeClaimSpec(Schema, frozen=True, kw_only=True):
    """What a claim asks for."""

    volume_name: str | None = None
    access_modes: tuple[str, ...] | None = None


class PersistentVolumeClaimStatus(Schema, frozen=True, kw_only=True):
    """Whether a claim is bound."""

    phase: str | None = None


class PersistentVolumeClaimManifest(NamespacedObject, frozen=True, kw_only=True):
    """v1 PersistentVolumeClaim."""

    spec: PersistentVolumeClaimSpec | None = None
    status: PersistentVolumeClaimStatus | None = None


class VolumeNodeAffinity(Schema, frozen=True, kw_only=True):
    """Nodes from which a volume can be reached."""

    required: NodeSelector | None = None


class ClaimReference(Schema, frozen=True, kw_only=True):
    """The claim that a volume is bound to."""

    namespace: str | None = None
    name: str | None = None
    uid: str | None = None


class PersistentVolumeSpec(Schema, frozen=True, kw_only=True):
    """Where a volume can be used and who has it."""

    node_affinity: VolumeNodeAffinity | None = None
    claim_ref: ClaimReference | None = None


class PersistentVolumeManifest(ObjectBase, frozen=True, kw_only=True):
    """v1 PersistentVolume."""

    spec: PersistentVolumeSpec | None = None


class PriorityClassManifest(ObjectBase, frozen=True, kw_only=True):
    """scheduling.k8s.io/v1 PriorityClass."""

    value: Annotated[int, Meta(ge=-(2**31), lt=2**31)]
    global_default: bool | None = None
    preemption_policy: str | None = None
