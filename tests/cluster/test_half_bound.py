"""What is recorded of gangs that may stay half-bound, and which of them are rolled back."""

from __future__ import annotations

import json
import random
from base64 import b64decode
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from operator import attrgetter

import pytest

from placer.base.errors import ClusterError
from placer.passes.cluster.planning.binding_plan import BindingPlan, plan_bindings
from placer.passes.cluster.planning.gang_outcome import GangOutcome, GangState
from placer.passes.cluster.planning.half_bound import in_turn, next_to_go, recorded_after, recorded_before, with_earlier
from placer.passes.cluster.reading.client import Response
from placer.passes.cluster.reading.earlier_passes import HalfBoundGang, Prepared, prepared
from placer.passes.cluster.reading.gang_record import (
    MOST_BYTES,
    Ages,
    GangRecord,
    HeldRoom,
    RecordedDisruption,
    RecordedGangs,
    RejectedWorkload,
    Reservation,
    ReservedPod,
    UnansweredPods,
    digests,
    packed,
    read_record,
    record_bytes,
    shape,
    shapes_of,
)
from placer.passes.cluster.reading.views import WorkloadKey
from placer.passes.cluster.writing.gang_ledger import write_record
from placer.problem import GroupKey, Key
from placer.problem.placement import Placement
from tests.cluster.caches import mine
from tests.cluster.snapshots import snapshot_of
from tests.support import Document, node, pod_group

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


def key(name: str) -> GroupKey:
    return GroupKey("scheduling.volcano.sh", "default", name)


def gang(name: str, count: int, least: int | None = None) -> list[Document]:
    members = [mine(f"{name}-{number}", group=name) for number in range(count)]
    return [pod_group(name, minMember=count if least is None else least), *members]


def world(*documents: Document) -> Prepared:
    return prepared(snapshot_of([node("n1", cpu=100), *documents]), ())


def plan(made: Prepared) -> BindingPlan:
    placement = Placement.of({pod.key: "n1" for pod in made.instance.pending})
    return plan_bindings(made.instance, placement, made.snapshot.identities)


# -------------------------------------------------------------------------------------------------------------- record


def test_a_record_comes_back_as_it_was_written() -> None:
    shapes = shapes_of([{"cpu": 1}, {"cpu": 2}, {"cpu": 1}])
    assert sorted(shapes.values()) == [1, 2]
    gangs = {
        key("b"): GangRecord(NOW, digests(["1", "2", "3"]), 2, NOW + timedelta(minutes=2), 4, shapes),
        key("a"): GangRecord(NOW, frozenset()),
        key("c"): GangRecord(NOW, digests(["4"]), shapes=shapes_of([{"memory": 2**40}])),
        GroupKey("", "x", "y"): GangRecord(NOW, digests(["9"])),
    }

    moved = ReservedPod("uid-1", "uid-of-job", "n2", '{"metadata": {}, "spec": {}}')
    held = HeldRoom("me", {Key("default", "a"): ("uid-2", "n1")}, {Key("default", "b"): "uid-3"}, NOW, NOW)
    held = replace(held, shapes={Key("default", "a"): shape({"cpu": 1})})
    kept = Reservation("me", {Key("default", "c"): moved}, NOW, NOW)
    disruption = RecordedDisruption(held, ((NOW, 3),), (kept,))

    class Server:
        def get(self, path: str, *_: object) -> Response:
            assert path == "/api/v1/namespaces/placer/configmaps/placer-gangs"
            data = packed(gangs, {}, disruption)
            return Response(200, json.dumps({"metadata": {"resourceVersion": "4"}, "binaryData": data}).encode())

    assert read_record(Server(), "placer", "placer-gangs") == RecordedGangs(gangs, "4", {}, disruption)


