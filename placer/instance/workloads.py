"""What controllers make of workloads: the blueprint of their pods, all alike but for what carries their number.

VCJobs become a PodGroup and pods, webhook defaults applied; Deployments, StatefulSets and batch Jobs become pods with
the labels that their controllers set.

Source: volcano ``pkg/controllers/job`` (``createJobPod``, ``createOrUpdatePodGroup``, ``getMinTaskMember``) and
``pkg/webhooks/admission/jobs/mutate``; kubernetes ``pkg/controller/statefulset`` (identity, claims) and
``pkg/controller/job`` (labels, completion index).
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from placer.instance.findings import Finding
from placer.kube.apps import DeploymentManifest, JobManifest, StatefulSetManifest
from placer.kube.base import Labels, LabelSelector, Metadata, NamespacedObject, OwnerReference
from placer.kube.pod import ClaimVolume, PodManifest, PodSpec, PodTemplateSpec, VolumeEntry
from placer.kube.volcano import PodGroupManifest, PodGroupSpec, SubGroupPolicyEntry, TaskEntry, VolcanoJobManifest

__all__ = [
    "Blueprint",
    "Marks",
    "deployment_blueprint",
    "job_blueprint",
    "job_finished",
    "owner_reference",
    "pod_group_names",
    "stateful_set_blueprint",
    "task_minimum",
    "task_name",
    "volcano_job_blueprints",
    "volcano_job_findings",
    "volcano_job_finished",
    "volcano_job_pod_group",
]


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Marks:
    """Labels or annotations that a controller adds to those of the template.

    Parameters
    ----------
    fixed
        The same on every pod.
    numbered
        Name to divisor: the value is the pod's number, divided, rounded down.
    named
        Those whose value is the name of the pod.
    """

    fixed: Mapping[str, str] = field(default_factory=dict)
    numbered: Mapping[str, int] = field(default_factory=dict)
    named: tuple[str, ...] = ()

    def of(self, name: str, number: int) -> Labels:
        """Those of one pod."""
        found = dict(self.fixed)
        for key, divisor in self.numbered.items():
            found[key] = str(number // divisor)
        return found | dict.fromkeys(self.named, name)


@dataclass(frozen=True, slots=True)
class Blueprint:
    """How the pods of one template come about.

    Parameters
    ----------
    owner
        The workload.
    path
        Where the template stands in the workload's text, keys and indices.
    template
        The template.
    stem
        What stands before the number in the pods' names.
    numbers
        The numbers of the pods.
    labels, annotations
        What the controller adds.
    scheduler_name, priority_class_name
        Taken where the template names none; None: left out.
    hostname
        Whether the pod's name becomes its host name.
    claims
        Volumes backed by claims, name of the volume to name of the claim; ``{pod}`` in the latter is the pod's name.
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

    @property
    def template_labels(self) -> Labels:
        """Labels that the template itself gives its pods."""
        return (self.template.metadata.labels if self.template.metadata is not None else None) or {}

    @property
    def template_annotations(self) -> Labels:
        """Annotations that the template itself gives its pods."""
        return (self.template.metadata.annotations if self.template.metadata is not None else None) or {}

    def name(self, number: int) -> str:
        """Name of a pod."""
        return f"{self.stem}-{number}"

    def names(self) -> Iterator[tuple[int, str]]:
        """Numbers and names of all pods."""
        return ((number, self.name(number)) for number in self.numbers)

    def claims_of(self, name: str) -> dict[str, str]:
        """Volumes backed by claims, of one pod."""
        return {volume: claim.replace("{pod}", name) for volume, claim in self.claims.items()}

    def pods(self) -> Iterator[PodManifest]:
        """Make the pods; they share their spec, and with it everything that is looked up once per template."""
        shared = self._spec(self.name(0))
        single = any("{pod}" in claim for claim in self.claims.values())
        owners = (owner_reference(self.owner),)
        created = self.owner.metadata.creation_timestamp
        for number, name in self.names():
            metadata = Metadata(
                name=name,
                namespace=self.owner.metadata.namespace,
                labels=self.template_labels | self.labels.of(name, number),
                annotations=self.template_annotations | self.annotations.of(name, number),
                creation_timestamp=created,
                owner_references=owners,
            )
            spec = self._spec(name) if single else shared
            yield PodManifest(api_version="v1", kind="Pod", metadata=metadata, spec=spec)

    def _spec(self, name: str) -> PodSpec:
        """Spec of a pod."""
        spec = self.template.spec
        added = {volume: _claim_volume(volume, claim) for volume, claim in self.claims_of(name).items()}
        kept = tuple(volume for volume in spec.volumes or () if volume.name not in added)
        return _with_fields(
            spec,
            scheduler_name=spec.scheduler_name or self.scheduler_name,
            priority_class_name=spec.priority_class_name or self.priority_class_name,
            volumes=(*kept, *added.values()) or None,
        )


