"""What counting cannot exclude: is there a place for the group alone, and who took it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from functools import cached_property
from itertools import takewhile

import numpy as np
import numpy.typing as npt

from placer.dense import Solution
from placer.instance import GroupKey
from placer.methods.greedy import Effort, Layout, State, squeeze_in, tops
from placer.placement import MAXIMISED
from placer.reasons.words import plural
from placer.result import Reason

__all__ = ["Alone", "Takers", "undecided"]

BoolArray = npt.NDArray[np.bool_]

#: Nodes looked at per group while trying everything.
LOOKS = 40_000

#: How many groups a message names.
NAMED = 3


class Alone:
    """The cluster without any new pod, in which groups are tried one at a time."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.state = State(layout)

    def fits(self, group: int) -> bool | None:
        """Whether there is a place for what makes a group ready.

        Returns
        -------
        False only where everything was tried; None where no place was found.
        """
        state, effort = self.state, Effort(LOOKS)
        mark = state.mark()
        found = squeeze_in(state, group, effort)
        state.undo(mark)
        return found or (False if effort.exhaustive else None)

    @cached_property
    def _unlimited(self) -> Alone:
        """The same cluster where no scope has a tier limit."""
        dense = self.layout.dense
        return Alone(Layout(replace(dense, scopes=tuple(replace(scope, limit=None) for scope in dense.scopes))))

    @cached_property
    def _without_queues(self) -> Alone:
        """The same cluster without tier limits and queues."""
        return Alone(Layout(replace(self._unlimited.layout.dense, queue_rows=())))

    def blame(self, group: int) -> Reason:
        """Say which rule keeps a group out of which it is proved that there is no place for it."""
        tried = "tried every way to place its pods; pod by pod there is room"
        without_limits = self._unlimited.fits(group)
        if without_limits:
            return Reason("TopologyTooNarrow", f"fits only where its tier limits are broken ({tried})")
        if without_limits is None:
            return undecided()
        return self._blame_rest(group, tried)

    def first(self, group: int, counted: Reason) -> Reason:
        """Return the reason that is proved to come before the tier limits; else the one that counting found there."""
        if counted.code != "TopologyTooNarrow" or self._unlimited.fits(group) is not False:
            return counted
        return self._blame_rest(group, "tried every way to place its pods; pod by pod there is room")

    def _blame_rest(self, group: int, tried: str) -> Reason:
        if self.layout.dense.queue_rows and self._without_queues.fits(group):
            return Reason("QueueCapability", f"fits only where the capability of its queue is exceeded ({tried})")
        return Reason("InsufficientResources", f"its pods do not fit on the nodes together ({tried})")


def undecided() -> Reason:
    """Make the reason for a group that counting does not exclude and for which no place was found."""
    return Reason("NotDecided", "counting does not exclude it, and no place was found for it alone: no time to tell")


class Takers:
    """Who stands where after a solution.

    Parameters
    ----------
    before
        Nothing new is placed.
    solution
        What was placed then.
    """

    def __init__(self, before: State, solution: Solution) -> None:
        self.before, self.layout, self.dense = before, before.layout, before.dense
        layout = self.layout
        self.after = State(layout, solution)
        entries = [
            (node, self.dense.classes[index].group, count, layout.class_prices[index] * count)
            for (index, node), count in sorted(solution.items())
        ]
        self.nodes, self.groups, self.pods, self.prices = np.array(entries, dtype=np.int64).reshape(-1, 4).T
        self._cache: dict[object, str] = {}

    def reason(self, group: int) -> Reason:
        """Name the groups with most of the room that the group could have used; NotDecided where there are none."""
        gang = self.dense.groups[group]
        masks = tuple(sorted({self.dense.classes[index].mask for index in gang.classes}))
        scope = self.dense.scopes[gang.scope]
        key = (masks, scope.limit, scope.bound)
        if key not in self._cache:
            self._cache[key] = self._largest(self._usable(group, masks), gang.key)
        queue = self._queue(group)
        names = self._cache[key]
        before = [name for name, _ in takewhile(lambda level: level[0] not in MAXIMISED, self.dense.levels)]
        if queue is None and not names and before:
            return Reason("Outcompeted", f"fits alone; the policy puts {', '.join(before)} before placing it")
        if queue is None and not names:
            return Reason("NotDecided", "fits alone, and nothing new stands where it could be: no time to tell")
        return Reason("Outcompeted", f"fits alone; the room went to {queue or names}")

    def _usable(self, group: int, masks: tuple[int, ...]) -> BoolArray:
        """Nodes that some pod of the group may use: bool, shape (nodes,)."""
        within = np.zeros(len(self.dense.nodes), dtype=bool)
        for domain in tops(self.before, self.dense.groups[group].scope, self.layout.domains.root):
            begin, end = self.layout.slice_of(domain)
            within[begin:end] = True
        usable: BoolArray = within & self.dense.masks[list(masks)].any(axis=0)
        return usable

    def _largest(self, usable: BoolArray, own: GroupKey) -> str:
        there = usable[self.nodes]
        prices: dict[int, int] = defaultdict(int)
        pods: dict[int, int] = defaultdict(int)
        for group, count, price in zip(
            self.groups[there].tolist(), self.pods[there].tolist(), self.prices[there].tolist(), strict=True
        ):
            prices[group] += price
            pods[group] += count
        order = [
            group for group in sorted(prices, key=lambda group: (-prices[group], group)) if self._key(group) != own
        ]
        return _listed([f"{self._key(group)} ({plural(pods[group], 'pod')})" for group in order])

    def _queue(self, group: int) -> str | None:
        """Name who filled a queue that now has no room for a pod of the group; None where no queue is full."""
        gang = self.dense.groups[group]
        for index in gang.classes:
            for row, amount in self.layout.rows_of[index]:
                if self.after.queue_room[row] < amount * max(1, self.after.left(index)):
                    members = set(self.dense.queue_rows[row].classes)
                    pods: dict[int, int] = defaultdict(int)
                    for member in members:
                        if self.after.placed[member] and self.dense.classes[member].group != group:
                            pods[self.dense.classes[member].group] += self.after.placed[member]
                    if pods:
                        order = sorted(pods, key=lambda other: (-pods[other], other))
                        texts = [f"{self._key(other)} ({plural(pods[other], 'pod')})" for other in order]
                        return f"{_listed(texts)} in Queue {self.dense.queue_rows[row].queue}"
        return None

    def _key(self, group: int) -> GroupKey:
        return self.dense.groups[group].key


def _listed(texts: list[str]) -> str:
    more = len(texts) - NAMED
    return ", ".join(texts[:NAMED]) + (f" and {plural(more, 'other group')}" if more > 0 else "")
