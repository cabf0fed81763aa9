"""Knapsacks of evictions: the most that a domain gains by no more than so much in all, and the cheapest share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

#: Sums that are told apart; with more of them what is gained is only said to be no more than what it may cost.
MOST_SUMS = 2000


class Victim(NamedTuple):
    """The weight of all that goes as one, that of its part in the domain, and how many units it counts as at least."""

    weight: int
    gain: int
    units: int


def most_gained(items: Sequence[Victim], weight: int, units: int) -> int:
    """Say how much is gained at most where so much may go in all, as so many units."""
    fitting = sorted(item for item in items if item.weight <= weight and item.units <= units)
    best = {(0, 0): 0}
    for item in fitting:
        for taken, count, gain in _with(item, best):
            if taken <= weight and count <= units:
                best[taken, count] = max(best.get((taken, count), 0), gain)
        if len(best) > MOST_SUMS:
            return min(weight, sum(each.gain for each in fitting))
    return max(best.values())


def cheapest_share(pods: Mapping[tuple[int, int], int], amount: int) -> tuple[Fraction, int]:
    """The least weight whose going leaves so much, and what of it there is not.

    ``pods``: the weight of one and what it holds to how many such there are.
    """
    total = Fraction(0)
    for price, held in sorted((Fraction(weight, held), held * count) for (weight, held), count in pods.items() if held):
        if amount <= 0:
            break
        total += price * min(amount, held)
        amount -= held
    return total, amount


def _with(item: Victim, best: Mapping[tuple[int, int], int]) -> list[tuple[int, int, int]]:
    return [(taken + item.weight, count + item.units, gain + item.gain) for (taken, count), gain in best.items()]
