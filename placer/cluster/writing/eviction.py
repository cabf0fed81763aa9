"""One eviction: what is sent, what each answer means, what is tried again.

It goes to ``pods/NAME/eviction`` (policy/v1), so disruption budgets are kept by the server too, and carries the uid of
the pod that was decided upon: a pod made anew under the name is not evicted, nor is one twice.

========================  =============================================================================================
answer                    what it means
========================  =============================================================================================
200, 201                  it is on its way out
404                       it is gone
409                       another uid, or the budget was written to meanwhile: the pod is read, and says which
429 for a budget          refused; tried again only where that was asked for, since a budget may get free
429 otherwise             the server has no time: tried again when it says
403, other 4xx            refused; 500 is, too, of a pod that is too large to be written to, or has two budgets
5xx, no answer            the pod is read, and what is not on its way out is tried again
========================  =============================================================================================
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

import msgspec

from placer.cluster.reading.client import Response, Unanswered, Writer
from placer.cluster.reading.views import PodView, read_view
from placer.cluster.writing.binding import pod_path
from placer.instance import Key

__all__ = ["Eviction", "EvictionState", "evict_pod"]

#: Seconds to wait for an answer, and between two tries.
_PATIENCE, _PAUSE = 5.0, 0.5


class EvictionState(Enum):
    """What became of an eviction."""

    EVICTED = "evicted"  #: it is gone, or on its way out
    REFUSED = "refused"  #: it stays
    UNKNOWN = "unknown"  #: the server did not tell in time


@dataclass(frozen=True, slots=True)
class Eviction:
    """An eviction that was tried; ``reason`` says why the pod is not on its way out, in one sentence."""

    state: EvictionState
    reason: str = ""


_EVICTED = Eviction(EvictionState.EVICTED)
#: What the server says, with a 500, of a pod that two budgets mean.
_TWO_BUDGETS = "more than one PodDisruptionBudget"
#: A try that came to nothing: what the matter is, seconds until another one, whether it may happen all the same.
_Failed = tuple[str, float, bool]


def evict_pod(
    server: Writer,
    pod: Key,
    uid: str,
    until: float,
    *,
    insist: bool = False,
    dry_run: bool = False,
    sleep: Callable[[float], None] = time.sleep,
) -> Eviction:
    """Evict a pod; tries until it is known what became of it, or time is over.

    Parameters
    ----------
    server
        Where.
    pod, uid
        Which.
    until
        ``time.monotonic()`` until which to try.
    insist
        Try again, too, what a budget does not allow now.
    dry_run
        Let the server do all but evict it.
    sleep
        Waits; tests put something faster here.
    """
    doubt = False
    while True:
        tried = _tried(server, pod, uid, insist, dry_run)
        if isinstance(tried, Eviction):
            return tried
        reason, wait, may_happen = tried
        doubt |= may_happen and not dry_run
        if time.monotonic() + wait > until:
            return Eviction(EvictionState.UNKNOWN if doubt else EvictionState.REFUSED, reason)
        sleep(wait)


def _tried(server: Writer, pod: Key, uid: str, insist: bool, dry_run: bool) -> Eviction | _Failed:
    """Try once."""
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod.name, "namespace": pod.namespace},
        "deleteOptions": {"preconditions": {"uid": uid}},
    }
    parameters = {"dryRun": "All"} if dry_run else None
    try:
        answer = server.send("POST", f"{pod_path(*pod)}/eviction", body, parameters=parameters, timeout=_PATIENCE)
    except Unanswered as error:
        return _looked(server, pod, uid, (str(error), _PAUSE, error.sent))
    text = f"{answer.status} {answer.message}"
    wait = answer.again_after or _PAUSE
    if answer.status in (200, 201, 404):
        return _EVICTED
    if answer.status == 429 and (insist or not _of_budget(answer)):
        return text, wait, False
    if _is_unclear(answer):
        return _looked(server, pod, uid, (text, wait, answer.status >= 500))
    return Eviction(EvictionState.REFUSED, text)


def _is_unclear(answer: Response) -> bool:
    """Whether an answer does not say what became of an eviction, or another may come."""
    never = answer.too_large or _TWO_BUDGETS in answer.message
    return not never and (answer.status == 409 or answer.status >= 500)


def _looked(server: Writer, pod: Key, uid: str, failed: _Failed) -> Eviction | _Failed:
    """Read the pod after an answer that does not say what became of it."""
    try:
        answer = server.send("GET", pod_path(*pod), timeout=_PATIENCE)
    except Unanswered:
        return failed
    if answer.status == 404:
        return _EVICTED
    if answer.status != 200:
        return failed
    found = read_view(answer.text, PodView)
    gone = found.metadata.uid != uid or found.metadata.deletion_timestamp is not None
    return _EVICTED if gone else failed


class _StatusCause(msgspec.Struct):
    reason: str = ""


class _Details(msgspec.Struct):
    causes: list[_StatusCause] | None = None


class _Status(msgspec.Struct):
    details: _Details | None = None


def _of_budget(answer: Response) -> bool:
    """Whether a disruption budget is why the server refuses; a server that has no time names none."""
    try:
        details = msgspec.json.decode(answer.text, type=_Status).details
    except msgspec.DecodeError:
        return False
    return any(each.reason == "DisruptionBudget" for each in (details.causes or () if details is not None else ()))
