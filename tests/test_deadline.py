"""A call ends within two seconds of its limit, at any load: by a clock that only what is counted here moves."""

from __future__ import annotations

import itertools
import math
import signal
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

import placer.arrays.dense_builder
import placer.base.deadline
import placer.passes.scheduling_pass
import placer.search.greedy.multi_start as greedy_search
import placer.search.process
from placer.answers import checks
from placer.answers.reasons import explanation
from placer.answers.solving import solve
from placer.base.deadline import NEVER, Deadline, within
from placer.passes.scheduling_pass import Pass, PassOptions, PassSession, run_pass
from placer.problem import Instance
from placer.problem.result import Result, Termination
from placer.rules import verify
from placer.search.greedy.multi_start import greedy
from placer.search.process import ProcessEnd, ProcessResult
from tests.cluster.test_any_object import ALL_GOOD, Double, good, good_ones
from tests.world import World

#: The module: the package has a function of the same name.
assembly = __import__("sys").modules["placer.answers.solving"]

#: Seconds of each step on an idle machine, as measured on 10,000 nodes with some hundreds of gangs that wait.
BUILD, GREEDY, VERIFY, SCORE, COMPLETE, REASON, DOCUMENT, SUMMARY = 1.0, 3.7, 0.55, 0.2, 0.25, 0.03, 0.7, 0.4


