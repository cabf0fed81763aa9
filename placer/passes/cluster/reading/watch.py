"""A watch on one kind of object since a list, in order, through broken connections.

An open watch without events may be quiet or dead, so :meth:`Watch.check` asks for the current resourceVersion by an
empty list (a quorum read), waits until events or bookmarks reach it, and lists again where they do not. A server sends
a bookmark two seconds before it ends a watch, and only if something is newer; of a quiet kind it finds that out when
asked. So watches are short, and before a check they are opened again (:meth:`~Watch.hurry`) and asked for
(:meth:`~Watch.nudge`). Source: Kubernetes ``apiserver/pkg/storage/cacher``.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

import msgspec

from placer.base.errors import ClusterError
from placer.passes.cluster.reading.client import Busy, Follower, whole_list
from placer.passes.cluster.reading.views import ObjectView, Page, read_view

__all__ = ["NUDGE", "Enough", "Watch", "Watches", "is_up_to"]

#: Seconds before the next try after a broken watch; they double up to the second number.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 2.0
#: Seconds after which the server is to end a watch, and those after the beginning by which there is a bookmark then.
_WINDOW, _BOOKMARK = 3, 2.3
#: Seconds after which a watch in which nothing came may end: without news there is no bookmark either.
_QUIET = 1.0
#: Seconds for which a watch is open at least that is opened again after each bookmark.
_SHORTEST = 0.1
#: Seconds to wait for the next event or bookmark on the way to what is current, before the list is taken anew; and
#: then for that.
_PATIENCE = 2.5
_LISTING = 20.0
#: Up to so many objects, a page of the list, are listed anew at once: that takes less time than waiting.
_FEW = 500
#: Seconds between two checks, and those after which what was heard is too old to rely on.
_EVERY, _STALE = 5.0, 20.0
#: Seconds between two questions before the first check: less than between two rounds of bookmarks.
NUDGE = 0.5
#: What no object is called, and no namespace with pods.
_NOTHING = "placer-nothing"


class Enough(Exception):
    """Raised by a listener that can hear no more, with the reason: the watch ends."""


class _Envelope(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Seen(ObjectView):
    code: int = 0


class _Listing(Page[msgspec.Raw], rename={"api_version": "apiVersion"}):
    """A page of a list, with the kind and apiVersion that its items lack."""

    kind: str = ""
    api_version: str = ""

    def objects(self) -> Iterator[bytes]:
        head = msgspec.json.encode({"kind": self.kind.removesuffix("List"), "apiVersion": self.api_version})
        return (head[:-1] + b"," + bytes(item)[1:] for item in self.items or ())


class Watch:
    """Follows one kind of object until it is closed.

    Parameters
    ----------
    happened
        Called in the thread of the watch with ADDED, MODIFIED or DELETED, and the whole object.
    replaced
        Called in that thread with all current objects; other known ones are gone.
    window
        Seconds after which the server ends the watch and it is opened again; so often, at least, something is heard.
    selector
        Of fields; empty: all objects. An object that begins to match is ADDED, one that ceases to is DELETED.
    hurried
        Whether it will be checked soon.
    """

    def __init__(
        self,
        server: Follower,
        path: str,
        version: str,
        happened: Callable[[str, bytes], None],
        replaced: Callable[[Sequence[bytes]], None],
        count: int = 0,
        window: int = _WINDOW,
        selector: str = "",
        hurried: bool = False,
    ) -> None:
        self._server, self.path, self._count = server, path, count
        self.version = version  #: up to which everything was handed over, at least
        self._window, self._selector, self._hurried = window, selector, hurried
        self.heard = time.monotonic()  #: of the last event, bookmark, list, or complete answer
        self._happened, self._replaced = happened, replaced
        self._over = threading.Event()
        self._shut: Callable[[], None] = lambda: None
        self._came = threading.Condition()  # guards the version
        self._anew = self._listed_anew = False  # whether to open it, or take the list, again
        self.lost: float | None = time.monotonic()  #: since when nothing is read; None while it is open
        self._open_since = time.monotonic()
        self.trouble = "it has not begun"  #: why nothing is read, while that is so
        self._thread = threading.Thread(target=self._work, name=f"watch {path}", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """End it; the thread is over then, or nearly so."""
        self._over.set()
        with self._came:
            self._came.notify_all()
        self._shut()
        self._thread.join(1.0)

    def hurry(self) -> None:
        """Get bookmarks soon, before a check; a short list needs none."""
        if self._count > _FEW:
            self._hurried = True
            self._begin_anew()

    def rest(self) -> None:
        """End :meth:`hurry`."""
        self._hurried = False

    def nudge(self) -> None:
        """Make the server find out the current version, so that the next bookmark has it."""
        if self._count > _FEW:
            with suppress(ClusterError):  # whoever checks is told
                self.current()

    def check(self) -> bool:
        """Whether everything up to now has been heard; where events do not show it, the list is taken again.

        Raises
        ------
        ClusterError
            The server does not report the current version.
        """
        current = self.current()
        if self.reaches(current, 0.0):
            return True
        if self._count > _FEW:
            if self.reaches(current, self._open_since + _BOOKMARK - time.monotonic()):
                return True
            self._begin_anew()
            if self._comes_up_to(current):
                return True
        self._begin_anew(listed=True)
        return self.reaches(current, _LISTING)

    def current(self) -> str:
        """The resourceVersion of this moment."""
        root, _, plural = self.path.rpartition("/")
        nothing = {"limit": "1"}
        if plural == "nodes":
            answer = self._server.get(self.path, nothing | {"fieldSelector": f"metadata.name={_NOTHING}"})
        else:
            answer = self._server.get(f"{root}/namespaces/{_NOTHING}/{plural}", nothing)
        if answer.status != 200:
            raise ClusterError(f"{self.path}: {answer.status} {answer.message}")
        try:
            return msgspec.json.decode(answer.text, type=Page[msgspec.Raw]).metadata.resource_version
        except msgspec.DecodeError as error:
            raise ClusterError(f"{self.path}: found no list: {error}") from error

    def reaches(self, version: str, seconds: float) -> bool:
        """Whether everything up to a version is heard within some seconds."""
        with self._came:
            return self._came.wait_for(lambda: self._over.is_set() or is_up_to(self.version, version), seconds)

    def _comes_up_to(self, version: str) -> bool:
        before = None
        while before != self.version:
            before = self.version
            if self.reaches(version, _PATIENCE):
                return True
        return False

    def _begin_anew(self, *, listed: bool = False) -> None:
        self._anew, self._listed_anew = True, listed
        self._shut()

    def _heard_up_to(self, version: str) -> None:
        with self._came:
            self.version, self.heard = version, time.monotonic()
            self._came.notify_all()

    def _work(self) -> None:
        pause = _FIRST_PAUSE
        while not self._over.is_set():
            listed, self._anew, self._listed_anew = self._listed_anew, False, False
            try:
                if listed:
                    self._list()
                if self._follow():
                    pause = _FIRST_PAUSE
            except ClusterError as error:
                if self._anew:
                    continue  # as was wished
                self._lose(str(error))
                asked = error.again_after if isinstance(error, Busy) else 0.0
                self._over.wait(max(pause, asked))
                pause = min(2 * pause, _LONGEST_PAUSE)
            except Exception as error:  # of any kind: a cache that hears no events must not look as if it did
                self._lose(str(error) if isinstance(error, Enough) else f"{type(error).__name__}: {error}")
                return

    def _lose(self, trouble: str) -> None:
        self.trouble = trouble
        if self.lost is None:
            self.lost = time.monotonic()

    def _parameters(self) -> dict[str, str]:
        parameters = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self.version,
            "timeoutSeconds": str(_WINDOW if self._hurried else self._window),
        }
        if self._selector:
            parameters["fieldSelector"] = self._selector
        return parameters

    def _follow(self) -> bool:
        anything = False
        for line in self._server.follow(self.path, self._parameters(), self._opened):
            if self._over.is_set():
                break
            if line.strip():
                anything = True
                event = _envelope(self.path, line)
                self._hear(event)
                if self._hurried and event.type == "BOOKMARK":
                    break
        if not anything and time.monotonic() - self._open_since < _QUIET:
            raise ClusterError("the server ended the watch at once")
        if not self._anew:  # it came to its end whole: the server had nothing else to say, as of a quiet kind
            self.heard = time.monotonic()
        if self._hurried:  # a server may have a bookmark for each at once
            self._over.wait(self._open_since + _SHORTEST - time.monotonic())
        return True

    def _opened(self, shut: Callable[[], None]) -> None:
        self._shut = shut
        self.lost, self._open_since = None, time.monotonic()
        if self._over.is_set() or self._anew:
            shut()

    def _hear(self, event: _Envelope) -> None:
        seen = read_view(event.object, _Seen)
        if event.type == "ERROR":
            self._lose(f"the server broke it off ({seen.code})")
            if seen.code == 410:
                self._list()
            raise ClusterError(self.trouble)
        if event.type != "BOOKMARK":
            self._happened(event.type, bytes(event.object))
        self._heard_up_to(seen.metadata.resource_version or self.version)

    def _list(self) -> None:
        decode = msgspec.json.Decoder(_Listing).decode
        items: list[bytes] = []
        version = ""
        for page in whole_list(self._server.get, self.path, decode, self._selector):
            items += page.objects()
            version = page.metadata.resource_version
        self._replaced(items)
        self._count = len(items)
        self._heard_up_to(version)


def _envelope(path: str, line: bytes) -> _Envelope:
    try:
        return msgspec.json.decode(line, type=_Envelope)
    except msgspec.DecodeError as error:
        raise ClusterError(f"{path}: found no event: {error}") from error


def is_up_to(version: str, other: str) -> bool:
    """Whether a resourceVersion equals another one, or is later."""
    if version.isdecimal() and other.isdecimal():
        return int(version) >= int(other)
    return version == other


class Watches:
    """Watches that are checked in turn by threads of their own."""

    def __init__(self, watches: Sequence[Watch]) -> None:
        self._watches = tuple(watches)
        self._over, self._checks = threading.Event(), threading.Event()
        self._since = dict.fromkeys(self._watches, float("-inf"))  # time.monotonic() up to which all is heard
        self._trouble = dict.fromkeys(self._watches, "changes since the snapshot have not arrived yet")
        self._threads = [
            threading.Thread(target=self._check, args=(each,), name=f"check {each.path}", daemon=True)
            for each in self._watches
        ]

    @contextmanager
    def open(self) -> Iterator[None]:
        """Open all watches within the block."""
        for each in self._watches:
            each.start()
        try:
            with self.opened():
                yield
        finally:
            for each in self._watches:
                each.close()

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Check open watches within the block; a running check at its end is not waited for."""
        for each in self._threads:
            each.start()
        try:
            yield
        finally:
            self._over.set()
            self._checks.set()

    def start_checks(self) -> None:
        """Check from now on; events may be missing until the first check is done."""
        self._checks.set()

    def closed(self) -> str | None:
        """A sentence on a watch that is not open; None where all are."""
        return next(
            (f"{each.path} cannot be watched: {each.trouble}" for each in self._watches if each.lost is not None), None
        )

    def lost(self) -> str | None:
        """A sentence on events that may be missing; None where all were heard."""
        oldest = time.monotonic() - _STALE
        late = (each for each in self._watches if self._since[each] < oldest)
        return self.closed() or next((f"{each.path} cannot be watched: {self._trouble[each]}" for each in late), None)

    def _check(self, watch: Watch) -> None:
        while not self._checks.wait(NUDGE):
            watch.nudge()
        while not self._over.is_set():
            began = time.monotonic()
            try:
                heard, trouble = watch.check(), "nothing is heard, and no list of it comes"
            except ClusterError as error:
                heard, trouble = False, str(error)
            self._trouble[watch] = trouble
            if heard:
                self._since[watch] = began
            self._over.wait(_EVERY if heard else _LONGEST_PAUSE)
