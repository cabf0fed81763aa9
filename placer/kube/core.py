"""v1 Node, ConfigMap, Namespace, PersistentVolumeClaim, PersistentVolume; scheduling.k8s.io/v1 PriorityClass."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from placer.kube.base import Condition, NamespacedObject, NodeSelector, ObjectBase, Phase, Quantities, Schema


class TaintEntry(Schema, frozen=True, kw_only=True):
    key: str
    value: str | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


class NodeSpec(Schema, frozen=True, kw_only=True):
    unschedulable: bool | None = None
    taints: tuple[TaintEntry, ...] | None = None


class NodeStatus(Schema, frozen=True, kw_only=True):
    allocatable: Quantities | None = None
    capacity: Quantities | None = None
    conditions: tuple[Condition, ...] | None = None


class NodeManifest(ObjectBase, frozen=True, kw_only=True):
    spec: NodeSpec | None = None
    status: NodeStatus | None = None

    @property
    def allocatable(self) -> Quantities:
        """Amounts for pods, in nano-units: ``status.allocatable``, or the capacity where that is left out."""
        if self.status is None:
            return {}
        if self.status.allocatable is not None:
            return self.status.allocatable
        return self.status.capacity or {}


class ConfigMapManifest(NamespacedObject, frozen=True, kw_only=True):
    data: dict[str, str] | None = None


class NamespaceManifest(ObjectBase, frozen=True, kw_only=True): ...


class PersistentVolumeClaimSpec(Schema, frozen=True, kw_only=True):
    volume_name: str | None = None
    access_modes: tuple[str, ...] | None = None


class PersistentVolumeClaimManifest(NamespacedObject, frozen=True, kw_only=True):
    spec: PersistentVolumeClaimSpec | None = None
    status: Phase | None = None


class VolumeNodeAffinity(Schema, frozen=True, kw_only=True):
    required: NodeSelector | None = None


class ClaimReference(Schema, frozen=True, kw_only=True):
    namespace: str | None = None
    name: str | None = None
    uid: str | None = None


class PersistentVolumeSpec(Schema, frozen=True, kw_only=True):
    node_affinity: VolumeNodeAffinity | None = None
    claim_ref: ClaimReference | None = None


class PersistentVolumeManifest(ObjectBase, frozen=True, kw_only=True):
    spec: PersistentVolumeSpec | None = None


class PriorityClassManifest(ObjectBase, frozen=True, kw_only=True):
    value: Annotated[int, Meta(ge=-(2**31), lt=2**31)]
    global_default: bool | None = None
    preemption_policy: str | None = None
