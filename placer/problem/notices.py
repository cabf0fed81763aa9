"""Findings about the input: faults, and fields and marks that no rule reads."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from placer.base.codes import FindingCode
from placer.base.quantity import NANO, Resources, format_amount, from_nano
from placer.kube.base import LEFT_OUT, NamespacedObject, Quantities, controller
from placer.kube.marks import (
    ANNOTATIONS_ONLY,
    KAI_GROUP,
    KAI_TOPOLOGIES,
    KOORDINATOR_MATCH,
    LABELS_ONLY,
    MARKS,
    SHARES,
    Meaning,
    Place,
    decide_nothing,
)
from placer.kube.unread_kinds import LIMITS
from placer.problem.broken_rules import note_broken_rules
from placer.problem.communication import REGION, REGION_LABEL, UNKNOWN_COST, ZONE, ZONE_LABEL, Network
from placer.problem.eligibility import avoided_groups
from placer.problem.findings import Findings, counted
from placer.problem.gangs import (
    COSCHEDULING,
    GROUP_ANNOTATIONS,
    GROUP_LABELS,
    KAI,
    VOLCANO,
    PodEntry,
    note_misplaced_names,
)
from placer.problem.instance import Instance, PodState, Policy
from placer.problem.keys import GroupKey, Key
from placer.problem.mark_gangs import VOLCANO_GANG, refusals_alone
from placer.problem.network_objects import (
    ALGORITHMS,
    BANDWIDTH,
    DEFAULT_ALGORITHM,
    Application,
    find_cycle,
    workload_name,
)
from placer.problem.pod_states import SET_LABELS, Maker, PodMakers, all_workloads, is_daemon
from placer.problem.queues import QUEUE_ANNOTATION
from placer.problem.requests import pod_requests
from placer.problem.unsupported import scheduled_jobs, undeclared_gang

if TYPE_CHECKING:
    from placer.kube.core import NodeManifest
    from placer.kube.manifests import Objects
    from placer.kube.manifests.validation import UnknownField
    from placer.kube.pod import PodManifest, ResourceRequirements
    from placer.kube.scheduler_plugins import AppGroupSpec, CoschedulingPodGroupManifest
    from placer.kube.scheduling import KaiPodGroupManifest
    from placer.kube.volcano import QueueManifest
    from placer.problem.expansion import Expansion


def note_all(instance: Instance, objects: Objects, entries: Sequence[PodEntry], findings: Findings) -> None:
    """Note all that can be told of an instance once it is made, of what bound pods break, too."""
    note_ignored(objects, findings)
    if "C10" not in instance.policy.rules_off:
        _note_numatopologies(objects, findings)
    _note_pending(instance, objects, [entry for entry in entries if entry.state is PodState.PENDING], findings)
    _note_unread_queues(instance, objects.kai_pod_groups, findings)
    _note_scheduled_once(instance, objects.coscheduling_pod_groups, findings)
    pods = [entry.pod for entry in entries if entry.state in (PodState.PENDING, PodState.BOUND)]
    _note_marks_ignored(pods, findings)
    _note_marks_above(pods, objects, findings)
    _note_marks_of_daemons(pods, findings)
    _note_marks_around(instance, objects, findings)
    _note_unread_room(instance, objects, findings)
    _note_unlimited_bandwidth(pods, instance, findings)
    if not objects.hyper_nodes:
        _note_limits_without_tree(instance, findings)
    _note_names_without_nodes(instance, findings)
    note_broken_rules(instance, findings)
    _note_ignored_fields(instance, objects, entries, findings)


def _note_pending(instance: Instance, objects: Objects, pending: Sequence[PodEntry], findings: Findings) -> None:
    jobs = scheduled_jobs(objects.jobs)
    alone = [entry.pod for entry in pending if entry.group is None]
    _note_refused(instance, alone, findings)
    _note_unread_owners((pod for pod in alone if not any(undeclared_gang(pod, jobs))), findings)
    note_misplaced_names(alone, findings)
    pods = [entry.pod for entry in pending]
    asked = {instance.pods[entry.key].queue for entry in pending}
    _note_preferences(pods, objects.nodes, (each for each in objects.queues if each.name in asked), findings)
    _note_inadmissible(pods, findings)


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


def _note_unread_owners(pods: Iterable[PodManifest], findings: Findings) -> None:
    found: dict[str, set[str]] = {}
    for pod in pods:
        for kind in _unread(pod):
            found.setdefault(kind, set()).add(f"Pod {pod.namespace}/{pod.name}")
    for kind, subjects in found.items():
        what = "declares no gang" if kind in _GANG_LABELS.values() else "is not read"
        message = f"{kind} {what}, so {counted(subjects)} count as pods by themselves and not as a gang of it"
        hint = "; Policy gangs: owners makes each one" if kind in _GANG_LABELS.values() else ""
        findings.add("UnsupportedKind", kind, f"{message}{hint}")


_SOFT = "PreferNoSchedule"


def _has_soft_taint(node: NodeManifest) -> bool:
    return node.spec is not None and any(taint.effect == _SOFT for taint in node.spec.taints or ())


def _note_preferences(
    pods: Sequence[PodManifest], nodes: Iterable[NodeManifest], queues: Iterable[QueueManifest], findings: Findings
) -> None:
    told = [(f"Queue {each.name}", "preferred nodeGroupAntiAffinity") for each in queues if avoided_groups(each)]
    told += [(f"Node {node.name}", _SOFT) for node in nodes if pods and _has_soft_taint(node)]
    told += [(f"Pod {pod.namespace}/{pod.name}", kind) for pod in pods for kind in _preferences(pod)]
    for subject, kind in told:
        findings.several("PreferenceIgnored", subject, " decides nothing", f"{kind} of ")


def _note_numatopologies(objects: Objects, findings: Findings) -> None:
    read = {each.name for each in objects.node_resource_topologies}
    nodes = {each.name for each in objects.nodes}
    told = {name for group, kind, _, name in objects.skipped_names if (group, kind) == _NUMATOPOLOGY}
    untold = {f"Node {name}" for name in told & nodes - read}
    if untold:
        message = "Numatopology is not read and there is no NodeResourceTopology, so NUMA zones are not modelled for"
        findings.add("UnsupportedKind", "Numatopology.nodeinfo.volcano.sh", f"{message} {counted(untold)}")


def _note_unread_room(instance: Instance, objects: Objects, findings: Findings) -> None:
    there = {f"{kind} {name}" for group, kind, _, name in objects.skipped_names if (group, kind) == _RESERVATION}
    if there and instance.pending:
        message = f"{_RESERVATION[1]} is not read: the room that {counted(there)} holds counts as free"
        findings.add("UnsupportedKind", f"{_RESERVATION[1]}.{_RESERVATION[0]}", message)


def _note_unread_queues(instance: Instance, groups: Iterable[KaiPodGroupManifest], findings: Findings) -> None:
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


def _note_scheduled_once(
    instance: Instance, groups: Iterable[CoschedulingPodGroupManifest], findings: Findings
) -> None:
    """Koordinator places pods of a gang that was scheduled once one by one, unless its match policy is
    ``waiting-and-running``.
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


