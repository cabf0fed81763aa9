"""What a pod is to us: pending and ours, bound, terminating, nominated, or none of our business."""

from __future__ import annotations

from dataclasses import dataclass

from placer.instance.pod import PodState
from placer.kube.pod import Pod

__all__ = ["HOLD_GATE", "Ownership", "has_succeeded"]

#: The scheduling gate that users of ``--enforce gates`` put on their pods, and that placer takes away.
HOLD_GATE = "placer.dev/hold"
_DEFAULT_SCHEDULER = "default-scheduler"
_TERMINAL = ("Succeeded", "Failed")


def has_succeeded(pod: Pod) -> bool:
    """Whether the pod ran to its end: a PodGroup of Volcano counts it as placed."""
    return pod.status is not None and pod.status.phase == "Succeeded"


@dataclass(frozen=True, slots=True)
class Ownership:
    """Whose pending pods are ours (spec, "Pending").

    Parameters
    ----------
    scheduler_name
        The name that makes a pod ours; None: any name offline, ``placer`` in a cluster.
    cluster
        Whether the objects are those of a live cluster that will be written to.
    gates
        Only in a cluster: placer decides for pods that carry the hold gate, whatever their scheduler.
    """

    scheduler_name: str | None = None
    cluster: bool = False
    gates: bool = False

    def state(self, pod: Pod) -> PodState | None:
        """What a pod is to us; None where it neither holds room nor asks us for any."""
        phase = pod.status.phase if pod.status is not None else None
        if phase in _TERMINAL:
            return None
        deleted = pod.metadata.deletion_timestamp is not None
        if pod.spec.node_name:
            return PodState.TERMINATING if deleted else PodState.BOUND
        if deleted or phase not in (None, "", "Pending"):
            return None
        if self._ours(pod):
            return PodState.PENDING
        nominated = pod.status is not None and pod.status.nominated_node_name
        return PodState.NOMINATED if nominated and not pod.spec.scheduling_gates else None

    def _ours(self, pod: Pod) -> bool:
        gates = {gate.name for gate in pod.spec.scheduling_gates or ()}
        held = gates == {HOLD_GATE}
        if self.cluster and held:
            return self.gates
        if gates and not held:
            return False
        wanted = self.scheduler_name or ("placer" if self.cluster else None)
        return wanted is None or (pod.spec.scheduler_name or _DEFAULT_SCHEDULER) == wanted
