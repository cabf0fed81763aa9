"""Expansion: the PodGroups and pods that controllers would make of workloads without any pod in the instance.

Whether anything is expanded at all (offline it is, in a cluster it is not) the caller decides. ``workloads`` says what
each controller makes; here is which workloads have pods already, under which names new pods go, and how they are
written out in full: the whole template of a workload's own text, not only the fields that are read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from placer.errors import BadInstance, Fault
from placer.instance.eligibility import label_requirements, matches
from placer.instance.findings import Finding
from placer.instance.workloads import (
    Blueprint,
    deployment_blueprint,
    job_blueprint,
    job_finished,
    pod_group_names,
    stateful_set_blueprint,
    volcano_job_blueprints,
    volcano_job_findings,
    volcano_job_finished,
    volcano_job_pod_group,
)
from placer.kube import apps
from placer.kube.apps import ReplicaSetManifest
from placer.kube.base import LAST_APPLIED, Labels, LabelSelector, Metadata, NamespacedObject, OwnerReference, controller
from placer.kube.pod import PodManifest
from placer.kube.volcano import PodGroupManifest, PodGroupSpec, VolcanoJobManifest

if TYPE_CHECKING:
    from placer.manifests import Objects

__all__ = ["LIMIT", "Census", "Expansion", "ExpansionPlan", "documents", "expand", "make_plan", "owned_by"]


#: Labels that name the workload, by its kind and API group; Volcano sets its own as an annotation too.
_NAMING = {
    ("batch.volcano.sh", "Job"): ("volcano.sh/job-name",),
    ("batch", "Job"): ("batch.kubernetes.io/job-name", "job-name"),
}
_HASH = "pod-template-hash"

#: Namespace, API group, kind, name.
_Owner = tuple[str, str, str, str]


class Census:
    """The pods of an instance by who made them.

    A pod belongs to the controller among its owners, a ReplicaSet standing for its Deployment. Pods without any
    owner, as cleaned exports hold them, are told by the labels and names that controllers give.

    Parameters
    ----------
    pods
        All pods of the instance, those that have ended included.
    replica_sets
        The links between pods and Deployments; where one is missing, its name tells.
    """

    def __init__(self, pods: Iterable[PodManifest], replica_sets: Iterable[ReplicaSetManifest]) -> None:
        self._above = {(each.namespace, each.name): controller(each.metadata) for each in replica_sets}
        self._owned: dict[_Owner, set[str]] = defaultdict(set)
        self._orphans: dict[tuple[str, str], PodManifest] = {}
        self._by_label: set[tuple[str, str, str]] = set()
        self._by_stem: dict[tuple[str, str], list[Labels]] = defaultdict(list)
        seen: set[tuple[str, str, str, str, str, str]] = set()
        for pod in pods:
            owner = controller(pod.metadata)
            if owner is None:
                self._add_orphan(pod)
                continue
            ending = (pod.metadata.labels or {}).get(_HASH, "")
            key = (pod.namespace, owner.api_version, owner.kind, owner.name, owner.uid or "", ending)
            if key not in seen:  # pods of one template tell the same
                seen.add(key)
                self._add_owner(pod.namespace, owner, ending)

    def _add_owner(self, namespace: str, owner: OwnerReference, ending: str) -> None:
        """Note that an owner has a pod, and the Deployment above it where it is a ReplicaSet."""
        self._note(namespace, owner)
        if (_group(owner), owner.kind) == ("apps", "ReplicaSet"):
            above = self._above.get((namespace, owner.name))
            if above is not None:
                self._note(namespace, above)
            else:
                name = owner.name.removesuffix(f"-{ending or owner.name.rpartition('-')[2]}")
                self._owned[(namespace, "apps", "Deployment", name)].add("")

    def _note(self, namespace: str, owner: OwnerReference) -> None:
        self._owned[(namespace, _group(owner), owner.kind, owner.name)].add(owner.uid or "")

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
        """Whether any pod belongs to a workload.

        Parameters
        ----------
        workload
            The workload.
        selector
            Of a Deployment or StatefulSet: what the labels of a pod without owners must meet; None: names say nothing.
        """
        key = (workload.namespace, workload.group, workload.kind, workload.name)
        uids, uid = self._owned.get(key, set()), workload.metadata.uid
        if uids and (not uid or uid in uids or "" in uids):
            return True
        naming = _NAMING.get((workload.group, workload.kind), ())
        if any((workload.namespace, label, workload.name) in self._by_label for label in naming):
            return True
        if selector is None:
            return False
        requirements = label_requirements(selector)
        found = self._by_stem.get((workload.namespace, workload.name), ())
        return any(matches(requirements, labels) for labels in found)

    def has_named(self, blueprint: Blueprint) -> bool:
        """Whether a pod without owners bears a name of the blueprint's and all labels of its template."""
        if not self._orphans:
            return False
        wanted = blueprint.template_labels.items()
        for _, name in blueprint.names():
            pod = self._orphans.get((blueprint.owner.namespace, name))
            if pod is not None and wanted <= (pod.metadata.labels or {}).items():
                return True
        return False


