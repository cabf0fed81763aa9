"""A field or a kind that does not exist is told of; what Kubernetes knows and placer does not read is not."""

from __future__ import annotations

import copy
import importlib.metadata
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import placer
from placer.base.errors import StrictFindings
from placer.kube.kinds import KINDS, Fields, KindInfo, known_fields, read_fields
from placer.kube.manifests import from_documents, validate
from placer.kube.manifests.raw_objects import ObjectShape
from placer.kube.manifests.validation import UnknownField
from placer.problem.reading import read_expansion
from placer.topology.network_costs import read_costs
from tests import write_fields
from tests.benchmarks import read_large

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "4"}}}
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a"},
    "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
}
GROUP = {
    "apiVersion": "scheduling.volcano.sh/v1beta1",
    "kind": "PodGroup",
    "metadata": {"name": "g"},
    "spec": {"minMember": 1, "networkTopology": {"mode": "hard", "highestTierAllowed": 1}},
}
HYPER_NODE = {
    "apiVersion": "topology.volcano.sh/v1alpha1",
    "kind": "HyperNode",
    "metadata": {"name": "s0"},
    "spec": {"tier": 1, "members": [{"type": "Node", "selector": {"exactMatch": {"name": "n"}}}]},
}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "d"},
    "spec": {"selector": {}, "template": {"metadata": {}, "spec": {"containers": []}}},
}
VOLCANO_JOB = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "metadata": {"name": "j"},
    "spec": {"tasks": [{"name": "t", "replicas": 1, "template": {"spec": {"containers": []}}}]},
}
NUMA = {
    "apiVersion": "topology.node.k8s.io/v1alpha1",
    "kind": "NodeResourceTopology",
    "metadata": {"name": "n"},
    "topologyPolicies": ["SingleNUMANode"],
    "zones": [{"name": "node-0", "type": "Node", "resources": []}],
}


def changed(document: Mapping[str, Any], path: str, value: Any = 1) -> dict[str, Any]:
    """A copy with one field more."""
    copied = copy.deepcopy(dict(document))
    place: Any = copied
    *steps, last = path.split(".")
    for step in steps:
        place = place[int(step)] if isinstance(place, list) else place.setdefault(step, {})
    place[last] = value
    return copied


def unknown(*documents: Mapping[str, Any]) -> tuple[UnknownField, ...]:
    return validate(from_documents(documents)).unknown_fields


@pytest.mark.parametrize(
    ("document", "path", "found", "nearest"),
    [
        (GROUP, "spec.minMembr", "spec.minMembr", "spec.minMember"),
        (POD, "spec.nodeSelectr", "spec.nodeSelectr", "spec.nodeSelector"),
        (
            POD,
            "spec.containers.0.resources.request",
            "spec.containers[0].resources.request",
            "spec.containers[0].resources.requests",
        ),
        (POD, "spec.containers.0.requests", "spec.containers[0].requests", "spec.containers[0].resources.requests"),
        (POD, "spec.containers.0.nodeSelector", "spec.containers[0].nodeSelector", "spec.nodeSelector"),
        (POD, "metadata.lables", "metadata.lables", "metadata.labels"),
        (POD, "sepc", "sepc", "spec"),
        (POD, "spec.quite different", "spec[quite different]", ""),
        (NODE, "status.allocateable", "status.allocateable", "status.allocatable"),
        (HYPER_NODE, "spec.members.0.selector.exact", "spec.members[0].selector.exact", ""),
        (
            VOLCANO_JOB,
            "spec.tasks.0.template.spec.nodeselector",
            "spec.tasks[0].template.spec.nodeselector",
            "spec.tasks[0].template.spec.nodeSelector",
        ),
        (NUMA, "zones.0.resource", "zones[0].resource", "zones[0].resources"),
    ],
)
def test_field_that_does_not_exist(document: Mapping[str, Any], path: str, found: str, nearest: str) -> None:
    told = [(each.path, each.nearest) for each in unknown(changed(document, path))]
    assert told == [(found, nearest)]


