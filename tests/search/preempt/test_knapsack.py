"""The most that a domain gains by evictions of so much: what the best of all sets gains; no less where it gives up."""

from __future__ import annotations

from itertools import chain, combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placer.search.preempt import knapsack
from placer.search.preempt.knapsack import Victim, most_gained
from tests.examples import examples

items = st.lists(
    st.builds(lambda gain, more, units: Victim(gain + more, gain, units), *[st.integers(0, 9)] * 2, st.integers(0, 2)),
    max_size=8,
)


def plainly(there: list[Victim], weight: int, units: int) -> int:
    """Every set of them."""
    sets = chain.from_iterable(combinations(there, size) for size in range(len(there) + 1))
    fitting = (each for each in sets if sum(i.weight for i in each) <= weight and sum(i.units for i in each) <= units)
    return max(sum(item.gain for item in each) for each in fitting)


@given(items, st.integers(0, 40), st.integers(0, 6))
@examples(300)
def test_it_is_what_the_best_set_gains(there: list[Victim], weight: int, units: int) -> None:
    assert most_gained(there, weight, units) == plainly(there, weight, units)


@given(items, st.integers(0, 40), st.integers(0, 6))
@examples(100)
def test_with_too_many_sums_it_is_no_less(there: list[Victim], weight: int, units: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(knapsack, "MOST_SUMS", 3)
        assert most_gained(there, weight, units) >= plainly(there, weight, units)


def test_what_is_elsewhere_costs_and_gains_nothing_here() -> None:
    assert most_gained([Victim(9, 2, 1), Victim(3, 3, 1)], 9, 5) == 3
    assert most_gained([Victim(4, 4, 1), Victim(4, 4, 1)], 8, 1) == 4
