"""State of a pod: pending and ours, bound, terminating, nominated, skipped, or none of these."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from placer.kube.base import Metadata, controller
from placer.kube.pod import TERMINAL_PHASES, PodManifest
from placer.problem.instance import ANY_SCHEDULER, PodState, SetAside

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
_DEFAULT_SCHEDULER = "default-scheduler"


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
    return pod.spec.scheduler_name or _DEFAULT_SCHEDULER


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
