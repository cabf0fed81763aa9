"""Bounds by linear programming, value after value."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence

from placer.bounds.counting import bounds_for
from placer.bounds.facts import facts_of
from placer.bounds.lp.cuts import Cuts
from placer.bounds.lp.relaxation import Relaxation
from placer.bounds.named import NamedBound
from placer.dense import Dense
from placer.linear import Row

__all__ = ["lp_bounds"]

#: Values that the program can express.
KNOWN = ("admitted", "placed")

#: Rows are added as long as they lower the bound by this share at least once in PATIENCE rounds.
WORTH, PATIENCE = 1e-5, 3


def lp_bounds(dense: Dense, values: Sequence[int], seconds: float = math.inf) -> Iterator[NamedBound]:
    """Bounds on the values of O1 and on the placed weight, by a linear program over shapes and node classes.

    Parameters
    ----------
    dense
        The instance.
    values
        Of the answer in hand, one per level.
    seconds
        After so long nothing more is begun, and the solver is stopped.

    Yields
    ------
    NamedBound
        Named ``lp``, each as soon as it is known, better ones later: for the first value of O1 that no other bound
        meets, for the sum over all priorities (level None, no context), then for each later value of O1 that is not
        met, given the values in hand before it. Only what says more than :func:`placer.bounds.bounds_for`.
    """
    yield from _Search(dense, values, seconds).bounds()


class _Search:
    def __init__(self, dense: Dense, values: Sequence[int], seconds: float) -> None:
        self.dense, self.values = dense, tuple(values)
        self.end = time.monotonic() + seconds
        self.known: dict[int | None, int] = {}
        for bound in bounds_for(dense, values):
            self.known[bound.level] = min(self.known.get(bound.level, bound.bound), bound.bound)

    def bounds(self) -> Iterator[NamedBound]:
        levels = self._open()
        if levels and time.monotonic() < self.end:
            self.relaxation = Relaxation(facts_of(self.dense).alone)
            self.cuts = Cuts(self.relaxation)
            for level in levels:
                yield from self._level(level)

    def _open(self) -> list[int | None]:
        """What is not met: the first value, then the sum, then the other values."""
        found: list[int | None] = [
            level
            for level, (name, _) in enumerate(self.dense.levels)
            if name in KNOWN and self.known[level] > self.values[level]
        ]
        placed = sum(value for (name, _), value in zip(self.dense.levels, self.values, strict=True) if name == "placed")
        if self.known[None] > placed:
            found.insert(1, None)
        return found

    def _level(self, level: int | None) -> Iterator[NamedBound]:
        """Solve, cut off, solve again."""
        name, priority = ("placed", None) if level is None else self.dense.levels[level]
        context = () if level is None else self.values[:level]
        gains = self.relaxation.value(name, priority)
        unit = math.gcd(*gains.values()) or 1  # a value is a sum of gains
        extra, best, last, patience = self._context(context), self.known[level], math.inf, PATIENCE
        while patience and (left := self.end - time.monotonic()) > 0:
            answer = self.relaxation.program.maximum(gains, extra, left)
            bound = answer.bound // unit * unit
            patience = PATIENCE if bound < last * (1 - WORTH) else patience - 1
            last = min(last, bound)
            if bound < best:
                best = bound
                yield NamedBound(level, bound, "lp", context)
            if answer.point is None or (level is not None and best <= self.values[level]):
                return
            rows = self.cuts.broken(answer.point)
            if not rows:
                return
            self.relaxation.program.rows += rows

    def _context(self, before: Sequence[int]) -> list[Row]:
        """Rows that hold the values before as they are."""
        rows = []
        for (name, priority), value in zip(self.dense.levels, before, strict=False):
            if name in KNOWN:
                terms = self.relaxation.value(name, priority)
                rows.append(Row.of(terms, value))
                rows.append(Row.of({column: -gain for column, gain in terms.items()}, -value))
        return rows
