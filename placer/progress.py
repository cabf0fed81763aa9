"""What is shown on a terminal while a solve runs: phase, placed so far, bound, gap, time left."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.status import Status

    from placer.instance import Instance
    from placer.result import TracePoint

__all__ = ["Progress"]


class Progress:
    """A line on standard error that lives as long as the ``with`` block; nothing where that is no terminal.

    Parameters
    ----------
    quiet
        Show nothing.
    began
        ``time.monotonic()`` of the beginning.
    limit
        Seconds of the whole call, None: unlimited.
    """

    def __init__(self, *, quiet: bool, began: float, limit: float | None) -> None:
        self._began, self._limit = began, limit
        self._status: Status | None = None
        self._levels: list[str] = []
        if not quiet and sys.stderr.isatty():
            from rich.console import Console

            self._status = Console(stderr=True).status("placer")

    def __enter__(self) -> Progress:
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._status is not None:
            self._status.stop()

    def phase(self, text: str) -> None:
        """Say what goes on."""
        if self._status is not None:
            self._status.update(f"{text}{self._left()}")

    def knows(self, instance: Instance) -> None:
        """Say what was read, and remember the names of the values."""
        from placer.placement import Placement
        from placer.score import score

        if self._status is not None:
            self._levels = [value.name for value in score(instance, Placement())]
            self.phase(f"{len(instance.pending):,} pending pods, {len(instance.nodes):,} nodes: greedy")

    def point(self, point: TracePoint) -> None:
        """Show a new best answer or bound."""
        if self._status is None:
            return
        shown = []
        for name, value, bound in zip(self._levels, point.values, point.bounds, strict=False):
            gap = "" if bound is None else f" (gap {abs(bound - value) / max(1, abs(value)):.2%})"
            shown.append(f"{name} {value:,}{gap}")
        self.phase(f"{point.phase}: {', '.join(shown[:4])}")

    def _left(self) -> str:
        if self._limit is None:
            return ""
        return f" · {max(0.0, self._began + self._limit - time.monotonic()):.0f} s left"
