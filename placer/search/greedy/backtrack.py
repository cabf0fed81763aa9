"""Exhaustive depth-first search for one group in the room that is left: what rules of thumb miss on tight nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from placer.arrays.model import ready
from placer.arrays.solution import BoolArray
from placer.base.deadline import Budget
from placer.search.greedy.best_fit import candidates, demand_of, tops
from placer.search.greedy.state import GreedyState

#: A group with more pods than this is not tried: the search is as deep as it has pods.
MOST_PODS = 200


@dataclass
class Effort(Budget):
    """The work is nodes looked at; ``exhaustive``: whether every search so far tried everything."""

    exhaustive: bool = True


def force(state: GreedyState, group: int, effort: Effort, *, more: bool = False) -> bool:
    """Make a group ready, or place more of it, by depth-first search; False, and nothing placed, without success."""
    gang = state.dense.groups[group]
    if not more and not _possible(state, group):
        return False
    if sum(state.dense.classes[index].size for index in gang.classes) > MOST_PODS:
        effort.exhaustive = False
        return False
    found = _Backtracking(state, group, effort, more).found()
    rooms, waiting = state.neighbours, sum(map(state.left, gang.classes))
    if not found and waiting > 1 and rooms is not None and rooms.bring_about(gang.classes):
        # Pods that come later may be those that let earlier ones in.
        with rooms.leniently():
            found = _Backtracking(state, group, effort, more).found()
    effort.exhaustive &= not effort.over
    return found


def _possible(state: GreedyState, group: int) -> bool:
    """Whether some domain could hold what the group needs, by counting; only told where it needs all its pods.

    What C10 says of a pod may change with those that come before it, so there nothing is told.
    """
    layout = state.layout
    if layout.needed(group) is None or layout.elastic(group):
        return layout.elastic(group)
    if any(state.dense.classes[index].zones >= 0 for index in state.dense.groups[group].classes):
        return True
    whole = layout.whole(group)
    scope = state.dense.groups[group].scope
    return any(True for _ in candidates(state, scope, state.layout.domains.root, demand_of(state, whole)))


class _Backtracking:
    """A level is a pod; equal pods go to nodes of rising number."""

    def __init__(self, state: GreedyState, group: int, effort: Effort, more: bool) -> None:
        self.state, self.group, self.effort, self.more = state, group, effort, more
        self.gang = state.dense.groups[group]
        prices = state.layout.class_prices
        self.before = sum(state.placed[index] for index in self.gang.classes)
        calling = {state.dense.workload_of[index] for index in self.gang.classes if index in state.dense.workload_of}
        self.workloads = sorted(calling)
        size = {
            sub: sum(prices[index] * state.dense.classes[index].size for index in state.dense.sub_groups[sub].classes)
            for sub in self.gang.sub_groups
        }
        self.order = sorted(
            self.gang.classes,
            key=lambda index: (-size.get(self._sub(index), -1), self._sub(index), -prices[index], index),
        )
        self.kind = state.kinds(self.gang.classes)
        left = [state.left(index) for index in self.order]
        #: Pods of the classes after a position in the order that are not placed.
        self.rest = [*accumulate(reversed(left[1:]), initial=0)][::-1]
        self.parted = bool(self.gang.sub_groups or self.gang.short_by_role or self.gang.short_by_policy)
        self.masks = state.dense.masks[sorted({state.dense.classes[index].mask for index in self.gang.classes})]

    def _sub(self, index: int) -> int:
        return self.state.dense.classes[index].sub_group

    def found(self) -> bool:
        """Whether there is a place; the pods are placed then, and none of them otherwise."""
        return self._place(0, 0, self.before)

    def _place(self, position: int, first: int, count: int) -> bool:
        # Most branches end by the number of pods alone, which costs no look at every class of the gang.
        if count >= self.gang.short and self._done():
            return True
        if position == len(self.order) or not self._may_be_enough(position, count):
            return False
        index = self.order[position]
        if self.state.left(index) and self.state.queue_limit(index) > 0:
            for node in self._nodes(index, first):
                mark = self.state.mark()
                self.state.take(index, [node], [1])
                if self._place(position, node, count + 1):
                    return True
                self.state.undo(mark)
        return self._place(position + 1, 0, count)

    def _done(self) -> bool:
        placed = self.state.placed
        if self.more and sum(placed[index] for index in self.gang.classes) == self.before:
            return False
        for sub in self.gang.sub_groups:
            part = self.state.dense.sub_groups[sub]
            if 0 < sum(placed[index] for index in part.classes) < part.short:
                return False
        if not self.state.is_ready(self.group):
            return False
        if self.state.neighbours is not None and self.state.neighbours.lenient:
            self.effort.spend(sum(map(len, self.state.where.values())))  # all that is placed is looked at
        return self.state.stands(self.workloads)

    def _may_be_enough(self, position: int, count: int) -> bool:
        most = count + self.state.left(self.order[position]) + self.rest[position]
        enough = most >= self.gang.short and not self.effort.over
        return enough and (not self.parted or self._hopeful(position))

    def _hopeful(self, position: int) -> bool:
        sizes = self.state.dense.classes
        most = {index: self.state.placed[index] for index in self.gang.classes}
        most.update({index: sizes[index].size for index in self.order[position:]})
        for sub in self.gang.sub_groups:
            classes = self.state.dense.sub_groups[sub].classes
            short = self.state.dense.sub_groups[sub].short
            if any(self.state.placed[index] for index in classes) and sum(most[index] for index in classes) < short:
                return False
        return ready(self.state.dense, self.group, most)

    def _nodes(self, index: int, first: int) -> Iterator[int]:
        """Nodes for one pod, tightest first; of nodes that nothing tells apart only the first."""
        state = self.state
        zones = state.zones if state.dense.classes[index].zones >= 0 else None
        fit = state.able(index, zones=zones is None)
        found = self._within(index, first, fit > 0)
        if zones is not None:
            found = [node for node in found if zones.admits(index, node)]
        self.effort.spend(1 + len(found) + (60 if self.workloads else 0))
        seen: set[object] = set()
        for node in sorted(found, key=lambda node: (int(state.price[node]), node)):
            kind = state.layout.leaf_number[node], self.masks[:, node].tobytes(), self.kind(node)
            # The node filled last stays a choice of its own: going on there is not the same as opening its twin.
            if node == first or kind not in seen:
                seen.add(kind)
                yield node

    def _within(self, index: int, first: int, able: BoolArray) -> list[int]:
        found: list[int] = []
        sub = self._sub(index)
        for outer in tops(self.state, self.gang.scope, self.state.layout.domains.root):
            for domain in [outer] if sub < 0 else tops(self.state, self.state.dense.sub_groups[sub].scope, outer):
                begin, end = self.state.layout.slice_of(domain)
                begin = max(begin, first)
                found += (begin + np.flatnonzero(able[begin:end])).tolist()
        return found
