"""Leader election by a Lease (``coordination.k8s.io/v1``): one of many is the leader, and knows when it no longer is.

The protocol and its times are those of ``k8s.io/client-go/tools/leaderelection``, so ``kubectl get lease`` shows what
it shows of every other component. Clocks of machines are never compared: whether a holder lives is told by whether its
record *changes*, as seen from here. One that has not changed for as long as it says itself (``leaseDurationSeconds``),
a minute at most, is taken over: who had our token for a moment must not keep us out for years.

========================  =============================================================================================
``duration``              15 s: for so long the record must stand still before another may take it
``renew_deadline``        10 s: a leader that could not renew for so long no longer counts itself as one
``retry_period``          2 s: between two renewals, and between two looks at another's record
========================  =============================================================================================

A leader that is cut off therefore stops 5 s before another can begin: so much is left for what it has under way
(:data:`HANDOVER`), counted from the moment at which the Lease has lapsed, and not from when it notices
(:attr:`LeaderElector.left`). A leader that is done empties the record, so that the next one need not wait.
"""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from placer.cluster.reading.client import Response, Unanswered, Writer, server_time
from placer.cluster.reading.paths import segment
from placer.errors import ClusterError

__all__ = ["HANDOVER", "PAUSED", "LeaderElector", "LeaseOptions"]

#: Annotation of the Lease by which an operator pauses all passes that hold it; its value says why.
PAUSED = "placer.dev/paused"
#: Seconds between the moment at which a leader that is cut off stops, and the first at which another may begin.
HANDOVER = 5.0
#: Most seconds for which a record says itself that it must stand still, and the largest number that a server takes.
_LONGEST, _LARGEST = 60.0, 2**31 - 1
#: Seconds to wait for an answer: half of the renew deadline, so that one that gets lost is no loss.
_PATIENCE = 5.0
_LEASES = "/apis/coordination.k8s.io/v1/namespaces"
#: Whether a record may be written, or is another's, shows at once; what is in trouble is asked again.
_REFUSED = range(400, 429)
_CONFLICT = 409


@dataclass(frozen=True, slots=True)
class LeaseOptions:
    """Which Lease, and its times in seconds; these have ``duration >= renew_deadline + HANDOVER > retry_period``.

    Parameters
    ----------
    namespace, name
        Of the Lease; those that are to exclude each other name the same.
    duration
        For so long a record must stand still before another may take it; whole seconds.
    renew_deadline
        A leader that could not renew for so long no longer counts itself as one.
    retry_period
        Between two tries.
    """

    namespace: str = "placer"
    name: str = "placer"
    duration: int = 15
    renew_deadline: float = 10.0
    retry_period: float = 2.0

    def __str__(self) -> str:
        return f"Lease {self.namespace}/{self.name}"


class _Lost(Exception):
    """The record is another's."""


class _Trouble(Exception):
    """The server answers, and may answer otherwise the next time."""


