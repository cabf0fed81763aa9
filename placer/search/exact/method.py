"""The exact model and its search: the values one after another, each keeping those before."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from ortools.sat.python import cp_model

from placer.arrays import Dense, Solution, beats, score_solution
from placer.bounds import NamedBound, bounds_for, named_bounds
from placer.bounds.lp import lp_bounds
from placer.problem.placement import MAXIMISED
from placer.search.events import BoundFound, Emit, Improved, SearchOptions, SolverFault, TooLarge
from placer.search.exact.calls import CallPairs
from placer.search.exact.constraints import ExactConstraints, Implied
from placer.search.exact.count_model import Linear, limited_solver, set_hint
from placer.search.exact.neighbour_rows import NeighbourRows
from placer.search.exact.node_sets import make_node_sets
from placer.search.exact.objective import ExactObjective
from placer.search.exact.pooled_model import PooledModel
from placer.search.exact.variables import ExactVariables, count_sizes, make_bundles
from placer.search.exact.zones import Zones, count_choices

#: A model with more counts and homes than this is not built: it would need gigabytes, and no solver gets anywhere with
#: it.
MOST_VARIABLES = 400_000

#: Seconds to build a model, per count and home: measured 0.1 to 0.25 ms on a busy machine.
BUILD_SECONDS = 0.0002

#: Seconds for a value in the first round, with one worker deterministic time: soon every value has been looked at.
FIRST_BUDGET = 2.0


@dataclass(frozen=True)
class Must:
    """Demands of fixed pods on a part of the whole: groups and subgroups that must stay ready.

    ``surplus``, with ``networkCost: majority``: workload and area to how many more callees may be too far from pods
    that run there than near enough; absent: as many as by running callees alone.
    """

    groups: frozenset[int] = frozenset()
    sub_groups: frozenset[int] = frozenset()
    surplus: Mapping[tuple[int, int], int] = field(default_factory=dict)


#: Nothing is held fast.
NOTHING = Must()


class ExactModel(ExactObjective):
    """One CP-SAT model for all values; values reached are kept by rows that are added one after another.

    ``must``: of a neighbourhood: the demands of the pods outside. ``seconds``: a model that would take longer to build
    counts as too large. ``criterion``: the highest of ``Dense.criteria`` that it can aim at or keep; None: all. Only
    those from ``networkCost`` on tell nodes of an area apart.
    """

    def __init__(
        self, dense: Dense, must: Must = NOTHING, seconds: float = math.inf, *, criterion: int | None = None
    ) -> None:
        self.apart = self.tells_apart(dense, criterion)
        bundles, places = make_bundles(dense), make_node_sets(dense, apart=self.apart)
        sizes = count_sizes(dense, bundles, places)
        size = sum(int(np.count_nonzero(row)) for row in sizes)
        size += sum(len(bundle.homes) for bundle in (*bundles.gangs, *bundles.parts))
        size += count_choices(dense, bundles, places, sizes)
        most = min(MOST_VARIABLES, seconds / BUILD_SECONDS)
        if size > most:
            raise TooLarge(f"{size:,} variables, at most {int(most):,}")
        variables = ExactVariables(dense, bundles, places)
        calls = None if dense.network is None else CallPairs(variables, dense.network, tight=self.apart)
        if calls is not None and size + calls.count > most:
            raise TooLarge(f"{size + calls.count:,} variables, at most {int(most):,}")
        super().__init__(variables, calls)
        self.zones = None if dense.numa is None else Zones(self.variables, dense.numa)
        self.neighbours = None if dense.neighbours is None else NeighbourRows(self.variables, dense.neighbours)
        self._add_rules(must.surplus)
        self.implied = Implied(self.variables)
        self.implied.rooms()
        self.implied.homes()
        self._require(must)

    def _add_rules(self, surplus: Mapping[tuple[int, int], int]) -> None:
        rules = ExactConstraints(self.variables)
        rules.once()
        self.variables.capacity()
        rules.gang()
        rules.subgroup()
        if self.neighbours is not None:
            self.neighbours.tier_limit()
        rules.tier_limit()
        if self.calls is not None:
            self.calls.network_cost(surplus)
            self.calls.bandwidth()
        if self.zones is not None:
            self.zones.add()
        rules.queue()
        if self.neighbours is not None:
            self.neighbours.add()

    @staticmethod
    def tells_apart(dense: Dense, criterion: int | None) -> bool:
        """Whether a model for a criterion must tell nodes of an area apart."""
        criteria = dense.criteria if criterion is None else dense.criteria[: criterion + 1]
        return dense.network is not None and ("networkCost", None) in criteria

    def _require(self, must: Must) -> None:
        for bundle, active in zip(self.variables.all, self.variables.active, strict=True):
            ready = must.groups if bundle.policy < 0 else must.sub_groups
            if active is not None and not ready.isdisjoint(bundle.members):
                self.proto.add(active == bundle.many)

    def highest(self, row: Linear) -> int:
        """Upper bound of a row with positive coefficients; the counts of an item share its pods."""
        counts = enumerate(self.variables.counts)
        owner = {variable.index: item for item, by_place in counts for variable in by_place.values()}
        best: dict[int, int] = {}
        others = 0
        for variable, coefficient in zip(row.variables, row.coefficients, strict=True):
            item = owner.get(variable.index)
            if item is None:
                others += coefficient * list(self.proto.proto.variables[variable.index].domain)[-1]
            else:
                best[item] = max(best.get(item, 0), coefficient)
        return others + sum(self.variables.bundles.items[item].total * most for item, most in best.items())

    def fill(self) -> None:
        """From now on everything is placed; only where the kept values imply it."""
        self.implied.full()

    def hint(self, solution: Solution) -> list[int]:
        """Hint every variable with a solution that keeps all rules; return the values."""
        self.admitted(solution)  # from now on the order that it gives is known, where the hint deals pods out to zones
        values = self.variables.encode(solution)
        set_hint(self.proto, values)
        return values

    def admitted(self, solution: Solution) -> Solution | None:
        """The solution in an order in which all pods are admitted (C10, C12); None where there is none."""
        found = solution if self.dense.numa is None else self.dense.numa.ordered(solution)
        return found if found is not None and self.dense.orderable(found) else None

    def exclude(self, solution: Solution) -> bool:
        """Exclude the counts of a solution that no order admits (C10, C12); False: there are none."""
        if self.zones is not None and self.zones.exclude(solution):
            return True
        if self.neighbours is None or self.admitted(solution) is not None:
            return False
        self.neighbours.exclude(solution, self.variables.encode(solution))
        return True

    @property
    def unsure(self) -> bool:
        """Whether more may have been excluded than C10 and C12 ask for, so that bounds do not count."""
        unsure = self.zones is not None and self.zones.unsure
        return unsure or (self.neighbours is not None and self.neighbours.unsure)

    def read(self, values: Sequence[int]) -> Solution:
        """Solution of some values of the variables."""
        found = self.variables.decode(values)
        return found if self.zones is None else self.zones.arranged(found, values)


def search(dense: Dense, options: SearchOptions, emit: Emit) -> str:
    """Find the best placement and prove it, value after value.

    Parameters
    ----------
    options
        Limits, threads, seed and a solution to start from. With one worker and no deadline the same input gives
        the same events.
    emit
        Gets every better solution at once, and every bound.

    Returns
    -------
    str
        ``proved``: every value met its bound. ``time``: a limit was reached. ``finished``: the model would be too large
        (:data:`MOST_VARIABLES`); named bounds only.

    Raises
    ------
    SolverFault
        The solver called a model infeasible or invalid that has a solution, or proved a bound that does not hold.
    """
    return ExactSearch(dense, options, emit).run()


def safe_bound(bound: float, maximised: bool) -> int:
    """Return the solver's bound as an integer that is certainly one, despite floats."""
    slack = max(1e-6, abs(bound) * 1e-15)
    return math.floor(bound + slack) if maximised else math.ceil(bound - slack)


