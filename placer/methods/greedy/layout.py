"""What never changes while the greedy runs: shapes of pods, the tree in depth-first order, prices of resources."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from placer.dense import Dense
from placer.instance import HostPort
from placer.methods.greedy.plan import Block, everything, least
from placer.methods.partial import CallGraph

__all__ = ["Inside", "IntArray", "Layout", "Shape"]

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
        What a pod takes, in the unit of :meth:`Layout.prices`.
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


class Layout:
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
        self._whole: dict[int, tuple[Block, ...]] = {}
        self._elastic: dict[int, bool] = {}
        self._needed: dict[int, tuple[Block, ...] | None] = {}
        self._order_domains()
        changes = np.flatnonzero(np.diff(dense.leaf_unit, prepend=-1))
        #: First node of each leaf (a node in no HyperNode is a leaf of its own), and the number of nodes at the end.
        self.leaf_begin = np.append(changes, len(dense.nodes)).astype(np.int64)
        #: Who calls whom; None where nobody calls.
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
        numbers: dict[tuple[object, ...], int] = {}
        shape_of = [numbers.setdefault(pods.shape, len(numbers)) for pods in dense.classes]
        total: dict[int, int] = defaultdict(int)
        first: dict[int, int] = {}
        for index, shape in enumerate(shape_of):
            total[shape] += dense.classes[index].size
            first.setdefault(shape, index)
        prices = self.prices(dense.requests)
        shapes = []
        for shape, index in first.items():
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

    def whole(self, group: int) -> tuple[Block, ...]:
        """All pending pods of a group."""
        if group not in self._whole:
            self._whole[group] = everything(self.dense, self.dense.groups[group], self.class_prices)
        return self._whole[group]

    def needed(self, group: int) -> tuple[Block, ...] | None:
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
        """The AppGroup of a group, of several the first; None where it calls nobody and nobody calls it."""
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
