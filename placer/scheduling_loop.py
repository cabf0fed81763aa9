"""One pass after another in one process: as soon as something has changed that may help, and at least every so often.

The loop holds the Lease from its first pass to its end; another one beside it stands by. Lists are kept between passes
(:mod:`placer.cluster.reading.reflectors`). Everything else a pass finds in the cluster, as one of a CronJob does, so a
loop may be ended and begun at any time, and a CronJob may take its place.

What goes wrong ends a pass and not the loop, unless options are why; the next pass is made later and later then, up to
a minute.
"""

from __future__ import annotations

import ctypes
import gc
import sys
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Protocol

from placer.cluster.reading.client import Client
from placer.cluster.reading.gang_record import Ages
from placer.cluster.reading.queueing_hints import has_come, may_help
from placer.cluster.reading.reflectors import Reflectors
from placer.cluster.reading.rejections import rejection_of
from placer.cluster.reading.snapshot import Snapshot
from placer.cluster.reading.views import Rejection
from placer.cluster.writing.breaker import patient
from placer.cluster.writing.express_lane import Arrivals
from placer.cluster.writing.lease import LeaderElector
from placer.cluster.writing.teller import Teller
from placer.errors import ClusterError, PlacerError, UsageError
from placer.kube.kinds import KindInfo
from placer.manifests.validation import no_collection
from placer.result import Result
from placer.scheduling_pass import Pass, PassOptions, lasting_answer, leader_identity, make_pass, run_pass

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
    """Hears what a loop does."""

    def begun(self, done: Pass, /) -> None:
        """A pass begins."""

    def phase(self, text: str, /) -> None:
        """What goes on in a pass."""

    def binding(self) -> None:
        """The pass binds from now on: until it has ended, an interrupt may only ask the loop to stop."""

    def ended(self, done: Pass, /) -> None:
        """A pass has ended, whatever became of it."""

    def standing_by(self, why: str, /) -> None:
        """Another process makes passes, and which; called again and again as long as that is so."""

    def undecided(self, why: str, /) -> None:
        """It cannot be found out who makes passes, and why; called again and again as long as that is so."""

    def paused(self, why: str, /) -> None:
        """Somebody wants no passes at the moment, and why; called again and again as long as that is so."""

    def waiting(self) -> None:
        """No pass is due; called again and again as long as that is so."""


class _Observers(tuple[LoopObserver, ...]):
    """Several, as one."""

    def begun(self, done: Pass) -> None:
        for each in self:
            each.begun(done)

    def phase(self, text: str) -> None:
        for each in self:
            each.phase(text)

    def binding(self) -> None:
        for each in self:
            each.binding()

    def ended(self, done: Pass) -> None:
        for each in self:
            each.ended(done)

    def standing_by(self, why: str) -> None:
        for each in self:
            each.standing_by(why)

    def undecided(self, why: str) -> None:
        for each in self:
            each.undecided(why)

    def paused(self, why: str) -> None:
        for each in self:
            each.paused(why)

    def waiting(self) -> None:
        for each in self:
            each.waiting()


def run_loop(
    client: Client,
    options: PassOptions,
    stop: threading.Event,
    *observers: LoopObserver,
    make: Callable[..., None] = make_pass,
) -> None:
    """Make passes until something stops it.

    Parameters
    ----------
    client
        The cluster.
    options
        Of every pass; ``every`` says how long one is waited for at most, default one pass right after another.
    stop
        Set by another thread, or a signal: begin nothing more.
    observers
        Hear of every pass.
    make
        What a pass does, given the lists that are kept as ``lists``.
    """
    loop = _Loop(client, options, stop, _Observers(observers), make)
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
    """Give memory that is free back to the system, where the C library can be told to: glibc (``malloc_trim``).

    By itself it gives back what is free above all that is kept. Of the cluster much is free after every pass, and twice
    as much once lists were taken anew, but between what is kept.
    """
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return
    trim(ctypes.c_size_t(0))


