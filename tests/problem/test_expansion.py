"""Workloads to PodGroups and pods: names, labels, counts, owners, findings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from placer.base.errors import BadInstance
from placer.kube.manifests import Objects, dump, from_documents, load, validate
from placer.kube.pod import PodManifest
from placer.problem.expansion import LIMIT, Expansion, documents, expand

Document = dict[str, Any]

CONTAINER = {"name": "main", "image": "example.com/app:1", "resources": {"requests": {"cpu": "500m"}}, "env": []}


def template(labels: dict[str, str] | None = None, **spec: Any) -> Document:
    return {"metadata": {"labels": labels or {"app": "web"}}, "spec": {"containers": [CONTAINER], **spec}}


def workload(api_version: str, kind: str, name: str, spec: Document, **metadata: Any) -> Document:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **metadata}, "spec": spec}


def deployment(name: str = "web", replicas: int | None = None, **metadata: Any) -> Document:
    spec: Document = {"selector": {"matchLabels": {"app": "web"}}, "template": template()}
    return workload(
        "apps/v1", "Deployment", name, spec if replicas is None else spec | {"replicas": replicas}, **metadata
    )


def stateful_set(name: str = "db", **more: Any) -> Document:
    spec = {"selector": {"matchLabels": {"app": "web"}}, "serviceName": "dbs", "template": template(), **more}
    return workload("apps/v1", "StatefulSet", name, spec)


def batch_job(name: str = "import", uid: str | None = None, **spec: Any) -> Document:
    return workload("batch/v1", "Job", name, {"template": template(), **spec}, **({"uid": uid} if uid else {}))


def vcjob(name: str = "train", uid: str | None = None, tasks: list[Document] | None = None, **spec: Any) -> Document:
    tasks = tasks if tasks is not None else [task("worker", 2)]
    identity = {"uid": uid} if uid else {}
    return workload("batch.volcano.sh/v1alpha1", "Job", name, {"tasks": tasks, **spec}, **identity)


def task(name: str | None, replicas: int | None, **more: Any) -> Document:
    found: Document = {"template": template({"app": "train"}), **more}
    return found | ({"name": name} if name else {}) | ({} if replicas is None else {"replicas": replicas})


def pod(name: str, labels: dict[str, str] | None = None, owner: Document | None = None, **metadata: Any) -> Document:
    found: Document = {"name": name, "labels": labels or {}, **metadata}
    if owner is not None:
        found["ownerReferences"] = [owner | {"controller": True}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": found, "spec": {"containers": [CONTAINER]}}


def reference(api_version: str, kind: str, name: str, uid: str = "u1") -> Document:
    return {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid}


def read(*items: Document) -> Objects:
    return validate(from_documents(items))


def grown(*items: Document) -> Expansion:
    return expand(read(*items))


def names(expansion: Expansion) -> list[str]:
    return [each.name for each in expansion.pods]


def labels(each: PodManifest) -> dict[str, str]:
    return each.metadata.labels or {}


def marks(each: PodManifest) -> dict[str, str]:
    return each.metadata.annotations or {}


# ---------------------------------------------------------------------------------------------- counts


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (deployment(), ["web-0"]),
        (deployment(replicas=3), ["web-0", "web-1", "web-2"]),
        (deployment(replicas=0), []),
        (stateful_set(), ["db-0"]),
        (stateful_set(replicas=2, ordinals={"start": 5}), ["db-5", "db-6"]),
        (batch_job(), ["import-0"]),
        (batch_job(parallelism=3), ["import-0", "import-1", "import-2"]),
        (batch_job(parallelism=3, completions=2), ["import-0", "import-1"]),
        (batch_job(completions=9), ["import-0"]),
        (batch_job(parallelism=3, suspend=True), []),
        (batch_job(parallelism=0), []),
        (vcjob(tasks=[task("a", 1), task("b", 2)]), ["train-a-0", "train-b-0", "train-b-1"]),
        (vcjob(tasks=[task(None, 1), task(None, None)]), ["train-default0-0", "train-default1-0"]),
        (vcjob(tasks=[task("a", 0)]), []),
        (vcjob(tasks=[]), []),
    ],
)
def test_how_many_pods_and_their_names(item: Document, expected: list[str]) -> None:
    expansion = grown(item)
    assert names(expansion) == expected
    assert not expansion.findings


def test_what_has_ended_or_is_being_deleted_makes_nothing() -> None:
    done = batch_job() | {"status": {"conditions": [{"type": "Complete", "status": "True"}]}}
    failed = batch_job("b") | {"status": {"conditions": [{"type": "Failed", "status": "True"}]}}
    aborted = vcjob() | {"status": {"state": {"phase": "Aborted"}}}
    going = deployment(deletionTimestamp="2026-01-01T00:00:00Z")
    assert grown(done, failed, aborted, going) == Expansion()
    running = batch_job() | {"status": {"conditions": [{"type": "Complete", "status": "False"}]}}
    assert names(grown(running)) == ["import-0"]


# ------------------------------------------------------------------------------------- what pods carry


def test_stateful_set_pods_have_an_identity_and_claims() -> None:
    item = stateful_set(replicas=2, volumeClaimTemplates=[{"metadata": {"name": "data"}, "spec": {}}])
    one, two = grown(item).pods
    assert labels(two) == {
        "app": "web",
        "apps.kubernetes.io/pod-index": "1",
        "statefulset.kubernetes.io/pod-name": "db-1",
    }
    claims = [each.spec.volumes[0].persistent_volume_claim for each in (one, two) if each.spec.volumes]
    assert [claim.claim_name for claim in claims if claim] == ["data-db-0", "data-db-1"]
    written = list(documents(read(item)))
    assert (written[1]["spec"]["hostname"], written[1]["spec"]["subdomain"]) == ("db-1", "dbs")


def test_batch_job_pods_name_their_job() -> None:
    plain = grown(batch_job()).pods[0]
    assert labels(plain) == {"app": "web", "job-name": "import", "batch.kubernetes.io/job-name": "import"}
    indexed = grown(batch_job(uid="u7", parallelism=2, completions=2, completionMode="Indexed")).pods[1]
    assert labels(indexed)["batch.kubernetes.io/controller-uid"] == labels(indexed)["controller-uid"] == "u7"
    assert labels(indexed)["batch.kubernetes.io/job-completion-index"] == "1"
    assert marks(indexed)["batch.kubernetes.io/job-completion-index"] == "1"


def test_vcjob_pods_are_as_volcanos_job_controller_makes_them() -> None:
    item = vcjob(
        uid="u1", queue="team", priorityClassName="high", tasks=[task("worker", 2, topologyPolicy="restricted")]
    )
    expansion = grown(item)
    second = expansion.pods[1]
    assert labels(second) == {
        "app": "train",
        "volcano.sh/job-name": "train",
        "volcano.sh/job-namespace": "default",
        "volcano.sh/queue-name": "team",
        "volcano.sh/task-spec": "worker",
        "volcano.sh/task-index": "1",
    }
    assert marks(second) == {
        "scheduling.k8s.io/group-name": "train-u1",
        "volcano.sh/job-name": "train",
        "volcano.sh/queue-name": "team",
        "volcano.sh/task-spec": "worker",
        "volcano.sh/task-index": "1",
        "volcano.sh/template-uid": "train-worker",
        "volcano.sh/job-version": "0",
        "volcano.sh/job-retry-count": "0",
        "volcano.sh/numa-topology-policy": "restricted",
    }
    assert (second.spec.scheduler_name, second.spec.priority_class_name) == ("volcano", "high")
    (owner,) = second.metadata.owner_references or ()
    assert (owner.api_version, owner.kind, owner.name, owner.uid, owner.controller) == (
        "batch.volcano.sh/v1alpha1",
        "Job",
        "train",
        "u1",
        True,
    )


def test_volumes_of_a_vcjob_are_not_forgotten() -> None:
    item = vcjob(
        volumes=[{"mountPath": "/data", "volumeClaimName": "shared"}, {"mountPath": "/out", "volumeClaim": {}}]
    )
    volumes = grown(item).pods[0].spec.volumes or ()
    claims = [volume.persistent_volume_claim for volume in volumes]
    assert [claim.claim_name for claim in claims if claim] == ["shared", "train-volume-1"]


# ------------------------------------------------------------------------------------------- PodGroups


def test_pod_group_field_by_field() -> None:
    near, far = {"mode": "hard", "highestTierAllowed": 1}, {"mode": "soft"}
    partitions = {"totalPartitions": 3, "partitionSize": 2, "minPartitions": 2, "networkTopology": near}
    item = vcjob(
        uid="u1",
        queue="team",
        priorityClassName="high",
        networkTopology=far,
        tasks=[task("worker", 6, partitionPolicy=partitions), task("driver", 1), task("extra", 4, minAvailable=0)],
    )
    item["metadata"] |= {"namespace": "ml", "labels": {"a": "b"}, "annotations": {"c": "d"}}
    (group,) = grown(item).pod_groups
    spec = group.spec
    assert spec is not None
    assert (group.namespace, group.name, group.metadata.labels, group.metadata.annotations) == (
        "ml",
        "train-u1",
        {"a": "b"},
        {"c": "d"},
    )
    assert (spec.min_member, spec.queue, spec.priority_class_name) == (5, "team", "high")
    assert spec.min_task_member == {"worker": 4, "driver": 1, "extra": 0}
    assert spec.network_topology is not None
    assert spec.network_topology.mode == "soft"
    (policy,) = spec.sub_group_policy or ()
    assert (policy.name, policy.sub_group_size, policy.min_sub_groups) == ("worker", 2, 2)
    assert policy.match_label_keys == ("volcano.sh/partition-id",)
    assert policy.label_selector is not None
    assert policy.label_selector.match_labels == {"volcano.sh/task-spec": "worker"}
    assert policy.network_topology is not None
    assert policy.network_topology.highest_tier_allowed == 1
    assert [labels(each).get("volcano.sh/partition-id") for each in grown(item).pods] == [
        "0", "0", "1", "1", "2", "2", None, None, None, None, None,
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["train-u1", "train", "train-something"])
def test_a_pod_group_that_is_there_is_not_made_twice(name: str) -> None:
    metadata: Document = {"name": name, "ownerReferences": [reference("batch.volcano.sh/v1alpha1", "Job", "train")]}
    group = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": metadata, "spec": {}}
    expansion = grown(vcjob(uid="u1"), group)
    assert not expansion.pod_groups
    assert {marks(each)["scheduling.k8s.io/group-name"] for each in expansion.pods} == {name}


# ------------------------------------------------------------------------------------------- ownership


@pytest.mark.parametrize(
    ("item", "existing"),
    [
        (deployment(), [pod("web-7d4-x2", owner=reference("apps/v1", "ReplicaSet", "web-7d4"))]),
        (deployment(), [pod("p", {"pod-template-hash": "7d4"}, reference("apps/v1", "ReplicaSet", "web-7d4"))]),
        (deployment(), [pod("p", owner=reference("apps/v1", "Deployment", "web"))]),
        (deployment(), [pod("web-7d4f-x2x", {"app": "web"})]),
        (deployment(), [pod("web-0", {"app": "web"})]),
        (stateful_set(), [pod("db-3", {"app": "web"})]),
        (stateful_set(), [pod("p", owner=reference("apps/v1", "StatefulSet", "db"))]),
        (batch_job(), [pod("p", {"job-name": "import"})]),
        (batch_job(uid="u1"), [pod("p", owner=reference("batch/v1", "Job", "import"))]),
        (vcjob(), [pod("p", {"volcano.sh/job-name": "train"})]),
        (vcjob(), [pod("p", annotations={"volcano.sh/job-name": "train"})]),
        (vcjob(), [pod("train-worker-1", {"app": "train", "x": "y"})]),
        (vcjob(), [pod("p", owner=reference("batch.volcano.sh/v1alpha1", "Job", "train"))]),
    ],
)
def test_a_workload_with_a_pod_is_left_alone(item: Document, existing: list[Document]) -> None:
    assert grown(item, *existing) == Expansion()


@pytest.mark.parametrize(
    ("item", "existing"),
    [
        (deployment(), pod("web-7d4-x2", {"app": "other"})),
        (deployment(), pod("web-7d4-x2", {"app": "web"}, namespace="elsewhere")),
        (deployment(), pod("web-1-x", {"app": "web"}, reference("apps/v1", "ReplicaSet", "web-b-1"))),
        (batch_job(), pod("p", {"volcano.sh/job-name": "import"})),
        (batch_job(), pod("p", owner=reference("batch.volcano.sh/v1alpha1", "Job", "import"))),
        (batch_job(uid="new"), pod("p", owner=reference("batch/v1", "Job", "import", "old"))),
        (vcjob(), pod("train-worker-1x", {"app": "train"})),
    ],
)
def test_pods_of_others_do_not_count(item: Document, existing: Document) -> None:
    assert grown(item, existing).pods


@pytest.mark.parametrize(("uid", "told"), [("old", True), ("new", False), ("", False)])
def test_a_replica_set_of_another_uid_is_not_its_own(uid: str, told: bool) -> None:
    """The Deployment's pods are made beside those of the ReplicaSet, and a finding says so."""
    metadata = {"name": "web-7", "ownerReferences": [reference("apps/v1", "Deployment", "web", uid)]}
    replica_set = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata, "spec": {}}
    made = grown(deployment(uid="new"), replica_set, pod("p", owner=reference("apps/v1", "ReplicaSet", "web-7")))
    assert bool(made.pods) is told
    assert [(each.code, each.object) for each in made.findings] == [
        ("UnknownReference", "ReplicaSet default/web-7") for _ in range(told)
    ]
    for each in made.findings:
        assert "found Deployment web of uid old, expected new" in each.message


