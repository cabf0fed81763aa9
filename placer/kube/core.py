"""v1 Node, ConfigMap, Namespace, volumes and claims; v1 PriorityClass and PodDisruptionBudget."""

from __future__ import annotations

from typing import Literal

from placer.kube.base import (
    Condition,
    Count,
    LabelSelector,
    NamespacedObject,
    NodeSelector,
    ObjectBase,
    Phase,
    Priority,
    Problem,
    Quantities,
    Schema,
    SpecifiedWithStatus,
)


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


PersistentVolumeClaimManifest = SpecifiedWithStatus[PersistentVolumeClaimSpec, Phase]


class VolumeNodeAffinity(Schema, frozen=True, kw_only=True):
    required: NodeSelector | None = None


class PersistentVolumeSpec(Schema, frozen=True, kw_only=True):
    node_affinity: VolumeNodeAffinity | None = None


class PersistentVolumeManifest(ObjectBase, frozen=True, kw_only=True):
    spec: PersistentVolumeSpec | None = None


class PriorityClassManifest(ObjectBase, frozen=True, kw_only=True):
    value: Priority
    global_default: bool | None = None
    preemption_policy: str | None = None


class BudgetSpec(Schema, frozen=True, kw_only=True):
    """A selector that is left out takes no pod, an empty one every pod of the namespace."""

    selector: LabelSelector | None = None
    min_available: int | str | None = None
    max_unavailable: int | str | None = None

    def __post_init__(self) -> None:
        if self.min_available is not None and self.max_unavailable is not None:
            raise Problem("minAvailable or maxUnavailable", "both")
        for value in (self.min_available, self.max_unavailable):
            if value is not None and amount_of(value, 100) < 0:
                raise Problem("a number of at least 0")


class BudgetStatus(Schema, frozen=True, kw_only=True):
    disruptions_allowed: Count | None = None


PodDisruptionBudgetManifest = SpecifiedWithStatus[BudgetSpec, BudgetStatus]


def amount_of(value: int | str, whole: int) -> int:
    """A number, or a percentage of ``whole`` rounded up; else :class:`Problem`."""
    if isinstance(value, int):
        return value
    digits, sign, rest = value.partition("%")
    if not (sign and not rest and digits.isascii() and digits.isdigit() and len(digits) < 10):
        raise Problem("a number or a percentage such as 50%", repr(value[:80]))
    return -(-int(digits) * whole // 100)
