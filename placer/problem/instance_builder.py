"""From Kubernetes objects to an instance (models/reading.md), in one place to start from.

Everything is sorted by name first, so the order of the input leaves no trace in the result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING

from placer.base.errors import BadInstance, Fault
from placer.base.quantity import Resources
from placer.kube.kinds import BY_ATTRIBUTE
from placer.kube.manifests.validation import KeptObjects
from placer.kube.marks import KUEUE_REQUIRED
from placer.kube.pod import PodManifest
from placer.problem import notices
from placer.problem.communication import Network
from placer.problem.disruptions import ProtectingMarks, Protection, policy_budgets, read_budgets
from placer.problem.eligibility import ConstraintsPool, host_ports, label_mark, numa_marks, rejection_marks
from placer.problem.expansion import Expansion, expand
from placer.problem.findings import Findings
from placer.problem.gangs import (
    COSCHEDULING,
    KAI,
    UPSTREAM,
    VOLCANO,
    Gang,
    GangReader,
    PodEntry,
    assemble,
    call_roster,
    created,
    group_priority,
    workload_gangs,
)
from placer.problem.instance import LEVELS, Group, Instance, Pod, PodState, Policy, groups_of_one
from placer.problem.keys import GroupKey, Key
from placer.problem.kueue_flavors import note_topologies
from placer.problem.mark_gangs import Bearer, added_refusals, inherited_marks, read_marks
from placer.problem.neighbour_demand import (
    NeighboursPool,
    exclusive_job_keys,
    pod_set_label,
    pod_set_units,
    read_namespaces,
    too_many_neighbours,
    units_of_group,
)
from placer.problem.neighbours import Neighbours
from placer.problem.network_objects import (
    AppGroupMember,
    Application,
    count_app_group_members,
    read_app_group_members,
    read_app_groups,
    read_cost_lists,
    read_network,
)
from placer.problem.node_resource_topology import DemandPool, caught_up, read_numa
from placer.problem.nodes import DEFAULT_OS, OS_LABEL, Constraints, Node, Taint, TopologyTree
from placer.problem.pod_states import Ownership, is_daemon, pending_by_scheduler, set_aside
from placer.problem.queues import Priorities, Queues
from placer.problem.requests import pod_requests
from placer.problem.tier_tree import TierNames, label_tree, read_tree
from placer.problem.unread import (
    absent_work,
    hold_back,
    note_limits_not_read,
    note_pods_not_made,
    note_unread,
    without_unread_room,
)
from placer.problem.unsupported import Refusals, Volumes, claimed, scheduled_jobs, text_bytes

if TYPE_CHECKING:
    from placer.kube import core
    from placer.kube import policy as kube
    from placer.kube.base import NamespacedObject
    from placer.kube.manifests import Objects


class KeptPods:
    """Pods by their manifests and all else that they were made of; one with a finding is not kept."""

    def __init__(self) -> None:
        self._around: object = None
        self._known: dict[int, tuple[PodManifest, object, Pod]] = {}
        self._used: set[int] = set()

    def among(self, around: object) -> None:
        """Make pods from now on with these around them, compared by value."""
        if around != self._around:
            self._around = around
            self._known.clear()

    def pod(self, manifest: PodManifest, depends_on: object, make: Callable[[], Pod], findings: Findings) -> Pod:
        """A kept pod, else a new one; ``manifest`` is the same object as long as nothing in it changes."""
        known = self._known.get(id(manifest))
        if known is None or known[1] != depends_on:
            before = findings.noted
            known = manifest, depends_on, make()
            if findings.noted != before:
                self._known.pop(id(manifest), None)
                return known[2]
            self._known[id(manifest)] = known
        self._used.add(id(manifest))
        return known[2]

    def forget_unused(self) -> None:
        """Forget the pods that were not asked for since this was called last."""
        for place in self._known.keys() - self._used:
            del self._known[place]
        self._used.clear()


@dataclass(frozen=True)
class KeptFacts:
    """What a loop knows of single objects from one pass to the next."""

    objects: KeptObjects = field(default_factory=KeptObjects)
    pods: KeptPods = field(default_factory=KeptPods)

    def forget_unused(self) -> None:
        """Forget what was not asked for since this was called last."""
        self.objects.forget_unused()
        self.pods.forget_unused()


#: PreferNoSchedule keeps no pod off.
_EFFECTS = ("NoSchedule", "NoExecute")


def read_nodes(written: Iterable[core.NodeManifest]) -> dict[str, Node]:
    """Read nodes, by name; one without a Ready condition is ready."""
    vectors: dict[frozenset[tuple[str, int]], Resources] = {}
    nodes = {}
    for node in sorted(written, key=lambda each: each.name):
        amounts = frozenset(node.allocatable.items())
        if amounts not in vectors:
            vectors[amounts] = Resources.from_nano(dict(amounts))
        nodes[node.name] = Node(
            name=node.name,
            allocatable=vectors[amounts],
            labels=node.metadata.labels or {},
            taints=_taints(node),
            unschedulable=bool(node.spec is not None and node.spec.unschedulable),
            ready=_ready(node),
        )
    return nodes


def _taints(node: core.NodeManifest) -> tuple[Taint, ...]:
    taints = (node.spec.taints if node.spec is not None else None) or ()
    return tuple(sorted({Taint(each.key, each.value or "", each.effect) for each in taints if each.effect in _EFFECTS}))


def _ready(node: core.NodeManifest) -> bool:
    conditions = (node.status.conditions if node.status is not None else None) or ()
    return all(each.status == "True" for each in conditions if each.type == "Ready")


def read_policy(written: Sequence[kube.PolicyManifest]) -> Policy:
    """Read the policy of an instance, else the default."""
    spec = written[0].spec if written else None
    return _policy(spec) if spec is not None else Policy()


def _policy(spec: kube.PolicySpec) -> Policy:
    return Policy(
        levels=LEVELS if spec.levels is None else spec.levels,
        network_cost=spec.network_cost or "all",
        network_topology=spec.network.topology if spec.network is not None else None,
        network_weights=spec.network.weights if spec.network is not None else None,
        topology_keys=spec.topology_keys or (),
        locality_all=spec.locality == "all",
        resource_weights={name: Fraction(weight) for name, weight in sorted((spec.resource_weights or {}).items())},
        rules_off=frozenset(rule for rule in ("C8", "C9", "C10", "C11") if getattr(spec.rules, rule.lower(), None)),
        gangs_of_owners=spec.gangs == "owners",
        class_decides=spec.group_priority == "class",
        evicts=getattr(spec.disruption, "evict", None) == "lower-priority",
        moves=getattr(spec.disruption, "move", None) == "fewest",
    )


@dataclass(frozen=True, slots=True)
class _PodReader:
    """``sub_groups``: index in its group. ``demands``: None: no node has NUMA zones. ``own_leaders``: LeaderWorkerSets
    whose leaders have their own template.
    """

    nodes: Mapping[str, Node]
    gangs: Mapping[GroupKey, Gang]
    groups: Mapping[GroupKey, Group]
    sub_groups: Mapping[Key, int]
    members: Mapping[Key, AppGroupMember]
    queues: Queues
    refusals: Refusals
    findings: Findings
    protection: Protection
    priorities: Priorities
    demands: DemandPool | None = None
    own_leaders: Set[Key] = frozenset()
    class_decides: bool = False
    pool: ConstraintsPool = field(default_factory=ConstraintsPool)
    neighbours: NeighboursPool = field(default_factory=NeighboursPool)

    def read(self, entry: PodEntry, kept: KeptPods | None = None) -> Pod:
        known = entry.group in self.groups and entry.state is not PodState.NOMINATED
        group = entry.group if known else None
        queue, node = self._queue(entry, group), self._node(entry)
        make = partial(self._made, entry, group, queue, node)
        if kept is None or any(claimed(entry.pod)):  # whether a claim can be had depends on other pods
            return make()
        around = (group, queue, self.queues.marks(queue), self.members.get(entry.key), *self._of_group(group))
        own = entry.state, entry.role, self.sub_groups.get(entry.key)
        return kept.pod(entry.pod, (*own, *around), make, self.findings)

    def _of_group(self, group: GroupKey | None) -> Iterator[object]:
        if group is not None:
            gang = self.gangs.get(group)
            yield self.groups[group].priority, self.refusals.gangs.get(group), self.protection.of_group(group)
            yield (gang.priority, gang.never_preempts, gang.topology_keys) if gang is not None else None

    def _made(self, entry: PodEntry, group: GroupKey | None, queue: str | None, node: str | None) -> Pod:
        pod, state = entry.pod, entry.state
        if state is None:
            raise ValueError(f"pod {entry.key} has ended")
        pending, gang = state is PodState.PENDING, self.gangs.get(group) if group is not None else None
        app_group, workload = self.members.get(entry.key, (None, None))
        requests = pod_requests(pod.spec, pod.status if state.on_node else None)
        if not pending:
            self._note_neighbours(entry)
        return Pod(
            namespace=entry.key.namespace,
            name=entry.key.name,
            state=state,
            requests=requests,
            constraints=self._constraints(pod, queue),
            host_ports=host_ports(pod.spec),
            node=node,
            priority=self._priority(entry),
            group=GroupKey("", *entry.key) if pending and group is None else group,
            sub_group=self.sub_groups.get(entry.key),
            role=entry.role,
            queue=queue,
            created=created(pod.metadata),
            daemon=is_daemon(pod.metadata),
            app_group=app_group,
            workload=workload,
            numa=self.demands.of(pod.spec) if self.demands is not None else None,
            labels=pod.metadata.labels or {},
            neighbours=self._neighbours(pod, gang),
            unsupported=self.refusals.of(pod, group, requests) if state in (PodState.PENDING, PodState.BOUND) else (),
            protected=self.protection.reason(pod, state, self._priority(entry), group),
            never_preempts=self._never_preempts(entry, gang),
            text_bytes=text_bytes(pod),
            running_priority=self._running_priority(entry, group, gang),
        )

    def _note_neighbours(self, entry: PodEntry) -> None:
        for wrong in too_many_neighbours(entry.pod.spec):
            self.findings.add("Unreadable", f"Pod {entry.key}", f"{wrong}; it keeps no other pod off")

    def _neighbours(self, pod: PodManifest, gang: Gang | None) -> Neighbours:
        units = units_of_group(gang.group.key, gang.topology_keys) if gang is not None else ()
        return self.neighbours.of(pod, (*units, *pod_set_units(pod, self.own_leaders)))

    def _priority(self, entry: PodEntry) -> int:
        return self.priorities.default if entry.stated is None else entry.stated

    def _running_priority(self, entry: PodEntry, group: GroupKey | None, gang: Gang | None) -> int | None:
        if group is None:
            return None
        own = self.groups[group].priority if entry.stated is None else entry.stated
        if self.class_decides and gang is not None and gang.priority is not None:
            own = max(own, gang.priority)
        return None if own == self._priority(entry) else own

    def _never_preempts(self, entry: PodEntry, gang: Gang | None) -> bool:
        if gang is not None and gang.never_preempts is not None:
            return gang.never_preempts
        spec = entry.pod.spec
        return bool(self.priorities.never_preempts(spec.preemption_policy, spec.priority_class_name))

    def _node(self, entry: PodEntry) -> str | None:
        name = node_of(entry)
        node = self.nodes.get(name or "")
        if node is None and name is not None and entry.state is not None and entry.state.on_node:
            self.findings.missing(f"Node {name}", f"Pod {entry.key}")
        return name if node is None else node.name

    def _constraints(self, pod: PodManifest, queue: str | None) -> Constraints:
        label = pod_set_label(pod)
        alone = (label_mark(label, KUEUE_REQUIRED),) if label else ()
        marks = (*self.queues.marks(queue), *numa_marks(pod), *rejection_marks(pod), *alone)
        return self.pool.of(pod.spec, self.refusals.volumes.affinities(pod), pod.metadata.labels, marks)

    def _queue(self, entry: PodEntry, group: GroupKey | None) -> str | None:
        if entry.state is PodState.NOMINATED:
            return None
        if group is not None and group.api_group == VOLCANO and group in self.gangs:
            return self.groups[group].queue
        return self.queues.of_pod(entry.pod.metadata, entry.key)


def node_of(entry: PodEntry) -> str | None:
    """Name of the node that a pod is on, or where another scheduler holds room for it."""
    pod = entry.pod
    if entry.state is PodState.NOMINATED and pod.status is not None:
        return pod.status.nominated_node_name
    return pod.spec.node_name or None


def make_instance(
    objects: Objects,
    *,
    scheduler_name: str | None = None,
    cluster: bool = False,
    gates: bool = False,
    kept: KeptPods | None = None,
) -> Instance:
    """Make the instance that a set of Kubernetes objects states, with every finding, sorted.

    ``scheduler_name``: whose pending pods are ours, ``*``: any; None: any offline, ``placer`` in a cluster.
    ``cluster``: only workloads that came by ``--with`` are expanded. ``gates``: pods with the hold gate alone are ours.

    Raises
    ------
    BadInstance
        Pods are pending and there is no Node at all.
    """
    findings = Findings()
    note_unread(objects, findings)
    made = expand(objects, only_added=cluster)
    findings.update(made.findings)
    note_pods_not_made(objects, findings, cluster=cluster)
    notices.note_managed_elsewhere(made, findings)
    policy = read_policy(objects.policies)
    demands = DemandPool()
    nodes = _nodes(objects, policy, demands, findings)
    topology, tier_names = _topology(objects, policy, nodes, findings)
    queues = Queues(objects.queues, objects.namespaces, findings)
    priorities = Priorities(objects.priority_classes, findings)
    pods_written = inherited_marks(objects, (*objects.pods, *made.pods))
    reader = GangReader(tier_names, queues, priorities, policy.locality_all, findings, _unread_gangs(objects))
    declared = _gangs(objects, made, pods_written, reader)
    gangs = _marked_gangs(pods_written, made if cluster else None, reader) | declared
    ownership = Ownership(scheduler_name, cluster, gates)
    entries = call_roster(pods_written, ownership, gangs, priorities, findings, owners=policy.gangs_of_owners)
    gangs = _in_use(gangs, {*declared, *(entry.group for entry in entries)})
    groups, sub_groups = _groups(gangs, entries, reader, class_decides=policy.class_decides)
    present = [entry for entry in entries if entry.state is not None]
    _check_nodes(nodes, present)
    applications = read_app_groups(objects.app_groups, findings)
    members = read_app_group_members(pods_written, applications, objects.replica_sets, findings)
    network = _network(objects, policy, nodes, applications, count_app_group_members(pods_written, members), findings)
    unsupported = _unsupported(_bearers(objects, made, entries), groups, gangs, findings)
    refusals = _refusals(objects, nodes, present, unsupported, findings)
    namespaces = read_namespaces(objects.namespaces)
    protection = Protection(objects.policies, namespaces, ProtectingMarks.of(objects))
    zoned = demands if _has_zones(nodes) else None
    reads = _PodReader(
        *(nodes, gangs, groups, sub_groups, members, queues, refusals, findings, protection, priorities, zoned),
        _own_leaders(objects),
        policy.class_decides,
        neighbours=NeighboursPool(exclusive := exclusive_job_keys(entry.pod for entry in present)),
    )
    if kept is not None:
        kept.among((scheduler_name, cluster, gates, zoned is None, exclusive, *_around(objects, refusals)))
    pods = {entry.key: reads.read(entry, kept) for entry in present}
    groups = hold_back(
        groups | groups_of_one(pods.values()), pods, present, queues.by_name, objects, findings, policy.rules_off
    )
    instance = Instance(
        nodes=nodes,
        pods=pods,
        groups=dict(sorted(groups.items())),
        topology=topology,
        queues=queues.by_name,
        policy=policy,
        budgets=(*read_budgets(objects.pod_disruption_budgets, pods), *policy_budgets(objects.policies, pods)),
        app_groups={key: each.app_group for key, each in applications.items()},
        network=network,
        network_costs=read_cost_lists(objects.network_topologies, nodes, objects.config_maps),
        namespaces=namespaces,
        digest=objects.sha256,
        skipped=objects.skipped,
        scheduler_name=ownership.wanted,
        schedulers=pending_by_scheduler(pods_written, ownership),
        of_cluster=cluster,
        set_aside=set_aside(pods_written, ownership),
        absent_work=absent_work(objects, ownership),
        expanded=_expanded(made, pods),
    )
    notices.note_all(instance, objects, entries, findings)
    note_limits_not_read(present, made, objects, findings, cluster=cluster)
    note_topologies(objects, policy, findings)
    return replace(instance, findings=findings.all())


def _check_nodes(nodes: Mapping[str, Node], entries: Iterable[PodEntry]) -> None:
    pending = sum(entry.state is PodState.PENDING for entry in entries)
    if pending and not nodes:
        raise BadInstance([Fault("instance", None, "Node", "", "none", f"at least one: pending pods {pending}")])


def _in_use(gangs: Mapping[GroupKey, Gang], used: Container[GroupKey | None]) -> dict[GroupKey, Gang]:
    return {key: gang for key, gang in gangs.items() if key in used}


def _has_zones(nodes: Mapping[str, Node]) -> bool:
    return any(node.numa is not None for node in nodes.values())


def _own_leaders(objects: Objects) -> Set[Key]:
    sets = objects.leader_worker_sets
    return {Key(each.namespace, each.name) for each in sets if each.spec.leader_worker_template.leader_template}


def _unsupported(
    bearers: Iterable[Bearer], groups: Mapping[GroupKey, Group], gangs: Mapping[GroupKey, Gang], findings: Findings
) -> Mapping[GroupKey, str]:
    unsupported = added_refusals(bearers, groups, findings)
    unsupported |= {key: gang.unsupported for key, gang in gangs.items() if gang.unsupported}
    for key, why in unsupported.items():
        if groups[key].pending:
            findings.add("UnsupportedKind", str(key), f"{key} waits as Unsupported: {why}")
    return unsupported


def _expanded(made: Expansion, pods: Mapping[Key, Pod]) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for each in made.blueprints:
        owner = each.owner
        keys = (Key(owner.namespace, name) for _, name in each.names())
        waiting = sum(key in pods and pods[key].state is PodState.PENDING for key in keys)
        counts[f"{owner.kind} {owner.namespace}/{owner.name}"] += waiting
    return dict(sorted((+counts).items()))


#: Kinds of which a pod depends on its own alone, or none does.
_APART = frozenset(
    (
        *("nodes", "pods", "queues", "hyper_nodes", "node_resource_topologies", "network_topologies", "config_maps"),
        *("pod_groups", "coscheduling_pod_groups", "upstream_pod_groups", "kai_pod_groups", "app_groups"),
        *("persistent_volumes", "persistent_volume_claims", "pod_disruption_budgets"),
    )
)


def _around(objects: Objects, refusals: Refusals) -> Iterator[object]:
    yield from (getattr(objects, name) for name in BY_ATTRIBUTE if name not in _APART)
    yield refusals.systems, refusals.scheduled_jobs, refusals.ending, refusals.devices


def _nodes(objects: Objects, policy: Policy, demands: DemandPool, findings: Findings) -> dict[str, Node]:
    nodes = read_nodes(objects.nodes)
    if objects.unread:
        nodes = without_unread_room(nodes, objects)
    if not objects.node_resource_topologies:
        return nodes
    off = "C10" in policy.rules_off
    stated = read_numa(objects.node_resource_topologies, nodes, Findings() if off else findings)
    policies = {name: numa.policy for name, numa in stated.items()}
    nodes = {name: replace(node, topology_policy=policies.get(name, "")) for name, node in nodes.items()}
    if off:
        return nodes
    zones = caught_up(stated, objects.node_resource_topologies, objects.pods, demands, findings)
    return {name: replace(node, numa=zones.get(name)) for name, node in nodes.items()}


def _topology(
    objects: Objects, policy: Policy, nodes: Mapping[str, Node], findings: Findings
) -> tuple[TopologyTree, TierNames]:
    if objects.hyper_nodes or not policy.topology_keys:
        named = ((each.name, each.spec.tier, each.spec.tier_name or "") for each in objects.hyper_nodes)
        return read_tree(objects.hyper_nodes, nodes, findings), TierNames(named, findings)
    keys = policy.topology_keys
    return label_tree(keys, nodes), TierNames((("", tier, key) for tier, key in enumerate(keys, 1)), findings)


_INCUBATOR = "scheduling.incubator.k8s.io"


def _unread_gangs(objects: Objects) -> Set[GroupKey]:
    read_as = dict.fromkeys(BY_ATTRIBUTE["coscheduling_pod_groups"].groups, COSCHEDULING) | {_INCUBATOR: VOLCANO}
    return {
        GroupKey(read_as.get(group, group), namespace or "default", name)
        for group, kind, namespace, name in objects.skipped_names
        if kind == "PodGroup" and group in (UPSTREAM, KAI, VOLCANO, *read_as)
    }


def _marked_gangs(pods: Iterable[PodManifest], simulated: Expansion | None, reader: GangReader) -> dict[GroupKey, Gang]:
    """In a cluster Volcano's controller makes the PodGroup of its mark, so pods outside ``simulated`` wait
    without it.
    """
    gangs, apart = [], {Key(pod.namespace, pod.name) for pod in simulated.pods} if simulated is not None else set()
    for read in read_marks(pods, reader.findings):
        missing = None
        if read.key.api_group == VOLCANO and simulated is not None:
            there = next((pod for pod in read.pods if Key(pod.namespace, pod.name) not in apart), None)
            if there is not None:
                mark = f"annotation {read.stated} of Pod {there.namespace}/{there.name}"
                missing = f"{read.key} is not there yet, which Volcano's controller makes for the {mark}"
        gangs.append(reader.of_marks(read, missing))
    return {gang.group.key: gang for gang in gangs}


def _bearers(objects: Objects, made: Expansion, entries: Iterable[PodEntry]) -> Iterator[Bearer]:
    written: dict[str, Iterable[NamespacedObject]] = {
        VOLCANO: (*objects.pod_groups, *made.pod_groups),
        COSCHEDULING: objects.coscheduling_pod_groups,
        UPSTREAM: (*objects.upstream_pod_groups, *made.upstream_pod_groups),
        KAI: objects.kai_pod_groups,
    }
    for api_group, each in written.items():
        for group in each:
            key = GroupKey(api_group, group.namespace, group.name)
            yield Bearer(key, str(key), group.metadata)
    for entry in entries:
        yield Bearer(entry.group, f"Pod {entry.key}", entry.pod.metadata)


def _gangs(objects: Objects, made: Expansion, pods: Iterable[PodManifest], reader: GangReader) -> dict[GroupKey, Gang]:
    # The PodGroup under the API group in use comes last, so that it counts.
    by_age = sorted(objects.coscheduling_pod_groups, key=lambda each: (each.group == COSCHEDULING, each.group))
    of_volcano = (*objects.pod_groups, *made.pod_groups)
    gangs = [*map(reader.of_volcano, of_volcano), *map(reader.of_coscheduling, by_age)]
    gangs += map(reader.of_upstream, (*objects.upstream_pod_groups, *made.upstream_pod_groups))
    gangs += map(reader.of_kai, objects.kai_pod_groups)
    gangs += (reader.absent(key) for key in reader.unread)
    named = workload_gangs(pods) if objects.workloads else {}
    for workload in objects.workloads:
        gangs += reader.of_workload(workload, sorted(named.get(Key(workload.namespace, workload.name), ())))
    return {gang.group.key: gang for gang in gangs}


def _groups(
    gangs: Mapping[GroupKey, Gang], entries: Sequence[PodEntry], reader: GangReader, *, class_decides: bool
) -> tuple[dict[GroupKey, Group], dict[Key, int]]:
    members: dict[GroupKey, list[PodEntry]] = {key: [] for key in gangs}
    for entry in entries:
        if entry.group is not None and entry.state not in (PodState.TERMINATING, PodState.NOMINATED):
            members.setdefault(entry.group, []).append(entry)
    groups: dict[GroupKey, Group] = {}
    sub_groups: dict[Key, int] = {}
    default, findings = reader.priorities.default, reader.findings
    for key, pods in members.items():
        gang = gangs.get(key) or reader.undeclared(key, pods)
        priority = group_priority(gang, pods, default, findings, class_decides=class_decides)
        groups[key], indices = assemble(gang, pods, priority)
        sub_groups.update((entry.key, indices[entry.slot]) for entry in pods if entry.slot is not None)
    return groups, sub_groups


def _network(
    objects: Objects,
    policy: Policy,
    nodes: Mapping[str, Node],
    applications: Mapping[Key, Application],
    sizes: Mapping[Key, int],
    findings: Findings,
) -> Network | None:
    matters = notices.network_matters(policy, applications)
    told = findings if matters else Findings()
    network = read_network(objects.network_topologies, policy, nodes, told, objects.config_maps)
    costs_matter = matters and network is not None and "C8" not in policy.rules_off
    notices.note_app_groups(applications, sizes, costs_matter, findings)
    if matters:
        notices.note_network(network, applications, findings)
    return network


def _refusals(
    objects: Objects,
    nodes: Mapping[str, Node],
    entries: Sequence[PodEntry],
    gangs: Mapping[GroupKey, str],
    findings: Findings,
) -> Refusals:
    users = [entry.pod for entry in entries]
    return Refusals(
        volumes=Volumes(objects.persistent_volume_claims, objects.persistent_volumes, users, findings),
        systems=frozenset(node.labels.get(OS_LABEL, DEFAULT_OS) for node in nodes.values()),
        scheduled_jobs=scheduled_jobs(objects.jobs),
        gangs=gangs,
        ending=frozenset(each.name for each in objects.namespaces if each.metadata.deletion_timestamp is not None),
        devices={
            resource: name
            for resource, name in objects.device_resources.items()
            if not any(node.allocatable[resource] for node in nodes.values())
        },
    )
