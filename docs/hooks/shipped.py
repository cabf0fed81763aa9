"""Sizes and best placements of the shipped instances of a family, from their table."""

from __future__ import annotations

import csv
import re
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "instances"
#: Columns of sizes, behind the name.
_SIZES = 6


def families() -> list[str]:
    """Folders of instances."""
    return sorted(readme.parent.name for readme in FOLDER.glob("*/README.md"))


def as_markdown(family: str) -> str:
    """Two tables: sizes, and values of the best placements with their bounds."""
    with (FOLDER / "best.csv").open(encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    ours = [(path.rpartition("/")[2], *cells) for path, *cells in rows if path.partition("/")[0] == family]
    sizes = _table(head[:_SIZES], [row[:_SIZES] for row in ours])
    best = _table([head[0], *head[_SIZES:]], [(row[0], *row[_SIZES:]) for row in ours])
    return f"{sizes}\n\nBest placements known:\n\n{best}"


def _table(head: list[str], rows: list[tuple[str, ...]]) -> str:
    lines = [head, ["---"] * len(head), *([f"`{name}`", *map(_cell, cells)] for name, *cells in rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _cell(text: str) -> str:
    return re.sub(r"\d+", lambda match: f"{int(match[0]):,}", text)
