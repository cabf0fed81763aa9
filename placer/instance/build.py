"""From Kubernetes objects to an instance: the spec's reading of every object, in one place to start from.

Everything is sorted by name before anything is decided, so the order of the input leaves no trace in the result.

=================================================  ========================================================
modules                                            what they read
=================================================  ========================================================
``policies``, ``nodes``, ``queues``, ``priority``  Policy; Node; Queue; PriorityClass
``numa``                                           NodeResourceTopology, and what pods ask of zones
``members``, ``patterns``, ``tree``                HyperNode to the tier tree
``label_tree``                                     the tree from node labels instead
``tier_names``, ``gangs``                          PodGroup, before its pods are known
``state``, ``roster``                              which pods count, and in which group, role and subgroup
``pods``, ``requests``, ``eligibility``            the pods themselves
``refusal``, ``volumes``, ``anti_affinity``        what is not modelled and refused (C4)
``network``                                        AppGroup and NetworkTopology, and which pod is of which workload
``ignored``, ``notices``, ``standing``             findings about the whole
=================================================  ========================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from placer.errors import BadInstance, Fault
from placer.instance.anti_affinity import StandingAntiAffinity
from placer.instance.constraints import DEFAULT_OS, OS_LABEL
from placer.instance.expand import expand
from placer.instance.findings import Findings
from placer.instance.gangs import COSCHEDULING, Gang, GangReader
from placer.instance.group import Group, GroupKey
from placer.instance.ignored import note_ignored
from placer.instance.inadmissible import note_inadmissible
from placer.instance.label_tree import label_tree
from placer.instance.model import Instance
from placer.instance.network import Network
from placer.instance.network.app_groups import Application, read_app_groups
from placer.instance.network.members import count_members, read_members
from placer.instance.network.notices import (
    network_matters,
    note_app_groups,
    note_network,
    note_unlimited_bandwidth,
)
from placer.instance.network.topology import read_cost_lists, read_network
from placer.instance.node import Node
from placer.instance.nodes import read_nodes
from placer.instance.notices import (
    note_disruption,
    note_limits_without_tree,
    note_pods_not_made,
    note_preferences,
    note_queue_shares,
    note_unread_owners,
)
from placer.instance.numa.demand import DemandPool
from placer.instance.numa.lag import caught_up
from placer.instance.numa.read import read_numa
from placer.instance.pod import Key, PodState
from placer.instance.pods import PodReader, group_of_one, node_of
from placer.instance.policies import read_policy
from placer.instance.policy import Policy
from placer.instance.priority import Priorities
from placer.instance.queues import Queues
from placer.instance.refusal import Refusals, scheduled_jobs, upstream_gangs
from placer.instance.roster import Entry, assemble, call_roster, note_misplaced_names
from placer.instance.standing import note_broken_rules
from placer.instance.state import Ownership, set_aside
from placer.instance.tier_names import TierNames
from placer.instance.topology import TopologyTree
from placer.instance.tree import read_tree
from placer.instance.volumes import Volumes
from placer.kube import coscheduling, volcano

if TYPE_CHECKING:
    from placer.manifests import Objects

__all__ = ["build"]


def build(
    objects: Objects, *, scheduler_name: str | None = None, cluster: bool = False, gates: bool = False
) -> Instance:
    """Make the instance that a set of Kubernetes objects states.

    Parameters
    ----------
    objects
        The objects, read and each of them sound in itself; their order does not matter.
    scheduler_name
        Whose pending pods are ours, ``*``: any name; None: any name offline, ``placer`` in a cluster.
    cluster
        The objects are those of a live cluster: of workloads only those that came by ``--with`` are expanded.
    gates
        In a cluster: pods that carry the hold gate alone are ours (``--enforce gates``).

    Returns
    -------
    Instance
        With every finding, sorted.

    Raises
    ------
    BadInstance
        Pods are pending and there is no Node at all.
    """
    findings = Findings()
    made = expand(objects, only_added=cluster)
    findings.update(made.findings)
    note_pods_not_made(objects, findings, cluster=cluster)
    policy = read_policy(objects.policies)
    demands = DemandPool()
    nodes = _nodes(objects, policy, demands, findings)
    topology, tier_names = _topology(objects, policy, nodes, findings)
    queues = Queues(objects.queues, objects.namespaces, findings)
    priorities = Priorities(objects.priority_classes, findings)
    reader = GangReader(tier_names, queues, priorities, policy.locality_all, findings)
    gangs = _gangs((*objects.pod_groups, *made.pod_groups), objects.coscheduling_pod_groups, reader)
    pods_written = (*objects.pods, *made.pods)
    ownership = Ownership(scheduler_name, cluster, gates)
    entries = call_roster(pods_written, ownership, gangs, priorities, findings)
    groups, sub_groups = _groups(gangs, entries, reader)
    present = [entry for entry in entries if entry.state is not None]
    _check_nodes(nodes, present)
    applications = read_app_groups(objects.app_groups, findings)
    members = read_members(pods_written, applications, objects.replica_sets, findings)
    network = _network(objects, policy, nodes, applications, count_members(pods_written, members), findings)
    zones = {name: node.numa for name, node in nodes.items() if node.numa is not None}
    refusals = _refusals(objects, nodes, present, findings)
    reads = PodReader(nodes, gangs, groups, sub_groups, members, queues, refusals, findings, demands if zones else None)
    pods = {entry.key: reads.read(entry) for entry in present}
    groups |= {group.key: group for group in map(group_of_one, pods.values()) if group is not None}
    instance = Instance(
        nodes=nodes,
        pods=pods,
        groups=dict(sorted(groups.items())),
        topology=topology,
        queues=queues.by_name,
        policy=policy,
        app_groups={key: each.app_group for key, each in applications.items()},
        network=network,
        network_costs=read_cost_lists(objects.network_topologies, nodes, objects.config_maps),
        digest=objects.sha256,
        skipped=objects.skipped,
        scheduler_name=ownership.wanted,
        set_aside=set_aside(pods_written, ownership),
    )
    _note(instance, objects, present, findings)
    return replace(instance, findings=findings.all())


def _nodes(objects: Objects, policy: Policy, demands: DemandPool, findings: Findings) -> dict[str, Node]:
    """The nodes, with their NUMA zones as pods find them now; without, where nobody looks at zones."""
    nodes = read_nodes(objects.nodes)
    if "C10" in policy.rules_off or not objects.node_resource_topologies:
        return nodes
    stated = read_numa(objects.node_resource_topologies, nodes, findings)
    zones = caught_up(stated, objects.node_resource_topologies, objects.pods, demands, findings)
    return {name: replace(node, numa=zones.get(name)) for name, node in nodes.items()}


def _topology(
    objects: Objects, policy: Policy, nodes: Mapping[str, Node], findings: Findings
) -> tuple[TopologyTree, TierNames]:
    """The tree of the HyperNodes, or of the policy's node labels where there is none, and what its tierNames mean."""
    if objects.hyper_nodes or not policy.topology_keys:
        named = ((each.name, each.spec.tier, each.spec.tier_name or "") for each in objects.hyper_nodes)
        return read_tree(objects.hyper_nodes, nodes, findings), TierNames(named, findings)
    keys = policy.topology_keys
    return label_tree(keys, nodes), TierNames((("", tier, key) for tier, key in enumerate(keys, 1)), findings)


