"""A subproblem: some nodes and groups are decided again and the rest is fixed; it is an instance of its own.

Fixed pods become running pods, so every rule holds in it by the same code. Example: of a gang of 8 with 5 fixed pods, 3
are left to place, and the 5 count towards its minimum. It has the nodes that are freed, and per leaf on which one of
its scopes has fixed pods one node without room that stands for them: small enough to be sent to another machine.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np

from placer.arrays import (
    Call,
    Dense,
    DenseGroup,
    DenseNetwork,
    DenseScope,
    DenseSubGroup,
    Domains,
    PodClass,
    QueueRow,
    Solution,
    Workload,
)
from placer.arrays.dense_neighbours import DenseNeighbours
from placer.arrays.numa import DenseNuma
from placer.arrays.packed_kubelet import Units
from placer.arrays.solution import BoolArray, IntArray
from placer.search.decomposed.incumbent_state import IncumbentState
from placer.search.exact.calls import surplus_of
from placer.search.exact.method import Must
from placer.search.partial import SharedRoom

K = TypeVar("K", str, int)


@dataclass(frozen=True)
class Subproblem:
    """A subproblem, and the way back to the whole instance: node, class and group that each of ``dense`` stems from.

    ``start`` has the freed pods, where they were; ``must`` the demands of the fixed pods: that their groups stay ready,
    and callees near. It decides about the AppGroups ``apps``.
    """

    dense: Dense
    start: Solution
    must: Must
    nodes: IntArray
    classes: tuple[int, ...]
    groups: tuple[int, ...]
    apps: frozenset[int]

    def named(self, solution: Solution) -> Solution:
        """A solution of the subproblem in the numbers of the whole instance."""
        return solution.renumbered(self.classes.__getitem__, lambda node: int(self.nodes[node]))


def make_subproblem(
    incumbent: IncumbentState,
    nodes: Collection[int],
    pending: Collection[int],
    *,
    locked: Collection[int] = (),
    slack: bool = True,
) -> Subproblem:
    """Free the pods on some nodes, and the pending pods of some groups; fix everything else.

    Another subproblem decides about ``locked`` groups. Without ``slack`` only the shares that its own pods had of
    queues and links may be used.
    """
    dense, there, fixed = incumbent.dense, incumbent.there(nodes), frozenset(locked)
    freed = there.only(lambda index, _: dense.classes[index].group not in fixed)
    held = there.only(lambda index, _: dense.classes[index].group in fixed)
    spare = None if slack else incumbent.shared_room()
    with incumbent.without(freed):
        groups = [group for group in pending if group not in fixed]
        return _SubproblemBuilder(incumbent, nodes, groups, freed, held, spare).subproblem()


class _SubproblemBuilder:
    """What is fixed, and the numbers that classes, groups, subgroups, scopes and nodes get; ``rest`` is without freed
    pods.
    """

    def __init__(
        self,
        rest: IncumbentState,
        nodes: Collection[int],
        pending: Iterable[int],
        freed: Solution,
        held: Solution,
        spare: SharedRoom | None,
    ) -> None:
        self.rest, self.dense, self.freed, self.held, self.spare = rest, rest.dense, freed, held, spare
        dense = self.dense
        self.size = self._sizes(pending)
        self.classes = sorted(self.size)
        self.groups = sorted({dense.classes[index].group for index in self.classes})
        self.subs = sorted({sub for index in self.classes if (sub := dense.classes[index].sub_group) >= 0})
        self.masks = sorted({dense.classes[index].mask for index in self.classes})
        self.class_number, self.group_number, self.sub_number, self.mask_number = map(
            _renumbered, (self.classes, self.groups, self.subs, self.masks)
        )
        self.chosen = np.array(sorted(nodes), dtype=np.int64)
        self._stand_ins()

    def _sizes(self, pending: Iterable[int]) -> dict[int, int]:
        size: Counter[int] = Counter()
        for (index, _), count in self.freed.items():
            size[index] += count
        for group in pending:
            for index in self.dense.groups[group].classes:
                size[index] = self.rest.left(index)
        return +size

    def _stand_ins(self) -> None:
        unit = self.dense.span_leaf
        self.scopes = sorted(
            {self.dense.groups[group].scope for group in self.groups}
            | {self.dense.sub_groups[sub].scope for sub in self.subs}
        )
        self.fast = {scope: self._fast(scope) for scope in self.scopes}
        stand_in = {int(unit[node]): int(node) for node in self.chosen}
        for nodes in self.fast.values():
            for node in nodes:
                if node >= 0:
                    stand_in.setdefault(int(unit[node]), node)
        others = np.array(list(stand_in.values()), dtype=np.int64)
        self.nodes = np.unique(np.concatenate((self.chosen, others)))
        self.node_number, self.scope_number = _renumbered(self.nodes.tolist()), _renumbered(self.scopes)
        self.unit_number = {unit: self.node_number[node] for unit, node in stand_in.items()}

    def _fast(self, index: int) -> list[int]:
        scope = self.dense.scopes[index]
        found = list(scope.bound)
        for each in scope.classes:
            for node, count in self.rest.where.get(each, {}).items():
                found += [node] * count
        return found

    def subproblem(self) -> Subproblem:
        dense, numbers = self.dense, self.nodes
        chosen = np.isin(numbers, self.chosen)
        network = _SubproblemNetwork(self.rest, numbers, self.node_number, self.class_number, self.spare)
        inner = replace(
            dense,
            nodes=tuple(dense.nodes[node] for node in numbers),
            free=self._free(chosen),
            masks=dense.masks[self.masks][:, numbers] & chosen,
            leaf=dense.leaf[numbers],
            span_leaf=dense.span_leaf[numbers],
            node_used=self.rest.used[numbers],
            classes=tuple(map(self._class, self.classes)),
            groups=tuple(map(self._group, self.groups)),
            sub_groups=tuple(map(self._sub_group, self.subs)),
            scopes=tuple(map(self._scope, self.scopes)),
            queue_rows=tuple(row for row in map(self._queue_row, range(len(dense.queue_rows))) if row.classes),
            ports={number: ports for node, number in self.node_number.items() if (ports := self.rest.ports_of(node))},
            network=network.network(),
            numa=None if dense.numa is None else dense.numa.only(numbers, self.classes, self._held_pods(dense.numa)),
            neighbours=self._neighbours(),
            constant_locality=0,
            constant_span=0,
            constant_network=0,
        )
        return Subproblem(
            self._with_domains(inner),
            self.freed.renumbered(self.class_number.__getitem__, self.node_number.__getitem__),
            self._must(network.surplus()),
            numbers,
            tuple(self.classes),
            tuple(self.groups),
            network.apps(),
        )

    def _must(self, surplus: dict[tuple[int, int], int]) -> Must:
        groups, subs = self.dense.groups, self.dense.sub_groups
        return Must(
            frozenset(number for group, number in self.group_number.items() if self._held(groups[group].classes)),
            frozenset(number for sub, number in self.sub_number.items() if self._held(subs[sub].classes)),
            surplus,
        )

    def _neighbours(self) -> DenseNeighbours | None:
        if self.rest.neighbours is None or all(self.dense.classes[index].neighbours < 0 for index in self.classes):
            return None
        return self.rest.neighbours.beside(self.nodes, self.class_number)

    def _held_pods(self, numa: DenseNuma) -> dict[int, tuple[Units, ...]]:
        by_node: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for index, node, count in self.held.in_order():
            by_node[node].append((index, count))
        found = {self.node_number[node]: tuple(numa.pods(node, counts)) for node, counts in by_node.items()}
        return {node: pods for node, pods in found.items() if pods}

    def _with_domains(self, inner: Dense) -> Dense:
        tree = self.dense.domains
        begin, end = np.searchsorted(self.nodes, tree.begin), np.searchsorted(self.nodes, tree.end)
        kept = np.flatnonzero((end > begin) | (np.arange(len(begin)) == tree.root))
        number = np.full(len(begin) + 1, -1, dtype=np.int64)
        number[kept] = np.arange(len(kept))
        domains = Domains(
            names=tuple(tree.names[domain] for domain in kept),
            tier=tree.tier[kept],
            parent=number[tree.parent[kept]],
            begin=begin[kept],
            end=end[kept],
            used=tree.sums(self.rest.used.astype(np.int64))[kept] > 0,
        )
        return replace(inner, domains=domains, leaf=number[inner.leaf])

    def _free(self, chosen: BoolArray) -> IntArray:
        return np.where(chosen[:, None], self.rest.free[self.nodes], 0)

    def _held(self, classes: Iterable[int]) -> int:
        return sum(self.rest.placed[index] for index in classes)

    def _class(self, index: int) -> PodClass:
        one = self.dense.classes[index]
        return replace(
            one,
            pods=one.pods[:1] * self.size[index],  # only their number matters, and they travel
            group=self.group_number[one.group],
            sub_group=self.sub_number.get(one.sub_group, -1),
            mask=self.mask_number[one.mask],
        )

    def _group(self, index: int) -> DenseGroup:
        group = self.dense.groups[index]
        return replace(
            group,
            classes=self._numbers(group.classes),
            sub_groups=tuple(self.sub_number[sub] for sub in group.sub_groups if sub in self.sub_number),
            short=max(0, group.short - self._held(group.classes)),
            short_by_role=_still_short(group.short_by_role, lambda: self._held_by_role(group)),
            short_by_policy=_still_short(group.short_by_policy, lambda: self._ready_by_policy(group)),
            scope=self.scope_number[group.scope],
        )

    def _held_by_role(self, group: DenseGroup) -> Counter[str]:
        found: Counter[str] = Counter()
        for index in group.classes:
            found[self.dense.classes[index].role] += self.rest.placed[index]
        return found

    def _ready_by_policy(self, group: DenseGroup) -> Counter[int]:
        subs = (self.dense.sub_groups[sub] for sub in group.sub_groups)
        return Counter(sub.policy for sub in subs if 0 < sub.short <= self._held(sub.classes))

    def _sub_group(self, index: int) -> DenseSubGroup:
        sub = self.dense.sub_groups[index]
        return replace(
            sub,
            group=self.group_number[sub.group],
            classes=self._numbers(sub.classes),
            short=max(0, sub.short - self._held(sub.classes)),
            scope=self.scope_number[sub.scope],
        )

    def _scope(self, index: int) -> DenseScope:
        scope = self.dense.scopes[index]
        unit = self.dense.span_leaf
        bound = (self.unit_number[int(unit[node])] if node >= 0 else -1 for node in self.fast[index])
        return replace(scope, classes=self._numbers(scope.classes), bound=tuple(bound))

    def _numbers(self, classes: Iterable[int]) -> tuple[int, ...]:
        return tuple(self.class_number[index] for index in classes if index in self.class_number)

    def _queue_row(self, number: int) -> QueueRow:
        row, kept = self.dense.queue_rows[number], 0 if self.spare is None else self.spare.queues[number]
        return replace(row, room=self.rest.queue_room[number] - kept, classes=self._numbers(row.classes))


def _renumbered(of_whole: Iterable[int]) -> dict[int, int]:
    return {each: number for number, each in enumerate(of_whole)}


def _still_short(asked: tuple[tuple[K, int], ...], held: Callable[[], Counter[K]]) -> tuple[tuple[K, int], ...]:
    if not asked:
        return asked
    there = held()
    return tuple((each, short - there[each]) for each, short in asked if short > there[each])


@dataclass(frozen=True)
class _SubproblemNetwork:
    rest: IncumbentState
    nodes: IntArray
    node_number: Mapping[int, int]
    class_number: Mapping[int, int]
    spare: SharedRoom | None

    @property
    def whole(self) -> DenseNetwork:
        assert self.rest.dense.network is not None
        return self.rest.dense.network

    @cached_property
    def mine(self) -> frozenset[int]:
        owner = self.rest.dense.workload_of
        return frozenset(owner[index] for index in self.class_number if index in owner)

    @cached_property
    def calls(self) -> tuple[Call, ...]:
        found = [call for call in self.whole.calls if call.origin in self.mine or call.destination in self.mine]
        if self.whole.majority:
            origins = {call.origin for call in found}
            found = [call for call in self.whole.calls if call.origin in origins]
        return tuple(found)

    @cached_property
    def number(self) -> dict[int, int]:
        ends = dict.fromkeys(end for call in self.calls for end in (call.origin, call.destination))
        return {workload: number for number, workload in enumerate(ends)}

    @cached_property
    def stays(self) -> dict[int, Counter[int]]:
        return {workload: self.rest.pods_of(workload) for workload in self.number}

    @cached_property
    def areas(self) -> dict[int, int]:
        there = {int(area) for area in self.whole.area[self.nodes]}
        for workload in self.number:
            one = self.whole.workloads[workload]
            there.update(area for _, area, _ in (*one.bound, *one.leaving))
            there.update(int(self.whole.area[node]) for node in self.stays[workload])
        return {area: number for number, area in enumerate(sorted(there))}

    def network(self) -> DenseNetwork | None:
        if self.rest.dense.network is None or not self.calls:
            return None
        kept = np.array(list(self.areas), dtype=np.int64)
        link = self.whole.link[np.ix_(kept, kept)]
        links = np.unique(link[link >= 0])
        rooms = self._rooms()
        return replace(
            self.whole,
            area=np.array([self.areas[int(area)] for area in self.whole.area[self.nodes]], dtype=np.int64),
            cost=self.whole.cost[np.ix_(kept, kept)],
            link=np.where(link >= 0, np.searchsorted(links, link), -1),
            room=tuple(rooms[int(each)] for each in links),
            workloads=tuple(self._workload(workload) for workload in self.number),
            calls=tuple(
                replace(call, origin=self.number[call.origin], destination=self.number[call.destination])
                for call in self.calls
            ),
        )

    def _workload(self, index: int) -> Workload:
        one = self.whole.workloads[index]
        there: Counter[tuple[int, int]] = Counter()
        for node, area, count in one.bound:
            there[self.node_number.get(node, -1), self.areas[area]] += count
        for node, count in self.stays[index].items():
            there[self.node_number.get(node, -1), self.areas[int(self.whole.area[node])]] += count
        leaving = ((self.node_number.get(node, -1), self.areas[area], count) for node, area, count in one.leaving)
        return replace(
            one,
            classes=tuple(self.class_number[each] for each in one.classes if each in self.class_number),
            bound=tuple((node, area, count) for (node, area), count in sorted(there.items())),
            leaving=tuple(leaving),
        )

    def _rooms(self) -> list[int]:
        left = self.rest.shared_room().links
        return left if self.spare is None else [room - kept for room, kept in zip(left, self.spare.links, strict=True)]

    def surplus(self) -> dict[tuple[int, int], int]:
        """With ``majority``: workload and area to how many more callees may be too far than near enough.

        For new callers that stay there 0, for running ones the surplus of running callees alone.
        """
        if self.rest.dense.network is None or not self.whole.majority:
            return {}
        bound = self._bound()
        found = {}
        for origin in {call.origin for call in self.calls}:
            mine = [call for call in self.whole.calls if call.origin == origin]
            new = {int(self.whole.area[node]) for node in self.stays[origin]}
            for area in {*new, *np.flatnonzero(bound[origin]).tolist()}:
                most = 0 if area in new else max(0, surplus_of(self.whole, bound, mine, area))
                found[self.number[origin], self.areas[area]] = most
        return found

    def _bound(self) -> IntArray:
        found = np.zeros((len(self.whole.workloads), len(self.whole.cost)), dtype=np.int64)
        for number, workload in enumerate(self.whole.workloads):
            for _, area, count in workload.bound:
                found[number, area] += count
        return found

    def apps(self) -> frozenset[int]:
        return frozenset(self.whole.workloads[workload].app for workload in self.mine)
