"""Which domains a scope may use (C7), and in which order they are tried (O2, best fit)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from placer.methods.greedy.layout import Inside, IntArray
from placer.methods.greedy.plan import Block
from placer.methods.greedy.state import STEP, BoolArray, State

__all__ = ["Demand", "anchor", "candidates", "demand_of", "tops", "touched_leaves"]

#: More than calls of a pod cost.
NEVER = 2**40

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


def touched_leaves(state: State, scope: int) -> set[int]:
    """Leaves on which the scope has pods, before or now."""
    it = state.dense.scopes[scope]
    nodes = [node for node in it.bound if node >= 0] + state.nodes_of(it.classes)
    return {int(leaf) for leaf in state.layout.leaf_number[nodes]} if nodes else set()


def _allowed(state: State, scope: int, outer: int) -> Inside:
    """Domains in ``outer`` that keep the limit of the scope and hold what it has placed."""
    inside = state.layout.inside(outer, state.dense.scopes[scope].limit)
    held = anchor(state, scope)
    if held is None or not len(inside.domains):
        return inside
    tree = state.layout.domains
    keep = (tree.begin[inside.domains] <= tree.begin[held]) & (tree.end[inside.domains] >= tree.end[held])
    return inside.where(keep & (inside.tiers >= tree.tier[held]))


def tops(state: State, scope: int, outer: int) -> list[int]:
    """Highest domains in ``outer`` of which one must hold the whole scope, disjoint."""
    allowed = _allowed(state, scope, outer).domains.tolist()
    known, parent = set(allowed), state.layout.domains.parent
    return [domain for domain in allowed if domain == outer or int(parent[domain]) not in known]


def candidates(state: State, scope: int, outer: int, demand: Demand, blocks: Iterable[Block] = ()) -> Iterator[int]:
    """Domains in ``outer`` that could hold the demand, counting shape by shape.

    Lowest tier first (O2); within a tier the one with the cheapest calls (O3) from ``blocks``, which also have to be
    near enough there to what is placed, then the one with least room left over, then most nodes in use (O4), then the
    one whose parent has least room. Between two of them the caller leaves the state as it was.
    """
    state.work += STEP
    inside = _allowed(state, scope, outer)
    begin, end = state.layout.slice_of(outer)
    for shape, count in demand.items():
        if len(inside.domains):
            state.work += end - begin
            inside = inside.where(inside.sums(state.fits(shape)[begin:end]) >= count)
    if len(demand) > 1 and len(inside.domains):
        inside = inside.where(_together(state, demand, begin, end, inside))
    if len(inside.domains) <= 1:
        yield from inside.domains.tolist()
        return
    inside, costs = _called(state, blocks, inside, begin, end)
    if not len(inside.domains):
        return
    left, above = inside.sums_and_above(state.price[begin:end])
    used = inside.sums(state.used[begin:end].astype(np.int64))
    tiers = inside.tiers
    low = int(tiers.min())
    while True:
        of_tier = np.flatnonzero(tiers == low)
        order = np.lexsort((above[of_tier], -used[of_tier], left[of_tier], costs[of_tier]))
        yield from inside.domains[of_tier[order]].tolist()
        higher = tiers[tiers > low]
        if not len(higher):
            return
        low = int(higher.min())


def _called(state: State, blocks: Iterable[Block], inside: Inside, begin: int, end: int) -> tuple[Inside, IntArray]:
    """Domains whose areas may take the pods of blocks that call and are called, and the least that may cost (O3)."""
    costs: IntArray = np.zeros(len(inside.domains), dtype=np.int64)
    communication = state.communication
    if communication is None:
        return inside, costs
    area = communication.calls.area[begin:end]
    for index, count in (item for block in blocks for item in block.items):
        workload = state.dense.workload_of.get(index)
        if workload is not None:
            able = state.able(index)[begin:end]
            least = inside.least(np.where(able, communication.pull[workload][area], NEVER))
            keep = (inside.sums(able) >= count) & (least < NEVER)
            inside, costs = inside.where(keep), (costs + count * least)[keep]
            state.work += STEP + 4 * len(able)
    return inside, costs


def _together(state: State, demand: Demand, begin: int, end: int, inside: Inside) -> BoolArray:
    """Where the requests of all shapes together are no more than the room, resource by resource."""
    asked = sum(state.layout.shapes[shape].request * count for shape, count in demand.items())
    keep = np.ones(len(inside.domains), dtype=bool)
    for resource in np.flatnonzero(asked):
        keep &= inside.sums(state.room[resource, begin:end]) >= asked[resource]  # type: ignore[index]
        state.work += end - begin
    return keep