class _Loop:
    """What goes on from pass to pass."""

    def __init__(
        self,
        client: Client,
        options: PassOptions,
        stop: threading.Event,
        observer: LoopObserver,
        make: Callable[..., None],
    ) -> None:
        self._make_pass = make
        self._client, self._options, self._stop, self._observer = client, options, stop, observer
        self._identity = leader_identity(str(uuid.uuid4()))
        self._news = threading.Event()
        self._arrivals = Arrivals()
        self._earlier: tuple[Snapshot, Result] | None = None
        self._failures = 0
        self._rejected: deque[Rejection] = deque(maxlen=_MOST_REJECTED)
        self._ages = Ages()
        self._listens = False  # a watch of pods is open since the first snapshot
        self.lists = Reflectors(client, self._changed, self._heard)
        name, status = options.scheduler_name, options.status
        self.teller = Teller(partial(patient, client), name, status, stop, gates=options.gates)

    def _changed(self, info: KindInfo, before: bytes | None, after: bytes | None) -> None:
        name, gates = self._options.scheduler_name, self._options.gates
        if may_help(info, before, after, name, gates):
            self._news.set()
            if has_come(info, before, after, name, gates):
                self._arrivals.came()

    def _heard(self, info: KindInfo, item: bytes) -> None:
        """Note what a kubelet rejects between passes: its controller may delete it before the next one."""
        name, gates = self._options.scheduler_name, self._options.gates
        found = rejection_of(item, name, gates) if info.attribute == "pods" else None
        if found is not None:
            self._rejected.append(found)

    def lead(self) -> None:
        """Make passes as the leader, for as long as it is one; where another one is, look again shortly after."""
        elector = LeaderElector(self._client, self._identity, self._options.lease)
        try:
            if elector.acquire(self._stop):
                with elector.leading():
                    self.make_passes(elector)
                return
            tell, why = self._observer.standing_by, f"{self._options.lease} is held by {elector.holder}"
        except ClusterError as error:
            tell, why = self._observer.undecided, str(error)
        if not self._stop.is_set():
            tell(why)
            self._stop.wait(self._options.lease.retry_period)

    def make_passes(self, leading: LeaderElector | None) -> None:
        """Make passes until something stops it, or the Lease is lost."""
        while not self._is_over(leading):
            paused = leading.paused if leading is not None else None
            if paused is not None:
                self.lists.unfollow()  # the pass that they were hurried for does not come
                self._observer.paused(paused)
                self._stop.wait(_LOOK)
                continue
            began = time.monotonic()
            with no_collection():  # what a pass makes it keeps, and whoever waits for it is not to wait for a search
                self._make(leading)
            gc.collect()  # a command looks for garbage seldom, and that of a pass is as large as the cluster
            give_back()
            pause = min(_FIRST_PAUSE * 2 ** (self._failures - 1), _LONGEST_PAUSE) if self._failures else 0.0
            self._wait(leading, began + pause, began + max(pause, self._options.every or 0.0))
        self.lists.unfollow()

    def _is_over(self, leading: LeaderElector | None) -> bool:
        return self._stop.is_set() or (leading is not None and leading.lost is not None)

    def _make(self, leading: LeaderElector | None) -> None:
        """Make one pass."""
        self._news.clear()  # what comes from now on may be younger than the snapshot
        self._arrivals.begin()
        heard = self._rejected if self._listens else None
        done = Pass(
            self._options,
            earlier=self._earlier,
            heard=heard,
            ages=self._ages,
            arrivals=self._arrivals,
            teller=self.teller,
        )
        observer = self._observer
        observer.begun(done)
        try:
            run_pass(
                self._client,
                done,
                self._stop,
                bind_gently=observer.binding,
                watch=observer.phase,
                leading=leading,
                make=partial(self._make_pass, lists=self.lists),
            )
        except UsageError as error:  # the next pass has the same options
            done.error = str(error)
            raise
        except PlacerError as error:
            self.lists.forget_served()
            done.error, done.exit_code = str(error), error.exit_code
        except KeyboardInterrupt:
            done.interrupted = True
            raise
        except Exception as error:
            done.error = f"{type(error).__name__}: {error}"
            raise
        finally:
            done.earlier = None  # so that not every pass holds the one before it
            done.troubles += self.lists.troubles
            self.lists.unfollow()  # also where it has ended before it followed them, or what comes would be kept for it
            done.status_report = self.teller.told(_TOLD)
            observer.ended(done)
        self._failures = 0 if done.error is None else self._failures + 1
        self._earlier = lasting_answer(done)
        if done.snapshot is not None:
            self._listens = True
            self.lists.close_unasked()

    def _wait(self, leading: LeaderElector | None, earliest: float, latest: float) -> None:
        """Wait for news, and until they have all come: from one moment to another (``time.monotonic()``)."""
        self._sleep(leading, earliest, self._stop)
        self._sleep(leading, latest, self._news)
        if not self._is_over(leading):
            self.lists.hurry()
        gathered = time.monotonic() + _GATHERING
        while self._news.is_set() and time.monotonic() < gathered:
            self._news.clear()
            self._news.wait(_QUIET)

    def _sleep(self, leading: LeaderElector | None, until: float, event: threading.Event) -> None:
        """Wait for an event up to a moment, or until all is over."""
        while not self._is_over(leading) and not event.is_set() and (left := until - time.monotonic()) > 0:
            self._observer.waiting()
            event.wait(min(_LOOK, left))
