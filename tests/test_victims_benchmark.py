"""The benchmark of victims: filled clusters are what they say, failed runs end nothing, tables count what lines say."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from placer.problem import Instance, PodState
from placer.problem.gpus import gpus_in
from placer.problem.placement import Binding, Placement, Step
from placer.rules import verify
from tests.benchmarks import victims
from tests.benchmarks.filled import filled
from tests.benchmarks.victims import FAMILIES, METHODS, OURS, Limits, Run, carry_out, enough, judged, planned, tables
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


def test_a_judged_placement_counts_victims_for_nothing_and_above_budgets() -> None:
    made = victims.make(Run("budget", 16, 1, OURS))
    best = judged(made.instance, made.least or Placement())
    assert (best["waiting"], best["admitted"], best["nothing"], best["budgets"], best["breaks"]) == (1, 1, 0, 0, {})
    kept = sorted(made.instance.budgets[0].pods)
    worse = judged(made.instance, Placement(evictions=tuple(kept), steps=(Step(tuple(kept)),)))
    assert (worse["admitted"], worse["victims"], worse["nothing"], worse["budgets"]) == (0, *[len(kept)] * 3)
    assert worse["breaks"]["D2"] == 1


def test_a_gang_outside_its_tier_did_not_get_in() -> None:
    made = victims.make(Run("one", 16, 1, OURS))
    assert made.least is not None
    nodes = sorted(made.instance.nodes)
    spread = Placement(tuple(Binding(each.pod, nodes[index]) for index, each in enumerate(made.least.bindings)))
    assert "C7" in judged(made.instance, spread)["breaks"]
    assert judged(made.instance, spread)["admitted"] == 0


def test_policies_are_asked_what_they_answer_and_few_seeds_of_what_is_large() -> None:
    runs = planned(FAMILIES, [64, 5000], [1, 2, 3])
    assert [run.nodes for run in runs] == sorted(run.nodes for run in runs)
    assert {run.method for run in runs if run.family == "one"} == set(METHODS)
    assert {run.method for run in runs if run.family == "lost"} == {OURS}
    assert {run.seed for run in runs if run.nodes == 64} == {1, 2, 3}
    assert {run.seed for run in runs if run.nodes > 1000} == {1, 2}
    assert {run.nodes for run in runs if run.family == "openb-95"} == {1213}


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


def test_a_short_limit_is_enough_where_the_least_is_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = list[float]()

    def answers(run: Run, _: object, given: Limits) -> dict[str, Any]:
        limits.append(given.seconds)
        return line(**run._asdict(), proved=run.seed == 1 or given.seconds > victims.SHORT)

    monkeypatch.setattr(victims, "line_of", answers)
    made = victims.MadeInstance(())
    for run in (Run("one", 64, 1, OURS), Run("one", 64, 2, OURS), Run("one", 5000, 1, OURS)):
        enough(run, made, Limits(60, 1))
    assert limits == [10, 10, 60, 60]


def line(**values: Any) -> dict[str, Any]:
    counts = {"waiting": 1, "admitted": 1, "victims": 2, "nothing": 0, "moves": 0, "budgets": 0, "breaks": {}}
    machine = {"processor": "p", "cores": 2, "system": "s", "python": "3", "revision": "r"}
    times = {"processor": 2.0, "seconds": 3.0, "workers": 1, "machine": machine}
    marks = {"reached": True, "proved": True, "first": 1.0} if values.get("method") == OURS else {}
    return {**counts, **times, **marks, **values}


def test_tables_count_what_lines_say() -> None:
    lines = [
        line(family="one", nodes=500, seed=1, method=OURS),
        line(family="one", nodes=500, seed=2, method=OURS, proved=False, first=12.5, victims=3),
        line(family="one", nodes=5000, seed=1, method=OURS, proved=False),
        line(family="one", nodes=500, seed=1, method="kube-preempt", nothing=2, admitted=0, breaks={"C7": 1}),
        line(family="openb-95", nodes=1213, seed=1, method=OURS, waiting=1200, reached=None),
    ]
    del lines[-1]["reached"]
    text = tables(lines)
    assert (
        "| planted, up to 500 nodes | runs in which the known least is reached and proved | ≥ 100.00% | 50.00% |"
        in text
    )
    assert (
        "| planted, more than 500 nodes | runs in which the known least is reached | ≥ 90.00% | 100.00% | 1 | yes |"
        in text
    )
    assert "| all | seconds to the first answer, worst | ≤ 10.0 | 12.5 | 4 | **no** |" in text
    assert "| one | `placer` | 3 | 3 | 3 | 7 | 0 | 0 | 0 | 1 | 12.5 | - |" in text
    assert "| one | `kube-preempt` | 1 | 1 | 0 | 2 | 2 | 0 | 0 | - | - | C7 in 1 |" in text
    assert "| openb-95 | `placer` | 1 | 1,200 | 1 | 2 | 0 | 0 | 0 | 1 | 1.0 | - |" in text


def test_a_goal_without_all_its_figures_is_not_reached() -> None:
    failed = {**Run("one", 64, 1, OURS)._asdict(), "error": "killed"}
    assert "| all | rules broken, most | ≤ 0 | - | 2 |  |" in tables(
        [line(family="one", nodes=64, seed=2, method=OURS), failed]
    )


def test_the_page_has_the_tables_of_the_lines_that_are_kept() -> None:
    page = (ROOT / "models" / "benchmarks.md").read_text(encoding="utf-8")
    assert tables([*victims.lines_of(ROOT / "models" / "victims.jsonl").values()]) in page
