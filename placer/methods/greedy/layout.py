"""What never changes while the greedy runs: shapes of pods, the tree in depth-first order, prices of resources.

Also which pods make a gang ready (C5, C6), by counting alone: where they go is not asked here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from placer.dense import Dense, DenseGroup
from placer.instance import HostPort
from placer.methods.partial import CallGraph
from placer.symmetry import partition

__all__ = ["GreedyLayout", "Inside", "IntArray", "PodBlock", "Shape", "everything", "least"]


@dataclass(frozen=True)
class PodBlock:
    """Pods that are placed together: of one subgroup, or those of no subgroup.

    Parameters
    ----------
    sub_group
        Index into ``Dense.sub_groups``; -1: none.
    items
        (class, pods) with at least 1 pod each.
    """

    sub_group: int
    items: tuple[tuple[int, int], ...]

    @property
    def pods(self) -> int:
        """Number of pods."""
        return sum(count for _, count in self.items)


def everything(dense: Dense, group: DenseGroup, prices: Sequence[int]) -> tuple[PodBlock, ...]:
    """All pending pods of the group; ``prices`` as in :func:`least`."""
    return _blocks(dense, group, prices, {index: dense.classes[index].size for index in group.classes})


def least(
    dense: Dense, group: DenseGroup, prices: Sequence[int], most: Mapping[int, int]
) -> tuple[PodBlock, ...] | None:
    """As few and as small pods as make the group ready.

    Parameters
    ----------
    dense
        The instance.
    group
        A gang of which no pending pod is placed yet.
    prices
        What a pod of each class takes; within a block the dearest come first.
    most
        Class to the pods of it that may be used; a class that is not there may be used entirely.

    Returns
    -------
    The blocks, none where nothing is needed; None where the pods do not suffice.
    """
    needs = _Needs(dense, group, most)
    return _blocks(dense, group, prices, needs.take) if needs.meet() else None


def _blocks(dense: Dense, group: DenseGroup, prices: Sequence[int], take: Mapping[int, int]) -> tuple[PodBlock, ...]:
    """Sort pods by subgroup."""
    by_sub: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for index in sorted(group.classes, key=lambda index: (-prices[index], index)):
        if take.get(index, 0):
            by_sub[dense.classes[index].sub_group].append((index, take[index]))
    return tuple(PodBlock(sub_group, tuple(items)) for sub_group, items in by_sub.items())


class _Needs:
    """The counts that are still missing, while pods are chosen one demand after the other."""

    def __init__(self, dense: Dense, group: DenseGroup, most: Mapping[int, int]) -> None:
        self.dense, self.group = dense, group
        sizes = {index: self.dense.classes[index].size for index in group.classes}
        self.left = {index: min(size, most.get(index, size)) for index, size in sizes.items()}
        self.cheap = sorted(group.classes, key=lambda index: (self.dense.classes[index].weight, index))
        self.roles = dict(group.short_by_role)
        self.policies = dict(group.short_by_policy)
        self.total = group.short
        self.take: dict[int, int] = defaultdict(int)
        self.started = {-1} | {sub for sub in group.sub_groups if not self.dense.sub_groups[sub].short}

    def meet(self) -> bool:
        """Choose pods until every count is met; False where they run out."""
        for policy, count in sorted(self.policies.items()):
            subs = [sub for sub in self.group.sub_groups if self.dense.sub_groups[sub].policy == policy]
            if self._start(subs, count) < count:
                return False
        for role in sorted(self.roles):
            if not self._meet_role(role):
                return False
        self._choose(self.cheap, self.total)
        while self.total > 0:
            if not self._start(self.group.sub_groups, 1):
                return False
            self._choose(self.cheap, self.total)
        self._give_back()
        return True

    def _give_back(self) -> None:
        """Leave out pods that a subgroup's size has made one too many, the dearest first."""
        for index in reversed(self.cheap):
            pods = self.dense.classes[index]
            spare = min(self.take[index], -self.total, -self.roles.get(pods.role, self.total))
            part = self.dense.sub_groups[pods.sub_group] if pods.sub_group >= 0 else None
            if part is not None and part.short:
                spare = min(spare, sum(self.take[member] for member in part.classes) - part.short)
            if spare > 0:
                self.take[index] -= spare
                self.total += spare
                if pods.role in self.roles:
                    self.roles[pods.role] += spare

    def _meet_role(self, role: str) -> bool:
        mine = [index for index in self.cheap if self.dense.classes[index].role == role]
        self._choose(mine, self.roles[role])
        while self.roles[role] > 0:
            subs = {self.dense.classes[index].sub_group for index in mine if self.left[index]} - self.started
            if not self._start(subs, 1):
                return False
            self._choose(mine, self.roles[role])
        return True

    def _start(self, subs: Iterable[int], count: int) -> int:
        """Choose the cheapest subgroups that are not started and can be; return how many there were."""
        costs = sorted((self._cost(sub), sub) for sub in subs if sub not in self.started and self._can(sub))
        for _, sub in costs[:count]:
            self.started.add(sub)
            classes = self.dense.sub_groups[sub].classes
            short = self.dense.sub_groups[sub].short
            wanted = [index for index in classes if self.roles.get(self.dense.classes[index].role, 0) > 0]
            for index in sorted(wanted, key=self.cheap.index):
                role = self.dense.classes[index].role
                short -= self._choose([index], min(short, max(0, self.roles[role])))
            self._choose([index for index in self.cheap if index in classes], short)
        return len(costs[:count])

    def _can(self, sub: int) -> bool:
        part = self.dense.sub_groups[sub]
        return sum(self.left[index] for index in part.classes) >= part.short

    def _cost(self, sub: int) -> int:
        part = self.dense.sub_groups[sub]
        missing, cost = part.short, 0
        for weight, index in sorted((self.dense.classes[index].weight, index) for index in part.classes):
            count = min(missing, self.left[index])
            missing -= count
            cost += weight * count
        return cost

    def _choose(self, classes: Iterable[int], count: int) -> int:
        """Take up to ``count`` pods of the classes, of started subgroups or none, and count them everywhere."""
        before = count
        for index in classes:
            pods = self.dense.classes[index]
            if count > 0 and pods.sub_group in self.started:
                taken = min(count, self.left[index])
                self.left[index] -= taken
                self.take[index] += taken
                self.total -= taken
                if pods.role in self.roles:
                    self.roles[pods.role] -= taken
                count -= taken
        return before - count


