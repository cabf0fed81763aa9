"""The benchmark of victims: filled clusters are what they say, failed runs end nothing, tables count what lines say."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from placer.problem import Instance, PodState
from placer.problem.gpus import gpus_in
from placer.problem.placement import Placement
from placer.rules import verify
from tests.benchmarks import victims
from tests.benchmarks.filled import filled
from tests.benchmarks.victims import FAMILIES, METHODS, OURS, Limits, Run, carry_out, tables
from tests.examples import exhaustive
from tests.support import instance_of

ROOT = Path(__file__).parent.parent
REAL = [name for name, family in FAMILIES.items() if family.shipped]


@pytest.mark.parametrize("name", [REAL[0], *exhaustive(*REAL[1:])])
def test_a_filled_cluster_is_full_and_what_waits_asks_for_more_than_that_leaves(name: str) -> None:
    instance = _filled(name)
    assert len(instance.nodes) == FAMILIES[name].nodes
    assert not instance.findings
    assert verify(instance, Placement()) == []
    total = sum(gpus_in(node.allocatable) for node in instance.nodes.values())
    bound = [pod for pod in instance.pods.values() if pod.state is PodState.BOUND]
    running = sum(gpus_in(pod.requests) for pod in bound)
    asked = sum(gpus_in(pod.requests) for pod in instance.pending)
    assert 0.945 <= running / total <= 0.95
    assert 0.095 <= asked / total <= 0.1
    assert {pod.priority for pod in bound} == {100, 200, 300}
    assert {pod.priority for pod in instance.pending} == {1000}
    assert not any(pod.protected for pod in bound)
    assert instance.budgets


@pytest.mark.parametrize("name", REAL)
def test_gangs_run_whole_and_wait_whole(name: str) -> None:
    instance = _filled(name)
    gangs = [group for group in instance.groups.values() if group.key.api_group]
    assert any(group.bound for group in gangs)
    assert all(not (group.bound and group.pending) for group in gangs)
    assert all(len(group.pending) > 1 for group in instance.groups.values() if group.pending)


@cache
def _filled(name: str) -> Instance:
    return instance_of(*filled(ROOT / FAMILIES[name].shipped, 1))


def test_the_same_seed_fills_a_cluster_alike_and_another_one_otherwise() -> None:
    path = ROOT / FAMILIES["lingjun-95"].shipped
    assert instance_of(*filled(path, 1)).digest == _filled("lingjun-95").digest
    assert instance_of(*filled(path, 2)).digest != _filled("lingjun-95").digest


def test_a_run_that_fails_ends_nothing_and_runs_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[Run]()

    def fails(run: Run, *_: object) -> dict[str, Any]:
        asked.append(run)
        if len(asked) == 1:
            raise ValueError("no memory is left")
        return line(**run._asdict())

    monkeypatch.setattr(victims, "enough", fails)
    path, runs = tmp_path / "lines.jsonl", [Run("one", 16, 1, method) for method in METHODS]
    carry_out(path, runs, Limits(1, 1))
    assert asked == runs
    assert json.loads(path.read_text().splitlines()[0])["error"] == "ValueError: no memory is left"
    assert "1 (1 failed)" in tables([*victims.lines_of(path).values()])
    carry_out(path, runs, Limits(1, 1))
    assert asked == [*runs, runs[0]]
    assert "failed" not in tables([*victims.lines_of(path).values()])


def line(**values: Any) -> dict[str, Any]:
    counts = {"waiting": 1, "admitted": 1, "victims": 2, "nothing": 0, "moves": 0, "budgets": 0, "breaks": {}}
    machine = {"processor": "p", "cores": 2, "system": "s", "python": "3", "revision": "r"}
    times = {"processor": 2.0, "seconds": 3.0, "workers": 1, "machine": machine}
    marks = {"reached": True, "proved": True, "first": 1.0} if values.get("method") == OURS else {}
    return {**counts, **times, **marks, **values}


def test_the_page_has_the_tables_of_the_lines_that_are_kept() -> None:
    page = (ROOT / "models" / "benchmarks.md").read_text(encoding="utf-8")
    assert tables([*victims.lines_of(ROOT / "models" / "victims.jsonl").values()]) in page
