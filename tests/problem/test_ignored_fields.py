"""Fields that limit a pending pod and that no rule reads are findings, each where it means something."""

from __future__ import annotations

from typing import Any

import pytest

from placer.problem import Finding
from placer.problem.notices import _DISKS
from tests.support import Document, instance_of, node, pod, pod_group, queue

QUEUE = "scheduling.volcano.sh/queue-name"


def found(*documents: Document | str) -> list[tuple[str, str]]:
    """Object and message of each finding ``FieldIgnored``."""
    instance = instance_of(node("n1"), *documents)
    return [(each.object, each.message) for each in instance.findings if each.code == "FieldIgnored"]


# ------------------------------------------------------------------------------------------------------------- groups


@pytest.mark.parametrize(
    ("least", "told"),
    [
        ({"cpu": "3"}, ("cpu 3", "2")),
        ({"cpu": "2001m"}, ("cpu 2001m", "2")),
        ({"requests.cpu": "3"}, ("cpu 3", "2")),
        ({"pods": "3"}, ("pods 3", "2")),
        ({"nvidia.com/gpu": "1"}, ("nvidia.com/gpu 1", "0")),
        ({"cpu": "2", "pods": "2", "requests.cpu": "2"}, None),
        ({"limits.cpu": "9", "count/pods": "9"}, None),
        ({}, None),
    ],
)
@pytest.mark.parametrize("api", ["scheduling.volcano.sh/v1beta1", "scheduling.x-k8s.io/v1alpha1"])
def test_least_resources_beyond_those_of_the_pods_are_a_finding(
    api: str, least: dict[str, str], told: tuple[str, str] | None
) -> None:
    group = {**pod_group("g", minMember=1, minResources=least), "apiVersion": api}
    labels = {"scheduling.x-k8s.io/pod-group": "g"} if "x-k8s.io" in api else {}
    pods = [pod(f"p-{each}", group=None if labels else "g", labels=labels, cpu=1) for each in range(2)]
    expected = []
    if told:
        wanted, asked = told
        message = f"spec.minResources asks for {wanted}, its 2 pods for {asked}, and decides nothing: minMember does"
        expected = [("PodGroup default/g", f"PodGroup default/g: {message}")]
    assert found(group, *pods) == expected


# ------------------------------------------------------------------------------------------------------------- queues

#: What two queues say of their share, and which fields and queues the finding names; a pod waits in the first alone.
SHARES: dict[str, tuple[dict[str, Any], dict[str, Any], str | None]] = {
    "nothing, and what that means": ({"weight": 1, "deserved": {"cpu": 0}, "priority": 0}, {"guarantee": {}}, None),
    "weight": ({"weight": 3}, {}, "weight of Queue a decides"),
    "priority": ({"priority": 5}, {}, "priority of Queue a decides"),
    "guarantee": ({"guarantee": {"resource": {"cpu": 2}}}, {}, "guarantee of Queue a decides"),
    "guarantee of another": ({}, {"guarantee": {"resource": {"cpu": 2}}}, "guarantee of Queue b decides"),
    "deserved": ({"deserved": {"cpu": 4}}, {"deserved": {"cpu": 4}}, "deserved of Queue a decides"),
    "of another": ({}, {"deserved": {"cpu": 4}, "weight": 3}, None),
    "two": ({"weight": 3, "deserved": {"cpu": 4}}, {}, "weight and deserved of Queue a decide"),
}


def _in_queues(one: dict[str, Any], other: dict[str, Any], waiting: str = "a") -> list[Document]:
    queues = [{**queue(name), "spec": spec} for name, spec in (("a", one), ("b", other))]
    running = [pod(f"r-{name}", annotations={QUEUE: name}, node="n1") for name in "ab"]
    return [*queues, *running, *([pod("p", annotations={QUEUE: waiting})] if waiting else [])]


@pytest.mark.parametrize("case", SHARES)
def test_what_a_queue_is_given_is_one_finding_where_its_pods_wait(case: str) -> None:
    one, other, named = SHARES[case]
    findings = instance_of(node("n1"), *_in_queues(one, other)).findings
    message = f"{named} nothing yet: priority of pods and capability do"
    subject = "Queue b" if case == "guarantee of another" else "Queue a"
    assert findings == (() if named is None else (Finding("QueueShareIgnored", subject, message),))


def test_queues_of_volcano_need_not_be_there() -> None:
    child = {**queue("a"), "spec": {"parent": "root"}}
    group = pod_group("g", minMember=1, queue="default")
    assert instance_of(node("n1"), child, group, pod("p", group="g")).findings == ()


def test_a_queue_in_which_nothing_passes_what_waits_is_a_finding() -> None:
    strict, loose = {"dequeueStrategy": "fifo"}, {"dequeueStrategy": "traverse"}
    message = "Queue a: spec.dequeueStrategy fifo decides nothing: smaller groups pass those that wait"
    assert found(*_in_queues(strict, loose)) == [("Queue a", message)]
    assert found(*_in_queues(strict, loose, waiting="b")) == []


# --------------------------------------------------------------------------------------------------------------- pods


def test_a_runtime_class_is_a_finding_where_no_server_has_written_what_it_adds() -> None:
    named = {"runtimeClassName": "kata"}
    message = "spec.runtimeClassName kata decides nothing: overhead and node selector of its RuntimeClass are not read"
    pods = [pod(name, spec=named) for name in "ab"]
    assert found(*pods) == [("Pod default/a", f"Pod default/a and 1 other: {message}")]
    assert found(pod("a", spec=named, metadata={"uid": "u"})) == []
    assert found(pod("a", spec=named | {"overhead": {"cpu": "1"}})) == []
    assert found(pod("a", spec=named, node="n1")) == []


@pytest.mark.parametrize("field", _DISKS.values())
def test_a_disk_that_a_pod_names_itself_is_a_finding(field: str) -> None:
    spec = {"volumes": [{"name": "v", field: {}}]}
    message = f"Pod default/a: spec.volumes[].{field} decides nothing: how many pods and nodes may use the disk"
    assert found(pod("a", spec=spec), pod("b", spec=spec, node="n1")) == [("Pod default/a", f"{message} is not read")]


# ---------------------------------------------------------------------------------------------------------- workloads

TEMPLATE = {"spec": {"containers": [{"name": "main"}], "restartPolicy": "Never"}}


def _job(**spec: Any) -> Document:
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"template": TEMPLATE, **spec}}


def _job_set(replicated: dict[str, Any], **spec: Any) -> Document:
    jobs = [{"name": "w", "template": {"spec": {"template": TEMPLATE}}, **replicated}]
    named = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "s"}}
    return {**named, "spec": {"replicatedJobs": jobs, **spec}}


@pytest.mark.parametrize(
    ("document", "told"),
    [
        (_job(managedBy="kueue.x-k8s.io/multikueue"), "Job default/j: spec.managedBy names kueue.x-k8s.io/multikueue"),
        (_job(managedBy="kubernetes.io/job-controller"), None),
        (_job_set({}, managedBy="acme.example/sets"), "JobSet default/s: spec.managedBy names acme.example/sets"),
        (_job_set({}, managedBy="jobset.sigs.k8s.io/jobset-controller"), None),
        (_job_set({"scheduling": {}}), "JobSet default/s: spec.replicatedJobs[w].scheduling decides nothing"),
    ],
)
def test_workloads_that_others_make_the_pods_of_are_findings(document: Document, told: str | None) -> None:
    messages = [message for _, message in found(document)]
    assert [message[: len(told or "")] for message in messages] == ([] if told is None else [told])
