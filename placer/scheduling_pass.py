"""One pass in the cluster: snapshot, decision, plan, bindings, and what is written about them."""

from __future__ import annotations

import math
import os
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from placer.cluster.planning.binding_plan import BindingPlan, PlannedBinding, plan_bindings
from placer.cluster.planning.disruption_plan import DisruptionReport
from placer.cluster.planning.gang_outcome import GangOutcome, GangState
from placer.cluster.planning.half_bound import (
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
from placer.cluster.planning.reservations import ReservedRoom, admitted, with_reservations
from placer.cluster.planning.room_to_complete import with_room_to_complete
from placer.cluster.planning.scheduler_cache import Overfull, SchedulerCache
from placer.cluster.reading.client import Client, Forbidden, server_time
from placer.cluster.reading.daemon_sets import room_troubles
from placer.cluster.reading.earlier_passes import BackOff, HalfBoundGang, RoomState, prepared
from placer.cluster.reading.gang_record import (
    Ages,
    GangRecord,
    HeldRoom,
    RecordedDisruption,
    RecordedGangs,
    RejectedWorkload,
    Reservation,
    UnansweredPods,
    digests,
    read_record,
    record_name,
    record_troubles,
)
from placer.cluster.reading.guards import Guards, guarded
from placer.cluster.reading.reflectors import Reflectors
from placer.cluster.reading.rejections import (
    cooling_nodes,
    failed_pods,
    kept_off,
    not_bound,
    of_ours,
    remembered,
    unsteady,
    waiting_workloads,
)
from placer.cluster.reading.snapshot import Snapshot, take
from placer.cluster.reading.unanswered import RejectedSince, unanswered_after
from placer.cluster.reading.views import Rejection, Workload
from placer.cluster.writing.breaker import Breaker, patient
from placer.cluster.writing.cache_feed import CacheFeed
from placer.cluster.writing.controllers import ControllerReport, write_controlled
from placer.cluster.writing.express_lane import Arrivals, ExpressLane
from placer.cluster.writing.gang_ledger import write_record
from placer.cluster.writing.lease import LeaderElector, LeaseOptions
from placer.cluster.writing.making_room import EvictionOptions
from placer.cluster.writing.plan_execution import BindingOptions, execute_plan, why_refused
from placer.cluster.writing.rolling_back import roll_back_in_turn
from placer.cluster.writing.status_writer import StatusOptions, StatusReport, status_news, write_news
from placer.cluster.writing.teller import Teller
from placer.cluster.writing.volcano_pod_groups import Enqueued, enqueue_pod_groups
from placer.document import placement_document
from placer.errors import ClusterError, NothingFound
from placer.instance import GroupKey, Instance, Key, Policy
from placer.instance.namespace_budget import NamespaceBudget, NamespaceCost, dearest, within_budget
from placer.placement import Placement
from placer.read import refuse_findings
from placer.result import Reason, Result, Termination, Verdict
from placer.saved_passes import SavedPasses
from placer.solve import solve
from placer.words import counted

__all__ = [
    "MakePass",
    "Pass",
    "PassOptions",
    "add_up",
    "bind_also",
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
    """What a pass is to do.

    Parameters
    ----------
    scheduler_name
        Whose pending pods are ours.
    method, time_limit, workers, seed
        As ``solve`` takes them; the limit counts from the beginning of the pass to the first binding. Half of it at
        least is left for deciding.
    namespace_budget
        What each namespace may cost; None: anything.
    binding
        How the plan is carried out.
    dry_run
        Empty; ``client``: write nothing; ``server``: let the server try every binding and keep none.
    cool_down
        Seconds for which a node gets nothing new after its kubelet rejected a pod of ours; 0: rejections are forgotten.
    status
        What is written beside bindings.
    enqueue
        Move PodGroups of our pods and jobs that are Pending to Inqueue before the snapshot.
    strict
        Findings are errors: nothing is bound.
    save
        Keeps the snapshot and the Placement of the pass; None: neither is kept.
    lease
        Held during every pass that writes; the record of half-bound gangs is in its namespace.
    patience
        Seconds for which a gang may stay half-bound before it is rolled back; 0: a gang that this pass leaves so is.
    guards
        The namespaces and nodes that it is kept to.
    most
        Bindings that it may make, in whole gangs; None: any number.
    every
        It is one of a loop (:mod:`placer.scheduling_loop`), and so many seconds at most are between the beginnings of
        two; None: it stands alone.
    eviction
        How patient it is where it evicts.
    evictions_per_hour
        Most pods that passes evict or move within an hour where the Policy has it so; 0: nothing is disturbed.
    hold
        Seconds for which room that was made is held for its gang.
    controllers
        Kinds of objects of which it writes what their controllers would.
    gates
        Whether it decides for pods that have the hold gate alone, too, and releases them.
    """

    scheduler_name: str = "placer"
    method: str = "auto"
    time_limit: float | None = 20.0
    namespace_budget: NamespaceBudget | None = field(default_factory=NamespaceBudget)
    workers: int | None = None
    seed: int = 0
    binding: BindingOptions = field(default_factory=BindingOptions)
    dry_run: str = ""
    cool_down: float = 300.0
    status: StatusOptions = field(default_factory=StatusOptions)
    enqueue: bool = False
    strict: bool = False
    save: SavedPasses | None = None
    lease: LeaseOptions = field(default_factory=LeaseOptions)
    patience: float = 300.0
    guards: Guards = field(default_factory=Guards)
    most: int | None = None
    every: float | None = None
    eviction: EvictionOptions = field(default_factory=EvictionOptions)
    evictions_per_hour: int = 0
    hold: float = 600.0
    controllers: frozenset[str] = frozenset()
    gates: bool = False

    @property
    def disturbs(self) -> bool:
        """Whether it makes room where the Policy has it so."""
        return self.evictions_per_hour > 0 and not self.dry_run

    @property
    def binding_methods(self) -> tuple[str, ...]:
        """Requests by which pods get their nodes."""
        return ("POST", "PATCH") if self.gates else ("POST",)

    @property
    def record(self) -> tuple[str, str]:
        """Namespace and name of the ConfigMap with the record of half-bound gangs."""
        return self.lease.namespace, record_name(self.lease.name)


@dataclass
class Pass:
    """What a pass has done so far; complete when :func:`run_pass` returns."""

    options: PassOptions
    snapshot: Snapshot | None = None
    result: Result | None = None
    plan: BindingPlan = field(default_factory=BindingPlan)
    gangs: list[GangOutcome] = field(default_factory=list)
    cache: SchedulerCache | None = None
    cooling: set[str] = field(default_factory=set)
    half_bound_before: Mapping[GroupKey, HalfBoundGang] = field(default_factory=dict)
    backing_off: Mapping[Key, BackOff] = field(default_factory=dict)
    workloads: Mapping[Workload, RejectedWorkload] = field(default_factory=dict)  #: that kubelets rejected
    record: RecordedGangs = field(default_factory=RecordedGangs)
    unrecorded: Counter[str] = field(default_factory=Counter)  #: what the record has no room for, by part
    troubles: list[str] = field(default_factory=list)
    overfull: list[Overfull] = field(default_factory=list)
    unseen: list[GangOutcome] = field(default_factory=list)  #: bound, and no event showed it
    refused: str | None = None
    holds: bool = True  #: whether what half-bound gangs lack has its room held; a plan for one finds it free
    reasons: Mapping[GroupKey, Reason] = field(default_factory=dict)  #: of gangs for which room is held
    disruption: DisruptionReport | None = None  #: None: nothing that runs was to be disturbed
    room: RoomState = RoomState.NONE  #: that an earlier pass has made
    reserved: ReservedRoom = field(default_factory=ReservedRoom)  #: kept for what earlier passes moved
    undecided: bool = False  #: whether a search for room ended before it was proved that there is none
    policy: Policy = field(default_factory=Policy)
    costs: list[NamespaceCost] = field(default_factory=list)  #: who costs what, the dearest namespaces first
    status_report: StatusReport = field(default_factory=StatusReport)
    controlled: ControllerReport = field(default_factory=ControllerReport)
    enqueued: Enqueued = field(default_factory=Enqueued)
    saved: list[str] = field(default_factory=list)
    not_saved: str | None = None
    began: datetime = field(default_factory=lambda: datetime.now(UTC))
    identifier: str = field(default_factory=lambda: str(uuid.uuid4()))
    seconds: dict[str, float] = field(default_factory=dict)
    interrupted: bool = False
    error: str | None = None
    exit_code: int = 0  #: of the error, where a loop goes on after it
    lost: Callable[[], str | None] = lambda: None  #: why it may no longer write, once that is so
    paused: Callable[[], str | None] = lambda: None  #: why it begins no further gang, once that is so
    lease_left: Callable[[], float] = lambda: math.inf  #: seconds until it may no longer write
    watch: Callable[[str], None] = lambda _: None  #: told what goes on
    earlier: tuple[Snapshot, Result] | None = None  #: an answer that holds for a cluster that is still the same
    heard: Collection[Rejection] | None = None  #: what kubelets rejected between passes; None: nobody listened
    arrivals: Arrivals | None = None  #: of its loop; None: it stands alone
    teller: Teller | None = None  #: of its loop
    ages: Ages = field(default_factory=Ages)  #: for how long gangs are half-bound, as the loop knows it
    leader: str | None = None  #: who holds the Lease: this pass, or what keeps it from deciding; None: not asked

    @property
    def identity(self) -> str:
        """As whom the pass holds the Lease, where it stands alone."""
        return leader_identity(self.identifier)

    @property
    def budget_share(self) -> float:
        """The largest part of its budget that a namespace spends."""
        budget = self.options.namespace_budget or NamespaceBudget()
        return max((cost.share(budget) for cost in self.costs), default=0.0)

    @property
    def binding(self) -> BindingOptions:
        """How a plan is carried out: a loop hears between passes what kubelets answer, and waits for none of them."""
        return self.options.binding if self.arrivals is None else replace(self.options.binding, settle=0.0)

    @property
    def half_bound(self) -> list[GangOutcome]:
        """Gangs that this pass leaves half-bound."""
        return [gang for gang in self.gangs if gang.state is GangState.HALF_BOUND]

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Measure a step."""
        start = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = round(time.monotonic() - start, 3)


def leader_identity(identifier: str) -> str:
    """As whom something holds the Lease that nothing else is called like."""
    return f"{os.uname().nodename}_{identifier}"


#: What a pass does once it has the Lease: the cluster, what is filled, what stops it, what is called before anything is
#: written that cannot be taken back, what is told, and when the time limit began.
MakePass = Callable[[Client, Pass, threading.Event, Callable[[], None], Callable[[str], None], float], None]


def run_pass(
    client: Client,
    done: Pass,
    stop: threading.Event,
    *,
    bind_gently: Callable[[], None] = lambda: None,
    watch: Callable[[str], None] = lambda _: None,
    began: float | None = None,
    leading: LeaderElector | None = None,
    lists: Reflectors | None = None,
    make: MakePass | None = None,
) -> None:
    """Make one pass; one that writes, as the holder of the Lease, or not at all.

    Parameters
    ----------
    client
        The cluster.
    done
        Is filled step by step, so that a caller that breaks the pass off can still report what it has done.
    stop
        Set by another thread, or a signal: begin nothing more.
    bind_gently
        Called before the first binding: from now on an interrupt must only set ``stop``.
    watch
        Called with what goes on.
    began
        ``time.monotonic()`` from which the time limit counts, default now.
    leading
        Who holds the Lease already and renews it; default: the pass acquires it and gives it back.
    lists
        Gives the lists of the snapshot; default: all are asked for.
    make
        What it does; default :func:`make_pass`.

    Raises
    ------
    ClusterError
        The cluster does not answer, or refuses what a pass needs: bindings among it, where all of them are refused; or
        the Lease was lost on the way.
    BadInstance
        What is in the cluster cannot be read.
    StrictFindings
        There are findings, and ``strict`` was asked for.
    NothingFound
        A method that shows only its own answers had none in time.
    """
    start = time.monotonic() if began is None else began
    done.watch = watch
    begin = partial(make or partial(make_pass, lists=lists), client, done, stop, bind_gently, watch)
    if done.options.dry_run:
        begin(start)
    elif leading is not None:
        _lead(done, leading, partial(begin, start))
    else:
        elector = LeaderElector(client, done.identity, done.options.lease)
        with done.step("lease"):
            watch(f"waiting for {done.options.lease}")
            is_leader = elector.acquire(stop)
        done.leader, done.interrupted = elector.holder, stop.is_set()
        if is_leader:
            with elector.leading():
                _lead(done, elector, partial(begin, start + done.seconds["lease"]))


def _lead(done: Pass, elector: LeaderElector, make: Callable[[], None]) -> None:
    """Make a pass as the leader, unless all passes are paused."""
    done.leader, done.lost, done.paused = elector.holder, lambda: elector.lost, lambda: elector.paused
    done.lease_left = lambda: elector.left
    if done.paused() is None:
        make()


def make_pass(
    client: Client,
    done: Pass,
    stop: threading.Event,
    bind_gently: Callable[[], None],
    watch: Callable[[str], None],
    start: float,
    *,
    lists: Reflectors | None = None,
) -> None:
    """Make a pass for as long as nothing says that the Lease is lost."""
    options = done.options
    client.until = start + options.time_limit if options.time_limit is not None else None
    with CacheFeed(client) as feed:
        snapshot, instance, cache = read_cluster(client, done, watch, lists, feed)
        if done.reserved.made and not options.dry_run:
            bind_gently()
            feed.close()
            place_moved(client, done, instance, stop)
            snapshot, instance, cache = read_cluster(client, done, watch, feed=feed)
        moved = done.plan, done.gangs

        def begin() -> None:
            bind_gently()
            feed.start_checks()

        lane = _express_lane(client, done, instance, cache, stop, begin)
        placement = _decide(done, instance, start, watch, lane)
        changed = cache.changed() if lane is None else lane.changed()
        done.plan = plan_bindings(instance, placement, snapshot.identities, changed, options.most)
        if lane is not None:
            done.plan = done.plan.without(lane.plan)
        if options.dry_run != "client":
            begin()
            with done.step("bind"):
                _bind(client, done, snapshot, instance, cache, stop, lane)
        add_up(done, *moved)  # nothing could be told of it before it was decided why the rest waits
        if not options.dry_run and done.lost() is None:
            _write_status(client, done, stop)
            _write_controlled(client, done, stop)
    end_pass(client, done, stop)


def _express_lane(
    client: Client,
    done: Pass,
    instance: Instance,
    cache: SchedulerCache,
    stop: threading.Event,
    begin: Callable[[], None],
) -> ExpressLane | None:
    """What may be bound while a pass searches; None where nothing is: it stands alone, or bindings are limited."""
    options, snapshot = done.options, done.snapshot
    if done.arrivals is None or options.dry_run or options.most is not None or snapshot is None:
        return None

    def carry_out(plan: BindingPlan) -> list[GangOutcome]:
        with done.step("lane"):
            return _carry_out(client, done, instance, cache, plan, stop)[1]

    return ExpressLane(
        instance,
        snapshot.identities,
        begin=begin,
        carry_out=carry_out,
        changed=cache.changed,
        is_over=lambda: stop.is_set() or done.lost() is not None,
        arrivals=done.arrivals,
    )


def place_moved(client: Client, done: Pass, instance: Instance, stop: threading.Event) -> None:
    """Bind pods that were made again where the plan by which they were moved has them; what has no room there waits
    like any other.
    """
    units = done.reserved.made
    placement = admitted(instance, [{key: node for unit in units for key, node in unit.items()}])
    placement = placement or admitted(instance, units[:_ONE_BY_ONE])
    if placement is not None:
        bind_also(client, done, instance, placement, stop)


def add_up(done: Pass, plan: BindingPlan, gangs: Iterable[GangOutcome]) -> None:
    """Have a pass tell of what it bound before, too."""
    before = {gang.key: gang for gang in gangs}
    for gang in done.gangs:
        earlier = before.get(gang.key)
        before[gang.key] = gang if earlier is None else replace(gang, bound=(*earlier.bound, *gang.bound))
    done.gangs = list(before.values())
    done.plan = done.plan.after(plan)


def bind_placement(client: Client, done: Pass, instance: Instance, placement: Placement, stop: threading.Event) -> None:
    """Bind what a placement that disturbs nothing binds, in the cluster as it was read last; and tell of it."""
    snapshot, cache = done.snapshot, done.cache
    assert snapshot is not None, "the cluster was read"
    assert cache is not None, "the cluster was read"
    with CacheFeed(client) as feed:
        feed.open(snapshot)
        feed.fill(cache)
        done.plan = plan_bindings(instance, placement, snapshot.identities)
        feed.start_checks()
        with done.step("bind"):
            _bind(client, done, snapshot, instance, cache, stop)
        if done.lost() is None:
            _write_status(client, done, stop)


def bind_also(client: Client, done: Pass, instance: Instance, placement: Placement, stop: threading.Event) -> None:
    """Bind as :func:`bind_placement` does, and have the pass tell of what it bound before, too."""
    plan, gangs = done.plan, done.gangs
    bind_placement(client, done, instance, placement, stop)
    add_up(done, plan, gangs)


def end_pass(client: Client, done: Pass, stop: threading.Event) -> None:
    """Raise what made a pass end too early."""
    done.interrupted = stop.is_set()
    trouble = done.lost()
    if trouble is not None:
        raise ClusterError(f"{trouble}; no further gang was bound")
    if done.refused is not None:
        raise ClusterError(f"{client.url}: {done.refused}")


def read_cluster(
    client: Client,
    done: Pass,
    watch: Callable[[str], None],
    lists: Reflectors | None = None,
    feed: CacheFeed | None = None,
) -> tuple[Snapshot, Instance, SchedulerCache]:
    """What is in the cluster, with what earlier passes left behind; a feed fills the cache from when that was read."""
    options = done.options
    if options.enqueue and not options.dry_run:
        done.enqueued = enqueue_pod_groups(patient(client), options.scheduler_name, options.guards.admits)
    with done.step("snapshot"):
        recorded = _recorded(client, done)
        taken = _taken(client, done, watch, lists)
        if feed is not None:
            feed.open(taken, lists)
        failed = _failed(client, done, lists)
        found = [*of_ours(failed, recorded), *_rejected_since(client, done, recorded, taken)]
        now = server_time(client)
        done.record = replace(recorded, gangs=done.ages.steady(recorded.gangs, now))
        if done.snapshot is None:  # by the server's clock, as all that is written to it; read once more, it is already
            done.began += now - datetime.now(UTC)
        done.workloads = remembered(done.record.workloads, found, options.cool_down, now)
        done.cooling = cooling_nodes(done.workloads, options.cool_down, now)
        waiting = waiting_workloads(done.workloads, now)
        kept, done.reserved = with_reservations(taken, _reservations(done), now)
        apart, ours = kept_off(done.workloads, done.cooling), guarded(kept, options.guards)
        made = prepared(ours, done.cooling, done.record.gangs, now, waiting, _held(done), apart)
        if done.holds:
            room = with_room_to_complete(kept, made, partial(_decided_first, done), options.patience, now)
            kept, made, done.reasons = room.snapshot, room.made, room.reasons
        snapshot, instance = made.snapshot, within_budget(made.instance, options.namespace_budget)
        done.policy, done.costs = instance.policy, dearest(instance, options.namespace_budget)
        done.room = made.room
        done.half_bound_before, done.backing_off = made.half_bound, {**made.backing_off, **done.reserved.waiting}
        if options.strict:
            refuse_findings(["cluster"], instance.findings)
        done.snapshot, done.cache = snapshot, SchedulerCache(kept, instance, made.released)
        if feed is not None:
            feed.fill(done.cache)
    return snapshot, instance, done.cache


def _taken(client: Client, done: Pass, watch: Callable[[str], None], lists: Reflectors | None) -> Snapshot:
    served, facts = (lists.served(), lists.kept) if lists is not None else (None, None)

    def progress(name: str, count: int) -> None:
        watch(f"{name} {count:,}")

    name, gates = done.options.scheduler_name, done.options.gates
    taken = take(client, name, progress, lists, gates=gates, served=served, kept=facts)
    done.troubles += room_troubles(taken.no_room)
    budget = done.options.namespace_budget
    return taken if budget is None else taken.within(budget.bytes)


def _failed(client: Client, done: Pass, lists: Reflectors | None) -> list[Rejection]:
    """Asks for failed pods unless a loop has heard of each."""
    failed = list(done.heard or ())
    if done.heard is None or lists is None or lists.is_listed_anew("/api/v1/pods"):
        name, gates = done.options.scheduler_name, done.options.gates
        failed += failed_pods(client, name, done.options.cool_down, gates=gates)
    return failed


def _decided_first(done: Pass, instance: Instance) -> Result:
    """Where pods go that come before all others, in a small part of the pass's time.

    Raises
    ------
    KeyboardInterrupt
        It was interrupted: nothing is decided before everything is read.
    """
    options = done.options
    seconds = _FIRST if options.time_limit is None else min(_FIRST, options.time_limit / 4)
    result = solve(instance, method=options.method, time_limit=seconds, workers=options.workers, seed=options.seed)
    if result.termination is Termination.INTERRUPTED:
        raise KeyboardInterrupt
    return result


def _rejected_since(client: Client, done: Pass, recorded: RecordedGangs, taken: Snapshot) -> list[Rejection]:
    """What kubelets rejected since the pass before, where nobody has listened meanwhile."""
    if done.heard is not None or done.options.cool_down <= 0:
        return []
    since = RejectedSince(recorded.unanswered, taken)
    found = since.ask(client, done.options.scheduler_name)
    if since.trouble is not None:
        done.troubles.append(since.trouble)
    return found


def _held(done: Pass) -> HeldRoom | None:
    """Room that an earlier pass has made."""
    held = done.record.disruption.held
    return held if held is not None and held.made_by != done.identifier else None


def _reservations(done: Pass) -> list[Reservation]:
    """Room that earlier passes keep for what they moved."""
    return [each for each in done.record.disruption.reservations if each.made_by != done.identifier]


def _recorded(client: Client, done: Pass) -> RecordedGangs:
    """The record of half-bound gangs; a pass that only looks does without it where it may not read it."""
    try:
        found = read_record(client, *done.options.record)
    except Forbidden as error:
        if not done.options.dry_run:
            raise
        done.troubles.append(f"gangs that are half-bound are not known: {error}")
        return RecordedGangs()
    done.troubles += record_troubles(found, *done.options.record)
    return found


def keep_record(
    client: Client,
    done: Pass,
    gangs: Mapping[GroupKey, GangRecord],
    workloads: Mapping[Workload, RejectedWorkload],
    disruption: RecordedDisruption | None = None,
    unanswered: UnansweredPods | None = None,
) -> None:
    """Write what is recorded, and note for how much of it there was no room.

    Parameters
    ----------
    client
        The cluster.
    done
        The pass; the record that it has read or written last is what is there.
    gangs, workloads, disruption, unanswered
        As :func:`write_record` takes them.

    Raises
    ------
    ClusterError
        The server refuses, or does not answer; or another has written to it meanwhile.
    """
    where = done.options.record
    done.record = write_record(client, *where, done.record, gangs, workloads, disruption, unanswered)
    done.unrecorded.update(done.record.dropped)
    if done.record.dropped:
        parts = ", ".join(f"{count:,} of {part}" for part, count in done.record.dropped.items())
        done.troubles.append(f"ConfigMap {'/'.join(where)} has no room for all that is recorded: left out are {parts}")


def _decide(
    done: Pass, instance: Instance, began: float, watch: Callable[[str], None], lane: ExpressLane | None
) -> Placement:
    """Where the pending pods go; kept, where that was asked for."""
    options = done.options
    if options.disturbs:  # what the Policy lets be disturbed is no matter of placing alone, and not ignored
        instance = replace(instance, policy=replace(instance.policy, evicts=False, moves=False))
    with done.step("solve"):
        watch(f"{counted(len(instance.pending), 'pending pod')}, {counted(len(instance.nodes), 'node')}")
        earlier = _earlier_answer(done)
        if earlier is not None and earlier.verdict is Verdict.OPTIMAL:
            done.result = replace(earlier, instance=instance)
        else:
            with _joined(done, lane):
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
    """From when the limit counts: reading takes no more than half of it."""
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
        lane.join()


def lasting_answer(done: Pass) -> tuple[Snapshot, Result] | None:
    """What a pass decided upon and how, where it may last as long as the cluster does: nothing was to be bound, or is
    by a pass that only looks, and no room was to be made.
    """
    if done.snapshot is None or done.result is None or done.result.placement is None or done.disruption is not None:
        return None
    if done.undecided:
        return None
    lasts = bool(done.options.dry_run) or not done.result.placement.bindings
    return (done.snapshot, done.result) if lasts else None


def _earlier_answer(done: Pass) -> Result | None:
    """The answer of an earlier pass, where nothing has changed since: it holds if it is proved, and else the search
    goes on from it, by another seed.
    """
    if done.earlier is None or done.snapshot is None or done.earlier[0].items != done.snapshot.items:
        return None
    return done.earlier[1]


def _bind(
    client: Client,
    done: Pass,
    snapshot: Snapshot,
    instance: Instance,
    cache: SchedulerCache,
    stop: threading.Event,
    lane: ExpressLane | None = None,
) -> None:
    """Carry the plan out, behind what went by the express lane."""
    if done.result is not None and done.result.termination is Termination.INTERRUPTED:
        stop.set()
    options, before = done.options, done.half_bound_before
    if not options.dry_run and done.lost() is None:
        awaited = done.record.unanswered.pods if done.arrivals is not None else ()
        made = recorded_before(instance, done.plan, done.record.gangs, before, server_time(client), awaited)
        done.unrecorded["gangs"] += len(made.plan.dropped) - len(done.plan.dropped)
        done.plan = made.plan
        done.troubles += made.troubles
        keep_record(client, done, made.gangs, done.workloads)
    breaker, carried_out = _carry_out(client, done, instance, cache, done.plan, stop)
    if lane is not None:
        carried_out = [*lane.gangs, *carried_out]
        done.plan = done.plan.after(lane.plan)
    done.refused = why_refused(client, breaker, done.plan, carried_out)
    done.gangs = with_earlier(instance, snapshot.identities, carried_out, before, cache.unbound())
    if not options.dry_run:
        done.overfull, done.unseen = cache.overfull(), list(unseen(done.gangs, cache.unseen()))
        if done.lost() is None:
            _roll_back(client, done, snapshot, instance, stop)


def _carry_out(
    client: Client, done: Pass, instance: Instance, cache: SchedulerCache, plan: BindingPlan, stop: threading.Event
) -> tuple[Breaker, list[GangOutcome]]:
    breaker = Breaker(client, done.options.binding.grace, methods=done.options.binding_methods)
    answered = partial(done.watch, f"binding {counted(sum(len(batch.bindings) for batch in plan.batches), 'pod')}")
    answered()
    return breaker, execute_plan(
        breaker, cache, instance, plan, done.binding, stop, done.lost, done.paused, answered, done.lease_left
    )


def _roll_back(client: Client, done: Pass, snapshot: Snapshot, instance: Instance, stop: threading.Event) -> None:
    """Roll back gangs that have been half-bound for too long, and record what stays so."""
    now = server_time(client)
    record = done.ages.steady(done.record.gangs, now)
    patience = done.options.patience if not stop.is_set() and done.paused() is None else float("inf")
    ours = [gang for gang in done.gangs if done.options.guards.admits(gang.key.namespace)]
    grace = done.options.binding.grace
    go, anew = next_to_go(instance, ours, done.half_bound_before, record, patience, now, grace)
    before = list(done.gangs)

    def forbidden() -> str | None:
        return done.lost() or done.paused() or ("the pass was to end" if stop.is_set() else None)

    alone = surpluses(instance, before, go)
    done.gangs = roll_back_in_turn(patient(client), snapshot, done.gangs, go, forbidden, alone)
    after = recorded_after(done.gangs, record, anew, now, _not_released(done), _awaited(done))
    rejected = list(done.cache.rejected.values()) if done.cache is not None else []
    rejected += unsteady(done.workloads, done.cache.unsteady, now) if done.cache is not None else ()
    not_taken = not_bound(snapshot, given_up(before, done.gangs), now)
    done.workloads = remembered(done.workloads, (*rejected, *not_taken), done.options.cool_down, now)
    done.gangs = [told_when(gang, after.get(gang.key), done.options.patience) for gang in done.gangs]
    silent = _unanswered(done, snapshot)
    if done.lost() is not None:  # what another pass may have recorded since counts
        return
    try:
        keep_record(client, done, after, done.workloads, unanswered=silent)
    except ClusterError as error:  # the next pass finds out by itself
        done.troubles.append(str(error))


def _awaited(done: Pass) -> Collection[bytes]:
    """Digests of pods of this pass whose kubelets a loop has not waited for."""
    return digests(done.cache.unanswered()) if done.arrivals is not None and done.cache is not None else ()


def _unanswered(done: Pass, snapshot: Snapshot) -> UnansweredPods:
    """What is recorded for the next pass to ask for: pods without an answer, where rejections are remembered, or a
    loop has waited for none.
    """
    options, uids = done.options, done.cache.unanswered() if done.cache is not None else ()
    if options.cool_down <= 0 and done.arrivals is None:
        return UnansweredPods()
    between = options.every is not None
    silent, trouble = unanswered_after(done.record, snapshot, uids, heard_between=between)
    done.troubles += [trouble] if trouble is not None else []
    return silent


def _not_released(done: Pass) -> list[PlannedBinding]:
    """Pods that were to be released, and for certain were not."""
    planned = [bind for batch in done.plan.batches for bind in batch.bindings if bind.by_release]
    return [bind for bind in planned if done.cache is not None and not done.cache.is_held(bind)]


def _write_status(client: Client, done: Pass, stop: threading.Event) -> None:
    """Tell the cluster what became of its pods; in a loop others do, while the next pass begins."""
    if done.result is None:
        return
    options = done.options
    with done.step("tell"):
        identities = done.snapshot.identities if done.snapshot is not None else {}
        news = status_news(
            done.result,
            done.plan,
            done.gangs,
            done.overfull,
            options.status,
            done.backing_off,
            on_hold(done.result.instance, identities, done.half_bound_before),
            nominated(identities, done.gangs, options.guards.admits) if options.gates else {},
        )
        if done.teller is not None:
            done.teller.tell(news, done.lost)
            return
        done.status_report = write_news(
            patient(client), options.scheduler_name, news, options.status, stop, gates=options.gates
        )


def _write_controlled(client: Client, done: Pass, stop: threading.Event) -> None:
    """Write what controllers would, where that was asked for."""
    options, result, snapshot = done.options, done.result, done.snapshot
    if options.controllers and result is not None and snapshot is not None:
        with done.step("controllers"):
            kinds, limit = options.controllers, options.status.limit
            done.controlled = write_controlled(patient(client), kinds, snapshot, result.instance, limit, stop)


def save_pass(done: Pass) -> None:
    """Keep what was decided upon, and the decision; what cannot be kept is told, and stops nothing."""
    if done.options.save is None or done.snapshot is None or done.result is None:
        return
    document: dict[str, Any] = placement_document(done.result).as_dict()
    try:
        done.saved = done.options.save.save(done.snapshot, document)
    except OSError as error:
        done.not_saved = f"{done.options.save.folder}: cannot be written: {error.strerror}"
