"""Scores of nodes by Volcano's plug-ins nodeorder, binpack and network-topology (labels).

nodeorder's preferences (affinity, taints, spread, images) score every node alike here, as those of kube-scheduler do.

Source: Volcano ``pkg/scheduler/plugins/{nodeorder,binpack}``; the design of the label plug-in (pull requests #3388 and
#3552).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from placer.base.quantity import CPU
from placer.lab.policies.framework import ClusterState, FloatArray, IntArray, Score, Task
from placer.lab.policies.resources import balanced, least_allocated, most_allocated, scorer
from placer.problem import GroupKey

__all__ = ["binpack", "first_nodes", "label_nearness", "label_values", "node_order", "shared"]

_EVEN = {CPU: 1, "memory": 1}
_WITH_GPU = {CPU: 1, "memory": 1, "nvidia.com/gpu": 1}


def node_order(state: ClusterState, weights: Mapping[str, int]) -> list[Score]:
    """Scores of nodeorder that depend on requests."""
    scores = {
        "leastrequested": scorer(state, _EVEN, least_allocated, least=True),
        "mostrequested": scorer(state, _EVEN, most_allocated, least=True),
        "balancedresource": scorer(state, _WITH_GPU, balanced, least=False),
    }
    return [Score(name, weights[name], of) for name, of in scores.items() if weights.get(name)]


def binpack(state: ClusterState, weights: Mapping[str, int]) -> Score:
    """Weighted mean share of the requested resources that is used with the pod there; 0 where it does not fit now."""
    columns = np.array([state.column[name] for name in weights if name in state.column], dtype=np.int64)
    numbers = np.array([weight for name, weight in weights.items() if name in state.column], dtype=np.float64)

    def of(task: Task, nodes: IntArray) -> FloatArray:
        asked = task.request[columns] > 0
        total = numbers[asked].sum()
        if not total:
            return np.zeros(len(nodes))
        cells = nodes[:, None], columns[asked]
        alloc = state.alloc[cells]
        after = alloc - state.idle[cells] + task.request[columns[asked]]
        scores = (numbers[asked] * after / np.maximum(alloc, 1)).sum(axis=1) / total * 100.0
        found: FloatArray = np.where((after > alloc).any(axis=1), 0.0, scores)
        return found

    return Score("binpack", 1, of)


def first_nodes(state: ClusterState) -> Callable[[Task], int | None]:
    """Say the node of the first pod of a pod's group: one that runs already, else the first placed one; None: none."""
    nodes: dict[GroupKey, list[int]] = defaultdict(list)
    for key, group in state.instance.groups.items():
        names = (state.instance.pods[pod].node for pod in group.bound)
        nodes[key] += [state.number[name] for name in names if name in state.number]

    def hear(task: Task, node: int, sign: int) -> None:
        mine = nodes[task.pod.group] if task.pod.group is not None else []
        if sign > 0:
            mine.append(node)
        elif mine:
            del mine[len(mine) - 1 - mine[::-1].index(node)]

    state.listeners.append(hear)
    return lambda task: next(iter(nodes[task.pod.group]), None) if task.pod.group is not None else None


def label_nearness(values: Sequence[Sequence[str]], first: Callable[[Task], int | None], weight: int) -> Score:
    """Nodes that share a label with the node of the group's first pod: the nearer the label, the higher.

    Two nodes without a label share it, as in the design.
    """

    def of(task: Task, nodes: IntArray) -> FloatArray:
        node = first(task)
        if node is None:
            return np.zeros(len(nodes))
        return np.array([shared(values[node], values[each]) for each in nodes.tolist()], dtype=np.float64)

    return Score("network-topology", weight, of)


def label_values(state: ClusterState, keys: Sequence[str]) -> list[list[str]]:
    """Of each node the values of the labels; without labels its HyperNode at each tier stands for them."""
    instance = state.instance
    if keys:
        return [[node.labels.get(key, "") for key in keys] for node in instance.nodes.values()]
    tree = instance.topology
    tiers = sorted({each.tier for each in tree.hyper_nodes.values()})
    paths = ({tree.tier(name): name for name in tree.path(node)} for node in state.names)
    return [[path.get(tier, "") for tier in tiers] for path in paths]


def shared(one: Sequence[str], other: Sequence[str]) -> int:
    """Number of labels less the place of the first one that is equal; 0 where none is.

    Examples
    --------
    >>> shared(["r1", "s1", "idc"], ["r2", "s1", "idc"])
    2
    """
    return next((len(one) - index for index, value in enumerate(one) if value == other[index]), 0)