def _note_refused(instance: Instance, alone: Iterable[PodManifest], findings: Findings) -> None:
    refused = [(f"Pod {pod.namespace}/{pod.name}", why) for pod in alone for why in refusals_alone(pod.metadata)]
    of_marks = ("metadata.annotations[", "metadata.labels[")
    refused += [
        (f"Pod {pod.key}", why) for pod in instance.pending for why in pod.unsupported if why.startswith(of_marks)
    ]
    for subject, why in refused:
        findings.several("UnsupportedKind", subject, f" waits as Unsupported: {why}")


def _note_limits_without_tree(instance: Instance, findings: Findings) -> None:
    cluster = f" all nodes are one domain of tier {instance.topology.root_tier}"
    for group in instance.groups.values():
        if group.limited and not instance.topology.hyper_nodes:
            findings.several("NoHyperNodes", str(group.key), cluster, "there is no HyperNode: for the tier limit of ")


def _note_names_without_nodes(instance: Instance, findings: Findings) -> None:
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


def _without_cost(spec: AppGroupSpec) -> set[str]:
    return {
        f"{workload_name(each.workload)} -> {workload_name(called.workload)}"
        for each in spec.workloads or ()
        for called in each.dependencies or ()
        if called.max_network_cost is None
    }


def _plain(application: Application, pods: int, costs_matter: bool) -> Iterator[tuple[FindingCode, str]]:
    spec = application.spec
    algorithm = spec.topology_sorting_algorithm
    if algorithm is not None and algorithm not in ALGORITHMS:
        known = f"expected one of {', '.join(ALGORITHMS)}; {DEFAULT_ALGORITHM} is used"
        yield "SortingAlgorithmUnknown", f"topologySortingAlgorithm: found {algorithm!r}, {known}"
    if pods and spec.num_members is not None and spec.num_members != pods:
        there = "is 1 pod" if pods == 1 else f"are {pods} pods"
        yield "NumMembers", f"numMembers is {spec.num_members}, there {there}; it decides nothing, these pods count"
    if costs_matter and (absent := _without_cost(spec)):
        meaning = "counts as 0: on one node or in one zone"
        yield "MaxNetworkCostAbsent", f"maxNetworkCost of {counted(absent)} is left out and {meaning}"


