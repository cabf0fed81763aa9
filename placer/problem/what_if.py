"""Instances in which something is otherwise; a docstring says how it is in the result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from placer.base.quantity import Resources
from placer.problem import (
    Constraints,
    Group,
    GroupKey,
    Instance,
    Key,
    NetworkTopology,
    Node,
    Pod,
    PodState,
    Queue,
    SubGroup,
)
from placer.problem.instance import NO_TIER, groups_of_one

_Part = TypeVar("_Part", Group, SubGroup)


def in_states(instance: Instance, pods: Mapping[Key, Pod], gone: Collection[Key] = ()) -> Instance:
    """Some pods wait or run, others are not there."""
    groups, left = dict(instance.groups), {**instance.pods, **pods}
    touched = {pod.group for pod in pods.values()}
    for key in gone:
        pod = left.pop(key, None)
        touched.add(pod.group if pod is not None else None)
    for name in touched:
        if name is not None and name in groups:
            parts = tuple(_in_states(part, left) for part in groups[name].sub_groups)
            groups[name] = replace(_in_states(groups[name], left), sub_groups=parts)
    return replace(instance, pods=left, groups=groups)


def _in_states(part: _Part, pods: Mapping[Key, Pod]) -> _Part:
    there = [(key, pods[key].state) for key in sorted((*part.pending, *part.bound)) if key in pods]
    pending, bound = (
        tuple(key for key, each in there if each is state) for state in (PodState.PENDING, PodState.BOUND)
    )
    return replace(part, pending=pending, bound=bound)


def released(instance: Instance, gone: Collection[Key]) -> Instance:
    """Some bound pods wait; their NUMA zones are taken, since no object names these."""
    if not gone:
        return instance
    pods = {}
    for key in gone:
        pod = instance.pods[key]
        pods[key] = replace(pod, state=PodState.PENDING, node=None, group=pod.group or GroupKey("", *key))
    groups = {**instance.groups, **groups_of_one(pods.values())}
    return in_states(replace(instance, groups=dict(sorted(groups.items()))), pods)


def with_lost(instance: Instance, lost: Collection[str]) -> Instance:
    """Some nodes are lost, thus not Ready, and pods that may run elsewhere wait."""
    gone = ran_on(instance, lost)
    budgets = tuple(budget.without(gone) for budget in instance.budgets)
    return replace(released(unready(instance, lost), gone), budgets=budgets, moves_only=True)


def unready(instance: Instance, lost: Collection[str]) -> Instance:
    """Some nodes are not Ready."""
    nodes = {name: replace(node, ready=node.ready and name not in lost) for name, node in instance.nodes.items()}
    return instance.keeping_held(nodes=nodes)


def ran_on(instance: Instance, lost: Collection[str]) -> list[Key]:
    """Pods of lost nodes that may run elsewhere."""
    bound = (pod for pod in instance.pods.values() if pod.state is PodState.BOUND and pod.node in lost)
    return [pod.key for pod in bound if not pod.daemon]


def leaving_protected(instance: Instance, lost: Collection[str]) -> Instance:
    """Protected pods stay with lost nodes, since a cluster does not let them be evicted."""
    staying = [pod for pod in map(instance.pods.__getitem__, ran_on(instance, lost)) if pod.protected]
    return replace(instance, pods={**instance.pods, **{pod.key: replace(pod, daemon=True) for pod in staying}})


def unmarked(instance: Instance) -> Instance:
    """No mark of another system protects a pod, and every queue is reclaimable."""
    pods = {key: replace(pod, protected="") for key, pod in instance.pods.items() if pod.protecting_mark}
    queues = {name: replace(queue, reclaimable=True) for name, queue in instance.queues.items()}
    return replace(instance, pods={**instance.pods, **pods}, queues=queues)


def losing(instance: Instance, lost: Collection[str]) -> Instance:
    """As :func:`with_lost`, and only groups with pods there wait."""
    found = with_lost(instance, lost)
    waiting = {pod.key for pod in found.pending} - {pod.key for pod in instance.pending}
    return only_waiting(found, {found.pods[key].group for key in waiting})


def only_waiting(instance: Instance, groups: Collection[GroupKey | None]) -> Instance:
    """Nothing waits but some groups."""
    others = (group for key, group in instance.groups.items() if key not in groups)
    found = without(instance, {key for group in others for key in group.pending})
    return instance.keeping_held(pods=found.pods, groups=found.groups)


def without(instance: Instance, pods: Collection[Key]) -> Instance:
    """Some pods, waiting or with a node, are not there."""
    if not pods:
        return instance
    found = in_states(instance, {}, pods)
    return replace(found, groups={key: each for key, each in found.groups.items() if each.pending or key.api_group})


def empty(instance: Instance) -> Instance:
    """Nothing but DaemonSet and static pods is on any node."""
    gone = {key for key, pod in instance.pods.items() if pod.node is not None and not pod.daemon}
    nodes = {name: with_free_zones(node) for name, node in instance.nodes.items()}
    return replace(without(instance, gone), nodes=nodes)


def with_free_zones(node: Node) -> Node:
    """A node on whose NUMA zones nothing runs: all allocatable amounts are available."""
    if node.numa is None:
        return node
    zones = []
    for zone in node.numa.zones:
        names = {*zone.available, *zone.allocatable}
        free = Resources({name: max(zone.available[name], zone.allocatable[name]) for name in names})
        zones.append(replace(zone, available=free))
    return replace(node, numa=replace(node.numa, zones=tuple(zones)))


def alone(instance: Instance, key: GroupKey) -> Instance:
    """The instance in which nothing waits but one group, and nothing counts but that it is admitted."""
    left = only_waiting(instance, {key})
    return left.keeping_held(policy=replace(instance.policy, levels=("placed",)))


def with_pods(instance: Instance, pods: Iterable[Key], change: Callable[[Pod], Pod]) -> Instance:
    """Some pods are changed, in nothing that a node holds."""
    changed = {key: change(instance.pods[key]) for key in pods}
    return instance.keeping_held(pods={**instance.pods, **changed})


def with_group(instance: Instance, group: Group) -> Instance:
    """A group is changed."""
    return instance.keeping_held(groups={**instance.groups, group.key: group})


def without_rule(instance: Instance, rule: str) -> Instance:
    """A rule is off."""
    policy = replace(instance.policy, rules_off=instance.policy.rules_off | {rule})
    return instance.keeping_held(policy=policy)


def valid(instance: Instance, group: Group) -> Instance:
    """A group is in order; tier limits that contradict each other go, too."""
    policies = tuple(replace(policy, topology=_clear(policy.topology)) for policy in group.policies)
    return with_group(instance, replace(group, invalid=None, topology=_clear(group.topology), policies=policies))


def _clear(topology: NetworkTopology | None) -> NetworkTopology | None:
    return None if topology is not None and topology.highest_tier == NO_TIER else topology


def with_existing_minimum(instance: Instance, group: Group) -> Instance:
    """A group needs no more pods than there are."""
    there = Counter(instance.pods[key].role for key in (*group.pending, *group.bound))
    there.update(group.succeeded)
    roles = {role: min(least, there[role]) for role, least in group.min_task_member.items()}
    policies = []
    for index, policy in enumerate(group.policies):
        parts = (part for part in group.sub_groups if part.policy == index)
        sizes = [part.placed_before + len(part.pending) for part in parts]
        size = max(1, min([policy.size, *sizes]))
        policies.append(replace(policy, size=size, min_sub_groups=min(policy.min_sub_groups, len(sizes))))
    least = min(group.min_member, group.placed_before + len(group.pending))
    return with_group(instance, replace(group, min_member=least, min_task_member=roles, policies=tuple(policies)))


def supported(instance: Instance, group: Group) -> Instance:
    """All that the waiting pods of a group ask for is modelled (C4)."""
    return with_pods(instance, group.pending, lambda pod: replace(pod, unsupported=()))


def eligible(instance: Instance, group: Group) -> Instance:
    """Every node takes the waiting pods of a group (C3); nothing else waits that could notice."""
    nodes = {name: replace(node, ready=True, unschedulable=False, taints=()) for name, node in instance.nodes.items()}
    freed = with_pods(instance, group.pending, lambda pod: replace(pod, constraints=Constraints()))
    return freed.keeping_held(nodes=nodes)


def roomy(instance: Instance, group: Group) -> Instance:
    """Every node has room for all waiting pods of a group (C2)."""
    need = sum((instance.pods[key].requests for key in group.pending), Resources())
    nodes = {}
    for name, node in instance.nodes.items():
        held = instance.held.get(name, Resources())
        room = {
            what: max(node.allocatable[what], held[what]) + need[what] for what in {*node.allocatable, *held, *need}
        }
        nodes[name] = replace(node, allocatable=Resources(room))
    freed = with_pods(instance, group.pending, lambda pod: replace(pod, host_ports=()))
    return freed.keeping_held(nodes=nodes)


def anywhere(instance: Instance, group: Group) -> Instance:
    """A group has no tier limit (C7)."""
    policies = tuple(replace(policy, topology=None) for policy in group.policies)
    return with_group(without_rule(instance, "C7"), replace(group, topology=None, policies=policies))


def with_queues(instance: Instance, group: Group, change: Callable[[Queue], Queue]) -> Instance:
    """The queues of waiting pods of a group are changed, with those above them."""
    names = {name for key in group.pending for name in instance.queue_path(instance.pods[key].queue)}
    return instance.keeping_held(queues={**instance.queues, **{name: change(instance.queues[name]) for name in names}})


def protecting(instance: Instance, why: Mapping[Key, str]) -> Instance:
    """Some running pods are protected, each for a reason, unless they were before."""
    pods = dict(instance.pods)
    for key, reason in why.items():
        pod = pods.get(key)
        if pod is not None and pod.state is PodState.BOUND and not pod.protected:
            pods[key] = replace(pod, protected=reason)
    return replace(instance, pods=pods)


def keeping_room(
    instance: Instance, before: Instance, pods: Mapping[Key, str], freed: Collection[str] = ()
) -> Instance:
    """Room is held for pods that do not wait in it and did ``before``, by their nodes; HyperNodes that are ``freed``
    take nothing.
    """
    held = {
        key: replace(before.pods[key], state=PodState.NOMINATED, node=node, group=None) for key, node in pods.items()
    }
    closed = {name for name in instance.nodes if not frozenset(freed).isdisjoint(instance.topology.path(name))}
    nodes = {
        name: replace(each, unschedulable=name in closed or each.unschedulable) for name, each in instance.nodes.items()
    }
    return replace(instance, pods=dict(sorted({**instance.pods, **held}.items())), nodes=nodes)


def elastic(instance: Instance, gangs: Collection[GroupKey]) -> Instance:
    """Some gangs need no more pods than they have, and take each alone."""
    changed = {}
    for key in gangs:
        group = instance.groups[key]
        policies = tuple(replace(each, size=1, min_sub_groups=0) for each in group.policies)
        changed[key] = replace(group, min_member=group.placed_before, min_task_member={}, policies=policies)
    return replace(instance, groups={**instance.groups, **changed})


def _in_units_of(pod: Pod, number: int) -> Pod:
    units = tuple(replace(each, name=f"{each.name}~{number}") for each in pod.neighbours.units)
    return replace(pod, neighbours=replace(pod.neighbours, units=units)) if units else pod


def with_copies(lone: Instance, key: GroupKey, count: int) -> Instance:
    """A group waits so many times, each copy with domains of its own."""
    group, pods, groups = lone.groups[key], dict(lone.pods), dict(lone.groups)
    first = replace(group, bound=(), succeeded={})
    for number in range(2, count + 1):
        names = {each: Key(each.namespace, f"{each.name}~{number}") for each in group.pending}
        copy_key = GroupKey(key.api_group, key.namespace, f"{key.name}~{number}")
        parts = tuple(
            replace(part, pending=tuple(names[each] for each in part.pending), bound=(), succeeded=0)
            for part in group.sub_groups
        )
        groups[copy_key] = replace(first, key=copy_key, pending=tuple(names.values()), sub_groups=parts)
        for old, new in names.items():
            pods[new] = replace(_in_units_of(lone.pods[old], number), name=new.name, group=copy_key)
    return replace(lone, pods=dict(sorted(pods.items())), groups=dict(sorted(groups.items())))


def groups_alone(instance: Instance, pods: Collection[Key]) -> Instance:
    """Nothing is there but some pods and all of their groups."""
    named = {instance.pods[key].group for key in pods}
    groups = {key: group for key, group in instance.groups.items() if key in named}
    near = {key for group in groups.values() for key in (*group.bound, *group.pending)}.union(pods)
    return replace(instance, pods={key: instance.pods[key] for key in sorted(near)}, groups=groups)
