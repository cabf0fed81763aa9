"""Status of AppGroups: the order where the shipped controller gets it wrong, pods that run, times that stay."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from placer.kube.pod import PodManifest
from placer.kube.scheduler_plugins import AppGroupManifest
from placer.problem import Key
from placer.topology.controllers import app_group_status, app_group_statuses
from tests.support import objects_of, pod

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
LABEL = "appgroup.diktyo.x-k8s.io"
Document = Mapping[str, Any]


def workload(name: str, selector: str | None = None) -> dict[str, str]:
    return {"kind": "Deployment", "name": name} | ({} if selector is None else {"selector": selector})


def app_group(
    algorithm: str | None,
    *workloads: tuple[str, str | None, tuple[str, ...]],
    status: Document | None = None,
    name: str = "shop",
    namespace: str = "default",
) -> dict[str, Any]:
    """Workloads as name, selector and names of those that are called."""
    selectors = {each: selector for each, selector, _ in workloads}
    written = [
        {
            "workload": workload(each, selector),
            "dependencies": [{"workload": workload(one, selectors.get(one, one))} for one in called],
        }
        for each, selector, called in workloads
    ]
    spec = {"workloads": written} | ({} if algorithm is None else {"topologySortingAlgorithm": algorithm})
    return {
        "apiVersion": "appgroup.diktyo.x-k8s.io/v1alpha1",
        "kind": "AppGroup",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
        **({} if status is None else {"status": status}),
    }


def read(document: Document) -> AppGroupManifest:
    return objects_of(document).app_groups[0]


def status_of(document: Document, *pods: PodManifest, now: datetime = NOW) -> dict[str, Any]:
    return app_group_status(read(document), pods, now)


def indices(document: Document) -> dict[str, int]:
    order = status_of(document)["topologyOrder"]
    return {each["workload"].get("selector") or each["workload"]["name"]: each["index"] for each in order}


def member(name: str, phase: str, **written: Any) -> PodManifest:
    body = pod(name, labels={LABEL: "shop"}, node=written.pop("node", None), status={"phase": phase}, **written)
    return objects_of(body).pods[0]


# ------------------------------------------------------------------------------------------------------------ the order


def test_the_order_is_found_where_names_are_not_selectors() -> None:
    """The shipped controller stores 1, 2, 3 in the order of the selectors here."""
    called = ("w-c", "c", ("w-b",)), ("w-b", "b", ("w-a",)), ("w-a", "a", ())
    assert indices(app_group("KahnSort", *called)) == {"c": 1, "b": 2, "a": 3}
    assert indices(app_group("ReverseKahn", *called)) == {"a": 1, "b": 2, "c": 3}


def test_the_order_is_found_without_selectors_as_in_the_kep() -> None:
    group = app_group("KahnSort", ("P1", None, ("P2",)), ("P2", None, ("P3",)), ("P3", None, ()))
    assert indices(group) == {"P1": 1, "P2": 2, "P3": 3}
    assert status_of(group)["topologyOrder"][0] == {"workload": {"kind": "Deployment", "name": "P1"}, "index": 1}


def test_the_list_is_sorted_by_selector_and_refers_as_the_spec_does() -> None:
    group = app_group("TarjanSort", ("ten", "P10", ("two",)), ("two", "P2", ()), ("one", "P1", ("ten",)))
    group["spec"]["workloads"][0]["workload"] |= {"apiVersion": "apps/v1", "namespace": "default"}
    ten = {"kind": "Deployment", "apiVersion": "apps/v1", "namespace": "default", "name": "ten", "selector": "P10"}
    assert status_of(group)["topologyOrder"] == [
        {"workload": {"kind": "Deployment", "name": "one", "selector": "P1"}, "index": 1},
        {"workload": ten, "index": 2},
        {"workload": {"kind": "Deployment", "name": "two", "selector": "P2"}, "index": 3},
    ]


def test_with_a_circle_the_order_is_that_of_the_spec() -> None:
    group = app_group("TarjanSort", ("z", "z", ("y",)), ("y", "y", ("z",)), ("x", "x", ()))
    assert indices(group) == {"z": 1, "y": 2, "x": 3}


def test_a_workload_without_dependencies_has_its_place() -> None:
    """The shipped controller gives c no index at all."""
    assert indices(app_group("ReverseKahn", ("a", "a", ("b",)), ("b", "b", ()), ("c", "c", ()))) == {
        "b": 1,
        "a": 2,
        "c": 3,
    }


def test_a_workload_that_is_only_called_is_in_the_list() -> None:
    assert indices(app_group("KahnSort", ("a", "a", ("lost",)))) == {"a": 1, "lost": 2}


@pytest.mark.parametrize("algorithm", [None, "Quicksort"])
def test_an_unknown_algorithm_is_kahn(algorithm: str | None) -> None:
    assert indices(app_group(algorithm, ("b", "b", ()), ("a", "a", ("b",)))) == {"a": 1, "b": 2}


def test_an_app_group_without_workloads() -> None:
    group = {key: value for key, value in app_group("KahnSort").items() if key != "spec"}
    first = status_of(group)
    assert first == {"runningWorkloads": 0, "topologyCalculationTime": "2026-03-01T12:00:00Z", "topologyOrder": []}
    assert status_of(group | {"status": first}, now=NOW + timedelta(hours=1)) == first


# ---------------------------------------------------------------------------------------------------------------- times


def test_a_status_that_says_nothing_new_is_the_same_again() -> None:
    group = app_group("KahnSort", ("a", "a", ("b",)), ("b", "b", ()))
    runs = member("a-0", "Running", node="n1")
    first = status_of(group, runs)
    assert first["topologyCalculationTime"] == first["scheduleStartTime"] == "2026-03-01T12:00:00Z"
    assert status_of(group | {"status": first}, runs, now=NOW + timedelta(days=3)) == first


def test_an_edited_spec_counts_at_once() -> None:
    """The shipped controller keeps the old order for a day."""
    group = app_group("KahnSort", ("a", "a", ("b",)), ("b", "b", ()))
    edited = app_group("ReverseKahn", ("a", "a", ("b",)), ("b", "b", ()), status=status_of(group))
    later = status_of(edited, now=NOW + timedelta(minutes=1))
    assert [each["index"] for each in later["topologyOrder"]] == [2, 1]
    assert later["topologyCalculationTime"] == "2026-03-01T12:01:00Z"


def test_the_start_is_when_the_first_pod_got_its_node() -> None:
    group = app_group("KahnSort", ("a", "a", ()))
    pods = [
        member("late", "Running", node="n1", metadata={"creationTimestamp": "2026-03-01T00:00:00Z"}),
        objects_of(
            pod("early", node="n1", status={"conditions": [scheduled("True", "2026-03-01T10:00:00+01:00")]})
        ).pods[0],
        objects_of(pod("started", node="n1", status={"startTime": "2026-03-01T09:30:00Z"})).pods[0],
        objects_of(pod("waits", status={"conditions": [scheduled("False", "2026-03-01T08:00:00Z")]})).pods[0],
    ]
    assert status_of(group, *pods)["scheduleStartTime"] == "2026-03-01T09:00:00Z"
    assert "scheduleStartTime" not in status_of(group, pods[-1])


def scheduled(status: str, time: str) -> dict[str, str]:
    return {"type": "PodScheduled", "status": status, "lastTransitionTime": time}


def test_the_start_stays_when_pods_come_and_go() -> None:
    status = {"scheduleStartTime": "2026-02-01T00:00:00Z"}
    group = app_group("KahnSort", ("a", "a", ()), status=status)
    assert status_of(group, member("a-0", "Running", node="n1"))["scheduleStartTime"] == "2026-02-01T00:00:00Z"
    assert status_of(group)["scheduleStartTime"] == "2026-02-01T00:00:00Z"


def test_times_are_written_in_utc_and_need_a_zone() -> None:
    group = app_group("KahnSort", ("a", "a", ()))
    there = NOW.astimezone(timezone(timedelta(hours=5, minutes=30)))
    assert status_of(group, now=there)["topologyCalculationTime"] == "2026-03-01T12:00:00Z"
    with pytest.raises(ValueError, match="found 2026-03-01T12:00:00 without a time zone"):
        status_of(group, now=NOW.replace(tzinfo=None))


# ----------------------------------------------------------------------------------------------------------------- pods


def test_pods_that_run_are_counted() -> None:
    pods = [
        member("a-0", "Running", node="n1"),
        member("a-1", "Running", node="n1"),
        member("a-2", "Pending", node="n1"),
        member("a-3", "Succeeded", node="n1"),
        member("a-4", "Running", node="n1", metadata={"deletionTimestamp": "2026-03-01T11:00:00Z"}),
        member("a-5", "Pending"),
    ]
    assert status_of(app_group("KahnSort", ("a", "a", ())), *pods)["runningWorkloads"] == 2


def test_every_app_group_has_the_pods_that_belong_to_it() -> None:
    """By label in any namespace, the own one first where two groups have a name; by owner without a label."""
    deployment = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "cart-5d9", "controller": True}
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "cart", "controller": True}
    objects = objects_of(
        app_group("KahnSort", ("a", "a", ()), name="one"),
        app_group("KahnSort", ("a", "a", ()), name="two", namespace="left"),
        app_group("KahnSort", ("a", "a", ()), name="two", namespace="right"),
        app_group("KahnSort", ("cart", "cart", ()), name="owned"),
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {"name": "cart-5d9", "ownerReferences": [owner]},
        },
        pod("p0", labels={LABEL: "one", f"{LABEL}.workload": "a"}, namespace="elsewhere", node="n"),
        pod("p1", labels={LABEL: "one", f"{LABEL}.workload": "a"}, node="n"),
        pod("p2", labels={LABEL: "two", f"{LABEL}.workload": "a"}, namespace="right", node="n"),
        pod("p3", labels={LABEL: "two", f"{LABEL}.workload": "a"}, node="n"),
        pod("p4", metadata={"ownerReferences": [deployment]}, node="n"),
        pod("p5", node="n"),
    )
    found = app_group_statuses(objects.app_groups, objects.pods, objects.replica_sets, NOW)
    assert {str(key): each["runningWorkloads"] for key, each in found.items()} == {
        "default/one": 2,
        "default/owned": 1,
        "left/two": 0,
        "right/two": 1,
    }
    assert list(found) == sorted(found)


def test_of_two_objects_of_one_name_that_of_the_group_in_use_counts() -> None:
    new = app_group("KahnSort", ("a", "a", ("b",)), ("b", "b", ()))
    old = app_group("ReverseKahn", ("a", "a", ("b",)), ("b", "b", ())) | {
        "apiVersion": "scheduling.sigs.x-k8s.io/v1alpha1"
    }
    for documents in ((new, old), (old, new)):
        objects = objects_of(*documents)
        order = app_group_statuses(objects.app_groups, (), (), NOW)[Key("default", "shop")]["topologyOrder"]
        assert [each["index"] for each in order] == [1, 2]
