"""Which changes of a cluster make a pass worth while: after which of them a pod that waits may be placed.

kube-scheduler asks its plug-ins the same of every event (``QueueingHintFn``). Most of what happens takes room, or is
our own doing: pods that get a node, conditions, times of heartbeats. Whatever is not known to be without use counts,
and what is missed here waits for the next period.
"""

from __future__ import annotations

from placer.cluster.reading.field_filter import essence
from placer.cluster.reading.views import PodView, read_view
from placer.kube.kinds import KindInfo
from placer.kube.pod import TERMINAL_PHASES

__all__ = ["has_come", "may_help"]


def may_help(
    info: KindInfo, before: bytes | None, after: bytes | None, scheduler_name: str, gates: bool = False
) -> bool:
    """Whether a pod that waits may be placed after a change.

    Parameters
    ----------
    info
        The kind of the object that changed.
    before, after
        What a snapshot keeps of it; None: there was, or is, none.
    scheduler_name
        Whose pending pods are ours.
    gates
        Whether those are, too, that have the hold gate alone.
    """
    if info.attribute == "pods":
        return _pod_may_help(info, before, after, scheduler_name, gates)
    if info.attribute == "daemon_sets":
        return after is None  # what it says as long as it is there has room held, and its counts change all the time
    if before is None or after is None:
        return True
    return essence(info, before) != essence(info, after)


def has_come(info: KindInfo, before: bytes | None, after: bytes | None, scheduler_name: str, gates: bool) -> bool:
    """Whether a change is that a pod of ours has come, or waits from now on; the rest is as for :func:`may_help`."""
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
    """Whether room is free where a pod is gone: it had a node, or placer may have released it for one."""
    return _holds_room(pod) or (gates and pod is not None and pod.only_node is not None)


def _holds_room(pod: PodView | None) -> bool:
    return pod is not None and bool(pod.spec.node_name) and pod.status.phase not in TERMINAL_PHASES
