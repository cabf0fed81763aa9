"""Orders in which a kubelet admits a set of pods: by creation time, only some, none (C10).

The kubelet sorts pods that arrive together by creation time; those of the same second come in any order. Equal pods are
counted, so a handful of pods has few situations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import compress, groupby

from placer.arrays.packed_kubelet import PackedKubelet, State, Units

#: Most admissions that are tried for one question (by creation? some order?) about one node.
LIMIT = 20_000

#: The lowest zone and class: any pod may come after it.
_ANY = (0, 0)

_Counts = tuple[int, ...]


class Orders(Enum):
    """The orders that work, best first."""

    CREATION = "creation order"  #: whatever the order of those created in the same second
    SOME = "only some orders"  #: bind one after another
    NONE = "no order"


@dataclass(frozen=True, slots=True)
class Ordering:
    """The best ``orders`` that are known, and positions of the pods in one; ``proved``: nothing better holds."""

    orders: Orders
    sequence: tuple[int, ...] | None
    proved: bool = True


class _TooMany(Exception): ...


def find_order(
    kubelet: PackedKubelet,
    state: State,
    pods: Sequence[Units],
    created: Sequence[float],
    *,
    hint: Sequence[int] = (),
    limit: int = LIMIT,
) -> Ordering:
    """Find the orders in which pods are admitted, and give a good one.

    ``pods``: those that this kubelet aligns. ``created``: seconds; where all are equal, creation order is any order.
    ``hint``: positions in an order that is tried first. ``limit``: most admissions to try for each of the questions.
    """
    search = _OrderSearch(kubelet, state, pods, created, limit)
    try:
        if search.by_creation():
            return Ordering(Orders.CREATION, search.oldest_first)
        proved = True
    except _TooMany:
        proved = False
    found = search.some(tuple(hint))
    return replace(found, proved=found.proved and (proved or found.sequence is None))


def some_order(kubelet: PackedKubelet, state: State, pods: Sequence[Units]) -> Ordering:
    """An order in which pods of any age are admitted, after :data:`LIMIT` admissions at most."""
    return _OrderSearch(kubelet, state, pods, [0.0] * len(pods), LIMIT).some(())


class _OrderSearch:
    def __init__(
        self, kubelet: PackedKubelet, state: State, pods: Sequence[Units], created: Sequence[float], limit: int
    ) -> None:
        self.kubelet, self.state, self.pods, self.created, self.limit = kubelet, state, pods, created, limit
        self.oldest_first = tuple(sorted(range(len(pods)), key=lambda index: (created[index], index)))
        self.classes = sorted(dict.fromkeys(pods), key=lambda units: -kubelet.share(units))
        self.class_of = {units: number for number, units in enumerate(self.classes)}
        self.left = limit

    def by_creation(self) -> bool:
        states: set[State] | None = {self.state}
        for _, together in groupby(self.oldest_first, key=lambda index: self.created[index]):
            states = self._finals(states, self._counts(together)) if states is not None else None
        return states is not None

    def some(self, hint: tuple[int, ...]) -> Ordering:
        self.left = self.limit
        try:
            sequence = self._sequence(hint)
        except _TooMany:
            return Ordering(Orders.NONE, None, False)
        return Ordering(Orders.NONE if sequence is None else Orders.SOME, sequence)

    def _sequence(self, hint: tuple[int, ...]) -> tuple[int, ...] | None:
        if self.kubelet.too_much(self.state, self.pods):
            return None
        largest_first = tuple(sorted(self.oldest_first, key=lambda index: self.class_of[self.pods[index]]))
        for order in (hint, self.oldest_first, largest_first):
            if len(order) == len(self.pods) and self._works(order):
                return order
        take = sum(unit.take for units in self.pods for unit in units)
        classes = self._walk(self._counts(range(len(self.pods))), self.state, take, _ANY, set())
        if classes is None:
            return None
        members = {number: self._members(number) for number in range(len(self.classes))}
        return tuple(next(members[number]) for number in classes)

    def _members(self, number: int) -> Iterator[int]:
        return (index for index in self.oldest_first if self.class_of[self.pods[index]] == number)

    def _counts(self, pods: Iterator[int] | range) -> _Counts:
        found = Counter(self.class_of[self.pods[index]] for index in pods)
        return tuple(found[number] for number in range(len(self.classes)))

    def _admit(self, state: State, number: int) -> tuple[State, int] | None:
        self.left -= 1
        if self.left < 0:
            raise _TooMany
        return self.kubelet.admit(state, self.classes[number])

    def _works(self, order: Sequence[int]) -> bool:
        return self.kubelet.admit_all(self.state, (self.pods[index] for index in order)) is not None

    def _finals(self, states: set[State], counts: _Counts) -> set[State] | None:
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
                        reached.add(after[0])
            level = following
        return next(iter(level.values()))

    def _walk(
        self, still: _Counts, state: State, take: int, last: tuple[int, int], dead: set[object]
    ) -> tuple[int, ...] | None:
        """Classes of an order that works from here, with ``take`` still to be taken.

        Two single-unit pods in a row lead to the same situation either way unless the second goes to a higher zone, so
        only orders with ascending zones, then classes, are looked at. ``last``: zone and class of such a pod just
        before. Hence, where only such pods are left, room for one of them in a lower zone leads nowhere.
        """
        if not any(still):
            return ()
        if (still, state, last) in dead:
            return None
        for number, after, here in self._next(still, state, take, last):
            gone = sum(unit.take for unit in self.classes[number])
            rest = self._walk(_less(still, number), after, take - gone, here, dead)
            if rest is not None:
                return (number, *rest)
        dead.add((still, state, last))
        return None

    def _next(
        self, still: _Counts, state: State, take: int, last: tuple[int, int]
    ) -> Iterator[tuple[int, State, tuple[int, int]]]:
        coming, units = compress(range(len(still)), still), list(compress(self.classes, still))
        first = last[0] if all(map(is_plain, units)) else 0
        for number in coming if self.kubelet.enough(state, units, take, first) else ():
            after = self._admit(state, number)
            if after is not None:
                plain = is_plain(self.classes[number])
                here = (after[1].bit_length() - 1, number) if plain else _ANY
                if not plain or here >= last:
                    yield number, after[0], here


def is_plain(units: Units) -> bool:
    """Whether a pod is one unit for one zone that keeps all it needs.

    If all pods of a node are, the kubelet admits some order exactly where they can be dealt out to the zones: bound
    zone by zone, lowest first, each finds its zone or a lower one.
    """
    return len(units) == 1 and units[0].width == 1 and units[0].take == units[0].need


def _less(counts: _Counts, number: int) -> _Counts:
    return (*counts[:number], counts[number] - 1, *counts[number + 1 :])
