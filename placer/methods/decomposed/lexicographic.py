"""The search for real clusters, value by value in their order: who gets how much of the time."""

from __future__ import annotations

import math
import random
import time

from placer.dense import Dense, Solution
from placer.methods.decomposed.destroy import bins_of
from placer.methods.decomposed.large_neighbourhood import FIRST, LargeNeighbourhoodSearch, WorkerPool
from placer.methods.decomposed.master import TreeMaster
from placer.methods.events import Emit, SearchOptions
from placer.methods.exact.search import ExactSearch
from placer.methods.numa.ejection_chains import place_by_ejection_chains
from placer.placement import MAXIMISED

__all__ = ["search"]

#: What neighbourhood search on the first value that is not proved gets of the budget, as a factor: what is reached on
#: the values after it lasts only as long as it does.
FOREMOST = 4.0

#: Deterministic time that asking the master counts as, a bound and a layout.
MASTER_WORK = (0.2, 4.0)

#: What making a placement of a layout may take, in seconds or deterministic time.
LAYING_OUT = 10.0

#: Share of the time that is left that finding a layout may take; it is given up early where that would not be enough.
LAYING_OUT_SHARE = 0.75

#: With no more nodes than this, or NUMA zones, the whole model is tried before neighbourhoods.
FEW_NODES = 96


def search(dense: Dense, options: SearchOptions, emit: Emit) -> str:
    """Find a placement near the best one, of a cluster of any size, and prove what can be proved.

    Parameters
    ----------
    dense
        The instance.
    options
        Limits, threads, seed and a solution to start from. With one worker and without ``seconds`` the same input gives
        the same events.
    emit
        Told every better solution at once, and every bound.

    Returns
    -------
    str
        ``proved``: every value met its bound. ``time``: a limit was reached. ``finished``: no limit was set, and the
        whole model would be too large for a proof.

    Raises
    ------
    SolverFault
        The solver called a model infeasible or invalid that has a solution, or proved a bound that does not hold; or
        the executor breaks down again and again.
    """
    pool = WorkerPool("inline" if options.workers == 1 else options.executor, options.workers)
    try:
        return DecomposedSearch(dense, options, emit, pool).run()
    finally:
        pool.close()


class DecomposedSearch(ExactSearch):
    """The exact search with large neighbourhood search, ejection chains and the master beside the whole model."""

    last_budget = 128.0

    def __init__(self, dense: Dense, options: SearchOptions, emit: Emit, pool: WorkerPool) -> None:
        super().__init__(dense, options, emit)
        self.pool = pool
        self.chance = random.Random(options.seed)
        self.steps: dict[int, LargeNeighbourhoodSearch] = {}
        self.tree = TreeMaster(dense)
        self.bins = len(dense.nodes) * bins_of(dense)
        self.chains = 0

    def decide(self, level: int, budget: float) -> bool:
        """Make one value better; say whether it is proved as far as those before it are."""
        methods = [self.bounded, self.chained, self.laid_out, self.neighbourhoods, self.solve]
        if self.bins <= FEW_NODES:
            methods = [self.bounded, self.chained, self.solve, self.laid_out, self.neighbourhoods]
        if self.bins <= FIRST // 2 and not self.too_large:
            methods = [self.solve]
        return self.met(level) or any(method(level, budget) for method in methods if not self.limits.over)

    def building(self, budget: float) -> float:
        """Seconds that building the whole model may take: as long as it is then looked at."""
        return min(self.limits.seconds / 2, 2 * budget)

    def bounded(self, level: int, _: float) -> bool:
        """Ask the master for a bound; say whether the value is proved then."""
        if not self.tree.knows(level) or not self._everything_kept(level):
            return False
        bound = self.tree.bound(level, self.values, self.limits.seconds / 4)
        self.limits.spent += MASTER_WORK[0]
        if bound is not None:
            self._tell(bound)
        return self.met(level)

    def chained(self, level: int, budget: float) -> bool:
        """Look for ejection chains over the NUMA zones of all nodes; say whether the value is proved then."""
        name = self.dense.levels[level][0]
        if self.dense.numa is None or name not in MAXIMISED:
            return False
        self.chains += 1
        seed, work = (self.options.seed + self.chains) % 2**31, min(self.limits.work, budget)
        # With one worker only the work ends it, so that the same seed finds the same chains.
        seconds = self.limits.seconds if self.options.workers == 1 else min(self.limits.seconds, budget)
        found, spent = place_by_ejection_chains(self.dense, self.solution, seed, work, seconds)
        self.limits.spent += spent
        self.offer(found, name)
        return self.met(level)

    def laid_out(self, level: int, budget: float) -> bool:
        """Ask the master for placements as good as its bound; say whether the value is proved then."""
        if not self.tree.knows(level) or not self._everything_kept(level) or self.proved < level:
            return False
        began, before = time.monotonic(), self.limits.spent
        while not self.limits.over:
            spent = self.limits.spent + MASTER_WORK[1]
            seconds = LAYING_OUT_SHARE * self.limits.seconds
            found = self.tree.propose(level, self.values, seconds, self._solver(LAYING_OUT))
            self.limits.spent = spent
            if found is None:
                break
            self.offer(found, self.dense.levels[level][0])
            used = spent - before if self.options.workers == 1 else time.monotonic() - began
            if self.met(level) or used > FOREMOST * budget:
                break
        return self.met(level)

    def neighbourhoods(self, level: int, budget: float) -> bool:
        """Search a few leaves at a time; say whether the value is proved then."""
        name = self.dense.levels[level][0]
        budget *= FOREMOST if level == self.proved else 1.0
        steps = self._steps(level)
        alone = self.options.workers == 1
        most = budget if alone else math.inf
        last = time.monotonic()

        def limits(spent: float) -> tuple[float, float] | None:
            seconds, work = self.limits.seconds, min(self.limits.work, most) - spent
            over = not alone and time.monotonic() > last + budget
            return (seconds, work) if seconds > 0 and work > 0 and not over else None

        def told(solution: Solution) -> bool:
            nonlocal last, most
            if level == self.proved:  # what counts most is not left as long as it gets better
                last, most = time.monotonic(), max(most, steps.spent + budget) if alone else math.inf
            self.offer(solution, name)
            return self.met(level)

        steps.run(limits, told)
        self.limits.spent += steps.spent
        return self.met(level)

    def _steps(self, level: int) -> LargeNeighbourhoodSearch:
        if level in self.steps:
            self.steps[level].restart(self.solution)
        else:
            self.steps[level] = LargeNeighbourhoodSearch(
                self.dense, level, self.solution, self.options.seed, self.chance, self.pool
            )
        return self.steps[level]
