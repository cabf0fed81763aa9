"""One binding: what is sent, what each answer means, what is tried again.

The binding carries the uid of the pod that was decided upon, so a pod made anew under the name does not get the node.
It goes to ``pods/NAME/binding``: the older resource ``bindings`` does not look at the uid.

========================  =============================================================================================
answer                    what it means
========================  =============================================================================================
200, 201                  bound
409                       it has a node, is being deleted, has gates or another uid: the pod is read, and says which;
                          where it has our node it was our own binding, the answer to which got lost
404, 422, 403, other 4xx  it is gone; a field is not accepted; not allowed: not tried again
429                       tried again after the seconds that the server asks for
401, 5xx, no answer       it may have happened: the pod is read first, and what still has no node is tried again
========================  =============================================================================================
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from urllib.parse import quote

import msgspec

from placer.cluster.planning.binding_plan import PlannedBinding
from placer.cluster.reading.client import Answer, Unanswered, Writer
from placer.cluster.reading.views import PodView

__all__ = ["NUMA_ZONES", "BindingResult", "BindingState", "bind_pod", "pod_path"]

#: Annotation of a pod: the NUMA zones that the plan counts on, in the order of the node's.
NUMA_ZONES = "placer.dev/numa-zones"

#: Seconds to wait for the answer to a binding: less than what is left after SIGTERM.
_PATIENCE = 5.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 2.0
#: Most seconds to wait where the server says how long.
_LONGEST_WAIT = 10.0


class BindingState(Enum):
    """What became of a binding."""

    BOUND = "bound"
    REFUSED = "refused"  #: it did not happen, and will not
    UNKNOWN = "unknown"  #: the server did not tell in time


@dataclass(frozen=True, slots=True)
class BindingResult:
    """A binding that was tried; ``reason`` says why it is not BOUND, in one sentence."""

    bind: PlannedBinding
    state: BindingState
    reason: str = ""


def pod_path(namespace: str, name: str) -> str:
    """Where a pod is."""
    return f"/api/v1/namespaces/{quote(namespace)}/pods/{quote(name)}"


def bind_pod(
    server: Writer,
    bind: PlannedBinding,
    deadline: Callable[[], float],
    *,
    dry_run: bool = False,
    sleep: Callable[[float], None] = time.sleep,
) -> BindingResult:
    """Bind a pod; tries until it is known what became of it, or the deadline has come.

    Parameters
    ----------
    server
        Where.
    bind
        What.
    deadline
        Gives the ``time.monotonic()`` until which to try; it may move meanwhile.
    dry_run
        Let the server do all but keep it.
    sleep
        Waits; tests put something faster here.
    """
    pause = _FIRST_PAUSE
    doubtful, trouble = False, "it was not tried in time"
    while time.monotonic() < deadline():
        made = _look(server, bind) if doubtful else None
        if made is not None and made.state is not BindingState.UNKNOWN:
            return made
        wait = None
        if made is None:
            answer = _post(server, bind, dry_run)
            if isinstance(answer, BindingResult):
                return answer
            trouble, wait, doubtful = answer
        sleep(max(0.0, min(_seconds(pause, wait), deadline() - time.monotonic())))
        pause = min(2 * pause, _LONGEST_PAUSE)
    made = _look(server, bind) if doubtful else None
    if made is None:
        return BindingResult(bind, BindingState.REFUSED, trouble)
    return made if made.state is not BindingState.UNKNOWN else BindingResult(bind, BindingState.UNKNOWN, trouble)


def _seconds(pause: float, wait: float | None) -> float:
    """How long to wait before the next try; ``wait`` is what the server asks for, if it does."""
    return pause * random.uniform(0.8, 1.2) if wait is None else min(wait, _LONGEST_WAIT)


def _post(server: Writer, bind: PlannedBinding, dry_run: bool) -> BindingResult | tuple[str, float | None, bool]:
    """Try once: what became of it; or the trouble, the seconds to wait, and whether it may have happened."""
    path = f"{pod_path(*bind.pod)}/binding"
    parameters = {"dryRun": "All"} if dry_run else None
    try:
        answer = server.send("POST", path, _body(bind), parameters=parameters, timeout=_PATIENCE)
    except Unanswered as error:
        return str(error), None, True
    if answer.status in (200, 201):
        return BindingResult(bind, BindingState.BOUND)
    trouble = f"{answer.status} {answer.message}"
    if answer.status == 409:
        made = _look(server, bind)
        return (
            made if made is not None and made.state is not BindingState.UNKNOWN else (trouble, None, made is not None)
        )
    if answer.status == 429:
        return trouble, answer.again_after, False
    if answer.status == 401 or answer.status >= 500:
        return trouble, answer.again_after, True
    return BindingResult(bind, BindingState.REFUSED, trouble)


def _look(server: Writer, bind: PlannedBinding) -> BindingResult | None:
    """Read the pod: what became of the binding, UNKNOWN where no answer comes; None: it can still be bound."""
    try:
        answer: Answer = server.send("GET", pod_path(*bind.pod), timeout=_PATIENCE)
    except Unanswered as error:
        return BindingResult(bind, BindingState.UNKNOWN, str(error))
    if answer.status == 404:
        return BindingResult(bind, BindingState.REFUSED, "it is gone")
    if answer.status != 200:
        return BindingResult(bind, BindingState.UNKNOWN, f"{answer.status} {answer.message}")
    pod = msgspec.json.decode(answer.text, type=PodView)
    if pod.metadata.uid != bind.uid:
        return BindingResult(bind, BindingState.REFUSED, "it was made anew under its name")
    if pod.spec.node_name == bind.node:
        return BindingResult(bind, BindingState.BOUND)
    if pod.spec.node_name:
        return BindingResult(bind, BindingState.REFUSED, f"somebody else bound it to Node {pod.spec.node_name}")
    if pod.metadata.deletion_timestamp is not None:
        return BindingResult(bind, BindingState.REFUSED, "it is being deleted")
    if pod.spec.scheduling_gates:
        return BindingResult(bind, BindingState.REFUSED, "it has scheduling gates")
    return None


def _body(bind: PlannedBinding) -> dict[str, object]:
    metadata: dict[str, object] = {"name": bind.pod.name, "namespace": bind.pod.namespace, "uid": bind.uid}
    if bind.numa_zones:
        metadata["annotations"] = {NUMA_ZONES: ",".join(bind.numa_zones)}
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": metadata,
        "target": {"apiVersion": "v1", "kind": "Node", "name": bind.node},
    }
