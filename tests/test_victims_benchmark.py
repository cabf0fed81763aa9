"""The benchmark of victims: filled clusters are what they say, failed runs end nothing, tables count what lines say."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from placer.problem import Instance, PodState
from placer.problem.gpus import gpus_in
from placer.problem.placement import Placement
from placer.rules import verify
from tests.benchmarks import victims
from tests.benchmarks.filled import filled
from tests.benchmarks.victims import FAMILIES, tables
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


@cache
def _filled(name: str) -> Instance:
    return instance_of(*filled(ROOT / FAMILIES[name].shipped, 1))


def test_the_page_has_the_tables_of_the_lines_that_are_kept() -> None:
    page = (ROOT / "models" / "benchmarks.md").read_text(encoding="utf-8")
    assert tables([*victims.lines_of(ROOT / "models" / "victims.jsonl").values()]) in page
