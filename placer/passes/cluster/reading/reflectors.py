"""Lists that are kept between passes: each is taken once and followed by a watch, as by client-go's reflectors.

A list is current while its watch is open and has reported something lately; watches are short, so that quiet ones
report too. Other lists are taken again by the pass that needs them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from placer.kube.kinds import KindInfo
from placer.passes.cluster.reading.client import Follower
from placer.passes.cluster.reading.field_filter import list_reader
from placer.passes.cluster.reading.served_kinds import ServedKinds
from placer.passes.cluster.reading.snapshot import whole_kind
from placer.passes.cluster.reading.views import ObjectView, read_view
from placer.passes.cluster.reading.watch import NUDGE, Watch
from placer.problem.instance_builder import KeptFacts

__all__ = ["Heard", "Reflectors", "Relay"]

#: Seconds after which the server is to end a watch; two seconds before it sends a bookmark.
_WINDOW = 10
#: Seconds without a word after which a list is not taken for current any more.
_SILENCE = 2 * _WINDOW
#: Seconds for which it is believed which kinds there are.
_SERVED = 60.0
#: Kinds of which a pass waits for what is current.
_FOLLOWED = ("pods", "nodes")

#: Hears of a change: the kind, and what was and is kept of the object; None: there is none.
Changed = Callable[[KindInfo, bytes | None, bytes | None], None]
#: Hears of an event: the kind, and the object as it came.
Heard = Callable[[KindInfo, bytes], None]
#: Hears what a :class:`Watch` says: of an event, and of all that there is.
Listeners = tuple[Callable[[str, bytes], None], Callable[[Sequence[bytes]], None]]


class Reflectors:
    """The lists of a cluster, each kept from the first question for it.

    Parameters
    ----------
    changed
        Called for every changed object, in the threads of the watches and of the caller; not for a first list.
    heard
        Called before that with the whole object of every event.
    """

    def __init__(self, server: Follower, changed: Changed = lambda *_: None, heard: Heard = lambda *_: None) -> None:
        self._server, self._changed, self._heard = server, changed, heard
        self._of: dict[str, _Reflector] = {}
        self._asked: set[str] = set()
        self.kept = KeptFacts()
        self._nudged = threading.Event()  # once nobody has to nudge the watches any more
        self._served: tuple[float, ServedKinds] | None = None

    def __call__(
        self, path: str, info: KindInfo, api_version: str, watch: Callable[[int], None]
    ) -> tuple[Sequence[bytes], str]:
        """A list, taken again where the kept one is not current, and its resourceVersion."""
        self._asked.add(path)
        if path not in self._of:
            self._of[path] = _Reflector(self._server, path, info, api_version, self._changed, self._heard)
        return self._of[path].current(watch)

    def served(self) -> ServedKinds:
        """The kinds that are served, asked for once a minute."""
        now = time.monotonic()
        if self._served is None or now >= self._served[0] + _SERVED:
            self._served = now, ServedKinds(self._server)
        return self._served[1]

    def forget_served(self) -> None:
        """Ask again for the kinds, since an answer contradicted them."""
        self._served = None

    def is_listed_anew(self, path: str) -> bool:
        """Whether the last question took the list again, so that some events before it were missed."""
        return path not in self._of or self._of[path].is_listed_anew

    def follow(self, listeners: Mapping[str, Listeners]) -> list[Watch]:
        """Report what has happened since the lists were given last, and all later events.

        Parameters
        ----------
        listeners
            Path of a list, of pods or nodes, to its listeners; they are also called in the threads of the watches.

        Returns
        -------
        list of Watch
            Of these lists, open until the lists are asked for again.
        """
        self._nudged.set()  # who follows checks
        for path, (happened, replaced) in listeners.items():
            self._of[path].relay.hand_over(happened, replaced)
        return [each for path in listeners if (each := self._of[path].watch) is not None]

    def hurry(self) -> None:
        """Hasten the watches of pods and nodes, since a pass will ask for all lists, and follow them."""
        self._nudged.set()
        followed = [each.watch for each in self._of.values() if each.is_followed and each.watch is not None]
        for each in followed:
            each.hurry()
        self._nudged = threading.Event()
        threading.Thread(target=_nudge, args=(followed, self._nudged), name="nudge", daemon=True).start()

    def unfollow(self) -> None:
        """End :meth:`follow`."""
        self._nudged.set()
        for each in self._of.values():
            each.relay.end()
            if each.watch is not None:
                each.watch.rest()

    def close_unasked(self) -> None:
        """Forget the lists that were not asked for since the last call, since their kinds are served no more."""
        for path in self._of.keys() - self._asked:
            self._of.pop(path).close()
        self._asked.clear()

    @property
    def troubles(self) -> list[str]:
        """The reasons for which lists were taken again at the last question, a sentence each."""
        return [f"{path} was listed again: {each.trouble}" for path, each in sorted(self._of.items()) if each.trouble]

    def close(self) -> None:
        """End all watches."""
        self._nudged.set()
        for each in self._of.values():
            each.close()


def _nudge(watches: Sequence[Watch], over: threading.Event) -> None:
    while not over.is_set():
        for each in watches:
            each.nudge()
        over.wait(NUDGE)


class Relay:
    """Passes the events of a watch on to its listeners in order, and keeps them while there are none."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._kept: list[Callable[[Listeners], None]] | None = None
        self._to: Listeners | None = None

    def keep(self) -> None:
        """Keep what happens from now on."""
        with self._guard:
            self._kept, self._to = [], None

    def hand_over(self, *to: *Listeners) -> None:
        """Give listeners what was kept, and all that happens later."""
        with self._guard:
            for each in self._kept or ():
                each(to)
            self._kept, self._to = None, to

    def end(self) -> None:
        """Have no listeners, and keep nothing."""
        with self._guard:
            self._kept = self._to = None

    def happened(self, kind: str, item: bytes) -> None:
        """Pass an event on."""
        self._hand_on(lambda to: to[0](kind, item))

    def replaced(self, items: Sequence[bytes]) -> None:
        """Pass a list on."""
        self._hand_on(lambda to: to[1](items))

    def _hand_on(self, what: Callable[[Listeners], None]) -> None:
        with self._guard:
            if self._to is not None:
                what(self._to)
            elif self._kept is not None:
                self._kept.append(what)


