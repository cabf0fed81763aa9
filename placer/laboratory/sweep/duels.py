"""Who does better than whom: every two policies on the same instances and seeds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

from placer.laboratory.sweep.line import Line
from placer.placement import Score, Value, better

__all__ = ["Duel", "duels"]


@dataclass(frozen=True, slots=True)
class Duel:
    """Two policies over all instances and seeds that both were run on, by the objective, value after value.

    A placement that breaks a rule loses against one that breaks none. Nothing is decided where both break rules, or
    where a run failed.

    Parameters
    ----------
    first, second
        The two policies.
    wins, losses, ties
        How often the first one does better, worse, just as well.
    open
        How often nothing is decided.
    """

    first: str
    second: str
    wins: int
    losses: int
    ties: int
    open: int


def duels(lines: Iterable[Line]) -> list[Duel]:
    """Let every two policies compete, in the order in which they first come."""
    by_policy: dict[str, dict[tuple[str, int], Line]] = {}
    for line in lines:
        by_policy.setdefault(line.policy, {})[line.instance, line.seed] = line
    return [_duel(first, second, by_policy[first], by_policy[second]) for first, second in combinations(by_policy, 2)]


def _duel(first: str, second: str, one: dict[tuple[str, int], Line], other: dict[tuple[str, int], Line]) -> Duel:
    ends = [_end(one[what], other[what]) for what in one if what in other]
    return Duel(first, second, ends.count(1), ends.count(-1), ends.count(0), ends.count(None))


def _end(one: Line, other: Line) -> int | None:
    """1: the one does better; -1: the other does; 0: they do as well; None: nothing is decided."""
    if one.error is not None or other.error is not None or (one.violations and other.violations):
        return None
    if one.violations or other.violations:
        return -1 if one.violations else 1
    mine, theirs = _score(one), _score(other)
    return better(mine, theirs) - better(theirs, mine)


def _score(line: Line) -> Score:
    return tuple(Value(each.name, each.value, each.priority) for each in line.objective)
