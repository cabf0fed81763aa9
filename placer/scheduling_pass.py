"""One pass in the cluster: snapshot, decision, plan, bindings, and what is written about them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from placer.cluster.planning.binding_plan import BindingPlan, plan_bindings
from placer.cluster.planning.gang_outcome import GangOutcome, GangState
from placer.cluster.planning.node_room import Overfull
from placer.cluster.planning.scheduler_cache import SchedulerCache
from placer.cluster.reading.client import Client
from placer.cluster.reading.earlier_passes import cooling_nodes, half_bound, prepared
from placer.cluster.reading.snapshot import Snapshot, take
from placer.cluster.reading.watch import Watch
from placer.cluster.writing.plan_execution import BindingOptions, execute_plan
from placer.cluster.writing.status_writer import StatusOptions, StatusReport, write_status
from placer.cluster.writing.volcano_pod_groups import enqueue_pod_groups
from placer.document import placement_document
from placer.errors import Fault, NothingFound, StrictFindings, UsageError
from placer.instance import Instance
from placer.manifests import dump
from placer.placement import Placement
from placer.result import Result, Termination
from placer.solve import solve
from placer.words import counted

__all__ = ["Pass", "PassOptions", "run_pass"]


@dataclass(frozen=True, kw_only=True)
class PassOptions:
    """What a pass is to do.

    Parameters
    ----------
    scheduler_name
        Whose pending pods are ours.
    method, time_limit, workers, seed
        As ``solve`` takes them; the limit counts from the beginning of the pass to the first binding.
    binding
        How the plan is carried out.
    dry_run
        Empty; ``client``: write nothing; ``server``: let the server try every binding and keep none.
    cool_down
        Seconds for which a node gets nothing new after its kubelet rejected a pod of ours.
    status
        What is written beside bindings.
    enqueue
        Move PodGroups of our pods and jobs that are Pending to Inqueue before the snapshot.
    strict
        Findings are errors: nothing is bound.
    save
        Folder for the snapshot and the Placement of the pass; None: neither is kept.
    """

    scheduler_name: str = "placer"
    method: str = "auto"
    time_limit: float | None = 20.0
    workers: int | None = None
    seed: int = 0
    binding: BindingOptions = field(default_factory=BindingOptions)
    dry_run: str = ""
    cool_down: float = 300.0
    status: StatusOptions = field(default_factory=StatusOptions)
    enqueue: bool = False
    strict: bool = False
    save: Path | None = None


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
    unfinished: list[str] = field(default_factory=list)
    overfull: list[Overfull] = field(default_factory=list)
    status_report: StatusReport = field(default_factory=StatusReport)
    enqueued: int = 0
    saved: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    interrupted: bool = False
    error: str | None = None

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


def run_pass(
    client: Client,
    done: Pass,
    stop: threading.Event,
    *,
    bind_gently: Callable[[], None] = lambda: None,
    watch: Callable[[str], None] = lambda _: None,
    began: float | None = None,
) -> None:
    """Make one pass.

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

    Raises
    ------
    ClusterError
        The cluster does not answer, or refuses what a pass needs.
    BadInstance
        What is in the cluster cannot be read.
    StrictFindings
        There are findings, and ``strict`` was asked for.
    NothingFound
        A method that shows only its own answers had none in time.
    """
    options, start = done.options, time.monotonic() if began is None else began
    snapshot, instance, cache = _read(client, done, watch)
    with _fed(client, snapshot, cache):
        placement = _decide(done, instance, start, watch)
        done.plan = plan_bindings(instance, placement, snapshot.identities, cache.changed())
        if options.dry_run != "client":
            bind_gently()
            with done.step("bind"):
                watch(f"binding {counted(sum(len(batch.bindings) for batch in done.plan.batches), 'pod')}")
                if done.result is not None and done.result.termination is Termination.INTERRUPTED:
                    stop.set()
                done.gangs = execute_plan(client, cache, instance, done.plan, options.binding, stop)
                done.overfull = [] if options.dry_run else cache.overfull()
        if not options.dry_run:
            _write_status(client, done, stop)
    done.interrupted = stop.is_set()


def _read(client: Client, done: Pass, watch: Callable[[str], None]) -> tuple[Snapshot, Instance, SchedulerCache]:
    """What is in the cluster, with what earlier passes left behind."""
    options = done.options
    if options.enqueue and not options.dry_run:
        done.enqueued = enqueue_pod_groups(client, options.scheduler_name)
    with done.step("snapshot"):
        done.cooling = cooling_nodes(client, options.scheduler_name, options.cool_down)
        taken = take(client, options.scheduler_name, lambda name, count: watch(f"{name} {count:,}"))
        snapshot, instance = prepared(taken, done.cooling)
        done.unfinished = sorted(map(str, half_bound(instance)))
        if options.strict and instance.findings:
            expected = "no finding (--strict)"
            raise StrictFindings(
                [Fault("cluster", None, f.object, f.code, f.message, expected) for f in instance.findings]
            )
        done.snapshot, done.cache = snapshot, SchedulerCache(snapshot, instance)
    return snapshot, instance, done.cache


def _decide(done: Pass, instance: Instance, began: float, watch: Callable[[str], None]) -> Placement:
    """Where the pending pods go; kept, where that was asked for."""
    options = done.options
    with done.step("solve"):
        watch(f"{counted(len(instance.pending), 'pending pod')}, {counted(len(instance.nodes), 'node')}")
        done.result = solve(
            instance,
            method=options.method,
            time_limit=options.time_limit,
            workers=options.workers,
            seed=options.seed,
            began=began,
        )
    _save(done)
    if done.result.placement is None:
        raise NothingFound(done.result.nothing_found)
    return done.result.placement


def _write_status(client: Client, done: Pass, stop: threading.Event) -> None:
    """Tell the cluster what became of its pods."""
    if done.result is None:
        return
    options = done.options
    with done.step("tell"):
        done.status_report = write_status(
            client, options.scheduler_name, done.result, done.plan, done.gangs, done.overfull, options.status, stop
        )


@contextmanager
def _fed(client: Client, snapshot: Snapshot, cache: SchedulerCache) -> Iterator[None]:
    """Let a scheduler cache hear of everything since its snapshot."""
    pods = Watch(client, "/api/v1/pods", snapshot.versions["pods"], cache.pod_happened, cache.pods_replaced)
    nodes = Watch(client, "/api/v1/nodes", snapshot.versions["nodes"], cache.node_happened, cache.nodes_replaced)
    watches = (pods, nodes)

    def lost() -> str | None:
        return next(
            (f"{each.path} cannot be watched: {each.trouble}" for each in watches if each.lost is not None), None
        )

    cache.lost = lost
    for each in watches:
        each.start()
    try:
        yield
    finally:
        for each in watches:
            each.close()


def _save(done: Pass) -> None:
    """Keep what was decided upon, and the decision."""
    folder = done.options.save
    if folder is None or done.snapshot is None or done.result is None:
        return
    name = datetime.now(UTC).strftime("%Y-%m-%dT%H-%M-%S.%fZ")
    snapshot, placement = folder / f"{name}-snapshot.json.gz", folder / f"{name}-placement.json"
    try:
        done.snapshot.write(snapshot)
        document: dict[str, Any] = placement_document(done.result).as_dict()
        dump(document, placement)
    except OSError as error:
        raise UsageError(f"{folder}: cannot be written: {error.strerror}") from error
    done.saved = [str(snapshot), str(placement)]
