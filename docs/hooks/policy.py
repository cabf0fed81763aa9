"""Every key of a Policy, from its JSON Schema."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

SCHEMA = Path(__file__).parents[2] / "placer" / "schemas" / "policy.schema.json"


def as_markdown() -> str:
    """A table with a row for each key of ``spec``."""
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    rows = [
        f"| <code>{path.replace('.', '.<wbr>')}</code> | {_values(key)}{_default(key)} | {key['description']} |"
        for path, key in keys(schema["properties"]["spec"])
    ]
    table = "\n".join(["| key of `spec` | values | means |", "| --- | --- | --- |", *rows])
    return f'<div class="keys" markdown>\n\n{table}\n\n</div>'


def keys(schema: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every key with its schema, outer ones first; ``[]`` behind a list whose items have keys."""
    for name, key in schema.get("properties", {}).items():
        inner = f"{path}{name}"
        yield inner, key
        yield from keys(key, f"{inner}.")
        if "items" in key:
            yield from keys(key["items"], f"{inner}[].")


def _values(key: Mapping[str, Any]) -> str:
    """What may stand there; null, which is the default everywhere, is not told."""
    if "enum" in key:
        return ", ".join(f"`{_word(value)}`" for value in key["enum"] if value is not None)
    kind = next(kind for kind in _listed(key["type"]) if kind != "null")
    if kind == "array" and "enum" in key["items"]:
        return f"list of {', '.join(f'`{value}`' for value in key['items']['enum'])}"
    if kind == "array":
        return f"list of {_KINDS[_listed(key['items']['type'])[0]]}s"
    if kind == "object" and "additionalProperties" in key and isinstance(key["additionalProperties"], dict):
        return f"name: {_KINDS[key['additionalProperties']['type']]}"
    return _KINDS[kind]


_KINDS = {"string": "text", "integer": "whole number", "number": "number", "object": "object", "boolean": "true, false"}


def _listed(kinds: str | list[str]) -> list[str]:
    return [kinds] if isinstance(kinds, str) else kinds


def _default(key: Mapping[str, Any]) -> str:
    return f"; default `{_word(key['default'])}`" if "default" in key else ""


def _word(value: Any) -> str:
    """As YAML has it in one line."""
    return value if isinstance(value, str) else json.dumps(value).replace('"', "")