def owner_reference(owner: NamespacedObject) -> OwnerReference:
    """Reference to the workload that made an object."""
    return OwnerReference(
        api_version=owner.api_version, kind=owner.kind, name=owner.name, uid=owner.metadata.uid, controller=True
    )


def _claim_volume(volume: str, claim: str) -> VolumeEntry:
    return VolumeEntry(name=volume, persistent_volume_claim=ClaimVolume(claim_name=claim))


def _with_fields(value: T, **fields: Any) -> T:
    """Copy a frozen value with some fields changed.

    ``dataclasses.replace`` would read all other fields anew, and quantities, numbers by now, would be read as if they
    were text.
    """
    changed = copy.copy(value)
    for name, new in fields.items():
        object.__setattr__(changed, name, new)
    return changed


TASK = "volcano.sh/task-spec"
PARTITION = "volcano.sh/partition-id"
DEFAULT_QUEUE = "default"
DEFAULT_SCHEDULER = "volcano"
#: Phases in which the controller makes no pods.
_FINISHED = frozenset({"Aborting", "Aborted", "Completing", "Completed", "Terminating", "Terminated", "Failed"})
#: Annotations of the job that its pods get too.
_INHERITED = (
    "volcano.sh/preemptable",
    "volcano.sh/cooldown-time",
    "volcano.sh/revocable-zone",
    "volcano.sh/jdb-min-available",
    "volcano.sh/jdb-max-unavailable",
)


def volcano_job_finished(job: VolcanoJobManifest) -> bool:
    """Whether the job makes no more pods."""
    state = job.status.state if job.status is not None else None
    return state is not None and state.phase in _FINISHED


def task_name(index: int, task: TaskEntry) -> str:
    """Name of a task; the webhook gives ``default0``, ``default1``, ... to those without."""
    return task.name or f"default{index}"


def replicas(task: TaskEntry) -> int:
    """Number of pods of a task; 1 where it is left out."""
    return 1 if task.replicas is None else task.replicas


def task_minimum(task: TaskEntry) -> int:
    """Pods that a task needs at least: what it says, else its least partitions, else all."""
    if task.min_available is not None:
        return task.min_available
    partitions = task.partition_policy
    if partitions is not None and partitions.min_partitions:
        return partitions.min_partitions * partitions.partition_size
    return replicas(task)


def pod_group_names(job: VolcanoJobManifest) -> tuple[str, ...]:
    """Names under which a job's PodGroup may be found, the one in use first; older releases took the job's name."""
    return (f"{job.name}-{job.metadata.uid}", job.name) if job.metadata.uid else (job.name,)


def volcano_job_pod_group(job: VolcanoJobManifest) -> PodGroupManifest:
    """Make the PodGroup of a job.

    A queue that the job leaves out stays out: the namespace may name one.
    """
    spec, metadata = job.spec, job.metadata
    tasks = list(enumerate(spec.tasks or ()))
    minimums = {task_name(index, task): task_minimum(task) for index, task in tasks}
    policies = tuple(
        _partition_policy(task_name(index, task), task) for index, task in tasks if task.partition_policy is not None
    )
    return PodGroupManifest(
        api_version="scheduling.volcano.sh/v1beta1",
        kind="PodGroup",
        metadata=Metadata(
            name=pod_group_names(job)[0],
            namespace=metadata.namespace,
            labels=metadata.labels,
            annotations=metadata.annotations,
            creation_timestamp=metadata.creation_timestamp,
            owner_references=(owner_reference(job),),
        ),
        spec=PodGroupSpec(
            min_member=spec.min_available or sum(minimums.values()),
            min_task_member=minimums,
            queue=spec.queue,
            priority_class_name=spec.priority_class_name,
            network_topology=spec.network_topology,
            sub_group_policy=policies or None,
        ),
    )


def _partition_policy(name: str, task: TaskEntry) -> SubGroupPolicyEntry:
    partitions = task.partition_policy
    assert partitions is not None
    return SubGroupPolicyEntry(
        name=name,
        network_topology=partitions.network_topology,
        sub_group_size=partitions.partition_size,
        min_sub_groups=partitions.min_partitions,
        label_selector=LabelSelector(match_labels={TASK: name}),
        match_label_keys=(PARTITION,),
    )


def volcano_job_blueprints(job: VolcanoJobManifest, group: str) -> Iterator[Blueprint]:
    """Blueprint of each task that waits for no other.

    Parameters
    ----------
    job
        The job.
    group
        Name of its PodGroup.
    """
    for index, task in enumerate(job.spec.tasks or ()):
        if not _depends_on(task):
            yield _task_blueprint(job, group, index, task)


