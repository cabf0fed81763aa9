"""Rows of placed pods and of those they let in: C12 to C15 and C7 by label, counted by domain.

Placed pods are always in an order that admits each, since each comes after those that it needs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property

import numpy as np

from placer.arrays.affinity_orders import Attraction
from placer.arrays.dense_neighbours import ANY_NUMBER, DenseNeighbours, Repulsion, SpreadRow
from placer.arrays.solution import BoolArray, IntArray
from placer.search.partial.unit_rooms import UnitRooms


class NeighbourRooms:
    """Counts of placed pods by row and domain; ``kinds``: per class its kind of neighbours."""

    def __init__(self, neighbours: DenseNeighbours, kinds: list[int]) -> None:
        self.neighbours, self._kinds = neighbours, kinds
        self._repulsions = _by_class(neighbours.repulsions)
        self._attractions = _by_class(neighbours.attractions)
        self._spreads = _by_class(neighbours.spreads)
        sizes = neighbours.sizes
        self._repelling = [_Counts(sizes[row.key]) for row in neighbours.repulsions]
        self._matching = [[_Counts(sizes[key]) for key in row.keys] for row in neighbours.attractions]
        self._counted = [_Counts(sizes[row.key]) for row in neighbours.spreads]
        for row, counts in zip(neighbours.spreads, self._counted, strict=True):
            for domain, count in row.before.items():
                counts.matched[domain] = count
        for attraction, by_key in zip(neighbours.attractions, self._matching, strict=True):
            for ground, each in zip(attraction.ground, by_key, strict=True):
                each.matched[sorted(ground)] = 1
        self._confined = UnitRooms(neighbours)
        #: Class to node to pods of it, of classes that attractions are about.
        self._nodes: dict[int, dict[int, int]] = defaultdict(dict)
        #: Where spread and affinity are left out, for searches that look at them in the end.
        self.lenient = False

    @contextmanager
    def leniently(self) -> Iterator[None]:
        """Leave out for the block what further pods may still bring about."""
        before, self.lenient = self.lenient, True
        try:
            yield
        finally:
            self.lenient = before

    def bring_about(self, classes: Iterable[int]) -> bool:
        """Whether pods of some classes can let others of them in (C12, C14)."""
        some = {*classes}
        rows: tuple[Attraction | SpreadRow, ...] = (*self.neighbours.attractions, *self.neighbours.spreads)
        return any(some.intersection(row.owners) and some.intersection(row.matched) for row in rows)

    def concerns(self, index: int) -> bool:
        """Whether anything is asked of a class, or by it."""
        return self._kinds[index] >= 0

    def take(self, index: int, node: int, count: int) -> None:
        """Count pods in, or out where ``count`` is negative."""
        if self._kinds[index] < 0:
            return
        for number, owns, meant in self._repulsions.get(index, ()):
            self._repelling[number].note(
                int(self._domain(self.neighbours.repulsions[number])[node]), count, owns, meant
            )
        if index in self._attractions:
            there = self._nodes[index]
            there[node] = there.get(node, 0) + count
            if not there[node]:
                del there[node]
        for number, owns, meant in self._attractions.get(index, ()):
            row = self.neighbours.attractions[number]
            for key, counts in zip(row.keys, self._matching[number], strict=True):
                counts.note(int(self.neighbours.domain[key][node]), count, owns, meant)
        for number, owns, meant in self._spreads.get(index, ()):
            spread = self.neighbours.spreads[number]
            domain = int(self._domain(spread)[node])
            self._counted[number].note(domain, count, owns, meant and bool(spread.counted[node]))
        self._confined.take(index, node, count)

    def homes(self, index: int) -> tuple[int, ...]:
        """Confinements of a class whose first pod decides about the others."""
        return self._confined.homeless(index)

    @contextmanager
    def at_home(self, units: Iterable[int], node: int) -> Iterator[None]:
        """Have units without pods use the domains of a node alone for the block."""
        with self._confined.at_home(units, node):
            yield

    def _domain(self, row: Repulsion | SpreadRow) -> IntArray:
        return self.neighbours.domain[row.key]

    def close(self, index: int, nodes: IntArray | None, counts: IntArray) -> None:
        """Lower counts of further pods of a class, on each of ``nodes`` (None: all) alone.

        ``counts``: int64: how many pods fit on each of them otherwise; is changed.
        """
        kind = self._kinds[index]
        if kind < 0:
            return
        where = slice(None) if nodes is None else nodes
        closed = self.neighbours.closed(kind)
        if closed is not None:
            counts[closed[where]] = 0
        for number, owns, meant in self._repulsions.get(index, ()):
            self._repel(number, owns, meant, where, counts)
        self._confined.close(index, where, counts)
        if self.lenient:
            return
        for number, owns, meant in self._attractions.get(index, ()):
            if owns:
                self._attract(number, meant, where, counts)
        for number, owns, meant in self._spreads.get(index, ()):
            self._spread(number, owns, meant, where, counts)

    def _repel(self, number: int, owns: bool, meant: bool, where: slice | IntArray, counts: IntArray) -> None:
        held, domain = self._repelling[number], self._domain(self.neighbours.repulsions[number])[where]
        blocked = np.zeros(len(held.matched), dtype=bool)
        if owns:
            blocked |= held.matched > 0
        if meant:
            blocked |= held.owners > 0
        if owns and meant:
            counts[domain >= 0] = np.minimum(counts[domain >= 0], 1)
        if blocked.any():
            counts[(domain >= 0) & blocked[domain]] = 0

    def _attract(self, number: int, meant: bool, where: slice | IntArray, counts: IntArray) -> None:
        row = self.neighbours.attractions[number]
        if meant and self.may_be_first(number):
            return
        for key, held in zip(row.keys, self._matching[number], strict=True):
            domain = self.neighbours.domain[key][where]
            counts[(domain < 0) | (held.matched[domain] == 0) if len(held.matched) else slice(None)] = 0

    def beside_others(self, index: int) -> BoolArray | None:
        """Nodes where a class has near it all it asks for: bool, shape (nodes,); None: anywhere."""
        asked = [(number, meant) for number, owns, meant in self._attractions.get(index, ()) if owns]
        if not asked or self.first_of(index) is not None:
            return None
        counts = np.ones(len(self.neighbours.domain[0]), dtype=np.int64)
        for number, meant in asked:
            self._attract(number, meant, slice(None), counts)
        return counts > 0

    def may_be_first(self, number: int) -> bool:
        """Whether a pod may still be the first of an attraction."""
        row = self.neighbours.attractions[number]
        return row.open and not any(held.matched.any() for held in self._matching[number])

    def first_of(self, index: int) -> Attraction | None:
        """The attraction of which a pod of a class would be the first."""
        for number, owns, meant in self._attractions.get(index, ()):
            if owns and meant and self.may_be_first(number):
                return self.neighbours.attractions[number]
        return None

    def _spread(self, number: int, owns: bool, meant: bool, where: slice | IntArray, counts: IntArray) -> None:
        row, held = self.neighbours.spreads[number], self._counted[number]
        if not len(held.matched):
            return  # no node has the key: whoever asks for it is kept off all of them already
        domain = self._domain(row)[where]
        room = self._spread_room(row, held, meant)
        if not owns:
            room = np.where(held.owners > 0, room, ANY_NUMBER)
        most = np.where(domain >= 0, room[domain], ANY_NUMBER)
        if meant and not owns:
            most = np.where(row.counted[where], most, ANY_NUMBER)
        np.minimum(counts, np.maximum(most, 0), out=counts)

    @staticmethod
    def _spread_room(row: SpreadRow, held: _Counts, meant: bool) -> IntArray:
        counting = row.counting
        found: IntArray = np.full(len(held.matched), ANY_NUMBER, dtype=np.int64)
        now = held.matched[counting]
        if row.floor or not len(counting):
            fewest = np.zeros(len(counting), dtype=np.int64)
        elif len(counting) == 1:
            return found
        else:
            # What counts for a domain are the others: its own pods raise its own count.
            least, second = np.partition(now, 1)[:2]
            fewest = np.where((now == least) & ((now == least).sum() == 1), second, least)
        if meant:
            found[counting] = row.skew + fewest - now
        else:
            low = now.min(initial=0) if not row.floor else 0
            found[counting] = np.where(now - low <= row.skew, ANY_NUMBER, 0)
        return found

    def beside(self, nodes: IntArray, number: Mapping[int, int]) -> DenseNeighbours:
        """The rows of a subproblem next to all that is placed here.

        ``nodes``: of the subproblem, ascending. ``number``: class to its number there; what is placed of it here stays.
        """
        whole = self.neighbours
        mine = whole.renumbered({index: (new,) for index, new in number.items()})
        exclusions = (replace(row, units=tuple(filter(None, row.units))) for row in mine.exclusions)
        return replace(
            mine,
            domain=tuple(each[nodes] for each in whole.domain),
            shut={
                rule: tuple(self._shut_beside(rule, kind, nodes) for kind in range(len(rows)))
                for rule, rows in whole.shut.items()
            },
            repulsions=tuple(filter(_binds, mine.repulsions)),
            attractions=tuple(filter(_binds, map(self._attraction_beside, whole.attractions, mine.attractions))),
            spreads=tuple(filter(_binds, self._spreads_beside(nodes, mine.spreads))),
            confinements=tuple(row for row in mine.confinements if row.classes),
            exclusions=tuple(row for row in exclusions if len(row.units) > 1),
        )

    def _spreads_beside(self, nodes: IntArray, mine: Iterable[SpreadRow]) -> Iterator[SpreadRow]:
        for number, row in enumerate(mine):
            if row.owners or row.matched:
                yield self._spread_beside(number, nodes, row)

    def _shut_beside(self, rule: str, kind: int, nodes: IntArray) -> BoolArray | None:
        shut = self.neighbours.shut[rule][kind]
        found = None if shut is None else shut[nodes]
        for closed in self._closed_beside(rule, self._of_kind[kind], nodes) if kind in self._of_kind else ():
            found = closed if found is None else found | closed
        return found

    def _closed_beside(self, rule: str, index: int, nodes: IntArray) -> Iterator[BoolArray]:
        taken = self._confined.closed(rule, index, nodes) if rule in ("C7", "C15") else None
        if taken is not None:
            yield taken
        for number, owns, meant in self._repulsions.get(index, ()):
            held, row = self._repelling[number], self.neighbours.repulsions[number]
            blocked: BoolArray = ((held.matched > 0) & owns) | ((held.owners > 0) & meant)
            if row.rule == rule and blocked.any():  # there is no domain at all where no node has the key
                domain = self.neighbours.domain[row.key][nodes]
                yield (domain >= 0) & blocked[domain]

    @cached_property
    def _of_kind(self) -> dict[int, int]:
        return {kind: index for index, kind in enumerate(self._kinds)}

    def _attraction_beside(self, it: Attraction, mine: Attraction) -> Attraction:
        """Pods that stay and do not ask for the same make room; those that ask for it must keep what they need."""
        ground = [set(each) for each in it.ground]
        held: set[tuple[int, ...]] = set()
        firsts: set[tuple[int, ...]] = set()
        for index, there in self._places(it):
            for where in there:
                if index not in it.owners:
                    for domain, each in zip(where, ground, strict=True):
                        each.update({domain} - {-1})
                else:
                    held.add(where)
                    firsts.update({where} if index in it.firsts else ())
        return replace(
            mine,
            ground=tuple(map(frozenset, ground)),
            held=frozenset(held),
            held_firsts=frozenset(firsts),
        )

    def _places(self, row: Attraction) -> Iterator[tuple[int, set[tuple[int, ...]]]]:
        for index in {*row.owners, *row.matched}:
            nodes = self._nodes.get(index, {})
            yield index, {tuple(int(self.neighbours.domain[key][node]) for key in row.keys) for node in nodes}

    def _spread_beside(self, number: int, nodes: IntArray, mine: SpreadRow) -> SpreadRow:
        """A domain without nodes of the subproblem and without owners stays as it is, so one with the fewest says as
        much as all.
        """
        it, counts = self.neighbours.spreads[number], self._counted[number]
        held = np.flatnonzero(counts.owners > 0)
        told = np.isin(it.counting, np.concatenate((self._domain(it)[nodes], held)))
        others = it.counting[~told]
        fewest = others[np.argmin(counts.matched[others])] if len(others) else []
        kept = np.sort(np.append(it.counting[told], fewest)).astype(np.int64)
        return replace(
            mine,
            counted=it.counted[nodes],
            before=dict(zip(kept.tolist(), counts.matched[kept].tolist(), strict=True)),
            held=frozenset(held.tolist()),
        )

    @property
    def even(self) -> bool:
        """Whether all that is placed keeps C14 in the end."""
        return all(_even(row, held) for row, held in zip(self.neighbours.spreads, self._counted, strict=True))

    def even_for(self, index: int) -> bool:
        """Whether every spread about a class holds (C14), also where a pod of it has left."""
        return all(
            _even(self.neighbours.spreads[row], self._counted[row]) for row, _, _ in self._spreads.get(index, ())
        )

    def needed(self, index: int) -> bool:
        """Whether others may need a pod of a class where it is (C12), or its unit does."""
        return index in self._attractions or index in self.neighbours.in_units

    @cached_property
    def attracted(self) -> frozenset[int]:
        """Classes that must be near others (C12)."""
        return frozenset(index for row in self.neighbours.attractions for index in row.owners)

    def kinds(self, classes: Collection[int]) -> Callable[[int], tuple[object, ...]]:
        """A function of a node, equal for nodes that rows do not tell apart for any further pod of ``classes``.

        Rows about other classes are left out: a gang costs the same next to a namespace with hundreds of them.
        """
        rows = self.neighbours
        keys = [each for alone, each in zip(rows.single, rows.domain, strict=True) if not alone]
        counted = [(rows.domain[key], counts) for key, counts in self._counts_about(classes)]
        spreads = [rows.spreads[each].counted for each in _about(classes, self._spreads)]
        closed = [shut for kind in {self._kinds[each] for each in classes} if (shut := rows.closed(kind)) is not None]

        def kind(node: int) -> tuple[object, ...]:
            found: list[object] = [int(each[node]) for each in keys]
            for domain, counts in counted:
                place = int(domain[node])
                found.append((int(counts.owners[place]), int(counts.matched[place])) if place >= 0 else None)
            return (*found, *self._confined.kind(node), *(bool(each[node]) for each in (*spreads, *closed)))

        return kind

    def _counts_about(self, classes: Collection[int]) -> Iterator[tuple[int, _Counts]]:
        rows = self.neighbours
        yield from ((rows.repulsions[each].key, self._repelling[each]) for each in _about(classes, self._repulsions))
        yield from ((rows.spreads[each].key, self._counted[each]) for each in _about(classes, self._spreads))
        for each in _about(classes, self._attractions):
            yield from zip(rows.attractions[each].keys, self._matching[each], strict=True)


class _Counts:
    def __init__(self, domains: int) -> None:
        self.owners: IntArray = np.zeros(domains, dtype=np.int64)
        self.matched: IntArray = np.zeros(domains, dtype=np.int64)

    def note(self, domain: int, count: int, owns: bool, meant: bool) -> None:
        if domain >= 0:
            self.owners[domain] += count if owns else 0
            self.matched[domain] += count if meant else 0


def _binds(row: Repulsion | Attraction | SpreadRow) -> bool:
    if isinstance(row, Repulsion):
        return bool(row.owners and row.matched)
    return bool(row.owners or (row.matched and row.held))


def _even(row: SpreadRow, held: _Counts) -> bool:
    fewest = 0 if row.floor or not len(row.counting) else int(held.matched[row.counting].min())
    there = (held.owners > 0) & (held.matched - fewest > row.skew)
    there[sorted(row.held)] |= held.matched[sorted(row.held)] - fewest > row.skew
    return not there.any()


def _about(classes: Collection[int], by_class: Mapping[int, Sequence[tuple[int, bool, bool]]]) -> list[int]:
    """Numbers of the rows that own or mean any of ``classes``."""
    return sorted({number for each in classes for number, *_ in by_class.get(each, ())})


def _by_class(
    rows: Sequence[Repulsion | Attraction | SpreadRow],
) -> dict[int, list[tuple[int, bool, bool]]]:
    found: dict[int, dict[int, tuple[bool, bool]]] = defaultdict(dict)
    for number, row in enumerate(rows):
        for index in row.owners:
            found[index][number] = True, False
        for index in row.matched:
            found[index][number] = number in found[index], True
    return {index: [(number, *each) for number, each in of.items()] for index, of in found.items()}