class Ledger:
    """A ConfigMap that is written to, with answers that come first; what is there, and is read."""

    def __init__(self, *answers: Response, there: dict[str, str] | None = None) -> None:
        self.answers, self.there = list(answers), there
        self.asked: list[str] = []

    def get(self, *_: object) -> Response:
        self.asked.append("GET")
        found = {"metadata": {"resourceVersion": "8"}, "binaryData": self.there}
        return Response(200, json.dumps(found).encode())

    def send(self, method: str, *_: object, **__: object) -> Response:
        self.asked.append(method)
        return self.answers.pop(0)


def test_a_conflict_is_read_again_and_a_refusal_is_an_error() -> None:
    made = Response(200, b'{"metadata": {"resourceVersion": "9"}}')
    server = Ledger(Response(409, b"{}"), made)
    wanted = {key("a"): GangRecord(NOW)}
    assert write_record(server, "placer", "placer-gangs", RecordedGangs({}, "3"), wanted).version == "9"
    assert server.asked == ["PUT", "GET", "PUT"]
    with pytest.raises(ClusterError, match="record of half-bound gangs: 403"):
        write_record(Ledger(Response(403, b"{}")), "placer", "placer-gangs", RecordedGangs(), wanted)


@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_what_another_has_recorded_meanwhile_is_not_written_over(method: str) -> None:
    """A server that says that there is no record, and then that there is; or a pass that has begun since.

    What it has of half-bound gangs would be forgotten: they would hold their room, and nobody would be told.
    """
    wanted, another = {key("a"): GangRecord(NOW)}, {key("b"): GangRecord(NOW, digests(["1"]))}
    before = RecordedGangs({}, "" if method == "POST" else "3")
    server = Ledger(Response(409, b"{}"), there=packed(another))
    with pytest.raises(ClusterError, match="another has written it meanwhile"):
        write_record(server, "placer", "placer-gangs", before, wanted)
    assert server.asked == [method, "GET"]


@pytest.mark.parametrize("text", [b"", b"[]", b'{"metadata": {"resou', b'{"metadata": null}'])
def test_an_answer_that_is_no_record_is_looked_up(text: bytes) -> None:
    """It may have been written: then what is there is what was wanted; if not, it is written again."""
    made, wanted = Response(200, b'{"metadata": {"resourceVersion": "9"}}'), {key("a"): GangRecord(NOW)}
    server = Ledger(Response(200, text), made, there=packed(wanted))
    assert write_record(server, "placer", "placer-gangs", RecordedGangs({}, "3"), wanted).version == "8"
    assert server.asked == ["PUT", "GET"]
    server = Ledger(Response(200, text), made)
    assert write_record(server, "placer", "placer-gangs", RecordedGangs({}, "3"), wanted).version == "9"
    assert server.asked == ["PUT", "GET", "PUT"]


def test_only_one_that_is_not_there_records_nothing() -> None:
    class Server:
        def get(self, *_: object) -> Response:
            return Response(410, b'{"message": "forgotten"}')

    with pytest.raises(ClusterError, match="placer-gangs: 410 forgotten"):
        read_record(Server(), "placer", "placer-gangs")


def test_recorded_is_what_more_than_one_binding_makes_ready() -> None:
    made = world(*gang("a", 3), *gang("loose", 3, least=0), *gang("one", 1), mine("lone"))
    found = recorded_before(made.instance, plan(made), {}, {}, NOW)
    assert (found.plan, found.troubles) == (plan(made), [])
    asked = shapes_of([made.instance.pods[Key("default", "a-0")].requests] * 3)
    uids = digests(f"uid-a-{number}" for number in range(3))
    assert found.gangs == {key("a"): GangRecord(NOW, uids, size=3, shapes=asked)}
    assert list(asked.values()) == [3]


