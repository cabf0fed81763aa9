"""What earlier passes left behind: nodes that cool down, gangs that are half-bound."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import placer
from placer.passes.cluster.reading.earlier_passes import RoomState, marked, prepared
from placer.passes.cluster.reading.gang_record import GangRecord, HeldRoom, RejectedWorkload, digests, shapes_of
from placer.passes.cluster.reading.views import WorkloadKey
from placer.problem import GroupKey, Key
from tests.cluster.snapshots import snapshot_of
from tests.support import Document, node, pod, pod_group

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


def named(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"}}


def gang(name: str, bound: int, pending: int, least: int | None = None, **spec: Any) -> list[Document]:
    options: dict[str, Any] = {"spec": {"schedulerName": "placer"}, "cpu": 4, "group": name}
    return [
        pod_group(name, minMember=bound + pending if least is None else least, **spec),
        *(pod(f"{name}-{number}", node="n1", **named(f"{name}-{number}"), **options) for number in range(bound)),
        *(pod(f"{name}-{number}", **named(f"{name}-{number}"), **options) for number in range(bound, bound + pending)),
    ]


def decided(snapshot: Any, folder: Path) -> dict[str, str]:
    """What ``solve`` says of the written snapshot."""
    path = folder / "snapshot.json.gz"
    snapshot.write(path)
    placement = placer.solve(placer.read(path), method="greedy").placement
    assert placement is not None
    return {each.pod.name: each.node for each in placement.bindings}


def test_a_cooling_node_gets_nothing_also_when_it_is_decided_again(tmp_path: Path) -> None:
    made = prepared(snapshot_of([node("n1"), node("n2", cpu=4), *gang("a", 0, 1)]), {"n1", "gone"})
    snapshot, instance = made.snapshot, made.instance
    assert [(taint.key, taint.effect) for taint in instance.nodes["n1"].taints] == [
        ("placer.dev/cooling-down", "NoSchedule")
    ]
    assert instance.nodes["n2"].taints == ()
    assert decided(snapshot, tmp_path) == {"a-0": "n2"}


def recorded(*names: str, group: str = "scheduling.volcano.sh", **options: Any) -> dict[GroupKey, GangRecord]:
    """That placer bound the first two pods of gangs, a short time ago."""
    return {
        GroupKey(group, "default", name): GangRecord(
            NOW, **{"pods": digests(f"uid-{name}-{number}" for number in range(2)), **options}
        )
        for name in names
    }


def test_half_bound_is_what_placer_bound_and_what_is_not_ready() -> None:
    documents = [
        node("n1", cpu=100),
        *gang("half", 1, 1),
        *gang("ready", 2, 1, least=2),
        *gang("new", 0, 2),
        *gang("alone", 1, 0, least=2),
    ]
    snapshot = snapshot_of(documents)
    made = prepared(snapshot, (), recorded("half", "ready", "new", "alone", "gone"))
    assert {key.name: each.members for key, each in made.half_bound.items()} == {
        "half": (Key("default", "half-0"),),
        "alone": (Key("default", "alone-0"),),
    }
    priorities = {key.name: group.priority for key, group in made.instance.groups.items()}
    assert priorities == {"half": 2**31 - 1, "ready": 0, "new": 0, "alone": 0}
    assert made.half_bound[GroupKey("scheduling.volcano.sh", "default", "half")].priority == 0
    assert made.snapshot.versions == snapshot.versions


def test_a_half_bound_gang_comes_first_whatever_its_running_pods_state() -> None:
    documents = [node("n1", cpu=100), *gang("half", 1, 1)]
    for each in documents:
        if each["kind"] == "Pod":
            each["spec"] = {**each["spec"], "priority": 5}
    made = prepared(snapshot_of(documents), (), recorded("half"))
    assert [group.priority for group in made.instance.groups.values()] == [2**31 - 1]
    assert [each.priority for each in made.half_bound.values()] == [5]


def test_a_gang_that_others_bound_half_of_gets_no_priority() -> None:
    """A tenant's pod with a node of its own choice, whatever its annotations say; and another gang's record."""
    documents = [node("n1", cpu=100), *gang("half", 1, 1)]
    for record in ({}, recorded("other"), recorded("half", pods=digests(["uid-half-1", "uid-of-another"]))):
        made = prepared(snapshot_of(documents), (), record)
        assert made.half_bound == {}
        assert {group.priority for group in made.instance.groups.values()} == {0}


def test_a_gang_that_backs_off_is_not_decided_upon(tmp_path: Path) -> None:
    documents = [node("n1"), *gang("back", 0, 2), *gang("new", 0, 2)]
    later = NOW + timedelta(seconds=60)
    record = recorded("back", pods=frozenset(), rolled_back=1, until=later)
    made = prepared(snapshot_of(documents), (), record, NOW)
    assert set(decided(made.snapshot, tmp_path)) == {"new-0", "new-1"}
    assert {pod.name: until for pod, (_, until, _why) in made.backing_off.items()} == {"back-0": later, "back-1": later}
    assert prepared(snapshot_of(documents), (), record, later).backing_off == {}


def test_without_anything_left_behind_the_snapshot_stays_as_it_is() -> None:
    snapshot = snapshot_of([node("n1"), *gang("new", 0, 2)])
    assert prepared(snapshot, ()).snapshot is snapshot
    assert prepared(snapshot, (), recorded("new")).snapshot is snapshot


@pytest.mark.parametrize("cooling", [set(), {"n1"}])
@pytest.mark.parametrize(
    "documents",
    [
        pytest.param(gang("half", 1, 1), id="half-bound"),
        pytest.param(gang("ready", 2, 1, least=2), id="ready"),
        pytest.param(gang("new", 0, 2), id="new"),
        pytest.param(gang("done", 2, 0), id="done"),
        pytest.param(gang("half", 1, 1)[1:], id="without its PodGroup"),
    ],
)
def test_a_snapshot_for_others_says_the_same(
    documents: list[Document], cooling: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without an instance where nothing is recorded."""
    snapshot = snapshot_of([node("n1", cpu=100), *documents])
    record = recorded("half")
    assert marked(snapshot, cooling, record) == prepared(snapshot, cooling, record).snapshot
    expected = prepared(snapshot, cooling).snapshot
    monkeypatch.setattr("placer.passes.cluster.reading.earlier_passes.make_instance", None)
    assert marked(snapshot, cooling) == expected


