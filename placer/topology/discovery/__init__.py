"""HyperNodes from labels of nodes, or from a fabric's own description."""

from placer.topology.discovery.formats import discover_file
from placer.topology.discovery.hyper_node_objects import hyper_nodes
from placer.topology.discovery.labels import discover_labels
from placer.topology.discovery.switches import Discovery

__all__ = ["Discovery", "discover_file", "discover_labels", "hyper_nodes"]
