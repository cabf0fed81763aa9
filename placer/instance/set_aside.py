"""Pods that wait and that this placement is not about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["ANY_SCHEDULER", "SetAside"]

#: In place of a scheduler's name: pending pods of every scheduler are ours.
ANY_SCHEDULER = "*"


@dataclass(frozen=True, slots=True)
class SetAside:
    """How many pods wait for a node and are not ours to place; each counts once.

    Parameters
    ----------
    other_schedulers
        Name of another scheduler to its pending pods without scheduling gates, the most first.
    gated
        Pods that a scheduling gate holds back, of whichever scheduler.
    """

    other_schedulers: Mapping[str, int] = field(default_factory=dict)
    gated: int = 0

    def __str__(self) -> str:
        """In words, ``52 for volcano, 3 gated``; empty where nothing is set aside."""
        others = [f"{count:,} for {name}" for name, count in self.other_schedulers.items()]
        return ", ".join([*others, *([f"{self.gated:,} gated"] if self.gated else [])])
