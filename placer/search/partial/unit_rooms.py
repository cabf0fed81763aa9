"""Which domains of node labels units have taken: C7 by label and C15 of a partial solution."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from placer.arrays.dense_neighbours import DenseNeighbours
    from placer.arrays.solution import BoolArray, IntArray
    from placer.arrays.units import Confinement, Exclusion


class UnitRooms:
    """Counts of placed pods by unit and domain."""

    def __init__(self, neighbours: DenseNeighbours) -> None:
        self._rows = neighbours
        #: Class to its confinements; to its exclusions, each with the unit that it is of.
        self._confinements: dict[int, tuple[int, ...]] = defaultdict(tuple)
        self._exclusions: dict[int, tuple[tuple[int, int], ...]] = defaultdict(tuple)
        for number, row in enumerate(neighbours.confinements):
            for index in row.classes:
                self._confinements[index] += (number,)
        for number, exclusion in enumerate(neighbours.exclusions):
            for unit, classes in enumerate(exclusion.units):
                for index in classes:
                    self._exclusions[index] += ((number, unit),)
        #: Per confinement domain to pods there; one domain at most has any.
        self._there: list[Counter[int]] = [Counter() for _ in neighbours.confinements]
        #: Per confinement the only domain that it may use while it has no pods, if that is settled.
        self._settled: dict[int, int] = {}
        #: Per exclusion and domain the unit that has pods there, -1: none; and how many it has.
        self._holder = [np.full(neighbours.sizes[row.key], -1, dtype=np.int64) for row in neighbours.exclusions]
        self._held: list[Counter[int]] = [Counter() for _ in neighbours.exclusions]

    def take(self, index: int, node: int, count: int) -> None:
        """Count pods in, or out where ``count`` is negative."""
        for number in self._confinements.get(index, ()):
            there = self._there[number]
            domain = self._domain(self._rows.confinements[number], node)
            there[domain] += count
            if not there[domain]:
                del there[domain]
        for number, unit in self._exclusions.get(index, ()):
            domain, held = self._domain(self._rows.exclusions[number], node), self._held[number]
            held[domain] += count
            self._holder[number][domain] = unit if held[domain] else -1

    def _domain(self, row: Confinement | Exclusion, node: int) -> int:
        return int(self._rows.domain[row.key][node])

    def close(self, index: int, where: slice | IntArray, counts: IntArray) -> None:
        """Lower counts of further pods of a class, on each node alone."""
        for rule in ("C7", "C15"):
            closed = self.closed(rule, index, where)
            if closed is not None:
                counts[closed] = 0

    def closed(self, rule: str, index: int, where: slice | IntArray) -> BoolArray | None:
        """Nodes that a rule closes to a class now; None: none."""
        found: BoolArray | None = None
        rows = self._confining(index, where) if rule == "C7" else self._excluding(index, where)
        for closed in rows:
            found = closed if found is None else found | closed
        return found

    def _confining(self, index: int, where: slice | IntArray) -> Iterator[BoolArray]:
        for number in self._confinements.get(index, ()):
            home = next(iter(self._there[number]), self._settled.get(number))
            if home is not None:
                yield self._rows.domain[self._rows.confinements[number].key][where] != home

    def _excluding(self, index: int, where: slice | IntArray) -> Iterator[BoolArray]:
        for number, unit in self._exclusions.get(index, ()):
            if not len(self._holder[number]):
                continue  # no node has the key: whoever needs it is kept off all of them already
            domain = self._rows.domain[self._rows.exclusions[number].key][where]
            holder = self._holder[number][domain]
            yield (domain >= 0) & (holder >= 0) & (holder != unit)

    def homeless(self, index: int) -> tuple[int, ...]:
        """Confinements of a class that have no pods yet, and for which no domain is settled."""
        mine = self._confinements.get(index, ())
        return tuple(number for number in mine if not self._there[number] and number not in self._settled)

    @contextmanager
    def at_home(self, units: Iterable[int], node: int) -> Iterator[None]:
        """Have units without pods use the domains of a node alone for the block."""
        mine = {number: self._domain(self._rows.confinements[number], node) for number in units}
        before = self._settled
        self._settled = before | mine
        try:
            yield
        finally:
            self._settled = before

    def kind(self, node: int) -> Iterator[object]:
        """What tells a node from others where each domain of a key is one node."""
        for number, row in enumerate(self._rows.exclusions):
            domain = self._domain(row, node)
            yield int(self._holder[number][domain]) if domain >= 0 and self._rows.single[row.key] else None
