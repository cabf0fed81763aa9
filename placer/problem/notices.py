"""Findings about the input as a whole."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from placer.base.codes import FindingCode
from placer.base.quantity import NANO, format_amount, from_nano
from placer.kube.base import controller
from placer.kube.marks import KOORDINATOR_MATCH, decide_nothing
from placer.problem.app_groups import BANDWIDTH, Application, workload_name
from placer.problem.communication import REGION, REGION_LABEL, UNKNOWN_COST, ZONE, ZONE_LABEL, Area, Network
from placer.problem.eligibility import avoided_groups
from placer.problem.findings import Findings, counted
from placer.problem.gangs import COSCHEDULING, KAI
from placer.problem.instance import Instance, Policy
from placer.problem.keys import GroupKey, Key
from placer.problem.mark_gangs import refusals_alone
from placer.problem.pod_makers import SET_LABELS
from placer.problem.workload_sorts import ALGORITHMS, DEFAULT_ALGORITHM, find_cycle

if TYPE_CHECKING:
    from placer.kube.core import NodeManifest
    from placer.kube.kai import KaiPodGroupManifest
    from placer.kube.manifests import Objects
    from placer.kube.manifests.validation import UnknownField
    from placer.kube.pod import PodManifest, ResourceRequirements
    from placer.kube.scheduler_plugins import AppGroupSpec, CoschedulingPodGroupManifest
    from placer.kube.volcano import QueueManifest


def note_ignored(objects: Objects, findings: Findings) -> None:
    """Note fields that no object of its kind has, and files that give the instance nothing."""
    for unknown in objects.unknown_fields:
        findings.add("UnknownField", unknown.object, _message(unknown))
    for file in objects.useless_files:
        findings.add("FileIgnored", file, f"{file} holds no object")


def _message(unknown: UnknownField) -> str:
    others = f", here and in {unknown.count - 1:,} more" if unknown.count > 1 else ""
    if not unknown.path:
        return f"more fields of {unknown.kind} are unknown than are reported, and later objects were not checked"
    if unknown.path == "kind":
        return f"no kind {unknown.kind} is read{others}; found like it: {unknown.nearest}"
    if unknown.elsewhere:
        read = "it is read all the same" if unknown.is_read else "it decides nothing"
        where = f"{unknown.path} is no field of {unknown.kind}, but one of {' and '.join(unknown.elsewhere)}{others}"
        return f"{where}: an API server drops it, {read}"
    nearest = f"; found like it: {unknown.nearest}" if unknown.nearest else ""
    return f"{unknown.path} is no field of {unknown.kind} and decides nothing{others}{nearest}"


_MILLI = NANO // 1000
_REFUSED = "; the API server refuses such a pod"
_BYTES = ("memory", "ephemeral-storage", "hugepages-")

_Told = tuple[FindingCode, str]

#: (API group, kind) of owners whose pods are no gang, or whose gang placer reads.
_READ_OWNERS = frozenset(
    {
        ("", "Node"),
        ("", "ReplicationController"),
        ("apps", "DaemonSet"),
        ("apps", "Deployment"),
        ("apps", "ReplicaSet"),
        ("apps", "StatefulSet"),
        ("batch", "CronJob"),
        ("batch", "Job"),
        ("batch.volcano.sh", "Job"),
    }
)
_RESERVATION = ("scheduling.koordinator.sh", "Reservation")
_NUMATOPOLOGY = ("nodeinfo.volcano.sh", "Numatopology")
_GANG_LABELS = {label: kind for (_, kind), label in SET_LABELS.items()}


def note_unread_owners(pods: Iterable[PodManifest], findings: Findings) -> None:
    """Note owners and gangs of kinds that are not read, once per kind."""
    found: dict[str, set[str]] = {}
    for pod in pods:
        for kind in _unread(pod):
            found.setdefault(kind, set()).add(f"Pod {pod.namespace}/{pod.name}")
    for kind, subjects in found.items():
        what = "declares no gang" if kind in _GANG_LABELS.values() else "is not read"
        message = f"{kind} {what}, so {counted(subjects)} count as pods by themselves and not as a gang of it"
        hint = "; Policy gangs: owners makes each one" if kind in _GANG_LABELS.values() else ""
        findings.add("UnsupportedKind", kind, f"{message}{hint}")


def note_preferences(
    pods: Sequence[PodManifest], nodes: Iterable[NodeManifest], queues: Iterable[QueueManifest], findings: Findings
) -> None:
    """Note preferences that decide nothing, once per kind."""
    told = [(f"Queue {each.name}", "preferred nodeGroupAntiAffinity") for each in queues if avoided_groups(each)]
    told += [(f"Node {node.name}", "PreferNoSchedule") for node in nodes if pods and _rather_not(node)]
    told += [(f"Pod {pod.namespace}/{pod.name}", kind) for pod in pods for kind in _preferences(pod)]
    for subject, kind in told:
        findings.several("PreferenceIgnored", subject, " decides nothing", f"{kind} of ")


def note_numatopologies(objects: Objects, findings: Findings) -> None:
    """Note nodes with zones in a Numatopology of Volcano and in no NodeResourceTopology."""
    read = {each.name for each in objects.node_resource_topologies}
    nodes = {each.name for each in objects.nodes}
    told = {name for group, kind, _, name in objects.skipped_names if (group, kind) == _NUMATOPOLOGY}
    untold = {f"Node {name}" for name in told & nodes - read}
    if untold:
        message = "Numatopology is not read and there is no NodeResourceTopology, so NUMA zones are not modelled for"
        findings.add("UnsupportedKind", "Numatopology.nodeinfo.volcano.sh", f"{message} {counted(untold)}")


def note_unread_room(instance: Instance, objects: Objects, findings: Findings) -> None:
    """Note, once, that Reservations of Koordinator hold no room here."""
    there = {f"{kind} {name}" for group, kind, _, name in objects.skipped_names if (group, kind) == _RESERVATION}
    if there and instance.pending:
        message = f"{_RESERVATION[1]} is not read: the room that {counted(there)} holds counts as free"
        findings.add("UnsupportedKind", f"{_RESERVATION[1]}.{_RESERVATION[0]}", message)


def note_unread_queues(instance: Instance, groups: Iterable[KaiPodGroupManifest], findings: Findings) -> None:
    """Note, once, that queues of KAI limit no group with pending pods."""
    named = {
        f"PodGroup {each.namespace}/{each.name}"
        for each in groups
        if each.spec is not None
        and each.spec.queue
        and instance.groups[GroupKey(KAI, each.namespace, each.name)].pending
    }
    if named:
        kind = f"Queue.{KAI}"
        findings.add("UnsupportedKind", kind, f"{kind} is not read, so spec.queue of {counted(named)} decides nothing")


def note_scheduled_once(instance: Instance, groups: Iterable[CoschedulingPodGroupManifest], findings: Findings) -> None:
    """Note gangs that were scheduled once, and whose bound pods no longer reach the minimum.

    Koordinator places their pods one by one, unless the match policy is ``waiting-and-running``.
    """
    for each in groups:
        group = instance.groups[GroupKey(COSCHEDULING, each.namespace, each.name)]
        said = _scheduled_once(each, group.min_member)
        if said and group.pending and len(group.bound) < group.min_member:
            bound = f"{len(group.bound)} of minMember {group.min_member} pods are bound"
            message = (
                f"{group.key} was scheduled once ({said}), and {bound}: its pods are placed only if all of these are"
            )
            findings.add("GangNoLongerWhole", str(group.key), message)


def _scheduled_once(written: CoschedulingPodGroupManifest, least: int) -> str:
    status, match = written.status, (written.metadata.annotations or {}).get(KOORDINATOR_MATCH)
    if status is None or match == "waiting-and-running":
        return ""
    if 0 < least <= (status.scheduled or 0):
        return f"status.scheduled {status.scheduled}"
    return f"status.phase {status.phase}" if status.phase in ("Scheduled", "Running") else ""


def note_refused(instance: Instance, alone: Iterable[PodManifest], findings: Findings) -> None:
    """Note, once per reason, pods that wait since their marks are not read."""
    refused = [(f"Pod {pod.namespace}/{pod.name}", why) for pod in alone for why in refusals_alone(pod.metadata)]
    of_marks = ("metadata.annotations[", "metadata.labels[")
    refused += [
        (f"Pod {pod.key}", why) for pod in instance.pending for why in pod.unsupported if why.startswith(of_marks)
    ]
    for subject, why in refused:
        findings.several("UnsupportedKind", subject, f" waits as Unsupported: {why}")


def note_limits_without_tree(instance: Instance, findings: Findings) -> None:
    """Note that groups have tier limits although the whole cluster is the only domain."""
    limited = {str(group.key) for group in instance.groups.values() if group.limited}
    if limited and not instance.topology.hyper_nodes:
        cluster = f"all nodes are one domain of tier {instance.topology.root_tier}"
        message = f"there is no HyperNode: for the tier limit of {counted(limited)} {cluster}"
        findings.add("NoHyperNodes", min(limited), message)


def note_names_without_nodes(instance: Instance, findings: Findings) -> None:
    """Note node labels and resources that pending pods or the Policy name, and no node has."""
    keys = {(unit.topology_key, unit.name) for pod in instance.pending for unit in pod.neighbours.units}
    keys |= {(key, "Policy") for key in instance.policy.topology_keys}
    carried = {label for node in instance.nodes.values() for label in node.labels} if keys else set()
    for key, by in keys:
        if key not in carried:
            findings.missing(f"Node label {key}", by, carried)
    for name in instance.policy.resource_weights.keys() - instance.offered:
        findings.missing(f"Resource {name}", "Policy", instance.offered)


def _unread(pod: PodManifest) -> Iterator[str]:
    labels = pod.metadata.labels or {}
    yield from (kind for label, kind in _GANG_LABELS.items() if label in labels)
    owner = controller(pod.metadata)
    if owner is not None:
        group = owner.api_version.rpartition("/")[0]
        if (group, owner.kind) not in _READ_OWNERS:
            yield f"{owner.kind}.{group}" if group else owner.kind


def _preferences(pod: PodManifest) -> Iterator[str]:
    affinity = pod.spec.affinity
    if affinity is not None:
        parts = (affinity.node_affinity, affinity.pod_affinity, affinity.pod_anti_affinity)
        if any(part is not None and part.preferred for part in parts):
            yield "preferred affinity"
    if any(each.when_unsatisfiable == "ScheduleAnyway" for each in pod.spec.topology_spread_constraints or ()):
        yield "ScheduleAnyway"
    unread = decide_nothing("Pod", pod.metadata.labels, pod.metadata.annotations, "PreferenceIgnored")
    yield from (words for _, words in unread)


INGRESS, EGRESS = "kubernetes.io/ingress-bandwidth", "kubernetes.io/egress-bandwidth"


def network_matters(policy: Policy, applications: Mapping[Key, Application]) -> bool:
    """Whether some AppGroup has a dependency, and C8, C9 or O3 is on."""
    on = {"C8", "C9"} - policy.rules_off or "networkCost" in policy.levels
    return bool(on) and any(each.app_group.dependencies for each in applications.values())


def note_app_groups(
    applications: Mapping[Key, Application], sizes: Mapping[Key, int], costs_matter: bool, findings: Findings
) -> None:
    """Note faults within AppGroups; those without pods are absent from ``sizes``."""
    for key, application in applications.items():
        subject = f"AppGroup {key}"
        for code, message in (*_graph(application), *_plain(application, sizes.get(key, 0), costs_matter)):
            findings.add(code, subject, f"{subject}: {message}")


def _graph(application: Application) -> Iterator[tuple[FindingCode, str]]:
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
    spec = application.spec
    algorithm = spec.topology_sorting_algorithm
    if algorithm is not None and algorithm not in ALGORITHMS:
        known = f"expected one of {', '.join(ALGORITHMS)}; {DEFAULT_ALGORITHM} is used"
        yield "SortingAlgorithmUnknown", f"topologySortingAlgorithm: found {algorithm!r}, {known}"
    if pods and spec.num_members is not None and spec.num_members != pods:
        there = "is 1 pod" if pods == 1 else f"are {pods} pods"
        yield "NumMembers", f"numMembers is {spec.num_members}, there {there}; it decides nothing, these pods count"
    absent = set(_without_cost(spec)) if costs_matter else set()
    if absent:
        meaning = "counts as 0: on one node or in one zone"
        yield "MaxNetworkCostAbsent", f"maxNetworkCost of {counted(absent)} is left out and {meaning}"


def note_network(network: Network | None, applications: Mapping[Key, Application], findings: Findings) -> None:
    """Note faults of the network that dependencies look at, or its absence."""
    if network is None:
        groups = {f"AppGroup {key}" for key, each in applications.items() if each.app_group.dependencies}
        message = f"there is no NetworkTopology, so C8, C9 and O3 do not apply to {counted(groups)}"
        findings.add("NoNetworkTopology", min(groups), message)
        return
    _note_nodes(network, findings)
    subject = f"NetworkTopology {network.topology}"
    for code, message in (*_one_way(network), *_regions_and_zones(network), *_shared_zones(network)):
        findings.add(code, subject, f"{subject}: {message}")


def _note_nodes(network: Network, findings: Findings) -> None:
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
    found: dict[str, set[str]] = defaultdict(set)
    for area in network.areas.values():
        if area.region:
            found[area.zone].add(area.region)
    return found


def _regions_and_zones(network: Network) -> Iterator[tuple[FindingCode, str]]:
    homes = _homes(network)
    regions = {link.origin for link in network.costs if link.kind == REGION}.union(*homes.values())
    zones = {link.origin for link in network.costs if link.kind == ZONE}.union(filter(None, homes))
    for name in sorted(regions & zones):
        yield "RegionAndZone", f"{name} is a region and a zone; the NetworkOverhead plugin mixes up their costs"


def _shared_zones(network: Network) -> Iterator[tuple[FindingCode, str]]:
    homes = _homes(network)
    limited = {name for link in network.capacities if link.kind == ZONE for name in (link.origin, link.destination)}
    for name in sorted(name for name in limited if len(homes[name]) > 1):
        where = " and ".join(sorted(homes[name]))
        yield "ZoneInTwoRegions", f"zone {name} is in regions {where}, which share the capacity of its links"


def note_unlimited_bandwidth(pods: Iterable[PodManifest], instance: Instance, findings: Findings) -> None:
    """Note pods that reserve bandwidth and do not ask the CNI plugin to limit them to it."""
    if not any(pod.requests[BANDWIDTH] for pod in instance.pods.values()):
        return
    for pod in pods:
        if instance.pods[Key(pod.namespace, pod.name)].requests[BANDWIDTH]:
            missing = [name for name in (INGRESS, EGRESS) if name not in (pod.metadata.annotations or {})]
            lacks = f"without the annotation {' and '.join(missing)}, so nothing holds the pod to it"
            if missing:
                subject = f"Pod {pod.namespace}/{pod.name}"
                findings.several("BandwidthNotLimited", subject, f": request of {BANDWIDTH} {lacks}")


def note_inadmissible(pods: Iterable[PodManifest], findings: Findings) -> None:
    """Note requests of pending pods that cannot be as meant."""
    for pod in pods:
        for where, resources in _container_resources(pod):
            for code, what in _wrong_amounts(resources):
                findings.several(code, f"Pod {pod.namespace}/{pod.name}", f" {what}", where)


def _container_resources(pod: PodManifest) -> Iterator[tuple[str, ResourceRequirements]]:
    for container in (*(pod.spec.containers or ()), *(pod.spec.init_containers or ())):
        if container.resources is not None:
            yield f"container {container.name or ''} of ", container.resources
    if pod.spec.resources is not None:
        yield "", pod.spec.resources


def _wrong_amounts(resources: ResourceRequirements) -> Iterator[_Told]:
    requests, limits = resources.requests or {}, resources.limits or {}
    for name, asked in requests.items():
        limit = limits.get(name)
        if limit is not None and limit != asked:
            yield from _beside_limit(name, asked, limit)
    for name, amount in {**limits, **requests}.items():
        if amount % NANO and name != "cpu":
            yield from _in_parts(name, amount)


def _beside_limit(name: str, asked: int, limit: int) -> Iterator[_Told]:
    said, bound = (format_amount(name, from_nano(name, amount)) for amount in (asked, limit))
    if asked > limit:
        yield "InvalidObject", f"requests {name} {said}, above its limit {bound}{_REFUSED}"
    elif not _overcommits(name):
        what = f"requests {name} {said}, below its limit {bound}, and {name} cannot be overcommitted"
        yield "InvalidObject", f"{what}{_REFUSED}"


def _in_parts(name: str, amount: int) -> Iterator[_Told]:
    if name.startswith(_BYTES):
        said = f"{amount // _MILLI}m"
        yield "FractionalBytes", f"asks for {name} {said}: m is a thousandth of a byte, M a million bytes, Mi 2^20"
    elif not _overcommits(name):
        yield "InvalidObject", f"asks for {name} {amount // _MILLI}m, which is no whole number{_REFUSED}"


def _overcommits(name: str) -> bool:
    domain, slash, _ = name.partition("/")
    return (not slash or domain.endswith("kubernetes.io")) and not name.startswith("hugepages-")


def _rather_not(node: NodeManifest) -> bool:
    taints = (node.spec.taints if node.spec is not None else None) or ()
    return any(taint.effect == "PreferNoSchedule" for taint in taints)


def _without_cost(spec: AppGroupSpec) -> Iterator[str]:
    for each in spec.workloads or ():
        for called in each.dependencies or ():
            if called.max_network_cost is None:
                yield f"{workload_name(each.workload)} -> {workload_name(called.workload)}"
