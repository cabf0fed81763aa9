"""The HyperNodes over a land: racks, zones, regions, and the world above them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from placer.generate.network.land import Land
from placer.generate.objects import Document, hyper_node

__all__ = ["Racks"]

#: Names of the tiers, lowest first.
TIERS = ("rack", "zone", "region", "world")


class Racks:
    """The tree of a land; nodes of a zone stand in racks of equal size, the last one as large as is left.

    Parameters
    ----------
    land
        Regions, zones and nodes.
    size
        Nodes of a rack.
    """

    def __init__(self, land: Land, size: int) -> None:
        self.land = land
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
        for number, node in enumerate(self.land.nodes):
            below = ("Node", node)
            for tier, name in enumerate(self._path(number), 1):
                members.setdefault((tier, name), set()).add(below)
                below = ("HyperNode", name)
        for (tier, name), inside in members.items():
            yield hyper_node(name, tier, TIERS[tier - 1], sorted(inside))

    def _path(self, node: int) -> tuple[str, ...]:
        """Names of the domains above a node, lowest first."""
        land = self.land
        zone = land.zone(node)
        rack = (node - land.starts[zone]) // self.size
        return f"{land.zones[zone]}-rack-{rack}", land.zones[zone], land.regions[land.region(zone)], TIERS[-1]
