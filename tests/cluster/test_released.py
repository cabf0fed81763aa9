"""Released pods in the ledger: whose room it is, when their gangs are whole, who goes, and who waits for whom."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import BytesIO
from typing import Any

import pytest

from placer.kube.kinds import BY_ATTRIBUTE
from placer.kube.manifests import Text, split, validate
from placer.passes.cluster.planning.binding_plan import Batch, BindingPlan, PlannedBinding
from placer.passes.cluster.planning.gang_outcome import GangOutcome, GangState
from placer.passes.cluster.planning.half_bound import (
    next_to_go,
    recorded_after,
    recorded_before,
    surpluses,
    with_earlier,
)
from placer.passes.cluster.planning.scheduler_cache import SchedulerCache
from placer.passes.cluster.reading.earlier_passes import Prepared, prepared
from placer.passes.cluster.reading.gang_record import GangRecord, digests, mark, record_bytes, shapes_of
from placer.passes.cluster.reading.guards import Guards, guarded
from placer.passes.cluster.reading.queueing_hints import may_help
from placer.passes.cluster.reading.rejections import failed_selector, rejection_of
from placer.passes.cluster.reading.snapshot import Snapshot
from placer.passes.cluster.writing.binding import BindingState
from placer.passes.cluster.writing.breaker import Breaker
from placer.passes.cluster.writing.plan_execution import BindingOptions, _Execution
from placer.problem import GroupKey, Key, PodState
from placer.problem.pod_states import HOLD_GATE
from tests.cluster.caches import bind, event
from tests.cluster.snapshots import kept, snapshot_of
from tests.support import Document, node, pod, pod_group

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TRAIN = GroupKey("scheduling.volcano.sh", "default", "train")


def theirs(
    name: str, *, held: bool = False, only: str | None = None, group: str | None = "train", **rest: Any
) -> Document:
    """A pod of kube-scheduler: held by the gate, or with an affinity to one node, as placer writes it."""
    spec: dict[str, Any] = {"schedulerName": "default-scheduler"}
    if held:
        spec["schedulingGates"] = [{"name": HOLD_GATE}]
    if only is not None:
        fields = [{"key": "metadata.name", "operator": "In", "values": [only]}]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": fields}]}}
        spec["affinity"] = {"nodeAffinity": required}
    return pod(name, group=group, spec=spec, metadata={"uid": f"uid-{name}"}, **({"cpu": 4} | rest))


def taken(*documents: Document, nodes: int = 3) -> Snapshot:
    return replace(snapshot_of([*(node(f"n{number}", cpu=4) for number in range(nodes)), *documents]), gates=True)


def record(*released: tuple[str, str], since: datetime = NOW, key: GroupKey = TRAIN) -> dict[GroupKey, GangRecord]:
    return {key: GangRecord(since, digests(mark(f"uid-{name}", where) for name, where in released), size=len(released))}


def made(snapshot: Snapshot, begun: dict[GroupKey, GangRecord], now: datetime = NOW) -> Prepared:
    return prepared(snapshot, (), begun, now)


def keys(*names: str) -> tuple[Key, ...]:
    return tuple(Key("default", name) for name in names)


# ------------------------------------------------------------------------------------------------------ in the snapshot


def test_what_was_released_counts_as_bound() -> None:
    """It has its room and its gang has it; and a file of the snapshot says the same to whoever solves it."""
    snapshot = taken(pod_group("train", minMember=2), theirs("train-0", only="n0"), theirs("train-1", only="n1"))
    found = made(snapshot, record(("train-0", "n0"), ("train-1", "n1")))
    assert found.released == set(keys("train-0", "train-1"))
    assert {pod.node for pod in found.instance.pods.values()} == {"n0", "n1"}
    half = found.half_bound[TRAIN]
    assert (half.members, half.released, half.missing, half.overdue) == ((), keys("train-0", "train-1"), (), False)
    assert {each.state for each in found.instance.pods.values()} == {PodState.BOUND}
    assert made(snapshot, {}).instance.pods == {}  # without a record they are another scheduler's


def test_a_snapshot_says_that_gates_are_ours() -> None:
    text = BytesIO()
    taken(theirs("p", held=True, group=None)).write_text(text)
    objects = validate(split([Text("file", text.getvalue())]), listed=True)
    assert (objects.snapshot, objects.gates) == ("placer", True)
    text = BytesIO()
    replace(taken(theirs("p", held=True, group=None)), gates=False).write_text(text)
    assert not validate(split([Text("file", text.getvalue())]), listed=True).gates


def test_a_gang_that_its_scheduler_binds_in_part_is_half_bound_after_a_while() -> None:
    snapshot = taken(pod_group("train", minMember=2), theirs("train-0", node="n0"), theirs("train-1", only="n1"))
    begun = record(("train-0", "n0"), ("train-1", "n1"))
    for seconds, overdue in ((29, False), (31, True)):
        half = made(snapshot, begun, NOW + timedelta(seconds=seconds)).half_bound[TRAIN]
        assert (half.members, half.released, half.overdue) == (keys("train-0"), keys("train-1"), overdue)
    enough = taken(pod_group("train", minMember=1), theirs("train-0", node="n0"), theirs("train-1", only="n1"))
    assert not made(enough, begun, NOW + timedelta(hours=1)).half_bound[TRAIN].overdue


def test_who_is_bound_elsewhere_was_not_released_by_us() -> None:
    """Its owner took the gate away, and kube-scheduler chose: the gang gets no priority by it."""
    snapshot = taken(pod_group("train", minMember=2), theirs("train-0", node="n2"), theirs("train-1", held=True))
    assert made(snapshot, record(("train-0", "n0"), ("train-1", "n1"))).half_bound == {}


def test_other_namespaces_keep_their_gates() -> None:
    snapshot = guarded(taken(theirs("p", held=True, group=None)), Guards(frozenset({"other"})))
    assert made(snapshot, {}).instance.pending == ()


# --------------------------------------------------------------------------------------------------------- in the cache


def released_before() -> tuple[SchedulerCache, Prepared]:
    """n0 is kept for what an earlier pass released."""
    snapshot = taken(theirs("p", only="n0", group=None), theirs("q", held=True, group=None))
    found = made(snapshot, record(("p", "n0"), key=GroupKey("", "default", "p")))
    return SchedulerCache(snapshot, found.instance, found.released), found


def held(name: str, where: str) -> PlannedBinding:
    return replace(bind(name, where), by_release=True)


def test_nobody_gets_the_room_of_what_is_on_its_way() -> None:
    cache, _ = released_before()
    why = "the room is gone on Node n0: cpu 4 of 0 left"
    gangs, binds = [GroupKey("", "default", "q")], [held("q", "n0")]
    assert cache.refusal(gangs, binds) == why
    cache.pod_happened("MODIFIED", event(theirs("p", only="n0", group=None), conditions=[]))  # it is refused, say
    assert (cache.refusal(gangs, binds), cache.unbound()) == (why, set(keys("p")))
    cache.pod_happened("MODIFIED", event(theirs("p", only="n0", group=None), "n0"))
    assert (cache.refusal(gangs, binds), cache.unbound()) == (why, set())
    cache.pod_happened("DELETED", event(theirs("p", only="n0", group=None), "n0"))
    assert cache.refusal(gangs, binds) is None


def test_what_is_released_now_is_counted_once() -> None:
    """As it is nominated, released and bound by its scheduler; the node is over-full by what is on it alone."""
    snapshot = taken(theirs("q", held=True, group=None), nodes=1)
    cache = SchedulerCache(snapshot, made(snapshot, {}).instance)
    cache.assume([held("q", "n0")])
    cache.pod_happened("MODIFIED", event(theirs("q", held=True, group=None), nominatedNodeName="n0"))
    assert not cache.all_seen()
    cache.pod_happened("MODIFIED", event(theirs("q", only="n0", group=None), nominatedNodeName="n0"))
    assert (cache.all_seen(), cache.all_seen(answered=True), cache.unbound()) == (True, False, set(keys("q")))
    assert not cache.is_bound(held("q", "n0"))
    cache.pod_happened("ADDED", event(pod("thief", metadata={"uid": "t"}, cpu=1), "n0"))
    assert cache.overfull() == []  # its scheduler does not bind it there
    cache.pod_happened("MODIFIED", event(theirs("q", only="n0", group=None), "n0"))
    assert (cache.is_bound(held("q", "n0")), cache.unbound()) == (True, set())
    assert [str(each) for each in cache.overfull()] == ["Node n0: cpu 5 of 4"]


# ------------------------------------------------------------------------------------------- what is recorded, who goes


def outcome(state: GangState, bound: Iterable[PlannedBinding] = (), key: GroupKey = TRAIN) -> GangOutcome:
    return GangOutcome(key, state, tuple(bound))


def test_whoever_is_released_is_recorded_with_the_node() -> None:
    """A gang, and a pod by itself, which is not where it is bound."""
    lone = GroupKey("", "default", "lone")
    snapshot = taken(
        pod_group("train", minMember=1), theirs("train-0", held=True), theirs("lone", held=True, group=None)
    )
    binds = [held("train-0", "n0"), held("lone", "n1")]
    plan = BindingPlan(tuple(Batch((key,), (each,)) for key, each in zip((TRAIN, lone), binds, strict=True)))
    found = recorded_before(made(snapshot, {}).instance, plan, {}, {}, NOW).gangs
    assert {key: each.pods for key, each in found.items()} == {
        TRAIN: digests([mark("uid-train-0", "n0")]),
        lone: digests([mark("uid-lone", "n1")]),
    }
    direct = BindingPlan(
        tuple(replace(each, bindings=(replace(each.bindings[0], by_release=False),)) for each in plan.batches)
    )
    assert recorded_before(made(snapshot, {}).instance, direct, {}, {}, NOW).gangs == {}


def test_a_record_stays_until_all_are_bound_and_forgets_what_was_refused() -> None:
    begun = record(("train-0", "n0"), ("train-1", "n1"))
    waits = replace(outcome(GangState.SHORT), waiting=(held("train-0", "n0"),))
    assert recorded_after([waits], begun, [], NOW) == begun
    assert recorded_after([outcome(GangState.RELEASED)], begun, [], NOW) == begun
    assert recorded_after([outcome(GangState.BOUND)], begun, [], NOW) == {}
    left = recorded_after([waits], begun, [], NOW, [held("train-1", "n1")])
    assert left[TRAIN].pods == digests([mark("uid-train-0", "n0")])


def test_the_state_of_gangs_that_schedulers_are_still_to_bind() -> None:
    snapshot = taken(pod_group("train", minMember=2), theirs("train-0", node="n0"), theirs("train-1", only="n1"))
    begun = record(("train-0", "n0"), ("train-1", "n1"))
    for seconds, unbound, state in (
        (1, keys("train-1"), GangState.RELEASED),
        (60, keys("train-1"), GangState.HALF_BOUND),
        (60, (), GangState.BOUND),  # it was bound during the pass
    ):
        found = made(snapshot, begun, NOW + timedelta(seconds=seconds))
        (gang,) = with_earlier(found.instance, found.snapshot.identities, [], found.half_bound, unbound)
        assert gang.state is state
        assert [bind.pod for bind in gang.waiting] == list(unbound)
        assert {bind.pod: bind.by_release for bind in gang.before} == dict(
            zip(keys("train-0", "train-1"), (False, True), strict=True)
        )


@pytest.mark.parametrize(
    ("patience", "grace", "age", "goes"), [(300, 30, 299, False), (300, 30, 301, True), (0, 30, 29, False)]
)
def test_patience_with_what_no_scheduler_binds(patience: float, grace: float, age: int, goes: bool) -> None:
    snapshot = taken(pod_group("train", minMember=1), theirs("train-0", only="n0"))
    begun = record(("train-0", "n0"))
    found = made(snapshot, begun)
    late = (held("train-0", "n0"),)
    gang = replace(outcome(GangState.RELEASED), before=late, waiting=late)
    now = NOW + timedelta(seconds=age)
    go, stay = next_to_go(found.instance, [gang], found.half_bound, begun, patience, now, grace)
    assert (go, stay) == ([TRAIN] if goes else [], [])
    just_now = replace(outcome(GangState.RELEASED, late), waiting=late)
    assert next_to_go(found.instance, [just_now], found.half_bound, begun, patience, now, grace) == ([], [])


def test_the_record_has_no_more_room_for_what_is_released_than_for_what_is_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Pods by themselves that are released are recorded one by one: who has many leaves others their part of it, and
    those of earlier passes count.
    """
    room = record_bytes(GroupKey("", "default", "a"), 1)
    monkeypatch.setattr("placer.passes.cluster.planning.half_bound.MOST_BYTES", 4 * room)
    names = "abcdefgh"
    snapshot = taken(*(theirs(name, held=True, group=None) for name in names), theirs("z", only="n2", group=None))
    lone = {name: GroupKey("", "default", name) for name in (*names, "z")}
    before = record(("z", "n2"), key=lone["z"])
    found = made(snapshot, before)
    plan = BindingPlan(tuple(Batch((lone[name],), (held(name, "n0"),)) for name in names))
    recorded = recorded_before(found.instance, plan, before, found.half_bound, NOW)
    assert sorted(key.name for key in recorded.gangs) == ["a", "b", "c", "z"]
    assert [batch.gangs[0].name for batch in recorded.plan.batches] == ["a", "b", "c"]
    assert {key.name for key in recorded.plan.dropped} == set("defgh")
    assert recorded.troubles == []


