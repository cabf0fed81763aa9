"""What the values that are minimised are at least where every pod that can be placed is placed.

The lowest tier and the fewest leaves that could hold a scope alone; the fewest nodes and HyperNodes that hold all pods
together. No value of an answer goes into them, so they are worked out once.

Source: solver-notes on bounds for vector bin packing, points (1), (3) and (4).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cached_property

import numpy as np

from placer.bounds.alone import Alone
from placer.bounds.calls import CallCosts, standing_cost
from placer.bounds.rooms import Measure
from placer.bounds.shapes import IntArray
from placer.bounds.volume import some_of
from placer.dense import Scope

__all__ = ["Everything"]


class Everything:
    """Least values with every pod placed that can be.

    Parameters
    ----------
    alone
        What can be placed at most.
    """

    def __init__(self, alone: Alone) -> None:
        self.alone, self.dense = alone, alone.dense
        self.sizes: list[int] = alone.sizes.tolist()
        self.makers = {
            "locality": self._locality,
            "span": self._span,
            "networkCost": self._network_cost,
            "packedHyperNodes": self._packed_hyper_nodes,
            "packedNodes": self._packed_nodes,
        }
        self._found: dict[str, int] = {}
        self._held: dict[Measure, IntArray] = {}
        self._leaves: dict[Measure, IntArray] = {}
        self._taken: dict[tuple[tuple[int, int], ...], tuple[tuple[Measure, int], ...]] = {}

    def least(self, name: str) -> int:
        """Least value of the name; ``makers`` has the names."""
        if name not in self._found:
            self._found[name] = self.makers[name]()
        return self._found[name]

    def _fits(self, measure: Measure) -> IntArray:
        """Room of each node by a measure: int64, shape (nodes,)."""
        found: IntArray = self.alone.rooms.per_kind(measure)[self.alone.shapes.of_node]
        return found

    def _holds(self, measure: Measure) -> IntArray:
        """Room of each domain by a measure: int64, shape (domains,)."""
        if measure not in self._held:
            tree = self.dense.domains
            sums = np.concatenate(([0], np.cumsum(self._fits(measure))))
            self._held[measure] = sums[tree.end] - sums[tree.begin]
        return self._held[measure]

    def _in_units(self, measure: Measure) -> IntArray:
        """Room of each leaf by a measure: int64, shape (leaves,)."""
        if measure not in self._leaves:
            sums = np.bincount(self._units, weights=self._fits(measure), minlength=int(self._units.max()) + 1)
            self._leaves[measure] = sums.astype(np.int64)
        return self._leaves[measure]

    def _asked(self, scope: Scope) -> tuple[tuple[Measure, int], ...]:
        """What all pods of a scope take together, by every measure."""
        by_shape: Counter[int] = Counter()
        for index in scope.classes:
            by_shape[int(self.alone.shapes.of_class[index])] += self.sizes[index]
        key = tuple(sorted((shape, count) for shape, count in by_shape.items() if count))
        if key not in self._taken:
            shapes = [shape for shape, _ in key]
            measures = self.alone.measures(shapes)
            costs = self.alone.rooms.costs(measures, shapes)
            taken = (np.array([count for _, count in key], dtype=np.int64)[:, None] * costs).sum(axis=0)
            self._taken[key] = tuple(zip(measures, taken.tolist(), strict=True))
        return self._taken[key]

    def _locality(self) -> int:
        """Sum over scopes of all their pods times the lowest tier of a domain that could hold them alone."""
        total = self.dense.constant_locality
        for number, scope in enumerate(self.dense.scopes):
            if scope.wanted:
                pods = len(scope.bound) + sum(self.sizes[index] for index in scope.classes)
                total += pods * self._lowest_tier(number, scope) if pods else 0
        return total

    def _lowest_tier(self, number: int, scope: Scope) -> int:
        tree = self.dense.domains
        able = np.ones(len(tree.tier), dtype=bool)
        for measure, asked in self._asked(scope):
            able &= self._holds(measure) >= asked
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
        for scope in self.dense.scopes:
            if scope.wanted:
                touched = np.unique(self._units[[node for node in scope.bound if node >= 0]])
                fewest = len(touched)
                for measure, asked in self._asked(scope):
                    room = self._in_units(measure).copy()
                    left = asked - int(room[touched].sum())
                    room[touched] = 0
                    fewest = max(fewest, len(touched) + _fewest(left, room))
                total += fewest + scope.lost_leaves
        return total

    @cached_property
    def _units(self) -> IntArray:
        """int64, shape (nodes,): what ``span`` counts each node as, numbered without gaps."""
        found: IntArray = np.unique(self.dense.leaf_unit, return_inverse=True)[1].reshape(-1).astype(np.int64)
        return found

    def _network_cost(self) -> int:
        """What running pods cost, and what the calls of each AppGroup add at least."""
        network, standing = self.dense.network, standing_cost(self.dense)
        return standing + (sum(CallCosts(self.dense, network, self.sizes).by_app.values()) if network else 0)

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
        shapes = self.alone.shapes
        classes = [index for index, pod_class in enumerate(self.dense.classes) if not pod_class.daemon]
        sizes = np.array([self.sizes[index] for index in classes], dtype=np.int64)
        for resource in range(len(self.dense.resources)):
            asked, free = self.dense.requests[classes, resource], shapes.free[shapes.of_node, resource]
            yield int((asked * sizes).sum()), free
            steps = np.unique(asked[asked > 0])
            for size in some_of(steps):
                yield int(sizes[asked >= size].sum()), free // size


def _fewest(asked: int, rooms: IntArray) -> int:
    """Fewest of the rooms that hold ``asked`` together; all of them where even that is too little."""
    if asked <= 0:
        return 0
    sums = np.cumsum(np.sort(rooms)[::-1])
    return min(int(np.searchsorted(sums, asked)) + 1, len(rooms))
