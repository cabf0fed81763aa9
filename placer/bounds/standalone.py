"""How many pods of each class a placement can have at most: what cannot stand alone adds nothing to any bound.

A group is put alone on what running pods leave. What counting then excludes, no placement has: other new pods only take
room away. Counted are nodes with room for a pod of the class, the domains that the tier limits (C7) of the group and of
its subgroups leave, resources and pieces of one size in each of them, room in queues (C11), and whether what is left
makes subgroups (C6) and the group (C5) ready. Groups that no rule can tell apart are counted once.

Source: solver-notes on bounds for vector bin packing, points (1), (3) and (4), group by group.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from placer.bounds.capacity import ArrayCache, BoolArray, DomainRooms, IntArray, Region, RoomMeasure, Shapes, region_of
from placer.dense import Dense
from placer.symmetry import GroupSignature, GroupSignatures, grouped

__all__ = ["EqualGroups", "StandaloneLimits", "SubGroupPods", "cheapest", "make_equal_groups"]


@dataclass(frozen=True)
class SubGroupPods:
    """The pods of one subgroup, or those of a group that are in none.

    Parameters
    ----------
    policy
        Index of the policy that takes them; -1: none.
    short
        New pods it needs before it may have any; 0: it needs none.
    region
        Where all its pods must be together.
    shapes, roles, rows
        Per class: its shape, its role ("" where the group asks for none), the queue rows it counts against.
    sizes
        Per class: how many pods there are, or can be placed.
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
    """Equal groups.

    Parameters
    ----------
    priority, need_weight, short, short_by_role, short_by_policy
        As in :class:`placer.dense.DenseGroup`.
    region
        Where all pods of a group must be together.
    sub_groups
        Of each group, its pods in no subgroup as one of them.
    members
        Per group the indices of its classes, in the order in which the subgroups have them.
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
        """Least that a group costs which is ready.

        Parameters
        ----------
        costs
            int64, shape (classes, measures), at least 0: what one pod of each class costs, subgroup after subgroup.

        Returns
        -------
        int64, shape (measures,); what holds for each demand of C5 and C6 by itself, the largest of them.
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
        """The cheapest subgroups of each policy, each with its cheapest pods."""
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
    """Cost of the cheapest pods.

    Parameters
    ----------
    costs
        int64, shape (classes, measures).
    sizes
        int64, shape (classes,): pods per class.
    count
        How many pods; of fewer there are, all.

    Returns
    -------
    int64, shape (measures,).
    """
    if len(costs) == 1:
        one: IntArray = costs[0] * min(count, int(sizes[0]))
        return one
    order = np.argsort(costs, axis=0, kind="stable")
    many = sizes[order]
    taken = np.clip(count - (np.cumsum(many, axis=0) - many), 0, many)
    total: IntArray = (np.take_along_axis(costs, order, axis=0) * taken).sum(axis=0)
    return total


def make_equal_groups(dense: Dense, shape_of: IntArray) -> tuple[EqualGroups, ...]:
    """Find groups that no rule about placing can tell apart.

    Parameters
    ----------
    dense
        The instance.
    shape_of
        int64, shape (classes,): shape of each class.
    """

    def seen(index: int) -> tuple[int, str, tuple[int, ...], int]:
        one = dense.classes[index]
        asked = any(role == one.role for role, _ in dense.groups[one.group].short_by_role)
        return int(shape_of[index]), one.role if asked else "", tuple(row for row, _ in dense.rows_of[index]), one.size

    signatures = GroupSignatures(dense, seen, lambda scope: region_of(dense, scope))
    pairs = grouped(map(signatures.of_group, range(len(dense.groups))), lambda pair: pair[0])
    return tuple(_equal_groups(one, [classes for _, classes in members]) for one, members in pairs.items())


