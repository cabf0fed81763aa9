"""A domain as it is, with all that lies beyond it added up into one node: what holds in the cluster holds there.

That is why what has to go there is a bound. Rules about pods that ask for others, about calls and about zones are left
out, and so is where moved pods may be: whatever is admitted in the cluster is admitted here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import cached_property

from placer.base.quantity import Resources
from placer.problem import Group, GroupKey, HyperNode, Instance, Key, Node, Pod, PodState, TopologyTree
from placer.problem.instance import Policy
from placer.problem.neighbours import NO_NEIGHBOURS
from placer.search.preempt.lifting import ANYWHERE, least_priorities, on_nodes

#: Name of the node that stands for all beyond a domain; no node has a space in its name.
ELSEWHERE = "all others"


class Contraction:
    """Makes the small instance of any domain, of one in which nothing waits but a group; ``candidates`` may go."""

    def __init__(self, instance: Instance, group: Group, candidates: Collection[Key]) -> None:
        self.instance, self.group, self.candidates = instance, group, frozenset(candidates)

    @cached_property
    def usable(self) -> frozenset[str]:
        """Nodes that count: those that the group or what may be moved could be on, all where queues are limited."""
        movable = {self.instance.pods[key].constraints for key in (*self.candidates, *self.group.pending)}
        if any(queue.capability for queue in self.instance.queues.values()):
            return frozenset(self.instance.nodes)
        nodes = self.instance.nodes.items()
        return frozenset(name for name, node in nodes if any(each.admits(node) for each in movable))

    @cached_property
    def room(self) -> dict[str, Resources]:
        """Per node what it has for the group and what may be disturbed; never negative."""
        left = {name: dict(node.allocatable) for name, node in self.instance.nodes.items()}
        for key, pod in self.instance.pods.items():
            if pod.node in left and key not in self.candidates:
                there = left[pod.node]
                for resource, amount in pod.requests.items():
                    there[resource] = there.get(resource, 0) - amount
        return {name: Resources({key: max(0, each) for key, each in amounts.items()}) for name, amounts in left.items()}

    @cached_property
    def members(self) -> dict[str, list[Pod]]:
        """Per node the pods that may be disturbed."""
        found: dict[str, list[Pod]] = {name: [] for name in self.instance.nodes}
        for key in sorted(self.candidates):
            pod = self.instance.pods[key]
            if pod.node in found:
                found[pod.node].append(pod)
        return found

    @cached_property
    def amounts(self) -> dict[str, Mapping[str, int]]:
        """Per node what it has; of one that is over-full, what is there: that is nobody's reason to go."""
        found: dict[str, Mapping[str, int]] = {}
        for name, pods in self.members.items():
            held: Counter[str] = Counter()
            for pod in pods:
                held.update(pod.requests)
            found[name] = {key: max(self.room[name][key], held[key]) for key in self.room[name].keys() | held.keys()}
        return found

    def least_alone(self, pod: Pod) -> int:
        """The least priority of a unit with pods of the group of a pod that stands without it."""
        return pod.unit_priority if pod.group is None else self._of_groups[pod.group]

    @cached_property
    def _of_groups(self) -> dict[GroupKey, int]:
        least, groups = least_priorities(self.instance), self.instance.groups.items()
        return {key: min(map(least.__getitem__, group.bound)) for key, group in groups if group.bound}

    def around(self, names: Collection[str]) -> Instance:
        """The instance of a domain, given by its nodes; none: all nodes are one, and the group goes there, too."""
        nodes = {name: self.instance.nodes[name] for name in names}
        near = {pod.group for name in names for pod in self.members[name] if pod.group is not None}
        near.add(self.group.key)
        homes = {self.instance.pods[key].node or "" for group in near for key in self.instance.groups[group].bound}
        others = (self.usable | homes) & self.instance.nodes.keys() - nodes.keys()
        nodes[ELSEWHERE] = Node(ELSEWHERE, self._sum(others), {})
        pods = _DomainPods(self, frozenset(names), others, near).made()
        return replace(
            self.instance,
            nodes=dict(sorted(nodes.items())),
            pods=pods,
            groups={key: self._group(key, pods, nearness=bool(names)) for key in sorted(near)},
            topology=self._tree(names),
            policy=self._policy(nodes),
            app_groups={},
            network=None,
            budgets=tuple(
                replace(each, pods=frozenset(filter(each.pods.__contains__, pods))) for each in self.instance.budgets
            ),
        )

    def _sum(self, names: Collection[str]) -> Resources:
        total: Counter[str] = Counter()
        for name in names:
            total.update(self.amounts[name])
        return Resources(total)

    def _group(self, key: GroupKey, pods: Collection[Key], *, nearness: bool) -> Group:
        group, mine = self.instance.groups[key], nearness and key == self.group.key
        topology = group.topology if mine else None
        policies = group.policies if mine else tuple(replace(each, topology=None) for each in group.policies)
        parts = tuple(replace(part, bound=tuple(k for k in part.bound if k in pods)) for part in group.sub_groups)
        bound = tuple(each for each in group.bound if each in pods)
        return replace(group, topology=topology, policies=policies, sub_groups=parts, bound=bound)

    def _tree(self, names: Collection[str]) -> TopologyTree:
        tree = self.instance.topology
        kept: dict[str, HyperNode] = {}
        for name, each in sorted(tree.hyper_nodes.items(), key=lambda pair: pair[1].tier):
            nodes = tuple(node for node in each.nodes if node in names)
            children = tuple(child for child in each.children if child in kept)
            if nodes or children:
                kept[name] = replace(each, nodes=nodes, children=children)
        return TopologyTree(dict(sorted(kept.items())), tree.root_tier, tree.left_out)

    def _policy(self, nodes: dict[str, Node]) -> Policy:
        before, after = (
            self.instance.average_shares,
            replace(self.instance, nodes=nodes, policy=Policy()).average_shares,
        )
        weights = {resource: before[resource] / after[resource] for resource in before if resource in after}
        policy = self.instance.policy
        off = policy.rules_off | {"C8", "C9", "C10"}
        return replace(policy, levels=("placed",), resource_weights=weights, rules_off=off, topology_keys=())


