"""What earlier passes left behind, written into the snapshot so that ``solve`` on it decides as the pass did.

**Nodes that cool down.** A kubelet that rejected one of our pods knows something that the API server does not: its node
gets a taint in the snapshot for some time, and so no new pods. What is rejected stays as a failed pod, so the next
pass finds it there.

**Gangs that are half-bound.** They hold room that is of no use until they are complete, so they come first: in the
snapshot they have the highest priority there is.

Nothing of this is written to the cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from placer.cluster.reading.client import Server, pages
from placer.cluster.reading.snapshot import Snapshot
from placer.cluster.reading.views import ObjectView, Page, PodView, is_rejection
from placer.instance import ANY_SCHEDULER, GroupKey, Instance, Key
from placer.instance.build import build
from placer.outcome import Outcome
from placer.placement import Placement

__all__ = ["TAINT", "UNFINISHED", "cooling_nodes", "half_bound", "marked", "prepared"]

#: Taint of a node that cools down, in the snapshot alone.
TAINT = "placer.dev/cooling-down"
#: PriorityClass of PodGroups that are half-bound, in the snapshot alone.
UNFINISHED = "placer.dev-half-bound"
_HIGHEST = 2**31 - 1
_VOLCANO = "scheduling.volcano.sh/"

_Change = Callable[[dict[str, Any]], None]


def cooling_nodes(server: Server, scheduler_name: str, seconds: float, now: datetime | None = None) -> set[str]:
    """Find the nodes whose kubelet rejected a pod of ours a short time ago.

    Parameters
    ----------
    server
        Where to ask.
    scheduler_name
        Whose pods are ours; ``*``: any scheduler's.
    seconds
        How long a node cools down; 0: not at all.
    now
        Default: the clock's.
    """
    if seconds <= 0:
        return set()
    since = (now or datetime.now(UTC)) - timedelta(seconds=seconds)
    of_ours = "" if scheduler_name == ANY_SCHEDULER else f",spec.schedulerName={scheduler_name}"
    selector = f"status.phase=Failed{of_ours}"
    decode = msgspec.json.Decoder(Page[PodView]).decode
    failed = (pod for page in pages(server.get, "/api/v1/pods", decode, selector) for pod in page.items or ())
    return {pod.spec.node_name for pod in failed if pod.spec.node_name and _was_rejected(pod, since)}


def _was_rejected(pod: PodView, since: datetime) -> bool:
    """Whether a failed pod was rejected by its kubelet, and that no earlier than since."""
    return is_rejection(pod.status.reason) and pod.scheduled_at is not None and pod.scheduled_at >= since


def half_bound(instance: Instance) -> set[GroupKey]:
    """Gangs of which pods are bound and others pending, and that are not ready without these."""
    nothing = Outcome(instance, Placement())
    return {
        key
        for key, group in instance.groups.items()
        if group.bound and group.pending and group.invalid is None and not nothing.ready(group)
    }


def prepared(snapshot: Snapshot, cooling: Collection[str]) -> tuple[Snapshot, Instance]:
    """Write into a snapshot what earlier passes left behind.

    Parameters
    ----------
    snapshot
        Of the cluster.
    cooling
        Nodes that get nothing new.

    Returns
    -------
    Snapshot
        The same one where there is nothing to write.
    Instance
        Made of it.
    """
    found = _changed(snapshot, _cooled(cooling))
    instance = _instance(found)
    first = half_bound(instance)
    if not first:
        return found, instance
    pods = {key for group in first for key in instance.groups[group].pending}
    changes: dict[tuple[str, Key], _Change] = {("Pod", key): _raise_pod for key in pods}
    changes |= {("PodGroup", Key(group.namespace, group.name)): _raise_group for group in first if group.api_group}
    raised = _changed(found, changes)
    raised = replace(raised, items=(*raised.items, msgspec.json.encode(_CLASS)))
    return raised, _instance(raised)


def marked(snapshot: Snapshot, cooling: Collection[str]) -> Snapshot:
    """Write the same into a snapshot of which no instance is needed here, since others decide upon it.

    An instance, which takes longer to make than the snapshot took, is made only if a gang may be half-bound.
    """
    if _may_be_half_bound(snapshot):
        return prepared(snapshot, cooling)[0]
    return _changed(snapshot, _cooled(cooling))


def _cooled(cooling: Iterable[str]) -> dict[tuple[str, Key], _Change]:
    return {("Node", Key("default", name)): _taint for name in cooling}


def _may_be_half_bound(snapshot: Snapshot) -> bool:
    """Whether one PodGroup may be named by a pod that has a node and by one that has none.

    Whatever pods say about themselves may be the name of their group, so every half-bound gang is among those found.
    """
    groups = {msgspec.json.decode(item, type=ObjectView).key for item in snapshot.of_kind("PodGroup")}
    on: dict[bool, set[Key]] = {True: set(), False: set()}
    if groups:
        for item in snapshot.of_kind("Pod"):
            pod = msgspec.json.decode(item, type=PodView)
            said = {*(pod.metadata.annotations or {}).values(), *(pod.metadata.labels or {}).values()}
            on[pod.spec.node_name is not None] |= groups.intersection(
                Key(pod.metadata.namespace, each) for each in said
            )
    return not on[True].isdisjoint(on[False])


_CLASS = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": UNFINISHED},
    "value": _HIGHEST,
}


def _instance(snapshot: Snapshot) -> Instance:
    return build(snapshot.objects(), scheduler_name=snapshot.scheduler_name, cluster=True)


def _changed(snapshot: Snapshot, changes: Mapping[tuple[str, Key], _Change]) -> Snapshot:
    """The snapshot with some objects changed."""
    if not changes:
        return snapshot
    kinds = tuple(f'"kind":"{kind}"'.encode() for kind in {kind for kind, _ in changes})
    items = []
    for item in snapshot.items:
        if any(kind in item for kind in kinds):
            document = msgspec.json.decode(item)
            metadata = document["metadata"]
            change = changes.get((document["kind"], Key(metadata.get("namespace") or "default", metadata["name"])))
            if change is not None:
                change(document)
                item = msgspec.json.encode(document)
        items.append(item)
    return replace(snapshot, items=tuple(items))


def _taint(node: dict[str, Any]) -> None:
    spec = node["spec"] = dict(node.get("spec") or {})
    spec["taints"] = [*(spec.get("taints") or ()), {"key": TAINT, "effect": "NoSchedule"}]


def _raise_pod(pod: dict[str, Any]) -> None:
    pod["spec"]["priority"] = _HIGHEST


def _raise_group(group: dict[str, Any]) -> None:
    if group["apiVersion"].startswith(_VOLCANO):
        group["spec"] = {**(group.get("spec") or {}), "priorityClassName": UNFINISHED}
