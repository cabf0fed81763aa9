"""NUMA zones of nodes and their use by kubelets (C10)."""

from placer.problem.numa.kubelet_replay import Admission, TopologyManager, aligns
from placer.problem.numa.numa_values import NumaContainer, NumaDemand, NumaNode, NumaZone, Qos, Stage

__all__ = [
    "Admission",
    "NumaContainer",
    "NumaDemand",
    "NumaNode",
    "NumaZone",
    "Qos",
    "Stage",
    "TopologyManager",
    "aligns",
]
