"""A node as a place with room."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from placer.instance.constraints import Taint
from placer.instance.numa import NumaNode
from placer.quantity import Resources

__all__ = ["Node"]


@dataclass(frozen=True, slots=True)
class Node:
    """A Kubernetes node.

    Parameters
    ----------
    name
        ``metadata.name``.
    allocatable
        ``status.allocatable``: milli-cpu, bytes, counts; ``pods`` included.
    labels
        ``metadata.labels``.
    taints
        The NoSchedule and NoExecute ones only.
    unschedulable
        ``spec.unschedulable`` (cordoned).
    ready
        False where a Ready condition says anything but True.
    numa
        Its NUMA zones and its kubelet's policy (C10); None where no NodeResourceTopology tells of them.
    """

    name: str
    allocatable: Resources
    labels: Mapping[str, str]
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    ready: bool = True
    numa: NumaNode | None = None
