"""The condition that kube-scheduler writes for PodGroups of ``scheduling.k8s.io``.

It is about the first scheduling of the gang: True is final. Gangs in a Workload of v1alpha1 are no objects.

Source: kubernetes ``pkg/scheduler/schedule_one_podgroup.go``; KEP-5832.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from placer.passes.cluster.reading.client import Writer
from placer.passes.cluster.reading.paths import segment
from placer.passes.cluster.writing.pod_group_status import PodGroupStatus, change_status, means_the_same
from placer.problem.gangs import UPSTREAM

__all__ = ["write_upstream_pod_group_status"]

#: Versions that may be served, newest first, and what the condition is called there.
_CONDITIONS = {
    "v1beta1": "PodGroupInitiallyScheduled",
    "v1alpha3": "PodGroupInitiallyScheduled",
    "v1alpha2": "PodGroupScheduled",
}


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
