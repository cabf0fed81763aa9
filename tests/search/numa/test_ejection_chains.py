"""Exchanges between NUMA zones: by hand, and on instances with every other rule, where none of them may be broken."""

from __future__ import annotations

import random

import pytest

from placer.arrays import Dense, Solution, beats, score_solution
from placer.arrays.dense_builder import make_dense
from placer.base.deadline import Budget
from placer.lab.generate import generate
from placer.problem import Instance
from placer.rules import verify
from placer.search.greedy.multi_start import complete, greedy
from placer.search.numa.ejection_chains import EXCHANGE_WORK, place_by_ejection_chains
from placer.search.numa.zone_bins import ZoneBins
from tests.examples import seed_blocks
from tests.numa_words import demand, numa
from tests.numa_worlds import assigned
from tests.support import instance_of
from tests.tiny_numa import tiny_numa
from tests.world import World

#: Deterministic time of ejection chains over a handful of zones.
WORK = 200 * EXCHANGE_WORK


def halves(*names: str) -> World:
    """Nodes of two zones with 8 cores and 8 memory each."""
    world = World()
    for name in names:
        world.node(name, pods=20, numa=numa("single", "container", "8 cpu 8 memory", "8 cpu 8 memory"))
    return world


def cores(world: World, **pods: int) -> None:
    """Pods of one container that ask for so many cores and as much memory."""
    for name, amount in pods.items():
        world.pod(name, gpu=0, numa=demand(f"{amount} cpu {amount} memory"))


def on_nodes(instance: Instance, **nodes: str) -> tuple[Dense, Solution]:
    """The instance by index, and a solution with pods, by name, on nodes."""
    dense = make_dense(instance)
    number = {pod.name: index for pod, index in dense.class_of.items()}
    solution = Solution()
    for pod, node in nodes.items():
        place = number[pod], dense.node_index[node]
        solution[place] = solution.get(place, 0) + 1
    return dense, solution


def chained(instance: Instance, dense: Dense, solution: Solution, seed: int = 0, work: float = WORK) -> Solution:
    """What comes of ejection chains, verified."""
    budget = Budget(most=work)
    found = place_by_ejection_chains(dense, solution, seed, budget)
    assert budget.spent <= work + 32 * EXCHANGE_WORK
    assert dense.numa is not None
    ordered = dense.numa.ordered(found)
    assert ordered is not None
    assert verify(instance, dense.placement(ordered)) == []
    assert not beats(dense, score_solution(dense, solution), score_solution(dense, ordered), ahead(dense))
    return ordered


def ahead(dense: Dense) -> int:
    """How many values are those of O1, in the order of the usual policy."""
    return sum(name in ("admitted", "placed") for name, _ in dense.criteria)


# -------------------------------------------------------------------------------------------------------------- by hand


def test_one_pod_goes_elsewhere_so_that_another_fits() -> None:
    """5 + 2 and 4 + 2 of 8 cores: for a pod of 3 one of the two small ones has to move."""
    world = halves("a", "b")
    cores(world, five=5, two=2, seven=7, four=4, more=2, six=6, three=3)
    dense, start = on_nodes(world.instance(), five="a", two="a", seven="a", four="b", more="b", six="b")
    assert sum(chained(world.instance(), dense, start).values()) == 7


def test_a_pod_goes_to_an_empty_zone_so_that_another_fits() -> None:
    """5 in the zone of 8, nobody in that of 6: the pod of 8 fits once the other one has left."""
    world = World()
    for name, size in (("a", 8), ("b", 6)):
        world.node(name, pods=20, numa=numa("single", "container", f"{size} cpu {size} memory"))
    cores(world, five=5, eight=8)
    dense, start = on_nodes(world.instance(), five="a")
    assert sum(chained(world.instance(), dense, start).values()) == 2


def test_pods_change_places_so_that_another_fits() -> None:
    """5 + 2, 4 + 3 of 8 cores and two full zones: only once 5 + 3 share a zone there are 2 cores together."""
    world = halves("a", "b")
    cores(world, five=5, two=2, full=8, four=4, three=3, whole=8, last=2)
    dense, start = on_nodes(world.instance(), five="a", two="a", full="a", four="b", three="b", whole="b")
    assert sum(chained(world.instance(), dense, start).values()) == 7


