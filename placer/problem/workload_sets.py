"""JobSets and LeaderWorkerSets: the pods and PodGroups that their controllers would make.

A replica of a LeaderWorkerSet is a gang: a leader ``<set>-<index>`` and workers ``<set>-<index>-1``, ``-2``, ...
Source: jobset ``pkg/controllers`` (v0.12); lws ``pkg/controllers`` (v0.10).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property

from placer.kube.apps import JobManifest
from placer.kube.base import Metadata, OwnerReference
from placer.kube.pod import TolerationEntry
from placer.kube.scheduling import UpstreamPodGroupManifest, UpstreamScheduling
from placer.kube.workload_sets import (
    JobSetManifest,
    JobSetScheduling,
    JobSetTargetScheduling,
    LeaderWorkerSetManifest,
    MountingPodSpec,
    ReplicatedJob,
)
from placer.problem.blueprints import Blueprint, Marks, job_blueprint, job_size, owner_reference, upstream_pod_group
from placer.problem.findings import Finding
from placer.problem.gangs import (
    GROUP_INDEX,
    JOB_EXCLUSIVE_TOPOLOGY,
    REPLICA_EXCLUSIVE_TOPOLOGY,
    SUB_GROUP_EXCLUSIVE_TOPOLOGY,
    SUB_GROUP_INDEX,
    names_group,
)
from placer.problem.pod_states import LEADER_WORKER_SET

_PREFIX = "jobset.sigs.k8s.io/"
_NODE_SELECTOR = "alpha.jobset.sigs.k8s.io/node-selector"
_NAMESPACED_JOB = "alpha.jobset.sigs.k8s.io/namespaced-job"
_NO_SCHEDULE = "alpha.jobset.sigs.k8s.io/no-schedule"


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
        mounted = _mounted(replicated.template.spec.template.spec)
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
            "job-key": _sha1(key),
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


def _mounted(spec: MountingPodSpec) -> set[str | None]:
    containers = (*(spec.containers or ()), *(spec.init_containers or ()))
    return {mount.name for container in containers for mount in container.volume_mounts or ()}


def _replicas(replicated: ReplicatedJob) -> int:
    return 1 if replicated.replicas is None else replicated.replicas


def _group_name(replicated: ReplicatedJob) -> str:
    return replicated.group_name or "default"


def _replicas_of(group: str, several: Iterable[ReplicatedJob]) -> int:
    return sum(_replicas(each) for each in several if _group_name(each) == group)


def _job_name(job_set: JobSetManifest, replicated: ReplicatedJob, index: int) -> str:
    return f"{job_set.name}-{replicated.name}-{index}"


def _subdomain(job_set: JobSetManifest) -> str:
    network = job_set.spec.network
    return (network.subdomain if network is not None else None) or job_set.name


_SETS = "leaderworkerset.sigs.k8s.io/"
_UNIQUE = "UniquePerReplica"


@dataclass(frozen=True)
class LeaderWorkerSetExpansion:
    """The pods and PodGroups of one LeaderWorkerSet."""

    workers_set: LeaderWorkerSetManifest

    @cached_property
    def blueprints(self) -> tuple[Blueprint, ...]:
        """Of each replica its leader, and its workers by subgroup."""
        return tuple(each for index in range(self._replicas) for each in self._replica(index))

    @cached_property
    def pod_groups(self) -> tuple[UpstreamPodGroupManifest, ...]:
        """One for each replica; none for a template that names one itself."""
        names = dict.fromkeys(each.pod_group for each in self.blueprints if each.pod_group)
        size = 1 if self._waits else self._size
        return tuple(upstream_pod_group(self.workers_set, name, size) for name in names)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Workers that are not made yet, and subgroups that do not come out even."""
        return tuple(self._findings())

    def _findings(self) -> Iterator[Finding]:
        subject = f"LeaderWorkerSet {self.workers_set.namespace}/{self.workers_set.name}"
        if self._waits and self._size > 1 and self._replicas:
            message = "workers wait for their leaders to be ready: their pods do not exist yet, and none is made"
            yield Finding("DependsOn", subject, message)
        size, part = self._size, self._sub_group_size
        whole = (size - 1,) if self._policy_type == "LeaderExcluded" else (size, size - 1)
        if part is not None and (part > size or all(each % part for each in whole)):
            message = (
                f"size {size} is no multiple of subGroupSize {part}{', with or' if len(whole) > 1 else ''} without its "
                "leader; leaderworkerset refuses such a set"
            )
            yield Finding("PartitionMismatch", subject, message)

    @property
    def _replicas(self) -> int:
        replicas = self.workers_set.spec.replicas
        return 1 if replicas is None else replicas

    @property
    def _size(self) -> int:
        return self.workers_set.spec.leader_worker_template.size or 1

    @property
    def _waits(self) -> bool:
        return self.workers_set.spec.startup_policy == "LeaderReady"

    @property
    def _sub_group_size(self) -> int | None:
        policy = self.workers_set.spec.leader_worker_template.sub_group_policy
        return policy.sub_group_size if policy is not None else None

    def _replica(self, index: int) -> Iterator[Blueprint]:
        template = self.workers_set.spec.leader_worker_template
        of_leader = "leaderTemplate" if template.leader_template is not None else "workerTemplate"
        leader_sub_group = None if self._sub_group_size is None or self._policy_type == "LeaderExcluded" else 0
        yield self._blueprint(index, range(index, index + 1), of_leader, leader_sub_group)
        if not self._waits:
            by_sub_group: dict[int | None, list[int]] = {}
            for worker in range(1, self._size):
                by_sub_group.setdefault(self._sub_group(worker), []).append(worker)
            for sub_group, workers in by_sub_group.items():
                yield self._blueprint(index, workers, "workerTemplate", sub_group, workers=True)

    @property
    def _policy_type(self) -> str:
        policy = self.workers_set.spec.leader_worker_template.sub_group_policy
        return (policy.sub_group_policy_type if policy is not None else None) or "LeaderWorker"

    def _sub_group(self, worker: int) -> int | None:
        """A leader is extra in the first subgroup where the workers alone divide, and all pods do not."""
        size = self._sub_group_size
        if size is None:
            return None
        extra = (self._size - 1) % size == 0 and self._size % size != 0
        return (worker - extra) // size

    def _blueprint(
        self, index: int, numbers: range | list[int], field: str, sub_group: int | None, *, workers: bool = False
    ) -> Blueprint:
        owner = self.workers_set
        template = owner.spec.leader_worker_template
        leader = f"{owner.name}-{index}"
        spec = template.leader_template if field == "leaderTemplate" else None
        labels, numbered = self._labels(index, sub_group), {"apps.kubernetes.io/pod-index": 1}
        if workers:
            numbered[f"{_SETS}worker-index"] = 1
        else:
            labels[f"{_SETS}worker-index"] = "0"
        stem = leader if workers else owner.name
        named = spec or template.worker_template
        claims = template.volume_claim_templates or ()
        return Blueprint(
            owner=owner,
            path=("spec", "leaderWorkerTemplate", field),
            template=named,
            stem=stem,
            numbers=numbers,
            labels=Marks(labels, numbered, ("statefulset.kubernetes.io/pod-name",)),
            annotations=Marks(self._annotations(leader if workers else None)),
            hostname=True,
            claims={each.metadata.name: f"{each.metadata.name}-{{pod}}" for each in claims},
            maker=OwnerReference(api_version="apps/v1", kind="StatefulSet", name=stem, controller=True),
            pod_group=None if names_group(named) else leader,
            subdomain=leader if self._unique_subdomains else owner.name,
        )

    @property
    def _unique_subdomains(self) -> bool:
        network = self.workers_set.spec.network_config
        return network is not None and network.subdomain_policy == _UNIQUE

    def _labels(self, index: int, sub_group: int | None) -> dict[str, str]:
        leader = f"{self.workers_set.name}-{index}"
        labels = {
            LEADER_WORKER_SET: self.workers_set.name,
            GROUP_INDEX: str(index),
            f"{_SETS}group-key": _sha1(f"{self.workers_set.namespace}/{leader}"),
        }
        if sub_group is not None:
            key = _sha1(f"{leader}/{sub_group}")
            labels |= {SUB_GROUP_INDEX: str(sub_group), f"{_SETS}subgroup-key": key}
        return labels

    def _annotations(self, leader: str | None) -> dict[str, str]:
        said = self.workers_set.metadata.annotations or {}
        found = {f"{_SETS}size": str(self._size)}
        if leader is not None:
            found[f"{_SETS}leader-name"] = leader
        elif self._unique_subdomains:
            found[f"{_SETS}subdomainPolicy"] = _UNIQUE
        if said.get(REPLICA_EXCLUSIVE_TOPOLOGY):
            found[REPLICA_EXCLUSIVE_TOPOLOGY] = said[REPLICA_EXCLUSIVE_TOPOLOGY]
        if self._sub_group_size is not None:
            found[f"{_SETS}subgroup-size"] = str(self._sub_group_size)
            found[f"{_SETS}subgroup-policy-type"] = self._policy_type
            if said.get(SUB_GROUP_EXCLUSIVE_TOPOLOGY):
                found[SUB_GROUP_EXCLUSIVE_TOPOLOGY] = said[SUB_GROUP_EXCLUSIVE_TOPOLOGY]
        return found


def _sha1(text: str) -> str:
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
