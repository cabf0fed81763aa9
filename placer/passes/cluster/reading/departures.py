"""Evicted pods until they are gone, and pods that controllers make for them, heard from a watch."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence

from placer.kube.pod import TERMINAL_PHASES
from placer.passes.cluster.reading.views import PodView, read_view

__all__ = ["Departures"]


class Departures:
    """Departures and replacements since a snapshot, for any number of threads.

    An evicted pod holds its room until it is gone or over; a pod of its name with another uid is another pod.

    Parameters
    ----------
    going
        Uids of pods that are to leave.
    known
        Uids of all pods of the snapshot.
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
        """Hear the list of all pods."""
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
        """Whether each controller, by its uid, has made so many waiting pods."""
        made = Counter(self._made.values())
        return all(made[uid] >= count for uid, count in wanted.items())

    def wait(self, seconds: float, until: Callable[[], bool]) -> bool:
        """Wait for a condition that only events change; whether it holds."""
        with self._news:
            return self._news.wait_for(until, seconds)

    def all_gone(self) -> bool:
        """Whether all of them have left."""
        return not self._standing