def test_only_what_was_added_is_expanded_on_request(tmp_path: Path) -> None:
    dump(deployment("a"), tmp_path / "a.yaml")
    dump(deployment("b"), tmp_path / "b.yaml")
    objects = load([tmp_path / "a.yaml"], with_=[tmp_path / "b.yaml"])
    assert names(expand(objects, only_added=True)) == ["b-0"]
    assert names(expand(objects)) == ["a-0", "b-0"]


# -------------------------------------------------------------------------------- names that are taken


def test_a_deployment_makes_way_for_a_stateful_set_of_its_name() -> None:
    assert names(grown(deployment("db", 2), stateful_set())) == ["db-0", "db-deployment-0", "db-deployment-1"]


def test_two_jobs_that_make_one_name() -> None:
    expansion = grown(vcjob("a", tasks=[task("b-c", 1)]), vcjob("a-b", tasks=[task("c", 1)]))
    assert names(expansion) == ["a-b-c-0"]
    assert [finding.code for finding in expansion.findings] == ["NameTaken"]


# -------------------------------------------------------------------------------------------- findings


def test_partitions_that_do_not_come_out_even_are_a_finding() -> None:
    partitions = {"totalPartitions": 2, "partitionSize": 2}
    expansion = grown(vcjob(tasks=[task("worker", 5, partitionPolicy=partitions)]))
    (finding,) = expansion.findings
    assert (finding.code, finding.object) == ("PartitionMismatch", "Job default/train")
    assert all(word in finding.message for word in ("worker", "5 replicas", "2 partitions of 2"))
    assert len(expansion.pods) == 5


