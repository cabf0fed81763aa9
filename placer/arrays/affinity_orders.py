"""Orders of binding in which each pod is admitted by those before it and by running pods (C12).

More pods around only help, so every admitted pod is bound at once. But where nothing matches yet, a pod that matches
its own terms may be the first, and any other match before it prevents that. Only these are choices.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, permutations, product
from typing import TYPE_CHECKING

from placer.arrays.solution import IntArray
from placer.base.grouping import grouped

if TYPE_CHECKING:
    from placer.arrays.numa import DenseNuma

#: Per topology key: int64, shape (nodes,): domain of each node, -1 where it is in none.
Domains = Sequence[IntArray]

#: Choices that are tried before no order counts as found.
MOST_CHOICES = 400


@dataclass(frozen=True)
class Attraction:
    """The required terms of pod affinity of some classes (C12).

    ``keys``: indices into ``DenseNeighbours.domain``. ``owners``, ``matched``: classes that have the terms, and that
    match all of them; ascending. ``ground``: per key: domains with a running match. ``open``: whether there is none, so
    that an owner that matches itself may be the first. ``held``, ``held_firsts``: domains, one per key, of fixed owners
    that must stay admitted; and of those of which a pod may be the first. ``lasting``: owners, and those held, run
    already: a match has to be there, whenever it came (D5).
    """

    keys: tuple[int, ...]
    owners: tuple[int, ...]
    matched: tuple[int, ...]
    ground: tuple[frozenset[int], ...]
    open: bool
    held: frozenset[tuple[int, ...]] = frozenset()
    held_firsts: frozenset[tuple[int, ...]] = frozenset()
    lasting: bool = False

    @property
    def firsts(self) -> tuple[int, ...]:
        """Classes of which a pod may be the first."""
        return tuple(sorted({*self.owners} & {*self.matched})) if self.open else ()

    @property
    def others(self) -> tuple[int, ...]:
        """Matched classes that do not ask for the same."""
        return tuple(sorted({*self.matched} - {*self.owners}))


def joined_classes(sets: Iterable[set[int]]) -> list[frozenset[int]]:
    """Join sets of classes that have one in common, until none has.

    Examples
    --------
    >>> [sorted(each) for each in joined_classes([{1, 2}, {4}, {2, 3}])]
    [[1, 2, 3], [4]]
    """
    set_of: dict[int, set[int]] = {}
    for each in sets:
        whole = set(each)
        for other in {id(set_of[index]): set_of[index] for index in each if index in set_of}.values():
            whole |= other
        set_of.update(dict.fromkeys(whole, whole))
    return [frozenset(each) for each in {id(each): each for each in set_of.values()}.values()]


def affinity_order(
    rows: Sequence[Attraction],
    domain: Domains,
    entries: Sequence[tuple[int, int]],
    numa: DenseNuma | None = None,
) -> list[int] | None:
    """Find an order of pods: places in ``entries``, first bound first; None where none was found.

    ``domain``: as in :class:`~placer.arrays.dense_neighbours.DenseNeighbours`. ``entries``: class and node of each pod,
    in an order that is kept where possible. ``numa``: kubelets that must admit the pods in the order, too (C10); those
    of each node are given in one that they admit.
    """
    places = grouped(range(len(entries)), entries.__getitem__)
    units = list(places)
    ordered = list(units)
    for part in _parts(rows, units, numa):
        found = _order_of_part(rows, domain, [units[unit] for unit in part], numa)
        if found is None:
            return None
        for unit, entry in zip(part, found, strict=True):
            ordered[unit] = entry
    return [place for entry in ordered for place in places[entry]]


def _parts(rows: Sequence[Attraction], units: Sequence[tuple[int, int]], numa: DenseNuma | None) -> list[list[int]]:
    near = joined_classes({*row.owners, *row.matched} for row in rows)
    part_of = {index: part for part, of in enumerate(near) for index in of}
    joined = list(range(len(near)))

    def root(part: int) -> int:
        while joined[part] != part:
            part = joined[part]
        return part

    on_node: dict[int, int] = {}
    for place in sorted(_aligned(units, numa)):
        index, node = units[place]
        if index in part_of:
            other = on_node.setdefault(node, part_of[index])
            joined[root(part_of[index])] = root(other)
    found: dict[int, list[int]] = defaultdict(list)
    for place, (index, _) in enumerate(units):
        if index in part_of:
            found[root(part_of[index])].append(place)
    return list(found.values())


def _order_of_part(
    rows: Sequence[Attraction], domain: Domains, units: list[tuple[int, int]], numa: DenseNuma | None
) -> list[tuple[int, int]] | None:
    for order in _unit_orders(rows, units, numa):
        found = _AffinityOrders(rows, domain, order, _aligned(order, numa)).find()
        if found is not None:
            return [order[unit] for unit in found]
    return None


def _aligned(units: Iterable[tuple[int, int]], numa: DenseNuma | None) -> frozenset[int]:
    return frozenset(place for place, (index, node) in enumerate(units) if numa is not None and numa.of(index, node))


def _unit_orders(
    rows: Sequence[Attraction], units: list[tuple[int, int]], numa: DenseNuma | None
) -> Iterator[list[tuple[int, int]]]:
    yield units
    mixed = _mixed_nodes(rows, units, numa)
    if numa is not None and mixed and all(len(here) <= 4 for here in mixed):  # else there are too many orders
        yield from _permuted(units, mixed, numa)


def _permuted(
    units: Sequence[tuple[int, int]], mixed: Sequence[Sequence[int]], numa: DenseNuma
) -> Iterator[list[tuple[int, int]]]:
    for orders in islice(product(*map(permutations, mixed)), MOST_CHOICES):
        found = list(units)
        for here, order in zip(mixed, orders, strict=True):
            for place, other in zip(here, order, strict=True):
                found[place] = units[other]
        if all(numa.admits_in_turn(units[here[0]][1], [found[place][0] for place in here]) for here in mixed):
            yield found


def _mixed_nodes(
    rows: Sequence[Attraction], units: Sequence[tuple[int, int]], numa: DenseNuma | None
) -> list[list[int]]:
    asking = {index for row in rows for index in row.owners}
    places = grouped(sorted(_aligned(units, numa)), lambda place: units[place][1])
    return [here for here in places.values() if len(here) > 1 and any(units[place][0] in asking for place in here)]


def _rows_matching(rows: Sequence[Attraction]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = defaultdict(list)
    for number, row in enumerate(rows):
        for index in row.matched:
            found[index].append(number)
    return found


@dataclass
class _Stand:
    left: list[int]
    there: list[list[set[int]]]
    some: list[bool]
    order: list[int]

    def copy(self) -> _Stand:
        return _Stand([*self.left], [[set(each) for each in row] for row in self.there], [*self.some], [*self.order])


class _AffinityOrders:
    def __init__(
        self, rows: Sequence[Attraction], domain: Domains, units: Sequence[tuple[int, int]], fixed: frozenset[int]
    ) -> None:
        classes = {index for index, _ in units}
        self.rows = [row for row in rows if not classes.isdisjoint({*row.owners, *row.matched})]
        self.units = units
        self.asks = {index: number for number, row in enumerate(self.rows) for index in row.owners}
        self.matches = _rows_matching(self.rows)
        self.firsts = [frozenset(row.firsts) for row in self.rows]
        self.at = [[tuple(int(domain[key][node]) for key in row.keys) for row in self.rows] for _, node in units]
        self.before = self._before(fixed)
        self.choices = MOST_CHOICES

    def _before(self, fixed: frozenset[int]) -> dict[int, int]:
        last: dict[int, int] = {}
        found: dict[int, int] = {}
        for unit, (_, node) in enumerate(self.units):
            if unit in fixed:
                if node in last:
                    found[unit] = last[node]
                last[node] = unit
        return found

    def find(self) -> list[int] | None:
        there = [[set(domains) for domains in row.ground] for row in self.rows]
        return self._from(_Stand(list(range(len(self.units))), there, [not row.open for row in self.rows], []))

    def _from(self, stand: _Stand) -> list[int] | None:
        self._advance(stand)
        if not stand.left:
            return stand.order
        for unit in self._choices(stand):
            self.choices -= 1
            if self.choices < 0:
                return None
            after = stand.copy()
            self._bind(after, unit)
            after.left.remove(unit)
            found = self._from(after)
            if found is not None:
                return found
        return None

    def _advance(self, stand: _Stand) -> None:
        while True:
            waiting = self._spoilt(stand)
            bound = {unit for unit in stand.left if self._safe(stand, unit, waiting)}
            if not bound:
                return
            stand.left = [unit for unit in stand.left if unit not in bound]

    def _spoilt(self, stand: _Stand) -> set[int]:
        coming = {self.units[unit][0] for unit in stand.left}
        return {
            number for number, some in enumerate(stand.some) if not some and not coming.isdisjoint(self.firsts[number])
        }

    def _safe(self, stand: _Stand, unit: int, waiting: set[int]) -> bool:
        index, _ = self.units[unit]
        if not self._in_turn(stand, unit) or not self._admitted(stand, unit):
            return False
        if any(number in waiting and max(self.at[unit][number]) >= 0 for number in self.matches[index]):
            return False
        self._bind(stand, unit)
        return True

    def _in_turn(self, stand: _Stand, unit: int) -> bool:
        return unit not in self.before or self.before[unit] in stand.order

    def _admitted(self, stand: _Stand, unit: int) -> bool:
        number = self.asks.get(self.units[unit][0])
        if number is None:
            return True
        return all(domain in there for domain, there in zip(self.at[unit][number], stand.there[number], strict=True))

    def _choices(self, stand: _Stand) -> Iterator[int]:
        seen: set[object] = set()
        found: list[tuple[bool, int]] = []
        for unit in stand.left:
            number = self._may_be_first(stand, unit)
            if not self._in_turn(stand, unit) or (number is None and not self._admitted(stand, unit)):
                continue
            kind = (self.units[unit][0], *self.at[unit]) if unit not in self.before else unit
            if kind not in seen:
                seen.add(kind)
                found.append((number is None or self._supported(stand, unit, number), unit))
        return (unit for _, unit in sorted(found))

    def _may_be_first(self, stand: _Stand, unit: int) -> int | None:
        index, _ = self.units[unit]
        number = self.asks.get(index)
        if number is None or stand.some[number] or index not in self.firsts[number]:
            return None
        return number if min(self.at[unit][number]) >= 0 else None

    def _supported(self, stand: _Stand, unit: int, number: int) -> bool:
        row, here = self.rows[number], self.at[unit][number]
        others = [self.at[each][number] for each in stand.left if self.units[each][0] in row.others]
        return all(any(there[place] == domain for there in others) for place, domain in enumerate(here))

    def _bind(self, stand: _Stand, unit: int) -> None:
        for number in self.matches[self.units[unit][0]]:
            for domain, there in zip(self.at[unit][number], stand.there[number], strict=True):
                if domain >= 0:
                    there.add(domain)
                    stand.some[number] = True
        stand.order.append(unit)
