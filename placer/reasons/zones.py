"""What zones say of a group that kubelets keep out, in words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from placer.dense import Dense
from placer.instance import Instance
from placer.reasons.cause import Cause

__all__ = ["zones_cause"]


def zones_cause(instance: Instance, dense: Dense, group: int, cause: Cause) -> Cause:
    """Say on how many nodes with room for the largest pod of a group a kubelet admits it, and why the first does not.

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
    first = refusing[0]
    refusal = numa.kubelet(first).refusal(numa.start[first], pod.numa)
    message = f"{text}; on Node {dense.nodes[first]} {refusal}"
    return replace(cause, message=message, nodes=frozenset({dense.nodes[first]}))
