"""Gangs that are half-bound from pass to pass: what is recorded, what they are after one, which are rolled back.

**Patience.** A gang that stays half-bound holds room that is of no use to it or anybody. When it has been so for longer
than a pass's patience it is rolled back whole: what this pass and earlier ones bound of it is deleted, and it *backs
off* before it is tried again, one minute after the first time and twice as long after each further one, an hour at
most. (Kueue's ``waitForPodsReady`` does the same, with the same figures.)

**Released pods.** A gang of which placer has released pods that their own scheduler does not bind is held to the same
patience: nothing but to delete a pod puts its gate back. Where the gang is ready without them, they alone go.

**Which goes first.** Gangs may hold each other's room, and then some must go and others need not. Of those whose
patience is over, those go that nothing can complete, since none of their pods waits; of the others the less urgent
half, so that of two it is one: those of the lowest priority, among equals the youngest, then the last by name. The
others have their patience anew.

**Who has the record.** There is room in it for tens of thousands of gangs (:mod:`placer.cluster.reading.gang_record`).
Where they need more, namespaces have as much of it as each other, and what one does not need is the others'. So who has
thousands of gangs, half-bound or rolled back, takes it from nobody: what is beyond that is not bound in that pass, but
for the most urgent gang; of what earlier passes left, it is no longer recorded. How often gangs were rolled back has
what room all others leave.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import compress
from operator import itemgetter
from typing import TypeVar

from placer.cluster.planning.binding_plan import Batch, BindingPlan, PlannedBinding
from placer.cluster.planning.gang_outcome import GangOutcome, GangState
from placer.cluster.reading.earlier_passes import HalfBoundGang, ready_without
from placer.cluster.reading.gang_record import MOST_BYTES, GangRecord, digests, record_bytes, shapes_of
from placer.cluster.reading.rejections import back_off
from placer.cluster.reading.released import mark
from placer.cluster.reading.snapshot import Identity
from placer.instance import GroupKey, Instance, Key
from placer.outcome import Outcome
from placer.placement import Placement
from placer.words import counted

__all__ = [
    "RecordedPlan",
    "given_up",
    "in_turn",
    "next_to_go",
    "nominated",
    "on_hold",
    "recorded_after",
    "recorded_before",
    "surplus",
    "surpluses",
    "told_when",
    "unseen",
    "with_earlier",
]

T = TypeVar("T")

_COMPLETE = frozenset((GangState.BOUND, GangState.SHORT))


@dataclass(frozen=True, slots=True)
class RecordedPlan:
    """What is to be recorded before the first binding goes out.

    Parameters
    ----------
    plan
        Without gangs for which the record has no room; most often the plan that was made.
    gangs
        Those that are half-bound, may be so soon, or were rolled back and are still there.
    troubles
        What is no longer recorded, though it is so still: one sentence for each namespace.
    """

    plan: BindingPlan
    gangs: dict[GroupKey, GangRecord]
    troubles: list[str] = field(default_factory=list)


def recorded_before(
    instance: Instance,
    plan: BindingPlan,
    record: Mapping[GroupKey, GangRecord],
    half_bound: Mapping[GroupKey, HalfBoundGang],
    now: datetime,
    awaited: Collection[bytes] = (),
) -> RecordedPlan:
    """Find what is to be recorded before the first binding goes out.

    Parameters
    ----------
    instance, plan
        What was decided upon, and what is to be bound.
    record, half_bound
        What earlier passes recorded, and what is half-bound of it.
    now
        When.
    awaited
        Digests of pods whose kubelets are still to answer: until then their gangs stay recorded.
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
    """The plan without batches for which there is no room."""
    why = "the record of gangs under way has no room for more in one pass"
    left = {key: why for batch, may in zip(plan.batches, goes, strict=True) if not may for key in batch.gangs}
    return replace(plan, batches=tuple(compress(plan.batches, goes)), dropped={**plan.dropped, **left})


def _together(parts: Iterable[Mapping[GroupKey, GangRecord]]) -> dict[GroupKey, GangRecord]:
    return {key: each for part in parts for key, each in part.items()}


