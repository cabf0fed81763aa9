"""``--apply``: a plan that disturbs, carried out in the cluster after it was shown."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from placer.base.errors import ClusterError, UsageError
from placer.base.words import and_list, counted, some
from placer.cli import flags, printing
from placer.cli.pass_flags import lease_of
from placer.cli.signals import StopSignals

if TYPE_CHECKING:
    from placer.passes.cluster.planning.disruption_plan import DisruptionReport
    from placer.passes.scheduling_pass import MakePass, Pass, PassOptions
    from placer.problem.result import Result

#: Pods that are named of those that were not gone, or not bound again.
SHOWN = 10


def check_apply(options: argparse.Namespace) -> None:
    """Refuse a plan of edited input, or for pods of other schedulers, with :class:`UsageError`."""
    from placer.problem import ANY_SCHEDULER

    if not options.apply:
        return
    if options.instance or flags.is_edited(options):
        what = "INSTANCE" if options.instance else "--with, --without or --set"
        raise UsageError(f"--apply: found {what} with it, expected neither: only the cluster as it is can be changed")
    if options.scheduler_name == ANY_SCHEDULER:
        raise UsageError(f"--apply: found --scheduler-name {ANY_SCHEDULER}, expected one name: other pods are not ours")
    if not options.gone_within > 0:
        raise UsageError(f"--gone-within: found {options.gone_within}, expected seconds above 0")


def apply_plan(options: argparse.Namespace, make: MakePass) -> Result:
    """Make, show and carry out a plan under the Lease; not to its end: :class:`ClusterError`."""
    from placer.passes.cluster import Client
    from placer.passes.scheduling_pass import Pass, PassSession, run_pass

    done = Pass(_pass_options(options))
    client = Client.connect(options.kubeconfig, options.context)
    signals = StopSignals()
    with signals.heeded(), printing.progress_of(options, options.time_limit) as progress:
        session = PassSession(client, signals.stop, signals.gently, progress.phase, options.began)
        try:
            run_pass(session, done, make=make)
        finally:  # whatever happened, what was evicted is told
            signals.answered()
            _tell(options, done)
    if done.result is None:
        raise ClusterError(f"nothing was decided: {_undecided(done)}")
    trouble = next(_troubles(done), None)
    if trouble is not None:
        raise ClusterError(trouble)
    return done.result


def _undecided(done: Pass) -> str:
    if done.report.disruption is not None and done.report.disruption.trouble is not None:
        return done.report.disruption.trouble
    return done.elector.paused or f"{done.options.lease} is held by {done.leader}"


def _pass_options(options: argparse.Namespace) -> PassOptions:
    from placer.passes.cluster.writing.making_room import EvictionOptions
    from placer.passes.scheduling_pass import PassOptions

    return PassOptions(
        scheduler_name=options.scheduler_name or "placer",
        time_limit=options.time_limit,
        workers=options.workers,
        seed=options.seed,
        cool_down=options.cool_down,
        strict=options.strict,
        lease=lease_of(options),
        patience=float("inf"),  # gangs that are half-bound are for passes to complete, or to roll back
        holds=False,
        eviction=EvictionOptions(min(EvictionOptions().grace, options.gone_within), options.gone_within),
    )


def _troubles(done: Pass) -> Iterator[str]:
    if done.report.disruption is not None and done.report.disruption.trouble is not None:
        end = " to its end" if done.report.disruption.evicted else ", and nothing was evicted"
        yield f"the plan was not carried out{end}: {done.report.disruption.trouble}"
    yield from (f"{gang.key} is half-bound: {gang.reason}" for gang in done.bound.half_bound)
    yield from map(str, done.bound.overfull)
    yield from (f"{gang.key} was bound, and not seen since" for gang in done.bound.unseen)


# -------------------------------------------------------------------------------------------------------------- telling


def _tell(options: argparse.Namespace, done: Pass) -> None:
    if done.result is None:
        return
    if options.json:
        printing.tell(printing.headed("AppliedPlan", _document(done)), options, _document(done)["applied"]["evicted"])
        return
    printing.say(_lines(done))


def _document(done: Pass) -> dict[str, Any]:
    from placer.passes.cluster.planning.disruption_plan import DisruptionReport

    report = done.report.disruption or DisruptionReport()
    bound = {str(bind.pod): bind.node for gang in done.bound.gangs for bind in gang.bound}
    return {"applied": disruption_document(report) | {"bound": bound, "troubles": list(done.report.troubles)}}


def disruption_document(report: DisruptionReport) -> dict[str, Any]:
    """How far a plan was carried out, as JSON."""
    return {
        "planned": report.planned,
        "evicted": list(map(str, report.evicted)),
        "standing": list(map(str, report.standing)),
        "moved": {str(key): str(again) for key, again in report.moved.items()},
        "notMoved": list(map(str, report.not_moved)),
        "elsewhere": report.elsewhere,
        "trouble": report.trouble,
    }


def _lines(done: Pass) -> Iterator[str]:
    report = done.report.disruption
    if report is not None:
        yield f"Evicted {len(report.evicted):,} of {counted(report.planned, 'pod')}."
        if report.standing:
            yield f"Not gone yet: {_some(report.standing)}."
        if report.moved:
            pairs = (f"{one} as {other}" for one, other in report.moved.items())
            yield f"Moved {counted(len(report.moved), 'pod')}: {_some(pairs)}."
        if report.not_moved:
            yield f"Not placed again, and left for the next pass: {_some(report.not_moved)}."
        if report.elsewhere:
            yield f"Placed otherwise than planned: {report.elsewhere}."
    bound = sum(len(gang.bound) for gang in done.bound.gangs)
    yield f"Bound {counted(bound, 'pod')}."
    yield from (f"Not written: {trouble}" for trouble in done.report.troubles)


def _some(things: Any) -> str:
    return and_list(some(list(map(str, things)), SHOWN))
