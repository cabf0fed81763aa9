"""State of a pod: pending and ours, bound, terminating, nominated, skipped, or none of these; and its makers.

A maker is the controller among the owners of a pod, or a workload above that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from placer.kube.base import Metadata, NamespacedObject, OwnerReference, controller
from placer.kube.pod import TERMINAL_PHASES, PodManifest
from placer.problem.instance import ANY_SCHEDULER, PodState, SetAside

if TYPE_CHECKING:
    from placer.kube.manifests import Objects

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

    @classmethod
    def of_owner(cls, owner: OwnerReference, namespace: str) -> Maker:
        """The Maker that an object of a namespace names as its owner."""
        return cls(owner.api_version.rpartition("/")[0], owner.kind, namespace, owner.name)


class PodMakers:
    """Finds the workloads that make a pod, over ``links``: ReplicaSets, Jobs and others between."""

    def __init__(self, links: Iterable[NamespacedObject] = ()) -> None:
        self._above = {(each.kind, each.namespace, each.name): controller(each.metadata) for each in links}

    def of(self, pod: PodManifest) -> Iterator[Maker]:
        """The workloads above the owner of a pod, then the owner; empty without one."""
        owner = controller(pod.metadata)
        if owner is None:
            return
        maker = Maker.of_owner(owner, pod.namespace)
        if maker[1:] in self._above:
            above = self._above[maker[1:]]
            if above is not None:
                yield Maker.of_owner(above, pod.namespace)
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


def all_workloads(objects: Objects) -> Iterator[tuple[Maker, Mapping[str, str], Mapping[str, str]]]:
    """All workloads; ReplicaSets only where nothing is above them."""
    read: Iterable[NamespacedObject]
    read = (*objects.jobs, *objects.job_sets, *objects.leader_worker_sets, *objects.volcano_jobs)
    alone = (each for each in objects.replica_sets if controller(each.metadata) is None)
    for each in (*read, *objects.deployments, *objects.stateful_sets, *alone):
        yield Maker.of(each), each.metadata.labels or {}, each.metadata.annotations or {}
    for other in objects.unread_workloads:
        yield Maker(other.group, other.kind, other.namespace, other.name), other.labels, other.annotations


_MIRROR_ANNOTATION = "kubernetes.io/config.mirror"


def is_daemon(metadata: Metadata) -> bool:
    """Whether a pod belongs to its node: of a DaemonSet, or static."""
    owner = controller(metadata)
    return is_static(metadata) or (owner is not None and owner.kind == "DaemonSet")


def is_static(metadata: Metadata) -> bool:
    """Whether a pod is static: its kubelet alone makes it, and writes what it likes on it."""
    owner = controller(metadata)
    return _MIRROR_ANNOTATION in (metadata.annotations or {}) or (owner is not None and owner.kind == "Node")


#: Users of ``--enforce gates`` put this scheduling gate on their pods, and placer takes it away.
HOLD_GATE = "placer.dev/hold"
DEFAULT_SCHEDULER = "default-scheduler"


def bound_at(pod: PodManifest) -> datetime | None:
    """When a pod got its node, as far as its status says."""
    if pod.status is None:
        return None
    said = (each for each in pod.status.conditions or () if each.type == "PodScheduled" and each.status == "True")
    return next(filter(None, (each.last_transition_time for each in said)), None) or pod.status.start_time


def has_succeeded(pod: PodManifest) -> bool:
    """Whether the pod ran to its end: a PodGroup of Volcano counts it as placed."""
    return pod.status is not None and pod.status.phase == "Succeeded"


@dataclass(frozen=True, slots=True)
class Ownership:
    """Whose pending pods are ours (models/reading.md, "Pods"); ``gates``: those that carry the hold gate."""

    scheduler_name: str | None = None
    cluster: bool = False
    gates: bool = False

    def state(self, pod: PodManifest) -> PodState | None:
        """State of a pod; None where it neither holds room nor asks us for any."""
        phase = pod.status.phase if pod.status is not None else None
        if phase in TERMINAL_PHASES:
            return None
        deleted = pod.metadata.deletion_timestamp is not None
        if pod.spec.node_name:
            return PodState.TERMINATING if deleted else PodState.BOUND
        if not _waits(pod):
            return None
        if self._ours(pod):
            return PodState.PENDING
        nominated = pod.status is not None and pod.status.nominated_node_name
        return PodState.NOMINATED if nominated and not pod.spec.scheduling_gates else None

    @property
    def wanted(self) -> str | None:
        """The scheduler whose pods are ours; None: any."""
        wanted = self.scheduler_name or ("placer" if self.cluster else ANY_SCHEDULER)
        return None if wanted == ANY_SCHEDULER else wanted

    def gated(self, pod: PodManifest) -> bool:
        """Whether scheduling gates keep a pod without a node from being placed by any scheduler."""
        if not pod.spec.scheduling_gates:
            return False
        gates = {gate.name for gate in pod.spec.scheduling_gates}
        return gates != {HOLD_GATE} or (self.cluster and not self.gates)

    def _ours(self, pod: PodManifest) -> bool:
        if self.gated(pod):
            return False
        if self.cluster and pod.spec.scheduling_gates:
            return True  # held by our gate, and taken under ``gates`` whatever its scheduler
        wanted = self.wanted
        return wanted is None or scheduler_of(pod) == wanted


def scheduler_of(pod: PodManifest) -> str:
    """Name of the scheduler that a pod is for."""
    return pod.spec.scheduler_name or DEFAULT_SCHEDULER


def set_aside(pods: Iterable[PodManifest], ownership: Ownership) -> SetAside:
    """Count the pods that wait for a node and are not ours to place."""
    gated, others = 0, Counter[str]()
    for pod in filter(_waits_for_a_node, pods):
        if ownership.gated(pod):
            gated += 1
        elif ownership.state(pod) is not PodState.PENDING:
            others[scheduler_of(pod)] += 1
    return SetAside(_most_first(others), gated)


def pending_by_scheduler(pods: Iterable[PodManifest], ownership: Ownership) -> dict[str, int]:
    """Scheduler to how many of our pending pods name it, the most first."""
    return _most_first(Counter(scheduler_of(pod) for pod in pods if ownership.state(pod) is PodState.PENDING))


def _most_first(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda each: (-each[1], each[0])))


def gated_pods(pods: Iterable[PodManifest], ownership: Ownership) -> list[PodManifest]:
    """Pods that wait for a node and that their gates keep from any scheduler."""
    return [pod for pod in filter(_waits_for_a_node, pods) if ownership.gated(pod)]


def _waits_for_a_node(pod: PodManifest) -> bool:
    return not pod.spec.node_name and _waits(pod)


def _waits(pod: PodManifest) -> bool:
    phase = pod.status.phase if pod.status is not None else None
    return pod.metadata.deletion_timestamp is None and phase in (None, "", "Pending")
