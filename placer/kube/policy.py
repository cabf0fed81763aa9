"""placer.dev Policy: what the user wants otherwise than the default. Our own kind, so an unknown key is a fault."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from placer.kube.base import Count, LabelRequirement, Labels, Metadata, Name, closed_schema, problem

__all__ = [
    "LEVELS",
    "Disruption",
    "NetworkChoice",
    "PolicyManifest",
    "PolicySpec",
    "Protected",
    "ProtectedLabels",
    "RuleSwitches",
]

Level = Literal["placed", "locality", "networkCost", "packing"]
LEVELS: tuple[Level, ...] = ("placed", "locality", "networkCost", "packing")
_LARGEST_WEIGHT = 10**9


def _distinct(values: tuple[str, ...]) -> tuple[str, ...]:
    for position, value in enumerate(values):
        if value in values[:position]:
            raise problem("each name once", f"{value!r} twice")
    return values


def _off(value: object) -> Literal["off"]:
    """YAML 1.1 tools turn ``off`` into false, so both switch a rule off."""
    if value is False or value == "off":
        return "off"
    raise problem("off")


def _weight(value: object) -> Decimal:
    """Read a positive number exactly as it is written."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= _LARGEST_WEIGHT:
        return Decimal(str(value))
    raise problem("a number above 0, at most 10^9")


def _gangs(value: object) -> Literal["declared"]:
    """Refuse what is asked for and not carried out: half a gang is worse than none."""
    if value == "declared":
        return "declared"
    if value == "owners":
        raise problem("declared: owners are not read as gangs yet, so name their pods in PodGroups")
    raise problem("declared")


Gangs = Annotated[Literal["declared"], BeforeValidator(_gangs)]
Off = Annotated[Literal["off"], BeforeValidator(_off)]
Weight = Annotated[Decimal, BeforeValidator(_weight)]


@closed_schema
class NetworkChoice:
    """Which NetworkTopology (NAMESPACE/NAME) and which of its lists to use."""

    topology: Annotated[str, Field(pattern=r"^[^/]+/[^/]+$")] | None = None
    weights: str | None = None


@closed_schema
class RuleSwitches:
    """Rules that this cluster does not know."""

    c8: Annotated[Off | None, Field(alias="C8")] = None
    c9: Annotated[Off | None, Field(alias="C9")] = None
    c10: Annotated[Off | None, Field(alias="C10")] = None
    c11: Annotated[Off | None, Field(alias="C11")] = None


@closed_schema
class ProtectedLabels:
    """Labels of pods; all parts must hold, and none at all take every pod."""

    match_labels: Labels | None = None
    match_expressions: tuple[LabelRequirement, ...] | None = None


@closed_schema
class Protected:
    """Pods that are never disturbed; namespaces left out are all of them."""

    selector: ProtectedLabels | None = None
    namespaces: tuple[Name, ...] | None = None


@closed_schema
class Disruption:
    """What may be disturbed without being asked for by name; nothing is yet, which keeps every limit that is set."""

    evict: Literal["none", "lower-priority"] | None = None
    move: Literal["none", "fewest"] | None = None
    protect: tuple[Protected, ...] | None = None
    max_pods: Count | None = None


@closed_schema
class PolicySpec:
    """The choices; None is the default."""

    levels: Annotated[tuple[Level, ...], AfterValidator(_distinct)] | None = None
    network_cost: Literal["all", "majority"] | None = None
    network: NetworkChoice | None = None
    topology_keys: Annotated[tuple[Name, ...], AfterValidator(_distinct)] | None = None
    locality: Literal["marked", "all"] | None = None
    resource_weights: dict[Name, Weight] | None = None
    rules: RuleSwitches | None = None
    gangs: Gangs | None = None
    disruption: Disruption | None = None


@closed_schema
class PolicyManifest:
    """placer.dev/v1alpha1 Policy."""

    api_version: str
    kind: str
    metadata: Metadata
    spec: PolicySpec | None = None

    @property
    def name(self) -> str:
        """Name of the object."""
        return self.metadata.name