def test_pods_that_are_added_to_a_half_bound_gang_wait_until_it_is_complete() -> None:
    """Else whoever keeps one binding of a gang from being made gets ahead of every PriorityClass with all of theirs."""
    documents = [node("n1", cpu=100), *gang("half", 1, 5, least=6)]
    made = prepared(snapshot_of(documents), (), recorded("half", size=3))
    group = GroupKey("scheduling.volcano.sh", "default", "half")
    assert made.half_bound[group].missing == (Key("default", "half-1"), Key("default", "half-2"))
    assert {each.key.name: each.priority for each in made.instance.pending} == dict.fromkeys(
        ("half-1", "half-2"), 2**31 - 1
    )
    why = "its gang had no more such pods when it was begun, and is completed first"
    assert made.backing_off == {Key("default", f"half-{number}"): (group, None, why) for number in (3, 4, 5)}


def asked(*cpus: int) -> dict[bytes, int]:
    """What is recorded of pods that request so much cpu."""
    return shapes_of({"cpu": 1000 * cpu, "pods": 1} for cpu in cpus)


def test_pods_that_ask_for_more_than_the_gang_had_do_not_come_first() -> None:
    """Else small pods are begun, all but one deleted, and large ones made in their place, or these made larger."""
    documents = [node("n1", cpu=100), *gang("half", 1, 3, least=4)]
    documents[4] = pod("half-2", **named("half-2"), spec={"schedulerName": "placer"}, cpu=64, group="half")
    group, highest = GroupKey("scheduling.volcano.sh", "default", "half"), 2**31 - 1
    for uids in (["uid-half-0", "uid-gone", "uid-half-3"], ["uid-half-0", "uid-half-2", "uid-half-3"]):
        record = recorded("half", pods=digests(uids), size=4, shapes=asked(4, 4, 4, 4))
        made = prepared(snapshot_of(documents), (), record)
        assert [key.name for key in made.half_bound[group].missing] == ["half-3", "half-1"]
        priorities = {each.key.name: each.priority for each in made.instance.pending}
        assert priorities == {"half-1": highest, "half-3": highest}
        assert [key.name for key in made.backing_off] == ["half-2"]


