"""What is evicted at least for all groups, by counting: never more than the least there is by trying everything."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from placer.problem import Instance
from placer.problem.placement import LOSSES, Value
from placer.search.preempt.fewest_evictions import least_evicted, never_admitted
from placer.search.preempt.lifting import waiting
from tests.examples import seed_blocks
from tests.oracle_disruption import best_preempting
from tests.shrink import describe
from tests.world import World


def crowded(seed: int) -> Instance:
    """Three nodes with pods of two priorities, alone or in gangs; two gangs wait."""
    random, world = Random(f"least evicted {seed}"), World()
    for node in range(3):
        world.node(f"n{node}", random.randint(2, 4))
    gang = world.gang("gang", 2, priority=random.choice([1, 2])) if random.random() < 0.5 else None
    for number in range(random.randint(2, 5)):
        mine = gang if number < 2 else None
        world.running(f"p{number}", f"n{number % 3}", mine, random.randint(1, 2), priority=random.choice([1, 2]))
    for number in range(2):
        wanted = world.gang(f"wanted{number}", random.randint(1, 2), priority=10)
        world.pods_of(f"w{number}a w{number}b", wanted, random.randint(1, 2))
    return world.instance()


@pytest.mark.parametrize("seeds", seed_blocks(240, 24))
def test_no_bound_is_beaten(seeds: range) -> None:
    seen: Counter[str] = Counter()
    for seed in seeds:
        instance = crowded(seed)
        groups = waiting(instance)
        best, _ = best_preempting(instance)
        needed = sum(instance.need_weights[group.key] for group in groups)
        admitted = sum(value.value for value in best if value.name == "admitted")
        never = sum(instance.need_weights[key] for key in never_admitted(instance, groups))
        assert admitted <= needed - never, f"seed {seed}"
        if not groups or admitted < needed:
            continue
        least = least_evicted(instance, groups)
        assert least is not None, f"seed {seed}\n{describe(instance)}"
        found = {(each.name, each.priority): each.value for each in best if each.name in LOSSES}
        told = [each.value for each in least]
        there = [found.get((each.name, each.priority), 0) for each in least]
        assert told <= there, f"seed {seed}: {told}, but there is {there}\n{describe(instance)}"
        seen["met"] += told == there and any(there)
        seen["all"] += 1
    assert seen["met"]
    assert seen["all"] > len(seeds) // 4


def test_each_resource_counts_and_the_lowest_priority_goes_first() -> None:
    world = World()
    world.node("n", 8, cpu=8)
    world.running("low", "n", None, 4, cpu=1, priority=1)
    world.running("high", "n", None, 4, cpu=1, priority=2)
    wanted = world.gang("wanted", 1, priority=10)
    world.pods_of("w", wanted, 2)
    instance = world.instance()
    weights = instance.weights_of(instance.pods.values())
    low = next(weight for key, weight in weights.items() if key.name == "low")
    least = least_evicted(instance, waiting(instance))
    assert least == (Value("evicted", 0, 2), Value("evictedUnits", 0, 2), Value("evicted", low // 2, 1))


def test_where_nothing_may_be_evicted_or_not_enough_is_there_it_says_nothing() -> None:
    world = World()
    world.node("n", 4)
    world.running("low", "n", None, 4, priority=1)
    world.pods_of("w1 w2", world.gang("wanted", 2, priority=10), 4)
    instance = world.instance()
    assert least_evicted(instance, waiting(instance)) is None
    assert least_evicted(replace(instance, moves_only=True), waiting(instance)) is None
    assert least_evicted(instance, []) is None
    assert never_admitted(instance, waiting(instance)) == {group.key for group in waiting(instance)}


def test_what_may_be_evicted_counts_as_room_unless_all_is_only_moved() -> None:
    world = World()
    world.node("n", 4)
    world.running("low", "n", None, 4, priority=1)
    world.pods_of("w", world.gang("wanted", 1, priority=10), 4)
    instance = world.instance()
    assert never_admitted(instance, waiting(instance)) == set()
    assert len(never_admitted(replace(instance, moves_only=True), waiting(instance))) == 1
