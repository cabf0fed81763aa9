"""Pods that a NodeResourceTopology cannot know yet are subtracted from what it calls available (C10)."""

from __future__ import annotations

from typing import Any

import pytest

from placer.problem import Instance
from placer.problem.node_resource_topology import pod_hash, sign
from tests.support import Document, instance_of, node, pod

UPDATED = "2026-01-01T12:00:00Z"
BEFORE, SAME, LATER, LAST = (f"2026-01-01T{time}Z" for time in ("11:59:59", "12:00:00", "12:00:01", "12:00:02"))


def topology(
    policy: str = "single-numa-node",
    updated: tuple[str, ...] = (),
    annotations: dict[str, str] | None = None,
    zones: tuple[int, ...] = (4, 4),
    marks: dict[str, str] | None = None,
) -> Document:
    """Node n1 with zones of so many cores, 8Gi and one gpu each, all of it available."""
    written = {"topologyManagerPolicy": policy, **(marks or {})}
    return {
        "apiVersion": "topology.node.k8s.io/v1alpha2",
        "kind": "NodeResourceTopology",
        "metadata": {
            "name": "n1",
            "annotations": annotations or {},
            "managedFields": [{"manager": "exporter", "time": time} for time in updated],
        },
        "attributes": [{"name": name, "value": value} for name, value in written.items()],
        "zones": [
            {"name": f"node-{index}", "type": "Node", "resources": [_resource("cpu", cores), *REST]}
            for index, cores in enumerate(zones)
        ],
    }


def _resource(name: str, amount: object) -> dict[str, object]:
    return {"name": name, "capacity": amount, "allocatable": amount, "available": amount}


REST = (_resource("memory", "8Gi"), _resource("nvidia.com/gpu", 1))


def bound(
    name: str, at: str | None = None, started: str | None = None, created: str | None = None, **more: Any
) -> Document:
    """A Guaranteed pod of ``cpu`` cores (3 unless said otherwise) on n1."""
    cores, guaranteed = more.pop("cpu", 3), more.pop("guaranteed", True)
    amounts = {"cpu": cores, "memory": "1Gi"}
    resources = {"requests": amounts, **({"limits": amounts} if guaranteed else {})}
    conditions = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": at}] if at else []
    status = {"conditions": conditions, **({"startTime": started} if started else {}), **more.pop("status", {})}
    metadata = {**({"creationTimestamp": created} if created else {}), **more.pop("metadata", {})}
    spec = {"containers": [{"name": "main", "resources": resources}]}
    return pod(name, node="n1", spec=spec, status=status, metadata=metadata, **more)


def read(*docs: Document) -> Instance:
    return instance_of(node("n1", cpu=16, memory="16Gi", gpu=2), *docs)


def cores(*docs: Document) -> list[float]:
    """What each zone has available then; nothing is to be said about it."""
    instance = read(*docs)
    assert instance.findings == ()
    return _cores(instance)


def _cores(instance: Instance) -> list[float]:
    numa = instance.nodes["n1"].numa
    assert numa is not None
    return [zone.available["cpu"] / 1000 for zone in numa.zones]


# ---------------------------------------------------------------------------------------------------------- by time


def test_an_object_that_carries_neither_is_believed() -> None:
    assert cores(topology(), bound("a", LATER)) == [4, 4]


TIMES: dict[str, tuple[dict[str, Any], int]] = {
    "scheduled before": ({"at": BEFORE}, 4),
    "scheduled in the same second": ({"at": SAME}, 4),
    "scheduled later": ({"at": LATER}, 1),
    "scheduled before, started later": ({"at": BEFORE, "started": LATER}, 4),
    "started later": ({"started": LATER}, 1),
    "started before": ({"started": BEFORE, "created": BEFORE}, 4),
    "created later": ({"created": LATER}, 1),
    "created before": ({"created": BEFORE}, 4),
    "nothing is said": ({}, 4),
    "not scheduled, whatever its condition says": (
        {"status": {"conditions": [{"type": "PodScheduled", "status": "False", "lastTransitionTime": LATER}]}},
        4,
    ),
}


def test_what_was_bound_later_takes_the_lowest_zone_that_fits() -> None:
    """Three cores in zone 0, then three in zone 1, one in zone 0; the pod bound before is in ``available`` already."""
    pods = (bound("a", LATER), bound("b", LAST), bound("c", LAST, created=LAST, cpu=1), bound("d", BEFORE))
    assert cores(topology(updated=(UPDATED,)), *pods) == [0, 1]


