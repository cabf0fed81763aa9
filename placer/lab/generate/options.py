"""Options of the families, declared once as dataclass fields, from which the command line is made."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field, fields
from typing import Any

from placer.base.errors import UsageError

__all__ = ["FamilyOptions", "GangMix", "Option", "listed", "option", "options_of", "whole"]

Number = int | float
Value = Number | bool | tuple[Number, ...]


def option(default: Value, text: str, low: Number = 0, high: Number = 1, element: type[Number] = int) -> Any:
    """Declare an option as a dataclass field.

    Parameters
    ----------
    default
        Its type decides how the text of a command line is read: a flag, an integer, a number, or a list with commas.
    low, high
        Inclusive range of the value, or of each element of a list.
    """
    return field(default=default, metadata={"text": text, "low": low, "high": high, "element": element})


@dataclass(frozen=True, slots=True)
class Option:
    """An option for the command line: the fields of :func:`option`, ``element`` of a single value too."""

    name: str
    default: Value
    text: str
    low: Number
    high: Number
    element: type[Number]

    @property
    def flag(self) -> str:
        """The option as it is typed, ``--leaf-size``."""
        return "--" + self.name.replace("_", "-")

    @property
    def switch(self) -> bool:
        """Whether it takes no value."""
        return isinstance(self.default, bool)

    @property
    def expected(self) -> str:
        """The values it takes, in words."""
        noun = "an integer" if self.element is int else "a number"
        text = (
            f"{noun} from {self.low:g} to {self.high:,g}" if self.high < 10**6 else f"{noun} of at least {self.low:g}"
        )
        return f"a list with commas, each {text}" if isinstance(self.default, tuple) else text

    def parse(self, text: str) -> Value:
        """Read the text after the flag; a :class:`UsageError` if it is not of the type, or out of range.

        Examples
        --------
        >>> Option("pod_sizes", (8,), "", 1, 64, int).parse("1,2,4")
        (1, 2, 4)
        """
        parts = text.split(",") if isinstance(self.default, tuple) and text else [text]
        try:
            values = tuple(self.element(part) for part in parts) if text or not isinstance(self.default, tuple) else ()
        except ValueError:
            raise self.fault(repr(text)) from None
        value = values if isinstance(self.default, tuple) else values[0]
        self.check(value)
        return value

    def check(self, value: Value) -> None:
        """Raise a UsageError where the value is out of range."""
        if self.switch:
            return
        for part in value if isinstance(value, tuple) else (value,):
            if not self.low <= part <= self.high:
                raise self.fault(f"{part:g}")

    def fault(self, found: str, expected: str | None = None) -> UsageError:
        """Make the error that names this option, the found and the expected value."""
        return UsageError(f"{self.flag}: found {found}, expected {expected or self.expected}")


def options_of(options: type[Any]) -> tuple[Option, ...]:
    """List the options of a family's options class, in the order of its fields."""
    return tuple(_described(declared) for declared in fields(options))


def _described(declared: dataclasses.Field[Any]) -> Option:
    default: Any = declared.default
    data = declared.metadata
    element: type[Number] = data["element"] if isinstance(default, tuple) else type(default)
    return Option(declared.name, default, data["text"], data["low"], data["high"], element)


def whole(size: int, parts: tuple[int, ...]) -> list[bool]:
    """Say of 0 .. ``size`` whether it is a sum of ``parts`` (each may be used again)."""
    reach = [True] + [False] * size
    for total in range(1, size + 1):
        reach[total] = any(part <= total and reach[total - part] for part in parts)
    return reach


@dataclass(frozen=True, kw_only=True)
class FamilyOptions:
    """Options of every family; a :class:`UsageError` if a value is out of its range, or two do not go together."""

    seed: int = option(0, "start of all chance", 0, 2**53)

    def __post_init__(self) -> None:
        for each in options_of(type(self)):
            each.check(getattr(self, each.name))
        self.check()

    def check(self) -> None:
        """Check combinations of options."""

    def demand(self, holds: bool, name: str, found: str, expected: str) -> None:
        """Raise a UsageError about an option unless ``holds``."""
        if not holds:
            raise next(each for each in options_of(type(self)) if each.name == name).fault(found, expected)


