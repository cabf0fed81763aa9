"""One gang: all that makes it ready, or nothing (C5, C6, C7, C11)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from placer.dense import DenseGroup
from placer.methods.greedy.domains import candidates, demand_of, touched_leaves
from placer.methods.greedy.nodes import Way
from placer.methods.greedy.pack import choose
from placer.methods.greedy.plan import Block, least
from placer.methods.greedy.settle import settle
from placer.methods.greedy.state import State

__all__ = ["Style", "admit", "pack"]


@dataclass(frozen=True)
class Style:
    """How a gang is placed.

    Parameters
    ----------
    whole
        Try all pods of an elastic gang before only as many as it needs.
    few
        Keep the leaves that a scope touches few (O2); else its pods go wherever they leave least over.
    reuse
        Fill nodes in use before empty ones (O4); else least room left over alone decides.
    tries
        Domains tried per tier and scope, at least 1.
    """

    whole: bool = False
    few: bool = True
    reuse: bool = True
    tries: int = 4


def admit(state: State, group: int, style: Style) -> bool:
    """Make a group ready of which nothing new is placed yet; False, and nothing placed, where no place was found."""
    needed, whole = state.layout.needed(group), state.layout.whole(group)
    if needed is None:
        return False
    elastic = state.layout.elastic(group)
    if (style.whole or not elastic) and _place(state, group, whole, style):
        return True
    return elastic and (_place(state, group, needed, style) or _place_any(state, group, style))


def _place(state: State, group: int, blocks: Sequence[Block], style: Style) -> bool:
    """Place exactly these pods in the first domain, of those that could hold them, where that works out."""
    gang = state.dense.groups[group]
    if not _queues_allow(state, blocks):
        return False
    mark = state.mark()
    domains = candidates(state, gang.scope, state.layout.domains.root, demand_of(state, blocks), blocks)
    for domain in _first_of_each_tier(state, domains, style.tries):
        if _place_blocks(state, gang, blocks, domain, style) is None:
            return True
        state.undo(mark)
    return False


def _place_any(state: State, group: int, style: Style) -> bool:
    """Place some choice of pods that makes an elastic group ready: what found no place is left out next time."""
    gang, layout = state.dense.groups[group], state.layout
    if len(gang.classes) == 1:
        return False  # there is but one choice
    mark = state.mark()
    rooms = _rooms(state, gang)
    for domain in _first_of_each_tier(state, rooms, style.tries):
        most = rooms[domain]
        blocks = least(state.dense, gang, layout.class_prices, most)
        while blocks is not None:
            failed = None
            if _queues_allow(state, blocks):
                failed = _place_blocks(state, gang, blocks, domain, style)
                if failed is None:
                    return True
                state.undo(mark)
            _leave_out(blocks, failed, most)
            blocks = least(state.dense, gang, layout.class_prices, most)
    return False


def _rooms(state: State, gang: DenseGroup) -> dict[int, dict[int, int]]:
    """Domains with room for some choice of pods that makes the group ready, by counting each class on its own.

    Returns
    -------
    Domain to how many pods of each class fit there, in the order of :func:`candidates`.
    """
    root = state.layout.domains.root
    domains = list(candidates(state, gang.scope, root, {}))
    tree = state.layout.domains
    most = np.empty((len(gang.classes), len(domains)), dtype=np.int64)
    for row, index in enumerate(gang.classes):
        total = np.concatenate(([0], np.cumsum(state.able(index))))
        limit = min(state.dense.classes[index].size, state.queue_limit(index))
        most[row] = np.minimum(total[tree.end[domains]] - total[tree.begin[domains]], limit)
        state.work += len(total)
    found: dict[int, dict[int, int]] = {}
    suffices: dict[tuple[int, ...], bool] = {}
    for column in np.flatnonzero(most.sum(axis=0) >= gang.short):
        counts = tuple(most[:, column].tolist())
        room = dict(zip(gang.classes, counts, strict=True))
        if counts not in suffices:
            suffices[counts] = least(state.dense, gang, state.layout.class_prices, room) is not None
        if suffices[counts]:
            found[domains[column]] = room
    return found


def _leave_out(blocks: Sequence[Block], failed: Block | None, most: dict[int, int]) -> None:
    """Use less of what found no place: none of a subgroup, else one pod less of the dearest class."""
    if failed is not None and failed.sub_group >= 0:
        most.update({index: 0 for index, _ in failed.items})
    else:
        index, count = (failed or blocks[0]).items[0]
        most[index] = count - 1


def _first_of_each_tier(state: State, domains: Iterable[int], tries: int) -> Iterator[int]:
    tier = state.layout.domains.tier
    seen: dict[int, int] = {}
    for domain in domains:
        number = int(tier[domain])
        seen[number] = seen.get(number, 0) + 1
        if seen[number] <= tries:
            yield domain


def _queues_allow(state: State, blocks: Sequence[Block]) -> bool:
    """Whether the queues have room for all the pods together (C11)."""
    if not state.queue_room:
        return True
    asked: dict[int, int] = {}
    for block in blocks:
        for index, count in block.items:
            for row, amount in state.dense.rows_of[index]:
                asked[row] = asked.get(row, 0) + amount * count
    return all(amount <= state.queue_room[row] for row, amount in asked.items())


def _place_blocks(state: State, gang: DenseGroup, blocks: Sequence[Block], domain: int, style: Style) -> Block | None:
    """Place blocks in a domain, the hardest first; one that fails moves to the front and all is tried again.

    Returns
    -------
    None where all are placed; else the block that failed, with some of the others placed.
    """
    order = sorted(blocks, key=lambda block: _hardness(state, block))
    mark = state.mark()
    for _ in range(1 + min(len(blocks), style.tries)):
        failed = next((block for block in order if not _place_block(state, gang, block, domain, style)), None)
        if failed is None or failed is order[0]:
            return failed
        state.undo(mark)
        order.remove(failed)
        order.insert(0, failed)
    return failed


def _hardness(state: State, block: Block) -> tuple[int, int, int]:
    """Sort key: subgroups with the lowest limit first, then those that take most; pods of no subgroup last."""
    price = sum(state.layout.class_prices[index] * count for index, count in block.items)
    if block.sub_group < 0:
        return int(state.layout.domains.tier.max()) + 1, -price, block.sub_group
    limit = state.layout.sub_limits[block.sub_group]
    return int(state.layout.domains.tier.max()) if limit is None else limit, -price, block.sub_group


def _place_block(state: State, gang: DenseGroup, block: Block, domain: int, style: Style) -> bool:
    """Place one block in a domain, as low as its own scope wants; undone where it fails."""
    if block.sub_group >= 0:
        scope = state.dense.sub_groups[block.sub_group].scope
        if state.dense.scopes[scope].wanted:
            domains = candidates(state, scope, domain, demand_of(state, (block,)), (block,))
            return any(
                pack(state, block.items, inner, scope if style.few else None, style)
                for inner in _first_of_each_tier(state, domains, style.tries)
            )
    wanted = style.few and state.dense.scopes[gang.scope].wanted
    return pack(state, block.items, domain, gang.scope if wanted else None, style)


def pack(state: State, items: Sequence[tuple[int, int]], domain: int, scope: int | None, style: Style) -> bool:
    """Place classes in a domain, one after the other; all or nothing.

    ``scope`` is the one whose leaves shall be few; None: it does not matter.
    """
    mark = state.mark()
    if state.communication is not None:
        calling = [item for item in items if item[0] in state.dense.workload_of]
        items = [item for item in items if item[0] not in state.dense.workload_of]
        way = Way(state.layout.slice_of(domain), style.reuse, scope)
        if calling and settle(state, calling, way, whole=True):
            return False
    for index, count in items:
        if count > state.queue_limit(index):
            chosen = None
        else:
            leaves = None if scope is None else touched_leaves(state, scope)
            shape = state.layout.shape_of[index]
            chosen = choose(state, shape, count, state.layout.slice_of(domain), leaves=leaves, reuse=style.reuse)
        if chosen is None:
            state.undo(mark)
            return False
        state.take(index, *chosen)
    return True
