"""What a loop tells Prometheus and kubelets, on a real API server."""

from __future__ import annotations

import math
import urllib.request
from collections.abc import Callable
from urllib.error import HTTPError

import pytest
from prometheus_client.parser import text_string_to_metric_families

from placer.answers.report import contents_of_result, page
from placer.answers.solving import solve
from placer.base.errors import UsageError
from placer.cli.running import LiveReport
from placer.passes.cluster.planning.binding_plan import BindingPlan, PlannedBinding
from placer.passes.cluster.planning.disruption_plan import DisruptionReport
from placer.passes.cluster.planning.gang_outcome import GangOutcome, GangState
from placer.passes.cluster.writing.lease import PAUSED, LeaseOptions
from placer.passes.cluster.writing.making_room import EvictionOptions
from placer.passes.metrics import LoopMetrics, longest_silence
from placer.passes.metrics_server import MetricsServer
from placer.passes.scheduling_pass import Pass, PassOptions
from placer.problem import GroupKey, Key
from tests.cluster.api import Api
from tests.cluster.loops import looping
from tests.cluster.passes import gang
from tests.cluster.server import ControlPlane
from tests.cluster.test_loop_live import LEASE
from tests.cluster.things import live_pod
from tests.support import node
from tests.waiting import wait_until
from tests.world import World

NEVER = 3600.0
#: Metrics of kube-scheduler 1.37 whose names are used, as its source has them (``pkg/scheduler/metrics/metrics.go``,
#: ``profile_metrics.go``, ``metric_recorder.go``): type, and labels with the values that there are; None: any.
RESULTS = {"scheduled", "unschedulable", "error"}
KUBE_SCHEDULER = {
    "scheduler_schedule_attempts": ("counter", {"result": RESULTS, "profile": None}),
    "scheduler_podgroup_schedule_attempts": ("counter", {"result": RESULTS, "profile": None}),
    "scheduler_pending_pods": (
        "gauge",
        {"queue": {"active", "backoff", "unschedulable", "gated", "incomplete", "pending"}},
    ),
}


