"""Gangs that are half-bound from pass to pass: record, outcome, roll-back (docs/passes.md, Half-bound gangs).

Released pods that are not bound count too, since only their deletion brings the gate back; where the gang is ready
without them, they alone are deleted. Of the gangs whose patience is over, those without waiting pods are rolled back,
and of the others the less urgent half, since gangs may hold each other's room; the rest begin their patience again.

In a full record namespaces share the room equally and pass on the rest. Gangs beyond that are not bound in that pass,
except the most urgent one, and half-bound ones are forgotten.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import compress
from operator import itemgetter
from typing import NamedTuple, TypeVar

from placer.base.words import counted
from placer.passes.cluster.planning.binding_plan import Batch, BindingPlan, PlannedBinding
from placer.passes.cluster.planning.gang_outcome import GangOutcome, GangState
from placer.passes.cluster.reading.earlier_passes import HalfBoundGang, ready_without
from placer.passes.cluster.reading.gang_record import MOST_BYTES, GangRecord, digests, mark, record_bytes, shapes_of
from placer.passes.cluster.reading.rejections import back_off
from placer.passes.cluster.reading.snapshot import Identity
from placer.problem import GroupKey, Instance, Key
from placer.problem.outcome import Outcome
from placer.problem.placement import Placement

__all__ = [
    "RecordedPlan",
    "given_up",
    "in_turn",
    "next_to_go",
    "nominated",
    "on_hold",
    "recorded_after",
    "recorded_before",
    "surpluses",
    "told_when",
    "unseen",
    "with_earlier",
]

T = TypeVar("T")

_COMPLETE = frozenset((GangState.BOUND, GangState.SHORT))


class RecordedPlan(NamedTuple):
    """A plan without gangs that do not fit the record, that record, and a sentence for each namespace that lacks room.

    Its gangs are half-bound, may become so, or were rolled back and are still there.
    """

    plan: BindingPlan
    gangs: dict[GroupKey, GangRecord]
    troubles: list[str]


def recorded_before(
    instance: Instance,
    plan: BindingPlan,
    record: Mapping[GroupKey, GangRecord],
    half_bound: Mapping[GroupKey, HalfBoundGang],
    now: datetime,
    awaited: Collection[bytes] = (),
) -> RecordedPlan:
    """The record to write before the first binding.

    Parameters
    ----------
    awaited
        Digests of pods whose kubelets have not answered; their gangs are kept.
    """
    known = _still_recorded(instance, record, half_bound, frozenset(awaited))
    nothing = Outcome(instance, Placement())
    risky = [_may_stay_half_bound(instance, nothing, batch, now) for batch in plan.batches]
    half = _oldest_first(known, half_bound)
    room = _with_room([*half, *risky], MOST_BYTES, urgent=len(half))
    goes = [at in room for at in range(len(half), len(half) + len(risky))]
    kept = _together(each for at, each in enumerate(half) if at in room)
    begun = _together(compress(risky, goes))
    found = kept | {key: _begun(known[key], gang) if key in known else gang for key, gang in begun.items()}
    left = _oldest_first(known, known.keys() - half_bound.keys() - found.keys())
    room = _with_room(left, MOST_BYTES - _sizes(found).total())
    found |= _together(each for at, each in enumerate(left) if at in room)
    return RecordedPlan(_without(plan, goes), found, _forgotten(known, found))


def _without(plan: BindingPlan, goes: Sequence[bool]) -> BindingPlan:
    why = "the record of gangs under way has no room for more in one pass"
    left = {key: why for batch, may in zip(plan.batches, goes, strict=True) if not may for key in batch.gangs}
    return replace(plan, batches=tuple(compress(plan.batches, goes)), dropped={**plan.dropped, **left})


def _together(parts: Iterable[Mapping[GroupKey, GangRecord]]) -> dict[GroupKey, GangRecord]:
    return {key: each for part in parts for key, each in part.items()}


def _oldest_first(
    record: Mapping[GroupKey, GangRecord], keys: Iterable[GroupKey]
) -> list[Mapping[GroupKey, GangRecord]]:
    found = sorted((key for key in keys if key in record), key=lambda key: (record[key].since, key))
    return [{key: record[key]} for key in found]


def _with_room(wanted: Sequence[Mapping[GroupKey, GangRecord]], room: int, urgent: int | None = None) -> set[int]:
    """Indices of the parts that fit, with equal shares for namespaces that want more.

    Parameters
    ----------
    wanted
        Parts, in the order of each namespace.
    urgent
        The index of a part that precedes all others.
    """
    sizes, ahead, turns = [_sizes(gangs) for gangs in wanted], Counter[str](), list[tuple[int, int]]()
    for at, own in enumerate(sizes):
        ahead.update(own)
        turns.append((max((ahead[namespace] for namespace in own), default=0) if at != urgent else 0, at))
    found, left = set[int](), room
    for _, at in sorted(turns):
        if sizes[at].total() <= left:
            found.add(at)
            left -= sizes[at].total()
    return found


def _forgotten(known: Iterable[GroupKey], found: Container[GroupKey]) -> list[str]:
    forgotten = Counter(key.namespace for key in known if key not in found)
    return [
        f"the record of gangs under way has no room for {counted(count, 'gang')} of namespace {namespace} that are"
        " half-bound or were rolled back: they count as any other"
        for namespace, count in sorted(forgotten.items())
    ]


def _still_recorded(
    instance: Instance,
    record: Mapping[GroupKey, GangRecord],
    half_bound: Mapping[GroupKey, HalfBoundGang],
    awaited: frozenset[bytes],
) -> dict[GroupKey, GangRecord]:
    there = (key for key in record if key in instance.groups or key in half_bound)
    known = {key: _kept(record[key], key in half_bound or not awaited.isdisjoint(record[key].pods)) for key in there}
    return {key: each for key, each in known.items() if each is not None}


def _begun(earlier: GangRecord, now: GangRecord) -> GangRecord:
    """The record of a gang with more pods to bind; time and shapes of the start are kept unless it was rolled back."""
    begun, pods = earlier if earlier.pods else now, earlier.pods | now.pods
    return replace(begun, pods=pods, rolled_back=earlier.rolled_back, until=None, size=begun.size or len(pods))


def _sizes(gangs: Mapping[GroupKey, GangRecord]) -> Counter[str]:
    sizes = Counter[str]()
    for key, each in gangs.items():
        sizes[key.namespace] += record_bytes(key, len(each.pods), len(each.shapes))
    return sizes


def _kept(record: GangRecord, half_bound: bool) -> GangRecord | None:
    if half_bound:
        return record
    return replace(record, pods=frozenset(), size=0, shapes={}) if record.rolled_back else None


def _may_stay_half_bound(
    instance: Instance, nothing: Outcome, batch: Batch, now: datetime
) -> dict[GroupKey, GangRecord]:
    """Gangs of a batch that several bindings make ready, or with released pods, and their records."""
    found: dict[GroupKey, list[PlannedBinding]] = {}
    for bind in batch.bindings:
        key = instance.pods[bind.pod].group
        if key is not None:
            found.setdefault(key, []).append(bind)
    return {
        key: GangRecord(
            now,
            digests(mark(bind.uid, bind.node) if bind.by_release else bind.uid for bind in binds),
            size=len(binds),
            shapes=shapes_of(instance.pods[bind.pod].requests for bind in binds),
        )
        for key, binds in found.items()
        if _is_risky(instance, nothing, key, binds)
    }


def _is_risky(instance: Instance, nothing: Outcome, key: GroupKey, binds: Sequence[PlannedBinding]) -> bool:
    if any(bind.by_release for bind in binds):
        return True
    return bool(key.api_group) and len(binds) > 1 and not nothing.ready(instance.groups[key])


def with_earlier(
    instance: Instance,
    identities: Mapping[Key, Identity],
    gangs: Sequence[GangOutcome],
    half_bound: Mapping[GroupKey, HalfBoundGang],
    unbound: Collection[Key] = (),
) -> list[GangOutcome]:
    """The gangs after a pass, with the pods that earlier passes bound; an unchanged one is still half-bound.

    Parameters
    ----------
    unbound
        Released pods that their schedulers have not bound yet.
    """
    planned = {gang.key: gang for gang in gangs}
    found = [_with_members(instance, identities, gang, half_bound.get(gang.key), unbound) for gang in gangs]
    for key, half in half_bound.items():
        if key not in planned:
            gang = GangOutcome(key, GangState.LEFT, reason=_why_not_ready(instance, key))
            found.append(_with_members(instance, identities, gang, half, unbound))
    return found


def _why_not_ready(instance: Instance, key: GroupKey) -> str:
    group = instance.groups.get(key)
    if group is None:
        return ""
    missing = next(Outcome(instance, Placement()).shortages(group), None)
    return missing.message if missing is not None else group.invalid or ""


def _with_members(
    instance: Instance,
    identities: Mapping[Key, Identity],
    gang: GangOutcome,
    half: HalfBoundGang | None,
    unbound: Collection[Key],
) -> GangOutcome:
    before: tuple[PlannedBinding, ...] = ()
    if half is not None:
        pods = [*((pod, False) for pod in half.members), *((pod, True) for pod in half.released)]
        before = tuple(
            PlannedBinding(pod, identities[pod].uid, instance.pods[pod].node or "", by_release=late)
            for pod, late in pods
        )
    waiting = tuple(bind for bind in (*before, *gang.bound) if bind.pod in unbound)
    state = _state(instance, gang, half, bool(waiting))
    reason = f"not bound by its scheduler: {_released_for(waiting)}" if waiting and not gang.reason else gang.reason
    return replace(gang, state=state, before=before, waiting=waiting, reason=reason)


def _state(instance: Instance, gang: GangOutcome, half: HalfBoundGang | None, waits: bool) -> GangState:
    state = gang.state
    if half is not None and state is GangState.LEFT:
        group = instance.groups.get(gang.key)
        whole = group is None or Outcome(instance, Placement()).ready(group)
        state = GangState.BOUND if whole else GangState.HALF_BOUND
    if not waits or state is not GangState.BOUND:
        return state
    return GangState.HALF_BOUND if half is not None and half.overdue else GangState.RELEASED


def _released_for(waiting: Sequence[PlannedBinding]) -> str:
    first = f"Pod {waiting[0].pod}, released for Node {waiting[0].node}"
    return first if len(waiting) == 1 else f"{first}, and {len(waiting) - 1} more"


def next_to_go(
    instance: Instance,
    gangs: Iterable[GangOutcome],
    half_bound: Mapping[GroupKey, HalfBoundGang],
    record: Mapping[GroupKey, GangRecord],
    patience: float,
    now: datetime,
    grace: float = 0.0,
) -> tuple[list[GroupKey], list[GroupKey]]:
    """The gangs to roll back, and the gangs whose patience begins again in their favour.

    Parameters
    ----------
    grace
        Least seconds that schedulers have to bind released pods.
    """
    over = [gang.key for gang in gangs if _is_over(gang, record.get(gang.key), patience, grace, now)]
    if patience <= 0:
        return over, []
    hopeless = [key for key in over if key not in instance.groups or not instance.groups[key].pending]

    def urgency(key: GroupKey) -> tuple[int, float, GroupKey]:
        priority = half_bound[key].priority if key in half_bound else instance.groups[key].priority
        return -priority, record[key].since.timestamp(), key

    others = sorted((key for key in over if key not in hopeless), key=urgency)
    stay = len(others) // 2
    return hopeless + others[stay:], others[:stay]


def _is_over(gang: GangOutcome, record: GangRecord | None, patience: float, grace: float, now: datetime) -> bool:
    earlier = {bind.pod for bind in gang.before}
    waits = any(bind.pod in earlier for bind in gang.waiting)  # what was released just now has its time still
    if record is None or (gang.state is not GangState.HALF_BOUND and not waits):
        return False
    least = max(patience, grace) if waits else patience
    # By the clock of a server that has just been asked for the first time it may be a part of a second earlier.
    return least <= 0 or (now - record.since).total_seconds() >= least


def surpluses(
    instance: Instance, gangs: Iterable[GangOutcome], keys: Collection[GroupKey]
) -> dict[GroupKey, frozenset[Key]]:
    """Released pods to delete alone, of gangs to roll back that are ready without them."""
    found = {}
    for gang in gangs:
        pods, new = (frozenset(bind.pod for bind in binds) for binds in (gang.waiting, gang.bound))
        if gang.key in keys and pods and ready_without(instance, gang.key, pods, new):
            found[gang.key] = pods
    return found


def given_up(before: Iterable[GangOutcome], after: Iterable[GangOutcome]) -> dict[Key, str]:
    """Released pods that were not bound and are rolled back, each with its node."""
    gone = {pod for gang in after if gang.state is GangState.ROLLED_BACK for pod in gang.missing}
    return {bind.pod: bind.node for gang in before for bind in gang.waiting if bind.pod in gone}


def told_when(gang: GangOutcome, record: GangRecord | None, patience: float) -> GangOutcome:
    """A gang with the time of its next try after a roll-back, or the times of its half-bound state."""
    if gang.state is GangState.HALF_BOUND and record is not None:
        until = record.since + timedelta(seconds=patience) if patience < math.inf else None
        return replace(gang, since=record.since, until=until)
    if gang.state is not GangState.ROLLED_BACK or record is None or record.until is None:
        return gang
    return replace(gang, reason=f"rolled back {record.rolled_back} times, tried again at {record.until:%H:%M:%S} UTC")


def unseen(gangs: Iterable[GangOutcome], pods: Container[Key]) -> Iterator[GangOutcome]:
    """Gangs with bound pods that were not seen since."""
    return (gang for gang in gangs if any(bind.pod in pods for bind in gang.bound))


def nominated(
    identities: Mapping[Key, Identity], gangs: Iterable[GangOutcome], admits: Callable[[str], bool]
) -> dict[Key, Identity]:
    """Pods with the hold gate that were nominated before a pass and got no node in it."""
    given = {bind.pod for gang in gangs for bind in gang.bound}
    return {
        key: each for key, each in identities.items() if each.nominated and key not in given and admits(key.namespace)
    }


def on_hold(
    instance: Instance, identities: Mapping[Key, Identity], half_bound: Mapping[GroupKey, HalfBoundGang]
) -> set[GroupKey]:
    """Gangs of which pods have the hold gate, or were released."""
    pods = [pod for key, pod in instance.pods.items() if key in identities and identities[key].on_hold]
    found = {pod.group for pod in pods if pod.group is not None}
    return found | {key for key, gang in half_bound.items() if gang.released}


def in_turn(things: Iterable[T], namespace: Callable[[T], str]) -> list[T]:
    """Order things so that namespaces take turns, each with its things in the given order."""
    turn, turns = Counter[str](), list[tuple[int, T]]()
    for each in things:
        turns.append((turn[namespace(each)], each))
        turn[namespace(each)] += 1
    return [each for _, each in sorted(turns, key=itemgetter(0))]


def _without_refused(
    record: Mapping[GroupKey, GangRecord], refused: Iterable[PlannedBinding]
) -> dict[GroupKey, GangRecord]:
    void = digests(mark(bind.uid, bind.node) for bind in refused)
    return {key: replace(each, pods=each.pods - void) for key, each in record.items()}


def _is_settled(gang: GangOutcome, recorded: GangRecord, awaited: Collection[bytes]) -> bool:
    return gang.state in _COMPLETE and not gang.waiting and recorded.pods.isdisjoint(awaited)


def recorded_after(
    gangs: Iterable[GangOutcome],
    record: Mapping[GroupKey, GangRecord],
    patient_anew: Iterable[GroupKey],
    now: datetime,
    refused: Iterable[PlannedBinding] = (),
    awaited: Collection[bytes] = (),
) -> dict[GroupKey, GangRecord]:
    """The record after a pass: gangs that are or may become half-bound, or were rolled back.

    Parameters
    ----------
    refused
        Pods that certainly were not released, so that nobody gains by removing their gates.
    awaited
        Digests of bound pods whose kubelets have not answered.
    """
    found, anew = _without_refused(record, refused), frozenset(patient_anew)
    for gang in gangs:
        recorded = found.get(gang.key)
        if recorded is None:
            continue
        if _is_settled(gang, recorded, awaited):
            del found[gang.key]
        elif gang.state is GangState.ROLLED_BACK:
            times = recorded.rolled_back + 1
            found[gang.key] = GangRecord(now, frozenset(), times, now + back_off(times))
        elif gang.key in anew:
            found[gang.key] = replace(recorded, since=now)
        elif gang.state is GangState.LEFT and not gang.missing:
            kept = _kept(recorded, half_bound=False)
            if kept is None:
                del found[gang.key]
            else:
                found[gang.key] = kept
    return found
