"""JobSets and LeaderWorkerSets to PodGroups and pods, as their controllers make them; gangs of owners."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from placer import solve
from placer.kube.manifests import Objects, from_documents, validate
from placer.kube.pod import PodManifest
from placer.problem import Key
from placer.problem.expansion import documents, expand
from placer.problem.neighbours import ChildJob, DomainUnit
from tests.support import instance_of, node, pod, policy

Document = dict[str, Any]

POD = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]}}
JOB_SET, LWS = "jobset.sigs.k8s.io", "leaderworkerset.sigs.k8s.io"


def objects_of(*items: Document) -> Objects:
    return validate(from_documents(items))


def replicated(
    name: str, replicas: int | None = None, pods: int = 2, template: Document = POD, **more: Any
) -> Document:
    job = {"spec": {"parallelism": pods, "completions": pods, "completionMode": "Indexed", "template": template}}
    count = {} if replicas is None else {"replicas": replicas}
    return {"name": name, "template": job, **count, **more}


def job_set(*jobs: Document, annotations: Document | None = None, **spec: Any) -> Document:
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "train", "namespace": "ml", **({"annotations": annotations} if annotations else {})},
        "spec": {"replicatedJobs": list(jobs), **spec},
    }


def workers_set(size: int, replicas: int | None = None, annotations: Document | None = None, **rest: Any) -> Document:
    template = {"size": size, "workerTemplate": POD} | rest.pop("template", {})
    count = {} if replicas is None else {"replicas": replicas}
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "llm", "namespace": "ml", **({"annotations": annotations} if annotations else {})},
        "spec": {"leaderWorkerTemplate": template, **count, **rest},
    }


def sha1(text: str) -> str:
    return hashlib.sha1(text.encode()).hexdigest()


def names(*items: Document) -> list[str]:
    return [pod.name for pod in expand(objects_of(*items)).pods]


def made(*items: Document) -> dict[str, PodManifest]:
    return {pod.name: pod for pod in expand(objects_of(*items)).pods}


def groups(*items: Document) -> dict[str, int]:
    """PodGroup to its least number of pods."""
    found = expand(objects_of(*items)).upstream_pod_groups
    return {group.name: group.spec.scheduling_policy.gang.min_count for group in found}


# -------------------------------------------------------------------------------------------------------------- JobSet


def test_restarts_and_the_coordinator_are_marked() -> None:
    coordinator = {"replicatedJob": "driver", "jobIndex": 0, "podIndex": 0}
    item = job_set(replicated("driver", pods=1), coordinator=coordinator, network={"subdomain": "net"})
    pods = made(item | {"status": {"restarts": 3}})
    labels = pods["train-driver-0-0"].metadata.labels
    assert labels[f"{JOB_SET}/restart-attempt"] == "3"
    assert labels[f"{JOB_SET}/coordinator"] == "train-driver-0-0.net"


def test_jobs_are_counted_in_their_group() -> None:
    """Of JobSet's own tests (``TestGroupJobIndex``, ``TestGroupReplicas``): Jobs 1, 2 and 3 in groups a, b and a."""
    item = job_set(
        replicated("x", 1, pods=1, groupName="a"),
        replicated("y", 2, pods=1, groupName="b"),
        replicated("z", 3, pods=1, groupName="a"),
    )
    found = {
        name: tuple(
            pod.metadata.labels[f"{JOB_SET}/{label}"] for label in ("group-name", "group-replicas", "job-group-index")
        )
        for name, pod in made(item | {"metadata": {"name": "train", "namespace": "ml", "uid": "u"}}).items()
    }
    assert found == {
        "train-x-0-0": ("a", "4", "0"),
        "train-y-0-0": ("b", "2", "0"),
        "train-y-1-0": ("b", "2", "1"),
        "train-z-0-0": ("a", "4", "1"),
        "train-z-1-0": ("a", "4", "2"),
        "train-z-2-0": ("a", "4", "3"),
    }


