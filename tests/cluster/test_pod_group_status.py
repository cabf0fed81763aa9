"""The condition of Kubernetes' PodGroups: written as kube-scheduler does, once, where the kind is served."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from placer.answers.solving import solve
from placer.base.errors import ClusterError
from placer.passes.cluster.reading.client import Response
from placer.passes.cluster.writing.pod_group_status import (
    PodGroupStatus,
    cause_in,
    means_the_same,
    write_upstream_pod_group_status,
)
from placer.problem import GroupKey
from tests.cluster.passes import gang
from tests.support import Document, hyper_node, instance_of, node, pod

KEY = GroupKey("scheduling.k8s.io", "ml", "train-workers")
WAITS = PodGroupStatus(KEY, False, False, "Unschedulable", "InsufficientResources: cpu 60 of 40 left")
READY = PodGroupStatus(KEY, True, True)
NOW, BEFORE = "2026-11-23T08:00:00Z", "2026-11-23T07:00:00Z"


class Server:
    """Serves PodGroups in one version, with a status of their own; ``refused`` is the answer to every patch."""

    def __init__(self, version: str, *conditions: dict[str, Any], refused: int = 0) -> None:
        self.path = f"/apis/scheduling.k8s.io/{version}/namespaces/ml/podgroups/train-workers"
        self.group = {"metadata": {"resourceVersion": "7", "generation": 3}, "status": {"conditions": [*conditions]}}
        self.refused = refused
        self.patches: list[dict[str, Any]] = []

    def get(self, *_: object, **__: object) -> Response:
        raise AssertionError("only objects are asked for")

    def send(self, method: str, path: str, body: object = None, **options: Any) -> Response:
        if method == "GET":
            return Response(200, json.dumps(self.group).encode()) if path == self.path else Response(404, b"")
        assert (method, path) == ("PATCH", f"{self.path}/status")
        assert options["kind"] == "application/merge-patch+json"
        assert isinstance(body, dict)
        assert body["metadata"] == {"resourceVersion": "7"}
        self.patches.append(body["status"])
        return Response(self.refused or 200, b"refused")

    @property
    def written(self) -> dict[str, Any]:
        (patch,) = self.patches
        found: dict[str, Any] = patch["conditions"][-1]
        return found


def said(status: str, reason: str = "Unschedulable", message: str = WAITS.message, **more: str) -> dict[str, Any]:
    """A condition that is there already."""
    there = {"type": "PodGroupInitiallyScheduled", "status": status, "reason": reason, "message": message}
    return there | {"lastTransitionTime": BEFORE} | more


@pytest.mark.parametrize(
    ("version", "name"),
    [
        ("v1beta1", "PodGroupInitiallyScheduled"),
        ("v1alpha3", "PodGroupInitiallyScheduled"),
        ("v1alpha2", "PodGroupScheduled"),
    ],
)
def test_a_gang_says_that_it_was_scheduled_and_why_it_was_not(version: str, name: str) -> None:
    server = Server(version)
    assert write_upstream_pod_group_status(server, READY, NOW)
    assert server.written == {
        "type": name,
        "status": "True",
        "reason": "Scheduled",
        "message": "",
        "observedGeneration": 3,
        "lastTransitionTime": NOW,
    }
    server = Server(version)
    assert write_upstream_pod_group_status(server, WAITS, NOW)
    assert {**server.written, "type": name} == server.written
    assert (server.written["status"], server.written["reason"]) == ("False", "Unschedulable")
    assert server.written["message"] == WAITS.message


def test_true_is_final() -> None:
    server = Server("v1beta1", said("True", "Scheduled", ""))
    for wanted in (WAITS, READY):
        assert not write_upstream_pod_group_status(server, wanted, NOW)
    assert server.patches == []


def test_what_is_said_already_is_not_said_again_and_conditions_of_others_stay() -> None:
    other = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "message": ""}
    server = Server("v1beta1", other, said("False", message="InsufficientResources: cpu 59 of 41 left"))
    assert not write_upstream_pod_group_status(server, WAITS, NOW)
    another = PodGroupStatus(KEY, False, False, "SchedulerError", "left for the next pass: no time")
    assert write_upstream_pod_group_status(server, another, NOW)
    assert server.patches[0]["conditions"][0] == other
    assert server.written["lastTransitionTime"] == BEFORE  # it was False before
    assert write_upstream_pod_group_status(server, READY, NOW)
    assert server.patches[1]["conditions"][-1]["lastTransitionTime"] == NOW


def test_a_group_without_a_minimum_was_scheduled_when_a_pod_of_it_was() -> None:
    server = Server("v1beta1")
    none = PodGroupStatus(KEY, True, False, "Unschedulable", "NoEligibleNode: none")
    assert write_upstream_pod_group_status(server, none, NOW)
    assert server.written["status"] == "False"
    assert not write_upstream_pod_group_status(server, PodGroupStatus(KEY, True, False), NOW)


def test_where_there_is_no_such_object_nothing_is_written() -> None:
    server = Server("v1alpha1")
    assert not write_upstream_pod_group_status(server, READY, NOW)
    declared = PodGroupStatus(KEY._replace(name="train/workers/0"), True, True)
    assert not write_upstream_pod_group_status(Server("v1beta1"), declared, NOW)


def test_one_who_came_between_is_no_trouble_and_a_refusal_is() -> None:
    assert not write_upstream_pod_group_status(Server("v1beta1", refused=409), READY, NOW)
    with pytest.raises(ClusterError, match="PodGroup ml/train-workers: 403 refused"):
        write_upstream_pod_group_status(Server("v1beta1", refused=403), READY, NOW)


def why(*objects: Document) -> str:
    """Why the only group waits."""
    (found,) = solve(instance_of(*map(json.dumps, objects)), method="greedy").reasons.values()
    return f"{found.code}: {found.message}"


def of_racks(*free: int) -> Iterator[Document]:
    """Racks of one node with so much cpu."""
    for number, cpu in enumerate(free):
        yield node(f"n{number}", cpu=cpu)
        yield hyper_node(f"leaf-{number}", 1, nodes=(f"n{number}",))


ASKED = {
    "Node n. comes nearest": [pod("a", cpu=9)],
    "the roomiest": gang("g", 3, tier=1, cpu=2),
    "the roomiest (rack=": [
        {
            "apiVersion": "scheduling.k8s.io/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": "g", "namespace": "default"},
            "spec": {
                "schedulingPolicy": {"gang": {"minCount": 3}},
                "schedulingConstraints": {"topology": [{"key": "kubernetes.io/hostname"}]},
            },
        },
        *(pod(f"g-{number}", spec={"schedulingGroup": {"podGroupName": "g"}}, cpu=2) for number in range(3)),
    ],
}


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
def test_another_place_that_comes_nearest_is_no_other_cause(asked: list[Document]) -> None:
    one, other = why(*of_racks(5, 4), *asked), why(*of_racks(3, 4), *asked)
    assert one != other
    assert cause_in(one) == cause_in(other)
    assert means_the_same({"reason": "r", "message": one}, {"reason": "r", "message": other})
    assert cause_in(one).startswith(one.partition(":")[0])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("InsufficientResources: 0/4 nodes have room: 4 insufficient cpu", "NoEligibleNode: 0/4 nodes are eligible"),
        ("2 of 3 planned pods are bound; Pod a: 403 forbidden", "2 of 3 planned pods are bound; Pod a: 409 conflict"),
        ("needs 3 pods; that of its placed pods (leaf-1) has", "needs 3 pods; that of its placed pods (leaf-2) has"),
    ],
)
def test_what_is_another_cause_stays_one(one: str, other: str) -> None:
    assert cause_in(one) != cause_in(other)
