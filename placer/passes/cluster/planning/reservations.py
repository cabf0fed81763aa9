"""Room for moved pods, until their controllers have made them again, from the record of the pass that moved them.

Where one of a unit was never evicted, its room is not kept. Until all are made again, placeholder pods hold the room in
the snapshot and replacements wait; then these are bound before anything else is decided. Nothing of this is written to
the cluster.

In the same way room is held for half-bound gangs that cannot be completed yet: coming first helps a gang only where all
its missing pods fit at once. So those that fit now get placeholder pods, after all that can be completed, no more than
the gang lacked when begun, and within its patience. Nothing is recorded for it, and other schedulers do not see it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain
from typing import Any

import msgspec

from placer.passes.cluster.planning.disruption_plan import made_again, owners
from placer.passes.cluster.reading.earlier_passes import ROOM, BackOff, Prepared, backing_off, changed, instance_in
from placer.passes.cluster.reading.gang_record import Reservation, ReservedPod
from placer.passes.cluster.reading.snapshot import Snapshot
from placer.problem import GroupKey, Instance, Key, PodState
from placer.problem.outcome import Outcome
from placer.problem.placement import Binding, Placement
from placer.problem.result import Reason, Result
from placer.problem.what_if import elastic, without
from placer.rules import verify
from placer.search.numa.binding_order import aligned

__all__ = ["ReservedRoom", "admitted", "with_reservations", "with_room_to_complete"]

_ALIVE = (PodState.PENDING, PodState.BOUND)
_WHY = "pods that were moved with it are not made again yet"


@dataclass(frozen=True)
class ReservedRoom:
    """State of the room for moved pods."""

    left: tuple[Reservation, ...] = ()  #: reservations still kept, without pods that run again
    made: tuple[Mapping[Key, str], ...] = ()  #: waiting replacements of whole units, each with its node
    waiting: Mapping[Key, BackOff] = field(default_factory=dict)  #: replacements that wait for others of their unit


def with_reservations(
    snapshot: Snapshot, reservations: Collection[Reservation], now: datetime
) -> tuple[Snapshot, ReservedRoom]:
    """The snapshot with reserved room held, and the state of that room."""
    alive = [each for each in reservations if now <= each.until]
    if not alive:
        return snapshot, ReservedRoom()
    items = (_pending(key, pod.text) for key, pod in _stand_ins(alive).items())
    instance = instance_in(replace(snapshot, items=(*snapshot.items, *items)))
    alive = [each for each in alive if not _is_void(snapshot, instance, each)]
    moved = {key: pod.owner for key, pod in _stand_ins(alive).items()}
    found = made_again(moved, instance, instance, dict(_candidates(snapshot, instance, alive)))
    return _held(snapshot, instance, [unit for each in alive if (unit := _MovedUnit.of(each, instance, found)).pods])


@dataclass(frozen=True)
class _MovedUnit:
    """Pods moved together that do not run again, and their waiting replacements, each with its node."""

    reservation: Reservation
    pods: Mapping[Key, ReservedPod]
    new: Mapping[Key, str]

    @classmethod
    def of(cls, reservation: Reservation, instance: Instance, found: Mapping[Key, Key]) -> _MovedUnit:
        again = {key: found.get(_stand_in(key, pod)) for key, pod in reservation.pods}
        pods = {key: pod for key, pod in reservation.pods if not _runs(instance, again[key])}
        new = {match: pod.node for key, pod in pods.items() if (match := again[key]) is not None}
        return cls(reservation, pods, new)

    @property
    def is_whole(self) -> bool:
        return len(self.new) == len(self.pods)

    def waiting(self, instance: Instance) -> dict[Key, BackOff]:
        until = self.reservation.until
        return {key: BackOff(instance.pods[key].group or GroupKey("", *key), until, _WHY) for key in self.new}

    def placeholders(self) -> Iterator[bytes]:
        return (_placeholder(_stand_in(key, pod), pod.text, pod.node) for key, pod in self.pods.items())


def _stand_ins(reservations: Iterable[Reservation]) -> dict[Key, ReservedPod]:
    return {_stand_in(key, pod): pod for each in reservations for key, pod in each.pods}


def _stand_in(key: Key, pod: ReservedPod) -> Key:
    """The name of a moved pod in the snapshot; no real one has a colon."""
    return Key(key.namespace, f"moved:{pod.uid}")


def _is_void(snapshot: Snapshot, instance: Instance, reservation: Reservation) -> bool:
    for key, pod in reservation.pods:
        there = snapshot.identities.get(key)
        runs = there is not None and there.uid == pod.uid and _runs(instance, key)
        if runs or pod.node not in instance.nodes:
            return True
    return False


def _candidates(
    snapshot: Snapshot, instance: Instance, reservations: Collection[Reservation]
) -> Iterator[tuple[Key, str]]:
    pods = _stand_ins(reservations).values()
    moved = {pod.uid for pod in pods}
    since = {pod.owner: int(each.since.timestamp()) for each in reservations for _, pod in each.pods}
    there = [key for key, pod in instance.pods.items() if pod.state in _ALIVE]
    for key, owner in owners(snapshot, there).items():
        is_new = owner in since and instance.pods[key].created >= since[owner]
        if is_new and snapshot.identities[key].uid not in moved:
            yield key, owner


def _held(snapshot: Snapshot, instance: Instance, units: Collection[_MovedUnit]) -> tuple[Snapshot, ReservedRoom]:
    parts = [unit for unit in units if not unit.is_whole]
    items = (item for unit in parts for item in unit.placeholders())
    waiting = dict(chain.from_iterable(unit.waiting(instance).items() for unit in parts))
    held = changed(snapshot, {("Pod", key): backing_off for key in waiting})
    left = tuple(msgspec.structs.replace(unit.reservation, pods=tuple(unit.pods.items())) for unit in units)
    made = tuple(unit.new for unit in units if unit.is_whole)
    return replace(held, items=(*held.items, *items)), ReservedRoom(left, made, waiting)


def _runs(instance: Instance, key: Key | None) -> bool:
    return key is not None and key in instance.pods and instance.pods[key].state is PodState.BOUND


def _placeholder(name: Key, text: str | bytes, node: str) -> bytes:
    """A pod that holds room on a node for the pod with a text."""
    document = msgspec.json.decode(_pending(name, text))
    document["spec"]["schedulerName"] = ROOM
    document["status"] = {"nominatedNodeName": node}
    return msgspec.json.encode(document)


def _pending(name: Key, text: str | bytes) -> bytes:
    document: dict[str, Any] = msgspec.json.decode(text)
    document["metadata"] = {**document["metadata"], "name": name.name, "uid": ""}
    document["spec"].pop("nodeName", None)
    document["status"] = {}
    return msgspec.json.encode(document)


def admitted(instance: Instance, units: Iterable[Mapping[Key, str]]) -> Placement | None:
    """A placement of units, each added where the rules allow it; None where no unit is."""
    found: Placement | None = None
    for unit in units:
        bindings = found.bindings if found is not None else ()
        tried = aligned(instance, Placement((*bindings, *(Binding(key, node) for key, node in unit.items()))))
        if unit and not verify(instance, tried):
            found = tried
    return found


# ----------------------------------------------------------------------------------------------------- room to complete

#: Decides where the pending pods of an instance go.
Decide = Callable[[Instance], Result]


def with_room_to_complete(
    snapshot: Snapshot, made: Prepared, decide: Decide, patience: float, now: datetime
) -> tuple[Snapshot, Prepared, Mapping[GroupKey, Reason]]:
    """Hold room for missing pods of half-bound gangs, where not all of them fit yet.

    Returns both arguments with placeholders, and why these gangs wait, without their own placeholders.

    Parameters
    ----------
    decide
        The pass's own; asked only where other pods wait as well.
    """
    patient = _patient(made, patience, now)
    others = {pod.key for pod in made.instance.pending} - made.first
    if not patient or not others:
        return snapshot, made, {}
    held, reasons = _room(without(made.instance, others), patient, decide)
    if not held:
        return snapshot, made, {}
    items = tuple(_placeholders(made.snapshot, held))
    kept, found = (replace(each, items=(*each.items, *items)) for each in (snapshot, made.snapshot))
    return kept, replace(made, snapshot=found, instance=instance_in(found)), reasons


def _patient(made: Prepared, patience: float, now: datetime) -> set[GroupKey]:
    half = made.half_bound.items()
    return {key for key, each in half if each.missing and (now - each.since).total_seconds() < patience}


def _placeholders(snapshot: Snapshot, held: Mapping[Key, str]) -> Iterator[bytes]:
    texts, identities = snapshot.pod_texts(held), snapshot.identities
    for key, node in sorted(held.items()):
        yield _placeholder(Key(key.namespace, f"missing:{identities[key].uid}"), texts[key], node)


def _room(
    instance: Instance, gangs: Collection[GroupKey], decide: Decide
) -> tuple[dict[Key, str], dict[GroupKey, Reason]]:
    """Missing pods of gangs that fit after all that comes first, each with its node, and why the gangs cannot
    complete.
    """
    first = decide(instance)
    outcome = Outcome(instance, first.placement or Placement())
    short = _short(outcome, gangs)
    if not short:
        return {}, {}
    left = outcome.carried_out()
    alone = without(left, {pod.key for pod in left.pending if pod.group not in short})
    placement = decide(elastic(alone, short)).placement or Placement()
    short = _short(Outcome(alone, placement), short)  # where all has room after all, whoever decides finds it
    held = {pod: node for pod, node in placement.node_of.items() if alone.pods[pod].group in short}
    return held, {key: reason for key, reason in first.reasons.items() if key in short}


def _short(outcome: Outcome, gangs: Collection[GroupKey]) -> set[GroupKey]:
    groups = outcome.instance.groups
    return {key for key in gangs if key in groups and not outcome.ready(groups[key])}
