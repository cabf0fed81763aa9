"""The greedy by itself: every rule by construction, maximal, repeatable, and near what is known to fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise

import pytest

from placer.arrays import Dense, Solution, beats, score_solution
from placer.arrays.dense_builder import make_dense
from placer.lab.generate import generate
from placer.problem import Instance, Policy, SubGroupPolicy
from placer.problem.placement import Placement
from placer.rules import verify
from placer.rules.scoring import score
from placer.search.greedy.gang_admission import Style, admit
from placer.search.greedy.multi_start import complete, greedy
from placer.search.greedy.state import GreedyLayout, GreedyState
from tests.examples import exhaustive
from tests.oracle import best
from tests.support import instance_of, volcano_case, volcano_cases
from tests.tiny import tiny
from tests.world import World, hard, near, soft

SEEDS = range(200)


def placed(instance: Instance) -> Placement:
    """The greedy's placement, verified."""
    dense = make_dense(instance)
    placement = dense.placement(greedy(dense))
    assert verify(instance, placement) == []
    return placement


def nodes(world: World) -> dict[str, str]:
    return {key.name: node for key, node in placed(world.instance()).node_of.items()}


def instances() -> Iterator[Instance]:
    return (tiny(seed).instance for seed in SEEDS)


@pytest.mark.exhaustive
def test_most_answers_place_as_much_as_the_best_one() -> None:
    """A quality gate, not a rule: what is placed equals the optimum on at least nine of ten tiny instances."""
    counts: Counter[bool] = Counter()
    for seed in range(60):
        instance = tiny(seed).instance
        found, optimum = score(instance, placed(instance)), best(instance)[0]
        counts[
            all(
                mine.value == theirs.value
                for mine, theirs in zip(found, optimum, strict=True)
                if mine.name in ("admitted", "placed")
            )
        ] += 1
    assert counts[True] >= 0.9 * counts.total()


def test_a_gang_finds_the_leaf_behind_a_dozen_that_hold_each_of_its_shapes_but_not_all() -> None:
    """Leaves of 4, 4 and 4 GPUs hold two pods of 3, or three of 2, and 12 in all, but not both; they are tighter."""
    world = World()
    for number in range(12):
        world.hyper(f"tight-{number}", 1, " ".join(world.nodes(f"a{number} b{number} c{number}", 4)))
    world.hyper("roomy", 1, " ".join([world.node("x", 6), world.node("y", 7), world.node("z", 1)]))
    gang = world.gang("gang", 5, topology=hard(1))
    world.pods_of("p1 p2", gang, 3)
    world.pods_of("q1 q2 q3", gang, 2)
    dense = make_dense(world.instance())
    for style, found in ((Style(), True), (Style(tries=12), False)):
        state = GreedyState(GreedyLayout(dense))
        assert admit(state, 0, style) == found
        assert bool(state.solution()) == found


def test_every_better_run_is_told_and_the_answer_is_the_same() -> None:
    several = 0
    for seed in range(100):
        dense = make_dense(tiny(seed).instance)
        told: list[Solution] = []
        answer = greedy(dense, told.append)
        assert answer == greedy(dense)
        ranks = [score_solution(dense, each) for each in (*told, answer)]
        assert all(beats(dense, after, before) or after == before for before, after in pairwise(ranks))
        assert len(set(ranks[:-1])) == len(told)
        several += len(told) > 1
    assert several


@pytest.mark.parametrize("case", volcano_cases())
def test_as_many_pods_as_volcano_expects(case: str) -> None:
    assert len(placed(volcano_case(case)).node_of) == volcano_cases()[case]["expected"]["bound_count"]


@pytest.mark.parametrize(
    ("options", "least"),
    [
        ({}, 1.0),
        ({"like_volcano": True}, 1.0),
        ({"pod_sizes": (1, 2, 4, 8)}, 0.98),
        ({"pod_sizes": (1, 2, 4, 8), "elastic": 0.3, "roles": 0.3, "queues": 2}, 0.97),
        ({"pod_sizes": (1, 2, 3, 5, 7, 8), "uneven": 0.3, "node_types": 2}, 0.95),
    ],
)
@pytest.mark.parametrize("seed", [1, *exhaustive(2)])
def test_share_of_a_planted_queue(options: dict[str, object], least: float, seed: int) -> None:
    """Everything planted fits; the greedy alone places at least this share of its weight."""
    instance = instance_of(*generate("planted", nodes=100, seed=seed, **options).documents)
    placement = placed(instance)
    weight = sum(instance.weights[key] for key in placement.node_of)
    assert weight >= least * sum(instance.weights.values())


