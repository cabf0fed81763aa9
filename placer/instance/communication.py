"""Applications and the network: which workload calls which, and what a call costs between two areas (C8, C9, O3).

Pods are counted per area instead of looked at one after another: nodes of one zone cost the same from everywhere. Three
pods of ``web`` in zone ``a`` and two of ``redis`` in zone ``b`` are six pairs over the link ``a -> b``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from placer.instance.keys import Key

__all__ = [
    "REGION",
    "REGION_LABEL",
    "SAME_ZONE_COST",
    "UNKNOWN_COST",
    "ZONE",
    "ZONE_LABEL",
    "AppGroup",
    "Area",
    "Dependency",
    "Link",
    "Network",
    "Spread",
    "far_and_near",
]


ZONE_LABEL = "topology.kubernetes.io/zone"
REGION_LABEL = "topology.kubernetes.io/region"
#: The two kinds of links.
ZONE = "zone"
REGION = "region"
#: What a pair of nodes costs whose link has no entry, or that has no link.
UNKNOWN_COST = 100
#: What a pair of two nodes of one area costs; on one node it is 0.
SAME_ZONE_COST = 1


@dataclass(frozen=True, slots=True)
class Dependency:
    """Pods of one workload call pods of another one of their AppGroup, each of them each.

    Parameters
    ----------
    origin
        The workload that calls.
    destination
        The workload that is called.
    max_network_cost
        Cost that a call may have (C8), at least 0; 0 where the object says none: one node or one zone.
    min_bandwidth
        What a pair of pods takes of the link between them, in bit/s (C9); None: nothing.
    """

    origin: str
    destination: str
    max_network_cost: int = 0
    min_bandwidth: int | None = None

    def __str__(self) -> str:
        return f"{self.origin} -> {self.destination}"


@dataclass(frozen=True, slots=True)
class AppGroup:
    """An application: its workloads and who calls whom.

    Parameters
    ----------
    key
        Namespace and name of the object.
    workloads
        Every workload once, in the order of the object: its ``selector``, or its name where it has none (KEP-260).
        Those that are only called and not listed come last.
    dependencies
        In the order of the object.
    algorithm
        ``topologySortingAlgorithm`` as it is written; empty: none. No rule looks at it or at ``order``, other
        schedulers do (``policies``).
    order
        Workload to its place in ``status.topologyOrder``; empty where no controller has stored one.
    """

    key: Key
    workloads: tuple[str, ...] = ()
    dependencies: tuple[Dependency, ...] = ()
    algorithm: str = ""
    order: Mapping[str, int] = field(default_factory=dict, hash=False)


class Area(NamedTuple):
    """Nodes that no network cost tells apart: a zone of a region, or a single node in no region.

    Parameters
    ----------
    region
        Empty: the area is one node that is in no region.
    zone
        Name within the region; empty: the nodes of the region that name no zone.
    node
        The node, where the area is one; empty otherwise.
    """

    region: str
    zone: str
    node: str = ""

    def __str__(self) -> str:
        if self.node:
            return f"Node {self.node} in no region"
        return f"zone {self.zone} of region {self.region}" if self.zone else f"region {self.region} outside any zone"


class Link(NamedTuple):
    """An entry of a NetworkTopology: from one zone to another, or from one region to another.

    Parameters
    ----------
    kind
        :data:`ZONE` or :data:`REGION`.
    origin, destination
        Names of zones or of regions.
    """

    kind: str
    origin: str
    destination: str

    @property
    def back(self) -> Link:
        """The link in the other direction."""
        return Link(self.kind, self.destination, self.origin)

    def __str__(self) -> str:
        return f"{self.kind} link {self.origin} -> {self.destination}"


@dataclass(frozen=True, slots=True)
class Network:
    """The NetworkTopology and list that decide, over the nodes of an instance.

    Everything but "on the same node" is a matter of areas: count pods per :meth:`area`, not per node.

    Parameters
    ----------
    topology
        Namespace and name of the NetworkTopology.
    areas
        Node name to area, of every node of the instance.
    costs
        Link to its cost, at least 0; a link without an entry is absent.
    capacities
        Link to its capacity in bit/s; a link without limit is absent.
    weights
        Name of the list that decides; None: there is none.
    """

    topology: Key
    areas: Mapping[str, Area] = field(default_factory=dict)
    costs: Mapping[Link, int] = field(default_factory=dict)
    capacities: Mapping[Link, int] = field(default_factory=dict)
    weights: str | None = field(default=None, compare=False)

    def area(self, node: str) -> Area:
        """Area of a node; one that is not in the instance is in no region."""
        return self.areas.get(node) or Area("", "", node)

    def link(self, origin: Area, destination: Area) -> Link | None:
        """Link that a call takes: between zones inside a region, between regions across.

        None inside one area, and where one of the two is in no region.
        """
        if origin == destination or not origin.region or not destination.region:
            return None
        if origin.region == destination.region:
            return Link(ZONE, origin.zone, destination.zone)
        return Link(REGION, origin.region, destination.region)

    def capacity(self, link: Link) -> int | None:
        """Capacity of a link in bit/s; None: unlimited."""
        return self.capacities.get(link)

    def area_cost(self, origin: Area, destination: Area) -> int:
        """Cost of a call from a node of one area to *another* node of the other (or the same) area."""
        if origin == destination:
            return SAME_ZONE_COST
        link = self.link(origin, destination)
        return UNKNOWN_COST if link is None else self.costs.get(link, UNKNOWN_COST)

    def cost(self, origin: str, destination: str) -> int:
        """Cost of a call between two nodes: 0 on one node, 1 in one area, else that of the link, unknown 100."""
        return 0 if origin == destination else self.area_cost(self.area(origin), self.area(destination))

    def near(self, origin: Area, destination: Area, limit: int) -> bool:
        """Whether a call between the areas is within ``limit`` (C8); inside one area every call is."""
        return origin == destination or self.area_cost(origin, destination) <= limit


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
