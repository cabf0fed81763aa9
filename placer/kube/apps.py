"""apps/v1 Deployment, StatefulSet, ReplicaSet; batch/v1 Job: workloads whose pods can be made offline."""

from __future__ import annotations

from placer.kube.base import Count, LabelSelector, Name, NamespacedObject, Schema
from placer.kube.pod import PodSpec, PodTemplateSpec
from placer.kube.scheduling import UpstreamSchedulingConstraints, UpstreamSchedulingPolicy

__all__ = [
    "ClaimTemplate",
    "DaemonSetManifest",
    "DaemonSetSpec",
    "DaemonSetStatus",
    "DaemonSetTemplate",
    "DeploymentManifest",
    "JobCondition",
    "JobManifest",
    "JobScheduling",
    "JobSpec",
    "JobStatus",
    "Ordinals",
    "ReplicaSetManifest",
    "StatefulSetManifest",
    "StatefulSetSpec",
    "WorkloadSpec",
]


class WorkloadSpec(Schema, frozen=True, kw_only=True):
    """Equal pods, so many of them; replicas left out are 1."""

    replicas: Count | None = None
    selector: LabelSelector | None = None
    template: PodTemplateSpec


class DeploymentManifest(NamespacedObject, frozen=True, kw_only=True):
    """apps/v1 Deployment."""

    spec: WorkloadSpec


class ClaimTemplateMetadata(Schema, frozen=True, kw_only=True):
    """Name of a claim template: that of the volume, and the start of the claim's name."""

    name: Name


class ClaimTemplate(Schema, frozen=True, kw_only=True):
    """A claim that every pod of a StatefulSet gets one of."""

    metadata: ClaimTemplateMetadata


class Ordinals(Schema, frozen=True, kw_only=True):
    """Where the numbers of a StatefulSet's pods begin."""

    start: Count | None = None


class StatefulSetSpec(WorkloadSpec, frozen=True, kw_only=True):
    """Equal pods with a number and claims of their own."""

    ordinals: Ordinals | None = None
    volume_claim_templates: tuple[ClaimTemplate, ...] | None = None


class StatefulSetManifest(NamespacedObject, frozen=True, kw_only=True):
    """apps/v1 StatefulSet."""

    spec: StatefulSetSpec


class ReplicaSetManifest(NamespacedObject, frozen=True, kw_only=True):
    """apps/v1 ReplicaSet; read as the link between a pod and its Deployment."""


class DaemonSetTemplate(Schema, frozen=True, kw_only=True):
    """The pod that a DaemonSet makes one of on each node, without its labels and annotations."""

    spec: PodSpec


class DaemonSetSpec(Schema, frozen=True, kw_only=True):
    """What its pods are made from."""

    template: DaemonSetTemplate


class DaemonSetStatus(Schema, frozen=True, kw_only=True):
    """What the controller reports of a DaemonSet."""

    desired_number_scheduled: int | None = None
    number_ready: int | None = None
    observed_generation: int | None = None


class DaemonSetManifest(NamespacedObject, frozen=True, kw_only=True):
    """apps/v1 DaemonSet; read in a cluster alone, for the room of pods that are still to come."""

    spec: DaemonSetSpec
    status: DaemonSetStatus | None = None


class JobScheduling(Schema, frozen=True, kw_only=True):
    """How the pods of a Job are scheduled; without a ``minCount`` a gang is all that run at once."""

    scheduling_policy: UpstreamSchedulingPolicy | None = None
    scheduling_constraints: UpstreamSchedulingConstraints | None = None


class JobSpec(Schema, frozen=True, kw_only=True):
    """Pods that run to completion; by ``scheduling`` they become a gang."""

    parallelism: Count | None = None
    completions: Count | None = None
    completion_mode: str | None = None
    suspend: bool | None = None
    managed_by: str | None = None
    scheduling: JobScheduling | None = None
    template: PodTemplateSpec


class JobCondition(Schema, frozen=True, kw_only=True):
    """One condition of a job; ``Complete`` and ``Failed`` mean that it makes no more pods."""

    type: str
    status: str


class JobStatus(Schema, frozen=True, kw_only=True):
    """What the controller reports of a job."""

    conditions: tuple[JobCondition, ...] | None = None


class JobManifest(NamespacedObject, frozen=True, kw_only=True):
    """batch/v1 Job."""

    spec: JobSpec
    status: JobStatus | None = None
