"""Nodes as they are read."""

from __future__ import annotations

from collections.abc import Iterable

from placer.instance.constraints import Taint
from placer.instance.node import Node
from placer.kube import core
from placer.quantity import Resources

__all__ = ["read_nodes"]

#: PreferNoSchedule keeps no pod off.
_EFFECTS = ("NoSchedule", "NoExecute")


def read_nodes(written: Iterable[core.NodeManifest]) -> dict[str, Node]:
    """Read nodes, by name; one without a Ready condition is ready."""
    vectors: dict[frozenset[tuple[str, int]], Resources] = {}
    nodes = {}
    for node in sorted(written, key=lambda each: each.name):
        amounts = frozenset(node.allocatable.items())
        if amounts not in vectors:
            vectors[amounts] = Resources.from_nano(dict(amounts))
        nodes[node.name] = Node(
            name=node.name,
            allocatable=vectors[amounts],
            labels=node.metadata.labels or {},
            taints=_taints(node),
            unschedulable=bool(node.spec is not None and node.spec.unschedulable),
            ready=_ready(node),
        )
    return nodes


def _taints(node: core.NodeManifest) -> tuple[Taint, ...]:
    taints = (node.spec.taints if node.spec is not None else None) or ()
    return tuple(sorted({Taint(each.key, each.value or "", each.effect) for each in taints if each.effect in _EFFECTS}))


def _ready(node: core.NodeManifest) -> bool:
    conditions = (node.status.conditions if node.status is not None else None) or ()
    return all(each.status == "True" for each in conditions if each.type == "Ready")
