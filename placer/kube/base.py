"""How a schema is declared, quantities, metadata, selectors.

Schemas are msgspec structs, for memory. Fields are declared only where some rule reads them. JSON ``null`` means *left
out*.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Annotated, Any, Generic, Literal, TypeVar

from msgspec import Meta, Struct

from placer.base import quantity

CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
DNS_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
LONGEST_NAME = 253
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")

#: ``kubectl apply`` keeps the whole manifest in this annotation. No rule reads it, and on a large cluster it is 100 MB.
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
#: In a snapshot alone: the part of an object's text that was left out, in words.
LEFT_OUT = "placer.dev/left-out"
#: In a snapshot alone: bytes of a pod's text before a part of it was left out for its namespace's budget.
TEXT_BYTES = "placer.dev/text-bytes"
#: Bytes of labels and annotations of a pod, and of all its kept text: every pass carries them.
MOST_TEXT = 65_536
#: Bytes that an object may have without counting in its namespace's budget, as nearly all have.
FREE_TEXT = 2_048


class Schema(Struct, frozen=True, kw_only=True, gc=False, rename="camel", omit_defaults=True):
    """Base of all schemas: frozen, strict, camelCase in the text; other fields are ignored."""


class ClosedSchema(Schema, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of schemas of our own kinds, in which an unknown field is a fault."""


class Problem(ValueError):
    """A fault of a value, in words; ``found`` None: the value itself."""

    def __init__(self, expected: str, found: str | None = None) -> None:
        super().__init__(expected)
        self.expected = expected
        self.found = found


@dataclass(frozen=True, slots=True)
class After:
    """Next to a type: a further check, which gives the value or raises :class:`Problem`."""

    check: Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Instead:
    """Next to a type, in a closed schema: reads a value of any type."""

    read: Callable[[Any], Any]


class Quantity(int):
    """An amount in nano-units, exactly, at least 0."""

    __slots__ = ()


def read_quantity(value: object) -> Quantity:
    """Read a quantity that is not negative; anything else raises :class:`Problem`."""
    return quantity_of(value if type(value) is str else _number_text(value))


@lru_cache(maxsize=65536)
def quantity_of(text: str) -> Quantity:
    """Read a quantity that is given as text, each distinct one once."""
    try:
        nano = quantity.parse(text)
    except ValueError as error:
        if "beyond" in str(error):
            raise Problem("a quantity of at most 2^63 - 1 units") from None
        raise Problem("a quantity such as 500m, 2 or 4Gi") from None
    if nano < 0:
        raise Problem("a quantity of at least 0")
    return Quantity(nano)


