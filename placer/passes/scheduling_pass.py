"""One pass in the cluster: snapshot, decision, plan, bindings, and the status of its outcome."""

from __future__ import annotations

import math
import os
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from typing import Any

from placer.answers.document import placement_document
from placer.answers.reasons import LATE
from placer.answers.solving import solve
from placer.base.errors import ClusterError, NothingFound
from placer.base.words import counted
from placer.passes.cluster.planning.binding_plan import BindingPlan, PlannedBinding, plan_bindings
from placer.passes.cluster.planning.disruption_plan import DisruptionReport
from placer.passes.cluster.planning.gang_outcome import GAVE_WAY, GangOutcome, GangState
from placer.passes.cluster.planning.half_bound import (
    given_up,
    next_to_go,
    nominated,
    on_hold,
    recorded_after,
    recorded_before,
    surpluses,
    told_when,
    unseen,
    with_earlier,
)
from placer.passes.cluster.planning.reservations import ReservedRoom, admitted, with_reservations, with_room_to_complete
from placer.passes.cluster.planning.scheduler_cache import Overfull, SchedulerCache
from placer.passes.cluster.reading.client import Client, Forbidden, server_time
from placer.passes.cluster.reading.daemon_sets import room_troubles
from placer.passes.cluster.reading.earlier_passes import BackOff, HalfBoundGang, RoomState, prepared
from placer.passes.cluster.reading.gang_record import (
    Ages,
    RecordedGangs,
    RejectedWorkload,
    UnansweredPods,
    digests,
    read_record,
    record_name,
    record_troubles,
)
from placer.passes.cluster.reading.guards import Guards, guarded
from placer.passes.cluster.reading.reflectors import Reflectors
from placer.passes.cluster.reading.rejections import (
    RejectedSince,
    cooling_nodes,
    failed_pods,
    kept_off,
    not_bound,
    of_ours,
    remembered,
    unanswered_after,
    unsteady,
    waiting_workloads,
)
from placer.passes.cluster.reading.snapshot import Snapshot, take
from placer.passes.cluster.reading.views import Rejection, WorkloadKey
from placer.passes.cluster.writing.breaker import Breaker, patient
from placer.passes.cluster.writing.cache_feed import CacheFeed
from placer.passes.cluster.writing.controllers import ControllerReport, write_controlled
from placer.passes.cluster.writing.express_lane import Arrivals, ExpressLane
from placer.passes.cluster.writing.gang_ledger import write_record
from placer.passes.cluster.writing.lease import LeaderElector, LeaseOptions, NoElection
from placer.passes.cluster.writing.making_room import EvictionOptions
from placer.passes.cluster.writing.plan_execution import BindingOptions, execute_plan, why_refused
from placer.passes.cluster.writing.rolling_back import roll_back_in_turn
from placer.passes.cluster.writing.status_writer import StatusOptions, StatusReport, Teller, status_news, write_news
from placer.passes.cluster.writing.volcano_pod_groups import Enqueued, enqueue_pod_groups
from placer.passes.saved_passes import SavedPasses
from placer.problem import GroupKey, Instance, Key
from placer.problem.namespace_budget import NamespaceBudget, NamespaceCost, dearest, within_budget
from placer.problem.placement import Placement
from placer.problem.reading import refuse_findings
from placer.problem.result import Reason, Result, Termination, Verdict

__all__ = [
    "Bindings",
    "LoopMemory",
    "MakePass",
    "Pass",
    "PassOptions",
    "PassReport",
    "PassSession",
    "ReadCluster",
    "bind_placement",
    "end_pass",
    "keep_record",
    "lasting_answer",
    "leader_identity",
    "make_pass",
    "place_moved",
    "read_cluster",
    "run_pass",
    "save_pass",
]

#: Most seconds for deciding by itself upon what comes before all others, where that is looked at by itself.
_FIRST = 5.0
#: Most moved units that are tried one by one where not all have room together.
_ONE_BY_ONE = 20


