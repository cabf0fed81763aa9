"""Bounds that take the values before as given, by counting alone.

Where the values of higher priorities are known, what they must take is gone for the others. Where every pod that can be
placed is placed, :mod:`placer.bounds.everything` bounds the values that are minimised.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from placer.bounds.facts import Facts
from placer.bounds.named import NamedBound

__all__ = ["given_bounds", "placed_before"]


def placed_before(levels: Sequence[tuple[str, int | None]], values: Sequence[int]) -> dict[int, int]:
    """Placed weight per priority, as far as the values before a level tell it."""
    told = zip(levels, values, strict=False)
    return {priority: value for (name, priority), value in told if name == "placed" and priority is not None}


def given_bounds(facts: Facts, values: Sequence[int]) -> Iterator[NamedBound]:
    """Those that say more than what holds for every placement, level by level.

    Parameters
    ----------
    facts
        The instance.
    values
        Of the answer in hand, one per level.
    """
    dense = facts.dense
    priorities = {group.priority for group in dense.groups}
    seen: set[int] = set()
    for level, (name, priority) in enumerate(dense.levels):
        before = tuple(values[:level])
        if priority is not None:
            yield from _left(facts, level, before)
            yield from _whole(facts, level, before)
            if name == "placed" and values[level] == facts.asked.get(priority, 0):
                seen.add(priority)
        elif name in facts.everything.makers and seen >= priorities:
            yield NamedBound(level, facts.everything.least(name), "counting", before)


def _left(facts: Facts, level: int, before: tuple[int, ...]) -> Iterator[NamedBound]:
    """What other priorities hold in the values before is gone."""
    name, priority = facts.dense.levels[level]
    reached = placed_before(facts.dense.levels, before)
    if priority is not None and any(reached.values()):
        most = facts.volume.admitted if name == "admitted" else facts.volume.placed
        bound, by = most(priority, reached)
        if bound < most(priority, {})[0]:
            yield NamedBound(level, bound, by, before)


def _whole(facts: Facts, level: int, before: tuple[int, ...]) -> Iterator[NamedBound]:
    """Where no group of the priority can have optional pods, no more is placed than is admitted."""
    name, priority = facts.dense.levels[level]
    follows = name == "placed" and level and facts.dense.levels[level - 1] == ("admitted", priority)
    if follows and priority not in facts.elastic:
        yield NamedBound(level, before[-1], "counting", before)
