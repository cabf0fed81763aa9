"""From objects to judgement: a planted network keeps every rule with nothing to spare, and costs what it says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import placer
from placer.kube.manifests import from_documents, validate
from placer.lab.generate import Generated, generate
from placer.problem import Dependency, Instance
from placer.problem.instance_builder import make_instance
from placer.problem.placement import Placement
from placer.rules import verify
from placer.rules.scoring import score

ROOT = Path(__file__).parent.parent

MIXES: list[dict[str, Any]] = [
    {},
    {"app_groups": 8, "regions": 3, "zones": 3, "nodes": 36, "replicas": (1, 4)},
    {"running": 0.3, "anchored": 0.4, "gangs": 0.5, "nodes": 24},
    {"workloads": (30, 30), "app_groups": 1, "calls": 2.5, "regions": 3, "zones": 3, "nodes": 45},
]


def planted(seed: int, mix: dict[str, Any]) -> tuple[Generated, Instance, Placement]:
    made = generate("network", seed=seed, **mix)
    assert made.planted is not None
    return made, make_instance(validate(from_documents(made.documents))), Placement.of(made.planted)


@pytest.mark.parametrize("mix", MIXES, ids=str)
@pytest.mark.parametrize("seed", range(5))
def test_the_planted_placement_is_valid_and_costs_what_was_planted(seed: int, mix: dict[str, Any]) -> None:
    made, instance, placement = planted(seed, mix)
    assert instance.findings == ()
    assert verify(instance, placement) == []
    assert [each.value for each in score(instance, placement) if each.name == "networkCost"] == [
        made.summary["networkCostPlanted"]
    ]


@pytest.mark.parametrize("seed", range(5))
def test_a_bit_less_of_any_link_and_any_limit_is_too_little(seed: int) -> None:
    """All limits are tight: each link that is used at all, and each dependency that leaves its zone, is violated."""
    _, instance, placement = planted(seed, MIXES[1])
    network = instance.network
    assert network is not None
    less = replace(network, capacities={link: room - 1 for link, room in network.capacities.items()})
    found = [each for each in verify(replace(instance, network=less), placement) if each.rule == "C9"]
    assert len(found) >= 5
    assert {each.amount for each in found} == {1}
    groups = {
        key: replace(group, dependencies=tuple(_tighter(each) for each in group.dependencies))
        for key, group in instance.app_groups.items()
    }
    found = [each for each in verify(replace(instance, app_groups=groups), placement) if each.rule == "C8"]
    far = {
        (key, each)
        for key, group in instance.app_groups.items()
        for each in group.dependencies
        if each.max_network_cost
    }
    assert len({each.subjects for each in found}) == len({(key, str(each)) for key, each in far}) >= 5


def _tighter(dependency: Dependency) -> Dependency:
    return replace(dependency, max_network_cost=max(0, dependency.max_network_cost - 1))


SHIPPED = [path for path in sorted((ROOT / "instances/network").iterdir()) if path.suffix in (".yaml", ".gz")]


@pytest.mark.parametrize(
    "path",
    [path for path in SHIPPED if not {".planted", ".best"} & set(path.suffixes)],
    ids=lambda path: str(path.name),
)
def test_shipped_networks_are_read_whole(path: Path) -> None:
    """Every pod is of a workload, every link has its way back, and nothing of it is refused or odd."""
    instance = placer.read(path)
    assert instance.findings == ()
    assert instance.network is not None
    assert all(link.back in instance.network.costs for link in instance.network.costs)
    assert all(pod.workload is not None and not pod.unsupported for pod in instance.pending)
    called = {
        (key, end)
        for key, each in instance.app_groups.items()
        for call in each.dependencies
        for end in (call.origin, call.destination)
    }
    assert called <= set(instance.workload_pods)


def test_the_planted_placement_of_a_shipped_network_is_valid() -> None:
    instance = placer.read(ROOT / "instances/network/tight-30.json.gz")
    placement = placer.read_placement(ROOT / "instances/network/tight-30.planted.json.gz")
    assert len(placement.bindings) == len(instance.pending)
    assert verify(instance, placement) == []
