"""Texts that controllers of KEP-260 and Volcano would write: pure functions from objects to a status or a spec.

Callers give the time; a result without news equals the text in the object.
"""

from placer.topology.controllers.app_group import app_group_status, app_group_statuses
from placer.topology.controllers.hyper_node import hyper_node_statuses
from placer.topology.controllers.network_topology import (
    NetworkTopologyUpdate,
    allocated_bandwidth,
    network_topology_update,
)

__all__ = [
    "NetworkTopologyUpdate",
    "allocated_bandwidth",
    "app_group_status",
    "app_group_statuses",
    "hyper_node_statuses",
    "network_topology_update",
]
