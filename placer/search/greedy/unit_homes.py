"""Which domain of a node label a unit without pods is to be in (C7 by label, C15): its first pod decides about all
others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from placer.base.grouping import grouped

if TYPE_CHECKING:
    from placer.arrays.solution import IntArray
    from placer.search.greedy.state import GreedyState

#: (class, pods).
Item = tuple[int, int]

#: Domains tried for a unit.
HOMES = 32


def homeless(state: GreedyState, index: int) -> tuple[int, ...]:
    """Units of a class whose domain is to be chosen."""
    return () if state.neighbours is None else state.neighbours.homes(index)


def shared_units(state: GreedyState, items: Iterable[Item]) -> frozenset[int]:
    """Units without a domain yet that all of some pods are of."""
    found = [frozenset(homeless(state, index)) for index, _ in items]
    return frozenset.intersection(*found) if found else frozenset()


def by_home(state: GreedyState, items: Sequence[Item]) -> list[list[Item]]:
    """Put pods together whose domain is chosen together, the bulkiest first."""
    if state.neighbours is None:
        return [list(items)]
    bunches = grouped(items, lambda item: homeless(state, item[0])).values()
    prices = state.layout.class_prices
    return sorted(bunches, key=lambda bunch: -sum(prices[index] * count for index, count in bunch))


def in_homes(
    state: GreedyState,
    units: Iterable[int],
    items: Sequence[Item],
    where: tuple[int, int],
    attempt: Callable[[], bool],
    *,
    some: bool = False,
) -> bool:
    """Attempt something with domains settled for units that have no pods yet, one choice after the other, until it
    works out.

    ``items``: (class, pods) to be placed. ``where``: first node and the one after the last. ``attempt``: leaves the
    state as it was where it fails. ``some``: domains without room for all are tried, too.
    """
    chosen = tuple(units)
    if not chosen or state.neighbours is None:
        return attempt()
    for node in _homes(state, chosen, items, where, some).tolist():
        with state.neighbours.at_home(chosen, node):
            if attempt():
                return True
    return False


def _homes(
    state: GreedyState, units: Sequence[int], items: Sequence[Item], where: tuple[int, int], some: bool
) -> IntArray:
    begin, end = where
    _, first, of = np.unique(_combined(state, units)[begin:end], return_index=True, return_inverse=True)
    size, price = len(first), state.layout.class_prices
    state.work += 10_000 + 8 * (end - begin)
    enough: IntArray = np.ones(size, dtype=np.int64)
    room: IntArray = np.zeros(size, dtype=np.int64)
    for index, count in items:
        fits = np.bincount(of, state.hopes(state.layout.shape_of[index])[begin:end], size).astype(np.int64)
        enough &= fits >= count
        room += np.minimum(fits, count) * price[index]
    left = np.bincount(of, state.price[begin:end], size)
    order = np.lexsort((left, -room, 1 - enough))
    able = order[(room > 0)[order] & ((enough > 0)[order] | some)][:HOMES]
    homes: IntArray = begin + first[able]
    return homes


def _combined(state: GreedyState, units: Sequence[int]) -> IntArray:
    """Number of the domains, one per unit, that each node is in: int64, shape (nodes,)."""
    found: IntArray = np.zeros(len(state.price), dtype=np.int64)
    rows = state.dense.neighbours
    for key in sorted({rows.confinements[unit].key for unit in units}) if rows is not None else ():
        assert rows is not None
        found = found * (rows.sizes[key] + 1) + rows.domain[key]
    return found
