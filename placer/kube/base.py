"""What all kinds share: how a schema is declared, quantities, metadata, selectors.

Schemas are slotted pydantic dataclasses and not ``BaseModel``: a model instance carries a ``__dict__`` and a set of the
fields that were given, which on 55,000 pods is six times the memory and four times the time. Fields are declared only
where some rule reads them; whatever else stands in an object is skipped by the parser and never becomes a Python value.

JSON ``null`` means *left out*, as the API server treats it, so optional fields are ``T | None = None`` throughout.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, TypeVar, cast, dataclass_transform

from pydantic import AfterValidator, AwareDatetime, ConfigDict, Field, PlainValidator, model_validator
from pydantic.alias_generators import to_camel
from pydantic.dataclasses import dataclass
from pydantic_core import PydanticCustomError

from placer import quantity

__all__ = [
    "CONTROL",
    "Count",
    "LabelRequirement",
    "LabelSelector",
    "Labels",
    "Metadata",
    "Name",
    "NamespacedObject",
    "NodeRequirement",
    "NodeSelector",
    "NodeSelectorTerm",
    "ObjectBase",
    "OwnerReference",
    "Positive",
    "Present",
    "Quantities",
    "Quantity",
    "TemplateMetadata",
    "closed_schema",
    "controller",
    "problem",
    "schema",
]

T = TypeVar("T")
#: Characters that a terminal would obey.
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")

_CONFIG = ConfigDict(
    strict=True, extra="ignore", alias_generator=to_camel, validate_by_name=True, validate_by_alias=True
)
_CLOSED = ConfigDict(
    strict=True, extra="forbid", alias_generator=to_camel, validate_by_name=True, validate_by_alias=True
)

#: ``kubectl apply`` keeps the whole manifest in this annotation. No rule reads it, and on a large cluster it is 100 MB.
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(Field,))
def schema(cls: type[T]) -> type[T]:
    """Declare a schema: frozen, slotted, strict, camelCase in the text; fields that it does not name are ignored."""
    return cast("type[T]", dataclass(cls, kw_only=True, frozen=True, slots=True, config=_CONFIG))


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(Field,))
def closed_schema(cls: type[T]) -> type[T]:
    """Declare a schema of our own kinds, in which a field that it does not name is a fault."""
    return cast("type[T]", dataclass(cls, kw_only=True, frozen=True, slots=True, config=_CLOSED))


def problem(expected: str, found: str | None = None) -> PydanticCustomError:
    """Make the error that a validator raises, in the words of a fault.

    Parameters
    ----------
    expected
        What should stand there, as a person would say it.
    found
        What stands there; None lets the reader show the value itself.
    """
    context: dict[str, Any] = {"expected": expected} if found is None else {"expected": expected, "found": found}
    return PydanticCustomError("placer", "{expected}", context)


def _quantity(value: object) -> int:
    """Read a quantity that is not negative; ``quantity.parse`` reads each distinct text once."""
    if type(value) is not str:
        value = _number_text(value)
    try:
        nano = quantity.parse(value)
    except ValueError as error:
        if "beyond" in str(error):
            raise problem("a quantity of at most 2^63 - 1 units") from None
        raise problem("a quantity such as 500m, 2 or 4Gi") from None
    if nano < 0:
        raise problem("a quantity of at least 0")
    return nano


def _number_text(value: object) -> str:
    """Write a quantity that is given as a number as text."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise problem("a quantity such as 500m, 2 or 4Gi")
    if abs(value) > 1e30:  # infinity among them: not worth writing out
        raise problem("a quantity of at most 2^63 - 1 units")
    return quantity.decimal_text(value)


#: An amount in nano-units, exactly; ``placer.quantity.from_nano`` brings it to the integer that scheduling compares.
Quantity = Annotated[int, PlainValidator(_quantity)]
#: Resource name to amount in nano-units; ``placer.quantity.Resources.from_nano`` makes it a vector.
Quantities = dict[str, Quantity]
Labels = dict[str, str]
Count = Annotated[int, Field(ge=0, lt=2**31)]
Positive = Annotated[int, Field(ge=1, lt=2**31)]
Name = Annotated[str, Field(min_length=1, max_length=253)]


