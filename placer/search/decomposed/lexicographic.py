"""The search for real clusters, value by value in their order, and the time that each method gets."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable

from placer.arrays import Dense, Solution, beats, score_solution
from placer.base.deadline import Budget
from placer.bounds import NamedBound
from placer.problem.placement import MAXIMISED
from placer.search.decomposed.area_assignment import AreaAssignment
from placer.search.decomposed.column_generation import refilled
from placer.search.decomposed.destroy import bins_of
from placer.search.decomposed.gang_relaxation import GangRelaxation, relaxable
from placer.search.decomposed.large_neighbourhood import FIRST, LargeNeighbourhoodSearch, WorkerPool
from placer.search.decomposed.master import TreeMaster
from placer.search.decomposed.pooled_branching import branch_and_cut
from placer.search.decomposed.pooled_search import PooledSearch
from placer.search.decomposed.relax_and_fix import relaxed_and_fixed
from placer.search.events import Emit, SearchOptions, TooLarge
from placer.search.exact.method import FIRST_BUDGET, ExactSearch
from placer.search.greedy.multi_start import complete

#: What neighbourhood search on the first value that is not proved gets of the budget, as a factor: what is reached on
#: the values after it lasts only as long as it does.
FOREMOST = 4.0

#: Seconds that a unit of deterministic time of steps takes one worker, about, with what making and reading them takes.
WORK_SECONDS = 4.0


def search(dense: Dense, options: SearchOptions, emit: Emit) -> str:
    """Find a placement near the best one, of a cluster of any size, and prove as much as possible.

    As :func:`placer.search.exact.method.search`; without a limit it returns ``finished`` where the whole model would
    be too large for a proof. SolverFault also where the executor breaks down again and again.
    """
    pool = WorkerPool("inline" if options.workers == 1 else options.executor, options.workers)
    try:
        return DecomposedSearch(dense, options, emit, pool).run()
    finally:
        pool.close()


class DecomposedSearch(ExactSearch):
    """The exact search with large neighbourhood search and the master next to the whole model.

    Each method returns whether the value is proved afterwards, as far as those before it are.
    """

    last_budget = 128.0

    def __init__(self, dense: Dense, options: SearchOptions, emit: Emit, pool: WorkerPool) -> None:
        super().__init__(dense, options, emit)
        self.pool = pool
        self.chance = random.Random(options.seed)
        self.steps: dict[int, LargeNeighbourhoodSearch] = {}
        self.relaxed: dict[int, tuple[GangRelaxation, LargeNeighbourhoodSearch]] = {}
        self.tree = TreeMaster(dense)
        self.pooled_searches: dict[int, PooledSearch | None] = {}
        self.bins = len(dense.nodes) * bins_of(dense)
        self.packings = 0
        self.priorities_filled: set[int] = set()
        network = dense.network
        self.areas = None if network is None else AreaAssignment(dense, network, self.chance)
        self.calls_bounded = False

    def decide(self, criterion: int, budget: float) -> bool:
        """Make one value better; say whether it is proved as far as those before it are."""
        if self.met(criterion):
            return True
        if self.limits.over:
            return False
        methods = [
            self.bounded,
            self.refill,
            *self._of_the_tree(criterion, budget),
            self.assigned,
            *self._of_gangs(criterion),
            self.neighbourhoods,
            self.solve_unpooled,
        ]
        if self.bins <= 96:  # nodes, or NUMA zones: the whole model before neighbourhoods
            methods = [
                self.bounded,
                self.refill,
                self.assigned,
                self.decide_homes,
                self.solve,
                self.branched,
                self.laid_out,
                self.neighbourhoods,
            ]
        if self.bins <= FIRST // 2 and not self.too_large:
            methods = [self.solve]
        return any(method(criterion, budget) for method in methods if not self.limits.over)

    def _of_the_tree(self, criterion: int, budget: float) -> list[Callable[[int, float], bool]]:
        """Where blocks are equal, layouts come first and seldom need anything else.

        Elsewhere the model of pooled pods does while it is small, and layouts are left for later rounds.
        """
        methods: list[Callable[[int, float], bool]] = [self.decide_homes, self.branched]
        if self.tree.sees_equal_blocks:
            return [self.laid_out, *methods]
        return methods if self._few_pooled(criterion) and budget <= FIRST_BUDGET else [*methods, self.laid_out]

    def _of_gangs(self, criterion: int) -> list[Callable[[int, float], bool]]:
        known = self._known_bounds(criterion)
        waits = min(known, default=math.inf) - self.values[criterion]
        little = waits <= 0.005 * self.values[criterion]
        return [self.gangs_relaxed, self.packed] if little else [self.packed, self.gangs_relaxed]

    def _few_pooled(self, criterion: int) -> PooledSearch | None:
        steps = self._pooled_search(criterion)
        return steps if steps is not None and steps.is_small else None

    def branched(self, criterion: int, budget: float) -> bool:
        """Solve the model of pooled pods by branch and cut while it is small.

        Where the clock ends it, it starts again with other seeds: the time that a tree takes is chance.
        """
        alone, began = self.options.workers == 1, time.monotonic()
        while criterion == self.proved and (steps := self._few_pooled(criterion)) and not self.limits.over:
            left = WORK_SECONDS * budget + began - time.monotonic()
            # With one worker only nodes of its tree end it; else the clock does, also where the limit is one of work.
            # Several begin again now and then with other seeds. HiGHS looks at the clock seldom, so it ends early.
            several = min(left, 12.0, WORK_SECONDS * self.limits.work)
            seconds = 0.25 * self.limits.seconds if alone else several
            seconds = min(seconds, self.limits.seconds - 1.0)
            if seconds <= 0:
                break
            if self._branched_once(steps, criterion, seconds, FOREMOST * budget):
                return True
            if alone:
                break
        return False

    def _branched_once(self, steps: PooledSearch, criterion: int, seconds: float, work: float) -> bool:
        known = self._known_bounds(criterion)
        found = branch_and_cut(
            steps.model,
            steps.value,
            known,
            self.solution,
            seconds=seconds,
            work=min(work, self.limits.work),
            workers=self.options.workers,
            seed=self.chance.randrange(2**30),
        )
        self.limits.spend(found.work)
        if found.solution is not None:
            self.offer(found.solution, self.dense.criteria[criterion][0])
        bounds = known if found.bound is None else [*known, found.bound]
        if max(bounds, default=-math.inf) < 0.97 * self.values[criterion]:
            steps.is_far = True
        proved = found.bound is not None and self._judge(criterion, found.bound, found.optimal, "milp")
        return proved or self.met(criterion)

    def solve_unpooled(self, criterion: int, budget: float) -> bool:
        """Solve the whole model where no small one of pooled pods was solved."""
        return not self._few_pooled(criterion) and self.solve(criterion, budget)

    def building(self, budget: float) -> float:
        """Seconds that building the whole model may take: as long as it is then looked at."""
        return min(self.limits.seconds / 2, 2 * budget)

    def bounded(self, criterion: int, _: float) -> bool:
        """Ask the master for a bound."""
        if self.dense.criteria[criterion][0] == "networkCost":
            return self._calls_bounded(criterion)
        if not self.tree.knows(criterion) or not self._everything_kept(criterion):
            return False
        bound = self.tree.bound(criterion, self.values, self.limits.deadline.part(0.25))
        self.limits.spend(0.2)
        if bound is not None:
            self._tell(bound)
        return self.met(criterion)

    def _calls_bounded(self, criterion: int) -> bool:
        if self.areas is not None and not self.calls_bounded and self._everything_kept(criterion):
            bound, self.calls_bounded = self.areas.splits.cost_bound(self.limits.part(0.25))
            self._tell(NamedBound(criterion, bound, "splits", self.values[:criterion]))
        return self.met(criterion)

    def assigned(self, criterion: int, budget: float) -> bool:
        """Assign AppGroups to areas until that gains nothing any more."""
        if self.areas is None or self.dense.criteria[criterion][0] != "networkCost":
            return False
        idle, turn = 0, self._turn(budget / 2, budget / 2)
        while idle < 6 and not turn.over:
            values = self.values
            found = self.areas.proposed(self.solution, turn)
            if found is not None:
                self.offer(found, "networkCost")
            idle = 0 if self.values != values else idle + 1
            # Proposals look at splits that the bound may not have come to.
            if self._calls_bounded(criterion):
                return True
        return False

    def refill(self, criterion: int, _: float) -> bool:
        """Place independent pods again on all nodes, once for each priority."""
        name, priority = self.dense.criteria[criterion]
        if name not in MAXIMISED or priority is None or priority in self.priorities_filled:
            return False
        self.priorities_filled.add(priority)
        turn = self.limits.part(0.5)
        self.offer(refilled(self.dense, self.solution, priority, turn, self.options.workers, self.options.seed), name)
        return self.met(criterion)

    def _pooled_search(self, criterion: int) -> PooledSearch | None:
        """None where the model of pooled pods is not exact for the criterion, or too large."""
        if not self.pools or not self._everything_kept(criterion):
            return None
        reached = self.values[:criterion]
        known = self.pooled_searches.get(criterion)
        if criterion not in self.pooled_searches or (known is not None and known.reached != reached):
            try:
                known = PooledSearch(self.dense, criterion, reached, self.options.workers, self.chance)
            except TooLarge:
                known = None
            self.pooled_searches[criterion] = known
        return known

    def decide_homes(self, criterion: int, budget: float) -> bool:
        """Decide homes again, a few leaves at a time, until that gains nothing."""
        steps = self._pooled_search(criterion)
        if steps is None:
            return False
        name = self.dense.criteria[criterion][0]
        budget *= FOREMOST if criterion == self.proved and not steps.is_small else 1.0
        turn = self._turn(budget, WORK_SECONDS * budget)

        def told(solution: Solution) -> bool:
            turn.renew()
            self.offer(solution, name)
            return self.met(criterion)

        steps.improved(self.solution, turn, told)
        return self.met(criterion)

    def laid_out(self, criterion: int, budget: float) -> bool:
        """Ask the master for placements as good as its bound."""
        if not self.tree.knows(criterion) or not self._everything_kept(criterion) or self.proved < criterion:
            return False
        began, before = time.monotonic(), self.limits.spent
        while not self.limits.over:
            until = self.limits.deadline.part(0.75 if self.tree.sees_equal_blocks else 0.25)
            found = self.tree.propose(criterion, self.values, until, self._solver(10.0))
            self.limits.spend(4.0)
            if found is None:
                break
            self.offer(found, self.dense.criteria[criterion][0])
            used = self.limits.spent - before if self.options.workers == 1 else time.monotonic() - began
            if self.met(criterion) or used > FOREMOST * budget:
                break
        return self.met(criterion)

    def packed(self, criterion: int, budget: float) -> bool:
        """Pack gangs of a priority, and of higher ones, leaf by leaf."""
        (name, priority), former = self.dense.criteria[criterion], self.solution
        if (
            name != "admitted"
            or priority is None
            or not all(each in MAXIMISED for each, _ in self.dense.criteria[: criterion + 1])
        ):
            return False
        lower = self._lower(criterion)
        stays = [number for number, group in enumerate(self.dense.groups) if group.priority < priority]
        self.packings += 1
        found = relaxed_and_fixed(
            self.dense,
            self.solution,
            priority,
            [number for number in stays if number not in lower],
            self.limits.part(0.5, work=12.0 * budget),
            self.options.workers,
            self.options.seed + self.packings,
        )
        if found is not None:
            self.offer(complete(self.dense, found, self.limits.deadline, former), name)
        return self.met(criterion)

    def gangs_relaxed(self, criterion: int, budget: float) -> bool:
        """Search a few leaves at a time where gangs may have a part of their pods.

        The solution reached there is kept for the next time, whole gangs or not.
        """
        if not relaxable(self.dense, criterion):
            return False
        name, former = self.dense.criteria[criterion][0], self.solution
        budget *= FOREMOST if criterion == self.proved else 1.0
        relaxation, steps = self._relaxed_steps(criterion)
        groups, classes = self.dense.groups, self.dense.classes
        if all(sum(classes[index].size for index in groups[gang].classes) == 1 for gang in relaxation.gangs):
            return False

        def heard(solution: Solution) -> None:
            whole = relaxation.restored(solution)
            if whole is not None:
                self.offer(whole, name)

        self._run(steps, criterion, budget, heard)
        self.offer(complete(self.dense, self.solution, self.limits.deadline, former), name)
        return self.met(criterion)

    def neighbourhoods(self, criterion: int, budget: float) -> bool:
        """Search a few leaves at a time; where the model of pooled pods is small, from the second round."""
        few = self._few_pooled(criterion) is not None
        if few and budget <= FIRST_BUDGET:
            return False
        name, former = self.dense.criteria[criterion][0], self.solution
        budget *= FOREMOST if criterion == self.proved and not few else 1.0
        self._run(self._steps(criterion), criterion, budget, lambda solution: self.offer(solution, name))
        if self._lower(criterion):
            self.offer(complete(self.dense, self.solution, self.limits.deadline, former), name)
        return self.met(criterion)

    def _run(
        self, steps: LargeNeighbourhoodSearch, criterion: int, budget: float, heard: Callable[[Solution], None]
    ) -> None:
        turn = self._turn(budget, WORK_SECONDS * budget)

        def told(solution: Solution) -> bool:
            if criterion == self.proved:  # what counts most is not left as long as it gets better
                turn.renew()
            heard(solution)
            return self.met(criterion)

        steps.run(turn, told)

    def _turn(self, work: float, seconds: float) -> Budget:
        """So much work; several workers also end after the seconds that one would need for it, since steps may hang on
        more than their work (a busy machine, a slow executor).
        """
        return self.limits.part(work=work, idle=math.inf if self.options.workers == 1 else seconds)

    def _relaxed_steps(self, criterion: int) -> tuple[GangRelaxation, LargeNeighbourhoodSearch]:
        former = self.relaxed.get(criterion)
        relaxation = GangRelaxation(self.dense, criterion, self.solution)
        start = relaxation.relaxed(self.solution)
        if former is not None and former[0].class_of == relaxation.class_of:
            reached = former[1].incumbent.solution
            told, found = (score_solution(relaxation.dense, each) for each in (start, reached))
            start = start if beats(relaxation.dense, told, found) else reached
        last = len(relaxation.dense.criteria) - 1
        steps = LargeNeighbourhoodSearch(relaxation.dense, last, start, self.options.seed, self.chance, self.pool)
        if relaxation.is_tied:
            # All pods placed one by one are one group: what is tied to it, nearly all that waits, is locked by a step.
            steps.most_running = 1
        if former is not None:
            steps.learn_from(former[1])
        self.relaxed[criterion] = relaxation, steps
        return relaxation, steps

    def _steps(self, criterion: int) -> LargeNeighbourhoodSearch:
        start = self.steps_from(criterion)
        if criterion in self.steps:
            self.steps[criterion].restart(start)
        else:
            self.steps[criterion] = LargeNeighbourhoodSearch(
                self.dense, criterion, start, self.options.seed, self.chance, self.pool
            )
        return self.steps[criterion]

    def steps_from(self, criterion: int) -> Solution:
        """The solution without lower priorities; they get the room that is left when the steps are over."""
        lower, classes = self._lower(criterion), self.dense.classes
        return self.solution.only(lambda index, _: classes[index].group not in lower)

    def _lower(self, criterion: int) -> frozenset[int]:
        """Pods of lower priorities would hide the room that is stranded, and a gang that is held elsewhere would have
        to stay whole. Those that others may need are kept: by calls (C8), kubelets (C10), or neighbours (C12, C14).
        """
        dense, counted = self.dense, self.dense.criteria[: criterion + 1]
        if dense.criteria[0][0] != "admitted" or any(name not in MAXIMISED for name, _ in counted):
            return frozenset()
        lowest = min((-math.inf if priority is None else priority) for _, priority in counted)
        return frozenset(
            number
            for number, group in enumerate(dense.groups)
            if group.priority < lowest and all(map(self._goes_alone, group.classes))
        )

    def _goes_alone(self, index: int) -> bool:
        one = self.dense.classes[index]
        return one.zones < 0 and one.neighbours < 0 and index not in self.dense.workload_of