@pytest.mark.parametrize(
    ("api_version", "kind", "nearest"),
    [
        ("topology.volcano.sh/v1alpha1", "Hypernode", "topology.volcano.sh/v1alpha1 HyperNode"),
        ("topology.volcano.io/v1alpha1", "HyperNode", "topology.volcano.sh/v1alpha1 HyperNode"),
        ("v1", "HyperNode", "topology.volcano.sh/v1alpha1 HyperNode"),
        ("v1", "pod", "v1 Pod"),
        ("v1", "Queue", "scheduling.volcano.sh/v1beta1 Queue"),
        ("scheduling.volcano.sh/v1beta1", "Podgroup", "scheduling.volcano.sh/v1beta1 PodGroup"),
        ("extensions/v1beta1", "Deployment", "apps/v1 Deployment"),
        ("batch/v1", "Jobs", "batch/v1 Job"),
    ],
)
def test_kind_that_does_not_exist(api_version: str, kind: str, nearest: str) -> None:
    documents = [{"apiVersion": api_version, "kind": kind, "metadata": {"name": name}} for name in ("x", "y")]
    assert unknown(*documents) == (UnknownField(f"{kind} x", f"{api_version} {kind}", "kind", nearest, 2),)


# ------------------------------------------------------------------------------------------------- many objects


def listed(tmp_path: Path, documents: list[dict[str, Any]]) -> Path:
    path = tmp_path / "list.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": documents}))
    return path


def test_newer_servers_fields_are_one_finding_each(tmp_path: Path) -> None:
    pods = [read_large.pod(index, 10) for index in range(700)]
    for index, pod in enumerate(pods):
        if index >= 100:
            pod["spec"]["brandNew"] = {"any": []}
        if index % 2:
            for container in pod["spec"]["containers"]:
                container["resources"]["request"] = {}
        if index == 650:
            pod["status"]["phaze"] = None
    nodes = [read_large.node(index) for index in range(200)]
    found = placer.read(listed(tmp_path, [*nodes, *pods])).findings
    assert [each.message for each in found if each.code == "UnknownField"] == [
        "spec.containers[0].resources.request is no field of v1 Pod and decides nothing, here and in 349 more; "
        "found like it: spec.containers[0].resources.requests",
        "spec.brandNew is no field of v1 Pod and decides nothing, here and in 599 more",
        "status.phaze is no field of v1 Pod and decides nothing; found like it: status.phase",
    ]


def test_shape_says_where_strays_are() -> None:
    fields = known_fields(KINDS["", "Pod"])
    assert fields is not None
    shape = ObjectShape(fields, [("spec", "new"), ("spec", "containers", None, "requests"), ("spec", "a\\b")])
    text = json.dumps(POD).encode()
    assert shape.places(text) == set()
    assert shape.places(json.dumps(changed(POD, "spec.new", {"x": [1]})).encode()) == {("spec", "new")}
    both = changed(changed(POD, "spec.new", None), "spec.containers.0.requests")
    assert shape.places(json.dumps(both).encode()) == {("spec", "new"), ("spec", "containers", None, "requests")}
    assert shape.places(json.dumps(changed(both, "spec.other")).encode()) is None
    assert shape.places(json.dumps(changed(POD, "spec.containers.0.env", "none")).encode()) is None
    assert shape.places(json.dumps(changed(POD, "spec.a\\b")).encode()) is None


def test_objects_of_several_kinds_in_turn(tmp_path: Path) -> None:
    documents = []
    for index in range(400):
        document = read_large.pod(index, 10) if index // 100 % 2 else read_large.node(index)
        if index % 10 == 3:
            document["metadata"]["label"] = {}
        documents.append(document)
    found = placer.read(listed(tmp_path, documents)).findings
    message = (
        "metadata.label is no field of v1 {} and decides nothing, here and in 19 more; found like it: metadata.labels"
    )
    assert [each.message for each in found if each.code == "UnknownField"] == [
        message.format("Node"),
        message.format("Pod"),
    ]


def test_objects_that_no_shape_fits_are_walked(tmp_path: Path) -> None:
    pods = [read_large.pod(index, 10) for index in range(300)]
    for pod in pods:  # of a wrong type where nothing reads it
        pod["spec"]["containers"][0]["env"] = "none"
        pod["spec"]["a\nb"] = 1
    found = placer.read(listed(tmp_path, [read_large.node(0), *pods])).findings
    (message,) = (each.message for each in found if each.code == "UnknownField")
    assert message == r"spec[a\nb] is no field of v1 Pod and decides nothing, here and in 299 more"


@pytest.mark.parametrize(
    ("document", "path", "message"),
    [
        (
            NUMA,
            "attributes",
            "attributes is no field of topology.node.k8s.io/v1alpha1 NodeResourceTopology, but one of v1alpha2: an API "
            "server drops it, it is read all the same",
        ),
        (
            {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "metadata": {"name": "g"}},
            "spec.podGroupTemplateRef",
            "spec.podGroupTemplateRef is no field of scheduling.k8s.io/v1beta1 PodGroup, but one of v1alpha2: an API "
            "server drops it, it decides nothing",
        ),
        (
            {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "metadata": {"name": "g"}},
            "spec.parentCompositePodGroupName",
            "spec.parentCompositePodGroupName is no field of scheduling.k8s.io/v1alpha2 PodGroup, but one of v1alpha3 "
            "and v1beta1: an API server drops it, it is read all the same",
        ),
    ],
)
def test_field_of_another_version_is_named_with_it(
    tmp_path: Path, document: Mapping[str, Any], path: str, message: str
) -> None:
    found = placer.read(listed(tmp_path, [changed(document, path, None)])).findings
    assert message in [each.message for each in found if each.code == "UnknownField"]


