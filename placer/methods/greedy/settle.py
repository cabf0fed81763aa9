"""Pods that call and are called: areas first, then nodes (C8, C9, O3)."""

from __future__ import annotations

from collections.abc import Sequence

from placer.methods.greedy.areas import Ground, Lot, Part, Spread, lots_of
from placer.methods.greedy.mend import mend
from placer.methods.greedy.moves import move_pods
from placer.methods.greedy.nodes import Way, fill, place_one
from placer.methods.greedy.state import State

__all__ = ["settle", "settle_cheaply"]


def settle(state: State, items: Sequence[tuple[int, int]], way: Way, *, whole: bool) -> list[int]:
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


def settle_cheaply(state: State, items: Sequence[tuple[int, int]], limit: int) -> None:
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


def _drafts(state: State, lots: Sequence[Lot], way: Way, whole: bool) -> list[list[Part]]:
    """What may go where, best first; under ``whole`` only what finds an area for all."""
    ground = Ground(state, lots, way.where)
    drafts = Spread(ground).run()
    if drafts[0][0] and not ground.communication.calls.network.majority:
        mended = mend(ground, [parts for *_, parts in drafts])
        if mended is not None:
            return [mended]
    return [parts for missing, _, parts in drafts if not (missing and whole)]


def _carry_out(state: State, lots: Sequence[Lot], parts: Sequence[Part], way: Way) -> list[int]:
    """Choose nodes; pods that find none in their area may go anywhere. Return the classes of those that find none."""
    assert state.communication is not None
    mark, prices = state.mark(), state.layout.class_prices
    left = fill(state, lots, parts, way)
    if left and not state.communication.balanced({lot.workload for lot in lots}):
        state.undo(mark)  # a callee that was near has found no node
        left = [index for lot in lots for index in lot.classes]
    left.sort(key=lambda index: (-prices[index], index))
    return [index for index in left if not place_one(state, index, way)]
