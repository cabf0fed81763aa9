"""Regions, zones and nodes, and what it costs to call from one to another."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

from placer.generate.dice import Dice
from placer.generate.objects import named

__all__ = ["REGION", "ZONE", "Land", "Link", "draw_land"]

REGION = "topology.kubernetes.io/region"
ZONE = "topology.kubernetes.io/zone"

#: Least and most cost of the way between two zones of a region, and between two regions.
ZONE_COSTS = (2, 12)
REGION_COSTS = (15, 60)


class Link(NamedTuple):
    """The way from one region to another, or from one zone to another one of its region, by number."""

    key: str
    origin: int
    destination: int


@dataclass(frozen=True)
class Land:
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
    costs: Mapping[Link, int]

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

    def link(self, node: int, other: int) -> Link | None:
        """Return the link that a call from one node to another takes; None within a zone."""
        one, two = self.zone(node), self.zone(other)
        if one == two:
            return None
        if self.region(one) == self.region(two):
            return Link(ZONE, one, two)
        return Link(REGION, self.region(one), self.region(two))

    def name(self, key: str, number: int) -> str:
        """Name of a region or zone."""
        return (self.regions if key == REGION else self.zones)[number]


def draw_land(regions: int, zones_each: int, nodes: int, dice: Dice) -> Land:
    """Lay out regions of as many zones each, the nodes shared out evenly, and draw costs."""
    zones = regions * zones_each
    costs = {Link(REGION, *pair): cost for pair, cost in _costs(range(regions), REGION_COSTS, dice).items()}
    for region in range(regions):
        within = range(region * zones_each, (region + 1) * zones_each)
        costs |= {Link(ZONE, *pair): cost for pair, cost in _costs(within, ZONE_COSTS, dice).items()}
    return Land(
        regions=_names("region", regions, dice),
        zones=_names("zone", zones, dice),
        nodes=_names("node", nodes, dice),
        starts=tuple(zone * nodes // zones for zone in range(zones)),
        costs=costs,
    )


def _names(word: str, count: int, dice: Dice) -> tuple[str, ...]:
    return tuple(dice.shuffled([named(word, number, count) for number in range(count)]))


def _costs(places: Sequence[int], span: tuple[int, int], dice: Dice) -> dict[tuple[int, int], int]:
    """Draw a cost for every two places, then let every way be the shortest one (Floyd and Warshall)."""
    low, high = span
    drawn = {(one, two): low + dice.below(high - low + 1) for one in places for two in places if one < two}
    costs = drawn | {(two, one): cost for (one, two), cost in drawn.items()}
    for over, one, two in product(places, places, places):
        if len({over, one, two}) == 3:
            costs[one, two] = min(costs[one, two], costs[one, over] + costs[over, two])
    return costs