def note_network(network: Network | None, applications: Mapping[Key, Application], findings: Findings) -> None:
    """Note faults of the network that dependencies look at, or its absence."""
    if network is None:
        before = "there is no NetworkTopology, so C8, C9 and O3 do not apply to "
        for key in (key for key, each in applications.items() if each.app_group.dependencies):
            findings.several("NoNetworkTopology", f"AppGroup {key}", "", before)
        return
    _note_nodes(network, findings)
    subject = f"NetworkTopology {network.topology}"
    for code, message in (*_one_way(network), *_regions_and_zones(network), *_shared_zones(network)):
        findings.add(code, subject, f"{subject}: {message}")


def _note_nodes(network: Network, findings: Findings) -> None:
    apart = f": without the label {REGION_LABEL}, each a place of its own that costs {UNKNOWN_COST} from anywhere"
    for name, area in network.areas.items():
        together = f": without the label {ZONE_LABEL}, taken together as one zone of region {area.region}"
        if not area.region:
            findings.several("NodeWithoutRegion", f"Node {name}", apart)
        elif not area.zone:
            findings.several("NodeWithoutZone", f"Node {name}", together)


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


def _note_unlimited_bandwidth(pods: Iterable[PodManifest], instance: Instance, findings: Findings) -> None:
    if not any(pod.requests[BANDWIDTH] for pod in instance.pods.values()):
        return
    for pod in pods:
        if instance.pods[Key(pod.namespace, pod.name)].requests[BANDWIDTH]:
            missing = [name for name in (INGRESS, EGRESS) if name not in (pod.metadata.annotations or {})]
            lacks = f"without the annotation {' and '.join(missing)}, so nothing holds the pod to it"
            if missing:
                subject = f"Pod {pod.namespace}/{pod.name}"
                findings.several("BandwidthNotLimited", subject, f": request of {BANDWIDTH} {lacks}")


def _note_inadmissible(pods: Iterable[PodManifest], findings: Findings) -> None:
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


