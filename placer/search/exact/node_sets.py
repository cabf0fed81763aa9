"""Node sets: the nodes of the exact model that are counted together, as a *place* (``models/exact.md``)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from operator import le
from typing import TypeAlias

import numpy as np

from placer.arrays import Dense
from placer.arrays.solution import BoolArray, IntArray
from placer.arrays.symmetry import equally_eligible, partition, partition_rows
from placer.base.grouping import grouped

#: Fillings of nodes are listed where there are no more, of no more requests.
MOST_FILLINGS, MOST_REQUESTS = 128, 16

#: What a pod asks for, per resource.
Request: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class NodeSet:
    """A node, or nodes of one leaf (or of the virtual root) that are counted together; ``unit`` is that of ``span``.

    ``resource`` decides alone, if there is one; ``sizes`` are the distinct amounts asked of it, ascending, each a
    divisor of the next. Else ``fillings`` may be listed: counts of each of ``requests``.
    """

    nodes: tuple[int, ...]
    leaf: int
    unit: int
    used: bool
    resource: int | None = None
    sizes: tuple[int, ...] = ()
    requests: tuple[Request, ...] = ()
    fillings: tuple[tuple[int, ...], ...] = ()

    @property
    def alone(self) -> bool:
        """Whether it is one node, of which every resource is counted."""
        return self.resource is None and not self.fillings


@dataclass(frozen=True)
class _CountableResource:
    """A resource by which packing may be counted, and the most of each other one per unit of it."""

    resource: int
    sizes: tuple[int, ...]
    along: tuple[Fraction, ...]

    def decides(self, room: Sequence[int]) -> bool:
        step = self.sizes[0]
        most = room[self.resource] // step * step
        return all(most * share <= other for share, other in zip(self.along, room, strict=True))


def raw_fits(dense: Dense, index: int) -> IntArray:
    """Pods like those of a class that each node holds: :meth:`Dense.fits` not cut at the size of the class."""
    pod_class = dense.classes[index]
    fits = dense.fits(index)
    asked = np.flatnonzero(pod_class.request)
    if pod_class.host_ports or (dense.neighbours is not None and index in dense.neighbours.lonely):
        return fits
    room: IntArray = np.full(len(dense.nodes), 2**31, dtype=np.int64)
    if len(asked):
        room = (dense.free[:, asked] // pod_class.request[asked]).min(axis=1)
    if dense.numa is not None:
        room = np.minimum(room, dense.numa.most(index))
    return np.where(fits > 0, room, 0)


def make_node_sets(dense: Dense, *, apart: bool = False) -> tuple[NodeSet, ...]:
    """Divide the nodes on which anything fits into sets, in tree order.

    Empty nodes of a set hold equally many pods of each size, so that the least number that pods need can be counted.
    ``apart``: nodes that two pods of a call could share are sets of their own (O3).
    """
    eligible, area = _open_to_the_same(dense), dense.area
    countable = _CountableNodes(dense, eligible, apart=apart)
    unit = dense.span_leaf if any(scope.wanted for scope in dense.scopes) else dense.leaf
    asking = _where_neighbours_matter(dense)

    def signature(node: int) -> tuple[object, ...]:
        by, filled = countable.by(node), countable.fillings(node)
        if by is None and not filled[1]:
            return ("alone", node)
        used = bool(dense.node_used[node])
        domains = dense.neighbours.kind_of(node) if dense.neighbours is not None and asking[node] else ()
        where = int(unit[node]), int(area[node]), int(eligible[node]), domains, used
        if by is None:
            return *where, filled
        profile = () if used else tuple((dense.free[node, by.resource] // np.array(by.sizes)).tolist())
        return *where, by.resource, profile

    members = grouped(_where_anything_fits(dense), signature).values()
    places = [_node_set(dense, tuple(nodes), countable) for nodes in members]
    return tuple(sorted(places, key=lambda place: place.nodes[0]))


def _open_to_the_same(dense: Dense) -> IntArray:
    if dense.neighbours is None:
        return equally_eligible(dense).of
    closed = (dense.neighbours.closed(kind) for kind in sorted({each.neighbours for each in dense.classes}))
    return partition_rows(np.vstack([dense.masks, *(each for each in closed if each is not None)]).T).of


def _where_neighbours_matter(dense: Dense) -> BoolArray:
    concerned = dense.neighbours.concerned if dense.neighbours is not None else ()
    masks = sorted({dense.classes[index].mask for index in concerned})
    found: BoolArray = np.zeros(len(dense.nodes), dtype=bool)
    for mask in masks:
        found |= dense.masks[mask]
    return found


class _CountableNodes:
    def __init__(self, dense: Dense, eligible: IntArray, *, apart: bool) -> None:
        self._dense, self._eligible = dense, eligible
        self._single = _meeting(dense) if apart else np.zeros(len(dense.nodes), dtype=bool)
        if dense.numa is not None:
            self._single |= dense.numa.kind >= 0
        self._resources: dict[int, list[_CountableResource]] = {}
        self._decided: dict[tuple[int, ...], _CountableResource | None] = {}
        self._requests: dict[int, tuple[Request, ...]] = {}

    def by(self, node: int) -> _CountableResource | None:
        if self._single[node]:
            return None
        eligible, room = int(self._eligible[node]), tuple(self._dense.free[node].tolist())
        if eligible not in self._resources:
            self._resources[eligible] = _countable_resources(self._dense, self._eligible == eligible)
        if (eligible, *room) not in self._decided:
            found = (each for each in self._resources[eligible] if each.decides(room))
            self._decided[eligible, *room] = next(found, None)
        return self._decided[eligible, *room]

    def fillings(self, node: int) -> tuple[tuple[Request, ...], tuple[tuple[int, ...], ...]]:
        if self._single[node]:
            return (), ()
        eligible, room = int(self._eligible[node]), tuple(self._dense.free[node].tolist())
        if eligible not in self._requests:
            self._requests[eligible] = self._listable(self._eligible == eligible)
        fitting = (each for each in self._requests[eligible] if all(a <= b for a, b in zip(each, room, strict=True)))
        requests = tuple(fitting)
        return requests, maximal_fillings(room, requests)

    def _listable(self, nodes: BoolArray) -> tuple[Request, ...]:
        dense = self._dense
        if _has_daemons(dense, nodes):
            return ()
        found = sorted(_requests_on(dense, nodes), reverse=True)
        return tuple(found) if all(map(any, found)) else ()


@lru_cache(maxsize=4096)
def maximal_fillings(room: Request, requests: tuple[Request, ...], most: int = 128) -> tuple[tuple[int, ...], ...]:
    """List the multisets of requests that fit into some room and leave none for another one; none where they are more.

    Examples
    --------
    >>> maximal_fillings((8, 5), ((4, 1), (2, 2)))
    ((2, 0), (1, 2))
    """
    found: list[tuple[int, ...]] = []
    steps = 0

    def choose(counts: tuple[int, ...], left: Request) -> bool:
        nonlocal steps
        steps += 1
        if len(counts) == len(requests):
            if not any(all(map(le, request, left)) for request in requests):
                found.append(counts)
            return len(found) <= most
        request = requests[len(counts)]
        many_fit = min(b // a for a, b in zip(request, left, strict=True) if a)
        least = many_fit if len(counts) == len(requests) - 1 else 0  # with fewer of the last one more would fit
        return steps <= most * 32 and all(
            choose((*counts, many), tuple(b - many * a for a, b in zip(request, left, strict=True)))
            for many in range(many_fit, least - 1, -1)
        )

    return tuple(found) if 0 < len(requests) <= MOST_REQUESTS * most // MOST_FILLINGS and choose((), room) else ()


def _meeting(dense: Dense) -> BoolArray:
    found = np.zeros(len(dense.nodes), dtype=bool)
    if dense.network is not None:
        new, before = np.zeros((2, len(dense.network.workloads), len(dense.nodes)), dtype=bool)
        for number, workload in enumerate(dense.network.workloads):
            masks = sorted({dense.classes[index].mask for index in workload.classes})
            new[number] = dense.masks[masks].any(axis=0)
            before[number, [node for node, _, _ in workload.bound if node >= 0]] = True
        for call in dense.network.calls:
            one, other = call.origin, call.destination
            found |= (new[one] & (new[other] | before[other])) | (before[one] & new[other])
    return found


def _node_set(dense: Dense, nodes: tuple[int, ...], countable: _CountableNodes) -> NodeSet:
    first = nodes[0]
    counting = countable.by(first)
    place = NodeSet(nodes, int(dense.leaf[first]), int(dense.span_leaf[first]), bool(dense.node_used[first]))
    if counting is not None:
        return replace(place, resource=counting.resource, sizes=counting.sizes)
    requests, fillings = countable.fillings(first)
    return replace(place, requests=requests, fillings=fillings)


def _where_anything_fits(dense: Dense) -> list[int]:
    fits = np.zeros(len(dense.nodes), dtype=bool)
    for index in partition(each.shape for each in dense.classes).first.tolist():
        fits |= dense.fits(index) > 0
    return [int(node) for node in np.flatnonzero(fits)]


def _countable_resources(dense: Dense, nodes: BoolArray) -> list[_CountableResource]:
    """None where host ports or DaemonSets take part: how many nodes count as used (O4) is then dealt out too late."""
    requests, found = set[Request]() if _has_daemons(dense, nodes) else _requests_on(dense, nodes), []
    for resource in range(len(dense.resources)):
        sizes = sorted({request[resource] for request in requests})
        if sizes and sizes[0] > 0 and all(b % a == 0 for a, b in pairwise(sizes)):
            by_unit = ([Fraction(amount, request[resource]) for amount in request] for request in requests)
            found.append(_CountableResource(resource, tuple(sizes), tuple(map(max, zip(*by_unit, strict=True)))))
    return found


def _has_daemons(dense: Dense, nodes: BoolArray) -> bool:
    first = int(np.argmax(nodes))
    return any(one.daemon and dense.masks[one.mask, first] for one in dense.classes)


def _requests_on(dense: Dense, nodes: BoolArray) -> set[tuple[int, ...]]:
    first, found = int(np.argmax(nodes)), set[tuple[int, ...]]()
    for index, one in enumerate(dense.classes):
        request = tuple(one.request.tolist())
        known = request in found and not one.host_ports
        if not known and dense.masks[one.mask, first] and (dense.fits(index)[nodes] > 0).any():
            if one.host_ports:
                return set()
            found.add(request)
    return found


#: How many pods of a class are on a node, by both.
Counts: TypeAlias = Mapping[tuple[int, int], int]


def newly_filled(dense: Dense, place_of: Mapping[int, int], solution: Counts) -> dict[int, set[int]]:
    """Place to its nodes that are no longer empty; pods of DaemonSets leave a node empty (O4)."""
    found: dict[int, set[int]] = defaultdict(set)
    for index, node in solution:
        if not dense.classes[index].daemon:
            found[place_of[node]].add(node)
    return found


def first_fillings(
    dense: Dense, places: Sequence[NodeSet], place_of: Mapping[int, int], solution: Counts
) -> Counter[tuple[int, int]]:
    """Place and number of a filling to how many nodes are filled that way, each in the first that has the room."""
    pods: dict[int, Counter[Request]] = defaultdict(Counter)
    for (index, node), count in solution.items():
        if places[place_of[node]].fillings:
            pods[node][tuple(dense.classes[index].request.tolist())] += count
    found = Counter[tuple[int, int]]()
    for node, there in pods.items():
        where = places[place_of[node]]
        held = [there[request] for request in where.requests]
        number = next(number for number, filling in enumerate(where.fillings) if all(map(le, held, filling)))
        found[place_of[node], number] += 1
    return found
