"""The assembly keeps its promises whatever its methods do: they hang, abort, lie or find nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import placer
from placer.answers.making_room import preempt
from placer.answers.solving import SEARCH, solve
from placer.arrays import Dense, Solution
from placer.base.errors import UsageError, VerificationFailed
from placer.problem import Instance, Key
from placer.problem.placement import Placement
from placer.problem.result import Bound, Termination, TracePoint, Verdict
from placer.rules import verify
from placer.search import process
from placer.search.events import Improved, SearchOptions
from tests.support import instance_of, node, policy
from tests.world import World, hard


@pytest.fixture
def search(monkeypatch: pytest.MonkeyPatch) -> object:
    """Make a badly behaved search stand for the exact one."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))

    def choose(name: str) -> None:
        monkeypatch.setitem(SEARCH, "exact", f"searches:{name}")

    return choose


def two_gangs() -> Instance:
    """Two nodes of 4 GPUs in one leaf each; a gang of three 2-GPU pods and a lone pod of 2 GPUs fit exactly."""
    world = World()
    world.nodes("a b")
    world.hyper("leaf-a", 1, "a")
    world.hyper("leaf-b", 1, "b")
    world.hyper("spine", 2, "leaf-a leaf-b")
    world.pods_of("train-0 train-1 train-2", world.gang("train", 3, topology=hard(2)), 2)
    world.pod("lone", gpu=2)
    return world.instance()


def test_an_interrupt_of_the_greedy_keeps_the_answer_of_its_first_run() -> None:
    heard: list[TracePoint] = []

    def interrupt(point: TracePoint) -> None:
        heard.append(point)
        if len(heard) == 1:
            raise KeyboardInterrupt

    instance = two_gangs()
    result = solve(instance, watch=interrupt)
    assert heard[0].phase == "greedy"
    assert result.termination in (Termination.INTERRUPTED, Termination.PROVED)
    assert result.placement is not None
    assert not verify(instance, result.placement)
    assert len(result.placement.bindings) == 4


def test_a_search_goes_on_from_an_earlier_answer_with_what_is_proved_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here there is no search, and the greedy proves nothing; one that finds less than was known does no harm."""
    instance = placer.read(Path(__file__).parents[1] / "instances" / "tiny" / "c13_pod_anti_affinity.yaml")
    first = solve(instance, method="exact")
    assert (first.verdict, solve(instance, method="greedy").verdict) == (Verdict.OPTIMAL, Verdict.FEASIBLE)
    second = solve(instance, method="greedy", earlier=first)
    assert (second.verdict, second.placement) == (Verdict.OPTIMAL, first.placement)
    monkeypatch.setattr("placer.search.greedy.multi_start.greedy", lambda *_: Solution())
    third = solve(instance, method="greedy", earlier=first)
    assert (third.verdict, third.placement) == (Verdict.OPTIMAL, first.placement)
    assert not solve(instance, method="greedy").placement.bindings  # type: ignore[union-attr]


def test_bounds_of_an_earlier_answer_hold_for_values_like_its_own_alone() -> None:
    """What was proved of the next value beside fewer admitted gangs says nothing beside more."""
    instance = two_gangs()
    best = solve(instance, method="exact")
    (admitted, *rest) = best.objective
    worse = replace(admitted, value=replace(admitted.value, value=admitted.value.value - 1), bound=None)
    wrong = tuple(replace(each, bound=Bound(-1, "nobody")) for each in rest)
    found = solve(instance, method="auto", earlier=replace(best, placement=Placement(), objective=(worse, *wrong)))
    assert found.objective == best.objective


def test_an_interrupt_before_there_is_an_answer_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("placer.search.greedy.multi_start._run", interrupt)
    with pytest.raises(KeyboardInterrupt):
        solve(two_gangs())


def _competing() -> Instance:
    """Three gangs for the room of two, of sizes that no counting settles: the search is really asked."""
    world = World()
    world.nodes("a b c", 5)
    for gang, size in (("x", 3), ("y", 2), ("z", 4)):
        world.pods_of(f"{gang}-0 {gang}-1 {gang}-2", world.gang(gang, 3), size)
    return world.instance()


@pytest.mark.parametrize("name", ["aborts_at_once", "is_killed_at_once", "hangs_at_once"])
def test_auto_answers_with_the_greedy_when_the_solver_fails(search: object, name: str) -> None:
    assert callable(search)
    search(name)
    result = solve(_competing(), time_limit=4 if name == "hangs_at_once" else 300)
    assert result.placement is not None
    assert result.method == "greedy"
    assert verify(result.instance, result.placement) == []
    assert result.verdict in (Verdict.FEASIBLE, Verdict.OPTIMAL)
    died = [finding for finding in result.findings if finding.code == "SolverDied"]
    assert len(died) == (0 if name == "hangs_at_once" or result.verdict is Verdict.OPTIMAL else 1)


@pytest.mark.parametrize(
    ("name", "termination"), [("finds_and_hangs", Termination.TIME), ("finds_and_aborts", Termination.FINISHED)]
)
def test_what_a_search_found_survives_its_end(
    search: object, name: str, termination: Termination, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time of one that hangs is over once it has found something, however long that takes."""
    assert callable(search)
    search(name)
    found: list[TracePoint] = []
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + (3600 if found else 0))
    monkeypatch.setattr("placer.base.deadline.time", clock)
    world = World()
    world.node("a")
    world.pod("one")
    watch = found.append if termination is Termination.TIME else None
    result = solve(world.instance(), method="exact", time_limit=300, watch=watch)
    assert result.method == "exact"
    assert result.everything_placed
    assert result.termination in (termination, Termination.PROVED)


