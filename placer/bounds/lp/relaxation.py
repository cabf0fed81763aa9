"""The placement problem by the fraction: groups, pods and room, without saying which node.

Columns: per kind of equal groups how many are ready; of those that are not placed whole, per kind of subgroup how many
are ready and per class how many pods are placed, so that optional pods stand apart from needed ones; per shape how many
pods go to each class of nodes, where there are several. Rows: what makes groups (C5) and subgroups (C6) ready, queues
(C11), the room of each node class (C2, C3), and for pods that must lie in one domain (C7) what the roomiest one holds.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from placer.bounds.alone import Alone
from placer.bounds.kinds import Block, Kind, Place
from placer.bounds.lp.classes import NodeClasses
from placer.linear import IntegerProgram

__all__ = ["Item", "Relaxation", "Terms"]

#: Column to coefficient.
Terms = dict[int, int]


@dataclass(frozen=True)
class Item:
    """Things that lie in one domain each: groups or subgroups with a tier limit.

    Parameters
    ----------
    column, many
        A unit of the column stands for so many of them.
    limit
        The tier limit.
    what
        The groups, or the subgroups.
    """

    column: int
    many: int
    limit: int
    what: Kind | Block


class Relaxation:
    """Columns and rows of the instance, values as terms.

    Parameters
    ----------
    alone
        What can be placed at most.

    Attributes
    ----------
    program
        To be maximised with the terms of a value.
    classes
        The node classes.
    items
        What lies in one domain, the outermost scopes with a limit.
    on
        Shape and node class to the terms that count the pods of the shape that go there.
    """

    def __init__(self, alone: Alone) -> None:
        self.alone, self.dense, self.shapes = alone, alone.dense, alone.shapes
        self.program = IntegerProgram()
        self.items: list[Item] = []
        self.on: dict[tuple[int, int], Terms] = {}
        self.admitted: dict[int, Terms] = defaultdict(dict)
        self.placed: dict[int, Terms] = defaultdict(lambda: defaultdict(int))
        self.pods: dict[int, Terms] = defaultdict(lambda: defaultdict(int))
        self.queued: dict[int, Terms] = defaultdict(lambda: defaultdict(int))
        for kind in alone.kinds:
            _Columns(self, kind).add()
        self.classes = NodeClasses(self.shapes, np.array(sorted(self.pods), dtype=np.int64))
        self._spread()
        self._rooms()
        for number, terms in self.queued.items():
            self.program.at_most(terms, self.dense.queue_rows[number].room)

    def value(self, name: str, priority: int | None) -> Terms:
        """Return the terms of ``admitted`` or ``placed``; priority None: of all priorities."""
        of = self.admitted if name == "admitted" else self.placed
        chosen = list(of.values()) if priority is None else [of.get(priority, {})]
        return {column: gain for terms in chosen for column, gain in terms.items()}

    def _spread(self) -> None:
        """Say how many pods of each shape go to each node class: pods(j) <= sum over k of x(j, k)."""
        for shape, pods in self.pods.items():
            held = self.classes.held[shape].tolist()
            there = [where for where, room in enumerate(held) if room]
            if len(there) == 1:
                self.on[shape, there[0]] = pods
                self.program.at_most(pods, held[there[0]])
                continue
            most = sum(self.program.upper[column] * many for column, many in pods.items())
            columns = [self.program.column(min(most, held[where])) for where in there]
            self.on |= {(shape, where): {column: 1} for where, column in zip(there, columns, strict=True)}
            self.program.at_most({**pods, **dict.fromkeys(columns, -1)}, 0)

    def _rooms(self) -> None:
        """C2: per node class and resource, sum over shapes of request(j) x(j, k) <= room(k)."""
        rows: dict[tuple[int, int], Terms] = defaultdict(dict)
        for (shape, where), terms in self.on.items():
            for resource, amount in enumerate(self.shapes.request[shape].tolist()):
                if amount:
                    row = rows[where, resource]
                    for column, many in terms.items():
                        row[column] = row.get(column, 0) + amount * many
        for (where, resource), terms in rows.items():
            self.program.at_most(terms, int(self.classes.room[where, resource]))


@dataclass(frozen=True)
class _Pods:
    """Pods that a column counts: ``many`` of a shape and a role per unit; at most ``size`` in a group or block."""

    column: int
    many: int
    shape: int
    role: str
    size: int


class _Columns:
    """Adds the columns of one kind of groups, and the rows that only these are in.

    Parameters
    ----------
    to
        Where they are added.
    kind
        The groups.
    """

    def __init__(self, to: Relaxation, kind: Kind) -> None:
        self.to, self.kind, self.program = to, kind, to.program
        self.many = len(kind.members)
        self.ready = self.program.column(self.many)
        self.pods: list[_Pods] = []
        self.enough: dict[int, Terms] = defaultdict(dict)

    def add(self) -> None:
        """Groups that are placed whole need one column; others one per kind of subgroup and per class."""
        kind = self.kind
        if kind.need_weight:
            self.to.admitted[kind.priority][self.ready] = kind.need_weight
        if kind.place is not None:
            self.to.items.append(Item(self.ready, 1, kind.place[0], kind))
        blocks = {block: many for block, many in Counter(kind.blocks).items() if any(block.sizes)}
        pods = int(kind.least(np.ones((len(kind.sizes), 1), dtype=np.int64))[0])
        if pods == sum(kind.sizes) and not kind.ready:
            for block, many in blocks.items():
                self._item(block, self.ready, many)
                self._take(block, [self.ready] * len(block.sizes), [many * size for size in block.sizes])
            return
        for block, many in blocks.items():
            self._add_block(block, many)
        self._within(kind.place, None, self.pods, {self.ready: 1})
        self._demands()

    def _item(self, block: Block, column: int, many: int) -> None:
        if self.kind.place is None and block.place is not None and block.short:
            self.to.items.append(Item(column, many, block.place[0], block))

    def _add_block(self, block: Block, many: int) -> None:
        """Pods of a block come only with its group, and with so many of its own that it is ready."""
        if not block.short:
            pods = self._pods_of(block, many, {} if self.kind.ready else {self.ready: many})
            self._within(block.place, self.kind.place, pods, {self.ready: many})
            return
        enough = self.program.column(self.many * many)
        self.enough[block.policy][enough] = 1
        self._item(block, enough, 1)
        self.program.at_most({enough: 1, self.ready: -many}, 0)
        if block.short == sum(block.sizes):
            self._take(block, [enough] * len(block.sizes), block.sizes)
            return
        pods = self._pods_of(block, many, {enough: 1})
        self.program.at_most({enough: block.short, **{each.column: -1 for each in pods}}, 0)
        self._within(block.place, self.kind.place, pods, {enough: 1})

    def _pods_of(self, block: Block, many: int, gate: Terms) -> list[_Pods]:
        """A column per class of a block; where there is a gate, only ``size`` for each that is ready."""
        columns = [self.program.column(self.many * many * size) for size in block.sizes]
        for column, size in zip(columns, block.sizes, strict=True):
            if gate:
                self.program.at_most({column: 1, **{ready: -size * count for ready, count in gate.items()}}, 0)
        return self._take(block, columns, [1] * len(columns))

    def _take(self, block: Block, columns: Sequence[int], many: Sequence[int]) -> list[_Pods]:
        """Let a unit of each column be so many pods of the class of the block."""
        taken = [
            _Pods(column, count, shape, role, size)
            for column, count, shape, role, size in zip(
                columns, many, block.shapes, block.roles, block.sizes, strict=True
            )
        ]
        for one, rows in zip(taken, block.rows, strict=True):
            if one.many:
                self.to.pods[one.shape][one.column] += one.many
                self.to.placed[self.kind.priority][one.column] += one.many * int(self.to.shapes.weight[one.shape])
                for number in rows:
                    resource = self.to.dense.queue_rows[number].resource
                    self.to.queued[number][one.column] += one.many * int(self.to.shapes.request[one.shape, resource])
        self.pods += taken
        return taken

    def _within(self, place: Place, outer: Place, pods: Sequence[_Pods], gate: Terms) -> None:
        """C7: what lies in one domain takes no more than the roomiest one has."""
        if place is None or not pods:
            return
        rooms, shapes = self.to.alone.rooms, [one.shape for one in pods]
        measures = self.to.alone.measures(shapes)
        costs = rooms.costs(measures, shapes)
        for measure, column in zip(measures, costs.T.tolist(), strict=True):
            most = int(rooms.of(measure, place, outer).max(initial=0))
            if sum(cost * one.size for cost, one in zip(column, pods, strict=True)) > most:
                terms: Terms = defaultdict(int, {ready: -most * count for ready, count in gate.items()})
                for cost, one in zip(column, pods, strict=True):
                    terms[one.column] += cost * one.many
                self.program.at_most(terms, 0)

    def _demands(self) -> None:
        """C5: what each group that is ready has."""
        kind = self.kind
        self._at_least(self.pods, kind.short)
        for role, short in kind.short_by_role:
            self._at_least([one for one in self.pods if one.role == role], short)
        for policy, short in kind.short_by_policy:
            self.program.at_most({self.ready: short, **dict.fromkeys(self.enough[policy], -1)}, 0)

    def _at_least(self, pods: Sequence[_Pods], short: int) -> None:
        terms: Terms = defaultdict(int, {self.ready: short})
        for one in pods:
            terms[one.column] -= one.many
        self.program.at_most(terms, 0)
