"""The plug-in network-topology-aware: the HyperNodes that are tried, and scores of these and their nodes.

Source: Volcano ``pkg/scheduler/plugins/network-topology-aware/network_topology_aware.go``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from placer.lab.policies.framework import ClusterState, FloatArray, IntArray, Task
    from placer.lab.policies.volcano.jobs import HyperNodesInfo, SubJob, Wanted

__all__ = ["TopologyAware", "TopologyWeights"]


@dataclass(frozen=True, slots=True)
class TopologyWeights:
    """Arguments of the plug-in; ``fading`` is the factor of each higher tier for pods without a networkTopology."""

    weight: int = 1
    resources: Mapping[str, int] = field(default_factory=lambda: {"cpu": 1, "memory": 1})
    normal_pods: bool = True
    fading: float = 0.8


class TopologyAware:
    """The plug-in over one session."""

    def __init__(self, state: ClusterState, domains: HyperNodesInfo, weights: TopologyWeights) -> None:
        self.state = state
        self.domains = domains
        self.weights = weights
        counted = [(state.column[name], w) for name, w in weights.resources.items() if name in state.column]
        self._columns = np.array([column for column, _ in counted], dtype=np.int64)
        self._weights = np.array([weight for _, weight in counted], dtype=np.float64)

    def gradients(self, wanted: Wanted | None, anchor: int | None, within: int, request: IntArray) -> list[list[int]]:
        """HyperNodes to try, tier by tier from below, inside ``within``.

        An anchor, the HyperNode of placed pods, above the limit leaves nothing to try. Without an anchor a HyperNode
        must have ``request`` idle, or will have it, at the start of the session.
        """
        limit = wanted.limit if wanted is not None else None
        if limit is None:
            return [[within]]
        root, tier = self._root(anchor, within, limit), self.domains.tier
        found = [each for each in self.domains.below(root) if tier[each] <= limit] if root is not None else []
        if anchor is None:
            found = [each for each in found if self._has_room(each, request)]
        return [list(same) for _, same in groupby(sorted(found, key=tier.__getitem__), key=tier.__getitem__)]

    def _has_room(self, domain: int, request: IntArray) -> bool:
        asked = request > 0
        idle, future = self.domains.idle[domain], self.domains.future[domain]
        return bool((request <= idle)[asked].all() or (request <= future)[asked].all())

    def _root(self, anchor: int | None, within: int, limit: int) -> int | None:
        """None where nothing is left."""
        if anchor is None:
            return within
        allowed = [each for each in self.domains.line(anchor) if self.domains.tier[each] <= limit]
        if not allowed:
            return None
        highest, common = allowed[-1], self.domains.common(allowed[-1], within)
        if common == highest:
            return within
        return highest if common == within else None

    def hyper_nodes(self, subjob: SubJob, candidates: Sequence[int]) -> FloatArray:
        """HyperNodeOrder: the fuller the better where the subjob fits; of the best those with more of its pods."""
        scores = np.array([self._fullness(each, subjob.request) for each in candidates])
        best = np.flatnonzero(scores == scores.max())
        if len(best) > 1 and subjob.total:
            inside = [self._inside(subjob, candidates[index]) for index in best.tolist()]
            scores[best] += np.array(inside) / subjob.total
        return 100.0 * self.weights.weight * scores

    def _fullness(self, domain: int, request: IntArray) -> float:
        asked = request[self._columns]
        counts = asked > 0
        total = self._weights[counts].sum()
        alloc = self.domains.alloc[domain][self._columns][counts]
        after = self.domains.used[domain][self._columns][counts] + asked[counts]
        if total == 0 or (after > alloc).any():
            return 0.0
        return float((self._weights[counts] * after / alloc).sum() / total)

    def _inside(self, subjob: SubJob, domain: int) -> int:
        return sum(count for node, count in subjob.running.items() if domain in self.domains.path[node])

    def nodes(self, subjob: SubJob, anchor: int | None, task: Task, nodes: IntArray) -> FloatArray:
        """BatchNodeOrder: near to the anchor for pods with a networkTopology, full HyperNodes for all others."""
        if subjob.wanted is not None:
            scores = self._near(subjob, anchor, nodes) if anchor is not None else np.zeros(len(nodes))
        elif self.weights.normal_pods:
            scores = self._full(task, nodes)
        else:
            scores = np.zeros(len(nodes))
        return 100.0 * self.weights.weight * scores

    def _near(self, subjob: SubJob, anchor: int, nodes: IntArray) -> FloatArray:
        mine = self.domains.leaf[nodes]
        if (mine == mine[0]).all():
            leaves, where = mine[:1], np.zeros(len(nodes), dtype=np.int64)
        else:
            leaves, where = np.unique(mine, return_inverse=True)
        scores = np.array([self._nearness(leaf, anchor) for leaf in leaves.tolist()])
        best = scores == scores.max()
        if subjob.total and np.count_nonzero(best[where]) > 1:
            running = Counter[int]()
            for node, count in subjob.running.items():
                running[int(self.domains.leaf[node])] += count
            inside = [running[leaf] if leaf >= 0 else 0 for leaf in leaves.tolist()]
            scores[best] += np.array(inside)[best] / subjob.total
        found: FloatArray = scores[where]
        return found

    def _nearness(self, leaf: int, anchor: int) -> float:
        if leaf < 0:
            return 0.0
        if leaf == anchor:
            return 1.0
        domains = self.domains
        common = domains.common(leaf, anchor)
        if domains.max_tier == domains.min_tier or common is None:
            return 1.0
        return (domains.max_tier - domains.tier[common]) / (domains.max_tier - domains.min_tier)

    def _full(self, task: Task, nodes: IntArray) -> FloatArray:
        """Without a HyperNode a node counts as full."""
        domains, total, weights = self.domains, np.zeros(len(nodes)), 0.0
        by_domain: dict[int, float] = {-1: 1.0}
        for tier in range(domains.min_tier, domains.max_tier + 1):
            fading = self.weights.fading ** (tier - 1) if tier != 1 else 1.0
            weights += fading
            if not fading:
                continue
            mine = domains.at_tier(tier)[nodes]
            kinds, where = np.unique(mine, return_inverse=True)
            for each in kinds.tolist():
                if each not in by_domain:
                    by_domain[each] = self._fullness(each, task.request)
            total += fading * np.array([by_domain[each] for each in kinds.tolist()])[where]
        return total / weights if weights else total

    def moved(self, anchor: int | None, node: int) -> int | None:
        """The anchor once a pod is on a node."""
        leaf = int(self.domains.leaf[node])
        return anchor if leaf < 0 else self.domains.common(anchor, leaf)
