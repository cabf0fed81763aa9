"""The policy against a second writing of Volcano's greedy that follows every tie: what it binds where is possible, and
over seeds it binds as many pods, and as few, as can be.
"""

from __future__ import annotations

from functools import cache
from random import Random

import pytest

from placer.lab.policies.mimicry import run
from placer.problem import Instance, SubGroupPolicy
from tests.examples import exhaustive
from tests.lab.policies.volcano_naive import PLUGINS, Bound, all_ways
from tests.world import World, hard, soft

CONF = {"tiers": [{"plugins": [{"name": name} for name in PLUGINS]}]}
SEEDS = range(40)
DRAWN = range(120)
#: More ways than this are not followed.
MOST = 1500


def drawn(number: int) -> Instance:
    """Up to three leaves, some below a spine, that or all below a root; up to three gangs of every kind."""
    dice = Random(number)
    world = World()
    leaves = dice.randint(1, 3)
    for leaf in range(leaves):
        names = [f"n{leaf}{place}" for place in range(dice.randint(1, 2))]
        for name in names:
            world.node(name, cpu=1000 * dice.choice((1, 2, 3, 4)), pods=dice.choice((2, 110)))
        world.hyper(f"l{leaf}", 1, " ".join(names))
    spined = dice.randint(0, leaves)
    if spined:
        world.hyper("s", dice.choice((2, 2, 3)), " ".join(f"l{leaf}" for leaf in range(spined)))
    if spined and dice.random() < 0.3:
        world.hyper("r", 4, " ".join(("s", *(f"l{leaf}" for leaf in range(spined, leaves)))))
    if dice.random() < 0.3:
        world.node("loose", cpu=2000)
    for name in "xyz"[: dice.randint(1, 3)]:
        gang(world, dice, name)
    return world.instance()


def gang(world: World, dice: Random, name: str) -> None:
    """A gang: of roles, of subgroups, elastic, begun, with and without topology."""
    asked = dice.choice((hard(1), hard(1), hard(2), hard(3), soft(), soft(1), None, hard()))
    kind = dice.choice(("plain", "plain", "parts", "roles"))
    size, slack = dice.randint(1, 4), dice.choice((0, 0, 0, 1, 2))
    inner = dice.choice((hard(1), soft(), None))
    policies = [SubGroupPolicy("p", dice.choice((1, 2)), dice.choice((0, 1)), inner)] if kind == "parts" else []
    roles = {"m": 1} if kind == "roles" else {}
    least = max(sum(roles.values()), size - slack)
    key = world.gang(name, least, topology=asked, policies=policies, roles=roles, priority=dice.choice((0, 0, 1)))
    master, numbers = dice.randrange(size), dice.choice((("0", "1"), ("10", "9")))
    for each in range(size):
        part = numbers[each // 2] if policies and dice.random() < 0.9 else None
        role = ("m" if each == master else "w") if roles else ""
        cpu, begun = 1000 * dice.choice((1, 1, 2)), dice.random() < 0.15
        priority = dice.choice((0, 0, 0, 1))
        free = [node for node in world.node_list.values() if _free(world, node.name) >= cpu]
        if begun and free:
            world.running(
                f"{name}{each}", dice.choice(free).name, key, 0, cpu=cpu, part=part, role=role, priority=priority
            )
        else:
            world.pod(f"{name}{each}", key, 0, cpu=cpu, part=part, role=role, priority=priority)


def _free(world: World, node: str) -> int:
    taken = sum(pod.requests["cpu"] for pod in world.pods.values() if pod.node == node)
    return world.node_list[node].allocatable["cpu"] - taken


def ways(instance: Instance, seeds: range = SEEDS) -> set[Bound]:
    found = set()
    for seed in seeds:
        placement = run(instance, "volcano", seed=seed, arguments=CONF)
        found.add(frozenset((binding.pod.name, binding.node) for binding in placement.bindings))
    return found


def counts(found: set[Bound]) -> set[int]:
    return {len(each) for each in found}


@cache
def possible(number: int) -> set[Bound] | None:
    return all_ways(drawn(number), MOST)


@pytest.mark.parametrize("number", [*DRAWN[:16], *exhaustive(*DRAWN[16:])])
def test_what_is_bound_is_possible_and_as_many_pods_as_may_be(number: int) -> None:
    expected = possible(number)
    if expected is not None:
        found = ways(drawn(number))
        assert found <= expected
        assert counts(found) == counts(expected)


def test_the_drawn_instances_are_worth_it() -> None:
    """Most are followed through; ties decide where, on some how many, and pods are left over on many."""
    known = [(found, len(drawn(number).pending)) for number in DRAWN if (found := possible(number)) is not None]
    assert len(known) >= 0.9 * len(DRAWN)
    assert sum(len(found) > 1 for found, _ in known) >= 0.2 * len(DRAWN)
    assert sum(len(counts(found)) > 1 for found, _ in known) >= 2
    assert sum(max(counts(found)) < pods for found, pods in known) >= 0.3 * len(DRAWN)
    assert len({max(counts(found)) for found, _ in known}) >= 5
