"""Room held for half-bound gangs that cannot be completed yet.

Coming first helps a gang only where all its missing pods fit at once. So those that fit now get placeholder pods in the
snapshot, after all that can be completed, no more than the gang lacked when begun, and within its patience. Nothing is
recorded or written for it, and other schedulers do not see it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from datetime import datetime

from placer.passes.cluster.planning.reservations import placeholder
from placer.passes.cluster.reading.earlier_passes import Prepared, instance_in
from placer.passes.cluster.reading.snapshot import Snapshot
from placer.problem import GroupKey, Instance, Key
from placer.problem.outcome import Outcome
from placer.problem.placement import Placement
from placer.problem.result import Reason, Result
from placer.problem.what_if import without

__all__ = ["with_room_to_complete"]

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
        yield placeholder(Key(key.namespace, f"missing:{identities[key].uid}"), texts[key], node)


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
    placement = decide(_elastic(alone, short)).placement or Placement()
    short = _short(Outcome(alone, placement), short)  # where all has room after all, whoever decides finds it
    held = {pod: node for pod, node in placement.node_of.items() if alone.pods[pod].group in short}
    return held, {key: reason for key, reason in first.reasons.items() if key in short}


def _short(outcome: Outcome, gangs: Collection[GroupKey]) -> set[GroupKey]:
    groups = outcome.instance.groups
    return {key for key in gangs if key in groups and not outcome.ready(groups[key])}


def _elastic(instance: Instance, gangs: Collection[GroupKey]) -> Instance:
    changed = {}
    for key in gangs:
        group = instance.groups[key]
        policies = tuple(replace(each, size=1, min_sub_groups=0) for each in group.policies)
        changed[key] = replace(group, min_member=group.placed_before, min_task_member={}, policies=policies)
    return replace(instance, groups={**instance.groups, **changed})
