"""LeaderWorkerSets: the pods and PodGroups that their controllers would make (lws ``pkg/controllers``, v0.10).

A replica is a gang: a leader ``<set>-<index>`` and workers ``<set>-<index>-1``, ``-2``, ...
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from placer.kube.base import OwnerReference
from placer.kube.leader_worker_sets import LeaderWorkerSetManifest
from placer.kube.scheduling import UpstreamPodGroupManifest
from placer.problem.blueprints import Blueprint, Marks, upstream_pod_group
from placer.problem.findings import Finding
from placer.problem.gangs import (
    GROUP_INDEX,
    REPLICA_EXCLUSIVE_TOPOLOGY,
    SUB_GROUP_EXCLUSIVE_TOPOLOGY,
    SUB_GROUP_INDEX,
    names_group,
)
from placer.problem.pod_makers import LEADER_WORKER_SET

_PREFIX = "leaderworkerset.sigs.k8s.io/"
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
        yield self._blueprint(index, range(index, index + 1), of_leader, self._leader_sub_group)
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

    @property
    def _leader_sub_group(self) -> int | None:
        return None if self._sub_group_size is None or self._policy_type == "LeaderExcluded" else 0

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
            numbered[f"{_PREFIX}worker-index"] = 1
        else:
            labels[f"{_PREFIX}worker-index"] = "0"
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
            f"{_PREFIX}group-key": _sha1(f"{self.workers_set.namespace}/{leader}"),
        }
        if sub_group is not None:
            key = _sha1(f"{leader}/{sub_group}")
            labels |= {SUB_GROUP_INDEX: str(sub_group), f"{_PREFIX}subgroup-key": key}
        return labels

    def _annotations(self, leader: str | None) -> dict[str, str]:
        said = self.workers_set.metadata.annotations or {}
        found = {f"{_PREFIX}size": str(self._size)}
        if leader is not None:
            found[f"{_PREFIX}leader-name"] = leader
        elif self._unique_subdomains:
            found[f"{_PREFIX}subdomainPolicy"] = _UNIQUE
        if said.get(REPLICA_EXCLUSIVE_TOPOLOGY):
            found[REPLICA_EXCLUSIVE_TOPOLOGY] = said[REPLICA_EXCLUSIVE_TOPOLOGY]
        if self._sub_group_size is not None:
            found[f"{_PREFIX}subgroup-size"] = str(self._sub_group_size)
            found[f"{_PREFIX}subgroup-policy-type"] = self._policy_type
            if said.get(SUB_GROUP_EXCLUSIVE_TOPOLOGY):
                found[SUB_GROUP_EXCLUSIVE_TOPOLOGY] = said[SUB_GROUP_EXCLUSIVE_TOPOLOGY]
        return found


def _sha1(text: str) -> str:
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