def mounting(*containers: str, init: str = "") -> Document:
    """A template; each container mounts the volumes that are named, with blanks."""

    def written(names: str) -> Document:
        return {"name": "c", "volumeMounts": [{"name": name, "mountPath": f"/{name}"} for name in names.split()]}

    spec = {"containers": [written(names) for names in containers]}
    return {"spec": spec | ({"initContainers": [written(init)]} if init else {})}


@pytest.mark.parametrize(
    ("template", "policies", "expected"),
    [
        (mounting("one two"), ["one two"], "one two"),
        (mounting(""), ["one"], ""),
        (mounting("one"), ["one two"], "one"),
        (mounting("del keep", init="in"), ["del in", "keep"], "del in keep"),
        (mounting("other", "one"), ["one"], "one"),
    ],
    ids=["all", "none is mounted", "some", "of several policies, one in an init container", "in the second container"],
)
def test_claims_of_a_set_are_volumes_of_pods_that_mount_them(
    template: Document, policies: list[str], expected: str
) -> None:
    """The first four are JobSet's own (``TestAddVolumes``)."""
    written = [{"templates": [{"metadata": {"name": name}} for name in names.split()]} for names in policies]
    item = job_set(replicated("w", pods=2, template=template), volumeClaimPolicies=written)
    claims = [(name, f"{name}-train") for name in expected.split()]
    for each in made(item).values():
        volumes = each.spec.volumes or ()
        assert [(volume.name, volume.persistent_volume_claim.claim_name) for volume in volumes] == claims
    (first, _) = documents(objects_of(item))
    written = [{"name": name, "persistentVolumeClaim": {"claimName": claim}} for name, claim in claims]
    assert first["spec"].get("volumes", []) == written


def test_a_claim_of_a_set_is_named_until_it_is_bound() -> None:
    policies = [{"templates": [{"metadata": {"name": "data"}}]}]
    item = job_set(replicated("w", pods=1, template=mounting("data")), volumeClaimPolicies=policies)
    (waiting,) = instance_of(node("n1"), item).pods.values()
    (why,) = waiting.unsupported
    assert "claim data-train is not in the instance" in why
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data-train", "namespace": "ml"},
        "status": {"phase": "Bound"},
    }
    (served,) = instance_of(node("n1"), item, claim).pods.values()
    assert served.unsupported == ()


@pytest.mark.parametrize(
    "item",
    [
        job_set(replicated("w"), suspend=True),
        job_set(replicated("w")) | {"status": {"conditions": [{"type": "Completed", "status": "True"}]}},
        job_set(replicated("w")) | {"status": {"conditions": [{"type": "Failed", "status": "True"}]}},
        job_set(),
    ],
    ids=["suspended", "completed", "failed", "without Jobs"],
)
def test_a_job_set_that_makes_no_pods(item: Document) -> None:
    assert names(item) == []


@pytest.mark.parametrize(
    ("item", "waiting"),
    [
        (job_set(replicated("a"), replicated("b", dependsOn=[{"name": "a", "status": "Ready"}])), "b waits for a"),
        (job_set(replicated("a"), replicated("b"), startupPolicy={"startupPolicyOrder": "InOrder"}), "b waits for a"),
    ],
    ids=["by name", "in order"],
)
def test_jobs_that_wait_for_others_have_no_pods_yet(item: Document, waiting: str) -> None:
    expansion = expand(objects_of(item))
    assert [pod.name for pod in expansion.pods] == ["train-a-0-0", "train-a-0-1"]
    message = f"replicated job {waiting}: its pods do not exist yet, and none is made"
    assert [(each.code, each.object, each.message) for each in expansion.findings] == [
        ("DependsOn", "JobSet ml/train", message)
    ]


def test_a_job_set_beside_its_own_jobs_counts_once() -> None:
    """What is there of its Jobs makes its own pods; the others come from the set."""
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train-w-0", "namespace": "ml", "labels": {f"{JOB_SET}/jobset-name": "train"}},
        "spec": {"parallelism": 2, "completions": 2, "template": POD},
    }
    assert sorted(names(job_set(replicated("w", 2)), job)) == [
        f"train-w-{job}-{pod}" for job in (0, 1) for pod in (0, 1)
    ]