def test_what_is_missing_of_a_gang_that_was_released_is_what_it_had() -> None:
    """What its owner makes larger than what was begun does not come first, though pods of it were released."""
    small, large = (theirs(f"train-{number}", held=True, cpu=cpu) for number, cpu in ((1, 4), (2, 3)))
    snapshot = taken(pod_group("train", minMember=3), theirs("train-0", only="n0"), small, large)
    shapes = shapes_of([made(snapshot, {}).instance.pods[Key("default", "train-1")].requests] * 3)
    begun = {TRAIN: replace(record(("train-0", "n0"))[TRAIN], size=3, shapes=shapes)}
    half = made(snapshot, begun).half_bound[TRAIN]
    assert (half.released, half.missing) == (keys("train-0"), keys("train-1"))


@pytest.mark.parametrize(("least", "alone"), [(1, True), (2, False)])
def test_who_goes_with_it(least: int, alone: bool) -> None:
    """A pod beyond the minimum goes alone; without one that is needed all of the gang goes."""
    snapshot = taken(pod_group("train", minMember=least), theirs("train-0", node="n0"), theirs("train-1", only="n1"))
    found = made(snapshot, record(("train-0", "n0"), ("train-1", "n1")))
    gang = replace(outcome(GangState.RELEASED), waiting=(held("train-1", "n1"),))
    assert surpluses(found.instance, [gang], [gang.key]) == ({gang.key: set(keys("train-1"))} if alone else {})


