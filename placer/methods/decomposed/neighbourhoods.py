"""Neighbourhood search: a few leaves at a time are freed and decided again, several parts at once.

A greedy leaves room in pieces that no waiting gang fits; a model of everything sees too much at once. A step frees what
is new on some dozens of nodes, adds gangs that wait, and solves that part with everything else held fast. Parts that
are under way at the same time share no node, no group and no AppGroup, so that each may be put back without looking at
the others. Steps grow while they are solved to the end and shrink when they are not.

Source: solver-notes, "From a greedy to a full placement".
"""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from placer.dense import Dense, Solution, beats
from placer.executors import open_executor
from placer.methods.decomposed.choose import Chooser
from placer.methods.decomposed.choose_apps import company
from placer.methods.decomposed.incumbent_state import IncumbentState
from placer.methods.decomposed.leaves import bins_of
from placer.methods.decomposed.part import Part, make_part
from placer.methods.decomposed.step import Step, Stepped, carry_out
from placer.methods.exact.model import SolverFault

IntArray = npt.NDArray[np.int64]

__all__ = ["Crew", "Neighbourhoods", "StepLimits"]

#: Deterministic time of a step; about a third of a second.
STEP_WORK = 0.2
#: Deterministic time of a walk, which costs less to begin for each thing it looks at; about a second.
WALK_WORK = 0.6
#: Nodes of the first step, of the smallest one whose model is not too large for its time, and of the largest one.
FIRST, LEAST, MOST = 48, 8, 1024
#: By how much a step grows and shrinks.
GROW, SHRINK = 1.15, 0.88
#: Share of the steps that gather room beside.
GATHERING = 0.25
#: Share of the steps over NUMA zones that have no hint: there hints lead to the same few solutions.
FRESH = 0.5
#: How often an executor that broke down is opened anew.
REOPENED = 3

#: Asked before each step with the deterministic time of those before: seconds and deterministic time that it may take,
#: infinite where nothing limits it; None: no more steps.
StepLimits = Callable[[float], tuple[float, float] | None]


class Crew:
    """Those who carry out steps: an executor that is opened when it is needed, and again when it breaks down.

    Parameters
    ----------
    name
        As :func:`placer.executors.open_executor` takes it.
    workers
        How many steps may be under way at once.
    """

    def __init__(self, name: str, workers: int) -> None:
        self.name, self.workers = name, workers
        self._executor: Executor | None = None
        self._left = REOPENED

    def submit(self, step: Step) -> Future[Stepped]:
        """Begin a step."""
        if self._executor is None:
            self._executor = open_executor(self.name, self.workers)
            self._executor.__enter__()
        return self._executor.submit(carry_out, step)

    def broke(self, error: BaseException) -> None:
        """Open another executor with the next step; give up when this has happened too often."""
        if self._left == 0:
            raise SolverFault(f"steps cannot be carried out: {error}") from error
        self._left -= 1
        self.close()

    def close(self) -> None:
        """End whatever is under way."""
        if self._executor is not None:
            self._executor.__exit__(None, None, None)
        self._executor = None


