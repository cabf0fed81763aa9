"""Homes decided again, a few leaves at a time: large neighbourhood search on the model of pooled pods.

A step fixes the homes in other leaves and the pods on their nodes; on all leaves it is the whole model.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from ortools.sat.python import cp_model

from placer.arrays import Dense, Solution
from placer.base.deadline import Budget
from placer.search.exact.count_model import limited_solver, set_hint
from placer.search.exact.pooled_model import PooledModel


@dataclass(frozen=True)
class _SolvedStep:
    values: list[int] | None
    value: int
    optimal: bool
    work: float


class PooledSearch:
    """Steps on one value of an instance of which everything is placed; :meth:`PooledModel.knows` must hold.

    ``reached`` values before it are kept. Who searches the whole model says that a bound ``is_far`` from the value.
    TooLarge where it would have too many columns.
    """

    def __init__(
        self, dense: Dense, criterion: int, reached: tuple[int, ...], workers: int, chance: random.Random
    ) -> None:
        self.reached, self.workers, self.chance = reached, workers, chance
        self.model = PooledModel(dense, 60_000)  # with more columns a step takes longer to be made than to be solved
        self.program, self.parent = self.model, dense.domains.parent
        for before, value in enumerate(reached):
            self.model.keep(before, value)
        self.value = self.model.aim(criterion)
        self.columns = self.model.columns
        self.is_far = False
        self._values: list[int] = []
        self._size = 10.0
        self.idle = 0

    @property
    def is_small(self) -> bool:
        """Whether the model can well be solved whole."""
        return self.columns <= 12_000 and not self.is_far

    def improved(self, solution: Solution, budget: Budget, told: Callable[[Solution], bool]) -> None:
        """Make steps until nothing is gained any more, or ``told``, which gets each gain, says it is enough."""
        self._begin(solution)
        with ThreadPoolExecutor(self.workers) as threads:
            while self.idle < (6 if self.is_small else 24) and not budget.over:
                if self._gained(threads, budget) and told(self.program.read(self._values)):
                    return

    def _gained(self, threads: ThreadPoolExecutor, budget: Budget) -> bool:
        drawn = [(self._drawn(), self.chance.randrange(2**31)) for _ in range(self.workers)]
        steps = list(threads.map(lambda each: self._step(each[0], budget, each[1]), drawn))
        budget.spend(max(step.work for step in steps))
        return self._taken(steps)

    def _begin(self, solution: Solution) -> None:
        values = self.model.encode(solution)
        counts = self.program.counts.values()
        if not self._values or any(values[each.index] != self._values[each.index] for each in counts):
            self._values, self.idle = values, 0

    def _drawn(self) -> frozenset[int]:
        leaves = self.program.leaves
        size = min(int(self._size), len(leaves))
        if self.chance.random() < 0.6:
            above = int(self.parent[self.chance.choice(leaves)])
            near = [leaf for leaf in leaves if int(self.parent[leaf]) == above]
            chosen = self.chance.sample(near, min(size, len(near)))
            others = [leaf for leaf in leaves if leaf not in chosen]
            return frozenset([*chosen, *self.chance.sample(others, size - len(chosen))])
        return frozenset(self.chance.sample(leaves, size))

    def _taken(self, steps: Sequence[_SolvedStep]) -> bool:
        before = self.value.at(lambda variable: self._values[variable.index])
        ends = sum(step.optimal for step in steps)
        self._size = max(3, self._size * 1.1 if 2 * ends > len(steps) else self._size * 0.9)
        self._size = min(self._size, len(self.program.leaves))
        found = min((step for step in steps if step.values is not None), key=lambda step: step.value, default=None)
        better = found is not None and found.value < before
        self.idle = 0 if better else self.idle + len(steps)
        if found is not None and found.values is not None and found.value <= before:
            self._values = found.values
        return better

    def _step(self, leaves: frozenset[int], budget: Budget, seed: int) -> _SolvedStep:
        model = self.model.proto.clone()
        for index, leaf in self.program.leaf_of.items():
            if leaf not in leaves:
                domain = model.proto.variables[index].domain
                domain.clear()
                domain.extend([self._values[index]] * 2)
        set_hint(model, self._values)
        settings = {"random_seed": seed, "linearization_level": 2}
        solver = limited_solver(work=min(0.6, budget.work), seconds=budget.seconds, **settings)
        status = solver.solve(model)
        work = max(0.05, solver.response_proto.deterministic_time)
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return _SolvedStep(None, 0, status == cp_model.INFEASIBLE, work)
        found = list(solver.response_proto.solution)
        value = self.value.at(lambda variable: found[variable.index])
        return _SolvedStep(found, value, status == cp_model.OPTIMAL, work)
