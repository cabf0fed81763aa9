"""What a plain YAML scalar means, by the core schema of YAML 1.2.

Only ``true`` and ``false`` are booleans; ``on``, ``off``, ``yes`` and ``no`` are text, ``010`` is ten and ``0o10`` is
eight, and a time is text. Not a number and infinity are refused: JSON, and so Kubernetes, has no word for them.
"""

from __future__ import annotations

import re
from json.encoder import encode_basestring

__all__ = ["is_text", "scalar"]

_NULL = re.compile(r"(?:~|null|Null|NULL)?")
_BOOL = re.compile(r"true|True|TRUE|false|False|FALSE")
_INT = re.compile(r"[-+]?[0-9]+")
_WITH_BASE = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NO_NUMBER = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_LONGEST_NUMBER = 400

#: First characters of no null, boolean or number: most scalars are told from them at once.
_TEXT_STARTS = frozenset("abcdeghijklmopqrsuvwxyzABCDEGHIJKLMOPQRSUVWXYZ_/")


def is_text(value: str) -> bool:
    """Whether a plain scalar is text.

    Examples
    --------
    >>> [is_text(value) for value in ("on", "null", "1e3", "0x1g")]
    [True, False, False, True]
    """
    patterns = (_NULL, _BOOL, _INT, _WITH_BASE, _FLOAT, _NO_NUMBER)
    return value[:1] in _TEXT_STARTS or not any(pattern.fullmatch(value) for pattern in patterns)


def scalar(value: str) -> str:
    """Resolve a plain scalar.

    Parameters
    ----------
    value
        The text of the scalar.

    Returns
    -------
    str
        JSON text.

    Raises
    ------
    ValueError
        A number that JSON has no word for, or of more than 400 characters.

    Examples
    --------
    >>> [scalar(text) for text in ("on", "true", "~", "010", "0o10", ".5", "1e3", "v1")]
    ['"on"', 'true', 'null', '10', '8', '0.5', '1000.0', '"v1"']
    """
    if is_text(value):
        return encode_basestring(value)
    if _NULL.fullmatch(value):
        return "null"
    if _BOOL.fullmatch(value):
        return value.lower()
    if len(value) > _LONGEST_NUMBER or _NO_NUMBER.fullmatch(value):
        raise ValueError(value)
    if _INT.fullmatch(value):
        return str(int(value))
    if _WITH_BASE.fullmatch(value):
        return str(int(value, 0))
    number = float(value)
    if number in (float("inf"), float("-inf")):
        raise ValueError(value)
    return repr(number)