def test_a_gang_stays_recorded_until_its_kubelets_have_answered() -> None:
    """A loop waits for none of them: one that rejects a pod later leaves a gang that is half-bound."""
    made = world(*gang("a", 2), *gang("b", 2))
    before = {key(name): GangRecord(NOW, digests([f"uid-{name}-0", f"uid-{name}-1"]), size=2) for name in "ab"}
    silent = digests(["uid-a-1"])
    assert recorded_before(made.instance, BindingPlan(), before, {}, NOW, silent).gangs == {key("a"): before[key("a")]}
    bound = [GangOutcome(key(name), GangState.BOUND) for name in "ab"]
    assert recorded_after(bound, before, [], NOW, (), silent) == {key("a"): before[key("a")]}


def test_what_is_half_bound_stays_recorded_since_when_and_what_is_ready_does_not() -> None:
    made = world(*gang("a", 2), *gang("b", 2), *gang("c", 2))
    earlier = NOW - timedelta(hours=1)
    before = {
        key("a"): GangRecord(earlier, digests(["uid-of-before"])),
        key("b"): GangRecord(earlier, digests(["x"]), 3),
        key("c"): GangRecord(earlier, digests(["x"])),
        key("gone"): GangRecord(earlier, digests(["x"]), 2),
    }
    half = {key("a"): HalfBoundGang((), earlier, 0)}
    record = recorded_before(made.instance, BindingPlan(), before, half, NOW).gangs
    assert record == {key("a"): before[key("a")], key("b"): GangRecord(earlier, frozenset(), 3)}
    record = recorded_before(made.instance, plan(made), before, half, NOW).gangs
    assert record[key("a")].since == earlier
    assert record[key("a")].pods == digests(["uid-of-before", "uid-a-0", "uid-a-1"])
    assert record[key("c")].since == NOW


def test_what_a_gang_had_when_it_was_begun_stays_recorded_until_it_is_rolled_back() -> None:
    """A pod of it that is made larger before its next pass is none of those; and after it it has its patience anew."""
    earlier, small = NOW - timedelta(hours=1), shapes_of([{"cpu": 1}] * 2)
    made = world(*gang("a", 2), *gang("b", 2))
    before = {
        key("a"): GangRecord(earlier, digests(["uid-of-before"]), size=3, shapes=small),
        key("b"): GangRecord(earlier, rolled_back=2, until=NOW),
    }
    record = recorded_before(made.instance, plan(made), before, {key("a"): HalfBoundGang((), earlier, 0)}, NOW).gangs
    assert (record[key("a")].since, record[key("a")].size, record[key("a")].shapes) == (earlier, 3, small)
    again = record[key("b")]
    assert (again.since, again.rolled_back, again.until, again.size) == (NOW, 2, None, 2)
    assert again.shapes == shapes_of([made.instance.pods[Key("default", "b-0")].requests] * 2)


def room_for(monkeypatch: pytest.MonkeyPatch, gangs: int) -> None:
    """Let the record have room for so many gangs of three pods with a name of one letter in ``default``."""
    monkeypatch.setattr("placer.passes.cluster.planning.half_bound.MOST_BYTES", gangs * record_bytes(key("a"), 3) + 10)


def test_a_gang_for_which_the_record_has_no_room_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    room_for(monkeypatch, 1)
    made = world(*gang("a", 3), *gang("b", 3), mine("lone"))
    found = recorded_before(made.instance, plan(made), {}, {}, NOW)
    assert list(found.gangs) == [key("a")]
    assert [batch.gangs for batch in found.plan.batches] == [(key("a"),), (GroupKey("", "default", "lone"),)]
    assert found.plan.dropped == {key("b"): "the record of gangs under way has no room for more in one pass"}


def of(namespace: str, *documents: Document) -> list[Document]:
    """The same objects in a namespace."""
    return [{**each, "metadata": {**each["metadata"], "namespace": namespace}} for each in documents]


def test_namespaces_share_the_record_and_what_one_does_not_need_is_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    room_for(monkeypatch, 5)
    greedy = [each for name in "abcdefgh" for each in gang(name, 3)]
    made = world(*of("attack", *greedy), *of("victims", *gang("y", 3), *gang("z", 3)))
    found = recorded_before(made.instance, plan(made), {}, {}, NOW)
    assert {f"{each.namespace}/{each.name}" for each in found.gangs} == {
        *("attack/a", "attack/b", "attack/c", "victims/y", "victims/z")
    }
    assert {each.name for each in found.plan.dropped} == set("defgh")


