"""Status of Volcano's PodGroups, and what its action ``enqueue`` does for them.

Volcano's own scheduler does both, so placer must not where it runs. Its PodGroup has no status subresource: status
is patched with the object. The Job controller makes the pods of a job only once its PodGroup is no longer Pending.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import msgspec

from placer.cluster.reading.client import MERGE, Unanswered, Unlisted, Writer, pages
from placer.cluster.reading.views import Page
from placer.errors import ClusterError
from placer.instance import GroupKey

__all__ = ["PodGroupStatus", "enqueue_pod_groups", "group_path", "write_pod_group_status"]

_GROUPS = "/apis/scheduling.volcano.sh/v1beta1"
_JOBS = "/apis/batch.volcano.sh/v1alpha1/jobs"
_NAMES = ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name")
#: Seconds to wait for an answer.
_PATIENCE = 5.0


@dataclass(frozen=True, slots=True)
class PodGroupStatus:
    """What a PodGroup should say: whether its gang is ready, whether something of it runs, and why it waits."""

    key: GroupKey
    ready: bool
    some: bool
    reason: str
    message: str


def group_path(key: GroupKey) -> str:
    """Where a PodGroup of Volcano is."""
    return f"{_GROUPS}/namespaces/{quote(key.namespace)}/podgroups/{quote(key.name)}"


def write_pod_group_status(server: Writer, wanted: PodGroupStatus, now: str) -> bool:
    """Write phase and condition of a PodGroup where they are not so already; whether something was written.

    Raises
    ------
    ClusterError
        The server refuses, or does not answer.
    """
    answer = server.send("GET", group_path(wanted.key), timeout=_PATIENCE)
    if answer.status == 404:
        return False
    if answer.status != 200:
        raise ClusterError(f"{wanted.key}: {answer.status} {answer.message}")
    group = msgspec.json.decode(answer.text)
    status = group.get("status") or {}
    patch = _status(status, wanted, now)
    if patch is None:
        return False
    metadata = {"resourceVersion": group["metadata"]["resourceVersion"]}  # no other writer's change is lost
    sent = server.send(
        "PATCH", group_path(wanted.key), {"metadata": metadata, "status": patch}, kind=MERGE, timeout=_PATIENCE
    )
    if sent.status in (404, 409):
        return False
    if sent.status >= 300:
        raise ClusterError(f"{wanted.key}: {sent.status} {sent.message}")
    return True


def _status(status: dict[str, Any], wanted: PodGroupStatus, now: str) -> dict[str, Any] | None:
    """Phase and conditions as they should be; None where they are so."""
    phase = _phase(status.get("phase") or "Pending", wanted)
    condition = {
        "type": "Scheduled" if wanted.ready else "Unschedulable",
        "status": "True",
        "reason": wanted.reason,
        "message": wanted.message,
    }
    conditions = status.get("conditions") or []
    if phase == status.get("phase") and any(condition.items() <= each.items() for each in conditions):
        return None
    others = [each for each in conditions if each.get("type") not in ("Scheduled", "Unschedulable")]
    stamp = {"transitionID": str(uuid.uuid4()), "lastTransitionTime": now}
    return {"phase": phase, "conditions": [*others, condition | stamp]}


def _phase(phase: str, wanted: PodGroupStatus) -> str:
    """The phase after another one: a group that is not ready goes back from Running, and never from Inqueue."""
    if wanted.ready:
        return "Running"
    if phase in ("Running", "Unknown"):
        return "Unknown" if wanted.some else "Pending"
    return phase


# ------------------------------------------------------------------------------------------------------------- enqueue


def enqueue_pod_groups(server: Writer, scheduler_name: str) -> int:
    """Move PodGroups of our pods and of our jobs from Pending to Inqueue.

    Parameters
    ----------
    server
        Where; a cluster without Volcano's kinds has none of them.
    scheduler_name
        Whose pods and jobs are ours.

    Returns
    -------
    int
        How many were moved.
    """
    waiting = [each for each in _listed(server, f"{_GROUPS}/podgroups") if _is_pending(each)]
    if not waiting:
        return 0
    pods = _listed(server, "/api/v1/pods", f"spec.nodeName=,spec.schedulerName={scheduler_name}")
    named = {name for pod in pods for name in _named_by(pod["metadata"])}
    jobs = _jobs_of(server, scheduler_name)
    return sum(_enqueue(server, group) for group in waiting if _is_ours(group, named, jobs))


def _jobs_of(server: Writer, scheduler_name: str) -> set[str]:
    """Uids of the jobs of a scheduler."""
    jobs = _listed(server, _JOBS)
    return {job["metadata"]["uid"] for job in jobs if (job.get("spec") or {}).get("schedulerName") == scheduler_name}


def _is_pending(group: dict[str, Any]) -> bool:
    return (group.get("status") or {}).get("phase") in (None, "", "Pending")


def _named_by(pod: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    """Namespace and name of the groups that a pod's annotations may name."""
    notes = pod.get("annotations") or {}
    return ((pod.get("namespace"), notes.get(key)) for key in _NAMES)


def _is_ours(group: dict[str, Any], named: set[tuple[Any, Any]], jobs: set[str]) -> bool:
    metadata = group["metadata"]
    owners = {each.get("uid") for each in metadata.get("ownerReferences") or ()}
    return (metadata["namespace"], metadata["name"]) in named or not owners.isdisjoint(jobs)


def _enqueue(server: Writer, group: dict[str, Any]) -> bool:
    metadata = group["metadata"]
    path = group_path(GroupKey("scheduling.volcano.sh", metadata["namespace"], metadata["name"]))
    body = {"metadata": {"resourceVersion": metadata["resourceVersion"]}, "status": {"phase": "Inqueue"}}
    try:
        answer = server.send("PATCH", path, body, kind=MERGE)
    except Unanswered:
        return False  # the next pass finds it as it is
    if answer.status not in (200, 404, 409):
        raise ClusterError(f"{path}: {answer.status} {answer.message}")
    return answer.status == 200


def _listed(server: Writer, path: str, selector: str = "") -> Iterator[dict[str, Any]]:
    """Objects of a list; none where the server does not know the kind."""
    decode = msgspec.json.Decoder(Page[dict[str, Any]]).decode
    with suppress(Unlisted):
        for page in pages(server.get, path, decode, selector):
            yield from page.items or ()
