"""Rejections, between two passes, of bound pods that no kubelet had answered for.

Unanswered pods are recorded with a resourceVersion. Where one is gone, the next pass asks for the events of failed pods
since then, and finds it by its uid. The server remembers them for a minute or so; else that is reported and nothing is
assumed, since controllers also remove pods.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress

from placer.base.errors import ClusterError
from placer.passes.cluster.reading.client import Follower
from placer.passes.cluster.reading.gang_record import RecordedGangs, UnansweredPods, digests, mark
from placer.passes.cluster.reading.rejections import failed_selector, rejection_of
from placer.passes.cluster.reading.snapshot import Snapshot
from placer.passes.cluster.reading.views import KubeletAnswer, ObjectView, PodView, Rejection, read_view
from placer.passes.cluster.reading.watch import Enough, Watch, is_up_to

__all__ = ["RejectedSince", "unanswered_after"]

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