def test_a_pod_that_counts_more_takes_the_place_of_one_that_counts_less() -> None:
    """One zone, and no room for both: the pod of higher priority stays, though the smaller one was there."""
    world = World()
    world.node("a", pods=20, numa=numa("single", "container", "8 cpu 8 memory"))
    world.pod("low", gpu=0, numa=demand("5 cpu 5 memory"))
    world.pod("high", gpu=0, priority=9, numa=demand("6 cpu 6 memory"))
    dense, start = on_nodes(world.instance(), low="a")
    found = chained(world.instance(), dense, start)
    assert [dense.classes[index].pods[0].name for index, _ in found] == ["high"]


def test_pods_of_two_containers_stay_where_containers_are_aligned_one_by_one() -> None:
    """The node's other pods may move as long as its kubelet admits all of them in some order."""
    world = halves("a", "b")
    world.pod("pair", gpu=0, numa=demand("5 cpu 5 memory", "5 cpu 5 memory"))
    cores(world, two=2, more=2, six=6, less=1, three=3)
    dense, start = on_nodes(world.instance(), pair="a", two="a", more="b", six="b", less="b")
    bins = ZoneBins(dense, start, random.Random(0))
    assert bins.mixed == {dense.node_index["a"]}
    found = chained(world.instance(), dense, start)
    names = {dense.classes[index].pods[0].name: dense.nodes[node] for index, node in found}
    assert names["pair"] == "a"
    assert len(names) == 6


def test_a_node_whose_pods_are_admitted_in_no_order_is_left_alone() -> None:
    dense = make_dense(assigned().instance())
    start = Solution({(index, 0): each.size for index, each in enumerate(dense.classes)})
    bins = ZoneBins(dense, start, random.Random(0))
    assert bins.solution() == start
    assert not any(bins.facts.free(index, 0) for index, _ in start)
    assert not bins.facts.allowed[:-1].any()


def pairs() -> tuple[Dense, ZoneBins]:
    """5 + 3 and 8 + 8 cores on ``a``, which aligns each container; 8 on ``b``, which does not; 8 and 8 on ``c``."""
    world = World()
    for name, scope, zones in (("a", "container", 4), ("b", "pod", 1), ("c", "container", 2)):
        world.node(name, pods=20, numa=numa("single", scope, *["8 cpu 8 memory"] * zones))
    world.pod("small", gpu=0, numa=demand("5 cpu 5 memory", "3 cpu 3 memory"))
    world.pod("large", gpu=0, numa=demand("8 cpu 8 memory", "8 cpu 8 memory"))
    cores(world, one=8, two=8, three=8)
    dense, start = on_nodes(world.instance(), small="a", large="a", one="b", two="c", three="c")
    return dense, ZoneBins(dense, start, random.Random(0))


@pytest.mark.parametrize(
    ("gone", "second", "come", "fine"),
    [
        ("small", "b", ["one"], True),  # one zone holds it as a whole
        ("small", "c", ["two"], True),  # the zone that is left holds both
        ("large", "c", ["two", "three"], True),  # a zone for each
        ("large", "c", ["two"], False),  # one zone is not enough
        ("large", "b", ["one"], False),  # no zone is large enough
    ],
)
def test_pods_of_two_containers_are_swapped_for_one_or_two(gone: str, second: str, come: list[str], fine: bool) -> None:
    """Rooms are those of a fresh start afterwards, also where nothing came of it."""
    dense, bins = pairs()
    number = {pod.name: index for pod, index in dense.class_of.items()}
    there = dense.node_index[second]
    before = bins.solution()
    assert bins.swap(dense.node_index["a"], number[gone], there, [number[name] for name in come]) == fine
    assert ((number[gone], there) in bins.solution()) == fine
    assert fine or bins.solution() == before
    fresh = ZoneBins(dense, bins.solution(), random.Random(0))
    assert (fresh.room == bins.room).all()
    assert fresh.mixed == bins.mixed


def test_pods_that_take_no_part_are_swapped_for_others() -> None:
    """5 + 5 cores of 7 + 7 leave no room for 6; on ``b`` they are one unit, and 7 and 6 share the zones of ``a``."""
    world = World()
    world.node("a", pods=20, numa=numa("single", "container", "7 cpu 7 memory", "7 cpu 7 memory"))
    world.node("b", pods=20, numa=numa("single", "pod", "10 cpu 10 memory"))
    world.pod("pair", gpu=0, numa=demand("5 cpu 5 memory", "5 cpu 5 memory"))
    cores(world, seven=7, six=6)
    dense, start = on_nodes(world.instance(), pair="a", seven="b")
    found = chained(world.instance(), dense, start, work=2000 * EXCHANGE_WORK)
    assert {dense.classes[index].pods[0].name: dense.nodes[node] for index, node in found} == {
        "pair": "b",
        "seven": "a",
        "six": "a",
    }


