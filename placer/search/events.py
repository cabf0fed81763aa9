"""What a search is asked, what it reports while it runs, and how it may fail."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from placer.arrays import Solution
from placer.base.deadline import NEVER, Budget, Deadline
from placer.bounds import NamedBound


@dataclass(frozen=True)
class SearchOptions:
    """How long and how a search may run.

    ``work``: deterministic time units of the solver in all. ``workers``: solver threads; with 1 the search is
    repeatable unless ``deadline`` cuts it. ``seed``: 0 .. 2^31 - 1. ``hint``: a solution that keeps all rules.
    ``solver``: PuLP's name, for ``milp``. ``executor``: where the parts of ``decomposed`` are solved
    (:mod:`placer.base.executors`); with one worker always here.
    """

    deadline: Deadline = NEVER
    work: float = math.inf
    workers: int = 1
    seed: int = 0
    hint: Solution | None = None
    solver: str = "HiGHS"
    executor: str = "local"

    @property
    def budget(self) -> Budget:
        """All of it, nothing spent."""
        return Budget(self.deadline, self.work)


@dataclass(frozen=True)
class Improved:
    """A better solution than those reported before; ``phase`` is a word for progress."""

    solution: Solution
    phase: str


#: A bound that a search proved, in the same terms as one that counting gives.
BoundFound = NamedBound

Event = Improved | BoundFound
Emit = Callable[[Event], None]


class SolverFault(RuntimeError):
    """The solver contradicted itself or us; nothing it said afterwards can be trusted."""


class TooLarge(Exception):
    """A solver's model was not built: too many variables, or too large numbers."""
