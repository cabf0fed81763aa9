"""What cannot stand alone, and what room pods cannot use: worked out by hand.

A node has 4 GPUs unless said otherwise.
"""

from __future__ import annotations

from itertools import product
from random import Random

import numpy as np
import pytest

from placer.answers.solving import solve
from placer.arrays.dense_builder import make_dense
from placer.bounds import NamedBound, named_bounds
from placer.bounds.standalone import StandaloneLimits, usable
from placer.problem import SubGroupPolicy
from placer.problem.result import Verdict
from tests.support import instance_of, node, pod
from tests.world import World, hard, port

QUARTER = 250_000


def sizes(world: World) -> dict[str, int]:
    """Most pods per class that anything could place, by the name of the first pod of the class."""
    dense = make_dense(world.instance())
    most = StandaloneLimits(dense).sizes
    return {one.pods[0].name: int(size) for one, size in zip(dense.classes, most, strict=True)}


def two_spines() -> World:
    """Two spines (tier 2) of two leaves (tier 1) of two nodes."""
    world = World()
    world.nodes("a b c d e f g h")
    for leaf, members in (("l1", "a b"), ("l2", "c d"), ("l3", "e f"), ("l4", "g h")):
        world.hyper(leaf, 1, members)
    world.hyper("s1", 2, "l1 l2")
    world.hyper("s2", 2, "l3 l4")
    return world


# Alone


def test_a_gang_that_no_spine_holds_adds_nothing() -> None:
    # A spine has 16 GPUs. The gang of 17 fits into all 32 GPUs, but not below tier 2; that of 16 does.
    world = two_spines()
    world.pods_of(" ".join(f"p{i}" for i in range(17)), world.gang("large", 17, topology=hard(2)))
    world.pods_of(" ".join(f"q{i}" for i in range(16)), world.gang("fits", 16, topology=hard(2)))
    assert sizes(world) == {"p0": 0, "q0": 16}
    found = named_bounds(make_dense(world.instance()))
    assert [bound for bound in found if bound.criterion in (0, None)] == [
        NamedBound(0, 16 * QUARTER, "counting"),
        NamedBound(None, 16 * QUARTER, "counting"),
    ]


def test_what_runs_leaves_one_gpu_where_two_are_asked() -> None:
    # 4 nodes have 1 GPU left each: a pod of 2 has no node, though 4 GPUs are free.
    world = World()
    for name in world.nodes("a b c d"):
        world.running(f"runs-{name}", name, None, 3)
    world.pod("two", None, 2)
    world.pod("one", None, 1)
    assert sizes(world) == {"two": 0, "one": 1}
    assert NamedBound(None, QUARTER, "counting") in named_bounds(make_dense(world.instance()))


def test_running_members_hold_a_gang_to_their_leaf() -> None:
    # One of the gang runs on a, so the rest must lie under l1, which has 7 GPUs: 7 of its 9 optional pods at most.
    world = two_spines()
    gang = world.gang("grows", 1, topology=hard(1))
    world.running("first", "a", gang)
    world.pods_of(" ".join(f"p{i}" for i in range(9)), gang)
    assert sizes(world) == {"p0": 7}


def test_running_members_beyond_the_limit_let_nothing_follow() -> None:
    world = two_spines()
    gang = world.gang("wide", 1, topology=hard(1))
    world.running("first", "a", gang)
    world.running("second", "c", gang)
    world.pods_of("p q", gang)
    assert sizes(world) == {"p": 0}


def test_and_takes_its_gang_with_it_when_both_are_needed() -> None:
    world = two_spines()
    gang = world.gang("parts", 6, policies=[SubGroupPolicy("part", 3, 0, hard(1))])
    world.pods_of("p q r", gang, 3, part="0")
    world.pods_of("s t u", gang, 2, part="1")
    assert sizes(world) == {"p": 0, "s": 0}


def test_subgroups_count_inside_the_domain_of_their_gang() -> None:
    # Each part of 2 x 4 GPUs fits one leaf, three of them do not fit the two leaves of one spine together.
    world = two_spines()
    gang = world.gang("parts", 6, topology=hard(2), policies=[SubGroupPolicy("part", 2, 3, hard(1))])
    for part in "012":
        world.pods_of(f"p{part} q{part}", gang, 4, part=part)
    assert set(sizes(world).values()) == {0}


def test_pods_of_one_size_are_counted_node_by_node() -> None:
    # Three nodes of 4 GPUs take one pod of 3 each. The gang asks for four of them, in two classes.
    world = World()
    world.nodes("a b c", 4, cpu=4000)
    world.hyper("leaf", 1, "a b c")
    gang = world.gang("threes", 4, topology=hard(1))
    world.pods_of("p q", gang, 3, cpu=100)
    world.pods_of("r s", gang, 3, cpu=200)
    assert set(sizes(world).values()) == {0}


