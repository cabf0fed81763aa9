"""JobSets (``api/jobset/v1alpha2``, v0.12), LeaderWorkerSets (``api/leaderworkerset/v1``, v0.10): sets of gangs."""

from __future__ import annotations

from typing import Literal

from placer.kube.apps import ClaimTemplate, JobSpec, JobStatus
from placer.kube.base import (
    Count,
    MaybeNamed,
    Name,
    Named,
    Positive,
    Present,
    Schema,
    Template,
    Work,
    WorkWithStatus,
)
from placer.kube.pod import Container, PodSpec, PodTemplateSpec
from placer.kube.scheduling import UpstreamScheduling


class MountingContainer(Container, frozen=True, kw_only=True):
    """A JobSet adds the volumes of its claims to containers that mount them."""

    volume_mounts: tuple[MaybeNamed, ...] | None = None


class MountingPodSpec(PodSpec, frozen=True, kw_only=True):
    containers: tuple[MountingContainer, ...] | None = None
    init_containers: tuple[MountingContainer, ...] | None = None


ChildJobTemplate = Template[JobSpec[Template[MountingPodSpec]]]


class VolumeClaimPolicy(Schema, frozen=True, kw_only=True):
    """Claims that all pods of a set share, one of each template."""

    templates: tuple[ClaimTemplate, ...] | None = None


class ReplicatedJob(Schema, frozen=True, kw_only=True):
    """Replicas left out are 1, a group left out is ``default``."""

    name: Name
    group_name: str | None = None
    replicas: Count | None = None
    template: ChildJobTemplate
    depends_on: tuple[Named, ...] | None = None
    scheduling: Present | None = None


class JobSetNetwork(Schema, frozen=True, kw_only=True, rename={"enable_dns_hostnames": "enableDNSHostnames"}):
    enable_dns_hostnames: bool | None = None
    subdomain: str | None = None


class Coordinator(Schema, frozen=True, kw_only=True):
    replicated_job: str | None = None
    job_index: Count | None = None
    pod_index: Count | None = None


class StartupPolicy(Schema, frozen=True, kw_only=True):
    """``InOrder``: a replicated job gets its Jobs when those of the one before are ready."""

    startup_policy_order: str | None = None


class JobSetTargetScheduling(UpstreamScheduling, frozen=True, kw_only=True):
    target_replicated_jobs: tuple[Name, ...] | None = None
    job: UpstreamScheduling | None = None


class JobSetScheduling(UpstreamScheduling, frozen=True, kw_only=True):
    replicated_jobs: tuple[JobSetTargetScheduling, ...] | None = None


class JobSetSpec(Schema, frozen=True, kw_only=True):
    replicated_jobs: tuple[ReplicatedJob, ...] | None = None
    network: JobSetNetwork | None = None
    coordinator: Coordinator | None = None
    startup_policy: StartupPolicy | None = None
    scheduling: JobSetScheduling | None = None
    suspend: bool | None = None
    managed_by: str | None = None
    volume_claim_policies: tuple[VolumeClaimPolicy, ...] | None = None


class JobSetStatus(JobStatus, frozen=True, kw_only=True):
    restarts: Count | None = None


JobSetManifest = WorkWithStatus[JobSetSpec, JobSetStatus]


class LeaderWorkerSubGroups(Schema, frozen=True, kw_only=True):
    """The leader is in the first subgroup, or in none."""

    sub_group_policy_type: Literal["LeaderWorker", "LeaderExcluded"] | None = None
    sub_group_size: Positive | None = None


class LeaderWorkerTemplate(Schema, frozen=True, kw_only=True):
    """A leader without a template is as the ``size`` - 1 workers are."""

    size: Positive | None = None
    leader_template: PodTemplateSpec | None = None
    worker_template: PodTemplateSpec
    sub_group_policy: LeaderWorkerSubGroups | None = None
    volume_claim_templates: tuple[ClaimTemplate, ...] | None = None


class LeaderWorkerNetwork(Schema, frozen=True, kw_only=True):
    subdomain_policy: str | None = None


class LeaderWorkerSetSpec(Schema, frozen=True, kw_only=True):
    """Replicas left out are 1."""

    replicas: Count | None = None
    startup_policy: Literal["LeaderCreated", "LeaderReady"] | None = None
    leader_worker_template: LeaderWorkerTemplate
    network_config: LeaderWorkerNetwork | None = None


LeaderWorkerSetManifest = Work[LeaderWorkerSetSpec]
