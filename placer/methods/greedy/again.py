"""AppGroups taken away and placed once more, with what is around them now (O1, O3)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from placer.methods.greedy.apps import place_app
from placer.methods.greedy.gang import Style
from placer.methods.greedy.optional import extend
from placer.methods.greedy.settle import settle_cheaply
from placer.methods.greedy.state import State

__all__ = ["place_again"]

#: Other AppGroups that make way, one at a time, for one that is not placed entirely.
OTHERS = 8


def place_again(state: State, limit: int) -> None:
    """Place more of AppGroups that are not placed entirely, then cheaper what is.

    Parameters
    ----------
    state
        What is placed; is changed where that is better.
    limit
        ``State.work`` beyond which it ends.
    """
    _Again(state, limit).run()


class _Again:
    def __init__(self, state: State, limit: int) -> None:
        self.state, self.limit = state, limit
        self.groups: dict[int, list[int]] = defaultdict(list)
        for group in range(len(state.dense.groups)):
            unit = state.layout.unit(group)
            if unit is not None:
                self.groups[unit].append(group)
        self.classes = {
            unit: [index for group in groups for index in state.dense.groups[group].classes]
            for unit, groups in self.groups.items()
        }

    def run(self) -> None:
        """First units with pods left, alone and with others, then all of them."""
        for unit in [unit for unit in self.groups if self._left(unit)]:
            for others in [[], *([other] for other in self._neighbours(unit))]:
                if self._left(unit) and self.state.work <= self.limit:
                    self._try([unit, *others])
        for unit, groups in self.groups.items():
            if self.state.work <= self.limit and all(self.state.layout.is_lone(group) for group in groups):
                self._cheaper(unit)

    def _left(self, unit: int) -> int:
        classes = self.state.dense.classes
        return sum(classes[index].weight * self.state.left(index) for index in self.classes[unit])

    def _neighbours(self, unit: int) -> list[int]:
        """Other units, those with most pods in the areas where this one is."""
        assert self.state.traffic is not None
        here = {area for workload in self._workloads([unit]) for area in self.state.traffic.placed[workload]}
        shared = {}
        for other in self.groups:
            if other != unit and any(self.state.placed[index] for index in self.classes[other]):
                placed = (self.state.traffic.placed[workload] for workload in self._workloads([other]))
                shared[other] = sum(
                    pods for there in placed for area, pods in there.items() if not here or area in here
                )
        return sorted(shared, key=lambda other: (-shared[other], other))[:OTHERS]

    def _workloads(self, units: Sequence[int]) -> set[int]:
        of = self.state.dense.workload_of
        return {of[index] for unit in units for index in self.classes[unit] if index in of}

    def _value(self, units: Sequence[int]) -> tuple[tuple[int, ...], int]:
        """Placed weight by priority, higher first, and cost."""
        placed: dict[int, int] = defaultdict(int)
        dense, traffic = self.state.dense, self.state.traffic
        assert traffic is not None
        for unit in units:
            for index in self.classes[unit]:
                pods = dense.classes[index]
                placed[dense.groups[pods.group].priority] += pods.weight * self.state.placed[index]
        return tuple(placed[priority] for priority in sorted(placed, reverse=True)), -traffic.cost

    def _clear(self, unit: int) -> None:
        for index in self.classes[unit]:
            for node, count in list(self.state.where.get(index, {}).items()):
                self.state.take(index, [node], [-count])

    def _try(self, units: Sequence[int]) -> None:
        """Place units once more, the first one first; undone where no more is placed."""
        before, mark = self._value(units)[0], self.state.mark()
        for unit in units:
            self._clear(unit)
        for unit in units:
            groups = sorted(self.groups[unit], key=lambda group: -self.state.dense.groups[group].priority)
            admitted, _ = place_app(self.state, groups, Style())
            for group in admitted:
                extend(self.state, group, Style())
        traffic = self.state.traffic
        assert traffic is not None
        if self._value(units)[0] <= before or not traffic.balanced(self._workloads(units)):
            self.state.undo(mark)

    def _cheaper(self, unit: int) -> None:
        before, mark = self._value([unit]), self.state.mark()
        if not any(self.state.placed[index] for index in self.classes[unit]):
            return
        items = [(index, self.state.placed[index]) for index in self.classes[unit] if self.state.placed[index]]
        self._clear(unit)
        settle_cheaply(self.state, items, self.limit)
        traffic = self.state.traffic
        assert traffic is not None
        if self._value([unit]) <= before or not traffic.balanced(self._workloads([unit])):
            self.state.undo(mark)
