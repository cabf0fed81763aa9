"""Progress on a terminal: one line with the time that is left and the present phase."""

from __future__ import annotations

import math
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING

from placer.base.text import legible, styled
from placer.base.words import counted, number_word, value_word

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    from placer.problem import Instance
    from placer.problem.placement import Value
    from placer.problem.result import TracePoint

#: How often a second the line is drawn anew, so that the countdown moves also where nothing happens.
_REFRESH = 4


class Progress:
    """A line on standard error that lives as long as the ``with`` block; where that is no terminal, nothing or
    ``lines``.

    ``began``: of ``time.monotonic()``. ``limit``: seconds of the whole call.
    """

    def __init__(self, *, quiet: bool, began: float, limit: float | None, lines: bool = False) -> None:
        self._began, self._limit = began, limit
        self._live: Live | None = None
        self._console: Console | None = None
        self._criteria: tuple[Value, ...] = ()
        self._text = "placer"
        self._written: float | None = None if lines and not quiet and not sys.stderr.isatty() else math.inf
        if not quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live

            self._console = Console(file=styled(sys.stderr))
            self._live = Live(
                console=self._console,
                get_renderable=self._line,
                refresh_per_second=_REFRESH,
                transient=True,
                redirect_stdout=False,  # else it goes to standard error
            )

    def __enter__(self) -> Progress:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def phase(self, text: str) -> None:
        """Show a phase."""
        self._text = text
        if self._live is not None:
            self._live.refresh()
        elif self._written is None or time.monotonic() >= self._written + 1:
            self._written = time.monotonic()
            print(f"placer: {self._clock()}{legible(text)}", file=sys.stderr)

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Take the line away as long as something is printed."""
        if self._live is not None:
            self._live.stop()
        yield
        if self._live is not None:
            self._live.start()

    @property
    def _shows(self) -> bool:
        return self._live is not None or self._written != math.inf

    def knows(self, instance: Instance) -> None:
        """Show the size of the input, and remember the values there are."""
        from placer.problem.placement import Placement
        from placer.rules.scoring import score

        if self._shows:
            self._criteria = score(instance, Placement())
            nodes = counted(len(instance.nodes), "node")
            self.phase(f"{counted(len(instance.pending), 'pending pod')}, {nodes}: greedy")

    def point(self, point: TracePoint) -> None:
        """Show a new best answer or bound: the first value that is not proved."""
        if not self._shows:
            return
        names = {criterion.name for criterion in self._criteria}
        phase = ": ".join(part for part in point.phase.split(": ") if part not in names)
        for criterion, value, bound in zip(self._criteria, point.values, point.bounds, strict=False):
            if bound != value:
                limit = "" if bound is None else f" (bound {number_word(criterion.name, bound, value)})"
                self.phase(f"{phase}: {value_word(criterion.name)} {number_word(criterion.name, value, bound)}{limit}")
                return
        self.phase(f"{phase}: every value is proved")

    def plan(self, point: TracePoint) -> None:
        """Show that there is a plan that disturbs, and that a smaller one is looked for."""
        self.phase(f"looking for a plan that moves or evicts less than the one by {point.phase}")

    def _line(self) -> Text:
        from rich.text import Text

        width = self._console.width if self._console is not None else 80
        clock = self._clock()
        text = textwrap.shorten(legible(self._text), max(10, width - len(clock) - 1), placeholder=" ...")
        return Text(clock + text, no_wrap=True, overflow="crop")

    def _clock(self) -> str:
        gone = time.monotonic() - self._began
        if self._limit is None:
            return f"{gone:.0f} s · "
        return f"{max(0.0, self._limit - gone):.0f} s left · "
