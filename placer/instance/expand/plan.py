"""Which workloads are expanded, and under which names their pods go."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from placer.errors import BadInstance, Fault
from placer.instance.expand import volcano, workloads
from placer.instance.expand.blueprint import Blueprint
from placer.instance.expand.ownership import Census, owned_by
from placer.instance.model import Finding
from placer.kube import apps
from placer.kube.base import LabelSelector, NamespacedObject
from placer.kube.volcano import PodGroupManifest, VolcanoJobManifest

if TYPE_CHECKING:
    from placer.manifests import Objects

__all__ = ["LIMIT", "Plan", "make_plan"]

#: Most pods that are made, in all: twice what Kubernetes supports in one cluster.
LIMIT = 300_000


@dataclass(frozen=True)
class Plan:
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


def make_plan(objects: Objects, *, only_added: bool = False) -> Plan:
    """Decide what is made; see :func:`placer.instance.expand.expand`."""
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
    return Plan(groups, blueprints, tuple(sorted(set(findings))))


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
        if not volcano.finished(vcjob) and vcjob.spec.tasks:
            name, group = groups.of(vcjob)
            blueprints = tuple(volcano.blueprints(vcjob, name))
            yield _Candidate(vcjob, blueprints, None, group, tuple(volcano.findings(vcjob)))
    for stateful_set in objects.stateful_sets:
        yield _Candidate(stateful_set, (workloads.stateful_set(stateful_set),), stateful_set.spec.selector)
    for job in objects.jobs:
        if not workloads.finished(job):
            yield _Candidate(job, (workloads.job(job),))
    for deployment in objects.deployments:
        yield _Candidate(deployment, (workloads.deployment(deployment),), deployment.spec.selector)


class _PodGroups:
    """PodGroups that are there already."""

    def __init__(self, groups: Iterable[PodGroupManifest]) -> None:
        self._by_namespace: dict[str, dict[str, PodGroupManifest]] = {}
        for group in groups:
            self._by_namespace.setdefault(group.namespace, {})[group.name] = group

    def of(self, job: VolcanoJobManifest) -> tuple[str, tuple[VolcanoJobManifest, PodGroupManifest] | None]:
        """Name of a job's PodGroup, and the job with the PodGroup itself where it is yet to be made."""
        known = self._by_namespace.get(job.namespace, {})
        for name in volcano.pod_group_names(job):
            if name in known:
                return name, None
        for name, group in known.items():
            if name.startswith(f"{job.name}-") and owned_by(group.metadata, job):
                return name, None
        made = volcano.pod_group(job)
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
