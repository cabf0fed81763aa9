"""Expansion: the PodGroups and pods that controllers would make of workloads without any pod.

Source: volcano ``pkg/controllers/job`` and ``pkg/webhooks/admission/jobs/mutate``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from placer.base.errors import BadInstance, Fault
from placer.kube.base import Labels, LabelSelector, Metadata, NamespacedObject, OwnerReference, controller
from placer.kube.pod import PodManifest
from placer.problem.blueprints import (
    Blueprint,
    Marks,
    deployment_blueprint,
    job_blueprint,
    job_finished,
    job_pod_groups,
    owner_reference,
    stateful_set_blueprint,
)
from placer.problem.eligibility import label_requirements, matches
from placer.problem.findings import Finding
from placer.problem.kueue_flavors import with_flavors
from placer.problem.pod_states import LEADER_WORKER_SET, SET_LABELS, Maker

if TYPE_CHECKING:
    from placer.kube.apps import ReplicaSetManifest, StatefulSetManifest
    from placer.kube.manifests import Objects
    from placer.kube.scheduling import UpstreamPodGroupManifest
    from placer.kube.volcano import (
        PartitionPolicy,
        PodGroupManifest,
        SubGroupPolicyEntry,
        TaskEntry,
        VolcanoJobManifest,
    )

TASK = "volcano.sh/task-spec"
PARTITION = "volcano.sh/partition-id"
DEFAULT_QUEUE = "default"
DEFAULT_SCHEDULER = "volcano"
_FINISHED = frozenset({"Aborting", "Aborted", "Completing", "Completed", "Terminating", "Terminated", "Failed"})
_INHERITED = (
    "volcano.sh/preemptable",
    "volcano.sh/cooldown-time",
    "volcano.sh/revocable-zone",
    "volcano.sh/jdb-min-available",
    "volcano.sh/jdb-max-unavailable",
)


def _task_name(index: int, task: TaskEntry) -> str:
    return task.name or f"default{index}"


def replicas(task: TaskEntry) -> int:
    """Number of pods of a task; 1 where it is left out."""
    return 1 if task.replicas is None else task.replicas


def _task_minimum(task: TaskEntry) -> int:
    if task.min_available is not None:
        return task.min_available
    partitions = task.partition_policy
    if partitions is not None and partitions.min_partitions:
        return partitions.min_partitions * partitions.partition_size
    return replicas(task)


def _pod_group_names(job: VolcanoJobManifest) -> tuple[str, ...]:
    return (f"{job.name}-{job.metadata.uid}", job.name) if job.metadata.uid else (job.name,)


def _volcano_job_pod_group(job: VolcanoJobManifest) -> PodGroupManifest:
    from placer.kube.volcano import PodGroupManifest, PodGroupSpec

    spec, metadata = job.spec, job.metadata
    tasks = list(enumerate(spec.tasks or ()))
    minimums = {_task_name(index, task): _task_minimum(task) for index, task in tasks}
    named = ((_task_name(index, task), task.partition_policy) for index, task in tasks)
    policies = tuple(_partition_policy(name, partitions) for name, partitions in named if partitions is not None)
    return PodGroupManifest(
        api_version="scheduling.volcano.sh/v1beta1",
        kind="PodGroup",
        metadata=Metadata(
            name=_pod_group_names(job)[0],
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


def _partition_policy(name: str, partitions: PartitionPolicy) -> SubGroupPolicyEntry:
    from placer.kube.volcano import SubGroupPolicyEntry

    return SubGroupPolicyEntry(
        name=name,
        network_topology=partitions.network_topology,
        sub_group_size=partitions.partition_size,
        min_sub_groups=partitions.min_partitions,
        label_selector=LabelSelector(match_labels={TASK: name}),
        match_label_keys=(PARTITION,),
    )


def _task_blueprint(job: VolcanoJobManifest, group: str, index: int, task: TaskEntry) -> Blueprint:
    name, spec, partitions = _task_name(index, task), job.spec, task.partition_policy
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
        claims=_job_claims(job),
    )


def _job_claims(job: VolcanoJobManifest) -> dict[str, str]:
    volumes = {f"{job.name}-volume-{index}": volume for index, volume in enumerate(job.spec.volumes or ())}
    return {name: volume.volume_claim_name or name for name, volume in volumes.items()}


def _depends_on(task: TaskEntry) -> tuple[str, ...]:
    return (task.depends_on.name if task.depends_on is not None else None) or ()


def _volcano_job_findings(job: VolcanoJobManifest) -> Iterator[Finding]:
    subject = f"Job {job.namespace}/{job.name}"
    yield from _unreachable_minimums(job, subject)
    for index, task in enumerate(job.spec.tasks or ()):
        name, partitions, waits = _task_name(index, task), task.partition_policy, _depends_on(task)
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
    tasks = list(enumerate(job.spec.tasks or ()))
    minimums = [(f"task {_task_name(index, task)}", task.min_available, replicas(task)) for index, task in tasks]
    minimums.append(("the job", job.spec.min_available, sum(replicas(task) for _, task in tasks)))
    for what, minimum, most in minimums:
        if minimum is not None and minimum > most:
            message = f"minAvailable of {what} is {minimum}, above its replicas {most}; Volcano refuses such a job"
            yield Finding("InvalidObject", subject, message)


# ---------------------------------------------------------------------- workloads with pods, and the objects to be made

#: Labels that name the workload, by its kind and API group; Volcano sets its own as an annotation too.
_NAMING = {
    ("batch.volcano.sh", "Job"): ("volcano.sh/job-name",),
    ("batch", "Job"): ("batch.kubernetes.io/job-name", "job-name"),
}
_HASH = "pod-template-hash"


class _Census:
    """Pods without owners, as in cleaned exports, are known by labels and names."""

    def __init__(self, pods: Iterable[PodManifest], replica_sets: Iterable[ReplicaSetManifest]) -> None:
        self._above = {(each.namespace, each.name): controller(each.metadata) for each in replica_sets}
        #: Owner to the uids under which it is named, each with an object that does so.
        self._owned: dict[Maker, dict[str, str]] = defaultdict(dict)
        self._orphans: dict[tuple[str, str], PodManifest] = {}
        self._by_label: set[tuple[str, str, str]] = set()
        self._by_stem: dict[tuple[str, str], list[Labels]] = defaultdict(list)
        seen: set[tuple[str, str, str, str, str, str]] = set()
        self._of_sets: set[tuple[str, str, str]] = set()
        for pod in pods:
            for label in SET_LABELS.values():
                if pod.metadata.labels and label in pod.metadata.labels:
                    self._of_sets.add((pod.namespace, label, pod.metadata.labels[label]))
            owner = controller(pod.metadata)
            if owner is None:
                self._add_orphan(pod)
                continue
            ending = (pod.metadata.labels or {}).get(_HASH, "")
            key = (pod.namespace, owner.api_version, owner.kind, owner.name, owner.uid or "", ending)
            if key not in seen:  # pods of one template tell the same
                seen.add(key)
                self._add_owner(pod, owner, ending)

    def _add_owner(self, pod: PodManifest, owner: OwnerReference, ending: str) -> None:
        namespace = pod.namespace
        self._note(namespace, owner, f"Pod {namespace}/{pod.name}")
        if Maker.of_owner(owner, namespace)[:2] == ("apps", "ReplicaSet"):
            above = self._above.get((namespace, owner.name))
            if above is not None:
                self._note(namespace, above, f"ReplicaSet {namespace}/{owner.name}")
            else:
                name = owner.name.removesuffix(f"-{ending or owner.name.rpartition('-')[2]}")
                self._owned[Maker("apps", "Deployment", namespace, name)][""] = ""

    def _note(self, namespace: str, owner: OwnerReference, by: str) -> None:
        self._owned[Maker.of_owner(owner, namespace)].setdefault(owner.uid or "", by)

    def of_other_uids(self, workload: NamespacedObject) -> Iterator[Finding]:
        for uid, by in self._owned.get(Maker.of(workload), {}).items():
            message = (
                f"metadata.ownerReferences: found {workload.kind} {workload.name} of uid {uid}, expected "
                f"{workload.metadata.uid}, that of {workload.kind} {workload.namespace}/{workload.name}: this one does "
                "not own it, and pods of its own are made"
            )
            yield Finding("UnknownReference", by, message)

    def _add_orphan(self, pod: PodManifest) -> None:
        self._orphans[(pod.namespace, pod.name)] = pod
        labels = pod.metadata.labels or {}
        for source in (labels, pod.metadata.annotations or {}):
            for keys in _NAMING.values():
                self._by_label.update((pod.namespace, key, source[key]) for key in keys if key in source)
        stem = pod.name
        for _ in range(2):  # name-number, or name-hash-chance
            stem = stem.rpartition("-")[0]
            if stem:
                self._by_stem[(pod.namespace, stem)].append(labels)

    def has_pods(self, workload: NamespacedObject, selector: LabelSelector | None = None) -> bool:
        uids, uid = self._owned.get(Maker.of(workload), {}), workload.metadata.uid
        if uids and (not uid or uid in uids or "" in uids):
            return True
        of_set = SET_LABELS.get((workload.group, workload.kind))
        if of_set is not None:
            return (workload.namespace, of_set, workload.name) in self._of_sets
        naming = _NAMING.get((workload.group, workload.kind), ())
        if any((workload.namespace, label, workload.name) in self._by_label for label in naming):
            return True
        if selector is None:
            return False
        requirements = label_requirements(selector)
        found = self._by_stem.get((workload.namespace, workload.name), ())
        return any(matches(requirements, labels) for labels in found)

    def has_named(self, blueprint: Blueprint) -> bool:
        if not self._orphans:
            return False
        wanted = blueprint.template_labels.items()
        for _, name in blueprint.names():
            pod = self._orphans.get((blueprint.owner.namespace, name))
            if pod is not None and wanted <= (pod.metadata.labels or {}).items():
                return True
        return False


def _owned_by(metadata: Metadata, workload: NamespacedObject) -> bool:
    owner = controller(metadata)
    if owner is None or Maker.of_owner(owner, workload.namespace) != Maker.of(workload):
        return False
    return not (owner.uid and workload.metadata.uid) or owner.uid == workload.metadata.uid


#: Twice as many pods as Kubernetes supports in one cluster.
LIMIT = 300_000


@dataclass(frozen=True)
class Expansion:
    """Objects that workloads would make, in the order of the input, each name once."""

    pod_groups: tuple[PodGroupManifest, ...] = ()
    upstream_pod_groups: tuple[UpstreamPodGroupManifest, ...] = ()
    blueprints: tuple[Blueprint, ...] = ()
    findings: tuple[Finding, ...] = ()

    @cached_property
    def pods(self) -> tuple[PodManifest, ...]:
        """The new pods; those of one template share their spec."""
        return tuple(pod for blueprint in self.blueprints for pod in blueprint.pods())


@dataclass(frozen=True, slots=True)
class _Candidate:
    workload: NamespacedObject
    blueprints: tuple[Blueprint, ...]
    selector: LabelSelector | None = None
    pod_group: PodGroupManifest | None = None
    upstream_pod_groups: tuple[UpstreamPodGroupManifest, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def size(self) -> int:
        return sum(len(blueprint.numbers) for blueprint in self.blueprints)


def expand(objects: Objects, *, only_added: bool = False) -> Expansion:
    """Make the PodGroups and pods of every workload that has no pod; more than :data:`LIMIT` raise BadInstance."""
    chosen = _without_pods(objects, list(_wanted(objects, only_added=only_added)))
    findings = [finding for each in chosen for finding in each.findings]
    settled = _settled(objects, (blueprint for each in chosen for blueprint in each.blueprints), findings)
    blueprints = tuple(with_flavors(objects, settled, findings))
    groups = tuple(each.pod_group for each in chosen if each.pod_group is not None)
    return Expansion(groups, tuple(_new_groups(objects, chosen)), blueprints, tuple(sorted(set(findings))))


def _wanted(objects: Objects, *, only_added: bool) -> Iterator[_Candidate]:
    for each in _candidates(objects):
        if each.workload.metadata.deletion_timestamp is None and (not only_added or objects.is_added(each.workload)):
            yield each


def _new_groups(objects: Objects, chosen: Sequence[_Candidate]) -> Iterator[UpstreamPodGroupManifest]:
    known = {(each.namespace, each.name) for each in objects.upstream_pod_groups}
    upstream = (group for each in chosen for group in each.upstream_pod_groups)
    return (group for group in upstream if (group.namespace, group.name) not in known)


def suspended_workloads(objects: Objects) -> list[NamespacedObject]:
    """Workloads that make no pods since they are suspended."""
    jobs = [each for each in objects.jobs if each.spec.suspend]
    return [*jobs, *(each for each in objects.job_sets if each.spec.suspend)]


def _without_pods(objects: Objects, candidates: Sequence[_Candidate]) -> list[_Candidate]:
    if not candidates:
        return []
    census, total, chosen = _Census(objects.pods, objects.replica_sets), 0, []
    for each in candidates:
        if not census.has_pods(each.workload, each.selector):
            total += each.size
            _check_total(total, each.workload, objects)
            if not any(map(census.has_named, each.blueprints)):
                others = tuple(census.of_other_uids(each.workload)) if each.size else ()
                chosen.append(replace(each, findings=(*each.findings, *others)))
    return chosen


def _of_volcano_jobs(objects: Objects) -> Iterator[_Candidate]:
    known: dict[str, dict[str, PodGroupManifest]] = defaultdict(dict)
    for each in objects.pod_groups:
        known[each.namespace][each.name] = each
    for vcjob in objects.volcano_jobs:
        state = vcjob.status.state if vcjob.status is not None else None
        if vcjob.spec.tasks and (state is None or state.phase not in _FINISHED):
            name, group = _pod_group(vcjob, known[vcjob.namespace])
            tasks = ((index, task) for index, task in enumerate(vcjob.spec.tasks) if not _depends_on(task))
            blueprints = tuple(_task_blueprint(vcjob, name, index, task) for index, task in tasks)
            yield _Candidate(vcjob, blueprints, None, group, findings=tuple(_volcano_job_findings(vcjob)))


def _candidates(objects: Objects) -> Iterator[_Candidate]:
    yield from _of_volcano_jobs(objects)
    yield from _of_sets(objects)
    for stateful_set in _stateful_sets(objects):
        yield _Candidate(stateful_set, (stateful_set_blueprint(stateful_set),), stateful_set.spec.selector)
    for job in objects.jobs:
        if not job_finished(job):
            yield _Candidate(job, (job_blueprint(job),), upstream_pod_groups=job_pod_groups(job))
    for deployment in objects.deployments:
        yield _Candidate(deployment, (deployment_blueprint(deployment),), deployment.spec.selector)


def _stateful_sets(objects: Objects) -> Iterator[StatefulSetManifest]:
    of_sets = {(each.namespace, each.name) for each in objects.leader_worker_sets}
    for each in objects.stateful_sets:
        if (each.namespace, (each.metadata.labels or {}).get(LEADER_WORKER_SET)) not in of_sets:
            yield each


def _of_sets(objects: Objects) -> Iterator[_Candidate]:
    if not (objects.job_sets or objects.leader_worker_sets):
        return  # their schemas take a while to make
    from placer.problem.workload_sets import JobSetExpansion, LeaderWorkerSetExpansion

    jobs: dict[str, set[str]] = defaultdict(set)
    for job in objects.jobs:
        jobs[job.namespace].add(job.name)
    for job_set in objects.job_sets:
        if not job_finished(job_set):
            made = JobSetExpansion(job_set, jobs[job_set.namespace])
            yield _Candidate(job_set, made.blueprints, None, None, made.pod_groups, made.findings)
    for workers_set in objects.leader_worker_sets:
        workers = LeaderWorkerSetExpansion(workers_set)
        yield _Candidate(workers_set, workers.blueprints, None, None, workers.pod_groups, workers.findings)


def _pod_group(job: VolcanoJobManifest, known: Mapping[str, PodGroupManifest]) -> tuple[str, PodGroupManifest | None]:
    for name in _pod_group_names(job):
        if name in known:
            return name, None
    for name, group in known.items():
        if name.startswith(f"{job.name}-") and _owned_by(group.metadata, job):
            return name, None
    made = _volcano_job_pod_group(job)
    return made.name, made


#: API group and kind of workloads whose pods' names end by chance.
_BY_CHANCE = (("apps", "Deployment"), ("batch", "Job"))


def _settled(objects: Objects, blueprints: Iterable[Blueprint], findings: list[Finding]) -> Iterator[Blueprint]:
    """Names of Deployments' and batch Jobs' pods end by chance in a cluster, so another one does where it is taken."""
    taken = {(pod.namespace, pod.name) for pod in objects.pods}
    for blueprint in blueprints:
        settled = blueprint
        if _clashes(blueprint, taken) and (blueprint.owner.group, blueprint.owner.kind) in _BY_CHANCE:
            settled = replace(blueprint, stem=f"{blueprint.stem}-{blueprint.owner.kind.lower()}")
        clashes = _clashes(settled, taken)
        if clashes:
            findings.append(_name_taken(settled, clashes))
            settled = replace(settled, numbers=tuple(number for number in settled.numbers if number not in clashes))
        taken.update((settled.owner.namespace, name) for _, name in settled.names())
        yield settled


def _clashes(blueprint: Blueprint, taken: set[tuple[str, str]]) -> set[int]:
    namespace = blueprint.owner.namespace
    return {number for number, name in blueprint.names() if (namespace, name) in taken}


def _name_taken(blueprint: Blueprint, clashes: set[int]) -> Finding:
    owner, first = blueprint.owner, blueprint.name(min(clashes))
    message = f"{len(clashes)} of its pods cannot be made: the name {first} belongs to a pod of another"
    return Finding("NameTaken", f"{owner.kind} {owner.namespace}/{owner.name}", message)


Document = dict[str, Any]
_POD = {"apiVersion": "v1", "kind": "Pod"}


def documents(objects: Objects) -> Iterator[Document]:
    """Write PodGroups, then pods, as ``kubectl apply`` takes them; owners need a uid."""
    made = expand(objects)
    groups: tuple[PodGroupManifest | UpstreamPodGroupManifest, ...] = (*made.pod_groups, *made.upstream_pod_groups)
    for group in groups:
        spec = msgspec.to_builtins(group.spec)
        yield {"apiVersion": group.api_version, "kind": group.kind, "metadata": _metadata(group), "spec": spec}
    for blueprint in made.blueprints:
        owner = objects.document(blueprint.owner)
        template: Any = owner
        for step in blueprint.path:
            template = template[step]
        for pod in blueprint.pods():
            spec = _spec(blueprint, template["spec"], owner.get("spec") or {}, pod.name)
            yield {**_POD, "metadata": _metadata(pod), "spec": spec, "status": {"phase": "Pending"}}


def _metadata(made: NamespacedObject) -> Document:
    metadata: Document = {"name": made.name, "namespace": made.namespace}
    if made.metadata.creation_timestamp is not None:
        metadata["creationTimestamp"] = f"{made.metadata.creation_timestamp.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    if made.metadata.labels:
        metadata["labels"] = dict(made.metadata.labels)
    if made.metadata.annotations:
        metadata["annotations"] = dict(made.metadata.annotations)
    owner = controller(made.metadata)
    if owner is not None and owner.uid:
        reference = {"apiVersion": owner.api_version, "kind": owner.kind, "name": owner.name, "uid": owner.uid}
        metadata["ownerReferences"] = [reference | {"controller": True, "blockOwnerDeletion": True}]
    return metadata


def _spec(blueprint: Blueprint, template: Document, owner: Document, name: str) -> Document:
    spec = dict(template)
    defaults = {
        "schedulerName": blueprint.scheduler_name,
        "priorityClassName": blueprint.priority_class_name,
        "hostname": name if blueprint.hostname else None,
        "subdomain": blueprint.subdomain or (owner.get("serviceName") if blueprint.hostname else None),
    }
    spec.update((field, value) for field, value in defaults.items() if value and not spec.get(field))
    _add(spec, blueprint)
    _add_volumes(spec, blueprint.claims_of(name))
    return spec


def _add_volumes(spec: Document, claims: Mapping[str, str]) -> None:
    if claims:
        added = [{"name": volume, "persistentVolumeClaim": {"claimName": claim}} for volume, claim in claims.items()]
        spec["volumes"] = [*(each for each in spec.get("volumes") or () if each.get("name") not in claims), *added]


def _add(spec: Document, blueprint: Blueprint) -> None:
    if blueprint.pod_group is not None:
        spec["schedulingGroup"] = {"podGroupName": blueprint.pod_group}
    if blueprint.node_selector:
        spec["nodeSelector"] = {**(spec.get("nodeSelector") or {}), **blueprint.node_selector}
    if blueprint.tolerations:
        spec["tolerations"] = [*(spec.get("tolerations") or ()), *msgspec.to_builtins(blueprint.tolerations)]


def _check_total(total: int, workload: NamespacedObject, objects: Objects) -> None:
    if total > LIMIT:
        subject = f"{workload.kind} {workload.namespace}/{workload.name}"
        found = f"{total:,} pods with those of the workloads before it"
        raise BadInstance(
            [Fault(objects.source(workload), None, subject, "spec", found, f"at most {LIMIT:,} pods in all")]
        )
