"""What exchanges need to know of classes: what they ask of a zone and its node, where they may go, what they are worth.

A pod takes part where it is one unit for one zone (:func:`placer.instance.numa.is_plain`) and nothing but room says
where it may be: no host port, no call of a network, and within the HyperNode that its scopes are in where they are
limited. All others stay where they are, or are traded as a whole (:meth:`Facts.free`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from placer.dense import Dense, Solution
from placer.instance.numa import Units, is_plain

__all__ = ["Facts"]

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


class Facts:
    """What a solution and its instance say of each class, whatever is exchanged.

    Parameters
    ----------
    dense
        The instance; C10 concerns it.
    solution
        Keeps all rules.

    Attributes
    ----------
    columns
        Per kind of kubelet, the column of each of its resources.
    asked
        int64, shape (classes, zone resources + node resources): what a pod asks of its zone, then of its node.
    sort
        int64, shape (classes,): row of ``allowed``.
    allowed
        bool, shape (sorts + 1, nodes): where pods of a sort may come and go; the last row, that of nobody, is True.
    worth
        int64, shape (classes,): higher for what placing counts more.
    lone
        bool, shape (classes,): the only pod of its group, so that it may be placed and taken away as one likes.
    welcome
        bool, shape (classes,): one pod more may come wherever there is room.
    open
        bool, shape (nodes,): C10 applies, and nothing that stays there is bound among the others.
    """

    def __init__(self, dense: Dense, solution: Solution) -> None:
        assert dense.numa is not None
        self.dense, self.numa = dense, dense.numa
        names = sorted({name for kubelet in self.numa.kubelets for name in kubelet.resources})
        self.zone_width = len(names)
        column = {name: number for number, name in enumerate(names)}
        self.columns = [[column[name] for name in kubelet.resources] for kubelet in self.numa.kubelets]
        self.placed = Counter[int]()
        for (index, _), count in solution.items():
            self.placed[index] += count
        self.asked = np.zeros((len(dense.classes), len(names) + len(dense.resources)), dtype=np.int64)
        self.asked[:, len(names) :] = dense.requests
        self.open: BoolArray = self.numa.kind >= 0
        self.open[list(self.numa.held)] = False
        self.sort: IntArray = np.zeros(len(dense.classes), dtype=np.int64)
        self.allowed = self._allowed(solution)
        ranks = {
            key: rank for rank, key in enumerate(sorted({self._key(index) for index in range(len(dense.classes))}))
        }
        self.worth = np.array([ranks[self._key(index)] for index in range(len(dense.classes))], dtype=np.int64)
        sizes = [sum(dense.classes[index].size for index in group.classes) for group in dense.groups]
        self.lone = np.array([sizes[each.group] == 1 for each in dense.classes], dtype=bool)
        self.welcome = np.array([self._welcome(index) for index in range(len(dense.classes))], dtype=bool)

    def takes_part(self, index: int, node: int) -> bool:
        """Whether a pod of a class may be exchanged on a node as one unit of a zone."""
        return bool(self.allowed[self.sort[index], node])

    def free(self, index: int, node: int) -> bool:
        """Whether only its node's room and kubelet say whether a pod may be on a node, of however many units it is."""
        one = self.dense.classes[index]
        limited = self.dense.scopes[self.dense.groups[one.group].scope].limit is not None
        tied = bool(one.host_ports) or index in self.dense.workload_of or limited
        return bool(self.lone[index] and self.open[node] and self.dense.masks[one.mask, node]) and not tied

    def units(self, index: int, node: int) -> IntArray:
        """What each unit of a pod asks of a zone on a node: int64, shape (units, zone resources)."""
        kind = int(self.numa.kind[node])
        rows = [self._row(kind, (unit,)) for unit in self.numa.of(index, node)]
        return np.array(rows, dtype=np.int64).reshape(len(rows), self.zone_width)

    def _key(self, index: int) -> tuple[int, int]:
        one = self.dense.classes[index]
        return self.dense.groups[one.group].priority, one.weight

    def _welcome(self, index: int) -> bool:
        """Whether one pod more leaves its group ready, or makes it so."""
        one = self.dense.classes[index]
        group = self.dense.groups[one.group]
        if self.lone[index]:
            return True
        ready = group.short <= sum(self.placed[each] for each in group.classes)
        return ready and one.sub_group < 0 and not group.short_by_role and not group.short_by_policy

    def _allowed(self, solution: Solution) -> BoolArray:
        """Number the sorts of classes, and find out where each may be."""
        dense, numa = self.dense, self.numa
        places: dict[int, list[int]] = defaultdict(list)
        for index, node in solution:
            places[index].append(node)
        homes = [self._home(scope, places) for scope in range(len(dense.scopes))]
        number: dict[object, int] = {}
        rows: list[BoolArray] = []
        for index, one in enumerate(dense.classes):
            kinds = self._plain_kinds(index)
            scopes = [dense.groups[one.group].scope]
            if one.sub_group >= 0:
                scopes.append(dense.sub_groups[one.sub_group].scope)
            limited = tuple(scope for scope in scopes if homes[scope] is not None)
            key = (one.mask, tuple(kinds), limited)
            if key not in number:
                number[key] = len(rows)
                row = dense.masks[one.mask] & self.open & np.array([*kinds, False])[numa.kind]
                for scope in limited:
                    row &= homes[scope]
                rows.append(row)
            self.sort[index] = number[key]
        rows.append(np.ones(len(dense.nodes), dtype=bool))
        return np.array(rows, dtype=bool)

    def _home(self, scope: int, places: Mapping[int, list[int]]) -> BoolArray | None:
        """Nodes among which pods of a scope keep to its limit as long as all of them do; None: all nodes."""
        domains = self.dense.limit_domains(scope)
        if domains is None:
            return None
        tree = self.dense.domains
        nodes = [node for index in self.dense.scopes[scope].classes for node in places[index]]
        row = np.zeros(len(self.dense.nodes), dtype=bool)
        for domain in domains:
            if all(tree.begin[domain] <= node < tree.end[domain] for node in nodes):
                row[tree.begin[domain] : tree.end[domain]] = True
        return row

    def _plain_kinds(self, index: int) -> list[bool]:
        """For which kubelets a pod of a class takes part; sets what it asks of a zone, which is the same for all."""
        one = self.dense.classes[index]
        plain = [is_plain(units) for units in self.numa.units[index]]
        asked = {self._row(kind, units) for kind, units in enumerate(self.numa.units[index]) if plain[kind]}
        if len(asked) != 1 or one.host_ports or index in self.dense.workload_of:
            return [False] * len(plain)
        self.asked[index, : self.zone_width] = asked.pop()
        return plain

    def _row(self, kind: int, units: Units) -> tuple[int, ...]:
        row = [0] * self.zone_width
        for resource, need, _ in units[0].amounts:
            row[self.columns[kind][resource]] = need
        return tuple(row)
