"""Room made for a gang: pods evicted one by one, and nodes nominated for the gaining pods.

All evictions are first asked for with ``dryRun``, and pods of a budget come first, so that refusals come before losses.
Each pod is read before its eviction: a later mark that protects it (D2) ends the plan.

An eviction goes by ``pods/NAME/eviction`` (policy/v1), so that the server keeps disruption budgets, and carries the uid
of the pod. 404 means gone. 409, 5xx and no answer make the pod be read. 429 is tried again, but for a budget only once
something is evicted. Other answers are refusals, and so is 500 of a pod that is too large or has two budgets.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from placer.kube.marks import protections
from placer.kube.pod import TERMINAL_PHASES
from placer.passes.cluster.reading.client import STRATEGIC_MERGE, Response, Unanswered, Writer
from placer.passes.cluster.reading.snapshot import Identity
from placer.passes.cluster.reading.views import ObjectView, PodView, read_view
from placer.passes.cluster.writing.binding import pod_path
from placer.problem import Instance, Key

__all__ = ["Departures", "EvictionOptions", "evict_pods", "evictions_refused", "in_turn", "nominate"]

#: Seconds for which a server without time may have us wait before anything is evicted.
_BUSY = 10.0
#: Seconds to wait for an answer, and between two tries.
_PATIENCE, _PAUSE = 5.0, 0.5
#: The server's words, with a 500, about a pod that two budgets mean.
_TWO_BUDGETS = "more than one PodDisruptionBudget"
#: A try that came to nothing: the reason, seconds until another one (None: there is none), and whether the eviction may
#: happen all the same.
_Failed = tuple[str, float | None, bool]


@dataclass(frozen=True, slots=True)
class EvictionOptions:
    """Patience of evictions."""

    grace: float = 30.0  #: seconds for which an eviction is tried again after others succeeded
    gone: float = 300.0  #: most seconds until the evicted pods of a step have left, and until moved ones are made again


def in_turn(instance: Instance, pods: Iterable[Key]) -> list[Key]:
    """The pods in the order of their evictions: those of a budget first."""
    meant = {key for budget in instance.budgets if not budget.of_policy for key in budget.pods}
    return sorted(pods, key=lambda key: (key not in meant, key))


def evictions_refused(
    server: Writer,
    pods: Sequence[Key],
    identities: Mapping[Key, Identity],
    forbidden: Callable[[], str | None],
    refused: list[Key],
) -> str | None:
    """A sentence on a pod that the server would not evict; None where it would evict all.

    Parameters
    ----------
    refused
        Gets the pods that would be refused.
    """
    found = None
    for key in pods:
        why = forbidden()
        if why is not None:
            return why
        until = time.monotonic() + (_BUSY if found is None else 0.0)
        failed = _evict(server, key, identities[key].uid, until, dry_run=True)
        if failed is not None:
            found = found or f"Pod {key} cannot be evicted: {failed[0]}"
            refused.append(key)
    return found


def evict_pods(
    server: Writer,
    pods: Sequence[Key],
    identities: Mapping[Key, Identity],
    evicted: list[Key],
    grace: float,
    forbidden: Callable[[], str | None],
    refused: list[Key],
) -> str | None:
    """Evict pods; a sentence on why not all of them, or None.

    Parameters
    ----------
    evicted
        All evictions of the plan so far; gets the pods one by one.
    grace
        Seconds for which a refused one is tried again, after the first success.
    """
    for key in pods:
        why = forbidden() or _marked_since(server, key)
        if why is not None:
            return why
        until = time.monotonic() + (grace if evicted else min(grace, _BUSY))
        failed = _evict(server, key, identities[key].uid, until, insist=bool(evicted))
        if failed is not None:
            refused.append(key)
            reason, _, doubt = failed
            how = "got no answer, and may have happened" if doubt else "was refused"
            return f"the eviction of Pod {key} {how}: {reason}"
        evicted.append(key)
    return None


def _marked_since(server: Writer, key: Key) -> str | None:
    try:
        answer = server.send("GET", pod_path(*key), timeout=_PATIENCE)
    except Unanswered:
        return None
    if answer.status != 200:
        return None
    metadata = read_view(answer.text, ObjectView).metadata
    marks = protections("Pod", metadata.labels, metadata.annotations)
    mark = next((f'{name}: "{value}"' for name, value, protects in marks if protects), None)
    return None if mark is None else f"Pod {key} is not evicted: {mark} protects it by now"


def _evict(
    server: Writer, pod: Key, uid: str, until: float, *, insist: bool = False, dry_run: bool = False
) -> _Failed | None:
    """Evict a pod, trying until the result is known or ``until`` has come; None where it is gone or on its way out.

    With ``insist`` it is also tried again where a budget refuses.
    """
    doubt = False
    while True:
        failed = _tried(server, pod, uid, insist, dry_run)
        if failed is None:
            return None
        reason, wait, may_happen = failed
        doubt |= may_happen and not dry_run
        if wait is None or time.monotonic() + wait > until:
            return reason, None, doubt and wait is not None
        time.sleep(wait)


def _tried(server: Writer, pod: Key, uid: str, insist: bool, dry_run: bool) -> _Failed | None:
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
        return None
    if answer.status == 429 and (insist or not _of_budget(answer)):
        return text, wait, False
    if _is_unclear(answer):
        return _looked(server, pod, uid, (text, wait, answer.status >= 500))
    return text, None, False


def _is_unclear(answer: Response) -> bool:
    never = answer.too_large or _TWO_BUDGETS in answer.message
    return not never and (answer.status == 409 or answer.status >= 500)


def _looked(server: Writer, pod: Key, uid: str, failed: _Failed) -> _Failed | None:
    try:
        answer = server.send("GET", pod_path(*pod), timeout=_PATIENCE)
    except Unanswered:
        return failed
    if answer.status == 404:
        return None
    if answer.status != 200:
        return failed
    found = read_view(answer.text, PodView)
    gone = found.metadata.uid != uid or found.metadata.deletion_timestamp is not None
    return None if gone else failed


def _of_budget(answer: Response) -> bool:
    """Whether the server refuses for a disruption budget; one that has no time names none."""
    try:
        causes = msgspec.json.decode(answer.text)["details"]["causes"]
        return any(each.get("reason") == "DisruptionBudget" for each in causes)
    except (msgspec.DecodeError, LookupError, TypeError, AttributeError):
        return False


def nominate(
    server: Writer, nodes: Mapping[Key, str] | Mapping[Key, None], identities: Mapping[Key, Identity]
) -> list[str]:
    """Write nominations, None to remove one, into the status of pods; the troubles, without pods that need none."""
    troubles = []
    for key, node in nodes.items():
        body = {"metadata": {"uid": identities[key].uid}, "status": {"nominatedNodeName": node}}
        try:
            answer = server.send("PATCH", f"{pod_path(*key)}/status", body, kind=STRATEGIC_MERGE)
        except Unanswered as error:
            troubles.append(f"nominatedNodeName of Pod {key}: {error}")
            continue
        if answer.status not in (200, 404, 409):
            troubles.append(f"nominatedNodeName of Pod {key}: {answer.status} {answer.message}")
    return troubles


# ---------------------------------------------------------------------------------------------------------- departures


class Departures:
    """Departures and replacements since a snapshot, for any number of threads.

    An evicted pod holds its room until it is gone or over; a pod of its name with another uid is another pod.

    Parameters
    ----------
    going
        Uids of pods that are to leave.
    known
        Uids of all pods of the snapshot.
    """

    def __init__(self, going: Collection[str], known: Collection[str]) -> None:
        self._standing, self._known = set(going), frozenset(known)
        self._made: dict[str, str] = {}  # uid of a new pod without a node to that of its controller
        self._news = threading.Condition()

    def pod_happened(self, kind: str, item: bytes) -> None:
        """Hear an event of a pod."""
        pod = read_view(item, PodView)
        with self._news:
            self._note(pod, there=kind != "DELETED")
            self._news.notify_all()

    def pods_replaced(self, items: Sequence[bytes]) -> None:
        """Hear the list of all pods."""
        pods = [read_view(item, PodView) for item in items]
        with self._news:
            self._standing &= {pod.metadata.uid for pod in pods}
            self._made.clear()
            for pod in pods:
                self._note(pod, there=True)
            self._news.notify_all()

    def _note(self, pod: PodView, *, there: bool) -> None:
        uid = pod.metadata.uid
        if not there or pod.status.phase in TERMINAL_PHASES:
            self._standing.discard(uid)
        waits = there and not pod.spec.node_name and pod.metadata.deletion_timestamp is None
        if waits and uid not in self._known and pod.controller is not None:
            self._made[uid] = pod.controller.uid
        else:
            self._made.pop(uid, None)

    def standing(self) -> frozenset[str]:
        """Uids of those that are still there."""
        with self._news:
            return frozenset(self._standing)

    def all_made(self, wanted: Mapping[str, int]) -> bool:
        """Whether each controller, by its uid, has made so many waiting pods."""
        made = Counter(self._made.values())
        return all(made[uid] >= count for uid, count in wanted.items())

    def wait(self, seconds: float, until: Callable[[], bool]) -> bool:
        """Wait for a condition that only events change; whether it holds."""
        with self._news:
            return self._news.wait_for(until, seconds)

    def all_gone(self) -> bool:
        """Whether all of them have left."""
        return not self._standing
