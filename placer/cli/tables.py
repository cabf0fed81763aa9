"""Tables of policies that are never wider than the terminal, and notes on what is not mimicked below them."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = ["BREAKS", "BROKEN", "Column", "columns_of", "print_notes", "tables"]

#: What a row of a table is about.
T = TypeVar("T")

#: Mark of a figure beside a bound, of a placement that breaks rules; and what it says.
BROKEN = "*"
BREAKS = f"{BROKEN} breaks rules: what is proved is proved of placements that break none"

_GAP = 2  #: spaces between columns
_LEAST = 8  #: characters that a column of names keeps


@dataclass(frozen=True, slots=True)
class Column:
    """A column: what stands above it, and a text per row.

    Parameters
    ----------
    head
        One or more lines.
    cells
        One for each row.
    text
        Words, which begin on the left and go on in the next line where they are longer than :attr:`most`.
    most
        Width that is never exceeded, of a column of words.
    """

    head: str
    cells: Sequence[str]
    text: bool = False
    most: int = 32

    @property
    def width(self) -> int:
        """Characters that it takes."""
        longest = max(len(line) for cell in (self.head, *self.cells) for line in cell.split("\n"))
        return min(longest, self.most) if self.text else longest


def columns_of(rows: Sequence[T], figures: Mapping[str, Callable[[T], str]], texts: Sequence[str] = ()) -> list[Column]:
    """A column for each figure, by what stands above it; those of words are among ``texts``."""
    return [Column(head, [of(row) for row in rows], text=head in texts) for head, of in figures.items()]


def tables(names: Column, columns: Sequence[Column], width: int, bold: int | None = None) -> Iterator[Table]:
    """Put columns beside each other, in as many tables as it takes, each with the names before them.

    Parameters
    ----------
    names
        The first column of each table.
    columns
        The others, in order.
    width
        Of the terminal.
    bold
        Index of a row that stands out; None: none does.
    """
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


def print_notes(notes: Mapping[str, Iterable[str]], terminal: Console) -> None:
    """Say what is not mimicked; ``notes`` are policy to what is to be said of it, the same of several is said once."""
    policies: dict[str, list[str]] = {}
    for policy, told in notes.items():
        for note in told:
            policies.setdefault(note, []).append(policy)
    if policies:
        terminal.print("\nNot mimicked, or to be read in more than one way")
    for note, names in policies.items():
        told = f"{', '.join(names)}: {note}"
        lines = textwrap.wrap(
            told, terminal.width, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False
        )
        for line in lines:
            terminal.print(line, markup=False)
