"""Large neighbourhood search: a few leaves at a time are freed and decided again, several subproblems at once.

Subproblems that run at the same time share no node, no AppGroup and no group but those of independent pods, and none
asks anything of pods of another, so each result is independent of the others; of an independent pod that several have
placed, one place is kept (Shaw, "Using Constraint Programming and Local Search Methods to Solve Vehicle Routing
Problems", 1998).
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from dataclasses import dataclass

import numpy as np

from placer.arrays import Dense, Solution, beats
from placer.arrays.solution import IntArray
from placer.base.deadline import Budget
from placer.base.executors import open_executor
from placer.search.decomposed.destroy import DestroyOperators, bins_of, groups_of_apps, tied_groups
from placer.search.decomposed.incumbent_state import IncumbentState
from placer.search.decomposed.node_fillings import independent
from placer.search.decomposed.repairing import RepairResult, RepairTask, repair
from placer.search.decomposed.subproblem import Subproblem, make_subproblem
from placer.search.events import SolverFault

#: Deterministic time of a step; about a third of a second.
STEP_WORK = 0.2
#: Nodes of the first step, of the smallest one whose model is not too large for its time, and of the largest one.
FIRST, LEAST, MOST = 48, 8, 1024
#: Share of the steps over NUMA zones that have no hint: there hints lead to the same few solutions.
UNHINTED = 0.5


class WorkerPool:
    """The workers that repair: an executor that is opened when it is needed, and again when it breaks down."""

    def __init__(self, name: str, workers: int) -> None:
        self.name, self.workers = name, workers
        self._executor: Executor | None = None
        self._left = 3

    def submit(self, task: RepairTask) -> Future[RepairResult]:
        """Begin a repair."""
        if self._executor is None:
            self._executor = open_executor(self.name, self.workers)
            self._executor.__enter__()
        return self._executor.submit(repair, task)

    def broke(self, error: BaseException) -> None:
        """Open another executor for the next task; give up when this has happened too often."""
        if self._left == 0:
            raise SolverFault(f"steps cannot be carried out: {error}") from error
        self._left -= 1
        self.close()

    def close(self) -> None:
        """End all repairs that are under way."""
        if self._executor is not None:
            self._executor.__exit__(None, None, None)
        self._executor = None


class AdaptiveSize:
    """Number of nodes that a step frees, at most ``nodes``, each with so many ``bins``."""

    def __init__(self, nodes: int, bins: int) -> None:
        least, first, most = (max(min(each, 2), each // bins**2) for each in (LEAST, FIRST, MOST))
        self._least, self._most = least, max(least, min(most, nodes))
        self._now = float(min(first, max(least, nodes // 2)))

    @property
    def nodes(self) -> int:
        """Number of nodes now."""
        return int(self._now)

    def learn(self, found: RepairResult, nodes: int) -> None:
        """Grow after a step on so many nodes that was solved to the end, else shrink."""
        if found.too_large:
            self._least = max(2, min(self._least, nodes) // 2)
            self._now /= 2
        self._now = min(self._most, max(self._least, self._now * (1.15 if found.optimal else 0.88)))


@dataclass(frozen=True)
class _RunningRepair:
    subproblem: Subproblem
    nodes: IntArray
    operator: int
    size: AdaptiveSize | None
    slack: bool


class LargeNeighbourhoodSearch:
    """Steps on one value, each from the solution that those before have made; values before it never get worse.

    ``sizes``: how many nodes each operator frees.
    """

    def __init__(
        self,
        dense: Dense,
        criterion: int,
        solution: Solution,
        seed: int,
        chance: random.Random,
        pool: WorkerPool,
    ) -> None:
        self.dense, self.criterion, self.seed, self.random, self.pool = dense, criterion, seed, chance, pool
        self.incumbent = IncumbentState(dense, solution)
        self.destroy = DestroyOperators(self.incumbent, criterion, chance)
        self.groups_of_apps, self.tied_groups = groups_of_apps(dense), tied_groups(dense)
        # Where gangs are placed pod by pod, all such pods are one group: locked, it would leave nothing for others.
        self.independent = {group for group in range(len(dense.groups)) if independent(dense, group)}
        self.shared = bool(dense.queue_rows) or (dense.network is not None and bool(dense.network.room))
        # Repairs over zones are short, and putting one back into a large solution takes a while: one more is ready.
        self.most_running = pool.workers + (1 if dense.numa is not None and pool.workers > 1 else 0)
        bins = bins_of(dense)
        self.sizes = [AdaptiveSize(len(dense.nodes), bins) for _ in self.destroy.operators]
        self.steps = 0
        self.under_way: dict[Future[RepairResult], _RunningRepair] = {}

    def restart(self, solution: Solution) -> None:
        """Start from another solution; sizes and operators keep their records."""
        self.incumbent = IncumbentState(self.dense, solution)
        self.destroy.incumbent = self.incumbent

    def learn_from(self, former: LargeNeighbourhoodSearch) -> None:
        """Take over the records of sizes and operators for the same value of an instance like this one."""
        self.sizes, self.steps = former.sizes, former.steps
        self.destroy.tried, self.destroy.gained = former.destroy.tried, former.destroy.gained

    def run(self, budget: Budget, told: Callable[[Solution], bool]) -> None:
        """Make steps until the budget is over or ``told``, which gets every better solution, says it is enough."""
        try:
            while self._fill(budget):
                done, _ = wait(self.under_way, return_when=FIRST_COMPLETED)
                for future in [each for each in self.under_way if each in done]:
                    if self._take(future, budget) and told(self.incumbent.solution.copy()):
                        return
        finally:
            for future in self.under_way:
                future.cancel()
            self.under_way.clear()

    def _fill(self, budget: Budget) -> bool:
        while len(self.under_way) < self.most_running:
            if not budget.spent:  # until the first step is done workers may still be starting
                budget.renew()
            if budget.over:
                # Repairs that are under way are not waited for: they would be over the limit as well.
                return False
            if not self._begin(budget):
                # A step that cost nothing (nothing to decide) counts all the same, or there would be no end.
                budget.spend(STEP_WORK / 100)
                if self.under_way:
                    break
        return True

    def _begin(self, budget: Budget) -> bool:
        blocked = np.zeros(len(self.dense.nodes), dtype=bool)
        locked: set[int] = set()
        for each in self.under_way.values():
            blocked[each.nodes] = True
            locked.update(set(each.subproblem.groups) - self.independent)
            locked.update(self._tied_to(each.subproblem))
        chosen = self.destroy.choose([size.nodes for size in self.sizes], blocked, locked)
        if not len(chosen.nodes):
            return False
        slack = not self.shared or not any(each.slack for each in self.under_way.values())
        nodes, pending = chosen.nodes.tolist(), chosen.pending
        subproblem = make_subproblem(self.incumbent, nodes, pending, locked=locked | chosen.fixed, slack=slack)
        if not subproblem.dense.classes:
            return False
        self.steps += 1
        task = self._task(subproblem, chosen.chains, budget)
        try:
            future = self.pool.submit(task)
        except BrokenExecutor as error:
            self._lost(error)
            return False
        size = None if chosen.chains else self.sizes[chosen.operator]
        self.under_way[future] = _RunningRepair(subproblem, chosen.nodes, chosen.operator, size, slack)
        return True

    def _tied_to(self, subproblem: Subproblem) -> Iterator[int]:
        for app in subproblem.apps:
            yield from self.groups_of_apps[app]
        for group in subproblem.groups:
            yield from self.tied_groups.get(group, ())

    def _task(self, subproblem: Subproblem, chains: bool, budget: Budget) -> RepairTask:
        compact = self.random.random() < 0.25
        unhinted = self.dense.numa is not None and self.random.random() < UNHINTED
        return RepairTask(
            subproblem.dense,
            subproblem.start,
            subproblem.must,
            self.criterion,
            budget.seconds,
            min(budget.work, 0.6 if chains else STEP_WORK),
            (self.seed + self.steps) % 2**31,
            compact,
            unhinted,
            chains,
        )

    def _take(self, future: Future[RepairResult], budget: Budget) -> bool:
        each = self.under_way.pop(future, None)
        if each is None:
            return False  # lost with the executor
        try:
            found = future.result()
        except BrokenExecutor as error:
            self._lost(error)
            return False
        if found.fault is not None:
            raise SolverFault(f"in a neighbourhood: {found.fault}")
        # making a step, sending it and putting it back take a tenth of a second
        budget.spend(max(found.work, 0.03))
        if each.size is not None:
            each.size.learn(found, len(each.nodes))
        gain = self._put(each.subproblem, found)
        self.destroy.reward(each.operator, gain)
        return gain

    def _put(self, subproblem: Subproblem, found: RepairResult) -> bool:
        """Accept the result of a repair unless it makes things worse; say whether it makes them better.

        The whole gains as much as a subproblem, unless another one that was under way counts on the same domain being
        in use, or has placed the same independent pods; so values are counted again only where something is gained.
        """
        solution = found.solution
        if solution is None or solution == subproblem.start:
            return False
        before = self.incumbent.values
        values = tuple(value + gain for value, gain in zip(before, found.gains, strict=True))
        if beats(self.dense, before, values, self.criterion + 1):
            return False
        taken, found_put = subproblem.named(subproblem.start), subproblem.named(solution)
        put = self._placed_once(taken, found_put)
        known = put is found_put and not beats(self.dense, values, before, self.criterion + 1)
        self.incumbent.change(taken, put, values if known else None)
        # Pods that stay and pods that are put may need each other, in a circle (C12).
        worse = beats(self.dense, before, self.incumbent.values, self.criterion + 1)
        if worse or not self.dense.orderable(self.incumbent.solution):
            self.incumbent.change(put, taken, before)
            return False
        return beats(self.dense, self.incumbent.values, before, self.criterion + 1)

    def _placed_once(self, taken: Solution, put: Solution) -> Solution:
        surplus: Counter[int] = Counter()
        for sign, places in ((1, put), (-1, taken)):
            for (index, _), count in places.items():
                surplus[index] += sign * count
        over = {index: count - left for index, count in surplus.items() if count > (left := self.incumbent.left(index))}
        if not over:
            return put
        once = put.copy()
        for (index, node), count in put.items():
            once[index, node] -= (less := min(count, over.get(index, 0)))
            over[index] = over.get(index, 0) - less
        return once.only(lambda index, node: once[index, node] > 0)

    def _lost(self, error: BaseException) -> None:
        self.under_way.clear()
        self.pool.broke(error)
