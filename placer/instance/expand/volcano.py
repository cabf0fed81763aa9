"""VCJob to PodGroup and pods, as Volcano's job controller makes them, webhook defaults applied.

Source: volcano ``pkg/controllers/job`` (``createJobPod``, ``createOrUpdatePodGroup``, ``getMinTaskMember``) and
``pkg/webhooks/admission/jobs/mutate``.
"""

from __future__ import annotations

from collections.abc import Iterator

from placer.instance.expand.blueprint import Blueprint, Marks, owner_reference
from placer.instance.model import Finding
from placer.kube.base import LabelSelector, Metadata
from placer.kube.volcano import PodGroupManifest, PodGroupSpec, SubGroupPolicyEntry, TaskEntry, VolcanoJobManifest

__all__ = ["blueprints", "findings", "finished", "pod_group", "pod_group_names", "task_minimum", "task_name"]

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


def finished(job: VolcanoJobManifest) -> bool:
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


def pod_group(job: VolcanoJobManifest) -> PodGroupManifest:
    """Make the PodGroup of a job.

    A queue that the job leaves out stays out: the namespace may name one.
    """
    spec, metadata = job.spec, job.metadata
    tasks = list(enumerate(spec.tasks or ()))
    minimums = {task_name(index, task): task_minimum(task) for index, task in tasks}
    policies = tuple(
        _policy(task_name(index, task), task) for index, task in tasks if task.partition_policy is not None
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


def _policy(name: str, task: TaskEntry) -> SubGroupPolicyEntry:
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


def blueprints(job: VolcanoJobManifest, group: str) -> Iterator[Blueprint]:
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
            yield _blueprint(job, group, index, task)


def _blueprint(job: VolcanoJobManifest, group: str, index: int, task: TaskEntry) -> Blueprint:
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


def findings(job: VolcanoJobManifest) -> Iterator[Finding]:
    """What is odd about a job: partitions that do not come out even, tasks whose pods do not exist yet."""
    subject = f"Job {job.namespace}/{job.name}"
    yield from _refused(job, subject)
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


def _refused(job: VolcanoJobManifest, subject: str) -> Iterator[Finding]:
    """Minimums that cannot be reached, for which Volcano's webhook refuses a job."""
    tasks = list(enumerate(job.spec.tasks or ()))
    minimums = [(f"task {task_name(index, task)}", task.min_available, replicas(task)) for index, task in tasks]
    minimums.append(("the job", job.spec.min_available, sum(replicas(task) for _, task in tasks)))
    for what, minimum, most in minimums:
        if minimum is not None and minimum > most:
            message = f"minAvailable of {what} is {minimum}, above its replicas {most}; Volcano refuses such a job"
            yield Finding("InvalidObject", subject, message)
