"""Relax and fix: every rule is kept whatever is packed, planted queues are packed whole, and what is held stays."""

from __future__ import annotations

import math
import random

import pytest

from placer.arrays import Dense, Solution, beats, score_solution
from placer.arrays.dense_builder import make_dense
from placer.base.deadline import Budget
from placer.lab.generate import generate
from placer.problem import SubGroupPolicy
from placer.rules import verify
from placer.search.decomposed.large_neighbourhood import WorkerPool
from placer.search.decomposed.lexicographic import DecomposedSearch
from placer.search.decomposed.relax_and_fix import relaxed_and_fixed, search
from placer.search.decomposed.relax_and_fix.packing_problem import (
    make_packing_problem,
)
from placer.search.events import SearchOptions
from placer.search.greedy.multi_start import greedy
from tests.examples import seed_blocks
from tests.support import instance_of
from tests.tiny import crowded, tiny
from tests.world import World, hard

#: What steps would be sent to.
POOL = WorkerPool("inline", 1)


def packed(dense: Dense, start: Solution, priority: int = 0, *, work: float = 20.0, seed: int = 0) -> Solution | None:
    """What is found from a start, without a clock; lower priorities do not stay."""
    return relaxed_and_fixed(dense, start, priority, (), Budget(most=work), 1, seed)


@pytest.mark.parametrize("seeds", seed_blocks(120, 30))
def test_no_rule_is_broken_and_no_higher_priority_loses(seeds: range) -> None:
    found_some = 0
    for seed in seeds:
        for instance in (tiny(seed).instance, crowded(seed).instance):
            dense = make_dense(instance)
            for criterion, (name, priority) in enumerate(dense.criteria):
                if name != "admitted" or dense.criteria[0][0] != "admitted" or priority is None:
                    continue
                lowest = priority
                start = random.Random(seed).choice([Solution(), greedy(dense)])
                start = start.only(lambda index, _: dense.groups[dense.classes[index].group].priority >= lowest)  # noqa: B023
                before = score_solution(dense, start)
                found = packed(dense, start, priority, work=0.5, seed=seed)
                if found is None:
                    continue
                found_some += 1
                assert verify(instance, dense.placement(found)) == [], seed
                assert not beats(dense, before[:criterion], score_solution(dense, found)[:criterion], criterion), seed
    assert found_some > len(seeds) // 4


PLANTED = {
    "three types": {"nodes": 64, "pod_sizes": (1, 2, 4, 6, 8), "node_types": 3, "held": 0.25},
    "one size and a half": {"nodes": 96, "pod_sizes": (1, 2, 3, 4, 5, 6, 8), "subgroup_sizes": (3, 5, 6), "held": 0.45},
}


@pytest.mark.parametrize("kind", PLANTED)
@pytest.mark.parametrize("seed", range(3))
def test_what_is_planted_is_packed_whole(kind: str, seed: int) -> None:
    """Gangs limited to leaves and spines, with subgroups, on nodes that they fill to the last GPU."""
    options = {"leaf_size": 8, "leaves_per_spine": 4, "soft": 0.0, "elastic": 0.0, "seed": seed, **PLANTED[kind]}
    instance = instance_of(*generate("planted", **options).documents)
    dense = make_dense(instance)
    found = packed(dense, Solution(), work=200.0, seed=seed)
    assert found is not None
    assert verify(instance, dense.placement(found)) == []
    assert sum(found.values()) == sum(each.size for each in dense.classes)


def racks(free: str) -> World:
    """Racks of nodes of 8 GPUs, of which so many are free: ``"53 8"`` is a rack of two nodes and one of one node."""
    world = World()
    for rack, nodes in enumerate(free.split()):
        names = [world.node(f"r{rack}n{number}", gpu=8) for number in range(len(nodes))]
        for name, left in zip(names, nodes, strict=True):
            if int(left) < 8:
                world.running(f"old-{name}", name, gpu=8 - int(left))
        world.hyper(f"r{rack}", 1, " ".join(names))
    world.hyper("all", 2, " ".join(f"r{rack}" for rack in range(len(free.split()))))
    return world


def test_items_are_fixed_where_all_that_is_left_has_room() -> None:
    """The pods of one GPU just fill the odd nodes; three that share a rack have to have the rack with three of them."""
    world = racks("888 555 558 588")
    three = world.gang("three", least=3, topology=hard(1))
    world.pods_of("a b c", three, gpu=1)
    loose = world.gang("loose", least=3)
    world.pods_of("d e f", loose, gpu=1)
    for number in range(12):
        world.pods_of(f"four{number}", world.gang(f"four{number}", least=1), gpu=4)
    instance = world.instance()
    dense = make_dense(instance)
    for seed in range(6):
        found = packed(dense, Solution(), seed=seed)
        assert found is not None
        assert verify(instance, dense.placement(found)) == []
        assert sum(found.values()) == sum(each.size for each in dense.classes)


def test_a_gang_gets_a_home_that_holds_all_of_it() -> None:
    """The left half has room for more pods, but not in racks that hold both parts."""
    world = racks("44 44 88 8")
    world.hyper("left", 2, "r0 r1")
    world.hyper("right", 2, "r2 r3")
    world.domains["all"] = (3, ("left", "right"))
    parts = SubGroupPolicy("parts", 2, 1, hard(1))
    big = world.gang("big", least=3, topology=hard(2), policies=(parts,))
    world.pods_of("a b", big, gpu=8, part="0")
    world.pods_of("c", big, gpu=8)
    instance = world.instance()
    dense = make_dense(instance)
    found = packed(dense, Solution())
    assert found is not None
    assert sum(found.values()) == 3
    assert verify(instance, dense.placement(found)) == []


