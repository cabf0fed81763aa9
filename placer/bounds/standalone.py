"""Most pods of each class in a placement: pods that cannot be placed alone add nothing to any bound.

Room counts as far as pods can use it: of 3 GPUs pods of 2 use 2. A group is put alone on the room that running pods
leave, since other new pods only take room away (C2 to C7, C11). Groups that no rule can tell apart are counted once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np

from placer.arrays import Dense
from placer.arrays.solution import BoolArray, IntArray
from placer.arrays.symmetry import GroupSignatures, counting_shapes, equal_nodes, partition_rows
from placer.base.grouping import grouped
from placer.bounds.neighbour_limits import NeighbourLimits
from placer.problem.instance import HostPort


def usable(request: IntArray, free: IntArray) -> IntArray:
    """Most that pods on one node can take together of each resource: int64, shape (nodes, resources).

    ``request``: int64, shape (shapes, resources), of all pods that may go there; ``free``: at least 0.
    """
    found = free.copy()
    there = np.flatnonzero(free.any(axis=0)).tolist()  # a resource that no node has limits nothing that fits
    for resource in there:
        for other in there:
            ratio = _most_per(request, resource, other) if resource != other else None
            if ratio is not None:
                most = free[:, other].astype(object) * ratio.numerator // ratio.denominator
                found[:, resource] = np.minimum(found[:, resource], most).astype(np.int64)
    for resource in range(free.shape[1]):
        largest = int(found[:, resource].max(initial=0))
        if largest <= 20_000:  # the sums of requests are bits of one number
            sums = _sums_of(np.unique(request[:, resource]).tolist(), largest)
            amounts = found[:, resource].tolist()
            found[:, resource] = [(sums & ((2 << amount) - 1)).bit_length() - 1 for amount in amounts]
    return found


def _most_per(request: IntArray, resource: int, other: int) -> Fraction | None:
    asking = request[request[:, resource] > 0][:, [resource, other]]
    if (asking[:, 1] == 0).any():
        return None
    if not len(asking):
        return Fraction(0)
    ratios = asking[:, 0] / asking[:, 1]
    near = np.unique(asking[ratios >= ratios.max() * (1 - 1e-9)], axis=0)
    return max(Fraction(int(mine), int(its)) for mine, its in near)


def _sums_of(amounts: list[int], most: int) -> int:
    """Bit i is set where i is a sum."""
    sums, within = 1, (1 << (most + 1)) - 1
    for amount in amounts:
        step = amount
        while 0 < step <= most:
            sums |= (sums << step) & within
            step *= 2
    return sums


NUMBERS = 2_000_000

K = TypeVar("K", bound=Hashable)


class ArrayCache(Generic[K]):
    """Arrays by key; all are forgotten when they would exceed :data:`NUMBERS` numbers."""

    def __init__(self, make: Callable[[K], IntArray]) -> None:
        self._make = make
        self._known: dict[K, IntArray] = {}
        self._numbers = 0

    def __getitem__(self, key: K) -> IntArray:
        if key not in self._known:
            found = self._make(key)
            if self._numbers + found.size > NUMBERS:
                self._known.clear()
                self._numbers = 0
            self._known[key] = found
            self._numbers += found.size
        return self._known[key]


class Shapes:
    """Shapes of pods (:func:`placer.arrays.symmetry.counting_shapes`) against kinds of nodes (``equal_nodes`` there),
    all int64.

    ``of_class``, ``of_node``: the shape of each class, the kind of each node. ``request``, ``free``: shape (shapes,
    resources) and (kinds, resources), scaled; room that pods can use (:func:`usable`). ``weight``, ``mask``: shape
    (shapes,), as of a ``PodClass``. ``nodes``: shape (kinds,): how many. ``allowed``: bool, shape (masks, kinds).
    """

    def __init__(self, dense: Dense) -> None:
        self.dense = dense
        shapes, nodes = counting_shapes(dense), equal_nodes(dense)
        self.of_class: IntArray = shapes.of
        self._classes = [dense.classes[index] for index in shapes.first]
        self.request: IntArray = dense.requests[shapes.first]
        self.weight: IntArray = np.array([one.weight for one in self._classes], dtype=np.int64)
        self.mask: IntArray = np.array([one.mask for one in self._classes], dtype=np.int64)
        self._pods = sum(one.size for one in dense.classes)
        self.of_node: IntArray = nodes.of
        self.nodes: IntArray = nodes.size
        self._samples = nodes.first
        self.allowed: BoolArray = dense.masks[:, self._samples]
        self.free: IntArray = self._usable(dense.free[self._samples])
        self._fits = ArrayCache(self._fits_of)

    def _usable(self, free: IntArray) -> IntArray:
        sets = partition_rows(self.allowed[self.mask].T).of
        sets = sets if sets.max(initial=0) < 48 else np.zeros_like(sets)
        for number in np.unique(sets):
            kinds = np.flatnonzero(sets == number)
            admitted = self.allowed[self.mask][:, kinds].any(axis=1)
            free[kinds] = usable(self.request[admitted], free[kinds])
        return free

    def fits(self, shape: int) -> IntArray:
        """Pods of a shape that a node of each kind holds alone."""
        return self._fits[shape]

    def _fits_of(self, shape: int) -> IntArray:
        one, request = self._classes[shape], self.request[shape]
        asked = np.flatnonzero(request)
        count = np.full(len(self.nodes), self._pods, dtype=np.int64)
        if len(asked):
            count = np.minimum(count, (self.free[:, asked] // request[asked]).min(axis=1))
        if one.host_ports:
            count = np.minimum(count, 1)
            for port in one.host_ports:
                holders = self._holders.get((port.protocol, port.port), ())
                count[[kind for kind, other in holders if port.clashes(other)]] = 0
        count[~self.allowed[one.mask]] = 0
        return count

    @cached_property
    def _holders(self) -> Mapping[tuple[str, int], list[tuple[int, HostPort]]]:
        """Protocol and number of a host port to the kinds of nodes that hold it."""
        found: dict[tuple[str, int], list[tuple[int, HostPort]]] = defaultdict(list)
        for kind, node in enumerate(self._samples.tolist()):
            for port in self.dense.ports.get(node, ()):
                found[port.protocol, port.port].append((kind, port))
        return found

    def at_least(self, shapes: IntArray, least: int) -> BoolArray:
        """Which of ``shapes`` take the room of ``least``."""
        found: BoolArray = (self.request[shapes] >= self.request[least]).all(axis=1)
        found &= self.mask[shapes] == self.mask[least]
        ports = self._classes[least].host_ports
        if ports:
            found &= [self._classes[shape].host_ports == ports for shape in shapes]
        return found

    @cached_property
    def most(self) -> IntArray:
        """Pods of each shape that all nodes hold."""
        return np.array([self.fits(shape) @ self.nodes for shape in range(len(self._classes))], dtype=np.int64)


#: Where a scope may be: None for anywhere, else its tier limit and the smallest domain that holds its running pods
#: (-1: none runs).
Region = tuple[int, int] | None


def _region_of(dense: Dense, scope: int) -> Region:
    limit = dense.scopes[scope].limit
    if limit is None:
        return None
    anchor = dense.anchor(scope)
    return limit, -1 if anchor is None else anchor


@dataclass(frozen=True)
class RoomMeasure:
    """A count of room that no packing beats: pods of a node never take more pieces than it has.

    ``resource``: whose pieces are counted; -1: pods of one shape. ``size``: of a piece, or the shape. ``masks``: a node
    counts that one of these rows allows.
    """

    resource: int
    size: int
    masks: frozenset[int]


@dataclass(frozen=True)
class Within:
    """Disjoint domains, in the order of their nodes: int64, shape (domains,) each."""

    begin: IntArray
    end: IntArray

    def sums(self, prefix: IntArray) -> IntArray:
        """Sum inside each domain, from the sums ``prefix`` of shape (nodes + 1,)."""
        found: IntArray = prefix[self.end] - prefix[self.begin]
        return found

    def cut_by(self, outer: Within) -> tuple[Within, IntArray]:
        """Intersections with the outer domains, and for each the index of the outer one."""
        if not len(self.begin) or not len(outer.begin):
            return Within(self.begin[:0], self.end[:0]), np.zeros(0, dtype=np.int64)
        above = np.searchsorted(outer.begin, self.begin, side="right") - 1
        held = (above >= 0) & (outer.end[above] >= self.end)
        over = np.searchsorted(self.begin, outer.begin, side="right") - 1
        cut = (over >= 0) & (self.end[over] >= outer.end)
        cut &= (self.end[over] - self.begin[over]) > (outer.end - outer.begin)
        begin = np.concatenate((self.begin[held], outer.begin[cut]))
        end = np.concatenate((self.end[held], outer.end[cut]))
        return Within(begin, end), np.concatenate((above[held], np.flatnonzero(cut)))


class _DomainRooms:
    def __init__(self, dense: Dense, shapes: Shapes) -> None:
        self.dense, self.shapes = dense, shapes
        self._within: dict[tuple[Region, Region], tuple[Within, IntArray]] = {}
        self._sums = ArrayCache(self._sum)

    def tops(self, region: Region, outer: Region = None) -> tuple[Within, IntArray]:
        """Highest domains that a region allows in those of an outer one, and which one each is in."""
        key = (region, outer)
        if key not in self._within:
            mine = self._tops(region)
            if outer is None:
                self._within[key] = mine, np.zeros(len(mine.begin), dtype=np.int64)
            else:
                self._within[key] = mine.cut_by(self.tops(outer)[0])
        return self._within[key]

    def _tops(self, region: Region) -> Within:
        if region is None:
            return Within(np.array([0]), np.array([len(self.dense.nodes)]))
        tree, (limit, anchor) = self.dense.domains, region
        low = tree.tier <= limit
        top = low & ((tree.parent < 0) | ~low[tree.parent]) & (tree.begin < tree.end)
        if anchor >= 0:
            top &= low[anchor] & (tree.begin <= tree.begin[anchor]) & (tree.end >= tree.end[anchor])
        chosen = np.flatnonzero(top)
        chosen = chosen[np.argsort(tree.begin[chosen])]
        return Within(tree.begin[chosen], tree.end[chosen])

    def room_in(self, measure: RoomMeasure, region: Region, outer: Region = None) -> IntArray:
        return self._sums[measure, region, outer]

    def _sum(self, key: tuple[RoomMeasure, Region, Region]) -> IntArray:
        measure, region, outer = key
        per_kind = self.per_kind(measure)
        if region is None and outer is None:
            return np.array([per_kind @ self.shapes.nodes])
        prefix = np.concatenate(([0], np.cumsum(per_kind[self.shapes.of_node])))
        return self.tops(region, outer)[0].sums(prefix)

    def per_kind(self, measure: RoomMeasure) -> IntArray:
        if measure.resource < 0:
            return self.shapes.fits(measure.size)
        allowed = self.shapes.allowed[list(measure.masks)].any(axis=0)
        return np.where(allowed, self.shapes.free[:, measure.resource] // measure.size, 0)

    def costs(self, measures: Iterable[RoomMeasure], shapes: Sequence[int]) -> IntArray:
        columns = [self._cost(measure, np.array(shapes, dtype=np.int64)) for measure in measures]
        return np.array(columns, dtype=np.int64).reshape(len(columns), len(shapes)).T

    def _cost(self, measure: RoomMeasure, shapes: IntArray) -> IntArray:
        if measure.resource >= 0:
            cost: IntArray = self.shapes.request[shapes, measure.resource] // measure.size
            return cost
        return self.shapes.at_least(shapes, measure.size).astype(np.int64)


@dataclass(frozen=True)
class SubGroupPods:
    """The pods of one subgroup, or those of a group that are in none (``policy`` -1).

    ``short``: new pods that it needs before it may have any. ``region``: where all its pods must be together. Per
    class: ``shapes``, ``roles`` ("" where the group asks for none), queue ``rows``, and the ``sizes``: pods that there
    are or can be placed.
    """

    policy: int
    short: int
    region: Region
    shapes: tuple[int, ...]
    roles: tuple[str, ...]
    rows: tuple[tuple[int, ...], ...]
    sizes: tuple[int, ...]


@dataclass(frozen=True)
class EqualGroups:
    """Equal groups; needs as in :class:`placer.arrays.DenseGroup`.

    ``sub_groups``: of each group, its pods in no subgroup as one of them. ``members``: per group its classes, in the
    order of the subgroups.
    """

    priority: int
    need_weight: int
    short: int
    short_by_role: tuple[tuple[str, int], ...]
    short_by_policy: tuple[tuple[int, int], ...]
    region: Region
    sub_groups: tuple[SubGroupPods, ...]
    members: tuple[tuple[int, ...], ...]

    @property
    def shapes(self) -> list[int]:
        """Shape per class, subgroup after subgroup."""
        return [shape for sub in self.sub_groups for shape in sub.shapes]

    @property
    def rows(self) -> list[tuple[int, ...]]:
        """Queue rows per class, subgroup after subgroup."""
        return [rows for sub in self.sub_groups for rows in sub.rows]

    @property
    def sizes(self) -> list[int]:
        """Pods per class, subgroup after subgroup."""
        return [size for sub in self.sub_groups for size in sub.sizes]

    @property
    def ready(self) -> bool:
        """Whether a group needs no new pod."""
        return not (self.short or self.short_by_role or self.short_by_policy)

    def resized(self, sizes: Sequence[int]) -> EqualGroups:
        """The same with other numbers of pods per class."""
        if list(sizes) == self.sizes:
            return self
        sub_groups, begin = [], 0
        for sub in self.sub_groups:
            end = begin + len(sub.sizes)
            sub_groups.append(replace(sub, sizes=tuple(sizes[begin:end])))
            begin = end
        return replace(self, sub_groups=tuple(sub_groups))

    def least(self, costs: IntArray) -> IntArray:
        """Least cost of a ready group: int64, shape (measures,); ``costs``: int64, shape (classes, measures), at least
        0.
        """
        sizes = np.array(self.sizes, dtype=np.int64)
        found = cheapest(costs, sizes, self.short)
        if self.short_by_role:
            roles = np.array([role for sub in self.sub_groups for role in sub.roles])
            by_role = [cheapest(costs[roles == role], sizes[roles == role], n) for role, n in self.short_by_role]
            found = np.maximum(found, np.sum(by_role, axis=0))
        if self.short_by_policy:
            found = np.maximum(found, self._least_by_policy(costs))
        return found

    def _least_by_policy(self, costs: IntArray) -> IntArray:
        of_policy: dict[int, list[IntArray]] = defaultdict(list)
        begin = 0
        for sub in self.sub_groups:
            end = begin + len(sub.sizes)
            if sub.short and sum(sub.sizes) >= sub.short:
                of_policy[sub.policy].append(cheapest(costs[begin:end], np.array(sub.sizes), sub.short))
            begin = end
        found = np.zeros(costs.shape[1], dtype=np.int64)
        for policy, count in self.short_by_policy:
            if of_policy[policy]:
                found += np.sort(np.array(of_policy[policy]), axis=0)[:count].sum(axis=0)
        return found


def cheapest(costs: IntArray, sizes: IntArray, count: int) -> IntArray:
    """Cost of the cheapest ``count`` pods: int64, shape (measures,); ``costs``: shape (classes, measures)."""
    if len(costs) == 1:
        one: IntArray = costs[0] * min(count, int(sizes[0]))
        return one
    order = np.argsort(costs, axis=0, kind="stable")
    many = sizes[order]
    taken = np.clip(count - (np.cumsum(many, axis=0) - many), 0, many)
    total: IntArray = (np.take_along_axis(costs, order, axis=0) * taken).sum(axis=0)
    return total


def make_equal_groups(dense: Dense, shape_of: IntArray) -> tuple[EqualGroups, ...]:
    """Find groups that no rule about placing tells apart; ``shape_of``: int64, shape (classes,)."""

    def seen(index: int) -> tuple[int, str, tuple[int, ...], int]:
        one = dense.classes[index]
        asked = any(role == one.role for role, _ in dense.groups[one.group].short_by_role)
        return int(shape_of[index]), one.role if asked else "", tuple(row for row, _ in dense.rows_of[index]), one.size

    signatures = GroupSignatures(dense, seen, lambda scope: _region_of(dense, scope))
    pairs = grouped(map(signatures.of_group, range(len(dense.groups))), lambda pair: pair[0])
    return tuple(
        EqualGroups(
            one.priority,
            one.need_weight,
            one.short,
            one.short_by_role,
            one.short_by_policy,
            one.scope,
            tuple(
                SubGroupPods(sub.policy, sub.short, sub.scope, *zip(*sub.classes, strict=True))
                for sub in one.sub_groups
            ),
            tuple(classes for _, classes in members),
        )
        for one, members in pairs.items()
    )


class StandaloneLimits:
    """The cluster without any new pod, in which groups are counted one at a time.

    ``groups``: those that can be ready, with the pods that can be placed. ``sizes``: int64, shape (classes,).
    """

    def __init__(self, dense: Dense) -> None:
        self.dense = dense
        self.shapes = Shapes(dense)
        self.neighbours = NeighbourLimits(dense, self._room)
        self.rooms = _DomainRooms(dense, self.shapes)
        self._stands = ArrayCache(self._stand)
        self.sizes: IntArray = np.zeros(len(dense.classes), dtype=np.int64)
        found = []
        for group in map(self._let_in, make_equal_groups(dense, self.shapes.of_class)):
            sizes = self._sizes(group)
            if sizes.any() or group.ready:  # a group that is ready counts as admitted, whatever fits
                found.append(group.resized(sizes.tolist()))
                for member in group.members:
                    self.sizes[list(member)] = sizes
        for index, most in self.neighbours.most.items():
            self.sizes[index] = min(most, self.sizes[index])
        self.groups: tuple[EqualGroups, ...] = tuple(found)

    def _room(self, index: int) -> IntArray:
        found: IntArray = self.shapes.fits(int(self.shapes.of_class[index]))[self.shapes.of_node]
        return found

    def _let_in(self, group: EqualGroups) -> EqualGroups:
        out, classes = self.neighbours.shut_out, self.dense.classes
        members = (each for each in group.members if not each or classes[each[0]].group not in out)
        return replace(group, members=tuple(members)) if out else group

    def _sizes(self, group: EqualGroups) -> IntArray:
        group = group.resized(self._by_nodes_and_queues(group))
        stands = [self._stands[sub, group.region] for sub in group.sub_groups]
        able = self._ready(group, stands)
        if len(group.sizes) > 1:  # of a single class this has all been counted
            able &= self._together(group)
        if not able.any() or not self._queues_allow(group):
            return np.zeros(len(group.sizes), dtype=np.int64)
        most: IntArray = np.concatenate([stand[1:] for stand in stands])[:, able].max(axis=1)
        return most

    def _by_nodes_and_queues(self, group: EqualGroups) -> list[int]:
        sizes = [min(size, int(self.shapes.most[shape])) for size, shape in zip(group.sizes, group.shapes, strict=True)]
        for index, rows in enumerate(group.rows):
            for row in map(self.dense.queue_rows.__getitem__, rows):
                sizes[index] = min(
                    sizes[index], row.room // int(self.shapes.request[group.shapes[index], row.resource])
                )
        return sizes

    def _stand(self, key: tuple[SubGroupPods, Region]) -> IntArray:
        """int64, shape (1 + classes, domains of the group): most pods in all, then of each class; 0 where it cannot be
        ready.
        """
        sub, outer = key
        above = self.rooms.tops(sub.region, outer)[1]
        sizes = np.array(sub.sizes, dtype=np.int64)
        fits = [self.rooms.room_in(self._pods_of(shape), sub.region, outer) for shape in sub.shapes]
        classes = np.minimum(sizes[:, None], np.array(fits, dtype=np.int64))
        if sub.short:
            able = classes.sum(axis=0) >= sub.short
            if len(sub.shapes) > 1:
                measures = self.measures(sub.shapes)
                least = cheapest(self.rooms.costs(measures, sub.shapes), sizes, sub.short)
                able &= self._hold(least, measures, sub.region, outer)
            classes = np.where(able, classes, 0)
        best = np.zeros((len(self.rooms.tops(outer)[0].begin), 1 + len(sizes)), dtype=np.int64)
        np.maximum.at(best, above, np.concatenate((classes.sum(axis=0, keepdims=True), classes)).T)
        return best.T

    def _ready(self, group: EqualGroups, stands: Sequence[IntArray]) -> BoolArray:
        pods = np.array([stand[0] for stand in stands])
        able: BoolArray = pods.sum(axis=0) >= max(1, group.short)
        roles = np.array([role for sub in group.sub_groups for role in sub.roles])
        classes = np.concatenate([stand[1:] for stand in stands])
        for role, short in group.short_by_role:
            able &= classes[roles == role].sum(axis=0) >= short
        for policy, short in group.short_by_policy:
            mine = [sub.policy == policy and sub.short > 0 for sub in group.sub_groups]
            able &= (pods[mine] > 0).sum(axis=0) >= short
        return able

    def _together(self, group: EqualGroups) -> BoolArray:
        measures = self.measures(group.shapes)
        least = group.least(self.rooms.costs(measures, group.shapes))
        return self._hold(least, measures, group.region, None)

    def _hold(self, least: IntArray, measures: Sequence[RoomMeasure], region: Region, outer: Region) -> BoolArray:
        rooms = np.array([self.rooms.room_in(measure, region, outer) for measure in measures])
        held: BoolArray = np.logical_and.reduce(rooms >= least[:, None])
        return held

    def _queues_allow(self, group: EqualGroups) -> bool:
        for number in {row for rows in group.rows for row in rows}:
            row = self.dense.queue_rows[number]
            asked = [
                int(self.shapes.request[shape, row.resource]) if number in rows else 0
                for shape, rows in zip(group.shapes, group.rows, strict=True)
            ]
            if group.least(np.array(asked, dtype=np.int64)[:, None])[0] > row.room:
                return False
        return True

    def _pods_of(self, shape: int) -> RoomMeasure:
        return RoomMeasure(-1, shape, frozenset())

    def measures(self, shapes: Sequence[int]) -> list[RoomMeasure]:
        """Measures of the room that pods of some shapes take."""
        each = sorted(set(shapes))
        masks = frozenset(int(self.shapes.mask[shape]) for shape in each)
        found = [self._pods_of(shape) for shape in each]
        for resource, asked in enumerate(self.shapes.request[each].T):
            found += [RoomMeasure(resource, size, masks) for size in sorted({1, *asked[asked > 0].tolist()})[:2]]
        return found
