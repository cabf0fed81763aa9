"""What controllers of the cluster would write: pure functions from objects to a status or a spec, nothing carried out.

Belongs here: the AppGroup's order and status (``app_group``); the NetworkTopology's costs, bandwidth and status
(``network_topology``, with ``bandwidth`` and the measured costs of ``placer.instance.network_topologies``); the
HyperNode's count and condition (``hyper_node``); times as objects have them (``times``). Does not: talking to a
cluster (the caller hands the objects in and writes what comes back, ``placer.cluster.writing.controllers`` in each
pass), deciding where a pod goes, files.

The controllers that are shipped with KEP-260 and Volcano differ from what their users would expect; each module says
where, and does what users would expect. Times are handed in, never asked for, so that equal objects give the equal
result; a result that says nothing new equals what stands in the object already.
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
