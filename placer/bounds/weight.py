"""What the proofs of single values say of the placed weight of all priorities together.

Meant are the placements that are at least as good as the answer in hand in the order of the objective, every best one
among them: a placement that is worse there may weigh more (one large job of low priority for a small urgent one) and is
no answer. Each of them equals the answer on the values that are proved, from the first on, and keeps the bound of the
first that is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from placer.bounds.facts import facts_of
from placer.bounds.named import NamedBound
from placer.dense import Dense
from placer.placement import MAXIMISED

__all__ = ["weight_bound"]


def weight_bound(dense: Dense, values: Sequence[int], bounds: Iterable[NamedBound]) -> NamedBound | None:
    """Bound the placed weight of every placement that is at least as good as the answer in hand.

    Parameters
    ----------
    dense
        The instance.
    values
        Of the answer in hand, one per level; empty where there is none: then of every placement.
    bounds
        All that were proved, whatever answer they were proved for.

    Returns
    -------
    NamedBound
        The least of what is proved of the sum itself and the sum of what is proved of ``placed`` of each priority. It
        bears the name of the argument, of several that of the last. None where nothing is proved of some priority, and
        where ``placed`` is no level: the weight decides nothing there.
    """
    known = _Known(dense, values, tuple(bounds))
    placed = [level for level, (name, _) in enumerate(dense.levels) if name == "placed"]
    parts = [part for level in placed if (part := known.placed(level)) is not None]
    found = [bound for bound in known.bounds if bound.level is None] if placed else []
    if parts and len(parts) == len(placed):
        found.insert(0, NamedBound(None, sum(part.bound for part in parts), parts[-1].by))
    return min(found, key=lambda bound: bound.bound, default=None)


class _Known:
    """Bounds level by level, as far as they hold for all placements that are at least as good as the answer."""

    def __init__(self, dense: Dense, values: Sequence[int], bounds: tuple[NamedBound, ...]) -> None:
        self.dense, self.values, self.bounds = dense, tuple(values), bounds
        self.elastic = facts_of(dense).elastic if bounds else frozenset[int]()
        #: How many values, from the first on, every one of these placements has in common with the answer.
        self.proved = 0
        while self.proved < len(self.values) and self._met(self.proved):
            self.proved += 1

    def _met(self, level: int) -> bool:
        best = self.best(level)
        return best is not None and best.bound == self.values[level]

    def best(self, level: int) -> NamedBound | None:
        """Best bound of a value; one that was proved for an answer counts where all values before it are proved."""
        contexts = [()] if level > self.proved else [(), self.values[:level]]
        found = [bound for bound in self.bounds if bound.level == level and bound.context in contexts]
        sign = 1 if self.dense.levels[level][0] in MAXIMISED else -1
        return min(found, key=lambda bound: sign * bound.bound, default=None)

    def placed(self, level: int) -> NamedBound | None:
        """Best bound of ``placed`` of a priority; without optional pods there is no more than ``admitted`` counts."""
        priority = self.dense.levels[level][1]
        found = [self.best(level)]
        if priority not in self.elastic:
            found.append(self.best(self.dense.levels.index(("admitted", priority))))
        return min((bound for bound in found if bound is not None), key=lambda bound: bound.bound, default=None)