def test_a_job_set_with_a_pod_is_not_expanded() -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "train-w-0-0-x", "namespace": "ml", "labels": {f"{JOB_SET}/jobset-name": "train"}},
        **POD,
    }
    assert names(job_set(replicated("w", 2)), pod) == []


GANG = {"schedulingPolicy": {"gang": {}}}
POLICIES = {
    "none": ({}, {}),
    "the whole set": ({"scheduling": GANG}, {"train": 7}),
    "a count of its own": ({"scheduling": {"schedulingPolicy": {"gang": {"minCount": 5}}}}, {"train": 5}),
    "a part of it": (
        {"scheduling": GANG | {"replicatedJobs": [{"targetReplicatedJobs": ["b"], **GANG}]}},
        {"train-b": 4, "train-a": 3},
    ),
    "two together": (
        {"scheduling": {"replicatedJobs": [{"targetReplicatedJobs": ["a", "b"], **GANG}]}},
        {"train-a-b": 7},
    ),
    "each Job": (
        {"scheduling": {"replicatedJobs": [{"targetReplicatedJobs": ["b"], "job": GANG}]}},
        {"train-b-0": 2, "train-b-1": 2, "train-a": 3},
    ),
}


@pytest.mark.parametrize("case", POLICIES)
def test_pod_groups_of_a_job_set(case: str) -> None:
    """A: one Job of three pods; b: two of two. A set is a gang only where it says so."""
    spec, expected = POLICIES[case]
    item = job_set(replicated("a", 1, 3), replicated("b", 2, 2), **spec)
    assert groups(item) == expected
    instance = instance_of(node("n1", cpu=100), item)
    assert {key.name: group.min_member for key, group in instance.groups.items() if key.api_group} == expected
    assert sum(len(group.pending) for key, group in instance.groups.items() if key.api_group) == (7 if expected else 0)
    assert len(solve(instance, method="greedy").placement.bindings) == 7


def test_a_job_set_in_order_has_a_pod_group_for_each_replicated_job() -> None:
    """The second one's pods are not there yet, so the first must not wait for them."""
    item = job_set(
        replicated("a", 1, 3), replicated("b"), startupPolicy={"startupPolicyOrder": "InOrder"}, scheduling=GANG
    )
    assert groups(item) == {"train-a": 3}


def units(*objects: Any) -> dict[str, tuple[DomainUnit, ...]]:
    """Pod to its units, of pods without any to none."""
    return {
        key.name: pod.neighbours.units for key, pod in instance_of(node("n1", {"rack": "a"}), *objects).pods.items()
    }


def test_each_job_of_a_set_with_exclusive_topology_has_a_domain_of_its_own() -> None:
    """Of a replicated job with a key of its own that key counts."""
    key = "alpha.jobset.sigs.k8s.io/exclusive-topology"
    own = replicated("v", 1, 1)
    own["template"]["metadata"] = {"annotations": {key: "block"}}
    item = job_set(replicated("w", 2, 2), own, annotations={key: "rack"})
    assert made(item)["train-w-0-0"].metadata.annotations[key] == "rack"
    of = {name: DomainUnit(f"Job ml/train-{name}", "rack", exclusive=True) for name in ("w-0", "w-1")}
    assert units(item) == {
        "train-w-0-0": (of["w-0"],),
        "train-w-0-1": (of["w-0"],),
        "train-w-1-0": (of["w-1"],),
        "train-w-1-1": (of["w-1"],),
        "train-v-0-0": (DomainUnit("Job ml/train-v-0", "block", exclusive=True),),
    }