def _printable(name: str) -> str:
    """Refuse control characters, which would reach a terminal."""
    if CONTROL.search(name):
        raise problem("a name without control characters", ascii(name[:80]))
    return name


def _without_last_applied(annotations: Labels) -> Labels:
    annotations.pop(LAST_APPLIED, None)
    return annotations


Annotations = Annotated[Labels, AfterValidator(_without_last_applied)]


@schema
class Present:
    """An object of which only its presence matters."""


@schema
class TemplateMetadata:
    """Metadata of a pod template: what its pods inherit."""

    labels: Labels | None = None
    annotations: Annotations | None = None


@schema
class OwnerReference:
    """Who made an object."""

    api_version: str
    kind: str
    name: str
    uid: str | None = None
    controller: bool | None = None


@schema
class Metadata:
    """Metadata of an object; ``namespace`` is as written, None where the text has none."""

    name: Annotated[Name, AfterValidator(_printable)]
    namespace: Annotated[str, Field(max_length=253), AfterValidator(_printable)] | None = None
    uid: str | None = None
    labels: Labels | None = None
    annotations: Annotations | None = None
    creation_timestamp: AwareDatetime | None = None
    deletion_timestamp: AwareDatetime | None = None
    owner_references: tuple[OwnerReference, ...] | None = None


def controller(metadata: Metadata) -> OwnerReference | None:
    """The owner that made an object: the controller among its owners, else the first."""
    owners = metadata.owner_references
    return next((each for each in owners or () if each.controller), owners[0] if owners else None)


@schema
class ObjectBase:
    """What every kind has."""

    api_version: str
    kind: str
    metadata: Metadata

    @property
    def name(self) -> str:
        """Name of the object."""
        return self.metadata.name

    @property
    def group(self) -> str:
        """API group, empty for the core group."""
        return self.api_version.rpartition("/")[0]


@schema
class NamespacedObject(ObjectBase):
    """What every kind has that lives in a namespace."""

    @property
    def namespace(self) -> str:
        """Namespace; ``default`` where the text names none, as kubectl applies it."""
        return self.metadata.namespace or "default"


@schema
class LabelRequirement:
    """One expression of a label selector."""

    key: Name
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: tuple[str, ...] | None = None

    @model_validator(mode="after")
    def _fits_operator(self) -> LabelRequirement:
        _check_values(self.operator, self.values)
        return self


@schema
class LabelSelector:
    """Labels that an object must have; all parts must hold, and an empty selector takes everything."""

    match_labels: Labels | None = None
    match_expressions: tuple[LabelRequirement, ...] | None = None


@schema
class NodeRequirement:
    """One expression of a node selector term."""

    key: Name
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    values: tuple[str, ...] | None = None

    @model_validator(mode="after")
    def _fits_operator(self) -> NodeRequirement:
        _check_values(self.operator, self.values)
        return self


@schema
class NodeSelectorTerm:
    """Expressions that must all hold; a term without any takes no node."""

    match_expressions: tuple[NodeRequirement, ...] | None = None
    match_fields: tuple[NodeRequirement, ...] | None = None


@schema
class NodeSelector:
    """Terms of which one must hold."""

    node_selector_terms: Annotated[tuple[NodeSelectorTerm, ...], Field(min_length=1)]


def _check_values(operator: str, values: tuple[str, ...] | None) -> None:
    """Check what the API server checks of an operator and its values."""
    count = len(values or ())
    if operator in ("In", "NotIn") and not count:
        raise problem(f"at least one value for the operator {operator}", "no values")
    if operator in ("Exists", "DoesNotExist") and count:
        raise problem(f"no values for the operator {operator}", "values")
    if operator in ("Gt", "Lt"):
        if values is None or count != 1:
            raise problem(f"exactly one value for the operator {operator}", f"{count} of them")
        if not _INTEGER.fullmatch(values[0]):
            raise problem(f"an integer as text for the operator {operator}", repr(values[0][:80]))
