"""Kubernetes quantities, exactly, both ways; and integer resource vectors.

Sums are made of integer *nano-units* (10^-9), as in apimachinery ``pkg/api/resource/quantity.go``; only the finished
sum becomes milli-cpu, or whole units.
"""

from __future__ import annotations

import re
from collections.abc import ItemsView, Iterable, Iterator, Mapping
from decimal import Decimal
from functools import lru_cache

CPU = "cpu"
PODS = "pods"

NANO = 10**9
#: No quantity may reach beyond this many base units (the API server's int64).
LIMIT_UNITS = 2**63 - 1

_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_NUMBER = re.compile(r"([+-]?)(\d+\.?\d*|\.\d+)(?:([KMGTPE]i|[numkMGTPE])|[eE]([+-]?\d{1,4}))?", re.ASCII)


@lru_cache(maxsize=65536)
def parse(text: str) -> int:
    """Read a quantity of at most 128 characters as nano-units, finer parts rounded away from zero.

    Not a quantity, or beyond 2^63 - 1 units: ValueError.

    Examples
    --------
    >>> parse("100m"), parse("1Ki"), parse("-1"), parse("1e3")
    (100000000, 1024000000000, -1000000000, 1000000000000)
    """
    match = _NUMBER.fullmatch(text) if len(text) <= 128 else None
    if match is None:
        raise ValueError("not a quantity")
    sign, digits, suffix, exponent = match.groups()
    nano = _scaled(digits, suffix or "", int(exponent) if exponent else 0)
    if nano > LIMIT_UNITS * NANO:
        raise ValueError("beyond 2^63 units")
    return -nano if sign == "-" else nano


def _scaled(digits: str, suffix: str, exponent: int) -> int:
    whole, _, fraction = digits.partition(".")
    mantissa = int((whole + fraction) or "0")
    if not mantissa:
        return 0
    power = -len(fraction) + 9
    if suffix in _BINARY:
        mantissa <<= 10 * _BINARY[suffix]
    else:
        power += _DECIMAL[suffix] + exponent
    if power > 200:  # far beyond the limit: do not build the number
        return (LIMIT_UNITS + 1) * NANO
    if power >= 0:
        return mantissa * int(10**power)
    return -(-mantissa // int(10 ** min(-power, 400)))


def from_nano(resource: str, nano: int) -> int:
    """Bring nano-units to the integer that scheduling compares, rounded up: milli-cpu, else whole units."""
    unit = 10**6 if resource == CPU else NANO
    return -(-nano // unit)


def is_bytes(resource: str) -> bool:
    """Whether a resource is counted in bytes."""
    return resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-")


def format_amount(resource: str, amount: int) -> str:
    """Write an integer amount as a quantity that :func:`parse` reads back to the same amount."""
    if resource == CPU:
        return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"
    if is_bytes(resource):
        for suffix, power in reversed(_BINARY.items()):
            if amount and not amount % (1 << 10 * power):
                return f"{amount >> 10 * power}{suffix}"
    return str(amount)


class Resources(Mapping[str, int]):
    """An immutable integer vector of resources: milli-cpu, bytes, counts; negative in a difference.

    An absent name counts as 0; zeros are dropped, so equal vectors are equal objects to ``==`` and ``hash``.
    """

    __slots__ = ("_amounts", "_hash")

    def __init__(self, amounts: Mapping[str, int] | Iterable[tuple[str, int]] = ()) -> None:
        pairs = amounts.items() if isinstance(amounts, Mapping) else amounts
        self._amounts: dict[str, int] = {name: amount for name, amount in sorted(pairs) if amount}
        self._hash: int | None = None

    @classmethod
    def from_nano(cls, amounts: Mapping[str, int]) -> Resources:
        """Make a vector from nano-units, each amount rounded up to its own unit."""
        return cls({name: from_nano(name, nano) for name, nano in amounts.items()})

    @classmethod
    def parse(cls, quantities: Mapping[str, str]) -> Resources:
        """Make a vector from Kubernetes quantities as text."""
        return cls({name: from_nano(name, parse(text)) for name, text in quantities.items()})

    def __getitem__(self, name: str) -> int:
        return self._amounts.get(name, 0)

    def __iter__(self) -> Iterator[str]:
        return iter(self._amounts)

    def __len__(self) -> int:
        return len(self._amounts)

    def __contains__(self, name: object) -> bool:
        return name in self._amounts

    def items(self) -> ItemsView[str, int]:
        """Names and amounts, as a view, because every pod's requests are walked often."""
        return self._amounts.items()

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(tuple(self._amounts.items()))
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self._amounts == other._amounts if isinstance(other, Resources) else NotImplemented

    def __add__(self, other: Resources) -> Resources:
        return Resources({name: self[name] + other[name] for name in {**self._amounts, **other._amounts}})

    def __sub__(self, other: Resources) -> Resources:
        return Resources({name: self[name] - other[name] for name in {**self._amounts, **other._amounts}})

    def fits(self, room: Resources) -> bool:
        """Whether every amount is at most that of ``room``."""
        return all(amount <= room[name] for name, amount in self._amounts.items())

    def copies_in(self, room: Resources) -> int:
        """How often a vector that asks for something fits into ``room``."""
        return max(0, min(room[name] // amount for name, amount in self._amounts.items()))

    def __repr__(self) -> str:
        return f"Resources({self._amounts})"

    def __str__(self) -> str:
        return ", ".join(f"{name} {format_amount(name, amount)}" for name, amount in self._amounts.items()) or "nothing"


def decimal_text(value: float | int) -> str:
    """Write a YAML or JSON number as quantity text, whose exponents differ."""
    return str(value) if isinstance(value, int) else format(Decimal(repr(value)), "f")
