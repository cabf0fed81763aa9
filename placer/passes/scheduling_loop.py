"""Pass after pass in one process (docs/passes.md), with the Lease and the lists kept from the first pass to the last.

All other state is in the cluster, so a CronJob may take its place at any time. An error ends a pass and not the loop,
unless options cause it.
"""

from __future__ import annotations

import ctypes
import gc
import sys
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from placer.base.errors import ClusterError, PlacerError, UsageError
from placer.kube.kinds import KindInfo
from placer.kube.manifests.validation import no_collection
from placer.passes.cluster.reading.client import Client
from placer.passes.cluster.reading.gang_record import Ages
from placer.passes.cluster.reading.queueing_hints import has_come, may_help
from placer.passes.cluster.reading.reflectors import Reflectors
from placer.passes.cluster.reading.rejections import rejection_of
from placer.passes.cluster.reading.snapshot import Snapshot
from placer.passes.cluster.reading.views import Rejection
from placer.passes.cluster.writing.breaker import patient
from placer.passes.cluster.writing.express_lane import Arrivals
from placer.passes.cluster.writing.lease import LeaderElector
from placer.passes.cluster.writing.status_writer import Teller
from placer.passes.scheduling_pass import (
    LoopMemory,
    MakePass,
    Pass,
    PassOptions,
    PassSession,
    lasting_answer,
    leader_identity,
    make_pass,
    run_pass,
)
from placer.problem.result import Result

__all__ = ["LoopObserver", "give_back", "run_loop"]

#: The pods of a gang come one after another: a pass begins when nothing has come for so many seconds, or so many after
#: the first.
_QUIET, _GATHERING = 0.2, 1.0
#: Seconds after the first pass that went wrong; they double up to the second number.
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0
#: Most pods that kubelets rejected of which is known what happened between passes, the latest.
_MOST_REJECTED = 1_000
#: Seconds for which the line of a pass waits until all is told: what is not then is in the line of a later one.
_TOLD = 0.5
#: Seconds between two looks at whether to stop, at the Lease, and at whether passes are paused.
_LOOK = 0.5
#: Seconds after which a thread that decides lets one that binds run: with Python's own 5 ms each answer of the server
#: waits that long for the interpreter, several times per binding.
_SWITCH = 0.0005


class LoopObserver(Protocol):
    """Hears of the events of a loop."""

    def begun(self, done: Pass, /) -> None:
        """A pass begins."""

    def phase(self, text: str, /) -> None:
        """A phase of a pass begins."""

    def binding(self) -> None:
        """Bindings begin: until the pass has ended, an interrupt may only ask the loop to stop."""

    def ended(self, done: Pass, /) -> None:
        """A pass has ended, also with an error."""

    def standing_by(self, why: str, /) -> None:
        """Another process makes passes; called again and again."""

    def undecided(self, why: str, /) -> None:
        """The leader cannot be found out; called again and again."""

    def paused(self, why: str, /) -> None:
        """Passes are paused; called again and again."""

    def waiting(self) -> None:
        """No pass is due; called again and again."""


def run_loop(
    client: Client,
    options: PassOptions,
    stop: threading.Event,
    *observers: LoopObserver,
    make: MakePass = make_pass,
) -> None:
    """Make passes until something stops it.

    Parameters
    ----------
    options
        Of every pass; ``every`` is the longest period, by default passes follow at once.
    """
    loop = _Loop(client, options, stop, observers, make)
    before = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH)
    try:
        while not stop.is_set():
            if options.dry_run:
                loop.make_passes(None)
            else:
                loop.lead()
    finally:
        sys.setswitchinterval(before)
        loop.teller.close()
        loop.lists.close()


def give_back() -> None:
    """Return free memory to the system, where the C library can (glibc: ``malloc_trim``).

    After every pass much of the cluster is free, but between kept objects, which the library does not return by itself.
    """
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return
    trim(ctypes.c_size_t(0))