class _Reflector:
    def __init__(
        self, server: Follower, path: str, info: KindInfo, api_version: str, changed: Changed, heard: Heard
    ) -> None:
        self._server, self._path, self._info, self._version = server, path, info, api_version
        self._changed, self._heard = changed, heard
        self._items: dict[tuple[str, str], bytes] = {}
        self._guard = threading.Lock()
        self.watch: Watch | None = None
        self.relay = Relay()
        self.is_followed = info.attribute in _FOLLOWED
        self.is_listed_anew = False  #: whether the list was taken when it was asked for last
        self.trouble: str | None = None  #: why the list was taken anew when it was asked for last; None: it was not
        self._lists = 0  # that this thread has taken; what a watch on an earlier one still says is not heeded

    def current(self, progress: Callable[[int], None]) -> tuple[list[bytes], str]:
        self.trouble = self._not_current()
        self.is_listed_anew = self.watch is None or self.trouble is not None
        if self.watch is None or self.trouble is not None:
            self.close()
            items, version = whole_kind(self._server, self._path, self._info, self._version, progress)
            self._lists += 1
            self._replace(self._lists, items)
            happened, relisted = partial(self._happened, self._lists), partial(self._relisted, self._lists)
            hurried = self.is_followed
            self.watch = Watch(
                self._server, self._path, version, happened, relisted, len(items), _WINDOW, hurried=hurried
            )
            self.watch.start()
        version = self.watch.version  # first: what comes in between is heard twice then, and not never
        with self._guard:
            if self.is_followed:
                self.relay.keep()
            return [self._items[key] for key in sorted(self._items)], version

    def _not_current(self) -> str | None:
        watch = self.watch
        if watch is None:
            return None
        if watch.lost is not None:
            return watch.trouble
        silence = time.monotonic() - watch.heard
        return None if silence < _SILENCE else f"nothing was heard for {silence:.0f} s"

    def close(self) -> None:
        if self.watch is not None:
            self.watch.close()

    def _happened(self, of: int, kind: str, item: bytes) -> None:
        self._heard(self._info, item)
        now = None if kind == "DELETED" else list_reader(self._info, self._version).object_or_name(item)
        key = _place(item)
        with self._guard:
            if of != self._lists:
                return
            before = self._items.pop(key, None)
            if now is not None:
                self._items[key] = now
            self.relay.happened(kind, item)
        self._changed(self._info, before, now)

    def _relisted(self, of: int, items: Sequence[bytes]) -> None:
        reader = list_reader(self._info, self._version)
        for item in items:  # what happened in between had no event
            self._heard(self._info, item)
        self._replace(of, [reader.object_or_name(item) for item in items], items)

    def _replace(self, of: int, items: Iterable[bytes], said: Sequence[bytes] | None = None) -> None:
        now = {_place(item): item for item in items}
        with self._guard:
            if of != self._lists:
                return
            before, self._items = self._items, now
            if said is not None:
                self.relay.replaced(said)
        if self.watch is not None:  # else it is the first list
            for key in before.keys() | now.keys():
                if before.get(key) != now.get(key):
                    self._changed(self._info, before.get(key), now.get(key))


def _place(item: bytes) -> tuple[str, str]:
    return read_view(item, ObjectView).key
