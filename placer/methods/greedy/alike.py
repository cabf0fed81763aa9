"""Lone pods that are alike, placed together: whole queues of them in one step."""

from __future__ import annotations

from collections.abc import Sequence

from placer.methods.greedy.pack import choose
from placer.methods.greedy.state import State

__all__ = ["place_alike"]


def place_alike(state: State, groups: Sequence[int], *, reuse: bool) -> list[int]:
    """Place as many as fit of groups that have one :meth:`~.layout.Layout.lone_kind`, older ones first.

    Returns
    -------
    The groups that are left; for none of them is there room.
    """
    classes = [state.dense.groups[group].classes[0] for group in sorted(groups)]
    shape = state.layout.shape_of[classes[0]]
    rows = state.dense.rows_of[classes[0]]
    count = min([len(classes), *(state.queue_room[row] // amount for row, amount in rows)])
    if count > 1:
        count = min(count, int(state.fits(shape).sum()))
    chosen = choose(state, shape, count, (0, len(state.price)), reuse=reuse) if count > 0 else None
    if chosen is None:
        return sorted(groups)
    state.take_one_each(classes[:count], *chosen)
    return sorted(groups)[count:]
