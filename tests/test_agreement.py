"""Trying everything and every method find the same optimum, value by value, on seeded tiny instances."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import islice, product

import pytest

from placer.answers.solving import solve
from placer.arrays import score_solution
from placer.arrays.dense_builder import make_dense
from placer.bounds import NamedBound
from placer.problem import Instance
from placer.problem.placement import MAXIMISED, Placement, Score, better
from placer.problem.result import Verdict
from placer.rules import RULES
from placer.rules.scoring import score
from tests.examples import seed_blocks
from tests.oracle import best, holds, placements
from tests.shrink import describe, shrink
from tests.solving import solve_tiny
from tests.tiny import Tiny, tiny, tiny_network
from tests.tiny_neighbours import tiny_neighbours
from tests.tiny_numa import tiny_numa

#: Makes the instance of a seed.
Make = Callable[[int], Tiny]

#: 2,000 instances over all makers.
blocks = pytest.mark.parametrize("seeds", seed_blocks(500, 20))
makers = pytest.mark.parametrize(
    "make", [tiny, tiny_network, tiny_numa, tiny_neighbours], ids=lambda make: str(make.__name__)
)


@cache
def optimum(make: Make, seed: int) -> Score:
    return best(make(seed).instance)[0]


def _check(make: Make, seeds: range, complaint: Callable[[Instance, Score], str]) -> None:
    """Fail with the smallest instance that still shows what is wrong."""
    for seed in seeds:
        if complaint(make(seed).instance, optimum(make, seed)):
            small = shrink(make(seed).instance, lambda instance: bool(complaint(instance, best(instance)[0])))
            pytest.fail(f"seed {seed}, shrunk: {complaint(small, best(small)[0])}\n{describe(small)}")


def _beaten(bounds: tuple[NamedBound, ...], values: Score) -> list[NamedBound]:
    """Bounds that hold for the optimum and are beaten by it."""
    reached = tuple(value.value for value in values)
    found = []
    for bound in bounds:
        if bound.criterion is not None and bound.context in ((), reached[: bound.criterion]):
            value = values[bound.criterion]
            beaten = value.value > bound.bound if value.name in MAXIMISED else value.value < bound.bound
            found += [bound] if beaten else []
    return found


def disagreement(method: str, solver: str = "HiGHS") -> Callable[[Instance, Score], str]:
    """What is wrong with a method that claims the optimum and proves it."""

    def complaint(instance: Instance, most: Score) -> str:
        try:
            solved = solve_tiny(instance, method, solver)
        except (AssertionError, RuntimeError) as error:  # it broke a rule, found nothing, or contradicts itself
            return f"{method}: {error}"
        if solved.score != most:
            return f"{method} found {solved.score} by {solved.placement}, there is {most}"
        if not solved.proved:
            return f"{method} did not prove {most}"
        beaten = _beaten(solved.bounds, most)
        return f"bounds of {method} that {most} beats: {beaten}" if beaten else ""

    return complaint


@makers
@pytest.mark.parametrize("method", ["exact", "milp", "decomposed"])
@blocks
def test_the_optimum_is_found_and_proved(make: Make, seeds: range, method: str) -> None:
    """``milp`` hands the rows of ``exact`` to solvers of another kind: what both prove is not the fault of one."""
    _check(make, seeds, disagreement(method))


@makers
@pytest.mark.parametrize("seeds", seed_blocks(80, 20))
def test_the_milp_does_so_with_cbc(make: Make, seeds: range) -> None:
    _check(make, seeds, disagreement("milp", "COIN_CMD"))


@makers
@blocks
def test_a_first_answer_is_valid_and_maximal_and_no_bound_is_beaten(make: Make, seeds: range) -> None:
    def complaint(instance: Instance, most: Score) -> str:
        solved = solve_tiny(instance, "greedy")
        if better(solved.score, most):
            return f"greedy found {solved.score}, but trying everything only {most}"
        beaten = _beaten(solved.bounds, most)
        if beaten:
            return f"bounds of greedy that {most} beats: {beaten}"
        more = _addable(instance, solved.placement) if instance.policy.levels[0] == "placed" else None
        return f"greedy left out {more}" if more else ""

    _check(make, seeds, complaint)


def _addable(instance: Instance, placement: Placement) -> Placement | None:
    """A placement with more pods of one group, nothing moved; None where there is none."""
    rules = [rule for name, rule in RULES if name not in instance.policy.rules_off]
    for group in instance.groups.values():
        left = [key for key in group.pending if key not in placement.node_of]
        for nodes in product([*instance.nodes, None], repeat=len(left)):
            added = {key: node for key, node in zip(left, nodes, strict=True) if node is not None}
            grown = Placement.of({**placement.node_of, **added})
            if added and holds(instance, grown, rules):
                return grown
    return None


@makers
@blocks
def test_arrays_value_a_placement_as_names_do(make: Make, seeds: range) -> None:
    def complaint(instance: Instance, most: Score) -> str:
        dense = make_dense(instance)
        for placement in islice(placements(instance), 100):
            by_name = score(instance, placement)
            by_index = score_solution(dense, dense.solution(placement))
            if tuple(value.value for value in by_name) != tuple(by_index):
                return f"{by_index} is not {by_name} for {placement}"
        return ""

    _check(make, seeds, complaint)


@makers
@pytest.mark.parametrize(("seed", "method"), [(3, "auto"), (62, "auto"), (117, "auto"), (3, "milp"), (62, "milp")])
def test_the_whole_assembly_agrees(make: Make, seed: int, method: str) -> None:
    """Through the process that users go through: greedy, a search in a process of its own, verified, judged."""
    result = solve(make(seed).instance, method=method, workers=1, time_limit=600)
    assert tuple(judged.value for judged in result.objective) == optimum(make, seed)
    assert result.verdict is Verdict.OPTIMAL
