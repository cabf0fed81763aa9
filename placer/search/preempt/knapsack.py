"""The most that a domain gains by evictions of no more than so much in all: a knapsack of units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

__all__ = ["Victim", "most_gained"]

#: Sums that are told apart; with more of them what is gained is only said to be no more than what it may cost.
MOST_SUMS = 2000


class Victim(NamedTuple):
    """What goes as one.

    Parameters
    ----------
    weight
        Of all that goes with it, wherever it is.
    gain
        Of what of it goes in the domain.
    units
        How many units it counts as, at least.
    """

    weight: int
    gain: int
    units: int


def most_gained(items: Sequence[Victim], weight: int, units: int) -> int:
    """Say how much is gained at most.

    Parameters
    ----------
    items
        What may go.
    weight, units
        How much may go in all, and as how many units.
    """
    fitting = sorted(item for item in items if item.weight <= weight and item.units <= units)
    best = {(0, 0): 0}
    for item in fitting:
        for taken, count, gain in _with(item, best):
            if taken <= weight and count <= units:
                best[taken, count] = max(best.get((taken, count), 0), gain)
        if len(best) > MOST_SUMS:
            return min(weight, sum(each.gain for each in fitting))
    return max(best.values())


def _with(item: Victim, best: Mapping[tuple[int, int], int]) -> list[tuple[int, int, int]]:
    return [(taken + item.weight, count + item.units, gain + item.gain) for (taken, count), gain in best.items()]
