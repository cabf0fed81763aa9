"""Lists that are kept between passes: each is taken once and followed by a watch, as client-go's reflectors do.

A pass takes what is kept (:class:`placer.cluster.reading.snapshot.Lists`) as long as it is known to be current: the
watch is open, and something has come from it lately. A server sends a bookmark shortly before it ends a watch, and each
is asked to end soon, so a quiet list is heard of too. A list that is not current is taken anew, at the pass that needs
it; one that may not be watched is therefore taken by every pass, as by a pass that stands alone.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from placer.cluster.reading.client import Follower
from placer.cluster.reading.field_filter import list_reader
from placer.cluster.reading.snapshot import whole_kind
from placer.cluster.reading.views import ObjectView, read_view
from placer.cluster.reading.watch import Watch
from placer.kube.kinds import KindInfo

__all__ = ["Changed", "Heard", "Reflectors"]

#: Seconds after which the server is to end a watch; two seconds before it sends a bookmark.
_WINDOW = 10
#: Seconds without a word after which a list is not taken for current any more.
_SILENCE = 2 * _WINDOW

#: Hears of a change: the kind, and what was and is kept of the object; None: there is none.
Changed = Callable[[KindInfo, bytes | None, bytes | None], None]
#: Hears of an event: the kind, and the object as it came.
Heard = Callable[[KindInfo, bytes], None]


class Reflectors:
    """The lists of a cluster, each from the moment on at which it was first asked for.

    Parameters
    ----------
    server
        Where to ask.
    changed
        Called for every object that is not as it was, in the threads of the watches and in the one that asks; not for
        what comes with the first list of a kind.
    heard
        Called before that with the object of every event, of which less is kept.
    """

    def __init__(self, server: Follower, changed: Changed = lambda *_: None, heard: Heard = lambda *_: None) -> None:
        self._server, self._changed, self._heard = server, changed, heard
        self._of: dict[str, _Reflector] = {}
        self._asked: set[str] = set()

    def __call__(
        self, path: str, info: KindInfo, api_version: str, watch: Callable[[int], None]
    ) -> tuple[Sequence[bytes], str]:
        """What is kept of a list, taken anew where that is not known to be current; and its resourceVersion."""
        self._asked.add(path)
        if path not in self._of:
            self._of[path] = _Reflector(self._server, path, info, api_version, self._changed, self._heard)
        return self._of[path].current(watch)

    def close_unasked(self) -> None:
        """Forget the lists that nobody has asked for since the last call: of kinds that are served no more."""
        for path in self._of.keys() - self._asked:
            self._of.pop(path).close()
        self._asked.clear()

    @property
    def troubles(self) -> list[str]:
        """Why lists were taken anew when they were asked for last, a sentence for each."""
        return [f"{path} was listed anew: {each.trouble}" for path, each in sorted(self._of.items()) if each.trouble]

    def close(self) -> None:
        """End all watches."""
        for each in self._of.values():
            each.close()


class _Reflector:
    """One list."""

    def __init__(
        self, server: Follower, path: str, info: KindInfo, api_version: str, changed: Changed, heard: Heard
    ) -> None:
        self._server, self._path, self._info, self._version = server, path, info, api_version
        self._changed, self._heard = changed, heard
        self._items: dict[tuple[str, str], bytes] = {}
        self._guard = threading.Lock()
        self._watch: Watch | None = None
        self.trouble: str | None = None  #: why the list was taken anew when it was asked for last; None: it was not
        self._lists = 0  # that this thread has taken; what a watch on an earlier one still says is not heeded

    def current(self, progress: Callable[[int], None]) -> tuple[list[bytes], str]:
        """All objects in the server's order, by namespace and name, and a version that they are not older than."""
        self.trouble = self._not_current()
        if self._watch is None or self.trouble is not None:
            self.close()
            items, version = whole_kind(self._server, self._path, self._info, self._version, progress)
            self._lists += 1
            self._replace(self._lists, items)
            happened, relisted = partial(self._happened, self._lists), partial(self._relisted, self._lists)
            self._watch = Watch(self._server, self._path, version, happened, relisted, len(items), window=_WINDOW)
            self._watch.start()
        version = self._watch.version  # first: what comes in between is heard twice then, and not never
        with self._guard:
            return [self._items[key] for key in sorted(self._items)], version

    def _not_current(self) -> str | None:
        """Why the list may be another one by now; None where it is not, and of one that was never taken."""
        watch = self._watch
        if watch is None:
            return None
        if watch.lost is not None:
            return watch.trouble
        silence = time.monotonic() - watch.heard
        return None if silence < _SILENCE else f"nothing was heard for {silence:.0f} s"

    def close(self) -> None:
        """End the watch."""
        if self._watch is not None:
            self._watch.close()

    def _happened(self, of: int, kind: str, item: bytes) -> None:
        """Heed an event of the watch on a list."""
        self._heard(self._info, item)
        now = None if kind == "DELETED" else list_reader(self._info, self._version).object_or_name(item)
        key = _place(item)
        with self._guard:
            if of != self._lists:
                return
            before = self._items.pop(key, None)
            if now is not None:
                self._items[key] = now
        self._changed(self._info, before, now)

    def _relisted(self, of: int, items: Sequence[bytes]) -> None:
        """Heed a list that the watch on a list has taken anew."""
        reader = list_reader(self._info, self._version)
        self._replace(of, [reader.object_or_name(item) for item in items])

    def _replace(self, of: int, items: Iterable[bytes]) -> None:
        now = {_place(item): item for item in items}
        with self._guard:
            if of != self._lists:
                return
            before, self._items = self._items, now
        if self._watch is not None:  # else it is the first list
            for key in before.keys() | now.keys():
                if before.get(key) != now.get(key):
                    self._changed(self._info, before.get(key), now.get(key))


def _place(item: bytes) -> tuple[str, str]:
    """Namespace and name, by which the server sorts."""
    return read_view(item, ObjectView).key
