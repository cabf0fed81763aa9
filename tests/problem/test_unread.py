"""Objects that cannot be read: each is a finding, what depends on it waits, everything else is placed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from placer.answers.solving import solve
from placer.base.errors import BadInstance
from placer.kube.manifests import from_documents, validate
from placer.problem import Instance
from placer.problem.instance_builder import make_instance
from placer.rules import verify
from tests.support import Document, hyper_node, node, pod, pod_group, policy, queue

#: A quantity that an API server takes in a custom resource, and no unit of placer's can count.
BEYOND = "1e30"
WORD_WITH_GT: Document = {
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "x", "operator": "Gt", "values": ["abc"]}]}]
            }
        }
    }
}


def read(*documents: Document, scheduler_name: str = "*") -> Instance:
    """The instance of objects of which some cannot be read."""
    return make_instance(validate(from_documents(documents), lenient=True), scheduler_name=scheduler_name)


def unread(instance: Instance) -> list[str]:
    """What was set aside."""
    return [finding.object for finding in instance.findings if finding.code == "Unreadable"]


def placed(instance: Instance) -> set[str]:
    """Names of the pods that find a place; what places them is verified."""
    result = solve(instance, method="greedy")
    assert result.placement is not None
    assert verify(instance, result.placement) == []
    return {binding.pod.name for binding in result.placement.bindings}


GOOD = (node("good", cpu=8), pod_group("good", minMember=2), pod("good-0", group="good"), pod("good-1", group="good"))

PRIORITY_CLASS: Document = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "odd"},
    "value": "high",
}
NAMESPACE: Document = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "labels": "none"}}
CLAIM: Document = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "data", "namespace": "default"},
    "spec": {"volumeName": "disk"},
    "status": {"phase": "Bound"},
}
VOLUME: Document = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "disk"}, "spec": 3}
APP_GROUP: Document = {
    "apiVersion": "appgroup.diktyo.x-k8s.io/v1alpha1",
    "kind": "AppGroup",
    "metadata": {"name": "shop", "namespace": "default"},
    "spec": {"workloads": "all"},
}


def owned(kind: str, name: str) -> dict[str, Any]:
    return {"ownerReferences": [{"apiVersion": "v1", "kind": kind, "name": name, "uid": "1", "controller": True}]}


CLAIMS: Mapping[str, Any] = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}

#: What cannot be read, with what it is found as; objects that depend on it; names of the pods that wait.
WAITING: dict[str, tuple[Document, str, Sequence[Document], set[str]]] = {
    "a pod": (pod("a", spec=WORD_WITH_GT), "Pod default/a", [pod("b")], {"a"}),
    "a pod of a gang": (
        pod("a", group="g", spec=WORD_WITH_GT),
        "Pod default/a",
        [pod_group("g", minMember=1), pod("b", group="g"), pod("c", group="h"), pod_group("h", minMember=1)],
        {"a", "b"},
    ),
    "a PodGroup": (
        pod_group("g", minMember=1, minResources={"cpu": BEYOND}),
        "PodGroup default/g",
        [pod("a", group="g"), pod("b")],
        {"a"},
    ),
    "a negative quantity": (
        pod_group("g", minMember=1, minResources={"cpu": "-1"}),
        "PodGroup default/g",
        [pod("a", group="g")],
        {"a"},
    ),
    "a Queue": (
        queue("q", {"cpu": BEYOND}),
        "Queue q",
        [
            queue("below", parent="q"),
            queue("beside"),
            *(pod_group(each, minMember=1, queue=each) for each in ("q", "below", "beside")),
            *(pod(f"{each}-0", group=each) for each in ("q", "below", "beside")),
        ],
        {"q-0", "below-0"},
    ),
    "a PriorityClass": (
        PRIORITY_CLASS,
        "PriorityClass odd",
        [
            pod("a", spec={"priorityClassName": "odd"}),
            pod_group("g", minMember=1, priorityClassName="odd"),
            pod("b", group="g"),
            pod("c"),
        ],
        {"a", "b"},
    ),
    "a HyperNode": (
        hyper_node("leaf", 1, nodes=("good",)) | {"spec": {"tier": "first", "members": []}},
        "HyperNode leaf",
        [
            pod_group("hard", minMember=1, networkTopology={"mode": "hard", "highestTierAllowed": 1}),
            pod_group("soft", minMember=1, networkTopology={"mode": "soft"}),
            pod("a", group="hard"),
            pod("b", group="soft"),
        ],
        {"a"},
    ),
    "a claim": (dict(CLAIM, spec=3), "PersistentVolumeClaim default/data", [pod("a", spec=CLAIMS), pod("b")], {"a"}),
    "a volume": (VOLUME, "PersistentVolume disk", [CLAIM, pod("a", spec=CLAIMS), pod("b")], {"a"}),
    "an AppGroup": (
        APP_GROUP,
        "AppGroup default/shop",
        [
            pod("a"),
            pod("b", namespace="else", labels={"appgroup.diktyo.x-k8s.io": "shop"}),
            pod("c", namespace="else"),
        ],
        {"a", "b", "good-0", "good-1"},
    ),
    "an AppGroup that lists its workloads": (
        APP_GROUP | {"spec": {"workloads": [{"workload": {"kind": "Deployment", "name": "web"}, "dependencies": 3}]}},
        "AppGroup default/shop",
        [
            pod("a", labels={"appgroup.diktyo.x-k8s.io": "shop"}),
            pod("b", metadata=owned("ReplicaSet", "web-5d4f")),
            pod("c", metadata=owned("ReplicaSet", "db-5d4f")),
            pod("d", labels={"appgroup.diktyo.x-k8s.io": "other"}),
            pod("e", namespace="else", metadata=owned("ReplicaSet", "web-5d4f")),
        ],
        {"a", "b"},
    ),
    "a Namespace": (NAMESPACE, "Namespace default", [pod("a"), pod("b", namespace="else")], {"a", "good-0", "good-1"}),
    "an owner": (
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "namespace": "default"}, "spec": 3},
        "Job default/j",
        [
            pod(
                "a",
                metadata={
                    "ownerReferences": [
                        {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "1", "controller": True}
                    ]
                },
            ),
            pod("b"),
        ],
        {"a"},
    ),
}


@pytest.mark.parametrize("case", WAITING)
def test_what_depends_on_it_waits_and_all_else_is_placed(case: str) -> None:
    broken, label, others, waiting = WAITING[case]
    documents = [*GOOD, broken, *others]
    instance = read(*documents)
    assert unread(instance) == [label]
    pods = {each["metadata"]["name"] for each in documents if each["kind"] == "Pod"}
    assert placed(instance) == pods - waiting
    held = {str(pod.name) for group in instance.groups.values() if group.invalid for pod in group.pending}
    assert held == waiting - ({"a"} if label == "Pod default/a" else set())
    assert all(
        group.invalid == f"{label} cannot be read" for group in instance.groups.values() if group.invalid is not None
    )
    assert label not in {each.object for each in instance.findings if each.code == "UnknownReference"}


@pytest.mark.parametrize("case", WAITING)
def test_without_being_asked_it_is_an_error(case: str) -> None:
    broken, label, others, _ = WAITING[case]
    with pytest.raises(BadInstance) as raised:
        validate(from_documents([*GOOD, broken, *others]))
    assert {fault.object for fault in raised.value.faults} == {label}


def test_a_policy_is_never_set_aside() -> None:
    with pytest.raises(BadInstance, match="levels"):
        read(*GOOD, policy(levels="all"))


def test_a_pod_on_a_node_holds_its_room_where_its_requests_can_be_read() -> None:
    stands = pod("a", node="n", cpu=6, spec=WORD_WITH_GT)
    instance = read(node("n", cpu=8), stands, pod("fits", cpu=2), pod("not", cpu=3))
    assert unread(instance) == ["Pod default/a"]
    assert placed(instance) == {"fits"}


def test_a_pod_on_a_node_that_may_hold_anything_keeps_its_node_from_others() -> None:
    instance = read(
        node("n", cpu=8), node("m", cpu=1), pod("a", node="n", cpu=BEYOND), pod("b", cpu=2), pod("c", cpu=1)
    )
    assert unread(instance) == ["Pod default/a"]
    assert placed(instance) == {"c"}


def test_one_that_has_ended_holds_nothing() -> None:
    ended = pod("a", node="n", cpu=BEYOND, group="g", status={"phase": "Failed"})
    instance = read(node("n", cpu=8), ended, pod_group("g", minMember=1), pod("b", group="g", cpu=8))
    assert placed(instance) == {"b"}


def test_a_node_of_which_no_zone_can_be_read_gets_nothing_new() -> None:
    zones: Document = {
        "apiVersion": "topology.node.k8s.io/v1alpha2",
        "kind": "NodeResourceTopology",
        "metadata": {"name": "n"},
        "zones": "two",
    }
    instance = read(node("n", cpu=8), node("m", cpu=2), zones, pod("a", cpu=2), pod("b", cpu=2))
    assert unread(instance) == ["NodeResourceTopology n"]
    assert len(placed(instance)) == 1


def test_a_network_topology_of_another_tenant_decides_nothing_where_one_is_in_use() -> None:
    good: Document = {
        "apiVersion": "networktopology.diktyo.x-k8s.io/v1alpha1",
        "kind": "NetworkTopology",
        "metadata": {"name": "nt", "namespace": "default"},
        "spec": {"weights": [], "configmapName": "none"},
    }
    bad = {**good, "metadata": {"name": "other", "namespace": "evil"}, "spec": 3}
    shop = {**APP_GROUP, "spec": {"numMembers": 1, "topologySortingAlgorithm": "KahnSort", "workloads": []}}
    caller = pod("a", labels={"appgroup.diktyo.x-k8s.io": "shop"})
    assert placed(read(node("n"), shop, good, bad, caller)) == {"a"}
    assert placed(read(node("n"), shop, bad, caller)) == set()


def test_a_node_that_cannot_be_read_is_not_there() -> None:
    broken = {**node("bad", cpu=8), "status": {"allocatable": {"cpu": "-1"}}}
    instance = read(broken, node("n", cpu=1), pod("stands", node="bad", cpu=1), pod("a", cpu=1), pod("b", cpu=1))
    assert unread(instance) == ["Node bad"]
    assert len(placed(instance)) == 1
