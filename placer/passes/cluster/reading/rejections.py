"""Rejections by kubelets, remembered by workload and node (docs/passes.md, Pods that kubelets reject).

Since tenants write the labels and nodes of their pods, only pods in placer's own record count (:func:`of_ours`), and a
namespace has few nodes cool down at a time; beyond these the workload keeps off the node (:func:`kept_off`). Pods that
are released and not bound in time count the same.

Unanswered pods are recorded with a resourceVersion. Where one is gone, the next pass asks for the events of failed pods
since then, and finds it by its uid. The server remembers them for a minute or so; else that is reported and nothing is
assumed, since controllers also remove pods.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import msgspec

from placer.base.errors import ClusterError
from placer.passes.cluster.reading.client import Follower, Server, listed
from placer.passes.cluster.reading.gang_record import RecordedGangs, RejectedWorkload, UnansweredPods, digests, mark
from placer.passes.cluster.reading.snapshot import Snapshot
from placer.passes.cluster.reading.views import (
    OF_THE_POD,
    KubeletAnswer,
    ObjectView,
    PodView,
    Rejection,
    WorkloadKey,
    read_view,
)
from placer.passes.cluster.reading.watch import Enough, Watch, is_up_to
from placer.problem import ANY_SCHEDULER, Key

__all__ = [
    "RejectedSince",
    "back_off",
    "cooling_nodes",
    "failed_pods",
    "failed_selector",
    "kept_off",
    "not_bound",
    "of_ours",
    "rejection_of",
    "remembered",
    "unanswered_after",
    "unsteady",
    "waiting_workloads",
]

#: Seconds for which something is not tried after the first time, and the most.
_FIRST_BACK_OFF, _LONGEST_BACK_OFF = 60, 3600
#: Most workloads that are remembered, of all namespaces and of one, and most nodes of each, the latest.
_MOST_WORKLOADS, _MOST_OF_ONE, _MOST_NODES = 1_000, 100, 8
#: Most nodes that cool down for what one namespace had rejected, the latest.
_MOST_COOLING = 4
_NOT_BOUND = "not bound by their scheduler"
_CHANGED, _CHANGED_AGAIN = "it changed in a pass", "it changed in pass after pass"
_NEVER = datetime.min.replace(tzinfo=UTC)


def back_off(times: int) -> timedelta:
    """The length of the back-off after so many failures."""
    return timedelta(seconds=min(_FIRST_BACK_OFF * 2 ** (times - 1), _LONGEST_BACK_OFF))


def failed_pods(server: Server, scheduler_name: str, seconds: float, *, gates: bool = False) -> list[Rejection]:
    """List failed pods of ours that their kubelets rejected.

    Parameters
    ----------
    scheduler_name
        Whose pods are ours; ``*``: any scheduler's.
    seconds
        For which a node cools down; 0: not at all, and nothing is asked.
    gates
        Whether other schedulers' pods that may run on a single node are ours, as those that placer releases.
    """
    if seconds <= 0:
        return []
    pods = listed(server.get, "/api/v1/pods", PodView, failed_selector(scheduler_name, gates))
    return [each for pod in pods if (each := _rejection(pod, scheduler_name, gates)) is not None]


def failed_selector(scheduler_name: str, gates: bool = False) -> str:
    """Selector of the failed pods of a scheduler; ``*``, and with gates: of any."""
    any_scheduler = gates or scheduler_name == ANY_SCHEDULER
    return "status.phase=Failed" + ("" if any_scheduler else f",spec.schedulerName={scheduler_name}")


def rejection_of(item: bytes, scheduler_name: str, gates: bool = False) -> Rejection | None:
    """The rejection of a pod of ours by its kubelet, from its whole object; None where there is none."""
    if b'"Failed"' not in item:
        return None
    try:
        pod = msgspec.json.decode(item, type=PodView)
    except msgspec.ValidationError:  # the list sets it aside, too
        return None
    return _rejection(pod, scheduler_name, gates)


def _rejection(pod: PodView, scheduler_name: str, gates: bool) -> Rejection | None:
    named = scheduler_name in (ANY_SCHEDULER, pod.spec.scheduler_name)
    return pod.rejection if named or (gates and pod.only_node is not None) else None


def of_ours(rejections: Iterable[Rejection], record: RecordedGangs) -> list[Rejection]:
    """Rejections of pods that are unanswered in the record, or of a gang in it."""
    known = record.unanswered.pods.union(*(gang.pods for gang in record.gangs.values()))
    return [each for each in rejections if not known.isdisjoint(digests([each.uid, mark(each.uid, each.node)]))]


def not_bound(snapshot: Snapshot, nodes: Mapping[Key, str], now: datetime) -> Iterator[Rejection]:
    """Rejections of released pods that their scheduler did not bind."""
    for key, item in snapshot.pod_texts(nodes).items():
        yield Rejection(read_view(item, PodView).workload, nodes[key], _NOT_BOUND, now)


def unsteady(known: Mapping[WorkloadKey, RejectedWorkload], nodes: Iterable[str], now: datetime) -> Iterator[Rejection]:
    """Say of nodes that they have changed between a decision and its bindings, and whether they have done so lately.

    A node that changes once is as it says. One that changes in pass after pass has its pods wait each time, wherever
    else there is room: so from the second time on it cools down.
    """
    for name in sorted(nodes):
        itself = WorkloadKey("", "Node", name)
        yield Rejection(itself, name, _CHANGED_AGAIN if itself in known else _CHANGED, now)


def remembered(
    known: Mapping[WorkloadKey, RejectedWorkload], rejections: Iterable[Rejection], seconds: float, now: datetime
) -> dict[WorkloadKey, RejectedWorkload]:
    """Workloads to remember, with new rejections.

    Parameters
    ----------
    seconds
        For which a node cools down; 0: nothing is remembered.
    """
    if seconds <= 0:
        return {}
    found: dict[WorkloadKey, list[Rejection]] = defaultdict(list)
    for each in rejections:
        found[each.workload].append(each)
    since = now - timedelta(seconds=seconds)
    updated = {
        workload: _updated(known.get(workload, RejectedWorkload()), found[workload], since, now)
        for workload in (*known, *(each for each in found if each not in known))
    }
    return _latest({key: each for key, each in updated.items() if each.nodes})


def _latest(known: Mapping[WorkloadKey, RejectedWorkload]) -> dict[WorkloadKey, RejectedWorkload]:
    """As many as are remembered; a bound for each namespace keeps one from displacing the others."""
    of_one, kept = Counter[str](), list[WorkloadKey]()
    by_age = sorted((each.until or max(each.nodes.values()), key) for key, each in known.items())
    for _, key in reversed(by_age):
        of_one[key.namespace] += 1
        if of_one[key.namespace] <= _MOST_OF_ONE:
            kept.append(key)
    return {key: known[key] for key in reversed(kept[:_MOST_WORKLOADS])}


def _updated(
    before: RejectedWorkload, rejections: Iterable[Rejection], since: datetime, now: datetime
) -> RejectedWorkload:
    if before.until is not None:
        return _tried_again(before, before.until, rejections, now)
    lately = replace(before, nodes={name: when for name, when in before.nodes.items() if when > since})
    found = _with(lately, [each for each in rejections if each.when > since])
    return _backing_off(found, now) if len(found.nodes) > 1 else found


def _tried_again(
    before: RejectedWorkload, until: datetime, rejections: Iterable[Rejection], now: datetime
) -> RejectedWorkload:
    decided = until - back_off(before.times)
    found = _with(before, [each for each in rejections if each.when > decided])
    if found is not before:
        return _backing_off(found, now)
    return before if now <= until + timedelta(seconds=_LONGEST_BACK_OFF) else RejectedWorkload()


def _with(before: RejectedWorkload, news: Iterable[Rejection]) -> RejectedWorkload:
    """Later rejections added; the same object where there are none.

    Times are by the kubelets' clocks, which may be ahead. So a known rejection counts once, whenever it was, and one
    does not count that would be the first to be forgotten.
    """
    found = before
    forgotten = min(before.nodes.values()) if len(before.nodes) == _MOST_NODES else _NEVER
    for each in sorted(news, key=lambda each: each.when):
        if each.when <= max(found.nodes.get(each.node, _NEVER), forgotten):
            continue
        others = {name: when for name, when in found.nodes.items() if name != each.node}
        latest = sorted([*others.items(), (each.node, each.when)], key=lambda known: known[1])[-_MOST_NODES:]
        found = replace(found, nodes=dict(latest), reason=each.reason)
    return found


def _backing_off(found: RejectedWorkload, now: datetime) -> RejectedWorkload:
    return replace(found, times=found.times + 1, until=now + back_off(found.times + 1))


def cooling_nodes(known: Mapping[WorkloadKey, RejectedWorkload], seconds: float, now: datetime) -> set[str]:
    """Nodes whose kubelet alone rejected a workload lately, the latest few of each namespace; and unsteady ones."""
    since, lately = now - timedelta(seconds=seconds), defaultdict[str, list[tuple[datetime, str]]](list)
    for workload, each in known.items():
        if not each.times and each.reason not in (*OF_THE_POD, _CHANGED):
            lately[workload.namespace] += ((when, name) for name, when in each.nodes.items() if when >= since)
    return {name for owner, nodes in lately.items() for _, name in sorted(nodes)[-_MOST_COOLING if owner else 0 :]}


def kept_off(known: Mapping[WorkloadKey, RejectedWorkload], cooling: Container[str]) -> dict[WorkloadKey, str]:
    """Workload to the node that rejected it last and does not cool down, so that it does not return at once."""
    latest = {key: max(each.nodes, key=each.nodes.__getitem__) for key, each in known.items() if not each.times}
    return {key: node for key, node in latest.items() if node not in cooling}


def waiting_workloads(
    known: Mapping[WorkloadKey, RejectedWorkload], now: datetime
) -> dict[WorkloadKey, RejectedWorkload]:
    """Workloads that still back off."""
    return {key: each for key, each in known.items() if each.until is not None and each.until > now}


# -------------------------------------------------------------------------------------------------- between two passes

#: Seconds for which is listened, and bytes of events that are listened to, at most.
_SECONDS, _MOST_BYTES = 15.0, 64 * 2**20
#: Seconds between two looks at how far it is, and those after which a watch that does not open is given up.
_LOOK, _SILENT = 0.5, 3.0
#: Most pods that are recorded: 60 kB.
_MOST_PODS = 10_000
_PODS = "/api/v1/pods"


class RejectedSince:
    """Rejections of recorded pods between the record and a snapshot."""

    def __init__(self, recorded: UnansweredPods, snapshot: Snapshot) -> None:
        self._recorded, self._now, self._gates = recorded, snapshot.versions["pods"], snapshot.gates
        there = digests(each.uid for each in snapshot.identities.values()) if recorded.pods else frozenset()
        self.gone = recorded.pods - there  #: digests of uids
        self.trouble: str | None = None  #: why it is not known what became of those that are gone; None: it is
        self._found: dict[bytes, Rejection] = {}
        self._bytes = 0
        self._forgotten = False

    def ask(self, server: Follower, scheduler_name: str) -> list[Rejection]:
        """Ask for the rejections; nothing is asked where no pod is gone."""
        if self.gone:
            why = self._listen(server, scheduler_name)
            if why is not None:
                self.trouble = (
                    f"whether kubelets rejected {len(self.gone):,} bound pods that are gone is not known: {why}"
                )
        return list(self._found.values())

    def _listen(self, server: Follower, scheduler_name: str) -> str | None:
        since = self._recorded.version
        if not is_up_to(self._now, since):
            return f"the record is of resourceVersion {since}, the server is at {self._now}"

        def happened(_kind: str, item: bytes) -> None:
            self._hear(item, scheduler_name)

        watch = Watch(
            server, _PODS, since, happened, self._replaced, selector=failed_selector(scheduler_name, self._gates)
        )
        watch.start()
        try:
            why = self._follow(watch)
        finally:
            watch.close()
        return f"the server has forgotten all changes after resourceVersion {since} (410)" if self._forgotten else why

    def _follow(self, watch: Watch) -> str | None:
        """Wait until all is heard; asking for the current version makes the server report its progress."""
        until = time.monotonic() + _SECONDS
        while not watch.reaches(self._now, _LOOK):
            now = time.monotonic()
            if watch.lost is not None and now - watch.lost > _SILENT:
                return f"{_PODS} cannot be watched: {watch.trouble}"
            if now > until:
                return f"{_PODS} cannot be watched: it does not come up to resourceVersion {self._now}"
            with suppress(ClusterError):  # of the watch it is heard soon enough
                watch.current()
        return None

    def _hear(self, item: bytes, scheduler_name: str) -> None:
        self._bytes += len(item)
        if self._bytes > _MOST_BYTES:
            raise Enough(f"more than {_MOST_BYTES:,} bytes have been said")
        (digest,) = digests([read_view(item, ObjectView).metadata.uid])
        if digest in self.gone and (found := rejection_of(item, scheduler_name, self._gates)) is not None:
            self._found[digest] = found

    def _replaced(self, _items: Sequence[bytes]) -> None:
        """The server has forgotten the events; the pass has listed the failed pods that are still there."""
        self._forgotten = True


def unanswered_after(
    record: RecordedGangs, snapshot: Snapshot, uids: Collection[str], *, heard_between: bool
) -> tuple[UnansweredPods, str | None]:
    """Pods to record when a pass ends, and the trouble where they are too many.

    Parameters
    ----------
    record
        The current one: complete gangs are forgotten in it, although their kubelets may be silent.
    heard_between
        Whether events until the next pass are heard anyway; then a new resourceVersion alone is not recorded.
    """
    before = record.unanswered
    ours = before.pods.union(*(gang.pods for gang in record.gangs.values()))
    pods = digests((*uids, *_silent(snapshot, ours))) if ours else digests(uids)
    kept = frozenset(sorted(pods)[:_MOST_PODS])
    trouble = None
    if len(kept) < len(pods):
        trouble = f"of {len(pods):,} bound pods whose kubelets have not answered {len(kept):,} are recorded"
    if not kept or (heard_between and kept == before.pods):
        return (before if kept else UnansweredPods()), trouble
    return UnansweredPods(snapshot.versions["pods"], kept), trouble


def _silent(snapshot: Snapshot, ours: frozenset[bytes]) -> Iterator[str]:
    for item in snapshot.of_kind("Pod"):
        pod = read_view(item, PodView)
        if pod.spec.node_name and pod.kubelet_answer is KubeletAnswer.NOTHING:
            uid = pod.metadata.uid
            if not ours.isdisjoint(digests([uid, mark(uid, pod.spec.node_name)])):
                yield uid
