"""The linear program: bounds worked out by hand, and that no price can make one wrong.

A node has 4 GPUs, so a pod of 1 GPU weighs 250,000 micro-nodes, unless said otherwise.
"""

from __future__ import annotations

import random
from itertools import product

import numpy as np
import pytest

from placer.arrays import Solution
from placer.arrays.dense_builder import make_dense
from placer.base.deadline import Deadline
from placer.base.linear import IntegerProgram, Row, certified
from placer.bounds import NamedBound, bounds_for, lp
from placer.bounds.lp import NodeClasses, lp_bounds
from placer.bounds.standalone import Shapes
from placer.problem.placement import MAXIMISED
from placer.search.events import Event, SearchOptions
from placer.search.exact.method import search
from tests.bounds.test_standalone import two_spines
from tests.world import World, hard

QUARTER = 250_000


def told(world: World, **values: int) -> dict[tuple[str, int | None], tuple[int | None, int]]:
    """Per criterion what counting says and what the program says, for values in hand ``placed100=3`` and so on.

    None where the program was not asked or says no more.
    """
    dense = make_dense(world.instance())
    hand = tuple(values.get(f"{name}{'' if priority is None else priority}", 0) for name, priority in dense.criteria)
    name: dict[int | None, tuple[str, int | None]] = {None: ("weight", None)}
    name |= enumerate(dense.criteria)
    found: dict[tuple[str, int | None], tuple[int | None, int]] = {}
    for bound in bounds_for(dense, hand):
        criterion = name[bound.criterion]
        if criterion[0] in (*MAXIMISED, "weight"):
            found[criterion] = None, min(bound.bound, found.get(criterion, (None, bound.bound))[1])
    for bound in lp_bounds(dense, hand):
        assert bound.by == "lp"
        assert bound.context == (() if bound.criterion is None else hand[: bound.criterion])
        found[name[bound.criterion]] = bound.bound, found[name[bound.criterion]][1]
    return found


def pods(world: World, names: str, gpu: int = 1, **more: object) -> None:
    for name in names.split():
        world.pod(name, None, gpu, **more)  # type: ignore[arg-type]


def two_kinds() -> World:
    """Two nodes of 4 GPUs with label disk=ssd, two without."""
    world = World()
    for name in "ab":
        world.node(name, labels={"disk": "ssd"})
    world.nodes("c d")
    return world


# By hand


def test_selectors_share_one_kind_of_node() -> None:
    # 12 pods want the 8 GPUs of ssd nodes, 4 want any: 16 GPUs are asked and there, but 8 + 4 pods can be placed.
    world = two_kinds()
    pods(world, " ".join(f"s{i}" for i in range(12)), selector={"disk": "ssd"})
    pods(world, "p q r s")
    found = told(world)
    assert found["admitted", 0] == (12 * QUARTER, 16 * QUARTER)
    assert found["weight", None] == (12 * QUARTER, 16 * QUARTER)


def test_a_higher_priority_holds_one_kind_of_node() -> None:
    # The upper priority takes 6 of the 8 ssd GPUs; the lower one wants 8 of them and one of any: 3 are left, not 9.
    world = two_kinds()
    pods(world, "a b c d e f", selector={"disk": "ssd"}, priority=100)
    pods(world, "p q r s t u v w", selector={"disk": "ssd"}, priority=1)
    pods(world, "x", priority=1)
    found = told(world, admitted100=6 * QUARTER, placed100=6 * QUARTER)
    assert found["admitted", 1] == (3 * QUARTER, 9 * QUARTER)
    assert found["weight", None] == (9 * QUARTER, 15 * QUARTER)


def test_two_resources_at_once() -> None:
    # 8 GPUs and 8,000 milli-cpu; two pods take 4 GPUs and 1,000, two take 1 GPU and 4,000, and each weighs a node.
    # By GPUs alone 2 + 6/4 of them fit, by cpu alone as many; by both 1.6 + 1.6, that is 3 whole ones.
    world = World()
    world.nodes("a b", 4, cpu=4000)
    pods(world, "p q", 4, cpu=1000)
    pods(world, "r s", 1, cpu=4000)
    assert told(world)["admitted", 0] == (12 * QUARTER, 14 * QUARTER)


def test_each_spine_takes_one_gang() -> None:
    # Gangs of 3 whole nodes in spines of 4: two of the three, 6 nodes, where 8 are free.
    world = two_spines()
    for name in "pqr":
        world.pods_of(f"{name}1 {name}2 {name}3", world.gang(name, 3, topology=hard(2)), 4)
    assert told(world)["admitted", 0] == (24 * QUARTER, 32 * QUARTER)


