"""Room of nodes and domains, as far as pods can use it, counted in several ways.

What is left over on a node whatever goes there is no room. Of 3 GPUs pods of 2 use 2. Where every pod with a GPU asks
for at least 4 cores with it, 10 free cores are room for 2 GPUs, however many are free.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from placer.dense import Dense
from placer.symmetry import counting_shapes, equal_nodes, partition_rows

__all__ = [
    "ArrayCache",
    "BoolArray",
    "DomainRooms",
    "IntArray",
    "Region",
    "RoomMeasure",
    "Shapes",
    "Within",
    "region_of",
    "usable",
]


IntArray = npt.NDArray[np.int64]

#: Room is made up from requests exactly up to so many units, beyond that it is taken as it is.
EXACT_ROOM = 20_000


def usable(request: IntArray, free: IntArray) -> IntArray:
    """Bound what pods on one node can take together of each resource.

    Parameters
    ----------
    request
        int64, shape (shapes, resources): requests of all pods that may go to the nodes.
    free
        int64, shape (nodes, resources), at least 0.

    Returns
    -------
    int64, shape (nodes, resources), at most ``free``.
    """
    found = free.copy()
    for resource in range(free.shape[1]):
        for other in range(free.shape[1]):
            ratio = _most_per(request, resource, other) if resource != other else None
            if ratio is not None:
                most = free[:, other].astype(object) * ratio.numerator // ratio.denominator
                found[:, resource] = np.minimum(found[:, resource], most).astype(np.int64)
    for resource in range(free.shape[1]):
        largest = int(found[:, resource].max(initial=0))
        if largest <= EXACT_ROOM:
            sums = _sums_of(np.unique(request[:, resource]).tolist(), largest)
            amounts = found[:, resource].tolist()
            found[:, resource] = [(sums & ((2 << amount) - 1)).bit_length() - 1 for amount in amounts]
    return found


def _most_per(request: IntArray, resource: int, other: int) -> Fraction | None:
    """Most of a resource that comes with a unit of another one; None where it comes without."""
    asking = request[request[:, resource] > 0][:, [resource, other]]
    if (asking[:, 1] == 0).any():
        return None
    if not len(asking):
        return Fraction(0)
    ratios = asking[:, 0] / asking[:, 1]
    near = np.unique(asking[ratios >= ratios.max() * (1 - 1e-9)], axis=0)
    return max(Fraction(int(mine), int(its)) for mine, its in near)


def _sums_of(amounts: list[int], most: int) -> int:
    """All sums up to ``most`` of the amounts, each used any number of times: bit i is set where i is a sum."""
    sums, within = 1, (1 << (most + 1)) - 1
    for amount in amounts:
        step = amount
        while 0 < step <= most:
            sums |= (sums << step) & within
            step *= 2
    return sums


#: So many numbers are kept.
NUMBERS = 2_000_000

Key = TypeVar("Key", bound=Hashable)


class ArrayCache(Generic[Key]):
    """Arrays by key; all are forgotten when they would be more than :data:`NUMBERS` numbers.

    Parameters
    ----------
    make
        Works out the array of a key.
    """

    def __init__(self, make: Callable[[Key], npt.NDArray[np.int64]]) -> None:
        self._make = make
        self._known: dict[Key, npt.NDArray[np.int64]] = {}
        self._numbers = 0

    def __getitem__(self, key: Key) -> npt.NDArray[np.int64]:
        if key not in self._known:
            found = self._make(key)
            if self._numbers + found.size > NUMBERS:
                self._known.clear()
                self._numbers = 0
            self._known[key] = found
            self._numbers += found.size
        return self._known[key]


#: So many sets of eligible shapes are told apart.
MOST_SETS = 48

BoolArray = npt.NDArray[np.bool_]


class Shapes:
    """Shapes of pods (:func:`placer.symmetry.counting_shapes`) against kinds of nodes (``equal_nodes`` there).

    Parameters
    ----------
    dense
        The instance.

    Attributes
    ----------
    of_class
        int64, shape (classes,): the shape of each class.
    request
        int64, shape (shapes, resources), scaled.
    weight
        int64, shape (shapes,): micro-nodes of one pod.
    mask
        int64, shape (shapes,): row of ``Dense.masks``.
    of_node
        int64, shape (nodes,): the kind of each node.
    free
        int64, shape (kinds, resources), scaled: room that pods can use (:func:`usable`).
    nodes
        int64, shape (kinds,): how many nodes are of the kind.
    allowed
        bool, shape (masks, kinds): eligibility.
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
        """Kinds that admit pods of the same shapes are looked at together; all of them if that would be often."""
        sets = partition_rows(self.allowed[self.mask].T).of
        sets = sets if sets.max(initial=0) < MOST_SETS else np.zeros_like(sets)
        for number in np.unique(sets):
            kinds = np.flatnonzero(sets == number)
            admitted = self.allowed[self.mask][:, kinds].any(axis=1)
            free[kinds] = usable(self.request[admitted], free[kinds])
        return free

    def fits(self, shape: int) -> IntArray:
        """How many pods of a shape a node of each kind holds alone, at most all pods: int64, shape (kinds,)."""
        return self._fits[shape]

    def _fits_of(self, shape: int) -> IntArray:
        one, request = self._classes[shape], self.request[shape]
        asked = np.flatnonzero(request)
        count = np.full(len(self.nodes), self._pods, dtype=np.int64)
        if len(asked):
            count = np.minimum(count, (self.free[:, asked] // request[asked]).min(axis=1))
        if one.host_ports:
            count = np.minimum(count, 1)
            for kind, node in enumerate(self._samples):
                taken = self.dense.ports.get(int(node), ())
                if any(port.clashes(other) for port in one.host_ports for other in taken):
                    count[kind] = 0
        count[~self.allowed[one.mask]] = 0
        return count

    def at_least(self, shapes: IntArray, least: int) -> BoolArray:
        """Whether a pod of each of some shapes takes the room of one of the shape ``least``: bool, shape (shapes,)."""
        found: BoolArray = (self.request[shapes] >= self.request[least]).all(axis=1)
        found &= self.mask[shapes] == self.mask[least]
        ports = self._classes[least].host_ports
        if ports:
            found &= [self._classes[shape].host_ports == ports for shape in shapes]
        return found

    @cached_property
    def most(self) -> IntArray:
        """How many pods of each shape all nodes hold: int64, shape (shapes,)."""
        return np.array([self.fits(shape) @ self.nodes for shape in range(len(self._classes))], dtype=np.int64)


#: Where a scope may be: None for anywhere, else its tier limit and the smallest domain that holds its running pods
#: (-1: none runs).
Region = tuple[int, int] | None


def region_of(dense: Dense, scope: int) -> Region:
    """Where the pods of a scope must be together."""
    limit = dense.scopes[scope].limit
    if limit is None:
        return None
    anchor = dense.anchor(scope)
    return limit, -1 if anchor is None else anchor


@dataclass(frozen=True)
class RoomMeasure:
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


class DomainRooms:
    """Room of domains on the empty rest.

    Parameters
    ----------
    dense, shapes
        The instance.
    """

    def __init__(self, dense: Dense, shapes: Shapes) -> None:
        self.dense, self.shapes = dense, shapes
        self._within: dict[tuple[Region, Region], tuple[Within, IntArray]] = {}
        self._sums = ArrayCache(self._sum)

    def within(self, region: Region, outer: Region = None) -> tuple[Within, IntArray]:
        """Highest domains that a region allows inside those of an outer one, and which outer one each is in."""
        key = (region, outer)
        if key not in self._within:
            mine = self._tops(region)
            if outer is None:
                self._within[key] = mine, np.zeros(len(mine.begin), dtype=np.int64)
            else:
                self._within[key] = mine.inside(self.within(outer)[0])
        return self._within[key]

    def _tops(self, region: Region) -> Within:
        """As :meth:`placer.dense.Dense.limit_domains`, without domains that have no node."""
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

    def of(self, measure: RoomMeasure, region: Region, outer: Region = None) -> IntArray:
        """Room in each of the domains of :meth:`within`: int64, shape (domains,)."""
        return self._sums[measure, region, outer]

    def _sum(self, key: tuple[RoomMeasure, Region, Region]) -> IntArray:
        measure, region, outer = key
        per_kind = self.per_kind(measure)
        if region is None and outer is None:
            return np.array([per_kind @ self.shapes.nodes])
        prefix = np.concatenate(([0], np.cumsum(per_kind[self.shapes.of_node])))
        return self.within(region, outer)[0].sums(prefix)

    def per_kind(self, measure: RoomMeasure) -> IntArray:
        """Room of a node of each kind: int64, shape (kinds,)."""
        if measure.resource < 0:
            return self.shapes.fits(measure.size)
        allowed = self.shapes.allowed[list(measure.masks)].any(axis=0)
        return np.where(allowed, self.shapes.free[:, measure.resource] // measure.size, 0)

    def costs(self, measures: Iterable[RoomMeasure], shapes: Sequence[int]) -> IntArray:
        """What a pod of each shape takes by each measure: int64, shape (shapes, measures)."""
        columns = [self._cost(measure, np.array(shapes, dtype=np.int64)) for measure in measures]
        return np.array(columns, dtype=np.int64).reshape(len(columns), len(shapes)).T

    def _cost(self, measure: RoomMeasure, shapes: IntArray) -> IntArray:
        if measure.resource >= 0:
            cost: IntArray = self.shapes.request[shapes, measure.resource] // measure.size
            return cost
        return self.shapes.at_least(shapes, measure.size).astype(np.int64)
