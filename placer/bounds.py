"""Numbers that no placement can beat, by counting alone: each with the name of the argument.

``volume``: what is asked in all of one resource against the room in all. ``counting``: how many pods of at least some
size the nodes hold; the lowest tier and the fewest leaves that could hold a scope alone. They cost no search, say at
once that an easy instance is solved, and stop a solver that only lacks the proof.

Source: solver-notes on bounds for vector bin packing, points (1), (3) and (4).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from placer.dense import Dense, DenseGroup, Scope

__all__ = ["NamedBound", "bounds_for", "named_bounds"]

IntArray = npt.NDArray[np.int64]

#: Sizes of one resource that are looked at one by one, evenly chosen where there are more.
MOST_SIZES = 32


@dataclass(frozen=True)
class NamedBound:
    """A number that no placement beats among those that equal ``context`` on the values before ``level``.

    Parameters
    ----------
    level
        Index into ``Dense.levels``; None: the sum of placed weight over all priorities.
    bound
        The number, in the unit of the value.
    by
        Name of the argument.
    context
        Values of the levels before; empty where the bound holds for every placement.
    """

    level: int | None
    bound: int
    by: str
    context: tuple[int, ...] = ()


def named_bounds(dense: Dense) -> tuple[NamedBound, ...]:
    """Bounds that hold for every placement: one per value, and one on the placed weight.

    Parameters
    ----------
    dense
        The instance.
    """
    found = []
    for level, (name, priority) in enumerate(dense.levels):
        groups = [group for group in dense.groups if group.priority == priority]
        if name == "admitted":
            found.append(NamedBound(level, _admitted(dense, groups), "volume"))
        elif name == "placed":
            found.append(NamedBound(level, _placed(dense, groups), "volume"))
        else:
            found.append(NamedBound(level, _standing(dense, name), "counting"))
    found.append(NamedBound(None, _placed(dense, dense.groups), "volume"))
    return tuple(found)


def bounds_for(dense: Dense, values: Sequence[int]) -> tuple[NamedBound, ...]:
    """Bounds on each value among the placements that equal ``values`` on the values before it.

    Parameters
    ----------
    dense
        The instance.
    values
        Of the answer in hand, one per level.

    Returns
    -------
    tuple of NamedBound
        Those of :func:`named_bounds`, and of the other values those that follow where the values before say that every
        pod is placed, or where nothing can be better.
    """
    return (*named_bounds(dense), *_Given(dense, values).bounds())


def _standing(dense: Dense, name: str) -> int:
    """Return what running pods make of a value that is minimised: new pods can only add to it."""
    value = {"locality": dense.constant_locality, "span": dense.constant_span}.get(name, 0)
    for scope in dense.scopes if name in ("locality", "span") else ():
        common = dense.common(scope.bound)
        if scope.wanted and common is not None:
            leaves = {int(dense.leaf_unit[node]) for node in scope.bound if node >= 0}
            value += (
                len(scope.bound) * int(dense.domains.tier[common])
                if name == "locality"
                else len(leaves) + scope.lost_leaves
            )
    return value


def _admitted(dense: Dense, groups: Sequence[DenseGroup]) -> int:
    """Most need weight: groups are taken by the fraction, each with the least it must request of one resource."""
    weights = np.array([group.need_weight for group in groups], dtype=np.int64)
    requests = np.array([_least_request(dense, group) for group in groups], dtype=np.int64)
    return _knapsack(weights, requests.reshape(len(groups), len(dense.resources)), dense.free)


def _least_request(dense: Dense, group: DenseGroup) -> list[int]:
    """Least that the ``short`` smallest of its pods request, per resource."""
    rows = dense.requests[list(group.classes)]
    sizes = [dense.classes[index].size for index in group.classes]
    if not group.short:
        return [0] * len(dense.resources)
    return [int(np.sort(np.repeat(column, sizes))[: group.short].sum()) for column in rows.T]


def _placed(dense: Dense, groups: Sequence[DenseGroup]) -> int:
    """Most weight: pods are taken by the fraction as long as one resource lasts."""
    classes = [index for group in groups for index in group.classes]
    sizes = np.array([dense.classes[index].size for index in classes], dtype=np.int64)
    weights = np.array([dense.classes[index].weight for index in classes], dtype=np.int64) * sizes
    return _knapsack(weights, dense.requests[classes] * sizes[:, None], dense.free)


def _knapsack(weights: IntArray, requests: IntArray, free: IntArray) -> int:
    """Most weight by the fraction: the least over the resources r of an LP with the one row of r.

    The price q of a unit is the ratio of the item that fits in part; any price at all gives a bound,
    sum over items of max(0, weight - q request) + q room, so rounding in the ratios cannot make it wrong.
    """
    best = int(weights.sum())
    for resource, column in enumerate(requests.T):
        room = int(free[:, resource].sum())
        if int(column.sum()) > room:
            order = np.argsort(column / np.maximum(weights, 1e-9), kind="stable")
            split = order[min(int(np.searchsorted(np.cumsum(column[order]), room, side="right")), len(order) - 1)]
            price, unit = int(weights[split]), int(column[split])
            gains = (int(w) * unit - price * int(a) for w, a in zip(weights, column, strict=True))
            best = min(best, (sum(gain for gain in gains if gain > 0) + price * room) // unit)
    return best


class _Given:
    """Bounds that take the values before as given."""

    def __init__(self, dense: Dense, values: Sequence[int]) -> None:
        self.dense = dense
        self.values = tuple(values)

    def bounds(self) -> Iterator[NamedBound]:
        everything, seen = self._everything(), set()
        priorities = {group.priority for group in self.dense.groups}
        makers = {
            "locality": self._locality,
            "span": self._span,
            "packedHyperNodes": self._packed_hyper_nodes,
            "packedNodes": self._packed_nodes,
        }
        for level, (name, priority) in enumerate(self.dense.levels):
            before = self.values[:level]
            if name == "placed":
                yield from self._placed(level, priority)
                if self.values[level] == everything[priority]:
                    seen.add(priority)
            elif name in makers and seen >= priorities:
                yield NamedBound(level, makers[name](), "counting", before)

    def _everything(self) -> dict[int | None, int]:
        """Priority to the weight of all its pods."""
        total: dict[int | None, int] = defaultdict(int)
        for pod_class in self.dense.classes:
            total[self.dense.groups[pod_class.group].priority] += pod_class.weight * pod_class.size
        return total

    def _placed(self, level: int, priority: int | None) -> Iterator[NamedBound]:
        """Where no group of the priority has optional pods, what is admitted is what is placed."""
        groups = [group for group in self.dense.groups if group.priority == priority]
        whole = all(
            group.need_weight == sum(self.dense.classes[i].weight * self.dense.classes[i].size for i in group.classes)
            for group in groups
        )
        if whole and level and self.dense.levels[level - 1] == ("admitted", priority):
            yield NamedBound(level, self.values[level - 1], "counting", self.values[:level])

    # What follows holds where every pod of the arrays is placed

    @cached_property
    def _held(self) -> list[IntArray]:
        """Per class: int64, shape (domains,): how many of its pods each domain could hold alone."""
        tree = self.dense.domains
        sums = (np.concatenate(([0], np.cumsum(self.dense.fits(index)))) for index in range(len(self.dense.classes)))
        return [total[tree.end] - total[tree.begin] for total in sums]

    def _locality(self) -> int:
        """Sum over scopes of all their pods times the lowest tier of a domain that could hold them alone."""
        total = self.dense.constant_locality
        for number, scope in enumerate(self.dense.scopes):
            if scope.wanted:
                pods = len(scope.bound) + sum(self.dense.classes[index].size for index in scope.classes)
                total += pods * self._lowest_tier(number, scope) if pods else 0
        return total

    def _lowest_tier(self, number: int, scope: Scope) -> int:
        tree = self.dense.domains
        able = np.ones(len(tree.tier), dtype=bool)
        for index in scope.classes:
            able &= self._held[index] >= self.dense.classes[index].size
        anchor = self.dense.anchor(number)
        if anchor is not None:
            able &= (tree.begin <= tree.begin[anchor]) & (tree.end >= tree.end[anchor])
            able &= tree.tier >= tree.tier[anchor]
        able[tree.root] = True
        return int(tree.tier[able].min())

    def _span(self) -> int:
        """Sum over scopes of the fewest leaves that could hold all their pods: first those touched, then the
        largest.
        """
        total = self.dense.constant_span
        units = np.unique(self.dense.leaf_unit, return_inverse=True)[1].reshape(-1)
        count = int(units.max()) + 1 if len(units) else 0
        for scope in self.dense.scopes:
            if scope.wanted:
                touched = np.unique(units[[node for node in scope.bound if node >= 0]])
                fewest = len(touched)
                for index in scope.classes:
                    room = np.bincount(units, weights=self.dense.fits(index), minlength=count).astype(np.int64)
                    left = self.dense.classes[index].size - int(room[touched].sum())
                    room[touched] = 0
                    fewest = max(fewest, len(touched) + _fewest(left, room))
                total += fewest + scope.lost_leaves
        return total

    def _packed_nodes(self) -> int:
        """Fewest empty nodes that hold what the used ones cannot: the largest first, for each measure."""
        used = self.dense.node_used
        return max((_fewest(asked - int(room[used].sum()), room[~used]) for asked, room in self._measures()), default=0)

    def _packed_hyper_nodes(self) -> int:
        """Sum over the tiers of the fewest empty domains that hold what all other nodes cannot, for each measure."""
        tree, total = self.dense.domains, 0
        inner = np.arange(len(tree.tier)) != tree.root
        for tier in np.unique(tree.tier[inner]):
            empty = np.flatnonzero((tree.tier == tier) & ~tree.used & inner)
            fewest = 0
            for asked, room in self._measures():
                sums = np.concatenate(([0], np.cumsum(room)))
                inside = sums[tree.end[empty]] - sums[tree.begin[empty]]
                fewest = max(fewest, _fewest(asked - int(room.sum() - inside.sum()), inside))
            total += fewest
        return total

    def _measures(self) -> Iterator[tuple[int, IntArray]]:
        """Pairs of what the pods ask for in all, and int64, shape (nodes,), what each node has.

        Per resource the amount, and per size the number of pods that ask for at least so much.
        """
        classes = [index for index, pod_class in enumerate(self.dense.classes) if not pod_class.daemon]
        sizes = np.array([self.dense.classes[index].size for index in classes], dtype=np.int64)
        for resource in range(len(self.dense.resources)):
            asked, free = self.dense.requests[classes, resource], self.dense.free[:, resource]
            yield int((asked * sizes).sum()), free
            steps = np.unique(asked[asked > 0])
            for size in steps[:: -(-len(steps) // MOST_SIZES) or 1]:
                yield int(sizes[asked >= size].sum()), free // size


def _fewest(asked: int, rooms: IntArray) -> int:
    """Fewest of the rooms that hold ``asked`` together; all of them where even that is too little."""
    if asked <= 0:
        return 0
    sums = np.cumsum(np.sort(rooms)[::-1])
    return min(int(np.searchsorted(sums, asked)) + 1, len(rooms))
