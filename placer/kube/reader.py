"""Text to an object of a schema.

msgspec stops at the first fault. A validator of pydantic-core, made of the same schema, then reads on and decides, so
both never differ.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, Union, get_args, get_origin

import msgspec

from placer.kube.base import After, Instead, Problem, Quantity, Schema, read_quantity

if TYPE_CHECKING:
    from pydantic_core import CoreSchema, ErrorDetails, SchemaValidator, ValidationError

T = TypeVar("T")


class Misfit(ValueError):
    """A text is no object of a schema; ``error`` has every fault."""

    def __init__(self, error: ValidationError) -> None:
        super().__init__(str(error))
        self._error = error

    @property
    def count(self) -> int:
        """Number of faults."""
        return self._error.error_count()

    def details(self) -> list[ErrorDetails]:
        """pydantic-core's details of each fault; many of them take far more memory than the text."""
        return self._error.errors(include_url=False)


class SchemaReader(Generic[T]):
    """Reads JSON text as one type: a schema, or a type of its fields."""

    def __init__(self, annotation: Any) -> None:
        self._annotation = annotation
        self._is_closed = is_schema(annotation) and is_closed(annotation)

    @cached_property
    def _decode(self) -> Callable[[bytes], T]:
        decode: Callable[[bytes], T] = msgspec.json.Decoder(
            self._annotation, dec_hook=lambda _, value: read_quantity(value)
        ).decode
        return decode

    @cached_property
    def _validator(self) -> SchemaValidator:
        from pydantic_core import SchemaValidator

        return SchemaValidator(_core_schema(self._annotation))

    def read(self, text: bytes) -> T:
        """Read one text, or raise :class:`Misfit` with every fault."""
        if not self._is_closed:  # there msgspec cannot read everything (``Instead``), and there are few of them
            try:
                return self._decode(text)
            except (msgspec.DecodeError, RecursionError):
                pass
        return self._look_again(text)

    def _look_again(self, text: bytes) -> T:
        from pydantic_core import ValidationError

        try:
            found: T = self._validator.validate_json(text)
        except ValidationError as error:
            raise Misfit(error) from None
        return found


# --------------------------------------------------------------------------------------- what schemas say of themselves


def fields_of(model: Any) -> tuple[msgspec.structs.FieldInfo, ...]:
    """Fields of a schema, with their types and their names in the text."""
    return msgspec.structs.fields(model)


def is_schema(annotation: Any) -> bool:
    """Whether a type is a schema."""
    kind = schema_class(annotation)
    return isinstance(kind, type) and issubclass(kind, Schema)


def schema_class(model: Any) -> Any:
    """The class of a schema, without the types of its parts."""
    return get_origin(model) or model


def is_closed(model: Any) -> bool:
    """Whether a schema is one of our own kinds."""
    return bool(schema_class(model).__struct_config__.forbid_unknown_fields)


def without_none(annotation: Any) -> Any:
    """The type in ``Annotated`` or next to None; of several the schema."""
    while True:
        if hasattr(annotation, "__metadata__"):
            annotation = annotation.__origin__
        elif get_origin(annotation) in (Union, types.UnionType):
            given = [each for each in get_args(annotation) if each is not type(None)]
            annotation = next(filter(is_schema, given), given[0])
        else:
            return annotation


# ------------------------------------------------------------------------------------------------------ the second look


def _core_schema(annotation: Any) -> CoreSchema:
    from pydantic_core import core_schema

    metadata: tuple[Any, ...] = getattr(annotation, "__metadata__", ())
    for each in metadata:
        if isinstance(each, Instead):
            return core_schema.no_info_plain_validator_function(_told(each.read))
    inner = annotation.__origin__ if metadata else annotation
    limits = {name: value for each in metadata if isinstance(each, msgspec.Meta) for name, value in _limits(each)}
    made = _of_type(inner, limits)
    for each in metadata:
        if isinstance(each, After):
            made = core_schema.no_info_after_validator_function(_told(each.check), made)
    return made


def _limits(meta: msgspec.Meta) -> Iterator[tuple[str, Any]]:
    for name in ("ge", "gt", "le", "lt", "min_length", "max_length", "pattern"):
        if getattr(meta, name) is not None:
            yield name, getattr(meta, name)
    if meta.tz:
        yield "tz_constraint", "aware"


def _of_type(kind: Any, limits: dict[str, Any]) -> CoreSchema:
    from pydantic_core import core_schema

    if is_schema(kind):
        return _of_schema(kind)
    if kind is Quantity:
        return core_schema.no_info_plain_validator_function(_told(read_quantity))
    scalars: dict[Any, Callable[..., CoreSchema]] = {
        str: core_schema.str_schema,
        int: core_schema.int_schema,
        bool: core_schema.bool_schema,
        datetime: core_schema.datetime_schema,
    }
    if kind in scalars:
        return scalars[kind](strict=True, **limits)
    return _of_generic(get_origin(kind), get_args(kind), limits)


def _of_generic(origin: Any, arguments: tuple[Any, ...], limits: dict[str, Any]) -> CoreSchema:
    from pydantic_core import core_schema

    if origin in (Union, types.UnionType):
        given = [each for each in arguments if each is not type(None)]
        return core_schema.nullable_schema(_core_schema(given[0]) if len(given) == 1 else _of_either(given))
    if origin is Literal:
        return core_schema.literal_schema(list(arguments))
    if origin is tuple:
        items = [_core_schema(arguments[0])]
        return core_schema.tuple_schema(items, variadic_item_index=0, strict=True, **limits)
    if origin is dict:
        return core_schema.dict_schema(*map(_core_schema, arguments), strict=True)
    raise TypeError(f"no schema is made of a field of type {origin}")


def _of_either(kinds: list[Any]) -> CoreSchema:
    from pydantic_core import core_schema

    words = {str: "a text", int: "an integer"}
    expected = " or ".join(words.get(kind, "an object") for kind in kinds)
    return core_schema.union_schema(
        [_core_schema(kind) for kind in kinds],
        custom_error_type="placer",
        custom_error_message="{expected}",
        custom_error_context={"expected": expected},
    )


def _of_schema(model: Any) -> CoreSchema:
    from pydantic_core import core_schema

    fields = {
        each.name: core_schema.typed_dict_field(
            _core_schema(each.type), required=each.required, validation_alias=each.encode_name
        )
        for each in fields_of(model)
    }
    values = core_schema.typed_dict_schema(
        fields, strict=True, extra_behavior="forbid" if is_closed(model) else "ignore"
    )
    return core_schema.no_info_after_validator_function(_told(lambda given: model(**given)), values)


def _told(check: Callable[[Any], Any]) -> Callable[[Any], Any]:
    from pydantic_core import PydanticCustomError

    def checked(value: Any) -> Any:
        try:
            return check(value)
        except Problem as problem:
            found = {} if problem.found is None else {"found": problem.found}
            raise PydanticCustomError("placer", "{expected}", {"expected": problem.expected, **found}) from None

    return checked
