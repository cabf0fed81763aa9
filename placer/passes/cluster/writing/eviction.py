"""One eviction, by ``pods/NAME/eviction`` (policy/v1), so that the server keeps disruption budgets.

It carries the uid of the pod. 404 means gone. 409, 5xx and no answer make the pod be read. 429 is tried again, but for
a budget on request only. Other answers are refusals, and so is 500 of a pod that is too large or has two budgets.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

import msgspec

from placer.passes.cluster.reading.client import Response, Unanswered, Writer
from placer.passes.cluster.reading.views import PodView, read_view
from placer.passes.cluster.writing.binding import pod_path
from placer.problem import Key

__all__ = ["Eviction", "EvictionState", "evict_pod"]

#: Seconds to wait for an answer, and between two tries.
_PATIENCE, _PAUSE = 5.0, 0.5


class EvictionState(Enum):
    """State of an eviction after its tries."""

    EVICTED = "evicted"  #: it is gone, or on its way out
    REFUSED = "refused"  #: it stays
    UNKNOWN = "unknown"  #: the server did not tell in time


@dataclass(frozen=True, slots=True)
class Eviction:
    """An eviction that was tried; ``reason`` is a sentence on why the pod does not leave."""

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
    """Evict a pod; tries until the result is known, or time is over.

    Parameters
    ----------
    until
        ``time.monotonic()`` of the last try.
    insist
        Also try again where a budget refuses.
    dry_run
        The server evicts nothing.
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
    never = answer.too_large or _TWO_BUDGETS in answer.message
    return not never and (answer.status == 409 or answer.status >= 500)


def _looked(server: Writer, pod: Key, uid: str, failed: _Failed) -> Eviction | _Failed:
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


def _of_budget(answer: Response) -> bool:
    """Whether the server refuses for a disruption budget; one that has no time names none."""
    try:
        causes = msgspec.json.decode(answer.text)["details"]["causes"]
        return any(each.get("reason") == "DisruptionBudget" for each in causes)
    except (msgspec.DecodeError, LookupError, TypeError, AttributeError):
        return False
