"""Things put together by what they have in common."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

Thing = TypeVar("Thing")
Signature = TypeVar("Signature", bound=Hashable)


def grouped(things: Iterable[Thing], signature: Callable[[Thing], Signature]) -> dict[Signature, list[Thing]]:
    """Put things of equal signature together, in the order in which they come.

    Examples
    --------
    >>> grouped(["fox", "bear", "owl"], len)
    {3: ['fox', 'owl'], 4: ['bear']}
    """
    found: dict[Signature, list[Thing]] = {}
    for thing in things:
        found.setdefault(signature(thing), []).append(thing)
    return found


def slots_of(entries: Iterable[tuple[Thing, Signature, int]]) -> defaultdict[Signature, list[Thing]]:
    """Key to its things, each as often as it is counted.

    Examples
    --------
    >>> dict(slots_of([(7, "a", 2), (7, "b", 1), (9, "a", 1)]))
    {'a': [7, 7, 9], 'b': [7]}
    """
    found: defaultdict[Signature, list[Thing]] = defaultdict(list)
    for thing, key, count in entries:
        found[key] += [thing] * count
    return found
