"""Regions, zones and nodes, what it costs to call from one to another, and the HyperNodes over them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

from placer.laboratory.generate.objects import Document, hyper_node, named
from placer.laboratory.generate.random_source import RandomSource

__all__ = ["REGION", "ZONE", "AreaLink", "Racks", "Regions", "draw_regions"]


REGION = "topology.kubernetes.io/region"
ZONE = "topology.kubernetes.io/zone"

#: Least and most cost of the way between two zones of a region, and between two regions.
ZONE_COSTS = (2, 12)
REGION_COSTS = (15, 60)


class AreaLink(NamedTuple):
    """The way from one region to another, or from one zone to another one of its region, by number."""

    key: str
    origin: int
    destination: int


@dataclass(frozen=True)
class Regions:
    """Zones by number, region after region; nodes by number, zone after zone. Names tell nothing of these numbers.

    Parameters
    ----------
    regions, zones, nodes
        Their names.
    starts
        First node of each zone.
    costs
        Cost of each link; the same both ways, and no way round is cheaper than a link.
    """

    regions: tuple[str, ...]
    zones: tuple[str, ...]
    nodes: tuple[str, ...]
    starts: tuple[int, ...]
    costs: Mapping[AreaLink, int]

    @property
    def zones_each(self) -> int:
        """Zones per region."""
        return len(self.zones) // len(self.regions)

    def region(self, zone: int) -> int:
        """Return the region of a zone."""
        return zone // self.zones_each

    def zone(self, node: int) -> int:
        """Return the zone of a node."""
        return bisect_right(self.starts, node) - 1

    def zones_of(self, region: int) -> range:
        """Return the zones of a region."""
        return range(region * self.zones_each, (region + 1) * self.zones_each)

    def nodes_of(self, zone: int) -> range:
        """Return the nodes of a zone."""
        return range(self.starts[zone], (*self.starts, len(self.nodes))[zone + 1])

    def link(self, node: int, other: int) -> AreaLink | None:
        """Return the link that a call from one node to another takes; None within a zone."""
        one, two = self.zone(node), self.zone(other)
        if one == two:
            return None
        if self.region(one) == self.region(two):
            return AreaLink(ZONE, one, two)
        return AreaLink(REGION, self.region(one), self.region(two))

    def name(self, key: str, number: int) -> str:
        """Name of a region or zone."""
        return (self.regions if key == REGION else self.zones)[number]


def draw_regions(regions: int, zones_each: int, nodes: int, source: RandomSource) -> Regions:
    """Lay out regions of as many zones each, the nodes shared out evenly, and draw costs."""
    zones = regions * zones_each
    costs = {AreaLink(REGION, *pair): cost for pair, cost in _costs(range(regions), REGION_COSTS, source).items()}
    for region in range(regions):
        within = range(region * zones_each, (region + 1) * zones_each)
        costs |= {AreaLink(ZONE, *pair): cost for pair, cost in _costs(within, ZONE_COSTS, source).items()}
    return Regions(
        regions=_shuffled_names("region", regions, source),
        zones=_shuffled_names("zone", zones, source),
        nodes=_shuffled_names("node", nodes, source),
        starts=tuple(zone * nodes // zones for zone in range(zones)),
        costs=costs,
    )


def _shuffled_names(word: str, count: int, source: RandomSource) -> tuple[str, ...]:
    return tuple(source.shuffled([named(word, number, count) for number in range(count)]))


def _costs(places: Sequence[int], span: tuple[int, int], source: RandomSource) -> dict[tuple[int, int], int]:
    """Draw a cost for every two places, then let every way be the shortest one (Floyd and Warshall)."""
    low, high = span
    drawn = {(one, two): low + source.below(high - low + 1) for one in places for two in places if one < two}
    costs = drawn | {(two, one): cost for (one, two), cost in drawn.items()}
    for over, one, two in product(places, places, places):
        if len({over, one, two}) == 3:
            costs[one, two] = min(costs[one, two], costs[one, over] + costs[over, two])
    return costs


#: Names of the tiers, lowest first.
TIERS = ("rack", "zone", "region", "world")


class Racks:
    """The tree of HyperNodes over regions; nodes of a zone stand in racks of one size, the last as large as is left.

    Parameters
    ----------
    regions
        Regions, zones and nodes.
    size
        Nodes of a rack.
    """

    def __init__(self, regions: Regions, size: int) -> None:
        self.regions = regions
        self.size = size

    @property
    def tiers(self) -> int:
        """The highest tier."""
        return len(TIERS)

    def tier(self, nodes: Iterable[int]) -> int:
        """Tier of the smallest domain that holds all nodes, of which there is at least one."""
        paths = {self._path(node) for node in nodes}
        return next(tier for tier in range(1, self.tiers + 1) if len({path[tier - 1] for path in paths}) == 1)

    def documents(self) -> Iterator[Document]:
        """Make the HyperNodes."""
        members: dict[tuple[int, str], set[tuple[str, str]]] = {}
        for number, node in enumerate(self.regions.nodes):
            below = ("Node", node)
            for tier, name in enumerate(self._path(number), 1):
                members.setdefault((tier, name), set()).add(below)
                below = ("HyperNode", name)
        for (tier, name), inside in members.items():
            yield hyper_node(name, tier, TIERS[tier - 1], sorted(inside))

    def _path(self, node: int) -> tuple[str, ...]:
        """Names of the domains above a node, lowest first."""
        regions = self.regions
        zone = regions.zone(node)
        rack = (node - regions.starts[zone]) // self.size
        return (
            f"{regions.zones[zone]}-rack-{rack}",
            regions.zones[zone],
            regions.regions[regions.region(zone)],
            TIERS[-1],
        )
