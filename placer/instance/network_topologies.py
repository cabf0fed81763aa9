"""The NetworkTopology and list that decide, as costs and capacities of links, and measured costs (C8, C9).

Measurements of the network between nodes are held by a ConfigMap. A key names the percentile, the unit, and the two
nodes; both spellings that are in use are read:

=========================================================================  ==========================================
key                                                                        used by
=========================================================================  ==========================================
``netperf.p90.latency.milliseconds.origin.NODE.destination.NODE``          what the shipped controller looks for
``netperf_p90_latency_microseconds.origin.NODE.destination.NODE``          what the published netperf component writes
=========================================================================  ==========================================

The shipped controller knows the first one only, so that with the published component every cost is 0. It also takes
a missing measurement and one that is no integer for 0; here either is none at all, and the latter is a finding.

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

Source: diktyo-io/networktopology-controller (5db810e), jpedro1992/pushing-netperf-metrics-to-prometheus (fde00c9).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Container, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from statistics import median_high
from typing import NamedTuple, TypeVar

from placer.codes import FindingCode
from placer.instance.app_groups import BANDWIDTH, only_one_each
from placer.instance.communication import (
    REGION,
    REGION_LABEL,
    UNKNOWN_COST,
    ZONE,
    ZONE_LABEL,
    Area,
    Link,
    Network,
)
from placer.instance.findings import Finding, Findings, counted
from placer.instance.keys import Key
from placer.instance.problem import Node, Policy
from placer.kube import diktyo
from placer.kube.core import ConfigMapManifest
from placer.kube.diktyo import NetworkTopologyManifest
from placer.quantity import from_nano

__all__ = [
    "MILLISECOND",
    "NETPERF_COSTS",
    "Measurements",
    "Pair",
    "areas_of",
    "find_config_map",
    "measured_costs",
    "read_cost_lists",
    "read_measurements",
    "read_network",
]


#: Name of the list of measured costs; all others are the user's.
NETPERF_COSTS = "NetperfCosts"

_KEY = re.compile(r"netperf[._]p([0-9]{1,3})[._]latency[._](milliseconds|microseconds)\.origin\.(.+)", re.DOTALL)
_VALUE = re.compile(r"[0-9]{1,12}(\.[0-9]{1,12})?")
_BETWEEN = ".destination."
_MICROSECONDS = {"milliseconds": 1000, "microseconds": 1}


class Pair(NamedTuple):
    """Two nodes, by name."""

    origin: str
    destination: str


@dataclass(frozen=True, slots=True)
class Measurements:
    """What was measured.

    Parameters
    ----------
    latencies
        Microseconds from one node to another, at least 0; rounded up.
    findings
        Entries that cannot be used, one finding for each kind of them.
    """

    latencies: Mapping[Pair, int]
    findings: tuple[Finding, ...] = ()


class _MeasurementEntry(NamedTuple):
    """One entry of the ConfigMap."""

    key: str
    value: str
    percentile: int
    unit: str
    nodes: str


def find_config_map(
    topology: NetworkTopologyManifest, config_maps: Iterable[ConfigMapManifest]
) -> tuple[ConfigMapManifest | None, Key | None]:
    """Find the ConfigMap that a NetworkTopology names, in its own namespace; and what it names, None where nothing."""
    name = topology.spec.configmap_name if topology.spec is not None else None
    if not name:
        return None, None
    key = Key(topology.namespace, name)
    return next((each for each in config_maps if Key(each.namespace, each.name) == key), None), key


def read_measurements(config_map: ConfigMapManifest, nodes: Container[str], percentile: int = 90) -> Measurements:
    """Read the measurements of one percentile.

    Parameters
    ----------
    config_map
        The object that a NetworkTopology names.
    nodes
        Names of the nodes there are.
    percentile
        Which one, such as 50, 90 or 99.

    Returns
    -------
    Measurements
        Where a pair of nodes is there in both units, what is in microseconds counts: it is the finer one.
    """
    finest: dict[Pair, tuple[int, int]] = {}
    unused: dict[FindingCode, set[str]] = defaultdict(set)
    others: set[int] = set()
    for entry in _measurement_entries(config_map.data or {}, unused):
        if entry.percentile != percentile:
            others.add(entry.percentile)
            continue
        pair = _pair(entry.nodes, nodes)
        if pair is None:
            unused["NetperfNode"].add(entry.key)
        elif not _VALUE.fullmatch(entry.value):
            unused["NetperfValue"].add(f"{entry.key} = {entry.value[:40]!r}")
        else:
            factor = _MICROSECONDS[entry.unit]
            value = int((Decimal(entry.value) * factor).to_integral_value(ROUND_CEILING))
            finest[pair] = min(finest.get(pair, (factor, value)), (factor, value))
    latencies = {pair: value for pair, (_, value) in sorted(finest.items())}
    return Measurements(
        latencies, tuple(_unused_findings(config_map, unused, () if latencies else sorted(others), percentile))
    )


def _measurement_entries(
    data: Mapping[str, str], unused: Mapping[FindingCode, set[str]]
) -> Iterator[_MeasurementEntry]:
    """Entries that are measurements; a key that begins like one and is none is noted, any other passed over."""
    for key, value in data.items():
        match = _KEY.fullmatch(key)
        if match is not None:
            yield _MeasurementEntry(key, value.strip(), int(match[1]), match[2], match[3])
        elif key.startswith("netperf"):
            unused["NetperfKey"].add(key)


def _pair(text: str, nodes: Container[str]) -> Pair | None:
    """The two nodes, of which each may have dots in its name; None where there is no such node."""
    parts = text.split(_BETWEEN)
    for cut in range(1, len(parts)):
        pair = Pair(_BETWEEN.join(parts[:cut]), _BETWEEN.join(parts[cut:]))
        if pair.origin in nodes and pair.destination in nodes:
            return pair
    return None


def _unused_findings(
    config_map: ConfigMapManifest,
    unused: Mapping[FindingCode, set[str]],
    others: tuple[int, ...] | list[int],
    percentile: int,
) -> Iterator[Finding]:
    subject = f"ConfigMap {config_map.namespace}/{config_map.name}"
    words: dict[FindingCode, str] = {
        "NetperfKey": "no key of a measurement that is known",
        "NetperfNode": "not two nodes that are there",
        "NetperfValue": "no number of at least 0",
    }
    for code, keys in sorted(unused.items()):
        yield Finding(code, subject, f"{subject}: {counted(keys)}: {words[code]}, so not used")
    if others:
        there = ", ".join(f"p{each}" for each in others)
        yield Finding("NetperfPercentile", subject, f"{subject} has no measurement of p{percentile}, but of {there}")


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
    import networkx as nx  # takes half a second, and few instances are measured

    graph: nx.DiGraph[P] = nx.DiGraph()
    for (origin, destination), values in measured.items():
        graph.add_edge(origin, destination, weight=median_high(values))
    for origin, destination in measured:
        if not graph.has_edge(destination, origin):
            graph.add_edge(destination, origin, weight=graph.edges[origin, destination]["weight"])
    for origin, ways in nx.all_pairs_dijkstra_path_length(graph):
        yield from ((origin, destination, int(ways[destination])) for destination in ways if destination != origin)


#: API group in use; should a NetworkTopology be there under an older group as well, the one under this group counts.
NETWORK_TOPOLOGY_API = "networktopology.diktyo.x-k8s.io"
_DEFAULT_NAME = "nt-default"
_DEFAULT_LIST = "UserDefined"
_KINDS = {ZONE_LABEL: ZONE, REGION_LABEL: REGION}


def areas_of(nodes: Mapping[str, Node]) -> dict[str, Area]:
    """Area of every node, by its labels; an empty label is none."""
    found = {}
    for name, node in nodes.items():
        region, zone = node.labels.get(REGION_LABEL, ""), node.labels.get(ZONE_LABEL, "")
        found[name] = Area(region, zone) if region else Area("", "", name)
    return found


def read_network(
    written: Iterable[diktyo.NetworkTopologyManifest],
    policy: Policy,
    nodes: Mapping[str, Node],
    findings: Findings,
    config_maps: Iterable[ConfigMapManifest] = (),
) -> Network | None:
    """Read the network of an instance.

    Parameters
    ----------
    written
        The NetworkTopologies, in any order.
    policy
        May name one, and one of its lists.
    nodes
        Their labels say in which zone and region they are.
    findings
        Takes a choice that is not clear, names that lead nowhere, and entries that cannot be as meant.
    config_maps
        Where the policy chooses the list of measured costs, what was measured counts: 90th percentiles, in
        milliseconds, as the ConfigMap that the NetworkTopology names has them.

    Returns
    -------
    Network or None
        None where there is no NetworkTopology at all.
    """
    counting = only_one_each(written, "NetworkTopology", NETWORK_TOPOLOGY_API, findings).values()
    chosen = _chosen(sorted(counting, key=lambda each: (each.name, each.namespace)), policy.network_topology, findings)
    if chosen is None:
        return None
    key = Key(chosen.namespace, chosen.name)
    lists = (chosen.spec.weights if chosen.spec is not None else None) or ()
    areas = areas_of(nodes)
    costs = _measured(chosen, config_maps, areas, findings) if policy.network_weights == NETPERF_COSTS else {}
    if costs:
        weights = next((each for each in lists if each.name == NETPERF_COSTS), None)
        if weights is not None and _costs(weights, key, findings) != costs:
            message = f"NetworkTopology {key}: its list {NETPERF_COSTS} is not what its ConfigMap says, which counts"
            findings.add("NetperfListDiffers", f"NetworkTopology {key}", message)
    else:
        weights = _list(lists, policy.network_weights, key, findings)
        costs = _costs(weights, key, findings) if weights is not None else {}
    name = NETPERF_COSTS if weights is None and costs else weights.name if weights is not None else None
    user = next((each for each in lists if each.name == _DEFAULT_LIST), None)
    capacities = _capacities(user) | _capacities(weights)
    if not lists and not costs:
        subject = f"NetworkTopology {key}"
        message = f"{subject} has no lists (spec.weights): every link costs {UNKNOWN_COST} and none has a capacity"
        findings.add("NetworkTopologyEmpty", subject, message)
    return Network(key, areas, costs, capacities, name)


def _measured(
    chosen: diktyo.NetworkTopologyManifest,
    config_maps: Iterable[ConfigMapManifest],
    areas: Mapping[str, Area],
    findings: Findings,
) -> dict[Link, int]:
    """What the measurements of a NetworkTopology come to; empty where there are none."""
    config_map, named = find_config_map(chosen, config_maps)
    if config_map is None:
        lists = (chosen.spec.weights if chosen.spec is not None else None) or ()
        if named is not None and all(each.name != NETPERF_COSTS for each in lists):
            findings.missing(f"ConfigMap {named}", f"NetworkTopology {chosen.namespace}/{chosen.name}")
        return {}

    measured = read_measurements(config_map, areas)
    findings.update(measured.findings)
    return measured_costs(measured.latencies, areas)


def read_cost_lists(
    written: Iterable[diktyo.NetworkTopologyManifest],
    nodes: Mapping[str, Node],
    config_maps: Sequence[ConfigMapManifest] = (),
) -> dict[Key, dict[str, dict[Link, int]]]:
    """Read every list of every NetworkTopology: object to list to costs; what is wrong with them is not told here.

    The list of measured costs that no controller has written yet is the one that it would write.
    """
    quiet = Findings()
    found: dict[Key, dict[str, dict[Link, int]]] = {}
    for each in only_one_each(written, "NetworkTopology", NETWORK_TOPOLOGY_API, quiet).values():
        key = Key(each.namespace, each.name)
        lists = (each.spec.weights if each.spec is not None else None) or ()
        found[key] = {weights.name: _costs(weights, key, quiet) for weights in lists}
        if config_maps and NETPERF_COSTS not in found[key]:
            measured = _measured(each, config_maps, areas_of(nodes), quiet)
            found[key] |= {NETPERF_COSTS: measured} if measured else {}
    return found


def _chosen(
    written: Sequence[diktyo.NetworkTopologyManifest], named: str | None, findings: Findings
) -> diktyo.NetworkTopologyManifest | None:
    """The one that the policy names, else ``nt-default``, else the only one, else the first by name."""
    if named is not None:
        found = [each for each in written if f"{each.namespace}/{each.name}" == named]
        if found:
            return found[0]
        findings.missing(f"NetworkTopology {named}", "Policy")
    likely = [each for each in written if each.name == _DEFAULT_NAME] or written
    if not likely:
        return None
    if len(likely) > 1:
        names = ", ".join(f"{each.namespace}/{each.name}" for each in likely)
        subject = f"NetworkTopology {likely[0].namespace}/{likely[0].name}"
        message = f"{subject} counts, the first by name of {names}: no Policy says which"
        findings.add("NetworkTopologyAmbiguous", subject, message)
    return likely[0]


def _list(lists: Sequence[diktyo.CostList], named: str | None, key: Key, findings: Findings) -> diktyo.CostList | None:
    """The list that the policy names, else ``UserDefined``, else the first; None where there is none."""
    if named is not None:
        found = next((each for each in lists if each.name == named), None)
        if found is not None:
            return found
        findings.missing(f"Weights {named} of NetworkTopology {key}", "Policy")
    return next((each for each in lists if each.name == _DEFAULT_LIST), lists[0] if lists else None)


def _entries(weights: diktyo.CostList | None) -> Iterable[tuple[Link, diktyo.Cost]]:
    """Links of a list with their entries, in the order of the text."""
    for topology in (weights.topologies if weights is not None else None) or ():
        kind = _KINDS.get(topology.topology_key)
        for origin in (topology.origins or ()) if kind is not None else ():
            for cost in origin.costs or ():
                yield Link(kind or "", origin.origin, cost.destination), cost


def _costs(weights: diktyo.CostList, key: Key, findings: Findings) -> dict[Link, int]:
    """Costs of a list; of two entries for one link the later one counts, as in the plugin."""
    subject = f"NetworkTopology {key}"
    for topology_key in sorted({each.topology_key for each in weights.topologies or ()} - set(_KINDS)):
        message = (
            f"{subject}: topologyKey {topology_key} is neither {ZONE_LABEL} nor {REGION_LABEL}, its costs are unused"
        )
        findings.add("TopologyKeyUnknown", subject, message)
    found: dict[Link, int] = {}
    for link, cost in _entries(weights):
        if found.setdefault(link, cost.network_cost) != cost.network_cost:
            message = f"{subject}: the {link} has two costs, the later one counts"
            findings.add("LinkTwice", subject, message)
        found[link] = cost.network_cost
    return found


def _capacities(weights: diktyo.CostList | None) -> dict[Link, int]:
    """Capacities of a list in bit/s; what is finer than that is rounded up, as the API server does."""
    return {
        link: from_nano(BANDWIDTH, cost.bandwidth_capacity)
        for link, cost in _entries(weights)
        if cost.bandwidth_capacity is not None
    }