def test_what_earlier_passes_recorded_of_one_namespace_keeps_no_other_from_the_record(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What was rolled back is forgotten first, then what became half-bound last; both are told."""
    room_for(monkeypatch, 4)
    mine_too = [each for name in "abcdefgh" for each in gang(name, 3)]
    made = world(*of("attack", *mine_too), *of("victims", *gang("y", 3), *gang("z", 3)))
    keys = [GroupKey("scheduling.volcano.sh", "attack", name) for name in "abcdefgh"]
    before = {
        each: GangRecord(
            NOW - timedelta(hours=number),
            digests(f"{each.name}{at}" for at in range(3)),
            size=3,
            shapes=shapes_of([{"cpu": 1}]),
        )
        for number, each in enumerate(keys[:5])
    } | {each: GangRecord(NOW - timedelta(days=1), rolled_back=4) for each in keys[5:]}
    half = {each: HalfBoundGang((), NOW, 0) for each in keys[:5]}
    victims = [each for each in plan(made).batches if each.gangs[0].namespace == "victims"]
    found = recorded_before(made.instance, BindingPlan(tuple(victims)), before, half, NOW)
    assert [(each.namespace, each.name) for each in sorted(found.gangs)] == [
        *(("attack", "d"), ("attack", "e"), ("victims", "y"), ("victims", "z"))
    ]
    assert found.plan.dropped == {}
    assert found.troubles == [
        "the record of gangs under way has no room for 6 gangs of namespace attack that are half-bound or were rolled"
        " back: they count as any other"
    ]


def test_the_most_urgent_gang_is_recorded_whatever_the_share_of_its_namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a large one would wait for as long as others have as much to begin in each pass."""
    room_for(monkeypatch, 6)
    others = [each for number in range(8) for each in of(f"n{number}", *gang("a", 3))]
    made = world(*gang("large", 8), *others)
    found = recorded_before(made.instance, plan(made), {}, {}, NOW)
    assert found.plan.batches[0].gangs == (key("large"),)
    assert found.plan.dropped.keys() == {
        GroupKey("scheduling.volcano.sh", f"n{number}", "a") for number in range(len(found.gangs) - 1, 8)
    }
    assert 1 < len(found.gangs) < 9


def test_gangs_are_rolled_back_namespace_by_namespace_in_turn() -> None:
    keys = [GroupKey("", *each.split("/")) for each in ("a/1", "a/2", "a/3", "b/1", "c/1", "b/2")]
    assert [f"{each.namespace}/{each.name}" for each in in_turn(keys, attrgetter("namespace"))] == [
        "a/1",
        "b/1",
        "c/1",
        "a/2",
        "b/2",
        "a/3",
    ]


@pytest.mark.parametrize(("pods", "length", "shapes"), [(2, 250, 1), (8, 12, 8), (1_000, 20, 1_000)])
def test_the_record_fits_into_a_config_map_whatever_gangs_and_workloads_are_called(
    pods: int, length: int, shapes: int
) -> None:
    """Names that cannot be packed; and as many gangs, workloads and pods without an answer as are recorded at most."""
    drawn = random.Random(1)

    def name(characters: int) -> str:
        return "".join(drawn.choices("abcdefghijklmnopqrstuvwxyz0123456789-", k=characters))

    def asked() -> dict[bytes, int]:
        return shapes_of({"cpu": drawn.randrange(10**9)} for _ in range(shapes))

    gangs, room = dict[GroupKey, GangRecord](), MOST_BYTES
    while room > 0:
        new = GroupKey("scheduling.volcano.sh", "tenant", name(length))
        room -= record_bytes(new, pods, shapes)
        uids = (str(drawn.random()) for _ in range(pods))
        since = NOW + timedelta(microseconds=drawn.randrange(10**6))
        gangs[new] = GangRecord(since, digests(uids), size=pods + drawn.randrange(10), shapes=asked())
    nodes = [name(20) for _ in range(500)]
    workloads = {
        WorkloadKey("tenant", name(60), name(253)): RejectedWorkload(
            dict.fromkeys(drawn.sample(nodes, 8), NOW), "OutOfcpu"
        )
        for _ in range(1_000)
    }
    silent = UnansweredPods("123456789", digests(map(str, range(10_000))))
    data = packed(gangs, workloads, unanswered=silent)
    assert sum(len(b64decode(text)) for text in data.values()) < 2**20


# ----------------------------------------------------------------------------------------------------- after a pass


def test_what_was_half_bound_and_is_left_is_so_still_also_when_nothing_of_it_was_planned() -> None:
    running = [
        {**each, "spec": {**each["spec"], "nodeName": "n1"}}
        for each in (mine("a-0", group="a"), mine("b-0", group="b"))
    ]
    made = world(pod_group("a", minMember=2), pod_group("b", minMember=2), *running, mine("a-1", group="a"))
    half = {key(name): HalfBoundGang((Key("default", f"{name}-0"),), NOW, 0) for name in ("a", "b")}
    left = GangOutcome(key("a"), GangState.LEFT, missing={Key("default", "a-1"): "no"}, reason="no")
    one, two = with_earlier(made.instance, made.snapshot.identities, [left], half)
    assert (one.state, [bind.uid for bind in one.before]) == (GangState.HALF_BOUND, ["uid-a-0"])
    assert (two.key, two.state, [bind.node for bind in two.before]) == (key("b"), GangState.HALF_BOUND, ["n1"])
    assert two.reason == "1 of minMember 2 placed (1 before, 0 new)"


def half_bound(
    names: Iterable[str], seconds: float = 1000, priority: int = 0
) -> tuple[list[GangOutcome], dict[GroupKey, HalfBoundGang], dict[GroupKey, GangRecord]]:
    since = NOW - timedelta(seconds=seconds)
    return (
        [GangOutcome(key(name), GangState.HALF_BOUND) for name in names],
        {key(name): HalfBoundGang((), since, priority) for name in names},
        {key(name): GangRecord(since) for name in names},
    )


def test_of_two_that_hold_each_others_room_the_less_urgent_goes() -> None:
    made = world(*gang("a", 2), *gang("b", 2))
    gangs, half, record = half_bound("ab")
    assert next_to_go(made.instance, gangs, half, record, 300, NOW) == ([key("b")], [key("a")])  # by name
    record[key("a")] = GangRecord(NOW - timedelta(seconds=900))  # the younger
    assert next_to_go(made.instance, gangs, half, record, 300, NOW) == ([key("a")], [key("b")])
    half[key("b")] = HalfBoundGang((), NOW, -1)  # the lower priority
    assert next_to_go(made.instance, gangs, half, record, 300, NOW) == ([key("b")], [key("a")])


def test_nobody_goes_whose_patience_is_not_over() -> None:
    made = world(*gang("a", 2), *gang("b", 2))
    gangs, half, record = half_bound("ab", seconds=299)
    assert next_to_go(made.instance, gangs, half, record, 300, NOW) == ([], [])
    assert next_to_go(made.instance, gangs, half, record, float("inf"), NOW) == ([], [])
    assert next_to_go(made.instance, gangs, half, record, 0, NOW) == ([key("a"), key("b")], [])


def test_what_nothing_can_complete_goes_and_costs_no_other_its_turn() -> None:
    running = {**mine("b-0", group="b")}
    hopeless = [pod_group("b", minMember=2), running | {"spec": {**running["spec"], "nodeName": "n1"}}]
    made = world(*gang("a", 2), *gang("c", 2), *hopeless)
    gangs, half, record = half_bound("b")
    assert next_to_go(made.instance, gangs, half, record, 300, NOW) == ([key("b")], [])
    gangs, half, record = half_bound("ac")
    assert next_to_go(made.instance, gangs, half, record, 300, NOW) == ([key("c")], [key("a")])
    gangs, half, record = half_bound("abc", priority=5)
    half[key("b")] = HalfBoundGang((), NOW, 10)  # would stay as the more urgent one, and c would go for it
    half[key("c")] = HalfBoundGang((), NOW, 7)
    assert next_to_go(made.instance, gangs, half, record, 300, NOW) == ([key("b"), key("a")], [key("c")])


def test_the_time_for_which_a_gang_backs_off_doubles_up_to_an_hour() -> None:
    record = {key("a"): GangRecord(NOW, digests(["1"]))}
    times = []
    for _ in range(8):
        record = recorded_after([GangOutcome(key("a"), GangState.ROLLED_BACK)], record, [], NOW)
        until = record[key("a")].until
        assert until is not None
        times.append((until - NOW).total_seconds())
        assert record[key("a")].pods == frozenset()
    assert times == [60, 120, 240, 480, 960, 1920, 3600, 3600]
    assert recorded_after([GangOutcome(key("a"), GangState.BOUND)], record, [], NOW) == {}


def test_after_a_pass_recorded_is_what_is_half_bound_or_may_be() -> None:
    record = {key(name): GangRecord(NOW - timedelta(hours=1), digests([name])) for name in "abcde"}
    missing = {Key("default", "x"): "no answer"}
    after = recorded_after(
        [
            GangOutcome(key("a"), GangState.HALF_BOUND),
            GangOutcome(key("b"), GangState.HALF_BOUND),
            GangOutcome(key("c"), GangState.SHORT),
            GangOutcome(key("d"), GangState.LEFT, reason="the pass was to end"),
            GangOutcome(key("e"), GangState.LEFT, missing=missing, reason="no answer"),
        ],
        record,
        [key("b")],
        NOW,
    )
    assert after == {
        key("a"): record[key("a")],
        key("b"): GangRecord(NOW, digests(["b"])),
        key("e"): record[key("e")],
    }


def test_a_jump_of_the_servers_clock_makes_no_gang_older() -> None:
    """Neither forward nor back; what this process has not seen before is as old as the record says."""
    mine = [100.0]
    ages = Ages(lambda: mine[0])
    record = {key("a"): GangRecord(NOW, frozenset()), key("b"): GangRecord(NOW - timedelta(seconds=60), frozenset())}
    assert ages.steady(record, NOW) == record
    mine[0] += 5.0
    ahead = NOW + timedelta(minutes=10, seconds=5)
    found = ages.steady(record, ahead)
    assert [(ahead - each.since).total_seconds() for each in found.values()] == [5.0, 65.0]
    mine[0] += 5.0
    for known in (found, record):  # whether it was written meanwhile or not
        again = ages.steady(known, NOW + timedelta(seconds=10))
        assert [(NOW - each.since).total_seconds() for each in again.values()] == [0.0, 60.0]
    anew = {key("a"): GangRecord(NOW + timedelta(seconds=9), frozenset())}
    assert ages.steady(anew, NOW + timedelta(seconds=10)) == anew
    assert Ages(lambda: 0.0).steady(record, ahead) == record


def test_without_patience_a_gang_goes_though_the_clock_is_a_part_of_a_second_behind() -> None:
    found = GangOutcome(key("a"), GangState.HALF_BOUND)
    record = {key("a"): GangRecord(NOW, frozenset())}
    made = world(*gang("a", 2))
    early = NOW - timedelta(seconds=0.5)
    assert next_to_go(made.instance, [found], {}, record, 0.0, early) == ([key("a")], [])
    assert next_to_go(made.instance, [found], {}, record, 1.0, early) == ([], [])