def _equal_groups(signature: GroupSignature, members: Sequence[tuple[int, ...]]) -> EqualGroups:
    return EqualGroups(
        signature.priority,
        signature.need_weight,
        signature.short,
        signature.short_by_role,
        signature.short_by_policy,
        signature.scope,
        tuple(
            SubGroupPods(sub.policy, sub.short, sub.scope, *zip(*sub.classes, strict=True))
            for sub in signature.sub_groups
        ),
        tuple(members),
    )


class StandaloneLimits:
    """The cluster without any new pod, in which groups are counted one at a time.

    Parameters
    ----------
    dense
        The instance.

    Attributes
    ----------
    groups
        Equal groups, with the pods of each class that can be placed; groups that can never be ready are left out.
    sizes
        int64, shape (classes,): most pods of each class that a placement has.
    """

    def __init__(self, dense: Dense) -> None:
        self.dense = dense
        self.shapes = Shapes(dense)
        self.rooms = DomainRooms(dense, self.shapes)
        self._stands = ArrayCache(self._stand)
        self.sizes: IntArray = np.zeros(len(dense.classes), dtype=np.int64)
        found = []
        for group in make_equal_groups(dense, self.shapes.of_class):
            sizes = self._sizes(group)
            if sizes.any() or group.ready:  # a group that is ready counts as admitted, whatever fits
                found.append(group.resized(sizes.tolist()))
                for member in group.members:
                    self.sizes[list(member)] = sizes
        self.groups: tuple[EqualGroups, ...] = tuple(found)

    def _sizes(self, group: EqualGroups) -> IntArray:
        """Most pods per class of a group: in the best of the domains where it can be ready."""
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
        """Count a subgroup in every domain of its own inside those of its group; the best one counts.

        Returns
        -------
        int64, shape (1 + classes, domains of the group): most pods in all, then of each class; 0 where the subgroup
        cannot be ready.
        """
        sub, outer = key
        above = self.rooms.within(sub.region, outer)[1]
        sizes = np.array(sub.sizes, dtype=np.int64)
        fits = [self.rooms.of(self._pods_of(shape), sub.region, outer) for shape in sub.shapes]
        classes = np.minimum(sizes[:, None], np.array(fits, dtype=np.int64))
        if sub.short:
            able = classes.sum(axis=0) >= sub.short
            if len(sub.shapes) > 1:
                measures = self.measures(sub.shapes)
                least = cheapest(self.rooms.costs(measures, sub.shapes), sizes, sub.short)
                able &= self._hold(least, measures, sub.region, outer)
            classes = np.where(able, classes, 0)
        best = np.zeros((len(self.rooms.within(outer)[0].begin), 1 + len(sizes)), dtype=np.int64)
        np.maximum.at(best, above, np.concatenate((classes.sum(axis=0, keepdims=True), classes)).T)
        return best.T

    def _ready(self, group: EqualGroups, stands: Sequence[IntArray]) -> BoolArray:
        """Where the counts that C5 asks for can be reached: bool, shape (domains,)."""
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
        """Where there is room for the least that makes the group ready: bool, shape (domains,)."""
        measures = self.measures(group.shapes)
        least = group.least(self.rooms.costs(measures, group.shapes))
        return self._hold(least, measures, group.region, None)

    def _hold(self, least: IntArray, measures: Sequence[RoomMeasure], region: Region, outer: Region) -> BoolArray:
        """Domains with room for ``least``, shape (measures,), by every measure."""
        rooms = np.array([self.rooms.of(measure, region, outer) for measure in measures])
        held: BoolArray = np.logical_and.reduce(rooms >= least[:, None])
        return held

    def _queues_allow(self, group: EqualGroups) -> bool:
        """Whether each queue has room for the least that makes the group ready."""
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
        """Ways to count what pods of some shapes take together: amounts, pieces of the smallest request, pods."""
        each = sorted(set(shapes))
        masks = frozenset(int(self.shapes.mask[shape]) for shape in each)
        found = [self._pods_of(shape) for shape in each]
        for resource, asked in enumerate(self.shapes.request[each].T):
            found += [RoomMeasure(resource, size, masks) for size in sorted({1, *asked[asked > 0].tolist()})[:2]]
        return found
