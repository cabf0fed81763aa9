"""``run``: one pass in the cluster, or pass after pass."""

from __future__ import annotations

import argparse
import json
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from itertools import islice
from typing import TYPE_CHECKING, Any

from placer.answers.document import set_aside
from placer.base.errors import ClusterError
from placer.base.version import API_VERSION, __version__
from placer.cli import flags, printing
from placer.cli.applying import disruption_document
from placer.cli.inspection import Inspection
from placer.cli.pass_flags import configured, pass_options, values_of_keys
from placer.cli.signals import StopSignals
from placer.kube.manifests.writing import to_yaml
from placer.passes.cluster import Client
from placer.passes.cluster.planning.gang_outcome import GangOutcome, GangState
from placer.passes.cluster.reading.credentials import context_name
from placer.passes.configuration import parse_address
from placer.passes.metrics import LoopMetrics, longest_silence
from placer.passes.preempt_pass import make_room_pass
from placer.passes.scheduling_loop import LoopObserver, run_loop
from placer.passes.scheduling_pass import Pass, PassOptions, PassSession, run_pass
from placer.problem.result import Result

if TYPE_CHECKING:
    from placer.passes.metrics_server import PageAnswer

#: Most gangs, pods and nodes of a kind that the summary names; the numbers are of all.
SHOWN = 50

#: Least seconds after which the report of a loop loads itself again.
REFRESHED = 30.0


class _LoopTeller:
    def __init__(self, signals: StopSignals, phase: Callable[[str], None], form: str | None) -> None:
        self._signals, self._phase, self._format = signals, phase, form
        self._why = ""
        #: That of the last pass that was not broken off; before the first one, whether it is known who makes them.
        self.exit_code = flags.OK
        self._is_first = True

    def begun(self, _done: Pass) -> None:
        self._why = ""

    def phase(self, text: str) -> None:
        self._phase(text)

    def binding(self) -> None:
        self._signals.gently()

    def ended(self, done: Pass) -> None:
        """Print its line: whoever has read it may interrupt the loop at once, and finds the exit code of this pass."""
        code = _exit_code(done)
        if code != flags.OK or not done.report.interrupted:
            self.exit_code, self._is_first = code, False
        _tell(done, self._format)
        self._signals.gently(False)

    def standing_by(self, why: str) -> None:
        self._know(flags.OK)
        self._say(why)

    def undecided(self, why: str) -> None:
        self._know(ClusterError.exit_code)
        self._say(why)

    def paused(self, why: str) -> None:
        self._say(why)

    def _know(self, code: int) -> None:
        if self._is_first:
            self.exit_code = code

    def _say(self, why: str) -> None:
        if why != self._why:
            print(f"placer: no pass is made: {why}", file=sys.stderr, flush=True)
        self._why = why

    def waiting(self) -> None:
        """There is nothing to say."""


def run(options: argparse.Namespace) -> int:
    """Carry out ``run``."""
    options = configured(options)
    wanted = pass_options(options)
    client = Client.connect(options.kubeconfig, options.context)
    inspection = Inspection(values_of_keys(options))
    client.heard.append(inspection.request)
    run = _run_once if wanted.every is None else _run_loop
    with inspection.heeded():
        return run(client, wanted, options, inspection)


def _run_loop(client: Client, wanted: PassOptions, options: argparse.Namespace, inspection: Inspection) -> int:
    signals = StopSignals()
    with ExitStack() as stack:
        metrics = _metrics(stack, wanted, options.metrics_bind_address, inspection)
        client.heard.extend(each.request for each in metrics)
        observers: list[LoopObserver] = [*metrics, *_live_report(stack, wanted, options)]
        stack.enter_context(signals.heeded())
        progress = stack.enter_context(printing.progress_of(options))
        teller = _LoopTeller(signals, progress.phase, options.format)
        with suppress(KeyboardInterrupt):
            run_loop(client, wanted, signals.stop, teller, inspection, *observers, make=make_room_pass)
        signals.answered()
    return teller.exit_code


def _metrics(stack: ExitStack, wanted: PassOptions, address: str | None, inspection: Inspection) -> list[LoopMetrics]:
    if address is None:
        return []
    from placer.passes.metrics_server import MetricsServer

    metrics = LoopMetrics(wanted.scheduler_name, longest_silence(wanted), wanted.lease.name)
    stack.enter_context(MetricsServer(parse_address(address), metrics, inspection.pages))
    return [metrics]


