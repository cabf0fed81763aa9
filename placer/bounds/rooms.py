"""Room of domains, counted in several ways; for each way, what pods take of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from placer.bounds.kinds import Place
from placer.bounds.remembered import Remembered
from placer.bounds.shapes import IntArray, Shapes
from placer.dense import Dense

__all__ = ["Measure", "Rooms", "Within"]


@dataclass(frozen=True)
class Measure:
    """A way to count room that no packing beats, since the pods of a node never take more pieces than it has.

    Parameters
    ----------
    resource
        The resource whose pieces are counted; -1: pods of one shape.
    size
        How large a piece is (1: the amount itself), or the shape.
    masks
        Rows of eligibility: a node counts that one of them allows.
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
        """Sum inside each domain of what ``prefix``, shape (nodes + 1,), sums up node by node."""
        found: IntArray = prefix[self.end] - prefix[self.begin]
        return found

    def inside(self, outer: Within) -> tuple[Within, IntArray]:
        """What these domains and the outer ones have in common, and for each part the index of the outer one.

        Of two domains that have anything in common, one holds the other.
        """
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


class Rooms:
    """Room of domains on the empty rest.

    Parameters
    ----------
    dense, shapes
        The instance.
    """

    def __init__(self, dense: Dense, shapes: Shapes) -> None:
        self.dense, self.shapes = dense, shapes
        self._within: dict[tuple[Place, Place], tuple[Within, IntArray]] = {}
        self._sums = Remembered(self._sum)

    def within(self, place: Place, outer: Place = None) -> tuple[Within, IntArray]:
        """Highest domains that a place allows inside those of an outer one, and the index of the outer one for each."""
        key = (place, outer)
        if key not in self._within:
            mine = self._tops(place)
            if outer is None:
                self._within[key] = mine, np.zeros(len(mine.begin), dtype=np.int64)
            else:
                self._within[key] = mine.inside(self.within(outer)[0])
        return self._within[key]

    def _tops(self, place: Place) -> Within:
        """As :meth:`placer.dense.Dense.limit_domains`, without domains that have no node."""
        if place is None:
            return Within(np.array([0]), np.array([len(self.dense.nodes)]))
        tree, (limit, anchor) = self.dense.domains, place
        low = tree.tier <= limit
        top = low & ((tree.parent < 0) | ~low[tree.parent]) & (tree.begin < tree.end)
        if anchor >= 0:
            top &= low[anchor] & (tree.begin <= tree.begin[anchor]) & (tree.end >= tree.end[anchor])
        chosen = np.flatnonzero(top)
        chosen = chosen[np.argsort(tree.begin[chosen])]
        return Within(tree.begin[chosen], tree.end[chosen])

    def of(self, measure: Measure, place: Place, outer: Place = None) -> IntArray:
        """Room in each of the domains of :meth:`within`: int64, shape (domains,)."""
        return self._sums[measure, place, outer]

    def _sum(self, key: tuple[Measure, Place, Place]) -> IntArray:
        measure, place, outer = key
        per_kind = self.per_kind(measure)
        if place is None and outer is None:
            return np.array([per_kind @ self.shapes.nodes])
        prefix = np.concatenate(([0], np.cumsum(per_kind[self.shapes.of_node])))
        return self.within(place, outer)[0].sums(prefix)

    def per_kind(self, measure: Measure) -> IntArray:
        """Room of a node of each kind: int64, shape (kinds,)."""
        if measure.resource < 0:
            return self.shapes.fits(measure.size)
        allowed = self.shapes.allowed[list(measure.masks)].any(axis=0)
        return np.where(allowed, self.shapes.free[:, measure.resource] // measure.size, 0)

    def costs(self, measures: Iterable[Measure], shapes: Sequence[int]) -> IntArray:
        """What a pod of each shape takes by each measure: int64, shape (shapes, measures)."""
        columns = [self._cost(measure, np.array(shapes, dtype=np.int64)) for measure in measures]
        return np.array(columns, dtype=np.int64).reshape(len(columns), len(shapes)).T

    def _cost(self, measure: Measure, shapes: IntArray) -> IntArray:
        if measure.resource >= 0:
            cost: IntArray = self.shapes.request[shapes, measure.resource] // measure.size
            return cost
        return self.shapes.at_least(shapes, measure.size).astype(np.int64)
