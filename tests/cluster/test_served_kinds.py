"""Kinds that a cluster does not serve and its objects refer to: what depends on them waits, and says so."""

from __future__ import annotations

from typing import Any

import pytest

from placer.kube.marks import VOLCANO_NUMA
from placer.passes.cluster import take
from placer.passes.cluster.reading.earlier_passes import prepared
from placer.passes.cluster.reading.served_kinds import _REFERENCES
from tests.cluster.snapshots import ListServer
from tests.cluster.test_any_object import path_of
from tests.cluster.things import live_pod
from tests.netdocs import app_group, call
from tests.support import Document, node, pod_group

QUEUE = "scheduling.volcano.sh/queue-name"
APP_GROUP = app_group("web", {"p": [call("p", bandwidth="1M")]}, numMembers=1)
OF_WEB = {"appgroup.diktyo.x-k8s.io": "web", "appgroup.diktyo.x-k8s.io.workload": "p"}


def one(**options: Any) -> Document:
    return live_pod("odd", cpu=1, **options)


#: Attribute of the kind that is not served, and what refers to it, by the text that says so.
REFERRING: dict[tuple[str, str], list[Document]] = {
    ("hyper_nodes", "networkTopology"): [
        pod_group("g", minMember=1, networkTopology={"mode": "hard", "highestTierAllowed": 1}),
        one(group="g"),
    ],
    ("queues", "queue"): [pod_group("g", minMember=1, queue="a"), one(group="g")],
    ("queues", "annotation of a pod"): [one(annotations={QUEUE: "a"})],
    ("queues", "annotation of a namespace"): [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "annotations": {QUEUE: "a"}}},
        *(pod_group("g", minMember=1), one(group="g")),
    ],
    ("pod_groups", "scheduling.k8s.io"): [one(group="g")],
    ("pod_groups", "scheduling.volcano.sh"): [one(annotations={"scheduling.volcano.sh/group-name": "g"})],
    ("coscheduling_pod_groups", "scheduling.x-k8s.io"): [one(labels={"scheduling.x-k8s.io/pod-group": "g"})],
    ("coscheduling_pod_groups", "old"): [one(labels={"pod-group.scheduling.sigs.k8s.io": "g"})],
    ("kai_pod_groups", "pod-group-name"): [one(annotations={"pod-group-name": "g"})],
    ("app_groups", "label"): [one(labels=OF_WEB)],
    ("network_topologies", "dependencies"): [APP_GROUP, one(labels=OF_WEB)],
    ("node_resource_topologies", "restricted"): [one(annotations={VOLCANO_NUMA: "restricted"})],
    ("node_resource_topologies", "single-numa-node"): [one(annotations={VOLCANO_NUMA: "single-numa-node"})],
}
KIND = {
    "hyper_nodes": "HyperNode",
    "queues": "Queue",
    "pod_groups": "PodGroup",
    "coscheduling_pod_groups": "PodGroup",
    "kai_pod_groups": "PodGroup",
    "app_groups": "AppGroup",
    "network_topologies": "NetworkTopology",
    "node_resource_topologies": "NodeResourceTopology",
}


def test_every_reference_is_tried() -> None:
    texts = {(attribute, text) for attribute, found in _REFERENCES.items() for text in found}
    assert (len(texts), {attribute for attribute, _ in REFERRING}) == (len(REFERRING), _REFERENCES.keys())


@pytest.mark.parametrize("case", REFERRING, ids=" ".join)
def test_what_refers_to_a_kind_that_is_not_there_waits(case: tuple[str, str]) -> None:
    lists: dict[str, list[Document]] = {}
    for number, each in enumerate([node("n1"), live_pod("fine", namespace="other", cpu=1), *REFERRING[case]]):
        metadata = {"uid": f"u{number}", **each["metadata"]}
        lists.setdefault(path_of(each), []).append({**each, "metadata": metadata})
    instance = prepared(take(ListServer(lists)), ()).instance
    (found,) = [each for each in instance.findings if each.code == "Unreadable"]
    assert found.message.startswith(f"no {KIND[case[0]]} can be read, and its dependents wait: ")
    waits = {key.name: group.invalid for key, group in instance.groups.items() if group.pending}
    odd = next(pod.group for pod in instance.pending if pod.key.name == "odd")
    assert odd is not None
    assert waits[odd.name] == f"no {KIND[case[0]]} can be read"
    fine = next(pod.group for pod in instance.pending if pod.key.name == "fine")
    assert fine is None or waits[fine.name] is None


def test_without_a_reference_no_kind_is_missed() -> None:
    found = take(ListServer({"/api/v1/nodes": [node("n1")], "/api/v1/pods": [live_pod("fine", cpu=1)]}))
    assert [item for item in found.items if b'"*"' in item] == []
