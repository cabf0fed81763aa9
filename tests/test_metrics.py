"""What metrics say of passes, requests and the Lease, without a cluster."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from placer.answers.solving import solve
from placer.passes.cluster.planning.binding_plan import PlannedBinding
from placer.passes.cluster.planning.gang_outcome import GangOutcome, GangState
from placer.passes.metrics import LoopMetrics
from placer.passes.scheduling_pass import Pass, PassOptions
from placer.problem.result import Reason
from tests.world import World

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def metrics() -> LoopMetrics:
    return LoopMetrics("placer", lease="batch")


def value(metrics: LoopMetrics, name: str, /, **labels: str) -> float:
    return metrics.registry.get_sample_value(name, labels) or 0.0


def waits(metrics: LoopMetrics) -> dict[str, float]:
    causes = {cause: value(metrics, "placer_pod_wait_seconds_sum", cause=cause) for cause in ("placer", "cluster")}
    unknown = value(metrics, "placer_pod_wait_seconds_sum", cause="unknown")
    return {cause: seconds for cause, seconds in {**causes, "unknown": unknown}.items() if seconds}


def passed(
    created: float, began: float, *, room: int = 4, bound: bool = True, code: str | None = None, there: bool = True
) -> Pass:
    """A pass that began so many seconds after noon and took ten until its binding, with a pod of 2 GPUs."""
    world = World()
    world.nodes("n1", gpu=room)
    if there:
        world.pod("p", gpu=2, created=NOW.timestamp() + created)
    result = solve(world.instance(), method="greedy")
    if code is not None:
        result = replace(result, placement=None, reasons={key: Reason(code, "") for key in result.instance.groups})
    done = Pass(PassOptions(), result=result, began=NOW + timedelta(seconds=began))
    done.seconds = {"snapshot": 4.0, "solve": 5.0, "bind": 1.0, "tell": 30.0}
    assert result.placement is not None or code is not None
    if bound and result.placement is not None:
        binds = [PlannedBinding(each.pod, "u", "1", each.node) for each in result.placement.bindings]
        groups = {bind.pod: result.instance.pods[bind.pod].group for bind in binds}
        done.bound.gangs = [GangOutcome(key, GangState.BOUND, (bind,)) for bind in binds if (key := groups[bind.pod])]
    return done


def test_a_pod_waits_until_it_is_bound_not_until_its_pass_begins(metrics: LoopMetrics) -> None:
    metrics.ended(passed(created=-20, began=0))
    assert waits(metrics) == {"unknown": 30.0}, "what came before the first pass of a process is not known"


@pytest.mark.parametrize(
    ("first", "cause"),
    [
        (passed(created=0, began=-60, there=False), "placer"),
        (passed(created=-60.5, began=-60, there=False), "placer"),  # a creation has whole seconds
        (passed(created=-90, began=-60, there=False), "cluster"),  # it had a gate
        (passed(created=-60.5, began=-60, room=1), "cluster"),  # no room
        (passed(created=-60.5, began=-60, bound=False), "unknown"),  # planned, and not bound: placer goes on
        (passed(created=-60.5, began=-60, code="NotDecided"), "unknown"),
        (passed(created=-60.5, began=-60, code="Outcompeted"), "cluster"),
    ],
)
def test_who_keeps_a_pod_waiting_is_told(first: Pass, cause: str, metrics: LoopMetrics) -> None:
    """Only that for which no pass has found a reason is counted against placer."""
    metrics.ended(first)
    pods = first.result.instance.pods.values() if first.result is not None else ()
    created = next((pod.created - NOW.timestamp() for pod in pods), -90.0 if cause == "cluster" else -0.5)
    metrics.ended(passed(created=created, began=10))
    assert waits(metrics) == {cause: 20.0 - created}


def test_two_undecided_passes_are_placers_own(metrics: LoopMetrics) -> None:
    metrics.ended(passed(created=0, began=-60, there=False))
    metrics.ended(passed(created=-30, began=-20, code="NotDecided"))
    metrics.ended(passed(created=-30, began=0, bound=False))
    metrics.ended(passed(created=-30, began=20))
    assert waits(metrics) == {"placer": 60.0}


@pytest.mark.parametrize(
    ("limit", "snapshot", "solve_", "late"),
    [
        (5.0, 1.0, 5.9, 0),
        (5.0, 1.0, 6.1, 1),
        (5.0, 30.0, 4.4, 0),  # reading and half the limit
        (5.0, 30.0, 4.6, 1),
        (None, 30.0, 400.0, 0),
    ],
)
def test_passes_beyond_their_limit_are_counted(
    limit: float | None, snapshot: float, solve_: float, late: int, metrics: LoopMetrics
) -> None:
    done = passed(created=0, began=0)
    done.options = replace(done.options, time_limit=limit)
    done.seconds |= {"snapshot": snapshot, "solve": solve_}
    metrics.ended(done)
    assert value(metrics, "placer_late_passes_total") == late


def test_requests_are_counted_by_the_names_of_client_go(metrics: LoopMetrics) -> None:
    metrics.request("GET", "https://10.0.0.1:443/api/v1/pods?limit=5", 200, 0.3)
    metrics.request("POST", "https://10.0.0.1:443/apis", 0, 10.0)
    labels = {"method": "POST", "host": "10.0.0.1:443"}
    assert value(metrics, "rest_client_requests_total", code="<error>", **labels) == 1
    assert value(metrics, "rest_client_requests_total", code="200", **{**labels, "method": "GET"}) == 1
    took = {"verb": "GET", "host": "10.0.0.1:443"}
    assert value(metrics, "rest_client_request_duration_seconds_bucket", le="0.5", **took) == 1
    assert value(metrics, "rest_client_request_duration_seconds_bucket", le="0.25", **took) == 0


def test_the_lease_and_the_process_have_the_names_of_every_component(metrics: LoopMetrics) -> None:
    status: list[float] = [value(metrics, "leader_election_master_status", name="batch")]
    for leads in (lambda: metrics.paused("why"), lambda: metrics.standing_by("another")):
        leads()
        status.append(value(metrics, "leader_election_master_status", name="batch"))
    assert status == [0, 1, 0]
    assert value(metrics, "process_resident_memory_bytes") > 2**20
    assert value(metrics, "process_cpu_seconds_total") > 0
