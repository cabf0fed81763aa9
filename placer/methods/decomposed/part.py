"""A part of an instance with the rest held fast, as an instance of its own.

What stays where it is becomes running pods: it holds room, ports, capability and links, counts towards what its gang
needs, calls and is called, and says where its scopes are. What is free again, or pending, may go to the chosen nodes
only. So a neighbourhood needs no model of its own, and every rule holds in it by the same code.

The part has no more nodes than it needs: those that are chosen, and per leaf on which a scope of the part has pods that
stay one node without room that stands for them. It is small enough to be sent to another machine.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from placer.dense import Dense, DenseGroup, DenseNuma, DenseSubGroup, Domains, PodClass, QueueRow, Scope, Solution
from placer.instance import HostPort
from placer.instance.numa import Units
from placer.methods.decomposed.incumbent_state import IncumbentState
from placer.methods.decomposed.part_network import PartNetwork
from placer.methods.exact.model import Must

__all__ = ["Part", "make_part"]

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Part:
    """The part, and the way back.

    Parameters
    ----------
    dense
        The part as an instance.
    start
        What is free again, where it was: a solution of ``dense``.
    must
        What the pods that are held fast ask of ``dense``: that their groups and subgroups stay ready, and callees near.
    nodes, classes, groups
        Node, class and group of the whole instance that each of ``dense`` stems from.
    apps
        AppGroups of the whole instance that it decides about.
    """

    dense: Dense
    start: Solution
    must: Must
    nodes: IntArray
    classes: tuple[int, ...]
    groups: tuple[int, ...]
    apps: frozenset[int]

    def named(self, solution: Solution) -> Solution:
        """A solution of the part in the numbers of the whole instance."""
        return {(self.classes[index], int(self.nodes[node])): count for (index, node), count in solution.items()}


def make_part(
    standing: IncumbentState,
    nodes: Collection[int],
    pending: Collection[int],
    *,
    still: Collection[int] = (),
    slack: bool = True,
) -> Part:
    """Free what is on some nodes, and what is pending of some groups; hold everything else.

    Parameters
    ----------
    standing
        The whole instance and a solution of it that keeps all rules.
    nodes
        Where pods are freed and where they may go.
    pending
        Groups whose pods that wait may be placed.
    still
        Groups of which nothing is freed or placed, wherever it is: somebody else decides about them.
    slack
        Whether the part may use what queues and links have left; else only what its own pods had of it.
    """
    return _Cut(standing, nodes, pending, frozenset(still), slack).part()


class _Cut:
    def __init__(
        self,
        standing: IncumbentState,
        nodes: Collection[int],
        pending: Iterable[int],
        still: frozenset[int],
        slack: bool,
    ) -> None:
        self.standing, self.dense, self.slack = standing, standing.dense, slack
        dense = self.dense
        found = standing.there(nodes)
        self.freed = {place: count for place, count in found.items() if dense.classes[place[0]].group not in still}
        self.stays = {place: count for place, count in found.items() if dense.classes[place[0]].group in still}
        self.freed_on = Counter[int]()
        for (index, _), count in self.freed.items():
            self.freed_on[index] += count
        size = Counter(self.freed_on)
        for group in pending:
            for index in dense.groups[group].classes if group not in still else ():
                size[index] += dense.classes[index].size - standing.placed[index]
        self.size = +size
        self.classes = sorted(self.size)
        self.groups = sorted({dense.classes[index].group for index in self.classes})
        self.subs = sorted({sub for index in self.classes if (sub := dense.classes[index].sub_group) >= 0})
        self.class_number = {index: number for number, index in enumerate(self.classes)}
        self.group_number = {group: number for number, group in enumerate(self.groups)}
        self.sub_number = {sub: number for number, sub in enumerate(self.subs)}
        self.masks = sorted({dense.classes[index].mask for index in self.classes})
        self.chosen = np.array(sorted(nodes), dtype=np.int64)
        self._stand_ins()

    def _stand_ins(self) -> None:
        """Choose the nodes of the part: the chosen ones, and per leaf with pods that stay one that stands for them."""
        unit = self.dense.leaf_unit
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
        number = {int(node): position for position, node in enumerate(self.nodes)}
        self.node_number = number
        self.unit_number = {unit: number[node] for unit, node in stand_in.items()}

    def _fast(self, index: int) -> list[int]:
        """Nodes of the pods of a scope that stay, running ones and ours, one per pod."""
        scope = self.dense.scopes[index]
        found = list(scope.bound)
        for each in scope.classes:
            for node, count in self.standing.where.get(each, {}).items():
                found += [node] * (count - self.freed.get((each, node), 0))
        return found

    def part(self) -> Part:
        dense, numbers = self.dense, self.nodes
        chosen = np.isin(numbers, self.chosen)
        used = self._used()
        network = PartNetwork(self.standing, numbers, self.freed, self.class_number, self.slack)
        inner = replace(
            dense,
            nodes=tuple(dense.nodes[node] for node in numbers),
            free=self._free(chosen),
            masks=dense.masks[self.masks][:, numbers] & chosen,
            leaf=dense.leaf[numbers],
            leaf_unit=dense.leaf_unit[numbers],
            node_used=used[numbers],
            domains=dense.domains,
            classes=tuple(self._class(index) for index in self.classes),
            groups=tuple(self._group(group) for group in self.groups),
            sub_groups=tuple(self._sub_group(sub) for sub in self.subs),
            scopes=tuple(self._scope(scope) for scope in self.scopes),
            queue_rows=tuple(row for each in dense.queue_rows if (row := self._queue_row(each)).classes),
            ports=self._ports(),
            network=network.network(),
            numa=None if dense.numa is None else dense.numa.at(numbers, self.classes, self._held_pods(dense.numa)),
            constant_locality=0,
            constant_span=0,
            constant_network=0,
        )
        inner = self._with_domains(inner, used)
        start = {
            (self.class_number[index], self.node_number[node]): count for (index, node), count in self.freed.items()
        }
        must = Must(
            frozenset(n for n, group in enumerate(self.groups) if self._held(dense.groups[group].classes)),
            frozenset(n for n, sub in enumerate(self.subs) if self._held(dense.sub_groups[sub].classes)),
            network.surplus(),
        )
        return Part(inner, start, must, numbers, tuple(self.classes), tuple(self.groups), network.apps())

    def _held_pods(self, numa: DenseNuma) -> dict[int, tuple[Units, ...]]:
        """Node of the part to the pods that stay there, as its kubelet sees them (C10)."""
        by_node: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for (index, node), count in self.stays.items():
            by_node[node].append((index, count))
        found = {self.node_number[node]: tuple(numa.pods(node, counts)) for node, counts in by_node.items()}
        return {node: pods for node, pods in found.items() if pods}

    def _with_domains(self, inner: Dense, used: npt.NDArray[np.bool_]) -> Dense:
        """Keep the domains that hold a node of the part, and the root."""
        tree = self.dense.domains
        begin, end = np.searchsorted(self.nodes, tree.begin), np.searchsorted(self.nodes, tree.end)
        kept = np.flatnonzero((end > begin) | (np.arange(len(begin)) == tree.root))
        number = np.full(len(begin) + 1, -1, dtype=np.int64)
        number[kept] = np.arange(len(kept))
        sums = np.concatenate(([0], np.cumsum(used)))
        domains = Domains(
            names=tuple(tree.names[domain] for domain in kept),
            tier=tree.tier[kept],
            parent=number[tree.parent[kept]],
            begin=begin[kept],
            end=end[kept],
            used=sums[tree.end[kept]] > sums[tree.begin[kept]],
        )
        return replace(inner, domains=domains, leaf=number[inner.leaf])

    def _used(self) -> npt.NDArray[np.bool_]:
        """Nodes that are in use whatever the part does."""
        used = self.standing.used.copy()
        used[self.chosen] = self.dense.node_used[self.chosen]
        for index, node in self.stays:
            used[node] |= not self.dense.classes[index].daemon
        return used

    def _free(self, chosen: npt.NDArray[np.bool_]) -> IntArray:
        free = np.zeros((len(self.nodes), len(self.dense.resources)), dtype=np.int64)
        free[chosen] = self.standing.free[self.chosen]
        for (index, node), count in self.freed.items():
            free[self.node_number[node]] += self.dense.classes[index].request * count
        return free

    def _held(self, classes: Iterable[int]) -> int:
        return sum(self._held_of(index) for index in classes)

    def _held_of(self, index: int) -> int:
        """Pods of a class that stay where they are."""
        return self.standing.placed[index] - self.freed_on[index]

    def _class(self, index: int) -> PodClass:
        one = self.dense.classes[index]
        return replace(
            one,
            pods=one.pods[:1] * self.size[index],  # only their number matters, and they travel
            group=self.group_number[one.group],
            sub_group=self.sub_number.get(one.sub_group, -1),
            mask=self.masks.index(one.mask),
        )

    def _group(self, index: int) -> DenseGroup:
        group = self.dense.groups[index]
        roles = (
            (role, short - self._held(i for i in group.classes if self.dense.classes[i].role == role))
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
            scope=self.scopes.index(group.scope),
        )

    def _sub_group(self, index: int) -> DenseSubGroup:
        sub = self.dense.sub_groups[index]
        return replace(
            sub,
            group=self.group_number[sub.group],
            classes=self._numbers(sub.classes),
            short=max(0, sub.short - self._held(sub.classes)),
            scope=self.scopes.index(sub.scope),
        )

    def _scope(self, index: int) -> Scope:
        scope = self.dense.scopes[index]
        unit = self.dense.leaf_unit
        bound = (self.unit_number[int(unit[node])] if node >= 0 else -1 for node in self.fast[index])
        return replace(scope, classes=self._numbers(scope.classes), bound=tuple(bound))

    def _numbers(self, classes: Iterable[int]) -> tuple[int, ...]:
        return tuple(self.class_number[index] for index in classes if index in self.class_number)

    def _queue_row(self, row: QueueRow) -> QueueRow:
        requests = ((index, int(self.dense.classes[index].request[row.resource])) for index in row.classes)
        if self.slack:
            room = row.room - sum(self._held_of(index) * amount for index, amount in requests)
        else:
            room = sum(self.freed_on[index] * amount for index, amount in requests)
        return replace(row, room=room, classes=self._numbers(row.classes))

    def _ports(self) -> dict[int, tuple[HostPort, ...]]:
        ports = {self.node_number[node]: taken for node, taken in self.dense.ports.items() if node in self.node_number}
        for index, node in self.stays:
            if self.dense.classes[index].host_ports:
                number = self.node_number[node]
                ports[number] = (*ports.get(number, ()), *self.dense.classes[index].host_ports)
        return ports
