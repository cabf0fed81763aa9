"""HyperNodes from labels of nodes, or from a fabric's own description.

Belongs here: readers of such descriptions, each of which gives a tier tree in the names that it found
(:class:`Discovery`), and HyperNode manifests made of a tree. Does not: asking a cluster and writing to it
(``cluster``), the meaning of a tree for a placement (``instance``).

==================  ===================================================================================================
module              task
==================  ===================================================================================================
``discovery``       the result of all of them
``labels``          labels of nodes to a tree
``formats``         a file of any format to a tree: ``infiniband`` (ibnetdiscover), ``slurm`` (topology.conf and
                    topology.yaml, with ``hostlist``), ``topograph``
``switches``        records of switches to a tree, those of one domain merged
``hosts``           hosts of a fabric to nodes
``hyper_nodes``     a tree to HyperNode manifests, with names that Kubernetes takes
==================  ===================================================================================================
"""

from placer.discovery.discovery import Discovery
from placer.discovery.formats import discover_file
from placer.discovery.hyper_nodes import hyper_nodes
from placer.discovery.labels import discover_labels

__all__ = ["Discovery", "discover_file", "discover_labels", "hyper_nodes"]
