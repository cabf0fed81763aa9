"""Room that is held for gangs that are half-bound and cannot be completed yet.

A half-bound gang comes first, which gives it room where all that it lacks fits at once, and else nothing: others would
take one node that it needs while it waits for the next, again and again. So in each pass, before anything is decided,
it is looked for what of the missing pods has room now, under every rule and with what is bound of the gang in its
place; that room is held, in the snapshot, by placeholder pods that are nominated to the nodes. Once all that is missing
has room, it is bound.

* What comes first and has room for all of it is placed beside that, and loses none of its room.
* No more is held than the gang lacks of what it had when it was begun
  (:mod:`placer.cluster.reading.earlier_passes`): its owner gains nothing by adding pods, or by making them larger.
* It is held no longer than the gang may stay half-bound: after that it is rolled back, and what it has is free, too.

Nothing is recorded and nothing written to the cluster for it: who is half-bound, and since when, is recorded already.
Another scheduler knows nothing of it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from placer.cluster.planning.reservations import placeholder
from placer.cluster.reading.earlier_passes import Prepared, instance_in
from placer.cluster.reading.snapshot import Snapshot
from placer.instance import GroupKey, Instance, Key
from placer.instance.what_if import without
from placer.outcome import Outcome
from placer.placement import Placement
from placer.result import Reason, Result

__all__ = ["RoomToComplete", "with_room_to_complete"]

#: Decides where the pending pods of an instance go.
Decide = Callable[[Instance], Result]


@dataclass(frozen=True, slots=True)
class RoomToComplete:
    """Room that is held for half-bound gangs.

    Parameters
    ----------
    snapshot, made
        The cluster, and the same with what earlier passes left behind, both with placeholders for the room.
    reasons
        Why the gangs wait for which it is held: their own room is none that they lack.
    """

    snapshot: Snapshot
    made: Prepared
    reasons: Mapping[GroupKey, Reason] = field(default_factory=dict)


def with_room_to_complete(
    snapshot: Snapshot, made: Prepared, decide: Decide, patience: float, now: datetime
) -> RoomToComplete:
    """Hold room for what half-bound gangs lack, where not all of it has room yet.

    Parameters
    ----------
    snapshot
        Of the cluster.
    made
        The same with what earlier passes left behind.
    decide
        As the pass does; is asked only where other pods wait beside those that come first.
    patience
        Seconds for which a gang may stay half-bound.
    now
        By the server's clock.
    """
    patient = _patient(made, patience, now)
    others = {pod.key for pod in made.instance.pending} - made.first
    if not patient or not others:
        return RoomToComplete(snapshot, made)
    held, reasons = _room(without(made.instance, others), patient, decide)
    if not held:
        return RoomToComplete(snapshot, made)
    items = tuple(_placeholders(made.snapshot, held))
    kept, found = (replace(each, items=(*each.items, *items)) for each in (snapshot, made.snapshot))
    return RoomToComplete(kept, replace(made, snapshot=found, instance=instance_in(found)), reasons)


def _patient(made: Prepared, patience: float, now: datetime) -> set[GroupKey]:
    """Gangs that lack pods and may stay half-bound."""
    half = made.half_bound.items()
    return {key for key, each in half if each.missing and (now - each.since).total_seconds() < patience}


def _placeholders(snapshot: Snapshot, held: Mapping[Key, str]) -> Iterator[bytes]:
    """What holds the room."""
    texts, identities = snapshot.pod_texts(held), snapshot.identities
    for key, node in sorted(held.items()):
        yield placeholder(Key(key.namespace, f"missing:{identities[key].uid}"), texts[key], node)


def _room(
    instance: Instance, gangs: Collection[GroupKey], decide: Decide
) -> tuple[dict[Key, str], dict[GroupKey, Reason]]:
    """What of gangs that cannot be completed has room beside all that comes first, each pod with its node; and why
    these gangs cannot be.
    """
    first = decide(instance)
    outcome = Outcome(instance, first.placement or Placement())
    short = _short(outcome, gangs)
    if not short:
        return {}, {}
    left = outcome.carried_out()
    alone = without(left, {pod.key for pod in left.pending if pod.group not in short})
    placement = decide(_elastic(alone, short)).placement or Placement()
    short = _short(Outcome(alone, placement), short)  # where all has room after all, whoever decides finds it
    held = {pod: node for pod, node in placement.node_of.items() if alone.pods[pod].group in short}
    return held, {key: reason for key, reason in first.reasons.items() if key in short}


def _short(outcome: Outcome, gangs: Collection[GroupKey]) -> set[GroupKey]:
    """Those of gangs that are not ready."""
    groups = outcome.instance.groups
    return {key for key in gangs if key in groups and not outcome.ready(groups[key])}


def _elastic(instance: Instance, gangs: Collection[GroupKey]) -> Instance:
    """The instance as if gangs needed no more pods than they have."""
    changed = {}
    for key in gangs:
        group = instance.groups[key]
        policies = tuple(replace(each, size=1, min_sub_groups=0) for each in group.policies)
        changed[key] = replace(group, min_member=group.placed_before, min_task_member={}, policies=policies)
    return replace(instance, groups={**instance.groups, **changed})
