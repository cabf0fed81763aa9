"""JobSets: the pods and PodGroups that their controllers would make (jobset ``pkg/controllers``, v0.12)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property

from placer.kube.apps import JobManifest
from placer.kube.base import Metadata
from placer.kube.job_sets import (
    JobSetManifest,
    JobSetScheduling,
    JobSetTargetScheduling,
    MountingPodSpec,
    ReplicatedJob,
)
from placer.kube.pod import TolerationEntry
from placer.kube.scheduling import UpstreamPodGroupManifest, UpstreamScheduling
from placer.problem.blueprints import Blueprint, Marks, job_blueprint, job_size, owner_reference, upstream_pod_group
from placer.problem.findings import Finding
from placer.problem.gangs import JOB_EXCLUSIVE_TOPOLOGY

_PREFIX = "jobset.sigs.k8s.io/"
_NODE_SELECTOR = "alpha.jobset.sigs.k8s.io/node-selector"
_NAMESPACED_JOB = "alpha.jobset.sigs.k8s.io/namespaced-job"
_NO_SCHEDULE = "alpha.jobset.sigs.k8s.io/no-schedule"


def job_set_finished(job_set: JobSetManifest) -> bool:
    """Whether a JobSet makes no more Jobs."""
    conditions = (job_set.status.conditions if job_set.status is not None else None) or ()
    return any(each.type in ("Completed", "Failed") and each.status == "True" for each in conditions)


@dataclass(frozen=True)
class JobSetExpansion:
    """``existing`` names Jobs that are there already, so their own pods count."""

    job_set: JobSetManifest
    existing: Set[str] = frozenset()

    @cached_property
    def blueprints(self) -> tuple[Blueprint, ...]:
        """One for each Job that is not there yet and waits for no other."""
        if self.job_set.spec.suspend:
            return ()
        return tuple(
            self._blueprint(place, replicated, index)
            for place, replicated in enumerate(self._replicated)
            if not self._waits_for(place)
            for index in range(_replicas(replicated))
            if _job_name(self.job_set, replicated, index) not in self.existing
        )

    @cached_property
    def pod_groups(self) -> tuple[UpstreamPodGroupManifest, ...]:
        """The PodGroups of the pods, where the set states how it is scheduled."""
        found = {group.name: group for group in self._wanted_groups.values()}
        used = {blueprint.pod_group for blueprint in self.blueprints}
        return tuple(group for name, group in found.items() if name in used)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Replicated jobs of which no pods are made yet."""
        subject = f"JobSet {self.job_set.namespace}/{self.job_set.name}"
        waiting = ((each.name, self._waits_for(place)) for place, each in enumerate(self._replicated))
        return tuple(
            Finding(
                "DependsOn",
                subject,
                f"replicated job {name} waits for {', '.join(others)}: its pods do not exist yet, and none is made",
            )
            for name, others in waiting
            if others
        )

    @property
    def _replicated(self) -> Sequence[ReplicatedJob]:
        return self.job_set.spec.replicated_jobs or ()

    @property
    def _in_order(self) -> bool:
        startup = self.job_set.spec.startup_policy
        return startup is not None and startup.startup_policy_order == "InOrder"

    def _waits_for(self, place: int) -> tuple[str, ...]:
        replicated = self._replicated[place]
        named = tuple(each.name for each in replicated.depends_on or ())
        return named or ((self._replicated[place - 1].name,) if self._in_order and place else ())

    def _blueprint(self, place: int, replicated: ReplicatedJob, index: int) -> Blueprint:
        job_set = self.job_set
        name = _job_name(job_set, replicated, index)
        metadata = Metadata(
            name=name, namespace=job_set.metadata.namespace, creation_timestamp=job_set.metadata.creation_timestamp
        )
        job = JobManifest(api_version="batch/v1", kind="Job", metadata=metadata, spec=replicated.template.spec)
        made = job_blueprint(job)
        marks = self._marks(place, replicated, index)
        exclusive = self._exclusive(replicated)
        selected = _NODE_SELECTOR in exclusive
        network = job_set.spec.network
        named = network is None or network.enable_dns_hostnames is not False
        return replace(
            made,
            owner=job_set,
            maker=owner_reference(job),
            path=("spec", "replicatedJobs", place, "template", "spec", "template"),
            numbers=made.numbers,
            labels=Marks({**made.labels.fixed, **marks}, made.labels.numbered),
            annotations=Marks(marks | exclusive, made.annotations.numbered),
            node_selector={_NAMESPACED_JOB: f"{job_set.namespace}_{name}"} if selected else {},
            tolerations=(_TOLERATION,) if selected else (),
            claims=self._claims(replicated),
            subdomain=_subdomain(job_set) if named else None,
            pod_group=self._pod_group(replicated, index),
        )

    def _claims(self, replicated: ReplicatedJob) -> dict[str, str]:
        mounted = set(_mounted(replicated.template.spec.template.spec))
        policies = self.job_set.spec.volume_claim_policies or ()
        names = (each.metadata.name for policy in policies for each in policy.templates or ())
        return {name: f"{name}-{self.job_set.name}" for name in names if name in mounted}

    def _marks(self, place: int, replicated: ReplicatedJob, index: int) -> dict[str, str]:
        job_set = self.job_set
        earlier, group = self._replicated[:place], _group_name(replicated)
        before = sum(map(_replicas, earlier))
        key = f"{job_set.namespace}/{_job_name(job_set, replicated, index)}"
        restarts = job_set.status.restarts if job_set.status is not None else None
        marks = {
            "jobset-name": job_set.name,
            "replicatedjob-name": replicated.name,
            "restart-attempt": str(restarts or 0),
            "replicatedjob-replicas": str(_replicas(replicated)),
            "global-replicas": str(sum(map(_replicas, self._replicated))),
            "job-index": str(index),
            "job-key": hashlib.sha1(key.encode(), usedforsecurity=False).hexdigest(),
            "job-global-index": str(before + index),
            "group-name": group,
            "group-replicas": str(_replicas_of(group, self._replicated)),
            "job-group-index": str(_replicas_of(group, earlier) + index),
        }
        if job_set.metadata.uid:
            marks["jobset-uid"] = job_set.metadata.uid
        coordinator = job_set.spec.coordinator
        if coordinator is not None:
            pod = f"{coordinator.replicated_job}-{coordinator.job_index or 0}-{coordinator.pod_index or 0}"
            marks["coordinator"] = f"{job_set.name}-{pod}.{_subdomain(job_set)}"
        return {f"{_PREFIX}{name}": value for name, value in marks.items()}

    def _exclusive(self, replicated: ReplicatedJob) -> dict[str, str]:
        found: dict[str, str] = {}
        own = replicated.template.metadata.annotations if replicated.template.metadata is not None else None
        for written in (self.job_set.metadata.annotations or {}, own or {}):
            if JOB_EXCLUSIVE_TOPOLOGY in written:
                names = (JOB_EXCLUSIVE_TOPOLOGY, _NODE_SELECTOR)
                found |= {name: written[name] for name in names if name in written}
        return found

    def _pod_group(self, replicated: ReplicatedJob, index: int) -> str | None:
        group = self._wanted_groups.get((replicated.name, index)) or self._wanted_groups.get((replicated.name, None))
        return None if group is None else group.name

    @cached_property
    def _wanted_groups(self) -> Mapping[tuple[str, int | None], UpstreamPodGroupManifest]:
        scheduling = self.job_set.spec.scheduling
        if scheduling is None:
            return {}
        found: dict[tuple[str, int | None], UpstreamPodGroupManifest] = {}
        for target in scheduling.replicated_jobs or ():
            found |= self._of_target(target, scheduling)
        targeted = {name for name, _ in found}
        rest = [each for each in self._replicated if each.name not in targeted]
        return found | self._of_rest(rest, scheduling)

    def _of_rest(
        self, rest: Sequence[ReplicatedJob], scheduling: JobSetScheduling
    ) -> dict[tuple[str, int | None], UpstreamPodGroupManifest]:
        waits = self._in_order or any(each.depends_on for each in self._replicated)
        if scheduling.replicated_jobs or waits:
            return {(each.name, None): self._group(each.name, [each], (scheduling,)) for each in rest}
        return dict.fromkeys(((each.name, None) for each in rest), self._group("", rest, (scheduling,)))

    def _of_target(
        self, target: JobSetTargetScheduling, scheduling: JobSetScheduling
    ) -> Iterator[tuple[tuple[str, int | None], UpstreamPodGroupManifest]]:
        names = target.target_replicated_jobs or ()
        members = [each for each in self._replicated if each.name in names]
        if target.job is None:
            group = self._group("-".join(names), members, (target, scheduling))
            yield from (((each.name, None), group) for each in members)
            return
        for each in members:
            for index in range(_replicas(each)):
                group = self._group(f"{each.name}-{index}", [each], (target.job, scheduling), 1)
                yield (each.name, index), group

    def _group(
        self,
        ending: str,
        members: Sequence[ReplicatedJob],
        said: Sequence[UpstreamScheduling],
        copies: int | None = None,
    ) -> UpstreamPodGroupManifest:
        policies = (each.scheduling_policy for each in said)
        constraints = (each.scheduling_constraints for each in said)
        sizes = ((_replicas(each) if copies is None else copies) * job_size(each.template.spec) for each in members)
        return upstream_pod_group(
            self.job_set,
            "-".join(filter(None, (self.job_set.name, ending))),
            sum(sizes),
            next(filter(None, policies), None),
            next(filter(None, constraints), None),
            members[0].template.spec.template.spec.priority_class_name if members else None,
        )


_TOLERATION = TolerationEntry(key=_NO_SCHEDULE, operator="Exists", effect="NoSchedule")


def _replicas(replicated: ReplicatedJob) -> int:
    return 1 if replicated.replicas is None else replicated.replicas


def _mounted(spec: MountingPodSpec) -> Iterator[str | None]:
    for container in (*(spec.containers or ()), *(spec.init_containers or ())):
        yield from (mount.name for mount in container.volume_mounts or ())


def _group_name(replicated: ReplicatedJob) -> str:
    return replicated.group_name or "default"


def _replicas_of(group: str, several: Iterable[ReplicatedJob]) -> int:
    return sum(_replicas(each) for each in several if _group_name(each) == group)


def _job_name(job_set: JobSetManifest, replicated: ReplicatedJob, index: int) -> str:
    return f"{job_set.name}-{replicated.name}-{index}"


def _subdomain(job_set: JobSetManifest) -> str:
    network = job_set.spec.network
    return (network.subdomain if network is not None else None) or job_set.name
