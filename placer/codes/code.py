"""What is told of one code."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Code"]


class Code(NamedTuple):
    """What is told of one code.

    Parameters
    ----------
    meaning
        One sentence.
    example
        A message as it comes with the code.
    remedy
        What to do about it, in one or two sentences.
    """

    meaning: str
    example: str
    remedy: str
