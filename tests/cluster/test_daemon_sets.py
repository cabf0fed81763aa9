"""Room for pods of DaemonSets that are still to come."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import placer
from placer.arrays.eligibility import Eligibility
from placer.kube.kinds import KindInfo
from placer.passes.cluster import take
from placer.passes.cluster.planning.scheduler_cache import SchedulerCache
from placer.passes.cluster.reading.daemon_sets import DAEMON_SETS, is_placeholder
from placer.passes.cluster.reading.earlier_passes import prepared
from placer.passes.cluster.reading.field_filter import list_reader
from placer.passes.cluster.reading.snapshot import Snapshot, whole_kind
from placer.problem import Key, PodState, Requirement
from placer.problem.instance_builder import make_instance
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


TRUSTED = {"placer.dev/agents": "true"}


def namespace(name: str, labels: Mapping[str, str] = TRUSTED) -> Document:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": dict(labels)}}


def snapshot(
    daemons: list[Document], *documents: Document, page: int = 500, trusted: tuple[str, ...] = ("default", "other")
) -> Snapshot:
    lists: dict[str, list[Document]] = {"/api/v1/nodes": [], "/api/v1/pods": [], "/apis/apps/v1/daemonsets": daemons}
    lists["/api/v1/namespaces"] = [namespace(each) for each in trusted]
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
        ("1", 1, 0, 60, False),  # none of its pods is ready
        ("1", 1, 1, 60, True),
        ("8", 20, 20, 60, True),
        ("8001m", 20, 20, 60, False),  # fits no node
        ("8001m", 20, 20, 1, False),
    ],
)
def test_it_is_held_for_pods_that_will_come(cpu: str, desired: int, ready: int, minutes: int, wanted: bool) -> None:
    """Else a tenant takes a cluster by a DaemonSet of which no pod is ever made, or runs."""
    container = {"name": "main", "image": "example.com/agent:1", "resources": {"requests": {"cpu": cpu}}}
    status = {"status": {"desiredNumberScheduled": desired, "numberReady": ready}}
    daemons = {**daemon_set(containers=[container]), **status}
    assert bool(held(snapshot([daemons], *aged(1, minutes)))) == wanted


@pytest.mark.parametrize(("ahead", "wanted"), [(0, True), (60, False)])
def test_how_old_a_node_is_is_told_by_the_servers_clock(ahead: int, wanted: bool) -> None:
    """It came just now by ours; its DaemonSet runs on few, so room is held on what is new alone."""

    class Server(ListServer):
        def now(self) -> datetime:
            return datetime.now(UTC) + timedelta(minutes=ahead)

    daemons = {**daemon_set(), "status": {"desiredNumberScheduled": 20, "numberReady": 0}}
    lists = {"/api/v1/nodes": aged(1, 0), "/api/v1/pods": [], "/apis/apps/v1/daemonsets": [daemons]}
    lists["/api/v1/namespaces"] = [namespace("default")]
    assert bool(held(take(Server(lists)))) == wanted


def aged(count: int, minutes: int = 60) -> list[Document]:
    """Nodes that have been there for so long."""
    created = {"creationTimestamp": (datetime.now(UTC) - timedelta(minutes=minutes)).isoformat()}
    made = (node(f"n{number:02}") for number in range(count))
    return [{**each, "metadata": each["metadata"] | created} for each in made]


def asking(name: str, cpu: str, desired: int = 1, ready: int = 0, **placed: Any) -> Document:
    """A DaemonSet of a tenant that its controller has seen."""
    found = daemon_set(name, "evil", containers=[{"name": "main", "resources": {"requests": {"cpu": cpu}}}], **placed)
    return {
        **found,
        "status": {"desiredNumberScheduled": desired, "numberReady": ready, "observedGeneration": 1},
    }


def test_daemon_sets_of_which_no_pod_comes_close_no_node_to_others() -> None:
    """One for each node, of a tenant who may make no pod: the nodes are there for the pods of others."""
    evil = [asking(f"d{at:02}", "8", nodeSelector={"kubernetes.io/hostname": f"n{at:02}"}) for at in range(40)]
    assert held(snapshot(evil, *aged(40))) == {}
    taken = snapshot(evil, *aged(40, minutes=1))
    assert held(taken) == {}
    assert taken.no_room == {"evil": 40}


@pytest.mark.parametrize(("minutes", "ready"), [(1, 0), (60, 40)])
def test_a_namespace_holds_a_tenth_of_a_node_on_a_tenth_of_the_nodes(minutes: int, ready: int) -> None:
    """200m and 500m are a tenth of 8 cpu and less, of a third there is no room; each node counts once."""
    evil = [asking(name, cpu, 40, ready) for name, cpu in (("a", "500m"), ("b", "400m"), ("c", "300m"), ("d", "801m"))]
    taken = snapshot(evil, *aged(40, minutes))
    found = make_instance(taken.objects(), scheduler_name="placer", cluster=True)
    assert sorted(found.pods) == [Key("evil", f"{name}:n{at:02}") for name in "ac" for at in range(4)]
    assert taken.no_room == {"evil": 36 + 40 + 36 + 40}
    assert held(snapshot(evil, *aged(40, minutes), trusted=("evil",))).keys() == {f"n{at:02}" for at in range(40)}


@pytest.mark.parametrize(
    ("desired", "ready", "wanted"), [(1, 1, False), (2, 0, False), (2, 1, True), (2, 2, True), (40, 0, False)]
)
def test_on_nodes_that_are_not_new_room_is_held_for_what_runs_on_several(
    desired: int, ready: int, wanted: bool
) -> None:
    """One that wants a single pod may be one of many, a DaemonSet for each node."""
    assert bool(held(snapshot([asking("a", "100m", desired, ready)], *aged(20)))) == wanted


def test_new_nodes_come_first_and_kube_system_has_no_bounds() -> None:
    old, (new,) = aged(20), aged(1, minutes=1)
    new["metadata"]["name"] = "z"
    assert held(snapshot([asking("a", "100m", 20, 20)], *old, new)).keys() == {"z", "n00"}
    system = asking("a", "8", 21, 20)
    system["metadata"]["namespace"] = "kube-system"
    assert len(held(snapshot([system], *old, new))) == 21


@pytest.mark.parametrize(("label", "wanted"), [("true", 1), ("false", 0), ("", 0)])
def test_the_label_of_a_namespace_trusts_its_daemon_sets(label: str, wanted: int) -> None:
    lists = {"/api/v1/nodes": aged(1, 1), "/api/v1/pods": [], "/apis/apps/v1/daemonsets": [asking("a", "4")]}
    lists["/api/v1/namespaces"] = [namespace("evil", {"placer.dev/agents": label}), namespace("x", {"other": "true"})]
    assert len(held(take(ListServer(lists)))) == wanted


class Asked(NamedTuple):
    """How often something was asked."""

    read: list[bytes]
    rows: list[object]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    found = Asked([], [])
    read, row = DAEMON_SETS.read, Eligibility.row

    def reading(text: bytes) -> Any:
        found.read.append(text)
        return read(text)

    def rows(eligibility: Eligibility, constraints: Any) -> Any:
        found.rows.append(constraints)
        return row(eligibility, constraints)

    monkeypatch.setitem(vars(DAEMON_SETS), "read", reading)
    monkeypatch.setattr(Eligibility, "row", rows)
    return found


def test_what_is_meant_for_no_node_is_not_even_read(asked: Asked) -> None:
    """Nor what holds no room where no node is new; its controller says of each that no pod of it is to come."""
    nowhere = [asking(f"d{at}", "1", 0, nodeSelector={"no": "where"}) for at in range(200)]
    assert held(snapshot(nowhere, *aged(2, minutes=1))) == {}
    assert held(snapshot([asking(f"d{at}", "1", 5, 0) for at in range(200)], *aged(2))) == {}
    assert asked == ([], [])


def test_nodes_are_asked_once_for_what_several_daemon_sets_want_alike(asked: Asked) -> None:
    alike = [asking(f"d{at}", "1m", 5, nodeSelector={"kubernetes.io/hostname": f"n0{at % 3}"}) for at in range(30)]
    snapshot(alike, *aged(40, minutes=1))
    assert len(asked.read) == 30
    assert len(asked.rows) == 3


def test_long_lists_are_not_gone_through_for_each_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of names in a term, and as many nodes: each name is looked up once."""
    monkeypatch.setattr(Requirement, "holds", None)
    names = [f"n{at:02}" for at in range(1, 3_000)]
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "NotIn", "values": names}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    found = held(snapshot([asking("a", "100m", 40, affinity={"nodeAffinity": required})], *aged(20, minutes=1)))
    assert found == {"n00": 100}


def test_a_loop_keeps_the_list_of_daemon_sets_by_a_watch() -> None:
    """Its items come from where the others do, and are no part of the snapshot."""
    daemons, server = [daemon_set()], ListServer({"/api/v1/nodes": [node("n1")], "/api/v1/pods": []})
    asked = list[str]()

    def lists(path: str, info: KindInfo, api_version: str, watch: Any) -> tuple[list[bytes], str]:
        asked.append(path)
        if info is DAEMON_SETS:
            return [list_reader(info, api_version).object(json.dumps(each).encode()) for each in daemons], "7"
        return whole_kind(server, path, info, api_version, watch)

    taken = take(server, lists=lists)
    assert asked.count("/apis/apps/v1/daemonsets") == 1
    assert "/apis/apps/v1/daemonsets" not in server.asked
    assert taken.no_room == {"default": 1}
    assert list(taken.of_kind("DaemonSet")) == []


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
