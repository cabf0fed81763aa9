"""A place for every pod: first the zones of an application, then nodes in these, filled one after another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from placer.generate.dice import Dice
from placer.generate.network.apps import Application
from placer.generate.network.land import Land

__all__ = ["Planting", "plant"]

#: Most zones of one region that an application is spread over.
ZONES_EACH = 3


@dataclass(frozen=True)
class Planting:
    """Where everything stands.

    Parameters
    ----------
    nodes
        By application and workload, the node of each pod.
    room
        Units of the fullest node: what every node has to have.
    """

    nodes: tuple[tuple[tuple[int, ...], ...], ...]
    room: int

    @property
    def pods(self) -> int:
        """Pods of the node that has the most."""
        return max(Counter(chain.from_iterable(chain.from_iterable(self.nodes))).values())


class _Spot(NamedTuple):
    """A pod: application, workload, number among its replicas."""

    application: int
    workload: int
    replica: int


def plant(applications: Sequence[Application], land: Land, shares: tuple[float, float], dice: Dice) -> Planting:
    """Give every pod a node.

    Parameters
    ----------
    applications, land
        Who, and where.
    shares
        Share of the applications that reach over two regions, and of the workloads that stand in two zones.
    dice
        All chance.
    """
    loads = [0] * len(land.zones)
    waiting: list[list[_Spot]] = [[] for _ in land.zones]
    for number, application in enumerate(applications):
        for spot, zone in _zones(number, application, land, shares, loads, dice):
            loads[zone] += application.units[spot.workload]
            waiting[zone].append(spot)
    sizes = [application.units for application in applications]
    room = max(max(units) for units in sizes)
    while (found := _packed(waiting, sizes, land, room)) is None:
        room += 1
    nodes = tuple(
        tuple(
            tuple(found[_Spot(number, workload, replica)] for replica in range(replicas))
            for workload, replicas in enumerate(application.replicas)
        )
        for number, application in enumerate(applications)
    )
    return Planting(nodes, room)


def _zones(
    number: int, application: Application, land: Land, shares: tuple[float, float], loads: Sequence[int], dice: Dice
) -> Iterator[tuple[_Spot, int]]:
    """Cut the walk through an application into as many pieces as it has zones; say of each pod where it stands."""
    homes = _homes(land, dice.chance(shares[0]), loads, dice)
    for place, workload in enumerate(application.walk):
        home = homes[place * len(homes) // len(application.walk)]
        others = [zone for zone in land.zones_of(land.region(home)) if zone != home]
        second = dice.pick(others) if others and dice.chance(shares[1]) else home
        for replica in range(application.replicas[workload]):
            yield _Spot(number, workload, replica), second if replica % 2 else home


def _homes(land: Land, wide: bool, loads: Sequence[int], dice: Dice) -> list[int]:
    """Choose the emptiest regions, and the emptiest zones of these; equal ones by chance."""
    regions = dice.shuffled(range(len(land.regions)))
    regions.sort(key=lambda region: sum(loads[zone] for zone in land.zones_of(region)))
    homes: list[int] = []
    for region in regions[: 2 if wide else 1]:
        zones = dice.shuffled(land.zones_of(region))
        zones.sort(key=lambda zone: loads[zone])
        homes += zones[: 1 + dice.below(min(ZONES_EACH, len(zones)))]
    return homes


def _packed(
    waiting: Sequence[Sequence[_Spot]], sizes: Sequence[Sequence[int]], land: Land, room: int
) -> dict[_Spot, int] | None:
    """Fill the nodes of each zone: the one at hand as long as the next pod fits, then the emptiest; None if none is
    left.
    """
    found: dict[_Spot, int] = {}
    for zone, spots in enumerate(waiting):
        free = dict.fromkeys(land.nodes_of(zone), room)
        here = next(iter(free))
        for spot in spots:
            units = sizes[spot.application][spot.workload]
            if free[here] < units:
                here = max(free, key=lambda node: free[node])
            if free[here] < units:
                return None
            free[here] -= units
            found[spot] = here
    return found
