"""The master: how many equal groups have their smallest common domain where, and whether leaves can be filled so.

Leaves are bins, and a flow through their pieces says how they are filled with what lies in one leaf entirely; blocks
above them likewise, with what lies in one block but in no leaf. What lies in neither takes what is left in leaves,
pods of each size where so much is left. Equal blocks are counted together until they are named one by one: with none
named the least value is a bound that holds for the instance, with all named it is nearly a placement.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from placer.linear import ColumnSum, IntegerProgram
from placer.methods.decomposed.master.flow import Flow, add_flow
from placer.methods.decomposed.master.kinds import Ground, Kind, Part, Sizes, Unit

__all__ = ["Key", "Master", "Spot", "TooWide"]

#: More columns than this are not worth the while.
MOST_COLUMNS = 80_000


class TooWide(Exception):
    """The master would have too many columns."""


@dataclass(frozen=True, order=True)
class Spot:
    """Where something has its smallest common domain.

    Parameters
    ----------
    level
        0: in a leaf of a unit; 1: in a block of a unit; 2: in a domain above.
    domains
        The blocks of the unit, or the one domain above.
    """

    level: int
    domains: tuple[int, ...]


#: What a column counts: groups of a kind at a spot ``(kind, spot)``; subgroups ``(kind, spot of the group, part,
#: spot)``; pods of what lies in a domain above that go to a unit ``(domain, size, blocks)``.
Key = tuple[object, ...]


class Master:
    """One program.

    Parameters
    ----------
    ground
        The instance.
    units
        How its blocks are counted.
    known
        Values of all columns that concern units whose content is settled: nothing more is said about how those are
        filled.
    apart
        A unit of one block whose leaves are looked at one by one, so that ``span`` says more.

    Attributes
    ----------
    columns
        Key to column; a settled unit has none where ``known`` says 0.
    locality, span
        The values, without what ``Ground.standing`` says.
    flows
        Unit to how its leaves are filled.
    pieces
        Columns of what lies in a block and which of its leaves it touches.
    """

    def __init__(
        self,
        ground: Ground,
        units: Sequence[Unit],
        known: Mapping[Key, int] | None = None,
        apart: Unit | None = None,
    ) -> None:
        self.ground, self.units, self.known, self.apart = ground, tuple(units), known or {}, apart
        self.settled = {where for key in self.known for where in [blocks_of(key)] if where is not None}
        self.program = IntegerProgram()
        self.columns: dict[Key, int] = {}
        self.locality, self.span = ColumnSum(), ColumnSum()
        self.flows: dict[Unit, list[Flow]] = {}
        self.pieces: list[int] = []
        self._items: dict[tuple[int, tuple[int, ...]], dict[int, ColumnSum]] = defaultdict(
            lambda: defaultdict(ColumnSum)
        )
        self._beside: dict[tuple[int, ...], dict[int, ColumnSum]] = defaultdict(lambda: defaultdict(ColumnSum))
        self._above: dict[tuple[int, int], ColumnSum] = defaultdict(ColumnSum)
        self._loose: dict[tuple[int, int], int] = defaultdict(int)
        self._fewest: dict[tuple[int, int], int] = {}
        self._spots = self._all_spots()
        for number, kind in enumerate(ground.kinds):
            self._place(number, kind)
        self._filler()
        self._share()
        for unit in self.units:
            if unit.blocks not in self.settled:
                self._fill(unit)
        for key in self.known:
            if key[1] == "more":
                more = self._column(key, self.known[key])
                self.span.add(1, *([] if more is None else [more]))

    # Where things may be

    def _all_spots(self) -> list[tuple[Spot, int, int]]:
        """Spots with their tier and room, lower ones first."""
        ground, tree = self.ground, self.ground.dense.domains
        found = [(Spot(0, unit.blocks), ground.leaf_tier, max(room for room, _ in unit.leaves)) for unit in self.units]
        found += [(Spot(1, unit.blocks), int(tree.tier[unit.blocks[0]]), unit.room) for unit in self.units]
        return found + [(Spot(2, (each,)), int(tree.tier[each]), int(ground.room[each])) for each in ground.uppers]

    def _able(self, part: Part, outer: Spot | None = None) -> list[tuple[Spot, int]]:
        """Spots, with their tiers, where a part may be whose group is at ``outer``."""
        return [
            (spot, tier)
            for spot, tier, room in self._spots
            if tier <= part.limit and room >= part.volume and (outer is None or self._within(spot, outer))
        ]

    def _within(self, spot: Spot, outer: Spot) -> bool:
        if outer.level < 2:
            return spot.level <= outer.level and spot.domains == outer.domains
        return self.ground.inside(spot.domains[0], outer.domains[0])

    def _column(self, key: Key, most: int) -> int | None:
        """Make a column; None where it is known to be 0."""
        known = self.known.get(key)
        if blocks_of(key) in self.settled and not known:
            return None
        if len(self.program.upper) > MOST_COLUMNS:
            raise TooWide
        column = self.columns[key] = self.program.column(most)
        if known is not None:
            self.program.equal(ColumnSum().add(1, column), known)
        return column

    def _place(self, number: int, kind: Kind) -> None:
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

    def _place_parts(self, number: int, spot: Spot, groups: int) -> None:
        """Subgroups of groups at one spot, and the leaves that these touch in all.

        Subgroups that lie in one leaf each are bins' items: a group needs so many bins for all of them, and one bin
        less for each that does not lie in one leaf.
        """
        kind, apart = self.ground.kinds[number], ColumnSum()
        many = len(kind.members)
        for index, (part, count) in enumerate(kind.parts):
            self._place_part((number, spot, index), part, count * many, ColumnSum().add(-count, groups), apart)
        fewest, bins = self._leaves(kind.whole, spot), self.ground.bins(number, spot.domains[0])
        if kind.whole.wanted and bins > fewest:
            more = self.program.column(many * (bins - fewest))
            self.program.at_most(apart.add(-1, more).add(bins - fewest, groups), 0)
            self.span.add(1, more)

    def _place_part(
        self,
        key: tuple[int, Spot, int],
        part: Part,
        most: int,
        row: ColumnSum,
        apart: ColumnSum,
    ) -> None:
        """Subgroups of one kind whose groups are at one spot.

        ``row`` counts them, negative; ``apart`` gets those that do not lie in one leaf, negative.
        """
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

    def _count(self, part: Part, spot: Spot, tier: int, column: int, each: int = 1) -> None:
        """What so many parts at a spot add to the values."""
        if part.wanted and part.pods:
            self.locality.add(each * part.pods * tier, column)
            self.span.add(each * self._leaves(part, spot), column)

    def _leaves(self, part: Part, spot: Spot) -> int:
        """Leaves that a part touches at least: two where its smallest common domain is no leaf."""
        if spot.level == 0:
            return 1
        key = (part.volume, spot.domains[0])
        if key not in self._fewest:
            self._fewest[key] = max(2, self.ground.fewest(*key))
        return self._fewest[key]

    def _item(self, part: Part, spot: Spot, column: int) -> None:
        """It lies in one leaf or block as a whole."""
        if part.volume and spot.level < 2:
            self._items[spot.level, spot.domains][part.volume].add(1, column)

    def _pods(self, sizes: Sizes, spot: Spot, column: int) -> None:
        """Pods that go wherever in the spot room is left in leaves."""
        for size, count in sizes:
            if size and spot.level == 1:
                self._beside[spot.domains][size].add(count, column)
            elif size:
                self._above[spot.domains[0], size].add(count, column)

    def _filler(self) -> None:
        """Pods that may be anywhere: in the largest domain there is."""
        top = max((*self.ground.blocks, *self.ground.uppers), key=lambda each: int(self.ground.room[each]))
        for size, count in self.ground.filler:
            if size:
                self._loose[top, size] += count

    # What fits

    def _share(self) -> None:
        """What lies in a domain above is shared out among the units in it."""
        for domain, size in sorted({*self._above, *self._loose}):
            here = self._above[domain, size]
            total = ColumnSum(list(here.variables), [-each for each in here.coefficients])
            for unit in self.units:
                if self.ground.inside(unit.blocks[0], domain):
                    share = self._column((domain, size, unit.blocks), unit.room * len(unit.blocks) // size)
                    if share is not None:
                        self._beside[unit.blocks][size].add(1, share)
                        total.add(1, share)
            self.program.equal(total, self._loose[domain, size])

    def _fill(self, unit: Unit) -> None:
        """Leaves hold what lies in one of them, blocks what lies in one of them; the rest goes beside it."""
        items = self._items[0, unit.blocks]
        leaves = unit.leaves if unit != self.apart else [(room, 1) for room, bins in unit.leaves for _ in range(bins)]
        flows = self.flows[unit] = [add_flow(self.program, room, bins, list(items)) for room, bins in leaves]
        self._match(items, flows)
        if unit == self.apart:
            self._cut(unit, flows)
        items = self._items[1, unit.blocks]
        if len(unit.blocks) > 1:
            self._match(items, [add_flow(self.program, unit.room, len(unit.blocks), list(items))])
        else:
            row = ColumnSum()
            for volume, here in items.items():
                row.add(volume, *here.variables)
            self.program.at_most(row, unit.room)
        self._rest(unit, flows)

    def _match(self, items: dict[int, ColumnSum], flows: Sequence[Flow]) -> None:
        """There are as many items of a volume as arcs."""
        used = [flow.used() for flow in flows]
        for volume, here in items.items():
            total = ColumnSum(list(here.variables), list(here.coefficients))
            for each in used:
                total.add(-1, *each.get(volume, ()))
            self.program.equal(total, 0)

    def _rest(self, unit: Unit, flows: Sequence[Flow]) -> None:
        """Pods beside the items: in pieces of each size there is only so much left."""
        self._rest_of(self._beside[unit.blocks], flows)

    def _rest_of(self, beside: Mapping[int, ColumnSum], flows: Sequence[Flow]) -> None:
        for least in self.ground.sizes:
            row = ColumnSum()
            for size, here in beside.items():
                for column, coefficient in zip(here.variables, here.coefficients, strict=True):
                    row.add(size // least * coefficient, column)
            if row.variables:
                for flow in flows:
                    for column, count in flow.remaining(least):
                        row.add(-count, column)
                self.program.at_most(row, 0)

    def _cut(self, unit: Unit, flows: Sequence[Flow]) -> None:
        """Groups without subgroups that lie in the block are cut into pieces, one per leaf that they touch."""
        beside: list[dict[int, ColumnSum]] = [defaultdict(ColumnSum) for _ in flows]
        for number, kind in enumerate(self.ground.kinds):
            spot = Spot(1, unit.blocks)
            groups = self.columns.get((number, spot))
            if groups is None or kind.parts or not (kind.whole.wanted and kind.whole.volume):
                continue
            touched = ColumnSum().add(-self._leaves(kind.whole, spot), groups)
            pods = {size: ColumnSum().add(-count, groups) for size, count in kind.loose if size}
            for flow, there in zip(flows, beside, strict=True):
                piece = self._piece(number, flow.room, pods, there)
                touched.add(1, piece)
            for row in pods.values():
                self.program.equal(row, 0)
            more = self._column((number, "more", unit.blocks), len(kind.members) * len(flows))
            assert more is not None
            self.program.at_most(touched.add(-1, more), 0)
            self.span.add(1, more)
        for flow, there in zip(flows, beside, strict=True):
            self._rest_of(there, [flow])

    def _piece(
        self,
        number: int,
        room: int,
        pods: Mapping[int, ColumnSum],
        there: Mapping[int, ColumnSum],
    ) -> int:
        """Make the column that says how many groups of a kind touch a leaf, and those of their pods there."""
        many = len(self.ground.kinds[number].members)
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

    def whole(self, unit: Unit) -> set[int]:
        """Columns that concern a unit, and those that say which groups lie above all units."""
        found = {column for key, column in self.columns.items() if blocks_of(key) == unit.blocks}
        found |= {self.columns[key] for key in self.columns if len(key) == 2 and blocks_of(key) is None}
        return found.union(self.pieces, *(flow.columns for flow in self.flows.get(unit, ())))


def blocks_of(key: Key) -> tuple[int, ...] | None:
    """Blocks of the unit that a column concerns; None where it concerns a domain above."""
    last = key[-1]
    if isinstance(last, Spot):
        return last.domains if last.level < 2 else None
    assert isinstance(last, tuple)
    return last