def test_minimums_above_replicas_are_findings() -> None:
    expansion = grown(vcjob(minAvailable=9, tasks=[task("worker", 5, minAvailable=6), task("head", 1)]))
    assert [(finding.code, finding.object, finding.message) for finding in expansion.findings] == [
        (
            "InvalidObject",
            "Job default/train",
            f"minAvailable of {what}; Volcano refuses such a job",
        )
        for what in ("task worker is 6, above its replicas 5", "the job is 9, above its replicas 6")
    ]


def test_a_task_that_waits_for_another_is_a_finding() -> None:
    expansion = grown(vcjob(tasks=[task("driver", 1), task("worker", 2, dependsOn={"name": ["driver"]})]))
    assert names(expansion) == ["train-driver-0"]
    (finding,) = expansion.findings
    assert (finding.code, finding.object) == ("DependsOn", "Job default/train")
    assert "worker waits for driver" in finding.message


# ----------------------------------------------------------------------------------- size, and in full


def test_too_many_pods_are_refused_before_they_are_made() -> None:
    with pytest.raises(BadInstance) as caught:
        grown(deployment("a", 1), deployment("b", 2**31 - 1))
    (fault,) = caught.value.faults
    assert fault.object == "Deployment default/b"
    assert f"{LIMIT:,}" in fault.expected


