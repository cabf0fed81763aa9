"""Ways to fill bins of one room: paths through their pieces, an arc for an item, the larger items first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from placer.linear import ColumnSum, IntegerProgram

__all__ = ["Flow", "add_flow"]


@dataclass(frozen=True)
class Flow:
    """As many paths as there are bins.

    Parameters
    ----------
    arcs
        (from, to, column): how many paths have an item of ``to - from`` pieces there.
    ends
        (piece, column): how many paths end there; what is left of their bins is room - piece.
    room, bins
        Pieces of a bin, and how many bins there are.
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
        """Column and coefficient of how many pieces of a size are left beside the items."""
        for piece, column in self.ends:
            count = (self.room - piece) // size
            if count:
                yield column, count


def add_flow(program: IntegerProgram, room: int, bins: int, volumes: Collection[int]) -> Flow:
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
    return Flow(tuple(arcs), tuple(ends), room, bins)