IntArray = npt.NDArray[np.int64]

#: Price of all free room of an average node, in whole numbers so that comparisons never depend on rounding.
UNIT = 2**20


@dataclass(frozen=True)
class Shape:
    """What nodes can tell of a pod: classes of one shape, of whatever groups, fit the same nodes.

    Parameters
    ----------
    request
        int64, shape (resources,), scaled.
    asked
        Indices of the resources it requests.
    mask
        Row of ``Dense.masks``.
    ports
        Host ports; not empty: at most one per node.
    total
        Pending pods of this shape.
    price
        What a pod takes, in the unit of :meth:`GreedyLayout.prices`.
    first
        A class of this shape.
    """

    request: IntArray
    asked: tuple[int, ...]
    mask: int
    ports: tuple[HostPort, ...]
    total: int
    price: int
    first: int


@dataclass(frozen=True)
class Inside:
    """Some domains within an outer one, depth first.

    Parameters
    ----------
    domains, tiers
        Their indices and tiers.
    begin, end, begin_above, end_above
        Slices of each and of its parent (of the outer one: its own), counted from the first node of the outer one.
    """

    domains: IntArray
    tiers: IntArray
    begin: IntArray
    end: IntArray
    begin_above: IntArray
    end_above: IntArray

    def where(self, keep: npt.NDArray[np.bool_]) -> Inside:
        """Only some of them."""
        if keep.all():
            return self
        return Inside(
            self.domains[keep],
            self.tiers[keep],
            self.begin[keep],
            self.end[keep],
            self.begin_above[keep],
            self.end_above[keep],
        )

    def sums(self, amounts: IntArray) -> IntArray:
        """Sum over each domain of amounts per node of the outer one."""
        total = _running(amounts)
        sums: IntArray = total[self.end] - total[self.begin]
        return sums

    def least(self, amounts: IntArray) -> IntArray:
        """Least over each domain of amounts per node of the outer one."""
        ends = np.column_stack((self.begin, self.end)).ravel()
        found: IntArray = np.minimum.reduceat(np.append(amounts, amounts.max()), ends)[::2]
        return found

    def sums_and_above(self, amounts: IntArray) -> tuple[IntArray, IntArray]:
        """Sums over each domain and over its parent."""
        total = _running(amounts)
        return total[self.end] - total[self.begin], total[self.end_above] - total[self.begin_above]


