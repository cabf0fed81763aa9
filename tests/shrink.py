"""Make an instance that shows a fault as small as it gets, and write it down for people."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, replace
from typing import TypeVar

from placer.problem import (
    Constraints,
    Group,
    GroupKey,
    HyperNode,
    Instance,
    Key,
    Pod,
    Policy,
    SubGroup,
    TopologyTree,
)

K = TypeVar("K")
V = TypeVar("V")


def shrink(instance: Instance, fails: Callable[[Instance], bool]) -> Instance:
    """Take things away for as long as the instance still fails; no single thing can be taken from the result."""
    while True:
        for smaller in _smaller(instance):
            if fails(smaller):
                instance = smaller
                break
        else:
            return instance


def describe(instance: Instance) -> str:
    """Every value of the instance that is not its default, one object a line."""
    lines = [f"root tier {instance.topology.root_tier}", _line(instance.policy)]
    for objects in (instance.nodes, instance.topology.hyper_nodes, instance.queues, instance.groups, instance.pods):
        lines += [_line(value) for value in objects.values()]
    lines += [_line(value) for value in instance.app_groups.values()]
    if instance.network is not None:
        lines.append(_line(instance.network))
    return "\n".join(lines)


def _line(value: object) -> str:
    """Name of the type and the fields that say something."""
    said = (
        f"{field.name}={_plain(getattr(value, field.name))}"
        for field in fields(value)  # type: ignore[arg-type]
        if getattr(value, field.name) not in (None, "", 0, (), {}, Constraints())
    )
    return f"{type(value).__name__} {' '.join(said)}"


def _plain(value: object) -> str:
    if isinstance(value, (Key, GroupKey)):
        return str(value)
    if isinstance(value, tuple) and all(isinstance(part, Key) for part in value):
        return f"[{' '.join(part.name for part in value)}]"
    return str(value)


def _smaller(instance: Instance) -> Iterator[Instance]:
    """The instance with one thing less, big things first."""
    for group in instance.groups:
        yield _without_pods(instance, {*instance.groups[group].pending, *instance.groups[group].bound}, group)
    for key in instance.pods:
        yield _without_pods(instance, {key})
    for name in instance.nodes:
        yield _without_node(instance, name)
    for name in instance.topology.hyper_nodes:
        yield _without_hyper_node(instance, name)
    for name in instance.queues:
        yield replace(instance, queues={key: queue for key, queue in instance.queues.items() if key != name})
    yield from _plainer_network(instance)
    yield from _plainer_groups(instance)
    yield from _plainer_pods(instance)
    for node in instance.nodes.values():
        bare = replace(node, labels={}, taints=(), unschedulable=False, ready=True)
        for plainer in (bare, replace(node, numa=None)):
            if plainer != node:
                yield replace(instance, nodes={**instance.nodes, node.name: plainer})
    if instance.policy != Policy():
        yield replace(instance, policy=Policy())


def _without_pods(instance: Instance, gone: set[Key], group: GroupKey | None = None) -> Instance:
    """Without the pods; groups that are left with none of ours go too, and ``group`` goes in any case."""
    pods = {key: pod for key, pod in instance.pods.items() if key not in gone and (group is None or pod.group != group)}
    kept = {key: _kept(old, pods) for key, old in instance.groups.items() if key != group}
    groups = {key: left for key, left in kept.items() if key.api_group or left.pending}
    return replace(instance, pods=pods, groups=groups)


def _kept(group: Group, pods: dict[Key, Pod]) -> Group:
    def among(keys: tuple[Key, ...]) -> tuple[Key, ...]:
        return tuple(key for key in keys if key in pods)

    def part_kept(part: SubGroup) -> SubGroup:
        return replace(part, pending=among(part.pending), bound=among(part.bound))

    parts = tuple(part_kept(part) for part in group.sub_groups)
    return replace(group, pending=among(group.pending), bound=among(group.bound), sub_groups=parts)


def _without_node(instance: Instance, name: str) -> Instance:
    nodes = {key: node for key, node in instance.nodes.items() if key != name}
    domains = {
        key: replace(domain, nodes=tuple(node for node in domain.nodes if node != name))
        for key, domain in instance.topology.hyper_nodes.items()
    }
    return replace(instance, nodes=nodes, topology=replace(instance.topology, hyper_nodes=domains))


def _without_hyper_node(instance: Instance, name: str) -> Instance:
    """Without the HyperNode; what hung below it hangs below its parent."""
    tree = instance.topology.hyper_nodes
    gone = tree[name]

    def moved(domain: HyperNode) -> HyperNode:
        parent = gone.parent if domain.parent == name else domain.parent
        children = {*domain.children, *(gone.children if domain.name == gone.parent else ())} - {name}
        nodes = {*domain.nodes, *(gone.nodes if domain.name == gone.parent else ())}
        return replace(domain, parent=parent, children=tuple(sorted(children)), nodes=tuple(sorted(nodes)))

    kept = {key: moved(domain) for key, domain in tree.items() if key != name}
    root_tier = max((domain.tier for domain in kept.values()), default=0) + 1
    return replace(instance, topology=TopologyTree(kept, root_tier))


def _plainer_network(instance: Instance) -> Iterator[Instance]:
    """Without the network, an entry of it, a dependency or one of its wishes."""
    if instance.network is not None:
        yield replace(instance, network=None)
        network = instance.network
        for link in network.costs:
            yield replace(instance, network=replace(network, costs=_without(network.costs, link)))
        for link in network.capacities:
            yield replace(instance, network=replace(network, capacities=_without(network.capacities, link)))
    for key, app_group in instance.app_groups.items():
        calls = app_group.dependencies
        for index, call in enumerate(calls):
            for fewer in ((), (replace(call, min_bandwidth=None),)):
                left = (*calls[:index], *fewer, *calls[index + 1 :])
                if left != calls:
                    app_groups = {**instance.app_groups, key: replace(app_group, dependencies=left)}
                    yield replace(instance, app_groups=app_groups)


def _without(entries: Mapping[K, V], gone: K) -> dict[K, V]:
    return {key: value for key, value in entries.items() if key != gone}


def _plainer_groups(instance: Instance) -> Iterator[Instance]:
    """Each group without one of its wishes."""
    for key, group in instance.groups.items():
        plainer = [replace(group, topology=None), replace(group, min_task_member={}), replace(group, priority=0)]
        plainer += [replace(group, succeeded={}), replace(group, queue=None)]
        if group.min_member > 1:
            plainer.append(replace(group, min_member=group.min_member - 1))
        for index, policy in enumerate(group.policies):
            for less in (replace(policy, topology=None), replace(policy, min_sub_groups=0), replace(policy, size=1)):
                policies = (*group.policies[:index], less, *group.policies[index + 1 :])
                plainer.append(replace(group, policies=policies))
        for less_asking in plainer:
            if less_asking != group:
                yield replace(instance, groups={**instance.groups, key: less_asking})


def _plainer_pods(instance: Instance) -> Iterator[Instance]:
    """Each pod without one of its wishes."""
    for key, pod in instance.pods.items():
        plainer = [replace(pod, constraints=Constraints()), replace(pod, host_ports=()), replace(pod, queue=None)]
        plainer += [
            replace(pod, unsupported=()),
            replace(pod, role=""),
            replace(pod, daemon=False),
            replace(pod, numa=None),
        ]
        plainer += [replace(pod, app_group=None, workload=None)]
        for less_asking in plainer:
            if less_asking != pod:
                yield replace(instance, pods={**instance.pods, key: less_asking})
