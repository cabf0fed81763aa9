"""What zones say of a group that kubelets keep out, in words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from placer.dense import Dense, DenseNuma
from placer.instance import Instance
from placer.instance.numa import TopologyManager
from placer.reasons.cause import Cause

__all__ = ["zones_cause"]


def zones_cause(instance: Instance, dense: Dense, group: int, cause: Cause) -> Cause:
    """Say on how many nodes with room for the largest pod of a group a kubelet admits it, and why the nearest does not.

    Parameters
    ----------
    instance
        By name.
    dense
        Its arrays.
    group
        Index of the group.
    cause
        ``NumaAlignment``.
    """
    numa = dense.numa
    classes = [index for index in dense.groups[group].classes if dense.classes[index].zones >= 0]
    if numa is None or not classes:
        return cause
    index = max(classes, key=lambda index: (dense.classes[index].weight, -index))
    pod = instance.pods[dense.classes[index].pods[0]]
    nodes = np.flatnonzero(replace(dense, numa=None).fits(index)).tolist()
    refusing = [node for node in nodes if not numa.admits(node, [(index, 1)])]
    text = f"{cause.message}: {len(nodes) - len(refusing)}/{len(nodes)} nodes with room for Pod {pod.key} admit it"
    if not refusing or pod.numa is None:
        return replace(cause, message=text)
    best = min(refusing, key=lambda node: (_lacking(numa, index, node), dense.nodes[node]))
    refusal = TopologyManager(instance.aligning_nodes[dense.nodes[best]]).admit(pod.numa).refusal
    message = f"{text}; Node {dense.nodes[best]} comes nearest: {refusal}"
    return replace(cause, message=message, nodes=frozenset({dense.nodes[best]}))


def _lacking(numa: DenseNuma, index: int, node: int) -> float:
    """Which share of what a pod asks is missing in the best zone of a node, or in all where it takes several.

    Of its containers, and of their resources, the one that lacks most counts.
    """
    zones = numa.kubelet(node).amounts(numa.start[node])
    worst = 0.0
    for unit in numa.of(index, node):
        rooms = zones if unit.width == 1 else [[sum(each) for each in zip(*zones, strict=True)]]
        lacks = (max((1 - room[at] / need for at, need, _ in unit.amounts if need), default=0.0) for room in rooms)
        worst = max(worst, min(lacks, default=0.0))
    return worst