def test_no_more_are_told_than_can_be_read() -> None:
    found = unknown(*({**POD, "metadata": {"name": f"p{n}"}, f"x{n}": 1, f"y{n}": 1} for n in range(150)))
    assert len(found) == 201
    assert (found[-1].path, found[-1].count, found[-1].object) == ("", 1, "Pod default/p100")


def test_expand_and_costs_tell_of_them_too(tmp_path: Path) -> None:
    nt = {
        "apiVersion": "networktopology.diktyo.x-k8s.io/v1alpha1",
        "kind": "NetworkTopology",
        "metadata": {"name": "nt"},
        "spec": {"weights": [{"name": "UserDefined", "topologyList": []}], "configMap": "m"},
    }
    path = listed(tmp_path, [NODE, changed(DEPLOYMENT, "spec.replica", 2), nt])
    assert [each.code for each in read_expansion([path])[1]] == ["UnknownField"] * 2
    assert "UnknownField" in {each.code for each in read_costs(path).findings}


def test_with_set_and_strict(tmp_path: Path) -> None:
    path = listed(tmp_path, [NODE, *({**POD, "metadata": {"name": f"p{n}"}} for n in range(100))])
    placer.read(path, strict=True)
    with pytest.raises(StrictFindings, match="1 finding, an error under --strict"):
        placer.read(path, set_=["pod/p99:spec.containers[0].resources={request: {cpu: 1}}"], strict=True)


# ------------------------------------------------------------------------------------------ what is written down


def kinds() -> list[KindInfo]:
    return list(dict.fromkeys(KINDS.values()))


@pytest.mark.parametrize("info", kinds(), ids=lambda info: f"{info.kind}.{info.group}")
def test_fields_of_every_kind_are_known(info: KindInfo) -> None:
    known = known_fields(info)
    assert known is not None, f"tests/write_fields.py has no definition of {info.kind}.{info.group}"
    assert {"apiVersion", "kind", "metadata"} <= known.names.keys()
    assert_within(read_fields(info), known, info.kind)


def assert_within(read: Fields, known: Fields, path: str) -> None:
    """What a schema declares is known at its place."""
    for name, below in read.names.items():
        there = known.under(name)
        assert there is not None, f"{path}.{name}"
        if not there.open:
            assert_within(below, there, f"{path}.{name}")


def test_file_is_made_from_its_sources() -> None:
    shipped = json.loads(write_fields.TARGET.read_text())
    made = write_fields.document()
    installed = importlib.metadata.version("kubernetes")
    if shipped["sources"][0]["version"] == installed:
        assert write_fields.TARGET.read_text() == write_fields.text()
    for called, fields in made["types"].items():  # another client: at least what it knows
        assert set(fields.split()) <= set(shipped["types"][called].split()), called


def test_shipped_instances_have_no_unknown_field() -> None:
    names = ("seeds", "tiny", "planted", "network/kep-260.yaml", "numa/numa-3.yaml")
    for name in names:
        path = write_fields.ROOT / "instances" / name
        found = placer.read(path).findings if path.is_file() else whole(path)
        assert not [each for each in found if each.code == "UnknownField"], name


def whole(folder: Path) -> list[Any]:
    """Findings of the small instances in a folder, each by itself."""
    paths = (each for each in folder.iterdir() if each.suffix == ".yaml" and ".best" not in each.name)
    return [finding for path in paths for finding in placer.read(path).findings]


def test_useless_files_are_named(tmp_path: Path) -> None:
    base = listed(tmp_path, [NODE, POD])
    empty, blank, none = (tmp_path / f"{name}.yaml" for name in ("empty", "blank", "none"))
    empty.write_text("")
    blank.write_text("# later\n---\n")
    none.write_text("apiVersion: v1\nkind: List\nitems: []\n")
    found = placer.read(base, empty, none, with_=[blank]).findings
    assert [each.message for each in found if each.code == "FileIgnored"] == [
        f"{blank} holds no object",
        f"{empty} holds no object",
    ]
    with pytest.raises(StrictFindings):
        placer.read(base, empty, strict=True)
