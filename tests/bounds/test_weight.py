"""The bound on the placed weight of all priorities: below no answer, above no proof."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

import pytest

from placer.answers.solving import solve
from placer.arrays.dense_builder import make_dense
from placer.bounds import NamedBound, weight_bound
from placer.problem import Policy
from placer.problem.placement import better
from placer.problem.result import Result, Verdict
from placer.rules.scoring import placed_weight, score
from tests.examples import seed_blocks
from tests.oracle import placements
from tests.tiny import Tiny, tiny, tiny_network
from tests.world import World

#: Of every tiny instance so many placements are looked at.
MOST = 500


def urgent_or_large(policy: Policy | None = None) -> World:
    """Either a small urgent pod fits, or a large one that is not: the best placement has the smaller weight."""
    world = World(policy)
    world.node("n0", 4)
    world.pod("urgent", gpu=1, priority=10)
    world.pod("large", gpu=4)
    return world


def test_an_optimal_answer_leaves_no_more_to_place() -> None:
    result = solve(urgent_or_large().instance(), workers=1, time_limit=600)
    assert result.verdict is Verdict.OPTIMAL
    assert result.weight.value.value == 250_000
    assert result.weight.bound is not None
    assert result.weight.bound.value == 250_000


def test_where_the_policy_leaves_placing_out_nothing_is_said_of_the_weight() -> None:
    result = solve(urgent_or_large(Policy(levels=("packing",))).instance(), method="greedy")
    assert (result.verdict, result.weight.bound) == (Verdict.OPTIMAL, None)


def test_proofs_of_single_values_are_summed() -> None:
    """Levels: admitted and placed of priority 10, then of 0; what is proved for an answer counts for its like."""
    dense = make_dense(urgent_or_large().instance())
    values = (250_000, 250_000, 0, 0)
    first = [NamedBound(criterion, 250_000, "exact", values[:criterion]) for criterion in (0, 1)]
    whole = NamedBound(None, 1_250_000, "volume")
    assert weight_bound(dense, values, [whole]) == whole
    assert weight_bound(dense, values, [*first, whole]) == whole
    # Nobody here has optional pods: what is admitted at most is placed at most.
    third = NamedBound(2, 600_000, "lp", values[:2])
    assert weight_bound(dense, values, [*first, third, whole]) == NamedBound(None, 850_000, "lp")
    # Without the proof of the first value a bound that takes it as given says nothing.
    assert weight_bound(dense, values, [first[1], third, whole]) == whole
    assert weight_bound(dense, (0, 0, 1_000_000, 1_000_000), [*first, third, whole]) == whole
    always = NamedBound(1, 250_000, "counting"), NamedBound(3, 700_000, "counting")
    assert weight_bound(dense, (), [*always, whole]) == NamedBound(None, 950_000, "counting")
    assert weight_bound(dense, values, []) is None


def _checked(case: Tiny, result: Result) -> bool:
    """Whether the answer is proved; no placement at least as good has more weight than the bound."""
    instance, bound = case.instance, result.weight.bound
    assert result.placement is not None
    mine = score(instance, result.placement)
    if bound is None:
        assert "placed" not in instance.policy.levels, case.seed
        return False
    proved = result.verdict is Verdict.OPTIMAL
    assert not proved or bound.value == result.weight.value.value, case.seed
    most = max(
        (
            placed_weight(instance, each)
            for each in islice(placements(instance), MOST)
            if not better(mine, score(instance, each))
        ),
        default=0,
    )
    assert most <= bound.value, f"seed {case.seed}: {most} > {bound}"
    return proved


@pytest.mark.parametrize("make", [tiny, tiny_network])
@pytest.mark.parametrize("seeds", seed_blocks(120, 40))
def test_no_answer_that_is_as_good_weighs_more(make: Callable[[int], Tiny], seeds: range) -> None:
    proved = 0
    for seed in seeds:
        case = make(seed)
        proved += _checked(case, solve(case.instance, method="greedy"))
    assert proved >= 6


def test_the_same_of_what_a_search_proves() -> None:
    """With several priorities, since with one there is one value to prove."""
    cases = [case for seed in range(60) if len((case := tiny(seed)).instance.priorities) > 1]
    assert len(cases) >= 10
    assert sum(_checked(case, solve(case.instance, workers=1, time_limit=600)) for case in cases[:5]) >= 4
