"""One call of :func:`solve`: an instance in, a verified answer with its bounds out.

In this order: ``build`` (arrays, an ``Incumbent`` with bounds that need no search), ``greedy``, ``search`` (a process
of its own that reports ``Improved`` and ``BoundFound``; none where all is proved already), ``complete`` (whatever still
fits is added), ``by_creation`` (C10), ``result`` (``Placement`` by name, verified and scored without the arrays;
reasons); ``first_fit`` in place of all of these where there is no answer a second after the limit. A search that dies
loses nothing that it reported before.

Modules that take long are imported when used, so that ``import placer`` stays instant.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from placer.answers.checks import checked, of_all_pods
from placer.base.cores import usable_cores
from placer.base.deadline import GRACE, NEVER, AskedDeadline, Deadline, OutOfTime, wall
from placer.base.errors import UsageError, VerificationFailed
from placer.problem import Finding, GroupKey, Instance, PodState
from placer.problem.placement import Placement, Value
from placer.problem.result import WEIGHT, Bound, Judged, Reason, Result, Termination, TracePoint, Verdict, doubts, judge
from placer.rules.scoring import placed_weight, score
from placer.search import METHODS
from placer.search.numa.binding_order import aligned
from placer.search.search_limits import limit_faults

if TYPE_CHECKING:
    from placer.arrays import Dense, Solution
    from placer.search.incumbent import Incumbent
    from placer.search.process import ProcessEnd

#: Where the searches are, by method: strings, so that only the child process imports the solver.
SEARCH = {
    "exact": "placer.search.exact.method:search",
    "decomposed": "placer.search.decomposed:search",
    "milp": "placer.search.milp.method:search",
}

#: Methods that show only what they found themselves.
ALONE = ("exact", "milp")

#: Share of the time limit that is kept for having pods change places where kubelets sort them by age.
AGING = 0.05

#: What is kept for the end of the call, as multiples of what was measured in it, so that the load of the machine is in
#: it. On 10,000 nodes ending without reasons (adding what fits, naming, verifying, scoring, the document, the summary)
#: takes 2.2 to 3.6 times as long as naming, verifying and scoring the greedy's answer; reasons for some hundreds of
#: groups 3.3 times as long as making the arrays; the document and the summary 1.5 times as long as verifying.
ENDING, REASONING, WRITING = 3.0, 3.0, 2.0

#: Most of the time limit that is kept for reasons.
REASONING_SHARE = 0.1

#: Seconds after which the greedy stops where a caller waits to take a part of its answer.
FIRST_ANSWER = 0.5

#: A search that would have less than this is not started: importing the solver alone takes about as long.
LEAST_SECONDS = 0.8


class Meanwhile(Protocol):
    """Work of a caller while a search runs."""

    def fix(self, placement: Placement, /) -> Instance | None:
        """Take a part of the greedy's answer: the instance with that bound, which the search keeps; None: nothing."""

    def enough(self) -> ProcessEnd | None:
        """How the search ends where its answer is wanted now, else None; asked again and again."""


def solve(
    instance: Instance,
    *,
    method: str = "auto",
    time_limit: float | None = 60.0,
    work_limit: float | None = None,
    workers: int | None = None,
    seed: int = 0,
    require_all: bool = False,
    milp_solver: str = "HiGHS",
    executor: str = "local",
    began: float | None = None,
    watch: Callable[[TracePoint], None] | None = None,
    earlier: Result | None = None,
    meanwhile: Meanwhile | None = None,
) -> Result:
    """Decide where the pending pods go.

    Parameters
    ----------
    instance, workers, seed, require_all, milp_solver
        As :func:`placer.solve` takes them, with its results and errors.
    method
        ``auto`` or ``decomposed`` (greedy, then neighbourhoods and where it is small enough the whole model for the
        time that is left; never worse than greedy), ``greedy``, or ``exact`` or ``milp`` (each shows only what its own
        search found).
    time_limit
        Seconds for the whole call; reading and verifying always finish. Under other methods than ``greedy`` the greedy
        stops where it stands when the limit is near, after as long as reading took at the earliest. All else ends a
        second after the limit, with a first fit where nothing is decided. None: until everything is proved.
    work_limit
        Deterministic time units of the solver in place of seconds; with ``workers=1`` repeatable.
    executor
        Where parts of a large instance are solved (:func:`placer.base.executors.open_executor`); with one worker it is
        not used.
    began
        ``time.monotonic()`` from which the limit counts, default now.
    watch
        Called whenever the answer or a bound gets better.
    earlier
        An answer of an earlier call to the very same instance, which the search continues, with its proofs.
    meanwhile
        Takes a part of the greedy's answer before a search begins, and may end the search early; only where there is
        one that improves the greedy's answer.

    Raises
    ------
    VerificationFailed
        A method's answer broke a rule: a bug.
    """
    start = time.monotonic()
    workers, began = usable_cores() if workers is None else workers, start if began is None else began
    about = (time_limit, work_limit, workers, seed, milp_solver, executor, began)
    call = _SolveCall(instance, method, *about, watch=watch, earlier=earlier, meanwhile=meanwhile)
    call.check()
    call.seconds["read"] = start - call.began
    return call.answer(require_all)