def test_exact_that_found_nothing_shows_nothing(search: object) -> None:
    assert callable(search)
    search("hangs_at_once")
    result = solve(two_gangs(), method="exact", time_limit=3)
    assert (result.placement, result.verdict, result.termination) == (None, Verdict.UNKNOWN, Termination.TIME)
    assert result.objective == ()


def test_a_bound_that_a_verified_answer_beats_is_not_shown(search: object) -> None:
    assert callable(search)
    search("claims_a_false_bound")
    result = solve(_competing(), time_limit=300)
    assert result.placement is not None
    assert result.placement.bindings
    if result.verdict is not Verdict.OPTIMAL:
        assert [finding.object for finding in result.findings if finding.code == "BoundContradicted"] == ["admitted"]
        assert all(judged.bound is None for judged in (*result.objective, result.weight))


def test_an_answer_that_breaks_a_rule_is_a_bug_and_no_result(search: object) -> None:
    assert callable(search)
    search("overfills_a_node")
    with pytest.raises(VerificationFailed, match="bug"):
        solve(_competing(), method="exact", time_limit=300)


def test_every_bad_argument_is_named_at_once() -> None:
    with pytest.raises(UsageError) as caught:
        solve(two_gangs(), method="magic", time_limit=-1, work_limit=0, workers=0, seed=-5)
    faults = (
        "method: found magic",
        "time limit: found -1",
        "work limit: found 0",
        "workers: found 0",
        "seed: found -5",
    )
    for words in faults:
        assert words in str(caught.value)


def test_a_proved_answer_says_so_and_every_gap_is_zero() -> None:
    result = solve(two_gangs(), time_limit=600)
    assert (result.termination, result.verdict) == (Termination.PROVED, Verdict.OPTIMAL)
    assert result.everything_placed
    assert [judged.gap for judged in result.objective] == [0.0] * len(result.objective)
    assert result.weight.gap == 0.0


def test_require_all_is_infeasible_only_with_a_proof() -> None:
    result = solve(_competing(), time_limit=600, require_all=True)
    assert result.verdict is Verdict.INFEASIBLE
    assert result.placement is not None
    assert result.placement.bindings
    assert solve(two_gangs(), time_limit=600, require_all=True).verdict is Verdict.OPTIMAL


def test_the_limit_counts_from_the_beginning_of_the_call() -> None:
    """A call that began long ago has no time left: greedy, verifying and explaining still finish."""
    result = solve(_competing(), time_limit=5, began=time.monotonic() - 100)
    assert result.placement is not None
    assert result.method == "greedy"
    assert result.seconds["read"] >= 99


def test_what_lower_priorities_had_is_there_when_the_search_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that is killed while it decides a high priority has told an answer without the lower ones."""
    world = World()
    world.nodes("a b c d", 5)
    for gang, size, priority in (("x", 3, 10), ("y", 2, 10), ("z", 4, 10), ("low", 1, 0)):
        world.pods_of(f"{gang}-0 {gang}-1 {gang}-2", world.gang(gang, 3, priority=priority), size)
    instance = world.instance()
    before: list[Placement] = []

    def search(_: str, task: tuple[Dense, SearchOptions], on_event: Callable[[object], None], *__: object) -> object:
        dense, options = task
        assert options.hint is not None
        before.append(dense.placement(options.hint))
        better = Placement.of((Key("default", f"z-{pod}"), node) for pod, node in enumerate("abc"))
        on_event(Improved(dense.solution(better), "admitted"))
        return process.ProcessResult(process.ProcessEnd.KILLED)

    monkeypatch.setattr(process, "run_apart", search)
    monkeypatch.setattr("placer.search.greedy.multi_start.greedy", lambda dense, *_: dense.solution(_lowest_first()))
    result = solve(instance, time_limit=300)
    assert before
    assert result.placement is not None
    lowest = {pod: node for pod, node in result.placement.node_of.items() if pod.name.startswith("low")}
    assert lowest == {pod: node for pod, node in before[0].node_of.items() if pod.name.startswith("low")}


def _lowest_first() -> Placement:
    """An answer with one gang of the high priority, and the lowest one on two nodes of which it does not fill one."""
    places = zip(("y-0", "y-1", "y-2", "low-0", "low-1", "low-2"), "abcbdd", strict=True)
    return Placement.of((Key("default", pod), node) for pod, node in places)


@pytest.mark.parametrize(
    ("disruption", "said"),
    [
        ({"evict": "none", "move": None, "protect": [{"namespaces": ["ml"]}], "maxPods": 3}, None),
        ({"evict": "lower-priority"}, "disruption.evict"),
        ({"evict": "lower-priority", "move": "fewest"}, "disruption.evict lower-priority and disruption.move fewest"),
    ],
)
def test_what_a_policy_lets_a_pass_disturb_is_a_finding_of_solve(disruption: dict[str, Any], said: str | None) -> None:
    """Placing alone disturbs nothing; preempt was asked by name, so there the Policy is not ignored."""
    instance = instance_of(node("n1"), policy(disruption=disruption))
    found = [each for each in solve(instance, method="greedy").findings if each.code == "DisruptionIgnored"]
    assert [each.message.startswith(said or "") for each in found] == [True] * (said is not None)
    assert instance.findings == preempt(instance).findings == ()
