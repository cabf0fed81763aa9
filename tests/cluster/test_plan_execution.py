"""Plans carried out at a server that is played here: who goes out when, who waits for whom, who is given up."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, cast

import pytest

from placer.passes.cluster.planning.binding_plan import Batch, BindingPlan, PlannedBinding
from placer.passes.cluster.planning.gang_outcome import GangOutcome, GangState
from placer.passes.cluster.planning.scheduler_cache import SchedulerCache
from placer.passes.cluster.reading.client import Response, Unanswered
from placer.passes.cluster.reading.earlier_passes import prepared
from placer.passes.cluster.writing.breaker import Breaker
from placer.passes.cluster.writing.lease import NoElection
from placer.passes.cluster.writing.plan_execution import BindingOptions, execute_plan
from placer.problem import GroupKey, Key
from tests.cluster.snapshots import snapshot_of
from tests.support import Document, node, pod, pod_group

FAST = BindingOptions(workers=4, grace=0.3, settle=0.0)


class Server:
    """Binds what it is not told to refuse, and shows each binding to the cache, as a watch would."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self.documents = {each["metadata"]["name"]: each for each in documents if each["kind"] == "Pod"}
        self.cache: SchedulerCache | None = None
        self.refused: dict[str, int] = {}  #: pod to status
        self.silent: set[str] = set()  #: pods about which nothing is answered
        self.after: Callable[[str], None] = lambda _: None
        self.order: list[str] = []
        self.deleted: list[str] = []
        self._lock = threading.Lock()

    def get(self, *_: Any) -> Response:
        return Response(404, b"{}")

    def send(self, method: str, path: str, body: Any = None, **_: Any) -> Response:
        name = path.split("/")[6]
        if name in self.silent:
            raise Unanswered("no answer")
        if method == "DELETE":
            self.deleted.append(name)
            return Response(200, b"{}")
        if method == "GET":
            return Response(404, b"{}")
        if name in self.refused:
            return Response(self.refused[name], b'{"message": "no"}')
        with self._lock:
            self.order.append(name)
        self.show(name, body["target"]["name"])
        self.after(name)
        return Response(201, b"{}")

    def show(self, name: str, where: str, **status: Any) -> None:
        found = json.loads(json.dumps(self.documents[name]))
        found["spec"]["nodeName"] = where
        found["status"] |= status
        assert self.cache is not None
        self.cache.pod_happened("MODIFIED", json.dumps(found).encode())


class _Election:
    """What an elector says, by functions."""

    def __init__(
        self, lost: Callable[[], str | None], paused: Callable[[], str | None], left: Callable[[], float]
    ) -> None:
        self._lost, self._paused, self._left = lost, paused, left

    lost = property(lambda self: self._lost())
    paused = property(lambda self: self._paused())
    left = property(lambda self: self._left())


class World:
    """A cluster of one node and gangs of pods, and a plan for it."""

    def __init__(self, *lone: str, **gangs: int) -> None:
        documents = [node("n1", cpu=100), *(_pod(name) for name in lone)]
        for name, count in gangs.items():
            documents.append(pod_group(name, minMember=count))
            documents += (_pod(f"{name}-{number}", name) for number in range(count))
        taken = snapshot_of(documents)
        self.instance = prepared(taken, ()).instance
        self.server = Server(documents)
        self.cache = self.server.cache = SchedulerCache(taken, self.instance)
        self.stop = threading.Event()

    def batch(self, *gangs: str, line: bool = False, admitted: bool = False, after: str | None = None) -> Batch:
        """Gangs bound together, in a line where that is wanted; ``after``: whom the first waits for."""
        names = [name for name in self.server.documents if name.rpartition("-")[0] in gangs]
        binds = []
        for name, before in zip(names, [after, *names], strict=False):
            last = Key("default", before) if (line or admitted) and before is not None else None
            waits = {"after": last, "admitted": admitted and last is not None}
            binds.append(PlannedBinding(Key("default", name), f"uid-{name}", "n1", **waits))
        return Batch(tuple(GroupKey("scheduling.volcano.sh", "default", each) for each in gangs), tuple(binds))

    def alone(self, name: str) -> Batch:
        """A pod in no gang."""
        bind = PlannedBinding(Key("default", name), f"uid-{name}", "n1")
        return Batch((GroupKey("", "default", name),), (bind,))

    def carry_out(
        self,
        *batches: Batch,
        settings: BindingOptions = FAST,
        lost: Callable[[], str | None] = lambda: None,
        paused: Callable[[], str | None] = lambda: None,
        left: Callable[[], float] = lambda: math.inf,
        gives_way: Callable[[], str | None] = lambda: None,
    ) -> list[GangOutcome]:
        server, plan = Breaker(self.server, settings.grace), BindingPlan(batches)
        elector = cast(NoElection, _Election(lost, paused, left))
        return execute_plan(server, self.cache, self.instance, plan, settings, self.stop, elector, gives_way=gives_way)


