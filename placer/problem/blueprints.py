"""Blueprints: how the pods of one template come about (kubernetes ``pkg/controller/{statefulset,job}``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from placer.kube.base import Labels, Metadata, NamespacedObject, OwnerReference
from placer.kube.pod import (
    ClaimVolume,
    PodManifest,
    PodSpec,
    PodTemplateSpec,
    SchedulingGroup,
    TolerationEntry,
    VolumeEntry,
)
from placer.problem.gangs import COMPLETION_INDEX, names_group

if TYPE_CHECKING:
    from placer.kube.apps import DeploymentManifest, JobManifest, JobSpec, StatefulSetManifest
    from placer.kube.scheduling import (
        UpstreamPodGroupManifest,
        UpstreamSchedulingConstraints,
        UpstreamSchedulingPolicy,
    )
    from placer.kube.workload_sets import JobSetManifest


@dataclass(frozen=True, slots=True)
class Marks:
    """Labels or annotations that a controller adds.

    ``numbered``: name to a divisor of the pod's number. ``named``: those with the pod's name as value.
    """

    fixed: Mapping[str, str] = field(default_factory=dict)
    numbered: Mapping[str, int] = field(default_factory=dict)
    named: tuple[str, ...] = ()

    def of(self, name: str, number: int) -> Labels:
        """Marks of one pod."""
        found = dict(self.fixed)
        for key, divisor in self.numbered.items():
            found[key] = str(number // divisor)
        return found | dict.fromkeys(self.named, name)


@dataclass(frozen=True, slots=True)
class Blueprint:
    """How the pods of one template come about.

    ``path``: of the template in the workload's text. ``claims``: ``{pod}`` is the pod's name. ``maker``: controller
    that the pods name; None: the owner. ``pod_group``: of Kubernetes; None: the template's.
    """

    owner: NamespacedObject
    path: tuple[str | int, ...]
    template: PodTemplateSpec
    stem: str
    numbers: Sequence[int]
    labels: Marks = field(default_factory=Marks)
    annotations: Marks = field(default_factory=Marks)
    scheduler_name: str | None = None
    priority_class_name: str | None = None
    hostname: bool = False
    claims: Mapping[str, str] = field(default_factory=dict)
    maker: OwnerReference | None = None
    pod_group: str | None = None
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[TolerationEntry, ...] = ()
    subdomain: str | None = None

    @property
    def template_labels(self) -> Labels:
        """Labels of the template."""
        return (self.template.metadata.labels if self.template.metadata is not None else None) or {}

    def name(self, number: int) -> str:
        """Name of a pod."""
        return f"{self.stem}-{number}"

    def names(self) -> Iterator[tuple[int, str]]:
        """Numbers and names of all pods."""
        return ((number, self.name(number)) for number in self.numbers)

    def claims_of(self, name: str) -> dict[str, str]:
        """Volume to claim of one pod."""
        return {volume: claim.replace("{pod}", name) for volume, claim in self.claims.items()}

    def pods(self) -> Iterator[PodManifest]:
        """Make the pods, which share their spec."""
        shared = self._spec(self.name(0))
        single = any("{pod}" in claim for claim in self.claims.values())
        owners = (self.maker or owner_reference(self.owner),)
        created, written = self.owner.metadata.creation_timestamp, self.template.metadata
        notes = (written.annotations if written is not None else None) or {}
        for number, name in self.names():
            metadata = Metadata(
                name=name,
                namespace=self.owner.metadata.namespace,
                labels=self.template_labels | self.labels.of(name, number),
                annotations=notes | self.annotations.of(name, number),
                creation_timestamp=created,
                owner_references=owners,
            )
            spec = self._spec(name) if single else shared
            yield PodManifest(api_version="v1", kind="Pod", metadata=metadata, spec=spec)

    def _spec(self, name: str) -> PodSpec:
        spec = self.template.spec
        added = {
            volume: VolumeEntry(name=volume, persistent_volume_claim=ClaimVolume(claim_name=claim))
            for volume, claim in self.claims_of(name).items()
        }
        kept = tuple(volume for volume in spec.volumes or () if volume.name not in added)
        return msgspec.structs.replace(
            spec,
            scheduler_name=spec.scheduler_name or self.scheduler_name,
            priority_class_name=spec.priority_class_name or self.priority_class_name,
            volumes=(*kept, *added.values()) or None,
            **self._added,
        )

    @property
    def _added(self) -> dict[str, Any]:
        spec = self.template.spec
        found: dict[str, Any] = {}
        if self.node_selector:
            found["node_selector"] = {**(spec.node_selector or {}), **self.node_selector}
        if self.tolerations:
            found["tolerations"] = (*(spec.tolerations or ()), *self.tolerations)
        if self.pod_group is not None:
            found["scheduling_group"] = SchedulingGroup(pod_group_name=self.pod_group)
        return found


def owner_reference(owner: NamespacedObject) -> OwnerReference:
    """Reference to the workload that made an object."""
    return OwnerReference(
        api_version=owner.api_version, kind=owner.kind, name=owner.name, uid=owner.metadata.uid, controller=True
    )


def upstream_pod_group(
    owner: NamespacedObject,
    name: str,
    size: int,
    policy: UpstreamSchedulingPolicy | None = None,
    constraints: UpstreamSchedulingConstraints | None = None,
    priority_class: str | None = None,
) -> UpstreamPodGroupManifest:
    """Make a PodGroup of Kubernetes; without a count it needs all ``size``."""
    from placer.kube.scheduling import (
        GangPolicy,
        UpstreamPodGroupManifest,
        UpstreamPodGroupSpec,
        UpstreamSchedulingPolicy,
    )

    if policy is None or (policy.gang is not None and policy.gang.min_count is None):
        policy = UpstreamSchedulingPolicy(gang=GangPolicy(min_count=max(1, size)))
    return UpstreamPodGroupManifest(
        api_version="scheduling.k8s.io/v1beta1",
        kind="PodGroup",
        metadata=Metadata(
            name=name,
            namespace=owner.metadata.namespace,
            creation_timestamp=owner.metadata.creation_timestamp,
            owner_references=(owner_reference(owner),),
        ),
        spec=UpstreamPodGroupSpec(
            scheduling_policy=policy, scheduling_constraints=constraints, priority_class_name=priority_class
        ),
    )


_TEMPLATE_PATH = ("spec", "template")


def deployment_blueprint(workload: DeploymentManifest) -> Blueprint:
    """Pods of a Deployment, without the hash of the template."""
    count = 1 if workload.spec.replicas is None else workload.spec.replicas
    return Blueprint(workload, _TEMPLATE_PATH, workload.spec.template, workload.name, range(count))


def stateful_set_blueprint(workload: StatefulSetManifest) -> Blueprint:
    """Pods of a StatefulSet, numbered from ``spec.ordinals.start``, each with claims of its own."""
    spec = workload.spec
    count = 1 if spec.replicas is None else spec.replicas
    start = (spec.ordinals.start if spec.ordinals is not None else None) or 0
    names = [template.metadata.name for template in spec.volume_claim_templates or ()]
    return Blueprint(
        workload,
        _TEMPLATE_PATH,
        spec.template,
        workload.name,
        range(start, start + count),
        labels=Marks(numbered={"apps.kubernetes.io/pod-index": 1}, named=("statefulset.kubernetes.io/pod-name",)),
        hostname=True,
        claims={name: f"{name}-{{pod}}" for name in names},
    )


def job_blueprint(workload: JobManifest) -> Blueprint:
    """Pods of a batch Job: as many as may run at once."""
    spec, uid = workload.spec, workload.metadata.uid
    labels = {"job-name": workload.name, "batch.kubernetes.io/job-name": workload.name}
    if uid:
        labels |= {"controller-uid": uid, "batch.kubernetes.io/controller-uid": uid}
    indexed = {COMPLETION_INDEX: 1} if spec.completion_mode == "Indexed" else {}
    return Blueprint(
        workload,
        _TEMPLATE_PATH,
        spec.template,
        workload.name,
        range(0 if spec.suspend else job_size(spec)),
        labels=Marks(labels, indexed),
        annotations=Marks(numbered=indexed),
        hostname=bool(indexed),
        pod_group=None if spec.scheduling is None or names_group(spec.template) else workload.name,
    )


def job_pod_groups(workload: JobManifest) -> tuple[UpstreamPodGroupManifest, ...]:
    """The PodGroup of a batch Job with a scheduling field."""
    spec = workload.spec
    if spec.scheduling is None or names_group(spec.template):
        return ()
    said, priority_class = spec.scheduling, spec.template.spec.priority_class_name
    policy, constraints = said.scheduling_policy, said.scheduling_constraints
    return (upstream_pod_group(workload, workload.name, job_size(spec), policy, constraints, priority_class),)


def job_size(spec: JobSpec[Any]) -> int:
    """How many pods of a batch Job run at once."""
    parallelism = 1 if spec.parallelism is None else spec.parallelism
    return parallelism if spec.completions is None else min(parallelism, spec.completions)


def job_finished(workload: JobManifest | JobSetManifest) -> bool:
    """Whether a batch Job, or a JobSet, makes no more pods."""
    conditions = (workload.status.conditions if workload.status is not None else None) or ()
    return any(each.type in ("Complete", "Completed", "Failed") and each.status == "True" for each in conditions)
