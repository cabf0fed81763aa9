"""What is bound while a search runs, that the search keeps it, and when a search ends early; no test is by a clock."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from placer.answers.solving import _SolveCall, solve
from placer.base.errors import ClusterError
from placer.passes.cluster.planning.binding_plan import BindingPlan, plan_bindings
from placer.passes.cluster.planning.gang_outcome import GangOutcome, GangState
from placer.passes.cluster.writing.express_lane import Arrivals, ExpressLane, express
from placer.passes.cluster.writing.lease import LeaseOptions
from placer.passes.scheduling_pass import LoopMemory, Pass, PassOptions, PassSession, run_pass
from placer.problem import Instance, Key, PodState
from placer.problem.placement import Placement
from placer.problem.result import Termination
from placer.rules import verify
from placer.search import process
from placer.search.process import ProcessEnd, ProcessResult
from tests.cluster.caches import mine
from tests.cluster.snapshots import snapshot_of
from tests.cluster.test_any_object import Double
from tests.cluster.test_plan_execution import World
from tests.cluster.things import live_pod
from tests.support import Document, instance_of, node, pod_group

Slow = Callable[[Callable[[], Any]], None]
#: Seconds after which what would wait for ever fails.
_NEVER = 30.0


def asking(name: str, priority: int = 0, **options: Any) -> Document:
    """A pending pod of ours with a priority."""
    return mine(name, spec={"priority": priority, **options.pop("spec", {})}, **options)


def goes(*documents: Document, placed: dict[str, str], on_hold: bool = False) -> set[str]:
    """The pods that are bound at once where the greedy has placed some."""
    instance, identities = instance_of(*documents), snapshot_of(documents).identities
    if on_hold:
        identities = {key: each._replace(on_hold=True) for key, each in identities.items()}
    placement = Placement.of({Key("default", name): where for name, where in placed.items()})
    assert not verify(instance, placement)
    return {bind.pod.name for bind in express(instance, placement, identities).bindings}


# --------------------------------------------------------------------------------------------------------- who may go


@pytest.mark.parametrize(
    ("waits", "expected"), [(-5, {"s"}), (0, {"s"}), (5, set())], ids=["below", "as high", "above it"]
)
def test_a_pod_goes_that_no_waiting_group_ranks_above(waits: int, expected: set[str]) -> None:
    hard = asking("hard", waits, cpu=8)
    assert goes(node("n1", cpu=8), asking("s", cpu=1), hard, placed={"s": "n1"}) == expected


@pytest.mark.parametrize(
    "hard",
    [
        asking("hard", 5, cpu=9),  # more than there is on n1, whatever leaves it
        asking("hard", 5, cpu=1, gpu=1),
        asking("hard", 5, cpu=8, spec={"nodeSelector": {"kubernetes.io/hostname": "n2"}}),
    ],
)
def test_a_pod_goes_to_a_node_that_no_group_above_it_may_use(hard: Document) -> None:
    nodes = node("n1", cpu=8), node("n2", cpu=16, gpu=4)
    low = asking("s", cpu=1), asking("t", cpu=1)
    assert goes(*nodes, *low, hard, placed={"s": "n1", "t": "n2"}) == {"s"}


def test_what_waits_and_can_have_no_place_keeps_nobody_back() -> None:
    claim = {"resourceClaims": [{"name": "c", "resourceClaimName": "c"}]}
    never = asking("never", 5, cpu=1, spec=claim)
    assert instance_of(node("n1"), never).pods[Key("default", "never")].unsupported
    assert goes(node("n1"), asking("s", cpu=1), never, placed={"s": "n1"}) == {"s"}


def test_gangs_and_pods_that_are_released_wait_for_the_search() -> None:
    gang = [pod_group("g", minMember=1), asking("g-0", group="g", cpu=1)]
    placed = {"g-0": "n1", "s": "n1"}
    assert goes(node("n1"), *gang, asking("s", cpu=1), placed=placed) == {"s"}
    assert goes(node("n1"), *gang, asking("s", cpu=1), placed=placed, on_hold=True) == set()


def test_a_pod_waits_that_must_be_near_one_that_waits() -> None:
    term = {"labelSelector": {"matchLabels": {"app": "g"}}, "topologyKey": "kubernetes.io/hostname"}
    near = {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
    gang = [pod_group("g", minMember=1), asking("g-0", group="g", labels={"app": "g"}, cpu=1)]
    follower, other = asking("near", cpu=1, spec=near), asking("s", cpu=1)
    placed = {"g-0": "n1", "near": "n1", "s": "n1"}
    assert goes(node("n1"), *gang, follower, other, placed=placed) == {"s"}


def test_looking_at_what_ranks_above_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("placer.passes.cluster.writing.express_lane._LOOKS", 3)
    hard = [asking(f"hard-{number}", 5, cpu=100 + number) for number in range(2)]
    nodes = [node(f"n{number}") for number in range(2)]
    low = [asking(f"s{number}", cpu=1) for number in range(2)]
    assert goes(*nodes, *low, *hard, placed={"s0": "n0", "s1": "n1"}) == {"s0"}
    equal = asking("top", 5, cpu=1)
    assert goes(*nodes, *low, equal, *hard, placed={"s1": "n1", "top": "n1"}) >= {"top"}


# ------------------------------------------------------------------------------------------- that the search keeps it


class Taking:
    """Takes single pods of the greedy's answer, and ends the search as it is told."""

    def __init__(self, instance: Instance, *taken: str) -> None:
        self._instance, self._taken = instance, taken
        self.found: dict[Key, str] = {}
        self.asked = 0
        self.end: ProcessEnd | None = None

    def fix(self, placement: Placement) -> Instance | None:
        self.asked += 1
        self.found = {key: node for key, node in placement.node_of.items() if key.name in self._taken}
        pods = {
            key: replace(self._instance.pods[key], state=PodState.BOUND, node=node) for key, node in self.found.items()
        }
        groups = {
            key: replace(group, pending=(), bound=group.pending) if group.pending[0] in pods else group
            for key, group in self._instance.groups.items()
        }
        return replace(self._instance, pods={**self._instance.pods, **pods}, groups=groups) if pods else None

    def enough(self) -> ProcessEnd | None:
        return self.end


