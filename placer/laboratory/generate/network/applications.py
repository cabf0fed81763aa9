"""Applications: their workloads and who calls whom, a place for every pod, and limits around these places."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from placer.laboratory.generate.network.regions import AreaLink, Regions
from placer.laboratory.generate.random_source import RandomSource

__all__ = [
    "DependencyEdge",
    "GeneratedApplication",
    "NetworkLimits",
    "Planting",
    "draw_applications",
    "draw_limits",
    "plant",
]


#: Sizes of a pod in units (half a core and 1 GiB), the small ones more often.
SIZES = (1, 1, 1, 2, 2, 4)
#: What a call may need, in Mbit/s.
BANDWIDTHS = (10, 20, 50, 100, 200)


class DependencyEdge(NamedTuple):
    """One workload depends on another one; ``bandwidth`` is in Mbit/s, 0 where it says nothing of it."""

    caller: int
    called: int
    bandwidth: int


@dataclass(frozen=True)
class GeneratedApplication:
    """Workloads by number.

    Parameters
    ----------
    units
        Size of each workload's pods.
    replicas
        Number of each workload's pods.
    calls
        Each pair once, none in a circle; by caller, and by called one within.
    walk
        All workloads on a walk down the calls, so that neighbours on the walk mostly call each other.
    """

    units: tuple[int, ...]
    replicas: tuple[int, ...]
    calls: tuple[DependencyEdge, ...]
    walk: tuple[int, ...]


def draw_applications(
    count: int,
    workloads: tuple[int, int],
    replicas: tuple[int, int],
    density: float,
    bandwidth: float,
    source: RandomSource,
) -> list[GeneratedApplication]:
    """Draw applications.

    Parameters
    ----------
    count
        How many.
    workloads, replicas
        Least and most workloads of an application, and pods of a workload.
    density
        Calls per workload; what makes every workload but one a called one is there in any case.
    bandwidth
        Share of the calls that need bandwidth.
    source
        All chance.
    """
    return [_application(_between(workloads, source), replicas, density, bandwidth, source) for _ in range(count)]


def _between(span: tuple[int, int], source: RandomSource) -> int:
    return span[0] + source.below(span[1] - span[0] + 1)


def _application(
    size: int, replicas: tuple[int, int], density: float, bandwidth: float, source: RandomSource
) -> GeneratedApplication:
    parents = [source.below(number) for number in range(1, size)]
    pairs = dict.fromkeys((parent, number) for number, parent in enumerate(parents, 1))
    wanted = min(round(density * size), size * (size - 1) // 2)
    while len(pairs) < wanted:
        one, two = sorted((source.below(size), source.below(size)))
        if one != two:
            pairs[one, two] = None
    numbers = source.shuffled(range(size))  # so that the numbers tell nothing of the walk
    calls = sorted(
        DependencyEdge(numbers[one], numbers[two], source.pick(BANDWIDTHS) if source.chance(bandwidth) else 0)
        for one, two in pairs
    )
    return GeneratedApplication(
        units=tuple(source.pick(SIZES) for _ in range(size)),
        replicas=tuple(_between(replicas, source) for _ in range(size)),
        calls=tuple(calls),
        walk=tuple(numbers[each] for each in _walk(parents)),
    )


def _walk(parents: list[int]) -> Iterator[int]:
    """Depth first down the tree in which workload ``i + 1`` is first called by ``parents[i]``."""
    below: list[list[int]] = [[] for _ in range(len(parents) + 1)]
    for number, parent in enumerate(parents, 1):
        below[parent].append(number)
    ahead = [0]
    while ahead:
        yield (here := ahead.pop())
        ahead += below[here][::-1]


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


class _Replica(NamedTuple):
    """A pod: application, workload, number among its replicas."""

    application: int
    workload: int
    replica: int


def plant(
    applications: Sequence[GeneratedApplication], regions: Regions, shares: tuple[float, float], source: RandomSource
) -> Planting:
    """Give every pod a node.

    Parameters
    ----------
    applications, regions
        Who, and where.
    shares
        Share of the applications that reach over two regions, and of the workloads that stand in two zones.
    source
        All chance.
    """
    loads = [0] * len(regions.zones)
    waiting: list[list[_Replica]] = [[] for _ in regions.zones]
    for number, application in enumerate(applications):
        for replica, zone in _zones(number, application, regions, shares, loads, source):
            loads[zone] += application.units[replica.workload]
            waiting[zone].append(replica)
    sizes = [application.units for application in applications]
    room = max(max(units) for units in sizes)
    while (found := _packed(waiting, sizes, regions, room)) is None:
        room += 1
    nodes = tuple(
        tuple(
            tuple(found[_Replica(number, workload, replica)] for replica in range(replicas))
            for workload, replicas in enumerate(application.replicas)
        )
        for number, application in enumerate(applications)
    )
    return Planting(nodes, room)


def _zones(
    number: int,
    application: GeneratedApplication,
    regions: Regions,
    shares: tuple[float, float],
    loads: Sequence[int],
    source: RandomSource,
) -> Iterator[tuple[_Replica, int]]:
    """Cut the walk through an application into as many pieces as it has zones; say of each pod where it stands."""
    homes = _homes(regions, source.chance(shares[0]), loads, source)
    for place, workload in enumerate(application.walk):
        home = homes[place * len(homes) // len(application.walk)]
        others = [zone for zone in regions.zones_of(regions.region(home)) if zone != home]
        second = source.pick(others) if others and source.chance(shares[1]) else home
        for replica in range(application.replicas[workload]):
            yield _Replica(number, workload, replica), second if replica % 2 else home


def _homes(regions: Regions, wide: bool, loads: Sequence[int], source: RandomSource) -> list[int]:
    """Choose the emptiest regions, and the emptiest zones of these; equal ones by chance."""
    order = source.shuffled(range(len(regions.regions)))
    order.sort(key=lambda region: sum(loads[zone] for zone in regions.zones_of(region)))
    homes: list[int] = []
    for region in order[: 2 if wide else 1]:
        zones = source.shuffled(regions.zones_of(region))
        zones.sort(key=lambda zone: loads[zone])
        homes += zones[: 1 + source.below(min(ZONES_EACH, len(zones)))]
    return homes


def _packed(
    waiting: Sequence[Sequence[_Replica]], sizes: Sequence[Sequence[int]], regions: Regions, room: int
) -> dict[_Replica, int] | None:
    """Fill the nodes of each zone: the one at hand as long as the next pod fits, then the emptiest; None if none is
    left.
    """
    found: dict[_Replica, int] = {}
    for zone, waiting_here in enumerate(waiting):
        free = dict.fromkeys(regions.nodes_of(zone), room)
        here = next(iter(free))
        for replica in waiting_here:
            units = sizes[replica.application][replica.workload]
            if free[here] < units:
                here = max(free, key=lambda node: free[node])
            if free[here] < units:
                return None
            free[here] -= units
            found[replica] = here
    return found


@dataclass(frozen=True)
class NetworkLimits:
    """What is allowed.

    Parameters
    ----------
    costs
        By application and call, its maxNetworkCost.
    capacities
        Mbit/s of each link.
    tight_tiers
        By application, whether its tier limit, should it be a gang, leaves no room.
    network_cost
        Cost of the planted placement over all pairs (O3).
    """

    costs: tuple[tuple[int, ...], ...]
    capacities: Mapping[AreaLink, int]
    tight_tiers: tuple[bool, ...]
    network_cost: int


def draw_limits(
    applications: Sequence[GeneratedApplication],
    planting: Planting,
    regions: Regions,
    tight: float,
    source: RandomSource,
) -> NetworkLimits:
    """Draw limits that the planted placement keeps.

    A tight cost is the largest one among the pairs of a call, 0 where all of them stay in a zone; a tight capacity is
    what the pairs need together, or what one small call needs where none goes over the link. Otherwise every known
    cost is allowed, and a link carries twice the need of the busiest one.
    """
    used = Counter[AreaLink]()
    total = 0
    largest = max(regions.costs.values(), default=0)
    costs: list[tuple[int, ...]] = []
    for application, nodes in zip(applications, planting.nodes, strict=True):
        allowed: list[int] = []
        for call in application.calls:
            pairs = [(one, two) for one in nodes[call.caller] for two in nodes[call.called]]
            links = Counter(link for pair in pairs if (link := regions.link(*pair)) is not None)
            near = sum(one != two and regions.link(one, two) is None for one, two in pairs)
            total += near + sum(regions.costs[link] * count for link, count in links.items())
            used.update({link: call.bandwidth * count for link, count in links.items()})
            allowed.append(max((regions.costs[link] for link in links), default=0) if source.chance(tight) else largest)
        costs.append(tuple(allowed))
    ample = 2 * max(used.values(), default=0) + max(BANDWIDTHS)
    return NetworkLimits(
        costs=tuple(costs),
        capacities={
            link: max(used[link], min(BANDWIDTHS)) if source.chance(tight) else ample for link in sorted(regions.costs)
        },
        tight_tiers=tuple(source.chance(tight) for _ in applications),
        network_cost=total,
    )