def _live_report(stack: ExitStack, wanted: PassOptions, options: argparse.Namespace) -> list[LiveReport]:
    if options.report_bind_address is None:
        return []
    from placer.answers.report import contents_of_result, page
    from placer.passes.metrics_server import PageServer

    name = context_name(options.kubeconfig, options.context) or "cluster"
    every = max(REFRESHED, wanted.every or 0.0)
    report = LiveReport(lambda result, moment: page(contents_of_result(result, moment, cluster=name, every=every)))
    pages = {"/report": report.page}
    stack.enter_context(PageServer(parse_address(options.report_bind_address), pages, "--report-bind-address"))
    return [report]


def _run_once(client: Client, wanted: PassOptions, options: argparse.Namespace, inspection: Inspection) -> int:
    done, signals = Pass(wanted), StopSignals()
    with signals.heeded(), printing.progress_of(options, options.time_limit) as progress:

        def watch(text: str) -> None:
            inspection.phase(text)
            progress.phase(text)

        inspection.begun(done)
        try:
            session = PassSession(client, signals.stop, signals.gently, watch, options.began)
            run_pass(session, done, make=make_room_pass)
        except KeyboardInterrupt:
            done.report.interrupted = True
        except Exception as error:
            done.report.error = str(error)
            raise
        finally:  # whatever happened, what was bound is told
            signals.answered()
            _tell(done, options.format)
    if done.leader not in (None, done.identity):
        print(f"placer: nothing was decided: {done.options.lease} is held by {done.leader}", file=sys.stderr)
    paused = done.elector.paused
    if paused is not None:
        what = "no further gang was bound" if done.result is not None else "nothing was decided"
        print(f"placer: paused: {what}: {paused}", file=sys.stderr)
    return _exit_code(done)


def _tell(done: Pass, form: str | None) -> None:
    if form == "yaml":
        print(f"---\n{to_yaml(_summary(done))}", end="", flush=True)
    elif form == "name":
        print("".join(f"pod/{bind.pod}\n" for gang in done.bound.gangs for bind in gang.bound), end="", flush=True)
    else:
        print(json.dumps(_summary(done)), flush=True)
    if done.report.not_saved is not None:
        print(f"placer: warning: the pass was not saved: {done.report.not_saved}", file=sys.stderr, flush=True)


def _exit_code(done: Pass) -> int:
    bound = done.bound
    return ClusterError.exit_code if bound.half_bound or bound.overfull or bound.unseen else done.report.exit_code


def _summary(done: Pass) -> dict[str, Any]:
    report, bound = done.report, done.bound
    return {
        "apiVersion": API_VERSION,
        "kind": "Pass",
        "time": done.began.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "version": __version__,
        "pass": done.identifier,
        "instance": done.result.instance.digest if done.result is not None else None,
        "schedulerName": done.options.scheduler_name,
        "dryRun": done.options.dry_run or None,
        "leader": done.leader,
        "paused": done.elector.paused,
        "interrupted": report.interrupted,
        "error": report.error,
        **_decision(done),
        "planned": sum(len(batch.bindings) for batch in bound.plan.batches),
        "bound": sum(len(gang.bound) for gang in bound.gangs),
        **_released(done),
        **_gangs(done),
        "unseen": [str(gang.key) for gang in bound.unseen[:SHOWN]],
        "overfull": [str(each) for each in bound.overfull],
        "findings": dict(Counter(each.code for each in done.result.findings)) if done.result is not None else {},
        **_earlier(done),
        "inqueue": report.enqueued.count,
        "told": {
            "conditions": report.status.conditions,
            "events": report.status.events,
            "groups": report.status.groups,
            "troubles": [*report.troubles, *report.enqueued.troubles, *report.status.troubles][:SHOWN],
        },
        "controllers": {
            "written": report.controlled.written,
            "left": report.controlled.left[:SHOWN],
            "findings": report.controlled.findings[:SHOWN],
            "troubles": report.controlled.troubles[:SHOWN],
        },
        "saved": report.saved,
        "notSaved": report.not_saved,
        "seconds": done.seconds,
    }


def _released(done: Pass) -> dict[str, Any]:
    return {
        "released": sum(bind.by_release for gang in done.bound.gangs for bind in gang.bound),
        "unbound": _some({bind.pod: bind.node for gang in done.bound.gangs for bind in gang.waiting}),
    }