class _Loop:
    def __init__(
        self,
        client: Client,
        options: PassOptions,
        stop: threading.Event,
        observers: Sequence[LoopObserver],
        make: MakePass,
    ) -> None:
        self._make_pass = make
        self._client, self._options, self._stop, self._observers = client, options, stop, observers
        self._identity = leader_identity(str(uuid.uuid4()))
        self._news = threading.Event()
        self._first_news = 0.0  #: by ``time.monotonic()``, of those since the news was cleared
        self._arrivals = Arrivals()
        self._earlier: tuple[Snapshot, Result] | None = None
        self._failures = 0
        self._rejected: deque[Rejection] = deque(maxlen=_MOST_REJECTED)
        self._ages = Ages()
        self._listens = False  # a watch of pods is open since the first snapshot
        self.lists = Reflectors(client, self._changed, self._heard)
        name, status = options.scheduler_name, options.status
        self.teller = Teller(partial(patient, client), name, status, stop, gates=options.gates)

    def _tell(self, news: Callable[[LoopObserver], None]) -> None:
        for each in self._observers:
            news(each)

    def _changed(self, info: KindInfo, before: bytes | None, after: bytes | None) -> None:
        name, gates = self._options.scheduler_name, self._options.gates
        if may_help(info, before, after, name, gates):
            if not self._news.is_set():
                self._first_news = time.monotonic()
                self._news.set()
            if has_come(info, before, after, name, gates):
                self._arrivals.came()

    def _heard(self, info: KindInfo, item: bytes) -> None:
        name, gates = self._options.scheduler_name, self._options.gates
        found = rejection_of(item, name, gates) if info.attribute == "pods" else None
        if found is not None:
            self._rejected.append(found)

    def lead(self) -> None:
        elector = LeaderElector(self._client, self._identity, self._options.lease)
        try:
            if elector.acquire(self._stop):
                with elector.leading():
                    self.make_passes(elector)
                return
            decided, why = True, f"{self._options.lease} is held by {elector.holder}"
        except ClusterError as error:
            decided, why = False, str(error)
        if not self._stop.is_set():
            self._tell(lambda each: each.standing_by(why) if decided else each.undecided(why))
            self._stop.wait(self._options.lease.retry_period)

    def make_passes(self, leading: LeaderElector | None) -> None:
        while not self._is_over(leading):
            paused = leading.paused if leading is not None else None
            if paused is not None:
                self._stand_by(paused)
                continue
            began = time.monotonic()
            with no_collection():  # what a pass makes it keeps, and whoever waits for it is not to wait for a search
                self._make(leading)
            gc.collect()  # a command looks for garbage seldom, and that of a pass is as large as the cluster
            give_back()
            pause = min(_FIRST_PAUSE * 2 ** (self._failures - 1), _LONGEST_PAUSE) if self._failures else 0.0
            self._wait(leading, began + pause, began + max(pause, self._options.every or 0.0))
        self.lists.unfollow()

    def _stand_by(self, paused: str) -> None:
        self.lists.unfollow()  # the pass that they were hurried for does not come
        self._tell(lambda each: each.paused(paused))
        self._stop.wait(_LOOK)

    def _is_over(self, leading: LeaderElector | None) -> bool:
        return self._stop.is_set() or (leading is not None and leading.lost is not None)

    def _make(self, leading: LeaderElector | None) -> None:
        self._news.clear()  # what comes from now on may be younger than the snapshot
        self._arrivals.begin()
        heard = self._rejected if self._listens else None
        memory = LoopMemory(self._earlier, heard, self._arrivals, self.teller, self._ages)
        done = Pass(self._options, memory)
        session = PassSession(
            self._client,
            self._stop,
            lambda: self._tell(lambda each: each.binding()),
            lambda text: self._tell(lambda each: each.phase(text)),
            lists=self.lists,
        )
        self._tell(lambda each: each.begun(done))
        try:
            run_pass(session, done, leading=leading, make=self._make_pass)
        except UsageError as error:  # the next pass has the same options
            done.report.error = str(error)
            raise
        except PlacerError as error:
            self.lists.forget_served()
            done.report.error, done.report.exit_code = str(error), error.exit_code
        except KeyboardInterrupt:
            done.report.interrupted = True
            raise
        except Exception as error:
            done.report.error = f"{type(error).__name__}: {error}"
            raise
        finally:
            done.loop.earlier = None  # so that not every pass holds the one before it
            done.report.troubles += self.lists.troubles
            self.lists.unfollow()  # also where it has ended before it followed them, or what comes would be kept for it
            done.report.status = self.teller.told(0.0 if self._arrivals.waiting else _TOLD)
            self._tell(lambda each: each.ended(done))
        self._failures = 0 if done.report.error is None else self._failures + 1
        self._earlier = lasting_answer(done)
        if done.read is not None:
            self._listens = True
            self.lists.close_unasked()

    def _wait(self, leading: LeaderElector | None, earliest: float, latest: float) -> None:
        self._sleep(leading, earliest, self._stop)
        self._sleep(leading, latest, self._news)
        if not self._is_over(leading):
            self.lists.hurry()
        gathered = self._first_news + _GATHERING  # what came early in the last pass has waited long enough
        while self._news.is_set() and time.monotonic() < gathered:
            self._news.clear()
            self._news.wait(_QUIET)

    def _sleep(self, leading: LeaderElector | None, until: float, event: threading.Event) -> None:
        while not self._is_over(leading) and not event.is_set() and (left := until - time.monotonic()) > 0:
            self._tell(lambda each: each.waiting())
            event.wait(min(_LOOK, left))
