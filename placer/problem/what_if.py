"""Instances in which something is otherwise."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import TypeVar

from placer.base.quantity import Resources
from placer.problem import Group, GroupKey, Instance, Key, Node, PodState, SubGroup
from placer.problem.instance import group_of_one

_Part = TypeVar("_Part", Group, SubGroup)


def released(instance: Instance, gone: Collection[Key]) -> Instance:
    """Some bound pods wait; their NUMA zones are taken, since no object names these."""
    if not gone:
        return instance
    pods, groups = dict(instance.pods), dict(instance.groups)
    touched: dict[GroupKey, list[Key]] = defaultdict(list)
    for key in gone:
        pod = pods[key]
        group = pod.group or GroupKey("", *key)
        pods[key] = waiting = replace(pod, state=PodState.PENDING, node=None, group=group)
        alone = group_of_one(waiting)
        if alone is not None:
            groups[group] = alone
        else:
            touched[group].append(key)
    for name, left in touched.items():
        group_left, away = groups[name], frozenset(left)
        parts = tuple(_released(part, away) for part in group_left.sub_groups)
        groups[name] = replace(_released(group_left, away), sub_groups=parts)
    return replace(instance, pods=pods, groups=dict(sorted(groups.items())))


def _released(part: _Part, away: frozenset[Key]) -> _Part:
    gone: frozenset[Key] = away.intersection(part.bound)
    return replace(part, bound=_but(part.bound, gone), pending=tuple(sorted({*part.pending, *gone})))


def with_lost(instance: Instance, lost: Collection[str]) -> Instance:
    """Some nodes are lost, thus not Ready, and pods that may run elsewhere wait."""
    gone = ran_on(instance, lost)
    nodes = {name: replace(node, ready=node.ready and name not in lost) for name, node in instance.nodes.items()}
    budgets = tuple(budget.without(gone) for budget in instance.budgets)
    return replace(released(instance, gone), nodes=nodes, budgets=budgets, moves_only=True)


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
    kept = {key: pod for key, pod in instance.pods.items() if key not in pods}
    fewer = ((key, _less(group, pods)) for key, group in instance.groups.items())
    return replace(instance, pods=kept, groups={key: each for key, each in fewer if each.pending or key.api_group})


def _less(part: _Part, pods: Collection[Key]) -> _Part:
    if not any(key in pods for key in (*part.pending, *part.bound)):
        return part
    left = replace(part, pending=_but(part.pending, pods), bound=_but(part.bound, pods))
    if isinstance(left, Group):
        left = replace(left, sub_groups=tuple(_less(each, pods) for each in left.sub_groups))
    return left


def _but(keys: Iterable[Key], pods: Collection[Key]) -> tuple[Key, ...]:
    return tuple(key for key in keys if key not in pods)


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
