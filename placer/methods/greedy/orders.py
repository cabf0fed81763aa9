"""In which order groups get their turn."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np

from placer.methods.greedy.layout import Layout

__all__ = ["CALLS", "ORDERS", "Measures", "Order"]

T = TypeVar("T", int, float)

#: Sort key of a group within its priority: smaller is earlier.
Key = Callable[["Measures", int], tuple[float, ...]]


class Measures:
    """What orders look at, per group: sizes in prices, and how much of the largest domain allowed it needs."""

    def __init__(self, layout: Layout) -> None:
        self.layout, self.dense = layout, layout.dense
        #: First group of the AppGroup and priority of a group, or the group itself: a unit is placed as a whole.
        self.unit = self._units()
        size = [self._price(group.classes) for group in self.dense.groups]
        self._sizes = size
        self.size = self._of_units(size, sum)
        largest = [
            max((layout.class_prices[index] for index in group.classes), default=0) for group in self.dense.groups
        ]
        self.largest_pod = self._of_units(largest, max)

    def _units(self) -> list[int]:
        first: dict[object, int] = {}
        found = []
        for index, group in enumerate(self.dense.groups):
            app = self.layout.app(index)
            found.append(index if app is None else first.setdefault((app, group.priority), index))
        return found

    def _of_units(self, values: list[T], together: Callable[[Iterable[T]], T]) -> list[T]:
        """What its whole unit has, for every group."""
        if self.layout.calls is None:
            return values
        members: dict[int, list[T]] = defaultdict(list)
        for unit, value in zip(self.unit, values, strict=True):
            members[unit].append(value)
        of_unit = {unit: together(each) for unit, each in members.items()}
        return [of_unit[unit] for unit in self.unit]

    def _price(self, classes: tuple[int, ...]) -> int:
        return sum(self.layout.class_prices[index] * self.dense.classes[index].size for index in classes)

    @cached_property
    def _most(self) -> dict[int, int]:
        """Tier to the price of all room in the roomiest domain of at most that tier."""
        tree = self.dense.domains
        total = np.concatenate(([0], np.cumsum(self.layout.prices(self.dense.free))))
        rooms = total[tree.end] - total[tree.begin]
        return {int(tier): int(rooms[tree.tier <= tier].max()) for tier in np.unique(tree.tier)}

    def _part(self, scope: int, price: int) -> float:
        limit = self.dense.scopes[scope].limit
        tiers = [tier for tier in self._most if limit is None or tier <= limit]
        return price / max(1, self._most[max(tiers)]) if tiers else 2.0

    @cached_property
    def share(self) -> list[float]:
        """Share that each group, or its most demanding subgroup, needs of the roomiest domain within its limit."""
        found = []
        for group, size in zip(self.dense.groups, self._sizes, strict=True):
            parts = [self._part(group.scope, size)]
            for sub in group.sub_groups:
                part = self.dense.sub_groups[sub]
                parts.append(self._part(part.scope, self._price(part.classes)))
            found.append(max(parts))
        return self._of_units(found, max)

    @cached_property
    def anchored(self) -> list[bool]:
        """Whether pods of its AppGroup run."""
        if self.layout.calls is None:
            return [False] * len(self.dense.groups)
        running = {each.app for each in self.layout.calls.network.workloads if each.bound}
        return [self.layout.app(index) in running for index in range(len(self.dense.groups))]

    @cached_property
    def tier(self) -> list[int]:
        """Tier limit of each group, the virtual root's where it has none."""
        top = int(self.dense.domains.tier[self.dense.domains.root])
        limits = [self.dense.scopes[group.scope].limit for group in self.dense.groups]
        return self._of_units([top if limit is None else limit for limit in limits], min)


@dataclass(frozen=True)
class Order:
    """``key`` sorts groups of one priority; ties: older first."""

    name: str
    key: Key


def _by_age(measures: Measures, group: int) -> tuple[float, ...]:
    """Older first: the order in which groups are numbered."""
    return (-measures.dense.groups[group].priority, measures.unit[group])


#: Where pods call each other: AppGroups of which some run already have least choice, then large ones.
CALLS = Order("calls", lambda measures, group: (-measures.anchored[group], -measures.size[group]))

#: Every order. The first places most where pods differ, the second now and then; the others may place the same nearer.
ORDERS = (
    Order("pod", lambda measures, group: (-measures.largest_pod[group], -measures.share[group])),
    Order("share", lambda measures, group: (-measures.share[group], -measures.size[group])),
    Order("size", lambda measures, group: (-measures.size[group],)),
    Order("tier", lambda measures, group: (measures.tier[group], -measures.size[group])),
    Order("age", _by_age),
)
