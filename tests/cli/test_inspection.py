"""What an operator sees of a process while it runs: log lines of a level, and what costs what by SIGUSR2."""

from __future__ import annotations

import os
import signal

import pytest

from placer.answers.solving import solve
from placer.cli.inspection import Inspection
from placer.passes.cluster.planning.scheduler_cache import SchedulerCache
from placer.passes.cluster.reading.earlier_passes import instance_in
from placer.passes.scheduling_pass import Pass, PassOptions, ReadCluster
from tests.cluster.snapshots import snapshot_of
from tests.support import Document, node, pod
from tests.waiting import wait_until
from tests.world import World


@pytest.fixture
def inspection() -> Inspection:
    return Inspection({})


def reading(*objects: Document) -> ReadCluster:
    snapshot = snapshot_of([*objects])
    instance = instance_in(snapshot)
    return ReadCluster(snapshot, instance, SchedulerCache(snapshot, instance))


def logged(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Lines without program and time."""
    return [line.split(" ", 2)[2] for line in capsys.readouterr().err.splitlines()]


def test_lines_are_of_the_level_that_is_asked_for(inspection: Inspection, capsys: pytest.CaptureFixture[str]) -> None:
    def work() -> None:
        inspection.phase("reading")
        inspection.phase("reading")  # a step is one line, however often it shows that it lives
        inspection.request("GET", "https://server/api/v1/pods?limit=5", 200, 0.25)
        inspection.request("POST", "https://server/apis", 0, 10.0)
        inspection.standing_by("another")

    work()
    assert logged(capsys) == []
    inspection.level("2")
    work()
    assert logged(capsys) == ["reading", "no pass: another"]
    inspection.level("6")
    work()
    requests = ["GET /api/v1/pods 200 in 250 ms", "POST /apis no answer in 10000 ms"]
    assert logged(capsys) == ["reading", *requests, "no pass: another"]


def test_a_signal_says_what_costs_what(inspection: Inspection, capsys: pytest.CaptureFixture[str]) -> None:
    """Of the last pass, which is gone by then, and of requests, without names of objects."""
    world = World()
    world.nodes("n1")
    for number in range(3):
        world.pod(f"p{number}")
    done = Pass(PassOptions(), result=solve(world.instance(), method="greedy"))
    done.read = reading(node("n1"))
    done.seconds = {"snapshot": 1.5, "solve": 2.0}
    inspection.begun(done)
    inspection.ended(done)
    for name in ("a", "b"):
        inspection.request("POST", f"https://server/api/v1/namespaces/ml/pods/{name}/binding", 201, 0.5)
    inspection.request("PUT", "https://server/apis/coordination.k8s.io/v1/namespaces/placer/leases/placer", 200, 0.1)
    before = signal.getsignal(signal.SIGUSR2)
    text = ""

    def said() -> bool:
        nonlocal text
        text += capsys.readouterr().err
        return "it is in:" in text

    with inspection.heeded():
        os.kill(os.getpid(), signal.SIGUSR2)
        wait_until(said, "the signal is answered")
    assert signal.getsignal(signal.SIGUSR2) is before
    lines = [line.split("costs: ", 1)[1] for line in text.splitlines()]
    assert any(line.startswith("process: ") for line in lines)
    assert any(line.startswith("now: between passes, for ") for line in lines)
    assert any(line.startswith("pass: ") and line.endswith("snapshot 1.5 s, solve 2.0 s") for line in lines)
    assert any(line.startswith("namespace ") and "3 pending of 3 pods" in line for line in lines)
    assert [line for line in lines if line.startswith("requests: ")] == [
        "requests: POST api/v1/pods/binding: 2, 1.0 s",
        "requests: PUT apis/coordination.k8s.io/v1/leases: 1, 0.1 s",
    ]


def test_a_pass_under_way_says_whose_text_is_large(inspection: Inspection) -> None:
    """Before it has decided, so that one that hangs can be asked."""
    large = pod("p", namespace="evil", **{f"example.com/r{number}": 1 for number in range(100)})
    small = [pod(name, namespace="ml") for name in ("a", "b")]
    done = Pass(PassOptions())
    done.read = reading(node("n1"), *small, large)
    inspection.begun(done)
    texts = [line for line in inspection.statusz().splitlines() if line.startswith("text of ")]
    assert [line.split(":")[0] for line in texts] == ["text of evil", "text of ml"]
    assert "1 pod, " in texts[0]
    assert "2 pods, " in texts[1]