@dataclass(frozen=True, kw_only=True)
class PassOptions:
    """Options of a pass; the help of ``placer run`` describes each flag."""

    scheduler_name: str = "placer"
    method: str = "auto"
    #: Seconds from the start of the pass to the first binding, but half of it is left for deciding.
    time_limit: float | None = 20.0
    namespace_budget: NamespaceBudget | None = field(default_factory=NamespaceBudget)
    workers: int | None = None
    seed: int = 0
    binding: BindingOptions = field(default_factory=BindingOptions)
    dry_run: str = ""  #: empty; ``client``: write nothing; ``server``: the server tries every binding and keeps none
    cool_down: float = 300.0
    status: StatusOptions = field(default_factory=StatusOptions)
    enqueue: bool = False
    strict: bool = False
    save: SavedPasses | None = None
    lease: LeaseOptions = field(default_factory=LeaseOptions)
    #: Seconds for which a gang may be half-bound before it is rolled back; 0: rolled back by this pass.
    patience: float = 300.0
    guards: Guards = field(default_factory=Guards)
    most: int | None = None  #: limit of bindings, in whole gangs; None: there is none
    #: Longest period of a loop (:mod:`placer.passes.scheduling_loop`) in seconds; None: the pass stands alone.
    every: float | None = None
    eviction: EvictionOptions = field(default_factory=EvictionOptions)
    evictions_per_hour: int = 0
    hold: float = 600.0  #: seconds for which made room is held for its gang
    controllers: frozenset[str] = frozenset()
    gates: bool = False  #: whether pods with the hold gate alone are decided, and released
    #: Whether room is held for missing pods of half-bound gangs; a plan that evicts for one finds it free.
    holds: bool = True

    @property
    def disturbs(self) -> bool:
        """Whether it makes room where the Policy allows it."""
        return self.evictions_per_hour > 0 and not self.dry_run

    @property
    def record(self) -> tuple[str, str]:
        """Namespace and name of the ConfigMap with the record of half-bound gangs."""
        return self.lease.namespace, record_name(self.lease.name)


@dataclass(frozen=True, slots=True)
class ReadCluster:
    """The cluster as it was read, with the state of earlier passes; ``reasons`` of gangs for which room is held."""

    snapshot: Snapshot
    instance: Instance
    cache: SchedulerCache
    workloads: Mapping[WorkloadKey, RejectedWorkload] = field(default_factory=dict)
    cooling: frozenset[str] = frozenset()
    half_bound: Mapping[GroupKey, HalfBoundGang] = field(default_factory=dict)
    backing_off: Mapping[Key, BackOff] = field(default_factory=dict)
    room: RoomState = RoomState.NONE
    reserved: ReservedRoom = field(default_factory=ReservedRoom)
    reasons: Mapping[GroupKey, Reason] = field(default_factory=dict)
    costs: Sequence[NamespaceCost] = ()


@dataclass
class Bindings:
    """The plan of a pass and its outcome; ``unseen`` gangs were bound, and no event showed it."""

    plan: BindingPlan = field(default_factory=BindingPlan)
    gangs: list[GangOutcome] = field(default_factory=list)
    overfull: list[Overfull] = field(default_factory=list)
    unseen: list[GangOutcome] = field(default_factory=list)
    refused: str | None = None

    @property
    def half_bound(self) -> list[GangOutcome]:
        """Gangs that the pass leaves half-bound."""
        return [gang for gang in self.gangs if gang.state is GangState.HALF_BOUND]


