"""InterPodAffinity and PodTopologySpread as kube-scheduler and Volcano filter by them: pod after pod, unlike C14.

Source: kube-scheduler ``plugins/interpodaffinity`` and ``plugins/podtopologyspread`` (``Filter``), which Volcano's
``predicates`` call, too.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from placer.arrays.dense_neighbours import NEIGHBOUR_RULES, NeighbourKinds
from placer.lab.policies.framework import BoolArray, ClusterState, Filter, IntArray, Task
from placer.search.partial.neighbour_rooms import NeighbourRooms

__all__ = ["neighbour_filters"]

#: Plug-in to the rules that it filters by.
PLUGINS = {"InterPodAffinity": ("C12", "C13"), "PodTopologySpread": ("C14",)}


def neighbour_filters(state: ClusterState, plugins: Collection[str] = tuple(PLUGINS)) -> list[Filter]:
    """The filters of those of the two plug-ins that are on; none where no pod asks anything of others."""
    kinds = NeighbourKinds(state.instance, state.instance.pending, state.names)
    kind_of = np.array([kinds.of(task.pod) for task in state.tasks], dtype=np.int64)
    rows = kinds.rows(range(int(kind_of.max(initial=-1)) + 1))
    kept = {rule for name in plugins for rule in PLUGINS.get(name, ())}
    for rule in NEIGHBOUR_RULES:
        if rule not in kept and rows is not None:
            rows = rows.without(rule) or rows
    if rows is None:
        return []
    rooms = NeighbourRooms(rows, list(range(int(kind_of.max()) + 1)))

    def listen(task: Task, node: int, sign: int) -> None:
        if kind_of[task.index] >= 0:
            rooms.take(int(kind_of[task.index]), node, sign)

    def admits(task: Task, nodes: IntArray) -> BoolArray:
        counts = np.ones(len(nodes), dtype=np.int64)
        if kind_of[task.index] >= 0:
            rooms.close(int(kind_of[task.index]), nodes, counts)
        return counts > 0

    state.listeners.append(listen)
    return [admits]
