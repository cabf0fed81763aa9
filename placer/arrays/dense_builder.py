"""From an instance by name to arrays by index."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from placer.arrays.amounts import NodeAmounts, Scale
from placer.arrays.dense_neighbours import NeighbourKinds
from placer.arrays.eligibility import Eligibility
from placer.arrays.model import (
    Dense,
    DenseGroup,
    DenseScope,
    DenseSubGroup,
    Domains,
    PodClass,
    QueueRow,
    score_solution,
)
from placer.arrays.network import read_network
from placer.arrays.numa import DenseNuma, read_numa
from placer.arrays.solution import BoolArray, IntArray
from placer.base.grouping import grouped
from placer.problem import Constraints, Group, GroupKey, HostPort, Instance, Key, NetworkTopology, Pod
from placer.problem.numa import NumaDemand
from placer.problem.placement import Placement
from placer.rules.scoring import score, used_nodes

#: Arrays of sums must hold the micro-nodes of pods that fit nowhere, and the needs of their groups.
MOST_WEIGHT, MOST_NEEDED = 2**40, 2**50


def make_dense(instance: Instance, running: Collection[Key] = ()) -> Dense:
    """Turn an instance into arrays, without pods that can never be placed, nor those of subgroups and groups that lack
    pods to become ready. Rules and values of the rest are unchanged.

    ``running``: as in :class:`placer.arrays.dense_neighbours.NeighbourKinds`.
    """
    return _DenseBuilder(instance, running).build()


class _NodeOrder:
    def __init__(self, instance: Instance) -> None:
        self._tree = instance.topology
        self.nodes: list[str] = []
        self._leaf_names: list[str | None] = []
        self._spans: dict[str, tuple[int, int]] = {}
        for name, hyper_node in self._tree.hyper_nodes.items():
            if hyper_node.parent is None:
                self._visit(name)
        outside = [name for name in instance.nodes if name not in self._tree.leaf]
        self.nodes += outside
        self._leaf_names += [None] * len(outside)

    def _visit(self, name: str) -> None:
        hyper_node = self._tree.hyper_nodes[name]
        begin = len(self.nodes)
        for child in hyper_node.children:
            self._visit(child)
        own = [node for node in hyper_node.nodes if self._tree.leaf[node] == name]
        self.nodes += own
        self._leaf_names += [name] * len(own)
        self._spans[name] = (begin, len(self.nodes))

    def domains(self, used: BoolArray) -> Domains:
        names = list(self._tree.hyper_nodes)
        index = {name: position for position, name in enumerate(names)}
        root = len(names)
        parents = [self._tree.hyper_nodes[name].parent for name in names]
        spans = [*(self._spans[name] for name in names), (0, len(self.nodes))]
        return Domains(
            names=(*names, None),
            tier=np.array(
                [*(self._tree.hyper_nodes[name].tier for name in names), self._tree.root_tier], dtype=np.int64
            ),
            parent=np.array([*(root if up is None else index[up] for up in parents), -1], dtype=np.int64),
            begin=np.array([begin for begin, _ in spans], dtype=np.int64),
            end=np.array([end for _, end in spans], dtype=np.int64),
            used=np.array([bool(used[begin:end].any()) for begin, end in spans], dtype=bool),
        )

    def tier_of_all(self) -> int:
        """A limit to this tier limits nothing."""
        whole = [name for name, span in self._spans.items() if span == (0, len(self.nodes))]
        return min((self._tree.hyper_nodes[name].tier for name in whole), default=self._tree.root_tier)

    def leaf(self) -> IntArray:
        index = {name: position for position, name in enumerate(self._tree.hyper_nodes)}
        root = len(index)
        return np.array([root if name is None else index[name] for name in self._leaf_names], dtype=np.int64)

    def span_leaf(self) -> IntArray:
        leaf = self.leaf()
        alone = leaf == len(self._tree.hyper_nodes)
        leaf[alone] += np.arange(int(alone.sum()))
        return leaf


class _DenseBuilder:
    def __init__(self, instance: Instance, running: Collection[Key]) -> None:
        self.instance = instance
        self.order = _NodeOrder(instance)
        self.tier_of_all = self.order.tier_of_all()
        self.node_index = {name: index for index, name in enumerate(self.order.nodes)}
        self.members = _placeable(instance)
        self.pods = [instance.pods[key] for keys in self.members.values() for key in keys]
        self.amounts = NodeAmounts(instance)
        room = [self.amounts.left(name) for name in self.order.nodes]
        self.scale = Scale(map(self.amounts.asked, self.pods), room)
        self.free = self.scale.room(room)
        self.eligibility = Eligibility([instance.nodes[name] for name in self.order.nodes])
        self.masks: dict[Constraints, int] = {}
        self.classes: list[PodClass] = []
        self.groups: list[DenseGroup] = []
        self.sub_groups: list[DenseSubGroup] = []
        self.scopes: list[DenseScope] = []
        self.workloads: dict[tuple[Key, str], list[int]] = defaultdict(list)
        self.demands: list[NumaDemand | None] = []
        self.kinds = NeighbourKinds(instance, self.pods, self.order.nodes, running)

    def build(self) -> Dense:
        groups = [self.instance.groups[key] for key in self.members]
        for group in sorted(groups, key=lambda group: (-group.priority, group.created, group.key)):
            self._add_group(group, [self.instance.pods[key] for key in self.members[group.key]])
        used_names = used_nodes(self.instance)
        used = np.array([name in used_names for name in self.order.nodes], dtype=bool)
        before = score(self.instance, Placement())
        sizes = [each.size for each in self.classes]
        numa = read_numa(self.instance, self.order.nodes, self.demands, sizes) if self.instance.aligning_nodes else None
        dense = Dense(
            nodes=tuple(self.order.nodes),
            resources=self.scale.resources,
            scale=self.scale.divisors,
            free=self.free,
            masks=self._mask_rows(),
            leaf=self.order.leaf(),
            span_leaf=self.order.span_leaf(),
            node_used=used,
            domains=self.order.domains(used),
            classes=tuple(self.classes if numa is None else _numbered(self.classes, numa)),
            groups=tuple(self.groups),
            sub_groups=tuple(self.sub_groups),
            scopes=tuple(self.scopes),
            queue_rows=tuple(self._queue_rows()),
            ports=self._ports(),
            criteria=tuple((value.name, value.priority) for value in before),
            network=read_network(self.instance, self.order.nodes, self.workloads),
            numa=numa,
            neighbours=self.kinds.rows([each.neighbours for each in self.classes]),
            exact=self.scale.exact,
        )
        return dense.with_constants(score_solution(dense, {}), before)

    def _mask_rows(self) -> BoolArray:
        rows = [self.eligibility.row(constraints) for constraints in self.masks]
        return np.array(rows, dtype=bool).reshape(len(rows), len(self.order.nodes))

    def _add_group(self, group: Group, pods: Sequence[Pod]) -> None:
        index = len(self.groups)
        first_class, first_sub = len(self.classes), len(self.sub_groups)
        by_sub = grouped(pods, lambda pod: -1 if pod.sub_group is None else pod.sub_group)
        for position, members in sorted(by_sub.items()):
            begin = len(self.classes)
            self._add_classes(index, -1 if position < 0 else len(self.sub_groups), members)
            if position >= 0:
                self._add_sub_group(group, index, position, tuple(range(begin, len(self.classes))))
        classes = tuple(range(first_class, len(self.classes)))
        sub_groups = tuple(range(first_sub, len(self.sub_groups)))
        self.groups.append(
            DenseGroup(
                key=group.key,
                classes=classes,
                sub_groups=sub_groups,
                short=max(0, group.min_member - group.placed_before),
                short_by_role=tuple(sorted(_short_by_role(self.instance, group).items())),
                short_by_policy=tuple(sorted(_short_by_policy(group).items())),
                priority=group.priority,
                created=group.created,
                need_weight=self._no_more_than(MOST_NEEDED, self.instance.need_weights[group.key], pods),
                scope=self._add_scope(group.topology, group.bound, classes),
            )
        )

    def _add_classes(self, group: int, sub_group: int, pods: Iterable[Pod]) -> None:
        alike: dict[tuple[object, ...], list[Pod]] = defaultdict(list)
        for pod in sorted(pods, key=lambda pod: (pod.created, pod.key)):
            ties = self._calls_of(pod), self._demand_of(pod), self.kinds.of(pod)
            alike[(pod.role, pod.requests, pod.constraints, pod.host_ports, pod.queue, pod.daemon, ties)].append(pod)
        for members in alike.values():
            one = members[0]
            calls = self._calls_of(one)
            self.demands.append(self._demand_of(one))
            if calls is not None:
                self.workloads[calls].append(len(self.classes))
            self.classes.append(
                PodClass(
                    pods=tuple(pod.key for pod in members),
                    group=group,
                    sub_group=sub_group,
                    role=one.role,
                    request=self.scale.request(self.amounts.asked(one)),
                    weight=self._no_more_than(MOST_WEIGHT, self.instance.weights[one.key], [one]),
                    mask=self.masks.setdefault(one.constraints, len(self.masks)),
                    host_ports=one.host_ports,
                    daemon=one.daemon,
                    queue=one.queue,
                    neighbours=self.kinds.of(one),
                )
            )

    def _no_more_than(self, most: int, weight: int, pods: Iterable[Pod]) -> int:
        """A weight without end is that of pods that fit nowhere, and no value counts it."""
        endless = weight > most and any(self.scale.fits_nowhere(pod.requests) for pod in pods)
        return most if endless else weight

    def _calls_of(self, pod: Pod) -> tuple[Key, str] | None:
        if self.instance.network is None or pod.app_group is None or pod.workload is None:
            return None
        return pod.app_group, pod.workload

    def _demand_of(self, pod: Pod) -> NumaDemand | None:
        return pod.numa if self.instance.aligning_nodes else None

    def _add_sub_group(self, group: Group, index: int, position: int, classes: tuple[int, ...]) -> None:
        sub_group = group.sub_groups[position]
        policy = group.policies[sub_group.policy]
        self.sub_groups.append(
            DenseSubGroup(
                name=sub_group.name,
                group=index,
                policy=sub_group.policy,
                classes=classes,
                short=max(0, policy.size - sub_group.placed_before),
                scope=self._add_scope(policy.topology, sub_group.bound, classes),
            )
        )

    def _add_scope(self, topology: NetworkTopology | None, bound: Iterable[Key], classes: tuple[int, ...]) -> int:
        names = [self.instance.pods[key].node or "" for key in bound]
        nodes = tuple(self.node_index.get(name, -1) for name in names)
        limit = None if topology is None else topology.limit
        if limit is not None and limit >= (self.instance.topology.root_tier if -1 in nodes else self.tier_of_all):
            limit = None
        lost = len({name for name in names if name not in self.node_index})
        self.scopes.append(DenseScope(classes, limit, wanted=topology is not None, bound=nodes, lost_leaves=lost))
        return len(self.scopes) - 1

    def _queue_rows(self) -> Iterable[QueueRow]:
        if "C11" in self.instance.policy.rules_off:
            return
        taken = _taken_of_queues(self.instance)
        classes: dict[str, list[int]] = defaultdict(list)
        for index, pod_class in enumerate(self.classes):
            for queue in self.instance.queue_path(pod_class.queue):
                classes[queue].append(index)
        for queue, members in sorted(classes.items()):
            for name, limit in sorted(self.instance.queues[queue].capability.items()):
                if name in self.scale.resources:
                    resource = self.scale.resources.index(name)
                    asking = tuple(index for index in members if self.classes[index].request[resource])
                    room = self.scale.limit(name, limit - taken[queue][name])
                    yield QueueRow(queue=queue, resource=resource, room=room, classes=asking)

    def _ports(self) -> dict[int, tuple[HostPort, ...]]:
        taken: dict[int, list[HostPort]] = defaultdict(list)
        for pod in self.instance.pods.values():
            if pod.host_ports and pod.node in self.node_index:
                taken[self.node_index[pod.node]].extend(pod.host_ports)
        return {node: tuple(ports) for node, ports in sorted(taken.items())}


def _numbered(classes: Sequence[PodClass], numa: DenseNuma) -> Iterator[PodClass]:
    number: dict[object, int] = {}
    for each, units in zip(classes, numa.units, strict=True):
        yield replace(each, zones=number.setdefault(units, len(number)) if any(units) else -1)


def _placeable(instance: Instance) -> dict[GroupKey, list[Key]]:
    found: dict[GroupKey, list[Key]] = {}
    for group in instance.groups.values():
        if group.invalid is None:
            keys = _enough_of_sub_groups(instance, group, [k for k in group.pending if _allowed(instance, k)])
            if keys and _can_be_ready(instance, group, keys):
                found[group.key] = keys
    return found


def _allowed(instance: Instance, key: Key) -> bool:
    pod = instance.pods[key]
    if pod.unsupported or key in instance.beyond_budget or instance.unoffered(pod):
        return False
    return "C11" in instance.policy.rules_off or instance.closed_queue(pod.queue, pod.namespace) is None


def _enough_of_sub_groups(instance: Instance, group: Group, keys: list[Key]) -> list[Key]:
    if not group.sub_groups:
        return keys
    count = Counter(instance.pods[key].sub_group for key in keys)
    small = {
        position
        for position, sub in enumerate(group.sub_groups)
        if sub.placed_before + count[position] < group.policies[sub.policy].size
    }
    return [key for key in keys if instance.pods[key].sub_group not in small]


def _can_be_ready(instance: Instance, group: Group, keys: Sequence[Key]) -> bool:
    if group.min_member > group.placed_before + len(keys):
        return False
    if not group.min_task_member and not group.policies:
        return True
    roles = Counter(instance.pods[key].role for key in keys)
    if any(short > roles[role] for role, short in _short_by_role(instance, group).items()):
        return False
    possible = _still_possible(group, {instance.pods[key].sub_group for key in keys})
    return all(short <= possible[policy] for policy, short in _short_by_policy(group).items())


def _still_possible(group: Group, left: Container[int | None]) -> Counter[int]:
    subs = (sub for position, sub in enumerate(group.sub_groups) if position in left)
    return Counter(sub.policy for sub in subs if sub.placed_before < group.policies[sub.policy].size)


def _short_by_role(instance: Instance, group: Group) -> dict[str, int]:
    if not group.min_task_member:
        return {}
    bound = Counter(instance.pods[key].role for key in group.bound)
    missing = {
        role: least - bound[role] - group.succeeded.get(role, 0) for role, least in group.min_task_member.items()
    }
    return {role: short for role, short in missing.items() if short > 0}


def _short_by_policy(group: Group) -> dict[int, int]:
    if not group.policies:
        return {}
    ready = Counter(sub.policy for sub in group.sub_groups if sub.placed_before >= group.policies[sub.policy].size)
    missing = {index: policy.min_sub_groups - ready[index] for index, policy in enumerate(group.policies)}
    return {index: short for index, short in missing.items() if short > 0}


def _taken_of_queues(instance: Instance) -> dict[str, Counter[str]]:
    taken: dict[str, Counter[str]] = defaultdict(Counter)
    for pod in instance.pods.values():
        if pod.state.on_node:
            for queue in instance.queue_path(pod.queue):
                taken[queue].update(dict(pod.requests))
    return taken
