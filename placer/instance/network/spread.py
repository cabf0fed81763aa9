"""How many pods of a workload are where: what the network rules count instead of looking at pod after pod."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from placer.instance.network.model import Area, Dependency, Network

__all__ = ["Spread", "far_and_near"]


class Spread:
    """Pods of one workload, counted.

    Parameters
    ----------
    network
        Says in which area a node is.
    nodes
        Node of each pod; a node need not be in the instance.
    """

    __slots__ = ("areas", "nodes")

    def __init__(self, network: Network, nodes: Iterable[str] = ()) -> None:
        self.nodes = Counter(nodes)
        self.areas: Counter[Area] = Counter()
        for node, count in self.nodes.items():
            self.areas[network.area(node)] += count

    def __add__(self, other: Spread) -> Spread:
        """Both together."""
        both = object.__new__(Spread)
        both.nodes, both.areas = self.nodes + other.nodes, self.areas + other.areas
        return both

    def pairs(self, called: Spread) -> Iterator[tuple[Area, Area, int]]:
        """Pairs of a pod of this workload and one of ``called``: the areas of the two, and how many pairs there are."""
        for origin, callers in self.areas.items():
            for destination, callees in called.areas.items():
                yield origin, destination, callers * callees

    def pairs_on_one_node(self, called: Spread) -> int:
        """How many of these pairs are on one node."""
        return sum(count * called.nodes[node] for node, count in self.nodes.items())


def far_and_near(network: Network, area: Area, calls: Iterable[tuple[Dependency, Spread]]) -> tuple[int, int]:
    """How many callees of a pod in an area are too far from it, and how many near enough (C8); itself left out.

    Parameters
    ----------
    network
        Says what is near.
    area
        Where the pod is.
    calls
        The dependencies in which its workload is the caller, each with the placed pods of the callee.
    """
    far = near = 0
    for dependency, callees in calls:
        for other, count in callees.areas.items():
            if network.near(area, other, dependency.max_network_cost):
                near += count - (other == area and dependency.origin == dependency.destination)
            else:
                far += count
    return far, near
