"""Room that is held for half-bound gangs: where some of what they lack has room, for a while."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import placer
from placer.answers.solving import solve
from placer.passes.cluster.planning.reservations import with_room_to_complete
from placer.passes.cluster.planning.scheduler_cache import SchedulerCache
from placer.passes.cluster.reading.earlier_passes import Prepared, instance_in, prepared
from placer.passes.cluster.reading.gang_record import GangRecord, HeldRoom, digests, shape, shapes_of
from placer.passes.cluster.reading.snapshot import Snapshot
from placer.problem import GroupKey, Instance, Key, PodState
from placer.problem.result import Result
from tests.cluster.snapshots import snapshot_of
from tests.support import Document, hyper_node, node, pod, pod_group

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
#: Two racks, each node with room for one pod.
NODES = [
    *(node(f"{rack}{number}", cpu=4, pods=10) for rack in "ab" for number in range(4)),
    *(hyper_node(f"rack-{rack}", 1, nodes=tuple(f"{rack}{number}" for number in range(4))) for rack in "ab"),
]


def member(gang: str, number: int, where: str | None = None, cpu: int = 4) -> Document:
    name = f"{gang}-{number}"
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    return pod(name, node=where, cpu=cpu, group=gang, spec={"schedulerName": "placer"}, metadata=metadata)


def gang(name: str, nodes: list[str | None], tier: int | None = None, **spec: Any) -> list[Document]:
    """A gang with a pod on each of some nodes; None: it waits."""
    if tier is not None:
        spec["networkTopology"] = {"mode": "hard", "highestTierAllowed": tier}
    members = [member(name, number, where) for number, where in enumerate(nodes)]
    return [pod_group(name, **{"minMember": len(nodes)} | spec), *members]


ASKED = instance_in(snapshot_of([member("any", 0, "a0"), pod_group("any")])).pods[Key("default", "any-0")].requests


def taken(*nodes: str) -> list[Document]:
    """Pods of others, one on each."""
    return [pod(f"other-{each}", node=each, cpu=4, metadata={"uid": f"uid-other-{each}"}) for each in nodes]


def begun(name: str, size: int, seconds: float = 0) -> dict[GroupKey, GangRecord]:
    """That placer has begun to bind a gang."""
    uids = digests(f"uid-{name}-{number}" for number in range(size))
    record = GangRecord(NOW - timedelta(seconds=seconds), uids, size=size, shapes=shapes_of([ASKED] * size))
    return {GroupKey("scheduling.volcano.sh", "default", name): record}


def decide(instance: Instance) -> Result:
    return solve(instance, method="greedy")


def held(
    documents: list[Document], record: dict[GroupKey, GangRecord], **options: Any
) -> tuple[Snapshot, Prepared, list[str]]:
    """The cluster, the same as it is decided upon, and where room is held."""
    snapshot = snapshot_of([*NODES, *documents])
    made = prepared(snapshot, (), record, NOW, **options)
    kept, found, reasons = with_room_to_complete(snapshot, made, decide, 300, NOW)
    waits = [each for each in found.instance.pods.values() if each.state is PodState.NOMINATED]
    assert bool(waits) == bool(reasons)
    return kept, found, sorted(str(each.node) for each in waits)


def placed(made: Prepared) -> dict[str, str]:
    placement = decide(made.instance).placement
    assert placement is not None
    return {each.pod.name: each.node for each in placement.bindings}


#: Of a gang that must be in one rack two pods are missing, and there is room for one; others wait for that, too.
HALF = gang("half", ["a0", "a1", None, None], tier=1)
OTHERS = [*gang("new", [None, None, None]), *gang("more", [None, None])]


def test_what_of_a_half_bound_gang_has_room_in_its_rack_is_held_there() -> None:
    documents = [*HALF, *OTHERS, *taken("a2")]
    kept, made, where = held(documents, begun("half", 4))
    assert where == ["a3"]
    assert set(placed(prepared(snapshot_of([*NODES, *documents]), (), begun("half", 4), NOW)).values()) >= {"a3"}
    assert set(placed(made).values()) <= {"b0", "b1", "b2", "b3"}
    assert len(placed(made)) in (2, 3)
    SchedulerCache(kept, made.instance)  # that knows whose room it is


def test_why_it_waits_is_told_without_the_room_that_is_held_for_it() -> None:
    snapshot = snapshot_of([*NODES, *HALF, *OTHERS, *taken("a2")])
    made = prepared(snapshot, (), begun("half", 4), NOW)
    (reason,) = with_room_to_complete(snapshot, made, decide, 300, NOW)[2].values()
    assert reason.message.endswith("that of its placed pods (rack-a, tier 1) has room for 1, 1 too few")


def test_once_all_of_it_has_room_it_is_completed() -> None:
    _, made, where = held([*HALF, *OTHERS], begun("half", 4))
    assert where == []
    found = placed(made)
    assert {found["half-2"], found["half-3"]} == {"a2", "a3"}


def test_of_gangs_that_lack_no_pod_with_room_nothing_is_held() -> None:
    _, _, where = held([*HALF, *OTHERS, *taken("a2", "a3")], begun("half", 4))
    assert where == []


def test_it_is_held_no_longer_than_the_gang_may_stay_half_bound() -> None:
    documents = [*HALF, *OTHERS, *taken("a2")]
    assert held(documents, begun("half", 4, seconds=299))[2] == ["a3"]
    assert held(documents, begun("half", 4, seconds=300))[2] == []


def test_without_others_that_wait_nothing_is_held_and_nothing_decided() -> None:
    snapshot = snapshot_of([*NODES, *HALF, *taken("a2")])
    made = prepared(snapshot, (), begun("half", 4), NOW)

    def never(_: Instance) -> Result:
        raise AssertionError

    assert with_room_to_complete(snapshot, made, never, 300, NOW) == (snapshot, made, {})
    new = snapshot_of([*NODES, *OTHERS])
    made = prepared(new, (), begun("half", 4), NOW)
    assert with_room_to_complete(new, made, never, 300, NOW) == (new, made, {})


def test_no_more_is_held_than_the_gang_had_when_it_was_begun() -> None:
    """What its owner adds, or makes larger, gets nothing."""
    spread = gang("half", ["a0", "a1", None, None, None, None, None], tier=1)
    record = begun("half", 4)
    assert held([*spread, *OTHERS], record)[2] == ["a2", "a3"]  # of the five that wait two were there: the rest waits
    larger = [*HALF[:3], member("half", 2, cpu=3), member("half", 3)]
    assert held([*larger, *OTHERS, *taken("a2")], record)[2] == ["a3"]
    both = [*HALF[:3], member("half", 2, cpu=3), member("half", 3, cpu=3)]
    assert held([*both, *OTHERS, *taken("a2")], record)[2] == []


def test_what_has_room_is_held_also_where_roles_are_counted() -> None:
    documents = gang("half", ["a0", "a1", None, None], tier=1, minTaskMember={"worker": 4})
    for each in documents[1:]:
        each["metadata"]["annotations"] = {"volcano.sh/task-spec": "worker"} | each["metadata"]["annotations"]
    assert held([*documents, *OTHERS, *taken("a2")], begun("half", 4))[2] == ["a3"]


def test_what_comes_first_and_fits_loses_no_room_to_what_does_not() -> None:
    """Two are half-bound in one rack, where two nodes are free: one lacks two pods, the other three."""
    both = [*gang("fits", ["a0", None, None], tier=1), *gang("lacks", ["a1", None, None, None], tier=1)]
    for names in (("fits", "lacks"), ("lacks", "fits")):
        record = {key: each for name in names for key, each in begun(name, 4 if name == "lacks" else 3).items()}
        _, made, where = held([*both, *OTHERS], record)
        assert where == []
        assert {"fits-1", "fits-2"} <= placed(made).keys()


def test_nor_does_a_gang_for_which_room_was_made() -> None:
    waits = gang("gains", [None], tier=1)
    gaining, until = Key("default", "gains-0"), NOW + timedelta(seconds=600)
    room = HeldRoom("pass", ((gaining, ("uid-gains-0", "a3")),), (), NOW, until, ((gaining, shape(ASKED).hex()),))
    documents = [*HALF, *waits, *OTHERS, *taken("a2", "b0", "b1", "b2", "b3")]
    _, made, where = held(documents, begun("half", 4), held=room)
    assert where == []
    assert placed(made) == {"gains-0": "a3"}


@pytest.mark.parametrize(("size", "parts"), [(2, "0011"), (1, "0012")])
def test_what_has_room_is_held_also_where_sub_groups_are_counted(size: int, parts: str) -> None:
    policy = {"name": "part", "subGroupSize": size, "minSubGroups": len(set(parts)), "matchLabelKeys": ["part"]}
    documents = gang("half", ["a0", "a1", None, None], tier=1, subGroupPolicy=[policy])
    for each, part in zip(documents[1:], parts, strict=True):
        each["metadata"].setdefault("labels", {})["part"] = part
    _, made, where = held([*documents, *OTHERS, *taken("a2")], begun("half", 4))
    assert where == ["a3"]
    assert "half-2" not in placed(made)


def test_a_written_snapshot_says_the_same(tmp_path: Path) -> None:
    _, made, where = held([*HALF, *OTHERS, *taken("a2")], begun("half", 4))
    made.snapshot.write(tmp_path / "snapshot.json")
    again = placer.read(tmp_path / "snapshot.json")
    assert [each.node for each in again.pods.values() if each.state is PodState.NOMINATED] == where