def test_pods_that_exist_are_told_apart_by_their_labels() -> None:
    key = "alpha.jobset.sigs.k8s.io/exclusive-topology"
    prefix = "jobset.sigs.k8s.io"
    labels = {f"{prefix}/jobset-name": "s", f"{prefix}/replicatedjob-name": "w", f"{prefix}/job-index": "3"}
    there = pod("p", namespace="ml", cpu=1, labels=labels, annotations={key: "rack"})
    nameless = pod("q", namespace="ml", cpu=1, annotations={key: "rack"})
    assert units(there, nameless) == {"p": (DomainUnit("Job ml/s-w-3", "rack", exclusive=True),), "q": ()}
    refused = instance_of(node("n1"), nameless).pods[Key("ml", "q")].unsupported
    assert refused == (f"metadata.annotations[{key}]: a domain of rack, and no label says of which Job or replica",)


@pytest.mark.parametrize("kind", ["LeaderWorker", "LeaderExcluded"])
def test_replicas_and_subgroups_have_domains_of_their_own(kind: str) -> None:
    """Replicas of a leader and four workers in subgroups of two; a leader that is in none is in its replica's alone."""
    annotations = {f"{LWS}/exclusive-topology": "block", f"{LWS}/subgroup-exclusive-topology": "rack"}
    policy = {"subGroupPolicy": {"subGroupPolicyType": kind, "subGroupSize": 2}}
    found = units(workers_set(5, 1, annotations=annotations, template=policy))
    replica = DomainUnit("replica 0 of LeaderWorkerSet ml/llm", "block", exclusive=True)
    parts = [
        DomainUnit(f"subgroup {index} of replica 0 of LeaderWorkerSet ml/llm", "rack", exclusive=True)
        for index in (0, 1)
    ]
    assert found == {
        "llm-0": (replica,) if kind == "LeaderExcluded" else (replica, parts[0]),
        "llm-0-1": (replica, parts[0]),
        "llm-0-2": (replica, parts[0]),
        "llm-0-3": (replica, parts[1]),
        "llm-0-4": (replica, parts[1]),
    }


def test_an_exclusive_job_of_a_job_set_keeps_off_those_of_others() -> None:
    """Those are told by the label of their Job; a replica that is exclusive, and pods of no Job, are neither."""
    annotations = {"alpha.jobset.sigs.k8s.io/exclusive-topology": "rack"}
    alone = {"template": {"metadata": {"annotations": annotations}, "spec": {"template": POD}}}
    mixed = job_set(
        replicated("v", pods=1) | {"template": replicated("v")["template"] | alone["template"]}, replicated("w", pods=1)
    )
    of_key = there("k", {f"{JOB_SET}/job-key": "another"})
    replica = workers_set(1, annotations={f"{LWS}/exclusive-topology": "rack"})
    found = instance_of(node("n1", {"rack": "a"}), mixed, of_key, there("p", {}), replica)
    jobs = {key.name: pod.neighbours.jobs for key, pod in found.pods.items()}
    vip, plain = (ChildJob("rack", exclusive=True),), (ChildJob("rack", exclusive=False),)
    assert jobs == {"train-v-0-0": vip, "train-w-0-0": plain, "k": plain, "p": (), "llm-0": ()}
    without = instance_of(node("n1"), job_set(replicated("w")))
    assert not any(pod.neighbours for pod in without.pods.values())


def test_of_a_replica_and_its_subgroups_in_one_key_the_subgroups_are_exclusive() -> None:
    annotations = {f"{LWS}/exclusive-topology": "rack", f"{LWS}/subgroup-exclusive-topology": "rack"}
    policy = {"subGroupPolicy": {"subGroupPolicyType": "LeaderExcluded", "subGroupSize": 2}}
    found = units(workers_set(3, 1, annotations=annotations, template=policy))
    assert {name: [each.exclusive for each in of] for name, of in found.items()} == {
        "llm-0": [False],
        "llm-0-1": [False, True],
        "llm-0-2": [False, True],
    }


# ------------------------------------------------------------------------------------------------------ LeaderWorkerSet


