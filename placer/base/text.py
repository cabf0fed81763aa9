"""Text from objects, made fit for a terminal: shown, and never obeyed.

:func:`legible` makes sentences and cells; :func:`safe_lines` guards all output once more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

#: How alike two words must be, from 0 to 1, for one to be proposed for the other; longer ones are like none.
_ALIKE, _LONGEST = 0.7, 64

#: What a terminal obeys in place of showing it, beside line feed and tabulator: control characters (ESC and the
#: sequences of one byte, C1, among them), marks that change the direction of writing, tags, halves of characters.
_OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)

_UUID = re.compile(r"(?<![0-9a-z])([0-9a-f]{8})(?:-[0-9a-f]{4}){3}-[0-9a-f]{8}([0-9a-f]{4})(?![0-9a-z])")


def legible(text: str) -> str:
    r"""Write every character that is not printable as Python does, in one line.

    Examples
    --------
    >>> print(legible("tier\x1b[2J\n\u202egnp"))
    tier\x1b[2J\n\u202egnp
    """
    return text if text.isprintable() else "".join(each if each.isprintable() else _escaped(each) for each in text)


def safe_lines(text: str) -> str:
    """Write in the same way all that a terminal obeys, but for lines and tabulators."""
    return text if text.isascii() and text.isprintable() else _OBEYED.sub(lambda found: _escaped(found[0]), text)


def shown(text: str, most: int = 80) -> str:
    """Make text legible and not too long."""
    return legible(f"{text[:most]}..." if len(text) > most else text)


def short_name(name: str) -> str:
    """Shorten UUIDs of a name in the middle.

    Examples
    --------
    >>> short_name("train-6f1b2c3d-1111-2222-3333-0123456789ab")
    'train-6f1b2c3d...89ab'
    """
    return _UUID.sub(r"\1...\2", name)


def styled(stream: Any) -> Any:
    """The stream for a console that writes sequences of its own."""
    return getattr(stream, "styled", stream)


def _escaped(character: str) -> str:
    return ascii(character)[1:-1]


def alike(word: str, known: Iterable[str], least: float = _ALIKE) -> str | None:
    """Find the known word that is most like another, if any is at least so much like it."""
    from difflib import get_close_matches

    if len(word) > _LONGEST:
        return None
    by_lower = {each.lower(): each for each in sorted(known)}
    found = get_close_matches(word.lower(), by_lower, 1, least)
    return by_lower[found[0]] if found else None


def found_like(word: str, known: Iterable[str]) -> str:
    """Name the known word that may be meant by an unknown one."""
    like = alike(word, known)
    return f"; found like it: {like}" if like not in (None, word) else ""
