"""Whatever an API server may hold, nothing of it ends a pass, and what has nothing to do with it is bound."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from queue import SimpleQueue
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from placer.kube.kinds import KINDS
from placer.kube.marks import KAI_GROUP, MARKS, Meaning, Place
from placer.passes.cluster.reading.client import Response
from placer.passes.cluster.writing.plan_execution import BindingOptions
from placer.passes.scheduling_pass import Pass, PassOptions, PassSession, run_pass
from tests.cluster.any_objects import changed
from tests.cluster.snapshots import ListServer
from tests.cluster.things import live_pod, numa_topology
from tests.examples import examples
from tests.netdocs import app_group, call, costs, network_topology, weights
from tests.support import Document, hyper_node, node, pod_group, queue

PODS, NODES = "/api/v1/pods", "/api/v1/nodes"
GOOD = "good"  #: namespace, taint and label of what is in order, and has nothing to do with the rest
MARK_LABELS = {each.name: "2" for each in MARKS if each.place is Place.LABEL and each.meaning is Meaning.GANG}
MARK_NOTES = {
    each.name: "2" for each in MARKS if each.place is Place.ANNOTATION and "Pod" in each.on and each.name != KAI_GROUP
}
POOL = {"key": GOOD, "value": GOOD, "effect": "NoSchedule"}


def good() -> list[Document]:
    """Two nodes that hardly anything else tolerates, with room without end, and three gangs for them."""
    nodes = [node(name, {GOOD: GOOD}, cpu=100_000, memory="1Ei", pods=9_000) for name in ("good-a", "good-b")]
    for each in nodes:
        each["spec"] = {"taints": [POOL]}
    spec = {"nodeSelector": {GOOD: GOOD}, "tolerations": [{**POOL, "operator": "Equal"}]}
    found = [*nodes]
    for number in range(3):
        name = f"good-{number}"
        found.append(pod_group(name, namespace=GOOD, minMember=2))
        found += [live_pod(f"{name}-{i}", group=name, namespace=GOOD, cpu=1, spec=dict(spec)) for i in range(2)]
    return found


def _custom(api_version: str, kind: str, name: str, namespace: str | None = "odd", **body: Any) -> Document:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **body}


def odd() -> list[Document]:
    """One of every kind that is listed, or more where they differ, all of them in order and tied to each other."""
    app = {"appgroup.diktyo.x-k8s.io": "app", "appgroup.diktyo.x-k8s.io.workload": "web"}
    needs = {"matchExpressions": [{"key": "rack", "operator": "In", "values": ["r1"]}]}
    term = {"labelSelector": {"matchLabels": {"team": "a"}}, "topologyKey": "rack"}
    rich = {
        "affinity": {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [needs]}},
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]},
        },
        "tolerations": [{"key": "odd", "operator": "Exists"}],
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
        ],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "claim"}}],
        "priorityClassName": "high",
        "schedulingGates": [],
        "os": {"name": "linux"},
    }
    owner = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "u", "controller": True}]
    template = live_pod("template", cpu=1)
    role = {"volcano.sh/task-spec": "worker", "scheduling.volcano.sh/group-name": "gang"}
    limits = {"mode": "hard", "highestTierAllowed": 1}
    selector = {"labelSelector": {"matchLabels": {"team": "a"}}, "matchLabelKeys": ["team"]}
    policies = [{"name": "part", "subGroupSize": 1, "minSubGroups": 1, **selector}]
    return [
        node("odd-n1", {"rack": "r1", "kubernetes.io/os": "linux"}, cpu=16, memory="64Gi", gpu=8),
        {**node("odd-n2", {"rack": "r2"}, cpu=16), "spec": {"taints": [{"key": "odd", "effect": "NoSchedule"}]}},
        live_pod("p-gang", namespace="odd", group="gang", cpu=1, labels={"team": "a"}, annotations=role),
        live_pod("p-rich", namespace="odd", cpu=1, spec=rich, labels={"team": "a", "x": "y"}),
        live_pod("p-app", namespace="odd", cpu=1, labels=app, metadata={"ownerReferences": owner}),
        live_pod("p-runs", namespace="odd", node="odd-n1", cpu=1, labels={"team": "a"}, spec={"priority": 5}),
        live_pod("p-old", namespace="odd", labels={"scheduling.x-k8s.io/pod-group": "cosched"}, cpu=1),
        pod_group(
            "gang",
            namespace="odd",
            minMember=1,
            queue="q",
            networkTopology=limits,
            minTaskMember={"worker": 1},
            subGroupPolicy=policies,
            minResources={"cpu": "1"},
            priorityClassName="high",
        ),
        _custom(
            "scheduling.x-k8s.io/v1alpha1", "PodGroup", "cosched", spec={"minMember": 1, "scheduleTimeoutSeconds": 9}
        ),
        _custom(
            "scheduling.k8s.io/v1beta1",
            "PodGroup",
            "theirs",
            spec={
                "schedulingPolicy": {"gang": {"minCount": 1}},
                "schedulingConstraints": {"topology": [{"key": "rack"}]},
                "disruptionMode": {"all": {}},
                "priorityClassName": "high",
                "workloadRef": {"workloadName": "train", "templateName": "workers"},
            },
        ),
        _custom("scheduling.run.ai/v2alpha2", "PodGroup", "kai", spec={"minMember": 1, "priorityClassName": "high"}),
        live_pod("p-kai", namespace="odd", cpu=1, annotations={"pod-group-name": "kai"}),
        live_pod("p-marks", namespace="odd", cpu=1, labels=MARK_LABELS, annotations=MARK_NOTES),
        _custom(
            "scheduling.k8s.io/v1beta1",
            "Workload",
            "train",
            spec={"podGroupTemplates": [{"name": "workers", "schedulingPolicy": {"gang": {"minCount": 1}}}]},
        ),
        live_pod("p-theirs", namespace="odd", cpu=1, spec={"schedulingGroup": {"podGroupName": "theirs"}}),
        queue("q", {"cpu": 8}, parent="root"),
        queue("root"),
        hyper_node("leaf", 1, nodes=("odd-n1",), tier_name="rack"),
        hyper_node("spine", 2, children=("leaf",)),
        numa_topology("odd-n1", {"cpu": "8", "memory": "8Gi"}, {"cpu": "8"}),
        _custom("v1", "Namespace", "odd", None),
        _custom("scheduling.k8s.io/v1", "PriorityClass", "high", None, value=1000, globalDefault=False),
        app_group("app", {"web": [call("web", bandwidth="1")]}, namespace="odd", numMembers=1),
        network_topology(weights(zone=costs(("z1", "z2", 5, "1G"))), namespace="odd"),
        _custom("v1", "ConfigMap", "netperf", data={"odd-n1.odd-n2": '{"p90": 3}'}),
        _custom(
            "v1",
            "PersistentVolumeClaim",
            "claim",
            spec={"volumeName": "vol", "accessModes": ["ReadWriteOncePod"]},
            status={"phase": "Bound"},
        ),
        _custom(
            "v1",
            "PersistentVolume",
            "vol",
            None,
            spec={"capacity": {"storage": "1Gi"}, "nodeAffinity": {"required": {"nodeSelectorTerms": [needs]}}},
        ),
        _custom(
            "policy/v1",
            "PodDisruptionBudget",
            "budget",
            spec={"minAvailable": "50%", "selector": {"matchLabels": {"team": "a"}}},
            status={"disruptionsAllowed": 1, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1},
        ),
        _custom("apps/v1", "ReplicaSet", "web-1", spec={"selector": {}}),
        _custom(
            "apps/v1",
            "DaemonSet",
            "agent",
            spec={"selector": {}, "template": {"metadata": {"labels": {"team": "a"}}, "spec": template["spec"]}},
        ),
    ]


#: Names that everything odd is tied by, so that what is changed may name another thing.
WORDS = (
    "odd",
    "odd-n1",
    "gang",
    "q",
    "leaf",
    "spine",
    "rack",
    "r1",
    "team",
    "high",
    "claim",
    "vol",
    "app",
    "web",
    "linux",
)
#: Names of what is in order: an odd object that has one of them may take its room or keep it off.
GOOD_WORDS = (GOOD, "good-a", "good-0", "good-0-1")


class Double(ListServer):
    """A server of lists that takes all that is written, and whose watches tell of it and of odd objects that change."""

    def __init__(self, documents: list[Document], later: list[Document]) -> None:
        lists: dict[str, list[Document]] = {path_of(each): [] for each in odd()}
        for number, each in enumerate(documents):
            metadata = {"uid": f"u{number}", "resourceVersion": "5", **each["metadata"]}
            lists.setdefault(path_of(each), []).append({**each, "metadata": metadata})
            if each["kind"] == "ConfigMap":
                lists[f"/api/v1/namespaces/{metadata['namespace']}/configmaps/{metadata['name']}"] = [each]
        super().__init__(lists)
        self.bound: dict[str, str] = {}
        self.written: list[tuple[str, Any]] = []  #: path and body of each write, in turn
        self._happened: dict[str, SimpleQueue[bytes | None]] = {PODS: SimpleQueue(), NODES: SimpleQueue()}
        for events in self._happened.values():
            events.put(b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"}}}')
        for each in later:
            if path_of(each) in self._happened:
                for kind in ("MODIFIED", "DELETED", "ADDED"):
                    self._happened[path_of(each)].put(_line(kind, each))

    def get(self, path: str, parameters: Mapping[str, str] | None = None) -> Response:
        of_none = (
            "fieldSelector" in (parameters or {}) or path.rpartition("/namespaces/")[2].partition("/")[2] == "pods"
        )
        if of_none:  # how a watch asks what is current
            return Response(200, b'{"metadata": {"resourceVersion": "9"}, "items": []}')
        return super().get(path, parameters)

    def send(self, method: str, path: str, body: Any = None, **options: Any) -> Response:
        if method == "GET":
            asked = options.get("parameters") or {"limit": "500"}
            page = {key: asked[key] for key in ("limit", "continue") if key in asked}
            return self.get(path, page) if path in self.lists else Response(404, b"{}")
        self.written.append((path, body))
        if ("/leases" in path or "/configmaps" in path) and method in ("POST", "PUT", "PATCH"):
            metadata = {"name": "placer", "namespace": "placer", "resourceVersion": "1"}
            return Response(201 if method == "POST" else 200, json.dumps({**body, "metadata": metadata}).encode())
        if path.endswith("/binding"):
            *_, namespace, _, name, _ = path.split("/")
            self.bound[name] = body["target"]["name"]
            self._happened[PODS].put(_line("MODIFIED", self._running(namespace, name)))
            return Response(201, b"{}")
        return Response(200, b"{}")

    def _running(self, namespace: str, name: str) -> Document:
        """A pod as it is once its kubelet has admitted it."""
        key = (namespace, name)
        found = next(each for each in self.lists[PODS] if _key(each) == key)
        return {**found, "spec": {**found["spec"], "nodeName": self.bound[name]}, "status": {"phase": "Running"}}

    def follow(self, path: str, _: Mapping[str, str], opened: Callable[[Callable[[], None]], None]) -> Iterator[bytes]:
        happened = self._happened[path]
        opened(lambda: happened.put(None))
        while (line := happened.get()) is not None:
            yield line


def _key(document: Document) -> tuple[str, str]:
    return document["metadata"].get("namespace", "default"), document["metadata"]["name"]


def _line(kind: str, document: Document) -> bytes:
    return json.dumps({"type": kind, "object": document}).encode()


def path_of(document: Document) -> str:
    group, _, version = document["apiVersion"].rpartition("/")
    plural = KINDS[group, document["kind"]].plural if (group, document["kind"]) in KINDS else "daemonsets"
    return f"/apis/{group}/{version}/{plural}" if group else f"/api/{version}/{plural}"


def a_pass(documents: list[Document], later: list[Document], scheduler: str = "placer") -> tuple[Double, Pass]:
    """One pass of a greedy at a double."""
    return pass_at(Double(documents, later), scheduler)


def pass_at(server: Double, scheduler: str = "placer") -> tuple[Double, Pass]:
    """One pass of a greedy at a double that is there."""
    options = PassOptions(
        scheduler_name=scheduler, method="greedy", time_limit=None, binding=BindingOptions(grace=5.0, settle=0.0)
    )
    done = Pass(options)
    run_pass(PassSession(server, threading.Event()), done)  # type: ignore[arg-type]  # it has what a pass asks of a client
    return server, done


ALL_GOOD = {f"good-{number}-{i}" for number in range(3) for i in (0, 1)}


def good_ones(server: Double) -> set[str]:
    """Pods that are bound of those that have nothing to do with anything odd."""
    return {name for name in server.bound if name.startswith(GOOD)}


CASES = [f"{each['kind']} {each['metadata']['name']}" for each in odd()]


def test_all_of_them_are_in_order_before_they_are_changed() -> None:
    server, done = a_pass([*good(), *odd()], [])
    assert {name for name in server.bound if name.startswith(GOOD)} == {
        f"good-{n}-{i}" for n in range(3) for i in (0, 1)
    }
    assert done.result is not None
    assert not [each for each in done.result.findings if each.code == "Unreadable"]
    assert {"p-gang"} <= server.bound.keys()


#: Our own kind, of which a fault is an error (models/interface.md).
APART = {"policies"}


def test_every_kind_that_is_listed_is_changed() -> None:
    from placer.passes.cluster.reading.snapshot import LISTED

    kinds = {(KINDS[each].attribute) for each in KINDS}
    assert set(LISTED) - APART <= kinds
    attributes = {KINDS[path_key(each)].attribute for each in odd() if path_key(each) in KINDS}
    assert set(LISTED) - APART <= attributes


def path_key(document: Document) -> tuple[str, str]:
    return document["apiVersion"].rpartition("/")[0], document["kind"]


#: What drawn objects of earlier runs had where a pass ended.
FOUND: list[Document] = [
    {"metadata": {"ownerReferences": [{"name": None}, {}]}},
    {"metadata": {"ownerReferences": [None]}},
    {"metadata": {"labels": {"team": None}, "annotations": {"scheduling.volcano.sh/group-name": None}}},
    {"status": {"phase": "Pending", "conditions": [{"type": None}, {}]}},
    {"spec": {"schedulingGates": [{"name": None}], "schedulerName": "placer", "containers": [{"name": "main"}]}},
]


@pytest.mark.parametrize("found", FOUND, ids=lambda found: json.dumps(found)[:40])
def test_nulls_in_a_pod_count_as_absent(found: Document) -> None:
    pod = live_pod("p-null", namespace="odd", cpu=1)
    odd_one = {**pod, **found, "metadata": {**pod["metadata"], **found.get("metadata", {})}}
    server, done = a_pass([*good(), *odd(), odd_one], [odd_one])
    assert done.result is not None
    assert good_ones(server) == ALL_GOOD


@pytest.mark.parametrize("place", range(len(CASES)), ids=CASES)
@settings(examples(60), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_nothing_ends_a_pass(place: int, data: st.DataObject) -> None:
    """One object of each kind, changed in the snapshot and once more while the pass goes on."""
    documents = odd()
    known = data.draw(st.booleans(), "knows the good ones")
    words = (*WORDS, *GOOD_WORDS) if known else WORDS
    documents[place] = data.draw(changed(documents[place], words), "object")
    later = [data.draw(changed(documents[place], words), "later")] if data.draw(st.booleans()) else []
    server, done = a_pass([*good(), *documents], later)
    assert done.result is not None
    event("unreadable" if any(each.code == "Unreadable" for each in done.result.findings) else "read")
    if not known:
        assert good_ones(server) == ALL_GOOD


@pytest.mark.exhaustive
@settings(examples(400), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_nothing_ends_a_pass_where_much_is_odd(data: st.DataObject) -> None:
    """Up to six objects at once."""
    documents = odd()
    for place in data.draw(st.lists(st.integers(0, len(documents) - 1), min_size=2, max_size=6, unique=True)):
        documents[place] = data.draw(changed(documents[place], WORDS))
    server, done = a_pass([*good(), *documents], [])
    assert done.result is not None
    assert good_ones(server) == ALL_GOOD
