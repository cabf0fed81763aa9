"""What schemas say of themselves: the names of their fields in the text, and the schema of what stands in each."""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Any, Union, cast, get_args, get_origin

from pydantic import AliasChoices
from pydantic.fields import FieldInfo

__all__ = ["fields_of", "is_closed", "is_schema", "names_of", "without_none"]


def fields_of(model: type[Any]) -> Mapping[str, FieldInfo]:
    """Fields of a schema by their names in Python."""
    found: Mapping[str, FieldInfo] = cast(Any, model).__pydantic_fields__
    return found


def names_of(name: str, field: FieldInfo) -> list[str]:
    """Names of a field in the text; several where a field has an older spelling."""
    alias = field.validation_alias
    if isinstance(alias, AliasChoices):
        return [str(each) for each in alias.choices]
    return [alias if isinstance(alias, str) else name]


def is_schema(annotation: Any) -> bool:
    """Whether a type is a schema."""
    return getattr(annotation, "__pydantic_config__", None) is not None


def is_closed(model: Any) -> bool:
    """Whether a schema is one of our own kinds: it has every field that there is, and another is a fault."""
    return bool(model.__pydantic_config__.get("extra") == "forbid")


def without_none(annotation: Any) -> Any:
    """The type that stands in ``Annotated`` or beside None."""
    while True:
        if hasattr(annotation, "__metadata__"):
            annotation = annotation.__origin__
        elif get_origin(annotation) in (Union, types.UnionType):
            annotation = next(each for each in get_args(annotation) if each is not type(None))
        else:
            return annotation
