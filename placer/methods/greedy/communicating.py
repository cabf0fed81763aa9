"""Pods that call each other: areas first, then the nodes in them, with callers and callees on one node (C8, C9, O3)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from placer.methods.greedy.areas import AreaRoom, AreaSearch, AreaShare, Lot, lots_of, tabu_repair
from placer.methods.greedy.layout import IntArray
from placer.methods.greedy.local_search import move_pods
from placer.methods.greedy.state import STEP, GreedyState

__all__ = ["Way", "fill", "place_cheaply", "place_communicating", "place_one"]


@dataclass(frozen=True)
class Way:
    """How nodes are chosen.

    Parameters
    ----------
    where
        First node and the one after the last.
    reuse
        Fill nodes in use before empty ones.
    scope
        The one whose leaves shall be few (O2), before calls are cheap; None: it does not matter.
    """

    where: tuple[int, int]
    reuse: bool = True
    scope: int | None = None

    def best(self, state: GreedyState, nodes: IntArray) -> int:
        """The node of some to open: used ones first, then the one with least room."""
        opened = ~state.used[nodes] if self.reuse else np.zeros(len(nodes), dtype=bool)
        return int(nodes[np.lexsort((nodes, state.price[nodes], opened))[0]])

    def near(self, state: GreedyState, nodes: IntArray) -> IntArray:
        """Those of some nodes that are in leaves touched already; where none is, those in the leaf with most room."""
        if self.scope is None or not len(nodes):
            return nodes
        leaves = state.layout.leaf_number[nodes]
        keep = np.isin(leaves, list(state.touched_leaves(self.scope)))
        if not keep.any():
            keep = leaves == np.bincount(leaves, weights=state.price[nodes]).argmax()
        kept: IntArray = nodes[keep]
        return kept


def fill(state: GreedyState, lots: Sequence[Lot], parts: Sequence[AreaShare], way: Way) -> list[int]:
    """Place parts of lots on nodes of their areas.

    Returns
    -------
    The classes of pods for which there was no room, one entry per pod.
    """
    waiting = [list(reversed(lot.classes)) for lot in lots]
    by_area: dict[int, dict[int, int]] = defaultdict(dict)
    for part in parts:
        there = by_area[part.area]
        there[part.lot] = there.get(part.lot, 0) + part.pods
    for area, counts in by_area.items():
        mark, before = state.mark(), [list(left) for left in waiting]
        if not _AreaFilling(state, lots, waiting, area, way).fill(counts):
            state.undo(mark)
            waiting = before
            _AreaFilling(state, lots, waiting, area, way).squeeze(counts)
    return [index for left in waiting for index in left]


class _AreaFilling:
    """One area: node after node is filled with pods that call each other."""

    def __init__(self, state: GreedyState, lots: Sequence[Lot], waiting: list[list[int]], area: int, way: Way) -> None:
        assert state.communication is not None
        self.state, self.communication, self.lots, self.waiting, self.way = (
            state,
            state.communication,
            lots,
            waiting,
            way,
        )
        self.shapes = [state.layout.shapes[lot.shape] for lot in lots]
        self.area, (self.begin, self.end) = area, way.where
        inside = self.communication.calls.nodes_of(area)
        self.nodes = inside[np.searchsorted(inside, self.begin) : np.searchsorted(inside, self.end)]
        self.left: dict[int, int] = {}

    def fill(self, counts: dict[int, int]) -> bool:
        """Place so many pods of each lot; False where some find no room."""
        self.left = dict(counts)
        node = -1
        while self.left:
            lot = self._joining(node) if node >= 0 else None
            if lot is None:
                choice = self._neighbour() or self._opening()
                if choice is None:
                    return False
                lot, node = choice
            self._take(lot, node)
        return True

    def squeeze(self, counts: dict[int, int]) -> None:
        """Place so many pods of each lot, as far as they fit: the dearest first, whatever they call."""
        self.left = dict(counts)
        for lot in sorted(counts, key=lambda lot: (-self.shapes[lot].price, lot)):
            while lot in self.left:
                places = self.nodes[self.state.has_room(self.lots[lot].shape)[self.nodes]]
                if not len(places):
                    break
                saved = self.communication.saved(self.lots[lot].workload)
                node = min(places.tolist(), key=lambda node: (self.state.price[node], -saved.get(node, 0), node))
                self._take(lot, node)

    def _take(self, lot: int, node: int) -> None:
        """Place a pod; where its queue has no room left, none of its lot any more."""
        if self.state.queue_limit(self.waiting[lot][-1]) < 1:
            del self.left[lot]
            return
        self.state.take(self.waiting[lot].pop(), [node], [1])
        self.left[lot] -= 1
        if not self.left[lot]:
            del self.left[lot]

    def _joining(self, node: int) -> int | None:
        """The lot whose pods have most partners on the node and fit there; None where none has any."""
        best, found = (0, 0), None
        self.state.work += STEP // 10 * len(self.left)
        for lot in self.left:
            gain = self.communication.shared(self.lots[lot].workload, node)
            key = (gain, self.shapes[lot].price)
            if gain and key > best and self.state.takes(self.lots[lot].shape, node):
                best, found = key, lot
        return found

    def _neighbour(self) -> tuple[int, int] | None:
        """The lot and the node of its partners, new ones or not, where it finds most of them."""
        best, found = (0, 0), None
        self.state.work += STEP // 5 * len(self.left)
        for lot in self.left:
            for node, gain in self.communication.saved(self.lots[lot].workload).items():
                key = (gain, -int(self.state.price[node]))
                inside = self.begin <= node < self.end and self.communication.calls.area[node] == self.area
                if inside and key > best and self.state.takes(self.lots[lot].shape, node):
                    best, found = key, (lot, node)
        return found

    def _opening(self) -> tuple[int, int] | None:
        """A lot to begin a node with, the one with most partners still to come, and the node; None without room."""
        coming: dict[int, int] = defaultdict(int)
        for lot, count in self.left.items():
            coming[self.lots[lot].workload] += count

        def wanted(lot: int) -> tuple[int, int]:
            partners = self.communication.calls.partners[self.lots[lot].workload]
            return sum(coming.get(each.other, 0) for each in partners), self.shapes[lot].price

        lot = max(self.left, key=wanted)
        node = self._node(lot)
        return None if node is None else (lot, node)

    def _node(self, lot: int) -> int | None:
        """The tightest node that takes everything that is left, else the roomiest."""
        state = self.state
        state.work += STEP // 2
        places = self.way.near(state, self.nodes[state.has_room(self.lots[lot].shape)[self.nodes]])
        if not len(places):
            return None
        room = state.price[places]
        enough = places[room >= sum(self.shapes[lot].price * count for lot, count in self.left.items())]
        return self.way.best(state, enough) if len(enough) else int(places[room.argmax()])


def place_one(state: GreedyState, index: int, way: Way) -> bool:
    """Place one pod where it costs least (O3), then best fit; False where no node takes it."""
    communication, (begin, end) = state.communication, way.where
    assert communication is not None
    if state.queue_limit(index) < 1:
        return False
    workload = state.dense.workload_of[index]
    near = (communication.most(workload) > 0)[communication.calls.area[begin:end]]
    nodes = begin + np.flatnonzero(state.has_room(state.layout.shape_of[index])[begin:end] & near)
    state.work += STEP + 3 * (end - begin)
    if not len(nodes):
        return False
    nodes = way.near(state, nodes)
    costs = communication.added_cost(workload)[nodes]
    state.take(index, [way.best(state, nodes[costs == costs.min()])], [1])
    return True


def place_communicating(state: GreedyState, items: Sequence[tuple[int, int]], way: Way, *, whole: bool) -> list[int]:
    """Place pods that call and are called.

    Parameters
    ----------
    state
        Room left.
    items
        (class, pods), at least one.
    way
        Where, and how nodes are chosen.
    whole
        All of them or none; else as many as it finds a place for.

    Returns
    -------
    The classes of those that found no place, one entry per pod; under ``whole`` nothing is placed where there are any.
    """
    lots = lots_of(state, items)
    drafts = _drafts(state, lots, way, whole)
    if not drafts:
        return [index for lot in lots for index in lot.classes]
    mark = state.mark()
    left = _carry_out(state, lots, drafts[0], way)
    if left and whole:
        state.undo(mark)
        return [index for lot in lots for index in lot.classes]
    return left


def place_cheaply(state: GreedyState, items: Sequence[tuple[int, int]], limit: int) -> None:
    """Place pods again that all had a place, in the way of those at hand that is cheapest (O3).

    Nothing is placed where none of them has a place for all; ``limit`` as in :func:`~.moves.move_pods`.
    """
    assert state.communication is not None
    way, mark, lots = Way((0, len(state.price))), state.mark(), lots_of(state, items)
    best: tuple[int, list[tuple[int, int, int]]] | None = None
    for parts in _drafts(state, lots, way, whole=True):
        if not _carry_out(state, lots, parts, way):
            move_pods(state, {index for index, _ in items}, limit)
            if best is None or state.communication.cost < best[0]:
                best = state.communication.cost, state.since(mark)
        state.undo(mark)
    for index, node, count in best[1] if best is not None else ():
        state.take(index, [node], [count])


def _drafts(state: GreedyState, lots: Sequence[Lot], way: Way, whole: bool) -> list[list[AreaShare]]:
    """What may go where, best first; under ``whole`` only what finds an area for all."""
    ground = AreaRoom(state, lots, way.where)
    drafts = AreaSearch(ground).run()
    if drafts[0][0] and not ground.communication.calls.network.majority:
        repaired = tabu_repair(ground, [parts for *_, parts in drafts])
        if repaired is not None:
            return [repaired]
    return [parts for missing, _, parts in drafts if not (missing and whole)]


def _carry_out(state: GreedyState, lots: Sequence[Lot], parts: Sequence[AreaShare], way: Way) -> list[int]:
    """Choose nodes; pods that find none in their area may go anywhere. Return the classes of those that find none."""
    assert state.communication is not None
    mark, prices = state.mark(), state.layout.class_prices
    left = fill(state, lots, parts, way)
    if left and not state.communication.balanced({lot.workload for lot in lots}):
        state.undo(mark)  # a callee that was near has found no node
        left = [index for lot in lots for index in lot.classes]
    left.sort(key=lambda index: (-prices[index], index))
    return [index for index in left if not place_one(state, index, way)]
