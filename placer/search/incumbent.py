"""The best answer so far and the best bounds, of all methods that search."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from itertools import chain

from placer.arrays import Dense, Solution, beats, score_solution
from placer.bounds import weight_bound
from placer.problem.placement import MAXIMISED
from placer.problem.result import Bound, TracePoint
from placer.search.events import BoundFound, Event, Improved


class Incumbent:
    """Keeps the best solution by value, collects bounds, and remembers when either got better.

    ``began``: ``time.monotonic()`` of the beginning of the call. ``watch``: called with every new point of the trace.
    ``fullest``: the last of the solutions with the most pods that were the best: better ones may lack pods of low
    priority.
    """

    def __init__(self, dense: Dense, began: float, watch: Callable[[TracePoint], None] | None = None) -> None:
        self._dense = dense
        self._began = began
        self._watch = watch
        self._bounds: dict[int | None, list[BoundFound]] = defaultdict(list)
        self.solution: Solution | None = None
        self.fullest = Solution()
        self.values: tuple[int, ...] = ()
        self.method: str | None = None
        self.trace: list[TracePoint] = []

    def offer(self, solution: Solution, method: str, phase: str | None = None) -> bool:
        """Take a solution that is better than the one in hand and that kubelets admit (C10); say whether."""
        values = score_solution(self._dense, solution)
        if self.solution is not None and not beats(self._dense, values, self.values):
            return False
        numa = self._dense.numa
        ordered = solution if numa is None else numa.ordered(solution)
        if ordered is None:
            return False
        self.solution, self.values, self.method = ordered, values, method
        if sum(ordered.values()) >= sum(self.fullest.values()):
            self.fullest = ordered
        self._note(phase or method)
        return True

    @property
    def is_whole(self) -> bool:
        """Whether there is a solution with its own values: an interrupt may come anywhere."""
        return self.solution is not None and score_solution(self._dense, self.solution) == self.values

    def settle(self) -> None:
        """Have the values of the solution in hand."""
        if self.solution is not None:
            self.values = score_solution(self._dense, self.solution)

    def replace(self, solution: Solution) -> None:
        """Take another solution of the same values."""
        if score_solution(self._dense, solution) != self.values:
            raise ValueError("the values are not those of the solution in hand")
        self.solution = solution

    def on_event(self, event: Event, method: str) -> None:
        """Take an event of a search that runs as ``method``."""
        if isinstance(event, Improved):
            self.offer(event.solution, method, f"{method}: {event.phase}" if event.phase else method)
        else:
            self.add_bounds(event)

    def add_bounds(self, *bounds: BoundFound) -> None:
        """Take bounds, none where the arrays are not exact."""
        if not self._dense.exact:
            return
        before = self.bounds()
        for bound in bounds:
            self._bounds[bound.criterion].append(bound)
        if self.solution is not None and self.bounds() != before:
            self._note(bounds[-1].by)

    def bounds(self) -> list[Bound | None]:
        """Best bound per criterion that holds for the solution in hand."""
        return [self._best(criterion) for criterion in range(len(self._dense.criteria))]

    def weight_bound(self) -> Bound | None:
        """Best bound on placed weight in placements no worse than the one in hand."""
        found = weight_bound(self._dense, self.values, chain.from_iterable(self._bounds.values()))
        return None if found is None else Bound(found.bound, found.by)

    def _best(self, criterion: int) -> Bound | None:
        above = self.values[:criterion]
        found = [bound for bound in self._bounds[criterion] if not bound.context or bound.context == above]
        sign = 1 if self._dense.criteria[criterion][0] in MAXIMISED else -1
        best = min(found, key=lambda bound: sign * bound.bound, default=None)
        return None if best is None else Bound(best.bound, best.by)

    def _note(self, phase: str) -> None:
        bounds = tuple(None if bound is None else bound.value for bound in self.bounds())
        point = TracePoint(round(time.monotonic() - self._began, 3), phase, self.values, bounds)
        self.trace.append(point)
        if self._watch is not None:
            self._watch(point)
