"""One run over all groups, priority by priority: gangs first, then their optional pods."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from placer.methods.greedy.alike import place_alike
from placer.methods.greedy.apps import place_app
from placer.methods.greedy.gang import Style, admit
from placer.methods.greedy.layout import Layout
from placer.methods.greedy.optional import extend
from placer.methods.greedy.state import State

__all__ = ["run"]


def run(layout: Layout, sequence: Sequence[int], style: Style) -> tuple[State, list[int]]:
    """Place groups one after the other.

    Parameters
    ----------
    layout
        Of the instance.
    sequence
        Groups to place, higher priority first.
    style
        How.

    Returns
    -------
    The state at the end, and the groups that were not made ready.
    """
    state = State(layout)
    failed: list[int] = []
    groups = layout.dense.groups
    for _, level in groupby(sequence, key=lambda group: groups[group].priority):
        admitted = []
        for batch in _batches(layout, list(level)):
            if layout.app(batch[0]) is not None:
                ready, left = place_app(state, batch, style)
                admitted += ready
                failed += left
            elif layout.lone_kind(batch[0]) is not None:
                failed += place_alike(state, batch, reuse=style.reuse)
            elif admit(state, batch[0], style):
                admitted.append(batch[0])
            else:
                failed.append(batch[0])
        for group in admitted:
            extend(state, group, style)
    return state, failed


def _batches(layout: Layout, level: Sequence[int]) -> Iterator[list[int]]:
    """Neighbours that are lone pods and alike are placed together; every other group is a batch of its own."""
    for (app, kind), batch in groupby(level, key=lambda group: (layout.app(group), layout.lone_kind(group))):
        if app is None and kind is None:
            for group in batch:
                yield [group]
        else:
            yield list(batch)