@dataclass
class _SolveCall:
    instance: Instance
    method: str
    time_limit: float | None
    work_limit: float | None
    workers: int
    seed: int
    milp_solver: str
    executor: str
    began: float
    watch: Callable[[TracePoint], None] | None
    earlier: Result | None = None
    meanwhile: Meanwhile | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    start: Placement | None = None  #: an answer that the search goes on from
    counted: tuple[int, ...] | None = None  #: values that were compared with bounds by counting
    verified: Placement | None = None  #: the last answer that the judge has seen
    ended_early: float = math.inf  #: ``time.monotonic()`` at which the caller wanted the answer

    def check(self) -> None:
        faults = limit_faults(self.time_limit, self.workers, [self.seed], self.work_limit)
        if self.method not in METHODS:
            from placer.base.text import found_like

            like = found_like(self.method, METHODS)
            faults.insert(0, f"method: found {self.method}, expected one of {', '.join(METHODS)}{like}")
        if self.method == "milp":
            from placer.search.milp.solvers import complaint

            wrong = complaint(self.milp_solver, self.work_limit)
            faults += [] if wrong is None else [f"milp solver: {wrong}"]
        if faults:
            raise UsageError("; ".join(faults))

    def answer(self, require_all: bool) -> Result:
        incumbent, ended = self.first_answer()
        if incumbent is None:
            return self.first_fit()
        if ended is Termination.FINISHED and (fixed := self.fixed(incumbent)) is not None:
            placement, rest = fixed
            if self._proved(incumbent):
                return self.result(incumbent, Termination.PROVED, require_all, placement)
            return self.with_rest(incumbent, placement, rest, require_all)
        return self.result(incumbent, self.better(incumbent, ended), require_all)

    def first_answer(self) -> tuple[Incumbent | None, Termination]:
        """Whatever the input, reading and verifying alone may end later than a second after the limit."""
        incumbent = None
        try:
            with wall(self._wall):
                incumbent = self.build()
                return incumbent, self.greedy(incumbent)
        except OutOfTime:
            self.seconds |= {"build": 0.0, "solve": time.monotonic() - self.began - self.seconds["read"]}
            answered = incumbent is not None and incumbent.is_whole and self.method not in ALONE
            return incumbent if answered else None, Termination.TIME

    @property
    def _wall(self) -> Deadline:
        return Deadline(max(self._limit.at, self.began + self.seconds["read"]) + GRACE)

    def build(self) -> Incumbent:
        from placer.arrays.dense_builder import make_dense
        from placer.bounds import named_bounds
        from placer.search.incumbent import Incumbent

        start = time.monotonic()
        self.dense: Dense = make_dense(self.instance)
        incumbent = Incumbent(self.dense, self.began, self.watch)
        incumbent.add_bounds(*named_bounds(self.dense))
        self.seconds["build"] = time.monotonic() - start
        return incumbent

    def greedy(self, incumbent: Incumbent) -> Termination:
        """Each of its runs that is the best so far is an answer: an interrupt from then on ends it and keeps that."""
        from placer.search.greedy.multi_start import complete, greedy

        start = time.monotonic()
        alone, ended = self.method in ALONE, Termination.FINISHED
        try:
            heard = None if alone else partial(self._heard, incumbent)
            self.hint = greedy(self.dense, heard, *self._greedy_deadlines(start))
        except KeyboardInterrupt:
            if incumbent.solution is None:
                raise
            self.hint, ended = complete(self.dense, incumbent.solution), Termination.INTERRUPTED
        if not alone:
            incumbent.offer(self.hint, "greedy")
            if self.start is not None and incumbent.offer(self.dense.solution(self.start), "greedy"):
                self.hint = incumbent.solution or self.hint
            self._go_on(incumbent)
            self._count(incumbent)
        self.seconds["solve"] = time.monotonic() - start
        return ended

    def _heard(self, incumbent: Incumbent, found: Solution) -> bool:
        """Whether an answer is the best; only the first one is asked, as counting costs as much as a run."""
        first = incumbent.solution is None
        incumbent.offer(found, "greedy")
        if first:
            self._count(incumbent)
        return first and self._proved(incumbent)

    def _go_on(self, incumbent: Incumbent) -> None:
        if self.earlier is None or self.earlier.placement is None:
            return
        from placer.search.events import BoundFound

        if incumbent.offer(self.dense.solution(self.earlier.placement), self.earlier.method, "earlier"):
            self.hint = incumbent.solution or self.hint
        above = tuple(judged.value.value for judged in self.earlier.objective)
        incumbent.add_bounds(
            *(
                BoundFound(criterion, judged.bound.value, judged.bound.by, above[:criterion])
                for criterion, judged in enumerate(self.earlier.objective)
                if judged.bound is not None
            )
        )

    def _greedy_deadlines(self, start: float) -> tuple[Deadline, Deadline]:
        """When the greedy stops where it stands: it leaves the time to end; its first run has as long as reading had.

        Reading always finishes, and takes longer than a run of the greedy up to the largest clusters; so a limit that
        is over before there is anything to decide about still brings an answer. By itself the greedy never stops: it is
        repeatable.
        """
        if self.method == "greedy" or (self.time_limit is None and self.meanwhile is None):
            return NEVER, NEVER
        at = self._limit.at - (ENDING + REASONING) * self.seconds["build"]
        first = Deadline(start + (start - self.began))
        if self.meanwhile is None:
            return Deadline(at), first
        at = at if self.start is not None else min(at, start + FIRST_ANSWER)
        return AskedDeadline(at, lambda: self.start is not None and self._enough() is not None), first

    @property
    def _limit(self) -> Deadline:
        return Deadline(min(self.ended_early, math.inf if self.time_limit is None else self.began + self.time_limit))

    def _count(self, incumbent: Incumbent) -> None:
        from placer.bounds import bounds_for

        if incumbent.values != self.counted:
            self.counted = incumbent.values
            incumbent.add_bounds(*bounds_for(self.dense, incumbent.values))

    def better(self, incumbent: Incumbent, ended: Termination) -> Termination:
        try:
            with wall(self._wall):
                if self.method != "greedy" and ended is Termination.FINISHED:
                    ended = self.search(incumbent, self.method if self.method in SEARCH else "decomposed")
                self.complete(incumbent)
                self.by_creation(incumbent)
        except OutOfTime:
            incumbent.settle()
            ended = Termination.TIME
        return ended

    def search(self, incumbent: Incumbent, name: str) -> Termination:
        try:
            return self._search(incumbent, name)
        except KeyboardInterrupt:
            return Termination.INTERRUPTED

    def _search(self, incumbent: Incumbent, name: str) -> Termination:
        start = time.monotonic()
        if incumbent.solution is not None and self._proved(incumbent):
            return Termination.PROVED
        from placer.search.events import SearchOptions
        from placer.search.process import ProcessResult, run_apart

        if (end := self._enough()) is not None:
            return ProcessResult(end).termination
        until = self._limit
        if LEAST_SECONDS < until.left < math.inf:
            until = Deadline(until.at - self._reserve(self.hint))
        if until.left < LEAST_SECONDS:
            return Termination.TIME
        work = math.inf if self.work_limit is None else self.work_limit
        options = SearchOptions(until, work, self.workers, self.seed, self.hint, self.milp_solver, self.executor)
        heard, enough = partial(incumbent.on_event, method=name), None if self.meanwhile is None else self._enough
        ended = run_apart(SEARCH[name], (self.dense, options), heard, until, enough)
        self.seconds["solve"] += time.monotonic() - start
        self.findings += ended.findings(name)
        return ended.termination

    def _enough(self) -> ProcessEnd | None:
        """Work after an early end has half as long as after the limit."""
        end = self.meanwhile.enough() if self.meanwhile is not None else None
        if end is not None:
            self.ended_early = min(self.ended_early, time.monotonic() - GRACE / 2)
        return end

    def fixed(self, incumbent: Incumbent) -> tuple[Placement, Instance] | None:
        """The greedy's answer and the instance with the part that the caller takes of it, before reasons are sought."""
        if self.meanwhile is None or self.method in (*ALONE, "greedy") or not incumbent.solution:
            return None
        # Where kubelets choose zones, the answer may still change without a search: by the order of creation.
        last = self._limit.left < LEAST_SECONDS if not self._proved(incumbent) else self.dense.numa is not None
        if self.start is not None or last:
            return None
        placement = self._placement(incumbent.solution)
        self._values(placement, incumbent)
        rest = self.meanwhile.fix(placement)
        return None if rest is None else (placement, rest)

    def with_rest(self, incumbent: Incumbent, placement: Placement, rest: Instance, require_all: bool) -> Result:
        """Search in what is left, and answer for all; both answers keep what the caller took of the greedy's."""
        fixed, left = (
            tuple(bind for bind in placement.bindings if (rest.pods[bind.pod].state is PodState.BOUND) is taken)
            for taken in (True, False)
        )
        start = time.monotonic()
        hint = aligned(rest, Placement(left))
        inner = replace(
            self, instance=rest, start=hint, earlier=None, counted=None, verified=None, seconds={}, findings=[]
        )
        inner.seconds["read"] = self.seconds["read"]
        found = inner.answer(require_all=False)
        self.seconds["solve"] += time.monotonic() - start
        self.findings += inner.findings
        self.ended_early = inner.ended_early
        new = found.placement.bindings if found.placement is not None else left
        whole = aligned(self.instance, Placement((*fixed, *new)))
        incumbent.offer(self.dense.solution(whole), found.method, "rest")
        values = tuple(value.value for value in score(self.instance, whole))
        if values != incumbent.values:
            return self.result(incumbent, found.termination, require_all, placement)
        self._count(incumbent)
        return self.result(incumbent, found.termination, require_all, whole, found.reasons)

    def _reserve(self, solution: Solution) -> float:
        start = time.monotonic()
        placement = self._placement(solution)
        checked(self.instance, placement, "greedy")
        score(self.instance, placement)
        limit = self.time_limit or 0.0
        aging = 0.0 if self.dense.numa is None else AGING * limit
        reasoning = min(REASONING * self.seconds["build"], REASONING_SHARE * limit)
        return 0.1 + ENDING * (time.monotonic() - start) + reasoning + aging

    def _proved(self, incumbent: Incumbent) -> bool:
        named = zip(self.dense.criteria, incumbent.values, strict=True)
        values = tuple(Value(name, value, priority) for (name, priority), value in named)
        objective, _ = judge(values, incumbent.bounds())
        return all(judged.met for judged in objective)

    def complete(self, incumbent: Incumbent) -> None:
        from placer.search.greedy.multi_start import complete

        if incumbent.solution is not None and incumbent.method not in (None, "greedy"):
            whole = complete(self.dense, incumbent.solution, self._limit, incumbent.fullest)
            incumbent.offer(whole, incumbent.method, "complete")
            self._count(incumbent)

    def by_creation(self, incumbent: Incumbent) -> None:
        if self.dense.numa is None or not incumbent.solution:
            return
        from placer.search.numa.creation_order import swap_towards_creation_order

        start = time.monotonic()
        until = self._limit.part(0.5)
        if until.over:
            return
        created = [self.instance.pods[each.pods[0]].created for each in self.dense.classes]
        incumbent.replace(swap_towards_creation_order(self.dense, incumbent.solution, created, self.seed, until))
        self.seconds["solve"] += time.monotonic() - start

    def _placement(self, solution: Solution) -> Placement:
        return aligned(self.instance, self.dense.placement(solution))

    def result(
        self,
        incumbent: Incumbent,
        termination: Termination,
        require_all: bool,
        placement: Placement | None = None,
        reasons: Mapping[GroupKey, Reason] | None = None,
    ) -> Result:
        """A placement that is given is that of the solution, which does not say which of equal pods is where."""
        start = time.monotonic()
        if placement is None and incumbent.solution is not None:
            placement = self._placement(incumbent.solution)
        objective = self._judged(placement, incumbent)
        if placement is not None and all(judged.met for judged in objective):
            termination = Termination.PROVED
        elif termination is Termination.PROVED:
            termination = Termination.FINISHED
        verdict = _verdict(self.instance, objective, placement, require_all)
        weight = self._weight(placement, incumbent)
        if reasons is None:
            reasons = self._reasons(incumbent, time.monotonic() - start)
        self.seconds["verify"] = time.monotonic() - start
        return self._result(
            placement,
            method=incumbent.method or self.method,
            termination=termination,
            verdict=verdict,
            objective=objective,
            weight=weight,
            reasons=reasons,
            trace=tuple(incumbent.trace),
        )

    def _result(self, placement: Placement | None, **found: Any) -> Result:
        self.seconds["total"] = time.monotonic() - self.began
        return Result(
            instance=self.instance,
            placement=placement,
            findings=tuple(sorted((*self.instance.findings, *self.findings, *_ignored(self.instance)))),
            seconds={name: round(self.seconds[name], 3) for name in ("read", "build", "solve", "verify", "total")},
            seed=self.seed,
            time_limit=self.time_limit,
            work_limit=self.work_limit,
            **found,
        )

    def first_fit(self) -> Result:
        from placer.answers.reasons import late
        from placer.search.answer_by_name import FIRST_FIT, first_fit

        start = time.monotonic()
        placement = None if self.method in ALONE else first_fit(self.instance, Deadline.within(FIRST_FIT))
        self.seconds["solve"] += time.monotonic() - start
        start = time.monotonic()
        if placement is not None:
            checked(self.instance, placement, "first fit")
        self.seconds["verify"] = time.monotonic() - start
        return self._result(
            placement,
            method=self.method if placement is None else "first-fit",
            termination=Termination.TIME,
            verdict=Verdict.UNKNOWN if placement is None else Verdict.FEASIBLE,
            objective=() if placement is None else tuple(map(Judged, score(self.instance, placement))),
            weight=Judged(Value(WEIGHT, 0 if placement is None else placed_weight(self.instance, placement))),
            reasons=late(self.instance, placement or Placement()),
            trace=(),
        )

    def _judged(self, placement: Placement | None, incumbent: Incumbent) -> tuple[Judged, ...]:
        if placement is None:
            return ()
        objective, contradicted = judge(self._values(placement, incumbent), incumbent.bounds())
        self.findings += contradicted
        return objective

    def _values(self, placement: Placement, incumbent: Incumbent) -> tuple[Value, ...]:
        """The values of an answer, which keeps all rules; of one that a caller has taken a part of that is known."""
        if placement is not self.verified:
            checked(self.instance, placement, incumbent.method or "")
            self.verified = placement
        values = score(self.instance, placement)
        if tuple(value.value for value in values) != incumbent.values:
            raise VerificationFailed(f"the values of {incumbent.method} are {incumbent.values}, not those of {values}")
        return values

    def _gives_way(self) -> bool:
        """Whether somebody new waits for the end of this call."""
        if self.meanwhile is None:
            return False
        from placer.search.process import ProcessEnd

        return self._enough() is ProcessEnd.KILLED

    def _weight(self, placement: Placement | None, incumbent: Incumbent) -> Judged:
        value = Value(WEIGHT, 0 if placement is None else placed_weight(self.instance, placement))
        total = sum(self.instance.weights.values())
        judged = Judged(value, Bound(total, "volume") if value.value == total else incumbent.weight_bound())
        self.findings += doubts([judged])
        doubted = any(finding.code == "BoundContradicted" for finding in self.findings)
        return Judged(value) if doubted else judged

    def _reasons(self, incumbent: Incumbent, verified: float) -> dict[GroupKey, Reason]:
        from placer.answers.reasons import late, reasons
        from placer.arrays import Solution

        self._enough()
        until = AskedDeadline(self._limit.at + GRACE - WRITING * verified, self._gives_way)
        solution = incumbent.solution or Solution()
        try:
            with wall(until.not_before(GRACE / 2)):
                return reasons(self.instance, self.dense, solution, deadline=until, build=self.seconds["build"])
        except OutOfTime:
            return late(self.instance, self.dense.placement(solution))


def _ignored(instance: Instance) -> list[Finding]:
    allowed = {"evict lower-priority": instance.policy.evicts, "move fewest": instance.policy.moves}
    said = " and ".join(f"disruption.{key}" for key, value in allowed.items() if value)
    message = f"{said} of the Policy decides nothing here: nothing that runs is disturbed"
    return [Finding("DisruptionIgnored", "Policy", message)] if said else []


def _verdict(
    instance: Instance, objective: tuple[Judged, ...], placement: Placement | None, require_all: bool
) -> Verdict:
    if placement is None:
        return Verdict.UNKNOWN
    if require_all and _cannot_place_all(instance, objective):
        return Verdict.INFEASIBLE
    return Verdict.OPTIMAL if all(judged.met for judged in objective) else Verdict.FEASIBLE


def _cannot_place_all(instance: Instance, objective: tuple[Judged, ...]) -> bool:
    """A bound holds among the placements that equal this answer on the values above it; a placement of all pods is
    among them only while those values are what all pods together would give.
    """
    for judged in objective:
        if judged.value.name not in ("admitted", "placed"):
            return False
        every = of_all_pods(instance, judged.value)
        if judged.bound is not None and judged.bound.value < every:
            return True
        if judged.value.value != every:
            return False
    return False
