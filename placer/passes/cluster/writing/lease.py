"""Leader election by a Lease (``coordination.k8s.io/v1``), as in ``k8s.io/client-go/tools/leaderelection``.

Clocks of machines are never compared: a holder lives while its record *changes*, as seen from here. One unchanged for
its own ``leaseDurationSeconds``, at most a minute, is taken over. A leader that is cut off stops 5 s before another can
begin (:data:`HANDOVER`, :attr:`LeaderElector.left`).
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

from placer.base.errors import ClusterError
from placer.passes.cluster.reading.client import Response, Unanswered, Writer, server_time
from placer.passes.cluster.reading.paths import segment

__all__ = ["HANDOVER", "PAUSED", "LeaderElector", "LeaseOptions", "NoElection"]

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
    """A Lease and its times in seconds, with ``duration >= renew_deadline + HANDOVER > retry_period``."""

    #: The same for all that exclude each other.
    namespace: str = "placer"
    name: str = "placer"
    duration: int = 15  #: for so long a record stands still before another takes it; whole seconds
    renew_deadline: float = 10.0  #: a leader without a renewal for so long no longer leads
    retry_period: float = 2.0  #: between two tries

    def __str__(self) -> str:
        return f"Lease {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class NoElection:
    """In place of a :class:`LeaderElector` where nothing is written, so that nobody leads."""

    lost: str | None = None
    paused: str | None = None
    left: float = math.inf


class _Trouble(Exception):
    pass


def boot_seconds() -> float:
    """Seconds since the start of the machine, with those of suspension where the system counts them."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)


class LeaderElector:
    """A candidate for leader; may be used again after the Lease was lost or released.

    Parameters
    ----------
    clock
        Seconds, which never decrease, and continue while the machine sleeps.
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
        """The last known holder of the Lease; empty: none."""
        return _holder(self._record)

    @property
    def lost(self) -> str | None:
        """A sentence on why we do not lead; None while we do. The server is not asked."""
        renewed = self._renewed_at
        if renewed is None:
            return f"{self._options} is not held: {self._trouble}"
        if self.left <= 0:
            return f"{self._options} could not be renewed in {self._options.renew_deadline:g} s: {self._trouble}"
        return None

    @property
    def left(self) -> float:
        """Seconds until we no longer lead; negative after that."""
        renewed = self._renewed_at
        return -math.inf if renewed is None else renewed + self._options.renew_deadline - self._clock()

    @property
    def paused(self) -> str | None:
        """A sentence on why nothing more is to begin; None while nobody wants that. Two seconds old at most."""
        why = (self._record.get("metadata", {}).get("annotations") or {}).get(PAUSED)
        return None if why is None else f"{self._options} is annotated {PAUSED}: {why or 'no reason given'}"

    # ---------------------------------------------------------------------------------------------------- what we do

    def acquire(self, stop: threading.Event) -> bool:
        """Become the leader; whether we are.

        Where another holds the Lease this waits until that one is seen to live (mostly two seconds) or its record
        expires.

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
        """Renew in a thread within the block, which checks :attr:`lost`, and release the Lease at its end."""
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
        """Give the Lease back, so that the next leader need not wait; whether that is certain."""
        if self._renewed_at is None:
            return False
        self._lose("it was released")
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
        while not over.wait(self._options.retry_period) and self.lost is None:
            try:
                self._renew()
            except (ClusterError, _Trouble) as error:
                self._trouble = str(error)

    def _renew(self) -> None:
        began = self._clock()
        answer = self._put(self._spec(self._record["spec"]))
        if answer.status == _CONFLICT:  # one of our own whose answer got lost, or another client wrote to it
            if not self._look() or self.holder != self.identity:
                self._lose(f"{self.holder or 'another client'} has taken it")
                return
            answer = self._put(self._spec(self._record["spec"]))
        if answer.status == 404:
            self._lose("it was deleted")
            return
        if answer.status != 200:
            raise _Trouble(f"{answer.status} {answer.message}")
        self._observe(answer)
        self._renewed_at, self._trouble = began, "no renewal was answered"

    def _lose(self, why: str) -> None:
        self._renewed_at, self._trouble = None, why

    def _expires(self) -> float:
        said = float(self._record["spec"].get("leaseDurationSeconds") or self._options.duration)
        return self._seen_at + min(said, max(_LONGEST, self._options.duration))

    def _look(self) -> bool:
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
        text = f"{answer.status} {answer.message}"
        if answer.status in _REFUSED:
            hint = "its Role and its namespace are in deploy/base; --leader-elect-resource-namespace names another one"
            raise ClusterError(f"{self._options}: {text} ({hint})")
        raise _Trouble(text)

    def _spec(self, before: dict[str, Any] | None) -> dict[str, Any]:
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
        metadata = {key: each for key, each in self._record["metadata"].items() if key != "managedFields"}
        return self._send("PUT", f"/{segment(self._options.name)}", self._body(metadata, spec))

    def _send(self, method: str, rest: str, body: object = None) -> Response:
        path = f"{_LEASES}/{segment(self._options.namespace)}/leases{rest}"
        return self._server.send(method, path, body, timeout=_PATIENCE)


def _read(text: bytes) -> dict[str, Any]:
    try:
        found = json.loads(text)
        record: dict[str, Any] = {**found, "spec": dict(found.get("spec") or {})}
        dict(found["metadata"])
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise _Trouble(f"found no Lease in the answer ({type(error).__name__} {error})") from error
    return record


def _holder(record: dict[str, Any]) -> str:
    return str((record.get("spec") or {}).get("holderIdentity") or "")
