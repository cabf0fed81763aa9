"""Status of Volcano's PodGroups, and its action ``enqueue``.

Volcano's own scheduler does both, so placer must not where it runs. Its PodGroup has no status subresource. The Job
controller makes pods only once the PodGroup of a job is no longer Pending.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from placer.passes.cluster.reading.client import MERGE, Unanswered, Unlisted, Writer, listed
from placer.passes.cluster.reading.paths import segment
from placer.passes.cluster.writing.pod_group_status import PodGroupStatus, change_status, means_the_same
from placer.problem import GroupKey
from placer.problem.gangs import GROUP_ANNOTATIONS, VOLCANO

__all__ = [
    "Enqueued",
    "enqueue_pod_groups",
    "group_path",
    "write_pod_group_status",
]

_GROUPS = f"/apis/{VOLCANO}/v1beta1"
_JOBS = "/apis/batch.volcano.sh/v1alpha1/jobs"


@dataclass(slots=True)
class Enqueued:
    """Number of PodGroups moved to Inqueue, and refusals."""

    count: int = 0
    troubles: list[str] = field(default_factory=list)


def group_path(key: GroupKey) -> str:
    """The path of a PodGroup of Volcano."""
    return f"{_GROUPS}/namespaces/{segment(key.namespace)}/podgroups/{segment(key.name)}"


def write_pod_group_status(server: Writer, wanted: PodGroupStatus, now: str) -> bool:
    """Write phase and condition of a PodGroup; whether something was written.

    Raises
    ------
    ClusterError
        The server refuses, or does not answer.
    """
    changed = change_status(
        server, wanted.key, group_path(wanted.key), lambda group: _status(group.get("status") or {}, wanted, now)
    )
    return bool(changed)


def _status(status: dict[str, Any], wanted: PodGroupStatus, now: str) -> dict[str, Any] | None:
    phase = _phase(status.get("phase") or "Pending", wanted)
    condition = {"type": "Unschedulable", "reason": "NotEnoughResources", "message": wanted.message, "status": "True"}
    if wanted.ready:
        condition |= {"type": "Scheduled", "reason": "tasks in gang are ready to be scheduled", "message": ""}
    conditions = status.get("conditions") or []
    if phase == status.get("phase") and any(means_the_same(condition, each) for each in conditions):
        return None
    others = [each for each in conditions if each.get("type") not in ("Scheduled", "Unschedulable")]
    stamp = {"transitionID": str(uuid.uuid4()), "lastTransitionTime": now}
    return {"phase": phase, "conditions": [*others, condition | stamp]}


def _phase(phase: str, wanted: PodGroupStatus) -> str:
    """As in Volcano: a group with running pods that is not ready is Unknown, and none returns from Inqueue."""
    if wanted.ready or wanted.some:
        return "Running" if wanted.ready else "Unknown"
    return "Pending" if phase in ("Running", "Unknown") else phase


# ------------------------------------------------------------------------------------------------------------- enqueue


def enqueue_pod_groups(server: Writer, scheduler_name: str, admits: Callable[[str], bool] = lambda _: True) -> Enqueued:
    """Move PodGroups of our pods and jobs from Pending to Inqueue, in namespaces that ``admits`` allows."""
    done = Enqueued()
    waiting = [
        each
        for each in _listed(server, f"{_GROUPS}/podgroups")
        if (each.get("status") or {}).get("phase") in (None, "", "Pending") and admits(each["metadata"]["namespace"])
    ]
    if not waiting:
        return done
    pods = _listed(server, "/api/v1/pods", f"spec.nodeName=,spec.schedulerName={scheduler_name}")
    named = {name for pod in pods for name in _named_by(pod["metadata"])}
    jobs = _jobs_of(server, scheduler_name)
    for group in waiting:
        if _is_ours(group, named, jobs):
            _enqueue(server, group, done)
    return done


def _jobs_of(server: Writer, scheduler_name: str) -> set[str]:
    jobs = _listed(server, _JOBS)
    return {job["metadata"]["uid"] for job in jobs if (job.get("spec") or {}).get("schedulerName") == scheduler_name}


def _named_by(pod: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    notes = pod.get("annotations") or {}
    return ((pod.get("namespace"), notes.get(key)) for key in GROUP_ANNOTATIONS)


def _is_ours(group: dict[str, Any], named: set[tuple[Any, Any]], jobs: set[str]) -> bool:
    metadata = group["metadata"]
    owners = {each.get("uid") for each in metadata.get("ownerReferences") or ()}
    return (metadata["namespace"], metadata["name"]) in named or not owners.isdisjoint(jobs)


def _enqueue(server: Writer, group: dict[str, Any], done: Enqueued) -> None:
    metadata = group["metadata"]
    key = GroupKey(VOLCANO, metadata["namespace"], metadata["name"])
    body = {"metadata": {"resourceVersion": metadata["resourceVersion"]}, "status": {"phase": "Inqueue"}}
    try:
        answer = server.send("PATCH", group_path(key), body, kind=MERGE)
    except Unanswered as error:  # the next pass finds it as it is
        done.troubles.append(f"{key}: {error}")
        return
    done.count += answer.status == 200
    if answer.status not in (200, 404, 409):
        done.troubles.append(f"{key}: {answer.status} {answer.message}")


def _listed(server: Writer, path: str, selector: str = "") -> Iterator[dict[str, Any]]:
    with suppress(Unlisted):
        yield from listed(server.get, path, dict[str, Any], selector)
