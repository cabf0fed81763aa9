"""Of the nodes that have no room for a pod the one that lacks least, in the units of the objects."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property

import numpy as np
import numpy.typing as npt

from placer.dense import Dense
from placer.dense.amounts import free_on
from placer.instance import Instance, Pod, PodState
from placer.quantity import format_amount

__all__ = ["Nearest"]


class Nearest:
    """What nodes lack for a pod.

    Parameters
    ----------
    instance
        By name: amounts here are those of the objects, neither scaled nor cut.
    dense
        Its arrays.
    """

    def __init__(self, instance: Instance, dense: Dense) -> None:
        self.instance, self.dense = instance, dense

    @cached_property
    def _free(self) -> npt.NDArray[np.float64]:
        """About what each node has free: shape (nodes, resources)."""
        rooms = [free_on(self.instance, node) for node in self.dense.nodes]
        rows = [[float(room[name]) for name in self.dense.resources] for room in rooms]
        return np.array(rows, dtype=np.float64).reshape(len(rows), len(self.dense.resources))

    @cached_property
    def _ports(self) -> dict[str, list[Pod]]:
        """Node to the pods there that hold host ports."""
        found: dict[str, list[Pod]] = defaultdict(list)
        for pod in self.instance.pods.values():
            if pod.host_ports and pod.node is not None and pod.state is not PodState.PENDING:
                found[pod.node].append(pod)
        return found

    def to(self, pod: Pod, eligible: npt.NDArray[np.bool_]) -> tuple[str, str]:
        """The eligible node whose largest lack is the smallest share of what the pod asks, and what it lacks.

        Parameters
        ----------
        pod
            Fits on no node.
        eligible
            bool, shape (nodes,), True at least once.
        """
        asked = np.array([float(pod.requests[name]) for name in self.dense.resources])
        lack = np.maximum(0.0, asked - self._free) / np.maximum(asked, 1.0)
        share = np.where(asked > 0, lack, 0.0).max(axis=1, initial=0.0)
        share[~eligible] = np.inf
        node = self.dense.nodes[int(np.argmin(share))]
        said = " and ".join([*self._amounts(pod, node), *self._clashes(pod, node)])
        return node, f"Node {node} comes nearest: {said}"

    def _amounts(self, pod: Pod, node: str) -> list[str]:
        free = free_on(self.instance, node)
        found = []
        for name, amount in pod.requests.items():
            lacking = amount - free[name]
            if amount and lacking > 0:
                have, lack = (format_amount(name, each) for each in (free[name], lacking))
                found.append(f"{name} {have} free, {lack} too few")
        return found

    def _clashes(self, pod: Pod, node: str) -> list[str]:
        return [
            f"host port {port.ip}:{port.port}/{port.protocol} is taken by Pod {other.key}"
            for port in pod.host_ports
            for other in self._ports.get(node, ())
            if any(port.clashes(theirs) for theirs in other.host_ports)
        ]
