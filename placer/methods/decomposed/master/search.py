"""What a search asks the master: a bound on ``locality`` or ``span``, and a placement that reaches it."""

from __future__ import annotations

import time
from collections.abc import Sequence

from ortools.sat.python import cp_model

from placer.bounds import NamedBound
from placer.dense import Dense, Solution
from placer.methods.decomposed.master.dive import dive
from placer.methods.decomposed.master.kinds import Ground, make_ground
from placer.methods.decomposed.master.model import Master, TooWide
from placer.methods.decomposed.master.place import place

__all__ = ["TreeMaster"]

#: After so many attempts without a placement no more are made: what decides there is not counted.
FRUITLESS = 2

#: The values that it knows.
NAMES = ("locality", "span")


class TreeMaster:
    """The master of one instance; whoever asks has to know that the values before leave no pod out.

    Parameters
    ----------
    dense
        The instance.
    """

    def __init__(self, dense: Dense) -> None:
        self.dense = dense
        self.ground: Ground | None = make_ground(dense)
        self.attempts = 0
        self.fruitless = 0
        self._bounds: dict[tuple[int, tuple[int, ...]], NamedBound | None] = {}

    def knows(self, level: int) -> bool:
        """Whether it can say anything about a value."""
        return self.ground is not None and self.dense.levels[level][0] in NAMES

    def bound(self, level: int, values: Sequence[int], seconds: float) -> NamedBound | None:
        """Bound a value among the placements that equal ``values`` on those before it and place everything.

        Parameters
        ----------
        level
            Of ``locality`` or ``span``.
        values
            Of the answer in hand.
        seconds
            How long it may take.

        Returns
        -------
        NamedBound or None
            None where nothing was found out.
        """
        context = tuple(values[:level])
        if (level, context) not in self._bounds:
            least = self._least(level, values, seconds)
            self._bounds[level, context] = None if least is None else NamedBound(level, least, "master", context)
        return self._bounds[level, context]

    def _least(self, level: int, values: Sequence[int], seconds: float) -> int | None:
        name = self.dense.levels[level][0]
        if self.ground is None or name not in NAMES:
            return None
        try:
            master = Master(self.ground, self.ground.units())
        except TooWide:
            self.ground = None
            return None
        for before, most in self._targets(level, values).items():
            master.program.at_most(master.value(before), most)
        least = master.program.minimum(master.value(name), seconds)
        return None if least is None else least + self.ground.standing[NAMES.index(name)]

    def _targets(self, level: int, values: Sequence[int]) -> dict[str, int]:
        """What the values of the tree before a level may be at most, without what stands."""
        assert self.ground is not None
        standing = dict(zip(NAMES, self.ground.standing, strict=True))
        pairs = zip(self.dense.levels[:level], values, strict=False)
        return {name: value - standing[name] for (name, _), value in pairs if name in NAMES}

    def propose(self, level: int, values: Sequence[int], seconds: float, solver: cp_model.CpSolver) -> Solution | None:
        """Look for a placement that is as good as the bound, on this value and the next one of the tree.

        Parameters
        ----------
        level, values
            As for :meth:`bound`, which must have been asked.
        seconds
            How long it may take without the solver's time.
        solver
            For the placement, with its limits.
        """
        bound = self._bounds.get((level, tuple(values[:level])))
        if self.ground is None or bound is None or self.fruitless >= FRUITLESS:
            return None
        end = time.monotonic() + seconds

        def left() -> float:
            return end - time.monotonic()

        reached = (*values[:level], bound.bound)
        targets, last = self._targets(level + 1, reached), level
        if level + 1 < len(self.dense.levels) and self.dense.levels[level + 1][0] in NAMES:
            further = self.bound(level + 1, reached, left())
            if further is not None:
                targets, last = self._targets(level + 2, (*reached, further.bound)), level + 1
        layout = dive(self.ground, targets, self.attempts, left)
        self.attempts += 1
        found = None if layout is None or left() <= 0 else place(self.dense, layout, values, last, solver, left())
        self.fruitless = self.fruitless + 1 if found is None else 0
        return found
