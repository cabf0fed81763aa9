"""The problem by name: immutable values, and pure functions that turn Kubernetes objects into them."""

from placer.problem.communication import AppGroup, Area, Dependency, Link, Network, Spread
from placer.problem.findings import Finding
from placer.problem.instance import (
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
from placer.problem.keys import GroupKey, Key
from placer.problem.nodes import Constraints, HyperNode, Node, Requirement, Taint, Term, Toleration, TopologyTree

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
