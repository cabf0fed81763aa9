"""An AppGroup as a whole: its pods placed near to each other, then ruin and recreate over AppGroups (C8, C9, O3).

Source: Schrimpf, Schneider, Stamm-Wilbrandt and Dueck, "Record Breaking Optimization Results Using the Ruin and
Recreate Principle", Journal of Computational Physics 159 (2000): pods of some AppGroups are taken away and placed once
more, with what is around them now.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence

import numpy as np

from placer.methods.greedy.communicating import Way, place_cheaply, place_communicating
from placer.methods.greedy.gangs import Style, admit, extend
from placer.methods.greedy.state import GreedyState

__all__ = ["place_app", "ruin_and_recreate"]


#: Areas in which an AppGroup is tried that does not find a place group by group.
HOMES = 3


def place_app(state: GreedyState, groups: Sequence[int], style: Style) -> tuple[list[int], list[int]]:
    """Place groups of one AppGroup, of which nothing new is placed yet.

    Where some of them find no place, one area after the other is taken first for as many as go there.

    Returns
    -------
    The gangs that were made ready, and the groups that were not.
    """
    mark = state.mark()
    ready, failed = _in_turn(state, groups, style)
    if not failed or all(state.layout.is_lone(group) for group in groups):
        return ready, failed
    best = _weight(state, groups), state.since(mark), ready, failed
    for area in _homes(state):
        state.undo(mark)
        ready, failed = _at_home(state, groups, style, area)
        weight = _weight(state, groups)
        if weight > best[0]:
            best = weight, state.since(mark), ready, failed
    state.undo(mark)
    for index, node, count in best[1]:
        state.take(index, [node], [count])
    return best[2], best[3]


def _in_turn(state: GreedyState, groups: Sequence[int], style: Style) -> tuple[list[int], list[int]]:
    """Place gangs one after the other, then all lone pods together."""
    layout = state.layout
    ready: list[int] = []
    failed: list[int] = []
    for group in groups:
        if not layout.is_lone(group):
            (ready if admit(state, group, style) else failed).append(group)
    items = [(state.dense.groups[group].classes[0], 1) for group in groups if layout.is_lone(group)]
    left = place_communicating(state, items, Way((0, len(state.price)), style.reuse), whole=False) if items else []
    return ready, failed + [state.dense.classes[index].group for index in left]


def _at_home(state: GreedyState, groups: Sequence[int], style: Style, area: int) -> tuple[list[int], list[int]]:
    """Place what goes there in one area, then the rest anywhere."""
    assert state.communication is not None
    state.communication.home = np.arange(state.communication.calls.areas) == area
    ready, failed = _in_turn(state, groups, style)
    state.communication.home = None
    more, failed = _in_turn(state, failed, style)
    return ready + more, failed


def _homes(state: GreedyState) -> list[int]:
    """The areas with most room."""
    assert state.communication is not None
    room = np.bincount(state.communication.calls.area, weights=state.price, minlength=state.communication.calls.areas)
    return [int(area) for area in np.lexsort((np.arange(len(room)), -room))[:HOMES]]


def _weight(state: GreedyState, groups: Sequence[int]) -> int:
    classes = state.dense.classes
    return sum(
        classes[index].weight * state.placed[index] for group in groups for index in state.dense.groups[group].classes
    )


#: Other AppGroups that make way, one at a time, for one that is not placed entirely.
OTHERS = 8


def ruin_and_recreate(state: GreedyState, limit: int) -> None:
    """Place more of AppGroups that are not placed entirely, then cheaper what is.

    Parameters
    ----------
    state
        What is placed; is changed where that is better.
    limit
        ``GreedyState.work`` beyond which it ends.
    """
    _RuinAndRecreate(state, limit).run()


class _RuinAndRecreate:
    def __init__(self, state: GreedyState, limit: int) -> None:
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
        for app in list(filter(self._left, apps)):
            for others in [[], *([other] for other in self._neighbours(app))]:
                self._more([app, *others])
        for app in apps:
            if self.state.work <= self.limit and all(map(self.state.layout.is_lone, self.groups[app])):
                self._cheaper(app)

    def _movable(self, app: int) -> bool:
        """Whether a node that its pods leave never refuses those that stay (C10)."""
        return all(self.state.may_leave(index) for index in self.classes[app])

    def _left(self, app: int) -> bool:
        return any(self.state.left(index) for index in self.classes[app])

    def _neighbours(self, app: int) -> list[int]:
        """Other AppGroups, those with most pods in the areas where this one is."""
        here = {area for workload in self._workloads([app]) for area in self.communication.placed[workload]}
        shared = {other: self._pods_in(other, here) for other in self.groups if other != app and self._movable(other)}
        placed = [other for other in shared if any(self.state.placed[index] for index in self.classes[other])]
        return sorted(placed, key=lambda other: (-shared[other], other))[:OTHERS]

    def _pods_in(self, app: int, areas: Collection[int]) -> int:
        """Placed pods of an AppGroup in some areas; in any, where there are none of these."""
        placed = (self.communication.placed[workload].items() for workload in self._workloads([app]))
        return sum(pods for there in placed for area, pods in there if not areas or area in areas)

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
        """Place AppGroups once more, the first one first, if it has pods left; undone where no more is placed."""
        if not self._left(apps[0]) or self.state.work > self.limit:
            return
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
        place_cheaply(self.state, items, self.limit)
        self._judge([app], mark, better=(self._placed([app]), -self.communication.cost) > before)

    def _judge(self, apps: Sequence[int], mark: int, *, better: bool) -> None:
        """Undo what is no better, and what leaves callers with too many callees too far (C8)."""
        if not better or not self.communication.balanced(self._workloads(apps)):
            self.state.undo(mark)
