"""Trying everything where running pods may go: its short cuts lose nothing, and its instances are worth trying."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache

import pytest

from placer.problem import GroupKey, Instance, Key, PodState
from placer.problem.placement import Placement, Score, better
from placer.rules import verify
from tests.everything import plainly_preempting
from tests.examples import seed_blocks
from tests.oracle_disruption import best_preempting, only_for
from tests.shrink import describe
from tests.tiny_disruption import tiny_disruption
from tests.world import SPACE, World

SEEDS = range(60)

#: What must be there in at least so many of the instances of these seeds.
FEATURES = {
    "budget": 15,
    "protected": 8,
    "slack": 15,
    "disruptionMode": 3,
    "running subGroups": 8,
    "running hard": 8,
    "hard": 15,
    "queue": 10,
    "not reclaimable": 8,
    "capacity": 8,
    "near": 2,
    "apart": 2,
    "spread": 2,
}


@cache
def optimum(seed: int) -> tuple[Score, Placement]:
    return best_preempting(tiny_disruption(seed).instance)


def values(found: Score, *names: str) -> list[int]:
    return [each.value for each in found if each.name in names]


def test_a_seed_always_makes_the_same_instance_with_every_feature() -> None:
    assert tiny_disruption(17) == tiny_disruption(17)
    seen = Counter(tag for seed in SEEDS for tag in tiny_disruption(seed).tags)
    assert {tag: seen[tag] for tag, least in FEATURES.items() if seen[tag] < least} == {}


@pytest.mark.exhaustive
def test_pods_are_evicted_and_moved_in_enough_of_them() -> None:
    seen: Counter[str] = Counter()
    for seed in SEEDS:
        _, placement = optimum(seed)
        seen["evicts"] += bool(placement.evictions)
        seen["moves"] += bool(placement.moves)
    assert seen["evicts"] >= 12
    assert seen["moves"] >= 2


@pytest.mark.exhaustive
def test_what_is_protected_decides_enough_of_them() -> None:
    """Without D2 there is something better."""
    decided = 0
    for seed in SEEDS[:30]:
        instance = tiny_disruption(seed).instance
        pods = {key: replace(pod, protected="") for key, pod in instance.pods.items()}
        free = replace(instance, pods=pods, budgets=())
        if free != instance:
            decided += better(best_preempting(free)[0], optimum(seed)[0])
    assert decided >= 2


def _tries(instance: Instance) -> int:
    bound = sum(pod.state is PodState.BOUND for pod in instance.pods.values())
    nodes = len(instance.nodes)
    return (nodes + 2) ** bound * (nodes + 1) ** len(instance.pending)


@pytest.mark.parametrize("seeds", seed_blocks(900, 100))
def test_short_cuts_lose_nothing(seeds: range) -> None:
    """Held against every pod by its name, where no order of binding decides (C12)."""
    tried = 0
    for seed in seeds:
        instance = tiny_disruption(seed).instance
        ordered = any(pod.neighbours.affinity or pod.numa for pod in instance.pods.values())
        if _tries(instance) <= 1500 and not ordered:
            assert plainly_preempting(instance) == best_preempting(instance)[0], f"seed {seed}\n{describe(instance)}"
            tried += 1
    assert tried >= 5


def two_racks() -> World:
    """Two nodes are full: of one gang of two and one of three pods; a third node has room for one pod."""
    world = World()
    world.nodes("n1 n2", 3)
    world.node("n3", 1)
    small, large = world.gang("small", 2), world.gang("large", 3)
    for name in "ab":
        world.running(name, "n1", small)
    world.running("alone", "n1")
    for name in "xyz":
        world.running(name, "n2", large)
    world.pod("new", None, 3, priority=5)
    return world


def test_the_least_is_evicted_and_what_has_room_elsewhere_is_moved() -> None:
    found, placement = best_preempting(two_racks().instance())
    assert [key.name for key in placement.evictions] == ["a", "b"]
    assert [(each.pod.name, each.node) for each in placement.moves] == [("alone", "n3")]
    assert values(found, "evictedUnits", "movedUnits") == [1, 1]
    assert verify(two_racks().instance(), placement) == []


def test_a_group_alone_is_asked_about_without_the_others() -> None:
    world = two_racks()
    world.pod("other", None, 3, priority=9)
    instance = world.instance()
    alone = only_for(instance, GroupKey("", SPACE, "new"))
    assert [pod.name for pod in alone.pending] == ["new"]
    assert best_preempting(alone)[0] == best_preempting(two_racks().instance())[0]
    assert Key(SPACE, "other") in {each.pod for each in best_preempting(instance)[1].bindings}
