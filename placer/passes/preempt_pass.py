"""``preempt``, ``defrag`` and ``repair`` in the cluster, and room made by passes of ``run`` (docs/passes.md).

In each step pods are evicted, their departure and their replacements are awaited, and pods are bound. Pods of a lost
node are evicted when their replacements are bound, without waiting, since no kubelet may end them. Before each step
everything is read again and the rest of the plan is judged by it. Gaining pods and places of moved ones are recorded
before the first eviction, for later passes.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from operator import attrgetter

from placer.answers.making_room import preempt
from placer.answers.solving import solve
from placer.base.codes import EventReason
from placer.base.errors import ClusterError
from placer.base.words import NamedThing, NameList, Sentence, counted, some
from placer.passes.cluster.planning.disruption_plan import (
    DisruptionReport,
    made_again,
    only_ours,
    owners,
    rest_of,
    trouble_with,
    with_wanted,
)
from placer.passes.cluster.planning.gang_outcome import GangState
from placer.passes.cluster.planning.half_bound import in_turn as taking_turns
from placer.passes.cluster.reading.client import server_time
from placer.passes.cluster.reading.earlier_passes import RoomState
from placer.passes.cluster.reading.gang_record import HeldRoom, RecordedDisruption, Reservation, ReservedPod, shape
from placer.passes.cluster.reading.snapshot import Identity
from placer.passes.cluster.reading.watch import Watch, Watches
from placer.passes.cluster.writing.breaker import patient
from placer.passes.cluster.writing.making_room import Departures, evict_pods, evictions_refused, in_turn, nominate
from placer.passes.cluster.writing.status_writer import write_evicted
from placer.passes.scheduling_pass import (
    Pass,
    PassSession,
    ReadCluster,
    bind_placement,
    end_pass,
    keep_record,
    make_pass,
    place_moved,
    read_cluster,
    save_pass,
)
from placer.problem import GroupKey, Instance, Key
from placer.problem.disruption import Disruption, lost_pods
from placer.problem.disruptions import limited
from placer.problem.outcome import Outcome
from placer.problem.placement import Binding, Placement, Step
from placer.problem.result import Result, Termination
from placer.problem.what_if import keeping_room, leaving_protected, protecting, with_lost, without
from placer.rules import verify
from placer.search.numa.binding_order import aligned

__all__ = ["make_plan", "make_room_pass"]

#: Seconds for which another place is looked for where what was planned does not hold once all is gone.
_ELSEWHERE = 10.0
#: Seconds after which a wait looks whether the pass is to end.
_SLICE = 0.2
#: Most groups that an Event names.
_NAMED = 3
_COMPLETE = (GangState.BOUND, GangState.SHORT)
_HOUR = timedelta(hours=1)
#: Most moved pods for which room is kept: what is recorded of them has to fit into a ConfigMap.
_RESERVED = 1_000
#: Most bytes of a moved pod for which room is kept: labels and other text are as long as their author likes.
_LONGEST_RESERVED = 4_000
#: Why room is held no longer that its gang does not have.
_WHY_OVER = {
    RoomState.FREE: "it was not there for all of it",
    RoomState.OVER: "it was not there in time",
    RoomState.BEGUN: "the pass that made it ended before all had gone, and nothing more is evicted for it",
}
#: Seconds for all plans where a pass has no limit, and the least for one.
_LIMIT, _LEAST = 20.0, 1.0
#: Most gangs that a plan is looked for.
_TRIED = 4
#: Reasons for which no room helps.
_HOPELESS = ("InvalidGroup", "GangIncomplete", "Unsupported", "NamespaceBudget", "NoEligibleNode")


def make_plan(
    session: PassSession,
    done: Pass,
    *,
    decide: Callable[..., Result],
    show: Callable[[Instance, Result], bool] = lambda _before, _result: True,
) -> None:
    """Make a plan, show it, and carry it out.

    Parameters
    ----------
    session, done
        As :func:`placer.passes.scheduling_pass.run_pass` gives them.
    decide
        Makes the plan: given the cluster, a function that adds wanted objects to it, and the limits of
        :func:`placer.answers.making_room.preempt`.
    show
        Called with the cluster and the plan before it is carried out; whether it is to be.
    """
    options, client = done.options, session.client
    client.until = session.start + options.time_limit if options.time_limit is not None else None
    read = read_cluster(session, done)
    if _is_being_made(done, read):
        return
    if read.room is not RoomState.NONE or read.reserved.made:
        session.gently()
        read = _finished_earlier(session, done, read)
    instance = only_ours(read.snapshot, read.instance, options.guards)

    def adding(objects: Sequence[str]) -> Instance:
        return only_ours(read.snapshot, with_wanted(read.snapshot, instance, objects), options.guards)

    with done.step("solve"):
        session.watch("looking for pods to evict")
        workers, seed = options.workers, options.seed
        limits = {"time_limit": options.time_limit, "workers": workers, "seed": seed, "began": session.start}
        done.result = result = decide(instance, adding, **limits)
    client.until = None
    save_pass(done)
    placement = _to_be_done(result, show(instance, result), session.stop)
    session.gently()
    if placement.disturbs or (placement.lost and placement.bindings):
        _Plan(session, done, replace(read, instance=instance), result.instance, placement).carry_out()
    elif placement.bindings and not placement.wanted:
        bind_placement(session, done, read, placement)
    end_pass(session, done)


def _to_be_done(result: Result, is_wanted: bool, stop: threading.Event) -> Placement:
    if result.termination is Termination.INTERRUPTED:
        stop.set()
    return result.placement if is_wanted and result.placement is not None else Placement()


def _is_being_made(done: Pass, read: ReadCluster) -> bool:
    held = done.record.disruption.held
    if held is None or read.room is not RoomState.MADE:
        return False
    who = ", ".join(some(list(map(str, held.pods)), _NAMED))
    why = f"victims of an earlier plan are on their way out, and their room is held for {who}"
    done.report.disruption = DisruptionReport(trouble=f"{why} until {held.until:%H:%M:%S} UTC at most")
    return True


def _finished_earlier(session: PassSession, done: Pass, read: ReadCluster) -> ReadCluster:
    """The cluster once moved pods and the gang of an earlier plan are bound; other held room is given back."""
    place_moved(session, done, read)
    read = read_cluster(session, done)
    held = done.record.disruption.held
    if held is None or read.room is RoomState.MADE:
        return read
    if read.room is RoomState.FREE:
        instance = read.instance
        gaining = {instance.pods[key].group for key in held.pods}
        alone = without(instance, {pod.key for pod in instance.pending if pod.group not in gaining})
        result = solve(alone, time_limit=_ELSEWHERE, workers=done.options.workers, seed=done.options.seed)
        bind_placement(session, done, read, result.placement or Placement())
    give_back(session, done)
    return read_cluster(session, done)


def give_back(session: PassSession, done: Pass) -> list[Key]:
    """Hold room no longer; the pods of its gang that did not get it."""
    recorded, bound = done.record.disruption, {bind.pod for gang in done.bound.gangs for bind in gang.bound}
    held = recorded.held
    if held is None:
        return []
    left = {key: Identity(uid, "") for key, (uid, _) in held.pods.items() if key not in bound}
    done.report.troubles += nominate(patient(session.client), dict.fromkeys(left), left)
    _record(session, done, replace(recorded, held=None))
    return sorted(left)


@dataclass
class _Plan:
    """A plan being carried out.

    The gaining pods and the places of moved ones are recorded before the first eviction, for later passes. ``renamed``:
    pods to their replacements; ``hourly``: it counts among the hour's evictions.
    """

    session: PassSession
    done: Pass
    read: ReadCluster
    before: Instance
    placement: Placement
    renamed: dict[Key, Key] = field(default_factory=dict)
    report: DisruptionReport = field(default_factory=DisruptionReport)
    hourly: bool = False
    begun: datetime | None = None
    refused: list[Key] = field(default_factory=list)
    earlier: RecordedDisruption = field(default_factory=RecordedDisruption)

    def __post_init__(self) -> None:
        if not self.placement.steps:
            everything = tuple(binding.pod for binding in self.placement.bindings)
            self.placement = replace(self.placement, steps=(Step((), everything),))
        self.disruption = Disruption(self.before, self.placement)
        self.decided: dict[Key, Identity] = dict(self.read.snapshot.identities)
        bindings = self.placement.bindings
        running = {key for key, pod in self.read.instance.pods.items() if pod.state.on_node}
        self.lost = {each.pod: each for each in bindings if each.pod in running}
        self.again = {**self.disruption.moved, **self.lost}  # to where what is made in their place goes
        self.owners = owners(self.read.snapshot, self.again)
        self.gaining = {group.key for group in self.disruption.admitted}
        self.report.planned = len(self.disruption.gone) + len(self.lost)
        self.done.report.disruption = self.report

    def carry_out(self) -> None:
        self.session.watch(f"asking whether {counted(self.report.planned, 'pod')} may be evicted")
        pods = in_turn(self.before, (*self.disruption.gone, *self.lost))
        forbidden = self._forbidden
        refused = evictions_refused(self.session.client, pods, self.decided, forbidden, self.refused)
        self.report.trouble = refused or self._in_steps()
        if self.begun is not None:
            self._end(self.begun)

    def _begin(self) -> None:
        at, troubles = server_time(self.session.client), self.done.report.troubles
        self.begun = at
        self.earlier = self.done.record.disruption
        if len(self.again) > _RESERVED:
            troubles.append(f"room is kept for no more than {_RESERVED:,} of {len(self.again):,} moved pods")
        long = self.again.keys() - self._short_texts().keys()
        if long:
            troubles.append(
                f"Pod {min(long)}: found more than {_LONGEST_RESERVED:,} bytes of text, expected no more: "
                f"no room is kept for {counted(len(long), 'moved pod')} like that, nor for pods moved with them"
            )
        _record(
            self.session, self.done, self._recorded(at, self._held(at), self._reservations(at), self.disruption.gone)
        )
        self._nominate(self.targets())

    def _end(self, at: datetime) -> None:
        keeps = self._goes_on()
        if self.report.trouble is not None and not keeps:
            self._nominate(dict.fromkeys(self.targets()))
        left = (each for each in self._reservations(at) if not self.report.moved.keys() >= each.pods.keys())
        went = [each for each in left if not each.pods.keys().isdisjoint(self.report.evicted)]
        try:
            held = self._held(at) if keeps else None
            _record(self.session, self.done, self._recorded(at, held, went, self.report.evicted))
        except ClusterError as error:  # the next pass finds out by itself
            self.done.report.troubles.append(str(error))

    def _goes_on(self) -> bool:
        broken_off = self.report.trouble is not None and self._forbidden() is not None
        return bool(self.report.standing or (broken_off and self.report.evicted))

    def _held(self, at: datetime) -> HeldRoom | None:
        pods = {key: (self.decided[key].uid, node) for key, node in self.targets().items()}
        victims = {key: self.decided[key].uid for key in sorted(self.disruption.gone)}
        shapes = {key: shape(self.before.pods[key].requests) for key in pods}
        return HeldRoom(self.done.identifier, pods, victims, at, at + self._patience, shapes) if pods else None

    @property
    def _patience(self) -> timedelta:
        return timedelta(seconds=self.done.options.hold)

    def _short_texts(self) -> dict[Key, bytes]:
        found = self.read.snapshot.pod_texts(self.again)
        return {key: text for key, text in found.items() if len(text) <= _LONGEST_RESERVED}

    def _reservations(self, at: datetime) -> list[Reservation]:
        lost: dict[object, list[Key]] = defaultdict(list)
        for key in self.lost:
            lost[self.before.pods[key].group].append(key)
        units = [unit.pods for unit in self.disruption.units if set(unit.pods) <= self.disruption.moved.keys()]
        texts, found = self._short_texts(), list[Reservation]()
        for unit in (*units, *lost.values()):
            pods = {
                key: ReservedPod(self.decided[key].uid, self.owners[key], self.again[key].node, texts[key].decode())
                for key in unit
                if key in self.owners.keys() & texts.keys()
            }
            if sum(len(each.pods) for each in found) + len(pods) <= _RESERVED and len(pods) == len(unit):
                found.append(Reservation(self.done.identifier, pods, at, at + self._patience))
        return found

    def _recorded(
        self, at: datetime, held: HeldRoom | None, reservations: Iterable[Reservation], evicted: Collection[Key]
    ) -> RecordedDisruption:
        times = tuple(each for each in self.earlier.evictions if at - each[0] < _HOUR)
        if self.hourly and evicted:
            times = (*times, (at, len(evicted)))
        others = self.earlier.held if not self.targets() else None
        return RecordedDisruption(held or others, times, (*self.earlier.reservations, *reservations))

    def _in_steps(self) -> str | None:
        for number, step in enumerate(self.placement.steps):
            going = (*step.go, *filter(self.lost.__contains__, step.bind))
            trouble = self._make_room(number, step, going) if going else None
            trouble = trouble or self._bind(step)
            if trouble is not None:
                return trouble
        left = [str(key) for key in self.report.not_moved if key in self.lost]
        many = counted(len(left), "pod")
        return f"{many} of lost nodes not placed again: {', '.join(some(left, _NAMED))}" if left else None

    def _forbidden(self) -> str | None:
        if self.session.stop.is_set():
            return "it was asked to stop"
        return self.done.elector.lost or (None if self.report.evicted else self.done.elector.paused)

    # ------------------------------------------------------------------------------------------------------ making room

    def _make_room(self, number: int, step: Step, going: Sequence[Key]) -> str | None:
        read = read_cluster(self.session, self.done)
        snapshot, instance = read.snapshot, self._taking_part(read)
        rest = rest_of(self.placement, number, self.renamed)
        trouble = trouble_with(instance, rest, snapshot.identities, self.decided, self._fits)
        if trouble is not None:
            return trouble
        if self.begun is None:
            self._begin()
        uids = {self.decided[key].uid for key in step.go}
        departures = Departures(uids, {each.uid for each in snapshot.identities.values()})
        listeners = departures.pod_happened, departures.pods_replaced
        version, count = snapshot.versions["pods"], snapshot.counts["pods"]
        pods = Watch(self.session.client, "/api/v1/pods", version, *listeners, count=count)
        watches = Watches([pods])
        with watches.open():
            watches.start_checks()
            with self.done.step("evict"):
                trouble = self._evict(in_turn(instance, going))
            with self.done.step("wait"):
                return trouble or self._wait(step, going, departures)

    def _taking_part(self, read: ReadCluster) -> Instance:
        lost, wanted = self.placement.lost, self.placement.wanted
        instance = only_ours(read.snapshot, with_wanted(read.snapshot, read.instance, wanted), self.done.options.guards)
        if lost:
            instance = with_lost(leaving_protected(instance, lost), lost)
        if wanted or self.placement.freed:
            instance = replace(instance, moves_only=True)
        part = {pod.key for pod in self.before.pending}.union(self.renamed.values())
        return without(instance, {pod.key for pod in instance.pending} - part)

    def _fits(self, instance: Instance) -> bool:
        if self.placement.freed:
            return False
        others = {pod.key for pod in instance.pending if pod.group not in self.gaining}
        alone = without(instance, others)
        result = solve(alone, method="greedy", time_limit=_ELSEWHERE, seed=self.done.options.seed)
        return self._ready(alone, result.placement or Placement(), self.gaining)

    @staticmethod
    def _ready(instance: Instance, placement: Placement, groups: Iterable[GroupKey]) -> bool:
        outcome = Outcome(instance, placement)
        return all(key in instance.groups and outcome.ready(instance.groups[key]) for key in groups)

    def targets(self) -> dict[Key, str]:
        of, bindings = self.before.pods, self.placement.bindings
        waiting = (each for each in bindings if each.pod not in self.lost and each.pod in self.decided)
        return {each.pod: each.node for each in waiting if of[each.pod].group in self.gaining}

    def _nominate(self, nodes: Mapping[Key, str] | Mapping[Key, None]) -> None:
        self.done.report.troubles += nominate(patient(self.session.client), nodes, self.decided)

    def _evict(self, pods: list[Key]) -> str | None:
        self.session.watch(f"evicting {counted(len(pods), 'pod')}")
        options, evicted, client = self.done.options, self.report.evicted, self.session.client
        grace, before = options.eviction.grace, len(evicted)
        trouble = evict_pods(client, pods, self.decided, evicted, grace, self._forbidden, self.refused)
        notes = {key: self._note(key) for key in evicted[before:]}
        told = write_evicted(patient(client), options.scheduler_name, notes, self.decided, options.status)
        self.done.report.troubles += told.troubles
        return trouble

    def _note(self, key: Key) -> tuple[EventReason, str]:
        again, node = self.again.get(key), self.read.instance.pods[key].node
        target = f" to be placed on Node {again.node}" if again is not None else ""
        if key in self.lost:
            return "NodeLost", f"evicted from Node {node}, which is lost,{target}"
        is_asked_room = bool(self.placement.freed or self.placement.wanted or self.lost)
        return (
            "Defragmented" if is_asked_room else "Preempted",
            f"evicted from Node {node}{target} so that {self._gain().told(key.namespace)}",
        )

    def _gain(self) -> Sentence:
        freed, gaining = self.placement.freed, sorted(self.gaining)
        if self.lost:
            return Sentence.of(f"there is room for {counted(len(self.lost), 'pod')} of lost nodes")
        if self.placement.wanted:
            pods = sum(len(self.before.groups[key].pending) for key in gaining)
            return Sentence.of(
                f"there is room for {counted(len(gaining), 'group')} ({counted(pods, 'pod')}), as was asked for"
            )
        verb = "is" if len(freed or gaining) == 1 else "are"
        if freed:
            return Sentence.listed([f"HyperNode {name}" for name in freed], _NAMED) + f" {verb} empty"
        return Sentence.of(NameList(tuple(map(self._gaining, gaining)), _NAMED, "group"), f" {verb} admitted")

    def _gaining(self, key: GroupKey) -> NamedThing:
        group = self.before.groups[key]
        uid = next((self.decided[pod].uid for pod in group.pending if pod in self.decided), "")
        return NamedThing(key.namespace, str(key), group.priority, len(group.pending), uid)

    def _wait(self, step: Step, going: Sequence[Key], departures: Departures) -> str | None:
        until = time.monotonic() + self.done.options.eviction.gone
        self.session.watch(f"waiting until {counted(len(step.go), 'pod')} are gone")
        if not self._waited(departures, departures.all_gone, until):
            standing = departures.standing()
            self.report.standing = [key for key in step.go if self.decided[key].uid in standing]
            many = len(self.report.standing)
            left = f"{many} of {counted(len(step.go), 'evicted pod')} {'is' if many == 1 else 'are'} still there"
            return self._forbidden() or f"{left} after {self.done.options.eviction.gone:g} s"
        wanted = Counter(self.owners[key] for key in going if key in self.again)
        self._waited(departures, lambda: departures.all_made(wanted), until)  # what is not made is told as not moved
        return self._forbidden()

    def _waited(self, departures: Departures, until: Callable[[], bool], end: float) -> bool:
        while not departures.wait(_SLICE, until):
            if time.monotonic() > end or self._forbidden():
                return False
        return True

    # ---------------------------------------------------------------------------------------------------------- binding

    def _bind(self, step: Step) -> str | None:
        if not step.bind:
            return None
        read = read_cluster(self.session, self.done)
        self._find(step, read)
        # Without pods still on a lost node: there is no new pod yet that could be bound in their place.
        instance = self._taking_part(read)
        instance = without(instance, lost_pods(read.instance, instance))
        placement = aligned(instance, Placement(tuple(self._bindings(step))))
        groups = self.gaining.intersection(self.before.pods[key].group for key in step.bind)
        broken = verify(instance, placement)
        if broken:
            self.report.elsewhere = broken[0].message
            placement = self._elsewhere(instance, placement)
        has_room = not broken or self._ready(instance, placement, groups)
        there = (each for each in placement.bindings if each.pod in read.instance.pods)  # and not wanted alone
        bind_placement(self.session, self.done, read, replace(placement, bindings=tuple(there)))
        self._note_moved(step)
        return (
            self._left(groups) if has_room else f"there is no room any more, now that all is gone: {broken[0].message}"
        )

    def _left(self, groups: set[GroupKey]) -> str | None:
        for gang in self.done.bound.gangs:
            if gang.key in groups and gang.state not in _COMPLETE:
                return f"{gang.key} was not bound: {gang.reason or next(iter(gang.missing.values()), gang.state.value)}"
        dropped = groups & self.done.bound.plan.dropped.keys()
        return next((f"{key} was not bound: {self.done.bound.plan.dropped[key]}" for key in sorted(dropped)), None)

    def _note_moved(self, step: Step) -> None:
        bound = {bind.pod for gang in self.done.bound.gangs for bind in gang.bound}
        moves = [key for key in step.bind if key in self.again]
        self.report.moved |= {key: self.renamed[key] for key in moves if self.renamed.get(key) in bound}
        self.report.not_moved += [key for key in moves if key not in self.report.moved]

    def _find(self, step: Step, read: ReadCluster) -> None:
        moved = {key: self.owners[key] for key in step.bind if key in self.again}
        if not moved:
            return
        known, identities = {each.uid for each in self.read.snapshot.identities.values()}, read.snapshot.identities
        new = [pod.key for pod in read.instance.pending if identities[pod.key].uid not in known]
        self.renamed |= made_again(moved, self.before, read.instance, owners(read.snapshot, new))
        self.decided |= {key: identities[key] for key in self.renamed.values() if key in identities}

    def _bindings(self, step: Step) -> Iterable[Binding]:
        part = {key for unit in self.disruption.units if not set(unit.pods) <= self.renamed.keys() for key in unit.pods}
        for key in step.bind:
            again = self.again.get(key)
            if again is None:
                yield Binding(key, self.placement.node_of[key])
            elif key in self.renamed.keys() - part:
                yield Binding(self.renamed[key], again.node)

    def _elsewhere(self, instance: Instance, placement: Placement) -> Placement:
        to_be_bound = {instance.pods[each.pod].group for each in placement.bindings if each.pod in instance.pods}
        others = {pod.key for pod in instance.pending if pod.group not in to_be_bound}
        theirs = {each.pod: each.node for each in self.placement.bindings if each.pod in others}
        alone = keeping_room(without(instance, others), instance, theirs, self.placement.freed)
        options = self.done.options
        result = solve(alone, time_limit=_ELSEWHERE, workers=options.workers, seed=options.seed)
        return result.placement or Placement()


# ------------------------------------------------------------------------------------------ room made by a pass of run


def make_room_pass(session: PassSession, done: Pass) -> None:
    """Make a pass (:func:`placer.passes.scheduling_pass.make_pass`), and then room, where the Policy allows it."""
    make_pass(session, done)
    if not done.options.dry_run and done.elector.paused is None and not session.stop.is_set():
        _RoomMaker(session, done).run()
        _forget_reservations(session, done)
        end_pass(session, done)


def _forget_reservations(session: PassSession, done: Pass) -> None:
    recorded, kept = done.record.disruption, done.read.reserved.left if done.read is not None else ()
    left = (*kept, *(each for each in recorded.reservations if each.made_by == done.identifier))
    if left != recorded.reservations:
        _record(session, done, replace(recorded, reservations=left))


class _RoomMaker:
    """Room for a gang, after a pass has placed what it can."""

    def __init__(self, session: PassSession, done: Pass) -> None:
        self.session, self.done = session, done
        self.recorded = done.record.disruption
        self.now = server_time(session.client)

    @property
    def read(self) -> ReadCluster:
        assert self.done.read is not None, "the cluster was read"
        return self.done.read

    def run(self) -> None:
        room, policy = self.read.room, self.read.instance.policy
        allowed = self.done.options.disturbs and (policy.evicts or policy.moves)
        if room is RoomState.BEGUN and allowed:
            self._go_on()
        elif room in _WHY_OVER:
            self._give_back(room)
        elif room is RoomState.NONE and allowed:
            self._begin()

    @property
    def _left(self) -> int:
        return self.done.options.evictions_per_hour - self.recorded.within(_HOUR, self.now)

    def _begin(self) -> None:
        waiting = list(self._waiting())
        if waiting and self._left > 0:
            self._make(waiting, self._cluster())
        elif waiting:
            most = self.done.options.evictions_per_hour
            what = f"{counted(most, 'pod')} {'was' if most == 1 else 'were'} disturbed within the last hour"
            self.done.report.disruption = DisruptionReport(trouble=f"{what}, the most that may be")

    def _go_on(self) -> None:
        held = self.recorded.held
        assert held is not None, "it is so of held room"
        there = {(key, each.uid) for key, each in self.read.snapshot.identities.items()}
        self.recorded = _adopted(self.recorded, held, len(there & held.victims.items()), self.done.identifier)
        _record(self.session, self.done, self.recorded)
        read = read_cluster(self.session, self.done)
        instance = read.instance
        gangs = {instance.pods[key].group or GroupKey("", *key) for key in held.pods if key in instance.pods}
        self._make(sorted(gangs), read)
        if self.done.report.disruption is None:
            self._give_back(read.room)

    def _give_back(self, room: RoomState) -> None:
        left = give_back(self.session, self.done)
        if left:
            named = ", ".join(map(str, left[:_TRIED]))
            why = f"room is held no longer for {named}: {_WHY_OVER[room]}"
            self.done.report.disruption = DisruptionReport(trouble=why)

    def _waiting(self) -> Iterator[GroupKey]:
        """Groups that room may help, most urgent first, except those of pods that preempt nobody.

        Among equals namespaces take turns, so that many hopeless groups of one keep no others from being tried.
        """
        result = self.done.result
        if result is None or self._is_same(result):
            return
        groups = result.instance.groups
        left: set[GroupKey | None] = {pod.group for pod in result.instance.pending if pod.never_preempts}
        left.update(self.done.read.half_bound if self.done.read is not None else ())
        helped = [key for key, reason in result.reasons.items() if reason.code not in _HOPELESS and key not in left]
        first = sorted(helped, key=lambda key: (-groups[key].priority, groups[key].created, key))
        turns = {key: turn for turn, key in enumerate(taking_turns(first, attrgetter("namespace")))}
        yield from sorted(first, key=lambda key: (-groups[key].priority, turns[key]))[:_TRIED]

    def _is_same(self, result: Result) -> bool:
        earlier = self.done.loop.earlier
        return earlier is not None and earlier[1].seconds is result.seconds

    def _make(self, waiting: list[GroupKey], read: ReadCluster) -> None:
        """Look for a plan for one gang after another, and carry out the first.

        Where the server refuses all evictions, another plan is looked for without the refused pods: else one cheap pod
        that cannot be evicted would prevent all room.
        """
        instance = self._within_limits(read, max(0, self._left))
        until = time.monotonic() + (self.done.options.time_limit or _LIMIT)
        left = deque(waiting)
        while left:
            seconds = (until - time.monotonic()) / 2
            if seconds < _LEAST or self.session.stop.is_set():
                self.done.report.undecided = True
                return
            placement = self._plan(instance, left[0], seconds)
            if placement is None:
                left.popleft()
                continue
            refused = self._carry_out(replace(read, instance=instance), left[0], placement)
            if not refused:
                return
            instance = protecting(instance, dict.fromkeys(refused, "the server refuses its eviction"))

    def _cluster(self) -> ReadCluster:
        """The cluster with the new bindings of this pass."""
        done = self.done
        assert done.result is not None, "it was decided upon"
        if not any(gang.bound for gang in done.bound.gangs):
            return replace(self.read, instance=done.result.instance)
        return read_cluster(self.session, done)

    def _within_limits(self, read: ReadCluster, left: int) -> Instance:
        new = {bind.pod: "it was bound just now" for gang in self.done.bound.gangs for bind in gang.bound}
        instance, policy = protecting(read.instance, new), self.read.instance.policy
        instance = only_ours(read.snapshot, instance, self.done.options.guards)
        budgets = (*instance.budgets, limited(Key("", "of the hour"), left, instance.pods))
        return replace(instance, budgets=budgets, may_evict=policy.evicts, may_move=policy.moves)

    def _plan(self, instance: Instance, key: GroupKey, seconds: float) -> Placement | None:
        group = instance.groups.get(key)
        if group is None or not group.pending:
            return None
        self.session.watch(f"looking for pods to evict for {key}")
        options = self.done.options
        with self.done.step("room"):
            workers, seed = options.workers, options.seed
            result = preempt(instance, key, time_limit=seconds, workers=workers, seed=seed, costs=False)
        if result.termination is Termination.INTERRUPTED:
            self.session.stop.set()
        placement = result.placement or Placement()
        admitted = {each.key for each in Disruption(result.instance, placement).admitted}
        self.done.report.undecided |= not _is_decided(result)
        return placement if placement.disturbs and key in admitted and not self.session.stop.is_set() else None

    def _carry_out(self, read: ReadCluster, key: GroupKey, placement: Placement) -> list[Key]:
        """Carry a plan out; the pods that the server refused, where nothing has happened."""
        done, result = self.done, self.done.result
        if result is not None:  # why the group waits is not told while it is bound
            done.result = replace(result, reasons={each: why for each, why in result.reasons.items() if each != key})
        # As in the result of preempt, of all that waits the group alone takes part.
        before = without(read.instance, {pod.key for pod in read.instance.pending if pod.group != key})
        plan = _Plan(self.session, done, read, before, placement, hourly=True)
        plan.carry_out()
        if key not in {gang.key for gang in done.bound.gangs if gang.bound}:
            done.result = result
        return [] if plan.report.evicted else plan.refused


def _adopted(recorded: RecordedDisruption, held: HeldRoom, still: int, identifier: str) -> RecordedDisruption:
    """The record of room that a pass continues to make; remaining victims were not evicted in the hour."""
    times = ((at, count - still if at == held.since else count) for at, count in recorded.evictions)
    kept = tuple(each for each in times if each[1] > 0)
    return replace(recorded, held=replace(held, made_by=identifier), evictions=kept)


def _is_decided(result: Result) -> bool:
    return result.placement is not None and all(
        judged.met for judged in result.objective if judged.value.name == "admitted"
    )


def _record(session: PassSession, done: Pass, disruption: RecordedDisruption) -> None:
    if done.elector.lost is None:
        keep_record(session.client, done, done.record.gangs, done.record.workloads, disruption)