def test_of_more_than_fits_the_weightiest_are_chosen_within_the_capability() -> None:
    world = racks("88 88")
    world.queue("q", gpu=14)
    for name, pods in (("small", 3), ("large", 6), ("more", 4)):
        gang = world.gang(name, least=pods, queue="q")
        world.pods_of(" ".join(f"{name}{number}" for number in range(pods)), gang, gpu=2)
    instance = world.instance()
    dense = make_dense(instance)
    found = packed(dense, Solution())
    assert found is not None
    assert verify(instance, dense.placement(found)) == []
    assert sum(found.values()) == 7  # four and three; six and another one would be too many for the queue


def test_elastic_gangs_and_those_that_run_stay_where_they_are() -> None:
    world = racks("88 88")
    elastic = world.gang("elastic", least=1)
    world.pods_of("e0 e1", elastic, gpu=4)
    half = world.gang("half", least=2, topology=hard(1))
    world.running("h0", "r0n0", half, gpu=1)
    world.pods_of("h1", half, gpu=1)
    world.pods_of("w0 w1", world.gang("waits", least=2, topology=hard(1)), gpu=8)
    instance = world.instance()
    dense = make_dense(instance)
    index = {dense.groups[one.group].key.name: number for number, one in enumerate(dense.classes)}
    node = dense.node_index
    order = {node["r0n1"]: (index["half"], index["elastic"])}
    start = Solution({(index["elastic"], node["r0n1"]): 1, (index["half"], node["r0n1"]): 1}, order)
    found = packed(dense, start)
    assert found is not None
    assert all(found[at] == count for at, count in start.items())
    assert found.order == order
    assert {dense.nodes[at] for number, at in found if number == index["waits"]} == {"r1n0", "r1n1"}


def test_nothing_is_packed_where_nothing_waits_or_there_are_too_many_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    world = racks("88 88")
    world.pods_of("a b", world.gang("pair", least=2, topology=hard(1)), gpu=3)
    dense = make_dense(world.instance())
    all_placed = packed(dense, Solution())
    assert all_placed is not None
    assert make_packing_problem(dense, all_placed, 0, ()) is None
    monkeypatch.setattr(search, "MOST_VARIABLES", 0)
    assert packed(dense, Solution()) is None


def test_the_search_asks_for_it_and_takes_what_is_better() -> None:
    """A full cluster of three kinds of nodes: everything is placed after one look at the first value."""
    options = {"leaf_size": 8, "leaves_per_spine": 4, "soft": 0.0, "elastic": 0.0, "seed": 1, **PLANTED["three types"]}
    dense = make_dense(instance_of(*generate("planted", **options).documents))
    start = greedy(dense)
    found = DecomposedSearch(dense, SearchOptions(workers=1, seed=0, work=500.0, hint=start), lambda _: None, POOL)
    assert found.packed(0, 1.0)
    assert sum(found.solution.values()) == sum(each.size for each in dense.classes) > sum(start.values())


def test_a_subgroup_may_have_a_lower_limit_than_its_gang() -> None:
    """Leaves of two tiers: the gang may be in either, its subgroup in the lower ones alone, or in none at all."""
    for lowest, where in ((1, {"a0", "a1"}), (0, set[str]())):
        world = World()
        world.nodes("a0 a1 b0 b1", gpu=8)
        world.hyper("low", 1, "a0 a1")
        world.hyper("high", 2, "b0 b1")
        world.hyper("all", 3, "low high")
        parts = SubGroupPolicy("parts", 2, 1, hard(lowest))
        gang = world.gang("gang", least=2, topology=hard(2), policies=(parts,))
        world.pods_of("p q", gang, gpu=8, part="0")
        world.pods_of("r s", world.gang("other", least=2, topology=hard(2)), gpu=8)
        instance = world.instance()
        dense = make_dense(instance)
        for seed in range(4):
            found = packed(dense, Solution(), seed=seed) or Solution()
            assert verify(instance, dense.placement(found)) == []
            mine = {dense.nodes[node] for index, node in found if dense.groups[dense.classes[index].group].key == gang}
            assert mine <= where


def test_what_no_leaf_holds_keeps_nothing_else_out_and_does_not_go_on_for_ever() -> None:
    """A pool cannot tell that four pods of a whole node each are in no rack of two; no limit of work ends it."""
    world = racks("88 88 88 88")
    world.pods_of("w x y z", world.gang("wide", least=4, topology=hard(1)), gpu=8)
    for number in range(4):
        world.pods_of(f"a{number} b{number}", world.gang(f"pair{number}", least=2, topology=hard(1)), gpu=8)
    instance = world.instance()
    dense = make_dense(instance)
    found = packed(dense, Solution(), work=math.inf)
    assert found is not None
    assert verify(instance, dense.placement(found)) == []
    assert sum(found.values()) == 8


def test_a_node_outside_the_tree_takes_loose_pods_and_no_items() -> None:
    world = racks("88 88")
    world.node("outside", gpu=8)
    world.node("tainted", gpu=8, taints=("control-plane",))
    for name in ("one", "two"):
        world.pods_of(f"{name}-0 {name}-1", world.gang(name, least=2, topology=hard(1)), gpu=7)
    world.pods_of("single", world.gang("single", least=1, topology=hard(1)), gpu=1)
    world.pods_of("loose", world.gang("loose", least=1), gpu=8)
    instance = world.instance()
    dense = make_dense(instance)
    for seed in range(4):
        found = packed(dense, Solution(), seed=seed)
        assert found is not None
        assert verify(instance, dense.placement(found)) == []
        assert sum(found.values()) == 6
