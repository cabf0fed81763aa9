"""HyperNodes of a cluster, whole."""

from __future__ import annotations

from typing import Any

from placer.base.errors import ClusterError
from placer.passes.cluster.reading.client import Server, Unlisted, listed
from placer.topology.discovery.hyper_node_objects import API_VERSION

__all__ = ["HYPER_NODES", "stored_hyper_nodes"]

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
