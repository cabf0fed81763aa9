"""What counting cannot exclude: is there a place for the group alone, and who took it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import takewhile
from typing import Final

import numpy as np
import numpy.typing as npt

from placer.codes import ReasonCode
from placer.dense import Dense, Solution
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

#: How a place is looked for where counting does not exclude one.
TRIED = "tried every way to place its pods; pod by pod there is room"
NARROW: Final = "TopologyTooNarrow"


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
    def _weaker(self) -> tuple[_Rule, Alone] | None:
        """The last rule of the catalogue's order that concerns anybody here, and the same cluster without it."""
        for rule in LADDER:
            dense = rule.without(self.layout.dense)
            if dense is not None:
                return rule, Alone(Layout(dense))
        return None

    def blame(self, group: int) -> Reason:
        """Say which rule keeps a group out of which it is proved that there is no place for it."""
        world = self
        while world._weaker is not None:
            rule, world = world._weaker
            fits = world.fits(group)
            if fits:
                return Reason(rule.code, f"fits only where {rule.broken} ({TRIED})")
            if fits is None:
                return undecided()
        return Reason("InsufficientResources", f"its pods do not fit on the nodes together ({TRIED})")

    def first(self, group: int, counted: Reason) -> Reason:
        """Return the reason that is proved to come before the tier limits; else the one that counting found there."""
        world = self
        while counted.code == NARROW and world._weaker is not None:
            rule, world = world._weaker
            if rule.code == NARROW:
                return world.blame(group) if world.fits(group) is False else counted
        return counted


@dataclass(frozen=True)
class _Rule:
    """A rule that can be left out of the arrays; ``without`` gives None where it concerns nobody."""

    code: ReasonCode
    broken: str
    without: Callable[[Dense], Dense | None]


def _without_bandwidth(dense: Dense) -> Dense | None:
    network = dense.network
    if network is None or not network.room or not any(call.bandwidth for call in network.calls):
        return None
    calls = tuple(replace(call, bandwidth=0) for call in network.calls)
    return replace(dense, network=replace(network, calls=calls))


def _without_network(dense: Dense) -> Dense | None:
    return None if dense.network is None else replace(dense, network=None)


def _without_zones(dense: Dense) -> Dense | None:
    return None if dense.numa is None else replace(dense, numa=None)


def _without_limits(dense: Dense) -> Dense | None:
    if all(scope.limit is None for scope in dense.scopes):
        return None
    return replace(dense, scopes=tuple(replace(scope, limit=None) for scope in dense.scopes))


def _without_queues(dense: Dense) -> Dense | None:
    return replace(dense, queue_rows=()) if dense.queue_rows else None


#: What counting cannot tell for sure, the last of the catalogue's order first.
LADDER = (
    _Rule("Bandwidth", "links carry more than they have room for", _without_bandwidth),
    _Rule("NetworkCost", "calls cost more than they may", _without_network),
    _Rule("NumaAlignment", "kubelets refuse pods that no NUMA zone has room for", _without_zones),
    _Rule(NARROW, "its tier limits are broken", _without_limits),
    _Rule("QueueCapability", "the capability of its queue is exceeded", _without_queues),
)


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
