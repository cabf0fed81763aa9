"""Making way: a pod that waits finds its place where another one moves aside.

In a full cluster room is left where those that wait may not be: their host has one of them already, or their domain has
more than the others (C13, C14). Whoever only adds pods sees no way then, though a pod that may be almost anywhere could
take that room and leave its own. So for each pod that finds none one other is moved, as far as tier limits let it.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from placer.methods.greedy.best_fit import tops
from placer.methods.greedy.state import STEP, BoolArray, GreedyState, IntArray

__all__ = ["make_way"]

#: ``GreedyState.work`` of one call, about half a second; and of a look at a pod that might move.
WORK, LOOK = 60 * 10**6, STEP // 50


def make_way(state: GreedyState, groups: Iterable[int]) -> list[int]:
    """Make groups ready by moving others aside, where pods ask something of each other and no kubelet refuses any.

    Parameters
    ----------
    state
        What is placed; is changed. Whatever is placed stays so, some of it elsewhere.
    groups
        Groups of which nothing new is placed. Those with subgroups or calls are left out.

    Returns
    -------
    Those of the groups that are ready now; of the others nothing is placed.
    """
    if state.neighbours is None or state.zones is not None:
        return []
    search = _MakingWay(state)
    return [group for group in groups if search.admit(group)]


class _MakingWay:
    """Exchanges of two pods: one comes, one moves."""

    def __init__(self, state: GreedyState) -> None:
        self.state, self.dense, self.limit = state, state.dense, state.work + WORK
        #: Class to the nodes with room for one of its pods, as things stand.
        self._roomy: dict[int, IntArray] = {}

    def admit(self, group: int) -> bool:
        """Make one group ready, in one of the domains that its tier limit names, or place nothing of it."""
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

    def _admit_in(self, group: int, domain: int) -> bool:
        begin, end = self.state.layout.slice_of(domain)
        inside = np.zeros(len(self.dense.nodes), dtype=bool)
        inside[begin:end] = True
        for index in self.dense.groups[group].classes:
            while self.state.left(index) and not self.state.is_ready(group) and self._place(index, inside):
                self._roomy.clear()
        return self.state.is_ready(group)

    def _place(self, index: int, inside: BoolArray) -> bool:
        """Place one pod where there is room, else where another one moves aside."""
        if self.state.queue_limit(index) < 1:
            return False
        able = np.flatnonzero((self.state.able(index) > 0) & inside)
        if len(able):
            self.state.take(index, [self._tightest(able)], [1])
            return True
        open_to_it = self.dense.masks[self.dense.classes[index].mask] & inside
        counts = open_to_it.astype(np.int64)
        self.state.close(index, None, counts)
        return any(self._move_aside(index, node) for node in np.flatnonzero(counts > 0).tolist())

    def _tightest(self, nodes: IntArray) -> int:
        return int(nodes[int(np.argmin(self.state.price[nodes]))])

    def _move_aside(self, index: int, node: int) -> bool:
        """Place a pod on a full node, one of whose pods moves elsewhere."""
        lacking = self.dense.classes[index].request - self.state.free[node]
        for other in list(self.state.on[node]):
            self.state.work += LOOK
            if self.state.work > self.limit:
                return False
            makes_room = len(self._targets(other)) and (self.dense.classes[other].request >= lacking).all()
            if makes_room and self._may_move(other) and self._exchange(index, node, other):
                return True
        return False

    def _targets(self, index: int) -> IntArray:
        """Nodes with room for a pod of a class."""
        if index not in self._roomy:
            self.state.work += STEP // 4 + self.state.free.size
            enough = (self.state.free >= self.dense.classes[index].request).all(axis=1)
            self._roomy[index] = np.flatnonzero(enough)
        return self._roomy[index]

    def _exchange(self, index: int, node: int, other: int) -> bool:
        """Have a pod of ``other`` leave a node to one of ``index``, if it may be anywhere else then."""
        state, (begin, end) = self.state, self._around(other, node)
        targets = self._targets(other)
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
        """The nodes, first and one after the last, to which tier limits let a pod of a class move from a node (C7)."""
        one, tree = self.dense.classes[index], self.dense.domains
        begin, end = 0, len(self.dense.nodes)
        scopes = [self.dense.groups[one.group].scope]
        if one.sub_group >= 0:
            scopes.append(self.dense.sub_groups[one.sub_group].scope)
        for scope in scopes:
            for top in self.dense.limit_domains(scope) or ():
                if tree.begin[top] <= node < tree.end[top]:
                    begin, end = max(begin, int(tree.begin[top])), min(end, int(tree.end[top]))
        return begin, end

    def _may_move(self, index: int) -> bool:
        """Whether a pod of a class may move without a look at those it calls, and at those that need it near them."""
        needed = self.state.neighbours is not None and self.state.neighbours.needed(index)
        return index not in self.dense.workload_of and not needed