def test_of_pods_that_ask_for_different_things_as_many_of_each_come_first_as_there_were() -> None:
    large = {"schedulerName": "placer"}
    documents = [
        *(node("n1", cpu=200), *gang("half", 1, 1, least=4)),
        *(pod(f"large-{number}", **named(f"large-{number}"), spec=large, cpu=64, group="half") for number in range(2)),
    ]
    shapes = asked(4, 4, 4, 64)
    made = prepared(snapshot_of(documents), (), recorded("half", pods=digests(["uid-half-0"]), size=4, shapes=shapes))
    (half,) = made.half_bound.values()
    assert [key.name for key in half.missing] == ["half-1", "large-0"]
    had = recorded("half", pods=digests(["uid-half-0"]), size=3, shapes=asked(4, 64, 64))  # the small one is bound
    (half,) = prepared(snapshot_of(documents), (), had).half_bound.values()
    assert [key.name for key in half.missing] == ["large-0", "large-1"]


def test_a_gang_all_of_whose_pods_are_others_than_it_had_is_as_urgent_as_any() -> None:
    documents = [node("n1", cpu=100), *gang("half", 1, 0, least=2)]
    documents.append(pod("half-1", **named("half-1"), spec={"schedulerName": "placer"}, cpu=64, group="half"))
    made = prepared(snapshot_of(documents), (), recorded("half", size=2, shapes=asked(4, 4)))
    assert [each.missing for each in made.half_bound.values()] == [()]
    assert ([each.priority for each in made.instance.pending], made.backing_off) == ([0], {})


def test_room_that_is_free_is_for_the_pods_for_which_it_was_made() -> None:
    """Others of their gang wait: what its owner adds meanwhile would come before every PriorityClass."""
    documents = [node("n1", cpu=100), *gang("train", 0, 4, least=2)]
    pods = tuple((Key("default", f"train-{number}"), (f"uid-train-{number}", "n1")) for number in range(2))
    held = HeldRoom("earlier", pods, (), NOW, NOW + timedelta(minutes=5))
    made = prepared(snapshot_of(documents), (), {}, NOW, held=held)
    assert made.room is RoomState.FREE
    assert {each.key.name: each.priority for each in made.instance.pending} == {
        "train-0": 2**31 - 1,
        "train-1": 2**31 - 1,
    }
    why = "room was made for other pods of its gang, which come first"
    group = GroupKey("scheduling.volcano.sh", "default", "train")
    assert made.backing_off == {Key("default", f"train-{number}"): (group, None, why) for number in (2, 3)}


@pytest.mark.parametrize(("cpu", "state"), [(4, RoomState.FREE), (3, RoomState.OVER), (5, RoomState.OVER)])
def test_room_is_for_pods_that_ask_for_what_they_asked_for_when_it_was_made(cpu: int, state: RoomState) -> None:
    """A pod that waits can be made larger, and would come before every PriorityClass with all of it."""
    train = [Key("default", f"train-{number}") for number in range(2)]
    pods = tuple((key, (f"uid-{key.name}", "n1")) for key in train)
    (shape,) = asked(cpu)
    held = HeldRoom("earlier", pods, (), NOW, NOW + timedelta(minutes=5), tuple((key, shape.hex()) for key in train))
    made = prepared(snapshot_of([node("n1", cpu=100), *gang("train", 0, 2)]), (), {}, NOW, held=held)
    assert made.room is state
    highest = 2**31 - 1 if state is RoomState.FREE else 0
    assert {each.priority for each in made.instance.pending} == {highest}


def test_a_pod_that_is_made_again_under_another_uid_completes_its_gang() -> None:
    documents = [node("n1", cpu=100), *gang("half", 1, 1)]
    made = prepared(snapshot_of(documents), (), recorded("half", pods=digests(["uid-half-0", "uid-gone"])))
    (half,) = made.half_bound.values()
    assert half.missing == (Key("default", "half-1"),)
    assert made.backing_off == {}


def test_no_group_of_another_api_comes_first_by_being_called_the_same() -> None:
    labels = {"scheduling.x-k8s.io/pod-group": "half"}
    coscheduling: list[Document] = [
        {
            "apiVersion": "scheduling.x-k8s.io/v1alpha1",
            "kind": "PodGroup",
            "metadata": {"name": "half", "namespace": "default"},
            "spec": {"minMember": 2},
        },
        *(
            pod(
                f"one-{number}",
                cpu=4,
                spec={"schedulerName": "placer"} | ({"nodeName": "n1"} if not number else {}),
                metadata={**named(f"one-{number}")["metadata"], "labels": labels},
            )
            for number in range(2)
        ),
    ]
    same = gang("half", 0, 2, priorityClassName="low")  # of Volcano
    record = recorded("half", group="scheduling.x-k8s.io", pods=digests(["uid-one-0", "uid-one-1"]))
    documents = [node("n1", cpu=100), *coscheduling, *same]
    made = prepared(snapshot_of(documents), (), record)
    assert [(key.api_group, key.name) for key in made.half_bound] == [("scheduling.x-k8s.io", "half")]
    assert {
        (key.api_group, key.name) for key, group in made.instance.groups.items() if group.priority == 2**31 - 1
    } == {("scheduling.x-k8s.io", "half")}