def _pod(name: str, group: str = "") -> Document:
    annotations = {"scheduling.k8s.io/group-name": group} if group else {}
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", "annotations": annotations}
    return pod(name, metadata=metadata, spec={"schedulerName": "placer"}, cpu=1)


def states(gangs: Iterable[GangOutcome]) -> list[tuple[str, GangState, int]]:
    return [(gang.key.name, gang.state, len(gang.bound)) for gang in gangs]


def test_gangs_go_out_whole_and_in_order() -> None:
    world = World(a=3, b=2)
    found = world.carry_out(world.batch("a"), world.batch("b"))
    assert states(found) == [("a", GangState.BOUND, 3), ("b", GangState.BOUND, 2)]
    assert sorted(world.server.order[:3]) == ["a-0", "a-1", "a-2"]


def test_pods_of_a_line_go_one_after_another() -> None:
    world = World(a=5)
    world.carry_out(world.batch("a", line=True))
    assert world.server.order == [f"a-{number}" for number in range(5)]


def test_the_next_waits_for_the_kubelet() -> None:
    world = World(a=3)
    seen: list[list[str]] = []

    def admit(name: str) -> None:
        seen.append(list(world.server.order))
        world.server.show(name, "n1", phase="Running")

    world.server.after = lambda name: threading.Timer(0.05, admit, [name]).start()
    assert states(world.carry_out(world.batch("a", admitted=True))) == [("a", GangState.BOUND, 3)]
    assert seen[:2] == [["a-0"], ["a-0", "a-1"]]  # none went before the answer to the one before


def test_a_kubelet_that_rejects_ends_the_line() -> None:
    world = World(a=3)
    world.server.after = lambda name: world.server.show(name, "n1", phase="Failed", reason="TopologyAffinityError")
    (found,) = world.carry_out(world.batch("a", admitted=True))
    assert found.state is GangState.LEFT
    assert found.missing == {
        Key("default", "a-0"): "the kubelet of Node n1 rejected it (TopologyAffinityError)",
        Key("default", "a-1"): "the kubelet of Node n1 rejected Pod default/a-0 before it",
        Key("default", "a-2"): "Pod default/a-1 before it on Node n1 was not bound",
    }
    assert world.server.order == ["a-0"]


def test_a_kubelet_that_says_nothing_costs_the_grace() -> None:
    world = World(a=2)
    (found,) = world.carry_out(world.batch("a", admitted=True))
    assert (found.state, len(found.bound)) == (GangState.HALF_BOUND, 1)
    assert found.missing == {
        Key("default", "a-1"): "the kubelet of Node n1 has not answered to Pod default/a-0 before it in time"
    }


def test_a_gang_behind_one_that_was_not_bound_is_left() -> None:
    world = World(a=1, b=1)
    world.server.refused = {"a-0": 403}
    found = world.carry_out(world.batch("a"), world.batch("b", line=True, after="a-0"))
    assert states(found) == [("a", GangState.LEFT, 0), ("b", GangState.LEFT, 0)]
    assert world.server.order == []


