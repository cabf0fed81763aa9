"""Status of Volcano's PodGroups, and the way in for its jobs.

Volcano's own scheduler writes both, so nobody may do so where it runs. Its PodGroup has no status subresource: status
is patched with the object. The Job controller makes the pods of a job only once its PodGroup is no longer Pending.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import msgspec

from placer.cluster.client import MERGE, Unanswered, Writer
from placer.errors import ClusterError
from placer.instance import GroupKey

__all__ = ["GroupNews", "group_path", "let_in", "write_group"]

_GROUPS = "/apis/scheduling.volcano.sh/v1beta1"
_JOBS = "/apis/batch.volcano.sh/v1alpha1/jobs"
_NAMES = ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name")
_PAGE = 500
#: Seconds to wait for an answer.
_PATIENCE = 5.0


@dataclass(frozen=True, slots=True)
class GroupNews:
    """What is to be said of a gang: whether it is ready, whether something of it runs, and why it waits."""

    key: GroupKey
    ready: bool
    some: bool
    reason: str
    message: str


def group_path(key: GroupKey) -> str:
    """Where a PodGroup of Volcano is."""
    return f"{_GROUPS}/namespaces/{quote(key.namespace)}/podgroups/{quote(key.name)}"


def write_group(server: Writer, news: GroupNews, now: str) -> bool:
    """Write phase and condition of a PodGroup where they are not so already; whether something was written.

    Raises
    ------
    ClusterError
        The server refuses, or does not answer.
    """
    answer = server.send("GET", group_path(news.key), timeout=_PATIENCE)
    if answer.status == 404:
        return False
    if answer.status != 200:
        raise ClusterError(f"{news.key}: {answer.status} {answer.message}")
    group = msgspec.json.decode(answer.text)
    status = group.get("status") or {}
    patch = _status(status, news, now)
    if patch is None:
        return False
    metadata = {"resourceVersion": group["metadata"]["resourceVersion"]}  # whoever writes beside us is not overwritten
    sent = server.send(
        "PATCH", group_path(news.key), {"metadata": metadata, "status": patch}, kind=MERGE, timeout=_PATIENCE
    )
    if sent.status in (404, 409):
        return False
    if sent.status >= 300:
        raise ClusterError(f"{news.key}: {sent.status} {sent.message}")
    return True


def _status(status: dict[str, Any], news: GroupNews, now: str) -> dict[str, Any] | None:
    """Phase and conditions as they should be; None where they are so."""
    phase = status.get("phase") or "Pending"
    if news.ready:
        phase = "Running"
    elif phase in ("Running", "Unknown"):
        phase = "Unknown" if news.some else "Pending"
    kind = "Scheduled" if news.ready else "Unschedulable"
    conditions = status.get("conditions") or []
    wanted = {"type": kind, "status": "True", "reason": news.reason, "message": news.message}
    same = any(all(each.get(name) == value for name, value in wanted.items()) for each in conditions)
    if phase == status.get("phase") and same:
        return None
    others = [each for each in conditions if each.get("type") not in ("Scheduled", "Unschedulable")]
    stamp = {"transitionID": str(uuid.uuid4()), "lastTransitionTime": now}
    return {"phase": phase, "conditions": [*others, wanted | stamp]}


# ---------------------------------------------------------------------------------------------------------- the way in


def let_in(server: Writer, scheduler_name: str) -> int:
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
    waiting = [
        each
        for each in _listed(server, f"{_GROUPS}/podgroups")
        if (each.get("status") or {}).get("phase") in (None, "", "Pending")
    ]
    if not waiting:
        return 0
    named = {
        (pod["metadata"].get("namespace"), (pod["metadata"].get("annotations") or {}).get(key))
        for pod in _listed(server, "/api/v1/pods", f"spec.nodeName=,spec.schedulerName={scheduler_name}")
        for key in _NAMES
    }
    jobs = {
        job["metadata"]["uid"]
        for job in _listed(server, _JOBS)
        if (job.get("spec") or {}).get("schedulerName") == scheduler_name
    }
    return sum(_moved(server, group) for group in waiting if _is_ours(group, named, jobs))


def _is_ours(group: dict[str, Any], named: set[tuple[Any, Any]], jobs: set[str]) -> bool:
    metadata = group["metadata"]
    owners = {each.get("uid") for each in metadata.get("ownerReferences") or ()}
    return (metadata["namespace"], metadata["name"]) in named or not owners.isdisjoint(jobs)


def _moved(server: Writer, group: dict[str, Any]) -> bool:
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
    asked = {"limit": str(_PAGE)} | ({"fieldSelector": selector} if selector else {})
    token = ""
    while True:
        answer = server.get(path, asked | ({"continue": token} if token else {}))
        if answer.status != 200:
            return
        page = msgspec.json.decode(answer.text)
        yield from page.get("items") or ()
        token = (page.get("metadata") or {}).get("continue") or ""
        if not token:
            return
