"""Random draws that are the same on every machine and Python version: only ``random.Random.random`` is promised to
be.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import TypeVar

__all__ = ["RandomSource"]

T = TypeVar("T")


class RandomSource:
    """Streams of different purposes are independent, so an option that changes the names of jobs does not change their
    sizes.

    Examples
    --------
    >>> RandomSource(1, "names").shuffled("abcd") == RandomSource(1, "names").shuffled("abcd")
    True
    """

    def __init__(self, seed: int, purpose: str) -> None:
        self._random = random.Random(f"{seed}/{purpose}").random

    def below(self, limit: int) -> int:
        """Draw an integer of ``0 .. limit - 1``; ``limit`` is at least 1."""
        return int(self._random() * limit)

    def chance(self, share: float) -> bool:
        """Say yes with probability ``share``."""
        return self._random() < share

    def between(self, low: float, high: float) -> float:
        """Draw a number evenly from ``low`` to ``high``."""
        return low + (high - low) * self._random()

    def log_between(self, low: float, high: float) -> float:
        """Draw a number from ``low`` to ``high`` (both above 0), each factor of two equally likely."""
        return low * math.exp(self._random() * math.log(high / low))

    def pick(self, values: Sequence[T]) -> T:
        """Draw one of ``values``, which is not empty."""
        return values[self.below(len(values))]

    def weighted(self, values: Sequence[T], weights: Sequence[float]) -> T:
        """Draw one of ``values`` with probability in proportion to its weight; the sum of the weights is above 0."""
        mark = self._random() * sum(weights)
        for value, weight in zip(values, weights, strict=True):
            mark -= weight
            if mark < 0:
                return value
        return next(value for value, weight in zip(reversed(values), reversed(weights), strict=True) if weight > 0)

    def shuffled(self, values: Sequence[T]) -> list[T]:
        """Return the values in random order (Fisher and Yates)."""
        order = list(values)
        for last in range(len(order) - 1, 0, -1):
            other = self.below(last + 1)
            order[last], order[other] = order[other], order[last]
        return order

    def summands(self, total: int, sizes: Sequence[int], reach: Sequence[bool]) -> list[int]:
        """Draw sizes one after another that sum to ``total``; ``reach`` is
        :func:`~placer.lab.generate.options.whole` of the sizes.
        """
        drawn: list[int] = []
        while total:
            drawn.append(self.pick([size for size in sizes if size <= total and reach[total - size]]))
            total -= drawn[-1]
        return drawn