def test_once_something_is_bound_the_rest_is_tried() -> None:
    world = World(a=20)
    world.server.refused = {"a-1": 403}
    (found,) = world.carry_out(world.batch("a"), settings=BindingOptions(workers=1, grace=0.3, settle=0.0))
    assert (found.state, len(found.bound)) == (GangState.HALF_BOUND, 19)


def test_while_nothing_is_bound_the_rest_is_not_tried() -> None:
    world = World(a=20)
    world.server.refused = {f"a-{number}": 403 for number in range(2)}
    (found,) = world.carry_out(world.batch("a"), settings=BindingOptions(workers=1, grace=0.3, settle=0.0))
    assert (found.state, world.server.order) == (GangState.LEFT, [])
    assert found.missing[Key("default", "a-19")] == "another pod of its gang cannot be bound"


def test_room_of_what_was_not_bound_is_given_back() -> None:
    """100 cpu: of the first gang's 60 pods nothing is bound, so the second one's 60 fit."""
    world = World(a=60, b=60)
    world.server.refused = {f"a-{number}": 403 for number in range(60)}
    found = world.carry_out(world.batch("a"), world.batch("b"))
    assert states(found) == [("a", GangState.LEFT, 0), ("b", GangState.BOUND, 60)]


def test_a_gang_without_room_is_left_and_the_next_one_goes() -> None:
    world = World(a=60, b=60, c=40)
    found = world.carry_out(world.batch("a"), world.batch("b"), world.batch("c"))
    assert states(found) == [("a", GangState.BOUND, 60), ("b", GangState.LEFT, 0), ("c", GangState.BOUND, 40)]
    assert found[1].reason == "the room is gone on Node n1: cpu 60 of 40 left"


def test_gangs_of_one_batch_are_judged_one_by_one() -> None:
    world = World(a=2, b=2)
    world.server.refused = {"b-1": 403}
    found = world.carry_out(world.batch("a", "b"))
    assert states(found) == [("a", GangState.BOUND, 2), ("b", GangState.HALF_BOUND, 1)]


def test_a_pass_that_is_to_end_begins_nothing() -> None:
    world = World(a=2)
    world.stop.set()
    (found,) = world.carry_out(world.batch("a"))
    assert (found.state, found.reason, world.server.order) == (GangState.LEFT, "the pass was to end", [])


def test_a_pass_that_is_paused_ends_the_gang_under_way_and_begins_no_other() -> None:
    world, told = World(a=3, b=2), ["", "stop"]
    found = world.carry_out(
        world.batch("a"), world.batch("b"), paused=lambda: told.pop(0) or None if len(told) > 1 else told[0]
    )
    assert states(found) == [("a", GangState.BOUND, 3), ("b", GangState.LEFT, 0)]
    assert found[1].reason == "stop"


def test_before_each_gang_it_is_asked_whether_the_lease_is_held_still() -> None:
    """Lost while the first is under way, or before anything is: another pass may have begun by then."""
    world, settings = World(a=2, b=2), replace(FAST, workers=1)

    def lost() -> str | None:
        return "the Lease is another's" if len(world.server.order) > 1 else None

    found = world.carry_out(world.batch("a"), world.batch("b"), settings=settings, lost=lost)
    assert states(found) == [("a", GangState.BOUND, 2), ("b", GangState.LEFT, 0)]
    assert found[1].reason == "the Lease is another's"
    (found_too,) = world.carry_out(world.batch("b"), lost=lambda: "it was taken")
    assert (found_too.state, found_too.reason) == (GangState.LEFT, "it was taken")


def test_nothing_is_bound_once_another_may_have_begun_however_late_that_is_noticed() -> None:
    """A leader that stood still in a gang: since when the Lease has lapsed counts, and not when it hears of that."""
    world, settings = World(a=6), replace(FAST, workers=1, grace=60.0)

    def left() -> float:
        return 8.0 if len(world.server.order) < 2 else -20.0

    (found,) = world.carry_out(world.batch("a"), settings=settings, left=left)
    assert (found.state, len(found.bound), len(world.server.order)) == (GangState.HALF_BOUND, 2, 2)
    in_time = World(a=6)
    (found,) = in_time.carry_out(in_time.batch("a"), settings=settings, left=lambda: -1.0)
    assert found.state is GangState.BOUND