def test_the_rows_of_the_bins_say_what_is_left() -> None:
    """After exchanges and changes of places, room, bundles and queues are those of the solution, made anew."""
    made = generate("numa", nodes=12, zones=(2, 4), seed=3)
    instance = instance_of(*made.documents)
    dense = make_dense(instance)
    chance, start = random.Random(5), greedy(dense)
    gone = {at for at in start if chance.random() > 0.9}
    kept = start.only(lambda *at: at not in gone)
    bins = ZoneBins(dense, kept, random.Random(0))
    done = 0
    for _ in range(400):
        one, other = (chance.randrange(len(bins.node)) for _ in range(2))
        numbers = [chance.choice([n for n, real in enumerate(bins.real[zone]) if real]) for zone in (one, other)]
        if one == other:
            continue
        first, second = bins.bundle(one, numbers[0]), bins.bundle(other, numbers[1])
        asked = [sum(bins.facts.asked[index] for index in bundle[1]) for bundle in (first, second)]
        gain = asked[0] - asked[1]
        if (bins.room[one] + gain >= 0).all() and (bins.room[other] - gain >= 0).all():
            done += bins.exchange(first, second)
    fresh = ZoneBins(dense, bins.solution(), random.Random(0))
    assert done >= 20
    assert (fresh.room == bins.room).all()
    assert [sorted(pods) for pods in fresh.pods] == [sorted(pods) for pods in bins.pods]
    assert sorted(fresh.waiting) == sorted(bins.waiting)


def test_what_the_kubelet_refuses_as_the_last_one_is_added_in_another_order() -> None:
    """The pod of 5 cores takes the zone of 8; if that of 8 comes first, both fit: every answer is maximal."""
    world = World()
    world.node("a", pods=9, numa=numa("single", "container", "8 cpu 9 memory", "5 cpu 9 memory"))
    for name, size in (("five", 5), ("eight", 8)):
        world.pod(name, gpu=0, numa=demand(f"{size} cpu 1 memory"))
    dense, start = on_nodes(world.instance(), five="a")
    found = complete(dense, start)
    assert len(found) == 2
    assert verify(world.instance(), dense.placement(found)) == []


# ------------------------------------------------------------------------------------------------------- with all rules


@pytest.mark.parametrize("seeds", seed_blocks(360, 60, quick=2))
def test_no_rule_is_broken_and_nothing_lost(seeds: range) -> None:
    """From what the greedy leaves when some of it is taken away: O1 never gets worse, and often better."""
    better = 0
    for seed in seeds:
        instance = tiny_numa(seed).instance
        dense, chance = make_dense(instance), random.Random(seed)
        if dense.numa is None or dense.criteria[0][0] != "admitted":
            continue
        start = without_some(dense, greedy(dense), chance)
        found = chained(instance, dense, start, seed)
        assert found == chained(instance, dense, start, seed), "the same seed finds the same chains"
        better += beats(dense, score_solution(dense, found), score_solution(dense, start), ahead(dense))
    assert better >= 10


def without_some(dense: Dense, solution: Solution, chance: random.Random) -> Solution:
    """A solution without most of the pods that are on their own, in an order that kubelets admit."""
    sizes = [sum(dense.classes[index].size for index in group.classes) for group in dense.groups]
    gone = {group for group, size in enumerate(sizes) if chance.random() < (0.8 if size == 1 else 0.1)}
    kept = solution.only(lambda index, _: dense.classes[index].group not in gone)
    assert dense.numa is not None
    ordered = dense.numa.ordered(kept)
    return Solution() if ordered is None else ordered


@pytest.mark.parametrize(("zones", "pod_scope"), [((2,), 0.5), ((4,), 1.0), ((2, 4, 8), 0.0), ((8,), 0.5)])
def test_what_was_planted_is_found(zones: tuple[int, ...], pod_scope: float) -> None:
    """Sixteen nodes filled to 95 to 100 %: the greedy, which ends with ejection chains, places all of it."""
    made = generate("numa", nodes=16, zones=zones, pod_scope=pod_scope, seed=11)
    instance = instance_of(*made.documents)
    dense = make_dense(instance)
    solution = greedy(dense)
    assert sum(solution.values()) == len(made.planted)
    assert verify(instance, dense.placement(solution)) == []
