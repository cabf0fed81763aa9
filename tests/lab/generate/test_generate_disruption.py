"""Families ``victims``, ``stranded``, ``lost`` and ``fragmented``: what they say must go is the least, and is valid."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from placer.lab.generate import bindings, generate
from placer.problem import Instance
from placer.problem.disruption import not_ready
from placer.problem.placement import Placement, Score, Step
from placer.problem.reading import read_placement
from placer.problem.what_if import losing
from placer.rules import verify
from placer.rules.scoring import score
from placer.search.preempt.emptying import emptied_by_pods
from tests.examples import exhaustive
from tests.oracle_disruption import best_preempting
from tests.support import instance_of

DISTURBED = ("admitted", "evicted", "evictedUnits", "moved", "movedUnits")

CASES: list[tuple[str, dict[str, Any]]] = [
    ("victims", {}),
    ("victims", {"budget": True}),
    ("victims", {"spanning": True}),
    ("victims", {"budget": True, "spanning": True}),
    ("stranded", {}),
]


def made(family: str, seed: int, **options: Any) -> tuple[Instance, Placement]:
    found = generate(family, seed=seed, **options)
    assert found.least is not None
    return instance_of(*found.documents), found.least


def disturbed(found: Score) -> list[tuple[str, int]]:
    return [(each.name, each.value) for each in found if each.name in DISTURBED and each.value]


@pytest.mark.parametrize(("family", "options"), CASES)
@pytest.mark.parametrize("seed", [0, *exhaustive(1, 2, 3, 4)])
def test_nothing_better_is_found_by_trying_everything(family: str, options: dict[str, Any], seed: int) -> None:
    instance, least = made(family, seed, nodes=9 if "spanning" in options else 6, leaf_size=3, **options)
    assert verify(instance, least) == []
    assert disturbed(best_preempting(instance)[0]) == disturbed(score(instance, least))


@pytest.mark.parametrize(("family", "options"), CASES)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_what_goes_is_valid_and_as_much_as_counting_says(family: str, options: dict[str, Any], seed: int) -> None:
    """As many pods go as there is too little room, or are in the rack that has fewest; one unit goes each way."""
    instance, least = made(family, seed, nodes=70, leaf_size=8, node_pods=2, **options)
    assert verify(instance, least) == []
    room, waiting = 70 * 2, 8 * 2
    assert len(instance.pending) == waiting
    short = len(instance.pods) - room
    values = disturbed(score(instance, least))
    assert [value for name, value in values if name.endswith("Units")] == [1] * (
        bool(least.evictions) + bool(least.moves)
    )
    if family == "victims":
        assert len(least.evictions) == short > 0
        assert len(least.moves) == (waiting - short if options else 0)
    else:
        taken = [sum(pod.node in rack.nodes for pod in instance.pods.values()) for rack in _racks(instance)]
        assert len(least.moves) == min(taken)
        assert short <= 0
        assert sorted(taken)[1] > min(taken)


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("seed", [0, *exhaustive(1, 2, 3, 4)])
def test_nothing_better_is_found_for_lost_nodes_by_trying_everything(seed: int, kept: bool) -> None:
    written, least = made("lost", seed, nodes=6, leaf_size=3, kept=kept)
    instance = losing(written, least.lost)
    assert verify(written, least) == []
    assert disturbed(best_preempting(instance)[0]) == disturbed(score(instance, least, disturbing=True))


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_as_many_pods_are_moved_for_lost_nodes_as_counting_says(seed: int, kept: bool) -> None:
    """As many nodes beside the gang as are lost, or all that is left of the gang."""
    instance, least = made("lost", seed, nodes=70, leaf_size=8, node_pods=2, lost=2, kept=kept)
    assert verify(instance, least) == []
    assert not_ready(instance) == sorted(least.lost)
    (gang,) = {pod.group for pod in instance.pods.values() if pod.node in least.lost}
    assert len(least.bindings) == 4
    left = sum(pod.group == gang and pod.node not in least.lost for pod in instance.pods.values())
    assert len(least.moves) == (left if kept else 4)
    assert ({instance.pods[move.pod].group for move in least.moves} == {gang}) == kept


@pytest.mark.parametrize("seed", [0, *exhaustive(1, 2, 3, 4)])
def test_nothing_better_empties_racks_by_trying_everything(seed: int) -> None:
    instance, least = made("fragmented", seed, nodes=6, leaf_size=3, domains=1)
    assert verify(instance, least) == []
    by_pods = emptied_by_pods(replace(instance, moves_only=True), 1, 1)
    best, found = best_preempting(by_pods)
    assert len(found.bindings) == len(least.freed) == 1
    assert disturbed(best)[1:] == disturbed(score(instance, least, disturbing=True))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_as_many_pods_are_moved_as_there_are_in_the_emptiest_racks(seed: int) -> None:
    instance, least = made("fragmented", seed, nodes=70, leaf_size=8, node_pods=2, domains=3)
    assert verify(instance, least) == []
    racks = _racks(instance)
    taken = sorted(sum(pod.node in rack.nodes for pod in instance.pods.values()) for rack in racks)
    assert len(least.moves) == sum(taken[:3])
    assert taken[2] < taken[3]
    assert len(least.freed) == 3


def _racks(instance: Instance) -> list[Any]:
    return [each for each in instance.topology.hyper_nodes.values() if len(each.nodes) == 8]


def test_with_an_obstacle_the_nearest_gang_cannot_go() -> None:
    """Evicting who is in the rack that has room, in place of what is planted, breaks D2, or costs more."""
    for obstacle in ("budget", "spanning"):
        instance, least = made("victims", 3, nodes=24, leaf_size=8, **{obstacle: True})
        rack = next(each for each in _racks(instance) if {move.node for move in least.moves} <= set(each.nodes))
        there = {pod.group for pod in instance.pods.values() if pod.node in rack.nodes}
        assert len(there) == 1
        gone = tuple(key for key, pod in instance.pods.items() if pod.group in there and pod.node)
        bound = tuple(each.pod for each in least.bindings)
        binds = Placement.of(zip(bound, rack.nodes, strict=True)).bindings
        other = Placement(binds, evictions=gone, steps=(Step(gone, bound),))
        broken = {each.rule for each in verify(instance, other)}
        assert broken == ({"D2"} if obstacle == "budget" else set())
        assert len(gone) > len(least.evictions) or obstacle == "budget"


def test_the_planted_placement_is_read_again(tmp_path: Path) -> None:
    for family, options in [*CASES, ("lost", {}), ("lost", {"kept": True}), ("fragmented", {})]:
        found = generate(family, seed=5, nodes=30, leaf_size=5, **options)
        (tmp_path / "planted.json").write_text(json.dumps(bindings(found)))
        assert read_placement(tmp_path / "planted.json") == found.least
