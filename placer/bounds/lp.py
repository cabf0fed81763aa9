"""Bounds by linear programming over shapes of pods and classes of nodes: all room at once, groups by the fraction.

Columns: ready groups per class of equal ones; unless placed whole, ready subgroups per class and placed pods per class;
pods of each shape in each class of nodes. Rows: C5, C6, C11, room of each node class (C2, C3), and the roomiest domain
for pods that must share one (C7).

Cuts: for any size s the whole parts floor(a / s) of amounts a that lie together add up to at most that of their room,
on the nodes of a class and in the domains within a tier limit.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from placer.arrays import Dense
from placer.arrays.solution import BoolArray, FloatArray, IntArray
from placer.arrays.symmetry import partition_rows
from placer.base.deadline import NEVER, Deadline
from placer.base.linear import IntegerProgram, Row
from placer.bounds.counting import NamedBound, bounds_for, counting_of, some_of
from placer.bounds.standalone import EqualGroups, Region, RoomMeasure, Shapes, StandaloneLimits, SubGroupPods, cheapest

#: No more classes than this, and no more than COLUMNS pairs of a shape and a class.
MOST_CLASSES = 48
COLUMNS = 6_000


class NodeClasses:
    """Few kinds of nodes. Room of a class is the sum of its nodes' by every measure, and pods may go to it that may go
    to one of its nodes, so no placement is lost.

    ``alive``: int64: shapes of which some pod can be placed. ``of_kind``: int64, shape (kinds,): class of each kind of
    node; -1: no such pod fits there. ``room``: int64, shape (classes, resources). ``held``: shape to int64, shape
    (classes,).
    """

    def __init__(self, shapes: Shapes, alive: IntArray) -> None:
        self.shapes = shapes
        useful: BoolArray = np.zeros(len(shapes.nodes), dtype=bool)
        for shape in alive.tolist():
            useful |= shapes.fits(shape) > 0
        most = min(MOST_CLASSES, COLUMNS // max(1, len(alive)))
        parts = self._parts(np.flatnonzero(useful), max(1, most))
        self.number = len(parts)
        self.of_kind: IntArray = np.full(len(shapes.nodes), -1, dtype=np.int64)
        for number, kinds in enumerate(parts):
            self.of_kind[kinds] = number
        self.room = self.per_class(shapes.free)
        self.held = {shape: self.per_class(shapes.fits(shape)) for shape in alive.tolist()}

    def _parts(self, kinds: IntArray, most: int) -> list[IntArray]:
        if len(kinds) <= most:
            return [kinds[index : index + 1] for index in range(len(kinds))]
        sets = partition_rows(np.packbits(self.shapes.allowed[:, kinds], axis=0).T).of
        count = int(sets.max()) + 1
        parts = [kinds[sets == number] for number in range(count)] if count <= most else [kinds]
        spreads = [self._spread(part) for part in parts]
        while len(parts) < most and max(spread for spread, _ in spreads) > 0:
            widest = max(range(len(parts)), key=lambda index: spreads[index][0])
            halves = self._halves(parts[widest], spreads[widest][1])
            parts[widest : widest + 1] = halves
            spreads[widest : widest + 1] = map(self._spread, halves)
        return parts

    def _spread(self, kinds: IntArray) -> tuple[float, int]:
        free, nodes = self.shapes.free[kinds].astype(np.float64), self.shapes.nodes[kinds]
        unequal = nodes @ np.abs(free - nodes @ free / nodes.sum())
        unequal /= np.maximum(self.shapes.nodes @ self.shapes.free.astype(np.float64), 1)
        resource = int(np.argmax(unequal))
        return float(unequal[resource]), resource

    def _halves(self, kinds: IntArray, resource: int) -> list[IntArray]:
        free = self.shapes.free[kinds, resource]
        middle = int(np.average(free, weights=self.shapes.nodes[kinds]))
        low = free <= min(max(middle, int(free.min())), int(free.max()) - 1)
        return [kinds[low], kinds[~low]]

    def per_class(self, per_kind: IntArray) -> IntArray:
        """Sum over the nodes of each class: int64, shape (classes, ...)."""
        found = np.zeros((self.number, *per_kind.shape[1:]), dtype=np.int64)
        useful = self.of_kind >= 0
        many = self.shapes.nodes[useful].reshape(-1, *(1 for _ in per_kind.shape[1:]))
        np.add.at(found, self.of_kind[useful], per_kind[useful] * many)
        return found


#: Column to coefficient.
Terms = dict[int, int]


@dataclass(frozen=True)
class _DomainItem:
    """Groups or subgroups that lie in one domain each, ``many`` per unit of ``column``; ``limit`` is the tier."""

    column: int
    many: int
    limit: int
    what: EqualGroups | SubGroupPods


class LpRelaxation:
    """Columns and rows of the instance, values as terms.

    ``items``: outermost scopes with a limit. ``on``: shape and node class to the terms that count the pods there.
    """

    def __init__(self, alone: StandaloneLimits) -> None:
        self.alone, self.dense, self.shapes = alone, alone.dense, alone.shapes
        self.program = IntegerProgram()
        self.items: list[_DomainItem] = []
        self.on: dict[tuple[int, int], Terms] = {}
        self.admitted: dict[int, Terms] = defaultdict(dict)
        self.placed: dict[int, Terms] = defaultdict(lambda: defaultdict(int))
        self.pods: dict[int, Terms] = defaultdict(lambda: defaultdict(int))
        self.queued: dict[int, Terms] = defaultdict(lambda: defaultdict(int))
        for group in alone.groups:
            _Columns(self, group).add()
        self.classes = NodeClasses(self.shapes, np.array(sorted(self.pods), dtype=np.int64))
        self._spread()
        self._rooms()
        for number, terms in self.queued.items():
            self.program.at_most(terms, self.dense.queue_rows[number].room)

    def terms(self, name: str, priority: int | None) -> Terms:
        """Terms of ``admitted`` or ``placed``; priority None: of all priorities."""
        of = self.admitted if name == "admitted" else self.placed
        chosen = list(of.values()) if priority is None else [of.get(priority, {})]
        return {column: gain for terms in chosen for column, gain in terms.items()}

    def _spread(self) -> None:
        """pods(j) <= sum over k of x(j, k), per shape j."""
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
    """Pods that a column counts: ``many`` of a shape and a role per unit; at most ``size`` in a group or subgroup."""

    column: int
    many: int
    shape: int
    role: str
    size: int


class _Columns:
    def __init__(self, to: LpRelaxation, group: EqualGroups) -> None:
        self.to, self.group, self.program = to, group, to.program
        self.many = len(group.members)
        self.ready = self.program.column(self.many)
        self.pods: list[_Pods] = []
        self.enough: dict[int, Terms] = defaultdict(dict)

    def add(self) -> None:
        group = self.group
        if group.need_weight:
            self.to.admitted[group.priority][self.ready] = group.need_weight
        if group.region is not None:
            self.to.items.append(_DomainItem(self.ready, 1, group.region[0], group))
        sub_groups = {sub: many for sub, many in Counter(group.sub_groups).items() if any(sub.sizes)}
        pods = int(group.least(np.ones((len(group.sizes), 1), dtype=np.int64))[0])
        if pods == sum(group.sizes) and not group.ready:
            for sub, many in sub_groups.items():
                self._item(sub, self.ready, many)
                self._take(sub, [self.ready] * len(sub.sizes), [many * size for size in sub.sizes])
            return
        for sub, many in sub_groups.items():
            self._add_sub_group(sub, many)
        self._within(group.region, None, self.pods, {self.ready: 1})
        self._demands()

    def _item(self, sub: SubGroupPods, column: int, many: int) -> None:
        if self.group.region is None and sub.region is not None and sub.short:
            self.to.items.append(_DomainItem(column, many, sub.region[0], sub))

    def _add_sub_group(self, sub: SubGroupPods, many: int) -> None:
        """Pods of a subgroup come only with its group, and with so many of its own that it is ready."""
        if not sub.short:
            pods = self._pods_of(sub, many, {} if self.group.ready else {self.ready: many})
            self._within(sub.region, self.group.region, pods, {self.ready: many})
            return
        enough = self.program.column(self.many * many)
        self.enough[sub.policy][enough] = 1
        self._item(sub, enough, 1)
        self.program.at_most({enough: 1, self.ready: -many}, 0)
        if sub.short == sum(sub.sizes):
            self._take(sub, [enough] * len(sub.sizes), sub.sizes)
            return
        pods = self._pods_of(sub, many, {enough: 1})
        self.program.at_most({enough: sub.short, **{each.column: -1 for each in pods}}, 0)
        self._within(sub.region, self.group.region, pods, {enough: 1})

    def _pods_of(self, sub: SubGroupPods, many: int, gate: Terms) -> list[_Pods]:
        columns = [self.program.column(self.many * many * size) for size in sub.sizes]
        for column, size in zip(columns, sub.sizes, strict=True):
            if gate:
                self.program.at_most({column: 1, **{ready: -size * count for ready, count in gate.items()}}, 0)
        return self._take(sub, columns, [1] * len(columns))

    def _take(self, sub: SubGroupPods, columns: Sequence[int], many: Sequence[int]) -> list[_Pods]:
        taken = [
            _Pods(column, count, shape, role, size)
            for column, count, shape, role, size in zip(columns, many, sub.shapes, sub.roles, sub.sizes, strict=True)
        ]
        for one, rows in zip(taken, sub.rows, strict=True):
            if one.many:
                self.to.pods[one.shape][one.column] += one.many
                self.to.placed[self.group.priority][one.column] += one.many * int(self.to.shapes.weight[one.shape])
                for number in rows:
                    resource = self.to.dense.queue_rows[number].resource
                    self.to.queued[number][one.column] += one.many * int(self.to.shapes.request[one.shape, resource])
        self.pods += taken
        return taken

    def _within(self, region: Region, outer: Region, pods: Sequence[_Pods], gate: Terms) -> None:
        if region is None or not pods:
            return
        rooms, shapes = self.to.alone.rooms, [one.shape for one in pods]
        measures = self.to.alone.measures(shapes)
        costs = rooms.costs(measures, shapes)
        for measure, column in zip(measures, costs.T.tolist(), strict=True):
            most = int(rooms.room_in(measure, region, outer).max(initial=0))
            if sum(cost * one.size for cost, one in zip(column, pods, strict=True)) > most:
                terms: Terms = defaultdict(int, {ready: -most * count for ready, count in gate.items()})
                for cost, one in zip(column, pods, strict=True):
                    terms[one.column] += cost * one.many
                self.program.at_most(terms, 0)

    def _demands(self) -> None:
        group = self.group
        self._at_least(self.pods, group.short)
        for role, short in group.short_by_role:
            self._at_least([one for one in self.pods if one.role == role], short)
        for policy, short in group.short_by_policy:
            self.program.at_most({self.ready: short, **dict.fromkeys(self.enough[policy], -1)}, 0)

    def _at_least(self, pods: Sequence[_Pods], short: int) -> None:
        terms: Terms = defaultdict(int, {self.ready: short})
        for one in pods:
            terms[one.column] -= one.many
        self.program.at_most(terms, 0)


#: Sizes tried per measure, and pieces that the room of domains is counted in, per resource.
SIZES, PIECES = 64, 4


@dataclass(frozen=True)
class _RowFamily:
    """``things`` that lie together in places; ``rooms``: the pieces of each of ``sizes`` that all places hold; all
    int64.
    """

    things: IntArray
    amounts: IntArray
    sizes: IntArray
    rooms: IntArray


class Cuts:
    """All such rows of a relaxation."""

    def __init__(self, relaxation: LpRelaxation) -> None:
        self.to, self.shapes = relaxation, relaxation.shapes
        items: list[Terms] = [{item.column: item.many} for item in relaxation.items]
        self._terms = [*relaxation.on.values(), *items]
        self._families = [*self._on_nodes(), *self._in_domains()]

    def broken(self, point: Sequence[float]) -> list[Row]:
        """The rows that a point breaks most."""
        counts = np.array([sum(point[column] * many for column, many in terms.items()) for terms in self._terms])
        found = [pair for family in self._families for pair in self._broken(family, counts)]
        found.sort(key=lambda pair: -pair[0])
        return [row for _, row in found[:40]]

    def _broken(self, family: _RowFamily, counts: FloatArray) -> Iterator[tuple[float, Row]]:
        taken = counts[family.things] @ (family.amounts[:, None] // family.sizes[None, :])
        excess = (taken - family.rooms) / np.maximum(family.rooms, 1)
        for index in np.flatnonzero(excess > 1e-6).tolist():
            pieces = (family.amounts // family.sizes[index]).tolist()
            row: Terms = {}
            for thing, each in zip(family.things.tolist(), pieces, strict=True):
                for column, many in self._terms[thing].items() if each else ():
                    row[column] = row.get(column, 0) + each * many
            yield float(excess[index]), Row.of(row, int(family.rooms[index]))

    def _on_nodes(self) -> Iterator[_RowFamily]:
        classes, request = self.to.classes, self.shapes.request
        pairs = np.array(list(self.to.on), dtype=np.int64).reshape(-1, 2)
        for where in range(classes.number):
            things = np.flatnonzero(pairs[:, 1] == where)
            kinds = np.flatnonzero(classes.of_kind == where)
            for resource in range(request.shape[1]):
                amounts = request[pairs[things, 0], resource]
                asked = np.unique(amounts)
                sizes = np.array(some_of(asked[asked > 1], SIZES), dtype=np.int64)
                if len(sizes):
                    pieces = self.shapes.free[kinds, resource][:, None] // sizes[None, :]
                    yield _RowFamily(things, amounts, sizes, (pieces * self.shapes.nodes[kinds][:, None]).sum(axis=0))

    def _in_domains(self) -> Iterator[_RowFamily]:
        items, pieces = self.to.items, list(self._pieces())
        needs = np.array([self._need(item, pieces) for item in items], dtype=np.int64).reshape(len(items), len(pieces))
        for limit, allowed, inside in self._regions():
            for (resource, size), amounts in zip(pieces, needs[inside].T, strict=True):
                rooms = self.to.alone.rooms.room_in(RoomMeasure(resource, size, allowed), (limit, -1))
                yield from self._of(inside + len(self.to.on), amounts, rooms)

    def _regions(self) -> Iterator[tuple[int, frozenset[int], IntArray]]:
        items = self.to.items
        masks = [frozenset(self.shapes.mask[list(item.what.shapes)].tolist()) for item in items]
        for limit in sorted({item.limit for item in items}):
            low = [index for index, item in enumerate(items) if item.limit <= limit]
            for allowed in _node_sets([masks[index] for index in low]):
                yield limit, allowed, np.array([index for index in low if masks[index] <= allowed], dtype=np.int64)

    def _of(self, things: IntArray, amounts: IntArray, rooms: IntArray) -> Iterator[_RowFamily]:
        sizes = np.array(some_of(np.unique(amounts[amounts > 0]), SIZES), dtype=np.int64)
        if len(sizes):
            yield _RowFamily(things, amounts, sizes, (rooms[:, None] // sizes[None, :]).sum(axis=0))

    def _pieces(self) -> Iterator[tuple[int, int]]:
        shapes = sorted({shape for item in self.to.items for shape in item.what.shapes})
        for resource in range(self.shapes.request.shape[1]):
            asked = np.unique(self.shapes.request[shapes, resource])
            for size in (1, *some_of(asked[asked > 1], PIECES)):
                yield resource, size

    def _need(self, item: _DomainItem, pieces: Sequence[tuple[int, int]]) -> IntArray:
        request = self.shapes.request[list(item.what.shapes)]
        costs = np.stack([request[:, resource] // size for resource, size in pieces], axis=1)
        if isinstance(item.what, EqualGroups):
            return item.what.least(costs)
        return cheapest(costs, np.array(item.what.sizes, dtype=np.int64), item.what.short)


def _node_sets(masks: Sequence[frozenset[int]]) -> Iterable[frozenset[int]]:
    every: frozenset[int] = frozenset().union(*masks)
    # Those that most groups and subgroups may use.
    return dict.fromkeys([every, *(allowed for allowed, _ in Counter(masks).most_common(16))])


KNOWN = ("admitted", "placed")

#: Rows are added as long as they lower the bound by this share at least once in PATIENCE rounds.
WORTH, PATIENCE = 1e-5, 3


def lp_bounds(dense: Dense, values: Sequence[int], deadline: Deadline = NEVER) -> Iterator[NamedBound]:
    """Bounds on the values of O1 and on the placed weight that exceed :func:`placer.bounds.bounds_for`, as soon as
    known.

    First of the first value that is not met; then of the sum (criterion None, no context); then of each later value,
    given the ``values`` in hand before it.
    """
    yield from _LpSearch(dense, values, deadline).bounds()


class _LpSearch:
    def __init__(self, dense: Dense, values: Sequence[int], deadline: Deadline) -> None:
        self.dense, self.values, self.deadline = dense, tuple(values), deadline
        self.known: dict[int | None, int] = {}
        for bound in bounds_for(dense, values):
            self.known[bound.criterion] = min(self.known.get(bound.criterion, bound.bound), bound.bound)

    def bounds(self) -> Iterator[NamedBound]:
        criteria = self._open()
        if criteria and not self.deadline.over:
            self.relaxation = LpRelaxation(counting_of(self.dense).alone)
            self.cuts = Cuts(self.relaxation)
            for criterion in criteria:
                yield from self._criterion(criterion)

    def _open(self) -> list[int | None]:
        found: list[int | None] = [
            criterion
            for criterion, (name, _) in enumerate(self.dense.criteria)
            if name in KNOWN and self.known[criterion] > self.values[criterion]
        ]
        placed = sum(
            value for (name, _), value in zip(self.dense.criteria, self.values, strict=True) if name == "placed"
        )
        if self.known[None] > placed:
            found.insert(1, None)
        return found

    def _criterion(self, criterion: int | None) -> Iterator[NamedBound]:
        context: tuple[int, ...]
        if criterion is None:
            context, goal, gains = (), -math.inf, self.relaxation.terms("placed", None)
        else:
            context, goal = self.values[:criterion], self.values[criterion]
            gains = self.relaxation.terms(*self.dense.criteria[criterion])
        unit = math.gcd(*gains.values()) or 1  # a value is a sum of gains
        extra, best, last, patience = self._context(context), self.known[criterion], math.inf, PATIENCE
        while patience and (left := self.deadline.left) > 0:
            answer = self.relaxation.program.maximum(gains, extra, left)
            bound = answer.bound // unit * unit
            patience = PATIENCE if bound < last * (1 - WORTH) else patience - 1
            last = min(last, bound)
            if bound < best:
                best = bound
                yield NamedBound(criterion, bound, "lp", context)
            rows = [] if answer.point is None or best <= goal else self.cuts.broken(answer.point)
            if not rows:
                return
            self.relaxation.program.rows += rows

    def _context(self, before: Sequence[int]) -> list[Row]:
        rows = []
        for (name, priority), value in zip(self.dense.criteria, before, strict=False):
            if name in KNOWN:
                terms = self.relaxation.terms(name, priority)
                rows.append(Row.of(terms, value))
                rows.append(Row.of({column: -gain for column, gain in terms.items()}, -value))
        return rows
