"""Plans by construction: who goes is the cheapest that makes room, whole, within budgets, and not without need."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pytest

from placer.answers.making_room import preempt
from placer.base.deadline import NEVER
from placer.problem import Instance, Key
from placer.problem.disruption import Disruption
from placer.problem.instance import DisruptionBudget
from placer.problem.placement import Placement, Score, better
from placer.rules import verify
from placer.rules.scoring import score
from placer.search.preempt.construction import Construction, FirstPlan
from placer.search.preempt.first_plan import first_plans
from placer.search.preempt.lifting import waiting
from placer.search.preempt.plans import planned
from tests.examples import seed_blocks
from tests.oracle_disruption import best_preempting, only_for
from tests.shrink import describe
from tests.tiny_disruption import tiny_defrag, tiny_disruption
from tests.world import GPU, World, apart, hard


def key(name: str) -> Key:
    return Key("default", name)


def racks() -> World:
    """Two racks of two nodes of four GPUs: a gang of low priority on both nodes of r1, single pods on r2."""
    world = World()
    for name in ("a1", "a2", "b1", "b2"):
        world.node(name, 4)
    world.hyper("r1", 1, "a1 a2")
    world.hyper("r2", 1, "b1 b2")
    gang = world.gang("gang", 2, priority=5)
    world.running("g1", "a1", gang, 4, priority=5)
    world.running("g2", "a2", gang, 4, priority=5)
    for name, node in (("x1", "b1"), ("x2", "b1"), ("x3", "b2")):
        world.running(name, node, None, 2, priority=1)
    return world


def chosen(instance: Instance, *kept: str, moving: bool = False) -> FirstPlan:
    return Construction(instance, waiting(instance), moving=moving).plan([*map(key, kept)])


def gone(found: FirstPlan) -> str:
    return " ".join(sorted(each.name for each in found.evicted.union(found.moved)))


def test_the_domain_where_the_lowest_priority_goes_is_taken_and_free_room_used() -> None:
    world = racks()
    wanted = world.gang("wanted", 2, topology=hard(1), priority=10)
    world.pods_of("w1 w2", wanted, 2)
    found = chosen(world.instance())
    assert gone(found) in ("x1", "x2", "x3")
    assert set(found.bound.values()) <= {"b1", "b2"}
    assert found.bound.keys() == {key("w1"), key("w2")}


def test_what_is_kept_stays_and_a_gang_goes_whole() -> None:
    world = racks()
    wanted = world.gang("wanted", 1, topology=hard(1), priority=10)
    world.pods_of("w1", wanted, 4)
    instance = world.instance()
    assert gone(chosen(instance)) == "x3"
    assert gone(chosen(instance, "x3")) == "x1 x2"
    assert gone(chosen(instance, "x3", "x1")) == "g1 g2"
    assert chosen(instance, "x3", "x1", "g2") == FirstPlan({}, {}, frozenset())


def test_budgets_bind() -> None:
    world = racks()
    for name in ("one", "two"):
        world.pods_of(f"{name}-1", world.gang(name, 1, topology=hard(1), priority=10), 2)
    world.running("y", "b2", None, 2, priority=1)
    instance = world.instance()
    pods = frozenset(map(key, ("x1", "x2", "x3", "y")))
    limited = replace(instance, budgets=(DisruptionBudget(key("budget"), pods, 1),))
    assert len(gone(chosen(instance)).split()) == 2
    found = chosen(limited)
    assert len((found.evicted | found.moved.keys()) & pods) == 1
    assert {key("g1"), key("g2")} <= found.evicted


def fragmented() -> World:
    """Two racks of two nodes of four GPUs with a pod of two on each, and a node in no rack with room for two pods."""
    world = World()
    for name in ("a1", "a2", "b1", "b2", "c"):
        world.node(name, 4)
    world.hyper("r1", 1, "a1 a2")
    world.hyper("r2", 1, "b1 b2")
    for name in ("a1", "a2", "b1"):
        world.running(f"on-{name}", name, None, 2, priority=20)
    world.running("on-b2", "b2", None, 3, priority=20)
    return world


def test_what_goes_is_moved_to_the_fullest_node_that_takes_it() -> None:
    world = fragmented()
    world.node("full", 4)
    world.running("there", "full", None, 2)
    world.pods_of("w1", world.gang("wanted", 1, topology=hard(1)), 4)
    instance = replace(world.instance(), moves_only=True)
    found = chosen(instance, moving=True)
    ((moved, target),) = found.moved.items()
    assert target != "c"
    assert instance.pods[moved].node == found.bound[key("w1")]


def test_a_plan_of_several_gangs_is_whole_and_the_first_that_is_told() -> None:
    """Each gang needs a rack, and what runs in both has room elsewhere in all."""
    world = fragmented()
    world.nodes("d e", 4)
    for name in ("one", "two"):
        world.pods_of(f"{name}-1 {name}-2", world.gang(name, 2, topology=hard(1)), 4)
    instance = replace(world.instance(), moves_only=True)
    (first,) = first_plans(instance, NEVER)
    assert first.by == "construction"
    assert len(first.placement.node_of) == len(first.placement.moves) == 4
    assert verify(instance, first.placement) == []


def test_where_the_greedy_of_receivers_breaks_a_rule_the_other_finds_a_node() -> None:
    """A pod that keeps off its like goes to the node without one, though it is not the fullest."""
    world = World()
    for name, gpus in (("a", 4), ("b", 4), ("c", 3)):
        world.node(name, gpus, labels={"host": name})
    world.running("x", "a", None, 2, labels={"app": "x"}, asks=apart("host", app="x"))
    world.running("y", "b", None, 2, labels={"app": "x"}, asks=apart("host", app="x"))
    world.pods_of("w1", world.gang("wanted", 1, priority=10), 4)
    instance = replace(world.instance(), moves_only=True)
    *_, last = first_plans(instance, NEVER)
    assert {each.node for each in last.placement.moves} == {"c"}
    assert last.placement.node_of.keys() == {key("w1")}


def test_its_answer_comes_first_and_keeps_the_rules() -> None:
    world = racks()
    for name in ("one", "two"):
        world.pods_of(f"{name}-1", world.gang(name, 1, topology=hard(1), priority=10), 4)
    instance = world.instance()
    first = next(first_plans(instance, NEVER)).placement
    assert verify(instance, first) == []
    assert {unit.pods for unit in Disruption(instance, first).units} == {(key("x1"),), (key("x2"),), (key("x3"),)}
    found = preempt(instance, time_limit=None, workers=1)
    assert found.trace[0].phase == "construction"
    assert found.trace[0].values[0] == max(point.values[0] for point in found.trace)


# ------------------------------------------------------------------------------------- compared with trying everything


def drawn(seed: int) -> Instance:
    """A tiny instance in which something waits: evictions, moves, or both; each group alone in some."""
    instance = (tiny_defrag if seed % 3 == 2 else lambda each: tiny_disruption(each).instance)(seed)
    groups = waiting(instance)
    return only_for(instance, groups[0].key) if groups and seed % 2 else instance


def plainly_found(instance: Instance) -> Placement | None:
    """What a plain greedy finds for the first group: nodes of one domain are cleared, those with fewest pods first, and
    what was there goes to the fullest nodes that take it, or is evicted.
    """
    group, tree = waiting(instance)[0], instance.topology
    limit = group.topology.limit if group.topology is not None else None
    tops = [name for name in tree.hyper_nodes if tree.tier(name) == limit]
    domains = [[node for node in instance.nodes if name in tree.path(node)] for name in tops]
    domains = [[*instance.nodes]] if limit is None else domains
    on = {name: [key for key, pod in instance.pods.items() if pod.node == name] for name in instance.nodes}
    for names in domains:
        cleared = sorted(names, key=lambda name: (len(on[name]), name))[: len(group.pending)]
        going = sorted({pod for name in cleared for pod in on[name]})
        bound = dict(zip(sorted(group.pending), cleared, strict=False))
        for targets in (_fullest(instance, going, cleared), {}):
            placement = planned(instance, {**bound, **targets}, [key for key in going if key not in targets])
            if len(bound) == len(group.pending) and not verify(instance, placement):
                return placement
    return None


def _fullest(instance: Instance, going: Sequence[Key], cleared: Sequence[str]) -> dict[Key, str]:
    free = {name: node.allocatable[GPU] for name, node in instance.nodes.items() if name not in cleared}
    for pod in instance.pods.values():
        if pod.node in free:
            free[pod.node] -= pod.requests[GPU]
    found = {}
    for key in going:
        asked = instance.pods[key].requests[GPU]
        able = [name for name in free if free[name] >= asked]
        if able:
            found[key] = min(able, key=lambda name: (free[name], name))
            free[found[key]] -= asked
    return found


def agrees(seeds: Iterable[int]) -> tuple[int, int]:
    """How often something is to be had by disturbing, and how often the first plans have as much of it."""
    had = found = 0
    for seed in seeds:
        instance = drawn(seed)
        if not waiting(instance):
            continue
        best, _ = best_preempting(instance)
        *_, last = (each.placement for each in first_plans(instance, NEVER))
        values = score(instance, last, disturbing=True)
        assert verify(instance, last) == [], f"seed {seed}\n{describe(instance)}"
        assert not better(values, best), f"seed {seed}: {values} beats {best}\n{describe(instance)}"
        plain = plainly_found(instance)
        if plain is not None:
            theirs = score(instance, plain, disturbing=True)
            assert not _more_admitted(theirs, values), f"seed {seed}: {plain}\n{describe(instance)}"
        nothing = score(instance, Placement(), disturbing=True)
        had += _more_admitted(best, nothing)
        found += _more_admitted(best, nothing) and not _more_admitted(best, values)
    return had, found


def _more_admitted(one: Score, other: Score) -> bool:
    admitted, others = ([each for each in values if each.name == "admitted"] for values in (one, other))
    return better(tuple(admitted), tuple(others))


@pytest.mark.parametrize("seeds", seed_blocks(48, 6))
def test_first_plans_keep_the_rules_and_find_what_a_plain_greedy_finds(seeds: range) -> None:
    had, found = agrees(seeds)
    assert 2 * found >= had


@pytest.mark.exhaustive
@pytest.mark.parametrize("seeds", seed_blocks(1200, 12))
def test_many_first_plans_do(seeds: range) -> None:
    had, found = agrees(seeds)
    assert found >= 0.8 * had