def test_a_gang_of_a_lower_limit_takes_room_of_its_spine() -> None:
    # Both gangs of 3 nodes must lie in the only spine, of 4; the nodes outside of it are for others.
    world = World()
    world.nodes("a b c d e f g h")
    world.hyper("leaf", 1, "a b c")
    world.hyper("spine", 2, "leaf d")
    for name, limit in (("p", 1), ("q", 2)):
        world.pods_of(f"{name}1 {name}2 {name}3", world.gang(name, 3, topology=hard(limit)), 4)
    pods(world, "x", 4)
    assert told(world)["admitted", 0] == (16 * QUARTER, 28 * QUARTER)


def test_optional_pods_come_with_their_gang() -> None:
    # Two gangs of 6 pods, each needs 3. Where only one is admitted, no more than its 6 are placed.
    world = World()
    world.nodes("a b c")
    for name in "pq":
        world.pods_of(" ".join(f"{name}{i}" for i in range(6)), world.gang(name, 3))
    assert told(world, admitted0=3 * QUARTER)["placed", 0] == (6 * QUARTER, 12 * QUARTER)


def test_roles_and_policies_bind_what_is_ready() -> None:
    # A master of 4 GPUs and elastic workers of 1 on 8 GPUs, in two gangs that need a master and a worker each:
    # both admitted take 10 GPUs, so 1.6 gangs of 5 quarters and, by whole gangs, one.
    world = World()
    world.nodes("a b")
    for name in "pq":
        gang = world.gang(name, 2, roles={"master": 1, "worker": 1})
        world.pod(f"{name}-m", gang, 4, role="master")
        for index in range(3):
            world.pod(f"{name}-w{index}", gang, 1, role="worker")
    # admitted counts the two smallest weights of each gang: two workers.
    bound, volume = told(world)["admitted", 0]
    assert (bound, volume) == (2 * QUARTER, 3 * QUARTER + QUARTER // 5)


def test_a_queue_holds_one_of_two_gangs() -> None:
    # Both gangs of 3 GPUs fit the cluster; their queue has room for 5, and gangs come whole.
    world = World()
    world.nodes("a b")
    world.queue("tight", gpu=5)
    for name in "pq":
        world.pods_of(f"{name}1 {name}2 {name}3", world.gang(name, 3, queue="tight"))
    assert told(world)["admitted", 0] == (3 * QUARTER, 6 * QUARTER)


# What the program is asked


def test_what_counting_meets_is_not_asked() -> None:
    world = World()
    world.nodes("a b")
    pods(world, "p q")
    dense = make_dense(world.instance())
    assert list(lp_bounds(dense, (2 * QUARTER, 2 * QUARTER, 0, 0, 0, 2))) == []


def test_without_time_nothing_is_told() -> None:
    world = two_kinds()
    pods(world, " ".join(f"s{i}" for i in range(12)), selector={"disk": "ssd"})
    pods(world, "p q r s")
    dense = make_dense(world.instance())
    assert list(lp_bounds(dense, (0, 0, 0, 0, 0, 0), Deadline(0.0))) == []


def test_the_first_open_value_comes_first_and_then_the_sum() -> None:
    world = two_kinds()
    for priority in (100, 1):
        pods(world, " ".join(f"s{priority}-{i}" for i in range(9)), selector={"disk": "ssd"}, priority=priority)
        pods(world, f"x{priority}", priority=priority)
    dense = make_dense(world.instance())
    criteria = [bound.criterion for bound in lp_bounds(dense, (0,) * len(dense.criteria))]
    assert criteria == [0, None, 2]


# The program


def small(dice: random.Random) -> tuple[IntegerProgram, dict[int, int]]:
    """A program of three columns of 0 .. 3 and up to four rows, with negative coefficients and gains among others."""
    program = IntegerProgram()
    for _ in range(3):
        program.column(dice.randint(0, 3))
    for _ in range(dice.randint(0, 4)):
        program.at_most({column: dice.randint(-4, 9) for column in range(3)}, dice.randint(0, 12))
    return program, {column: dice.randint(-5, 20) for column in range(3)}


def best(program: IntegerProgram, gains: dict[int, int]) -> int:
    """Best whole point by trying all; (0, 0, 0) is one, since no row has less room."""
    return max(
        sum(gains[column] * amount for column, amount in enumerate(point))
        for point in product(*(range(upper + 1) for upper in program.upper))
        if all(
            sum(c * point[column] for column, c in zip(row.columns, row.coefficients, strict=True)) <= row.room
            for row in program.rows
        )
    )


@pytest.mark.parametrize("seed", range(100))
def test_no_prices_make_a_bound_that_is_beaten(seed: int) -> None:
    dice = random.Random(seed)
    program, gains = small(dice)
    reached = best(program, gains)
    assert program.maximum(gains).bound >= reached
    for scale in (0.0, 1e-9, 0.3, 7.0, 1e15):
        prices = [dice.uniform(-1, 1) * scale for _ in program.rows]
        assert certified(program.upper, program.rows, gains, prices) >= reached


def test_right_prices_make_the_bound_exact() -> None:
    # Maximise 3 x + 2 y, x + y <= 4, x + 3 y <= 6: x = 3 and y = 1, with prices 7/2 ... worked out: x = 4, y = 0 is 12.
    rows = [Row.of({0: 1, 1: 1}, 4), Row.of({0: 1, 1: 3}, 6)]
    assert certified([10, 10], rows, {0: 3, 1: 2}, [3.0, 0.0]) == 12
    assert certified([10, 10], rows, {0: 3, 1: 2}, [3.0 - 1e-12, 1e-13]) == 12
    # Where y counts more, both rows bind: x = 3, y = 1; prices p + q = 2 and p + 3 q = 5 give p = 1/2, q = 3/2.
    assert certified([10, 10], rows, {0: 2, 1: 5}, [0.5, 1.5]) == 11


def test_thirds_are_exact_though_floats_are_not() -> None:
    # 3 x <= 1000: x is at most 333 and a third, worth 1,000 at 3 each; a price of 0.999... would round up.
    assert certified([10**6], [Row.of({0: 3}, 1000)], {0: 1}, [1 / 3]) == 333
    assert certified([10**6], [Row.of({0: 7}, 700)], {0: 1}, [1 / 7]) == 100


def test_amounts_that_no_float_can_hold() -> None:
    # 2**60 + 1 units of room at one each; floats would say 2**60.
    assert certified([2**62], [Row.of({0: 1}, 2**60 + 1)], {0: 1}, [1.0]) == 2**60 + 1


# Node classes


def crowded(kinds: int) -> World:
    """Nodes that each have another amount of cpu, half of them with label disk=ssd.

    Pods of 3 GPUs want ssd, three for each node there is; those of 1 GPU, one for two nodes, want any; five ask for
    cpu only.
    """
    world = World()
    for index in range(kinds):
        world.node(f"n{index:03}", 4, cpu=400 + index, labels={"disk": "ssd"} if index % 2 else {})
    pods(world, " ".join(f"a{i}" for i in range(3 * kinds)), 3, cpu=300, selector={"disk": "ssd"})
    pods(world, " ".join(f"b{i}" for i in range(kinds // 2)), 1, cpu=100)
    pods(world, "c d e f g", 0, cpu=1)
    return world


@pytest.mark.parametrize("kinds", [10, 200])
def test_nodes_are_put_together_where_they_are_many(kinds: int) -> None:
    shapes = Shapes(make_dense(crowded(kinds).instance()))
    found = NodeClasses(shapes, np.arange(3))
    assert found.number == min(kinds, lp.MOST_CLASSES)
    assert set(found.of_kind.tolist()) == set(range(found.number))
    assert found.held[0].sum() == kinds // 2
    gpu = shapes.dense.resources.index("nvidia.com/gpu")
    assert found.room[:, gpu].sum() == 4 * kinds
    for where in range(found.number):
        ssd = shapes.allowed[:, found.of_kind == where].all(axis=0)
        assert ssd.all() or not ssd.any()


def test_what_is_put_together_keeps_its_pieces_and_its_selectors() -> None:
    # 100 nodes are ssd and take one pod of 3 each; the 105 others have room. Pieces in all: 200 pods of 3.
    world = crowded(200)
    others = 100 * QUARTER + 5 * make_dense(world.instance()).classes[-1].weight
    assert told(world)["admitted", 0] == (300 * QUARTER + others, 600 * QUARTER + others)


# Who asks


def test_the_exact_search_asks_once_and_believes() -> None:
    # 12 pods want the 8 GPUs of ssd nodes, 4 want any. With a hint that places 12, the model is not needed for O1.
    world = two_kinds()
    pods(world, " ".join(f"s{i}" for i in range(12)), selector={"disk": "ssd"})
    pods(world, "p q r s")
    events: list[Event] = []
    dense = make_dense(world.instance())
    names = [one.pods[0].name for one in dense.classes]
    nodes = {**{f"s{i}": "ab"[i % 2] for i in range(8)}, **dict.fromkeys("pqrs", "c")}
    hint = Solution({(names.index(pod), dense.node_index[node]): 1 for pod, node in nodes.items()})
    assert search(dense, SearchOptions(hint=hint), events.append) == "proved"
    found = [event for event in events if isinstance(event, NamedBound)]
    assert NamedBound(0, 12 * QUARTER, "lp") in found
    assert NamedBound(None, 12 * QUARTER, "lp") in found
    assert not [bound for bound in found if bound.by == "exact" and bound.criterion in (0, 1)]
