"""What-if: objects added, left out and changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from placer.base.errors import UsageError
from placer.kube import manifests
from placer.kube.manifests import Objects, Text, from_documents
from placer.kube.manifests.writing import to_json


def named(kind: str, name: str, namespace: str | None = None, version: str = "v1", **fields: Any) -> dict[str, Any]:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **fields}


CONTAINER = {"name": "main", "resources": {"requests": {"cpu": "1"}}}
BASE = [
    named("Pod", "a", spec={"containers": [CONTAINER]}),
    named("Pod", "b", "one", spec={}),
    named("Pod", "b", "two", spec={}),
    named("Pod", "c", "two", spec={}),
    named("Node", "n"),
    named("PodGroup", "gang", version="scheduling.volcano.sh/v1beta1", spec={"minMember": 2}),
    named("PodGroup", "gang", version="scheduling.x-k8s.io/v1alpha1", spec={"minMember": 3}),
    named("Service", "web"),
]


def edited(**options: Any) -> Objects:
    if "with_" in options:
        text = to_json(options["with_"]).encode()
        options["with_"] = manifests.split([Text("more", text)], added=True)
    return manifests.validate(manifests.edit(from_documents(BASE), **options))


def refused(**options: Any) -> str:
    with pytest.raises(UsageError) as caught:
        edited(**options)
    return str(caught.value)


def pods(objects: Objects) -> list[tuple[str, str]]:
    return [(pod.namespace, pod.name) for pod in objects.pods]


@pytest.mark.parametrize("words", ["pod/a", "Pod/default/a", "PODS/a", "po/a", "pod/two/c", "pods/c"])
def test_without(words: str) -> None:
    gone = ("two" if "c" in words.rsplit("/", 1)[1] else "default", words.rsplit("/", 1)[1])
    assert pods(edited(without=[words])) == [pair for pair in pods(edited()) if pair != gone]


def test_without_what_is_not_read() -> None:
    assert not edited(without=["service/web"]).skipped
    assert not edited(without=["Services/web"]).skipped


def test_one_of_two_groups() -> None:
    assert not edited(without=["podgroup.scheduling.volcano.sh/gang"]).pod_groups
    assert not edited(without=["podgroups.v1alpha1.scheduling.x-k8s.io/gang"]).coscheduling_pod_groups


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("pod/z", "--without pod/z: no pod z in the instance"),
        ("pod/one/a", "--without pod/one/a: no pod one/a in the instance; found like it: pod/default/a"),
        ("pod", "--without pod: expected KIND/[NAMESPACE/]NAME"),
        ("pod/b", "--without pod/b: more than one object has that name: pod/one/b, pod/two/b"),
        (
            "pg/gang",
            "--without pg/gang: more than one object has that name: "
            "podgroup.scheduling.volcano.sh/default/gang, podgroup.scheduling.x-k8s.io/default/gang",
        ),
    ],
)
def test_without_says_what_is_wrong(words: str, message: str) -> None:
    assert refused(without=[words]) == message


def test_with_adds_and_replaces() -> None:
    objects = edited(with_=[named("Pod", "b", "two", spec={"nodeName": "n"}), named("Pod", "d", spec={})])
    assert pods(objects) == [("default", "a"), ("one", "b"), ("two", "b"), ("two", "c"), ("default", "d")]
    assert objects.pods[2].spec.node_name == "n"
    assert [objects.is_added(pod) for pod in objects.pods] == [False, False, True, False, True]


def test_with_from_files(tmp_path: Path) -> None:
    base, more = tmp_path / "base.yaml", tmp_path / "more.yaml"
    manifests.dump(BASE, base)
    manifests.dump(named("Pod", "d", spec={}), more)
    objects = manifests.load([base], with_=[more], without=["pod/a"], set_=["pod/d:spec.nodeName=n"])
    assert pods(objects)[-1] == ("default", "d")
    assert objects.pods[-1].spec.node_name == "n"
    assert ("default", "a") not in pods(objects)


@pytest.mark.parametrize(
    ("path", "value", "found"),
    [
        ("spec.containers[0].resources.requests.cpu", "250m", {"cpu": 250 * 10**6}),
        ("spec.containers.0.resources.requests.cpu", "2", {"cpu": 2 * 10**9}),
        ("spec.containers[0].resources.requests[nvidia.com/gpu]", "1", {"cpu": 10**9, "nvidia.com/gpu": 10**9}),
        ("spec.containers[0].resources.requests", "{memory: 1Ki}", {"memory": 1024 * 10**9}),
        ("spec.containers[0].resources.requests", "", None),
    ],
)
def test_set_requests(path: str, value: str, found: object) -> None:
    containers = edited(set_=[f"pod/a:{path}={value}"]).pods[0].spec.containers
    assert containers is not None
    assert containers[0].resources is not None
    assert containers[0].resources.requests == found


def test_set_makes_what_is_missing() -> None:
    objects = edited(
        set_=[
            "pod/a:metadata.labels[volcano.sh/x]='1'",
            "pod/a:spec.tolerations=[{operator: Exists}]",
            "pod/a:spec.tolerations[1].key=k=v",
            "pod/a:spec.nodeName=null",
            "podgroup.scheduling.volcano.sh/gang:spec.minMember=5",
        ]
    )
    assert objects.pods[0].metadata.labels == {"volcano.sh/x": "1"}
    assert [toleration.key for toleration in objects.pods[0].spec.tolerations or ()] == [None, "k=v"]
    spec = objects.pod_groups[0].spec
    assert spec is not None
    assert spec.min_member == 5


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("pod/a", "expected KIND/[NAMESPACE/]NAME:PATH=VALUE"),
        ("pod/a:=1", "'' is not a path such as spec.minMember"),
        ("pod/a:spec..x=1", "'spec..x' is not a path such as spec.minMember"),
        ("pod/a:spec.containers[3].name=x", "spec.containers has 1 items, found '3'"),
        ("pod/a:spec.containers.first.name=x", "spec.containers has 1 items, found 'first'"),
        ("pod/a:kind.x=1", "kind is neither an object nor a list"),
        ("pod/a:spec.x=[1", "the value has the end of the text"),
        ("pod/z:spec.x=1", "no pod z in the instance"),
    ],
)
def test_set_says_what_is_wrong(words: str, message: str) -> None:
    found = refused(set_=[words])
    assert found.startswith(f"--set {words}: ")
    assert message in found


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (
            "pg.scheduling.volcano.sh/gang:spec.minMembr=3",
            "spec.minMembr is no field of {pg}; found like it: spec.minMember",
        ),
        (
            "pod/a:spec.containers[0].image=x",
            "spec.containers[0].image is a field of v1 Pod that nothing reads, so it decides nothing",
        ),
        (
            "node/n:metadata.labels.topology.kubernetes.io/zone=x",
            "nothing reads metadata.labels.topology.kubernetes; a key that has dots stands in brackets: "
            "metadata.labels[topology.kubernetes.io/zone]",
        ),
        ("node/n:Spec.unschedulable=true", "Spec is no field of v1 Node; found like it: spec"),
        ("pod/a:spec.tolerations.first.key=x", "spec.tolerations has 0 items, found 'first'"),
        ("service/web:spec.type=x", "v1 Service is not read, so nothing that is set in it decides anything"),
    ],
)
def test_set_what_nothing_reads(words: str, why: str) -> None:
    kind = "scheduling.volcano.sh/v1beta1 PodGroup"
    assert refused(set_=[words]) == f"--set {words}: {why.replace('{pg}', kind)}"


@pytest.mark.parametrize(
    "words",
    [
        "node/n:metadata.labels[topology.kubernetes.io/zone]=x",
        "node/n:status.allocatable[example.com/any]=1",
        "node/n:spec.taints=[{key: a, effect: NoSchedule}]",
        "pod/a:spec.nodeSelector.any=x",
        "pod/a:spec.containers[1]={name: b, image: c}",
        "pod/a:spec.topologySpreadConstraints=null",
        "pod/a:metadata.ownerReferences[0]={apiVersion: v1, kind: Node, name: n}",
        "pg.scheduling.volcano.sh/gang:spec.subGroupPolicy=[{name: a, matchLabelKeys: [any]}]",
        "pg.scheduling.volcano.sh/gang:spec.minTaskMember.any=1",
    ],
)
def test_set_what_is_read(words: str) -> None:
    assert edited(set_=[words]).pods


LABELLED = [
    named("Node", "n1") | {"metadata": {"name": "n1", "labels": {"rack": "r7", "spare": "yes"}}},
    named("Node", "n2") | {"metadata": {"name": "n2", "labels": {"rack": "r7"}}},
    named("Node", "n3") | {"metadata": {"name": "n3", "labels": {"rack": "r8"}}},
    named("Pod", "p") | {"metadata": {"name": "p", "namespace": "one", "labels": {"rack": "r7"}}, "spec": {}},
    named("Pod", "q") | {"metadata": {"name": "q", "namespace": "two", "labels": {"rack": "r7"}}, "spec": {}},
]


def with_labels(**options: Any) -> Objects:
    return manifests.validate(manifests.edit(from_documents([*BASE, *LABELLED]), **options))


@pytest.mark.parametrize(
    ("selector", "left"),
    [
        ("rack=r7", ["n", "n3"]),
        ("rack==r7,spare", ["n", "n2", "n3"]),
        ("rack, !spare", ["n", "n1"]),
        ("rack in (r7, r8), spare notin (yes)", ["n", "n1"]),
        ("rack!=r7", ["n1", "n2"]),
        ("!rack", ["n1", "n2", "n3"]),
    ],
)
def test_without_all_that_have_labels(selector: str, left: list[str]) -> None:
    found = with_labels(without=[f"node --where {selector}"])
    assert [node.name for node in found.nodes] == left
    assert pods(found) == pods(with_labels())


def test_a_selector_in_one_namespace() -> None:
    found = with_labels(without=["pods/one --where rack=r7"])
    assert [pair for pair in pods(with_labels()) if pair not in pods(found)] == [("one", "p")]


def test_set_of_all_that_have_labels() -> None:
    found = with_labels(set_=["no:spec.unschedulable=true --where rack=r7", "node/n2:spec.unschedulable=false"])
    assert {node.name: node.spec.unschedulable for node in found.nodes if node.spec is not None} == {
        "n1": True,
        "n2": False,
    }


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("node --where rack=r9", "no node with rack=r9 in the instance; none of the 4 has these labels"),
        ("queue --where rack=r9", "no queue with rack=r9 in the instance; there are no items"),
        ("node --where rack in r7", "'rack in r7' is not a selector such as rack=r7,!spare"),
        ("node --where rack=r7,", "'rack=r7,' is not a selector such as rack=r7,!spare"),
        ("node/ --where rack=r7", "expected KIND[/NAMESPACE] before --where"),
        ("pod/one/p --where rack=r7", "expected KIND[/NAMESPACE] before --where"),
        (
            "pg --where !rack",
            "more than one kind has that name: podgroup.scheduling.volcano.sh, podgroup.scheduling.x-k8s.io",
        ),
    ],
)
def test_selectors_say_what_is_wrong(words: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        with_labels(without=[words])
    assert str(caught.value) == f"--without {words}: {message}"


def test_the_order_is_with_without_set_and_of_each_the_order_given() -> None:
    more = named("Node", "n", spec={"unschedulable": False})
    found = edited(with_=[more], set_=["node/n:spec.unschedulable=true", "node/n:spec.unschedulable=false"])
    assert [node.spec.unschedulable for node in found.nodes if node.spec is not None] == [False]
    assert refused(without=["node/n"], set_=["node/n:spec.unschedulable=true"]).endswith("no node n in the instance")