def asked(server: MetricsServer, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{server.port}{path}") as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()


def told(server: MetricsServer) -> dict[tuple[str, ...], float]:
    """Name and labels (by their names) to value, of all samples."""
    status, text = asked(server, "/metrics")
    assert status == 200
    return {
        (each.name, *(each.labels[label] for label in sorted(each.labels))): each.value
        for family in text_string_to_metric_families(text)
        for each in family.samples
    }


@pytest.fixture
def metrics() -> LoopMetrics:
    return LoopMetrics("placer")


def test_what_passes_did_is_told(
    cluster: Api, control_plane: ControlPlane, install: Callable[[str], None], metrics: LoopMetrics
) -> None:
    install("volcano")
    cordoned = node("n2", cpu=8) | {"spec": {"unschedulable": True}}  # one write makes it schedulable
    cluster.create(node("n1", cpu=4), cordoned, *gang("train", 3), live_pod("giant", cpu=5))
    cluster.create(live_pod("held", cpu=1, spec={"schedulingGates": [{"name": "example.com/hold"}]}))
    report = LiveReport(lambda result, moment: page(contents_of_result(result, moment)))
    with MetricsServer(("127.0.0.1", 0), metrics) as server, looping(control_plane, NEVER, metrics, report) as loop:
        loop.wait_for_passes(1)
        status, _, shown = report.page()
        assert status == 200
        assert b"giant" in shown, "the page of the pass names what waits"
        assert loop.phases.count("binding 3 pods") == 1 + 3, "each answer is a sign of life"
        found = told(server)
        assert found["scheduler_schedule_attempts_total", "placer", "scheduled"] == 3
        assert found["scheduler_schedule_attempts_total", "placer", "unschedulable"] == 1
        assert found["scheduler_schedule_attempts_total", "placer", "error"] == 0
        groups = {each: found["scheduler_podgroup_schedule_attempts_total", "placer", each] for each in RESULTS}
        assert groups == {"scheduled": 1, "unschedulable": 0, "error": 0}
        pending = {queue: found["scheduler_pending_pods", queue] for queue in ("active", "backoff", "gated")}
        assert pending == {"active": 0, "backoff": 0, "gated": 1}
        assert found["scheduler_pending_pods", "unschedulable"] == 1
        assert found["placer_passes_total", "decided"] == found["placer_gangs_total", "bound"] == 1
        assert loop.passes[0].result is not None
        (reason,) = loop.passes[0].result.reasons.values()
        assert found["placer_waiting_groups", reason.code] == 1
        assert found["placer_pod_wait_seconds_count", "unknown"] == 3, "it is the first pass of this process"
        assert found["placer_plan_age_seconds_count",] == found["placer_leader",] == 1
        assert all(found["placer_pass_step_seconds_count", step] == 1 for step in ("snapshot", "solve", "bind", "tell"))
        assert sum(each for (name, *_), each in found.items() if name == "placer_verdicts_total") == 1
        gaps = [each for (name, *_), each in found.items() if name == "placer_objective_gap"]
        assert gaps
        assert all(math.isnan(each) or each >= 0 for each in gaps)
        cluster.patch("/api/v1/nodes/n2", {"spec": {"unschedulable": None}})
        wait_until(lambda: loop.bound == 4, "the pass that has room")
        found = told(server)
        assert ("placer_waiting_groups", reason.code) not in found
        assert found["scheduler_schedule_attempts_total", "placer", "scheduled"] == 4
        assert found["placer_pod_wait_seconds_count", "cluster"] == 1, "there was no room"
        cluster.create(*gang("giants", 2, cpu=9))
        refused = "scheduler_podgroup_schedule_attempts_total", "placer", "unschedulable"
        wait_until(lambda: told(server)[refused] >= 1, "the pass that has no room for a gang")


def test_names_of_kube_scheduler_have_its_types_and_labels(metrics: LoopMetrics) -> None:
    """So that a dashboard that was made for it adds up what it should."""
    world = World()
    world.nodes("n1")
    metrics.ended(Pass(PassOptions(), result=solve(world.instance(), method="greedy")))
    families = {each.name: each for each in metrics.registry.collect() if each.name.startswith("scheduler_")}
    assert families.keys() == KUBE_SCHEDULER.keys()
    for name, (kind, labels) in KUBE_SCHEDULER.items():
        assert families[name].type == kind
        assert families[name].samples
        for sample in families[name].samples:
            if sample.name.endswith("_created"):
                continue
            assert sample.labels.keys() == labels.keys()
            assert all(known is None or sample.labels[label] in known for label, known in labels.items())


def test_a_loop_that_stands_by_is_ready_and_no_leader(
    cluster: Api, control_plane: ControlPlane, metrics: LoopMetrics
) -> None:
    with MetricsServer(("127.0.0.1", 0), metrics) as server:
        assert asked(server, "/readyz") == (503, "no pass has ended yet\n")
        with looping(control_plane, NEVER), looping(control_plane, NEVER, metrics):
            assert asked(server, "/readyz") == (200, "ok\n")
            assert told(server)["placer_leader",] == 0


def test_a_pause_is_told_by_who_leads(cluster: Api, control_plane: ControlPlane, metrics: LoopMetrics) -> None:
    with MetricsServer(("127.0.0.1", 0), metrics) as server, looping(control_plane, NEVER, metrics) as loop:
        assert told(server)["placer_paused",] == 0
        cluster.patch(LEASE, {"metadata": {"annotations": {PAUSED: "the fabric is upgraded"}}})
        cluster.create(node("n1", cpu=4), live_pod("a", cpu=1))
        wait_until(lambda: bool(loop.reasons), "the pause")
        found = told(server)
        assert found["placer_paused",] == found["placer_leader",] == 1
        assert asked(server, "/readyz") == (200, "ok\n")
        cluster.patch(LEASE, {"metadata": {"annotations": {PAUSED: None}}})
        wait_until(lambda: loop.bound == 1, "the end of the pause")
        assert told(server)["placer_paused",] == 0


def test_who_cannot_find_out_who_leads_is_not_ready(
    cluster: Api, control_plane: ControlPlane, metrics: LoopMetrics
) -> None:
    """Its Lease is in a namespace that there is not: an upgrade must not take the old version's pods away for it."""
    lease = LeaseOptions(namespace="nowhere", retry_period=0.2)
    with (
        MetricsServer(("127.0.0.1", 0), metrics) as server,
        looping(control_plane, NEVER, metrics, lease=lease) as loop,
    ):
        wait_until(lambda: len(loop.reasons) > 2, "some tries")
        assert "404" in loop.reasons[-1]
        assert asked(server, "/readyz") == (503, "no pass has ended yet\n")
        assert asked(server, "/livez") == (200, "ok\n")
        assert told(server)["placer_leader",] == 0


def test_what_was_planned_and_not_bound_is_an_error_though_others_were_bound_instead(metrics: LoopMetrics) -> None:
    """Those who were moved are in no decision."""
    world = World()
    world.nodes("n1")
    world.pod("a")
    done = Pass(PassOptions(), result=solve(world.instance(), method="greedy"))
    moved = PlannedBinding(Key("default", "moved-again"), "uid", "n1")
    done.bound.gangs = [GangOutcome(GroupKey("", "default", "moved-again"), GangState.BOUND, (moved,))]
    metrics.ended(done)
    with MetricsServer(("127.0.0.1", 0), metrics) as server:
        found = told(server)
    attempts = "scheduler_schedule_attempts_total"
    assert (found[attempts, "placer", "scheduled"], found[attempts, "placer", "error"]) == (1, 1)


def test_a_pass_is_silent_for_no_longer_than_its_limits_allow() -> None:
    assert longest_silence(PassOptions()) == 900
    assert longest_silence(PassOptions(eviction=EvictionOptions(10.0, 1800.0))) > 3600
    assert longest_silence(PassOptions(time_limit=1200.0)) > 2400
    assert longest_silence(PassOptions(time_limit=None)) == math.inf


def test_what_was_evicted_and_what_was_stale_is_counted(metrics: LoopMetrics) -> None:
    """A pod that is moved is evicted, too, and counts once."""
    world = World()
    world.nodes("n1")
    done = Pass(PassOptions(), result=solve(world.instance(), method="greedy"))
    pods = [Key("default", name) for name in ("a", "b", "c")]
    done.report.disruption = DisruptionReport(planned=3, evicted=pods, moved={pods[0]: Key("default", "a-again")})
    done.bound.plan = BindingPlan(stale=frozenset({GroupKey("PodGroup", "default", "g")}))
    metrics.ended(done)
    with MetricsServer(("127.0.0.1", 0), metrics) as server:
        found = told(server)
    assert (found["placer_disturbed_pods_total", "moved"], found["placer_disturbed_pods_total", "evicted"]) == (1, 2)
    assert found["placer_stale_gangs_total",] == 1


def test_passes_that_could_not_be_saved_are_counted(metrics: LoopMetrics) -> None:
    world = World()
    world.nodes("n1")
    result = solve(world.instance(), method="greedy")
    for why in ("/full: cannot be written: No space left on device", None, "/full: cannot be written"):
        done = Pass(PassOptions(), result=result)
        done.report.not_saved = why
        metrics.ended(done)
    with MetricsServer(("127.0.0.1", 0), metrics) as server:
        assert told(server)["placer_unsaved_passes_total",] == 2


def test_a_loop_of_which_nothing_is_heard_is_taken_for_stuck(
    metrics: LoopMetrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    with MetricsServer(("127.0.0.1", 0), metrics) as server:
        assert asked(server, "/livez") == asked(server, "/healthz") == (200, "ok\n")
        monkeypatch.setattr(metrics, "_patience", -1.0)
        assert asked(server, "/livez") == (503, "no step of a pass has ended for 0 s\n")
        assert asked(server, "/elsewhere") == (404, "not found\n")


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [({"error": "away"}, "error"), ({"interrupted": True}, "interrupted"), ({}, "paused")],
)
def test_a_pass_that_decided_nothing_is_counted_by_how_it_ended(
    changes: dict[str, object], outcome: str, metrics: LoopMetrics
) -> None:
    done = Pass(PassOptions())
    for name, value in changes.items():
        setattr(done.report, name, value)
    metrics.ended(done)
    with MetricsServer(("127.0.0.1", 0), metrics) as server:
        assert told(server)["placer_passes_total", outcome] == 1
        with pytest.raises(
            UsageError, match=rf"^--metrics-bind-address 127.0.0.1:{server.port}: Address already in use"
        ):
            MetricsServer(("127.0.0.1", server.port), metrics)
