"""Kinds that are not read: workloads whose pods are missing, queues that pods belong to, work that is not there yet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from placer.passes.cluster.reading.snapshot import take
from placer.problem.instance_builder import make_instance
from tests.cluster.snapshots import ListServer
from tests.support import Document, instance_of, node, pod

KUEUE, KAI = "kueue.x-k8s.io/queue-name", "kai.scheduler/queue"


def custom(api_version: str, kind: str, name: str = "w", namespace: str = "default", **parts: Any) -> Document:
    labels = parts.pop("labels", {})
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **parts}


def told(*documents: Document, **options: Any) -> dict[str, str]:
    """Object and message of each finding ``UnsupportedKind``."""
    found = instance_of(node("n1"), *documents, **options).findings
    return {each.object: each.message for each in found if each.code == "UnsupportedKind"}


def owned(name: str, kind: str, owner: str, labels: Mapping[str, str] | None = None) -> Document:
    by = {"apiVersion": "ray.io/v1", "kind": kind, "name": owner, "controller": True}
    return pod(name, node="n1", labels=labels, metadata={"ownerReferences": [by]})


# ---------------------------------------------------------------------------------------------- workloads without pods


def test_a_workload_that_is_not_read_is_named_where_its_pods_are_missing() -> None:
    found = told(custom("ray.io/v1", "RayCluster", "b"), custom("ray.io/v1", "RayCluster", "a"))
    what = "no pod of RayCluster default/a and 1 other is in the instance"
    message = f"RayCluster.ray.io is not expanded, and {what}: its pods take no room and are not placed"
    assert found == {"RayCluster.ray.io": message}


@pytest.mark.parametrize(
    ("documents", "missing"),
    [
        ([custom("ray.io/v1", "RayCluster", "a"), owned("p", "RayCluster", "a")], False),
        ([custom("ray.io/v1", "RayJob", "a"), owned("p", "RayCluster", "a-raycluster-x7")], False),
        ([custom("ray.io/v1", "RayJob", "a-b"), owned("p", "RayCluster", "a-raycluster-x7")], True),
        ([custom("trainer.kubeflow.org/v1alpha1", "TrainJob", "t"), pod("p", labels={"x/jobset-name": "t"})], False),
        ([custom("trainer.kubeflow.org/v1alpha1", "TrainJob", "t"), pod("p", labels={"app": "t"})], True),
        ([custom("apps/v1", "DaemonSet", "d"), pod("p", labels={"x/job-name": "d"})], True),
        ([custom("kubeflow.org/v1", "PyTorchJob", spec={"runPolicy": {"suspend": True}})], False),
        ([custom("argoproj.io/v1alpha1", "Workflow", status={"phase": "Succeeded"})], False),
        ([custom("argoproj.io/v1alpha1", "Workflow", status={"phase": "Running"})], True),
        ([custom("ray.io/v1", "RayJob", status={"jobStatus": "FAILED"})], False),
        (
            [
                custom(
                    "sparkoperator.k8s.io/v1beta2",
                    "SparkApplication",
                    status={"applicationState": {"state": "COMPLETED"}},
                )
            ],
            False,
        ),
        ([custom("kubeflow.org/v1", "TFJob", status={"conditions": [{"type": "Succeeded", "status": "True"}]})], False),
        ([custom("kubeflow.org/v1", "TFJob", status={"conditions": [{"type": "Failed", "status": "False"}]})], True),
        ([custom("example.com/v1", "TFJob")], False),
    ],
)
def test_a_workload_has_pods_or_makes_none(documents: list[Document], missing: bool) -> None:
    assert bool([each for each in told(*documents).values() if "is not expanded" in each]) is missing


# ---------------------------------------------------------------------------------------------------- queues and quotas


def test_a_queue_that_the_workload_names_counts_for_the_pods_that_are_made_of_it() -> None:
    spec = {"template": {"spec": {"containers": [{"name": "main"}], "restartPolicy": "Never"}}}
    job = custom("batch/v1", "Job", labels={KUEUE: "team-a"}, spec=spec)
    assert told(job).keys() == {"LocalQueue.kueue.x-k8s.io", "ResourceFlavor.kueue.x-k8s.io"}


@pytest.mark.parametrize("kind", ["ResourceQuota", "LimitRange"])
def test_what_limits_pods_when_they_are_made_is_a_finding_of_those_made_here(kind: str) -> None:
    spec = {"template": {"spec": {"containers": [{"name": "main"}], "restartPolicy": "Never"}}}
    limit = custom("v1", kind)
    assert told(limit, custom("batch/v1", "Job", spec=spec)).keys() == {kind}
    assert told(limit, pod("a")) == {}


def _snapshot(lists: dict[str, list[Document]], *pods: Document) -> dict[str, str]:
    server = ListServer({"/api/v1/nodes": [node("n1")], "/api/v1/pods": [*pods], **lists})
    found = make_instance(take(server, "*").objects(), scheduler_name="*", cluster=True).findings
    return {each.object: each.message for each in found if each.code == "UnsupportedKind"}


def test_in_a_cluster_a_mark_counts_where_the_kind_is_served() -> None:
    marked = pod("a", labels={KAI: "team-a"})
    assert _snapshot({}, marked) == {}
    assert _snapshot({"/apis/scheduling.run.ai/v2/queues": []}, marked).keys() == {"Queue.scheduling.run.ai"}
    assert _snapshot({"/apis/scheduling.run.ai/v2/queues": []}, pod("a")) == {}


# ----------------------------------------------------------------------------------------------- work that is not there

TEMPLATE = {"spec": {"containers": [{"name": "main"}], "restartPolicy": "Never"}}


def _job(name: str, queue: str = "", **spec: Any) -> Document:
    labels = {KUEUE: queue} if queue else {}
    return custom("batch/v1", "Job", name, labels=labels, spec={"template": TEMPLATE, **spec})


def absent(*documents: Document) -> tuple[str, ...]:
    return instance_of(node("n1"), *documents).absent_work


def test_suspended_work_is_counted_by_kind_and_queue() -> None:
    jobs = [_job(f"j{each:02}", "team-a", suspend=True) for each in range(12)]
    ray = custom("ray.io/v1", "RayJob", "r", labels={KUEUE: "team-a"}, spec={"suspend": True})
    assert absent(*jobs, _job("x", suspend=True), _job("y"), ray) == (
        "1 suspended Job (default/x): it makes no pods yet",
        "12 suspended Jobs of Kueue's queue team-a (default/j00, default/j01, default/j02, default/j03, "
        "default/j04, default/j05, default/j06, default/j07 and 4 more): they make no pods yet",
        "1 suspended RayJob of Kueue's queue team-a (default/r): it makes no pods yet",
    )


def test_workloads_of_no_pods_are_counted() -> None:
    scaled = custom("apps/v1", "Deployment", "d", spec={"replicas": 0, "template": TEMPLATE})
    assert absent(scaled, _job("j", parallelism=0)) == (
        "1 Deployment of 0 replicas (default/d): it makes no pods yet",
        "1 Job of parallelism 0 (default/j): it makes no pods yet",
    )


def test_gated_pods_are_counted_by_gate_and_queue() -> None:
    gated = {"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}, {"name": "kueue.x-k8s.io/topology"}]}
    pods = [pod(name, labels={KUEUE: "q"}, spec=gated) for name in "ab"]
    gates = "kueue.x-k8s.io/admission and kueue.x-k8s.io/topology"
    words = f"2 pods with the gate {gates} of Kueue's queue q (default/a and default/b)"
    assert absent(*pods, pod("c")) == (f"{words}: no scheduler places them yet",)