class ExactSearch:
    """One search: the best solution so far, the model of the round, and how many values are proved."""

    #: Where the model is too large for a proof, the search ends after a round of so much.
    last_budget = 0.0

    def __init__(self, dense: Dense, options: SearchOptions, emit: Emit) -> None:
        self.dense, self.options, self.emit = dense, options, emit
        self.limits = options.budget
        self.solution = options.hint or Solution()
        self.values = score_solution(dense, self.solution)
        self.told: tuple[int, ...] | None = None
        self.bounds: set[NamedBound] = set()
        self.proved = 0
        self.too_large = False

    def run(self) -> str:
        """Decide all values with little effort, then those not proved with more, and so on."""
        for bound in named_bounds(self.dense):
            self._tell(bound)
        for bound in lp_bounds(self.dense, self.values, self.limits.deadline.part(0.1)):
            self._tell(bound)
        budget = FIRST_BUDGET
        while True:
            self._round(budget)
            if self.proved == len(self.dense.criteria):
                self.offer(self.solution, "proved")  # also where there is no value at all to decide
                return "proved"
            if self.limits.over:
                return "time"
            if self.too_large and budget >= self.last_budget:
                return "finished"
            budget *= 4.0

    def _round(self, budget: float) -> None:
        self.model: ExactModel | PooledModel | None = None
        self.kept, self.filled = 0, False
        for criterion in range(self.proved, len(self.dense.criteria)):
            if self.decide(criterion, budget) and self.proved == criterion:
                self.proved += 1
                self.offer(self.solution, "proved")

    def decide(self, criterion: int, budget: float) -> bool:
        """Make one value better; say whether it is proved as far as those before it are."""
        return self.met(criterion) or (not self.limits.over and self.solve(criterion, budget))

    def offer(self, solution: Solution, phase: str) -> None:
        """Take and emit a solution that is better than the best so far, or the first one, if it has an order (C12)."""
        if not self.dense.orderable(solution):
            return
        values = score_solution(self.dense, solution)
        if beats(self.dense, values, self.values):
            self.solution, self.values = solution, values
        if self.told is None or beats(self.dense, values, self.told):
            self.told = values
            self.emit(Improved(solution, phase))

    def met(self, criterion: int) -> bool:
        """Whether a bound proves that nothing beats the value; emits the bounds it finds."""
        for bound in self._bounds_that_hold():
            if bound.criterion == criterion and self.values[criterion] == bound.bound:
                self._tell(bound)
                return True
        return False

    def _tell(self, bound: NamedBound) -> None:
        if bound not in self.bounds:
            self.bounds.add(bound)
            self.emit(bound)

    def solve(self, criterion: int, budget: float) -> bool:
        """Solve the whole model for a criterion; say whether its value is proved as far as those before it are."""
        name = self.dense.criteria[criterion][0]
        try:
            model = self._model_for(criterion, budget)
        except TooLarge:
            self.too_large = True
            return False
        value, end = model.aim(criterion), time.monotonic() + budget
        self._use_bound(model, criterion)
        while True:
            solver, optimal, stands = self._once(model, name, budget)
            if solver is None or model.unsure:
                return False
            if stands or self.limits.over or time.monotonic() > end:
                break
        bound = safe_bound(solver.best_objective_bound, name in MAXIMISED) if value.variables else value.constant
        return self._judge(criterion, bound, optimal and stands)

    def _use_bound(self, model: ExactModel | PooledModel, criterion: int) -> None:
        known = self._known_bounds(criterion)
        if known:
            model.limit(criterion, min(known) if self.dense.criteria[criterion][0] in MAXIMISED else max(known))

    def _known_bounds(self, criterion: int) -> list[int]:
        return [bound.bound for bound in self._bounds_that_hold() if bound.criterion == criterion]

    def _bounds_that_hold(self) -> Iterator[NamedBound]:
        yield from bounds_for(self.dense, self.values)
        yield from (bound for bound in self.bounds if bound.context in ((), self.values[: bound.criterion or 0]))

    def _once(
        self, model: ExactModel | PooledModel, name: str, budget: float
    ) -> tuple[cp_model.CpSolver | None, bool, bool]:
        """Give the solver, whether it called its solution optimal, and whether that stands.

        No solver where it was cut before it had a solution: its bound is then only a default. Orders that kubelets
        refuse are excluded from the model.
        """
        model.hint(self.solution)
        solver, watch = self._solver(budget), _SolutionWatch(self, model, name)
        status = solver.solve(model.proto, watch)
        self.limits.spend(solver.response_proto.deterministic_time)
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE, cp_model.UNKNOWN):
            raise SolverFault(f"{solver.status_name(status)} while {name} is decided")
        if status == cp_model.UNKNOWN:
            return None, False, False
        found = model.read(list(solver.response_proto.solution))
        for each in watch.refused:
            model.exclude(each)
        admitted = model.admitted(found)
        if admitted is None:
            model.exclude(found)
        else:
            self.offer(admitted, name)
        return solver, status == cp_model.OPTIMAL, admitted is not None

    def _judge(self, criterion: int, bound: int, optimal: bool, by: str = "exact") -> bool:
        name, maximised = self.dense.criteria[criterion][0], self.dense.criteria[criterion][0] in MAXIMISED
        value = self.values[criterion]
        if (value > bound) if maximised else (value < bound):
            raise SolverFault(f"{name}: a bound of {bound} was proved, but there is {value}")
        if optimal and value != bound:
            raise SolverFault(f"{name}: {bound} was called optimal, the solution has {value}")
        if self.proved == criterion:
            self._tell(BoundFound(criterion, bound, by, self.values[:criterion]))
        return value == bound

    def _model_for(self, criterion: int, budget: float) -> ExactModel | PooledModel:
        pooled = self._everything_kept(criterion) and self.pools
        made = isinstance(self.model, PooledModel) if pooled else isinstance(self.model, ExactModel)
        if self.model is None or not made or self.model.apart != ExactModel.tells_apart(self.dense, criterion):
            seconds = self.building(budget)
            self.model = (
                PooledModel(self.dense, min(MOST_VARIABLES, seconds / BUILD_SECONDS))
                if pooled
                else ExactModel(self.dense, seconds=seconds, criterion=criterion)
            )
            self.kept, self.filled = 0, False
        for before in range(self.kept, criterion):
            self.model.keep(before, self.values[before])
        self.kept = criterion
        if not self.filled and self._everything_kept(criterion):
            self.filled = True
            self.model.fill()
        return self.model

    @cached_property
    def pools(self) -> bool:
        """Whether the model of pooled pods is exact for the instance."""
        return PooledModel.knows(self.dense)

    def building(self, budget: float) -> float:  # noqa: ARG002  # others look at it
        """Seconds that building the model may take."""
        return self.limits.seconds / 2

    def _everything_kept(self, criterion: int) -> bool:
        kept = {self.dense.criteria[before] for before in range(criterion)}
        if any(("placed", group.priority) not in kept for group in self.dense.groups):
            return False
        return sum(self.solution.values()) == sum(pod_class.size for pod_class in self.dense.classes)

    def _solver(self, budget: float) -> cp_model.CpSolver:
        """With one worker only deterministic time ends the solver before the limit does."""
        alone = self.options.workers == 1
        solver = limited_solver(
            work=min(self.limits.work, budget) if alone else self.limits.work,
            seconds=self.limits.seconds if alone else min(self.limits.seconds, budget),
            num_workers=self.options.workers,
            random_seed=self.options.seed,
        )
        # With so few workers no subsolver uses the LP fully, and it is the LP that proves bounds here.
        if self.options.workers <= 3:
            solver.parameters.subsolvers.extend(["max_lp"])
        if self.dense.network is not None and self.dense.network.majority:
            presolve_with_care(solver)
        return solver


def presolve_with_care(solver: cp_model.CpSolver) -> None:
    """Leave out of presolve the search for rows within other rows.

    With it CP-SAT 9.15 calls models infeasible that have solutions (google/or-tools#5274): seen with ``majority``.
    """
    solver.parameters.presolve_inclusion_work_limit = 0


class _SolutionWatch(cp_model.CpSolverSolutionCallback):
    """Emits every better solution as soon as it is found, so that a killed process loses nothing.

    ``refused`` are those that the model allowed and kubelets refuse (C10).
    """

    def __init__(self, search: ExactSearch, model: ExactModel | PooledModel, phase: str) -> None:
        super().__init__()
        self._search, self._model, self._phase = search, model, phase
        self.refused: list[Solution] = []

    def on_solution_callback(self) -> None:
        found = self._model.read(list(self.response_proto.solution))
        admitted = self._model.admitted(found)
        if admitted is not None:
            self._search.offer(admitted, self._phase)
        else:
            self.refused.append(found)
