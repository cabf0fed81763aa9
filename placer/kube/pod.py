"""v1 Pod and the pod template that workloads share: what requests, eligibility, gangs and refusals (C1-C10) read."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AwareDatetime, Field

from placer.kube.base import (
    Labels,
    LabelSelector,
    Name,
    NamespacedObject,
    NodeSelector,
    Present,
    Quantities,
    TemplateMetadata,
    schema,
)

__all__ = [
    "Affinity",
    "Container",
    "ContainerPort",
    "ContainerStatus",
    "NodeAffinity",
    "PodAffinity",
    "PodAffinityTerm",
    "PodCondition",
    "PodManifest",
    "PodSpec",
    "PodStatus",
    "PodTemplateSpec",
    "ResourceRequirements",
    "SchedulingGate",
    "SpreadConstraint",
    "TolerationEntry",
    "VolumeEntry",
]

_REQUIRED = Field(alias="requiredDuringSchedulingIgnoredDuringExecution")
_PREFERRED = Field(alias="preferredDuringSchedulingIgnoredDuringExecution")

Port = Annotated[int, Field(ge=0, le=65535)]


@schema
class ResourceRequirements:
    """Requests and limits, in nano-units."""

    requests: Quantities | None = None
    limits: Quantities | None = None


@schema
class ContainerPort:
    """A port of a container; only host ports matter to placement."""

    container_port: Port | None = None
    host_port: Port | None = None
    host_ip: Annotated[str | None, Field(alias="hostIP")] = None
    protocol: Literal["TCP", "UDP", "SCTP", ""] | None = None


@schema
class Container:
    """An app container or an init container; ``restartPolicy: Always`` makes an init container a sidecar."""

    name: str | None = None
    resources: ResourceRequirements | None = None
    ports: tuple[ContainerPort, ...] | None = None
    restart_policy: str | None = None


@schema
class NodeAffinity:
    """Node affinity; of the preferred part only whether there is any."""

    required: Annotated[NodeSelector | None, _REQUIRED] = None
    preferred: Annotated[tuple[Present, ...] | None, _PREFERRED] = None


@schema
class PodAffinityTerm:
    """One required term of pod affinity or anti-affinity."""

    topology_key: str | None = None
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] | None = None
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] | None = None
    mismatch_label_keys: tuple[str, ...] | None = None


@schema
class PodAffinity:
    """Pod affinity or anti-affinity; of the preferred part only whether there is any."""

    required: Annotated[tuple[PodAffinityTerm, ...] | None, _REQUIRED] = None
    preferred: Annotated[tuple[Present, ...] | None, _PREFERRED] = None


@schema
class Affinity:
    """All affinities of a pod."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


@schema
class TolerationEntry:
    """A taint that the pod bears; an operator left out is Equal, an effect left out means every effect."""

    key: str | None = None
    operator: Literal["Exists", "Equal", "Lt", "Gt", ""] | None = None
    value: str | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute", ""] | None = None


@schema
class SpreadConstraint:
    """A topology spread constraint."""

    topology_key: str | None = None
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"] | None = None


@schema
class ClaimVolume:
    """A volume that a PersistentVolumeClaim backs."""

    claim_name: Name


@schema
class VolumeEntry:
    """A volume; those backed by claims decide where a pod can run."""

    name: str | None = None
    persistent_volume_claim: ClaimVolume | None = None
    ephemeral: Present | None = None


@schema
class ResourceClaim:
    """A reference to a claim for devices (dynamic resource allocation)."""

    name: str | None = None


@schema
class SchedulingGate:
    """Something that must be taken away before the pod may be scheduled."""

    name: Name


@schema
class WorkloadReference:
    """Reference to a Workload of ``scheduling.k8s.io``, which placer does not read."""

    name: str | None = None


@schema
class SchedulingGroup:
    """Reference to a PodGroup of ``scheduling.k8s.io``, which placer does not read."""

    pod_group_name: str | None = None


@schema
class PodOS:
    """Operating system that a pod is made for."""

    name: str | None = None


@schema
class PodSpec:
    """What a pod asks for."""

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
    resource_claims: tuple[ResourceClaim, ...] | None = None
    scheduling_gates: tuple[SchedulingGate, ...] | None = None
    scheduler_name: str | None = None
    priority: Annotated[int, Field(ge=-(2**31), lt=2**31)] | None = None
    priority_class_name: str | None = None
    host_network: bool | None = None
    os: PodOS | None = None
    workload_ref: WorkloadReference | None = None
    scheduling_group: SchedulingGroup | None = None


@schema
class PodCondition:
    """One condition of a pod; ``PodResizePending`` and ``PodScheduled`` are the ones that are read."""

    type: str
    status: str
    reason: str | None = None
    last_transition_time: AwareDatetime | None = None


@schema
class ContainerStatus:
    """What the kubelet has allocated to and actuated for a running container."""

    name: str | None = None
    allocated_resources: Quantities | None = None
    resources: ResourceRequirements | None = None


@schema
class PodStatus:
    """What the cluster reports of a pod."""

    phase: Literal["Pending", "Running", "Succeeded", "Failed", "Unknown", ""] | None = None
    nominated_node_name: str | None = None
    conditions: tuple[PodCondition, ...] | None = None
    container_statuses: tuple[ContainerStatus, ...] | None = None
    init_container_statuses: tuple[ContainerStatus, ...] | None = None
    allocated_resources: Quantities | None = None
    resources: ResourceRequirements | None = None
    resize: str | None = None
    start_time: AwareDatetime | None = None


@schema
class PodManifest(NamespacedObject):
    """v1 Pod."""

    spec: PodSpec
    status: PodStatus | None = None


@schema
class PodTemplateSpec:
    """The pod that a workload makes copies of."""

    metadata: TemplateMetadata | None = None
    spec: PodSpec