_SHARES = ("weight", "guarantee", "deserved", "priority")
_DISKS = {
    "aws_elastic_block_store": "awsElasticBlockStore",
    "azure_disk": "azureDisk",
    "cinder": "cinder",
    "gce_persistent_disk": "gcePersistentDisk",
    "iscsi": "iscsi",
    "rbd": "rbd",
}
#: Kind to the controller of its own, as ``spec.managedBy`` names it.
_OWN_CONTROLLERS = {"Job": "kubernetes.io/job-controller", "JobSet": "jobset.sigs.k8s.io/jobset-controller"}
#: How quotas spell requests, and the limits and counts that no pod asks for.
_REQUESTS, _NOT_ASKED = "requests.", ("limits.", "count/")


def _note_ignored_fields(instance: Instance, objects: Objects, entries: Sequence[PodEntry], findings: Findings) -> None:
    _note_least_resources(instance, objects, entries, findings)
    asked = {name for pod in instance.pending for name in (pod.queue, *instance.queue_path(pod.queue)) if name}
    _note_queue_shares(asked, objects.queues, findings)
    _note_dequeueing(asked, objects.queues, findings)
    for pod in (entry.pod for entry in entries if entry.state is PodState.PENDING):
        for field, what in _of_pod(pod):
            findings.several("FieldIgnored", f"Pod {pod.namespace}/{pod.name}", f": {field} {what}")


def note_managed_elsewhere(made: Expansion, findings: Findings) -> None:
    """Note workloads whose pods other controllers make, and policies of parts of a set."""
    for owner in {id(each.owner): each.owner for each in made.blueprints}.values():
        subject = f"{owner.kind} {owner.namespace}/{owner.name}"
        for field, what in _of_workload(owner):
            findings.add("FieldIgnored", subject, f"{subject}: spec.{field} {what}")


def _of_workload(owner: NamespacedObject) -> Iterator[tuple[str, str]]:
    from placer.kube.apps import JobSpec
    from placer.kube.workload_sets import JobSetSpec

    spec = getattr(owner, "spec", None)
    if not isinstance(spec, JobSpec | JobSetSpec):
        return
    managed = spec.managed_by
    if managed and managed != _OWN_CONTROLLERS[owner.kind]:
        yield "managedBy", f"names {managed}, which may make no pods in this cluster: they are made all the same"
    for job in (spec.replicated_jobs or ()) if isinstance(spec, JobSetSpec) else ():
        if job.scheduling is not None:
            yield f"replicatedJobs[{job.name}].scheduling", "decides nothing: spec.scheduling of the set does"


def _of_pod(pod: PodManifest) -> Iterator[tuple[str, str]]:
    name = pod.spec.runtime_class_name
    if name and pod.metadata.uid is None and not pod.spec.overhead:  # an API server writes them into the pods it admits
        yield (
            "spec.runtimeClassName",
            f"{name} decides nothing: overhead and node selector of its RuntimeClass are not read",
        )
    for volume in pod.spec.volumes or ():
        for attribute, field in _DISKS.items():
            if getattr(volume, attribute) is not None:
                yield f"spec.volumes[].{field}", "decides nothing: how many pods and nodes may use the disk is not read"


# ------------------------------------------------------------------------------------------------------------- groups


def _note_least_resources(
    instance: Instance, objects: Objects, entries: Iterable[PodEntry], findings: Findings
) -> None:
    least = dict(_least_resources(instance, objects))
    members: dict[GroupKey, list[Resources]] = defaultdict(list)
    for entry in entries if least else ():
        if entry.group in least:
            members[entry.group].append(pod_requests(entry.pod.spec))
    for key, wanted in least.items():
        more = list(_more(wanted, members[key]))
        if more:
            pods = f"{len(members[key]):,} pod{'' if len(members[key]) == 1 else 's'}"
            asked = f"{key}: spec.minResources asks for {more[0][0]}, its {pods} for {more[0][1]}"
            others = f" ({len(more) - 1} more likewise)" if len(more) > 1 else ""
            findings.add("FieldIgnored", str(key), f"{asked}{others}, and decides nothing: minMember does")


