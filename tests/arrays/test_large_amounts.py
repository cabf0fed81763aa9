"""Amounts without end: they are no fault, leave the others alone, and nothing is proved by rounded numbers."""

from __future__ import annotations

from typing import Any

import pytest

from placer.answers.solving import solve
from placer.arrays import Solution
from placer.arrays.amounts import Scale
from placer.arrays.dense_builder import make_dense
from placer.base.quantity import Resources
from placer.bounds import named_bounds
from placer.problem.result import Verdict
from placer.search.incumbent import Incumbent
from tests.arrays.test_arrays import some_pods
from tests.support import instance_of, node
from tests.world import World


def test_a_pod_that_fits_nowhere_does_not_touch_the_others() -> None:
    """What it asks for is one step more than any node has, however much it is."""
    free = [Resources({"memory": 2 * 2**30 + 5}), Resources({"memory": -1})]
    pods = some_pods([{"memory": 2**30}, {"memory": 2**63 - 1}, {"other": 1}])
    scale = Scale([pod.requests for pod in pods], free)
    assert (scale.resources, scale.divisors, scale.exact) == (("memory", "other"), (2**30, 1), True)
    assert [scale.request(pod.requests).tolist() for pod in pods] == [[1, 0], [2, 0], [0, 1]]
    assert scale.room(free).tolist() == [[1, 0], [0, 0]]
    assert [scale.fits_nowhere(pod.requests) for pod in pods] == [False, True, True]


def test_where_amounts_are_not_exact_no_bound_counts() -> None:
    """Both pods fit by the rounded numbers or not: nothing is said to be proved, and what is found is verified."""
    world = World()
    world.node("a", gpu=2**62)
    for name, asked in (("one", 2**61 + 1), ("two", 2**61 - 1)):
        world.pod(name, gpu=asked)
    dense = make_dense(world.instance())
    assert not dense.exact
    incumbent = Incumbent(dense, 0.0)
    incumbent.offer(Solution(), "test")
    incumbent.add_bounds(*named_bounds(dense))
    assert set(incumbent.bounds()) == {None}
    assert solve(world.instance(), method="greedy", time_limit=None).verdict is Verdict.FEASIBLE


@pytest.mark.parametrize(
    ("room", "zone", "pods", "placed"),
    [
        ("4", None, ["10P", "1"], 1),  # more than 2^63 milli-cores
        ("9E", "9E", ["1", "2"], 2),
        ("16", "4E", ["1", "9E"], 1),
    ],
)
def test_amounts_without_end_are_no_fault(room: str, zone: str | None, pods: list[str], placed: int) -> None:
    """The others are placed, in zones too."""
    documents: list[dict[str, Any]] = [node("a", cpu=room, memory="8Gi", pods=9)]
    if zone is not None:
        listed = [
            {"name": name, "capacity": amount, "available": amount}
            for name, amount in (("cpu", zone), ("memory", "8Gi"))
        ]
        attributes = [{"name": "topologyManagerPolicy", "value": "single-numa-node"}]
        documents.append(
            {
                "apiVersion": "topology.node.k8s.io/v1alpha2",
                "kind": "NodeResourceTopology",
                "metadata": {"name": "a"},
                "attributes": attributes,
                "zones": [{"name": f"node-{number}", "type": "Node", "resources": listed} for number in (0, 1)],
            }
        )
    for number, cpu in enumerate(pods):
        asked = {"cpu": cpu, "memory": "1Gi"}
        containers = [{"name": "c", "image": "i", "resources": {"requests": asked, "limits": asked}}]
        documents.append(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": f"p{number}", "namespace": "default"},
                "spec": {"schedulerName": "placer", "containers": containers},
            }
        )
    result = solve(instance_of(*documents), time_limit=None, workers=1)
    assert result.placement is not None
    assert len(result.placement.bindings) == placed
    assert result.verdict is Verdict.OPTIMAL