def _group(owner: OwnerReference) -> str:
    return owner.api_version.rpartition("/")[0]


def owned_by(metadata: Metadata, workload: NamespacedObject) -> bool:
    """Whether an object names a workload as the one that made it."""
    owner = controller(metadata)
    if owner is None or (_group(owner), owner.kind, owner.name) != (workload.group, workload.kind, workload.name):
        return False
    return not (owner.uid and workload.metadata.uid) or owner.uid == workload.metadata.uid


#: Most pods that are made, in all: twice what Kubernetes supports in one cluster.
LIMIT = 300_000


@dataclass(frozen=True)
class ExpansionPlan:
    """What is made, before it is made.

    Parameters
    ----------
    pod_groups
        Each new PodGroup with its job.
    blueprints
        Of all new pods; no two of them give the same name.
    findings
        Sorted.
    """

    pod_groups: tuple[tuple[VolcanoJobManifest, PodGroupManifest], ...] = ()
    blueprints: tuple[Blueprint, ...] = ()
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A workload and what it would make; ``selector`` tells its pods where they have no owner."""

    workload: NamespacedObject
    blueprints: tuple[Blueprint, ...]
    selector: LabelSelector | None = None
    pod_group: tuple[VolcanoJobManifest, PodGroupManifest] | None = None
    findings: tuple[Finding, ...] = ()


def make_plan(objects: Objects, *, only_added: bool = False) -> ExpansionPlan:
    """Decide what is made; see :func:`placer.instance.expansion.expand`."""
    alive = [
        each
        for each in _candidates(objects)
        if each.workload.metadata.deletion_timestamp is None and (not only_added or objects.is_added(each.workload))
    ]
    census = Census(objects.pods, objects.replica_sets) if alive else None
    chosen, total = [], 0
    for each in alive:
        if census is not None and census.has_pods(each.workload, each.selector):
            continue
        total += sum(len(blueprint.numbers) for blueprint in each.blueprints)
        _check_total(total, each.workload, objects)
        if census is None or not any(census.has_named(blueprint) for blueprint in each.blueprints):
            chosen.append(each)
    findings = [finding for each in chosen for finding in each.findings]
    blueprints = tuple(_settled(objects, (blueprint for each in chosen for blueprint in each.blueprints), findings))
    groups = tuple(each.pod_group for each in chosen if each.pod_group is not None)
    return ExpansionPlan(groups, blueprints, tuple(sorted(set(findings))))


def _check_total(total: int, workload: NamespacedObject, objects: Objects) -> None:
    """Refuse an instance before so many pods take all memory."""
    if total > LIMIT:
        subject = f"{workload.kind} {workload.namespace}/{workload.name}"
        found = f"{total:,} pods with those of the workloads before it"
        raise BadInstance(
            [Fault(objects.source(workload), None, subject, "spec", found, f"at most {LIMIT:,} pods in all")]
        )


def _candidates(objects: Objects) -> Iterator[_Candidate]:
    """Every workload that still makes pods; first those whose pods' names are fixed in a cluster too."""
    groups = _PodGroups(objects.pod_groups)
    for vcjob in objects.volcano_jobs:
        if not volcano_job_finished(vcjob) and vcjob.spec.tasks:
            name, group = groups.of(vcjob)
            blueprints = tuple(volcano_job_blueprints(vcjob, name))
            yield _Candidate(vcjob, blueprints, None, group, tuple(volcano_job_findings(vcjob)))
    for stateful_set in objects.stateful_sets:
        yield _Candidate(stateful_set, (stateful_set_blueprint(stateful_set),), stateful_set.spec.selector)
    for job in objects.jobs:
        if not job_finished(job):
            yield _Candidate(job, (job_blueprint(job),))
    for deployment in objects.deployments:
        yield _Candidate(deployment, (deployment_blueprint(deployment),), deployment.spec.selector)


class _PodGroups:
    """PodGroups that are there already."""

    def __init__(self, groups: Iterable[PodGroupManifest]) -> None:
        self._by_namespace: dict[str, dict[str, PodGroupManifest]] = {}
        for group in groups:
            self._by_namespace.setdefault(group.namespace, {})[group.name] = group

    def of(self, job: VolcanoJobManifest) -> tuple[str, tuple[VolcanoJobManifest, PodGroupManifest] | None]:
        """Name of a job's PodGroup, and the job with the PodGroup itself where it is yet to be made."""
        known = self._by_namespace.get(job.namespace, {})
        for name in pod_group_names(job):
            if name in known:
                return name, None
        for name, group in known.items():
            if name.startswith(f"{job.name}-") and owned_by(group.metadata, job):
                return name, None
        made = volcano_job_pod_group(job)
        return made.name, (job, made)


