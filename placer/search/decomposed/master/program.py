"""The master problem: equal groups counted by smallest common domain, and whether leaves hold them.

Leaves are bins, filled by a flow through their pieces; blocks above them likewise. Equal blocks are counted together
until they are named one by one: with none named the least value is a bound, with all named it is nearly a placement.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from placer.base.linear import ColumnSum, IntegerProgram
from placer.search.decomposed.master.measured import (
    EqualBlocks,
    MeasuredGroups,
    MeasuredInstance,
    MeasuredScope,
    PieceCounts,
)
from placer.search.events import TooLarge


@dataclass(frozen=True)
class ArcFlow:
    """Ways to fill bins of one room: paths through their pieces, an arc for an item, the larger items first.

    A bin of 4 pieces with items of 2 and 1 is the path 0, 2, 3, which ends at 3. ``arcs`` are (from, to, column) and
    ``ends`` (piece, column): the columns count paths.
    """

    arcs: tuple[tuple[int, int, int], ...]
    ends: tuple[tuple[int, int], ...]
    room: int
    bins: int

    @property
    def columns(self) -> list[int]:
        """All of its columns."""
        return [*(column for _, _, column in self.arcs), *(column for _, column in self.ends)]

    def used(self) -> dict[int, list[int]]:
        """Pieces of an item to the arcs of such items."""
        found: dict[int, list[int]] = defaultdict(list)
        for begin, end, column in self.arcs:
            found[end - begin].append(column)
        return found

    def remaining(self, size: int) -> Iterator[tuple[int, int]]:
        """Column and coefficient of the number of pieces of a size that are left next to the items."""
        for piece, column in self.ends:
            count = (self.room - piece) // size
            if count:
                yield column, count


def add_arc_flow(program: IntegerProgram, room: int, bins: int, volumes: Collection[int]) -> ArcFlow:
    """Add the ways to fill bins with items of some volumes above 0, the larger ones first."""
    ordered = sorted((volume for volume in volumes if volume <= room), reverse=True)
    # Per piece the largest item that a path may have had last: only what is not larger may follow.
    last: dict[int, int] = {0: room + 1}
    arcs: list[tuple[int, int, int]] = []
    balance: dict[int, ColumnSum] = defaultdict(ColumnSum)
    for piece in range(room + 1):
        for volume in ordered if piece in last else ():
            if volume <= last[piece] and piece + volume <= room:
                column = program.column(bins)
                arcs.append((piece, piece + volume, column))
                balance[piece].add(1, column)
                balance[piece + volume].add(-1, column)
                last[piece + volume] = max(last.get(piece + volume, 0), volume)
    ends = []
    for piece in sorted(last):
        column = program.column(bins)
        ends.append((piece, column))
        program.equal(balance[piece].add(1, column), 0 if piece else bins)
    return ArcFlow(tuple(arcs), tuple(ends), room, bins)


#: More columns than this are not worth the while.
MOST_COLUMNS = 80_000


@dataclass(frozen=True, order=True)
class CommonDomain:
    """A smallest common domain: of level 0 a leaf, of 1 a block of a unit; of 2 a domain above."""

    level: int
    domains: tuple[int, ...]


#: What a column counts, a spot being a common domain: groups of a kind at a spot ``(kind, spot)``; subgroups ``(kind,
#: spot of the group, part, spot)``; pods of what lies in a domain above that go to a unit ``(domain, size, blocks)``.
Key = tuple[object, ...]


class MasterProgram:
    """One program.

    ``known`` has the values of all columns of settled units, which get no rows of their own; ``apart`` is a unit of one
    block whose leaves are looked at one by one, so that ``span`` is tighter.
    """

    def __init__(
        self,
        measured: MeasuredInstance,
        units: Sequence[EqualBlocks],
        known: Mapping[Key, int] | None = None,
        apart: EqualBlocks | None = None,
    ) -> None:
        self.measured, self.units, self.known, self.apart = measured, tuple(units), known or {}, apart
        self.settled = {where for key in self.known for where in [blocks_of(key)] if where is not None}
        self.program = IntegerProgram()
        self.columns: dict[Key, int] = {}
        self.locality, self.span = ColumnSum(), ColumnSum()
        self.flows: dict[EqualBlocks, list[ArcFlow]] = {}
        self.pieces: list[int] = []
        self._items: dict[tuple[int, tuple[int, ...]], dict[int, ColumnSum]] = defaultdict(
            lambda: defaultdict(ColumnSum)
        )
        self._beside: dict[tuple[int, ...], dict[int, ColumnSum]] = defaultdict(lambda: defaultdict(ColumnSum))
        self._above: dict[tuple[int, int], ColumnSum] = defaultdict(ColumnSum)
        self._loose: dict[tuple[int, int], int] = defaultdict(int)
        self._fewest: dict[tuple[int, int], int] = {}
        self._spots = self._all_spots()
        for number, kind in enumerate(measured.kinds):
            self._place(number, kind)
        self._filler()
        self._share()
        for unit in self.units:
            if unit.blocks not in self.settled:
                self._fill(unit)
        self._known_cuts()

    def _known_cuts(self) -> None:
        for key in self.known:
            more = self._column(key, self.known[key]) if key[1] == "more" else None
            if more is not None:
                self.span.add(1, more)

    # Where things may be

    def _all_spots(self) -> list[tuple[CommonDomain, int, int]]:
        measured, tree = self.measured, self.measured.dense.domains
        found = [
            (CommonDomain(0, unit.blocks), measured.leaf_tier, max(room for room, _ in unit.leaves))
            for unit in self.units
        ]
        found += [(CommonDomain(1, unit.blocks), int(tree.tier[unit.blocks[0]]), unit.room) for unit in self.units]
        return found + [
            (CommonDomain(2, (each,)), int(tree.tier[each]), int(measured.room[each])) for each in measured.uppers
        ]

    def _able(self, part: MeasuredScope, outer: CommonDomain | None = None) -> list[tuple[CommonDomain, int]]:
        return [
            (spot, tier)
            for spot, tier, room in self._spots
            if tier <= part.limit and room >= part.volume and (outer is None or self._within(spot, outer))
        ]

    def _within(self, spot: CommonDomain, outer: CommonDomain) -> bool:
        if outer.level < 2:
            return spot.level <= outer.level and spot.domains == outer.domains
        return self.measured.dense.domains.within(spot.domains[0], outer.domains[0])

    def _column(self, key: Key, most: int) -> int | None:
        known = self.known.get(key)
        if blocks_of(key) in self.settled and not known:
            return None
        if len(self.program.upper) > MOST_COLUMNS:
            raise TooLarge(f"master: more than {MOST_COLUMNS:,} columns")
        column = self.columns[key] = self.program.column(most)
        if known is not None:
            self.program.equal(ColumnSum().add(1, column), known)
        return column

    def _place(self, number: int, kind: MeasuredGroups) -> None:
        many, here = len(kind.members), ColumnSum()
        for spot, tier in self._able(kind.whole):
            groups = self._column((number, spot), many)
            if groups is None:
                continue
            here.add(1, groups)
            self._count(kind.whole, spot, tier, groups)
            self._item(kind.whole, spot, groups)
            if spot.level:
                self._pods(kind.loose, spot, groups)
                self._place_parts(number, spot, groups)
            for part, count in kind.parts if spot.level == 0 else ():  # they are in that leaf, too
                self._count(part, spot, tier, groups, count)
        self.program.equal(here, many)

    def _place_parts(self, number: int, spot: CommonDomain, groups: int) -> None:
        """Subgroups that lie in one leaf each are items of bins: a group needs so many bins for all of them, and one
        bin less for each that does not lie in one leaf.
        """
        kind, apart = self.measured.kinds[number], ColumnSum()
        many = len(kind.members)
        for index, (part, count) in enumerate(kind.parts):
            self._place_part((number, spot, index), part, count * many, ColumnSum().add(-count, groups), apart)
        fewest, bins = self._leaves(kind.whole, spot), self.measured.bins(number, spot.domains[0])
        if kind.whole.wanted and bins > fewest:
            more = self.program.column(many * (bins - fewest))
            self.program.at_most(apart.add(-1, more).add(bins - fewest, groups), 0)
            self.span.add(1, more)

    def _place_part(
        self,
        key: tuple[int, CommonDomain, int],
        part: MeasuredScope,
        most: int,
        row: ColumnSum,
        apart: ColumnSum,
    ) -> None:
        """``row`` counts the subgroups, negative; ``apart`` gets those that do not lie in one leaf, negative."""
        outer = key[1]
        for spot, tier in self._able(part, outer):
            parts = self._column((*key, spot), most)
            if parts is None:
                continue
            row.add(1, parts)
            self._count(part, spot, tier, parts)
            if spot.level < outer.level:
                self._item(part, spot, parts)
            if spot.level:
                apart.add(-1, parts)
                self._pods(part.sizes, spot, parts)
        self.program.equal(row, 0)

    def _count(self, part: MeasuredScope, spot: CommonDomain, tier: int, column: int, each: int = 1) -> None:
        if part.wanted and part.pods:
            self.locality.add(each * part.pods * tier, column)
            self.span.add(each * self._leaves(part, spot), column)

    def _leaves(self, part: MeasuredScope, spot: CommonDomain) -> int:
        """Two leaves at least where the smallest common domain is no leaf."""
        if spot.level == 0:
            return 1
        key = (part.volume, spot.domains[0])
        if key not in self._fewest:
            self._fewest[key] = max(2, self.measured.fewest(*key))
        return self._fewest[key]

    def _item(self, part: MeasuredScope, spot: CommonDomain, column: int) -> None:
        if part.volume and spot.level < 2:
            self._items[spot.level, spot.domains][part.volume].add(1, column)

    def _pods(self, sizes: PieceCounts, spot: CommonDomain, column: int) -> None:
        for size, count in sizes:
            if size and spot.level == 1:
                self._beside[spot.domains][size].add(count, column)
            elif size:
                self._above[spot.domains[0], size].add(count, column)

    def _filler(self) -> None:
        top = max((*self.measured.blocks, *self.measured.uppers), key=lambda each: int(self.measured.room[each]))
        for size, count in self.measured.filler:
            if size:
                self._loose[top, size] += count

    # What fits

    def _share(self) -> None:
        for domain, size in sorted({*self._above, *self._loose}):
            here = self._above[domain, size]
            total = ColumnSum(list(here.variables), [-each for each in here.coefficients])
            for unit in self.units:
                if self.measured.dense.domains.within(unit.blocks[0], domain):
                    share = self._column((domain, size, unit.blocks), unit.room * len(unit.blocks) // size)
                    if share is not None:
                        self._beside[unit.blocks][size].add(1, share)
                        total.add(1, share)
            self.program.equal(total, self._loose[domain, size])

    def _fill(self, unit: EqualBlocks) -> None:
        items = self._items[0, unit.blocks]
        leaves = unit.leaves if unit != self.apart else [(room, 1) for room, bins in unit.leaves for _ in range(bins)]
        flows = self.flows[unit] = [add_arc_flow(self.program, room, bins, list(items)) for room, bins in leaves]
        self._match(items, flows)
        if unit == self.apart:
            self._cut(unit, flows)
        items = self._items[1, unit.blocks]
        if len(unit.blocks) > 1:
            self._match(items, [add_arc_flow(self.program, unit.room, len(unit.blocks), list(items))])
        else:
            row = ColumnSum()
            for volume, here in items.items():
                row.add(volume, *here.variables)
            self.program.at_most(row, unit.room)
        self._rest_of(self._beside[unit.blocks], flows)

    def _match(self, items: dict[int, ColumnSum], flows: Sequence[ArcFlow]) -> None:
        used = [flow.used() for flow in flows]
        for volume, here in items.items():
            total = ColumnSum(list(here.variables), list(here.coefficients))
            for each in used:
                total.add(-1, *each.get(volume, ()))
            self.program.equal(total, 0)

    def _rest_of(self, beside: Mapping[int, ColumnSum], flows: Sequence[ArcFlow]) -> None:
        for least in self.measured.sizes:
            row = ColumnSum()
            for size, here in beside.items():
                for column, coefficient in zip(here.variables, here.coefficients, strict=True):
                    row.add(size // least * coefficient, column)
            if row.variables:
                for flow in flows:
                    for column, count in flow.remaining(least):
                        row.add(-count, column)
                self.program.at_most(row, 0)

    def _cut(self, unit: EqualBlocks, flows: Sequence[ArcFlow]) -> None:
        beside: list[dict[int, ColumnSum]] = [defaultdict(ColumnSum) for _ in flows]
        spot = CommonDomain(1, unit.blocks)
        for number, kind in enumerate(self.measured.kinds):
            groups = self.columns.get((number, spot))
            if groups is not None and not kind.parts and kind.whole.wanted and kind.whole.volume:
                self._cut_groups(number, spot, groups, list(zip(flows, beside, strict=True)))
        for flow, there in zip(flows, beside, strict=True):
            self._rest_of(there, [flow])

    def _cut_groups(
        self, number: int, spot: CommonDomain, groups: int, leaves: Sequence[tuple[ArcFlow, dict[int, ColumnSum]]]
    ) -> None:
        kind = self.measured.kinds[number]
        touched = ColumnSum().add(-self._leaves(kind.whole, spot), groups)
        pods = {size: ColumnSum().add(-count, groups) for size, count in kind.loose if size}
        for flow, there in leaves:
            touched.add(1, self._piece(number, flow.room, pods, there))
        for row in pods.values():
            self.program.equal(row, 0)
        more = self._column((number, "more", spot.domains), len(kind.members) * len(leaves))
        assert more is not None
        self.program.at_most(touched.add(-1, more), 0)
        self.span.add(1, more)

    def _piece(
        self,
        number: int,
        room: int,
        pods: Mapping[int, ColumnSum],
        there: Mapping[int, ColumnSum],
    ) -> int:
        many = len(self.measured.kinds[number].members)
        touches, volume = self.program.column(many), ColumnSum()
        for size, row in pods.items():
            here = self.program.column(room // size)
            row.add(1, here)
            there[size].add(1, here)
            volume.add(size, here)
            self.pieces.append(here)
        self.program.at_most(volume.add(-room, touches), 0)
        self.pieces.append(touches)
        return touches

    def value(self, name: str) -> ColumnSum:
        """The sum that ``locality`` or ``span`` is."""
        return self.locality if name == "locality" else self.span

    def whole(self, unit: EqualBlocks) -> set[int]:
        """Columns of a unit, and those of groups above all units."""
        found = {column for key, column in self.columns.items() if blocks_of(key) == unit.blocks}
        found |= {self.columns[key] for key in self.columns if len(key) == 2 and blocks_of(key) is None}
        return found.union(self.pieces, *(flow.columns for flow in self.flows.get(unit, ())))


def blocks_of(key: Key) -> tuple[int, ...] | None:
    """Blocks of the unit that a column concerns; None where it concerns a domain above."""
    last = key[-1]
    if isinstance(last, CommonDomain):
        return last.domains if last.level < 2 else None
    assert isinstance(last, tuple)
    return last
