"""AppGroups and NetworkTopologies (KEP-260): workloads, their dependencies, orders and pods, and costs of links.

A ConfigMap holds measurements between nodes, under keys of two spellings:

* ``netperf.p90.latency.milliseconds.origin.NODE.destination.NODE``
* ``netperf_p90_latency_microseconds.origin.NODE.destination.NODE``

The cost of two places is the larger median, or the shortest way over others (KEP-260), rounded up once, at least 1. One
direction counts for both. Source: diktyo-io/networktopology-controller (5db810e),
jpedro1992/pushing-netperf-metrics-to-prometheus (fde00c9). Orders: KEP-260 "Application Group CRD";
diktyo-io/appgroup-controller; otaviokr/topological-sort.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from graphlib import CycleError, TopologicalSorter
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from placer.base.codes import FindingCode
from placer.base.quantity import from_nano
from placer.kube.base import NamespacedObject, controller
from placer.kube.pod import TERMINAL_PHASES, PodManifest
from placer.problem.communication import (
    REGION,
    REGION_LABEL,
    UNKNOWN_COST,
    ZONE,
    ZONE_LABEL,
    AppGroup,
    Area,
    Dependency,
    Link,
    Network,
)
from placer.problem.findings import Finding, Findings, counted
from placer.problem.instance import Policy
from placer.problem.keys import Key
from placer.problem.nodes import Node
from placer.problem.pod_states import PodMakers

if TYPE_CHECKING:
    from placer.kube.apps import ReplicaSetManifest
    from placer.kube.core import ConfigMapManifest
    from placer.kube.scheduler_plugins import (
        AppGroupManifest,
        AppGroupSpec,
        AppGroupWorkload,
        Cost,
        CostList,
        NetworkTopologyManifest,
    )

#: Workload to those that it calls, both in the order of the spec; every workload is a key.
Graph = Mapping[str, Sequence[str]]

DEFAULT_ALGORITHM = "KahnSort"


@dataclass(frozen=True, slots=True)
class WorkloadOrder:
    """Workloads in the order in which they are to be placed; with a ``cycle`` that of the spec."""

    algorithm: str
    workloads: tuple[str, ...]
    cycle: tuple[str, ...] = ()

    @property
    def indices(self) -> dict[str, int]:
        """Place of each workload, from 1: the smallest is placed first."""
        return {workload: place for place, workload in enumerate(self.workloads, 1)}


def sort_workloads(
    algorithm: str | None,
    workloads: Iterable[str],
    dependencies: Mapping[str, Sequence[str]],
    roots: Sequence[str] = (),
) -> WorkloadOrder:
    """Order the workloads of an AppGroup; equal input gives the equal order.

    ``algorithm``: of :data:`ALGORITHMS`, else the default. ``roots``: workloads that come first, else ValueError.

    Examples
    --------
    >>> calls = {"web": ["cart", "ads"], "cart": ["redis"]}
    >>> sort_workloads("KahnSort", ["web", "cart", "ads", "redis"], calls).workloads
    ('web', 'ads', 'cart', 'redis')
    """
    known = algorithm if algorithm is not None and algorithm in ALGORITHMS else DEFAULT_ALGORITHM
    graph = _graph(workloads, dependencies)
    unknown = sorted(set(roots) - graph.keys())
    if unknown:
        raise ValueError(f"roots: found {', '.join(unknown)}, expected workloads of the AppGroup")
    cycle = find_cycle(graph)
    if cycle:
        return WorkloadOrder(known, tuple(graph), cycle)
    sort, arrange = ALGORITHMS[known]
    return WorkloadOrder(known, tuple(arrange(sort(graph, tuple(dict.fromkeys((*roots, *graph)))))))


def find_cycle(dependencies: Graph) -> tuple[str, ...]:
    """The first circle of calls; of one workload: it calls itself."""
    sorter = TopologicalSorter[str](dict.fromkeys(dependencies, ()))
    for workload, calls in dependencies.items():
        for called in calls:
            sorter.add(called, workload)
    try:
        sorter.prepare()
    except CycleError as error:
        return tuple(error.args[1][:-1])
    return ()


def _graph(workloads: Iterable[str], dependencies: Mapping[str, Sequence[str]]) -> Graph:
    named = chain(workloads, dependencies, chain.from_iterable(dependencies.values()))
    return {workload: tuple(dependencies.get(workload, ())) for workload in dict.fromkeys(named)}


def _kahn(graph: Graph, order: Sequence[str]) -> list[str]:
    """Takes the workload found last, a stack as in the controller."""
    callers = Counter(chain.from_iterable(graph.values()))
    ready = [workload for workload in order if not callers[workload]]
    found: list[str] = []
    while ready:
        found.append(ready.pop())
        for called in graph[found[-1]]:
            callers[called] -= 1
            if not callers[called]:
                ready.append(called)
    return found


def _tarjan(graph: Graph, order: Sequence[str]) -> list[str]:
    found: dict[str, None] = {}
    for start in order:
        path = [] if start in found else [(start, iter(graph[start]))]
        while path:
            workload, calls = path[-1]
            called = next((each for each in calls if each not in found), None)
            if called is None:
                found[workload] = None
                path.pop()
            else:
                path.append((called, iter(graph[called])))
    return list(found)[::-1]


def _alternating(order: Sequence[str]) -> Iterator[str]:
    for place in range((len(order) + 1) // 2):
        yield order[place]
        if place != len(order) - 1 - place:
            yield order[-1 - place]


#: Name of an algorithm to its sort and the arrangement of the result.
ALGORITHMS: Mapping[
    str,
    tuple[Callable[[Graph, Sequence[str]], Sequence[str]], Callable[[Sequence[str]], Iterable[str]]],
] = MappingProxyType(
    {
        "KahnSort": (_kahn, tuple),
        "TarjanSort": (_tarjan, tuple),
        "ReverseKahn": (_kahn, reversed),
        "ReverseTarjan": (_tarjan, reversed),
        "AlternateKahn": (_kahn, _alternating),
        "AlternateTarjan": (_tarjan, _alternating),
    }
)


Written = TypeVar("Written", bound=NamespacedObject)


def only_one_each(written: Iterable[Written], kind: str, in_use: str, findings: Findings) -> dict[Key, Written]:
    """Keep one object of each name, sorted: of the API group ``in_use``, else the last by API group."""
    same: dict[Key, list[Written]] = defaultdict(list)
    for each in sorted(written, key=lambda each: (each.namespace, each.name, each.group != in_use, each.group)):
        same[Key(each.namespace, each.name)].append(each)
    return {key: _one(key, each, kind, in_use, findings) for key, each in same.items()}


def _one(key: Key, same: list[Written], kind: str, in_use: str, findings: Findings) -> Written:
    counts = same[0] if same[0].group == in_use else same[-1]
    others = sorted({each.group for each in same if each is not counts})
    if others:
        subject = f"{kind} {key}"
        rest = f"{', '.join(others)}, which {'is' if len(others) == 1 else 'are'} not read"
        message = f"{subject} is there under the API groups {counts.group}, which counts, and {rest}"
        findings.add("SeveralApiGroups", subject, message)
    return counts


APP_GROUP_API = "appgroup.diktyo.x-k8s.io"
#: Extended resource of a node; minBandwidth and bandwidthCapacity are counted in the same unit, bit/s.
BANDWIDTH = "network.aware.com/bandwidth"


@dataclass(frozen=True, slots=True)
class Application:
    """An AppGroup as read; ``owners``: kind and name of a workload to its own name and namespace."""

    app_group: AppGroup
    owners: Mapping[tuple[str, str], tuple[str, str | None]]
    spec: AppGroupSpec


def read_app_groups(written: Iterable[AppGroupManifest], findings: Findings) -> dict[Key, Application]:
    """Read AppGroups, sorted by key."""
    counting = only_one_each(written, "AppGroup", APP_GROUP_API, findings)
    return {key: _AppGroupReader(key, each, findings).read() for key, each in counting.items()}


class _AppGroupReader:
    def __init__(self, key: Key, written: AppGroupManifest, findings: Findings) -> None:
        from placer.kube.scheduler_plugins import AppGroupSpec

        self.key = key
        self.spec = spec = written.spec or AppGroupSpec()
        self.stored = (written.status.topology_order if written.status is not None else None) or ()
        self.findings = findings
        self.listed = spec.workloads or ()
        self.workloads = dict.fromkeys(workload_name(each.workload) for each in self.listed)
        self.by_reference: dict[tuple[str, str], str] = {}
        self.by_name: dict[str, str] = {}
        for each in self.listed:
            ref = each.workload
            self.by_reference.setdefault((ref.kind, ref.name), workload_name(ref))
            self.by_name.setdefault(ref.name, workload_name(ref))

    def read(self) -> Application:
        names = Counter(workload_name(each.workload) for each in self.listed)
        for name in sorted(name for name, times in names.items() if times > 1):
            message = f"AppGroup {self.key} lists workload {name} more than once; its dependencies are taken together"
            self.findings.add("WorkloadTwice", f"AppGroup {self.key}", message)
        dependencies = tuple(self._dependencies())
        called = dict.fromkeys(each.destination for each in dependencies)
        return Application(
            AppGroup(
                self.key,
                tuple(self.workloads | called),
                dependencies,
                self.spec.topology_sorting_algorithm or "",
                {workload_name(each.workload): each.index for each in self.stored if each.index is not None},
            ),
            {
                (each.workload.kind, each.workload.name): (workload_name(each.workload), each.workload.namespace)
                for each in reversed(self.listed)
            },
            self.spec,
        )

    def _dependencies(self) -> Iterator[Dependency]:
        unknown: dict[str, list[str]] = defaultdict(list)
        for each in self.listed:
            for called in each.dependencies or ():
                origin, destination = workload_name(each.workload), self._callee(called.workload)
                if destination not in self.workloads:
                    unknown[destination].append(origin)
                asked = called.min_bandwidth
                least = None if asked is None else from_nano(BANDWIDTH, asked)
                yield Dependency(origin, destination, called.max_network_cost or 0, least)
        for destination, origins in unknown.items():
            message = (
                f"AppGroup {self.key}: {', '.join(origins)} depends on {destination}, which is not among its workloads"
            )
            self.findings.add("UnknownReference", f"AppGroup {self.key}", message)

    def _callee(self, ref: AppGroupWorkload) -> str:
        name = workload_name(ref)
        if name in self.workloads:
            return name
        return self.by_reference.get((ref.kind, ref.name)) or self.by_name.get(ref.name) or name


def workload_name(ref: AppGroupWorkload) -> str:
    """Name of a workload in its AppGroup, and in the label of its pods."""
    return ref.selector or ref.name


APP_GROUP_LABEL = "appgroup.diktyo.x-k8s.io"
WORKLOAD_LABEL = "appgroup.diktyo.x-k8s.io.workload"


#: An AppGroup, and the workload; None where the AppGroup does not know it.
AppGroupMember = tuple[Key, str | None]


def read_app_group_members(
    pods: Iterable[PodManifest],
    applications: Mapping[Key, Application],
    replica_sets: Iterable[ReplicaSetManifest],
    findings: Findings,
) -> dict[Key, AppGroupMember]:
    """Find the workload of every pod in an AppGroup that has not ended."""
    reader = _WorkloadFinder(applications, replica_sets, findings)
    found = {}
    for pod in pods:
        if pod.status is None or pod.status.phase not in TERMINAL_PHASES:
            member = reader.member(pod)
            if member is not None:
                found[Key(pod.namespace, pod.name)] = member
    reader.note_lost()
    return found


def count_app_group_members(pods: Iterable[PodManifest], members: Mapping[Key, AppGroupMember]) -> Counter[Key]:
    """Pods of every AppGroup that have not ended and are not being deleted."""
    if not members:
        return Counter()
    staying = (Key(each.namespace, each.name) for each in pods if each.metadata.deletion_timestamp is None)
    return Counter(members[key][0] for key in staying if key in members)


class _WorkloadFinder:
    def __init__(
        self, applications: Mapping[Key, Application], replica_sets: Iterable[ReplicaSetManifest], findings: Findings
    ) -> None:
        self._applications = applications
        self._findings = findings
        self._named: dict[str, list[Key]] = defaultdict(list)
        self._owners: dict[tuple[str, str], list[Key]] = defaultdict(list)
        for key, application in applications.items():
            self._named[key.name].append(key)
            for owner in application.owners:
                self._owners[owner].append(key)
        self._pod_makers = PodMakers(replica_sets if self._owners else ())
        self._ambiguous: dict[tuple[Key, ...], set[str]] = defaultdict(set)

    def member(self, pod: PodManifest) -> AppGroupMember | None:
        labels = pod.metadata.labels or {}
        name = labels.get(APP_GROUP_LABEL)
        if not name:
            return self._by_owner(pod) if self._owners else None
        if name not in self._named:
            self._findings.missing(f"AppGroup {name}", f"Pod {pod.namespace}/{pod.name}")
            return None
        key = self._choose(self._named[name], pod)
        return None if key is None else (key, self._workload(self._applications[key], pod))

    def _workload(self, application: Application, pod: PodManifest) -> str | None:
        name = (pod.metadata.labels or {}).get(WORKLOAD_LABEL) or None
        if name is None:
            makers = (application.owners.get(maker) for maker in self._makers(pod))
            name = next((found[0] for found in makers if found is not None), None)
        elif name not in application.app_group.workloads:
            target = f"Workload {name} of AppGroup {application.app_group.key}"
            self._findings.missing(target, f"Pod {pod.namespace}/{pod.name}")
            return None
        if name is None and application.app_group.dependencies:
            before = f"AppGroup {application.app_group.key}: neither the label {WORKLOAD_LABEL} nor the owner of "
            after = " says which workload it is of, so that it has no dependencies"
            self._findings.several("PodWithoutWorkload", f"Pod {pod.namespace}/{pod.name}", after, before)
        return name

    def _by_owner(self, pod: PodManifest) -> AppGroupMember | None:
        for maker in self._makers(pod):
            spaces = ((key, self._applications[key].owners[maker][1]) for key in self._owners.get(maker, ()))
            keys = [key for key, namespace in spaces if namespace in (None, pod.namespace)]
            if keys:
                key = self._choose(keys, pod)
                return None if key is None else (key, self._applications[key].owners[maker][0])
        return None

    def _makers(self, pod: PodManifest) -> Iterator[tuple[str, str]]:
        if controller(pod.metadata) is None:
            yield "Pod", pod.name
        yield from ((maker.kind, maker.name) for maker in self._pod_makers.of(pod))

    def _choose(self, keys: list[Key], pod: PodManifest) -> Key | None:
        if len(keys) == 1:
            return keys[0]
        own = [key for key in keys if key.namespace == pod.namespace]
        if len(own) == 1:
            return own[0]
        self._ambiguous[tuple(own or keys)].add(f"Pod {pod.namespace}/{pod.name}")
        return None

    def note_lost(self) -> None:
        for keys, pods in self._ambiguous.items():
            names = ", ".join(map(str, keys))
            message = f"{counted(pods)} may be of any of the AppGroups {names}, and so of none"
            self._findings.add("AppGroupAmbiguous", f"AppGroup {keys[0]}", message)


#: Name of the list of measured costs; all others are the user's.
NETPERF_COSTS = "NetperfCosts"

_KEY = re.compile(r"netperf[._]p([0-9]{1,3})[._]latency[._](milliseconds|microseconds)\.origin\.(.+)", re.DOTALL)
_VALUE = re.compile(r"[0-9]{1,12}(\.[0-9]{1,12})?")
_BETWEEN = ".destination."
_MICROSECONDS = {"milliseconds": 1000, "microseconds": 1}


class Pair(NamedTuple):
    """Two nodes, or two zones or regions, by name."""

    origin: str
    destination: str


@dataclass(frozen=True, slots=True)
class Measurements:
    """``latencies`` in microseconds, at least 0; one finding for each kind of unusable entry."""

    latencies: Mapping[Pair, int]
    findings: tuple[Finding, ...] = ()


def find_config_map(
    topology: NetworkTopologyManifest, config_maps: Iterable[ConfigMapManifest]
) -> tuple[ConfigMapManifest | None, Key | None]:
    """The ConfigMap that a NetworkTopology names, in its own namespace, and that name."""
    name = topology.spec.configmap_name if topology.spec is not None else None
    if not name:
        return None, None
    key = Key(topology.namespace, name)
    return next((each for each in config_maps if Key(each.namespace, each.name) == key), None), key


def read_measurements(config_map: ConfigMapManifest, nodes: Container[str], percentile: int = 90) -> Measurements:
    """Read the measurements of one ``percentile`` between known ``nodes``; microseconds count before milliseconds."""
    finest: dict[Pair, tuple[int, int]] = {}
    unused: dict[FindingCode, set[str]] = defaultdict(set)
    others: set[int] = set()
    for key, written in (config_map.data or {}).items():
        match, value = _KEY.fullmatch(key), written.strip()
        if match is None:
            if key.startswith("netperf"):
                unused["NetperfKey"].add(key)
        elif int(match[1]) != percentile:
            others.add(int(match[1]))
        elif (pair := _pair(match[3], nodes)) is None:
            unused["NetperfNode"].add(key)
        elif not _VALUE.fullmatch(value):
            unused["NetperfValue"].add(f"{key} = {value[:40]!r}")
        else:
            factor = _MICROSECONDS[match[2]]
            latency = int((Decimal(value) * factor).to_integral_value(ROUND_CEILING))
            finest[pair] = min(finest.get(pair, (factor, latency)), (factor, latency))
    latencies = {pair: latency for pair, (_, latency) in sorted(finest.items())}
    findings = _unused_findings(config_map, unused, [] if latencies else sorted(others), percentile)
    return Measurements(latencies, tuple(findings))


def _pair(text: str, nodes: Container[str]) -> Pair | None:
    """Names of nodes may have dots, so each split is tried."""
    parts = text.split(_BETWEEN)
    for cut in range(1, len(parts)):
        pair = Pair(_BETWEEN.join(parts[:cut]), _BETWEEN.join(parts[cut:]))
        if pair.origin in nodes and pair.destination in nodes:
            return pair
    return None


def _unused_findings(
    config_map: ConfigMapManifest, unused: Mapping[FindingCode, set[str]], others: Sequence[int], percentile: int
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


MILLISECOND = 1000


def measured_costs(
    latencies: Mapping[Pair, int], areas: Mapping[str, Area], unit: int = MILLISECOND
) -> dict[Link, int]:
    """Compute the cost of every link with a measurement, sorted.

    ``latencies``: microseconds. ``unit``: microseconds that cost 1. Of two regions with zones of the same names the
    larger cost counts.
    """
    measured: dict[tuple[str, str], dict[Pair, list[int]]] = defaultdict(lambda: defaultdict(list))
    for pair, latency in latencies.items():
        link = _link(areas[pair.origin], areas[pair.destination])
        if link is not None:
            scope, ends = link
            measured[scope][ends].append(latency)
    found: dict[Link, int] = {}
    for (kind, _), ways in measured.items():
        for origin, destination, latency in _shortest(ways):
            between = Link(kind, origin, destination)
            found[between] = max(found.get(between, 1), -(-latency // unit))
    return dict(sorted(found.items()))


def _link(one: Area, two: Area) -> tuple[tuple[str, str], Pair] | None:
    if one.region and two.region and one.region != two.region:
        return (REGION, ""), Pair(one.region, two.region)
    if one.region == two.region and one.zone and two.zone and one.zone != two.zone:
        return (ZONE, one.region), Pair(one.zone, two.zone)
    return None


def _shortest(measured: Mapping[Pair, list[int]]) -> Iterator[tuple[str, str, int]]:
    from statistics import median_high

    import networkx as nx  # takes half a second, and few instances are measured

    graph: nx.DiGraph[str] = nx.DiGraph()
    for (origin, destination), values in measured.items():
        graph.add_edge(origin, destination, weight=median_high(values))
    for origin, destination in measured:
        if not graph.has_edge(destination, origin):
            graph.add_edge(destination, origin, weight=graph.edges[origin, destination]["weight"])
    for origin, ways in nx.all_pairs_dijkstra_path_length(graph):
        yield from ((origin, destination, int(ways[destination])) for destination in ways if destination != origin)


NETWORK_TOPOLOGY_API = "networktopology.diktyo.x-k8s.io"
_DEFAULT_NAME = "nt-default"
_DEFAULT_LIST = "UserDefined"
_KINDS = {ZONE_LABEL: ZONE, REGION_LABEL: REGION}


def areas_of(nodes: Mapping[str, Node]) -> dict[str, Area]:
    """Area of every node, by its labels."""
    found = {}
    for name, node in nodes.items():
        region, zone = node.labels.get(REGION_LABEL, ""), node.labels.get(ZONE_LABEL, "")
        found[name] = Area(region, zone) if region else Area("", "", name)
    return found


def read_network(
    written: Iterable[NetworkTopologyManifest],
    policy: Policy,
    nodes: Mapping[str, Node],
    findings: Findings,
    config_maps: Iterable[ConfigMapManifest] = (),
) -> Network | None:
    """Read the network of an instance; None without a NetworkTopology."""
    counting = only_one_each(written, "NetworkTopology", NETWORK_TOPOLOGY_API, findings).values()
    chosen = _chosen(sorted(counting, key=lambda each: (each.name, each.namespace)), policy.network_topology, findings)
    if chosen is None:
        return None
    key = Key(chosen.namespace, chosen.name)
    lists, areas = _lists(chosen), areas_of(nodes)
    costs = _measured(chosen, config_maps, areas, findings) if policy.network_weights == NETPERF_COSTS else {}
    if costs:
        name: str | None = NETPERF_COSTS
        weights = _named(lists, NETPERF_COSTS)
        if weights is not None and _costs(weights, key, findings) != costs:
            message = f"NetworkTopology {key}: its list {NETPERF_COSTS} differs from its ConfigMap, which counts"
            findings.add("NetperfListDiffers", f"NetworkTopology {key}", message)
    else:
        weights = _list(lists, policy.network_weights, key, findings)
        costs, name = (_costs(weights, key, findings), weights.name) if weights is not None else ({}, None)
    capacities = _capacities(_named(lists, _DEFAULT_LIST)) | _capacities(weights)
    if not lists and not costs:
        subject = f"NetworkTopology {key}"
        message = f"{subject} has no lists (spec.weights): every link costs {UNKNOWN_COST} and none has a capacity"
        findings.add("NetworkTopologyEmpty", subject, message)
    return Network(key, areas, costs, capacities, name)


def _lists(topology: NetworkTopologyManifest) -> Sequence[CostList]:
    return (topology.spec.weights if topology.spec is not None else None) or ()


def _named(lists: Iterable[CostList], name: str) -> CostList | None:
    return next((each for each in lists if each.name == name), None)


def _measured(
    chosen: NetworkTopologyManifest,
    config_maps: Iterable[ConfigMapManifest],
    areas: Mapping[str, Area],
    findings: Findings,
) -> dict[Link, int]:
    config_map, named = find_config_map(chosen, config_maps)
    if config_map is None:
        if named is not None and _named(_lists(chosen), NETPERF_COSTS) is None:
            findings.missing(f"ConfigMap {named}", f"NetworkTopology {chosen.namespace}/{chosen.name}")
        return {}

    measured = read_measurements(config_map, areas)
    findings.update(measured.findings)
    return measured_costs(measured.latencies, areas)


def read_cost_lists(
    written: Iterable[NetworkTopologyManifest],
    nodes: Mapping[str, Node],
    config_maps: Sequence[ConfigMapManifest] = (),
) -> dict[Key, dict[str, dict[Link, int]]]:
    """Every list of every NetworkTopology, measured ones included: object to list to costs."""
    quiet = Findings()
    found: dict[Key, dict[str, dict[Link, int]]] = {}
    for each in only_one_each(written, "NetworkTopology", NETWORK_TOPOLOGY_API, quiet).values():
        key = Key(each.namespace, each.name)
        found[key] = {weights.name: _costs(weights, key, quiet) for weights in _lists(each)}
        if config_maps and NETPERF_COSTS not in found[key]:
            measured = _measured(each, config_maps, areas_of(nodes), quiet)
            found[key] |= {NETPERF_COSTS: measured} if measured else {}
    return found


def _chosen(
    written: Sequence[NetworkTopologyManifest], named: str | None, findings: Findings
) -> NetworkTopologyManifest | None:
    """The one that the policy names, else ``nt-default``, else the only one, else the first by name."""
    by_name = {f"{each.namespace}/{each.name}": each for each in written}
    if named in by_name:
        return by_name[named]
    if named is not None:
        findings.missing(f"NetworkTopology {named}", "Policy", by_name)
    likely = [name for name, each in by_name.items() if each.name == _DEFAULT_NAME] or list(by_name)
    if len(likely) > 1:
        subject = f"NetworkTopology {likely[0]}"
        message = f"{subject} counts, the first by name of {', '.join(likely)}: no Policy says which"
        findings.add("NetworkTopologyAmbiguous", subject, message)
    return by_name[likely[0]] if likely else None


def _list(lists: Sequence[CostList], named: str | None, key: Key, findings: Findings) -> CostList | None:
    found = _named(lists, named) if named is not None else None
    if named is not None and found is None:
        findings.missing(f"Weights {named} of NetworkTopology {key}", "Policy")
    return found or _named(lists, _DEFAULT_LIST) or next(iter(lists), None)


def _entries(weights: CostList | None) -> Iterable[tuple[Link, Cost]]:
    for topology in (weights.topologies if weights is not None else None) or ():
        kind = _KINDS.get(topology.topology_key)
        for origin in (topology.origins or ()) if kind is not None else ():
            for cost in origin.costs or ():
                yield Link(kind or "", origin.origin, cost.destination), cost


def _costs(weights: CostList, key: Key, findings: Findings) -> dict[Link, int]:
    """Of two entries for one link the later one counts, as in the plugin."""
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


def _capacities(weights: CostList | None) -> dict[Link, int]:
    return {
        link: from_nano(BANDWIDTH, cost.bandwidth_capacity)
        for link, cost in _entries(weights)
        if cost.bandwidth_capacity is not None
    }
