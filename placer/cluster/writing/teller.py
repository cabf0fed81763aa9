"""What passes of a loop have to say, written in a thread of its own, so that the next pass begins meanwhile.

What is written is in the order of the passes. While it is, what later passes say becomes one: conditions are those of
the last one, status of PodGroups the last that was said of each, and Events those of all, up to a number. A condition
is written to the version of the pod that was read, so none is written to a pod that a later pass has bound.

Once the loop is to end, or another process leads, nothing more is begun: the next pass of either says what is so then.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from placer.cluster.reading.client import Writer
from placer.cluster.writing.status_writer import StatusNews, StatusOptions, StatusReport, Stop, write_news

__all__ = ["Teller"]

#: Seconds after the end within which what is under way is written: as long as an answer is waited for, and a second.
_END = 6.0


class Teller:
    """Writes what passes have to say.

    Parameters
    ----------
    server
        Gives where to, once for each writing.
    scheduler_name, options, gates
        As :func:`placer.cluster.writing.status_writer.write_news` takes them.
    stop
        Set by another thread: begin nothing more.
    """

    def __init__(
        self, server: Callable[[], Writer], scheduler_name: str, options: StatusOptions, stop: Stop, *, gates: bool
    ) -> None:
        self._server, self._name, self._options, self._gates = server, scheduler_name, options, gates
        self._stop = stop
        self._lost: Callable[[], str | None] = lambda: None
        self._changed = threading.Condition()
        self._waiting: tuple[StatusNews, Callable[[], str | None]] | None = None
        self._report = StatusReport()
        self._busy = self._closed = False
        self._thread: threading.Thread | None = None

    def tell(self, news: StatusNews, lost: Callable[[], str | None]) -> None:
        """Have something written.

        Parameters
        ----------
        news
            What.
        lost
            Gives why it may no longer be written, None as long as it may.
        """
        with self._changed:
            if self._closed:
                return
            self._waiting = (news if self._waiting is None else news.after(self._waiting[0]), lost)
            self._changed.notify_all()
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="teller", daemon=True)
                self._thread.start()

    def told(self, seconds: float) -> StatusReport:
        """What was written since this was asked last, after everything is or so many seconds are over."""
        with self._changed:
            self._changed.wait_for(lambda: not (self._busy or self._waiting), seconds)
            found, self._report = self._report, StatusReport()
            return found

    def close(self) -> None:
        """End; what is under way has its answer, or is given up after seconds."""
        with self._changed:
            self._closed, self._waiting = True, None
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(_END)

    def is_set(self) -> bool:
        """Whether nothing more is to be written."""
        return self._closed or self._stop.is_set() or self._lost() is not None

    def _work(self) -> None:
        while True:
            with self._changed:
                self._busy = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._closed or self._waiting is not None)
                if self._waiting is None:
                    return
                (news, self._lost), self._waiting, self._busy = self._waiting, None, True
            try:
                report = write_news(self._server(), self._name, news, self._options, self, gates=self._gates)
            except Exception as error:  # as in a pass, what cannot be written is told
                report = StatusReport(troubles=[f"{type(error).__name__}: {error}"])
            with self._changed:
                self._report = self._report.and_then(report)
