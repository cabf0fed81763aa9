"""Pods that change places so that kubelets admit them by age: by hand, on planted clusters, and beside every rule."""

from __future__ import annotations

import math

import pytest

from placer.answers.solving import solve
from placer.arrays import Dense, Solution, score_solution
from placer.arrays.dense_builder import make_dense
from placer.base.deadline import Deadline
from placer.lab.generate import generate
from placer.problem import Instance
from placer.rules import verify
from placer.search.greedy.multi_start import greedy
from placer.search.incumbent import Incumbent
from placer.search.numa.binding_order import aligned
from placer.search.numa.creation_order import swap_towards_creation_order
from tests.examples import seed_blocks
from tests.numa_words import demand, numa
from tests.search.numa.test_ejection_chains import on_nodes
from tests.support import instance_of
from tests.tiny_numa import tiny_numa
from tests.world import World


def aged(instance: Instance, dense: Dense, solution: Solution, seconds: float = math.inf) -> Solution:
    """What comes of it, verified; the values are what they were."""
    created = [instance.pods[each.pods[0]].created for each in dense.classes]
    found = swap_towards_creation_order(dense, solution, created, 0, Deadline.within(seconds))
    assert score_solution(dense, found) == score_solution(dense, solution)
    assert verify(instance, aligned(instance, dense.placement(found))) == []
    return found


def one_by_one(instance: Instance, dense: Dense, solution: Solution) -> int:
    """On how many nodes pods have to be bound one after the other."""
    return len(aligned(instance, dense.placement(solution)).one_by_one)


def uneven(late: float) -> World:
    """Node ``a`` has zones of 8 and 5 cores, ``c`` one of 5; of the two on ``a`` that of 5 cores is the older one."""
    world = World()
    world.node("a", pods=9, numa=numa("single", "container", "8 cpu 9 memory", "5 cpu 9 memory"))
    world.node("c", pods=9, numa=numa("single", "container", "5 cpu 9 memory"))
    for name, size, created in (("five", 5, 1.0), ("eight", 8, 2.0), ("late", 5, late)):
        world.pod(name, gpu=0, numa=demand(f"{size} cpu 1 memory"), created=created)
    return world


@pytest.mark.parametrize(("late", "left"), [(9.0, 0), (1.5, 1)])
def test_the_pod_that_comes_too_early_changes_places_with_a_later_one(late: float, left: int) -> None:
    """By age the pod of 5 takes the zone of 8; a younger one of 5 does not, one that is older than that of 8 does."""
    instance = uneven(late).instance()
    dense, start = on_nodes(instance, eight="a", five="a", late="c")
    assert one_by_one(instance, dense, start) == 1
    assert one_by_one(instance, dense, aged(instance, dense, start)) == left


def test_equal_pods_are_told_apart_by_their_age() -> None:
    """The two pods of 5 cores are equal in everything else, and still two classes, since each is a group of its own."""
    instance = uneven(9.0).instance()
    assert len(make_dense(instance).classes) == 3


def test_planted_nodes_are_bound_by_age() -> None:
    """Of twelve nodes, filled to 95 % and more, most need no waiting for the kubelet's answer afterwards."""
    made = generate("numa", nodes=12, zones=(2, 4), in_order=0.0, seed=5)
    instance = instance_of(*made.documents)
    dense = make_dense(instance)
    start = greedy(dense)
    before, after = (one_by_one(instance, dense, each) for each in (start, aged(instance, dense, start)))
    assert before >= 6
    assert after <= before // 2


def test_no_time_no_change() -> None:
    """What has begun ends at once, and the answer is the one that was there."""
    made = generate("numa", nodes=6, zones=(4,), in_order=0.0, seed=5)
    instance = instance_of(*made.documents)
    dense = make_dense(instance)
    start = greedy(dense)
    assert aged(instance, dense, start, seconds=0.0) == start


@pytest.mark.parametrize("seeds", seed_blocks(240, 60))
def test_no_rule_is_broken_and_no_value_changes(seeds: range) -> None:
    """Tiny instances with gangs, limits, queues, ports, calls; whatever is exchanged."""
    concerned = 0
    for seed in seeds:
        instance = tiny_numa(seed).instance
        dense = make_dense(instance)
        if dense.numa is None:
            continue
        start = dense.numa.ordered(greedy(dense))
        assert start is not None
        found = aged(instance, dense, start)
        assert one_by_one(instance, dense, found) <= one_by_one(instance, dense, start), seed
        concerned += 1
    assert concerned >= 30


def test_solve_has_pods_change_places() -> None:
    """The whole call, also where the greedy's answer is proved at once."""
    made = generate("numa", nodes=8, zones=(2,), in_order=0.0, seed=7)
    instance = instance_of(*made.documents)
    dense = make_dense(instance)
    result = solve(instance, method="greedy", time_limit=None)
    assert result.placement is not None
    assert len(result.placement.one_by_one) < one_by_one(instance, dense, greedy(dense))


def test_what_is_put_in_the_place_of_a_solution_has_its_values() -> None:
    instance = uneven(9.0).instance()
    dense, start = on_nodes(instance, eight="a", five="a", late="c")
    incumbent = Incumbent(dense, 0.0)
    incumbent.offer(start, "test")
    with pytest.raises(ValueError, match="values"):
        incumbent.replace(Solution())
    assert incumbent.solution == start
