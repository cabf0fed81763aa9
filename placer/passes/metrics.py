"""Metrics of a loop of passes for Prometheus, and its health.

Names of kube-scheduler are used where the meaning is the same (an *attempt*: one pod in one pass), with the label
``profile``; so are the common names of Kubernetes' components. All others have the prefix ``placer_``.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from placer.base.errors import UsageError
from placer.base.extras import how_to_install
from placer.base.version import __version__
from placer.passes.cluster.planning.gang_outcome import GangState
from placer.problem.namespace_budget import NamespaceBudget

try:
    import prometheus_client as prometheus
except ImportError as missing:
    raise UsageError(f"metrics need the library prometheus-client: {how_to_install('cluster')}") from missing

if TYPE_CHECKING:
    from placer.passes.scheduling_pass import Pass, PassOptions
    from placer.problem import Key
    from placer.problem.result import Result

__all__ = ["LoopMetrics", "longest_silence"]

#: Bounds of histograms in seconds: of steps of a pass, and of pods that wait.
_STEPS = (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300)
_WAITS = (0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600, 6 * 3600, 24 * 3600)
#: The same of requests, as client-go has them.
_ANSWERS = (0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60)
#: Seconds by which a decision may be later than its time limit says (contract of ``--time-limit``).
_LATE = 2.0
#: Steps of a pass after what it binds is bound.
_AFTERWARDS = ("tell", "controllers")
#: Whole seconds are all that the creation of a pod says.
_SECOND = 1.0
#: Most reasons of kubelets that are told apart.
_MOST_REASONS = 50
#: Seconds without a sign of life after which a loop is taken for stuck, at least.
_STUCK = 900.0
#: What became of a gang that was scheduled, as kube-scheduler counts it.
_SCHEDULED = frozenset((GangState.BOUND, GangState.RELEASED, GangState.SHORT))


def longest_silence(options: PassOptions) -> float:
    """Seconds for which a pass may give no sign of life: at least 15 minutes, infinite without a time limit."""
    if options.time_limit is None:
        return math.inf
    binding = options.binding
    limits = (options.time_limit, options.eviction.gone, binding.grace, binding.settle, options.status.limit)
    return max(_STUCK, 2 * sum(limits))


class LoopMetrics:
    """Counts the passes of a loop, as one of its observers."""

    def __init__(self, profile: str, patience: float = _STUCK, lease: str = "placer") -> None:
        self._patience = patience
        self.registry = registry = prometheus.CollectorRegistry()
        self.ready = False  #: whether a pass has ended, or another process makes them
        self._profile, self._sign = profile, time.monotonic()
        self._reasons = set[str]()

        def counter(name: str, text: str, labels: str = "") -> prometheus.Counter:
            return prometheus.Counter(name, text, labels.split(), registry=registry)

        def gauge(name: str, text: str, labels: str = "") -> prometheus.Gauge:
            return prometheus.Gauge(name, text, labels.split(), registry=registry)

        def histogram(name: str, text: str, buckets: Sequence[float], labels: str = "") -> prometheus.Histogram:
            return prometheus.Histogram(name, text, labels.split(), registry=registry, buckets=buckets)

        self._attempts = counter(
            "scheduler_schedule_attempts_total",
            "Pods that passes looked at, by outcome: scheduled, unschedulable, error.",
            "result profile",
        )
        self._group_attempts = counter(
            "scheduler_podgroup_schedule_attempts_total",
            "Groups with an object and waiting pods, by outcome of a pass: scheduled, unschedulable, error.",
            "result profile",
        )
        self._pending = gauge(
            "scheduler_pending_pods",
            "Pods that waited after the last pass: active (planned and not bound), backoff, unschedulable, gated.",
            "queue",
        )
        self._passes = counter(
            "placer_passes_total", "Passes by how they ended: decided, error, paused, interrupted.", "outcome"
        )
        self._verdicts = counter("placer_verdicts_total", "Decisions by verdict.", "verdict")
        self._steps = histogram(
            "placer_pass_step_seconds", "Seconds of a step of a pass: snapshot, solve, bind, tell.", _STEPS, "step"
        )
        self._age = histogram(
            "placer_plan_age_seconds", "Seconds from the snapshot of a pass to its first binding.", _STEPS
        )
        self._waits = histogram(
            "placer_pod_wait_seconds",
            "Seconds from the creation of a pod to its binding, by cause of the wait: placer, cluster (an "
            "earlier pass found a reason against it), unknown (first pass of a process).",
            _WAITS,
            "cause",
        )
        self._gap = gauge(
            "placer_objective_gap",
            "Relative gap between a value of the last decision and its bound; NaN: no bound.",
            "value",
        )
        self._waiting = gauge("placer_waiting_groups", "Groups with pods that wait, by reason.", "reason")
        self._gangs = counter(
            "placer_gangs_total",
            "Gangs of plans by outcome: bound, released, short, halfBound, rolledBack, left (stale or refused).",
            "state",
        )
        self._stale = counter(
            "placer_stale_gangs_total",
            "Gangs of plans of which a binding was not sent, since the cluster had changed since the snapshot.",
        )
        self._disturbed = counter(
            "placer_disturbed_pods_total",
            "Running pods that passes evicted to make room, by outcome: moved (bound again), evicted.",
            "action",
        )
        self._rejected = counter("placer_kubelet_rejections_total", "Pods that kubelets rejected, by reason.", "reason")
        self._late = counter(
            "placer_late_passes_total",
            "Passes that decided more than 2 s later than their time limit, or reading and half the limit, allows.",
        )
        self._unrecorded = counter(
            "placer_record_dropped_total",
            "Entries for which the record has no room, by part: gangs (not bound), rejected, unanswered, reservations, "
            "held, unreadable.",
            "part",
        )
        self._unsaved = counter(
            "placer_unsaved_passes_total",
            "Passes that --save could not keep, as on a full disk (saveKeep); they bind all the same.",
        )
        self._requests = counter(
            "rest_client_requests_total",
            "Requests to the API server, by status (<error>: no answer came), method and host.",
            "code method host",
        )
        self._answers = histogram(
            "rest_client_request_duration_seconds",
            "Seconds until an answer of the API server began.",
            _ANSWERS,
            "verb host",
        )
        self._now = {
            name: gauge(f"placer_{name}", text)
            for name, text in (
                ("half_bound_gangs", "Gangs that the last pass left half-bound."),
                ("namespace_budget_share", "Largest share of its budget that a namespace spent; above 1: pods wait."),
                (
                    "unbound_released_pods",
                    "Released pods that their schedulers had not bound at the end of the last pass.",
                ),
                ("overfull_nodes", "Nodes that the last pass found over-full."),
                ("unseen_gangs", "Gangs that the last pass bound and of which no event came."),
                ("cooling_nodes", "Nodes that get nothing new, since their kubelet rejected a pod."),
                (
                    "unheld_daemon_pods",
                    "Pods of DaemonSets that are to come and for which the last pass held no room, beyond the limit of "
                    "their namespaces.",
                ),
                ("record_bytes", "Bytes of the record of half-bound gangs; a ConfigMap has room for 1,048,576."),
                ("record_unreadable", "1 while the record has keys that could not be read, which nobody has deleted."),
                ("leader", "1 while this process holds the Lease, else 0."),
                ("paused", "1 while this process holds the Lease and passes are paused, else 0."),
                ("last_pass_timestamp_seconds", "When the last pass that decided ended, in seconds since 1970."),
            )
        }
        prometheus.Info("placer_build", "Which placer it is.", registry=registry).info({"version": __version__})
        master = "1 while this process holds the Lease, else 0, as components of Kubernetes say it."
        self._leads = gauge("leader_election_master_status", master, "name").labels(lease)
        prometheus.ProcessCollector(registry=registry)
        self._looked: float | None = None  # when the last pass that decided began, in seconds since 1970
        self._found: dict[Key, tuple[float, str]] = {}  # pods that it left waiting: when they came, and for whom

    def request(self, method: str, url: str, status: int, seconds: float) -> None:
        """Count a request to the API server."""
        host = urlsplit(url).netloc
        self._requests.labels(str(status) if status else "<error>", method, host).inc()
        self._answers.labels(method, host).observe(seconds)

    @property
    def trouble(self) -> str | None:
        """Why the loop counts as stuck; None while it does not."""
        silent = time.monotonic() - self._sign
        return None if silent <= self._patience else f"no step of a pass has ended for {silent:.0f} s"

    def waiting(self, *_: object) -> None:
        """Note a sign of life."""
        self._sign = time.monotonic()

    begun = phase = binding = waiting

    def standing_by(self, _why: str) -> None:
        """Note that another process makes the passes."""
        self._lead(leader=False, paused=False)

    def undecided(self, _why: str) -> None:
        """Note that the leader is unknown: a sign of life, but not ready."""
        self.waiting()
        self._hold(leader=False, paused=False)

    def paused(self, _why: str) -> None:
        """Note that passes are paused."""
        self._lead(leader=True, paused=True)

    def _lead(self, *, leader: bool, paused: bool) -> None:
        self.ready = True
        self.waiting()
        self._hold(leader=leader, paused=paused)

    def _hold(self, *, leader: bool, paused: bool) -> None:
        self._leads.set(leader)
        self._now["leader"].set(leader)
        self._now["paused"].set(paused)

    def ended(self, done: Pass) -> None:
        """Count a pass."""
        self._lead(leader=done.leader is not None and done.elector.lost is None, paused=done.elector.paused is not None)
        self._passes.labels(_outcome(done)).inc()
        for step, seconds in done.seconds.items():
            self._steps.labels(step).observe(seconds)
        self._count_record(done)
        if done.result is None:
            return
        self._now["last_pass_timestamp_seconds"].set(time.time())
        if done.read is not None:
            budget = done.options.namespace_budget or NamespaceBudget()
            self._now["cooling_nodes"].set(len(done.read.cooling))
            share = max((cost.share(budget) for cost in done.read.costs), default=0.0)
            self._now["namespace_budget_share"].set(share)
        self._unsaved.inc(done.report.not_saved is not None)
        self._late.inc(_is_late(done))
        self._count_gangs(done)
        self._count_pods(done, done.result)
        self._count_result(done, done.result)

    def _count_result(self, done: Pass, result: Result) -> None:
        for what, count in _of_groups(done, result).items():
            self._group_attempts.labels(what, self._profile).inc(0 if done.options.dry_run else count)
        self._verdicts.labels(result.verdict.value).inc()
        self._gap.clear()
        for each in result.objective:
            gap = each.gap
            self._gap.labels(each.value.name).set(float("nan") if gap is None else gap)
        self._waiting.clear()
        for code, count in Counter(each.code for each in result.reasons.values()).items():
            self._waiting.labels(code).set(count)

    def _count_record(self, done: Pass) -> None:
        for part, count in done.report.unrecorded.items():
            self._unrecorded.labels(part).inc(count)
        self._now["record_bytes"].set(done.record.size)
        self._now["record_unreadable"].set(bool(done.record.apart))
        self._now["unheld_daemon_pods"].set(sum(done.read.snapshot.no_room.values()) if done.read is not None else 0)

    def _count_gangs(self, done: Pass) -> None:
        bound, cache = done.bound, done.read.cache if done.read is not None else None
        for gang in bound.gangs:
            self._gangs.labels(gang.state.value).inc()
        self._gangs.labels(GangState.LEFT.value).inc(len(bound.plan.dropped))
        self._now["half_bound_gangs"].set(len(bound.half_bound))
        self._now["unbound_released_pods"].set(sum(len(gang.waiting) for gang in bound.gangs))
        self._now["overfull_nodes"].set(len(bound.overfull))
        self._now["unseen_gangs"].set(len(bound.unseen))
        for each in cache.rejected.values() if cache is not None else ():
            self._rejected.labels(self._reason(each.reason)).inc()
        self._stale.inc(len(bound.plan.stale | (cache.stale if cache is not None else set())))
        disruption = done.report.disruption
        if disruption is not None:
            moved = disruption.moved.keys()
            for action, pods in (("moved", moved), ("evicted", set(disruption.evicted) - moved)):
                self._disturbed.labels(action).inc(len(pods))

    def _reason(self, reason: str) -> str:
        """A reason as a label; few are kept, since each is a series, and a kubelet may invent more."""
        if len(self._reasons) < _MOST_REASONS:
            self._reasons.add(reason)
        return reason if reason in self._reasons else "other"

    def _observe_waits(self, done: Pass, result: Result, bound: Sequence[Key]) -> None:
        ended = done.began.timestamp() + sum(each for step, each in done.seconds.items() if step not in _AFTERWARDS)
        # Pods that were moved, and made anew meanwhile, are in no decision: nothing more is known of them.
        created = {pod: result.instance.pods[pod].created for pod in bound if pod in result.instance.pods}
        for pod, when in created.items():
            if when:
                self._waits.labels(self._cause(pod, when)).observe(max(0.0, ended - when))
        if created and "bind" in done.seconds:
            self._age.observe(sum(done.seconds.get(step, 0.0) for step in ("snapshot", "solve")))

    def _cause(self, pod: Key, created: float) -> str:
        """Why a pod was not bound before; one older than the last pass but unknown to it had a gate."""
        before, cause = self._found.get(pod, (0.0, ""))
        if before == created and cause:
            return cause
        if self._looked is None:
            return "unknown"
        return "placer" if created + _SECOND > self._looked else "cluster"

    def _look(self, done: Pass, result: Result, left: set[Key]) -> None:
        groups, pods = result.instance.groups, result.instance.pods
        undecided = [groups[key] for key, reason in result.reasons.items() if reason.code == "NotDecided"]
        ours = {*left, *(pod for group in undecided for pod in group.pending)}
        waits = {pod.key for pod in result.instance.pending} - (_planned_pods(result) - left)
        causes = {pod: self._cause(pod, pods[pod].created) if pod in ours else "cluster" for pod in waits}
        self._found = {pod: (pods[pod].created, cause) for pod, cause in causes.items()}
        self._looked = done.began.timestamp()

    def _count_pods(self, done: Pass, result: Result) -> None:
        instance, planned = result.instance, _planned_pods(result)
        bound = [bind.pod for gang in done.bound.gangs for bind in gang.bound]
        self._observe_waits(done, result, bound)
        self._look(done, result, planned.difference(bound))
        left = len(planned.difference(bound))
        waiting = len(instance.pending) - len(planned)
        for what, count in (("scheduled", len(bound)), ("unschedulable", waiting), ("error", left)):
            self._attempts.labels(what, self._profile).inc(0 if done.options.dry_run else count)
        backing_off = len(done.read.backing_off) if done.read is not None else 0
        gated = instance.set_aside.gated - backing_off  # those who back off have a gate in the snapshot
        for queue, count in (("active", left), ("backoff", backing_off), ("unschedulable", waiting), ("gated", gated)):
            self._pending.labels(queue).set(max(0, count))


def _of_groups(done: Pass, result: Result) -> dict[str, int]:
    waited = [key for key, group in result.instance.groups.items() if key.api_group and group.pending]
    made = dict.fromkeys((result.instance.pods[pod].group for pod in _planned_pods(result)), "error")
    made |= dict.fromkeys((gang.key for gang in done.bound.gangs if gang.state in _SCHEDULED), "scheduled")
    found = Counter(made.get(key, "unschedulable") for key in waited)
    return {each: found[each] for each in ("scheduled", "unschedulable", "error")}


def _planned_pods(result: Result) -> set[Key]:
    return set() if result.placement is None else {each.pod for each in result.placement.bindings}


def _is_late(done: Pass) -> bool:
    """Whether a pass decided too late: after slow reading, half of the limit is left for deciding."""
    limit, read = done.options.time_limit, done.seconds.get("snapshot", 0.0)
    decided = read + done.seconds.get("solve", 0.0)
    return limit is not None and decided > max(limit, read + limit / 2) + _LATE


def _outcome(done: Pass) -> str:
    if done.report.error is not None:
        return "error"
    if done.report.interrupted:
        return "interrupted"
    return "decided" if done.result is not None else "paused"
