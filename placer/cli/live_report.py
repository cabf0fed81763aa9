"""The report of a loop's last pass at ``/report``, served nowhere by default: it names everybody's objects."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from placer.passes.metrics_server import PageAnswer
    from placer.passes.scheduling_pass import Pass
    from placer.problem.result import Result

_EARLY = b"no pass has decided anything yet\n"


class LiveReport:
    """Keeps the last answer; ``make`` makes the page of it and of its time in seconds since the epoch."""

    def __init__(self, make: Callable[[Result, float], str]) -> None:
        self._make = make
        self._last: tuple[Result, float] | None = None  # and when its pass began
        self._made: tuple[Result, bytes] | None = None
        self._lock = threading.Lock()  # the page of a large cluster is made once, however many ask

    def page(self) -> PageAnswer:
        """Give the page of the last pass that decided something."""
        with self._lock:
            last = self._last
            if last is None:
                return 503, "text/plain; charset=utf-8", _EARLY
            result, moment = last
            if self._made is None or self._made[0] is not result:
                self._made = result, self._make(result, moment).encode()
            return 200, "text/html; charset=utf-8", self._made[1]

    def ended(self, done: Pass) -> None:
        """Keep the answer of a pass, where it has one."""
        if done.result is not None:
            self._last = done.result, done.began.timestamp()

    def _nothing(self, *_: object) -> None:
        """There is nothing to keep."""

    begun = phase = binding = waiting = standing_by = undecided = paused = _nothing
