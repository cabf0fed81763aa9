"""Which domains a scope may use (C7), and in which order they are tried (O2, best fit)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from placer.methods.greedy.layout import IntArray
from placer.methods.greedy.plan import Block
from placer.methods.greedy.state import State

__all__ = ["Demand", "anchor", "candidates", "demand_of", "room_in", "tops"]

BoolArray = npt.NDArray[np.bool_]
#: Shape to pods of it.
Demand = Mapping[int, int]


def demand_of(state: State, blocks: Iterable[Block]) -> dict[int, int]:
    """Count the pods of some blocks by shape."""
    found: dict[int, int] = defaultdict(int)
    for block in blocks:
        for index, count in block.items:
            found[state.layout.shape_of[index]] += count
    return found


def anchor(state: State, scope: int) -> int | None:
    """Smallest domain that holds what the scope has placed, before and now; None where that is nothing."""
    it = state.dense.scopes[scope]
    return state.dense.common((*it.bound, *state.nodes_of(it.classes)))


def room_in(state: State, shape: int, outer: int, inside: IntArray) -> IntArray:
    """How many pods of a shape fit into each domain of ``inside``, all of which lie in ``outer``."""
    begin, end = state.layout.slice_of(outer)
    state.work += end - begin
    return _sums(state.fits(shape)[begin:end], begin, state, inside)


def _sums(amounts: IntArray, begin: int, state: State, inside: IntArray) -> IntArray:
    """Sum over each domain of amounts per node, given from node ``begin`` on."""
    if len(inside) == 1:
        return np.array([amounts.sum()], dtype=np.int64)
    total = np.zeros(len(amounts) + 1, dtype=np.int64)
    np.cumsum(amounts, out=total[1:])
    tree = state.layout.domains
    sums: IntArray = total[tree.end[inside] - begin] - total[tree.begin[inside] - begin]
    return sums


def _allowed(state: State, scope: int, inside: IntArray) -> BoolArray:
    """Which domains keep the limit of the scope and hold what it has placed."""
    tree = state.layout.domains
    limit = state.dense.scopes[scope].limit
    keep = np.ones(len(inside), dtype=bool) if limit is None else tree.tier[inside] <= limit
    held = anchor(state, scope)
    if held is not None:
        keep &= (tree.begin[inside] <= tree.begin[held]) & (tree.end[inside] >= tree.end[held])
        keep &= tree.tier[inside] >= tree.tier[held]
    return keep


def tops(state: State, scope: int, outer: int) -> list[int]:
    """Highest domains in ``outer`` of which one must hold the whole scope, disjoint."""
    inside = state.layout.inside(outer)
    allowed = inside[_allowed(state, scope, inside)]
    known, parent = set(allowed.tolist()), state.layout.domains.parent
    return [int(domain) for domain in allowed if domain == outer or int(parent[domain]) not in known]


def candidates(state: State, scope: int, outer: int, demand: Demand) -> list[int]:
    """Domains in ``outer`` that could hold the demand, counting shape by shape.

    Lowest tier first (O2); within a tier the one with least room left over, then the one whose parent has least.
    """
    layout, tree = state.layout, state.layout.domains
    inside = layout.inside(outer)
    inside = inside[_allowed(state, scope, inside)]
    for shape, count in demand.items():
        if len(inside):
            inside = inside[room_in(state, shape, outer, inside) >= count]
    if len(demand) > 1 and len(inside):
        inside = inside[_together(state, demand, outer, inside)]
    if len(inside) <= 1:
        return [int(domain) for domain in inside]
    begin, end = layout.slice_of(outer)
    price = state.price[begin:end]
    above = np.where(inside == outer, inside, tree.parent[inside])
    left, left_above = _sums(price, begin, state, inside), _sums(price, begin, state, above)
    order = np.lexsort((layout.position[inside], left_above, left, tree.tier[inside]))
    return [int(domain) for domain in inside[order]]


def _together(state: State, demand: Demand, outer: int, inside: IntArray) -> BoolArray:
    """Where the requests of all shapes together are no more than the room, resource by resource."""
    begin, end = state.layout.slice_of(outer)
    asked = np.sum([state.layout.shapes[shape].request * count for shape, count in demand.items()], axis=0)
    keep = np.ones(len(inside), dtype=bool)
    for resource in np.flatnonzero(asked):
        keep &= _sums(state.free[resource, begin:end], begin, state, inside) >= asked[resource]
    state.work += (end - begin) * len(asked)
    return keep