def _oldest_first(
    record: Mapping[GroupKey, GangRecord], keys: Iterable[GroupKey]
) -> list[Mapping[GroupKey, GangRecord]]:
    """Gangs one by one, each with its record."""
    found = sorted((key for key in keys if key in record), key=lambda key: (record[key].since, key))
    return [{key: record[key]} for key in found]


def _with_room(wanted: Sequence[Mapping[GroupKey, GangRecord]], room: int, urgent: int | None = None) -> set[int]:
    """Which of some parts of the record have room, where namespaces have as much as each other that want more.

    Parameters
    ----------
    wanted
        Parts, the first of each namespace first.
    room
        Bytes.
    urgent
        The one that waits for no other.
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
    """What is no longer recorded, in a sentence for each namespace."""
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
    """What stays recorded of gangs that are still there."""
    there = (key for key in record if key in instance.groups or key in half_bound)
    known = {key: _kept(record[key], key in half_bound or not awaited.isdisjoint(record[key].pods)) for key in there}
    return {key: each for key, each in known.items() if each is not None}


def _begun(earlier: GangRecord, now: GangRecord) -> GangRecord:
    """The record of a gang of which more pods are about to be bound.

    Since when and with what it was begun stays so, but of one that was rolled back.
    """
    begun, pods = earlier if earlier.pods else now, earlier.pods | now.pods
    return replace(begun, pods=pods, rolled_back=earlier.rolled_back, until=None, size=begun.size or len(pods))


def _sizes(gangs: Mapping[GroupKey, GangRecord]) -> Counter[str]:
    """What gangs take of the record, by namespace."""
    sizes = Counter[str]()
    for key, each in gangs.items():
        sizes[key.namespace] += record_bytes(key, len(each.pods), len(each.shapes))
    return sizes


def _kept(record: GangRecord, half_bound: bool) -> GangRecord | None:
    """What stays of a gang's record: all of it where it is half-bound, else how often it was rolled back."""
    if half_bound:
        return record
    return replace(record, pods=frozenset(), size=0, shapes={}) if record.rolled_back else None


def _may_stay_half_bound(
    instance: Instance, nothing: Outcome, batch: Batch, now: datetime
) -> dict[GroupKey, GangRecord]:
    """Gangs of a batch that are not ready yet and take more than one binding, and those of which a pod is released,
    since its scheduler may not bind it; with what is recorded of these.
    """
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
    """The gangs after a pass, with what earlier passes had bound of them; one left as it was is half-bound still.

    Parameters
    ----------
    instance, identities
        What was decided upon.
    gangs
        What became of the gangs of the plan.
    half_bound
        Those that were half-bound before, planned or not.
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
    """Why a gang is not ready as it stands; empty where it is, or is one pod."""
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
    """The state of a gang, with what earlier passes left of it, and whether schedulers are still to bind some of it."""
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
    """The gangs that are to be rolled back, and those that were as impatient and stay.

    Parameters
    ----------
    instance, gangs, half_bound, record
        As they are after a pass.
    patience
        Seconds for which a gang may stay half-bound.
    now
        When.
    grace
        Fewest seconds that schedulers have to bind what was released, whatever the patience.
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
    """Whether patience with a gang is over that is half-bound, or that schedulers do not bind."""
    earlier = {bind.pod for bind in gang.before}
    waits = any(bind.pod in earlier for bind in gang.waiting)  # what was released just now has its time still
    if record is None or (gang.state is not GangState.HALF_BOUND and not waits):
        return False
    least = max(patience, grace) if waits else patience
    # By the clock of a server that has just been asked for the first time it may be a part of a second earlier.
    return least <= 0 or (now - record.since).total_seconds() >= least


def surplus(instance: Instance, gang: GangOutcome) -> frozenset[Key] | None:
    """The released pods of a gang that are to go alone, since it is ready without them; None where all of it goes.

    Parameters
    ----------
    instance
        What was decided upon.
    gang
        With which patience is over.
    """
    pods, new = (frozenset(bind.pod for bind in binds) for binds in (gang.waiting, gang.bound))
    return pods if pods and ready_without(instance, gang.key, pods, new) else None


def surpluses(
    instance: Instance, gangs: Iterable[GangOutcome], keys: Iterable[GroupKey]
) -> dict[GroupKey, frozenset[Key]]:
    """Released pods without which gangs that are to be rolled back are ready, as they are before that."""
    wanted = frozenset(keys)
    found = {gang.key: surplus(instance, gang) for gang in gangs if gang.key in wanted}
    return {key: pods for key, pods in found.items() if pods is not None}


