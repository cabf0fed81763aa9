"""Which of the groups that wait take part in a step."""

from __future__ import annotations

import random
from collections.abc import Collection
from functools import cached_property

import numpy as np
import numpy.typing as npt

from placer.dense import Dense
from placer.methods.decomposed.incumbent_state import IncumbentState

__all__ = ["Waiting"]

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

#: Groups that take part in a step, in one over NUMA zones, which is over few nodes, and in a walk from zone to zone.
MOST, MOST_OVER_ZONES, MOST_IN_A_WALK = 12, 36, 256


class Waiting:
    """The groups that wait.

    Parameters
    ----------
    dense
        The instance.
    priority
        Of the groups that may take part; None: any.
    chance
        Source of all chance.
    """

    def __init__(self, dense: Dense, priority: int | None, chance: random.Random) -> None:
        self.dense, self.priority, self.random = dense, priority, chance

    def groups(self, standing: IncumbentState, still: Collection[int]) -> list[int]:
        """Groups of which something waits and that may take part: of the priority that the value is about, else any."""
        placed, dense = standing.placed, self.dense
        return [
            number
            for number, group in enumerate(dense.groups)
            if self.priority in (None, group.priority)
            and number not in still
            and any(placed[index] < dense.classes[index].size for index in group.classes)
        ]

    def drawn(self, standing: IncumbentState, waiting: list[int], nodes: IntArray, walk: bool) -> list[int]:
        """Draw from the groups that wait, those first that there might be room for on the nodes.

        Room is what is free there and what pods of lower priority hold.

        Parameters
        ----------
        standing
            The solution at hand.
        waiting
            The groups.
        nodes
            The nodes.
        walk
            Whether they take part in a walk from zone to zone, where there may be many.
        """
        room = standing.free[nodes].sum(axis=0)
        for index, count in ((i, c) for node in nodes.tolist() for i, c in standing.on.get(node, {}).items()):
            if self._priority(index) < (self.priority or 0):
                room = room + self.dense.classes[index].request * count
        drawn = self.random.sample(waiting, len(waiting))
        fitting = [group for group in drawn if (self.least[group] <= room).all()]
        # The others take somebody's place: those that are worth most for what they ask for.
        others = sorted(set(drawn) - set(fitting), key=lambda group: -self._worth[group] * self.random.random())
        size = MOST if self.dense.numa is None else MOST_IN_A_WALK if walk else MOST_OVER_ZONES
        most = max(size // 4, size // 2 if len(others) > len(fitting) else 0)
        return sorted([*fitting, *others[:most]][:size] if len(fitting) < size else fitting[:size])

    @cached_property
    def _worth(self) -> FloatArray:
        """float64, shape (groups,): weight per share of what is scarcest, of each group's pods."""
        dense = self.dense
        sizes = np.array([one.size for one in dense.classes])
        whole = np.maximum(dense.free.sum(axis=0), 1)
        if not len(whole):
            return np.ones(len(dense.groups))
        scarce = int(np.argmax(sizes @ dense.requests / whole))
        weight, asked = np.zeros(len(dense.groups)), np.zeros(len(dense.groups))
        for one in dense.classes:
            weight[one.group] += one.weight * one.size
            asked[one.group] += int(one.request[scarce]) * one.size / whole[scarce]
        return weight / np.maximum(asked, 1e-9)

    def _priority(self, index: int) -> int:
        return self.dense.groups[self.dense.classes[index].group].priority

    @cached_property
    def least(self) -> IntArray:
        """int64, shape (groups, resources): what each must have at least to get anything, counted class by class."""
        rows = np.zeros((len(self.dense.groups), len(self.dense.resources)), dtype=np.int64)
        for number, group in enumerate(self.dense.groups):
            requests = self.dense.requests[list(group.classes)]
            sizes = [self.dense.classes[index].size for index in group.classes]
            pods = np.repeat(requests, sizes, axis=0)
            if group.short:
                rows[number] = np.sort(pods, axis=0)[: group.short].sum(axis=0)
        return rows
