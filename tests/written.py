"""An instance as Python text that makes it again: what a test prints when it fails, ready to be put into a test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum

from placer.base.quantity import Resources
from placer.problem import Instance

__all__ = ["written"]


def written(instance: Instance) -> str:
    """The instance as an expression over the names of ``placer.problem``; what has its default is left out."""
    return f"instance = {_text(instance, '')}"


def _text(value: object, indent: str) -> str:
    deeper = indent + "    "
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, Resources):
        return f"Resources({dict(value)})"
    if isinstance(value, Mapping):
        lines = [f"{deeper}{_text(key, deeper)}: {_text(each, deeper)},\n" for key, each in value.items()]
        return f"{{\n{''.join(lines)}{indent}}}" if lines else "{}"
    if isinstance(value, tuple):
        return _tuple(value, indent)
    if is_dataclass(value):
        return _dataclass(value, indent)
    return repr(value)


def _tuple(value: tuple[object, ...], indent: str) -> str:
    parts = [_text(each, indent) for each in value]
    if hasattr(value, "_fields"):
        return f"{type(value).__name__}({', '.join(parts)})"
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def _dataclass(value: object, indent: str) -> str:
    said = (field for field in fields(value) if getattr(value, field.name) != _default(field))  # type: ignore[arg-type]
    inner = indent + "    " if isinstance(value, Instance) else indent
    parts = [f"{field.name}={_text(getattr(value, field.name), inner)}" for field in said]
    if isinstance(value, Instance):
        return f"Instance(\n{''.join(f'{inner}{part},' + chr(10) for part in parts)}{indent})"
    return f"{type(value).__name__}({', '.join(parts)})"


def _default(field: Field[object]) -> object:
    """Default of a field; one that it can never have where there is none."""
    if field.default_factory is not MISSING:
        return field.default_factory()
    return field.default
