"""The problem by name: immutable values, and pure functions that turn Kubernetes objects into them."""

from placer.instance.communication import AppGroup, Area, Dependency, Link, Network, Spread
from placer.instance.findings import Finding
from placer.instance.keys import GroupKey, Key
from placer.instance.nodes import Constraints, HyperNode, Node, Requirement, Taint, Term, Toleration, TopologyTree
from placer.instance.problem import (
    ANY_SCHEDULER,
    Group,
    HostPort,
    Instance,
    NetworkTopology,
    Pod,
    PodState,
    Policy,
    Queue,
    SetAside,
    SubGroup,
    SubGroupPolicy,
)

__all__ = [
    "ANY_SCHEDULER",
    "AppGroup",
    "Area",
    "Constraints",
    "Dependency",
    "Finding",
    "Group",
    "GroupKey",
    "HostPort",
    "HyperNode",
    "Instance",
    "Key",
    "Link",
    "Network",
    "NetworkTopology",
    "Node",
    "Pod",
    "PodState",
    "Policy",
    "Queue",
    "Requirement",
    "SetAside",
    "Spread",
    "SubGroup",
    "SubGroupPolicy",
    "Taint",
    "Term",
    "Toleration",
    "TopologyTree",
]
