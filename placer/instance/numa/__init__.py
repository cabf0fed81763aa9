"""NUMA zones of nodes and what kubelets do with them (C10).

Belongs here: zones and demands as values, reading them, the replay of the Topology Manager, and which orders of pods it
admits. Does not: which pods should share a node (``methods``), what comes of a whole placement (``alignment``).
"""

from placer.instance.numa.kubelet import Kubelet, State, Unit, Units, kubelets_of
from placer.instance.numa.model import NumaContainer, NumaDemand, NumaNode, NumaZone, Qos, Stage
from placer.instance.numa.orders import Ordering, Orders, find_order, is_plain, some_order

__all__ = [
    "Kubelet",
    "NumaContainer",
    "NumaDemand",
    "NumaNode",
    "NumaZone",
    "Ordering",
    "Orders",
    "Qos",
    "Stage",
    "State",
    "Unit",
    "Units",
    "find_order",
    "is_plain",
    "kubelets_of",
    "some_order",
]
