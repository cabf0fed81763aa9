"""The assembly: instance -> arrays -> greedy -> search -> placement -> verified, scored, judged, explained.

What takes long is imported when used, so that ``import placer`` stays instant.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from placer.errors import UsageError, VerificationFailed
from placer.instance import Finding, GroupKey, Instance
from placer.methods import METHODS
from placer.methods.numa.binding_order import aligned
from placer.placement import Placement, Value
from placer.result import WEIGHT, Bound, Judged, Reason, Result, Termination, TracePoint, Verdict, doubts, judge
from placer.score import placed_weight, score
from placer.verify import verify

if TYPE_CHECKING:
    from placer.dense import Dense
    from placer.methods.incumbent import Incumbent
    from placer.methods.process import ProcessResult

__all__ = ["solve"]

#: Where the searches are, by method: strings, so that only the child process imports the solver.
SEARCH = {
    "exact": "placer.methods.exact:search",
    "decomposed": "placer.methods.decomposed:search",
    "milp": "placer.methods.milp:search",
}

#: Methods that show only what they found themselves.
ALONE = ("exact", "milp")

#: Share of the time limit that is kept for having pods change places where kubelets sort them by age.
AGING = 0.05

#: A search that would have less than this is not started: importing the solver alone takes about as long.
LEAST_SECONDS = 0.8


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
) -> Result:
    """Decide where the pending pods go.

    Parameters
    ----------
    instance
        What :func:`placer.read` returned.
    method
        ``auto`` or ``decomposed`` (greedy, then neighbourhoods and where it is small enough the whole model for the
        time that is left; never worse than greedy), ``greedy``, or ``exact`` or ``milp`` (each shows only what its
        own search found).
    time_limit
        Seconds for the whole call; verifying and explaining always finish. None: until everything is proved.
    work_limit
        Deterministic time units of the solver in place of seconds; with ``workers=1`` repeatable.
    workers
        Solver threads, at least 1; default: the cores this process may use.
    seed
        0 .. 2^31 - 1.
    require_all
        Look for a proof that not all pods can be placed: only then may the verdict be INFEASIBLE.
    milp_solver
        PuLP's name of the solver that ``milp`` asks.
    executor
        Where parts of a large instance are solved, by name (:func:`placer.executors.open_executor`); it is opened in
        the process of the search, with one worker not at all.
    began
        ``time.monotonic()`` from which the limit counts, default now.
    watch
        Called whenever the answer or a bound gets better.

    Returns
    -------
    Result
        Verified. Without a placement only for ``exact`` and ``milp`` (verdict UNKNOWN).

    Raises
    ------
    UsageError
        An argument is out of its range.
    VerificationFailed
        A method's answer broke a rule: a bug.
    """
    job = _Job.checked(instance, method, time_limit, work_limit, workers, seed, milp_solver, began, watch)
    job.executor = executor
    incumbent = job.build()
    ended = job.greedy(incumbent)
    if method != "greedy":
        ended = job.search(incumbent, method if method in SEARCH else "decomposed")
    job.complete(incumbent)
    job.by_creation(incumbent)
    return job.result(incumbent, ended, require_all)


@dataclass
class _Job:
    """One call of :func:`solve`: what was asked, the clock, and what went wrong on the way."""

    instance: Instance
    method: str
    time_limit: float | None
    work_limit: float | None
    workers: int
    seed: int
    milp_solver: str
    began: float
    watch: Callable[[TracePoint], None] | None
    seconds: dict[str, float] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    executor: str = "local"

    @classmethod
    def checked(
        cls,
        instance: Instance,
        method: str,
        time_limit: float | None,
        work_limit: float | None,
        workers: int | None,
        seed: int,
        milp_solver: str,
        began: float | None,
        watch: Callable[[TracePoint], None] | None,
    ) -> _Job:
        """Check every argument, all faults at once."""
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        faults = [
            f"{name}: found {found}, expected {expected}"
            for name, found, expected, fine in (
                ("method", method, "one of " + ", ".join(METHODS), method in METHODS),
                ("time limit", time_limit, "seconds, at least 0", time_limit is None or 0 <= time_limit < float("inf")),
                ("work limit", work_limit, "a number above 0", work_limit is None or 0 < work_limit < float("inf")),
                ("workers", workers, "at least 1", workers is None or workers >= 1),
                ("seed", seed, "0 to 2147483647", 0 <= seed < 2**31),
            )
            if not fine
        ]
        if method == "milp":
            from placer.methods.milp import complaint

            wrong = complaint(milp_solver, work_limit)
            faults += [] if wrong is None else [f"milp solver: {wrong}"]
        if faults:
            raise UsageError("; ".join(faults))
        start = time.monotonic()
        job = cls(
            instance,
            method,
            time_limit,
            work_limit,
            workers or cores,
            seed,
            milp_solver,
            start if began is None else began,
            watch,
        )
        job.seconds["read"] = start - job.began
        return job

    def build(self) -> Incumbent:
        """Make the arrays, and an incumbent with the bounds that hold without search."""
        from placer.bounds import named_bounds
        from placer.dense import make_dense
        from placer.methods.incumbent import Incumbent

        start = time.monotonic()
        self.dense: Dense = make_dense(self.instance)
        incumbent = Incumbent(self.dense, self.began, self.watch)
        incumbent.bounded(*named_bounds(self.dense))
        self.seconds["build"] = time.monotonic() - start
        return incumbent

    def greedy(self, incumbent: Incumbent) -> Termination:
        """Answer at once; under a method that is a search itself the greedy is only its hint."""
        from placer.methods.greedy import greedy

        start = time.monotonic()
        self.hint = greedy(self.dense, seed=self.seed)
        if self.method not in ALONE:
            incumbent.offer(self.hint, "greedy")
            self._count(incumbent)
        self.seconds["solve"] = time.monotonic() - start
        return Termination.FINISHED

    def _count(self, incumbent: Incumbent) -> None:
        """Add the bounds that counting gives for the values in hand."""
        from placer.bounds import bounds_for

        incumbent.bounded(*bounds_for(self.dense, incumbent.values))

    def search(self, incumbent: Incumbent, name: str) -> Termination:
        """Run a search for the time that is left; an interrupt at any moment of it ends it, and the answer stays."""
        try:
            return self._search(incumbent, name)
        except KeyboardInterrupt:
            return Termination.INTERRUPTED

    def _search(self, incumbent: Incumbent, name: str) -> Termination:
        """Run a search in a process of its own."""
        from placer.methods.events import SearchOptions
        from placer.methods.process import run_apart

        start = time.monotonic()
        if incumbent.solution is not None and self._proved(incumbent):
            return Termination.PROVED
        left = None if self.time_limit is None else self.began + self.time_limit - start
        if left is not None and left > LEAST_SECONDS:
            left -= self._reserve(self.hint)
        deadline = None if left is None else start + left
        if left is not None and left < LEAST_SECONDS:
            return Termination.TIME
        options = SearchOptions(
            left, self.work_limit, self.workers, self.seed, self.hint, self.milp_solver, self.executor
        )
        ended = run_apart(SEARCH[name], (self.dense, options), lambda event: incumbent.hear(event, name), deadline)
        self.seconds["solve"] += time.monotonic() - start
        return self._termination(ended, name)

    def _reserve(self, solution: dict[tuple[int, int], int]) -> float:
        """Seconds to keep: for verifying, explaining and writing three times what the greedy's answer needs."""
        start = time.monotonic()
        placement = self._placement(solution)
        broken = verify(self.instance, placement)
        score(self.instance, placement)
        if broken:
            raise VerificationFailed(_complaint("greedy", [violation.message for violation in broken]))
        aging = 0.0 if self.dense.numa is None or self.time_limit is None else AGING * self.time_limit
        return 0.1 + 3 * (time.monotonic() - start) + aging

    def _termination(self, ended: ProcessResult, name: str) -> Termination:
        from placer.methods.process import ProcessEnd

        if ended.how is ProcessEnd.RETURNED:
            return Termination(ended.value)
        if ended.how is ProcessEnd.DIED:
            self.findings.append(
                Finding("SolverDied", name, f"The search ended with {ended.detail}; its last answer is kept.")
            )
            return Termination.FINISHED
        return Termination.TIME if ended.how is ProcessEnd.KILLED else Termination.INTERRUPTED

    def _proved(self, incumbent: Incumbent) -> bool:
        values = (Value(name, value, priority) for (name, priority), value in self._named(incumbent))
        return all(judged.met for judged in judge(tuple(values), incumbent.bounds()))

    def _named(self, incumbent: Incumbent) -> list[tuple[tuple[str, int | None], int]]:
        return list(zip(self.dense.levels, incumbent.values, strict=True))

    def complete(self, incumbent: Incumbent) -> None:
        """Add what still fits without moving anything: every answer is maximal, the greedy's by itself."""
        from placer.methods.greedy import complete

        if incumbent.solution is not None and incumbent.method not in (None, "greedy"):
            incumbent.offer(complete(self.dense, incumbent.solution), incumbent.method, "complete")
            self._count(incumbent)

    def by_creation(self, incumbent: Incumbent) -> None:
        """Have pods change places where kubelets sort them by age; all values stay as they are (C10)."""
        if self.dense.numa is None or not incumbent.solution:
            return
        from placer.methods.numa.creation_order import swap_towards_creation_order

        start = time.monotonic()
        left = math.inf
        if self.time_limit is not None:
            left = max(0.0, self.began + self.time_limit - start) / 2
        if not left:
            return
        created = [self.instance.pods[each.pods[0]].created for each in self.dense.classes]
        incumbent.instead(swap_towards_creation_order(self.dense, incumbent.solution, created, self.seed, left))
        self.seconds["solve"] += time.monotonic() - start

    def _placement(self, solution: dict[tuple[int, int], int]) -> Placement:
        """By name, the pods of each node in an order that its kubelet admits."""
        return aligned(self.instance, self.dense.placement(solution))

    def result(self, incumbent: Incumbent, termination: Termination, require_all: bool) -> Result:
        """Verify and score by name, put the bounds beside the values, say why what is pending stays so."""
        start = time.monotonic()
        placement = None if incumbent.solution is None else self._placement(incumbent.solution)
        objective = self._judged(placement, incumbent)
        if placement is not None and all(judged.met for judged in objective):
            termination = Termination.PROVED
        elif termination is Termination.PROVED:
            termination = Termination.FINISHED
        verdict = _verdict(self.instance, objective, placement, require_all)
        weight = self._weight(placement, incumbent)
        reasons = self._reasons(incumbent)
        self.seconds["verify"] = time.monotonic() - start
        self.seconds["total"] = time.monotonic() - self.began
        return Result(
            instance=self.instance,
            placement=placement,
            method=incumbent.method or self.method,
            termination=termination,
            verdict=verdict,
            objective=objective,
            weight=weight,
            reasons=reasons,
            findings=tuple(sorted((*self.instance.findings, *self.findings))),
            trace=tuple(incumbent.trace),
            seconds={name: round(self.seconds[name], 3) for name in ("read", "build", "solve", "verify", "total")},
            seed=self.seed,
            time_limit=self.time_limit,
            work_limit=self.work_limit,
        )

    def _judged(self, placement: Placement | None, incumbent: Incumbent) -> tuple[Judged, ...]:
        if placement is None:
            return ()
        broken = verify(self.instance, placement)
        if broken:
            raise VerificationFailed(_complaint(incumbent.method or "", [violation.message for violation in broken]))
        values = score(self.instance, placement)
        if tuple(value.value for value in values) != incumbent.values:
            raise VerificationFailed(f"the values of {incumbent.method} are {incumbent.values}, not those of {values}")
        objective = judge(values, incumbent.bounds())
        wrong = doubts(objective)
        self.findings += wrong
        return judge(values, [None] * len(values)) if wrong else objective

    def _weight(self, placement: Placement | None, incumbent: Incumbent) -> Judged:
        value = Value(WEIGHT, 0 if placement is None else placed_weight(self.instance, placement))
        total = sum(self.instance.weights.values())
        judged = Judged(value, Bound(total, "volume") if value.value == total else incumbent.weight_bound())
        self.findings += doubts([judged])
        doubted = any(finding.code == "BoundContradicted" for finding in self.findings)
        return Judged(value) if doubted else judged

    def _reasons(self, incumbent: Incumbent) -> dict[GroupKey, Reason]:
        from placer.reasons import reasons

        return dict(reasons(self.instance, self.dense, incumbent.solution or {}))


