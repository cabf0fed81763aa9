"""Volcano queues (C11)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["Queue"]


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue and what may run in it.

    Parameters
    ----------
    name
        Its name.
    capability
        Most that pods in the queue may request, per resource listed (an explicit 0 is a limit); empty: unlimited.
        Units as in :class:`~placer.quantity.Resources`.
    parent
        The queue whose capability binds too; None at the root, and where the parent is not there.
    open
        False: takes no new pods.
    weight
        What it is given beside others; no rule looks at it, other schedulers do (``policies``).
    """

    name: str
    capability: Mapping[str, int]
    parent: str | None = None
    open: bool = True
    weight: int = 1
