"""A median and how sure it is: an interval by order statistics, exact whatever the figures are spread like."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import comb
from statistics import median

__all__ = ["CONFIDENCE", "Median", "median_of"]

#: How sure an interval is to hold the median, where there are figures enough.
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Median:
    """The middle of some figures, and an interval for the median of what they are drawn from.

    Parameters
    ----------
    value
        Of the figures.
    low, high
        Ends of the interval; both are figures.
    confidence
        With this probability an interval made so holds the median of what the figures are drawn from, one independent
        of the other: at least :data:`CONFIDENCE` from six figures on; of fewer, whose interval is all of them, less; 0
        of one.
    """

    value: float
    low: float
    high: float
    confidence: float


def median_of(figures: Iterable[float]) -> Median | None:
    """Take the median; None of nothing.

    The interval goes from the k-th smallest to the k-th largest figure with the largest k that is sure enough: the
    median is outside where fewer than k of n figures are below it, or above it, and each figure is either with
    probability 1/2 (a binomial tail, so that nothing is assumed of how figures are spread).

    Examples
    --------
    >>> median_of([3.0, 1.0, 2.0, 5.0, 4.0, 6.0])
    Median(value=3.5, low=1.0, high=6.0, confidence=0.96875)
    """
    found = sorted(figures)
    if not found:
        return None
    count, place = len(found), 1
    while 2 * (place + 1) <= count and _confidence(count, place + 1) >= CONFIDENCE:
        place += 1
    return Median(median(found), found[place - 1], found[count - place], _confidence(count, place))


def _confidence(count: int, place: int) -> float:
    """Of the interval from the ``place``-th smallest to the ``place``-th largest of ``count`` figures."""
    return 1 - 2 * sum(comb(count, below) for below in range(place)) / (1 << count)
