"""An AppGroup as a whole: its gangs and lone pods near to each other (C8, C9, O3)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placer.methods.greedy.gang import Style, admit
from placer.methods.greedy.nodes import Way
from placer.methods.greedy.settle import settle
from placer.methods.greedy.state import State

__all__ = ["place_app"]

#: Areas in which an AppGroup is tried that does not find a place group by group.
HOMES = 3


def place_app(state: State, groups: Sequence[int], style: Style) -> tuple[list[int], list[int]]:
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


def _in_turn(state: State, groups: Sequence[int], style: Style) -> tuple[list[int], list[int]]:
    """Place gangs one after the other, then all lone pods together."""
    layout = state.layout
    ready: list[int] = []
    failed: list[int] = []
    for group in groups:
        if not layout.is_lone(group):
            (ready if admit(state, group, style) else failed).append(group)
    items = [(state.dense.groups[group].classes[0], 1) for group in groups if layout.is_lone(group)]
    left = settle(state, items, Way((0, len(state.price)), style.reuse), whole=False) if items else []
    return ready, failed + [state.dense.classes[index].group for index in left]


def _at_home(state: State, groups: Sequence[int], style: Style, area: int) -> tuple[list[int], list[int]]:
    """Place what goes there in one area, then the rest anywhere."""
    assert state.communication is not None
    state.communication.home = np.arange(state.communication.calls.areas) == area
    ready, failed = _in_turn(state, groups, style)
    state.communication.home = None
    more, failed = _in_turn(state, failed, style)
    return ready + more, failed


def _homes(state: State) -> list[int]:
    """The areas with most room."""
    assert state.communication is not None
    room = np.bincount(state.communication.calls.area, weights=state.price, minlength=state.communication.calls.areas)
    return [int(area) for area in np.lexsort((np.arange(len(room)), -room))[:HOMES]]


def _weight(state: State, groups: Sequence[int]) -> int:
    classes = state.dense.classes
    return sum(
        classes[index].weight * state.placed[index] for group in groups for index in state.dense.groups[group].classes
    )
