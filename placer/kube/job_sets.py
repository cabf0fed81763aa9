"""jobset.x-k8s.io JobSet (``api/jobset/v1alpha2``, v0.12): batch Jobs that belong together."""

from __future__ import annotations

from placer.kube.apps import ClaimTemplate, JobSpec
from placer.kube.base import Condition, Count, MaybeNamed, Name, Named, Present, Schema, Template, WorkWithStatus
from placer.kube.pod import Container, PodSpec
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


class JobSetStatus(Schema, frozen=True, kw_only=True):
    conditions: tuple[Condition, ...] | None = None
    restarts: Count | None = None


JobSetManifest = WorkWithStatus[JobSetSpec, JobSetStatus]
