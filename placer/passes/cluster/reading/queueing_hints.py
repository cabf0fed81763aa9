"""Changes of a cluster after which a waiting pod may be placed, as in kube-scheduler's ``QueueingHintFn``.

A change counts unless it is known to be useless: pods that get a node, conditions, heartbeats.
"""

from __future__ import annotations

from placer.kube.kinds import KindInfo
from placer.kube.pod import TERMINAL_PHASES
from placer.passes.cluster.reading.field_filter import essence
from placer.passes.cluster.reading.views import PodView, read_view

__all__ = ["has_come", "may_help"]


def may_help(
    info: KindInfo, before: bytes | None, after: bytes | None, scheduler_name: str, gates: bool = False
) -> bool:
    """Whether a waiting pod may be placed after a change.

    Parameters
    ----------
    before, after
        The object as a snapshot keeps it; None: there is none.
    """
    if info.attribute == "pods":
        return _pod_may_help(info, before, after, scheduler_name, gates)
    if info.attribute == "daemon_sets":
        return after is None  # what it says as long as it is there has room held, and its counts change all the time
    if before is None or after is None:
        return True
    return essence(info, before) != essence(info, after)


def has_come(info: KindInfo, before: bytes | None, after: bytes | None, scheduler_name: str, gates: bool) -> bool:
    """Whether a pod of ours waits since this change; parameters as for :func:`may_help`."""
    if info.attribute != "pods" or after is None or not _waits(read_view(after, PodView), scheduler_name, gates):
        return False
    return before is None or not _waits(read_view(before, PodView), scheduler_name, gates)


def _pod_may_help(info: KindInfo, before: bytes | None, after: bytes | None, scheduler_name: str, gates: bool) -> bool:
    was, now = (None if item is None else read_view(item, PodView) for item in (before, after))
    if now is None or now.status.phase in TERMINAL_PHASES:
        return _held_room(was, gates)
    if before is None or after is None:
        return _waits(now, scheduler_name, gates)
    if _holds_room(now):
        return _holds_room(was) and essence(info, before) != essence(info, after)  # else it took room
    return _waits(now, scheduler_name, gates) and essence(info, before) != essence(info, after)


def _waits(pod: PodView, scheduler_name: str, gates: bool) -> bool:
    return not pod.spec.node_name and (pod.spec.scheduler_name == scheduler_name or (gates and pod.is_on_hold))


def _held_room(pod: PodView | None, gates: bool) -> bool:
    """Whether a pod that left had room: it had a node, or placer may have released it for one."""
    return _holds_room(pod) or (gates and pod is not None and pod.only_node is not None)


def _holds_room(pod: PodView | None) -> bool:
    return pod is not None and bool(pod.spec.node_name) and pod.status.phase not in TERMINAL_PHASES
