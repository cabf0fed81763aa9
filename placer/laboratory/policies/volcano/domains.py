"""HyperNodes as arrays: which nodes are in one, what they have, what is taken of it.

Above all roots stands the virtual top, which holds every node. Idle sums are those of the start, as Volcano keeps them
during a session (#6015); used sums follow every pod.

Source: Volcano ``pkg/scheduler/api/hyper_node_info.go``, ``pkg/scheduler/framework/session.go``.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from placer.laboratory.policies.cluster_state import ClusterState, IntArray, Task

__all__ = ["TOP", "HyperNodesInfo"]

#: Name of the virtual top.
TOP = "<cluster-top-hypernode>"


class HyperNodesInfo:
    """The HyperNodes of an instance, by index; the virtual top comes last.

    Parameters
    ----------
    state
        What is where; pods that take and leave room are heard of.
    """

    def __init__(self, state: ClusterState) -> None:
        tree = state.instance.topology
        self.state = state
        self.names = [*tree.hyper_nodes, TOP]
        self.number = {name: index for index, name in enumerate(self.names)}
        self.top = self.number[TOP]
        self.tier = [*(each.tier for each in tree.hyper_nodes.values()), max(1, tree.root_tier)]
        above = [each.parent for each in tree.hyper_nodes.values()]
        self.parent = [*(self.top if name is None else self.number[name] for name in above), -1]
        self.children: list[list[int]] = [[] for _ in self.names]
        for index, parent in enumerate(self.parent[:-1]):
            self.children[parent].append(index)
        self.max_tier, self.min_tier = self.tier[self.top], min(self.tier)
        #: HyperNodes that hold a node, lowest first, the top last.
        self.path = [[*(self.number[name] for name in tree.path(node)), self.top] for node in state.names]
        self._paths = [np.array(path, dtype=np.int64) for path in self.path]
        #: The HyperNode of a node at the lowest tier of all, -1 where it has none there.
        self.leaf: IntArray = np.array([self._at(path, self.min_tier) for path in self.path], dtype=np.int64)
        self.nodes = [np.array([], dtype=np.int64)] * len(self.names)
        members: list[list[int]] = [[] for _ in self.names]
        for node in state.everywhere.tolist():
            for domain in self.path[node]:
                members[domain].append(node)
        self.nodes = [np.array(each, dtype=np.int64) for each in members]
        self.alloc = self._sums(state.alloc)
        self.used = self._sums(state.used)
        self.idle = self._sums(state.idle)
        self.future = self.idle + self._sums(state.releasing)
        self._by_tier: dict[int, IntArray] = {}
        state.listeners.append(self._hear)

    def _sums(self, rows: IntArray) -> IntArray:
        found: IntArray = np.array([rows[nodes].sum(axis=0) for nodes in self.nodes], dtype=np.int64)
        return found.reshape(len(self.nodes), rows.shape[1])

    def _at(self, path: Iterable[int], tier: int) -> int:
        return next((domain for domain in path if self.tier[domain] == tier), -1)

    def _hear(self, task: Task, node: int, sign: int) -> None:
        self.used[self._paths[node]] += sign * task.request

    def at_tier(self, tier: int) -> IntArray:
        """The HyperNode of every node at a tier, -1 where it has none there."""
        if tier not in self._by_tier:
            self._by_tier[tier] = np.array([self._at(path, tier) for path in self.path], dtype=np.int64)
        return self._by_tier[tier]

    def line(self, domain: int) -> list[int]:
        """A HyperNode and its ancestors up to the top."""
        found = [domain]
        while self.parent[found[-1]] >= 0:
            found.append(self.parent[found[-1]])
        return found

    def common(self, one: int | None, other: int | None) -> int | None:
        """Lowest common ancestor-or-self; of nothing and something the latter."""
        if one is None or other is None:
            return other if one is None else one
        line = self.line(one)
        return next(domain for domain in self.line(other) if domain in line)

    def smallest(self, nodes: Iterable[int]) -> int:
        """The lowest HyperNode that holds all the nodes."""
        paths = [self.path[node] for node in nodes]
        return next(domain for domain in paths[0] if all(domain in path for path in paths))

    def below(self, domain: int) -> list[int]:
        """A HyperNode and all that lie in it."""
        found = [domain]
        for each in found:
            found.extend(self.children[each])
        return found
