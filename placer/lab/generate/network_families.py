"""Family ``network``: AppGroups over regions and zones, with limits that a planted placement is known to keep."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, product
from typing import NamedTuple

from placer.lab.generate.objects import (
    GROUP,
    NAMESPACE,
    Document,
    Generated,
    by_name,
    hyper_node,
    most_pods,
    named,
    names_by_chance,
    node_object,
    plant_pod,
    pod_group,
    pod_object,
    requests,
    running_shares,
)
from placer.lab.generate.options import FamilyOptions, listed, option
from placer.lab.generate.random_source import RandomSource
from placer.problem import Key
from placer.problem.network_objects import ALGORITHMS

__all__ = ["NetworkOptions", "network"]


@dataclass(frozen=True, kw_only=True)
class NetworkOptions(FamilyOptions):
    """Options of ``network``."""

    app_groups: int = option(4, "number of AppGroups", 1, 10_000)
    workloads: tuple[int, ...] = option((5, 11), "workloads of an AppGroup: so many, or the least and the most", 1, 200)
    replicas: tuple[int, ...] = option((1, 3), "pods of a workload: so many, or the least and the most", 1, 100)
    calls: float = option(1.4, "dependencies per workload; every workload but the first is called at least once", 0, 10)
    regions: int = option(2, "number of regions", 1, 100)
    zones: int = option(2, "zones per region", 1, 100)
    nodes: int = option(16, "number of nodes, shared out evenly over the zones", 1, 100_000)
    wide: float = option(0.4, "share of AppGroups that are planted over two regions")
    apart: float = option(0.3, "share of workloads whose pods are planted in two zones, where it has several")
    bandwidth: float = option(0.7, "share of dependencies with a minBandwidth")
    tight: float = option(
        1.0, "share of costs, links and tiers whose limit leaves no room around the planted placement"
    )
    fill: float = option(0.9, "how full the fullest planted node is", 0.01)
    running: float = option(0.0, "share of AppGroups that run already, where they were planted")
    anchored: float = option(0.0, "share of AppGroups of which half runs already")
    gangs: float = option(0.0, "share of AppGroups that are one gang under a hard tier limit")
    rack_size: int = option(4, "nodes per rack, the HyperNodes of tier 1 (zones, regions and all are 2 to 4)", 1, 4096)

    def check(self) -> None:
        """Check that every zone has a node, and that ranges are ranges."""
        zones = self.regions * self.zones
        self.demand(
            self.nodes >= zones, "nodes", f"{self.nodes}", f"at least {zones:,}, one for each zone of every region"
        )
        for name in ("workloads", "replicas"):
            span = getattr(self, name)
            good = len(span) == 1 or (len(span) == 2 and span[0] <= span[1])
            self.demand(good, name, listed(span), "one number, or two with the least one first")


def network(options: NetworkOptions) -> Generated:
    """Make AppGroups, and a cluster whose network they are known to fit.

    The planted placement keeps the room of the nodes, every maxNetworkCost, bandwidthCapacity and tier limit. Where
    limits are tight, they leave no room around it. ``networkCostPlanted`` of the summary is O3 of everything planted,
    running pods included.
    """
    mix = options
    regions = draw_regions(mix.regions, mix.zones, mix.nodes, RandomSource(mix.seed, "land"))
    source = RandomSource(mix.seed, "applications")
    applications = [_application(mix, source) for _ in range(mix.app_groups)]
    places, room = plant(applications, regions, mix, RandomSource(mix.seed, "places"))
    limits = draw_limits(applications, places, regions, mix.tight, RandomSource(mix.seed, "limits"))
    source = RandomSource(mix.seed, "objects")
    shares = running_shares(len(applications), mix.running, mix.anchored, source)
    gangs = [source.chance(mix.gangs) for _ in applications]
    documents, planted = _documents(applications, places, room, limits, regions, mix, shares, gangs, source)
    pods = sum(sum(each.replicas) for each in applications)
    summary = {
        "nodes": mix.nodes,
        "regions": mix.regions,
        "zones": mix.regions * mix.zones,
        "appGroups": len(applications),
        "workloads": sum(len(each.replicas) for each in applications),
        "dependencies": sum(len(each.calls) for each in applications),
        "gangs": sum(gangs),
        "pods": pods,
        "podsRunning": pods - len(planted),
        "podsPlanted": len(planted),
        "networkCostPlanted": limits.network_cost,
    }
    return Generated(documents, planted, summary)


REGION = "topology.kubernetes.io/region"
ZONE = "topology.kubernetes.io/zone"

#: Least and most cost of the way between two zones of a region, and between two regions.
ZONE_COSTS = (2, 12)
REGION_COSTS = (15, 60)


class AreaLink(NamedTuple):
    key: str
    origin: int
    destination: int


@dataclass(frozen=True)
class Regions:
    """Zones by number, region after region; nodes by number, zone after zone.

    ``starts`` are the first nodes of the zones. A link costs the same both ways, and no detour is cheaper.
    """

    regions: tuple[str, ...]
    zones: tuple[str, ...]
    nodes: tuple[str, ...]
    starts: tuple[int, ...]
    costs: Mapping[AreaLink, int]

    @property
    def zones_each(self) -> int:
        return len(self.zones) // len(self.regions)

    def region(self, zone: int) -> int:
        return zone // self.zones_each

    def zone(self, node: int) -> int:
        return bisect_right(self.starts, node) - 1

    def zones_of(self, region: int) -> range:
        return range(region * self.zones_each, (region + 1) * self.zones_each)

    def nodes_of(self, zone: int) -> range:
        return range(self.starts[zone], (*self.starts, len(self.nodes))[zone + 1])

    def link(self, node: int, other: int) -> AreaLink | None:
        one, two = self.zone(node), self.zone(other)
        if one == two:
            return None
        if self.region(one) == self.region(two):
            return AreaLink(ZONE, one, two)
        return AreaLink(REGION, self.region(one), self.region(two))

    def name(self, key: str, number: int) -> str:
        return (self.regions if key == REGION else self.zones)[number]


def draw_regions(regions: int, zones_each: int, nodes: int, source: RandomSource) -> Regions:
    zones = regions * zones_each
    costs = {AreaLink(REGION, *pair): cost for pair, cost in _costs(range(regions), REGION_COSTS, source).items()}
    for region in range(regions):
        within = range(region * zones_each, (region + 1) * zones_each)
        costs |= {AreaLink(ZONE, *pair): cost for pair, cost in _costs(within, ZONE_COSTS, source).items()}
    return Regions(
        regions=names_by_chance("region", regions, source),
        zones=names_by_chance("zone", zones, source),
        nodes=names_by_chance("node", nodes, source),
        starts=tuple(zone * nodes // zones for zone in range(zones)),
        costs=costs,
    )


def _costs(places: Sequence[int], span: tuple[int, int], source: RandomSource) -> dict[tuple[int, int], int]:
    """Every cost is that of the shortest path (Floyd and Warshall)."""
    low, high = span
    drawn = {(one, two): low + source.below(high - low + 1) for one in places for two in places if one < two}
    costs = drawn | {(two, one): cost for (one, two), cost in drawn.items()}
    for over, one, two in product(places, places, places):
        if len({over, one, two}) == 3:
            costs[one, two] = min(costs[one, two], costs[one, over] + costs[over, two])
    return costs


#: Names of the tiers, lowest first.
TIERS = ("rack", "zone", "region", "world")


@dataclass(frozen=True)
class Racks:
    regions: Regions
    size: int

    def tier(self, nodes: Iterable[int]) -> int:
        paths = {self._path(node) for node in nodes}
        return next(tier for tier, domains in enumerate(zip(*paths, strict=True), 1) if len(set(domains)) == 1)

    def documents(self) -> Iterator[Document]:
        members: dict[tuple[int, str], set[tuple[str, str]]] = {}
        for number, node in enumerate(self.regions.nodes):
            below = ("Node", node)
            for tier, name in enumerate(self._path(number), 1):
                members.setdefault((tier, name), set()).add(below)
                below = ("HyperNode", name)
        for (tier, name), inside in members.items():
            yield hyper_node(name, tier, TIERS[tier - 1], sorted(inside))

    def _path(self, node: int) -> tuple[str, ...]:
        regions = self.regions
        zone = regions.zone(node)
        rack = (node - regions.starts[zone]) // self.size
        name = regions.zones[zone]
        return f"{name}-rack-{rack}", name, regions.regions[regions.region(zone)], TIERS[-1]


#: Sizes of a pod in units (half a core and 1 GiB), the small ones more often.
SIZES = (1, 1, 1, 2, 2, 4)
#: What a call may need, in Mbit/s.
BANDWIDTHS = (10, 20, 50, 100, 200)


class DependencyEdge(NamedTuple):
    """``bandwidth`` is in Mbit/s, 0: not stated."""

    caller: int
    called: int
    bandwidth: int


@dataclass(frozen=True)
class GeneratedApplication:
    """Workloads by number: the size and the number of each one's pods.

    ``calls`` has each pair once, without circles, in order. ``walk`` is all workloads on a walk down the calls, so that
    neighbours on the walk mostly call each other.
    """

    units: tuple[int, ...]
    replicas: tuple[int, ...]
    calls: tuple[DependencyEdge, ...]
    walk: tuple[int, ...]


def _between(span: tuple[int, ...], source: RandomSource) -> int:
    return span[0] + source.below(span[-1] - span[0] + 1)


def _application(mix: NetworkOptions, source: RandomSource) -> GeneratedApplication:
    size = _between(mix.workloads, source)
    parents = [source.below(number) for number in range(1, size)]
    pairs = dict.fromkeys((parent, number) for number, parent in enumerate(parents, 1))
    wanted = min(round(mix.calls * size), size * (size - 1) // 2)
    while len(pairs) < wanted:
        one, two = sorted((source.below(size), source.below(size)))
        if one != two:
            pairs[one, two] = None
    numbers = source.shuffled(range(size))  # so that the numbers tell nothing of the walk
    calls = sorted(
        DependencyEdge(numbers[one], numbers[two], source.pick(BANDWIDTHS) if source.chance(mix.bandwidth) else 0)
        for one, two in pairs
    )
    return GeneratedApplication(
        units=tuple(source.pick(SIZES) for _ in range(size)),
        replicas=tuple(_between(mix.replicas, source) for _ in range(size)),
        calls=tuple(calls),
        walk=tuple(numbers[each] for each in _walk(parents)),
    )


def _walk(parents: list[int]) -> Iterator[int]:
    below: list[list[int]] = [[] for _ in range(len(parents) + 1)]
    for number, parent in enumerate(parents, 1):
        below[parent].append(number)
    ahead = [0]
    while ahead:
        yield (here := ahead.pop())
        ahead += below[here][::-1]


#: Most zones of one region that an application is spread over.
ZONES_EACH = 3


#: By application and workload the node of each pod.
Places = tuple[tuple[tuple[int, ...], ...], ...]
#: A pod: application, workload, number among its replicas.
_Replica = tuple[int, int, int]


def plant(
    applications: Sequence[GeneratedApplication], regions: Regions, mix: NetworkOptions, source: RandomSource
) -> tuple[Places, int]:
    """Give every pod a node; also the units of the fullest node, which every node has to have."""
    loads = [0] * len(regions.zones)
    waiting: list[list[_Replica]] = [[] for _ in regions.zones]
    for number, application in enumerate(applications):
        for replica, zone in _zones(number, application, regions, mix, loads, source):
            loads[zone] += application.units[replica[1]]
            waiting[zone].append(replica)
    sizes = [application.units for application in applications]
    room = max(max(units) for units in sizes)
    while (found := _packed(waiting, sizes, regions, room)) is None:
        room += 1
    nodes = tuple(
        tuple(
            tuple(found[number, workload, replica] for replica in range(replicas))
            for workload, replicas in enumerate(application.replicas)
        )
        for number, application in enumerate(applications)
    )
    return nodes, room


def _zones(
    number: int,
    application: GeneratedApplication,
    regions: Regions,
    mix: NetworkOptions,
    loads: Sequence[int],
    source: RandomSource,
) -> Iterator[tuple[_Replica, int]]:
    """Cut the walk through an application into as many pieces as it has zones, so that most calls stay in a zone."""
    homes = _homes(regions, source.chance(mix.wide), loads, source)
    for place, workload in enumerate(application.walk):
        home = homes[place * len(homes) // len(application.walk)]
        others = [zone for zone in regions.zones_of(regions.region(home)) if zone != home]
        second = source.pick(others) if others and source.chance(mix.apart) else home
        for replica in range(application.replicas[workload]):
            yield (number, workload, replica), second if replica % 2 else home


def _homes(regions: Regions, wide: bool, loads: Sequence[int], source: RandomSource) -> list[int]:
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
    found: dict[_Replica, int] = {}
    for zone, waiting_here in enumerate(waiting):
        free = dict.fromkeys(regions.nodes_of(zone), room)
        here = next(iter(free))
        for replica in waiting_here:
            application, workload, _ = replica
            units = sizes[application][workload]
            if free[here] < units:
                here = max(free, key=lambda node: free[node])
            if free[here] < units:
                return None
            free[here] -= units
            found[replica] = here
    return found


@dataclass(frozen=True)
class NetworkLimits:
    """Each call's maxNetworkCost, by application, and Mbit/s of each link.

    ``tight_tiers`` says by application whether its tier limit, should it be a gang, leaves no room. ``network_cost`` is
    that of the planted placement over all pairs (O3).
    """

    costs: tuple[tuple[int, ...], ...]
    capacities: Mapping[AreaLink, int]
    tight_tiers: tuple[bool, ...]
    network_cost: int


def draw_limits(
    applications: Sequence[GeneratedApplication],
    places: Places,
    regions: Regions,
    tight: float,
    source: RandomSource,
) -> NetworkLimits:
    """A tight cost is the largest one among the pairs of a call; a tight capacity is the sum of the pairs' needs, or
    one small call's where none goes over the link. Otherwise every known cost is allowed, and a link carries twice the
    need of the busiest one.
    """
    used = Counter[AreaLink]()
    total = 0
    largest = max(regions.costs.values(), default=0)
    costs: list[tuple[int, ...]] = []
    for application, nodes in zip(applications, places, strict=True):
        allowed: list[int] = []
        for call in application.calls:
            near, links = _ways(regions, nodes[call.caller], nodes[call.called])
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


def _ways(regions: Regions, callers: Sequence[int], called: Sequence[int]) -> tuple[int, Counter[AreaLink]]:
    pairs = [(one, two, regions.link(one, two)) for one, two in product(callers, called)]
    near = sum(one != two and link is None for one, two, link in pairs)
    return near, Counter(link for _, _, link in pairs if link is not None)


GROUP_LABEL = "appgroup.diktyo.x-k8s.io"
WORKLOAD_LABEL = "appgroup.diktyo.x-k8s.io.workload"
CONFIG_MAP = "netperf-metrics"
#: Milli-cores and MiB of one unit.
UNIT = (500, 1024)


def _documents(
    applications: Sequence[GeneratedApplication],
    places: Places,
    room: int,
    limits: NetworkLimits,
    regions: Regions,
    mix: NetworkOptions,
    running: Sequence[float],
    gangs: Sequence[bool],
    source: RandomSource,
) -> tuple[list[Document], dict[Key, str]]:
    racks = Racks(regions, mix.rack_size)
    names = names_by_chance("app", len(applications), source)
    groups: list[Document] = []
    pods: list[Document] = []
    pod_groups: list[Document] = []
    planted: dict[Key, str] = {}
    for number, application in enumerate(applications):
        name, nodes = names[number], places[number]
        groups.append(_app_group(name, application, limits.costs[number], source.pick(tuple(ALGORITHMS))))
        members = list(_pods(name, application, nodes, regions, gang=gangs[number]))
        going = set(source.shuffled(range(len(members)))[: math.ceil(running[number] * len(members))])
        pods += [plant_pod(pod, node, index in going, planted) for index, (pod, node) in enumerate(members)]
        if gangs[number]:
            tier = racks.tier(chain.from_iterable(nodes))
            limit = tier if limits.tight_tiers[number] else min(tier + 1, len(TIERS))
            wanted = {"mode": "hard", "highestTierAllowed": limit}
            pod_groups.append(pod_group(name, {"minMember": len(members), "networkTopology": wanted}, bool(going)))
    there = Counter(node for application in places for nodes in application for node in nodes)
    documents = [
        *by_name(_nodes(regions, math.ceil(room / mix.fill), max(there.values()))),
        *by_name(racks.documents() if any(gangs) else ()),
        _network_topology(regions, limits),
        _config_map(regions),
        *by_name(groups),
        *by_name(pod_groups),
        *by_name(pods),
    ]
    return documents, dict(sorted(planted.items()))


def _nodes(regions: Regions, room: int, pods: int) -> Iterator[Document]:
    amounts = requests(0, UNIT[0] * room, UNIT[1] * room) | {"pods": most_pods(pods)}
    for number, name in enumerate(regions.nodes):
        zone = regions.zone(number)
        labels = {REGION: regions.regions[regions.region(zone)], ZONE: regions.zones[zone]}
        yield node_object(name, labels, amounts)


def _network_topology(regions: Regions, limits: NetworkLimits) -> Document:
    lists = [
        {
            "topologyKey": key,
            "originList": [
                {
                    "origin": regions.name(key, origin),
                    "costList": [
                        {
                            "destination": regions.name(key, link.destination),
                            "networkCost": regions.costs[link],
                            "bandwidthCapacity": f"{limits.capacities[link]}M",
                        }
                        for link in links
                    ],
                }
                for origin, links in _by_origin(regions, key)
            ],
        }
        for key in (REGION, ZONE)
    ]
    return {
        "apiVersion": "networktopology.diktyo.x-k8s.io/v1alpha1",
        "kind": "NetworkTopology",
        "metadata": {"name": "nt-default", "namespace": NAMESPACE},
        "spec": {
            "configmapName": CONFIG_MAP,
            "weights": [{"name": "UserDefined", "topologyList": lists}],
        },
    }


def _by_origin(regions: Regions, key: str) -> Iterator[tuple[int, list[AreaLink]]]:
    links = [link for link in regions.costs if link.key == key]
    for origin in sorted({link.origin for link in links}, key=lambda number: regions.name(key, number)):
        there = [link for link in links if link.origin == origin]
        yield origin, sorted(there, key=lambda link: regions.name(key, link.destination))


def _config_map(regions: Regions) -> Document:
    data = {}
    for link, cost in regions.costs.items():
        one, two = (_probe(regions, link.key, place) for place in (link.origin, link.destination))
        data[f"netperf.p90.latency.milliseconds.origin.{one}.destination.{two}"] = str(cost)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": CONFIG_MAP, "namespace": NAMESPACE},
        "data": dict(sorted(data.items())),
    }


def _probe(regions: Regions, key: str, place: int) -> str:
    zone = regions.zones_of(place)[0] if key == REGION else place
    return regions.nodes[regions.nodes_of(zone)[0]]


def _app_group(name: str, application: GeneratedApplication, limits: Sequence[int], algorithm: str) -> Document:
    count = len(application.units)
    calls = list(zip(application.calls, limits, strict=True))
    workloads: list[Document] = []
    for number in range(count):
        entry: Document = {"workload": _workload(name, number, count)}
        dependencies = [
            {"workload": _workload(name, call.called, count)}
            | ({"minBandwidth": f"{call.bandwidth}M"} if call.bandwidth else {})
            | {"maxNetworkCost": limit}
            for call, limit in calls
            if call.caller == number
        ]
        if dependencies:
            entry["dependencies"] = dependencies
        workloads.append(entry)
    return {
        "apiVersion": "appgroup.diktyo.x-k8s.io/v1alpha1",
        "kind": "AppGroup",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "numMembers": sum(application.replicas),
            "topologySortingAlgorithm": algorithm,
            "workloads": workloads,
        },
    }


def _workload(name: str, number: int, count: int) -> Document:
    selector = named("w", number, count)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": f"{name}-{selector}",
        "namespace": NAMESPACE,
        "selector": selector,
    }


def _pods(
    name: str, application: GeneratedApplication, nodes: Sequence[Sequence[int]], regions: Regions, *, gang: bool
) -> Iterator[tuple[Document, str]]:
    for number, places in enumerate(nodes):
        selector = named("w", number, len(nodes))
        units = application.units[number]
        room = requests(0, UNIT[0] * units, UNIT[1] * units)
        for replica, node in enumerate(places):
            metadata: Document = {"labels": {GROUP_LABEL: name, WORKLOAD_LABEL: selector}}
            if gang:
                metadata["annotations"] = {GROUP: name}
            yield (
                pod_object(f"{name}-{selector}-{replica}", "service", [(selector, room)], **metadata),
                regions.nodes[node],
            )
