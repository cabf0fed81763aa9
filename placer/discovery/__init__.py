"""HyperNodes from labels of nodes, or from a fabric's own description."""

from placer.discovery.formats import discover_file
from placer.discovery.hyper_nodes import hyper_nodes
from placer.discovery.labels import discover_labels
from placer.discovery.switches import Discovery

__all__ = ["Discovery", "discover_file", "discover_labels", "hyper_nodes"]
