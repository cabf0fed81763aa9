"""A watch that goes on: what happened to one kind of object since a list, in order, through broken connections.

A thread of its own reads and hands every event to a listener. Where the server has forgotten how far we were
(410), the list is taken anew and handed over as a whole. While nothing is read, :attr:`Watch.lost` says since when.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

import msgspec

from placer.cluster.reading.client import Follower, pages
from placer.cluster.reading.views import ObjectView, Page
from placer.errors import ClusterError

__all__ = ["Watch"]

#: Seconds before the next try after a broken watch; they double up to the second number.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 2.0


class _Envelope(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Seen(ObjectView):
    """An object of an event: one of the kind, or the Status of an ERROR."""

    code: int = 0


class Watch:
    """Follows one kind of object until it is closed.

    Parameters
    ----------
    server
        Where to ask.
    path
        Of the list.
    version
        The resourceVersion of the list that is known already.
    happened
        Called in the thread of the watch with ADDED, MODIFIED or DELETED, and the object as it came.
    replaced
        Called in that thread with all objects that there are now; what was known and is not among them is gone.
    """

    def __init__(
        self,
        server: Follower,
        path: str,
        version: str,
        happened: Callable[[str, bytes], None],
        replaced: Callable[[Sequence[bytes]], None],
    ) -> None:
        self._server, self.path, self._version = server, path, version
        self._happened, self._replaced = happened, replaced
        self._over = threading.Event()
        self._shut: Callable[[], None] = lambda: None
        self._lost: float | None = time.monotonic()
        self.trouble = "it has not begun"  #: why nothing is read, while that is so
        self._thread = threading.Thread(target=self._work, name=f"watch {path}", daemon=True)

    @property
    def lost(self) -> float | None:
        """``time.monotonic()`` since which nothing is read; None while the watch is open."""
        return self._lost

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """End it; returns when the thread is over, or nearly so."""
        self._over.set()
        self._shut()
        self._thread.join(1.0)

    def _work(self) -> None:
        pause = _FIRST_PAUSE
        while not self._over.is_set():
            try:
                if self._follow():
                    pause = _FIRST_PAUSE
            except ClusterError as error:
                self._lose(str(error))
                self._over.wait(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
            except Exception as error:  # of any kind: a cache that hears no events must not look as if it did
                self._lose(f"{type(error).__name__}: {error}")
                return

    def _lose(self, trouble: str) -> None:
        self.trouble = trouble
        if self._lost is None:
            self._lost = time.monotonic()

    def _follow(self) -> bool:
        """Read one answer to its end; whether anything came."""
        parameters = {"watch": "true", "allowWatchBookmarks": "true", "resourceVersion": self._version}
        anything = False
        for line in self._server.follow(self.path, parameters, self._opened):
            if self._over.is_set():
                break
            if line.strip():
                anything = True
                self._hear(msgspec.json.decode(line, type=_Envelope))
        if not anything:
            raise ClusterError("the server ended the watch at once")
        return True

    def _opened(self, shut: Callable[[], None]) -> None:
        self._shut = shut
        self._lost = None
        if self._over.is_set():
            shut()

    def _hear(self, event: _Envelope) -> None:
        seen = msgspec.json.decode(event.object, type=_Seen)
        if event.type == "ERROR":
            self._lose(f"the server broke it off ({seen.code})")
            if seen.code == 410:
                self._list()
            raise ClusterError(self.trouble)
        if event.type != "BOOKMARK":
            self._happened(event.type, bytes(event.object))
        self._version = seen.metadata.resource_version or self._version

    def _list(self) -> None:
        """Take the list anew."""
        decode = msgspec.json.Decoder(Page[msgspec.Raw]).decode
        items: list[bytes] = []
        version = ""
        for page in pages(self._server.get, self.path, decode):
            items += map(bytes, page.items or ())
            version = page.metadata.resource_version
        self._replaced(items)
        self._version = version
