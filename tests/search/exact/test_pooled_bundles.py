"""What can take each other's place where everything is placed: by hand, and against all placements."""

from __future__ import annotations

import random

import pytest

from placer.arrays.dense_builder import make_dense
from placer.problem import GroupKey, NetworkTopology, SubGroupPolicy
from placer.rules import verify
from placer.search.exact.pooled_model import PooledModel
from tests.examples import seed_blocks
from tests.search.decomposed.test_tree_master import spines
from tests.search.exact.test_pooled_model import PlacementsOfEverything, decided, full
from tests.world import World, hard, soft


def divided(
    world: World, name: str, parts: str, size: int, gpu: int = 1, topology: NetworkTopology | None = None
) -> GroupKey:
    """A group of subgroups of so many pods, each in a leaf."""
    policies = [SubGroupPolicy("part", size, 0, hard(1))]
    gang = world.gang(name, size * len(parts), topology=topology, policies=policies)
    for part in parts:
        world.pods_of(" ".join(f"{name}{part}{number}" for number in range(size)), gang, gpu, part=part)
    return gang


def test_pods_of_several_sizes_stay_together_whatever_their_order() -> None:
    """Roles of one group stand the other way round in the other; a leaf of 8 holds two members of 4."""
    world = spines()
    for name, sizes in (("g", (1, 3)), ("h", (3, 1)), ("i", (1, 3)), ("j", (3, 1))):
        gang = world.gang(name, 2, topology=hard(1))
        for number, gpu in enumerate(sizes):
            world.pod(f"{name}{number}", gang, gpu, role=f"role{number}")
    instance = world.instance()
    dense = make_dense(instance)
    read = decided(dense, PooledModel(dense))
    assert verify(instance, dense.placement(read)) == []
    assert full(dense, read)


def drawn(seed: int) -> World:
    """Two leaves of two nodes, and groups with subgroups that are often alike, of sizes that divide or not."""
    chance, world = random.Random(seed), World()
    sizes = chance.choice(((1, 2), (2, 3)))
    for name in "abcd":
        world.node(name, gpu=chance.choice((2, 3, 4, 5)))
    world.hyper("spine", 2, f"{world.hyper('leaf0', 1, 'a b')} {world.hyper('leaf1', 1, 'c d')}")
    if chance.random() < 0.5:
        world.running("before", chance.choice("abcd"))
    for name in "gh":
        divided(world, name, chance.choice(("a", "ab")), chance.choice((1, 2, 2)), chance.choice(sizes))
    for name in "ij"[: chance.randrange(3)]:
        size = chance.choice((1, 2))
        topology = chance.choice((hard(1), hard(1), soft(), None))
        world.pods_of(" ".join(f"{name}{number}" for number in range(size)), world.gang(name, size, topology=topology))
    return world


@pytest.mark.parametrize("seeds", seed_blocks(400, 25))
def test_what_is_pooled_is_as_good_as_all_placements_of_everything(seeds: range) -> None:
    together = 0
    for seed in seeds:
        every = PlacementsOfEverything(drawn(seed).instance())
        if every.whole:
            bundles = PooledModel(every.dense).bundles
            together += len(bundles.items) < len(bundles.apart.items)
            every.assert_best(decided(every.dense, PooledModel(every.dense)), seed)
    assert together
