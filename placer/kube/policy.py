"""placer.dev Policy. Our own kind, so an unknown key is a fault."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Literal

from msgspec import Meta, field

from placer.kube.base import After, ClosedSchema, Count, Instead, LabelSelector, Metadata, Name, Problem

Level = Literal["placed", "locality", "networkCost", "packing"]
_LARGEST_WEIGHT = 10**9


def _distinct(values: tuple[str, ...]) -> tuple[str, ...]:
    for position, value in enumerate(values):
        if value in values[:position]:
            raise Problem("each name once", f"{value!r} twice")
    return values


def _off(value: object) -> Literal["off"]:
    """YAML 1.1 tools turn ``off`` into false, so both switch a rule off."""
    if value is False or value == "off":
        return "off"
    raise Problem("off")


def _weight(value: object) -> Decimal:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= _LARGEST_WEIGHT:
        return Decimal(str(value))
    raise Problem("a number above 0, at most 10^9")


Off = Annotated[Literal["off"], Instead(_off)]
Weight = Annotated[Decimal, Instead(_weight)]


class NetworkChoice(ClosedSchema, frozen=True, kw_only=True):
    """NetworkTopology (NAMESPACE/NAME), and one of its lists."""

    topology: Annotated[str, Meta(pattern=r"^[^/]+/[^/]+$")] | None = None
    weights: str | None = None


class RuleSwitches(ClosedSchema, frozen=True, kw_only=True):
    """Rules that this cluster does not know."""

    c8: Off | None = field(default=None, name="C8")
    c9: Off | None = field(default=None, name="C9")
    c10: Off | None = field(default=None, name="C10")
    c11: Off | None = field(default=None, name="C11")


class ProtectedLabels(LabelSelector, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A selector in which an unknown key is a fault."""


class Protected(ClosedSchema, frozen=True, kw_only=True):
    """Pods that are never disturbed; namespaces left out are all of them."""

    selector: ProtectedLabels | None = None
    namespaces: tuple[Name, ...] | None = None


class DisruptionLimits(ClosedSchema, frozen=True, kw_only=True):
    """Pods that may be disturbed without being named, and limits for all who ask."""

    evict: Literal["none", "lower-priority"] | None = None
    move: Literal["none", "fewest"] | None = None
    protect: tuple[Protected, ...] | None = None
    max_pods: Count | None = None


class PolicySpec(ClosedSchema, frozen=True, kw_only=True):
    """None is the default."""

    levels: Annotated[tuple[Level, ...], After(_distinct)] | None = None
    network_cost: Literal["all", "majority"] | None = None
    network: NetworkChoice | None = None
    topology_keys: Annotated[tuple[Name, ...], After(_distinct)] | None = None
    locality: Literal["marked", "all"] | None = None
    resource_weights: dict[Name, Weight] | None = None
    rules: RuleSwitches | None = None
    group_priority: Literal["pods", "class"] | None = None
    gangs: Literal["declared", "owners"] | None = None
    disruption: DisruptionLimits | None = None


class PolicyManifest(ClosedSchema, frozen=True, kw_only=True):
    api_version: str
    kind: str
    metadata: Metadata
    spec: PolicySpec | None = None

    @property
    def name(self) -> str:
        """``metadata.name``."""
        return self.metadata.name
