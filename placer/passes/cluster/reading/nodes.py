"""Nodes of a cluster by name and labels alone, for the discovery of domains."""

from __future__ import annotations

from collections.abc import Mapping

from placer.base.quantity import Resources
from placer.passes.cluster.reading.client import Server, listed
from placer.passes.cluster.reading.views import ObjectView
from placer.problem import Node

__all__ = ["labelled_nodes"]


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
