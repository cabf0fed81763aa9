"""Which nodes a step frees around an AppGroup: one that waits, or one whose calls cost more than they would have to."""

from __future__ import annotations

import random
from collections.abc import Collection
from functools import cached_property

import numpy as np
import numpy.typing as npt

from placer.bounds import CallCosts
from placer.dense import Dense, DenseNetwork
from placer.methods.decomposed.incumbent_state import IncumbentState

__all__ = ["Apps", "company", "draw"]

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

#: Most AppGroups that wait and take part in a step, and how many times what they ask for is chosen.
APPS, AMPLE = 8, 2.0


def company(dense: Dense) -> dict[int, frozenset[int]]:
    """AppGroup to the groups that have pods in it; empty without a network."""
    found: dict[int, set[int]] = {}
    for workload in dense.network.workloads if dense.network is not None else ():
        found.setdefault(workload.app, set()).update(dense.classes[index].group for index in workload.classes)
    return {app: frozenset(groups) for app, groups in found.items()}


def draw(numbers: np.random.Generator, weights: FloatArray, allowed: BoolArray, size: int) -> IntArray:
    """Draw nodes by weight, each once: the largest of u^(1/w) first."""
    keys = np.where(allowed, numbers.random(len(weights)) ** (1 / weights), -1.0)
    size = min(size, int(allowed.sum()))
    return np.argpartition(-keys, size - 1)[:size].astype(np.int64) if size > 0 else np.zeros(0, dtype=np.int64)


class Apps:
    """AppGroups of the solution at hand.

    Parameters
    ----------
    dense, network
        The instance and its network.
    chance
        Source of all chance.
    """

    def __init__(self, dense: Dense, network: DenseNetwork, chance: random.Random) -> None:
        self.dense, self.network, self.random = dense, network, chance
        self.numbers = np.random.default_rng(chance.getrandbits(32))
        self.groups = company(dense)
        self.workloads: dict[int, list[int]] = {}
        for number, workload in enumerate(network.workloads):
            self.workloads.setdefault(workload.app, []).append(number)

    @cached_property
    def least(self) -> dict[int, int]:
        """AppGroup to what its calls cost at least when all its pods are placed."""
        return CallCosts(self.dense, self.network, [one.size for one in self.dense.classes]).by_app

    def around_waiting(
        self,
        standing: IncumbentState,
        size: int,
        allowed: BoolArray,
        room: FloatArray,
        groups: Collection[int],
        least: IntArray,
    ) -> tuple[IntArray, list[int]] | None:
        """Nodes for some AppGroups of which groups wait, and these groups; None where none waits.

        Parameters
        ----------
        standing
            The solution at hand.
        size
            Most nodes, about; fewer where the AppGroups need fewer.
        allowed
            bool, shape (nodes,): nodes that may be chosen.
        room
            float, shape (nodes,), above 0: how much is left on each node.
        groups
            Those that wait.
        least
            int64, shape (groups, resources): what each needs at least.
        """
        wait = set(groups)
        apps = [app for app, mine in self.groups.items() if not wait.isdisjoint(mine)]
        if not apps:
            return None
        chosen = self.random.sample(apps, min(APPS, len(apps)))
        asked = [least[sorted(wait.intersection(self.groups[app]))].sum(axis=0) for app in chosen]
        spare = standing.free[allowed].sum(axis=0) / max(1, int(allowed.sum()))
        fewest = int(np.max(AMPLE * sum(asked) / np.maximum(spare, 1e-9), initial=1.0)) + 1
        nodes = self._around(chosen[0], standing, min(size, fewest), allowed, room)
        left = standing.free[nodes].sum(axis=0)
        focus: set[int] = set()
        for app, each in zip(chosen, asked, strict=True):
            left = left - each
            if not focus or (left >= 0).all():
                focus |= wait.intersection(self.groups[app])
        return nodes, sorted(focus)

    def around_dear(
        self, standing: IncumbentState, size: int, allowed: BoolArray, room: FloatArray, still: Collection[int]
    ) -> tuple[int, IntArray] | None:
        """An AppGroup drawn by what its calls cost beyond the least, its nodes and others; None where none costs more.

        Parameters
        ----------
        standing, size, allowed, room
            As for :meth:`around_waiting`.
        still
            Groups that may not take part.
        """
        best, key, others = None, -1.0, frozenset(still)
        assert standing.communication is not None
        for app, cost in standing.communication.costs.items():
            excess = cost - self.least.get(app, 0)
            if excess > 0 and others.isdisjoint(self.groups[app]):
                drawn = self.random.random() ** (1 / excess)
                if drawn > key:
                    best, key = app, drawn
        return None if best is None else (best, self._around(best, standing, size, allowed, room))

    def _around(self, app: int, standing: IncumbentState, size: int, allowed: BoolArray, room: FloatArray) -> IntArray:
        """Nodes that an AppGroup is on, others of an area that it is in or could be in, and some anywhere."""
        nodes = {node for workload in self.workloads[app] for node in standing.pods_of(workload)}
        mine = np.array(sorted(node for node in nodes if allowed[node]), dtype=np.int64)
        if len(mine) > size * 3 // 4:
            mine = self.numbers.permutation(mine)[: size * 3 // 4]
        rest = allowed.copy()
        rest[mine] = False
        near = rest & (self.network.area == self._area(app, standing, rest, room))
        first = draw(self.numbers, room, near, (size - len(mine)) * 3 // 4)
        rest[first] = False
        return np.concatenate((mine, first, draw(self.numbers, room, rest, size - len(mine) - len(first))))

    def _area(self, app: int, standing: IncumbentState, allowed: BoolArray, room: FloatArray) -> int:
        """An area where the AppGroup has many pods, or else one where much is left."""
        assert standing.communication is not None
        pods: FloatArray = np.zeros(len(self.network.cost))
        for workload in self.workloads[app]:
            for area, count in standing.communication.placed[workload].items():
                pods[area] += count
        if not pods.any() or self.random.random() < 0.5:
            pods = np.bincount(self.network.area[allowed], weights=room[allowed], minlength=len(pods)).astype(float)
        return int(np.argmax(pods * self.numbers.random(len(pods))))
