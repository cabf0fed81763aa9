"""The partial solution of the greedy, and what never changes while it runs: which pods make a gang ready (C5, C6),
shapes of pods, the tree in depth-first order, prices of resources.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from placer.arrays import Dense, DenseGroup, Solution
from placer.arrays.solution import BoolArray, FloatArray, IntArray
from placer.arrays.symmetry import partition
from placer.problem import HostPort
from placer.search.partial import CallGraph, PartialSolution


@dataclass(frozen=True)
class PodBlock:
    """Pods that are placed together, as (class, pods): of one subgroup, or of none (-1)."""

    sub_group: int
    items: tuple[tuple[int, int], ...]

    @property
    def pods(self) -> int:
        """Number of pods."""
        return sum(count for _, count in self.items)


def least(
    dense: Dense, group: DenseGroup, prices: Sequence[int], most: Mapping[int, int]
) -> tuple[PodBlock, ...] | None:
    """As few and as small pods as make the group ready; None where the pods do not suffice.

    ``group``: nothing of it is placed yet. ``prices``: of a pod of each class; within a block the dearest come first.
    ``most``: class to the pods of it that may be used; absent: all.
    """
    needs = _Needs(dense, group, most)
    return _blocks(dense, group, prices, needs.take) if needs.meet() else None


def _blocks(dense: Dense, group: DenseGroup, prices: Sequence[int], take: Mapping[int, int]) -> tuple[PodBlock, ...]:
    by_sub: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for index in sorted(group.classes, key=lambda index: (-prices[index], index)):
        if take.get(index, 0):
            by_sub[dense.classes[index].sub_group].append((index, take[index]))
    return tuple(PodBlock(sub_group, tuple(items)) for sub_group, items in by_sub.items())


class _Needs:
    def __init__(self, dense: Dense, group: DenseGroup, most: Mapping[int, int]) -> None:
        self.dense, self.group = dense, group
        sizes = {index: dense.classes[index].size for index in group.classes}
        self.left = {index: min(size, most.get(index, size)) for index, size in sizes.items()}
        self.cheap = sorted(group.classes, key=lambda index: (dense.classes[index].weight, index))
        #: Pods still missing of each role, and of all roles together: None.
        self.missing: dict[str | None, int] = {**dict(group.short_by_role), None: group.short}
        self.take: dict[int, int] = defaultdict(int)
        self.started = {-1} | {sub for sub in group.sub_groups if not dense.sub_groups[sub].short}

    def meet(self) -> bool:
        for policy, count in sorted(self.group.short_by_policy):
            subs = [sub for sub in self.group.sub_groups if self.dense.sub_groups[sub].policy == policy]
            if self._start(subs, count) < count:
                return False
        roles = sorted(role for role in self.missing if role is not None)
        if not all(self._meet(role) for role in (*roles, None)):
            return False
        self._give_back()
        return True

    def _meet(self, role: str | None) -> bool:
        mine = [index for index in self.cheap if role in (None, self.dense.classes[index].role)]
        self._choose(mine, self.missing[role])
        while self.missing[role] > 0:
            if not self._start({self.dense.classes[index].sub_group for index in mine if self.left[index]}, 1):
                return False
            self._choose(mine, self.missing[role])
        return True

    def _give_back(self) -> None:
        for index in reversed(self.cheap):
            pods = self.dense.classes[index]
            spare = min(self.take[index], *(-self.missing[each] for each in self._counts(index)))
            part = self.dense.sub_groups[pods.sub_group] if pods.sub_group >= 0 else None
            if part is not None and part.short:
                spare = min(spare, sum(self.take[member] for member in part.classes) - part.short)
            if spare > 0:
                self._take(index, -spare)

    def _start(self, subs: Iterable[int], count: int) -> int:
        unstarted = ((self._cost(sub), sub) for sub in subs if sub not in self.started)
        costs = sorted((cost, sub) for cost, sub in unstarted if cost is not None)
        for _, sub in costs[:count]:
            self.started.add(sub)
            part = self.dense.sub_groups[sub]
            mine, short = [index for index in self.cheap if index in part.classes], part.short
            for index in mine:
                short -= self._choose([index], min(short, self.missing.get(self.dense.classes[index].role, 0)))
            self._choose(mine, short)
        return len(costs[:count])

    def _cost(self, sub: int) -> int | None:
        part = self.dense.sub_groups[sub]
        missing, cost = part.short, 0
        for weight, index in sorted((self.dense.classes[index].weight, index) for index in part.classes):
            count = min(missing, self.left[index])
            missing -= count
            cost += weight * count
        return None if missing else cost

    def _choose(self, classes: Iterable[int], count: int) -> int:
        before = count
        for index in classes:
            if count > 0 and self.dense.classes[index].sub_group in self.started:
                taken = min(count, self.left[index])
                self._take(index, taken)
                count -= taken
        return before - count

    def _take(self, index: int, count: int) -> None:
        self.left[index] -= count
        self.take[index] += count
        for each in self._counts(index):
            self.missing[each] -= count

    def _counts(self, index: int) -> list[str | None]:
        role = self.dense.classes[index].role
        return [None, role] if role in self.missing else [None]


@dataclass(frozen=True)
class Shape:
    """Classes of one shape, of whatever groups, fit the same nodes.

    ``request``: int64, shape (resources,), scaled. ``asked``: resources it requests. ``ports``: not empty: at most one
    per node. ``total``: pending pods. ``price``: in the unit of :meth:`GreedyLayout.prices`. ``first``: a class.
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

    ``slices``, ``slices_above``: int64, shape (2, domains): begin and end of each and of its parent (of the outer one:
    its own), counted from the first node of the outer one.
    """

    domains: IntArray
    tiers: IntArray
    slices: IntArray
    slices_above: IntArray

    def where(self, keep: BoolArray) -> Inside:
        """Only some of them."""
        if keep.all():
            return self
        return Inside(self.domains[keep], self.tiers[keep], self.slices[:, keep], self.slices_above[:, keep])

    def sums(self, amounts: IntArray, *, above: bool = False) -> IntArray:
        """Sum over each domain, or over its parent, of amounts per node of the outer one."""
        total, (begin, end) = running_sums(amounts), self.slices_above if above else self.slices
        found: IntArray = total[end] - total[begin]
        return found

    def minima(self, amounts: IntArray) -> IntArray:
        """Least over each domain of amounts per node of the outer one."""
        found: IntArray = np.minimum.reduceat(np.append(amounts, amounts.max()), self.slices.T.ravel())[::2]
        return found


def running_sums(amounts: IntArray) -> IntArray:
    """Sums of the first 0, 1, 2 ... amounts."""
    total = np.zeros(len(amounts) + 1, dtype=np.int64)
    amounts.cumsum(out=total[1:])
    return total


class GreedyLayout:
    """Static arrays shared by all runs of the greedy over one instance."""

    def __init__(self, dense: Dense) -> None:
        self.dense = dense
        self.domains = dense.domains
        self.rates = self._rates()
        self.shape_of, self.shapes = self._shapes()
        self.class_prices = [self.shapes[shape].price for shape in self.shape_of]
        self._inside: dict[tuple[int, int | None], Inside] = {}
        self._whole: dict[int, tuple[PodBlock, ...]] = {}
        self._elastic: dict[int, bool] = {}
        self._needed: dict[int, tuple[PodBlock, ...] | None] = {}
        self._order_domains()
        changes = np.flatnonzero(np.diff(dense.span_leaf, prepend=-1))
        #: First node of each leaf (a node in no HyperNode is a leaf of its own), and the number of nodes at the end.
        self.leaf_begin = np.append(changes, len(dense.nodes)).astype(np.int64)
        #: Dependencies between workloads; None where there are none.
        self.calls = None if dense.network is None else CallGraph(dense.network)
        #: Running number of the leaf of each node.
        self.leaf_number = np.searchsorted(changes, np.arange(len(dense.nodes)), side="right") - 1

    def _rates(self) -> FloatArray:
        """The scarcer a resource, the dearer: demand over supply is the price of what an average node has of it."""
        dense = self.dense
        sizes = np.array([pod_class.size for pod_class in dense.classes], dtype=np.float64)
        demand = sizes @ dense.requests.astype(np.float64) if len(sizes) else np.zeros(len(dense.resources))
        supply = np.maximum(dense.free.sum(axis=0, dtype=np.float64), 1.0)
        rates: FloatArray = 2**20 * np.minimum(demand / supply, 4.0) * len(dense.nodes) / supply
        return rates

    def prices(self, amounts: IntArray) -> IntArray:
        """Price of amounts, int64 of shape (..., resources) to shape (...); each resource rounded on its own."""
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
        tree = self.domains
        filled = np.flatnonzero(tree.begin < tree.end)
        order = np.lexsort((-tree.tier[filled], -tree.end[filled], tree.begin[filled]))
        self.tree_order = filled[order]
        self.position = np.full(len(tree.names), -1, dtype=np.int64)
        self.position[self.tree_order] = np.arange(len(self.tree_order))
        self.subtree_end = np.searchsorted(tree.begin[self.tree_order], tree.end, side="left")

    def inside(self, outer: int, limit: int | None = None) -> Inside:
        """Domains that hold a node, lie in ``outer`` (itself among them) and have at most tier ``limit``."""
        if (outer, limit) not in self._inside:
            tree = self.domains
            found = self.tree_order[self.position[outer] : self.subtree_end[outer]]
            if limit is not None:
                found = found[tree.tier[found] <= limit]
            above = np.where(found == outer, found, tree.parent[found])
            ends = np.array([tree.begin, tree.end]) - tree.begin[outer]
            self._inside[outer, limit] = Inside(found, tree.tier[found], ends[:, found], ends[:, above])
        return self._inside[outer, limit]

    def slice_of(self, domain: int) -> tuple[int, int]:
        """First node and the one after the last."""
        return int(self.domains.begin[domain]), int(self.domains.end[domain])

    def whole(self, group: int) -> tuple[PodBlock, ...]:
        """All pending pods of a group."""
        if group not in self._whole:
            gang = self.dense.groups[group]
            sizes = {index: self.dense.classes[index].size for index in gang.classes}
            self._whole[group] = _blocks(self.dense, gang, self.class_prices, sizes)
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

    def is_lone(self, group: int) -> bool:
        """Whether a group is a single pod that no tier concerns."""
        return self._lone[group]

    @cached_property
    def _lone(self) -> list[bool]:
        classes, scopes = self.dense.classes, self.dense.scopes
        return [
            len(group.classes) == 1
            and classes[group.classes[0]].size == 1 == group.short
            and not (group.sub_groups or scopes[group.scope].wanted)
            and scopes[group.scope].limit is None
            for group in self.dense.groups
        ]

    @cached_property
    def behind(self) -> dict[int, set[int]]:
        """Group that must be near others to those of its priority that let it in (C12)."""
        found: dict[int, set[int]] = defaultdict(set)
        groups, classes = self.dense.groups, self.dense.classes
        lets_in = {} if self.dense.neighbours is None else self.dense.neighbours.let_in_by
        for index, others in lets_in.items():
            group = classes[index].group
            there = {classes[other].group for other in others} - {group}
            found[group] |= {other for other in there if groups[other].priority == groups[group].priority}
        return {group: others for group, others in found.items() if others}

    @cached_property
    def followers(self) -> dict[int, list[int]]:
        """Gang to those that must be near it and nothing else."""
        found: dict[int, list[int]] = defaultdict(list)
        for group, others in self.behind.items():
            if len(others) == 1 and not any(self.is_lone(each) for each in (group, *others)):
                found[min(others)].append(group)
        return found

    def lone_kind(self, group: int) -> tuple[int, tuple[tuple[int, int], ...]] | None:
        """Equal for interchangeable lone pods; None for those that call and other groups."""
        index = self.dense.groups[group].classes[0]
        if not self._lone[group] or index in self.dense.workload_of:
            return None
        return self.shape_of[index], self.dense.rows_of[index]

    def app(self, group: int) -> int | None:
        """The first AppGroup of a group; None where it has no dependency."""
        return None if self.calls is None else self._apps[group]

    @cached_property
    def _apps(self) -> list[int | None]:
        workloads = () if self.calls is None else self.calls.network.workloads
        of = self.dense.workload_of
        apps = ((workloads[of[index]].app for index in group.classes if index in of) for group in self.dense.groups)
        return [min(each, default=None) for each in apps]


#: What a step of a few numpy calls costs whatever the size of its arrays, in array elements.
STEP = 10_000

#: What looking at the zones of a node costs, in the same unit.
ZONES = 40


class GreedyState(PartialSolution):
    """A partial solution that counts how many pods of a shape each node still takes, and the work; ``even``: the
    emptiest nodes are filled first.
    """

    def __init__(self, layout: GreedyLayout, solution: Solution | None = None, *, even: bool = False) -> None:
        super().__init__(layout.dense, layout.calls)
        self.layout, self.even = layout, even
        #: int64, shape (nodes,): the price of what each node has left.
        self.price = layout.prices(self.dense.free)
        #: How often pods that call each other may still be moved while areas for them are looked for.
        self.moves = 1_000
        #: Array elements looked at so far and :data:`STEP` per step: work, the same on every machine.
        self.work = 0
        self._changed: list[int] = []
        self._fits: dict[int, tuple[IntArray, int]] = {}
        self._most_fits = max(8, 16 * 10**6 // max(1, len(self.dense.nodes)))
        for index, node, count in (solution or Solution()).in_order():
            self.take(index, [node], [count])

    def take(self, index: int, nodes: Sequence[int], counts: Sequence[int]) -> None:
        """Place pods of a class on distinct ``nodes``, take them away where a count is negative."""
        self.work += STEP // 50 * len(nodes)
        super().take(index, nodes, counts)

    def take_one_each(self, classes: Sequence[int], nodes: Sequence[int], counts: Sequence[int]) -> None:
        """Place one pod of each class, all of one shape: ``counts`` of them on each of ``nodes``."""
        left = iter(classes)
        self.work += STEP // 50 * len(classes)
        for node, count in zip(nodes, counts, strict=True):
            for _ in range(count):
                self._enter(next(left), node, 1)
        self._fill(classes[0], nodes, counts)

    def undo(self, mark: int) -> None:
        """Take back everything since ``mark``."""
        self.work += STEP // 10 * (len(self._log) - mark)
        super().undo(mark)

    def _count(self, index: int, node: int, count: int) -> None:
        if index in self.dense.workload_of:
            self.work += 6_000
        super()._count(index, node, count)

    def _fill(self, index: int, nodes: Sequence[int], counts: Sequence[int]) -> None:
        super()._fill(index, nodes, counts)
        price = self.layout.class_prices[index]
        if len(nodes) == 1:
            self.price[nodes[0]] -= price * counts[0]
        else:
            self.price[np.asarray(nodes)] -= price * np.asarray(counts)
        self._changed.extend(nodes)

    def fits(self, number: int) -> IntArray:
        """Pods of a shape that each node could still take: int64, read-only, at most its total."""
        shape = self.layout.shapes[number]
        known = self._fits.get(number)
        if (
            known is None
            or shape.ports
            or (self.neighbours is not None and shape.first in self.neighbours.neighbours.volatile)
            or 2 * (len(self._changed) - known[1]) > len(self.price)
        ):
            counts = self._fitting(shape, None)
            if len(self._fits) >= self._most_fits:
                self._fits.clear()
        else:
            counts, seen = known
            if seen < len(self._changed):
                nodes = np.array(self._changed[seen:], dtype=np.int64)
                counts[nodes] = self._fitting(shape, nodes)
        self._fits[number] = (counts, len(self._changed))
        return counts

    def hopes(self, number: int) -> IntArray:
        """As :meth:`fits`, but for what other pods that come with them make possible (C12, C14)."""
        shape = self.layout.shapes[number]
        if self.neighbours is None or not self.tied(shape.first):
            return self.fits(number)
        with self.neighbours.leniently():
            return self._fitting(shape, None)

    def _fitting(self, shape: Shape, nodes: IntArray | None, *, zones: bool = True) -> IntArray:
        mask = self.dense.masks[shape.mask]
        allowed = mask if nodes is None else mask[nodes]
        self.work += STEP // 4 + len(allowed) * (1 + len(shape.asked))
        counts = np.full(len(allowed), 1 if shape.ports else shape.total, dtype=np.int64)
        for resource in shape.asked:
            room = self.room[resource] if nodes is None else self.room[resource, nodes]
            np.minimum(counts, room // shape.request[resource], out=counts)
        self.close(shape.first, nodes, counts, zones=zones)
        counts *= allowed
        np.maximum(counts, 0, out=counts)
        return counts

    def close(self, index: int, nodes: IntArray | None, counts: IntArray, *, zones: bool = True) -> None:
        """As the partial solution does, counting the work."""
        if zones and self.zones is not None and self.dense.classes[index].zones >= 0:
            self.work += ZONES * len(counts)
        super().close(index, nodes, counts, zones=zones)

    def has_room(self, number: int) -> BoolArray:
        """Where one pod of a shape fits: bool, shape (nodes,)."""
        shape = self.layout.shapes[number]
        if shape.ports or number in self._fits:
            able: BoolArray = self.fits(number) > 0
            return able
        self.work += len(self.price) * (1 + len(shape.asked)) // 4
        where: BoolArray = self.dense.masks[shape.mask].copy()
        for resource in shape.asked:
            where &= self.room[resource] >= shape.request[resource]
        if self.closes(shape.first):
            counts = where.astype(np.int64)
            self.close(shape.first, None, counts)
            where = counts > 0
        return where

    def left_by(self, number: int) -> IntArray:
        """The price of the room, by which tight nodes come first; where kubelets align the pod, what it leaves in its
        zones.
        """
        shape = self.layout.shapes[number]
        if self.zones is None or self.dense.classes[shape.first].zones < 0:
            return -self.price if self.even else self.price
        self.work += ZONES * len(self.price)
        return self.zones.left(shape.first)

    def able(self, index: int, *, zones: bool = True) -> IntArray:
        """How many pods of a class each node takes, by all rules but those of its group and queues; not to be changed.

        Of several nodes in one area each alone: pods on one may close the others (C9). What C8 says under ``majority``
        is left out; without ``zones`` so is C10.
        """
        number = self.layout.shape_of[index]
        fits = self.fits(number) if zones else self._fitting(self.layout.shapes[number], None, zones=False)
        workload = self.dense.workload_of.get(index) if self.communication is not None else None
        if self.communication is None or workload is None:
            return fits
        most = self.communication.most(workload, unbalanced=True)[self.communication.calls.area]
        least: IntArray = np.minimum(fits, most)
        return least

    def takes(self, number: int, node: int) -> bool:
        """Whether one pod of a shape fits on a node."""
        shape = self.layout.shapes[number]
        if self.closes(shape.first):
            return bool(self.fits(number)[node] > 0)
        free = self.free[node]
        return bool(self.dense.masks[shape.mask, node]) and all(free[r] >= shape.request[r] for r in shape.asked)

    def touched_leaves(self, scope: int) -> set[int]:
        """Leaves on which a scope has pods, before or now."""
        it = self.dense.scopes[scope]
        nodes = [node for node in it.bound if node >= 0] + self.nodes_of(it.classes)
        return {int(leaf) for leaf in self.layout.leaf_number[nodes]} if nodes else set()

    def solution(self) -> Solution:
        """Placed pods, in an order in which kubelets admit them."""
        return self._ordered()