def test_pods_of_a_leader_worker_set() -> None:
    leader = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]}}
    pods = made(workers_set(3, 2, template={"leaderTemplate": leader}))
    assert list(pods) == [f"llm-{index}{worker}" for index in (0, 1) for worker in ("", "-1", "-2")]
    key = sha1("ml/llm-1")
    assert pods["llm-1"].metadata.labels == {
        f"{LWS}/name": "llm",
        f"{LWS}/group-index": "1",
        f"{LWS}/group-key": key,
        f"{LWS}/worker-index": "0",
        "apps.kubernetes.io/pod-index": "1",
        "statefulset.kubernetes.io/pod-name": "llm-1",
    }
    assert pods["llm-1-2"].metadata.labels == {
        f"{LWS}/name": "llm",
        f"{LWS}/group-index": "1",
        f"{LWS}/group-key": key,
        f"{LWS}/worker-index": "2",
        "apps.kubernetes.io/pod-index": "2",
        "statefulset.kubernetes.io/pod-name": "llm-1-2",
    }
    assert pods["llm-1-2"].metadata.annotations == {f"{LWS}/size": "3", f"{LWS}/leader-name": "llm-1"}
    assert [pods[name].metadata.owner_references[0].name for name in ("llm-1", "llm-1-2")] == ["llm", "llm-1"]
    assert pods["llm-0"].spec.containers[0].resources.requests != pods["llm-0-1"].spec.containers[0].resources.requests


def test_workers_that_wait_for_their_leader_do_not_exist_yet() -> None:
    item = workers_set(3, 2, startupPolicy="LeaderReady")
    assert names(item) == ["llm-0", "llm-1"]
    assert groups(item) == {"llm-0": 1, "llm-1": 1}
    assert [each.code for each in expand(objects_of(item)).findings] == ["DependsOn"]


@pytest.mark.parametrize(
    ("size", "part", "policy_type", "expected"),
    [
        (4, 2, None, ["0", "0", "1", "1"]),
        (5, 2, None, ["0", "0", "0", "1", "1"]),
        (3, 1, None, ["0", "1", "2"]),
        (3, 3, None, ["0", "0", "0"]),
        (1, 1, None, ["0"]),
        (3, 1, "LeaderExcluded", [None, "1", "2"]),
        (5, 2, "LeaderExcluded", [None, "0", "0", "1", "1"]),
    ],
    ids=[
        "the leader fills the first",
        "the leader is extra in the first",
        "one pod each",
        "one in all",
        "the leader alone",
        "one worker each",
        "the leader is in none",
    ],
)
def test_subgroups_of_a_replica(size: int, part: int, policy_type: str | None, expected: list[str | None]) -> None:
    """The first three are leaderworkerset's own (``TestGetSubGroupIndex``)."""
    sub_groups = {"subGroupSize": part} | ({"subGroupPolicyType": policy_type} if policy_type else {})
    pods = made(workers_set(size, 1, template={"subGroupPolicy": sub_groups}))
    by_name = [pods[name].metadata.labels for name in sorted(pods)]
    assert [labels.get(f"{LWS}/subgroup-index") for labels in by_name] == expected
    keys = [sha1(f"llm-0/{index}") if index is not None else None for index in expected]
    assert [labels.get(f"{LWS}/subgroup-key") for labels in by_name] == keys
    types = {pod.metadata.annotations[f"{LWS}/subgroup-policy-type"] for pod in pods.values()}
    assert types == {policy_type or "LeaderWorker"}


@pytest.mark.parametrize(
    ("size", "part", "policy_type", "words"),
    [
        (6, 4, "LeaderWorker", "size 6 is no multiple of subGroupSize 4, with or without its leader"),
        (2, 4, "LeaderWorker", "size 2 is no multiple of subGroupSize 4, with or without its leader"),
        (4, 2, "LeaderExcluded", "size 4 is no multiple of subGroupSize 2 without its leader"),
        (4, 2, "LeaderWorker", ""),
        (5, 2, "LeaderExcluded", ""),
    ],
)
def test_subgroups_that_do_not_come_out_even_are_a_finding(size: int, part: int, policy_type: str, words: str) -> None:
    """leaderworkerset's webhook refuses them."""
    sub_groups = {"subGroupSize": part, "subGroupPolicyType": policy_type}
    found = expand(objects_of(workers_set(size, 1, template={"subGroupPolicy": sub_groups}))).findings
    told = [f"{words}; leaderworkerset refuses such a set"] if words else []
    assert [(each.code, each.message) for each in found] == [("PartitionMismatch", message) for message in told]


