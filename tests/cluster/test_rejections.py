"""What is remembered of kubelets that rejected pods: when a node cools down, and when the workload waits instead."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from placer.answers.solving import solve
from placer.passes.cluster.reading import views
from placer.passes.cluster.reading.client import Response
from placer.passes.cluster.reading.earlier_passes import prepared
from placer.passes.cluster.reading.gang_record import (
    GangRecord,
    RecordedGangs,
    RejectedWorkload,
    UnansweredPods,
    digests,
    mark,
)
from placer.passes.cluster.reading.rejections import (
    cooling_nodes,
    failed_pods,
    kept_off,
    of_ours,
    rejection_of,
    remembered,
    unsteady,
    waiting_workloads,
)
from placer.passes.cluster.reading.views import PodView, Rejection, WorkloadKey, is_rejection
from placer.problem import GroupKey
from tests.cluster.caches import alone, bind, cache_of, mine
from tests.cluster.snapshots import ListServer, snapshot_of
from tests.support import Document, node, pod

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
JOB, OTHER = WorkloadKey("default", "Job", "train"), WorkloadKey("default", "Job", "other")


def rejection(node: str, seconds: float, workload: WorkloadKey = JOB, reason: str = "OutOfcpu") -> Rejection:
    return Rejection(workload, node, reason, NOW + timedelta(seconds=seconds))


def at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def failed(name: str, where: str, reason: str | None, time: str | None = "11:59:00", **metadata: Any) -> Document:
    status = {"phase": "Failed", "reason": reason} | ({"startTime": f"2026-01-01T{time}Z"} if time else {})
    made = pod(name, node=where, status=status, metadata={"name": name, "namespace": "default", **metadata})
    return {**made, "spec": {**made["spec"], "schedulerName": "placer"}}


def test_failed_pods_are_found_that_kubelets_rejected() -> None:
    owner = {"kind": "Job", "name": "train", "controller": True}
    pods = [
        failed("a", "n1", "OutOfcpu", ownerReferences=[{"kind": "Workflow", "name": "x"}, owner]),
        failed("b", "n2", "TopologyAffinityError", annotations={"scheduling.k8s.io/group-name": "gang"}),
        failed("c", "n3", "Evicted"),
        failed("d", "n4", None),
        failed("e", "n5", "OutOfpods", None),
    ]
    found = failed_pods(ListServer({"/api/v1/pods": pods}), "placer", 300)
    assert [(str(each.workload), each.node, each.reason) for each in found] == [
        ("Job default/train", "n1", "OutOfcpu"),
        ("PodGroup default/gang", "n2", "TopologyAffinityError"),
        ("Pod default/*", "n5", "OutOfpods"),
    ]
    assert [each.when for each in found[:2]] == [at(-60)] * 2
    assert cooling_nodes(remembered({}, found, 300, NOW), 300, NOW) == {"n1", "n2"}  # of n5 it is not known when


def test_no_node_cools_down_for_pods_that_placer_neither_bound_nor_released() -> None:
    """A tenant names nodes himself, by ``spec.nodeName`` and a selector that they do not meet."""
    pods = [failed(name, f"n-{name}", "NodeAffinity", uid=f"uid-{name}") for name in ("mine", "bound", "gang", "held")]
    found = failed_pods(ListServer({"/api/v1/pods": pods}), "placer", 300)
    gang = GangRecord(NOW, pods=digests(["uid-gang", mark("uid-held", "n-held")]))
    record = RecordedGangs(
        {GroupKey("scheduling.volcano.sh", "default", "g"): gang},
        unanswered=UnansweredPods("5", digests(["uid-bound"])),
    )
    ours = of_ours(found, record)
    assert [each.node for each in ours] == ["n-bound", "n-gang", "n-held"]
    assert of_ours(found, RecordedGangs()) == []


def test_every_reason_of_kubelets_is_on_the_page_of_faults() -> None:
    page = (Path(__file__).parents[2] / "models" / "faults.md").read_text(encoding="utf-8")
    rows = page[page.index("| the kubelet checks |") :].split("\n\n")[0].splitlines()[2:]
    told = {reason for row in rows for reason in re.findall(r"`([^`]+)`", row.split("|")[2])}
    assert {reason for reason in told if not is_rejection(reason)} == {"Evicted"}
    assert is_rejection("Evicted", "Pod was rejected: The node had condition: [DiskPressure].")
    assert told >= views._REASONS


def test_a_pod_does_not_go_again_to_the_node_that_has_just_rejected_it_however_many_cool_down() -> None:
    """Four nodes of its namespace cool already: the fifth takes others, and this workload on no account."""
    five = [rejection(f"n{at}", -at, WorkloadKey("default", "Job", f"job-{at}")) for at in range(1, 6)]
    known = remembered({}, five, 300, NOW)
    cooling = cooling_nodes(known, 300, NOW)
    assert cooling == {"n1", "n2", "n3", "n4"}
    assert kept_off(known, cooling) == {WorkloadKey("default", "Job", "job-5"): "n5"}
    owner = [{"apiVersion": "batch/v1", "kind": "Job", "name": "job-5", "uid": "1", "controller": True}]
    pods = [mine("again", metadata={"ownerReferences": owner}), mine("other")]
    snapshot = snapshot_of([*(node(f"n{at}", cpu=4) for at in range(1, 6)), *pods])
    found = prepared(snapshot, cooling, apart=kept_off(known, cooling)).instance
    reasons = solve(found, method="greedy").reasons
    assert {key.name for key in reasons} == {"again"}
    (reason,) = reasons.values()
    assert "1 node's kubelet rejected a pod of the same workload a short while ago (n5)" in reason.message
    assert (
        kept_off(remembered(known, [rejection("n6", 0, WorkloadKey("default", "Job", "job-5"))], 300, NOW), cooling)
        == {}
    )


@pytest.mark.parametrize(("scheduler", "more"), [("mine", ",spec.schedulerName=mine"), ("*", "")])
def test_failed_pods_of_ours_are_asked_for_and_no_others(scheduler: str, more: str) -> None:
    asked = []

    class Server(ListServer):
        def get(self, path: str, parameters: Mapping[str, str] | None = None) -> Response:
            asked.append((path, (parameters or {}).get("fieldSelector")))
            return super().get(path, parameters)

    assert failed_pods(Server({"/api/v1/pods": []}), scheduler, 300) == []
    assert asked == [("/api/v1/pods", f"status.phase=Failed{more}")]


def test_nothing_is_asked_where_nothing_cools_down() -> None:
    server = ListServer({"/api/v1/pods": [failed("a", "n1", "OutOfcpu")]})
    assert failed_pods(server, "placer", 0) == []
    assert server.asked == []
    assert remembered({JOB: RejectedWorkload({"n1": NOW})}, [rejection("n1", 0)], 0, NOW) == {}


def test_a_node_cools_down_for_as_long_as_it_is_said_though_its_pod_is_gone() -> None:
    known = remembered({}, [rejection("n1", -10)], 300, NOW)
    assert known == {JOB: RejectedWorkload({"n1": at(-10)}, "OutOfcpu")}
    assert cooling_nodes(known, 300, NOW) == {"n1"}
    assert remembered(known, [], 300, at(289)) == known
    assert remembered(known, [rejection("n1", -60, reason="NodePorts")], 300, NOW) == known  # that of before
    assert cooling_nodes(known, 300, at(291)) == set()
    assert remembered(known, [], 300, at(291)) == {}


def test_after_the_second_node_the_workload_backs_off_and_no_node_cools_down() -> None:
    first = remembered({}, [rejection("n1", -60)], 300, NOW)
    second = remembered(first, [rejection("n1", -60), rejection("n2", -1)], 300, NOW)
    assert second == {JOB: RejectedWorkload({"n1": at(-60), "n2": at(-1)}, "OutOfcpu", 1, at(60))}
    assert cooling_nodes(second, 300, NOW) == set()
    assert waiting_workloads(second, at(59)).keys() == {JOB}
    assert waiting_workloads(second, at(60)) == {}


def test_a_gang_that_no_kubelet_takes_costs_no_node_at_once() -> None:
    many = [rejection(f"n{number:03d}", -1) for number in range(100)]
    known = remembered({}, many, 300, NOW)
    assert (cooling_nodes(known, 300, NOW), known[JOB].times, len(known[JOB].nodes)) == (set(), 1, 8)


def test_it_backs_off_for_longer_each_time_an_hour_at_most_and_each_rejection_counts_once() -> None:
    known, now = remembered({}, [rejection("n1", -1), rejection("n2", -1)], 300, NOW), NOW
    pauses = []
    for number in range(9):
        until = known[JOB].until
        assert until is not None
        pauses.append((until - now).total_seconds())
        old = [rejection("n1", -1), rejection("n2", -1)]  # the pods may be there still
        assert remembered(known, old, 300, until) == known
        now = until + timedelta(seconds=5)
        known = remembered(known, [Rejection(JOB, f"n{number}", "OutOfcpu", now)], 300, now)
    assert pauses == [60, 120, 240, 480, 960, 1920, 3600, 3600, 3600]


def test_clocks_of_kubelets_that_are_ahead_have_no_rejection_count_twice() -> None:
    """Passes find the pods in every list, and their kubelets say that it was later than what was decided since."""
    nodes = [f"n{number}" for number in range(20)]
    there = [rejection(name, number + 30) for number, name in enumerate(nodes)]
    known = remembered({}, there, 300, NOW)
    assert (known[JOB].times, known[JOB].until) == (1, at(60))
    for seconds in range(5, 60, 5):
        assert remembered(known, there, 300, at(seconds)) == known
    again = remembered(known, [*there, rejection("n0", 55)], 300, at(56))
    assert (again[JOB].times, again[JOB].until) == (2, at(56 + 120))


def test_it_is_forgotten_an_hour_after_it_might_be_tried() -> None:
    known = remembered({}, [rejection("n1", -1), rejection("n2", -1)], 300, NOW)
    assert remembered(known, [], 300, at(60 + 3600)) == known
    assert remembered(known, [], 300, at(60 + 3601)) == {}


def test_a_node_that_rejects_another_workload_too_cools_down_all_the_same() -> None:
    found = [rejection("n1", -2), rejection("n2", -2), rejection("n1", -1, OTHER)]
    known = remembered({}, found, 300, NOW)
    assert cooling_nodes(known, 300, NOW) == {"n1"}
    assert waiting_workloads(known, NOW).keys() == {JOB}


def test_lone_pods_of_a_namespace_count_together() -> None:
    """Else a hundred of them would take a hundred nodes out."""
    views = (msgspec.convert(failed(name, f"n-{name}", "OutOfcpu"), PodView) for name in "abc")
    found = [each.rejection for each in views if each.rejection is not None]
    known = remembered({}, found, 300, NOW)
    assert (cooling_nodes(known, 300, NOW), [str(each) for each in known]) == (set(), ["Pod default/*"])


def test_a_namespace_takes_few_nodes_out_whatever_its_pods_say_they_are_of() -> None:
    """Who makes a pod, and which node it names, its author writes: a hundred Jobs that are not there, a node each."""
    forged = [rejection(f"n{at:02}", -at, WorkloadKey("mallory", "Job", f"j{at}")) for at in range(1, 100)]
    known = remembered({}, [*forged, rejection("a", -200), rejection("b", -100, OTHER)], 300, NOW)
    assert cooling_nodes(known, 300, NOW) == {"n01", "n02", "n03", "n04", "a", "b"}


def test_a_time_that_no_calendar_has_counts_as_of_long_ago() -> None:
    """A server takes the year 0 from a kubelet; it must end no pass."""
    odd = failed("a", "n1", "OutOfcpu")
    odd["status"]["startTime"] = "0000-01-01T00:00:00Z"
    (found,) = failed_pods(ListServer({"/api/v1/pods": [odd]}), "placer", 300)
    assert remembered({}, [found], 300, NOW) == {}


@pytest.mark.parametrize("reason", sorted(views.OF_THE_POD))
def test_no_node_cools_down_for_a_feature_that_its_author_has_a_pod_ask_for(reason: str) -> None:
    """Else a tenant closes nodes by name, with pods that placer bound; the workload alone keeps off."""
    known = remembered({}, [rejection("n1", -1, JOB, reason), rejection("n2", -2, OTHER)], 300, NOW)
    cooling = cooling_nodes(known, 300, NOW)
    assert (cooling, kept_off(known, cooling)) == ({"n2"}, {JOB: "n1"})


@pytest.mark.parametrize(
    ("scheduler", "changed", "node"),
    [
        ("placer", {}, "n1"),
        ("*", {}, "n1"),
        ("another", {}, None),
        ("placer", {"status": {"phase": "Failed", "reason": "Error"}}, None),
        ("placer", {"status": {"phase": "Failed", "reason": {"no": "text"}}}, None),
        ("placer", {"status": {"phase": "Running"}}, None),
    ],
)
def test_of_an_event_it_is_read_that_a_kubelet_rejected_a_pod_of_ours(
    scheduler: str, changed: Document, node: str | None
) -> None:
    item = msgspec.json.encode(failed("a", "n1", "OutOfcpu") | changed)
    found = rejection_of(item, scheduler)
    assert (found and found.node) == node


def test_no_more_is_remembered_than_fits_and_the_latest_of_it() -> None:
    workloads = [WorkloadKey(f"n{number % 20}", "Job", f"{number:04d}") for number in range(1_100)]
    found = [rejection("n1", -number / 10, each) for number, each in enumerate(workloads)]
    assert sorted(remembered({}, found, 300, NOW)) == sorted(workloads[:1_000])


def decided_on(documents: list[Document], cooling: set[str]) -> str:
    """Node of the pod of a snapshot in which some nodes cool down."""
    made = prepared(snapshot_of(documents), cooling)
    found = solve(made.instance, method="greedy", time_limit=None).placement
    assert found is not None
    return next(iter(found.node_of.values()))


SHRUNK = node("flaps", cpu=1)
NOT_READY = node("flaps", cpu=2) | {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}


@pytest.mark.parametrize("flap", [SHRUNK, NOT_READY, node("flaps", cpu="nothing")])
def test_a_node_that_changes_in_pass_after_pass_does_not_keep_a_pod_waiting(flap: Document) -> None:
    """It is the tightest fit each time, and has changed before the binding each time; the second time it cools down."""
    documents = [node("flaps", cpu=2), node("steady", cpu=16), mine("p", cpu=2)]
    known: dict[WorkloadKey, RejectedWorkload] = {}
    where = []
    for number in range(3):
        known = remembered(known, [], 300.0, at(20.0 * number))
        cooling = cooling_nodes(known, 300.0, at(20.0 * number))
        where.append(decided_on(documents, cooling))
        cache = cache_of(*documents)
        cache.node_happened("MODIFIED", json.dumps(flap).encode())
        refused = cache.refusal(alone("p"), [bind("p", where[-1])])
        assert (refused is not None) == (where[-1] == "flaps") == (cache.unsteady == {"flaps"})
        known = remembered(known, unsteady(known, cache.unsteady, at(20.0 * number)), 300.0, at(20.0 * number))
    assert where == ["flaps", "flaps", "steady"]
    assert cooling_nodes(known, 300.0, at(400.0)) == set()


def test_all_nodes_that_change_again_and_again_cool_down() -> None:
    names = [f"n{number}" for number in range(9)]
    known: dict[WorkloadKey, RejectedWorkload] = {}
    for number in range(2):
        known = remembered(known, unsteady(known, names, at(number)), 300.0, at(number))
    assert cooling_nodes(known, 300.0, at(5.0)) == {*names}


def test_a_pod_that_has_gone_makes_no_node_unsteady() -> None:
    cache = cache_of(node("n1", cpu=2), mine("p", cpu=2))
    assert cache.refusal(alone("p"), [bind("p", "n1", uid="another")]) is not None
    assert cache.unsteady == set()


def test_one_namespace_does_not_have_those_of_others_forgotten() -> None:
    many = [rejection("n1", -1 - number / 10, WorkloadKey("mallory", "Job", str(number))) for number in range(1_100)]
    known = remembered({}, [*many, rejection("n2", -200)], 300, NOW)
    assert JOB in known
    assert {each.name for each in known} == {JOB.name, *map(str, range(100))}


@pytest.mark.parametrize(
    "metadata",
    [
        {"annotations": {"scheduling.k8s.io/group-name": "x" * 250_000}},
        {"ownerReferences": [{"kind": "K" * 100_000, "name": "x" * 100_000}]},
    ],
)
def test_a_workload_has_no_longer_a_name_than_objects_have(metadata: Document) -> None:
    """Neither is held to a length by the server, and a thousand are recorded."""
    item = msgspec.json.encode(failed("a", "n1", "OutOfcpu", **metadata))
    found = rejection_of(item, "placer")
    assert found is not None
    assert (len(found.workload.kind) <= 63, len(found.workload.name)) == (True, 32)
    assert found.workload == views.read_view(item, PodView).workload