def _task_blueprint(job: VolcanoJobManifest, group: str, index: int, task: TaskEntry) -> Blueprint:
    name, spec, partitions = task_name(index, task), job.spec, task.partition_policy
    shared = {"volcano.sh/job-name": job.name, "volcano.sh/queue-name": spec.queue or DEFAULT_QUEUE, TASK: name}
    number = {"volcano.sh/task-index": 1}
    inherited = {key: value for key, value in (job.metadata.annotations or {}).items() if key in _INHERITED}
    own = {
        "scheduling.k8s.io/group-name": group,
        "volcano.sh/template-uid": f"{job.name}-{name}",
        "volcano.sh/job-version": "0",
        "volcano.sh/job-retry-count": "0",
    }
    numa = {"volcano.sh/numa-topology-policy": task.topology_policy} if task.topology_policy else {}
    return Blueprint(
        owner=job,
        path=("spec", "tasks", index, "template"),
        template=task.template,
        stem=f"{job.name}-{name}",
        numbers=range(replicas(task)),
        labels=Marks(
            shared | {"volcano.sh/job-namespace": job.namespace},
            number if partitions is None else number | {PARTITION: partitions.partition_size},
        ),
        annotations=Marks(shared | own | numa | inherited, number),
        scheduler_name=spec.scheduler_name or DEFAULT_SCHEDULER,
        priority_class_name=spec.priority_class_name,
        claims={
            f"{job.name}-volume-{i}": volume.volume_claim_name or f"{job.name}-volume-{i}"
            for i, volume in enumerate(spec.volumes or ())
        },
    )


def _depends_on(task: TaskEntry) -> tuple[str, ...]:
    return (task.depends_on.name if task.depends_on is not None else None) or ()


def volcano_job_findings(job: VolcanoJobManifest) -> Iterator[Finding]:
    """What is odd about a job: partitions that do not come out even, tasks whose pods do not exist yet."""
    subject = f"Job {job.namespace}/{job.name}"
    yield from _unreachable_minimums(job, subject)
    for index, task in enumerate(job.spec.tasks or ()):
        name, partitions, waits = task_name(index, task), task.partition_policy, _depends_on(task)
        if partitions is not None:
            wanted = partitions.total_partitions * partitions.partition_size
            if replicas(task) != wanted:
                message = (
                    f"task {name} has {replicas(task)} replicas, but {partitions.total_partitions} partitions of "
                    f"{partitions.partition_size} are {wanted}; Volcano refuses such a job"
                )
                yield Finding("PartitionMismatch", subject, message)
        if waits:
            message = f"task {name} waits for {', '.join(waits)}: its pods do not exist yet, and none is made"
            yield Finding("DependsOn", subject, message)


def _unreachable_minimums(job: VolcanoJobManifest, subject: str) -> Iterator[Finding]:
    """Minimums that cannot be reached, for which Volcano's webhook refuses a job."""
    tasks = list(enumerate(job.spec.tasks or ()))
    minimums = [(f"task {task_name(index, task)}", task.min_available, replicas(task)) for index, task in tasks]
    minimums.append(("the job", job.spec.min_available, sum(replicas(task) for _, task in tasks)))
    for what, minimum, most in minimums:
        if minimum is not None and minimum > most:
            message = f"minAvailable of {what} is {minimum}, above its replicas {most}; Volcano refuses such a job"
            yield Finding("InvalidObject", subject, message)


_TEMPLATE_PATH = ("spec", "template")
_INDEX = "batch.kubernetes.io/job-completion-index"


def deployment_blueprint(workload: DeploymentManifest) -> Blueprint:
    """Pods of a Deployment; the hash of the template, which only its controller can tell, is left out."""
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
    """Pods of a batch Job: as many as may run at once, and no more than are to complete."""
    spec, uid = workload.spec, workload.metadata.uid
    parallelism = spec.parallelism
    if parallelism is None:
        parallelism = 1
    count = parallelism if spec.completions is None else min(parallelism, spec.completions)
    labels = {"job-name": workload.name, "batch.kubernetes.io/job-name": workload.name}
    if uid:
        labels |= {"controller-uid": uid, "batch.kubernetes.io/controller-uid": uid}
    indexed = {_INDEX: 1} if spec.completion_mode == "Indexed" else {}
    return Blueprint(
        workload,
        _TEMPLATE_PATH,
        spec.template,
        workload.name,
        range(0 if spec.suspend else count),
        labels=Marks(labels, indexed),
        annotations=Marks(numbered=indexed),
        hostname=bool(indexed),
    )


def job_finished(workload: JobManifest) -> bool:
    """Whether a batch Job makes no more pods."""
    conditions = (workload.status.conditions if workload.status is not None else None) or ()
    return any(each.type in ("Complete", "Failed") and each.status == "True" for each in conditions)