EVERYTHING = (
    deployment("web", 2, uid="u1", creationTimestamp="2026-02-03T04:05:06Z"),
    stateful_set(replicas=2, volumeClaimTemplates=[{"metadata": {"name": "data"}}]),
    batch_job(parallelism=2, completions=2, completionMode="Indexed"),
    vcjob(
        uid="u2",
        priorityClassName="high",
        volumes=[{"mountPath": "/d", "volumeClaimName": "shared"}],
        tasks=[task("worker", 4, partitionPolicy={"totalPartitions": 2, "partitionSize": 2, "minPartitions": 1})],
    ),
)


def test_documents_say_what_expand_says() -> None:
    objects = read(*EVERYTHING)
    expansion, written = expand(objects), read(*documents(objects))
    assert written.pod_groups == tuple(without_owner(group, written) for group in expansion.pod_groups)
    assert len(written.pods) == len(expansion.pods) == 10
    for one, other in zip(expansion.pods, written.pods, strict=True):
        assert (one.name, labels(one), marks(one), one.spec) == (
            other.name,
            labels(other),
            marks(other),
            other.spec,
        )
        assert one.metadata.creation_timestamp == other.metadata.creation_timestamp


def without_owner(group: Any, written: Objects) -> Any:
    metadata = next(each.metadata for each in written.pod_groups if each.name == group.name)
    metadata = msgspec.structs.replace(group.metadata, namespace="default", **owners(metadata))
    return msgspec.structs.replace(group, metadata=metadata)


def owners(metadata: Any) -> dict[str, Any]:
    return {"owner_references": metadata.owner_references}


def test_what_was_written_out_is_not_expanded_again() -> None:
    objects = read(*EVERYTHING)
    assert grown(*EVERYTHING, *documents(objects)) == Expansion()
