"""What a bound says."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["NamedBound"]


@dataclass(frozen=True)
class NamedBound:
    """A number that no placement beats among those that equal ``context`` on the values before ``level``.

    Parameters
    ----------
    level
        Index into ``Dense.levels``; None: the sum of placed weight over all priorities (no context).
    bound
        The number, in the unit of the value.
    by
        Name of the argument.
    context
        Values of the levels before; empty where the bound holds for every placement.
    """

    level: int | None
    bound: int
    by: str
    context: tuple[int, ...] = ()