class Clock:
    """Time that passes only where a step says so, ``load`` times as much as it would take alone."""

    def __init__(self, load: float) -> None:
        self.now, self.load = 1000.0, load
        self.module = SimpleNamespace(monotonic=lambda: self.now)

    def takes(self, seconds: float, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, and so much time."""

        def slow(*arguments: Any, **options: Any) -> Any:
            self.now += seconds * self.load
            return function(*arguments, **options)

        return slow


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], Clock]:
    """Make a clock of a load the one of a whole call; the search takes all that it is given, and the kill a while."""

    def make(load: float) -> Clock:
        made = Clock(load)
        for module in (assembly, placer.base.deadline, greedy_search):
            monkeypatch.setattr(module, "time", made.module)
        steps = [
            (placer.arrays.dense_builder, "make_dense", BUILD),
            (explanation, "make_dense", BUILD),
            (greedy_search, "greedy", GREEDY),
            (greedy_search, "complete", COMPLETE),
            (checks, "verify", VERIFY),
            (assembly, "score", SCORE),
            (explanation.Causes, "of", REASON),
        ]
        for where, name, seconds in steps:
            monkeypatch.setattr(where, name, made.takes(seconds, getattr(where, name)))

        def search(*arguments: Any) -> ProcessResult:
            made.now = max(made.now, arguments[3].at) + 0.05 * load
            return ProcessResult(ProcessEnd.KILLED)

        monkeypatch.setattr(placer.search.process, "run_apart", search)
        return made

    return make


def _waiting(groups: int) -> Instance:
    """Gangs of which some fit, in sizes that no counting settles: the search is asked, and all others need a reason."""
    world = World()
    world.nodes("a b c d", 5)
    for number, size in zip(range(groups), itertools.cycle((3, 2, 4))):
        world.pods_of(f"g{number}-0 g{number}-1 g{number}-2", world.gang(f"g{number}", 3), size)
    return world.instance()


def _called(made: Clock, instance: Instance, limit: float, read: float) -> tuple[Result, float]:
    """A call whose reading took so many seconds; the result, and by how much it is late once it is written."""
    began = made.now - read * made.load
    result = solve(instance, time_limit=limit, began=began, workers=2)
    made.now += (DOCUMENT + SUMMARY) * made.load
    return result, made.now - began - limit


@pytest.mark.parametrize("load", [1.0, 2.5, 5.0])
def test_a_call_is_never_two_seconds_late(clock: Callable[[float], Clock], load: float) -> None:
    made = clock(load)
    result, late = _called(made, _waiting(150), 60.0, 2.7)
    assert result.termination == Termination.TIME
    assert -15 < late < 2


@pytest.mark.parametrize(("reading", "end"), [(1.0, 20.0), (10.0, 20.0), (13.0, 23.0), (50.0, 60.0)])
def test_a_pass_decides_until_its_limit_or_for_half_of_it(
    monkeypatch: pytest.MonkeyPatch, reading: float, end: float
) -> None:
    """Of 20 seconds; from the start, or from when the cluster is read, whichever is later."""
    made, where, ends, server = Clock(1.0), placer.passes.scheduling_pass, list[float](), Double(good(), [])

    def decide(instance: Instance, **options: Any) -> Result:
        assert server.bound == {}
        ends.append(options["began"] + options["time_limit"] - 1000.0)
        return solve(instance, method="greedy")

    monkeypatch.setattr(where, "time", made.module)
    monkeypatch.setattr(where, "take", made.takes(reading, where.take))
    monkeypatch.setattr(where, "solve", decide)
    session = PassSession(server, threading.Event(), start=made.now)  # type: ignore[arg-type]  # it has what a pass asks
    run_pass(session, Pass(PassOptions()))
    assert ends == [end]
    assert good_ones(server) == ALL_GOOD


def test_what_the_time_does_not_suffice_for_is_not_decided(clock: Callable[[float], Clock]) -> None:
    """At five times the load there is no time to ask 150 gangs; alone there is."""
    few, _ = _called(clock(5.0), _waiting(150), 60.0, 2.7)
    codes = {reason.code for reason in few.reasons.values()}
    assert "NotDecided" in codes
    assert len(few.reasons) >= 147
    assert any("time limit" in reason.message or "not asked" in reason.message for reason in few.reasons.values())


def test_without_a_limit_every_group_is_decided(clock: Callable[[float], Clock]) -> None:
    made = clock(5.0)
    result = solve(_waiting(150), time_limit=None, method="greedy", began=made.now)
    assert {reason.code for reason in result.reasons.values()} == {"Outcompeted"}


def test_a_greedy_that_is_stopped_keeps_all_rules_and_the_highest_priority(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped after each group in turn: gangs are placed whole or not at all, those of high priority before others."""
    world = World()
    world.nodes("a b c d e f")
    for priority, name in ((0, "low"), (100, "high")):
        for number in range(3):
            gang = world.gang(f"{name}{number}", 2, priority=priority)
            world.pods_of(f"{name}{number}-0 {name}{number}-1", gang, 2)
    instance = world.instance()
    dense = placer.arrays.dense_builder.make_dense(instance)
    whole, counts = greedy(dense), []
    for looks in range(40):
        ticks = itertools.count()
        monkeypatch.setattr(
            placer.base.deadline, "time", SimpleNamespace(monotonic=lambda ticks=ticks: float(next(ticks)))
        )
        placement = dense.placement(greedy(dense, deadline=Deadline(float(looks))))
        assert verify(instance, placement) == []
        placed = sorted({pod.name.partition("-")[0] for pod in placement.node_of})
        counts.append(len(placed))
        assert not any(name.startswith("low") for name in placed) or len(placed) > 3
    assert (counts[0], counts[-1]) == (0, 6)
    assert counts == sorted(counts)
    assert len(set(counts)) > 3
    assert greedy(dense, deadline=NEVER) == whole


def test_a_first_run_may_take_longer_and_no_other_begins() -> None:
    """Where reading took up the limit the greedy answers with one run, not with nothing and not with all of them."""
    dense = placer.arrays.dense_builder.make_dense(_waiting(20))
    told: list[object] = []
    found = greedy(dense, told.append, deadline=Deadline(0.0), first=NEVER)
    assert found
    assert told == [found]


def test_a_deadline_that_never_comes_is_infinitely_far() -> None:
    assert NEVER.left == math.inf
    assert not NEVER.over
    assert Deadline.within(None) == NEVER
    assert Deadline.within(0.0).over


def endless() -> None:
    """Work that looks at no deadline."""
    for _ in itertools.count():
        pass


def test_of_two_walls_the_nearer_one_counts() -> None:
    """And the outer one stands again behind the inner one."""
    ended: list[str] = []

    def work() -> None:
        assert within(Deadline.within(60.0), lambda: 3, None) == 3
        ended.append(within(Deadline.within(60.0), endless, "inner") or "")
        endless()

    assert within(Deadline.within(0.05 - placer.base.deadline.GRACE), work, "outer") == "outer"
    assert ended == ["inner"]


def test_what_is_late_gives_what_was_said_before() -> None:
    assert within(Deadline.within(-placer.base.deadline.GRACE), endless, "late") == "late"
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_wall_breaks_off_again_what_was_swallowed() -> None:
    """An exception in a callback of C code, or while an object ends, is lost."""

    class Swallows:
        def __del__(self) -> None:
            endless()

    def work() -> None:
        Swallows()
        endless()

    assert within(Deadline.within(0.05 - placer.base.deadline.GRACE), work, "late") == "late"
