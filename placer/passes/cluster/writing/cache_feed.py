"""Events for a scheduler cache, from its snapshot to the last binding.

Watches of kept lists are followed. Otherwise watches of pods and nodes are opened before the cache is made, and their
events are kept for it, since the bookmark of a quiet one takes a second or two.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Self

from placer.passes.cluster.planning.scheduler_cache import SchedulerCache
from placer.passes.cluster.reading.client import Client
from placer.passes.cluster.reading.reflectors import Reflectors, Relay
from placer.passes.cluster.reading.snapshot import Snapshot
from placer.passes.cluster.reading.watch import Watch, Watches

__all__ = ["CacheFeed"]


class CacheFeed:
    """Reports everything since a snapshot to the scheduler cache that is made from it."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._opened = ExitStack()
        self._kept: Reflectors | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Follow nothing any more."""
        self._opened.close()

    def open(self, taken: Snapshot, lists: Reflectors | None = None) -> None:
        """Follow the events since a snapshot, by the watches of kept lists where given."""
        self._kept = lists
        if lists is not None:
            return
        self._relays, watches = {f"/api/v1/{kind}": Relay() for kind in ("pods", "nodes")}, []
        for path, relay in self._relays.items():
            kind = path.rpartition("/")[2]
            relay.keep()
            heard, count = (relay.happened, relay.replaced), taken.counts[kind]
            watches.append(Watch(self._client, path, taken.versions[kind], *heard, count=count, hurried=True))
        self._watches = Watches(watches)
        self._opened.enter_context(self._watches.open())

    def fill(self, cache: SchedulerCache) -> None:
        """Hand over the events so far, and all later ones."""
        listeners = {
            "/api/v1/pods": (cache.pod_happened, cache.pods_replaced),
            "/api/v1/nodes": (cache.node_happened, cache.nodes_replaced),
        }
        if self._kept is None:
            for path, relay in self._relays.items():
                relay.hand_over(*listeners[path])
        else:
            self._opened.callback(self._kept.unfollow)
            self._watches = Watches(self._kept.follow(listeners))
            self._opened.enter_context(self._watches.opened())
        cache.lost, cache.closed = self._watches.lost, self._watches.closed

    def start_checks(self) -> None:
        """Check from now on whether everything is heard."""
        self._watches.start_checks()