@pytest.mark.parametrize("priority", [None, "low"])
def test_a_half_bound_gang_comes_before_all_others(tmp_path: Path, priority: str | None) -> None:
    """Room for one pod of 4: the gang's second one, or another user's of priority 1,000,000."""
    spec: dict[str, Any] = {} if priority is None else {"priorityClassName": priority}
    classes: list[Document] = [
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "low"}, "value": 1}
    ]
    urgent = pod("urgent", cpu=4, spec={"schedulerName": "placer", "priority": 10**6})
    documents = [node("n1"), *classes, *gang("half", 1, 1, **spec), urgent]
    assert decided(snapshot_of(documents), tmp_path) == {"urgent": "n1"}
    assert decided(prepared(snapshot_of(documents), (), recorded("half")).snapshot, tmp_path) == {"half-1": "n1"}


def test_a_half_bound_gang_of_kubernetes_comes_first_too_whatever_priority_its_pod_group_has(tmp_path: Path) -> None:
    group: Document = {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "half", "namespace": "default"},
        "spec": {"priority": 1, "schedulingPolicy": {"gang": {"minCount": 2}}},
    }
    ours: dict[str, Any] = {
        "spec": {"schedulerName": "placer", "schedulingGroup": {"podGroupName": "half"}},
        "cpu": 4,
    }
    urgent = pod("urgent", cpu=4, spec={"schedulerName": "placer", "priority": 10**6})
    members = [pod("half-0", node="n1", **named("half-0"), **ours), pod("half-1", **ours)]
    snapshot = snapshot_of([node("n1"), group, *members, urgent])
    assert decided(prepared(snapshot, (), recorded("half", group="scheduling.k8s.io")).snapshot, tmp_path) == {
        "half-1": "n1"
    }


@pytest.mark.parametrize("name", ["placer.dev-half-bound", "placer.dev-room-is-made"])
def test_no_name_of_a_class_gives_a_tenant_the_priority_of_what_is_half_bound(name: str, tmp_path: Path) -> None:
    """The server looks at names of classes in pods alone; what a PodGroup of Volcano names need not be there."""
    documents = [node("n1"), *gang("half", 1, 1), *gang("an-attack", 0, 1, priorityClassName=name)]
    made = prepared(snapshot_of(documents), (), recorded("half"))
    assert decided(made.snapshot, tmp_path) == {"half-1": "n1"}
    assert made.instance.groups[GroupKey("scheduling.volcano.sh", "default", "an-attack")].priority == 0


def test_a_workload_that_backs_off_is_not_tried_and_the_rest_of_its_gangs_goes_on(tmp_path: Path) -> None:
    """Pods of a gang may be of several workloads; those of one that waits do not count for it."""
    job = {"metadata": {**named("made")["metadata"], "ownerReferences": [owner("Job", "poison")]}}
    ours: dict[str, Any] = {"spec": {"schedulerName": "placer"}, "cpu": 1}
    documents = [node("n1"), pod("made", **job, **ours), pod("alone", **named("alone"), **ours), *gang("a", 0, 1)]
    later = NOW + timedelta(seconds=60)
    times = {"n1": NOW, "n2": NOW}
    rejected = {WorkloadKey("default", "Job", "poison"): RejectedWorkload(times, "OutOfcpu", 1, later)}
    made = prepared(snapshot_of(documents), (), {}, NOW, rejected)
    why = "kubelets of Node n1, Node n2 rejected its pods (OutOfcpu)"
    assert made.backing_off == {Key("default", "made"): (GroupKey("", "default", "made"), later, why)}
    assert decided(made.snapshot, tmp_path) == {"alone": "n1", "a-0": "n1"}
    assert marked(snapshot_of(documents), (), {}, NOW, rejected) == made.snapshot


def owner(kind: str, name: str) -> dict[str, Any]:
    return {"apiVersion": "batch/v1", "kind": kind, "name": name, "uid": f"uid-{name}", "controller": True}
