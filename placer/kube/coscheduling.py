"""scheduling.x-k8s.io PodGroup of scheduler-plugins; older manifests use the groups of its first releases."""

from __future__ import annotations

from placer.kube.base import Count, NamespacedObject, Quantities, schema

__all__ = ["CoschedulingPodGroupManifest", "CoschedulingPodGroupSpec"]


@schema
class CoschedulingPodGroupSpec:
    """What a gang needs."""

    min_member: Count | None = None
    min_resources: Quantities | None = None


@schema
class CoschedulingPodGroupManifest(NamespacedObject):
    """scheduling.x-k8s.io/v1alpha1 PodGroup."""

    spec: CoschedulingPodGroupSpec | None = None
