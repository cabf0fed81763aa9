"""Who makes a pod: the controller among its owners, and the workloads above that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from placer.kube.base import OwnerReference, controller

if TYPE_CHECKING:
    from placer.kube.base import NamespacedObject
    from placer.kube.manifests import Objects
    from placer.kube.pod import PodManifest

JOB_SETS, LEADER_WORKER_SETS = "jobset.x-k8s.io", "leaderworkerset.x-k8s.io"
JOB_SET, LEADER_WORKER_SET = "jobset.sigs.k8s.io/jobset-name", "leaderworkerset.sigs.k8s.io/name"
SET_LABELS = {(JOB_SETS, "JobSet"): JOB_SET, (LEADER_WORKER_SETS, "LeaderWorkerSet"): LEADER_WORKER_SET}

_HASH = "pod-template-hash"


class Maker(NamedTuple):
    """A workload, read or not."""

    group: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"

    @property
    def marked_as(self) -> str:
        """Kind in the table of marks."""
        return self.kind if self.kind == "Job" else "JobSet"

    @property
    def read_as(self) -> frozenset[str]:
        """Kinds whose rows in that table count for its own metadata."""
        if self.group == "batch.volcano.sh":
            return frozenset(("JobSet", "PodGroup"))
        return frozenset((self.kind, self.marked_as))

    @classmethod
    def of(cls, workload: NamespacedObject) -> Maker:
        """The Maker of a workload that is read."""
        return cls(workload.group, workload.kind, workload.namespace, workload.name)


class PodMakers:
    """Finds the workloads that make a pod, over ``links``: ReplicaSets, Jobs and others between."""

    def __init__(self, links: Iterable[NamespacedObject] = ()) -> None:
        self._above = {(each.kind, each.namespace, each.name): controller(each.metadata) for each in links}

    def of(self, pod: PodManifest) -> Iterator[Maker]:
        """The workloads above the owner of a pod, then the owner; empty without one."""
        owner = controller(pod.metadata)
        if owner is None:
            return
        maker = _maker(owner, pod.namespace)
        if maker[1:] in self._above:
            above = self._above[maker[1:]]
            if above is not None:
                yield _maker(above, pod.namespace)
        elif owner.kind == "ReplicaSet":
            ending = (pod.metadata.labels or {}).get(_HASH) or owner.name.rpartition("-")[2]
            yield Maker(maker.group, "Deployment", pod.namespace, owner.name.removesuffix(f"-{ending}"))
        yield maker

    def with_sets(self, pod: PodManifest) -> Iterator[Maker]:
        """The same, and the sets that the labels of a pod name."""
        yield from self.of(pod)
        for (group, kind), label in SET_LABELS.items():
            name = (pod.metadata.labels or {}).get(label)
            if name is not None:
                yield Maker(group, kind, pod.namespace, name)


def _maker(owner: OwnerReference, namespace: str) -> Maker:
    return Maker(owner.api_version.rpartition("/")[0], owner.kind, namespace, owner.name)


def all_workloads(objects: Objects) -> Iterator[tuple[Maker, Mapping[str, str], Mapping[str, str]]]:
    """All workloads; ReplicaSets only where nothing is above them."""
    read: Iterable[NamespacedObject]
    read = (*objects.jobs, *objects.job_sets, *objects.leader_worker_sets, *objects.volcano_jobs)
    alone = (each for each in objects.replica_sets if controller(each.metadata) is None)
    for each in (*read, *objects.deployments, *objects.stateful_sets, *alone):
        yield Maker.of(each), each.metadata.labels or {}, each.metadata.annotations or {}
    for other in objects.unread_workloads:
        yield Maker(other.group, other.kind, other.namespace, other.name), other.labels, other.annotations
