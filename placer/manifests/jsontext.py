"""Checks on JSON text that must come before any parser sees it, and the place of an error in words.

Nesting and the number of values are found without parsing, in pieces: escapes and everything that is neither quote nor
bracket are dropped, then all strings, and the depth is a running sum over the brackets that are left.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from placer.manifests.limits import LEVELS, values_allowed

__all__ = ["place", "refusal"]

_PIECE = 4 * 2**20
_NOT_BRACKET = bytes(byte for byte in range(256) if byte not in b'"{}[]')
_NOT_TOKEN = bytes(byte for byte in range(256) if byte not in b'"{[,')
_CONTINUATION = bytes(range(0x80, 0xC0))
_AFTER_BACKSLASHES = re.compile(rb"[^\\]")
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"?|[][{}]', re.DOTALL)
_STEP = np.zeros(256, np.int8)
_STEP[list(b"{[")] = 1
_STEP[list(b"}]")] = -1


def refusal(text: bytes | bytearray) -> tuple[str, str, str] | None:
    """Say why a JSON text must not be parsed.

    Parameters
    ----------
    text
        The whole text; need not be valid JSON.

    Returns
    -------
    tuple of str, or None
        Place, what was found and what was expected; None if nothing speaks against parsing.
    """
    if text.count(b",") + text.count(b"{") + text.count(b"[") > values_allowed(len(text)):  # strings may hold these too
        number = sum(len(piece) for piece, _ in _outside_strings(text, _NOT_TOKEN))
        if number > values_allowed(len(text)):
            return "", f"{number} values in {len(text)} bytes", f"at most {values_allowed(len(text))} values"
    depth = 0
    for brackets, start in _outside_strings(text, _NOT_BRACKET):
        if brackets:
            levels = np.cumsum(_STEP[np.frombuffer(brackets, np.uint8)], dtype=np.int64)
            if depth + int(levels.max()) > LEVELS:
                offset = _too_deep(text, start, depth)
                return place(text, offset), f"more than {LEVELS} levels of nesting", f"at most {LEVELS} levels"
            depth += int(levels[-1])
    return None


def _outside_strings(text: bytes | bytearray, dropped: bytes) -> Iterator[tuple[bytes, int]]:
    """Pieces of the text without strings and ``dropped`` bytes, with their places, negative where in a string."""
    start, inside = 0, False
    while start < len(text):
        stop = min(start + _PIECE, len(text))
        if text[stop - 1] == 0x5C:  # never cut an escape in two
            match = _AFTER_BACKSLASHES.search(text, stop)
            stop = match.end() if match else len(text)
        piece = bytes(text[start:stop])
        if b"\\" in piece:
            piece = piece.replace(b"\\\\", b"").replace(b'\\"', b"")
        # Taking neighbouring quotes away in pairs never changes which bytes stand between quotes.
        parts = piece.translate(None, dropped).replace(b'""', b"").split(b'"')
        yield b"".join(parts[inside::2]), start if not inside else -start
        inside ^= len(parts) % 2 == 0
        start = stop


def _too_deep(text: bytes | bytearray, start: int, depth: int) -> int:
    """Place of the bracket that opens one level too many, searched from the start of its piece."""
    if start < 0:  # the piece begins inside a string
        start = -start
        end = re.compile(rb'(?:[^"\\]|\\.)*"', re.DOTALL).match(text, start)
        start = end.end() if end else start
    for token in _TOKEN.finditer(text, start):
        depth += {b"{": 1, b"[": 1, b"}": -1, b"]": -1}.get(token[0], 0)
        if depth > LEVELS:
            return token.start()
    return start


def place(text: bytes | bytearray, offset: int) -> str:
    r"""Put an offset into words.

    Examples
    --------
    >>> place(b"{\n  nonsense", 4)
    'line 2, column 3'
    """
    before = text.rfind(b"\n", 0, offset) + 1
    line = text.count(b"\n", 0, before) + 1
    column = 1
    for start in range(before, offset, _PIECE):  # a line may be the whole text
        column += len(text[start : min(start + _PIECE, offset)].translate(None, _CONTINUATION))
    return f"line {line}, column {column}"
