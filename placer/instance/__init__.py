"""The problem in the field's words and by name: nodes, pods, groups, the tier tree, queues, the policy.

Belongs here: immutable values, and pure functions that turn Kubernetes objects into them. Does not: reading files
(``manifests``), schema (``kube``), array indices (``dense``), any decision where a pod goes (``methods``).
"""

from placer.instance.constraints import Constraints, Requirement, Taint, Term, Toleration
from placer.instance.group import Group, GroupKey, NetworkTopology, SubGroup, SubGroupPolicy
from placer.instance.model import Finding, Instance
from placer.instance.network import AppGroup, Area, Dependency, Link, Network, Spread
from placer.instance.node import Node
from placer.instance.pod import HostPort, Key, Pod, PodState
from placer.instance.policy import Policy
from placer.instance.queue import Queue
from placer.instance.set_aside import ANY_SCHEDULER, SetAside
from placer.instance.topology import HyperNode, TopologyTree

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
