"""Text from objects, made fit for a terminal: what a user's object says is shown, and never obeyed.

A name of a class or a tier, a label, an annotation, the answer of a server or of a webhook may hold anything: sequences
that move the cursor, rename the window or hide what was printed, marks that turn the order of letters round, line
breaks that look like output of ours. Sentences and cells of tables are made by :func:`legible`, which leaves nothing of
this. :func:`safe_lines` is what standard output, standard error and consoles pass everything through once more, so that
what was forgotten elsewhere does no harm either; :func:`styled` is the way round it for a console's own sequences.
"""

from __future__ import annotations

import re
from typing import Any

__all__ = ["legible", "safe_lines", "shown", "styled"]

#: What a terminal obeys in place of showing it, beside line feed and tabulator: control characters (ESC and the
#: sequences of one byte, C1, among them), marks that change the direction of writing, tags, halves of characters.
_OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


def legible(text: str) -> str:
    r"""Write every character that is not printable as Python does; what comes of it is one line.

    Examples
    --------
    >>> print(legible("tier\x1b[2J\n\u202egnp"))
    tier\x1b[2J\n\u202egnp
    >>> legible("Zürich → 機")
    'Zürich → 機'
    """
    return text if text.isprintable() else "".join(each if each.isprintable() else _escaped(each) for each in text)


def safe_lines(text: str) -> str:
    """Write in the same way what a terminal obeys; lines, tabulators and all that it shows stay."""
    return text if text.isascii() and text.isprintable() else _OBEYED.sub(lambda found: _escaped(found[0]), text)


def shown(text: str, most: int = 80) -> str:
    """Make text legible and not too long."""
    return legible(f"{text[:most]}..." if len(text) > most else text)


def styled(stream: Any) -> Any:
    """The stream for a console, which has made what it prints legible and writes sequences of its own."""
    return getattr(stream, "styled", stream)


def _escaped(character: str) -> str:
    return ascii(character)[1:-1]
