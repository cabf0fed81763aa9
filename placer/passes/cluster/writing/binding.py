"""One pod bound, or released where it has the hold gate, so that its own scheduler binds it.

A binding carries uid and resourceVersion, so that no later or changed pod of the name gets the node; ``bindings`` would
ignore the uid, ``pods/NAME/binding`` does not. 409 and 401 make the pod be read, 429 is tried again when the server
says, other 4xx and a too large pod never. After 5xx or no answer the binding is *in doubt*: a proxy may deliver it
late. At the end doubt is fenced: a write to the pod's status voids every binding of an earlier version, and removes a
nomination. Where that fails too, the binding is UNKNOWN, and its room is kept until the pod is seen.

A release writes first ``status.nominatedNodeName``, which no tenant may write, and by which kube-scheduler keeps the
room. Then one PATCH writes ``matchFields`` with the node's name in every term, and no gates; the API server allows
additions to terms alone. A gate cannot be put back.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from placer.passes.cluster.planning.binding_plan import PlannedBinding
from placer.passes.cluster.reading.client import MERGE, STRATEGIC_MERGE, Response, Unanswered, Writer
from placer.passes.cluster.reading.paths import segment
from placer.passes.cluster.reading.views import NODE_FIELD, PodView, read_view
from placer.problem import Key

__all__ = ["NUMA_ZONES", "BindingResult", "BindingState", "bind_pod", "is_given", "patch_status", "pod_path", "release"]

#: Annotation of a pod: the NUMA zones that the plan counts on, in the order of the node's.
NUMA_ZONES = "placer.dev/numa-zones"

#: Seconds to wait for the answer to a binding: less than what is left after SIGTERM.
_PATIENCE = 5.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 2.0
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


class BindingState(Enum):
    """State of a binding after its tries."""

    BOUND = "bound"
    REFUSED = "refused"  #: it did not happen, and will not
    UNKNOWN = "unknown"  #: the server did not tell in time


@dataclass(frozen=True, slots=True)
class BindingResult:
    """A binding that was tried; ``reason`` is a sentence on why it is not BOUND."""

    bind: PlannedBinding
    state: BindingState
    reason: str = ""


def pod_path(namespace: str, name: str) -> str:
    """The path of a pod."""
    return f"/api/v1/namespaces/{segment(namespace)}/pods/{segment(name)}"


def patch_status(
    server: Writer,
    pod: Key,
    which: Mapping[str, str],
    status: Mapping[str, object],
    parameters: Mapping[str, str] | None = None,
    timeout: float = _PATIENCE,
) -> Response:
    """Write to the status of the pod that has a uid, and perhaps a version (``which``); lists are merged by key."""
    path, body = f"{pod_path(*pod)}/status", {"metadata": which, "status": status}
    return server.send("PATCH", path, body, parameters=parameters, kind=STRATEGIC_MERGE, timeout=timeout)


@dataclass(frozen=True, slots=True)
class _Failure:
    """A try without success, or without a known one."""

    trouble: str
    wait: float | None = None  #: seconds that the server asks for
    look: bool = False  #: whether the pod is read before the next try
    doubt: bool = False  #: whether the binding may still happen
    final: bool = False  #: whether there is no next try


def bind_pod(
    server: Writer,
    bind: PlannedBinding,
    deadline: Callable[[], float],
    *,
    refusal: Callable[[], str | None] = lambda: None,
    dry_run: bool = False,
    sleep: Callable[[float], None] = time.sleep,
) -> BindingResult:
    """Bind a pod; tries until the result is known, or the deadline has come.

    Parameters
    ----------
    deadline
        Gives the ``time.monotonic()`` of the last try; it may move meanwhile.
    refusal
        Asked before each try: a sentence on why it may no longer be made, None where it may.
    """
    pause, doubt, failure, version = _FIRST_PAUSE, False, _Failure("it was not tried in time"), bind.resource_version

    while not failure.final and time.monotonic() < deadline():
        made = _look(server, bind) if failure.look else version
        if isinstance(made, BindingResult):
            return made
        wait = None
        if isinstance(made, str):
            version = made
            tried = _try(server, bind, version, refusal, deadline, dry_run)
            if isinstance(tried, BindingResult):
                return tried
            failure, doubt, wait = tried, doubt or tried.doubt, tried.wait
        if not failure.final:
            sleep(max(0.0, min(_seconds(pause, wait), deadline() - time.monotonic())))
            pause = min(2 * pause, _LONGEST_PAUSE)
    return _given_up(server, bind, failure, doubt and not dry_run)


def _given_up(server: Writer, bind: PlannedBinding, failure: _Failure, doubt: bool) -> BindingResult:
    refused = BindingResult(bind, BindingState.REFUSED, failure.trouble)
    if not (doubt or failure.look):
        return refused
    made = _fence(server, bind, failure.trouble) if doubt else _look(server, bind)
    if made is None:
        return BindingResult(bind, BindingState.UNKNOWN, failure.trouble)
    return refused if isinstance(made, str) else made


def _seconds(pause: float, wait: float | None) -> float:
    return pause * random.uniform(0.8, 1.2) if wait is None else wait * random.uniform(1.0, 1.1)


def _try(
    server: Writer,
    bind: PlannedBinding,
    version: str,
    refusal: Callable[[], str | None],
    deadline: Callable[[], float],
    dry_run: bool,
) -> BindingResult | _Failure:
    """Try once, if that is still allowed.

    A gate cannot be put back, and the answer to a nomination may take seconds, so the refusal is asked for before each.
    """

    def stopped() -> str | None:
        return refusal() if time.monotonic() < deadline() else "its time was over before all of it was sent"

    why = stopped()  # to read the pod, and to be asked again, may have taken seconds since it was known to be in time
    return _Failure(why, final=True) if why is not None else _post(server, bind, version, dry_run, stopped)


def _post(
    server: Writer, bind: PlannedBinding, version: str, dry_run: bool, stopped: Callable[[], str | None]
) -> BindingResult | _Failure:
    path, nominated = pod_path(*bind.pod), False
    options: dict[str, Any] = {"parameters": {"dryRun": "All"} if dry_run else None, "timeout": _PATIENCE}
    try:
        if bind.by_release:
            status = {"nominatedNodeName": bind.node}
            answer = patch_status(server, bind.pod, _which(bind, version), status, **options)
            nominated = answer.status == 200
            if nominated:
                why = stopped()
                if why is not None:
                    return _Failure(why, look=True, doubt=True, final=True)
                answer = server.send("PATCH", path, release(bind, answer.text, _notes(bind)), kind=MERGE, **options)
        else:
            answer = server.send("POST", f"{path}/binding", _body(bind, version), **options)
    except Unanswered as error:
        return _Failure(error.why, look=True, doubt=error.sent or nominated)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        return _Failure(f"the answer is no pod: {error}", look=True, doubt=True)
    return _answered(bind, answer, nominated)


def _answered(bind: PlannedBinding, answer: Response, nominated: bool) -> BindingResult | _Failure:
    if answer.status in (200, 201):
        return BindingResult(bind, BindingState.BOUND)
    trouble = f"{answer.status} {answer.message}"
    if answer.too_large:
        return _Failure(trouble, doubt=nominated, final=True)
    if answer.status in (401, 409):
        return _Failure(trouble, answer.again_after, look=True, doubt=nominated)
    if answer.status == 429:
        return _Failure(trouble, answer.again_after, look=nominated, doubt=nominated)
    if answer.status >= 500:
        return _Failure(trouble, answer.again_after, look=True, doubt=True)
    return _Failure(trouble, doubt=nominated, final=True)


def _look(server: Writer, bind: PlannedBinding) -> BindingResult | str | None:
    """The result of the binding by the pod itself; its version where it can be bound; None without an answer."""
    try:
        answer = server.send("GET", pod_path(*bind.pod), timeout=_PATIENCE)
    except Unanswered:
        return None
    return _seen(answer, bind)


def _fence(server: Writer, bind: PlannedBinding, trouble: str) -> BindingResult | str | None:
    """Write to the pod, so that no binding of an earlier version can be made; result as of :func:`_look`."""
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "SchedulingGated" if bind.by_release else "SchedulerError",
        "message": f"not bound to Node {bind.node}: {trouble} ({time.time_ns():x})",  # no two are the same
    }
    status: dict[str, object] = {"conditions": [condition]} | ({"nominatedNodeName": None} if bind.by_release else {})
    try:
        before = _look(server, bind)
        if not isinstance(before, str):
            return before
        answer = patch_status(server, bind.pod, {"uid": bind.uid}, status)
    except Unanswered:
        return None
    if answer.status == 422:  # of an admission policy (deploy/base), where the pod has a node by now
        made = _look(server, bind)
        return None if isinstance(made, str) else made
    return _look(server, bind) if answer.status == 409 else _seen(answer, bind)


def _seen(answer: Response, bind: PlannedBinding) -> BindingResult | str | None:
    if answer.status not in (200, 404):
        return None
    pod = read_view(answer.text, PodView) if answer.status == 200 else None
    if pod is not None and pod.metadata.uid == bind.uid and is_given(pod, bind):
        return BindingResult(bind, BindingState.BOUND)
    why = _why_not(pod, bind)
    if why or pod is None:
        return BindingResult(bind, BindingState.REFUSED, why)
    return pod.metadata.resource_version


def is_given(pod: PodView, bind: PlannedBinding) -> bool:
    """Whether a pod has the node of its binding, or was released for it."""
    released = bind.by_release and pod.waits and not pod.spec.scheduling_gates and pod.only_node == bind.node
    return released or pod.spec.node_name == bind.node


def _why_not(pod: PodView | None, bind: PlannedBinding) -> str:
    """Why a pod, None where it is not there, can no longer be bound; empty where it can."""
    if pod is None:
        return "it is gone"
    if pod.metadata.uid != bind.uid:
        return "another pod has its name now"
    if pod.spec.node_name:
        return f"another client bound it to Node {pod.spec.node_name}"
    if pod.metadata.deletion_timestamp is not None:
        return "it is being deleted"
    if bind.by_release and not pod.spec.scheduling_gates:
        return "another client took its scheduling gate away"
    if bind.by_release and pod.is_on_hold:
        return ""
    return "it has scheduling gates" if pod.spec.scheduling_gates else ""


def _notes(bind: PlannedBinding) -> dict[str, str]:
    return {NUMA_ZONES: ",".join(bind.numa_zones)} if bind.numa_zones else {}


def _body(bind: PlannedBinding, version: str) -> dict[str, object]:
    metadata: dict[str, object] = {"name": bind.pod.name, "namespace": bind.pod.namespace, "uid": bind.uid}
    if version:
        metadata["resourceVersion"] = version
    if bind.numa_zones:
        metadata["annotations"] = _notes(bind)
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": metadata,
        "target": {"apiVersion": "v1", "kind": "Node", "name": bind.node},
    }


def release(bind: PlannedBinding, text: bytes, annotations: Mapping[str, str]) -> dict[str, Any]:
    """The JSON merge patch that releases a pod, given whole as ``text``, with additional annotations."""
    pod = json.loads(text)
    metadata: dict[str, Any] = _which(bind, pod["metadata"]["resourceVersion"])
    if annotations:
        metadata["annotations"] = dict(annotations)
    affinity = ((pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED) or {}
    terms = [_narrowed(term, bind.node) for term in affinity.get("nodeSelectorTerms") or [{"matchFields": []}]]
    required = {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": terms}}}
    return {"metadata": metadata, "spec": {"affinity": required, "schedulingGates": None}}


def _which(bind: PlannedBinding, version: str) -> dict[str, str]:
    return {"uid": bind.uid} | ({"resourceVersion": version} if version else {})


def _narrowed(term: Mapping[str, Any], node: str) -> dict[str, Any]:
    """A term that matches no other node; an empty one is kept, since it matches nothing."""
    if not term:
        return {}
    name = {"key": NODE_FIELD, "operator": "In", "values": [node]}
    fields = term.get("matchFields") or []
    return {**term, "matchFields": [*fields, *([] if name in fields else [name])]}
