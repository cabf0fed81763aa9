"""Regular expressions of objects against names, in time that no pattern can stretch (RE2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import re2

__all__ = ["names_found", "pattern_error"]

#: A bad pattern is a finding; RE2 shall not write to standard error on its own.
_OPTIONS = re2.Options()
_OPTIONS.log_errors = False
_OPTIONS.max_mem = 64 << 20


def pattern_error(pattern: str) -> str | None:
    """Why a pattern is no regular expression of RE2; None where it is one."""
    try:
        re2.compile(pattern, _OPTIONS)
    except re2.error as error:
        raw = error.args[0] if error.args else "unknown error"
        return raw.decode("utf-8", "replace") if isinstance(raw, bytes) else str(raw)
    return None


def names_found(patterns: Iterable[str], names: Sequence[str]) -> dict[str, list[str]]:
    """Find the names in which each pattern is found anywhere.

    Parameters
    ----------
    patterns
        Patterns without error.
    names
        Names, in the order in which they are to be returned.

    Returns
    -------
    dict
        Pattern to names. All patterns are matched at once (a hundred times as fast for a whole cluster), or one after
        another where together they pass RE2's memory.
    """
    wanted = sorted(set(patterns))
    found: dict[str, list[str]] = {pattern: [] for pattern in wanted}
    together = _together(wanted)
    if together is None:
        for pattern in wanted:
            compiled = re2.compile(pattern, _OPTIONS)
            found[pattern] = [name for name in names if compiled.search(name)]
        return found
    for name in names:
        for index in together.Match(name) or ():
            found[wanted[index]].append(name)
    return found


def _together(patterns: Sequence[str]) -> re2.Set | None:
    """All patterns as one automaton; None where there are none or it would be too large."""
    if not patterns:
        return None
    together = re2.Set.SearchSet(_OPTIONS)
    try:
        for pattern in patterns:
            together.Add(pattern)
        together.Compile()
    except re2.error:
        return None
    return together