def boot_seconds() -> float:
    """Seconds since the machine has started, also those for which it was suspended, where the system counts these."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)


class LeaderElector:
    """One who wants to be the leader; may be used again after it was lost or released.

    Parameters
    ----------
    server
        Where the Lease is.
    identity
        Ours: no other may have it.
    options
        Which Lease.
    clock
        Seconds, which never go back, and go on where the machine sleeps; tests put one here that they move.
    """

    def __init__(
        self, server: Writer, identity: str, options: LeaseOptions, clock: Callable[[], float] = boot_seconds
    ) -> None:
        self._server, self.identity, self._options, self._clock = server, identity, options, clock
        self._record: dict[str, Any] = {}  # as it was seen last
        self._seen_at = 0.0  # when it was seen to change
        self._renewed_at: float | None = None  # when the last renewal that succeeded was sent; None: we are no leader
        self._trouble = "it was never acquired"

    # ----------------------------------------------------------------------------------------------------- what is so

    @property
    def holder(self) -> str:
        """Who held the Lease when it was seen last; empty: none."""
        return _holder(self._record)

    @property
    def lost(self) -> str | None:
        """Why we are not the leader, in one sentence; None while we are. Costs nothing, and asks the server nothing."""
        renewed = self._renewed_at
        if renewed is None:
            return f"{self._options} is not held: {self._trouble}"
        if self.left <= 0:
            return f"{self._options} could not be renewed in {self._options.renew_deadline:g} s: {self._trouble}"
        return None

    @property
    def left(self) -> float:
        """Seconds until we count ourselves as no leader any more; below zero where that is so already: whoever stood
        still hears from it for how long.
        """
        renewed = self._renewed_at
        return -math.inf if renewed is None else renewed + self._options.renew_deadline - self._clock()

    @property
    def paused(self) -> str | None:
        """Why nothing more is to be begun, in one sentence; None while nobody wants that.

        As old as the last renewal, so two seconds at most.
        """
        why = (self._record.get("metadata", {}).get("annotations") or {}).get(PAUSED)
        return None if why is None else f"{self._options} is annotated {PAUSED}: {why or 'no reason given'}"

    # ---------------------------------------------------------------------------------------------------- what we do

    def acquire(self, stop: threading.Event) -> bool:
        """Become the leader; whether we are.

        Where another holds the Lease this waits until it is seen to live (no) or not to (yes), so for as long as the
        record's duration at most and mostly for a renewal, two seconds.

        Parameters
        ----------
        stop
            Set by another thread: wait no longer.

        Raises
        ------
        ClusterError
            The server refuses, or has not answered for the duration of a Lease.
        """
        began = self._clock()
        while not stop.is_set():
            wait = self._options.retry_period
            try:
                before = self._record
                if self._try():
                    return True
                if before and _holder(self._record) and self._record["spec"] != before["spec"]:
                    return False  # it lives
                wait = min(wait, max(0.0, self._expires() - self._clock()))
            except (Unanswered, _Trouble) as error:
                if self._clock() >= began + self._options.duration:
                    raise ClusterError(f"{self._options}: {error}") from error
            stop.wait(wait)
        return False

    @contextmanager
    def leading(self) -> Iterator[None]:
        """Renew in a thread of its own for as long as a block lasts, and release the Lease at its end.

        What the block does asks :attr:`lost` before each thing that only the leader may begin.
        """
        over = threading.Event()
        thread = threading.Thread(target=self._keep, args=(over,), name=f"{self._options}", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join(1.0)
            self.release()

    def release(self) -> bool:
        """Give the Lease back, so that the next one need not wait for its end; whether that is known to be done."""
        if self._renewed_at is None:
            return False
        self._renewed_at, self._trouble = None, "it was released"
        try:
            for _ in range(2):
                if _holder(self._record) != self.identity:
                    return False
                spec = {key: each for key, each in self._record["spec"].items() if key != "holderIdentity"}
                now = self._now()
                answer = self._put(spec | {"leaseDurationSeconds": 1, "renewTime": now, "acquireTime": now})
                if answer.status != _CONFLICT:
                    return answer.status == 200
                self._look()
        except (ClusterError, _Trouble):
            pass  # it ends by itself
        return False

    # ---------------------------------------------------------------------------------------------------- the protocol

    def _try(self) -> bool:
        """Take the Lease where that may be done; whether it is ours now."""
        began = self._clock()
        if not self._look():
            answer = self._send("POST", "", self._body({}, self._spec(None)))
        elif self.holder and self.holder != self.identity and self._clock() < self._expires():
            return False
        else:
            answer = self._put(self._spec(self._record["spec"]))
        if answer.status == _CONFLICT:
            if not self._look():
                raise _Trouble("it is said to be there, and is not")
            return False  # another was faster
        if answer.status not in (200, 201):
            self._refuse(answer)
        self._observe(answer)
        self._renewed_at, self._trouble = began, "no renewal was answered"
        return True

    def _keep(self, over: threading.Event) -> None:
        """Renew until it is over; what is lost stays lost."""
        while not over.wait(self._options.retry_period) and self.lost is None:
            try:
                self._renew()
            except _Lost as lost:
                self._renewed_at, self._trouble = None, str(lost)
            except (ClusterError, _Trouble) as error:
                self._trouble = str(error)

    def _renew(self) -> None:
        began = self._clock()
        answer = self._put(self._spec(self._record["spec"]))
        if answer.status == _CONFLICT:  # one of our own whose answer got lost, or another client wrote to it
            if not self._look() or self.holder != self.identity:
                raise _Lost(f"{self.holder or 'another client'} has taken it")
            answer = self._put(self._spec(self._record["spec"]))
        if answer.status == 404:
            raise _Lost("it was deleted")
        if answer.status != 200:
            raise _Trouble(f"{answer.status} {answer.message}")
        self._observe(answer)
        self._renewed_at, self._trouble = began, "no renewal was answered"

    def _expires(self) -> float:
        """When another's record may be taken over."""
        said = float(self._record["spec"].get("leaseDurationSeconds") or self._options.duration)
        return self._seen_at + min(said, max(_LONGEST, self._options.duration))

    def _look(self) -> bool:
        """Read the record; whether there is one."""
        answer = self._send("GET", f"/{segment(self._options.name)}")
        if answer.status == 404:
            self._record = {}
            return False
        if answer.status != 200:
            self._refuse(answer)
        self._observe(answer)
        return True

    def _observe(self, answer: Response) -> None:
        record = _read(answer.text)
        if record["spec"] != self._record.get("spec"):
            self._seen_at = self._clock()
        self._record = record

    def _refuse(self, answer: Response) -> None:
        """Raise for an answer that is neither yes nor no."""
        text = f"{answer.status} {answer.message}"
        if answer.status in _REFUSED:
            hint = "its Role and its namespace are in deploy/base; --leader-elect-resource-namespace names another one"
            raise ClusterError(f"{self._options}: {text} ({hint})")
        raise _Trouble(text)

    def _spec(self, before: dict[str, Any] | None) -> dict[str, Any]:
        """The record with us as its holder."""
        now, before = self._now(), before or {}
        spec = before | {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": self._options.duration,
            "renewTime": now,
        }
        if before.get("holderIdentity") != self.identity:
            spec["acquireTime"] = now
            spec["leaseTransitions"] = (int(before.get("leaseTransitions") or 0) + bool(before)) % _LARGEST
        return spec

    def _now(self) -> str:
        """The time for people to read: the server's, as all that is written beside it."""
        return server_time(self._server).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def _body(self, metadata: dict[str, Any], spec: dict[str, Any]) -> dict[str, Any]:
        named = {"name": self._options.name, "namespace": self._options.namespace}
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {**metadata, **named},
            "spec": spec,
        }

    def _put(self, spec: dict[str, Any]) -> Response:
        """Write the record over the one that was seen last, and over no other."""
        metadata = {key: each for key, each in self._record["metadata"].items() if key != "managedFields"}
        return self._send("PUT", f"/{segment(self._options.name)}", self._body(metadata, spec))

    def _send(self, method: str, rest: str, body: object = None) -> Response:
        path = f"{_LEASES}/{segment(self._options.namespace)}/leases{rest}"
        return self._server.send(method, path, body, timeout=_PATIENCE)


def _read(text: bytes) -> dict[str, Any]:
    """The Lease in an answer."""
    try:
        found = json.loads(text)
        record: dict[str, Any] = {**found, "spec": dict(found.get("spec") or {})}
        dict(found["metadata"])
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise _Trouble(f"found no Lease in the answer ({type(error).__name__} {error})") from error
    return record


def _holder(record: dict[str, Any]) -> str:
    return str((record.get("spec") or {}).get("holderIdentity") or "")
