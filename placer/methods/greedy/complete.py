"""What still fits beside a solution, without moving anything: every answer is maximal."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from placer.dense import Dense, Solution
from placer.methods.greedy.alike import place_alike
from placer.methods.greedy.backtrack import Effort, force
from placer.methods.greedy.gang import Style, admit
from placer.methods.greedy.layout import Layout
from placer.methods.greedy.nodes import Way
from placer.methods.greedy.optional import extend, is_ready
from placer.methods.greedy.settle import settle
from placer.methods.greedy.state import State

__all__ = ["LOOKS", "complete", "squeeze_in"]

#: Nodes looked at in all when groups are placed by trying everything (about 2 microseconds each).
LOOKS = 200_000

#: How many of them the search for another order of a node's pods counts as.
ORDERS = 40_000

#: Ways to place a group that found no place so far: every domain is tried, with different choices of nodes.
THOROUGH = (Style(tries=10**9), Style(few=False, tries=10**9), Style(few=False, reuse=False, tries=10**9))


def complete(dense: Dense, solution: Solution) -> Solution:
    """Add whole pending groups, then optional pods, until nothing more fits.

    Parameters
    ----------
    dense
        The instance.
    solution
        Keeps all rules; is not changed.

    Returns
    -------
    Solution
        Contains ``solution``. The same one where ``placed`` is not the first level of the policy, since more pods may
        then be worse.
    """
    if not dense.levels or dense.levels[0][0] != "admitted":
        return dict(solution)
    state, effort = State(Layout(dense), solution), Effort(LOOKS)
    majority = dense.network is not None and dense.network.majority
    before = -1
    # What is added can be a near callee of what was too far from all others.
    while before < 0 or (majority and before < sum(state.placed)):
        before = sum(state.placed)
        for priority in sorted({group.priority for group in dense.groups}, reverse=True):
            _add(state, [index for index, group in enumerate(dense.groups) if group.priority == priority], effort)
    return state.solution()


def _add(state: State, level: Sequence[int], effort: Effort) -> None:
    """Add groups of one priority, then optional pods."""
    groups, layout = state.dense.groups, state.layout
    alike: dict[object, list[int]] = defaultdict(list)
    calling: dict[int | None, list[int]] = defaultdict(list)
    gangs = []
    for group in level:
        if not layout.is_lone(group):
            gangs.append(group)
        elif state.left(groups[group].classes[0]):
            app = layout.app(group)
            if app is None:
                alike[layout.lone_kind(group)].append(group)
            else:
                calling[app].append(groups[group].classes[0])
    for group in gangs:
        if not is_ready(state, group):
            squeeze_in(state, group, effort)
    for several in alike.values():
        place_alike(state, several, reuse=True)
        _in_another_order(state, several, effort)
    for classes in calling.values():
        settle(state, [(index, 1) for index in classes], Way((0, len(state.price))), whole=False)
    for group in gangs:
        if is_ready(state, group):
            extend(state, group, THOROUGH[0])
            while layout.app(group) is not None and _squeeze(state, group, effort, more=True):
                extend(state, group, THOROUGH[0])


def _in_another_order(state: State, lone: Sequence[int], effort: Effort) -> None:
    """Place pods on nodes whose kubelet refuses them as the last ones and admits them in another order (C10)."""
    for group in lone if state.zones is not None else ():
        gang = state.dense.groups[group]
        index = gang.classes[0]
        limited = state.dense.scopes[gang.scope].limit is not None
        if limited or not state.left(index) or state.queue_limit(index) < 1:
            continue
        for node in np.flatnonzero(state.able(index, zones=False)).tolist():
            effort.looks -= ORDERS
            if effort.looks < 0:
                return
            if state.zones is not None and state.zones.admits_any(index, node):
                state.take(index, [node], [1])
                break


def squeeze_in(state: State, group: int, effort: Effort) -> bool:
    """Make a group ready beside what is placed, by every way the greedy has."""
    # Where pods call each other the areas decide, and all styles choose the same ones.
    styles = THOROUGH if state.layout.app(group) is None else THOROUGH[:1]
    return any(admit(state, group, style) for style in styles) or _squeeze(state, group, effort, more=False)


def _squeeze(state: State, group: int, effort: Effort, *, more: bool) -> bool:
    """Try everything for a group, with a part of the effort."""
    if not any(state.left(index) for index in state.dense.groups[group].classes):
        return False
    mine = effort.share(4)
    found = force(state, group, mine, more=more)
    effort.looks += max(0, mine.looks)
    effort.exhaustive &= mine.exhaustive
    return found
