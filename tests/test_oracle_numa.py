"""The oracle's part in C10: placements and orders, against verify over everything there is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import permutations, product

import pytest

from placer.problem import Instance
from placer.problem.placement import Placement, Score, better
from placer.rules import verify
from placer.rules.scoring import score
from placer.search.numa.binding_order import aligned
from tests.numa_naive import replayed
from tests.oracle import best, binds
from tests.shrink import describe, shrink
from tests.tiny_numa import tiny_numa

SEEDS = range(210)
#: How many of the instances the rule must decide, and how many must need one order.
ENOUGH = 12
ENOUGH_ORDERS = 4

#: Features that must be there in at least this many instances.
FEATURES = {
    "single-numa-node": 150,
    "restricted": 100,
    "best-effort": 30,
    "none": 30,
    "unknown": 20,
    "scope:pod": 150,
    "scope:container": 150,
    "twoContainers": 100,
    "sidecar": 50,
    "initContainer": 80,
    "burstable": 80,
    "unlisted": 50,
    "threeZones": 100,
    "nodeWithoutZones": 50,
    "podWithoutDemand": 30,
    "zonesOff": 3,
    "capacity": 50,
    "hard": 80,
    "subGroups": 60,
}


@cache
def optimum(seed: int) -> tuple[Score, Placement]:
    return best(tiny_numa(seed).instance)


def test_every_feature_is_there_often_enough() -> None:
    found = Counter(tag for seed in SEEDS for tag in tiny_numa(seed).tags)
    assert {tag: found[tag] for tag, least in FEATURES.items() if found[tag] < least} == {}


@pytest.mark.exhaustive
def test_the_rule_decides() -> None:
    """Without it a better placement exists."""
    decided = sum(binds(tiny_numa(seed).instance, "C10", optimum(seed)[0]) for seed in SEEDS)
    assert decided >= ENOUGH


def _orders(instance: Instance, placement: Placement) -> Iterator[Placement]:
    """The placement in every order of the pods of each strict node."""
    found = {name: [each for each in placement.bindings if each.node == name] for name in instance.aligning_nodes}
    others = [each for each in placement.bindings if each.node not in found]
    for choice in product(*(permutations(each) for each in found.values())):
        yield Placement((*others, *(binding for bindings in choice for binding in bindings)))


def _plainly(instance: Instance) -> Score:
    """The best score over all assignments and all orders, by verify and score alone."""
    found = score(instance, Placement())
    for nodes in product([*instance.nodes, None], repeat=len(instance.pending)):
        placement = Placement.of((pod.key, node) for pod, node in zip(instance.pending, nodes, strict=True) if node)
        value = score(instance, placement)
        if better(value, found) and any(not verify(instance, ordered) for ordered in _orders(instance, placement)):
            found = value
    return found


@pytest.mark.parametrize(("most", "enough"), [(130, 15), pytest.param(700, 30, marks=pytest.mark.exhaustive)])
def test_all_assignments_in_all_orders_have_the_same_optimum(most: int, enough: int) -> None:
    tried = 0
    for seed in SEEDS:
        instance = tiny_numa(seed).instance
        if (len(instance.nodes) + 1) ** len(instance.pending) <= most:
            if _plainly(instance) != optimum(seed)[0]:
                small = shrink(instance, lambda each: _plainly(each) != best(each)[0])
                pytest.fail(f"seed {seed}, shrunk: {_plainly(small)} is not {best(small)[0]}\n{describe(small)}")
            tried += 1
            if tried == enough:
                return
    pytest.fail(f"tried {tried} instances, expected {enough}")


@pytest.mark.exhaustive
def test_the_optimum_is_put_into_an_order_that_works_with_the_zones_of_the_second_reading() -> None:
    one_by_one = 0
    for seed in SEEDS:
        instance = tiny_numa(seed).instance
        found = aligned(instance, optimum(seed)[1])
        assert verify(instance, found) == []
        one_by_one += bool(found.one_by_one)
        for name, node in instance.aligning_nodes.items():
            here = [binding for binding in found.bindings if binding.node == name]
            zones = replayed(node, [instance.pods[binding.pod].numa for binding in here])
            assert [set(binding.numa_zones) for binding in here] == zones
    assert one_by_one >= ENOUGH_ORDERS
