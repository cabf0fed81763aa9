"""News of passes in a loop, written in a thread of its own while the next pass runs.

Later news become one meanwhile: the last conditions and status, and all Events up to a number. A condition names the
version of its pod, so that none is written to one bound meanwhile.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from placer.passes.cluster.reading.client import Writer
from placer.passes.cluster.writing.status_writer import StatusNews, StatusOptions, StatusReport, write_news

__all__ = ["Teller"]

#: Seconds after the end within which what is under way is written: as long as an answer is waited for, and a second.
_END = 6.0


class Teller:
    """Writes the news of passes."""

    def __init__(
        self,
        server: Callable[[], Writer],
        scheduler_name: str,
        options: StatusOptions,
        stop: threading.Event,
        *,
        gates: bool,
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
        """Write news later, as long as ``lost`` gives None."""
        with self._changed:
            if self._closed:
                return
            self._waiting = (news if self._waiting is None else news.after(self._waiting[0]), lost)
            self._changed.notify_all()
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="teller", daemon=True)
                self._thread.start()

    def told(self, seconds: float) -> StatusReport:
        """The writes since the last call, once all is written or some seconds are over."""
        with self._changed:
            self._changed.wait_for(lambda: not (self._busy or self._waiting), seconds)
            found, self._report = self._report, StatusReport()
            return found

    def close(self) -> None:
        """End; a write under way gets its answer, or is given up after seconds."""
        with self._changed:
            self._closed, self._waiting = True, None
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(_END)

    def _is_over(self) -> bool:
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
                report = write_news(self._server(), self._name, news, self._options, self._is_over, gates=self._gates)
            except Exception as error:  # as in a pass, what cannot be written is told
                report = StatusReport(troubles=[f"{type(error).__name__}: {error}"])
            with self._changed:
                self._report = self._report.and_then(report)