def given_up(before: Iterable[GangOutcome], after: Iterable[GangOutcome]) -> dict[Key, str]:
    """Released pods that were not bound and are rolled back, each with its node."""
    gone = {pod for gang in after if gang.state is GangState.ROLLED_BACK for pod in gang.missing}
    return {bind.pod: bind.node for gang in before for bind in gang.waiting if bind.pod in gone}


def told_when(gang: GangOutcome, record: GangRecord | None, patience: float) -> GangOutcome:
    """A gang that was rolled back, with when it is tried again; one that is half-bound, since when and until when."""
    if gang.state is GangState.HALF_BOUND and record is not None:
        until = record.since + timedelta(seconds=patience) if patience < math.inf else None
        return replace(gang, since=record.since, until=until)
    if gang.state is not GangState.ROLLED_BACK or record is None or record.until is None:
        return gang
    return replace(gang, reason=f"rolled back {record.rolled_back} times, tried again at {record.until:%H:%M:%S} UTC")


def unseen(gangs: Iterable[GangOutcome], pods: Container[Key]) -> Iterator[GangOutcome]:
    """Gangs that were bound and of which a pod was not seen since."""
    return (gang for gang in gangs if any(bind.pod in pods for bind in gang.bound))


def nominated(
    identities: Mapping[Key, Identity], gangs: Iterable[GangOutcome], admits: Callable[[str], bool]
) -> dict[Key, Identity]:
    """Pods with the hold gate that had a nomination before a pass, and got no node of it."""
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
    """Order things so that namespaces take turns, each with its own in the order in which they come.

    Parameters
    ----------
    things
        Which.
    namespace
        Gives whose each is.
    """
    turn, turns = Counter[str](), list[tuple[int, T]]()
    for each in things:
        turns.append((turn[namespace(each)], each))
        turn[namespace(each)] += 1
    return [each for _, each in sorted(turns, key=itemgetter(0))]


def _is_complete(gang: GangOutcome) -> bool:
    return gang.state in _COMPLETE and not gang.waiting


def _is_over_with(gang: GangOutcome, recorded: GangRecord, awaited: Collection[bytes]) -> bool:
    return _is_complete(gang) and recorded.pods.isdisjoint(awaited)


def _without_refused(
    record: Mapping[GroupKey, GangRecord], refused: Iterable[PlannedBinding]
) -> dict[GroupKey, GangRecord]:
    void = digests(mark(bind.uid, bind.node) for bind in refused)
    return {key: replace(each, pods=each.pods - void) for key, each in record.items()}


def recorded_after(
    gangs: Iterable[GangOutcome],
    record: Mapping[GroupKey, GangRecord],
    patient_anew: Iterable[GroupKey],
    now: datetime,
    refused: Iterable[PlannedBinding] = (),
    awaited: Collection[bytes] = (),
) -> dict[GroupKey, GangRecord]:
    """What stays recorded after a pass: what is half-bound, what may be, and what was rolled back.

    Parameters
    ----------
    gangs, record
        As they are after a pass, and as it was before the first binding.
    patient_anew
        Gangs that have their patience anew.
    now
        When.
    refused
        Pods that were to be released and for certain were not: whoever takes their gates away now has no place by it.
    awaited
        Digests of bound pods whose kubelets are still to answer, as for :func:`recorded_before`.
    """
    found, anew = _without_refused(record, refused), frozenset(patient_anew)
    for gang in gangs:
        recorded = found.get(gang.key)
        if recorded is None:
            continue
        if _is_over_with(gang, recorded, awaited):
            del found[gang.key]
        elif gang.state is GangState.ROLLED_BACK:
            times = recorded.rolled_back + 1
            found[gang.key] = GangRecord(now, frozenset(), times, now + back_off(times))
        elif gang.key in anew:
            found[gang.key] = replace(recorded, since=now)
        elif gang.state is GangState.LEFT and not gang.missing:
            kept = _kept(recorded, half_bound=False)
            found |= {gang.key: kept} if kept is not None else {}
            if kept is None:
                del found[gang.key]
    return found