@dataclass
class PassReport:
    """Other facts about a pass, for its line and for metrics."""

    troubles: list[str] = field(default_factory=list)
    unrecorded: Counter[str] = field(default_factory=Counter)  #: entries without room in the record, by part
    disruption: DisruptionReport | None = None  #: None: nothing that runs was to be disturbed
    undecided: bool = False  #: whether a search for room ended before it was proved that there is none
    status: StatusReport = field(default_factory=StatusReport)
    controlled: ControllerReport = field(default_factory=ControllerReport)
    enqueued: Enqueued = field(default_factory=Enqueued)
    saved: list[str] = field(default_factory=list)
    not_saved: str | None = None
    interrupted: bool = False
    error: str | None = None
    exit_code: int = 0  #: of the error, where a loop continues after it


@dataclass
class LoopMemory:
    """Memory of a loop; a pass that stands alone has none."""

    earlier: tuple[Snapshot, Result] | None = None  #: an answer that holds for a cluster that is still the same
    heard: Collection[Rejection] | None = None  #: rejections between passes; None: nobody listened
    arrivals: Arrivals | None = None
    teller: Teller | None = None
    ages: Ages = field(default_factory=Ages)


@dataclass
class Pass:
    """State and outcome of a pass; complete when :func:`run_pass` returns."""

    options: PassOptions
    loop: LoopMemory = field(default_factory=LoopMemory)
    identifier: str = field(default_factory=lambda: str(uuid.uuid4()))
    began: datetime = field(default_factory=lambda: datetime.now(UTC))
    seconds: dict[str, float] = field(default_factory=dict)
    elector: LeaderElector | NoElection = field(default_factory=NoElection)
    leader: str | None = None  #: who holds the Lease: this pass, or what keeps it from deciding; None: not asked
    record: RecordedGangs = field(default_factory=RecordedGangs)
    read: ReadCluster | None = None
    result: Result | None = None
    bound: Bindings = field(default_factory=Bindings)
    report: PassReport = field(default_factory=PassReport)

    @property
    def identity(self) -> str:
        """The identity for the Lease of a pass that stands alone."""
        return leader_identity(self.identifier)

    @property
    def binding(self) -> BindingOptions:
        """Options of the bindings: a loop hears kubelets between passes, and waits for none of them."""
        return self.options.binding if self.loop.arrivals is None else replace(self.options.binding, settle=0.0)

    @property
    def reasons(self) -> Mapping[GroupKey, Reason]:
        """Why gangs wait for which room is held."""
        return self.read.reasons if self.read is not None else {}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Measure a step."""
        start = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = round(time.monotonic() - start, 3)


def leader_identity(identifier: str) -> str:
    """A unique identity for the Lease."""
    return f"{os.uname().nodename}_{identifier}"


@dataclass(frozen=True, slots=True)
class PassSession:
    """A pass under way: its cluster, and what stops and shows it."""

    client: Client
    stop: threading.Event  #: set by another thread, or a signal: begin nothing more
    #: Called before the first write: from now on an interrupt must only set ``stop``.
    gently: Callable[[], None] = lambda: None
    watch: Callable[[str], None] = lambda _: None
    start: float = field(default_factory=time.monotonic)  #: ``time.monotonic()`` from which the time limit counts
    lists: Reflectors | None = None  #: kept lists; None: all are asked for


#: What a pass does once it has the Lease.
MakePass = Callable[[PassSession, Pass], None]


def run_pass(
    session: PassSession, done: Pass, *, leading: LeaderElector | None = None, make: MakePass | None = None
) -> None:
    """Make one pass; one that writes, as the holder of the Lease, or not at all.

    Parameters
    ----------
    done
        Is filled step by step, so that the progress of an interrupted pass can be reported.
    leading
        A holder of the Lease who renews it; default: the pass acquires and releases it.

    Raises
    ------
    ClusterError
        The cluster does not answer or refuses a pass's needs, such as all bindings; or the Lease was lost on the way.
    BadInstance
        Objects of the cluster cannot be read.
    StrictFindings
        There are findings, and ``strict`` was asked for.
    NothingFound
        A method that shows only its own answers had none in time.
    """
    make = make or make_pass
    if done.options.dry_run:
        make(session, done)
    elif leading is not None:
        _lead(session, done, leading, make)
    else:
        elector = LeaderElector(session.client, done.identity, done.options.lease)
        with done.step("lease"):
            session.watch(f"waiting for {done.options.lease}")
            is_leader = elector.acquire(session.stop)
        done.leader, done.report.interrupted = elector.holder, session.stop.is_set()
        if is_leader:
            with elector.leading():
                _lead(replace(session, start=session.start + done.seconds["lease"]), done, elector, make)


def _lead(session: PassSession, done: Pass, elector: LeaderElector, make: MakePass) -> None:
    done.leader, done.elector = elector.holder, elector
    if elector.paused is None:
        make(session, done)


def make_pass(session: PassSession, done: Pass) -> None:
    """Make a pass while nothing says that the Lease is lost."""
    options, client = done.options, session.client
    client.until = session.start + options.time_limit if options.time_limit is not None else None
    with CacheFeed(client) as feed:
        read = read_cluster(session, done, session.lists, feed)
        if read.reserved.made and not options.dry_run:
            session.gently()
            feed.close()
            place_moved(session, done, read)
            read = read_cluster(session, done, feed=feed)
        moved = done.bound

        def begin() -> None:
            session.gently()
            feed.start_checks()

        lane = _express_lane(session, done, read, begin)
        placement = _decide(done, read.instance, session.start, session.watch, lane)
        changed = read.cache.changed() if lane is None else lane.changed()
        plan = plan_bindings(read.instance, placement, read.snapshot.identities, changed, options.most)
        done.bound = Bindings(plan if lane is None else plan.without(lane.plan))
        if options.dry_run != "client":
            begin()
            with done.step("bind"):
                _bind(session, done, read, lane)
        add_up(done, moved.plan, moved.gangs)  # nothing could be told of it before it was decided why the rest waits
        if not options.dry_run and done.elector.lost is None:
            _write_status(session, done)
            _write_controlled(session, done)
    end_pass(session, done)


def _express_lane(session: PassSession, done: Pass, read: ReadCluster, begin: Callable[[], None]) -> ExpressLane | None:
    arrivals = done.loop.arrivals
    if arrivals is None or done.options.dry_run or done.options.most is not None:
        return None

    def carry_out(plan: BindingPlan, enough: Callable[[], str | None]) -> list[GangOutcome]:
        with done.step("lane"):
            return _carry_out(session, done, read, plan, enough)[1]

    return ExpressLane(
        read.instance,
        read.snapshot.identities,
        begin=begin,
        carry_out=carry_out,
        changed=read.cache.changed,
        is_over=lambda: session.stop.is_set() or done.elector.lost is not None,
        arrivals=arrivals,
    )


def place_moved(session: PassSession, done: Pass, read: ReadCluster) -> None:
    """Bind replacements of moved pods in their reserved places; others wait like any pod."""
    units = read.reserved.made
    placement = admitted(read.instance, [{key: node for unit in units for key, node in unit.items()}])
    placement = placement or admitted(read.instance, units[:_ONE_BY_ONE])
    if placement is not None:
        bind_placement(session, done, read, placement)


def add_up(done: Pass, plan: BindingPlan, gangs: Iterable[GangOutcome]) -> None:
    """Add the outcome of earlier bindings to a pass."""
    before = {gang.key: gang for gang in gangs}
    for gang in done.bound.gangs:
        earlier = before.get(gang.key)
        before[gang.key] = gang if earlier is None else replace(gang, bound=(*earlier.bound, *gang.bound))
    done.bound.gangs = list(before.values())
    done.bound.plan = done.bound.plan.after(plan)


def bind_placement(session: PassSession, done: Pass, read: ReadCluster, placement: Placement) -> None:
    """Bind a placement without disruption in the cluster as it was read last, and write the status.

    The outcome of earlier bindings is kept.
    """
    before = done.bound
    with CacheFeed(session.client) as feed:
        feed.open(read.snapshot)
        feed.fill(read.cache)
        done.bound = Bindings(plan_bindings(read.instance, placement, read.snapshot.identities))
        feed.start_checks()
        with done.step("bind"):
            _bind(session, done, read)
        if done.elector.lost is None:
            _write_status(session, done)
    add_up(done, before.plan, before.gangs)


def end_pass(session: PassSession, done: Pass) -> None:
    """Raise the cause where a pass ended too early."""
    done.report.interrupted = session.stop.is_set()
    trouble = done.elector.lost
    if trouble is not None:
        raise ClusterError(f"{trouble}; no further gang was bound")
    if done.bound.refused is not None:
        raise ClusterError(f"{session.client.url}: {done.bound.refused}")


def read_cluster(
    session: PassSession, done: Pass, lists: Reflectors | None = None, feed: CacheFeed | None = None
) -> ReadCluster:
    """The cluster with the state of earlier passes; a feed fills the cache from the time of reading."""
    options, client = done.options, session.client
    if options.enqueue and not options.dry_run:
        done.report.enqueued = enqueue_pod_groups(patient(client), options.scheduler_name, options.guards.admits)
    with done.step("snapshot"):
        recorded = _recorded(client, done)
        taken = _taken(session, done, lists)
        if feed is not None:
            feed.open(taken, lists)
        failed = _failed(client, done, lists)
        found = [*of_ours(failed, recorded), *_rejected_since(client, done, recorded, taken)]
        now = server_time(client)
        done.record = record = replace(recorded, gangs=done.loop.ages.steady(recorded.gangs, now))
        if done.read is None:  # by the server's clock, as all that is written to it; read once more, it is already
            done.began += now - datetime.now(UTC)
        workloads = remembered(record.workloads, found, options.cool_down, now)
        cooling = cooling_nodes(workloads, options.cool_down, now)
        others = record.disruption.of_others(done.identifier)
        kept, reserved = with_reservations(taken, others.reservations, now)
        apart, waiting = kept_off(workloads, cooling), waiting_workloads(workloads, now)
        made = prepared(guarded(kept, options.guards), cooling, record.gangs, now, waiting, others.held, apart)
        reasons: Mapping[GroupKey, Reason] = {}
        if options.holds:
            decide = partial(_decided_first, options)
            kept, made, reasons = with_room_to_complete(kept, made, decide, options.patience, now)
        instance = within_budget(made.instance, options.namespace_budget)
        if options.strict:
            refuse_findings(["cluster"], instance.findings)
        done.read = read = ReadCluster(
            made.snapshot,
            instance,
            SchedulerCache(kept, instance, made.released),
            workloads,
            frozenset(cooling),
            made.half_bound,
            {**made.backing_off, **reserved.waiting},
            made.room,
            reserved,
            reasons,
            dearest(instance, options.namespace_budget),
        )
        if feed is not None:
            feed.fill(read.cache)
    return read


def _taken(session: PassSession, done: Pass, lists: Reflectors | None) -> Snapshot:
    served, facts = (lists.served(), lists.kept) if lists is not None else (None, None)

    def progress(name: str, count: int) -> None:
        session.watch(f"{name} {count:,}")

    name, gates = done.options.scheduler_name, done.options.gates
    taken = take(session.client, name, progress, lists, gates=gates, served=served, kept=facts)
    done.report.troubles += room_troubles(taken.no_room)
    budget = done.options.namespace_budget
    return taken if budget is None else taken.within(budget.bytes)


def _failed(client: Client, done: Pass, lists: Reflectors | None) -> list[Rejection]:
    """Asks for failed pods unless a loop has heard of each."""
    failed = list(done.loop.heard or ())
    if done.loop.heard is None or lists is None or lists.is_listed_anew("/api/v1/pods"):
        name, gates = done.options.scheduler_name, done.options.gates
        failed += failed_pods(client, name, done.options.cool_down, gates=gates)
    return failed


def _decided_first(options: PassOptions, instance: Instance) -> Result:
    """The places of pods that come before all others, in a small part of the pass's time.

    Raises
    ------
    KeyboardInterrupt
        It was interrupted: nothing is decided before everything is read.
    """
    seconds = _FIRST if options.time_limit is None else min(_FIRST, options.time_limit / 4)
    result = solve(instance, method=options.method, time_limit=seconds, workers=options.workers, seed=options.seed)
    if result.termination is Termination.INTERRUPTED:
        raise KeyboardInterrupt
    return result


def _rejected_since(client: Client, done: Pass, recorded: RecordedGangs, taken: Snapshot) -> list[Rejection]:
    if done.loop.heard is not None or done.options.cool_down <= 0:
        return []
    since = RejectedSince(recorded.unanswered, taken)
    found = since.ask(client, done.options.scheduler_name)
    if since.trouble is not None:
        done.report.troubles.append(since.trouble)
    return found


def _recorded(client: Client, done: Pass) -> RecordedGangs:
    try:
        found = read_record(client, *done.options.record)
    except Forbidden as error:
        if not done.options.dry_run:
            raise
        done.report.troubles.append(f"gangs that are half-bound are not known: {error}")
        return RecordedGangs()
    done.report.troubles += record_troubles(found, *done.options.record)
    return found


def keep_record(client: Client, done: Pass, wanted: RecordedGangs) -> None:
    """Write the record (:func:`write_record`), and report entries without room.

    Raises
    ------
    ClusterError
        The server refuses or does not answer, or another has written to it.
    """
    where, report = done.options.record, done.report
    done.record = write_record(client, *where, done.record, wanted)
    report.unrecorded.update(done.record.dropped)
    if done.record.dropped:
        parts = ", ".join(f"{count:,} of {part}" for part, count in done.record.dropped.items())
        report.troubles.append(
            f"ConfigMap {'/'.join(where)} has no room for all that is recorded: left out are {parts}"
        )


def _decide(
    done: Pass, instance: Instance, began: float, watch: Callable[[str], None], lane: ExpressLane | None
) -> Placement:
    options = done.options
    if options.disturbs:  # what the Policy lets be disturbed is no matter of placing alone, and not ignored
        instance = replace(instance, policy=replace(instance.policy, evicts=False, moves=False))
    with _joined(done, lane), done.step("solve"):
        watch(f"{counted(len(instance.pending), 'pending pod')}, {counted(len(instance.nodes), 'node')}")
        earlier = _earlier_answer(done)
        if earlier is not None and earlier.verdict is Verdict.OPTIMAL and LATE not in earlier.reasons.values():
            done.result = replace(earlier, instance=instance)
        else:
            done.result = solve(
                instance,
                method=options.method,
                time_limit=options.time_limit,
                workers=options.workers,
                seed=options.seed if earlier is None else (earlier.seed + 1) % 2**31,
                began=_half_at_least(began, options.time_limit),
                earlier=earlier,
                meanwhile=lane,
            )
        told = {key: done.reasons.get(key, reason) for key, reason in done.result.reasons.items()}
        done.result = replace(done.result, reasons=told)
    save_pass(done)
    if done.result.placement is None:
        raise NothingFound(done.result.nothing_found)
    return done.result.placement


def _half_at_least(began: float, limit: float | None) -> float:
    """The start of the limit: reading takes at most half of it."""
    return began if limit is None else max(began, time.monotonic() - limit / 2)


@contextmanager
def _joined(done: Pass, lane: ExpressLane | None) -> Iterator[None]:
    """Have the express lane end, too; where nothing is decided, the pass tells of what it bound."""
    try:
        yield
    except BaseException:
        if lane is not None:
            lane.join()
            add_up(done, lane.plan, lane.gangs)
        raise
    if lane is not None:
        lane.hand_over()


def lasting_answer(done: Pass) -> tuple[Snapshot, Result] | None:
    """The decision of a pass where it lasts as long as the cluster: nothing to bind or a dry run, and no room made."""
    if done.read is None or done.result is None or done.result.placement is None:
        return None
    if done.report.disruption is not None or done.report.undecided:
        return None
    lasts = bool(done.options.dry_run) or not done.result.placement.bindings
    return (done.read.snapshot, done.result) if lasts else None


def _earlier_answer(done: Pass) -> Result | None:
    """The earlier answer for the same cluster: it holds if proved, else the search continues with another seed."""
    earlier = done.loop.earlier
    if earlier is None or done.read is None or earlier[0].items != done.read.snapshot.items:
        return None
    return earlier[1]


def _bind(session: PassSession, done: Pass, read: ReadCluster, lane: ExpressLane | None = None) -> None:
    """Carry the plan out, after the bindings of the express lane."""
    if done.result is not None and done.result.termination is Termination.INTERRUPTED:
        session.stop.set()
    options, bound, client = done.options, done.bound, session.client
    if not options.dry_run and done.elector.lost is None:
        awaited = done.record.unanswered.pods if done.loop.arrivals is not None else ()
        now = server_time(client)
        before, known = bound.plan, done.record.gangs
        bound.plan, gangs, troubles = recorded_before(read.instance, before, known, read.half_bound, now, awaited)
        done.report.unrecorded["gangs"] += len(bound.plan.dropped) - len(before.dropped)
        done.report.troubles += troubles
        keep_record(client, done, replace(done.record, gangs=gangs, workloads=read.workloads))
    breaker, carried_out = _carry_out(session, done, read, bound.plan)
    if lane is not None:
        carried_out = [*lane.gangs, *carried_out]
        bound.plan = bound.plan.after(lane.plan)
    bound.refused = why_refused(client, breaker, bound.plan, carried_out)
    unbound = read.cache.unbound()
    bound.gangs = with_earlier(read.instance, read.snapshot.identities, carried_out, read.half_bound, unbound)
    if not options.dry_run:
        bound.overfull, bound.unseen = read.cache.overfull(), list(unseen(bound.gangs, read.cache.unseen()))
        if done.elector.lost is None:
            _roll_back(session, done, read)


def _carry_out(
    session: PassSession,
    done: Pass,
    read: ReadCluster,
    plan: BindingPlan,
    enough: Callable[[], str | None] = lambda: None,
) -> tuple[Breaker, list[GangOutcome]]:
    methods = ("POST", "PATCH") if done.options.gates else ("POST",)
    breaker = Breaker(session.client, done.options.binding.grace, methods)
    arrivals, elector = done.loop.arrivals, done.elector
    answered = partial(session.watch, f"binding {counted(sum(len(batch.bindings) for batch in plan.batches), 'pod')}")
    answered()

    def gives_way() -> str | None:
        return GAVE_WAY if arrivals is not None and arrivals.end_bindings() else enough()

    cache, instance = read.cache, read.instance
    return breaker, execute_plan(
        breaker, cache, instance, plan, done.binding, session.stop, elector, answered, gives_way
    )


def _roll_back(session: PassSession, done: Pass, read: ReadCluster) -> None:
    options, bound, elector = done.options, done.bound, done.elector
    now = server_time(session.client)
    record = done.loop.ages.steady(done.record.gangs, now)
    patience = options.patience if not session.stop.is_set() and elector.paused is None else math.inf
    ours = [gang for gang in bound.gangs if options.guards.admits(gang.key.namespace)]
    go, anew = next_to_go(read.instance, ours, read.half_bound, record, patience, now, options.binding.grace)
    before = bound.gangs

    alone, forbidden = surpluses(read.instance, before, go), partial(_why_not_to_roll_back, session, elector)
    gangs = roll_back_in_turn(patient(session.client), read.snapshot, before, go, forbidden, alone)
    loop, uids = done.loop.arrivals is not None, read.cache.unanswered()
    not_released = _not_released(bound.plan, read.cache)
    after = recorded_after(gangs, record, anew, now, not_released, digests(uids) if loop else ())
    not_taken = not_bound(read.snapshot, given_up(before, gangs), now)
    news = (*read.cache.rejected.values(), *not_taken, *unsteady(read.workloads, read.cache.unsteady, now))
    workloads = remembered(read.workloads, news, options.cool_down, now)
    bound.gangs = [told_when(gang, after.get(gang.key), options.patience) for gang in gangs]
    silent = _unanswered(done, read, uids)
    if elector.lost is not None:  # what another pass may have recorded since counts
        return
    try:
        wanted = replace(done.record, gangs=after, workloads=workloads, unanswered=silent)
        keep_record(session.client, done, wanted)
    except ClusterError as error:  # the next pass finds out by itself
        done.report.troubles.append(str(error))


def _why_not_to_roll_back(session: PassSession, elector: LeaderElector | NoElection) -> str | None:
    return elector.lost or elector.paused or ("the pass was to end" if session.stop.is_set() else None)


def _not_released(plan: BindingPlan, cache: SchedulerCache) -> list[PlannedBinding]:
    planned = chain.from_iterable(batch.bindings for batch in plan.batches)
    return [bind for bind in planned if bind.by_release and not cache.is_held(bind)]


def _unanswered(done: Pass, read: ReadCluster, uids: Collection[str]) -> UnansweredPods:
    if done.options.cool_down <= 0 and done.loop.arrivals is None:
        return UnansweredPods()  # no rejections are remembered, and the pass itself waits for kubelets
    heard_between = done.options.every is not None
    silent, trouble = unanswered_after(done.record, read.snapshot, uids, heard_between=heard_between)
    done.report.troubles += [trouble] if trouble is not None else []
    return silent


def _write_status(session: PassSession, done: Pass) -> None:
    """Write the status of pods and gangs; in a loop the teller does while the next pass begins."""
    options, read, elector = done.options, done.read, done.elector
    if done.result is None or read is None:
        return
    with done.step("tell"):
        identities, gangs = read.snapshot.identities, done.bound.gangs
        news = status_news(
            _told_now(done, done.result),
            done.bound.plan,
            gangs,
            done.bound.overfull,
            options.status,
            read.backing_off,
            on_hold(done.result.instance, identities, read.half_bound),
            nominated(identities, gangs, options.guards.admits) if options.gates else {},
        )
        if done.loop.teller is not None:
            done.loop.teller.tell(news, lambda: elector.lost)
            return
        server, name = patient(session.client), options.scheduler_name
        done.report.status = write_news(server, name, news, options.status, session.stop.is_set, gates=options.gates)


def _told_now(done: Pass, result: Result) -> Result:
    """A decision without reasons that gave way to new pods."""
    if done.loop.arrivals is None or not done.loop.arrivals.waiting:
        return result
    return replace(result, reasons={key: each for key, each in result.reasons.items() if each != LATE})


def _write_controlled(session: PassSession, done: Pass) -> None:
    options, result, read = done.options, done.result, done.read
    if options.controllers and result is not None and read is not None:
        with done.step("controllers"):
            server, kinds, limit = patient(session.client), options.controllers, options.status.limit
            done.report.controlled = write_controlled(
                server, kinds, read.snapshot, result.instance, limit, session.stop
            )


def save_pass(done: Pass) -> None:
    """Keep snapshot and decision; a failure is reported, and stops nothing."""
    if done.options.save is None or done.read is None or done.result is None:
        return
    document: dict[str, Any] = placement_document(done.result).as_dict()
    try:
        done.report.saved = done.options.save.save(done.read.snapshot, document)
    except OSError as error:
        done.report.not_saved = f"{done.options.save.folder}: cannot be written: {error.strerror}"