def _least_resources(instance: Instance, objects: Objects) -> Iterator[tuple[GroupKey, Quantities]]:
    by_api = ((VOLCANO, objects.pod_groups), (COSCHEDULING, objects.coscheduling_pod_groups))
    for api_group, written in by_api:
        for each in written:
            key = GroupKey(api_group, each.namespace, each.name)
            wanted = each.spec.min_resources if each.spec is not None else None
            if wanted and key in instance.groups and instance.groups[key].pending:
                yield key, wanted


def _more(wanted: Quantities, asked: Sequence[Resources]) -> Iterator[tuple[str, str]]:
    for name, nano in sorted(wanted.items()):
        resource = name.removeprefix(_REQUESTS)
        if resource.startswith(_NOT_ASKED):
            continue
        amount, total = from_nano(resource, nano), sum(each[resource] for each in asked)
        if amount > total:
            yield f"{resource} {format_amount(resource, amount)}", format_amount(resource, total)


# ------------------------------------------------------------------------------------------------------------- queues


def _note_queue_shares(asked: set[str], queues: Iterable[QueueManifest], findings: Findings) -> None:
    given = {(field, f"Queue {each.name}") for each in queues for field in _shares(each, each.name in asked)}
    if asked and given:
        subjects = {subject for _, subject in given}
        fields = [field for field in _SHARES if any(each == field for each, _ in given)]
        verb = "decides" if len(given) == 1 else "decide"
        what = f"{' and '.join(fields)} of {counted(subjects)} {verb} nothing yet"
        findings.add("QueueShareIgnored", min(subjects), f"{what}: priority of pods and capability do")


def _shares(queue: QueueManifest, asked: bool) -> Iterator[str]:
    spec = queue.spec
    if spec is None:
        return
    if _is_something(spec.guarantee.resource if spec.guarantee is not None else None):
        yield "guarantee"
    if asked:
        given = {"weight": spec.weight not in (None, 1), "deserved": _is_something(spec.deserved)}
        yield from (field for field, is_given in (*given.items(), ("priority", spec.priority)) if is_given)


def _is_something(amounts: Quantities | None) -> bool:
    return any((amounts or {}).values())


def _note_dequeueing(asked: set[str], queues: Iterable[QueueManifest], findings: Findings) -> None:
    after = ": spec.dequeueStrategy fifo decides nothing: smaller groups pass those that wait"
    for each in queues:
        if each.name in asked and each.spec is not None and (each.spec.dequeue_strategy or "").endswith("fifo"):
            findings.several("FieldIgnored", f"Queue {each.name}", after)


_READ_HERE = [mark for mark in MARKS if "Pod" in mark.on and mark.place in (Place.LABEL, Place.ANNOTATION)]
_CODES: tuple[FindingCode, ...] = ("FieldIgnored", "PreferenceIgnored")
#: Mark of pods to the kinds of other objects on which it is read, too.
_ELSEWHERE: dict[str, set[str]] = {key: set() for key in (*GROUP_ANNOTATIONS, *GROUP_LABELS, QUEUE_ANNOTATION)}
for _mark in _READ_HERE:
    if not _mark.reading.startswith(_CODES):
        _ELSEWHERE.setdefault(_mark.name, set()).update(_mark.on)
#: Findings of ``unread_kinds`` cover these marks wherever they stand.
_QUEUES = frozenset(mark for limit in LIMITS for mark in (*limit.marks, *limit.plain_marks))
_NOTES_ONLY = ANNOTATIONS_ONLY | {QUEUE_ANNOTATION}
_OF_GANGS = frozenset(mark.name for mark in _READ_HERE if mark.meaning in (Meaning.GANG, Meaning.REFUSED)).difference(
    (*SHARES, *KAI_TOPOLOGIES, KAI_GROUP, *VOLCANO_GANG)
)