def _settled(objects: Objects, blueprints: Iterable[Blueprint], findings: list[Finding]) -> Iterator[Blueprint]:
    """Take out pods whose names are taken.

    Pods of Deployments and batch Jobs, whose names end by chance in a cluster, then take another name: a Deployment
    and a StatefulSet may well share theirs.
    """
    taken = {(pod.namespace, pod.name) for pod in objects.pods}
    for blueprint in blueprints:
        settled = blueprint
        if isinstance(blueprint.owner, apps.DeploymentManifest | apps.JobManifest) and _clashes(blueprint, taken):
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


@dataclass(frozen=True)
class Expansion:
    """What workloads would make.

    Parameters
    ----------
    pods, pod_groups
        New objects, in the order of the input, workload by workload.
    findings
        Tasks that could not be expanded or are odd, and names that are taken; sorted.
    """

    pods: tuple[PodManifest, ...] = ()
    pod_groups: tuple[PodGroupManifest, ...] = ()
    findings: tuple[Finding, ...] = ()


def expand(objects: Objects, *, only_added: bool = False) -> Expansion:
    """Make the PodGroups and pods of every workload that has no pod in the instance.

    Parameters
    ----------
    objects
        The instance's objects.
    only_added
        Expand only what came by ``--with``: the rest is from a cluster, whose controllers do it themselves.

    Returns
    -------
    Expansion
        Pods of one template share their spec.

    Raises
    ------
    BadInstance
        More than :data:`LIMIT` pods would be made.
    """
    plan = make_plan(objects, only_added=only_added)
    pods = tuple(pod for blueprint in plan.blueprints for pod in blueprint.pods())
    return Expansion(pods, tuple(group for _, group in plan.pod_groups), plan.findings)


Document = dict[str, Any]


def documents(objects: Objects, *, only_added: bool = False) -> Iterator[Document]:
    """Write PodGroups, then pods, as ``kubectl apply`` takes them.

    They are the objects of :func:`placer.instance.expansion.expand` with everything that their workload says of them.
    Owners are written only where the workload has a uid: the API server refuses a reference without one.

    Parameters
    ----------
    objects
        The instance's objects, with the text of the workloads.
    only_added
        As in ``expand``.

    Raises
    ------
    BadInstance
        Too many pods would be made.
    """
    plan = make_plan(objects, only_added=only_added)
    for job, group in plan.pod_groups:
        yield _pod_group(job, group)
    for blueprint in plan.blueprints:
        yield from _pods(blueprint, objects.document(blueprint.owner))


def _pod_group(job: VolcanoJobManifest, group: PodGroupManifest) -> Document:
    metadata = _metadata(job, group.name, dict(group.metadata.labels or {}), dict(group.metadata.annotations or {}))
    spec = _spec_adapter().dump_python(group.spec, mode="json", by_alias=True, exclude_none=True)
    return {"apiVersion": group.api_version, "kind": group.kind, "metadata": metadata, "spec": spec}


@lru_cache(maxsize=1)
def _spec_adapter() -> TypeAdapter[Any]:
    return TypeAdapter(PodGroupSpec)


def _pods(blueprint: Blueprint, owner: Document) -> Iterator[Document]:
    template: Any = owner
    for step in blueprint.path:
        template = template[step]
    written = template.get("metadata") or {}
    labels, annotations = written.get("labels") or {}, written.get("annotations") or {}
    annotations.pop(LAST_APPLIED, None)
    for number, name in blueprint.names():
        metadata = _metadata(
            blueprint.owner,
            name,
            labels | blueprint.labels.of(name, number),
            annotations | blueprint.annotations.of(name, number),
        )
        spec = _spec(blueprint, template["spec"], owner.get("spec") or {}, name)
        yield {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}


def _metadata(owner: NamespacedObject, name: str, labels: Document, annotations: Document) -> Document:
    metadata: Document = {"name": name, "namespace": owner.namespace}
    if owner.metadata.creation_timestamp is not None:
        metadata["creationTimestamp"] = f"{owner.metadata.creation_timestamp.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    if labels:
        metadata["labels"] = labels
    if annotations:
        metadata["annotations"] = annotations
    if owner.metadata.uid:
        metadata["ownerReferences"] = [
            {
                "apiVersion": owner.api_version,
                "kind": owner.kind,
                "name": owner.name,
                "uid": owner.metadata.uid,
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ]
    return metadata


def _spec(blueprint: Blueprint, template: Document, owner: Document, name: str) -> Document:
    spec = dict(template)
    if not spec.get("schedulerName") and blueprint.scheduler_name:
        spec["schedulerName"] = blueprint.scheduler_name
    if not spec.get("priorityClassName") and blueprint.priority_class_name:
        spec["priorityClassName"] = blueprint.priority_class_name
    if blueprint.hostname:
        spec.setdefault("hostname", name)
        if owner.get("serviceName"):
            spec.setdefault("subdomain", owner["serviceName"])
    claims = blueprint.claims_of(name)
    if claims:
        kept = [volume for volume in spec.get("volumes") or () if volume.get("name") not in claims]
        added = [{"name": volume, "persistentVolumeClaim": {"claimName": claim}} for volume, claim in claims.items()]
        spec["volumes"] = kept + added
    return spec
