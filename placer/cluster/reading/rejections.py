"""What kubelets rejected: remembered by workload and node, beyond the lives of the pods.

A kubelet that rejects a pod of ours knows something that the API server does not: of its node, which then *cools down*
and gets nothing new for a while; or of the pod. Which one shows when another kubelet rejects a pod of the same workload
too: then it is the *workload* that backs off, one minute at first and twice as long after each further rejection, an
hour at most, and the nodes take others at once. So one workload that no kubelet takes costs a pool one node at a time.

Controllers delete what failed, some of them at once. So what a pass hears and what it finds in lists is kept in the
record beside half-bound gangs (:mod:`placer.cluster.reading.gang_record`), where no tenant may write.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from placer.cluster.reading.client import Server, listed
from placer.cluster.reading.gang_record import RejectedWorkload
from placer.cluster.reading.views import PodView, Rejection, Workload
from placer.instance import ANY_SCHEDULER

__all__ = ["back_off", "cooling_nodes", "failed_pods", "remembered", "waiting_workloads"]

#: Seconds for which something is not tried after the first time, and the most.
_FIRST_BACK_OFF, _LONGEST_BACK_OFF = 60, 3600
#: Most workloads that are remembered, and most nodes of each, the latest.
_MOST_WORKLOADS, _MOST_NODES = 1_000, 8
_NEVER = datetime.min.replace(tzinfo=UTC)


def back_off(times: int) -> timedelta:
    """For how long something is not tried that went wrong so many times."""
    return timedelta(seconds=min(_FIRST_BACK_OFF * 2 ** (times - 1), _LONGEST_BACK_OFF))


def failed_pods(server: Server, scheduler_name: str, seconds: float) -> list[Rejection]:
    """Find the failed pods of ours that their kubelets rejected and that are still there.

    Parameters
    ----------
    server
        Where to ask.
    scheduler_name
        Whose pods are ours; ``*``: any scheduler's.
    seconds
        How long a node cools down; 0: not at all, and nothing is asked.
    """
    if seconds <= 0:
        return []
    of_ours = "" if scheduler_name == ANY_SCHEDULER else f",spec.schedulerName={scheduler_name}"
    pods = listed(server.get, "/api/v1/pods", PodView, f"status.phase=Failed{of_ours}")
    return [pod.rejection for pod in pods if pod.rejection is not None]


def remembered(
    known: Mapping[Workload, RejectedWorkload], rejections: Iterable[Rejection], seconds: float, now: datetime
) -> dict[Workload, RejectedWorkload]:
    """What is to be remembered, with what was rejected since.

    Parameters
    ----------
    known
        What is remembered already.
    rejections
        New ones, and any that are known.
    seconds
        How long a node cools down; 0: nothing is remembered.
    now
        When.
    """
    if seconds <= 0:
        return {}
    found: dict[Workload, list[Rejection]] = defaultdict(list)
    for each in rejections:
        found[each.workload].append(each)
    since = now - timedelta(seconds=seconds)
    updated = {
        workload: _updated(known.get(workload, RejectedWorkload()), found[workload], since, now)
        for workload in (*known, *(each for each in found if each not in known))
    }
    kept = sorted((each.until or max(each.nodes.values()), key) for key, each in updated.items() if each.nodes)
    return {key: updated[key] for _, key in kept[-_MOST_WORKLOADS:]}


def _updated(
    before: RejectedWorkload, rejections: Iterable[Rejection], since: datetime, now: datetime
) -> RejectedWorkload:
    """One workload; without nodes where it is to be forgotten."""
    if before.until is not None:
        return _tried_again(before, before.until, rejections, now)
    lately = replace(before, nodes={name: when for name, when in before.nodes.items() if when > since})
    found = _with(lately, [each for each in rejections if each.when > since])
    return _backing_off(found, now) if len(found.nodes) > 1 else found


def _tried_again(
    before: RejectedWorkload, until: datetime, rejections: Iterable[Rejection], now: datetime
) -> RejectedWorkload:
    """One that has backed off: what was rejected since then counts, on whichever node."""
    decided = until - back_off(before.times)
    news = [each for each in rejections if each.when > decided]
    if news:
        return _backing_off(_with(before, news), now)
    return before if now <= until + timedelta(seconds=_LONGEST_BACK_OFF) else RejectedWorkload()


def _with(before: RejectedWorkload, news: Iterable[Rejection]) -> RejectedWorkload:
    """The same with what is later among some rejections."""
    found = before
    for each in sorted(news, key=lambda each: each.when):
        if each.when <= found.nodes.get(each.node, _NEVER):
            continue
        others = {name: when for name, when in found.nodes.items() if name != each.node}
        latest = [*others.items(), (each.node, each.when)][-_MOST_NODES:]
        found = replace(found, nodes=dict(latest), reason=each.reason)
    return found


def _backing_off(found: RejectedWorkload, now: datetime) -> RejectedWorkload:
    return replace(found, times=found.times + 1, until=now + back_off(found.times + 1))


def cooling_nodes(known: Mapping[Workload, RejectedWorkload], seconds: float, now: datetime) -> set[str]:
    """Nodes that get nothing new: their kubelet rejected a workload lately that no other one did."""
    since = now - timedelta(seconds=seconds)
    alone = (each.nodes for each in known.values() if not each.times)
    return {name for nodes in alone for name, when in nodes.items() if when >= since}


def waiting_workloads(known: Mapping[Workload, RejectedWorkload], now: datetime) -> dict[Workload, RejectedWorkload]:
    """Workloads that are not to be tried yet."""
    return {key: each for key, each in known.items() if each.until is not None and each.until > now}
