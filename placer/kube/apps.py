"""apps/v1 Deployment, StatefulSet, ReplicaSet; batch/v1 Job: workloads whose pods can be made offline."""

from __future__ import annotations

from placer.kube.base import Count, LabelSelector, Name, NamespacedObject, Present, schema
from placer.kube.pod import PodTemplateSpec

__all__ = [
    "ClaimTemplate",
    "DeploymentManifest",
    "JobCondition",
    "JobManifest",
    "JobSpec",
    "JobStatus",
    "Ordinals",
    "ReplicaSetManifest",
    "StatefulSetManifest",
    "StatefulSetSpec",
    "WorkloadSpec",
]


@schema
class WorkloadSpec:
    """Equal pods, so many of them; replicas left out are 1."""

    replicas: Count | None = None
    selector: LabelSelector | None = None
    template: PodTemplateSpec


@schema
class DeploymentManifest(NamespacedObject):
    """apps/v1 Deployment."""

    spec: WorkloadSpec


@schema
class ClaimTemplateMetadata:
    """Name of a claim template: that of the volume, and the start of the claim's name."""

    name: Name


@schema
class ClaimTemplate:
    """A claim that every pod of a StatefulSet gets one of."""

    metadata: ClaimTemplateMetadata


@schema
class Ordinals:
    """Where the numbers of a StatefulSet's pods begin."""

    start: Count | None = None


@schema
class StatefulSetSpec(WorkloadSpec):
    """Equal pods with a number and claims of their own."""

    ordinals: Ordinals | None = None
    volume_claim_templates: tuple[ClaimTemplate, ...] | None = None


@schema
class StatefulSetManifest(NamespacedObject):
    """apps/v1 StatefulSet."""

    spec: StatefulSetSpec


@schema
class ReplicaSetManifest(NamespacedObject):
    """apps/v1 ReplicaSet; read as the link between a pod and its Deployment."""


@schema
class JobSpec:
    """Pods that run to completion; of ``scheduling``, by which they become an upstream gang, whether it is there."""

    parallelism: Count | None = None
    completions: Count | None = None
    completion_mode: str | None = None
    suspend: bool | None = None
    scheduling: Present | None = None
    template: PodTemplateSpec


@schema
class JobCondition:
    """One condition of a job; ``Complete`` and ``Failed`` mean that it makes no more pods."""

    type: str
    status: str


@schema
class JobStatus:
    """What the controller reports of a job."""

    conditions: tuple[JobCondition, ...] | None = None


@schema
class JobManifest(NamespacedObject):
    """batch/v1 Job."""

    spec: JobSpec
    status: JobStatus | None = None
