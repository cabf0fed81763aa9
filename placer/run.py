"""One pass in the cluster: snapshot, decision, plan, bindings, and what is told of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from placer.cluster.aftermath import Gang, State
from placer.cluster.apply import Settings, apply
from placer.cluster.client import Client
from placer.cluster.cooling import cooling_nodes, half_bound, prepared
from placer.cluster.ledger import Ledger, Overfull
from placer.cluster.plan import Plan, make_plan
from placer.cluster.snapshot import Snapshot, take
from placer.cluster.telling import Telling, Told, tell
from placer.cluster.volcano import let_in
from placer.cluster.watching import Watch
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
    telling
        What is written beside bindings.
    let_in
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
    binding: Settings = field(default_factory=Settings)
    dry_run: str = ""
    cool_down: float = 300.0
    telling: Telling = field(default_factory=Telling)
    let_in: bool = False
    strict: bool = False
    save: Path | None = None


@dataclass
class Pass:
    """What a pass has done so far; complete when :func:`run_pass` returns."""

    options: PassOptions
    snapshot: Snapshot | None = None
    result: Result | None = None
    plan: Plan = field(default_factory=Plan)
    gangs: list[Gang] = field(default_factory=list)
    ledger: Ledger | None = None
    cooling: set[str] = field(default_factory=set)
    unfinished: list[str] = field(default_factory=list)
    overfull: list[Overfull] = field(default_factory=list)
    told: Told = field(default_factory=Told)
    let_in: int = 0
    saved: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    interrupted: bool = False
    error: str | None = None

    @property
    def half_bound(self) -> list[Gang]:
        """Gangs that this pass leaves half-bound."""
        return [gang for gang in self.gangs if gang.state is State.HALF_BOUND]

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
        Is filled step by step, so that whoever breaks the pass off can still tell what it has done.
    stop
        Set by somebody else: begin nothing more.
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
    snapshot, instance, ledger = _read(client, done, watch)
    with _fed(client, snapshot, ledger):
        placement = _decide(done, instance, start, watch)
        done.plan = make_plan(instance, placement, snapshot.identities, ledger.changed())
        if options.dry_run != "client":
            bind_gently()
            with done.step("bind"):
                watch(f"binding {counted(sum(len(batch.bindings) for batch in done.plan.batches), 'pod')}")
                if done.result is not None and done.result.termination is Termination.INTERRUPTED:
                    stop.set()
                done.gangs = apply(client, ledger, instance, done.plan, options.binding, stop)
                done.overfull = [] if options.dry_run else ledger.overfull()
        if not options.dry_run:
            _tell(client, done, stop)
    done.interrupted = stop.is_set()


def _read(client: Client, done: Pass, watch: Callable[[str], None]) -> tuple[Snapshot, Instance, Ledger]:
    """What is in the cluster, with what earlier passes left behind."""
    options = done.options
    if options.let_in and not options.dry_run:
        done.let_in = let_in(client, options.scheduler_name)
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
        done.snapshot, done.ledger = snapshot, Ledger(snapshot, instance)
    return snapshot, instance, done.ledger


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


def _tell(client: Client, done: Pass, stop: threading.Event) -> None:
    """Tell the cluster what became of its pods."""
    if done.result is None:
        return
    options = done.options
    with done.step("tell"):
        done.told = tell(
            client, options.scheduler_name, done.result, done.plan, done.gangs, done.overfull, options.telling, stop
        )


@contextmanager
def _fed(client: Client, snapshot: Snapshot, ledger: Ledger) -> Iterator[None]:
    """Let a ledger hear of everything since its snapshot."""
    pods = Watch(client, "/api/v1/pods", snapshot.versions["pods"], ledger.pod_happened, ledger.pods_replaced)
    nodes = Watch(client, "/api/v1/nodes", snapshot.versions["nodes"], ledger.node_happened, ledger.nodes_replaced)
    watches = (pods, nodes)

    def lost() -> str | None:
        return next(
            (f"{each.path} cannot be watched: {each.trouble}" for each in watches if each.lost is not None), None
        )

    ledger.lost = lost
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