@pytest.mark.parametrize("case", TIMES)
def test_when_a_pod_was_bound(case: str) -> None:
    pod_says, expected = TIMES[case]
    assert cores(topology(updated=(UPDATED,)), bound("a", **pod_says))[0] == expected


def test_a_bound_pod_that_the_kubelet_would_refuse_is_a_finding_and_takes_what_there_is() -> None:
    """3 + 3 + 2 cores are bound, 1 + 1 are left for the last: it gets both."""
    pods = (bound("a", LATER), bound("b", LATER), bound("c", LAST, cpu=2))
    instance = read(topology(updated=(UPDATED,)), *pods)
    assert _cores(instance) == [0, 0]
    assert [(finding.code, finding.object, finding.message) for finding in instance.findings] == [
        (
            "BoundPodsViolate",
            "Node n1",
            "C10: Node n1 would refuse Pod default/c, which is bound to it: container main asks for cpu 2, memory 1Gi "
            "in one zone: node-0 has cpu 1, memory 7Gi; node-1 has cpu 1, memory 7Gi",
        )
    ]


# --------------------------------------------------------------------------------------------------- by fingerprint


def fingerprint(*names: str) -> dict[str, str]:
    return {"nodeTopologyPodsFingerprint": sign(pod_hash("default", name) for name in names)}


def test_a_fingerprint_of_all_pods() -> None:
    assert cores(topology(marks=fingerprint("a", "b")), bound("a"), bound("b")) == [4, 4]


def test_the_older_annotation() -> None:
    (mark,) = fingerprint("a").values()
    annotations = {"topology.node.k8s.io/fingerprint": mark}
    assert cores(topology(annotations=annotations), bound("a", BEFORE), bound("b", LATER)) == [1, 4]
    assert cores(topology(annotations=annotations, marks=fingerprint("a", "b")), bound("a"), bound("b")) == [4, 4]


def test_only_pods_with_exclusive_resources() -> None:
    """The burstable pod holds no zone; the first fingerprint is without it, said or not."""
    method = {"nodeTopologyPodsFingerprintMethod": "with-exclusive-resources"}
    pods = (bound("a", BEFORE), bound("b", LATER, guaranteed=False), bound("c", LAST))
    for attributes in (fingerprint("a"), {**fingerprint("a"), **method}):
        assert cores(topology(marks=attributes), *pods) == [1, 4]
    every = {"nodeTopologyPodsFingerprintMethod": "all"}
    instance = read(topology(marks={**fingerprint("a", "c"), **every}), *pods)
    assert [finding.code for finding in instance.findings] == ["NumaZones"]


def test_a_fingerprint_that_matches_nothing() -> None:
    """A pod has left since, and one has come: the time decides, and without one the object is believed."""
    mark = fingerprint("gone", "a")
    pods = (bound("a", BEFORE), bound("b", LATER))
    for updated, expected in (((), [4, 4]), ((UPDATED,), [1, 4])):
        instance = read(topology(updated=updated, marks=mark), *pods)
        assert _cores(instance) == expected
        assert [(finding.code, finding.message) for finding in instance.findings] == [
            (
                "NumaZones",
                f"NodeResourceTopology n1: its pod fingerprint {mark['nodeTopologyPodsFingerprint']} is not that of "
                "the pods on the node, nor of those bound earlier",
            )
        ]


def test_a_fingerprint_of_another_version_matches_nothing() -> None:
    mark = {"nodeTopologyPodsFingerprint": fingerprint("a")["nodeTopologyPodsFingerprint"].replace("v001", "v002")}
    assert [finding.code for finding in read(topology(marks=mark), bound("a")).findings] == ["NumaZones"]


#: Ten pods and their fingerprint, from the tests of k8stopologyawareschedwg/podfingerprint.
TEN = """analytics/controller-69dkj kube-public/subscriber-tq6v7 kube-public/transformer-hfbng
kube-public/validator-c6pn5 kube-system/proxy-wszrd middleware/processor-jkrl4 network/gateway-vsll5
network/importer-kzdfr network/importer-q5vt9 staging/prometheus-bwgbn"""


def test_fingerprints_are_those_that_exporters_write() -> None:
    pods = [each.split("/") for each in TEN.split()]
    assert sign(pod_hash(*each) for each in pods) == "pfp0v001567144e4a561bb5a"
    assert sign(pod_hash(*each) for each in reversed(pods)) == "pfp0v001567144e4a561bb5a"