def _gangs(
    of_volcano: Iterable[volcano.PodGroupManifest],
    of_coscheduling: Iterable[coscheduling.CoschedulingPodGroupManifest],
    reader: GangReader,
) -> dict[GroupKey, Gang]:
    """Every PodGroup, of either kind."""
    # Should a PodGroup be there under the API group in use and an older one, the former counts: it comes last.
    by_age = sorted(of_coscheduling, key=lambda each: (each.group == COSCHEDULING, each.group))
    gangs = (*map(reader.of_volcano, of_volcano), *map(reader.of_coscheduling, by_age))
    return {gang.group.key: gang for gang in gangs}


def _groups(
    gangs: Mapping[GroupKey, Gang], entries: Sequence[Entry], reader: GangReader
) -> tuple[dict[GroupKey, Group], dict[Key, int]]:
    """Every PodGroup with its pods, one that is only named included, and the subgroup that each pod is in."""
    members: dict[GroupKey, list[Entry]] = {key: [] for key in gangs}
    for entry in entries:
        if entry.group is not None and entry.state not in (PodState.TERMINATING, PodState.NOMINATED):
            members.setdefault(entry.group, []).append(entry)
            if entry.group not in gangs:
                reader.findings.missing(str(entry.group), f"Pod {entry.key}")
    groups: dict[GroupKey, Group] = {}
    sub_groups: dict[Key, int] = {}
    for key, pods in members.items():
        groups[key], indices = assemble(gangs.get(key) or reader.absent(key), pods)
        sub_groups.update((entry.key, indices[entry.slot]) for entry in pods if entry.slot is not None)
    return groups, sub_groups


