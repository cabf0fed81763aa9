"""What a pod asks of NUMA zones, read from its spec (C10)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from placer.base.quantity import Resources
from placer.kube.pod import PodSpec
from placer.kube.reader import SchemaReader
from placer.problem.node_resource_topology import DemandPool, qos_class
from placer.problem.numa import NumaDemand, Qos, Stage

READER = SchemaReader[PodSpec](PodSpec)
FULL = {"cpu": "2", "memory": "1Gi"}


def spec(*containers: dict[str, Any], **more: Any) -> PodSpec:
    return READER.read(json.dumps({"containers": containers, **more}).encode())


def container(
    name: str = "main", requests: dict[str, Any] | None = None, limits: dict[str, Any] | None = None, **rest: Any
) -> dict[str, Any]:
    return {"name": name, "resources": {"requests": requests, "limits": limits}, **rest}


QOS = {
    "limits equal requests": (spec(container("a", FULL, FULL)), Qos.GUARANTEED),
    "requests left out are the limits": (spec(container("a", None, FULL)), Qos.GUARANTEED),
    "amounts and not texts": (spec(container("a", {"cpu": "2000m", "memory": "1024Mi"}, FULL)), Qos.GUARANTEED),
    "a request below its limit": (spec(container("a", {"cpu": "1", "memory": "1Gi"}, FULL)), Qos.BURSTABLE),
    "a limit of memory is missing": (spec(container("a", FULL, {"cpu": "2"})), Qos.BURSTABLE),
    "a limit of 0 is none": (spec(container("a", None, {"cpu": "0", "memory": "1Gi"})), Qos.BURSTABLE),
    "one container has none": (spec(container("a", FULL, FULL), container("b")), Qos.BURSTABLE),
    "an init container has none": (
        spec(container("a", FULL, FULL), initContainers=[container("i", FULL)]),
        Qos.BURSTABLE,
    ),
    "all init containers have theirs": (
        spec(container("a", FULL, FULL), initContainers=[container("i", None, FULL)]),
        Qos.GUARANTEED,
    ),
    "requests alone": (spec(container("a", FULL)), Qos.BURSTABLE),
    "nothing": (spec(container("a")), Qos.BEST_EFFORT),
    "devices and disk alone": (
        spec(container("a", None, {"nvidia.com/gpu": 1, "ephemeral-storage": "1Gi"})),
        Qos.BEST_EFFORT,
    ),
    "of the pod as a whole": (spec(container("a"), resources={"limits": FULL}), Qos.GUARANTEED),
    "of the pod as a whole, burstable": (
        spec(container("a", FULL, FULL), resources={"requests": {"cpu": "1"}, "limits": FULL}),
        Qos.BURSTABLE,
    ),
}


@pytest.mark.parametrize("case", QOS)
def test_qos_class(case: str) -> None:
    written, expected = QOS[case]
    assert qos_class(written) is expected


def read(written: PodSpec) -> NumaDemand:
    found = DemandPool().of(written)
    assert found is not None
    return found


def test_containers_stand_in_the_order_of_admission() -> None:
    found = read(
        spec(
            container("a", None, FULL),
            container("b", None, {**FULL, "nvidia.com/gpu": 2}),
            initContainers=[container("i", None, FULL), container("s", None, FULL, restartPolicy="Always")],
            overhead={"cpu": "250m", "memory": "64Mi"},
        )
    )
    assert [(each.name, each.stage) for each in found.containers] == [
        ("i", Stage.INIT),
        ("s", Stage.SIDECAR),
        ("a", Stage.APP),
        ("b", Stage.APP),
    ]
    assert found.containers[3].requests == Resources({"cpu": 2000, "memory": 2**30, "nvidia.com/gpu": 2})
    assert found.overhead == Resources({"cpu": 250, "memory": 2**26})
    assert (found.qos, found.pod_level, found.pinned) == (Qos.GUARANTEED, False, True)


def test_pod_level_resources_pin_nothing() -> None:
    found = read(spec(container("a", None, {"nvidia.com/gpu": 1}), resources={"limits": FULL}))
    assert (found.qos, found.pod_level, found.pinned) == (Qos.GUARANTEED, True, False)
    disk = read(spec(container("a", None, FULL), resources={"limits": {"ephemeral-storage": "1Gi"}}))
    assert disk.pinned, "disk space for the pod as a whole is no reason"


def test_pods_of_which_nothing_is_aligned() -> None:
    pool = DemandPool()
    assert pool.of(spec(container("a", FULL))) is None
    assert pool.of(spec(container("a"))) is None
    assert pool.of(spec(container("a", FULL, {"hugepages-2Mi": "4Mi", "ephemeral-storage": "1Gi"}))) is None
    assert pool.of(spec(container("a", FULL, {"vendor/nic": 1}))) is not None
