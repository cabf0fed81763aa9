"""Numbers, names, sets and tables as MiniZinc data."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

__all__ = ["names", "numbered", "numbers", "one_set", "plain", "sets", "table"]

T = TypeVar("T", bound=Hashable)


def numbered(things: Iterable[T]) -> dict[T, int]:
    """Each name's number, from 1."""
    return {name: number for number, name in enumerate(things, 1)}


def plain(value: int) -> str:
    """Write a number or a truth value."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def one_set(members: Iterable[int]) -> str:
    """Write a set."""
    return f"{{{', '.join(map(str, members))}}}"


def numbers(name: str, values: Iterable[int]) -> str:
    """Write an array of numbers or truth values."""
    return f"{name} = [{', '.join(map(plain, values))}];"


def sets(name: str, values: Iterable[Iterable[int]]) -> str:
    """Write an array of sets."""
    return f"{name} = [{', '.join(map(one_set, values))}];"


def names(name: str, values: Iterable[object]) -> str:
    """Write an array of names, each with its number beside it."""
    lines = [f"  {json.dumps(str(value))}, % {number}" for number, value in enumerate(values, 1)]
    return "\n".join([f"{name} = [", *lines, "];"])


def table(name: str, rows: Sequence[Sequence[int]], of: Iterable[object], width: int | None = None) -> str:
    """Write a table, a row a line, each with what it is about beside it."""
    columns = width if width is not None else max(map(len, rows), default=0)
    lines = [f"  {''.join(f'{value}, ' for value in row)}% {about}" for row, about in zip(rows, of, strict=True)]
    return "\n".join([f"{name} = array2d(1..{len(rows)}, 1..{columns}, [", *lines, "]);"])
