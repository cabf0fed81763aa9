"""NUMA zones of nodes and their use by kubelets (C10).

Belongs here: zones and demands as values (``numa_values``), reading them (``numa_demand``, ``node_resource_topology``),
and the Topology Manager, in plain words (``kubelet_replay``). Does not: the same on packed integers
and the search for an order of pods (``dense``), which pods should share a node (``methods``).
"""

from placer.instance.numa.kubelet_replay import Admission, TopologyManager, aligns
from placer.instance.numa.numa_values import NumaContainer, NumaDemand, NumaNode, NumaZone, Qos, Stage

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