@pytest.fixture
def unproved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches begin, whatever could be proved of the greedy's answer; they end at once unless a test has more."""
    monkeypatch.setattr("placer.bounds.named_bounds", lambda *_: ())
    monkeypatch.setattr("placer.bounds.bounds_for", lambda *_: ())
    monkeypatch.setattr(process, "run_apart", lambda *_: ProcessResult(ProcessEnd.RETURNED, "finished"))


def equal_pods() -> Instance:
    return instance_of(
        node("n1", cpu=4), node("n2", cpu=4), *(mine(f"p{number}", cpu=1) for number in range(6)), mine("huge", cpu=5)
    )


@pytest.mark.parametrize("taken", [("p0",), ("p5",), ("p1", "p4"), tuple(f"p{number}" for number in range(6))])
def test_the_answer_keeps_where_each_of_equal_pods_was_bound(taken: tuple[str, ...], unproved: None) -> None:
    instance = equal_pods()
    taking = Taking(instance, *taken)
    result = solve(instance, time_limit=20, workers=1, meanwhile=taking)
    assert result.placement is not None
    assert taking.asked == 1
    assert {key.name for key in taking.found} == set(taken)
    assert taking.found.items() <= result.placement.node_of.items()
    assert len(result.placement.bindings) == 6
    assert not verify(instance, result.placement)
    assert result.instance is instance
    assert {key.name for key in result.reasons} == {"huge"}


