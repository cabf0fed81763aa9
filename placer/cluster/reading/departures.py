"""Pods on their way out, and those that controllers make in their place, heard from a watch.

A pod that was evicted holds its room until its kubelet has ended it, so what is waited for is that it is no longer
there, or over; a pod of its name with another uid is another pod.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence

from placer.cluster.reading.views import PodView, read_view
from placer.kube.pod import TERMINAL_PHASES

__all__ = ["Departures"]


class Departures:
    """What became of some pods since a snapshot; may be used from several threads.

    Parameters
    ----------
    going
        Uids of pods that are to go.
    known
        Uids of all pods of the snapshot: what is made later has another.
    """

    def __init__(self, going: Collection[str], known: Collection[str]) -> None:
        self._standing, self._known = set(going), frozenset(known)
        self._made: dict[str, str] = {}  # uid of a new pod without a node to that of its controller
        self._news = threading.Condition()

    def pod_happened(self, kind: str, item: bytes) -> None:
        """Hear an event of a pod."""
        pod = read_view(item, PodView)
        with self._news:
            self._note(pod, there=kind != "DELETED")
            self._news.notify_all()

    def pods_replaced(self, items: Sequence[bytes]) -> None:
        """Hear all pods that there are."""
        pods = [read_view(item, PodView) for item in items]
        with self._news:
            self._standing &= {pod.metadata.uid for pod in pods}
            self._made.clear()
            for pod in pods:
                self._note(pod, there=True)
            self._news.notify_all()

    def _note(self, pod: PodView, *, there: bool) -> None:
        uid = pod.metadata.uid
        if not there or pod.status.phase in TERMINAL_PHASES:
            self._standing.discard(uid)
        waits = there and not pod.spec.node_name and pod.metadata.deletion_timestamp is None
        if waits and uid not in self._known and pod.controller is not None:
            self._made[uid] = pod.controller.uid
        else:
            self._made.pop(uid, None)

    def standing(self) -> frozenset[str]:
        """Uids of those that are still there."""
        with self._news:
            return frozenset(self._standing)

    def all_made(self, wanted: Mapping[str, int]) -> bool:
        """Whether each controller, by its uid, has made so many pods that wait."""
        made = Counter(self._made.values())
        return all(made[uid] >= count for uid, count in wanted.items())

    def wait(self, seconds: float, until: Callable[[], bool]) -> bool:
        """Wait until something is so that only events change; whether it is."""
        with self._news:
            return self._news.wait_for(until, seconds)

    def all_gone(self) -> bool:
        """Whether none of them is there any more."""
        return not self._standing
