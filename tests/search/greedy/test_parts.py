"""Parts of the greedy that are easy to get subtly wrong: room kept up to date, what a gang needs, choice of nodes."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from placer.arrays import Dense
from placer.arrays.dense_builder import make_dense
from placer.arrays.model import ready
from placer.problem import SubGroupPolicy
from placer.search.greedy.best_fit import choose
from placer.search.greedy.state import GreedyLayout, GreedyState, least
from tests.tiny import tiny
from tests.world import World


def room_of(dense: Dense, state: GreedyState, index: int) -> list[int]:
    """How many pods of a class fit on each node, counted anew."""
    counts = dense.fits(index, state.free).tolist()
    ports = dense.classes[index].host_ports
    for node, taken in state.ports.items():
        if any(mine.clashes(other) for mine in ports for other in taken):
            counts[node] = 0
    return counts


@pytest.mark.parametrize("seed", range(40))
def test_room_is_kept_up_to_date_through_taking_and_undoing(seed: int) -> None:
    dense, random = make_dense(tiny(seed).instance), Random(seed)
    if not dense.classes:
        return
    layout = GreedyLayout(dense)
    state = GreedyState(layout)
    marks = [state.mark()]
    for _ in range(30):
        index = random.randrange(len(dense.classes))
        fit = state.fits(layout.shape_of[index])
        size = dense.classes[index].size
        assert np.minimum(fit, size).tolist() == room_of(dense, state, index)
        assert (state.has_room(layout.shape_of[index]) == (fit > 0)).all()
        places = np.flatnonzero(fit)
        if random.random() < 0.3:
            state.undo(marks.pop() if len(marks) > 1 else marks[0])
        elif len(places) and state.left(index):
            marks.append(state.mark())
            state.take(index, [int(random.choice(places))], [1])
    state.undo(0)
    assert (state.free == dense.free).all()
    assert (state.used == dense.node_used).all()
    assert state.solution() == {}
    assert not any(state.placed)
    assert state.queue_room == [row.room for row in dense.queue_rows]


def choices(dense: Dense, group: int) -> list[dict[int, int]]:
    """Every choice of pods per class that makes the group ready, with no subgroup below its size."""
    found: list[dict[int, int]] = [{}]
    for index in dense.groups[group].classes:
        found = [{**choice, index: count} for choice in found for count in range(dense.classes[index].size + 1)]

    def whole(choice: dict[int, int]) -> bool:
        parts = (dense.sub_groups[sub] for sub in dense.groups[group].sub_groups)
        return all(not 0 < sum(choice[index] for index in part.classes) < part.short for part in parts)

    return [choice for choice in found if ready(dense, group, choice) and whole(choice)]


@pytest.mark.parametrize("seed", range(150))
def test_what_a_gang_needs_makes_it_ready_and_is_there_if_anything_is(seed: int) -> None:
    dense = make_dense(tiny(seed).instance)
    layout = GreedyLayout(dense)
    for group, gang in enumerate(dense.groups):
        possible = choices(dense, group)
        blocks = layout.needed(group)
        assert (blocks is not None) == bool(possible)
        if blocks is not None:
            chosen = dict.fromkeys(gang.classes, 0) | {index: count for block in blocks for index, count in block.items}
            assert chosen in possible
            all_of = sum(dense.classes[index].size for index in gang.classes)
            assert layout.elastic(group) == any(sum(choice.values()) < all_of for choice in possible)


def test_pods_that_a_subgroup_makes_superfluous_are_given_back() -> None:
    """Two of three are needed: the subgroup of two alone, not a loose pod and the whole subgroup."""
    world = World()
    world.node("n0", 8)
    gang = world.gang("g", 2, policies=[SubGroupPolicy("w", 2)])
    world.pod("loose", gang, 2)
    world.pods_of("a b", gang, 2, part="x")
    dense = make_dense(world.instance())
    layout = GreedyLayout(dense)
    blocks = least(dense, dense.groups[0], layout.class_prices, {})
    assert blocks is not None
    assert [(block.sub_group, block.pods) for block in blocks] == [(0, 2)]
    assert sum(block.pods for block in layout.whole(0)) == 3


def state_of(free: list[int], leaves: str = "") -> GreedyState:
    """Nodes n0, n1, ... with so many GPUs, and a pending gang of a hundred pods of one GPU each."""
    world = World()
    for index, gpu in enumerate(free):
        world.node(f"n{index}", gpu)
    for index, members in enumerate(leaves.split(";") if leaves else ()):
        world.hyper(f"l{index}", 1, members)
    world.pods_of(" ".join(f"p{index:02}" for index in range(100)), world.gang("g", 1))
    return GreedyState(GreedyLayout(make_dense(world.instance())))


def test_nodes_that_are_filled_go_first_and_the_rest_fits_best() -> None:
    state = state_of([8, 3, 5, 4])
    assert choose(state, 0, 12, (0, 4)) == ([0, 3], [8, 4])
    assert choose(state, 0, 10, (0, 4)) == ([0, 1], [8, 2])
    assert choose(state, 0, 4, (0, 4)) == ([3], [4])
    assert choose(state, 0, 21, (0, 4)) is None
    assert choose(state, 0, 20, (0, 4)) == ([0, 2, 3, 1], [8, 5, 4, 3])


def test_few_leaves_the_roomiest_first_then_the_tightest_for_the_rest() -> None:
    state = state_of([4, 4, 2, 2, 1, 1], "n0 n1;n2 n3;n4 n5")
    chosen = choose(state, 0, 10, (0, 6), leaves=())
    assert chosen is not None
    assert dict(zip(*chosen, strict=True)) == {0: 4, 1: 4, 4: 1, 5: 1}
    chosen = choose(state, 0, 4, (0, 6), leaves=())
    assert chosen is not None
    assert set(chosen[0]) == {2, 3}
