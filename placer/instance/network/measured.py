"""Costs between regions and between zones, from what was measured between nodes.

Of the measurements between two places the median counts (of an even number the larger middle one), and of the ways
between two places the shortest one, over other places too (KEP-260, "Network Topology CRD"). A cost is a whole number
of a unit of time, rounded up once at the end, and at least 1: no link costs less than to stay in a zone.

Where this differs from the shipped controller (diktyo-io/networktopology-controller, 5db810e):

* Every measurement counts the same. The controller lets each one pull the cost half the way to itself and never up
  again, so that its result depends on the order of the nodes.
* What was measured in both directions may differ; where only one direction was measured it counts for both, a round
  trip being what netperf measures. The controller knows one value for both.
* No way at all is no entry, so that placers take the link for unknown (100). The controller writes 0, the best cost
  there is.
* Zones are kept apart by region, and nodes without labels are in no place; the controller mixes zones of one name, and
  has a region without a name.
* The unit is said. The controller takes over whatever unit the ConfigMap has, next to constants of 0, 1 and 100.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping
from statistics import median_high
from typing import TypeVar

import networkx as nx

from placer.instance.network.model import REGION, ZONE, Area, Link
from placer.instance.network.netperf import Pair

__all__ = ["MILLISECOND", "measured_costs"]

#: Microseconds that cost 1, unless something else is said.
MILLISECOND = 1000

P = TypeVar("P", bound=Hashable)


def measured_costs(
    latencies: Mapping[Pair, int], areas: Mapping[str, Area], unit: int = MILLISECOND
) -> dict[Link, int]:
    """Compute the cost of every link that something was measured of.

    Parameters
    ----------
    latencies
        Microseconds from node to node.
    areas
        Node to its region and zone.
    unit
        Microseconds that cost 1, at least 1: a small unit tells near places apart, a large one keeps costs below 100,
        what an unknown link costs.

    Returns
    -------
    dict
        Links between regions, and between zones of one region, sorted. Of two regions with zones of the same names a
        link has the larger cost.

    Examples
    --------
    >>> near, far = Area("eu", "a"), Area("us", "b")
    >>> costs = measured_costs({Pair("n1", "n2"): 19_500}, {"n1": near, "n2": far})
    >>> {str(link): cost for link, cost in costs.items()}
    {'region link eu -> us': 20, 'region link us -> eu': 20}
    """
    between: dict[tuple[str, str], list[int]] = defaultdict(list)
    within: dict[str, dict[tuple[str, str], list[int]]] = defaultdict(lambda: defaultdict(list))
    for pair, latency in latencies.items():
        one, two = areas[pair.origin], areas[pair.destination]
        if one.region and two.region and one.region != two.region:
            between[one.region, two.region].append(latency)
        elif one.region == two.region and one.zone and two.zone and one.zone != two.zone:
            within[one.region][one.zone, two.zone].append(latency)
    found: dict[Link, int] = {}
    for ways, kind in ((between, REGION), *((ways, ZONE) for ways in within.values())):
        for origin, destination, latency in _shortest(ways):
            link = Link(kind, origin, destination)
            found[link] = max(found.get(link, 1), -(-latency // unit))
    return dict(sorted(found.items()))


def _shortest(measured: Mapping[tuple[P, P], list[int]]) -> Iterator[tuple[P, P, int]]:
    """Shortest ways between places; where only the other direction was measured, that counts."""
    graph: nx.DiGraph[P] = nx.DiGraph()
    for (origin, destination), values in measured.items():
        graph.add_edge(origin, destination, weight=median_high(values))
    for origin, destination in measured:
        if not graph.has_edge(destination, origin):
            graph.add_edge(destination, origin, weight=graph.edges[origin, destination]["weight"])
    for origin, ways in nx.all_pairs_dijkstra_path_length(graph):
        yield from ((origin, destination, int(ways[destination])) for destination in ways if destination != origin)
