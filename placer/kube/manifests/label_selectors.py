"""Label selectors as ``kubectl -l`` takes them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

_KEY = r"[A-Za-z0-9][A-Za-z0-9._/-]*"
_VALUE = r"[A-Za-z0-9._-]*"
_TEST = re.compile(
    rf"\s*(?:(?P<absent>!)\s*(?P<no>{_KEY})"
    rf"|(?P<key>{_KEY})\s+(?P<set>in|notin)\s*\(\s*(?P<values>{_VALUE}(?:\s*,\s*{_VALUE})*)\s*\)"
    rf"|(?P<label>{_KEY})\s*(?:(?P<sign>==?|!=)\s*(?P<value>{_VALUE}))?)\s*(?:,|$)"
)


class _LabelTest(NamedTuple):
    key: str
    values: frozenset[str] | None
    wanted: bool

    def holds(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        there = value is not None and (self.values is None or value in self.values)
        return there == self.wanted


def parse_label_selector(text: str) -> tuple[_LabelTest, ...]:
    """Read a selector of ``rack=r7``, ``rack!=r7``, ``rack in (r7, r8)``, ``rack notin (r7)``, ``rack``, ``!rack``, or
    raise ValueError.
    """
    tests: list[_LabelTest] = []
    position, more = 0, True
    while more:
        match = _TEST.match(text, position)
        if match is None:
            raise ValueError(text)
        tests.append(_test(match))
        position, more = match.end(), match[0].endswith(",")
    return tuple(tests)


def _test(match: re.Match[str]) -> _LabelTest:
    if match["absent"]:
        return _LabelTest(match["no"], None, False)
    if match["set"]:
        return _LabelTest(match["key"], frozenset(re.split(r"\s*,\s*", match["values"])), match["set"] == "in")
    values = None if match["sign"] is None else frozenset((match["value"],))
    return _LabelTest(match["label"], values, match["sign"] != "!=")


def matches(tests: tuple[_LabelTest, ...], labels: Mapping[str, str]) -> bool:
    """Whether labels meet every condition."""
    return all(test.holds(labels) for test in tests)
