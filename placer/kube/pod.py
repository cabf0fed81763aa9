"""v1 Pod and the pod template that workloads share (C1-C10)."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from placer.kube.base import (
    Condition,
    Labels,
    LabelSelector,
    MaybeNamed,
    Name,
    Named,
    NodeSelector,
    Positive,
    Present,
    Priority,
    Quantities,
    Schema,
    Template,
    Time,
    WorkWithStatus,
)

_REQUIRED = field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
_PREFERRED = field(default=None, name="preferredDuringSchedulingIgnoredDuringExecution")

Port = Annotated[int, Meta(ge=0, le=65535)]


class ResourceRequirements(Schema, frozen=True, kw_only=True):
    """In nano-units."""

    requests: Quantities | None = None
    limits: Quantities | None = None


class ContainerPort(Schema, frozen=True, kw_only=True):
    """Only host ports matter to placement."""

    container_port: Port | None = None
    host_port: Port | None = None
    host_ip: str | None = field(default=None, name="hostIP")
    protocol: Literal["TCP", "UDP", "SCTP", ""] | None = None


class Container(Schema, frozen=True, kw_only=True):
    """``restartPolicy: Always`` makes an init container a sidecar."""

    name: str | None = None
    resources: ResourceRequirements | None = None
    ports: tuple[ContainerPort, ...] | None = None
    restart_policy: str | None = None


class NodeAffinity(Schema, frozen=True, kw_only=True):
    """Of the preferred part only its presence counts."""

    required: NodeSelector | None = _REQUIRED
    preferred: tuple[Present, ...] | None = _PREFERRED


class PodAffinityTerm(Schema, frozen=True, kw_only=True):
    topology_key: str | None = None
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] | None = None
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] | None = None
    mismatch_label_keys: tuple[str, ...] | None = None


class PodAffinity(Schema, frozen=True, kw_only=True):
    """Of the preferred part only its presence counts."""

    required: tuple[PodAffinityTerm, ...] | None = _REQUIRED
    preferred: tuple[Present, ...] | None = _PREFERRED


class Affinity(Schema, frozen=True, kw_only=True):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TolerationEntry(Schema, frozen=True, kw_only=True):
    """An operator left out is Equal, an effect left out means every effect."""

    key: str | None = None
    operator: Literal["Exists", "Equal", "Lt", "Gt", ""] | None = None
    value: str | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute", ""] | None = None


class SpreadConstraint(Schema, frozen=True, kw_only=True):
    """A policy left out is Honor for node affinity and Ignore for taints."""

    topology_key: str | None = None
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"] | None = None
    max_skew: Positive | None = None
    min_domains: Positive | None = None
    label_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] | None = None
    node_affinity_policy: Literal["Honor", "Ignore"] | None = None
    node_taints_policy: Literal["Honor", "Ignore"] | None = None


class ClaimVolume(Schema, frozen=True, kw_only=True):
    claim_name: Name


class VolumeEntry(Schema, frozen=True, kw_only=True):
    """Claims decide where a pod can run; a disk that it names itself is a finding."""

    name: str | None = None
    persistent_volume_claim: ClaimVolume | None = None
    ephemeral: Present | None = None
    aws_elastic_block_store: Present | None = None
    azure_disk: Present | None = None
    cinder: Present | None = None
    gce_persistent_disk: Present | None = None
    iscsi: Present | None = None
    rbd: Present | None = None


class WorkloadReference(Schema, frozen=True, kw_only=True):
    """A pod group of a Workload of v1alpha1, and the key of a replica."""

    name: str | None = None
    pod_group: str | None = None
    pod_group_replica_key: str | None = None


class SchedulingGroup(Schema, frozen=True, kw_only=True):
    """A PodGroup of ``scheduling.k8s.io``."""

    pod_group_name: str | None = None


class PodSecurityContext(Schema, frozen=True, kw_only=True):
    sysctls: tuple[MaybeNamed, ...] | None = None


class PodSpec(Schema, frozen=True, kw_only=True):
    containers: tuple[Container, ...] | None = None
    init_containers: tuple[Container, ...] | None = None
    resources: ResourceRequirements | None = None
    overhead: Quantities | None = None
    node_name: str | None = None
    node_selector: Labels | None = None
    affinity: Affinity | None = None
    tolerations: tuple[TolerationEntry, ...] | None = None
    topology_spread_constraints: tuple[SpreadConstraint, ...] | None = None
    volumes: tuple[VolumeEntry, ...] | None = None
    resource_claims: tuple[MaybeNamed, ...] | None = None
    runtime_class_name: str | None = None
    scheduling_gates: tuple[Named, ...] | None = None
    scheduler_name: str | None = None
    priority: Priority | None = None
    priority_class_name: str | None = None
    preemption_policy: str | None = None
    host_network: bool | None = None
    os: MaybeNamed | None = None
    security_context: PodSecurityContext | None = None
    workload_ref: WorkloadReference | None = None
    scheduling_group: SchedulingGroup | None = None


class PodCondition(Condition, frozen=True, kw_only=True):
    """Only ``PodResizePending`` and ``PodScheduled`` are read."""

    reason: str | None = None
    last_transition_time: Time | None = None


class ContainerStatus(Schema, frozen=True, kw_only=True):
    """Amounts that the kubelet has allocated to and actuated for a running container."""

    name: str | None = None
    allocated_resources: Quantities | None = None
    resources: ResourceRequirements | None = None


#: Phases in which a pod has ended: it holds nothing of its node any more.
TERMINAL_PHASES = ("Succeeded", "Failed")


class PodStatus(Schema, frozen=True, kw_only=True):
    phase: Literal["Pending", "Running", "Succeeded", "Failed", "Unknown", ""] | None = None
    nominated_node_name: str | None = None
    conditions: tuple[PodCondition, ...] | None = None
    container_statuses: tuple[ContainerStatus, ...] | None = None
    init_container_statuses: tuple[ContainerStatus, ...] | None = None
    allocated_resources: Quantities | None = None
    resources: ResourceRequirements | None = None
    resize: str | None = None
    start_time: Time | None = None


PodManifest = WorkWithStatus[PodSpec, PodStatus]


PodTemplateSpec = Template[PodSpec]
