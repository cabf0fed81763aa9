"""State that earlier passes left behind, written into the snapshot so that ``solve`` on it decides as the pass did.

* Nodes that cool down get a taint (:mod:`placer.passes.cluster.reading.rejections`).
* Half-bound gangs get the highest priority, for as many pods as when begun and no larger ones, so that owners gain
  nothing by additions (:mod:`placer.passes.cluster.reading.gang_record`).
* Released pods (``--enforce gates``) count as bound; the overdue make their gang half-bound.
* Room made by evictions is held by nominations to another scheduler, and once free its pods come first.
* Pods that back off have a scheduling gate.

Nothing of this is written to the cluster.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import partial
from itertools import chain
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from placer.passes.cluster.reading.gang_record import GangRecord, HeldRoom, RejectedWorkload, digests, mark, shape
from placer.passes.cluster.reading.snapshot import TAINT, Snapshot
from placer.passes.cluster.reading.views import NODE_FIELD, PodView, WorkloadKey, read_view
from placer.problem import Group, GroupKey, Instance, Key, PodState, SubGroup
from placer.problem.eligibility import REJECTED_BY
from placer.problem.instance_builder import make_instance
from placer.problem.outcome import Outcome
from placer.problem.placement import Placement

__all__ = [
    "BACKING_OFF",
    "ROOM",
    "BackOff",
    "Change",
    "HalfBoundGang",
    "Prepared",
    "ReleasedPod",
    "RoomState",
    "backing_off",
    "changed",
    "instance_in",
    "marked",
    "prepared",
    "ready_without",
    "released_pods",
]

#: Scheduling gate of pods whose gang backs off, in the snapshot alone.
BACKING_OFF = "placer.dev/backing-off"
#: Scheduler, in the snapshot alone, of pods for which room is being made.
ROOM = "placer.dev-room-is-made"
_HIGHEST = 2**31 - 1
#: How long the scheduler of released pods has for them before their gang counts as half-bound.
_BINDS_WITHIN = timedelta(seconds=30)

_NAMED = NODE_FIELD.encode()

Change = Callable[[dict[str, Any]], None]


@dataclass(frozen=True, slots=True)
class HalfBoundGang:
    """A gang that placer itself left half-bound."""

    members: tuple[Key, ...]  #: pods that placer bound
    since: datetime  #: the earliest time at which it may have become half-bound
    priority: int  #: its own, not the raised one
    missing: tuple[Key, ...] = ()  #: waiting pods that come first, as many as it lacks
    released: tuple[Key, ...] = ()  #: pods that placer released and that their scheduler has not bound yet
    #: Whether that scheduler bound others, had time for these, and the gang is not ready without them.
    overdue: bool = False


class RoomState(Enum):
    """State of room that a pass has made."""

    NONE = "none"  #: there is none
    MADE = "made"  #: victims are on their way out
    FREE = "free"  #: all are gone
    BEGUN = "begun"  #: a victim runs on, since the pass that made it has ended before its time
    OVER = "over"  #: it is not held any more: who is to have it does not wait, or for something else, or for too long


class BackOff(NamedTuple):
    """The gang of a pod that is not tried yet, until when (None: until the gang is complete), and the reason."""

    group: GroupKey
    until: datetime | None
    why: str


class ReleasedPod(NamedTuple):
    """A pod that waits for its scheduler to bind it: its gang, its node, and whether that scheduler is placer."""

    gang: GroupKey
    node: str
    ours: bool


@dataclass(frozen=True, slots=True)
class Prepared:
    """A snapshot with the state of earlier passes."""

    snapshot: Snapshot  #: the same object where there is nothing to write
    instance: Instance
    #: Gangs that placer left half-bound, also without waiting pods.
    half_bound: Mapping[GroupKey, HalfBoundGang] = field(default_factory=dict)
    backing_off: Mapping[Key, BackOff] = field(default_factory=dict)  #: pods that are not tried yet
    room: RoomState = RoomState.NONE
    released: frozenset[Key] = frozenset()  #: pods that count as bound since placer released them
    first: frozenset[Key] = frozenset()  #: pods before every priority: of half-bound gangs, and with room made for them


def prepared(
    snapshot: Snapshot,
    cooling: Collection[str],
    record: Mapping[GroupKey, GangRecord] | None = None,
    now: datetime | None = None,
    rejected: Mapping[WorkloadKey, RejectedWorkload] | None = None,
    held: HeldRoom | None = None,
    apart: Mapping[WorkloadKey, str] = MappingProxyType({}),
) -> Prepared:
    """Write into a snapshot what earlier passes left behind."""
    begun, at = record or {}, now or datetime.now(UTC)
    released = released_pods(snapshot, begun)
    found = changed(snapshot, _apart(snapshot, apart) | _cooled(cooling) | _given(released))
    instance = instance_in(found)
    half = _half_bound(found, instance, begun, released, at)
    waiting = _backing_off(instance, begun.keys() - half.keys(), begun, at)
    waiting |= _rejected(found, instance, rejected or {})
    room = _room_state(found, instance, held, at)
    first = _with_room(instance, held, room) | {key: each.missing for key, each in half.items()}
    first = {key: pods for key, pods in first.items() if pods}
    waiting = _added_since(instance, first, half) | waiting
    changes = _raised(instance, first) | {("Pod", key): backing_off for key in waiting}
    changes |= _holding(instance, held, room)
    come_first = frozenset(chain.from_iterable(first.values()))
    raised = changed(found, changes)
    instance = instance_in(raised) if changes else instance
    return Prepared(raised, instance, half, waiting, room, frozenset(_unbound(released)), come_first)


def _room_state(snapshot: Snapshot, instance: Instance, held: HeldRoom | None, now: datetime) -> RoomState:
    if held is None:
        return RoomState.NONE
    victims = _states(snapshot, instance, dict(held.victims))
    gaining = _states(snapshot, instance, {key: uid for key, (uid, _) in held.pods})
    if now > held.until or gaining != [PodState.PENDING] * len(held.pods):
        return RoomState.OVER
    if any(shape(instance.pods[key].requests).hex() != asked for key, asked in held.shapes):
        return RoomState.OVER  # it was made larger since
    if PodState.TERMINATING in victims:
        return RoomState.MADE
    return RoomState.BEGUN if PodState.BOUND in victims else RoomState.FREE


def _states(snapshot: Snapshot, instance: Instance, pods: Mapping[Key, str]) -> list[PodState]:
    there = (key for key, uid in pods.items() if key in snapshot.identities and snapshot.identities[key].uid == uid)
    return [instance.pods[key].state for key in there if key in instance.pods]


def _with_room(instance: Instance, held: HeldRoom | None, room: RoomState) -> dict[GroupKey, tuple[Key, ...]]:
    found: dict[GroupKey, tuple[Key, ...]] = {}
    for key, _ in sorted(held.pods) if held is not None and room is RoomState.FREE else ():
        group = instance.pods[key].group or GroupKey("", *key)
        found[group] = (*found.get(group, ()), key)
    return found


def _holding(instance: Instance, held: HeldRoom | None, room: RoomState) -> dict[tuple[str, Key], Change]:
    if held is None or room not in (RoomState.MADE, RoomState.BEGUN):
        return {}
    groups = {instance.pods[key].group for key, _ in held.pods} - {None}
    changes: dict[tuple[str, Key], Change] = {
        ("Pod", key): backing_off for group in groups if group is not None for key in instance.groups[group].pending
    }
    return changes | {("Pod", key): partial(_nominated, node) for key, (_, node) in held.pods}


def _nominated(node: str, pod: dict[str, Any]) -> None:
    pod["spec"]["schedulerName"] = ROOM
    pod["status"] = {**(pod.get("status") or {}), "nominatedNodeName": node}


def _added_since(
    instance: Instance, first: Mapping[GroupKey, Collection[Key]], half: Container[GroupKey]
) -> dict[Key, BackOff]:
    begun = "its gang had no more such pods when it was begun, and is completed first"
    room = "room was made for other pods of its gang, which come first"
    return {
        key: BackOff(group, None, begun if group in half else room)
        for group, pods in first.items()
        for key in instance.groups[group].pending
        if key not in pods
    }


def _raised(instance: Instance, first: Mapping[GroupKey, Collection[Key]]) -> dict[tuple[str, Key], Change]:
    """Changes that give groups, and their pods that come first, the highest priority.

    Their PodGroup and their running pods state none then: a group is as urgent as its least urgent pod, and anybody
    could name a class made for it.
    """
    changes: dict[tuple[str, Key], Change] = {}
    apis: dict[Key, set[str]] = defaultdict(set)
    for group, pods in first.items():
        changes |= {("Pod", key): _raise_pod for key in pods}
        changes |= {("Pod", key): _state_no_priority for key in instance.groups[group].bound}
        apis[Key(group.namespace, group.name)].add(group.api_group)
    return changes | {("PodGroup", key): partial(_raise_group, named) for key, named in apis.items()}


def marked(
    snapshot: Snapshot,
    cooling: Collection[str],
    record: Mapping[GroupKey, GangRecord] | None = None,
    now: datetime | None = None,
    rejected: Mapping[WorkloadKey, RejectedWorkload] | None = None,
    apart: Mapping[WorkloadKey, str] = MappingProxyType({}),
) -> Snapshot:
    """:func:`prepared` without the instance, which is slow to make, where nothing is recorded or backs off."""
    if record or rejected:
        return prepared(snapshot, cooling, record, now, rejected, apart=apart).snapshot
    return changed(snapshot, _cooled(cooling) | _apart(snapshot, apart))


def _half_bound(
    snapshot: Snapshot,
    instance: Instance,
    record: Mapping[GroupKey, GangRecord],
    released: Mapping[Key, ReleasedPod],
    now: datetime,
) -> dict[GroupKey, HalfBoundGang]:
    unbound: dict[GroupKey, list[Key]] = defaultdict(list)
    for pod, each in sorted(released.items()):
        unbound[each.gang].append(pod)
    found = {}
    for key, recorded in sorted(record.items()):
        gang = _begun_gang(snapshot, instance, key, recorded, {pod: released[pod] for pod in unbound[key]})
        if gang is not None:
            overdue = bool(gang.members and gang.released) and now - recorded.since >= _BINDS_WITHIN
            late = overdue and not ready_without(instance, key, frozenset(gang.released))
            found[key] = replace(gang, overdue=late)
    return found


def _begun_gang(
    snapshot: Snapshot,
    instance: Instance,
    key: GroupKey,
    recorded: GangRecord,
    released: Mapping[Key, ReleasedPod],
) -> HalfBoundGang | None:
    theirs = tuple(pod for pod in _unbound(released) if pod in instance.pods)
    group = instance.groups.get(key)
    if group is None:  # one pod in no PodGroup that is not pending
        return HalfBoundGang((), recorded.since, instance.pods[theirs[0]].priority, (), theirs) if theirs else None
    ours = _recorded_members(snapshot, instance, recorded, set(group.bound) - set(theirs))
    ready = Outcome(instance, Placement()).ready(group)
    if not (theirs if ready else (*ours, *released)):
        return None
    missing = () if ready else _missing(snapshot, instance, group.pending, recorded, (*ours, *theirs))
    return HalfBoundGang(ours, recorded.since, group.priority, missing, theirs)


def _recorded_members(
    snapshot: Snapshot, instance: Instance, recorded: GangRecord, bound: Iterable[Key]
) -> tuple[Key, ...]:
    def is_ours(key: Key) -> bool:
        uid = snapshot.identities[key].uid
        return not recorded.pods.isdisjoint(digests([uid, mark(uid, instance.pods[key].node or "")]))

    return tuple(sorted(filter(is_ours, bound)))


def ready_without(
    instance: Instance, key: GroupKey, pods: Collection[Key], added: Collection[Key] = frozenset()
) -> bool:
    """Whether a gang would be ready without some of its bound pods; False for a pod in no PodGroup.

    Parameters
    ----------
    pods
        Bound pods that do not count.
    added
        Pending pods that were bound since.
    """
    group = instance.groups.get(key)
    if group is None or not key.api_group:
        return False

    def left(part: Group | SubGroup) -> tuple[Key, ...]:
        new = (pod for pod in part.pending if pod in added)
        return tuple(pod for pod in (*part.bound, *new) if pod not in pods)

    parts = tuple(replace(part, bound=left(part)) for part in group.sub_groups)
    rest = replace(group, bound=left(group), sub_groups=parts)
    return Outcome(instance, Placement()).ready(rest)


def _unbound(released: Mapping[Key, ReleasedPod]) -> list[Key]:
    return [key for key, each in released.items() if not each.ours]


def _given(released: Mapping[Key, ReleasedPod]) -> dict[tuple[str, Key], Change]:
    return {("Pod", key): partial(_bound, each.node) for key, each in released.items() if not each.ours}


def _bound(node: str, pod: dict[str, Any]) -> None:
    pod["spec"]["nodeName"] = node


def _missing(
    snapshot: Snapshot, instance: Instance, pending: Iterable[Key], recorded: GangRecord, ours: Sequence[Key]
) -> tuple[Key, ...]:
    """Pending pods, at most as many as a half-bound gang lacks, of the recorded shapes; recorded pods first."""

    def is_new(key: Key) -> bool:
        return recorded.pods.isdisjoint(digests([snapshot.identities[key].uid]))

    most = (recorded.size or len(recorded.pods)) - len(ours)
    left = Counter(recorded.shapes)
    left.subtract(shape(instance.pods[key].requests) for key in ours)
    found: list[Key] = []
    for key in sorted(pending, key=lambda key: (is_new(key), key)):
        asked = shape(instance.pods[key].requests)
        if len(found) < most and (left[asked] > 0 or not recorded.shapes):
            left[asked] -= 1
            found.append(key)
    return tuple(found)


def _backing_off(
    instance: Instance, keys: Iterable[GroupKey], record: Mapping[GroupKey, GangRecord], now: datetime
) -> dict[Key, BackOff]:
    times = {key: record[key].until for key in keys if key in instance.groups}
    return {
        pod: BackOff(key, until, "rolled back, since half-bound")
        for key, until in sorted(times.items())
        if until is not None and until > now
        for pod in instance.groups[key].pending
    }


def _rejected(
    snapshot: Snapshot, instance: Instance, rejected: Mapping[WorkloadKey, RejectedWorkload]
) -> dict[Key, BackOff]:
    found: dict[Key, BackOff] = {}
    texts = snapshot.pod_texts(pod.key for pod in instance.pending) if rejected else {}
    for key, item in sorted(texts.items()):
        each = rejected.get(read_view(item, PodView).workload)
        if each is not None and each.until is not None:
            found[key] = BackOff(instance.pods[key].group or GroupKey("", *key), each.until, str(each))
    return found


def _cooled(cooling: Iterable[str]) -> dict[tuple[str, Key], Change]:
    return {("Node", Key("default", name)): _taint for name in cooling}


def _apart(snapshot: Snapshot, apart: Mapping[WorkloadKey, str]) -> dict[tuple[str, Key], Change]:
    texts = snapshot.pod_texts(snapshot.identities) if apart else {}
    pods = (read_view(item, PodView) for item in texts.values())
    waiting = ((pod.key, pod.workload) for pod in pods if not pod.spec.node_name)
    return {("Pod", key): partial(_keep_off, apart[workload]) for key, workload in waiting if workload in apart}


def _keep_off(node: str, pod: dict[str, Any]) -> None:
    metadata = pod["metadata"]
    metadata["annotations"] = {**(metadata.get("annotations") or {}), REJECTED_BY: node}


def instance_in(snapshot: Snapshot) -> Instance:
    """The instance of a snapshot of a cluster."""
    kept = snapshot.kept.pods if snapshot.kept is not None else None
    name, gates = snapshot.scheduler_name, snapshot.gates
    return make_instance(snapshot.objects(), scheduler_name=name, cluster=True, gates=gates, kept=kept)


def changed(snapshot: Snapshot, changes: Mapping[tuple[str, Key], Change]) -> Snapshot:
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


def backing_off(pod: dict[str, Any]) -> None:
    """Write into a pod that it is not tried yet."""
    pod["spec"]["schedulingGates"] = [*(pod["spec"].get("schedulingGates") or ()), {"name": BACKING_OFF}]


def _raise_pod(pod: dict[str, Any]) -> None:
    pod["spec"]["priority"] = _HIGHEST


def _raise_group(apis: Container[str], group: dict[str, Any]) -> None:
    if group["apiVersion"].rpartition("/")[0] in apis:
        _state_no_priority(group)


def _state_no_priority(item: dict[str, Any]) -> None:
    own = ("priorityClassName", "priority")
    item["spec"] = {key: value for key, value in (item.get("spec") or {}).items() if key not in own}


def released_pods(snapshot: Snapshot, record: Mapping[GroupKey, GangRecord]) -> dict[Key, ReleasedPod]:
    """Recorded pods that placer has released and that have no node yet."""
    gangs = {digest: key for key, each in record.items() for digest in each.pods}
    return dict(_released(snapshot, gangs)) if gangs else {}


def _released(snapshot: Snapshot, gangs: Mapping[bytes, GroupKey]) -> Iterator[tuple[Key, ReleasedPod]]:
    for item in snapshot.of_kind("Pod"):
        if _NAMED not in item:
            continue
        pod = read_view(item, PodView)
        node = pod.only_node
        if node is None or not pod.waits or pod.spec.scheduling_gates:
            continue
        (digest,) = digests([mark(pod.metadata.uid, node)])
        if digest in gangs:
            ours = pod.spec.scheduler_name == snapshot.scheduler_name
            yield pod.key, ReleasedPod(gangs[digest], node, ours)