def _verdict(
    instance: Instance, objective: tuple[Judged, ...], placement: Placement | None, require_all: bool
) -> Verdict:
    if placement is None:
        return Verdict.UNKNOWN
    if require_all and _cannot_place_all(instance, objective):
        return Verdict.INFEASIBLE
    return Verdict.OPTIMAL if all(judged.met for judged in objective) else Verdict.FEASIBLE


def _cannot_place_all(instance: Instance, objective: tuple[Judged, ...]) -> bool:
    """Whether a bound on ``placed`` proves that one pending pod stays out.

    A bound holds among the placements that equal this answer on the values above it; a placement of all pods is among
    them only while those values are what all pods together would give.
    """
    for judged in objective:
        if judged.value.name not in ("admitted", "placed"):
            return False
        groups = [group for group in instance.groups.values() if group.priority == judged.value.priority]
        if judged.value.name == "admitted":
            every = sum(instance.need_weights[group.key] for group in groups)
        else:
            every = sum(instance.weights[pod] for group in groups for pod in group.pending)
        if judged.bound is not None and judged.bound.value < every:
            return True
        if judged.value.value != every:
            return False
    return False


def _complaint(method: str, messages: list[str]) -> str:
    shown = "\n".join(f"  {message}" for message in messages[:20])
    return f"the answer of {method} breaks {len(messages)} rules; this is a bug in placer:\n{shown}"
