"""In which orders a kubelet admits a set of pods: in any, by creation time, only in some, in none (C10).

What the kubelet takes depends on what came before, so pods that fit together may still be refused. The kubelet sorts
pods that reach it together by creation time, and pods created in the same second come in any order among themselves.
So an order that always works is better than one that works by creation time, and that is better than one that works
only if each pod is bound after the kubelet's answer to the one before.

Equal pods are counted and not named, and the zones' room tells all that matters of what came before; so a handful of
pods has few situations, and all of them are looked at. :data:`LIMIT` bounds that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import groupby

from placer.instance.numa.kubelet import Kubelet, State, Units

__all__ = ["LIMIT", "Ordering", "Orders", "find_order"]

#: Most admissions that are tried for one question (any order? by creation? some order?) about one node.
LIMIT = 50_000

#: How many pods of each class are still to come.
_Counts = tuple[int, ...]


class Orders(Enum):
    """Which orders work, best first."""

    ANY = "any order"
    CREATION = "creation order"  #: whatever the order of those created in the same second
    SOME = "only some orders"  #: bind one after another
    NONE = "no order"


@dataclass(frozen=True, slots=True)
class Ordering:
    """The answer of :func:`find_order`.

    Parameters
    ----------
    orders
        The best that is known.
    sequence
        Positions of the pods in an order that works; by creation time where that works. None with ``Orders.NONE``.
    proved
        Whether nothing better holds; False where :data:`LIMIT` ended a question before its answer.
    """

    orders: Orders
    sequence: tuple[int, ...] | None
    proved: bool = True


class _TooMany(Exception):
    """The limit is reached."""


def find_order(
    kubelet: Kubelet, state: State, pods: Sequence[Units], created: Sequence[float], limit: int = LIMIT
) -> Ordering:
    """Find out in which orders pods are admitted, and give a good one.

    Parameters
    ----------
    kubelet, state
        The node, and what its zones have left before.
    pods
        What each pod is to this kubelet; those that are nothing to it are better left out.
    created
        When each pod was created, seconds.
    limit
        Most admissions to try for each of the three questions.

    Returns
    -------
    Ordering
        See there.
    """
    search = _Search(kubelet, state, pods, created, limit)
    proved = True
    for orders, question in ((Orders.ANY, search.any), (Orders.CREATION, search.by_creation)):
        try:
            if question():
                return Ordering(orders, search.oldest_first, proved)
        except _TooMany:
            proved = False
    try:
        sequence = search.some()
    except _TooMany:
        return Ordering(Orders.NONE, None, False)
    return Ordering(Orders.NONE if sequence is None else Orders.SOME, sequence, proved or sequence is None)


class _Search:
    """The pods of one node in classes of equal ones."""

    def __init__(
        self, kubelet: Kubelet, state: State, pods: Sequence[Units], created: Sequence[float], limit: int
    ) -> None:
        self.kubelet, self.state, self.pods, self.created, self.limit = kubelet, state, pods, created, limit
        self.oldest_first = tuple(sorted(range(len(pods)), key=lambda index: (created[index], index)))
        self.classes = list(dict.fromkeys(pods))
        self.class_of = {units: number for number, units in enumerate(self.classes)}
        self.left = limit

    def any(self) -> bool:
        """Whether every order works."""
        self.left = self.limit
        return self._finals({self.state}, self._counts(range(len(self.pods)))) is not None

    def by_creation(self) -> bool:
        """Whether every order works that keeps to creation times."""
        self.left = self.limit
        states: set[State] | None = {self.state}
        for _, together in groupby(self.oldest_first, key=lambda index: self.created[index]):
            states = self._finals(states, self._counts(together)) if states is not None else None
        return states is not None

    def some(self) -> tuple[int, ...] | None:
        """An order that works; None where there is none."""
        if self.kubelet.too_much(self.state, self.pods):
            return None
        largest_first = sorted(self.oldest_first, key=lambda index: -self.kubelet.share(self.pods[index]))
        for order in (self.oldest_first, tuple(largest_first)):
            if self._works(order):
                return order
        self.left = self.limit
        classes = self._walk(self._counts(range(len(self.pods))), self.state, set(), self._by_size())
        if classes is None:
            return None
        members = {number: self._members(number) for number in range(len(self.classes))}
        return tuple(next(members[number]) for number in classes)

    def _members(self, number: int) -> Iterator[int]:
        """Pods of a class, oldest first."""
        return (index for index in self.oldest_first if self.class_of[self.pods[index]] == number)

    def _counts(self, pods: Iterator[int] | range) -> _Counts:
        found = Counter(self.class_of[self.pods[index]] for index in pods)
        return tuple(found[number] for number in range(len(self.classes)))

    def _by_size(self) -> list[int]:
        return sorted(range(len(self.classes)), key=lambda number: -self.kubelet.share(self.classes[number]))

    def _admit(self, state: State, number: int) -> State | None:
        self.left -= 1
        if self.left < 0:
            raise _TooMany
        answer = self.kubelet.admit(state, self.classes[number])
        return None if answer is None else answer[0]

    def _works(self, order: Sequence[int]) -> bool:
        state = self.state
        for index in order:
            answer = self.kubelet.admit(state, self.pods[index])
            if answer is None:
                return False
            state = answer[0]
        return True

    def _finals(self, states: set[State], counts: _Counts) -> set[State] | None:
        """Every situation that pods lead to, in whatever order they come; None if one of them is ever refused."""
        level: dict[_Counts, set[State]] = {counts: states}
        for _ in range(sum(counts)):
            following: dict[_Counts, set[State]] = {}
            for still, situations in level.items():
                for number, count in enumerate(still):
                    if not count:
                        continue
                    reached = following.setdefault(_less(still, number), set())
                    for state in situations:
                        after = self._admit(state, number)
                        if after is None:
                            return None
                        reached.add(after)
            level = following
        return next(iter(level.values()))

    def _walk(
        self, still: _Counts, state: State, dead: set[tuple[_Counts, State]], numbers: Sequence[int]
    ) -> tuple[int, ...] | None:
        """Classes of an order that works from here; a situation that leads nowhere is entered once."""
        if not any(still):
            return ()
        if (still, state) in dead:
            return None
        for number in numbers:
            after = self._admit(state, number) if still[number] else None
            if after is not None:
                rest = self._walk(_less(still, number), after, dead, numbers)
                if rest is not None:
                    return (number, *rest)
        dead.add((still, state))
        return None


def _less(counts: _Counts, number: int) -> _Counts:
    """One pod fewer to come."""
    return (*counts[:number], counts[number] - 1, *counts[number + 1 :])
