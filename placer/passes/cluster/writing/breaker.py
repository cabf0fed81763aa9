"""A breaker between a pass and its writes, for a server that refuses everything.

Further writes keep an overloaded server down. So once nothing has been written for a pass's patience it *opens*:
nothing more is sent. Refusals of single objects (404, 409, 422; 403 and 500 of admission webhooks) never open it.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import Unpack

from placer.base.errors import ClusterError
from placer.passes.cluster.reading.client import Response, SendOptions, Unanswered, Writer, server_time

__all__ = ["Breaker", "PatientWriter", "patient"]

#: Answers that any request would get: it does not know us, has no time, or is not there.
_OF_SERVER = frozenset((401, 429, 502, 503, 504))
#: Refusals of one object that are not about its state: together with the above, reasons for which a pass may have
#: written nothing at all.
_OF_OBJECT = frozenset((403, 500))
#: Seconds after which nothing more is told to a server that refuses all of it, and up to which it may have us wait.
_REFUSED, _WAITING = 10.0, 30.0
#: Fewest refusals that open a breaker, or are told as those of all that was sent.
_FEWEST = 5


class Breaker:
    """Passes writes on and counts refusals; for any number of threads.

    Parameters
    ----------
    patience
        Seconds without success after which it opens.
    methods
        Methods that count: a server that refuses to bind (POST) may accept patches.
    """

    def __init__(
        self,
        server: Writer,
        patience: float,
        methods: Collection[str] = ("POST", "PUT", "PATCH", "DELETE"),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._server, self._patience, self._methods, self._clock = server, patience, methods, clock
        self._lock = threading.Lock()
        self._in_a_row = 0
        self._since: float | None = None  # the first refusal behind the last success
        self._last = ""
        self._answers = 0
        self._refusals = 0

    def now(self) -> datetime:
        """The time by the server's clock."""
        return server_time(self._server)

    def get(self, path: str, parameters: Mapping[str, str] | None = None) -> Response:
        """Ask for something."""
        return self._server.get(path, parameters)

    def send(self, method: str, path: str, body: object = None, **options: Unpack[SendOptions]) -> Response:
        """Write something, once."""
        try:
            answer = self._server.send(method, path, body, **options)
        except Unanswered as error:
            if method in self._methods:
                self._note_refusal(str(error), of_server=True)
            raise
        if method not in self._methods:
            return answer  # a server that can be read need not take anything
        if answer.status in _OF_SERVER or answer.status in _OF_OBJECT:
            self._note_refusal(f"{answer.status} {answer.message}", of_server=answer.status in _OF_SERVER)
        else:
            self.note_answer()
        return answer

    @property
    def open(self) -> str | None:
        """A sentence on why nothing more may be sent; None while the breaker is closed."""
        with self._lock:
            if self._since is None or self._in_a_row < _FEWEST or self._clock() < self._since + self._patience:
                return None
            return f"the server has refused everything for {self._clock() - self._since:.0f} s: {self._last}"

    @property
    def refused(self) -> str | None:
        """A sentence where every write of several was refused; None otherwise."""
        with self._lock:
            if self._answers or self._refusals < _FEWEST:
                return None
            return f"the server refused all that was sent, {self._refusals} times: {self._last}"

    def note_answer(self) -> None:
        """Note that a write succeeded, if with a lost answer, or was refused for the object's state."""
        with self._lock:
            self._in_a_row, self._since = 0, None
            self._answers += 1

    def _note_refusal(self, why: str, *, of_server: bool) -> None:
        with self._lock:
            self._refusals += 1
            self._last = why
            if of_server:
                self._in_a_row += 1
                self._since = self._clock() if self._since is None else self._since


class PatientWriter:
    """Repeats writes that a server had no time for (429), and sends nothing once the breaker is open.

    Parameters
    ----------
    until
        ``time.monotonic()`` up to which the server may have us wait.
    """

    def __init__(self, breaker: Breaker, until: float, sleep: Callable[[float], None] = time.sleep) -> None:
        self._breaker, self._until, self._sleep = breaker, until, sleep
        self.now, self.get = breaker.now, breaker.get

    def send(self, method: str, path: str, body: object = None, **options: Unpack[SendOptions]) -> Response:
        """Write something; 429 is the answer only where no time is left.

        Raises
        ------
        Unanswered
            No answer came in time.
        ClusterError
            The server refuses everything.
        """
        while True:
            why = self._breaker.open
            if why is not None:
                raise ClusterError(f"not written: {why}")
            answer = self._breaker.send(method, path, body, **options)
            wait = (answer.again_after if answer.again_after is not None else 1.0) * random.uniform(1.0, 1.1)
            if answer.status != 429 or time.monotonic() + wait > self._until:
                return answer
            self._sleep(wait)


def patient(server: Writer) -> PatientWriter:
    """A writer for reports to the cluster: it waits where asked, and gives up where all is refused."""
    return PatientWriter(Breaker(server, _REFUSED), time.monotonic() + _WAITING)