@dataclass(frozen=True, kw_only=True)
class GangMix(FamilyOptions):
    """Options of the families with gangs: the shape of the fabric and of the jobs.

    Shares are probabilities per gang unless said otherwise.
    """

    leaf_size: int = option(8, "nodes per leaf (tier 1)", 1, 4096)
    leaves_per_spine: int = option(4, "leaves per spine (tier 2)", 1, 4096)
    spines_per_pod: int = option(
        0, "spines per pod of spines (tier 3, the core above becomes tier 4); 0: no such tier", 0, 4096
    )
    gpus: int = option(8, "GPUs per node", 1, 64)
    pod_sizes: tuple[int, ...] = option((8,), "GPUs a pod may ask for", 1, 64)
    tier_shares: tuple[float, ...] = option(
        (), "share of the GPUs that goes to jobs limited to tier 1, 2, ... ; empty: 0.4,0.4,0.2", 0, 1, float
    )
    gang_pods: tuple[int, ...] = option((), "least and most pods of a gang; empty: as suits its tier", 1, 10**6)
    subgroups: float = option(0.3, "share of gangs that are made of subgroups")
    subgroup_sizes: tuple[int, ...] = option((2, 3, 4), "pods of a subgroup", 1, 4096)
    tight: float = option(0.0, "share of leaves that are cut wholly into subgroups of wider gangs: harder to place")
    soft: float = option(0.25, "share of gangs whose networkTopology is soft")
    unlimited: float = option(0.0, "share of the gangs of the highest tier that state no networkTopology")
    elastic: float = option(0.0, "share of gangs with more pods than they need")
    roles: float = option(0.0, "share of gangs with a second role, of other pods")
    priorities: int = option(1, "number of priority classes; 1: none", 1, 1000)
    queues: int = option(0, "number of Volcano queues with a capability; 0: none", 0, 1000)
    node_types: int = option(1, "kinds of nodes with different CPU and memory per GPU", 1, 3)
    selectors: float = option(0.8, "share of gangs that select one kind of node, where there are several")
    uneven: float = option(0.0, "how far CPU and memory of pods stray from their share of GPUs", 0, 0.9)
    services: int = option(0, "running pods without GPUs on every node", 0, 1000)

    def check(self) -> None:
        """Check that nodes can be filled, and lists."""
        self.demand(bool(self.pod_sizes), "pod_sizes", "an empty list", "at least one size")
        reach = whole(self.gpus, self.pod_sizes)
        self.demand(
            reach[self.gpus], "pod_sizes", listed(self.pod_sizes), f"sizes that sum to {self.gpus} GPUs, a full node"
        )
        sized = bool(self.subgroup_sizes) or not (self.subgroups or self.tight)
        self.demand(sized, "subgroup_sizes", "an empty list", "at least one size")
        pair = not self.gang_pods or (len(self.gang_pods) == 2 and self.gang_pods[0] <= self.gang_pods[1])
        self.demand(pair, "gang_pods", listed(self.gang_pods), "two numbers, the least one first")
        shares = self.tier_shares
        good = not shares or (len(shares) == self.tiers and sum(shares) > 0)
        self.demand(good, "tier_shares", listed(shares), f"{self.tiers} numbers, not all of them 0")

    @property
    def tiers(self) -> int:
        """Number of tiers of the fabric, 3 or 4."""
        return 4 if self.spines_per_pod else 3

    @property
    def shares(self) -> tuple[float, ...]:
        """Share of the GPUs per tier, lowest first, summing to 1."""
        given = self.tier_shares or ((0.4, 0.4, 0.2) if self.tiers == 3 else (0.4, 0.3, 0.2, 0.1))
        return tuple(share / sum(given) for share in given)


def listed(values: tuple[Number, ...]) -> str:
    """Write a list as it is typed, or say that it is empty."""
    return ",".join(f"{value:g}" for value in values) or "an empty list"
