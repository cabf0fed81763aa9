"""Making way: a pod that waits finds its place where another one moves aside.

Room may be left only where those that wait may not be (C13, C14). So for each pod that finds no place one other is
moved, as far as tier limits let it. In the same way nodes are emptied that a few pods keep open (O4).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from placer.arrays.solution import BoolArray, IntArray
from placer.search.greedy.best_fit import tops
from placer.search.greedy.state import STEP, GreedyState


def make_way(state: GreedyState, groups: Iterable[int]) -> list[int]:
    """Make groups without subgroups or calls ready by moving others aside; give those that are."""
    if state.neighbours is None or state.zones is not None:
        return []
    search = _MakingWay(state)
    return [group for group in groups if search.admit(group)]


def empty_nodes(state: GreedyState) -> bool:
    """Empty nodes that only new pods use into others in use (O4); say whether any is."""
    if state.neighbours is None or state.zones is not None:
        return False
    search, in_vain = _MakingWay(state, still=True), 0
    before = int(state.used.sum())
    opened = np.flatnonzero(state.used & ~state.dense.node_used)
    for node in opened[np.argsort(-state.price[opened], kind="stable")].tolist():
        if in_vain < 3 and state.work < search.limit and search.could_be_empty(node):
            in_vain += not search.empty(node)
    return int(state.used.sum()) < before


class _MakingWay:
    """Exchanges of two pods. ``still``: pods stay that a tier limit or nearness is about (C7, O2)."""

    def __init__(self, state: GreedyState, *, still: bool = False) -> None:
        self.state, self.dense, self.limit, self.still = state, state.dense, state.work + 60 * 10**6, still
        #: Shape to the nodes with room for one of its pods, as things stand.
        self._roomy: dict[int, IntArray] = {}

    def admit(self, group: int) -> bool:
        gang = self.dense.groups[group]
        if gang.sub_groups or any(index in self.dense.workload_of for index in gang.classes):
            return False
        for domain in tops(self.state, gang.scope, self.state.layout.domains.root):
            mark = self.state.mark()
            if self.state.work < self.limit and self._admit_in(group, domain):
                return True
            self.state.undo(mark)
            self._roomy.clear()
        return False

    def could_be_empty(self, node: int) -> bool:
        others = self.state.used.copy()
        others[node] = False
        leave = self._leave(node)
        taken = sum(self.dense.classes[index].request * count for index, count in leave)
        enough = bool((self.state.free[others].sum(axis=0) >= taken).all())
        return enough and all(self._may_move(index) for index, _ in leave)

    def _leave(self, node: int) -> list[tuple[int, int]]:
        there = self.state.on[node].items()
        return [(index, count) for index, count in there if not self.dense.classes[index].daemon]

    def empty(self, node: int) -> bool:
        state, mark = self.state, self.state.mark()
        inside = state.used.copy()
        inside[node] = False
        for index, count in self._leave(node):
            for _ in range(count):
                state.take(index, [node], [-1])
                moved = self._place(index, inside)
                self._roomy.clear()
                if not moved or (state.neighbours is not None and not state.neighbours.even_for(index)):
                    state.undo(mark)
                    return False
        return True

    def _admit_in(self, group: int, domain: int) -> bool:
        begin, end = self.state.layout.slice_of(domain)
        inside = np.zeros(len(self.dense.nodes), dtype=bool)
        inside[begin:end] = True
        for index in self.dense.groups[group].classes:
            while self.state.left(index) and not self.state.is_ready(group) and self._place(index, inside):
                self._roomy.clear()
        return self.state.is_ready(group)

    def _place(self, index: int, inside: BoolArray) -> bool:
        if self.state.queue_limit(index) < 1:
            return False
        able = np.flatnonzero((self.state.able(index) > 0) & inside)
        if len(able):
            self.state.take(index, [self._tightest(able)], [1])
            return True
        open_to_it = self.dense.masks[self.dense.classes[index].mask] & inside
        counts = open_to_it.astype(np.int64)
        self.state.close(index, None, counts)
        return any(self._move_aside(index, node, inside) for node in np.flatnonzero(counts > 0).tolist())

    def _tightest(self, nodes: IntArray) -> int:
        return int(nodes[int(np.argmin(self.state.price[nodes]))])

    def _move_aside(self, index: int, node: int, inside: BoolArray) -> bool:
        lacking = self.dense.classes[index].request - self.state.free[node]
        for other in list(self.state.on[node]):
            self.state.work += STEP // 50
            if self.state.work > self.limit:
                return False
            makes_room = len(self._targets(other, inside)) and (self.dense.classes[other].request >= lacking).all()
            if makes_room and self._may_move(other) and self._exchange(index, node, other, inside):
                return True
        return False

    def _targets(self, index: int, inside: BoolArray) -> IntArray:
        shape = self.state.layout.shape_of[index]
        if shape not in self._roomy:
            self.state.work += STEP // 4 + self.state.free.size
            enough = (self.state.free >= self.dense.classes[index].request).all(axis=1)
            self._roomy[shape] = np.flatnonzero(enough & inside if self.still else enough)
        return self._roomy[shape]

    def _exchange(self, index: int, node: int, other: int, inside: BoolArray) -> bool:
        state, (begin, end) = self.state, self._around(other, node)
        targets = self._targets(other, inside)
        targets = targets[(targets >= begin) & (targets < end)]
        if not len(targets):
            return False
        mark = state.mark()
        state.take(other, [node], [-1])
        if state.able(index)[node] > 0:
            state.take(index, [node], [1])
            targets = targets[state.able(other)[targets] > 0]
            if len(targets):
                state.take(other, [self._tightest(targets)], [1])
                if state.neighbours is None or state.neighbours.even_for(other):
                    return True
        state.undo(mark)
        return False

    def _around(self, index: int, node: int) -> tuple[int, int]:
        tree, begin, end = self.dense.domains, 0, len(self.dense.nodes)
        for scope in self.dense.scopes_of(index):
            for top in self.dense.limit_domains(scope) or ():
                if tree.begin[top] <= node < tree.end[top]:
                    begin, end = max(begin, int(tree.begin[top])), min(end, int(tree.end[top]))
        return begin, end

    def _may_move(self, index: int) -> bool:
        if index in self.dense.workload_of or (
            self.state.neighbours is not None and self.state.neighbours.needed(index)
        ):
            return False
        return not self.still or not any(self.dense.scopes[scope].wanted for scope in self.dense.scopes_of(index))