def test_what_this_pass_has_bound_counts_for_what_stays() -> None:
    snapshot = taken(pod_group("train", minMember=1), theirs("train-0", held=True), theirs("train-1", only="n1"))
    found = made(snapshot, record(("train-1", "n1")))
    gang = replace(outcome(GangState.SHORT, [bind("train-0", "n0")]), waiting=(held("train-1", "n1"),))
    assert surpluses(found.instance, [gang], [gang.key]) == {gang.key: set(keys("train-1"))}
    assert surpluses(found.instance, [replace(gang, bound=())], [gang.key]) == {}


# ------------------------------------------------------------------------------------------------- hints and rejections


def test_what_begins_a_pass() -> None:
    """A gated pod that comes, and one that was released and goes; not a release."""
    info = BY_ATTRIBUTE["pods"]
    gated, free = (json.dumps(kept(each)).encode() for each in (theirs("p", held=True), theirs("p", only="n0")))
    assert may_help(info, None, gated, "placer", gates=True)
    assert not may_help(info, None, gated, "placer")
    assert not may_help(info, gated, free, "placer", gates=True)
    assert may_help(info, free, None, "placer", gates=True)
    assert not may_help(info, free, None, "placer")


def test_whose_rejection_is_ours() -> None:
    assert failed_selector("placer", gates=True) == "status.phase=Failed"
    status = {"phase": "Failed", "reason": "OutOfcpu"}
    ours = json.dumps(theirs("p", only="n0", node="n0", status=status)).encode()
    other = json.dumps(theirs("p", node="n0", status=status)).encode()
    found = rejection_of(ours, "placer", gates=True)
    assert found is not None
    assert found.node == "n0"
    assert rejection_of(other, "placer", gates=True) is None
    assert rejection_of(ours, "placer") is None


def test_a_pod_that_is_aligned_waits_until_the_one_before_is_bound() -> None:
    """The answer to a release says nothing of when the kubelet hears of the pod."""
    snapshot = taken(pod_group("train", minMember=2), theirs("train-0", held=True), theirs("train-1", held=True))
    instance = made(snapshot, {}).instance
    cache = SchedulerCache(snapshot, instance)
    # Neither a server nor anything that stops it is asked for: it is looked at what would go out.
    breaker = Breaker(None, 1.0)  # type: ignore[arg-type]
    nobody = (None,) * 4
    work = _Execution(breaker, cache, instance, BindingOptions(), *nobody)  # type: ignore[arg-type]  # see above
    first, second = (
        held("train-0", "n0"),
        replace(held("train-1", "n0"), after=keys("train-0")[0]),
    )
    cache.assume([first])
    work._results[first.pod] = (first, BindingState.BOUND)
    assert not work._is_enough(second, first)
    cache.pod_happened("MODIFIED", event(theirs("train-0", only="n0"), "n0"))
    assert work._is_enough(second, first)
    assert not work._is_enough(replace(second, admitted=True), first)
