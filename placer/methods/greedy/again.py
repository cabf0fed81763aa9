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
        assert state.communication is not None
        self.state, self.communication, self.limit = state, state.communication, limit
        #: AppGroup to its groups, and to their classes.
        self.groups: dict[int, list[int]] = defaultdict(list)
        for group in range(len(state.dense.groups)):
            app = state.layout.app(group)
            if app is not None:
                self.groups[app].append(group)
        self.classes = {
            app: [index for group in groups for index in state.dense.groups[group].classes]
            for app, groups in self.groups.items()
        }

    def run(self) -> None:
        """First AppGroups with pods left, alone and with others, then all of them."""
        apps = [app for app in self.groups if self._movable(app)]
        for app in [app for app in apps if self._left(app)]:
            for others in [[], *([other] for other in self._neighbours(app))]:
                if self._left(app) and self.state.work <= self.limit:
                    self._more([app, *others])
        for app in apps:
            if self.state.work <= self.limit and all(map(self.state.layout.is_lone, self.groups[app])):
                self._cheaper(app)

    def _movable(self, app: int) -> bool:
        """Whether a node that its pods leave never refuses those that stay (C10)."""
        return all(self.state.dense.classes[index].zones < 0 for index in self.classes[app])

    def _left(self, app: int) -> bool:
        return any(self.state.left(index) for index in self.classes[app])

    def _neighbours(self, app: int) -> list[int]:
        """Other AppGroups, those with most pods in the areas where this one is."""
        here = {area for workload in self._workloads([app]) for area in self.communication.placed[workload]}
        shared = {}
        for other in self.groups:
            if other != app and self._movable(other) and any(self.state.placed[index] for index in self.classes[other]):
                placed = (self.communication.placed[workload] for workload in self._workloads([other]))
                shared[other] = sum(
                    pods for there in placed for area, pods in there.items() if not here or area in here
                )
        return sorted(shared, key=lambda other: (-shared[other], other))[:OTHERS]

    def _workloads(self, apps: Sequence[int]) -> set[int]:
        of = self.state.dense.workload_of
        return {of[index] for app in apps for index in self.classes[app] if index in of}

    def _placed(self, apps: Sequence[int]) -> tuple[int, ...]:
        """Placed weight by priority, higher first."""
        placed: dict[int, int] = defaultdict(int)
        for index in (index for app in apps for index in self.classes[app]):
            pods = self.state.dense.classes[index]
            placed[self.state.dense.groups[pods.group].priority] += pods.weight * self.state.placed[index]
        return tuple(placed[priority] for priority in sorted(placed, reverse=True))

    def _clear(self, app: int) -> None:
        for index in self.classes[app]:
            for node, count in list(self.state.where.get(index, {}).items()):
                self.state.take(index, [node], [-count])

    def _more(self, apps: Sequence[int]) -> None:
        """Place AppGroups once more, the first one first; undone where no more is placed."""
        before, mark = self._placed(apps), self.state.mark()
        for app in apps:
            self._clear(app)
        for app in apps:
            groups = sorted(self.groups[app], key=lambda group: -self.state.dense.groups[group].priority)
            admitted, _ = place_app(self.state, groups, Style())
            for group in admitted:
                extend(self.state, group, Style())
        self._judge(apps, mark, better=self._placed(apps) > before)

    def _cheaper(self, app: int) -> None:
        """Place what is placed of an AppGroup once more; undone where that is not cheaper."""
        items = [(index, self.state.placed[index]) for index in self.classes[app] if self.state.placed[index]]
        if not items:
            return
        before, mark = (self._placed([app]), -self.communication.cost), self.state.mark()
        self._clear(app)
        settle_cheaply(self.state, items, self.limit)
        self._judge([app], mark, better=(self._placed([app]), -self.communication.cost) > before)

    def _judge(self, apps: Sequence[int], mark: int, *, better: bool) -> None:
        """Undo what is no better, and what leaves callers with too many callees too far (C8)."""
        if not better or not self.communication.balanced(self._workloads(apps)):
            self.state.undo(mark)
