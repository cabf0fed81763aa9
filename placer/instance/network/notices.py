"""Findings about AppGroups and the network: what cannot be as meant, and what will surprise whoever wrote it.

What matters only to costs and bandwidth is told where an AppGroup has a dependency and some rule or level looks at it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from placer.codes import FindingCode
from placer.instance.findings import Findings, counted
from placer.instance.model import Instance
from placer.instance.network.app_groups import BANDWIDTH, Application, workload_name
from placer.instance.network.model import REGION, REGION_LABEL, UNKNOWN_COST, ZONE, ZONE_LABEL, Area, Network
from placer.instance.pod import Key
from placer.instance.policy import Policy
from placer.instance.sorts import ALGORITHMS, DEFAULT_ALGORITHM, find_cycle
from placer.kube.pod import PodManifest

__all__ = ["network_matters", "note_app_groups", "note_network", "note_unlimited_bandwidth"]

INGRESS, EGRESS = "kubernetes.io/ingress-bandwidth", "kubernetes.io/egress-bandwidth"


def network_matters(policy: Policy, applications: Mapping[Key, Application]) -> bool:
    """Whether anything looks at the network: some AppGroup has a dependency, and C8, C9 or O3 is on."""
    on = {"C8", "C9"} - policy.rules_off or "networkCost" in policy.levels
    return bool(on) and any(each.app_group.dependencies for each in applications.values())


def note_app_groups(
    applications: Mapping[Key, Application], sizes: Mapping[Key, int], costs_matter: bool, findings: Findings
) -> None:
    """Note what is wrong with AppGroups in themselves.

    Parameters
    ----------
    applications
        The AppGroups.
    sizes
        How many pods an AppGroup has; one without any is absent.
    costs_matter
        Whether C8 holds: a maxNetworkCost that is left out matters.
    findings
        Takes the findings.
    """
    for key, application in applications.items():
        subject = f"AppGroup {key}"
        for code, message in (*_graph(application), *_plain(application, sizes.get(key, 0), costs_matter)):
            findings.add(code, subject, f"{subject}: {message}")


def _graph(application: Application) -> Iterator[tuple[FindingCode, str]]:
    """What is wrong with the dependencies as a graph."""
    edges = [(each.origin, each.destination) for each in application.app_group.dependencies]
    for name in sorted({origin for origin, destination in edges if origin == destination}):
        yield "DependsOnItself", f"workload {name} depends on itself: its pods call each other"
    others: dict[str, list[str]] = defaultdict(list)
    for origin, destination in edges:
        if origin != destination:
            others[origin].append(destination)
    cycle = find_cycle(others)
    if cycle:
        yield "DependencyCycle", f"workloads call each other in a cycle: {' -> '.join((*cycle, cycle[0]))}"


def _plain(application: Application, pods: int, costs_matter: bool) -> Iterator[tuple[FindingCode, str]]:
    """What is wrong with single fields."""
    spec = application.spec
    algorithm = spec.topology_sorting_algorithm
    if algorithm is not None and algorithm not in ALGORITHMS:
        known = f"none of {', '.join(ALGORITHMS)}: {DEFAULT_ALGORITHM} is used"
        yield "SortingAlgorithmUnknown", f"topologySortingAlgorithm {algorithm!r} is {known}"
    if pods and spec.num_members is not None and spec.num_members != pods:
        there = "is 1 pod" if pods == 1 else f"are {pods} pods"
        yield "NumMembers", f"numMembers is {spec.num_members}, there {there}"
    absent = [
        f"{workload_name(each.workload)} -> {workload_name(called.workload)}"
        for each in spec.workloads or ()
        for called in each.dependencies or ()
        if called.max_network_cost is None
    ]
    if absent and costs_matter:
        meaning = "counts as 0: on one node or in one zone"
        yield "MaxNetworkCostAbsent", f"maxNetworkCost of {counted(set(absent))} is left out and {meaning}"


def note_network(network: Network | None, applications: Mapping[Key, Application], findings: Findings) -> None:
    """Note what is odd about the network that dependencies look at, or that there is none."""
    if network is None:
        groups = {f"AppGroup {key}" for key, each in applications.items() if each.app_group.dependencies}
        message = f"there is no NetworkTopology, so C8, C9 and O3 do not apply to {counted(groups)}"
        findings.add("NoNetworkTopology", min(groups), message)
        return
    _note_nodes(network, findings)
    subject = f"NetworkTopology {network.topology}"
    for code, message in (*_one_way(network), *_shared_names(network)):
        findings.add(code, subject, f"{subject}: {message}")


def _note_nodes(network: Network, findings: Findings) -> None:
    """Nodes that lack a label."""
    lost = {f"Node {name}" for name, area in network.areas.items() if not area.region}
    if lost:
        message = f"without the label {REGION_LABEL}, each a place of its own that costs {UNKNOWN_COST} from anywhere"
        findings.add("NodeWithoutRegion", min(lost), f"{counted(lost)}: {message}")
    loose: dict[Area, set[str]] = defaultdict(set)
    for name, area in network.areas.items():
        if area.region and not area.zone:
            loose[area].add(f"Node {name}")
    for area, nodes in loose.items():
        message = f"without the label {ZONE_LABEL}, taken together as one zone of region {area.region}"
        findings.add("NodeWithoutZone", min(nodes), f"{counted(nodes)}: {message}")


def _one_way(network: Network) -> Iterator[tuple[FindingCode, str]]:
    """Links between areas of the cluster of which only one direction has an entry; one finding per kind."""
    homes = _homes(network)
    regions = frozenset[str]().union(*homes.values())
    single: dict[str, set[str]] = defaultdict(set)
    for link in network.costs:
        ends = (link.origin, link.destination)
        inside = homes[ends[0]] & homes[ends[1]] if link.kind == ZONE else regions.issuperset(ends)
        if inside and ends[0] != ends[1] and link.back not in network.costs:
            single[link.kind].add(f"{link.kind} {link.origin} -> {link.destination}")
    for links in single.values():
        message = f"given in one direction only, so that the other one costs {UNKNOWN_COST}"
        yield "LinkOneWay", f"{counted(links)}: {message}"


def _homes(network: Network) -> dict[str, set[str]]:
    """Zone to the regions that have a zone of that name; the empty name: nodes that name no zone."""
    found: dict[str, set[str]] = defaultdict(set)
    for area in network.areas.values():
        if area.region:
            found[area.zone].add(area.region)
    return found


def _shared_names(network: Network) -> Iterator[tuple[FindingCode, str]]:
    """Names that stand for two things: a region and a zone, or zones of two regions with a capacity to share."""
    homes = _homes(network)
    regions = {link.origin for link in network.costs if link.kind == REGION}.union(*homes.values())
    zones = {link.origin for link in network.costs if link.kind == ZONE}.union(filter(None, homes))
    for name in sorted(regions & zones):
        yield "RegionAndZone", f"{name} is a region and a zone; the NetworkOverhead plugin mixes up their costs"
    limited = {name for link in network.capacities if link.kind == ZONE for name in (link.origin, link.destination)}
    for name in sorted(name for name in limited if len(homes[name]) > 1):
        where = " and ".join(sorted(homes[name]))
        yield "ZoneInTwoRegions", f"zone {name} is in regions {where}, which share the capacity of its links"


def note_unlimited_bandwidth(pods: Iterable[PodManifest], instance: Instance, findings: Findings) -> None:
    """Note pods that reserve bandwidth of their node and do not ask the CNI plugin to hold them to it."""
    found: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for pod in pods:
        if instance.pods[Key(pod.namespace, pod.name)].requests[BANDWIDTH]:
            notes = pod.metadata.annotations or {}
            missing = tuple(name for name in (INGRESS, EGRESS) if name not in notes)
            if missing:
                found[missing].add(f"Pod {pod.namespace}/{pod.name}")
    for missing, subjects in found.items():
        message = f"{counted(subjects)}: request of {BANDWIDTH} without the annotation {' and '.join(missing)}"
        findings.add("BandwidthNotLimited", min(subjects), f"{message}, so nothing holds the pod to it")