class _DomainPods:
    def __init__(
        self, whole: Contraction, names: frozenset[str], others: Collection[str], near: Collection[GroupKey]
    ) -> None:
        self.whole, self.names, self.others, self.near = whole, names, others, near

    def made(self) -> dict[Key, Pod]:
        found = {}
        for key, pod in self.whole.instance.pods.items():
            if pod.state is PodState.PENDING:
                found[key] = self._waits(pod)
            elif key in self.whole.candidates:
                found[key] = self._may_go(pod)
            else:
                found[key] = self._stays(pod)
        return {key: pod for key, pod in found.items() if pod is not None}

    def _waits(self, pod: Pod) -> Pod | None:
        if pod.group != self.whole.group.key:
            return None
        where = on_nodes(self.names, pod.constraints) if self.names else ANYWHERE
        return replace(pod, constraints=where, neighbours=NO_NEIGHBOURS, numa=None, app_group=None)

    def _stays(self, pod: Pod) -> Pod | None:
        known = pod if pod.group in self.near else replace(pod, group=None, sub_group=None)
        if pod.node in self.names:
            return known
        return replace(known, node="") if pod.queue or pod.group == self.whole.group.key else None

    def _may_go(self, pod: Pod) -> Pod | None:
        near, beyond = pod.group in self.near, pod.node in self.others
        if not (near or beyond or pod.node in self.names):
            return None
        return replace(
            pod,
            node=ELSEWHERE if beyond else pod.node,
            group=pod.group if near else None,
            sub_group=pod.sub_group if near else None,
            running_priority=pod.running_priority if near else self.whole.least_alone(pod),
            constraints=ANYWHERE,
            host_ports=(),
            neighbours=NO_NEIGHBOURS,
            numa=None,
            app_group=None,
        )
