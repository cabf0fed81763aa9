"""No placement beats a bound: every valid placement of seeded tiny instances, and those planted into larger ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from itertools import islice
from random import Random

import pytest

from placer.arrays import Dense, score_solution
from placer.arrays.dense_builder import make_dense
from placer.bounds import NamedBound, bounds_for, lp
from placer.bounds.lp import lp_bounds
from placer.bounds.standalone import StandaloneLimits
from placer.kube.manifests import from_documents, validate
from placer.lab.generate import ClosOptions, Generated, PlantedOptions, clos, planted
from placer.problem.instance_builder import make_instance
from placer.problem.placement import MAXIMISED, Placement
from placer.search.greedy.multi_start import greedy
from tests.examples import exhaustive, seed_blocks
from tests.oracle import placements
from tests.tiny import Tiny, tiny
from tests.tiny_neighbours import tiny_neighbours

blocks = pytest.mark.parametrize("seeds", seed_blocks(500, 50, quick=1))

#: Of every tiny instance so many placements are looked at.
MOST = 1500


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the program know no other bound, so that it tells one for every value of O1."""

    def none(dense: Dense, _: Sequence[int]) -> list[NamedBound]:
        return [NamedBound(criterion, 10**18, "none") for criterion in (*range(len(dense.criteria)), None)]

    monkeypatch.setattr(lp, "bounds_for", none)


def weight(dense: Dense, values: tuple[int, ...]) -> int:
    return sum(value for (name, _), value in zip(dense.criteria, values, strict=True) if name == "placed")


def beaten(dense: Dense, bound: NamedBound, values: tuple[int, ...]) -> bool:
    """Whether a placement of these values is better than a bound that holds for it."""
    if bound.criterion is None:
        return "placed" in dict(dense.criteria) and weight(dense, values) > bound.bound
    if bound.context not in ((), values[: bound.criterion]):
        return False
    value = values[bound.criterion]
    return value > bound.bound if dense.criteria[bound.criterion][0] in MAXIMISED else value < bound.bound


@cache
def known(seed: int, make: Callable[[int], Tiny] = tiny) -> tuple[Dense, tuple[tuple[int, ...], ...], dict[int, int]]:
    """A tiny instance, the values of its placements, and the most pods of each class that one of them has."""
    instance = make(seed).instance
    dense = make_dense(instance)
    values: dict[tuple[int, ...], None] = {}
    most: Counter[int] = Counter()
    for placement in islice(placements(instance), MOST):
        solution = dense.solution(placement)
        values[score_solution(dense, solution)] = None
        count: Counter[int] = Counter()
        for (index, _), pods in solution.items():
            count[index] += pods
        most |= count
    return dense, tuple(values), most


def hands(dense: Dense, values: tuple[tuple[int, ...], ...], seed: int) -> list[tuple[int, ...]]:
    """Values to have in hand: the best, those of nothing new, and some others."""
    signs = [-1 if name in MAXIMISED else 1 for name, _ in dense.criteria]
    best = min(values, key=lambda found: [sign * value for sign, value in zip(signs, found, strict=True)])
    others = Random(seed).sample(values, min(3, len(values)))
    return list(dict.fromkeys([best, score_solution(dense, {}), *others]))


worlds = pytest.mark.parametrize("make", [tiny, tiny_neighbours])


@worlds
@blocks
def test_nothing_is_placed_that_cannot_stand_alone(seeds: range, make: Callable[[int], Tiny]) -> None:
    for seed in seeds:
        dense, _, most = known(seed, make)
        sizes = StandaloneLimits(dense).sizes
        assert all(count <= sizes[index] for index, count in most.items()), seed


@worlds
@blocks
def test_no_placement_beats_what_counting_says(seeds: range, make: Callable[[int], Tiny]) -> None:
    for seed in seeds:
        dense, values, _ = known(seed, make)
        for hand in hands(dense, values, seed):
            for bound in bounds_for(dense, hand):
                assert not [found for found in values if beaten(dense, bound, found)], (seed, bound)


