"""Faults of an input, collected up to a limit and in words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from placer.base.errors import BadInstance, Fault
from placer.base.text import shown

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

    from placer.kube.reader import Misfit

#: Faults that are shown, and faults after which reading stops.
_TOLD = 5_000
_STOP = 20_000


class Faults:
    """All faults of an input, shown up to a limit and counted beyond it."""

    def __init__(self) -> None:
        self._told: list[Fault] = []
        self._count = 0
        self.enough = False  #: Whether there is no point in reading on.

    def __bool__(self) -> bool:
        return self._count > 0

    @property
    def tells(self) -> bool:
        """Whether another fault would still be shown."""
        return len(self._told) < _TOLD

    def add(self, fault: Fault) -> None:
        """Take one fault."""
        if self.tells:
            self._told.append(fault)
        self.count(1)

    def take(self, other: Faults) -> None:
        """Take all faults of another collection."""
        for fault in other._told:
            self.add(fault)
        self.count(other._count - len(other._told))

    def count(self, number: int) -> None:
        """Count faults that are not shown."""
        self._count += number
        self.enough = self.enough or self._count >= _STOP

    def raise_any(self) -> None:
        """Raise :class:`BadInstance` if there was any fault."""
        if not self._count:
            return
        more = self._count - len(self._told)
        rest = []
        if more:
            number = f"at least {more} more faults" if self.enough else f"{more} more faults"
            rest = [Fault("the input", None, "", "", number, "none")]
        files = {name: rank for rank, name in enumerate(dict.fromkeys(fault.file for fault in self._told))}
        told = sorted(self._told, key=lambda fault: (files[fault.file], fault.document or 0))
        raise BadInstance([*told, *rest])


_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


def path_text(steps: Sequence[int | str]) -> str:
    """Write a path.

    Examples
    --------
    >>> path_text(["spec", "containers", 0, "resources", "requests", "nvidia.com/gpu"])
    'spec.containers[0].resources.requests[nvidia.com/gpu]'
    """
    text = ""
    for step in steps:
        if isinstance(step, str) and _WORD.fullmatch(step):
            text += f".{step}" if text else step
        else:
            text += f"[{step}]"
    return text


#: Field, found, expected.
Wrong = tuple[str, str, str]

#: Beyond so many the errors of one object are only counted, since their words take far more memory than the object.
MOST = 20_000

_TIME = "a time such as 2026-01-31T12:00:00Z"
_MISSING = {
    "metadata": "an object with a name",
    "name": "a name",
    "spec": "an object",
    "selector": "an object with one of exactMatch, regexMatch and labelMatch",
}
_EXPECTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "int_parsing_size": "a smaller whole number",
    "bool_type": "true or false",
    "dict_type": "an object",
    "tuple_type": "a list",
    "literal_error": "{expected}",
    "greater_than_equal": "a number of at least {ge}",
    "less_than_equal": "a number of at most {le}",
    "less_than": "a number below {lt}",
    "string_too_short": "text that is not empty",
    "string_too_long": "text of at most {max_length} characters",
    "too_short": "at least {min_length} item",
    "string_pattern_mismatch": "text of the form NAMESPACE/NAME",
    "extra_forbidden": "a field that this kind has",
    "datetime_type": _TIME,
    "datetime_parsing": _TIME,
    "datetime_from_date_parsing": _TIME,
    "timezone_aware": f"{_TIME}, with a time zone",
    "placer": "{expected}",
}


def wrongs(misfit: Misfit) -> Iterator[Wrong]:
    """The errors of one object in words, in the order of the fields; one for all beyond 20,000."""
    count = misfit.count
    if count > MOST:
        yield "", f"{count} faults in one object", "none"
        return
    for detail in misfit.details():
        if detail["type"] == "too_short" and detail["input"]:
            continue  # the list has items, only none that is valid, and each of those is told by itself
        yield path_text(detail["loc"]), _found(detail), _expected(detail)


def _expected(detail: ErrorDetails) -> str:
    if detail["type"] == "missing":
        return _MISSING.get(str(detail["loc"][-1]), "a value")
    words = _EXPECTED.get(detail["type"])
    if words is None:
        return detail["msg"]
    context: Mapping[str, Any] = detail.get("ctx", {})
    return words.format(**context)


def _found(detail: ErrorDetails) -> str:
    context: Mapping[str, Any] = detail.get("ctx", {})
    if detail["type"] == "missing":
        return "nothing"
    if detail["type"] == "extra_forbidden":
        return "an unknown field"
    if detail["type"] == "placer" and "found" in context:
        return str(context["found"])
    if detail["type"] == "string_too_long":
        return f"text of {len(detail['input'])} characters"
    return _value(detail["input"])


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, (list, tuple)):
        return f"a list of {len(value)}" if value else "an empty list"
    if isinstance(value, str):
        return f"{shown(value)!r}"
    if isinstance(value, bytes) or (isinstance(value, int) and value.bit_length() > 200):
        return "a very large number"  # pydantic hands over the digits of an integer that it does not read
    return shown(json.dumps(value))
