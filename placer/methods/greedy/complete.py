"""What still fits beside a solution, without moving anything: every answer is maximal."""

from __future__ import annotations

from collections import defaultdict

from placer.dense import Dense, Solution
from placer.methods.greedy.alike import place_alike
from placer.methods.greedy.backtrack import Effort, force
from placer.methods.greedy.gang import Style, admit
from placer.methods.greedy.layout import Layout
from placer.methods.greedy.optional import extend, is_ready
from placer.methods.greedy.state import State

__all__ = ["LOOKS", "complete", "squeeze_in"]

#: Nodes looked at in all when groups are placed by trying everything (about 2 microseconds each).
LOOKS = 200_000

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
    for priority in sorted({group.priority for group in dense.groups}, reverse=True):
        level = [index for index, group in enumerate(dense.groups) if group.priority == priority]
        alike: dict[object, list[int]] = defaultdict(list)
        gangs = []
        for group in level:
            kind = state.layout.lone_kind(group)
            if kind is None:
                gangs.append(group)
            elif state.left(dense.groups[group].classes[0]):
                alike[kind].append(group)
        for group in gangs:
            if not is_ready(state, group):
                squeeze_in(state, group, effort)
        for groups in alike.values():
            place_alike(state, groups, reuse=True)
        for group in gangs:
            if is_ready(state, group):
                extend(state, group, THOROUGH[0])
    return state.solution()


def squeeze_in(state: State, group: int, effort: Effort) -> bool:
    """Make a group ready beside what is placed, by every way the greedy has."""
    if any(admit(state, group, style) for style in THOROUGH):
        return True
    mine = effort.share(4)
    found = force(state, group, mine)
    effort.looks += max(0, mine.looks)
    effort.exhaustive &= mine.exhaustive
    return found