def gang_world(leaves: int = 2, per_leaf: int = 2, gpu: int = 4) -> World:
    """Leaves l0, l1, ... of equal nodes n0, n1, ... under one spine of tier 2."""
    world = World()
    names = [world.node(f"n{index}", gpu) for index in range(leaves * per_leaf)]
    for leaf in range(leaves):
        world.hyper(f"l{leaf}", 1, " ".join(names[leaf * per_leaf : (leaf + 1) * per_leaf]))
    world.hyper("spine", 2, " ".join(f"l{leaf}" for leaf in range(leaves)))
    return world


def test_higher_priority_goes_first() -> None:
    world = World()
    world.node("n0", 4)
    world.pods_of("a0 a1 a2 a3", world.gang("a", 4))
    world.pods_of("b0 b1", world.gang("b", 2, priority=10))
    assert sorted(nodes(world)) == ["b0", "b1"]


def test_of_equal_gangs_the_older_goes_first() -> None:
    world = World()
    world.node("n0", 2)
    keys = [world.gang(name, 2) for name in ("a", "b")]
    for key in keys:
        world.pods_of(f"{key.name}0 {key.name}1", key)
    instance = world.instance()
    created = dict(zip(keys, (200.0, 100.0), strict=True))
    instance = replace(instance, groups={key: replace(instance.groups[key], created=created[key]) for key in keys})
    assert sorted(key.name for key in placed(instance).node_of) == ["b0", "b1"]


def test_the_lowest_tier_that_holds_a_soft_gang_is_taken() -> None:
    world = gang_world()
    world.running("r", "n0", gpu=3)
    world.pods_of("a0 a1 a2 a3 a4 a5", world.gang("a", 6, topology=soft()))
    assert set(nodes(world).values()) <= {"n2", "n3"}


def test_a_gang_too_large_for_a_leaf_touches_few() -> None:
    world = gang_world(leaves=4)
    world.running("r0", "n0", gpu=3)
    world.running("r2", "n2", gpu=3)
    world.pods_of(" ".join(f"a{index}" for index in range(12)), world.gang("a", 12, topology=soft()))
    assert len({int(node[1:]) // 2 for node in nodes(world).values()}) == 2


def test_the_tightest_domain_is_taken() -> None:
    world = World()
    world.nodes("n0 n1 n2", 4)
    world.node("n3", 2)
    world.hyper("l0", 1, "n0 n1")
    world.hyper("l1", 1, "n2 n3")
    world.pods_of("a0 a1 a2 a3 a4 a5", world.gang("a", 6, topology=hard(1)))
    assert set(nodes(world).values()) == {"n2", "n3"}


def test_a_tight_nest_of_unequal_pods_is_found_by_trying_everything() -> None:
    """Only 3 + 3 on the node of 6 and 3 + 2 + 2 on that of 7 hold all five."""
    world = World()
    world.nodes("n0", 6)
    world.nodes("n1", 7)
    gang = world.gang("a", 5)
    for index, gpu in enumerate((3, 3, 3, 2, 2)):
        world.pod(f"a{index}", gang, gpu)
    sizes = dict(zip(("a0", "a1", "a2", "a3", "a4"), (3, 3, 3, 2, 2), strict=True))
    by_node = Counter((node, sizes[name]) for name, node in nodes(world).items())
    assert by_node == {("n0", 3): 2, ("n1", 3): 1, ("n1", 2): 2}


def test_two_subgroups_share_out_two_unequal_leaves() -> None:
    """The small subgroup fits both leaves and the tall one only the larger; the small one must not take it."""
    world = World()
    world.nodes("n0 n1 n2 n3 n4", 1)
    world.hyper("l0", 1, "n0 n1 n2")
    world.hyper("l1", 1, "n3 n4")
    gang = world.gang("a", 5, policies=[SubGroupPolicy("w", 2, topology=hard(1))])
    world.pods_of("s0 s1", gang, part="small")
    world.pods_of("t0 t1 t2", gang, part="tall")
    found = nodes(world)
    assert {found["s0"], found["s1"]} == {"n3", "n4"}


def test_lone_pods_that_are_alike_fill_nodes_older_first() -> None:
    world = World()
    world.nodes("n0 n1", 2)
    for index in range(6):
        world.pod(f"p{index}")
    instance = world.instance()
    groups = {key: replace(group, created=float(-int(key.name[1:]))) for key, group in instance.groups.items()}
    found = placed(replace(instance, groups=groups))
    assert sorted(key.name for key in found.node_of) == ["p2", "p3", "p4", "p5"]


def policy_world(*levels: str) -> World:
    world = World(Policy(levels=levels))
    world.nodes("n0 n1", 2)
    world.hyper("l0", 1, "n0 n1")
    world.running("r", "n1")
    world.pods_of("a0", world.gang("a", 1, topology=soft()))
    world.pod("p")
    return world


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        (("placed", "locality", "packing"), {"n0", "n1"}),
        (("locality", "placed"), {"n1"}),
        (("packing", "placed"), {"n1"}),
        (("locality",), {"n1"}),
        (("packing",), {"n1"}),
    ],
)
def test_levels_in_another_order(levels: tuple[str, ...], expected: set[str]) -> None:
    """Locality first: only the pod that has none is placed. Packing first: only what fits beside what runs."""
    assert set(nodes(policy_world(*levels)).values()) == expected


