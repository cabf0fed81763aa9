"""Slurm's hostlists to names (Slurm ``src/common/hostlist.c``); a range is as wide as its first number."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product

MOST_NAMES = 1_000_000

_RANGE = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?", re.ASCII)


def expand(text: str) -> list[str]:
    """Names of a hostlist, in its order, or ValueError.

    Examples
    --------
    >>> expand("tux[0-2,08-09],r[1-2]n[1-2]-ib")
    ['tux0', 'tux1', 'tux2', 'tux08', 'tux09', 'r1n1-ib', 'r1n2-ib', 'r2n1-ib', 'r2n2-ib']
    """
    names: list[str] = []
    for part in _parts(text):
        pieces = list(_pieces(part))
        count = len(names)
        for piece in pieces:
            count = max(count, 1) * sum(high - low + 1 for low, high, _ in piece) if isinstance(piece, list) else count
        if count > MOST_NAMES:
            raise ValueError(f"more than {MOST_NAMES:,} names")
        choices = [[piece] if isinstance(piece, str) else list(_numbers(piece)) for piece in pieces]
        names += map("".join, product(*choices))
    return names


def _parts(text: str) -> Iterator[str]:
    start, inside = 0, False
    for place, character in enumerate(text):
        if character in "[]":
            if inside is (character == "["):
                raise ValueError(f"{text!r}, whose brackets do not pair")
            inside = not inside
        elif character == "," and not inside:
            yield _named(text[start:place], text)
            start = place + 1
    if inside:
        raise ValueError(f"{text!r}, whose brackets do not pair")
    yield _named(text[start:], text)


def _named(part: str, text: str) -> str:
    if not part or re.search(r"\s", part):
        raise ValueError(f"{text!r} with an empty name or a space")
    return part


def _pieces(part: str) -> Iterator[str | list[tuple[int, int, int]]]:
    for index, piece in enumerate(re.split(r"[\[\]]", part)):
        if index % 2 == 0:
            yield piece
            continue
        ranges = []
        for each in piece.split(","):
            match = _RANGE.fullmatch(each)
            if match is None or int(match[2] or match[1]) < int(match[1]):
                raise ValueError(f"{part!r} with the range {each!r}")
            ranges.append((int(match[1]), int(match[2] or match[1]), len(match[1])))
        yield ranges


def _numbers(ranges: list[tuple[int, int, int]]) -> Iterator[str]:
    for low, high, width in ranges:
        yield from (f"{number:0{width}d}" for number in range(low, high + 1))
