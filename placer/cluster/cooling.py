"""What earlier passes left behind, written into the snapshot so that ``solve`` on it decides as the pass did.

**Nodes that cool down.** A kubelet that rejected one of our pods knows something that the API server does not: its node
gets a taint in the snapshot for some time, and so no new pods. What is rejected stays as a failed pod, so whoever comes
next finds it there.

**Gangs that are half-bound.** They hold room that is of no use until they are complete, so they come first: in the
snapshot they have the highest priority there is.

Nothing of this is written to the cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from placer.cluster.client import Server
from placer.cluster.snapshot import Snapshot
from placer.errors import ClusterError
from placer.instance import ANY_SCHEDULER, GroupKey, Instance, Key
from placer.instance.build import build
from placer.outcome import Outcome
from placer.placement import Placement

__all__ = ["TAINT", "UNFINISHED", "cooling_nodes", "half_bound", "is_rejection", "marked", "prepared"]

#: Taint of a node that cools down, in the snapshot alone.
TAINT = "placer.dev/cooling-down"
#: PriorityClass of PodGroups that are half-bound, in the snapshot alone.
UNFINISHED = "placer.dev-half-bound"
_HIGHEST = 2**31 - 1
_VOLCANO = "scheduling.volcano.sh/"

#: ``status.reason`` of pods that a kubelet did not admit, beside OutOfRESOURCE.
_REASONS = frozenset(
    (
        "TopologyAffinityError",
        "UnexpectedAdmissionError",
        "AdmissionError",
        "NodeAffinity",
        "NodeName",
        "NodePorts",
        "PodOSNotSupported",
        "PodOSSelectorNodeLabelDoesNotMatch",
    )
)
_PAGE = 500

_Change = Callable[[dict[str, Any]], None]


def is_rejection(reason: str | None) -> bool:
    """Whether a failed pod was not admitted, as against one that ran and failed.

    Examples
    --------
    >>> is_rejection("OutOfcpu"), is_rejection("TopologyAffinityError"), is_rejection("Evicted"), is_rejection(None)
    (True, True, False, False)
    """
    return reason is not None and (reason.startswith("OutOf") or reason in _REASONS)


class _Condition(msgspec.Struct, rename="camel"):
    type: str
    last_transition_time: datetime | None = None


class _Status(msgspec.Struct, rename="camel"):
    reason: str | None = None
    start_time: datetime | None = None
    conditions: list[_Condition] | None = None


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str | None = None


class _Metadata(msgspec.Struct, rename="camel"):
    continue_: str = msgspec.field(default="", name="continue")


class _Pod(msgspec.Struct):
    spec: _Spec
    status: _Status = msgspec.field(default_factory=_Status)

    @property
    def time(self) -> datetime | None:
        """When it was rejected, or shortly before."""
        scheduled = [each.last_transition_time for each in self.status.conditions or () if each.type == "PodScheduled"]
        return max((each for each in (*scheduled, self.status.start_time) if each is not None), default=None)


class _Page(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    items: list[_Pod] | None = None


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
    found: set[str] = set()
    token = ""
    while True:
        asked = {"fieldSelector": selector, "limit": str(_PAGE)} | ({"continue": token} if token else {})
        answer = server.get("/api/v1/pods", asked)
        if answer.status != 200:
            raise ClusterError(f"/api/v1/pods: {answer.status} for {selector}")
        page = msgspec.json.decode(answer.text, type=_Page)
        for pod in page.items or ():
            recent = pod.time is not None and pod.time >= since
            if recent and pod.spec.node_name and is_rejection(pod.status.reason):
                found.add(pod.spec.node_name)
        token = page.metadata.continue_
        if not token:
            return found


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
    """Write the same into a snapshot upon which somebody else decides.

    An instance, which takes longer to make than the snapshot took, is made only if a gang may be half-bound.
    """
    if _may_be_half_bound(snapshot):
        return prepared(snapshot, cooling)[0]
    return _changed(snapshot, _cooled(cooling))


def _cooled(cooling: Iterable[str]) -> dict[tuple[str, Key], _Change]:
    return {("Node", Key("default", name)): _taint for name in cooling}


class _Naming(msgspec.Struct):
    namespace: str = "default"
    name: str = ""
    annotations: dict[str, str] | None = None
    labels: dict[str, str] | None = None


class _Member(msgspec.Struct):
    metadata: _Naming
    spec: _Spec = msgspec.field(default_factory=_Spec)


def _may_be_half_bound(snapshot: Snapshot) -> bool:
    """Whether one PodGroup may be named by a pod that has a node and by one that has none.

    Whatever pods say about themselves may be the name of their group, so every half-bound gang is among those found.
    """
    groups = {(each.namespace, each.name) for each in _named(snapshot, "PodGroup")}
    on: dict[bool, set[tuple[str, str]]] = {True: set(), False: set()}
    if groups:
        for item in snapshot.of_kind("Pod"):
            pod = msgspec.json.decode(item, type=_Member)
            said = {*(pod.metadata.annotations or {}).values(), *(pod.metadata.labels or {}).values()}
            on[pod.spec.node_name is not None] |= groups.intersection((pod.metadata.namespace, each) for each in said)
    return not on[True].isdisjoint(on[False])


def _named(snapshot: Snapshot, kind: str) -> Iterator[_Naming]:
    return (msgspec.json.decode(item, type=_Member).metadata for item in snapshot.of_kind(kind))


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
