"""Room made for a gang: pods evicted one by one, and nodes nominated for the gaining pods.

All evictions are first asked for with ``dryRun``, and pods of a budget come first, so that refusals come before losses.
Each pod is read before its eviction: a later mark that protects it (D2) ends the plan.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from placer.kube.marks import protections
from placer.passes.cluster.reading.client import STRATEGIC_MERGE, Unanswered, Writer
from placer.passes.cluster.reading.snapshot import Identity
from placer.passes.cluster.reading.views import ObjectView, read_view
from placer.passes.cluster.writing.binding import pod_path
from placer.passes.cluster.writing.eviction import EvictionState, evict_pod
from placer.problem import Instance, Key

__all__ = ["EvictionOptions", "evict_pods", "evictions_refused", "in_turn", "nominate"]

#: Seconds for which a server without time may have us wait before anything is evicted.
_BUSY = 10.0
#: Seconds to wait for a pod that is read.
_PATIENCE = 5.0


@dataclass(frozen=True, slots=True)
class EvictionOptions:
    """Patience of evictions.

    Parameters
    ----------
    grace
        Seconds for which an eviction is tried again after others succeeded.
    gone
        Most seconds until the evicted pods of a step have left, and until moved ones are made again.
    """

    grace: float = 30.0
    gone: float = 300.0


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
    forbidden
        A sentence on why nothing more may be asked, or None.
    refused
        Gets the pods that would be refused.
    """
    found = None
    for key in pods:
        why = forbidden()
        if why is not None:
            return why
        until = time.monotonic() + (_BUSY if found is None else 0.0)
        tried = evict_pod(server, key, identities[key].uid, until, dry_run=True)
        if tried.state is not EvictionState.EVICTED:
            found = found or f"Pod {key} cannot be evicted: {tried.reason}"
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
    forbidden
        A sentence on why nothing more may be evicted, or None.
    refused
        Gets a pod that the server does not evict.
    """
    for key in pods:
        why = forbidden() or _marked_since(server, key)
        if why is not None:
            return why
        until = time.monotonic() + (grace if evicted else min(grace, _BUSY))
        tried = evict_pod(server, key, identities[key].uid, until, insist=bool(evicted))
        if tried.state is not EvictionState.EVICTED:
            refused.append(key)
            how = "was refused" if tried.state is EvictionState.REFUSED else "got no answer, and may have happened"
            return f"the eviction of Pod {key} {how}: {tried.reason}"
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
