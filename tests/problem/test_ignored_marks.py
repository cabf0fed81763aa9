"""Marks that decide nothing where they stand are findings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from placer.problem import Instance
from placer.problem.mark_gangs import VOLCANO_GANG
from tests.support import Document, instance_of, node, pod

KOORD = "gang.scheduling.koordinator.sh"


def owned(kind: str, name: str, api_version: str = "apps/v1") -> dict[str, Any]:
    return {"ownerReferences": [{"apiVersion": api_version, "kind": kind, "name": name, "controller": True}]}


def workload(kind: str, api_version: str, labels: Mapping[str, str], notes: Mapping[str, str]) -> Document:
    template = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "c"}]}}
    spec: dict[str, Any] = {"template": template}
    if api_version == "apps/v1":
        spec |= {"replicas": 2, "selector": {"matchLabels": {"app": "x"}}}
    if kind == "JobSet":
        spec = {"replicatedJobs": [{"name": "r", "template": {"spec": {"template": template}}}]}
    if kind == "LeaderWorkerSet":
        spec = {"replicas": 1, "leaderWorkerTemplate": {"size": 1, "workerTemplate": template}}
    if api_version == "batch.volcano.sh/v1alpha1":
        spec = {"minAvailable": 1, "tasks": [{"name": "t", "replicas": 1, "template": template}]}
    metadata = {"name": "w", "namespace": "ml", "labels": dict(labels), "annotations": dict(notes)}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


def ignored(instance: Instance) -> list[str]:
    return [each.message for each in instance.findings if each.code == "FieldIgnored"]


WORKLOADS = {
    "Deployment": "apps/v1",
    "StatefulSet": "apps/v1",
    "Job": "batch/v1",
    "JobSet": "jobset.x-k8s.io/v1alpha2",
    "LeaderWorkerSet": "leaderworkerset.x-k8s.io/v1",
    "PyTorchJob": "kubeflow.org/v1",
}


def made(kind: str, labels: Mapping[str, str], notes: Mapping[str, str]) -> Instance:
    """The workload, with its pods where none are made here."""
    api_version = WORKLOADS[kind]
    unread = [pod("w-0", namespace="ml", metadata=owned(kind, "w", api_version))] if kind == "PyTorchJob" else []
    return instance_of(node("n1"), workload(kind, api_version, labels, notes), *unread)


@pytest.mark.parametrize("kind", WORKLOADS)
def test_a_mark_of_pods_in_the_metadata_of_their_workload_is_a_finding(kind: str) -> None:
    notes = {f"{KOORD}/name": "g", "cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
    for key in notes:
        instance = made(kind, {}, {key: notes[key]})
        assert ignored(instance) == [
            f"annotation {key} in the metadata of {kind} ml/w decides nothing: "
            "it is read in the metadata of pods, as spec.template states it"
        ]


def test_a_mark_that_pods_bear_too_is_no_finding() -> None:
    notes = {"karpenter.sh/do-not-disrupt": "true"}
    pods = pod(
        "w-0",
        namespace="ml",
        annotations=notes,
        node="n1",
        metadata={"annotations": notes, **owned("Job", "w", "batch/v1")},
    )
    assert ignored(instance_of(node("n1"), workload("Job", "batch/v1", {}, notes), pods)) == []


def test_a_job_of_volcano_hands_marks_of_groups_on() -> None:
    found = made_by_volcano({"volcano.sh/preemptable": "false", f"{KOORD}/mode": "NonStrict", f"{KOORD}/name": "g"})
    assert [each.partition(" in ")[0] for each in ignored(found)] == [f"annotation {KOORD}/name"]


def made_by_volcano(notes: Mapping[str, str]) -> Instance:
    return instance_of(node("n1"), workload("Job", "batch.volcano.sh/v1alpha1", {}, notes))


@pytest.mark.parametrize(("kind", "api_version"), [("Deployment", "apps/v1"), ("PyTorchJob", "kubeflow.org/v1")])
def test_a_label_of_kai_on_a_workload_protects_its_pods(kind: str, api_version: str) -> None:
    """KAI's pod grouper asks the owner before the pod."""
    owner = ("ReplicaSet", "w-5f", "apps/v1") if kind == "Deployment" else (kind, "w", api_version)
    label = {"kai.scheduler/preemptibility": "non-preemptible"}
    runs = pod("w-0", namespace="ml", node="n1", metadata=owned(owner[0], owner[1], owner[2]))
    instance = instance_of(node("n1"), workload(kind, api_version, label, {}), runs)
    (bound,) = instance.pods.values()
    assert bound.protected.startswith(f'kai.scheduler/preemptibility: "non-preemptible" of {kind} ml/w')


def test_a_gang_of_pods_of_a_daemon_set_is_one_finding() -> None:
    daemons = [
        pod(f"d-{i}", node="n1", metadata={"annotations": {f"{KOORD}/name": "g"}, **owned("DaemonSet", "d")})
        for i in range(3)
    ]
    light = {"pod-group.scheduling.sigs.k8s.io/min-available": "2"}
    other = pod("e", labels=light, node="n1", metadata={"labels": light, **owned("DaemonSet", "e")})
    static = pod("s", labels=light, node="n1", annotations={"kubernetes.io/config.mirror": "x"})
    instance = instance_of(node("n1"), *daemons, other, static)
    mark = "label pod-group.scheduling.sigs.k8s.io/min-available"
    assert [(each.object, each.message) for each in instance.findings if each.code == "FieldIgnored"] == [
        (
            "DaemonSet default/d",
            f"annotation {KOORD}/name of 3 pods of DaemonSet default/d: in no gang, since each pod belongs to its node",
        ),
        (
            "DaemonSet default/e",
            f"{mark} of 1 pod of DaemonSet default/e: in no gang, since each pod belongs to its node",
        ),
        ("Pod default/s", f"{mark} of static Pod default/s: in no gang, since each pod belongs to its node"),
    ]


@pytest.mark.parametrize("mark", VOLCANO_GANG)
def test_a_gang_of_volcano_of_a_daemon_set_is_one_finding(mark: str) -> None:
    daemon = pod("d", node="n1", metadata={"annotations": {mark: "1"}, **owned("DaemonSet", "d")})
    assert [each.code for each in instance_of(node("n1"), daemon).findings] == ["NoMember"]
