"""Status of a PodGroup of any API, and the condition that kube-scheduler writes for those of ``scheduling.k8s.io``.

An object is read again before it is written, so that nothing is written twice; the patch names the version that was
read. The condition is about the first scheduling of the gang: True is final. Gangs in a Workload of v1alpha1 are no
objects. Source: kubernetes ``pkg/scheduler/schedule_one_podgroup.go``; KEP-5832.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from placer.base.errors import ClusterError
from placer.passes.cluster.reading.client import MERGE, Writer
from placer.passes.cluster.reading.paths import segment
from placer.problem import GroupKey
from placer.problem.gangs import UPSTREAM

__all__ = ["PodGroupStatus", "cause_in", "change_status", "means_the_same", "write_upstream_pod_group_status"]

#: A number with its unit, standing alone: names of nodes and pods keep theirs.
_AMOUNT = re.compile(r"(?<![\w./-])-?[0-9][0-9.,]*(?:[munkKMGTPE]i?)?(?![\w/-])")
#: Where a gang comes nearest to a place, in the words of :mod:`placer.answers.reasons`.
_NEAREST = re.compile(r"; (?:of the nodes with room )?(?:Node \S+ comes nearest: |the roomiest [^(]*\().*", re.DOTALL)
#: Versions that may be served, newest first, and what the condition is called there.
_CONDITIONS = {
    "v1beta1": "PodGroupInitiallyScheduled",
    "v1alpha3": "PodGroupInitiallyScheduled",
    "v1alpha2": "PodGroupScheduled",
}
#: Seconds to wait for an answer.
_PATIENCE = 5.0


@dataclass(frozen=True, slots=True)
class PodGroupStatus:
    """Whether a gang is ready, whether some of its pods run, and why it waits."""

    key: GroupKey
    ready: bool
    some: bool
    reason: str = ""
    message: str = ""


def change_status(
    server: Writer,
    key: GroupKey,
    path: str,
    change: Callable[[Mapping[str, Any]], dict[str, Any] | None],
    subresource: str = "",
) -> bool | None:
    """Change the status of a PodGroup; whether it was changed, None where there is no such object.

    Parameters
    ----------
    change
        From the object to the changes of its status; None: nothing.

    Raises
    ------
    ClusterError
        The server refuses, or does not answer.
    """
    answer = server.send("GET", path, timeout=_PATIENCE)
    if answer.status == 404:
        return None
    if answer.status != 200:
        raise ClusterError(f"{key}: {answer.status} {answer.message}")
    group = msgspec.json.decode(answer.text)
    patch = change(group)
    if patch is None:
        return False
    body = {"metadata": {"resourceVersion": group["metadata"]["resourceVersion"]}, "status": patch}
    sent = server.send("PATCH", path + subresource, body, kind=MERGE, timeout=_PATIENCE)
    if sent.status in (404, 409):
        return False
    if sent.status >= 300:
        raise ClusterError(f"{key}: {sent.status} {sent.message}")
    return True


def cause_in(message: str) -> str:
    """The cause in a message, without numbers and the nearest node or domain, which change all the time.

    Examples
    --------
    >>> cause_in("cpu 60 of 40 left") == cause_in("cpu 60500m of 1.5 left")
    True
    >>> cause_in("needs 8 pods in one HyperNode; the roomiest (leaf-7, tier 1) has room for 7")
    'needs # pods in one HyperNode'
    """
    return _AMOUNT.sub("#", _NEAREST.sub("", message))


def means_the_same(wanted: Mapping[str, Any], there: Mapping[str, Any]) -> bool:
    """Whether a condition equals the wanted one, or names the same cause."""
    others = {key: text for key, text in wanted.items() if key != "message"}
    return others.items() <= there.items() and cause_in(there.get("message") or "") == cause_in(wanted["message"])


def write_upstream_pod_group_status(server: Writer, wanted: PodGroupStatus, now: str) -> bool:
    """Write the condition of a PodGroup; whether something was written.

    Raises
    ------
    ClusterError
        The server refuses, or does not answer.
    """
    if "/" in wanted.key.name:
        return False
    for version, name in _CONDITIONS.items():
        place = f"namespaces/{segment(wanted.key.namespace)}/podgroups/{segment(wanted.key.name)}"
        path = f"/apis/{UPSTREAM}/{version}/{place}"
        written = change_status(server, wanted.key, path, partial(_change, wanted, name, now), "/status")
        if written is not None:
            return written
    return False


def _change(wanted: PodGroupStatus, name: str, now: str, group: Mapping[str, Any]) -> dict[str, Any] | None:
    conditions = dict(group.get("status") or {}).get("conditions") or []
    there = {each.get("type"): each for each in conditions}
    before, condition = there.get(name, {}), _condition(wanted, name)
    if before.get("status") == "True" or not condition["reason"] or means_the_same(condition, before):
        return None
    changed = before.get("status") != condition["status"]
    condition["observedGeneration"] = group["metadata"].get("generation", 0)
    condition["lastTransitionTime"] = now if changed else before["lastTransitionTime"]
    return {"conditions": list({**there, name: condition}.values())}


def _condition(wanted: PodGroupStatus, name: str) -> dict[str, Any]:
    """A group without a minimum was scheduled when a pod of it was."""
    if wanted.ready and wanted.some:
        return {"type": name, "status": "True", "reason": "Scheduled", "message": ""}
    return {"type": name, "status": "False", "reason": wanted.reason, "message": wanted.message}
