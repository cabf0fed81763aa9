"""How long work may take: until a moment, or so much of it."""

from __future__ import annotations

import math
import re
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")
U = TypeVar("U")

#: Seconds beyond a limit after which what looks at no deadline is broken off: a second less than a call may be late.
GRACE = 1.0

_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:h|ms|m|s))+", re.ASCII)
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


def duration(text: str) -> float:
    """Seconds of a plain number, or of a duration as Go and Kubernetes write it.

    Raises
    ------
    ValueError
        It is neither.

    Examples
    --------
    >>> duration("90"), duration("1m30s"), duration("2m"), duration("500ms")
    (90.0, 90.0, 120.0, 0.5)
    """
    if not _DURATION.fullmatch(text):
        return float(text)
    return sum(float(number) * _UNITS[unit] for number, unit in re.findall(r"([\d.]+)(h|ms|m|s)", text))


@dataclass(frozen=True)
class Deadline:
    """A moment ``at``, by ``time.monotonic()``, by which work is to be over; who works looks at it between two steps.

    Examples
    --------
    >>> Deadline().over, Deadline(at=0.0).over
    (False, True)
    """

    at: float = math.inf

    @classmethod
    def within(cls, seconds: float | None) -> Deadline:
        """So many seconds from now; None: never."""
        return cls() if seconds is None else cls(time.monotonic() + seconds)

    @property
    def left(self) -> float:
        """Seconds left, negative when it has passed; infinite: never."""
        return self.at - time.monotonic() if self.at < math.inf else math.inf

    @property
    def wait(self) -> float | None:
        """Seconds left, at least 0, as functions that wait take them; None: without limit."""
        return max(0.0, self.left) if self.at < math.inf else None

    @property
    def over(self) -> bool:
        """Whether it has passed."""
        return self.left <= 0

    def part(self, share: float) -> Deadline:
        """When a share of the time that is left has passed."""
        return Deadline.within(self.left * share if self.at < math.inf else None)

    def at_most(self, seconds: float) -> Deadline:
        """So many seconds from now, no later than this."""
        return Deadline(min(self.at, time.monotonic() + seconds))

    def not_before(self, seconds: float) -> Deadline:
        """At least so many seconds from now."""
        return Deadline(max(self.at, time.monotonic() + seconds))

    def each(self, items: Iterable[T]) -> Iterator[T]:
        """The items one after another until it is over."""
        for item in items:
            if self.over:
                return
            yield item


@dataclass(frozen=True)
class AskedDeadline(Deadline):
    """A deadline that is over, too, once ``is_over``, asked at each look, says so."""

    is_over: Callable[[], bool] = bool

    @property
    def left(self) -> float:
        """Seconds left; none once it is said to be over."""
        return 0.0 if self.is_over() else super().left


#: Where nothing limits the time.
NEVER = Deadline()


@dataclass
class Budget:
    """How long a search may take: until a deadline, and so much deterministic work, ``most`` with what is spent.

    ``idle``: seconds from the beginning, or the last :meth:`renew`, after which it is over; they cut no single step.
    ``above``: the budget that this one is a part of, for which what is spent here counts, too.

    Examples
    --------
    >>> whole = Budget(most=10.0)
    >>> whole.part(0.5).spend(4.0)
    >>> whole.work, whole.over
    (6.0, False)
    """

    deadline: Deadline = NEVER
    most: float = math.inf
    idle: float = math.inf
    above: Budget | None = None

    def __post_init__(self) -> None:
        self.spent, self._whole, self._since = 0.0, self.most, time.monotonic()
        self._limit = self.most if self.above is None else self.above.work

    @property
    def seconds(self) -> float:
        """Seconds left."""
        return self.deadline.left

    @property
    def work(self) -> float:
        """Work left."""
        return self.most - self.spent

    @property
    def over(self) -> bool:
        """Whether nothing is left of one or the other."""
        late = self.idle < math.inf and time.monotonic() > self._since + self.idle
        return late or self.work <= 0 or self.deadline.over

    def spend(self, work: float) -> None:
        """Count work that was done."""
        self.spent += work
        if self.above is not None:
            self.above.spend(work)

    def part(self, share: float = 1.0, *, work: float = math.inf, idle: float = math.inf) -> Budget:
        """A share of what is left, of work no more than so much."""
        deadline = self.deadline if share == 1.0 else self.deadline.part(share)
        return Budget(deadline, min(self.work * share, work), idle, self)

    def renew(self) -> None:
        """Have as much work and idle time again as at the beginning, within what it is a part of."""
        self.most, self._since = min(self._limit, max(self.most, self.spent + self._whole)), time.monotonic()


class OutOfTime(BaseException):
    """A wall was reached; no handler of errors takes it."""


#: Seconds until a wall breaks off again: what was raised in a callback of C code, or at the end of an object, is lost.
_AGAIN = 0.5


@contextmanager
def wall(deadline: Deadline) -> Iterator[None]:
    """Break off work that looks at no deadline of its own, wherever it stands.

    Only the main thread can be broken off so; in any other nothing happens. All that the work has begun is in doubt
    afterwards: take only what was handed over whole. Inside another wall the nearer one counts.

    Raises
    ------
    OutOfTime
        The deadline has passed.
    """
    if deadline.at == math.inf or threading.current_thread() is not threading.main_thread():
        yield
        return
    if deadline.over:
        raise OutOfTime

    inside = True

    def stop(_signal: int, _frame: object) -> None:
        if inside:
            raise OutOfTime

    outer = Deadline.within(signal.getitimer(signal.ITIMER_REAL)[0] or None)
    before = signal.signal(signal.SIGALRM, stop)
    try:
        try:
            _arm(min(deadline, outer, key=lambda each: each.at))
            yield
        finally:
            inside = False
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
        if outer.at < math.inf:
            _arm(outer)


def within(deadline: Deadline, work: Callable[[], T], late: U) -> T | U:
    """The result of some work, or ``late`` where a wall stands before it ends: :data:`GRACE` after a deadline."""
    try:
        with wall(Deadline(deadline.at + GRACE)):
            return work()
    except OutOfTime:
        return late


def _arm(deadline: Deadline) -> None:
    signal.setitimer(signal.ITIMER_REAL, max(deadline.left, 1e-3), _AGAIN)
