"""What the instances of pods that ask something of each other say of themselves is so."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
import yaml

from placer.answers.solving import solve
from placer.lab.policies.mimicry import mimic
from placer.problem import Instance
from placer.problem.reading import read
from placer.rules import verify
from placer.rules.scoring import score
from tests.oracle import best
from tests.support import instance_of

FOLDER = Path(__file__).parent.parent / "instances" / "neighbours"
UPSTREAM = FOLDER / "kubernetes-138765.yaml"


def _in_every_order() -> Iterator[Instance]:
    """The case of upstream with the pods of the gang created in each order."""
    documents = list(yaml.safe_load_all(UPSTREAM.read_text(encoding="utf-8")))
    waiting = [each["metadata"] for each in documents if "schedulingGroup" in each.get("spec", {})]
    for times in permutations([each["creationTimestamp"] for each in waiting]):
        for metadata, time in zip(waiting, times, strict=True):
            metadata["creationTimestamp"] = time
        yield instance_of(*documents)


def _scoring(strategy: str) -> dict[str, Any]:
    """A profile of kube-scheduler that scores nodes so."""
    resources = [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]
    arguments = {"scoringStrategy": {"type": strategy, "resources": resources}}
    return {"pluginConfig": [{"name": "NodeResourcesFit", "args": arguments}]}


@pytest.mark.parametrize(
    ("policy", "arguments", "placed"),
    [
        ("kube-default", _scoring("LeastAllocated"), 2),
        ("kube-default", _scoring("MostAllocated"), 2),
        ("coscheduling", None, 0),
    ],
)
def test_pod_after_pod_finds_the_gang_of_138765_in_no_order(
    policy: str, arguments: dict[str, Any] | None, placed: int
) -> None:
    orders = list(_in_every_order())
    assert len(orders) == 6
    for instance in orders:
        for seed in range(5):
            found = mimic(instance, policy, seed=seed, arguments=arguments).placement
            assert len(found.bindings) == placed
            assert {each.rule for each in verify(instance, found)} == ({"C5"} if placed else set())


def test_the_gang_of_138765_is_placed_and_that_is_proved() -> None:
    instance = read(UPSTREAM, strict=True)
    result = solve(instance, workers=1)
    assert result.verdict == "OPTIMAL"
    assert {binding.node for binding in result.placement.bindings} == {"west-0", "west-1", "west-2"}
    optimum, _ = best(instance)
    assert score(instance, result.placement) == optimum