def _earlier(done: Pass) -> dict[str, Any]:
    read, report = done.read, done.report.disruption
    disturbed = {"disruption": disruption_document(report) if report is not None else None}
    if read is None:
        return {"unfinished": [], "backingOff": {}, "coolingNodes": [], **disturbed, "room": "none", "reserved": 0}
    # Pods that wait for their gang to be complete have no time.
    times = {key: until for key, until, _why in read.backing_off.values() if until is not None}
    return {
        "unfinished": sorted(map(str, read.half_bound))[:SHOWN],
        "backingOff": _some({key: f"{until:%Y-%m-%dT%H:%M:%SZ}" for key, until in times.items()}),
        "coolingNodes": sorted(read.cooling)[:SHOWN],
        **disturbed,
        "room": read.room.value,
        "reserved": sum(len(each.pods) for each in read.reserved.left),
    }


def _decision(done: Pass) -> dict[str, Any]:
    result = done.result
    if result is None:
        names = "nodes pending setAside method termination verdict unsupported costs placed bindings"
        return dict.fromkeys(names.split())
    bindings = result.placement.bindings if result.placement is not None else None
    shown = bindings if done.options.dry_run else None
    return {
        "nodes": len(result.instance.nodes),
        "pending": len(result.instance.pending),
        "unsupported": result.unsupported,
        "costs": [
            cost.as_dict() | {"seconds": round(cost.part * done.seconds.get("solve", 0.0), 3)}
            for cost in (done.read.costs if done.read is not None else ())
        ],
        "setAside": set_aside(result.instance).as_dict(),
        "method": result.method,
        "termination": result.termination.value,
        "verdict": result.verdict.value,
        "placed": len(bindings) if bindings is not None else None,
        "bindings": _some({each.pod: each.node for each in shown}) if shown is not None else None,
    }


def _gangs(done: Pass) -> dict[str, Any]:
    result, gangs, dropped = done.result, done.bound.gangs, done.bound.plan.dropped
    left = {gang.key: gang.reason for gang in gangs if gang.state is GangState.LEFT}
    incomplete = (GangState.RELEASED, GangState.SHORT, GangState.HALF_BOUND, GangState.ROLLED_BACK)
    rejected = done.read.cache.rejected if done.read is not None else {}
    return {
        "gangs": {state.value: sum(gang.state is state for gang in gangs) for state in GangState}
        | {"dropped": len(dropped), "waiting": len(result.reasons) if result is not None else 0},
        "left": _some({**dropped, **left}),
        "incomplete": [_incomplete(gang) for gang in gangs if gang.state in incomplete],
        "rejected": _some({pod: f"{each.reason} on {each.node}" for pod, each in rejected.items()}),
    }


def _incomplete(gang: GangOutcome) -> dict[str, Any]:
    return {
        "group": str(gang.key),
        "state": gang.state.value,
        "bound": len(gang.before) + len(gang.bound),
        "missing": _some(gang.missing),
        "reason": gang.reason or None,
    }


def _some(things: Mapping[Any, str]) -> dict[str, str]:
    return {str(key): text for key, text in islice(things.items(), SHOWN)}


_EARLY = b"no pass has decided anything yet\n"


class LiveReport:
    """Keeps the last answer; ``make`` makes the page of it and of its time in seconds since the epoch."""

    def __init__(self, make: Callable[[Result, float], str]) -> None:
        self._make = make
        self._last: tuple[Result, float] | None = None  # and when its pass began
        self._made: tuple[Result, bytes] | None = None
        self._lock = threading.Lock()  # the page of a large cluster is made once, however many ask

    def page(self) -> PageAnswer:
        """Give the page of the last pass that decided something."""
        with self._lock:
            last = self._last
            if last is None:
                return 503, "text/plain; charset=utf-8", _EARLY
            result, moment = last
            if self._made is None or self._made[0] is not result:
                self._made = result, self._make(result, moment).encode()
            return 200, "text/html; charset=utf-8", self._made[1]

    def ended(self, done: Pass) -> None:
        """Keep the answer of a pass, where it has one."""
        if done.result is not None:
            self._last = done.result, done.began.timestamp()

    def _nothing(self, *_: object) -> None:
        """There is nothing to keep."""

    begun = phase = binding = waiting = standing_by = undecided = paused = _nothing