def _running(amounts: IntArray) -> IntArray:
    total = np.zeros(len(amounts) + 1, dtype=np.int64)
    amounts.cumsum(out=total[1:])
    return total


class GreedyLayout:
    """Static arrays shared by all runs of the greedy over one instance.

    Parameters
    ----------
    dense
        The instance.
    """

    def __init__(self, dense: Dense) -> None:
        self.dense = dense
        self.domains = dense.domains
        self.rates = self._rates()
        self.shape_of, self.shapes = self._shapes()
        self.class_prices = [self.shapes[shape].price for shape in self.shape_of]
        self._inside: dict[tuple[int, int | None], Inside] = {}
        self._lone: dict[int, tuple[int, tuple[tuple[int, int], ...]] | None] = {}
        self._whole: dict[int, tuple[PodBlock, ...]] = {}
        self._elastic: dict[int, bool] = {}
        self._needed: dict[int, tuple[PodBlock, ...] | None] = {}
        self._order_domains()
        changes = np.flatnonzero(np.diff(dense.leaf_unit, prepend=-1))
        #: First node of each leaf (a node in no HyperNode is a leaf of its own), and the number of nodes at the end.
        self.leaf_begin = np.append(changes, len(dense.nodes)).astype(np.int64)
        #: Dependencies between workloads; None where there are none.
        self.calls = None if dense.network is None else CallGraph(dense.network)
        #: Running number of the leaf of each node.
        self.leaf_number = np.searchsorted(changes, np.arange(len(dense.nodes)), side="right") - 1

    def _rates(self) -> npt.NDArray[np.float64]:
        """Price per unit of each resource: the scarcer it is, the dearer.

        Demand over supply says how scarce a resource is, and the price of what an average node has of it is that share.
        """
        dense = self.dense
        sizes = np.array([pod_class.size for pod_class in dense.classes], dtype=np.float64)
        demand = sizes @ dense.requests.astype(np.float64) if len(sizes) else np.zeros(len(dense.resources))
        supply = np.maximum(dense.free.sum(axis=0, dtype=np.float64), 1.0)
        rates: npt.NDArray[np.float64] = UNIT * np.minimum(demand / supply, 4.0) * len(dense.nodes) / supply
        return rates

    def prices(self, amounts: IntArray) -> IntArray:
        """Price of amounts, int64 of shape (..., resources) to shape (...); each resource is rounded on its own."""
        each: IntArray = np.rint(amounts * self.rates).astype(np.int64).sum(axis=-1)
        return each

    def _shapes(self) -> tuple[list[int], list[Shape]]:
        dense = self.dense
        alike = partition(pods.shape for pods in dense.classes)
        shape_of = alike.of.tolist()
        total = [0] * len(alike.first)
        for shape, pods in zip(shape_of, dense.classes, strict=True):
            total[shape] += pods.size
        prices = self.prices(dense.requests)
        shapes = []
        for shape, index in enumerate(alike.first.tolist()):
            pods = dense.classes[index]
            asked = tuple(int(resource) for resource in np.flatnonzero(pods.request))
            shapes.append(
                Shape(pods.request, asked, pods.mask, pods.host_ports, total[shape], int(prices[index]), index)
            )
        return shape_of, shapes

    def _order_domains(self) -> None:
        """Depth-first order of the domains that hold a node, so that what lies in a domain is a slice too."""
        tree = self.domains
        filled = np.flatnonzero(tree.begin < tree.end)
        order = np.lexsort((-tree.tier[filled], -tree.end[filled], tree.begin[filled]))
        self.tree_order = filled[order]
        self.position = np.full(len(tree.names), -1, dtype=np.int64)
        self.position[self.tree_order] = np.arange(len(self.tree_order))
        ends = np.searchsorted(tree.begin[self.tree_order], tree.end, side="left")
        self.subtree_end = ends

    def inside(self, outer: int, limit: int | None = None) -> Inside:
        """Domains that hold a node, lie in ``outer`` (itself among them) and have at most tier ``limit``."""
        if (outer, limit) not in self._inside:
            tree = self.domains
            found = self.tree_order[self.position[outer] : self.subtree_end[outer]]
            if limit is not None:
                found = found[tree.tier[found] <= limit]
            above = np.where(found == outer, found, tree.parent[found])
            begin = tree.begin[outer]
            slices = [tree.begin[found], tree.end[found], tree.begin[above], tree.end[above]]
            self._inside[outer, limit] = Inside(found, tree.tier[found], *(ends - begin for ends in slices))
        return self._inside[outer, limit]

    def slice_of(self, domain: int) -> tuple[int, int]:
        """First node and the one after the last."""
        return int(self.domains.begin[domain]), int(self.domains.end[domain])

    def whole(self, group: int) -> tuple[PodBlock, ...]:
        """All pending pods of a group."""
        if group not in self._whole:
            self._whole[group] = everything(self.dense, self.dense.groups[group], self.class_prices)
        return self._whole[group]

    def needed(self, group: int) -> tuple[PodBlock, ...] | None:
        """As few pods as make a group ready, by counting; None where no choice of its pods does."""
        if group not in self._needed:
            self._needed[group] = least(self.dense, self.dense.groups[group], self.class_prices, {})
        return self._needed[group]

    def elastic(self, group: int) -> bool:
        """Whether a group is ready with fewer than all of its pods."""
        if group not in self._elastic:
            gang = self.dense.groups[group]
            size = {index: self.dense.classes[index].size for index in gang.classes}
            self._elastic[group] = gang.short < sum(size.values()) and any(
                least(self.dense, gang, self.class_prices, {index: size[index] - 1}) is not None for index in size
            )
        return self._elastic[group]

    def lone_kind(self, group: int) -> tuple[int, tuple[tuple[int, int], ...]] | None:
        """What makes lone pods interchangeable (shape and queue rows); None for those that call and any other group."""
        if group in self._lone:
            return self._lone[group]
        self._lone[group] = kind = self._kind_of(group)
        return kind

    def _kind_of(self, group: int) -> tuple[int, tuple[tuple[int, int], ...]] | None:
        gang = self.dense.groups[group]
        if not self.is_lone(group) or gang.classes[0] in self.dense.workload_of:
            return None
        return self.shape_of[gang.classes[0]], self.dense.rows_of[gang.classes[0]]

    def app(self, group: int) -> int | None:
        """The AppGroup of a group, of several the first; None where it has no dependency."""
        return None if self.calls is None else self._apps[group]

    @cached_property
    def _apps(self) -> list[int | None]:
        workloads = () if self.calls is None else self.calls.network.workloads
        of = self.dense.workload_of
        apps = ((workloads[of[index]].app for index in group.classes if index in of) for group in self.dense.groups)
        return [min(each, default=None) for each in apps]

    def is_lone(self, group: int) -> bool:
        """Whether a group is a single pod that no tier concerns."""
        gang = self.dense.groups[group]
        scope = self.dense.scopes[gang.scope]
        alone = len(gang.classes) == 1 and self.dense.classes[gang.classes[0]].size == 1 == gang.short
        return alone and not gang.sub_groups and not scope.wanted and scope.limit is None

    @cached_property
    def sub_limits(self) -> list[int | None]:
        """Tier limit of each subgroup; None where it has none of its own."""
        return [self.dense.scopes[sub.scope].limit for sub in self.dense.sub_groups]
