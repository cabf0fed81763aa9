"""Applications and the network: who calls whom, and the cost of a call between two areas (C8, C9, O3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from placer.problem.keys import Key

ZONE_LABEL = "topology.kubernetes.io/zone"
REGION_LABEL = "topology.kubernetes.io/region"
ZONE = "zone"
REGION = "region"
#: Cost of a pair whose link has no entry, or that has no link.
UNKNOWN_COST = 100
#: Cost of a pair of nodes in one area; on one node it is 0.
SAME_ZONE_COST = 1


@dataclass(frozen=True, slots=True)
class Dependency:
    """Each pod of ``origin`` calls each pod of ``destination``; ``min_bandwidth``: of each pair, in bit/s (C9)."""

    origin: str
    destination: str
    max_network_cost: int = 0
    min_bandwidth: int | None = None

    def __str__(self) -> str:
        return f"{self.origin} -> {self.destination}"


@dataclass(frozen=True, slots=True)
class AppGroup:
    """An application; ``workloads`` that are only called come last; ``algorithm``, ``order``: for other schedulers."""

    key: Key
    workloads: tuple[str, ...] = ()
    dependencies: tuple[Dependency, ...] = ()
    algorithm: str = ""
    order: Mapping[str, int] = field(default_factory=dict, hash=False)


class Area(NamedTuple):
    """Nodes that no network cost tells apart: a zone, or a single ``node`` in no region."""

    region: str
    zone: str
    node: str = ""

    def __str__(self) -> str:
        if self.node:
            return f"Node {self.node} in no region"
        return f"zone {self.zone} of region {self.region}" if self.zone else f"region {self.region} outside any zone"


class Link(NamedTuple):
    """An entry of a NetworkTopology; ``kind`` is :data:`ZONE` or :data:`REGION`."""

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
    """The NetworkTopology and list that decide; ``capacities``: in bit/s, absent without limit."""

    topology: Key
    areas: Mapping[str, Area] = field(default_factory=dict)
    costs: Mapping[Link, int] = field(default_factory=dict)
    capacities: Mapping[Link, int] = field(default_factory=dict)
    weights: str | None = field(default=None, compare=False)

    def area(self, node: str) -> Area:
        """Area of a node; one that is not in the instance is in no region."""
        return self.areas.get(node) or Area("", "", node)

    def link(self, origin: Area, destination: Area) -> Link | None:
        """Link of a call between zones, or between regions; None in one area or without a region."""
        if origin == destination or not origin.region or not destination.region:
            return None
        if origin.region == destination.region:
            return Link(ZONE, origin.zone, destination.zone)
        return Link(REGION, origin.region, destination.region)

    def area_cost(self, origin: Area, destination: Area) -> int:
        """Cost of a call between *different* nodes of two areas."""
        if origin == destination:
            return SAME_ZONE_COST
        link = self.link(origin, destination)
        return UNKNOWN_COST if link is None else self.costs.get(link, UNKNOWN_COST)

    def cost(self, origin: str, destination: str) -> int:
        """Cost of a call between two nodes: 0 on one node, 1 in one area, else that of the link, unknown 100."""
        return 0 if origin == destination else self.area_cost(self.area(origin), self.area(destination))

    def near(self, origin: Area, destination: Area, limit: int) -> bool:
        """Whether a call between the areas is within ``limit`` (C8)."""
        return origin == destination or self.area_cost(origin, destination) <= limit


class Spread:
    """Pods of one workload, counted by node; a node need not be in the instance."""

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
        """Areas of a caller here and a callee in ``called``, with the number of such pairs."""
        for origin, callers in self.areas.items():
            for destination, callees in called.areas.items():
                yield origin, destination, callers * callees

    def pairs_on_one_node(self, called: Spread) -> int:
        """How many of these pairs are on one node."""
        return sum(count * called.nodes[node] for node, count in self.nodes.items())


def far_and_near(network: Network, area: Area, calls: Iterable[tuple[Dependency, Spread]]) -> tuple[int, int]:
    """Count the callees of a pod in an area that are too far from it, and near enough (C8), without itself."""
    far = near = 0
    for dependency, callees in calls:
        for other, count in callees.areas.items():
            if network.near(area, other, dependency.max_network_cost):
                near += count - (other == area and dependency.origin == dependency.destination)
            else:
                far += count
    return far, near
