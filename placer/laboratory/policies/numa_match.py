"""NodeResourceTopologyMatch as a filter and a score.

Without a cache period, which is the default, every pod sees the zones as the objects have them: what the pods before it
took is not known. With one the pods' requests are taken off every zone that lists them (OverReserve), but not where
``discardReservedNodes`` chooses the third cache, which knows of no pod once it is bound.

Source: scheduler-plugins ``pkg/noderesourcetopology`` (``plugin.go``, ``cache``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from placer.laboratory.policies.cluster_state import BoolArray, ClusterState, FloatArray, IntArray, Task
from placer.laboratory.policies.faults import ConfigReader
from placer.laboratory.policies.numa_scores import STRATEGIES, score
from placer.laboratory.policies.numa_zones import Ask, NodeZones, ask_of, refusal

__all__ = ["NumaMatch"]


class NumaMatch:
    """Filter and score of the plug-in.

    Parameters
    ----------
    state
        What is where.
    arguments
        Of the plug-in: ``scoringStrategy``, ``cacheResyncPeriodSeconds``, ``discardReservedNodes``.
    reader
        Takes the faults of the arguments.
    """

    def __init__(self, state: ClusterState, arguments: Mapping[str, Any], reader: ConfigReader) -> None:
        at = "pluginConfig[NodeResourceTopologyMatch].args"
        strategy = reader.mapping(arguments.get("scoringStrategy"), f"{at}.scoringStrategy")
        self.strategy = reader.text(strategy.get("type"), f"{at}.scoringStrategy.type", STRATEGIES[0], STRATEGIES)
        self.weights = reader.weights(strategy.get("resources"), f"{at}.scoringStrategy.resources")
        reader.rest(strategy, f"{at}.scoringStrategy.", ("type", "resources"))
        period = reader.integer(arguments.get("cacheResyncPeriodSeconds"), f"{at}.cacheResyncPeriodSeconds", 0)
        discards = reader.flag(arguments.get("discardReservedNodes"), f"{at}.discardReservedNodes")
        if discards:
            reader.remark(f"{at}.discardReservedNodes", "nodes are closed only during a binding, which takes no time")
        if discards and period:
            reader.remark(f"{at}.cacheResyncPeriodSeconds", "decides nothing beside discardReservedNodes")
        zones = [None if node.numa is None else NodeZones.of(node, node.numa) for node in state.instance.nodes.values()]
        self._kinds: list[NodeZones | None] = []
        self._index: dict[NodeZones | None, int] = {}
        self._start = [self._number(each) for each in zones]
        self._kind: IntArray = np.array(self._start, dtype=np.int64)
        self._asks: dict[Ask, Ask] = {}
        self._ask_of: dict[int, Ask] = {}
        self._tables: dict[tuple[str, int], IntArray] = {}
        self._taken: dict[int, list[Task]] = defaultdict(list)
        if period and not discards:
            state.listeners.append(self._reserve)

    def _number(self, zones: NodeZones | None) -> int:
        """Number of a kind of node: nodes whose zones are alike share it."""
        if zones not in self._index:
            self._index[zones] = len(self._kinds)
            self._kinds.append(zones)
        return self._index[zones]

    def _ask(self, task: Task) -> Ask:
        if task.index not in self._ask_of:
            ask = ask_of(task.pod)
            self._ask_of[task.index] = self._asks.setdefault(ask, ask)
        return self._ask_of[task.index]

    def _reserve(self, task: Task, node: int, sign: int) -> None:
        """Take the requests of all pods that were placed here off what the object says."""
        if sign > 0:
            self._taken[node].append(task)
        else:
            self._taken[node].remove(task)
        zones = self._kinds[self._start[node]]
        if zones is not None:
            for each in self._taken[node]:
                zones = zones.less(self._ask(each).whole)
            self._kind[node] = self._number(zones)

    def _look_up(
        self, name: str, judge: Callable[[Ask, NodeZones | None], int], task: Task, nodes: IntArray
    ) -> IntArray:
        """Ask once for each pair of a kind of pod and a kind of node."""
        ask, kinds = self._ask(task), self._kind[nodes]
        table = self._tables.get((name, id(ask)))
        if table is None or len(table) < len(self._kinds):
            known = np.zeros(0, dtype=np.int64) if table is None else table
            table = np.concatenate((known, np.full(len(self._kinds) - len(known), -1, dtype=np.int64)))
            self._tables[name, id(ask)] = table
        for kind in np.unique(kinds[table[kinds] < 0]).tolist():
            table[kind] = judge(ask, self._kinds[kind])
        return table[kinds]

    def filter(self, task: Task, nodes: IntArray) -> BoolArray:
        """Where the pod can be aligned, or no NodeResourceTopology says what zones there are."""
        found: BoolArray = self._look_up("filter", _passes, task, nodes) == 1
        return found

    def score(self, task: Task, nodes: IntArray) -> FloatArray:
        """Score by the strategy."""
        return self._look_up("score", self._score, task, nodes).astype(np.float64)

    def _score(self, ask: Ask, zones: NodeZones | None) -> int:
        return score(self.strategy, ask, zones, self.weights)


def _passes(ask: Ask, zones: NodeZones | None) -> int:
    return int(zones is None or refusal(ask, zones) is None)