def _check_nodes(nodes: Mapping[str, Node], entries: Sequence[Entry]) -> None:
    pending = sum(entry.state is PodState.PENDING for entry in entries)
    if pending and not nodes:
        raise BadInstance([Fault("instance", None, "Node", "", "none", f"at least one: pending pods {pending}")])


def _network(
    objects: Objects,
    policy: Policy,
    nodes: Mapping[str, Node],
    applications: Mapping[Key, Application],
    sizes: Mapping[Key, int],
    findings: Findings,
) -> Network | None:
    """The network, with all that is to be said about it and about AppGroups; what nobody looks at is not said."""
    matters = network_matters(policy, applications)
    told = findings if matters else Findings()
    network = read_network(objects.network_topologies, policy, nodes, told, objects.config_maps)
    costs_matter = matters and network is not None and "C8" not in policy.rules_off
    note_app_groups(applications, sizes, costs_matter, findings)
    if matters:
        note_network(network, applications, findings)
    return network


def _refusals(objects: Objects, nodes: Mapping[str, Node], entries: Sequence[Entry], findings: Findings) -> Refusals:
    standing = [(entry.pod, node) for entry in entries if (node := node_of(entry)) is not None]
    users = [entry.pod for entry in entries]
    return Refusals(
        volumes=Volumes(objects.persistent_volume_claims, objects.persistent_volumes, users, findings),
        anti_affinity=StandingAntiAffinity(standing, nodes, objects.namespaces),
        systems=frozenset(node.labels.get(OS_LABEL, DEFAULT_OS) for node in nodes.values()),
        scheduled_jobs=scheduled_jobs(objects.jobs),
    )


def _note(instance: Instance, objects: Objects, entries: Sequence[Entry], findings: Findings) -> None:
    """Note what is not read, what decides nothing, and what is broken before anything is placed."""
    note_ignored(objects, findings)
    _note_pending(objects, [entry for entry in entries if entry.state is PodState.PENDING], findings)
    note_queue_shares(instance, objects.queues, findings)
    note_disruption(objects.policies, findings)
    standing = (PodState.PENDING, PodState.BOUND)
    note_unlimited_bandwidth((entry.pod for entry in entries if entry.state in standing), instance, findings)
    if not objects.hyper_nodes:
        note_limits_without_tree(instance, findings)
    note_broken_rules(instance, findings)


def _note_pending(objects: Objects, pending: Sequence[Entry], findings: Findings) -> None:
    """Note what pending pods say that decides nothing."""
    jobs = scheduled_jobs(objects.jobs)
    alone = [entry.pod for entry in pending if entry.group is None]
    note_unread_owners((pod for pod in alone if not any(upstream_gangs(pod, jobs))), findings)
    note_misplaced_names(alone, findings)
    pods = [entry.pod for entry in pending]
    note_preferences(pods, objects.nodes, findings)
    note_inadmissible(pods, findings)