@pytest.mark.parametrize(("policy", "subdomain"), [("Shared", "llm"), ("UniquePerReplica", "llm-1")])
def test_subdomains_of_replicas(policy: str, subdomain: str) -> None:
    item = workers_set(2, 2, networkConfig={"subdomainPolicy": policy})
    written = {each["metadata"]["name"]: each for each in documents(objects_of(item)) if each["kind"] == "Pod"}
    assert {written[name]["spec"]["subdomain"] for name in ("llm-1", "llm-1-1")} == {subdomain}
    annotations = written["llm-1"]["metadata"]["annotations"]
    assert annotations.get(f"{LWS}/subdomainPolicy") == (policy if policy != "Shared" else None)


def test_a_template_that_names_a_pod_group_keeps_it() -> None:
    template = POD | {"metadata": {"annotations": {"scheduling.k8s.io/group-name": "v"}}}
    assert groups(workers_set(2, template={"workerTemplate": template})) == {}


def test_stateful_sets_of_a_leader_worker_set_add_no_pods() -> None:
    stateful_set = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "llm", "namespace": "ml", "labels": {f"{LWS}/name": "llm"}},
        "spec": {"replicas": 1, "selector": {"matchLabels": {}}, "template": POD},
    }
    assert names(workers_set(2), stateful_set) == ["llm-0", "llm-0-1"]


# ----------------------------------------------------------------------------------------------- written and read again


@pytest.mark.parametrize(
    "item",
    [
        job_set(replicated("a", 2), scheduling=GANG),
        job_set(
            replicated("a", pods=1),
            annotations={
                "alpha.jobset.sigs.k8s.io/exclusive-topology": "rack",
                "alpha.jobset.sigs.k8s.io/node-selector": "true",
            },
        ),
        workers_set(3, 2),
    ],
    ids=["a JobSet", "a JobSet on nodes of its own", "a LeaderWorkerSet"],
)
def test_what_is_written_out_reads_as_what_was_expanded(item: Document) -> None:
    written = list(documents(objects_of(item)))
    again = instance_of(node("n1", cpu=100), *written)
    at_once = instance_of(node("n1", cpu=100), item)
    assert again.pods == at_once.pods
    assert again.groups == at_once.groups


# -------------------------------------------------------------------------------------------------------- gangs: owners


def there(name: str, labels: Document, owner: tuple[str, str, str] | None = None) -> Document:
    references = [dict(zip(("apiVersion", "kind", "name"), owner, strict=True), controller=True)] if owner else []
    metadata = {"name": name, "namespace": "ml", "labels": labels, "ownerReferences": references}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, **POD}


OF_OWNERS = {
    "a JobSet": ([there(f"p{index}", {f"{JOB_SET}/jobset-name": "train"}) for index in range(3)], {"train": 3}),
    "a LeaderWorkerSet": (
        [there(f"p{index}", {f"{LWS}/name": "llm", f"{LWS}/group-index": str(index % 2)}) for index in range(3)],
        {"llm-0": 2, "llm-1": 1},
    ),
    "an Indexed Job": (
        [
            there(f"p{index}", {"batch.kubernetes.io/job-completion-index": str(index)}, ("batch/v1", "Job", "j"))
            for index in range(2)
        ],
        {"j": 2},
    ),
    "another Job": ([there("p", {}, ("batch/v1", "Job", "j"))], {}),
}


@pytest.mark.parametrize("case", OF_OWNERS)
def test_under_the_policy_the_pods_of_an_owner_are_a_gang(case: str) -> None:
    pods, expected = OF_OWNERS[case]
    owners = instance_of(node("n1"), *pods, policy(gangs="owners"))
    assert {key.name: group.min_member for key, group in owners.groups.items() if key.api_group} == expected
    declared = instance_of(node("n1"), *pods)
    assert all(not key.api_group for key in declared.groups)
