"""Room for pods of DaemonSets that are still to come."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import placer
from placer.cluster import take
from placer.cluster.planning.scheduler_cache import SchedulerCache
from placer.cluster.reading.earlier_passes import prepared
from placer.cluster.reading.snapshot import Snapshot, is_placeholder
from placer.instance import PodState
from placer.instance.instance_builder import make_instance
from tests.cluster.caches import alone, bind, event, mine, theirs
from tests.cluster.snapshots import ListServer
from tests.support import Document, node

AGENT = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "u", "controller": True}


def daemon_set(name: str = "agent", namespace: str = "default", deleted: bool = False, **spec: Any) -> Document:
    container = {
        "name": "main",
        "image": "example.com/agent:1",
        "env": [{"name": "PASSWORD", "value": "hunter2"}],
        "resources": {"requests": {"cpu": "1"}},
    }
    metadata = {"name": name, "namespace": namespace}
    return {
        "metadata": metadata | ({"deletionTimestamp": "2026-01-01T00:00:00Z"} if deleted else {}),
        "spec": {"template": {"metadata": {}, "spec": {"containers": [container], **spec}}},
    }


def agent(where: str, **status: Any) -> Document:
    made = theirs(f"agent-{where}", where, cpu=1)
    return {
        **made,
        "metadata": {**made["metadata"], "ownerReferences": [AGENT]},
        "status": {"phase": "Running"} | status,
    }


def snapshot(daemons: list[Document], *documents: Document, page: int = 500) -> Snapshot:
    lists: dict[str, list[Document]] = {"/api/v1/nodes": [], "/api/v1/pods": [], "/apis/apps/v1/daemonsets": daemons}
    for each in documents:
        lists[f"/api/v1/{each['kind'].lower()}s"].append(each)
    return take(ListServer(lists, page))


def held(taken: Snapshot) -> dict[str, int]:
    """Node to the milli-cpu that placeholders hold there."""
    instance = make_instance(taken.objects(), scheduler_name="placer", cluster=True)
    found = {pod.node: pod.requests["cpu"] for key, pod in instance.pods.items() if is_placeholder(key)}
    assert all(pod.state is PodState.NOMINATED for key, pod in instance.pods.items() if is_placeholder(key))
    return {str(name): amount for name, amount in found.items()}


def tainted(key: str) -> Document:
    return {**node("n1"), "spec": {"taints": [{"key": key, "effect": "NoSchedule"}]}}


def test_where_its_pod_is_missing_its_room_is_held() -> None:
    """On n1 it runs, on n2 it has failed, on n3 it is being deleted, on n4 it has not been yet."""
    gone = agent("n3")
    gone["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    nodes = [node(f"n{number}") for number in range(1, 5)]
    taken = snapshot([daemon_set()], *nodes, agent("n1"), agent("n2", phase="Failed"), gone)
    assert held(taken) == {"n2": 1000, "n4": 1000}


def test_without_daemon_sets_nothing_is_held() -> None:
    assert held(snapshot([], node("n1"))) == {}
    assert held(snapshot([daemon_set(deleted=True)], node("n1"))) == {}


def test_several_and_of_one_name() -> None:
    taken = snapshot([daemon_set(), daemon_set(namespace="other"), daemon_set("long" * 60)], node("n" * 60), page=1)
    instance = make_instance(taken.objects(), scheduler_name="placer", cluster=True)
    assert {key.namespace for key in instance.pods} == {"default", "other"}
    assert sum(pod.requests["cpu"] for pod in instance.pods.values()) == 3000
    assert all(is_placeholder(key) for key in instance.pods)


@pytest.mark.parametrize(
    ("spec", "document", "wanted"),
    [
        ({"nodeSelector": {"gpu": "yes"}}, node("n1", {"gpu": "yes"}), True),
        ({"nodeSelector": {"gpu": "yes"}}, node("n1"), False),
        ({}, {**node("n1"), "spec": {"unschedulable": True}}, True),
        ({}, tainted("gpu"), False),
        ({"tolerations": [{"operator": "Exists"}]}, tainted("gpu"), True),
        ({}, tainted("node.kubernetes.io/disk-pressure"), True),
        ({}, tainted("node.kubernetes.io/network-unavailable"), False),
        (
            {"hostNetwork": True},
            tainted("node.kubernetes.io/network-unavailable"),
            True,
        ),
    ],
)
def test_it_is_held_where_the_controller_wants_a_pod(spec: dict[str, Any], document: Document, wanted: bool) -> None:
    assert held(snapshot([daemon_set(**spec)], document)) == ({"n1": 1000} if wanted else {})


def test_the_file_decides_the_same_and_keeps_no_secret(tmp_path: Path) -> None:
    """Of 8 cpu one is held: a pod of 8 waits, a pod of 7 goes."""
    taken = snapshot([daemon_set()], node("n1"), mine("eight", cpu=8), mine("seven", cpu=7))
    path = tmp_path / "snapshot.json"
    taken.write(path)
    assert "hunter2" not in path.read_text()
    placement = placer.solve(placer.read(path), method="greedy").placement
    assert placement is not None
    assert [each.pod.name for each in placement.bindings] == ["seven"]


def test_a_node_that_cannot_be_read_gets_no_placeholder_and_is_told() -> None:
    taken = snapshot([daemon_set()], node("n1", cpu="many"), node("n2", memory="-1"), node("n3"))
    objects = taken.objects()
    assert [each.label for each in objects.unread] == ["Node n1", "Node n2"]
    assert [each.name for each in objects.pods] == ["agent:n3"]


@pytest.mark.parametrize(
    "spec",
    [
        {"tolerations": 5},
        {"containers": "none"},
        {"nodeSelector": {"x": 5}},
        {"containers": [{"resources": 3}]},
        {"tolerations": [{"key": f"k{at}", "operator": "Exists"} for at in range(300)]},
    ],
)
def test_one_whose_pods_cannot_be_foreseen_is_told_and_holds_no_room(spec: dict[str, Any]) -> None:
    taken = snapshot([daemon_set("odd", **spec), daemon_set()], node("n1"), mine("a", cpu=7))
    objects = taken.objects()
    assert [(each.label, each.attribute) for each in objects.unread] == [("DaemonSet default/odd", "")]
    assert [each.name for each in objects.pods] == ["a", "agent:n1"]
    found = prepared(taken, ()).instance.findings
    assert [(each.code, each.object) for each in found] == [("Unreadable", "DaemonSet default/odd")]


@pytest.mark.parametrize(
    ("cpu", "desired", "ready", "minutes", "wanted"),
    [
        ("1", 20, 18, 60, True),
        ("1", 20, 17, 60, False),  # its pods do not come: a quota, or they do not fit beside what runs
        ("1", 20, 17, 1, True),  # the node is new
        ("1", 1, 0, 60, True),
        ("8", 20, 20, 60, True),
        ("8001m", 20, 20, 60, False),  # fits no node
        ("8001m", 20, 20, 1, False),
    ],
)
def test_it_is_held_for_pods_that_will_come(cpu: str, desired: int, ready: int, minutes: int, wanted: bool) -> None:
    """Else a tenant takes a cluster by a DaemonSet of which no pod is ever made, or runs."""
    container = {"name": "main", "image": "example.com/agent:1", "resources": {"requests": {"cpu": cpu}}}
    daemons = daemon_set(containers=[container])
    daemons["status"] = {"desiredNumberScheduled": desired, "numberReady": ready}
    made = node("n1", cpu=8)
    made["metadata"]["creationTimestamp"] = (datetime.now(UTC) - timedelta(minutes=minutes)).isoformat()
    assert bool(held(snapshot([daemons], made))) == wanted


@pytest.mark.parametrize(("ahead", "wanted"), [(0, True), (60, False)])
def test_how_old_a_node_is_is_told_by_the_servers_clock(ahead: int, wanted: bool) -> None:
    """It came just now by ours; its DaemonSet runs on few, so room is held on what is new alone."""

    class Server(ListServer):
        def now(self) -> datetime:
            return datetime.now(UTC) + timedelta(minutes=ahead)

    daemons, made = daemon_set(), node("n1", cpu=8)
    daemons["status"] = {"desiredNumberScheduled": 20, "numberReady": 0}
    made["metadata"]["creationTimestamp"] = datetime.now(UTC).isoformat()
    lists = {"/api/v1/nodes": [made], "/api/v1/pods": [], "/apis/apps/v1/daemonsets": [daemons]}
    assert bool(held(take(Server(lists)))) == wanted


@pytest.mark.parametrize("cpu", ["9e15", "9223372036854775807", "1e400", "-1", None, 5, [], "many"])
def test_whatever_its_pods_ask_for_ends_no_pass(cpu: object) -> None:
    containers = [{"name": name, "image": "i", "resources": {"requests": {"cpu": cpu}}} for name in ("a", "b")]
    taken = snapshot([daemon_set("odd", containers=containers), daemon_set()], node("n1"))
    assert "agent:n1" in [each.name for each in taken.objects().pods]


@pytest.fixture
def cache() -> SchedulerCache:
    taken = snapshot([daemon_set()], node("n1"), mine("a", cpu=7), mine("b", cpu=8))
    return SchedulerCache(taken, prepared(taken, ()).instance)


def test_the_pod_takes_the_place_of_its_placeholder(cache: SchedulerCache) -> None:
    """Before, and after: 1 of 8 cpu."""
    refusal = "the room is gone on Node n1: cpu 8 of 7 left"
    assert cache.refusal(alone("b"), [bind("b", "n1")]) == refusal
    cache.pod_happened("ADDED", event(agent("n1")))
    assert cache.refusal(alone("a"), [bind("a", "n1")]) is None
    assert cache.refusal(alone("b"), [bind("b", "n1")]) == refusal


def test_a_list_in_place_of_events_leaves_placeholders(cache: SchedulerCache) -> None:
    cache.pods_replaced([event(mine("a", cpu=7)), event(mine("b", cpu=8))])
    assert cache.changed() == set()
    assert cache.refusal(alone("b"), [bind("b", "n1")]) == "the room is gone on Node n1: cpu 8 of 7 left"