@blocks
@pytest.mark.usefixtures("alone")
def test_no_placement_beats_what_the_program_says(seeds: range) -> None:
    for seed in seeds:
        dense, values, _ = known(seed)
        for hand in hands(dense, values, seed):
            told = list(lp_bounds(dense, hand))
            assert {bound.criterion for bound in told} == {None, *_of_o1(dense)}
            for bound in told:
                assert not [found for found in values if beaten(dense, bound, found)], (seed, bound)


def _of_o1(dense: Dense) -> list[int]:
    return [criterion for criterion, (name, _) in enumerate(dense.criteria) if name in MAXIMISED]


@pytest.mark.usefixtures("alone")
def test_nor_where_all_nodes_are_one_class(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lp, "MOST_CLASSES", 1)
    for seed in range(50):
        dense, values, _ = known(seed)
        for bound in lp_bounds(dense, score_solution(dense, {})):
            assert not [found for found in values if beaten(dense, bound, found)], (seed, bound)


@pytest.mark.usefixtures("alone")
def test_the_program_is_often_exact() -> None:
    """With the best values in hand: else the tests above could not fail."""
    exact = total = 0
    for seed in range(50):
        dense, values, _ = known(seed)
        hand = hands(dense, values, seed)[0]
        best: dict[int, int] = {}
        for bound in lp_bounds(dense, hand):
            if bound.criterion is not None:
                best[bound.criterion] = bound.bound
        exact += sum(bound == hand[criterion] for criterion, bound in best.items())
        total += len(best)
    assert exact > 0.9 * total


# Larger ones, of which one good placement is known

MIX = {"nodes": 48, "pod_sizes": (1, 2, 4, 8), "soft": 0.1}
PLANTED = {
    "whole": PlantedOptions(nodes=48, soft=0.0),
    "mixed": PlantedOptions(**MIX),  # type: ignore[arg-type]
    "subgroups": PlantedOptions(**MIX, subgroups=0.8, subgroup_sizes=(2, 3, 5), tight=0.5),  # type: ignore[arg-type]
    "types": PlantedOptions(**MIX, node_types=3, uneven=0.3),  # type: ignore[arg-type]
    "elastic": PlantedOptions(**MIX, elastic=0.6, roles=0.5, priorities=3),  # type: ignore[arg-type]
    "queues": PlantedOptions(**MIX, queues=3, overfull=0.4, priorities=2),  # type: ignore[arg-type]
    "running": PlantedOptions(**MIX, running=0.4, overfull=0.5, node_types=2, uneven=0.2),  # type: ignore[arg-type]
    "anchored": PlantedOptions(**MIX, anchored=0.5, elastic=0.4, subgroups=0.5, overfull=0.3),  # type: ignore[arg-type]
}


def made(found: Generated) -> tuple[Dense, list[tuple[int, ...]]]:
    """The arrays of a generated instance; values of what was planted and of the greedy's answer."""
    instance = make_instance(validate(from_documents(found.documents)))
    dense = make_dense(instance)
    solutions = [greedy(dense)]
    if found.planted is not None:
        solutions.append(dense.solution(Placement.of(found.planted)))
    sizes = StandaloneLimits(dense).sizes
    for solution in solutions:
        count: Counter[int] = Counter()
        for (index, _), pods in solution.items():
            count[index] += pods
        assert all(pods <= sizes[index] for index, pods in count.items())
    return dense, [score_solution(dense, solution) for solution in solutions]


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("seed", [0, *exhaustive(1, 2)])
@pytest.mark.parametrize("shape", PLANTED)
def test_what_is_planted_beats_no_bound(shape: str, seed: int) -> None:
    dense, values = made(planted(replace(PLANTED[shape], seed=seed)))
    for hand in values:
        for bound in (*bounds_for(dense, hand), *lp_bounds(dense, hand)):
            assert not [found for found in values if beaten(dense, bound, found)], bound


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("seed", [0, *exhaustive(1, 2, 3)])
def test_what_the_greedy_places_beside_running_jobs_beats_no_bound(seed: int) -> None:
    options = ClosOptions(
        load=0.5, queue=1.5, leaf_size=4, pod_sizes=(1, 2, 4), subgroups=0.5, elastic=0.3, priorities=3, soft=0.0
    )
    dense, values = made(clos(replace(options, seed=seed)))
    for bound in (*bounds_for(dense, values[0]), *lp_bounds(dense, values[0])):
        assert not beaten(dense, bound, values[0]), bound