def test_what_the_search_finds_is_beside_what_was_bound(unproved: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that has the rest elsewhere: the answer has both."""
    instance = equal_pods()
    taking = Taking(instance, "p0")

    def elsewhere(_target: str, arguments: Any, on_event: Callable[[Any], None], *_: Any) -> ProcessResult:
        assert taking.found
        dense = arguments[0]
        assert sum(each.size for each in dense.classes) == 6  # without the pod that is bound
        return ProcessResult(ProcessEnd.RETURNED, Termination.FINISHED.value)

    monkeypatch.setattr(process, "run_apart", elsewhere)
    result = solve(instance, time_limit=None, workers=1, meanwhile=taking)
    assert result.placement is not None
    assert taking.found.items() <= result.placement.node_of.items()
    assert len(result.placement.bindings) == 6


@pytest.mark.parametrize(("method", "asked"), [("greedy", 0), ("auto", 1)])
def test_what_the_greedy_proves_is_taken_before_reasons_are_sought(
    method: str, asked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    instance = instance_of(node("n1", cpu=4), *(mine(f"p{number}", cpu=1) for number in range(4)), mine("huge", cpu=5))
    taking, sought = Taking(instance, "p3"), _SolveCall._reasons

    def reasons(call: _SolveCall, *options: Any) -> Any:
        assert taking.asked == asked
        return sought(call, *options)

    monkeypatch.setattr(_SolveCall, "_reasons", reasons)
    result = solve(instance, method=method, time_limit=20, workers=1, meanwhile=taking)
    assert result.placement is not None
    assert result.termination is Termination.PROVED
    assert {key.name for key in result.reasons} == {"huge"}
    assert taking.found.items() <= result.placement.node_of.items()
    assert len(result.placement.bindings) == 4


def test_reasons_are_not_sought_while_new_pods_wait() -> None:
    instance = instance_of(node("n1", cpu=4), mine("p0", cpu=1), mine("huge", cpu=5))
    taking = Taking(instance, "p0")
    taking.end = ProcessEnd.KILLED
    late = solve(instance, time_limit=20, workers=1, meanwhile=taking)
    taking.end = None
    found = solve(instance, time_limit=20, workers=1, meanwhile=taking)
    assert [each.code for each in late.reasons.values()] == ["NotDecided"]
    assert [each.code for each in found.reasons.values()] == ["InsufficientResources"]


@pytest.mark.parametrize(
    ("end", "termination"),
    [(ProcessEnd.KILLED, Termination.TIME), (ProcessEnd.INTERRUPTED, Termination.INTERRUPTED)],
)
def test_a_search_ends_as_its_caller_wants(
    end: ProcessEnd, termination: Termination, unproved: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "run_apart", lambda *arguments: ProcessResult(arguments[4]()))
    taking = Taking(equal_pods(), "p0")
    taking.end = end
    result = solve(equal_pods(), time_limit=None, workers=1, meanwhile=taking)
    assert result.termination is termination
    assert result.placement is not None
    assert len(result.placement.bindings) == 6


# -------------------------------------------------------------------------------------------- when a search ends early


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_searches_end_for_what_comes_for_five_times_as_long_as_one_did_not() -> None:
    clock = Clock()
    arrivals = Arrivals(clock)
    arrivals.came()
    arrivals.begin()  # what came before the pass is in it
    assert not arrivals.end_search()
    arrivals.came()
    clock.now += 4
    assert not arrivals.end_search()  # the first has all of its time
    arrivals.begin()
    clock.now += 19.9
    assert not arrivals.end_search()  # nothing has come
    arrivals.came()
    assert arrivals.end_search()
    arrivals.begin()
    clock.now += 0.2
    arrivals.came()
    assert not arrivals.end_search()


def test_bindings_give_way_to_what_comes_once_they_had_half_as_long_as_the_decision() -> None:
    clock = Clock()
    arrivals = Arrivals(clock)
    arrivals.begin()
    clock.now += 6  # the decision
    assert not arrivals.end_bindings()
    clock.now += 2.9
    arrivals.came()
    assert not arrivals.end_bindings()
    clock.now += 0.2
    assert arrivals.end_bindings()
    arrivals.begin()
    assert not arrivals.end_bindings()
    clock.now += 0.9
    arrivals.came()
    assert not arrivals.end_bindings()  # a second at least, however short the decision
    clock.now += 0.2
    assert arrivals.end_bindings()


def test_who_makes_pods_again_and_again_leaves_searches_a_sixth_of_the_time() -> None:
    clock, searched = Clock(), 0.0
    arrivals, began = Arrivals(clock), clock.now
    while clock.now < began + 600:
        arrivals.begin()
        arrivals.came()
        clock.now += 1  # reading
        start = clock.now
        while not arrivals.end_search() and clock.now < start + 5:
            clock.now += 0.1
        searched += clock.now - start
    assert 1 / 7 < searched / (clock.now - began) < 1 / 5


# ------------------------------------------------------------------------------------------------------ the lane itself


CarryOut = Callable[[BindingPlan, Callable[[], str | None]], list[GangOutcome]]


def lane_of(world: World, carry_out: CarryOut | None = None, **changes: Any) -> ExpressLane:
    carry_out = carry_out or (lambda plan, enough: world.carry_out(*plan.batches, gives_way=enough))
    identities = snapshot_of(world.server.documents.values()).identities
    options: dict[str, Any] = {"begin": lambda: None, "changed": tuple, "is_over": lambda: False, **changes}
    return ExpressLane(world.instance, identities, carry_out=carry_out, arrivals=Arrivals(), **options)


def single(*names: str) -> World:
    """A world of single pods."""
    world = World()
    documents = [node("n1", cpu=100), *(mine(name, cpu=1) for name in names)]
    taken = snapshot_of(documents)
    world.instance = instance_of(*documents)
    world.server.documents = {each["metadata"]["name"]: each for each in documents if each["kind"] == "Pod"}
    world.cache = world.server.cache = type(world.cache)(taken, world.instance)
    return world


def on_n1(*names: str) -> Placement:
    return Placement.of({Key("default", name): "n1" for name in names})


def test_the_rest_of_the_plan_is_without_what_went_first_and_what_could_not() -> None:
    world = single("a", "b", "c")
    world.server.refused["b"] = 403
    begun = []
    lane = lane_of(world, begin=lambda: begun.append(world.server.order[:]))
    rest = lane.fix(on_n1("a", "b"))
    lane.join()
    assert begun == [[]]  # before the first binding
    assert rest is not None
    assert {key.name for key, pod in rest.pods.items() if pod.state is PodState.BOUND} == {"a", "b"}
    assert [gang.state for gang in lane.gangs] == [GangState.BOUND, GangState.LEFT]
    assert lane.changed() == {Key("default", "b")}
    identities = snapshot_of(world.server.documents.values()).identities
    plan = plan_bindings(world.instance, on_n1("a", "b", "c"), identities, lane.changed()).without(lane.plan)
    assert [bind.pod.name for batch in plan.batches for bind in batch.bindings] == ["c"]
    assert not plan.dropped
    assert [gang.state for gang in world.carry_out(*plan.batches)] == [GangState.BOUND]
    assert world.server.order == ["a", "c"]


def test_what_has_not_begun_when_the_search_has_decided_joins_the_rest_of_the_plan() -> None:
    """A burst of one tenant's single pods does not hold up another's gang."""
    world, decided = single("a", "b", "c"), threading.Event()

    def carry_out(plan: BindingPlan, enough: Callable[[], str | None]) -> list[GangOutcome]:
        first = world.carry_out(plan.batches[0])
        assert decided.wait(_NEVER)
        while enough() is None:
            threading.Event().wait(0.001)
        return [*first, *world.carry_out(*plan.batches[1:], gives_way=enough)]

    lane = lane_of(world, carry_out)
    assert lane.fix(on_n1("a", "b")) is not None
    decided.set()
    lane.hand_over()
    assert [(gang.key.name, gang.state) for gang in lane.gangs] == [("a", GangState.BOUND)]
    assert lane.changed() == set()
    identities = snapshot_of(world.server.documents.values()).identities
    plan = plan_bindings(world.instance, on_n1("a", "b", "c"), identities, lane.changed()).without(lane.plan)
    assert [bind.pod.name for batch in plan.batches for bind in batch.bindings] == ["b", "c"]


def test_an_error_of_the_lane_is_raised_where_it_is_waited_for() -> None:
    def fail(*_: object) -> list[GangOutcome]:
        raise ClusterError("gone")

    lane = lane_of(single("a"), fail)
    assert lane.fix(on_n1("a")) is not None
    with pytest.raises(ClusterError, match="gone"):
        lane.join()


def test_nothing_goes_first_once_the_pass_is_to_end() -> None:
    world, over = single("a"), threading.Event()
    lane = lane_of(world, is_over=over.is_set)
    assert lane.enough() is None
    over.set()
    assert lane.fix(on_n1("a")) is None
    assert lane.enough() is ProcessEnd.INTERRUPTED
    lane.join()
    assert world.server.order == []


# --------------------------------------------------------------------------------------------------------- whole passes


class Seen(Double):
    """Says when a pod is bound."""

    def __init__(self, documents: list[Document]) -> None:
        super().__init__(documents, [])
        self.is_bound = threading.Event()

    def send(self, method: str, path: str, body: Any = None, **options: Any) -> Any:
        answer = super().send(method, path, body, **options)
        if path.endswith("/pods/small/binding"):
            self.is_bound.set()
        return answer


def passing(server: Double, stop: threading.Event, arrivals: Arrivals | None = None, **changes: Any) -> Pass:
    """A pass of a loop at a double."""
    options = PassOptions(time_limit=None, workers=1, every=60.0, lease=LeaseOptions(renew_deadline=600, duration=900))
    done = Pass(replace(options, **changes), LoopMemory(arrivals=arrivals or Arrivals()))
    run_pass(PassSession(server, stop), done)  # type: ignore[arg-type]  # it has what a pass asks of a client
    return done


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Slow:
    """Has searches go on until something is so."""

    def until(wait: Callable[[], Any]) -> None:
        def run_apart(*arguments: Any) -> ProcessResult:
            assert wait()
            return ProcessResult(arguments[4]() or ProcessEnd.KILLED)

        monkeypatch.setattr(process, "run_apart", run_apart)

    return until


HARD = [pod_group("hard", minMember=2), *(live_pod(f"hard-{number}", group="hard", cpu=8) for number in range(2))]


def test_a_single_pod_is_bound_while_the_search_runs(unproved: None, slow: Slow) -> None:
    server = Seen([node("n1", cpu=8), *HARD, live_pod("small", cpu=1)])
    slow(lambda: server.is_bound.wait(_NEVER))
    done = passing(server, threading.Event())
    assert server.bound == {"small": "n1"}
    assert [(gang.key.name, gang.state) for gang in done.bound.gangs] == [("small", GangState.BOUND)]
    assert sum(len(batch.bindings) for batch in done.bound.plan.batches) == 1
    assert done.result is not None
    assert {key.name for key in done.result.reasons} == {"hard"}


def test_in_a_pass_that_stands_alone_nothing_goes_first(
    unproved: None, slow: Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "run_apart", lambda *_: ProcessResult(ProcessEnd.KILLED))
    server = Seen([node("n1", cpu=8), *HARD, live_pod("small", cpu=1)])
    done = Pass(PassOptions(time_limit=None, workers=1))
    run_pass(PassSession(server, threading.Event()), done)  # type: ignore[arg-type]  # it has what a pass asks of a client
    assert "lane" not in done.seconds
    assert server.bound == {"small": "n1"}


def test_a_stop_while_a_search_runs_ends_it(unproved: None, slow: Slow) -> None:
    stop = threading.Event()
    server = Seen([node("n1", cpu=8), *HARD, live_pod("small", cpu=1)])

    def stopped() -> bool:
        found = server.is_bound.wait(_NEVER)
        stop.set()
        return found

    slow(stopped)
    done = passing(server, stop)
    assert done.report.interrupted
    assert done.result is not None
    assert done.result.termination is Termination.INTERRUPTED


def test_what_was_bound_is_told_where_nothing_is_decided(
    unproved: None, slow: Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Seen([node("n1", cpu=8), *HARD, live_pod("small", cpu=1)])

    def broken(*_: Any) -> Any:
        assert server.is_bound.wait(_NEVER)
        raise ClusterError("broken")

    monkeypatch.setattr(process, "run_apart", broken)
    done = Pass(PassOptions(time_limit=None, workers=1, every=60.0), LoopMemory(arrivals=Arrivals()))
    with pytest.raises(ClusterError, match="broken"):
        run_pass(PassSession(server, threading.Event()), done)  # type: ignore[arg-type]  # it has what a pass asks of a client
    assert [gang.key.name for gang in done.bound.gangs] == ["small"]


@pytest.mark.parametrize("came", [False, True])
def test_objects_are_not_told_that_reasons_gave_way_to_new_pods(came: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass with all reasons comes soon; until then objects say what they said."""
    arrivals, sought = Arrivals(), _SolveCall._reasons

    def reasons(call: _SolveCall, *options: Any) -> Any:
        if came:
            arrivals.came()
        return sought(call, *options)

    monkeypatch.setattr(_SolveCall, "_reasons", reasons)
    monkeypatch.setattr(arrivals, "_gives_way_until", math.inf)
    server = Seen([node("n1", cpu=8), live_pod("small", cpu=1), live_pod("huge", cpu=9)])
    done = passing(server, threading.Event(), arrivals)
    assert server.bound == {"small": "n1"}
    assert done.report.status.conditions == (0 if came else 1)


def test_a_loop_waits_for_no_kubelet_and_a_pass_alone_does() -> None:
    options = PassOptions()
    assert Pass(options).binding.settle == options.binding.settle == 5.0
    assert Pass(options, LoopMemory(arrivals=Arrivals())).binding.settle == 0.0


def test_what_the_server_does_not_take_is_left_and_not_tried_twice(unproved: None, slow: Slow) -> None:
    class Refusing(Seen):
        def send(self, method: str, path: str, body: Any = None, **options: Any) -> Any:
            if path.endswith("/binding"):
                self.is_bound.set()
                return super().get("/nowhere")
            return super().send(method, path, body, **options)

    server = Refusing([node("n1", cpu=8), *HARD, live_pod("small", cpu=1)])
    slow(lambda: server.is_bound.wait(_NEVER))
    done = passing(server, threading.Event())
    assert not any(gang.bound for gang in done.bound.gangs)
    assert [gang.state for gang in done.bound.gangs] == [GangState.LEFT]
