"""Queues: capability, parents, who is in which (C11)."""

from __future__ import annotations

from typing import Any

import pytest

from placer.answers.solving import solve
from placer.problem import Instance, Key
from tests.support import Document, instance_of, node, pod, pod_group, queue

QUEUE = "scheduling.volcano.sh/queue-name"


def namespace(name: str, annotated: str | None = None) -> Document:
    metadata: dict[str, Any] = {"name": name, "annotations": {QUEUE: annotated} if annotated else {}}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def codes(instance: Instance) -> list[tuple[str, str]]:
    return [(finding.code, finding.object) for finding in instance.findings]


def queue_of(*docs: Document, name: str = "p") -> str | None:
    return instance_of(node("n1"), *docs).pods[Key("default", name)].queue


def of_namespaces(text: str) -> Document:
    made = queue("q")
    return {**made, "metadata": {**made["metadata"], "annotations": {"placer.dev/namespaces": text}}}


@pytest.mark.parametrize(
    ("text", "names", "found"),
    [
        ("ml,web", {"ml", "web"}, None),
        (" ml , web ", {"ml", "web"}, None),
        ("ml;web", set(), "'ml;web'"),
        ("ml,", {"ml"}, "''"),
        ("", set(), "''"),
        ("ML,web", {"web"}, "'ML'"),
    ],
)
def test_whose_a_queue_is(text: str, names: set[str], found: str | None) -> None:
    instance = instance_of(node("n1"), of_namespaces(text))
    assert instance.queues["q"].namespaces == names
    assert [code for code, _ in codes(instance)] == ([] if found is None else ["QueueNamespaces"])
    expected = f"annotation placer.dev/namespaces of Queue q: found {found}, expected names of namespaces with commas"
    assert all(each.message.startswith(expected) for each in instance.findings)


def test_a_group_of_another_namespace_waits_and_keeps_nothing_from_whose_queue_it_is() -> None:
    """A tenant's pod that names the queue of another team would else use its capability up."""
    whose = of_namespaces("ml")
    whose["spec"] = {"capability": {"cpu": "1"}}
    mine, theirs = (
        pod("p", cpu=1, metadata={"name": "p", "namespace": name, "annotations": {QUEUE: "q"}})
        for name in ("ml", "evil")
    )
    instance = instance_of(node("n1"), whose, mine, theirs)
    placed = solve(instance, method="greedy").placement
    assert placed is not None
    assert list(placed.node_of) == [Key("ml", "p")]


def test_a_capability_is_rounded_down() -> None:
    assert instance_of(queue("q", {"cpu": "1500500u", "gpu": "2500m"})).queues["q"].capability == {
        "cpu": 1500,
        "nvidia.com/gpu": 2,
    }


def test_parents() -> None:
    instance = instance_of(queue("root"), queue("a", parent="root"), queue("b", parent="a"), queue("c", parent="x"))
    assert instance.queue_path("b") == ("b", "a", "root")
    assert instance.queues["c"].parent is None
    assert codes(instance) == [("UnknownReference", "Queue x")]


def test_a_circle_of_parents_is_a_finding() -> None:
    instance = instance_of(
        queue("c", parent="a"), queue("a", parent="b"), queue("b", parent="c"), queue("d", parent="a")
    )
    assert codes(instance) == [("QueueCycle", "Queue a")]
    assert set(instance.queue_path("d")) == {"a", "b", "c", "d"}


def test_volcanos_default_queue_binds_where_it_exists() -> None:
    docs = (pod_group("g"), pod("p", group="g"), namespace("default"))
    assert queue_of(queue("default"), *docs) == "default"
    assert queue_of(queue("q"), *docs) is None


def test_a_pod_without_a_volcano_group_is_only_in_the_queue_it_names() -> None:
    label = {"scheduling.x-k8s.io/pod-group": "c"}
    group = pod_group("c") | {"apiVersion": "scheduling.x-k8s.io/v1alpha1"}
    docs = (queue("q"), queue("default"), group)
    assert queue_of(*docs, pod("p", annotations={QUEUE: "q"})) == "q"
    assert queue_of(*docs, pod("p")) is None
    assert queue_of(*docs, pod("p", labels=label)) is None
    assert queue_of(*docs, pod("p", labels=label, annotations={QUEUE: "q"})) == "q"
    assert queue_of(*docs, pod("p", group="absent", annotations={QUEUE: "q"})) == "q"


@pytest.mark.parametrize("owner", [{"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "u"}, None])
def test_a_static_pod_is_in_no_queue(owner: dict[str, str] | None) -> None:
    """Its kubelet makes it, in any namespace: one that is compromised would use up any queue."""
    notes = {QUEUE: "q"} | ({} if owner else {"kubernetes.io/config.mirror": "x"})
    static = pod("s", node="n1", cpu=8, annotations=notes, metadata={"ownerReferences": [owner] if owner else []})
    instance = instance_of(
        node("n1", cpu=16), queue("q", {"cpu": 8}), static, pod("p", cpu=8, annotations={QUEUE: "q"})
    )
    assert instance.pods[Key("default", "s")].queue is None
    assert codes(instance) == [("FieldIgnored", "Pod default/s")]
    result = solve(instance, method="greedy", time_limit=None)
    assert result.placement is not None
    assert len(result.placement.node_of) == 1


def test_an_unknown_queue_is_a_finding() -> None:
    instance = instance_of(node("n1"), pod_group("g", queue="x"), pod("p", annotations={QUEUE: "y"}))
    assert codes(instance) == [("UnknownReference", "Queue x"), ("UnknownReference", "Queue y")]
    assert instance.findings[0].message == "Queue x, named by PodGroup default/g, is not in the instance"
    assert instance.queue_path("x") == ()
