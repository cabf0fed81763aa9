"""Tables that are never wider than the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from placer.base.text import legible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_GAP = 2  #: spaces between columns
_LEAST = 8  #: characters that a column of names keeps


@dataclass(frozen=True, slots=True)
class Column:
    """A column: lines of its ``head``, and a text per row; ``text`` wraps at width ``most``."""

    head: str
    cells: Sequence[str]
    text: bool = False
    most: int = 32

    def __post_init__(self) -> None:
        object.__setattr__(self, "cells", tuple(map(legible, self.cells)))

    @property
    def width(self) -> int:
        """Characters that it takes."""
        longest = max(len(line) for cell in (self.head, *self.cells) for line in cell.split("\n"))
        return min(longest, self.most) if self.text else longest


def print_tables(
    terminal: Console, names: Column, columns: Sequence[Column], *, width: int | None = None, bold: int | None = None
) -> None:
    """Print columns next to each other, in as many tables as it takes, each with the names first.

    ``width``: columns of characters; None: those of the terminal.
    """
    for table in _tables(names, columns, width or terminal.width, bold):
        terminal.print(table)


def _tables(names: Column, columns: Sequence[Column], width: int, bold: int | None) -> Iterator[Table]:
    widest = max((column.width for column in columns), default=0)
    if names.width > width - _GAP - widest:  # names go on in the next line before a number is cut
        names = replace(names, text=True, most=max(_LEAST, width - _GAP - widest))
    while columns:
        room, count = width - names.width - _GAP, 0
        while count < len(columns) and (count == 0 or room >= columns[count].width):
            room -= columns[count].width + _GAP
            count += 1
        yield _table((names, *columns[:count]), bold)
        columns = columns[count:]


def _table(columns: Sequence[Column], bold: int | None) -> Table:
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False)
    for index, column in enumerate(columns):
        words = column.text or index == 0
        table.add_column(
            escape(column.head),
            justify="left" if words else "right",
            overflow="fold",
            no_wrap=not words,
            width=column.width,
        )
    for index in range(len(columns[0].cells)):
        table.add_row(*(escape(column.cells[index]) for column in columns), style="bold" if index == bold else "")
    return table
