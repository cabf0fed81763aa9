"""The node order in which every HyperNode is a slice."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from placer.dense.model import Domains
from placer.instance import Instance, PodState

__all__ = ["NodeOrder", "used_nodes"]


class NodeOrder:
    """Nodes in tree order and the tree's arrays; see :class:`placer.dense.Dense` for the meaning of each."""

    def __init__(self, instance: Instance) -> None:
        self._tree = instance.topology
        self.nodes: list[str] = []
        self._leaf_names: list[str | None] = []
        self._spans: dict[str, tuple[int, int]] = {}
        for name, hyper_node in self._tree.hyper_nodes.items():
            if hyper_node.parent is None:
                self._visit(name)
        outside = [name for name in instance.nodes if name not in self._tree.leaf]
        self.nodes += outside
        self._leaf_names += [None] * len(outside)

    def _visit(self, name: str) -> None:
        """Append the nodes of one HyperNode, children first; the depth of a tree of tiers is small."""
        hyper_node = self._tree.hyper_nodes[name]
        begin = len(self.nodes)
        for child in hyper_node.children:
            self._visit(child)
        own = [node for node in hyper_node.nodes if self._tree.leaf[node] == name]
        self.nodes += own
        self._leaf_names += [name] * len(own)
        self._spans[name] = (begin, len(self.nodes))

    def domains(self, used: npt.NDArray[np.bool_]) -> Domains:
        """Make the arrays of domains; ``used`` says per node in this order whether it is not empty."""
        names = list(self._tree.hyper_nodes)
        index = {name: position for position, name in enumerate(names)}
        root = len(names)
        parents = [self._tree.hyper_nodes[name].parent for name in names]
        spans = [*(self._spans[name] for name in names), (0, len(self.nodes))]
        return Domains(
            names=(*names, None),
            tier=np.array(
                [*(self._tree.hyper_nodes[name].tier for name in names), self._tree.root_tier], dtype=np.int64
            ),
            parent=np.array([*(root if up is None else index[up] for up in parents), -1], dtype=np.int64),
            begin=np.array([begin for begin, _ in spans], dtype=np.int64),
            end=np.array([end for _, end in spans], dtype=np.int64),
            used=np.array([bool(used[begin:end].any()) for begin, end in spans], dtype=bool),
        )

    def leaf(self) -> npt.NDArray[np.int64]:
        """int64, shape (nodes,): leaf domain, the virtual root where there is none."""
        index = {name: position for position, name in enumerate(self._tree.hyper_nodes)}
        root = len(index)
        return np.array([root if name is None else index[name] for name in self._leaf_names], dtype=np.int64)

    def leaf_unit(self) -> npt.NDArray[np.int64]:
        """int64, shape (nodes,): the leaf domain, and a number of its own for each node that has none."""
        leaf = self.leaf()
        alone = leaf == len(self._tree.hyper_nodes)
        leaf[alone] += np.arange(int(alone.sum()))
        return leaf


def used_nodes(instance: Instance) -> set[str]:
    """Nodes on which more than DaemonSet and static pods run (O4); terminating pods count for nothing there."""
    bound = (pod for pod in instance.pods.values() if pod.state is PodState.BOUND and not pod.daemon)
    return {pod.node for pod in bound if pod.node is not None}