class _Size:
    """How many nodes a step chooses; there are ``nodes`` of them, each with so many ``bins``."""

    def __init__(self, nodes: int, bins: int) -> None:
        least, first, most = (max(min(each, 2), each // bins**2) for each in (LEAST, FIRST, MOST))
        self._least, self._most = least, max(least, min(most, nodes))
        self._now = float(min(first, max(least, nodes // 2)))

    @property
    def nodes(self) -> int:
        """So many now."""
        return int(self._now)

    def learn(self, stepped: Stepped, nodes: int) -> None:
        """Grow after a step on so many nodes that was solved to the end, else shrink."""
        if stepped.too_large:
            self._least = max(2, min(self._least, nodes) // 2)
            self._now /= 2
        self._now = min(self._most, max(self._least, self._now * (GROW if stepped.optimal else SHRINK)))


@dataclass(frozen=True)
class _UnderWay:
    """A step that somebody carries out, and what to do with what comes of it."""

    part: Part
    nodes: IntArray
    way: int
    size: _Size | None
    slack: bool


class Neighbourhoods:
    """Steps on one value, each from the solution that those before have made.

    Parameters
    ----------
    dense
        The instance.
    level
        The value that is to get better; those before it never get worse.
    solution
        Where to start.
    seed
        Of the solver.
    chance
        Which nodes are chosen, and which groups that wait.
    crew
        Who carries out the steps.

    Attributes
    ----------
    spent
        Deterministic time of all steps so far.
    standing
        The solution at hand.
    sizes
        Of steps that decide about all pods on their nodes, and of those that hold some.
    """

    def __init__(
        self, dense: Dense, level: int, solution: Solution, seed: int, chance: random.Random, crew: Crew
    ) -> None:
        self.dense, self.level, self.seed, self.random, self.crew = dense, level, seed, chance, crew
        self.standing = IncumbentState(dense, solution)
        self.chooser = Chooser(self.standing, level, chance)
        self.company = company(dense)
        self.shared = bool(dense.queue_rows) or (dense.network is not None and bool(dense.network.room))
        # Steps over zones are short, and putting one back into a large solution takes a while: one more is ready.
        self.hands = crew.workers + (1 if dense.numa is not None and crew.workers > 1 else 0)
        bins = bins_of(dense)
        self.sizes = _Size(len(dense.nodes), bins), _Size(len(dense.nodes), bins)
        self.spent = 0.0
        self.steps = 0
        self.under_way: dict[Future[Stepped], _UnderWay] = {}

    def again(self, solution: Solution) -> None:
        """Begin with another solution; what has been learnt of sizes and ways stays."""
        self.standing = IncumbentState(self.dense, solution)
        self.chooser.standing = self.standing
        self.spent = 0.0

    def run(self, limits: StepLimits, told: Callable[[Solution], bool]) -> None:
        """Make steps until ``limits`` allows none or ``told``, which hears every better solution, says it is enough."""
        try:
            while self._fill(limits):
                done, _ = wait(self.under_way, return_when=FIRST_COMPLETED)
                for future in [each for each in self.under_way if each in done]:
                    if self._take(future) and told(dict(self.standing.solution)):
                        return
        finally:
            for future in self.under_way:
                future.cancel()
            self.under_way.clear()

    def _fill(self, limits: StepLimits) -> bool:
        """Begin as many steps as there are hands; say whether any is under way."""
        while len(self.under_way) < self.hands:
            allowed = limits(self.spent)
            if allowed is None:
                # With several hands the others' steps are not waited for: they would be over the limit as well.
                return False
            if not self._begin(*allowed):
                # A step that cost nothing (nothing to decide) counts all the same, or there would be no end.
                self.spent += STEP_WORK / 100
                if self.under_way:
                    break
        return True

    def _begin(self, seconds: float, work: float) -> bool:
        barred = np.zeros(len(self.dense.nodes), dtype=bool)
        still: set[int] = set()
        for each in self.under_way.values():
            barred[each.nodes] = True
            still.update(each.part.groups)
            still.update(group for app in each.part.apps for group in self.company[app])
        chosen = self.chooser.choose(self.sizes[0].nodes, self.sizes[1].nodes, barred, still)
        if not len(chosen.nodes):
            return False
        slack = not self.shared or not any(each.slack for each in self.under_way.values())
        nodes, pending = chosen.nodes.tolist(), chosen.pending
        part = make_part(self.standing, nodes, pending, still=still | chosen.held, slack=slack)
        if not part.dense.classes:
            return False
        self.steps += 1
        step = self._step(part, chosen.walk, seconds, work)
        try:
            future = self.crew.submit(step)
        except BrokenExecutor as error:
            self._lost(error)
            return False
        size = None if chosen.walk else self.sizes[bool(chosen.held)]
        self.under_way[future] = _UnderWay(part, chosen.nodes, chosen.way, size, slack)
        return True

    def _step(self, part: Part, walk: bool, seconds: float, work: float) -> Step:
        gather = self.random.random() < GATHERING
        fresh = self.dense.numa is not None and self.random.random() < FRESH
        seed = (self.seed + self.steps) % 2**31
        work = min(work, WALK_WORK if walk else STEP_WORK)
        return Step(part.dense, part.start, part.must, self.level, seconds, work, seed, gather, fresh, walk)

    def _take(self, future: Future[Stepped]) -> bool:
        """Put back what came of a step; say whether the value or one before it got better."""
        each = self.under_way.pop(future, None)
        if each is None:
            return False  # lost with the executor
        try:
            stepped = future.result()
        except BrokenExecutor as error:
            self._lost(error)
            return False
        if stepped.fault is not None:
            raise SolverFault(f"in a neighbourhood: {stepped.fault}")
        self.spent += stepped.work or STEP_WORK / 100
        if each.size is not None:
            each.size.learn(stepped, len(each.nodes))
        gain = self._put(each.part, stepped)
        self.chooser.learn(each.way, gain)
        return gain

    def _put(self, part: Part, stepped: Stepped) -> bool:
        """Take what a step found unless it makes things worse; say whether it makes them better.

        What a part gains the whole gains, unless another part that was under way counts on the same domain being in
        use; so values are counted anew only where something is gained.
        """
        found = stepped.solution
        if found is None or found == part.start:
            return False
        before = self.standing.values
        values = tuple(value + gain for value, gain in zip(before, stepped.gains, strict=True))
        if beats(self.dense, before, values, self.level + 1):
            return False
        better = beats(self.dense, values, before, self.level + 1)
        taken, put = part.named(part.start), part.named(found)
        self.standing.change(taken, put, None if better else values)
        if better and not beats(self.dense, self.standing.values, before, self.level + 1):
            self.standing.change(put, taken, before)
            return False
        return better

    def _lost(self, error: BaseException) -> None:
        """An executor broke down: what was under way is lost, nothing else."""
        self.under_way.clear()
        self.crew.broke(error)