def _note_marks_ignored(pods: Iterable[PodManifest], findings: Findings) -> None:
    for pod in pods:
        name, notes = f"Pod {pod.namespace}/{pod.name}", pod.metadata.annotations or {}
        if LEFT_OUT in notes:
            findings.several("FieldIgnored", name, " decides nothing", "text beyond 64 KiB of ")
        for _, words in _ignored(pod.metadata.labels or {}, notes):
            findings.several("FieldIgnored", name, " decides nothing", f"{words} of ")


def _note_marks_around(instance: Instance, objects: Objects, findings: Findings) -> None:
    asked = {pod.queue for pod in instance.pending}
    others = (*objects.nodes, *(each for each in objects.queues if each.name in asked)) if asked else ()
    for each in others:
        for _, words in decide_nothing(each.kind, each.metadata.labels, each.metadata.annotations):
            findings.several("FieldIgnored", f"{each.kind} {each.name}", " decides nothing", f"{words} of ")


def _ignored(labels: Mapping[str, str], notes: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    yield from ((key, f"label {key}, which is read as an annotation only,") for key in labels.keys() & _NOTES_ONLY)
    yield from ((key, f"annotation {key}, which is read as a label only,") for key in notes.keys() & LABELS_ONLY)
    yield from decide_nothing("Pod", labels, notes)


def _words(labels: Mapping[str, str], notes: Mapping[str, str], keys: Container[str]) -> Iterator[tuple[str, str]]:
    for word, values in (("label", labels), ("annotation", notes)):
        yield from ((key, f"{word} {key}") for key in values if key in keys)


def _note_marks_above(pods: Iterable[PodManifest], objects: Objects, findings: Findings) -> None:
    own = {
        maker: found
        for maker, labels, notes in all_workloads(objects)
        if (found := [*_unread_above(maker, labels, notes)])
    }
    makers = PodMakers((*objects.replica_sets, *objects.jobs))
    for pod in pods if own else ():
        there = {**(pod.metadata.labels or {}), **(pod.metadata.annotations or {})}
        for maker in makers.with_sets(pod):
            for key, code, before, after in own.get(maker, ()):
                if key not in there:
                    findings.several(code, str(maker), f" decides nothing{after}", before)


def _unread_above(
    maker: Maker, labels: Mapping[str, str], notes: Mapping[str, str]
) -> Iterator[tuple[str, FindingCode, str, str]]:
    told = set(_QUEUES)
    preferences = decide_nothing("Pod", labels, notes, "PreferenceIgnored")
    for code, found in zip(_CODES, (_ignored(labels, notes), preferences), strict=True):
        for key, words in found:
            if key not in _QUEUES:
                told.add(key)
                yield key, code, f"{words} of ", ""
    elsewhere = ": it is read in the metadata of pods, as spec.template states it"
    for key, words in _words(labels, notes, _ELSEWHERE):
        if key not in told and maker.read_as.isdisjoint(_ELSEWHERE[key]):
            yield key, "FieldIgnored", f"{words} in the metadata of ", elsewhere


def _note_marks_of_daemons(pods: Iterable[PodManifest], findings: Findings) -> None:
    daemons = [pod for pod in pods if is_daemon(pod.metadata)]
    counts = Counter((_daemon(pod), words) for pod in daemons if (words := _of_gangs(pod)))
    for (maker, marks), count in counts.items():
        these = "" if maker.startswith("static") else f"{count:,} pod{'s' * (count > 1)} of "
        message = f"{marks} of {these}{maker}: in no gang, since each pod belongs to its node"
        findings.add("FieldIgnored", maker.removeprefix("static "), message)


def _of_gangs(pod: PodManifest) -> str:
    said = _words(pod.metadata.labels or {}, pod.metadata.annotations or {}, _OF_GANGS)
    return " and ".join(sorted(words for _, words in said))


def _daemon(pod: PodManifest) -> str:
    owner = controller(pod.metadata)
    if owner is not None and owner.kind == "DaemonSet":
        return f"DaemonSet {pod.namespace}/{owner.name}"
    return f"static Pod {pod.namespace}/{pod.name}"
