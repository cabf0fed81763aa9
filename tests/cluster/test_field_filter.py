"""What of an object reaches a snapshot: all that decides something, and nothing else."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from placer.base.errors import ClusterError
from placer.kube.kinds import BY_ATTRIBUTE, KINDS
from placer.kube.manifests import from_documents, validate
from placer.passes.cluster.reading.field_filter import list_reader
from placer.problem.instance_builder import make_instance
from tests.cluster.snapshots import documents_in, kept

INSTANCES = Path(__file__).parent.parent.parent / "instances"

#: Small instances of every family, and those with objects that others do not have.
SOME = sorted(
    str(path)
    for path in INSTANCES.rglob("*.yaml")
    if path.parent.name != "online-boutique"  # one instance out of several files
    and ".best." not in path.name
    and ".planted." not in path.name
    and path.stat().st_size < 300_000
)

SECRET = "hunter2"


def test_there_are_instances_of_many_kinds() -> None:
    found = {each["kind"] for path in SOME for each in documents_in(path)}
    assert {"Node", "Pod", "PodGroup", "HyperNode", "AppGroup", "NetworkTopology", "NodeResourceTopology"} <= found


@pytest.mark.parametrize("path", SOME, ids=lambda path: Path(path).name)
def test_what_is_kept_is_the_same_instance(path: str) -> None:
    """Node by node, pod by pod, finding by finding: no field that is read is lost."""
    documents = [each for each in documents_in(path) if (_group(each), each["kind"]) in KINDS]
    whole = make_instance(validate(from_documents(documents)))
    less = make_instance(validate(from_documents([each if _makes_pods(each) else kept(each) for each in documents])))
    assert replace(less, digest="") == replace(whole, digest="")


def _group(document: dict[str, Any]) -> str:
    return str(document["apiVersion"]).rpartition("/")[0]


def _makes_pods(document: dict[str, Any]) -> bool:
    """Workloads are not in a snapshot; here they make pods with all that the template says."""
    return KINDS[_group(document), document["kind"]].keeps_text


def test_nothing_secret_is_kept() -> None:
    named = {"secretName": SECRET}
    container = {
        "name": "main",
        "image": SECRET,
        "command": [SECRET],
        "args": [SECRET],
        "env": [{"name": "TOKEN", "value": SECRET}],
        "livenessProbe": {"httpGet": {"httpHeaders": [{"name": "Authorization", "value": SECRET}]}},
        "resources": {"requests": {"cpu": "1"}},
        "ports": [{"containerPort": 1, "hostPort": 2, "name": SECRET}],
    }
    applied = "kubectl.kubernetes.io/last-applied-configuration"
    marks = {applied: SECRET, "example.com/password": SECRET, "notvolcano.sh/x": SECRET}
    names = {"name": "p", "namespace": "n", "uid": "u", "resourceVersion": "3"}
    group = {"scheduling.k8s.io/group-name": "g"}
    managed = [{"manager": SECRET, "time": "2026-01-01T00:00:00Z", "fieldsV1": {SECRET: {}}}]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**names, "annotations": {**marks, **group}, "managedFields": managed},
        "spec": {
            "containers": [container],
            "initContainers": [{**container, "restartPolicy": "Always"}],
            "ephemeralContainers": [container],
            "serviceAccountName": SECRET,
            "volumes": [{"name": "s", "secret": named}, {"name": "c", "persistentVolumeClaim": {"claimName": "data"}}],
        },
        "status": {"phase": "Pending", "message": SECRET, "containerStatuses": [{"name": "main", "image": SECRET}]},
    }
    found = kept(pod)
    assert SECRET not in json.dumps(found)
    assert found["metadata"] == {**names, "annotations": group}
    less = {"name": "main", "resources": {"requests": {"cpu": "1"}}, "ports": [{"containerPort": 1, "hostPort": 2}]}
    assert found["spec"]["containers"] == [less]
    assert [each.get("persistentVolumeClaim") for each in found["spec"]["volumes"]] == [None, {"claimName": "data"}]


def test_what_stays_is_as_it_was_written() -> None:
    """Amounts keep their words, and null is not the same as left out."""
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n", "labels": None},
        "spec": {"taints": [{"key": "k", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"}]},
        "status": {"allocatable": {"cpu": "7910m", "memory": "1e3Ki"}, "images": [{"names": ["x"]}]},
    }
    assert kept(node) == {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n", "labels": None},
        "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]},
        "status": {"allocatable": {"cpu": "7910m", "memory": "1e3Ki"}},
    }


def test_items_of_a_list_get_the_kind_that_they_leave_out() -> None:
    page = list_reader(BY_ATTRIBUTE["nodes"], "v1").read(b'{"items": [{"metadata": {"name": "n"}}]}')
    assert page.items == [b'{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"}}']
    assert page.metadata.continue_ == ""


def test_a_page_says_how_it_goes_on() -> None:
    text = b'{"metadata": {"resourceVersion": "5", "continue": "abc"}, "items": null}'
    page = list_reader(BY_ATTRIBUTE["pods"], "v1").read(text)
    assert (page.metadata.resource_version, page.metadata.continue_, page.items) == ("5", "abc", [])


def test_of_managed_fields_the_last_time_is_kept() -> None:
    """When an exporter wrote last decides which bound pods it cannot know yet (C10)."""
    times = ["2026-01-01T00:00:05Z", "2026-01-01T00:00:09Z", "2026-01-01T00:00:07Z"]
    topology = {
        "apiVersion": "topology.node.k8s.io/v1alpha2",
        "kind": "NodeResourceTopology",
        "metadata": {"name": "n1", "managedFields": [{"manager": "m", "time": time} for time in times]},
    }
    assert kept(topology)["metadata"] == {
        "name": "n1",
        "annotations": {"placer.dev/updated": "2026-01-01T00:00:09Z"},
    }


def test_an_unknown_key_of_a_policy_is_kept_to_be_refused() -> None:
    policy = {"apiVersion": "placer.dev/v1alpha1", "kind": "Policy", "metadata": {"name": "p"}, "spec": {"lvls": []}}
    assert kept(policy)["spec"] == {"lvls": []}


def test_of_an_object_with_a_wrong_type_its_name_is_kept_and_what_is_wrong() -> None:
    items: list[dict[str, Any]] = [
        {
            "metadata": {"name": "a", "namespace": "n", "uid": "1", "labels": {"x": "y", "z": 5}, "finalizers": 3},
            "spec": {"containers": {}, "nodeName": "n1", "serviceAccountName": "secret"},
        },
        {"metadata": {"name": "b", "namespace": "n"}, "spec": {"containers": []}},
        {"metadata": {"name": "c", "namespace": "n"}, "spec": 5},
    ]
    page = list_reader(BY_ATTRIBUTE["pods"], "v1").read(json.dumps({"items": items}).encode())
    first, second, third = (json.loads(item) for item in page.items or ())
    assert first == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "a",
            "namespace": "n",
            "uid": "1",
            "labels": {"x": "y"},
            "annotations": {"placer.dev/unreadable": "spec.containers: found `object`, expected `array | null`"},
        },
        "spec": {"nodeName": "n1"},
        "status": {},
    }
    assert second["spec"] == {"containers": []}
    assert third["metadata"]["annotations"] == {"placer.dev/unreadable": "spec: found `int`, expected `object | null`"}


@pytest.mark.parametrize("text", [b"<html>", b"[]", b'{"items": 5}'])
def test_what_is_no_list_is_an_error(text: bytes) -> None:
    with pytest.raises(ClusterError, match=r"^the list of pods is no list: "):
        list_reader(BY_ATTRIBUTE["pods"], "v1").read(text)


def test_of_an_app_group_that_cannot_be_read_the_workloads_are_kept() -> None:
    """Its pods wait, and no others of their namespace."""
    listed = [{"workload": {"kind": "Deployment", "name": "web"}, "dependencies": [{"minBandwidth": 3}]}, "odd"]
    metadata = {"name": "shop", "namespace": "a", "labels": 3}
    item = json.dumps({"metadata": metadata, "spec": {"workloads": listed}}).encode()
    kept = json.loads(list_reader(BY_ATTRIBUTE["app_groups"], "v1alpha1").object_or_name(item))
    assert kept["spec"] == {"workloads": [{"workload": {"name": "web"}}, None]}
    assert kept["metadata"]["annotations"].keys() == {"placer.dev/unreadable"}
