"""C8, C9 and O3 counted by workload and area are what they are pair by pair; the oracle is right about them too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache
from random import Random

import pytest

from placer.problem import Instance
from placer.problem.placement import Placement, Score
from placer.rules import verify
from placer.rules.scoring import score
from tests.everything import plainly
from tests.examples import exhaustive, seed_blocks
from tests.oracle import best, binds
from tests.pairs import Pairs
from tests.shrink import describe
from tests.tiny import tiny_network

SEEDS = range(300)
#: How many of the instances each rule must decide.
ENOUGH = 20

#: Features that must be there in at least this many instances.
FEATURES = {
    "networkLevel": 30,
    "majority": 50,
    "networkRuleOff": 5,
    "noRegion": 30,
    "noZone": 30,
    "oneWay": 30,
    "capacity": 200,
    "twoAppGroups": 50,
    "noWorkload": 30,
    "callsItself": 30,
    "farCalls": 100,
    "minBandwidth": 200,
    "running": 60,
    "terminating": 20,
    "nominated": 20,
    "hard": 60,
    "subGroups": 60,
}


@cache
def optimum(seed: int) -> Score:
    return best(tiny_network(seed).instance)[0]


def somewhere(instance: Instance, random: Random) -> Iterator[Placement]:
    """Placements of all sorts, most of which break something."""
    nodes = list(instance.nodes)
    for share in (0.3, 0.6, 0.9, 1, 1, 1):
        favourites = random.sample(nodes, random.randint(1, len(nodes)))
        keys = [pod.key for pod in instance.pending if random.random() < share]
        yield Placement.of((key, random.choice(favourites)) for key in random.sample(keys, len(keys)))


@pytest.mark.parametrize("seeds", seed_blocks(300, 50))
def test_counting_is_looking_pair_by_pair(seeds: range) -> None:
    seen: Counter[str] = Counter()
    for seed in seeds:
        instance = tiny_network(seed).instance
        majority = instance.policy.network_cost == "majority"
        for placement in somewhere(instance, Random(f"somewhere {seed}")):
            pairs = Pairs(instance, placement)
            found = verify(instance, placement)
            above = sum(each.amount for each in found if each.rule == "C8")
            links = {each.subjects[1]: each.amount for each in found if each.rule == "C9"}
            costs = [each.value for each in score(instance, placement) if each.name == "networkCost"]
            off = instance.policy.rules_off
            wanted = 0 if "C8" in off else pairs.surplus() if majority else pairs.cost_above_limits()
            assert above == wanted, f"{placement}\n{describe(instance)}"
            assert links == ({} if "C9" in off else pairs.bandwidth_above_capacity()), (
                f"{placement}\n{describe(instance)}"
            )
            assert costs in ([], [pairs.network_cost()]), f"{placement}\n{describe(instance)}"
            assert len(costs) == ("networkCost" in instance.policy.levels)
            seen.update(C8=above > 0 and not majority, majority=above > 0 and majority, C9=len(links) > 0)
            seen.update(cost=sum(costs) > 0)
    assert seen >= Counter(C8=40, majority=5, C9=20, cost=80), seen


def test_a_seed_always_makes_the_same_instance() -> None:
    assert tiny_network(17) == tiny_network(17)


def test_every_feature_is_there() -> None:
    seen = Counter(tag for seed in SEEDS for tag in tiny_network(seed).tags)
    assert {tag: seen[tag] for tag, least in FEATURES.items() if seen[tag] < least} == {}


@pytest.mark.parametrize("rule", exhaustive("C8", "C9"))
def test_each_rule_decides_enough_instances(rule: str) -> None:
    """Without the rule a better placement exists."""
    decided = 0
    for seed in SEEDS:
        decided += binds(tiny_network(seed).instance, rule, optimum(seed))
        if decided == ENOUGH:
            return
    pytest.fail(f"{rule} decides {decided} of {len(SEEDS)} instances")


@pytest.mark.exhaustive
def test_majority_decides_too() -> None:
    """Instances in which C8 decides as the plugin reads it."""
    decided = 0
    for seed in SEEDS:
        instance = tiny_network(seed).instance
        if instance.policy.network_cost == "majority":
            decided += binds(instance, "C8", optimum(seed))
    assert decided >= 5


@pytest.mark.exhaustive
def test_the_level_decides() -> None:
    """Placements that are equal in all values before differ in networkCost, and the best one has the least."""
    decided = 0
    for seed in SEEDS:
        instance = tiny_network(seed).instance
        names = [value.name for value in optimum(seed)]
        if "networkCost" in names:
            level = names.index("networkCost")
            others = [
                value
                for placement in somewhere(instance, Random(f"others {seed}"))
                if not verify(instance, placement)
                and (value := score(instance, placement))[:level] == optimum(seed)[:level]
            ]
            assert all(value[level].value >= optimum(seed)[level].value for value in others)
            decided += any(value[level].value > optimum(seed)[level].value for value in others)
    assert decided >= 5


@pytest.mark.parametrize(("most", "enough"), [(130, 15), pytest.param(700, 40, marks=pytest.mark.exhaustive)])
def test_short_cuts_lose_nothing(most: int, enough: int) -> None:
    tried = 0
    for seed in SEEDS:
        instance = tiny_network(seed).instance
        if (len(instance.nodes) + 1) ** len(instance.pending) <= most:
            assert plainly(instance) == optimum(seed), describe(instance)
            tried += 1
            if tried == enough:
                return
    pytest.fail(f"tried {tried} instances, expected {enough}")
