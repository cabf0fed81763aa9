"""Ctrl-C and SIGTERM from a command's first moment to its last: one line and the right exit code, no traceback."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType

SIGNALS = (signal.SIGINT, signal.SIGTERM)  #: that end a command; SIGINT is Ctrl-C

SAME_WISH = 1.0  #: seconds within which signals are one and the same

AGAIN = 0.02  #: seconds until an interrupt that was lost is raised once more


class Signals:
    """Heeds interrupts as long as the ``with`` block lasts.

    Until :meth:`raised` an interrupt ends the process; then it is a ``KeyboardInterrupt``, so a search can show its
    answer. ``own``: the process is this command's and may be ended.
    """

    def __init__(self, *, own: bool) -> None:
        self._own = own
        self._at_once = own
        self._last = -math.inf
        self._before: dict[int, object] = {}
        self._number = int(signal.SIGINT)
        self.heard = False  #: whether an interrupt has come
        self.answered = False  #: whether all is done and told, so that an interrupt has nothing left to end

    @property
    def exit_code(self) -> int:
        """What shells expect of a process that a signal ended: 130 of Ctrl-C, 143 of SIGTERM."""
        return 128 + self._number

    def raised(self) -> None:
        """From now on raise what is heard."""
        self._at_once = False

    def __enter__(self) -> Signals:
        if threading.current_thread() is not threading.main_thread():
            return self
        for each in SIGNALS:
            if signal.getsignal(each) != signal.SIG_IGN:  # a job in the background of a script does not heed Ctrl-C
                self._before[each] = signal.signal(each, self._hear)
        self._hook, sys.unraisablehook = sys.unraisablehook, self._unraisable
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for each, handler in self._before.items():
            # What is left of a process of our own is the interpreter's end, which an interrupt may simply cut short,
            # but for a command whose exit code is decided: its answer is out, or an interrupt ended it.
            end = signal.SIG_IGN if self.answered or self.heard else signal.SIG_DFL
            signal.signal(each, end if self._own else handler)  # type: ignore[arg-type]
        if self._before:
            sys.unraisablehook = self._hook

    def _hear(self, number: int, _frame: FrameType | None) -> None:
        """Interrupt, once: timeout(1) and wrappers signal us and then our whole group, and the second signal of one
        wish must not cost the answer that the first one asked for.
        """
        if self.answered:
            return
        if self._at_once:
            with contextlib.suppress(OSError):
                os.write(2, b"placer: interrupted\n")
            os._exit(128 + number)
        now = time.monotonic()
        if now - self._last > SAME_WISH:
            self._last = now
            self._number, self.heard = number, True
            raise KeyboardInterrupt

    def _unraisable(self, lost: sys.UnraisableHookArgs) -> None:
        """Raise an interrupt once more that fell into a callback (of the import system, say), where it would only be
        printed and forgotten.
        """
        if isinstance(lost.exc_value, KeyboardInterrupt):
            self._last = -math.inf
            again = threading.Timer(AGAIN, os.kill, (os.getpid(), self._number))
            again.daemon = True
            again.start()
        else:
            self._hook(lost)


class StopSignals:
    """Ends passes in a cluster: at once as long as nothing is bound, later by asking them to."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        self._gently = self._answered = False

    def gently(self, gently: bool = True) -> None:
        """From now on only ask, or not."""
        self._gently = gently

    def answered(self) -> None:
        """Everything is printed: an interrupt may end the process now, with the exit code unchanged."""
        self._answered = True

    def __call__(self, _number: int, _frame: FrameType | None) -> None:
        """Heed a signal."""
        if self._answered:
            return
        again = self.stop.is_set()
        self.stop.set()
        if not self._gently and not again:  # timeout(1) and wrappers signal us and our group: it is one wish
            raise KeyboardInterrupt

    @contextmanager
    def heeded(self) -> Iterator[None]:
        """Heed signals as long as the block lasts."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {each: signal.signal(each, self) for each in SIGNALS}
        try:
            yield
        finally:
            for each, handler in before.items():
                outer = getattr(handler, "__self__", None)
                if self._answered and isinstance(outer, Signals):
                    outer.answered = True
                signal.signal(each, handler)
