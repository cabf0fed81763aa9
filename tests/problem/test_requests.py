"""The Kubernetes request formula, case by case (C2)."""

from __future__ import annotations

from typing import Any

import pytest

from placer.problem import Key
from tests.support import instance_of, node, pod

GI = 2**30


def container(
    name: str, requests: dict[str, Any] | None = None, limits: dict[str, Any] | None = None, **rest: Any
) -> Any:
    resources = {key: value for key, value in (("requests", requests), ("limits", limits)) if value is not None}
    return {"name": name, "resources": resources, **rest}


def sidecar(name: str, **requests: Any) -> Any:
    return container(name, requests, restartPolicy="Always")


def requested(spec: dict[str, Any], status: dict[str, Any] | None = None, on: str | None = None) -> dict[str, int]:
    instance = instance_of(node("n1", cpu=64), pod("p", node=on, spec=spec, status=status))
    return dict(instance.pods[Key("default", "p")].requests)


CASES = {
    "containers add up": (
        {"containers": [container("a", {"cpu": "500m", "memory": "1Gi"}), container("b", {"cpu": "1"})]},
        {"cpu": 1500, "memory": GI, "pods": 1},
    ),
    "no container asks for anything": ({"containers": [container("a")]}, {"pods": 1}),
    "amounts round up once, after the sum": (
        {"containers": [container("a", {"cpu": "100u"}), container("b", {"cpu": "300u"})]},
        {"cpu": 1, "pods": 1},
    ),
    "a request left out is its limit": (
        {"containers": [container("a", {"cpu": "1"}, {"cpu": "2", "nvidia.com/gpu": 4})]},
        {"cpu": 1000, "nvidia.com/gpu": 4, "pods": 1},
    ),
    "a request of zero is one": (
        {"containers": [container("a", {"cpu": "0"}, {"cpu": "2"})]},
        {"pods": 1},
    ),
    "the largest init container counts where it asks for more": (
        {
            "containers": [container("a", {"cpu": "1", "memory": "2Gi"})],
            "initContainers": [container("i", {"cpu": "3"}), container("j", {"cpu": "2", "memory": "1Gi"})],
        },
        {"cpu": 3000, "memory": 2 * GI, "pods": 1},
    ),
    "sidecars run beside the containers": (
        {"containers": [container("a", {"cpu": "1"})], "initContainers": [sidecar("s", cpu="500m")]},
        {"cpu": 1500, "pods": 1},
    ),
    "an init container runs beside the sidecars started before it": (
        {
            "containers": [container("a", {"cpu": "1"})],
            "initContainers": [sidecar("s", cpu="2"), container("i", {"cpu": "3"}), sidecar("t", cpu="1")],
        },
        {"cpu": 5000, "pods": 1},
    ),
    "a sidecar started after it does not count beside an init container": (
        {
            "containers": [container("a", {"cpu": "1"})],
            "initContainers": [container("i", {"cpu": "3"}), sidecar("s", cpu="2")],
        },
        {"cpu": 3000, "pods": 1},
    ),
    "pod-level requests stand in for cpu, memory and hugepages": (
        {
            "containers": [container("a", {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": 2})],
            "resources": {"requests": {"cpu": "3", "memory": "4Gi", "hugepages-2Mi": "8Mi", "nvidia.com/gpu": 5}},
        },
        {"cpu": 3000, "memory": 4 * GI, "hugepages-2Mi": 8 * 2**20, "nvidia.com/gpu": 2, "pods": 1},
    ),
    "a pod-level limit counts only where no container asks": (
        {
            "containers": [container("a", {"cpu": "1"})],
            "resources": {"limits": {"cpu": "4", "memory": "2Gi"}},
        },
        {"cpu": 1000, "memory": 2 * GI, "pods": 1},
    ),
    "overhead comes on top, of pod-level requests too": (
        {
            "containers": [container("a", {"cpu": "1"})],
            "resources": {"requests": {"cpu": "2"}},
            "overhead": {"cpu": "250m", "memory": "1Gi"},
        },
        {"cpu": 2250, "memory": GI, "pods": 1},
    ),
    "overhead comes on top of the start-up as well": (
        {
            "containers": [container("a", {"cpu": "1"})],
            "initContainers": [container("i", {"cpu": "4"})],
            "overhead": {"cpu": "250m"},
        },
        {"cpu": 4250, "pods": 1},
    ),
    "every resource counts": (
        {"containers": [container("a", {"ephemeral-storage": "1Gi", "network.aware.com/bandwidth": "5M"})]},
        {"ephemeral-storage": GI, "network.aware.com/bandwidth": 5_000_000, "pods": 1},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_formula(case: str) -> None:
    spec, expected = CASES[case]
    assert requested(spec) == expected


def _status(container_status: dict[str, Any], **rest: Any) -> dict[str, Any]:
    return {"containerStatuses": [{"name": "a", **container_status}], **rest}


REFUSED = {"conditions": [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]}
DEFERRED = {"conditions": [{"type": "PodResizePending", "status": "True", "reason": "Deferred"}]}

RESIZES = {
    "growing: the spec is ahead": (_status({"allocatedResources": {"cpu": "1"}}), 2000),
    "shrinking: what is allocated is still held": (_status({"allocatedResources": {"cpu": "3"}}), 3000),
    "shrinking: what is actuated is still held": (
        _status({"allocatedResources": {"cpu": "1"}, "resources": {"requests": {"cpu": "4"}}}),
        4000,
    ),
    "infeasible: the spec drops out": (_status({"allocatedResources": {"cpu": "1"}}, **REFUSED), 1000),
    "infeasible in the older field": (_status({"allocatedResources": {"cpu": "1"}}, resize="Infeasible"), 1000),
    "deferred is not infeasible": (_status({"allocatedResources": {"cpu": "1"}}, **DEFERRED), 2000),
    "nothing is known of the container": (_status({}), 2000),
}


@pytest.mark.parametrize("case", RESIZES)
def test_resize_of_a_bound_pod(case: str) -> None:
    status, cpu = RESIZES[case]
    spec = {"containers": [container("a", {"cpu": "2"})]}
    assert requested(spec, {"phase": "Running", **status}, on="n1") == {"cpu": cpu, "pods": 1}


#: Wanted, allocated and actuated cpu by container, and what the pod counts: upstream's sums, the largest of them.
SUMS: dict[str, tuple[list[str], list[str], list[str], dict[str, Any], int]] = {
    "two containers change places": (["1", "2"], ["2", "1"], ["2", "1"], DEFERRED, 3000),
    "both grow, one after the other": (["2", "2"], ["2", "1"], ["1", "1"], {}, 4000),
    "both shrink, and run as before": (["1", "1"], ["1", "1"], ["2", "2"], {}, 4000),
    "each is largest in a sum of its own": (["3", "1"], ["1", "3"], ["2", "2"], {}, 4000),
    "refused: the larger of allocated and actuated": (["9", "9"], ["1", "2"], ["3", "1"], REFUSED, 4000),
    "refused: sums, not containers": (["9", "9"], ["1", "3"], ["3", "1"], REFUSED, 4000),
}


@pytest.mark.parametrize("case", SUMS)
def test_a_resize_counts_by_the_sum_of_the_pod(case: str) -> None:
    wanted, allocated, actuated, more, cpu = SUMS[case]
    spec = {"containers": [container(name, {"cpu": amount}) for name, amount in zip("ab", wanted, strict=True)]}
    given = [
        {"name": name, "allocatedResources": {"cpu": one}, "resources": {"requests": {"cpu": other}}}
        for name, one, other in zip("ab", allocated, actuated, strict=True)
    ]
    assert requested(spec, {"phase": "Running", "containerStatuses": given, **more}, on="n1")["cpu"] == cpu


def test_a_resized_sidecar_counts_in_each_sum_at_the_start_as_well() -> None:
    """Wanted: 1 + 3 run, 3 + 4 start. Allocated: the sidecar has 1, 5 run together: 4 + 1, and 1 + 4 start."""
    spec = {
        "containers": [container("a", {"cpu": "1"})],
        "initContainers": [sidecar("s", cpu="3"), container("i", {"cpu": "4"})],
    }
    status = {
        "phase": "Running",
        "containerStatuses": [{"name": "a", "allocatedResources": {"cpu": "4"}}],
        "initContainerStatuses": [{"name": "s", "allocatedResources": {"cpu": "1"}}],
    }
    assert requested(spec, status, on="n1") == {"cpu": 7000, "pods": 1}
    assert requested(spec, {**status, **REFUSED}, on="n1") == {"cpu": 5000, "pods": 1}


def test_a_pod_level_resize_of_a_bound_pod() -> None:
    spec = {"containers": [container("a", {"cpu": "1"})], "resources": {"requests": {"cpu": "2"}}}
    status = {"phase": "Running", "allocatedResources": {"cpu": "3"}}
    assert requested(spec, status, on="n1") == {"cpu": 3000, "pods": 1}


def test_a_refused_pod_level_resize_counts_what_the_kubelet_gave() -> None:
    spec = {"containers": [container("a", {"cpu": "1"})], "resources": {"requests": {"cpu": "7", "memory": "2Gi"}}}
    status = {"phase": "Running", "allocatedResources": {"cpu": "3"}, "resources": {"requests": {"cpu": "4"}}}
    assert requested(spec, {**status, **REFUSED}, on="n1") == {"cpu": 4000, "memory": 2 * GI, "pods": 1}


def test_the_overhead_of_a_resized_pod_counts_once() -> None:
    """Kubelets report the pod with its overhead: 2.25 are allocated, 2 of them to containers."""
    spec = {
        "containers": [container("a", {"cpu": "1"})],
        "resources": {"requests": {"cpu": "1"}},
        "overhead": {"cpu": "250m"},
    }
    assert requested(spec, {"phase": "Running", "allocatedResources": {"cpu": "2250m"}}, on="n1")["cpu"] == 2250
