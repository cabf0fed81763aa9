"""Equal pods into one slice of nodes: which leaves, which nodes (best fit)."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from placer.methods.greedy.layout import IntArray
from placer.methods.greedy.state import STEP, State

__all__ = ["Chosen", "choose"]

#: Distinct nodes and how many pods each gets.
Chosen = tuple[list[int], list[int]]

#: Added to what a choice leaves over where it opens something empty: more than all room of a node is worth.
OPENS = 2**40


def choose(
    state: State,
    shape: int,
    count: int,
    where: tuple[int, int],
    *,
    leaves: Collection[int] | None = None,
    reuse: bool = True,
) -> Chosen | None:
    """Choose nodes for pods of one shape.

    Parameters
    ----------
    state
        Room left.
    shape, count
        The pods, at least 1.
    where
        First node and the one after the last.
    leaves
        Leaves that the scope of the pods touches already, to keep its span small; None: span does not matter.
    reuse
        Fill nodes in use before empty ones.

    Returns
    -------
    Nodes and counts that sum to ``count``; None where there is no room for so many.
    """
    begin, end = where
    state.work += STEP // (1 if leaves is not None else 3)
    if count == 1 and not leaves:
        return _one(state, shape, begin, end, reuse)
    fit = state.fits(shape)[begin:end]
    state.work += 3 * len(fit)
    if int(fit.sum()) < count:
        return None
    if leaves is None:
        return _nodes(state, shape, fit, count, begin, reuse)
    return _leaf_by_leaf(state, shape, fit, count, begin, leaves, reuse)


def _one(state: State, shape: int, begin: int, end: int, reuse: bool) -> Chosen | None:
    """Best fit of a single pod: least room left over, nodes in use first, then the first one."""
    room = state.has_room(shape)[begin:end]
    left = np.where(room, state.left_by(shape)[begin:end], 2 * OPENS)
    if reuse:
        left += np.where(state.used[begin:end], 0, OPENS // 2)
    state.work += 2 * len(room)
    best = int(left.argmin()) if len(left) else -1
    return ([begin + best], [1]) if best >= 0 and room[best] else None


def _nodes(state: State, shape: int, fit: IntArray, count: int, begin: int, reuse: bool) -> Chosen:
    """Take nodes by what they leave over once they are filled; the last one is chosen for the rest that is left."""
    places = np.flatnonzero(fit)
    able = fit[places]
    price = state.layout.shapes[shape].price
    room = state.price[begin + places]
    opens = np.where(state.used[begin + places], 0, OPENS) if reuse else np.zeros(len(places), dtype=np.int64)
    left = room - np.minimum(able, count) * price + opens
    order = np.lexsort((places, -able, left))
    total = np.cumsum(able[order])
    last = int(np.searchsorted(total, count))
    chosen = order[: last + 1]
    counts = able[chosen]
    rest = count - (int(total[last - 1]) if last else 0)
    if rest < counts[-1] and last:
        others = order[last:]
        enough = others[able[others] >= rest]
        best = enough[np.lexsort((places[enough], room[enough] + opens[enough]))[0]]
        chosen = np.append(chosen[:-1], best)
    counts[-1] = rest
    return (begin + places[chosen]).tolist(), counts.tolist()


def _leaf_by_leaf(
    state: State, shape: int, fit: IntArray, count: int, begin: int, touched: Collection[int], reuse: bool
) -> Chosen:
    """As few further leaves as will do: those touched already, the roomiest, and for the rest the tightest."""
    layout = state.layout
    end = begin + len(fit)
    first, last = int(layout.leaf_number[begin]), int(layout.leaf_number[end - 1])
    begins = layout.leaf_begin[first : last + 2].copy()
    starts = begins[:-1] - begin
    able = np.add.reduceat(fit, starts)
    whole = np.zeros(len(able), dtype=bool)
    part: list[tuple[int, int]] = []
    for leaf in sorted(touched):
        if first <= leaf <= last and able[leaf - first] and count:
            taken = min(count, int(able[leaf - first]))
            if taken == able[leaf - first]:
                whole[leaf - first] = True
            else:
                part.append((leaf - first, taken))
            count -= taken
            able[leaf - first] = 0
    if count:
        room = np.add.reduceat(state.price[begin:end], starts)
        used = np.add.reduceat(state.used[begin:end].astype(np.int64), starts)
        full, rest = _leaves(able, room, -used, count)
        whole[full] = True
        part.append(rest)
    nodes: list[int] = []
    counts: list[int] = []
    if whole.any():
        places = np.flatnonzero(fit * np.repeat(whole, np.diff(begins)))
        nodes, counts = (begin + places).tolist(), fit[places].tolist()
    for leaf, taken in part:
        low, high = int(starts[leaf]), int(begins[leaf + 1]) - begin
        some = _nodes(state, shape, fit[low:high], taken, begin + low, reuse)
        nodes += some[0]
        counts += some[1]
    return nodes, counts


def _leaves(able: IntArray, room: IntArray, unused: IntArray, count: int) -> tuple[IntArray, tuple[int, int]]:
    """Choose leaves: whole ones from the roomiest down, then the tightest that takes the rest, and that rest."""
    order = np.lexsort((unused, room, -able))
    total = np.cumsum(able[order])
    whole = int(np.searchsorted(total, count))
    rest = count - (int(total[whole - 1]) if whole else 0)
    others = order[whole:]
    enough = others[able[others] >= rest]
    best = enough[np.lexsort((enough, able[enough], unused[enough], room[enough]))[0]]
    return order[:whole], (int(best), rest)