def test_a_queue_keeps_out_what_it_could_never_hold() -> None:
    # Room for 5 GPUs: not for a gang of 6, for 2 of the lone pods of 2 GPUs each by themselves.
    world = World()
    world.nodes("a b c d")
    world.queue("tight", gpu=5)
    world.pods_of("p q r", world.gang("large", 3, queue="tight"), 2)
    grows = world.gang("grows", 1, queue="tight")
    world.pods_of("s t u", grows, 2)
    assert sizes(world) == {"p": 0, "s": 2}


def test_a_host_port_is_one_pod_per_node() -> None:
    world = World()
    world.nodes("a b")
    gang = world.gang("servers", 3)
    for name in "pqr":
        world.pod(name, gang, ports=[port(80)])
    assert sizes(world) == {"p": 0}


def test_a_running_member_on_a_lost_node_is_under_the_root_only() -> None:
    # The spine holds every node there is, but not the one that is gone.
    world = World()
    world.nodes("a b")
    world.hyper("leaf", 1, "a b")
    world.hyper("spine", 2, "leaf")
    gang = world.gang("g", 1, topology=hard(2))
    world.running("first", "gone", gang)
    world.pod("p", gang)
    assert sizes(world) == {"p": 0}


def test_two_classes_share_the_room_of_a_queue() -> None:
    # 2 pods of 2 GPUs or the one of 3 fit into the 5 of the queue, not all of them, and all are needed.
    world = World()
    world.nodes("a b")
    world.queue("tight", gpu=5)
    gang = world.gang("g", 3, queue="tight")
    world.pods_of("p q", gang, 2)
    world.pod("r", gang, 3)
    assert sizes(world) == {"p": 0, "r": 0}


# Room that pods can use


def used(requests: list[list[int]], *free: int) -> list[int]:
    """Usable room of one node."""
    found: list[int] = usable(np.array(requests, dtype=np.int64), np.array([free], dtype=np.int64))[0].tolist()
    return found


def test_what_no_sum_of_requests_makes_up_stays_free() -> None:
    assert used([[2]], 3) == [2]
    assert used([[3], [5]], 7) == [6]
    assert used([[3], [5]], 4) == [3]
    assert used([[3], [5], [1]], 7) == [7]
    assert used([[0]], 4) == [0]


def test_room_beyond_what_another_resource_allows_stays_free() -> None:
    # At least 4 cores come with a GPU: 10 cores are room for 2 GPUs; at most 2 GPUs with 8 cores or none with 5.
    assert used([[1, 4], [2, 9]], 8, 10) == [2, 9]
    assert used([[1, 4], [2, 8], [0, 5]], 8, 10) == [2, 10]
    # Cores come without GPUs too: no GPUs left say nothing about them. GPUs come with cores only.
    assert used([[1, 4], [0, 3]], 0, 10) == [0, 10]
    assert used([[1, 4], [0, 3]], 8, 3) == [0, 3]


def test_amounts_beyond_the_exact_ones_are_cut_by_ratios_alone() -> None:
    large = 10**15
    assert used([[1, large]], 8, 3 * large + 7) == [3, 3 * large + 7]
    # 2 / (3 * 10**15) is the larger ratio, by less than floats tell.
    assert used([[2, 3 * large], [1, 3 * large // 2 + 1]], 8, 3 * large) == [2, 3 * large]


@pytest.mark.parametrize("seed", range(60))
def test_no_packing_uses_more_than_what_is_usable(seed: int) -> None:
    dice = Random(seed)
    requests = [[dice.choice([0, 1, 2, 3, 5]) for _ in range(2)] for _ in range(3)]
    free = [dice.randint(0, 9) for _ in range(2)]
    most = used(requests, *free)
    for counts in product(range(10), repeat=3):
        taken = [sum(n * request[r] for n, request in zip(counts, requests, strict=True)) for r in range(2)]
        if all(amount <= room for amount, room in zip(taken, free, strict=True)):
            assert all(amount <= room for amount, room in zip(taken, most, strict=True)), (requests, free, counts)


def test_resources_that_no_node_offers_cost_nothing() -> None:
    """Each pair of resources was looked at, for as long as that took."""
    evil = pod("evil", namespace="a", **{f"example.com/r{number}": 1 for number in range(400)})
    instance = instance_of(node("n0"), evil, *(pod(f"p{number}", cpu=1) for number in range(4)))
    result = solve(instance, time_limit=600)
    assert (result.verdict, len(result.reasons)) == (Verdict.OPTIMAL, 1)
