"""Texts that controllers of the cluster would write: pure functions from objects to a status or a spec.

Belongs here: status and spec of AppGroup, NetworkTopology and HyperNode. Does not: talking to a cluster
(``placer.cluster.writing.controllers`` does), deciding where a pod goes, files.

Controllers of KEP-260 and Volcano differ from their users' expectations; each module states where, and does the
expected. Callers give the time, so equal objects give the equal result; a result without news equals the text in the
object.
"""

from placer.controllers.app_group import app_group_status, app_group_statuses
from placer.controllers.bandwidth import allocated_bandwidth
from placer.controllers.hyper_node import hyper_node_statuses
from placer.controllers.network_topology import NetworkTopologyUpdate, network_topology_update

__all__ = [
    "NetworkTopologyUpdate",
    "allocated_bandwidth",
    "app_group_status",
    "app_group_statuses",
    "hyper_node_statuses",
    "network_topology_update",
]
