"""HyperNodes of a cluster, whole, and its nodes by name and labels alone, for the discovery of domains."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from placer.base.errors import ClusterError
from placer.base.quantity import Resources
from placer.passes.cluster.reading.client import Server, Unlisted, listed
from placer.passes.cluster.reading.views import ObjectView
from placer.problem import Node
from placer.topology.discovery.hyper_node_objects import API_VERSION

__all__ = ["HYPER_NODES", "labelled_nodes", "stored_hyper_nodes"]

HYPER_NODES = f"/apis/{API_VERSION}/hypernodes"


def stored_hyper_nodes(server: Server) -> list[dict[str, Any]]:
    """List the HyperNodes of a cluster.

    Raises
    ------
    ClusterError
        The cluster does not know the kind, does not answer or refuses.
    """
    try:
        found = list(listed(server.get, HYPER_NODES, dict[str, Any]))
    except Unlisted as error:
        if error.answer.status == 404:
            raise ClusterError(
                f"the cluster knows no HyperNodes ({API_VERSION}): install Volcano's definitions"
            ) from error
        raise
    return [{"apiVersion": API_VERSION, "kind": "HyperNode", **each} for each in found]


def labelled_nodes(server: Server) -> Mapping[str, Node]:
    """List the nodes of a cluster by name, with their labels alone.

    Raises
    ------
    ClusterError
        The server does not answer or refuses.
    """
    found = (each.metadata for each in listed(server.get, "/api/v1/nodes", ObjectView))
    by_name = {each.name: Node(each.name, Resources(), each.labels or {}) for each in found}
    return dict(sorted(by_name.items()))
