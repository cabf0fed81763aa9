"""apps/v1 Deployment, StatefulSet, ReplicaSet; batch/v1 Job: workloads whose pods can be made offline."""

from __future__ import annotations

from typing import Generic, TypeVar

from placer.kube.base import Condition, Count, LabelSelector, Named, NamespacedObject, Schema, Work, WorkWithStatus
from placer.kube.pod import PodSpec, PodTemplateSpec
from placer.kube.scheduling import UpstreamScheduling

PodTemplate = TypeVar("PodTemplate", covariant=True)


class WorkloadSpec(Schema, frozen=True, kw_only=True):
    """Replicas left out are 1."""

    replicas: Count | None = None
    selector: LabelSelector | None = None
    template: PodTemplateSpec


DeploymentManifest = Work[WorkloadSpec]


class ClaimTemplate(Schema, frozen=True, kw_only=True):
    """Every pod of a StatefulSet gets one such claim."""

    metadata: Named


class Ordinals(Schema, frozen=True, kw_only=True):
    start: Count | None = None


class StatefulSetSpec(WorkloadSpec, frozen=True, kw_only=True):
    ordinals: Ordinals | None = None
    volume_claim_templates: tuple[ClaimTemplate, ...] | None = None


StatefulSetManifest = Work[StatefulSetSpec]


class ReplicaSetManifest(NamespacedObject, frozen=True, kw_only=True):
    """Read as the link between a pod and its Deployment."""


class DaemonSetTemplate(Schema, frozen=True, kw_only=True):
    """Without labels and annotations."""

    spec: PodSpec


class DaemonSetSpec(Schema, frozen=True, kw_only=True):
    template: DaemonSetTemplate


class DaemonSetStatus(Schema, frozen=True, kw_only=True):
    desired_number_scheduled: int | None = None
    number_ready: int | None = None
    observed_generation: int | None = None


class DaemonSetManifest(NamespacedObject, frozen=True, kw_only=True):
    """Read in a cluster alone, for the room of pods that are still to come."""

    spec: DaemonSetSpec
    status: DaemonSetStatus | None = None


class JobSpec(Schema, Generic[PodTemplate], frozen=True, kw_only=True):
    """By ``scheduling`` the pods become a gang."""

    parallelism: Count | None = None
    completions: Count | None = None
    completion_mode: str | None = None
    suspend: bool | None = None
    managed_by: str | None = None
    scheduling: UpstreamScheduling | None = None
    template: PodTemplate


class JobStatus(Schema, frozen=True, kw_only=True):
    conditions: tuple[Condition, ...] | None = None


JobManifest = WorkWithStatus[JobSpec[PodTemplateSpec], JobStatus]
