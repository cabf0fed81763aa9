"""A part of an instance with the rest held fast, as an instance of its own.

What stays where it is becomes running pods: it holds room, ports and capability, counts towards what its gang needs,
and says where its scopes are. What is free again, or pending, may go to the chosen nodes only. So a neighbourhood
needs no model of its own, and every rule holds in it by the same code.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from placer.dense import Dense, DenseGroup, DenseSubGroup, PodClass, QueueRow, Scope, Solution
from placer.instance import HostPort

__all__ = ["Part", "restrict"]

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Part:
    """The part, and the way back.

    Parameters
    ----------
    dense
        The part as an instance.
    fixed
        What stays where it is.
    start
        What is free again, where it was: a solution of ``dense``.
    classes
        Class of the whole instance that each class of ``dense`` stems from.
    must
        Groups and subgroups of ``dense`` that must stay ready, since some of their pods are held fast.
    """

    dense: Dense
    fixed: Solution
    start: Solution
    classes: tuple[int, ...]
    must: tuple[frozenset[int], frozenset[int]]

    def whole(self, solution: Solution) -> Solution:
        """Solution of the whole instance that a solution of the part makes."""
        found = dict(self.fixed)
        for (index, node), count in solution.items():
            place = (self.classes[index], node)
            found[place] = found.get(place, 0) + count
        return found


def restrict(dense: Dense, solution: Solution, nodes: BoolArray, pending: frozenset[int]) -> Part:
    """Free what is on some nodes, and what is pending of some groups; hold everything else.

    Parameters
    ----------
    dense, solution
        The whole instance and a solution of it that keeps all rules.
    nodes
        bool, shape (nodes,): where pods are freed and where they may go.
    pending
        Groups whose pods that wait may be placed.
    """
    return _Restriction(dense, solution, nodes, pending).part()


class _Restriction:
    def __init__(self, dense: Dense, solution: Solution, nodes: BoolArray, pending: frozenset[int]) -> None:
        self.dense, self.nodes = dense, nodes
        self.fixed = {place: count for place, count in solution.items() if not nodes[place[1]]}
        self.freed = {place: count for place, count in solution.items() if nodes[place[1]]}
        placed, size = Counter[int](), Counter[int]()
        for (index, _), count in solution.items():
            placed[index] += count
        for (index, _), count in self.freed.items():
            size[index] += count
        for group in pending:
            for index in dense.groups[group].classes:
                size[index] += dense.classes[index].size - placed[index]
        self.size = +size
        self.held = Counter[int]()
        self.at: dict[int, list[int]] = defaultdict(list)
        for (index, node), count in self.fixed.items():
            self.held[index] += count
            self.at[index].extend([node] * count)
        self.groups = sorted({dense.classes[index].group for index in self.size})
        subs = (dense.classes[index].sub_group for index in self.size)
        self.subs = sorted({sub for sub in subs if sub >= 0})
        self.classes = sorted(self.size)
        self.group_number = {group: number for number, group in enumerate(self.groups)}
        self.class_number = {index: number for number, index in enumerate(self.classes)}
        self.sub_number = {sub: number for number, sub in enumerate(self.subs)}

    def part(self) -> Part:
        dense = self.dense
        scopes: list[Scope] = []
        groups = [self._group(group, scopes) for group in self.groups]
        sub_groups = [self._sub_group(sub, scopes) for sub in self.subs]
        used = self._used()
        sums = np.concatenate(([0], np.cumsum(used)))
        inner = replace(
            dense,
            free=self._free(),
            masks=dense.masks & self.nodes,
            node_used=used,
            domains=replace(dense.domains, used=sums[dense.domains.end] > sums[dense.domains.begin]),
            classes=tuple(self._class(index) for index in self.classes),
            groups=tuple(groups),
            sub_groups=tuple(sub_groups),
            scopes=tuple(scopes),
            queue_rows=tuple(map(self._queue_row, dense.queue_rows)),
            ports=self._ports(),
            constant_locality=0,
            constant_span=0,
        )
        start = {(self.class_number[index], node): count for (index, node), count in self.freed.items()}
        held_groups = frozenset(
            number for number, group in enumerate(self.groups) if self._held(dense.groups[group].classes)
        )
        held_subs = frozenset(
            number for number, sub in enumerate(self.subs) if self._held(dense.sub_groups[sub].classes)
        )
        return Part(inner, self.fixed, start, tuple(self.classes), (held_groups, held_subs))

    def _held(self, classes: tuple[int, ...]) -> int:
        return sum(self.held[index] for index in classes)

    def _class(self, index: int) -> PodClass:
        one = self.dense.classes[index]
        group, sub = self.group_number[one.group], self.sub_number.get(one.sub_group, -1)
        return replace(one, pods=one.pods[: self.size[index]], group=group, sub_group=sub)

    def _group(self, index: int, scopes: list[Scope]) -> DenseGroup:
        group = self.dense.groups[index]
        roles = (
            (role, short - self._held(tuple(i for i in group.classes if self.dense.classes[i].role == role)))
            for role, short in group.short_by_role
        )
        ready = Counter(
            self.dense.sub_groups[sub].policy
            for sub in group.sub_groups
            if 0 < self.dense.sub_groups[sub].short <= self._held(self.dense.sub_groups[sub].classes)
        )
        policies = ((policy, short - ready[policy]) for policy, short in group.short_by_policy)
        return replace(
            group,
            classes=self._numbers(group.classes),
            sub_groups=tuple(self.sub_number[sub] for sub in group.sub_groups if sub in self.sub_number),
            short=max(0, group.short - self._held(group.classes)),
            short_by_role=tuple((role, short) for role, short in roles if short > 0),
            short_by_policy=tuple((policy, short) for policy, short in policies if short > 0),
            scope=self._scope(group.scope, scopes),
        )

    def _sub_group(self, index: int, scopes: list[Scope]) -> DenseSubGroup:
        sub = self.dense.sub_groups[index]
        return replace(
            sub,
            group=self.group_number[sub.group],
            classes=self._numbers(sub.classes),
            short=max(0, sub.short - self._held(sub.classes)),
            scope=self._scope(sub.scope, scopes),
        )

    def _scope(self, index: int, scopes: list[Scope]) -> int:
        scope = self.dense.scopes[index]
        held = [node for each in scope.classes for node in self.at.get(each, ())]
        scopes.append(replace(scope, classes=self._numbers(scope.classes), bound=(*scope.bound, *held)))
        return len(scopes) - 1

    def _numbers(self, classes: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(self.class_number[index] for index in classes if index in self.class_number)

    def _free(self) -> npt.NDArray[np.int64]:
        free = self.dense.free.copy()
        for (index, node), count in self.fixed.items():
            free[node] -= count * self.dense.classes[index].request
        return np.maximum(free, 0)

    def _used(self) -> BoolArray:
        used = self.dense.node_used.copy()
        for index, node in self.fixed:
            used[node] |= not self.dense.classes[index].daemon
        return used

    def _queue_row(self, row: QueueRow) -> QueueRow:
        held = sum(self.held[index] * int(self.dense.classes[index].request[row.resource]) for index in row.classes)
        return replace(row, room=row.room - held, classes=self._numbers(row.classes))

    def _ports(self) -> dict[int, tuple[HostPort, ...]]:
        ports = dict(self.dense.ports)
        for index, node in self.fixed:
            if self.dense.classes[index].host_ports:
                ports[node] = (*ports.get(node, ()), *self.dense.classes[index].host_ports)
        return ports