def test_while_the_watch_is_broken_a_gang_waits_and_is_left_in_the_end() -> None:
    world = World(a=1, b=1, c=1)
    world.cache.lost = lambda: "pods cannot be watched: away"
    found = world.carry_out(world.batch("a"), world.batch("c"))
    assert [(each.state, each.reason) for each in found] == [(GangState.LEFT, "pods cannot be watched: away")] * 2
    answers = iter(["away", "away"])
    world.cache.lost = lambda: next(answers, None)
    assert states(world.carry_out(world.batch("b"))) == [("b", GangState.BOUND, 1)]


def test_a_single_pod_needs_an_open_watch_and_passes_the_gang_that_waits_for_all_to_be_heard() -> None:
    world = World("lone", "late", a=2)
    world.cache.lost = lambda: "changes have not arrived yet" if "lone" not in world.server.order else None
    found = world.carry_out(world.batch("a"), world.alone("lone"))
    assert states(found) == [("lone", GangState.BOUND, 1), ("a", GangState.BOUND, 2)]
    world.cache.lost = world.cache.closed = lambda: "pods cannot be watched: away"
    (left,) = world.carry_out(world.alone("late"))
    assert (left.state, left.reason) == (GangState.LEFT, "pods cannot be watched: away")


def test_a_watch_that_breaks_while_a_gang_is_begun_does_not_leave_it() -> None:
    """Whether it is open is asked once before a gang, and waited for: a second answer may be another one."""
    world, answers = World(a=1), iter([None, "pods cannot be watched: away"])
    world.cache.lost = lambda: next(answers, None)
    assert states(world.carry_out(world.batch("a"))) == [("a", GangState.BOUND, 1)]


def test_room_of_a_binding_that_may_still_happen_is_kept_and_of_one_that_will_not_is_given_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("placer.passes.cluster.writing.plan_execution._EVENTS", 0.1)
    world = World(a=2, b=2)
    world.server.silent = {"a-1"}
    (found,) = world.carry_out(world.batch("a"), settings=replace(FAST, grace=0.1))
    assert (found.state, list(found.missing)) == (GangState.HALF_BOUND, [Key("default", "a-1")])
    world.cache.node_happened("MODIFIED", json.dumps(node("n1", cpu=3)).encode())
    (left,) = world.carry_out(world.batch("b"))
    assert (left.state, left.reason) == (GangState.LEFT, "the room is gone on Node n1: cpu 2 of 1 left")
    world.cache.node_happened("MODIFIED", json.dumps(node("n1", cpu=4)).encode())
    world.server.refused = {"b-1": 403}
    assert world.carry_out(world.batch("b"))[0].state is GangState.HALF_BOUND
    used = {key.name for key in world.cache._room.holdings}
    assert used == {"a-0", "a-1", "b-0"}


def test_a_hand_that_stumbles_costs_its_pod_only(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(a=3)
    really = world.server.send

    def send(method: str, path: str, body: Any = None, **options: Any) -> Response:
        if "a-1/" in path:
            raise RuntimeError("a bug")
        return really(method, path, body, **options)

    monkeypatch.setattr(world.server, "send", send)
    monkeypatch.setattr("placer.passes.cluster.writing.plan_execution._EVENTS", 0.1)
    (found,) = world.carry_out(world.batch("a"))
    assert (found.state, found.missing) == (GangState.HALF_BOUND, {Key("default", "a-1"): "RuntimeError: a bug"})


def test_a_dry_run_does_not_wait_for_kubelets() -> None:
    world = World(a=3)
    found = world.carry_out(world.batch("a", admitted=True), settings=BindingOptions(grace=5.0, dry_run=True))
    assert states(found) == [("a", GangState.BOUND, 3)]