def _number_text(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise Problem("a quantity such as 500m, 2 or 4Gi")
    if abs(value) > 1e30:  # infinity among them: not worth writing out
        raise Problem("a quantity of at most 2^63 - 1 units")
    return quantity.decimal_text(value)


#: Resource name to amount in nano-units; ``placer.base.quantity.Resources.from_nano`` makes it a vector.
Quantities = dict[str, Quantity]
Labels = dict[str, str]
Count = Annotated[int, Meta(ge=0, lt=2**31)]
Positive = Annotated[int, Meta(ge=1, lt=2**31)]
Priority = Annotated[int, Meta(ge=-(2**31), lt=2**31)]
Name = Annotated[str, Meta(min_length=1, max_length=253)]
Time = Annotated[datetime, Meta(tz=True)]


def _printable(name: str) -> str:
    """Control characters would reach a terminal."""
    if CONTROL.search(name):
        raise Problem("a name without control characters", ascii(name[:80]))
    return name


def _drop_last_applied(annotations: Labels | None) -> None:
    if annotations:
        annotations.pop(LAST_APPLIED, None)


Spec = TypeVar("Spec", covariant=True)
Status = TypeVar("Status")


class Present(Schema, frozen=True, kw_only=True):
    """An object of which only its presence matters."""


class Named(Schema, frozen=True, kw_only=True):
    name: Name


class MaybeNamed(Schema, frozen=True, kw_only=True):
    name: str | None = None


class Condition(Schema, frozen=True, kw_only=True):
    type: str
    status: str


class Phase(Schema, frozen=True, kw_only=True):
    phase: str | None = None


class TemplateMetadata(Schema, frozen=True, kw_only=True):
    labels: Labels | None = None
    annotations: Labels | None = None

    def __post_init__(self) -> None:
        _drop_last_applied(self.annotations)


class Template(Schema, Generic[Spec], frozen=True, kw_only=True):
    metadata: TemplateMetadata | None = None
    spec: Spec


class OwnerReference(Schema, frozen=True, kw_only=True):
    api_version: str
    kind: str
    name: str
    uid: str | None = None
    controller: bool | None = None


class Metadata(Schema, frozen=True, kw_only=True):
    """``namespace`` is as written, None where the text has none."""

    name: Annotated[Name, After(_printable)]
    namespace: Annotated[str, Meta(max_length=253), After(_printable)] | None = None
    uid: str | None = None
    labels: Labels | None = None
    annotations: Labels | None = None
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None
    owner_references: tuple[OwnerReference, ...] | None = None

    def __post_init__(self) -> None:
        _printable(self.name)
        _printable(self.namespace or "")
        _drop_last_applied(self.annotations)


def controller(metadata: Metadata) -> OwnerReference | None:
    """The owner that made an object: the controller among its owners, else the first."""
    owners = metadata.owner_references
    return next((each for each in owners or () if each.controller), owners[0] if owners else None)


class ObjectBase(Schema, frozen=True, kw_only=True):
    api_version: str
    kind: str
    metadata: Metadata

    @property
    def name(self) -> str:
        """``metadata.name``."""
        return self.metadata.name

    @property
    def group(self) -> str:
        """API group, empty for the core group."""
        return self.api_version.rpartition("/")[0]


class NamespacedObject(ObjectBase, frozen=True, kw_only=True):
    @property
    def namespace(self) -> str:
        """Namespace; ``default`` where the text names none, as kubectl applies it."""
        return self.metadata.namespace or "default"


class Specified(NamespacedObject, Generic[Spec], frozen=True, kw_only=True):
    """An object whose specification may be left out."""

    spec: Spec | None = None


class SpecifiedWithStatus(Specified[Spec], Generic[Spec, Status], frozen=True, kw_only=True):
    status: Status | None = None


class Work(NamespacedObject, Generic[Spec], frozen=True, kw_only=True):
    """A pod, or an object that makes pods, which is nothing without its specification."""

    spec: Spec


class WorkWithStatus(Work[Spec], Generic[Spec, Status], frozen=True, kw_only=True):
    status: Status | None = None


class NodeRequirement(Schema, frozen=True, kw_only=True):
    """One expression of a node selector term; checked as the API server does."""

    key: Name
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    values: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        operator, values = self.operator, self.values
        count = len(values or ())
        if operator in ("In", "NotIn") and not count:
            raise Problem(f"at least one value for the operator {operator}", "no values")
        if operator in ("Exists", "DoesNotExist") and count:
            raise Problem(f"no values for the operator {operator}", "values")
        if operator in ("Gt", "Lt"):
            if values is None or count != 1:
                raise Problem(f"exactly one value for the operator {operator}", f"{count} of them")
            if not _INTEGER.fullmatch(values[0]):
                raise Problem(f"an integer as text for the operator {operator}", repr(values[0][:80]))


class LabelRequirement(NodeRequirement, frozen=True, kw_only=True):
    """One expression of a label selector, which compares no numbers."""

    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]


class LabelSelector(Schema, frozen=True, kw_only=True):
    """All parts must hold, and an empty selector takes everything."""

    match_labels: Labels | None = None
    match_expressions: tuple[LabelRequirement, ...] | None = None


class NodeSelectorTerm(Schema, frozen=True, kw_only=True):
    """All expressions must hold; a term without any takes no node."""

    match_expressions: tuple[NodeRequirement, ...] | None = None
    match_fields: tuple[NodeRequirement, ...] | None = None


class NodeSelector(Schema, frozen=True, kw_only=True):
    """Terms of which one must hold."""

    node_selector_terms: Annotated[tuple[NodeSelectorTerm, ...], Meta(min_length=1)]
