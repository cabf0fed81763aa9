"""What pydantic says of an object, in the words of faults: where, what stands there, what should."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from placer.manifests.limits import shown
from placer.manifests.paths import path_text

__all__ = ["MOST", "Wrong", "wrongs"]

#: Field, what was found, what was expected.
Wrong = tuple[str, str, str]

#: Beyond so many, the errors of one object are counted and not told: telling takes far more memory than the object.
MOST = 20_000

_TIME = "a time such as 2026-01-31T12:00:00Z"
#: What a field should hold that is left out.
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
    "dataclass_type": "an object",
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
    "unexpected_keyword_argument": "a field that this kind has",
    "datetime_type": _TIME,
    "datetime_parsing": _TIME,
    "datetime_from_date_parsing": _TIME,
    "timezone_aware": f"{_TIME}, with a time zone",
    "placer": "{expected}",
}


def wrongs(error: ValidationError) -> Iterator[Wrong]:
    """Put the errors of one object into words.

    Parameters
    ----------
    error
        What the validator raised.

    Yields
    ------
    Wrong
        One for each error, in pydantic's order; a single one if there are more than 20,000.
    """
    count = error.error_count()
    if count > MOST:
        yield "", f"{count} faults in one object", "none"
        return
    for detail in error.errors(include_url=False):
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
    if detail["type"] == "unexpected_keyword_argument":
        return "an unknown field"
    if detail["type"] == "placer" and "found" in context:
        return str(context["found"])
    if detail["type"] == "string_too_long":
        return f"text of {len(detail['input'])} characters"
    return _value(detail["input"])


def _value(value: object) -> str:
    """Show a value as JSON would have it, in short."""
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, (list, tuple)):
        return f"a list of {len(value)}" if value else "an empty list"
    if isinstance(value, str):
        return f"{shown(value)!r}"
    if isinstance(value, bytes) or (isinstance(value, int) and value.bit_length() > 200):
        return "a very large number"  # pydantic hands over the digits of an integer that it does not read
    return shown(json.dumps(value))
