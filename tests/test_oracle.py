"""The oracle itself: its short cuts lose nothing, and its instances are worth trying."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from placer.problem import Instance
from placer.problem.placement import Score
from placer.rules import verify
from tests.everything import everything, plainly
from tests.examples import exhaustive
from tests.oracle import best, binds
from tests.shrink import describe, shrink
from tests.tiny import tiny
from tests.world import World, hard

SEEDS = range(300)
#: How many of the instances each rule must decide.
ENOUGH = 20

#: Features of the generator that must be there in at least this many instances.
FEATURES = {
    "subGroups": 60,
    "twoPolicies": 10,
    "minSubGroups": 30,
    "roles": 20,
    "hard": 60,
    "soft": 40,
    "hardNoLimit": 5,
    "unknownTier": 5,
    "localityAll": 10,
    "running": 60,
    "terminating": 20,
    "nominated": 20,
    "terminatingMember": 5,
    "succeeded": 10,
    "daemon": 20,
    "newDaemon": 2,
    "priority": 60,
    "elastic": 60,
    "coscheduling": 40,
    "alone": 60,
    "queue": 60,
    "parentQueue": 20,
    "closedQueue": 5,
    "ruleOff": 5,
    "levels": 30,
    "resourceWeights": 20,
    "hostPort": 30,
    "podsLimit": 20,
    "taint": 30,
    "selector": 30,
    "affinity": 5,
    "unsupported": 30,
    "invalid": 10,
    "overcommit": 10,
    "outsideNode": 30,
    "tree:none": 20,
    "tree:leaves": 40,
    "tree:spines": 40,
    "tree:mixed": 20,
    "tree:zero": 20,
}


@cache
def optimum(seed: int) -> Score:
    return best(tiny(seed).instance)[0]


def test_a_seed_always_makes_the_same_instance() -> None:
    assert tiny(17) == tiny(17)


def test_every_feature_is_there() -> None:
    seen = Counter(tag for seed in SEEDS for tag in tiny(seed).tags)
    assert {tag: seen[tag] for tag, least in FEATURES.items() if seen[tag] < least} == {}


@pytest.mark.parametrize("rule", ["C2", *exhaustive("C1", "C3", "C4", "C5", "C6", "C7", "C11")])
def test_every_rule_decides_enough_instances(rule: str) -> None:
    """Without the rule a better placement exists."""
    decided = 0
    for seed in SEEDS:
        decided += binds(tiny(seed).instance, rule, optimum(seed))
        if decided == ENOUGH:
            return
    pytest.fail(f"{rule} decides {decided} of {len(SEEDS)} instances")


def test_short_cuts_lose_nothing() -> None:
    tried = 0
    for seed in SEEDS:
        instance = tiny(seed).instance
        if (len(instance.nodes) + 1) ** len(instance.pending) <= 700:
            assert plainly(instance) == optimum(seed), describe(instance)
            tried += 1
            if tried == 40:
                return
    pytest.fail(f"tried {tried} instances, expected 40")


def test_equal_nodes_and_equal_pods_are_exchanged_in_full() -> None:
    """Three equal pods alone on three equal nodes of 2 GPUs, each pod 1: two nodes suffice, and all are placed."""
    world = World()
    world.nodes("n1 n2 n3", 2)
    for name in "abc":
        world.pod(name)
    value, placement = best(world.instance())
    assert len(placement.bindings) == 3
    assert [(v.name, v.value) for v in value if v.name.startswith("packed")] == [
        ("packedHyperNodes", 0),
        ("packedNodes", 2),
    ]
    assert value == plainly(world.instance())


def test_shrinking_keeps_what_fails_and_nothing_else() -> None:
    """A hard limit that nothing meets takes one pod, one node under the root and a HyperNode that is not above it."""
    world = World()
    world.nodes("n1 n2 n3", 1)
    world.hyper("leaf1", 1, "n1 n2")
    world.queue("wide")
    gang = world.gang("train", 2, topology=hard(1), queue="wide")
    world.pods_of("a b", gang)
    world.pod("c")
    world.running("r", "n1")

    def fails(instance: Instance) -> bool:
        return any(v.rule == "C7" for p in everything(instance) for v in verify(instance, p))

    small = shrink(world.instance(), fails)
    assert fails(small)
    assert len(small.pods) == len(small.nodes) == 1
    assert list(small.topology.hyper_nodes) == ["leaf1"]  # without it the root would be of tier 1
    assert not small.queues
    assert "highest_tier=1" in describe(small)
