"""scheduling.x-k8s.io PodGroup of scheduler-plugins; older manifests use the groups of its first releases."""

from __future__ import annotations

from placer.kube.base import Count, NamespacedObject, Quantities, schema

__all__ = ["PodGroup", "PodGroupSpec"]


@schema
class PodGroupSpec:
    """What a gang needs."""

    min_member: Count | None = None
    min_resources: Quantities | None = None


@schema
class PodGroup(NamespacedObject):
    """scheduling.x-k8s.io/v1alpha1 PodGroup."""

    spec: PodGroupSpec | None = None
