"""What must be moved for several equal groups, by counting: never more than the least there is by trying everything."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from placer.answers.making_room import defrag
from placer.base.deadline import NEVER
from placer.lab.generate import generate
from placer.problem import Instance
from placer.problem.placement import Score
from placer.problem.wanted import new_groups, wanted_objects, wanted_text
from placer.search.preempt.domains import DomainSearch
from placer.search.preempt.equal_groups import least_for_equal
from placer.search.preempt.lifting import waiting
from tests.examples import seed_blocks
from tests.oracle_disruption import best_preempting
from tests.shrink import describe
from tests.support import instance_of
from tests.world import World, hard


def racks(seed: int) -> Instance:
    """Three racks of two nodes with a few pods, alone or in gangs; two gangs wait, each for one rack."""
    random, world = Random(f"equal groups {seed}"), World()
    for rack in range(3):
        for node in range(2):
            world.node(f"n{rack}{node}", random.randint(2, 3))
        world.hyper(f"r{rack}", 1, f"n{rack}0 n{rack}1")
    homes = random.sample([f"n{rack}{node}" for rack in range(3) for node in range(2)], random.randint(1, 4))
    gang = world.gang("gang", 2) if len(homes) > 1 and random.random() < 0.5 else None
    for number, home in enumerate(homes):
        world.running(f"p{number}", home, gang if number < 2 else None, random.randint(1, 2))
    for number in range(2):
        wanted = world.gang(f"wanted{number}", 2, topology=hard(1), priority=10)
        for pod in range(2):
            world.pod(f"w{number}{pod}", wanted, 2)
    return replace(world.instance(), moves_only=True)


def bound(instance: Instance) -> Score | None:
    groups = waiting(instance)
    return least_for_equal(instance, groups, DomainSearch(instance, groups[0], NEVER))


@pytest.mark.parametrize("seeds", seed_blocks(240, 24))
def test_no_bound_is_beaten(seeds: range) -> None:
    seen: Counter[str] = Counter()
    for seed in seeds:
        instance = racks(seed)
        best, placement = best_preempting(instance)
        least, found = bound(instance), [each.value for each in best if each.name in ("moved", "movedUnits")]
        if len(placement.node_of) == 4:
            assert least is not None, f"seed {seed}\n{describe(instance)}"
            told = [each.value for each in least]
            assert told <= found, f"seed {seed}: {told}, but there is {found}\n{describe(instance)}"
            seen["met"] += told == found
            seen["moved"] += bool(placement.moves)
    assert seen["met"] > len(seeds) // 4
    assert seen["moved"]


def test_groups_that_are_not_equal_or_may_be_anywhere_have_none() -> None:
    instance = racks(0)
    first, second = waiting(instance)
    search = DomainSearch(instance, first, NEVER)
    assert least_for_equal(instance, [first, replace(second, min_member=1)], search) is None
    anywhere = replace(first, topology=None)
    loose = replace(instance, groups={**instance.groups, first.key: anywhere})
    assert least_for_equal(loose, [anywhere], DomainSearch(loose, anywhere, NEVER)) is None


def test_counting_says_what_racks_cost_that_are_planted() -> None:
    made = generate("fragmented", nodes=48, seed=1, domains=2)
    before = instance_of(*made.documents)
    objects = wanted_objects("2 x 8 x nvidia.com/gpu=8 @ 1", before)
    instance = instance_of(*made.documents, *(text.data.decode() for text in wanted_text(objects)))
    groups = new_groups(instance, before)
    result = defrag(instance, groups, wanted=objects, time_limit=None, workers=1)
    assert made.least is not None
    assert result.placement is not None
    assert len(result.placement.moves) == len(made.least.moves)
    assert bound(result.instance) == tuple(
        each.value for each in result.objective if each.value.name in ("moved", "movedUnits")
    )