def completed(world: World, keep: Callable[[str], bool]) -> tuple[Dense, set[str]]:
    """What ``complete`` makes of the part of the greedy's answer whose pods ``keep`` names."""
    instance = world.instance()
    dense = make_dense(instance)
    whole = dense.placement(greedy(dense))
    part = dense.solution(Placement.of((key, node) for key, node in whole.node_of.items() if keep(key.name)))
    result = complete(dense, part)
    placement = dense.placement(result)
    assert verify(instance, placement) == []
    assert all(result.get(place, 0) >= count for place, count in part.items())
    return dense, {key.name for key in placement.node_of}


def test_complete_adds_gangs_then_optional_and_lone_pods_and_moves_nothing() -> None:
    world = World()
    world.nodes("n0 n1", 4)
    world.pods_of("a0 a1 a2", world.gang("a", 2))
    world.pods_of("b0 b1", world.gang("b", 2))
    world.pod("p")
    _, names = completed(world, lambda name: name == "p")
    assert names == {"a0", "a1", "a2", "b0", "b1", "p"}


def test_values_never_fall_when_completed() -> None:
    for instance in instances():
        dense = make_dense(instance)
        if dense.criteria and dense.criteria[0][0] == "admitted":
            solution = greedy(dense)
            kept = Solution({at: count for at, count in solution.items() if dense.classes[at[0]].group % 2})
            before, after = score_solution(dense, kept), score_solution(dense, complete(dense, kept))
            pairs = [
                pair
                for pair, (name, _) in zip(zip(before, after, strict=True), dense.criteria, strict=True)
                if name == "admitted"
            ]
            assert all(mine <= theirs for mine, theirs in pairs)


# ---------------------------------------------------------------------------------------------------------- neighbours


def racks(*sizes: int) -> World:
    """Racks of nodes of 4 GPUs, which are HyperNodes, too."""
    world = World()
    for number, size in enumerate(sizes):
        names = [world.node(f"n{number}{index}", labels={"rack": f"r{number}"}) for index in range(size)]
        world.hyper(f"r{number}", 1, " ".join(names))
    return world


def test_a_gang_goes_where_those_that_must_be_near_it_find_room() -> None:
    """By itself it would go to the tightest rack, the first, which has no room for the other."""
    world = racks(1, 2)
    server = world.gang("server", 2, topology=hard(1))
    for name in ("s0", "s1"):
        world.pod(name, gang=server, labels={"app": "server"})
    client = world.gang("client", 2)
    for name in ("c0", "c1"):
        world.pod(name, gang=client, gpu=2, asks=near("rack", app="server"))
    assert {node[:2] for node in nodes(world).values()} == {"n1"}
    assert len(nodes(world)) == 4


def test_those_that_must_be_near_others_come_behind_these_and_not_behind_all() -> None:
    """There is room for four fifths of what waits; those that need another one would find none as the last."""
    world = racks(2, 2)
    for number in range(4):
        gang = world.gang(f"g{number}", 4, topology=hard(1))
        for index in range(4):
            world.pod(f"g{number}-{index}", gang=gang, labels={"app": f"g{number}"})
    client = world.gang("client", 2, topology=hard(1))
    for name in ("c0", "c1"):
        world.pod(name, gang=client, gpu=2, asks=near("rack", app="g3"))
    dense = make_dense(world.instance())
    layout = GreedyLayout(dense)
    number = {group.key.name: index for index, group in enumerate(dense.groups)}
    assert layout.behind == {number["client"]: {number["g3"]}}
    assert layout.followers == {number["g3"]: [number["client"]]}
    found = nodes(world)
    assert {"c0", "c1", "g3-0"} <= found.keys()
    assert sum(1 if name.startswith("g") else 2 for name in found) == 16
