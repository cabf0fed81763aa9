"""NodeResourceTopology objects as zones, policy and scope of a node (C10)."""

from __future__ import annotations

from typing import Any

import pytest

from placer.answers.solving import solve
from placer.base.quantity import Resources
from placer.problem import Key
from placer.problem.numa import NumaNode
from placer.problem.placement import Placement
from placer.rules import verify
from tests.support import Document, instance_of, node, pod, policy

GI = 2**30


def topology(
    *zones: dict[str, Any],
    name: str = "n1",
    version: str = "v1alpha2",
    policies: tuple[str, ...] = (),
    attributes: dict[str, str] | None = None,
    metadata: dict[str, Any] | None = None,
) -> Document:
    return {
        "apiVersion": f"topology.node.k8s.io/{version}",
        "kind": "NodeResourceTopology",
        "metadata": {"name": name, **(metadata or {})},
        "topologyPolicies": list(policies),
        "attributes": [{"name": key, "value": value} for key, value in (attributes or {}).items()],
        "zones": list(zones),
    }


def zone(name: str, kind: str = "Node", costs: dict[str, int] | None = None, **resources: Any) -> dict[str, Any]:
    """A zone; an amount is capacity, allocatable and available, or a dictionary says which."""
    listed = [
        {"name": key.replace("gpu", "nvidia.com/gpu"), **(amount if isinstance(amount, dict) else _all(amount))}
        for key, amount in resources.items()
    ]
    distances = [{"name": key, "value": value} for key, value in (costs or {}).items()]
    return {"name": name, "type": kind, "resources": listed, "costs": distances}


def _all(amount: object) -> dict[str, object]:
    return dict.fromkeys(("capacity", "allocatable", "available"), amount)


def read(*docs: Document) -> tuple[NumaNode | None, list[str]]:
    """The zones of node n1, and all findings but those about fields that v1alpha1 has not."""
    instance = instance_of(node("n1", cpu=8, memory="32Gi", gpu=4), *docs)
    later = [each for each in instance.findings if "v1alpha1 NodeResourceTopology, but one of v1alpha2" in each.message]
    found = [each for each in instance.findings if each not in later]
    assert all(finding.code in ("NumaZones", "UnknownReference") for finding in found)
    return instance.nodes["n1"].numa, [finding.message for finding in found]


PLAIN = zone("node-0", cpu=4, memory="16Gi")

#: Policies and attributes to policy and scope; from scheduler-plugins' tests, and the plain names besides.
SETTINGS: dict[str, tuple[tuple[str, ...], dict[str, str], tuple[str, str]]] = {
    "nothing": ((), {}, ("none", "container")),
    "pod level": (("BestEffortPodLevel",), {}, ("best-effort", "pod")),
    "the first one counts": (("RestrictedContainerLevel", "BestEffortPodLevel"), {}, ("restricted", "container")),
    "an attribute": ((), {"topologyManagerPolicy": "restricted"}, ("restricted", "container")),
    "the attribute's scope": (
        ("BestEffortPodLevel",),
        {"topologyManagerScope": "container"},
        ("best-effort", "container"),
    ),
    "both attributes": (
        ("BestEffortPodLevel",),
        {"topologyManagerScope": "container", "topologyManagerPolicy": "restricted"},
        ("restricted", "container"),
    ),
    "the attribute's policy, the older scope": (
        ("BestEffortPodLevel",),
        {"topologyManagerPolicy": "single-numa-node"},
        ("single-numa-node", "pod"),
    ),
    "single, pod": (("SingleNUMANodePodLevel",), {}, ("single-numa-node", "pod")),
    "single, container": (("SingleNUMANodeContainerLevel",), {}, ("single-numa-node", "container")),
    "plain single": (("SingleNUMANode",), {}, ("single-numa-node", "container")),
    "plain restricted": (("Restricted",), {}, ("restricted", "container")),
    "plain best effort": (("BestEffort",), {}, ("best-effort", "container")),
    "plain none": (("None",), {}, ("none", "container")),
    "as KEP-119 spells it": (("SingleNumaNode",), {}, ("single-numa-node", "container")),
    "as KEP-119 spells it, with a scope": (("SingleNumaNodePodLevel",), {}, ("single-numa-node", "pod")),
    "the kubelet's spelling in the old list": (("single-numa-node",), {}, ("single-numa-node", "container")),
    "the old spelling in attributes": (
        (),
        {"topologyManagerPolicy": "BestEffort", "topologyManagerScope": "PodLevel"},
        ("best-effort", "pod"),
    ),
    "other attributes": ((), {"topologyManagerMaxNUMANodes": "16"}, ("none", "container")),
}


@pytest.mark.parametrize("version", ["v1alpha1", "v1alpha2"])
@pytest.mark.parametrize("case", SETTINGS)
def test_policy_and_scope(case: str, version: str) -> None:
    policies, attributes, expected = SETTINGS[case]
    found, messages = read(topology(PLAIN, policies=policies, attributes=attributes, version=version))
    assert found is not None
    assert (found.policy, found.scope) == expected
    assert messages == []


def test_zones_in_the_order_of_their_ids() -> None:
    found, messages = read(
        topology(
            zone("node-10", cpu=1, memory="1Gi", gpu={"capacity": 2, "allocatable": 2, "available": 0}),
            zone("socket-0", kind="Socket", cpu=8),
            zone("node-2", cpu=1, memory="1Gi", costs={"node-10": 20, "node-2": 10}),
        )
    )
    assert found is not None
    assert [(each.id, each.name, each.costs) for each in found.zones] == [
        (2, "node-2", (("node-10", 20), ("node-2", 10))),
        (10, "node-10", ()),
    ]
    assert found.lists == {"cpu", "memory", "nvidia.com/gpu"}
    assert found.zones[1].lists == found.lists
    assert found.zones[1].available == Resources({"cpu": 1000, "memory": GI})
    assert messages == []


#: What is written of a resource to capacity, allocatable, available.
AMOUNTS: dict[str, tuple[dict[str, object], tuple[int, int, int]]] = {
    "all three": ({"capacity": 4, "allocatable": "3500m", "available": 2}, (4000, 3500, 2000)),
    "no available, as in v1alpha1": ({"capacity": 4, "allocatable": 3}, (4000, 3000, 3000)),
    "capacity alone": ({"capacity": 4}, (4000, 4000, 4000)),
    "allocatable alone": ({"allocatable": 3}, (3000, 3000, 3000)),
    "available alone": ({"available": 2}, (2000, 2000, 2000)),
    "no allocatable": ({"capacity": 4, "available": 2}, (4000, 4000, 2000)),
    "nothing": ({}, (0, 0, 0)),
}


@pytest.mark.parametrize("case", AMOUNTS)
def test_what_is_left_out_is_the_next_that_is_there(case: str) -> None:
    written, expected = AMOUNTS[case]
    found, messages = read(topology(zone("node-0", cpu=written, memory="1Gi"), version="v1alpha1"))
    assert found is not None
    (only,) = found.zones
    assert (only.capacity["cpu"], only.allocatable["cpu"], only.available["cpu"]) == expected
    assert "cpu" in only.lists
    assert messages == []


FINDINGS: dict[str, tuple[Document, str]] = {
    "an unknown policy": (
        topology(PLAIN, policies=("SingleNuma",)),
        "topologyPolicies: found SingleNuma, expected one of None, BestEffort, BestEffortContainerLevel, "
        "BestEffortPodLevel, Restricted, RestrictedContainerLevel, RestrictedPodLevel, SingleNUMANode, "
        "SingleNUMANodeContainerLevel, SingleNUMANodePodLevel; no pod that would be aligned goes there",
    ),
    "an unknown policy beside an attribute": (
        topology(PLAIN, policies=("HyperThreading",), attributes={"topologyManagerPolicy": "restricted"}),
        "topologyPolicies: found HyperThreading, expected one of None, BestEffort, BestEffortContainerLevel, "
        "BestEffortPodLevel, Restricted, RestrictedContainerLevel, RestrictedPodLevel, SingleNUMANode, "
        "SingleNUMANodeContainerLevel, SingleNUMANodePodLevel",
    ),
    "an unknown policy in the attribute": (
        topology(PLAIN, policies=("Restricted",), attributes={"topologyManagerPolicy": "strict"}),
        "attribute topologyManagerPolicy: found strict, expected one of none, best-effort, restricted, "
        "single-numa-node; no pod that would be aligned goes there",
    ),
    "an unknown scope": (
        topology(PLAIN, attributes={"topologyManagerScope": "node"}),
        "attribute topologyManagerScope: found node, expected one of container, pod",
    ),
    "an unknown scope of a strict policy": (
        topology(PLAIN, policies=("Restricted",), attributes={"topologyManagerScope": "node"}),
        "attribute topologyManagerScope: found node, expected one of container, pod; no pod that would be aligned goes "
        "there",
    ),
    "an attribute that is nearly one that is read": (
        topology(
            PLAIN, attributes={"topologyManagerPolicies": "single-numa-node", "topologyManagerPolicyOptions": "x"}
        ),
        "attribute topologyManagerPolicies is not known and is not read; the nearest is topologyManagerPolicy",
    ),
    "more than allocatable": (
        topology(zone("node-0", cpu=5, memory="16Gi"), zone("node-1", cpu="3500m", memory="20Gi", fpga=1)),
        "its zones have more allocatable than Node n1: cpu 8500m of 8, fpga 1 of 0, memory 36Gi of 32Gi",
    ),
    "no cpu": (topology(zone("node-0", memory="1Gi")), "zone node-0 lists no cpu"),
    "no memory": (topology(zone("node-0", cpu=1)), "zone node-0 lists no memory"),
    "neither": (topology(PLAIN, zone("node-1", gpu=1)), "zone node-1 lists no cpu and no memory"),
    "no zones": (
        topology(zone("socket-0", kind="Socket", cpu=1)),
        "no zone of type Node is read (found type Socket), so nothing is aligned, and C10 keeps no pod off Node n1",
    ),
    "a type in small letters": (
        topology(zone("node-0", kind="node", cpu=1, memory="1Gi")),
        "zone node-0: found type node, expected Node, as which it is read",
    ),
    "a strange name": (
        topology(PLAIN, zone("numa-node-1", cpu=1, memory="1Gi")),
        "zone numa-node-1 is left out: expected node-<id> with an id of 0 to 63",
    ),
    "an id beyond the kubelet's": (
        topology(PLAIN, zone("node-64", cpu=1, memory="1Gi")),
        "zone node-64 is left out: expected node-<id> with an id of 0 to 63",
    ),
    "one id twice": (
        topology(PLAIN, zone("node-00", cpu=1, memory="1Gi")),
        "zone node-00 is left out: zone node-0 has the same id",
    ),
    "one resource twice": (
        topology({**PLAIN, "resources": [*PLAIN["resources"], {"name": "cpu", "capacity": 1}]}),
        "zone node-0 lists cpu twice; the first counts",
    ),
    "available above allocatable": (
        topology(zone("node-0", cpu={"capacity": 4, "allocatable": 2, "available": 3}, memory="1Gi")),
        "zone node-0: found cpu capacity 4, allocatable 2, available 3, expected none above the one before",
    ),
}


@pytest.mark.parametrize("case", FINDINGS)
def test_findings(case: str) -> None:
    document, message = FINDINGS[case]
    assert read(document)[1] == [f"NodeResourceTopology n1: {message}"]


@pytest.mark.parametrize(
    "case",
    ["an unknown policy", "an unknown policy in the attribute", "an unknown scope of a strict policy"],
)
def test_a_policy_that_is_not_known_takes_no_pod_that_would_be_aligned(case: str) -> None:
    """Neither solve nor anybody else may bind there what a kubelet aligns; what none aligns goes there as ever."""
    document, _ = FINDINGS[case]
    asks = {"requests": {"cpu": 2, "memory": "1Gi"}, "limits": {"cpu": 2, "memory": "1Gi"}}
    aligned = pod("aligned", spec={"containers": [{"name": "main", "resources": asks}]})
    burstable = pod("burstable", spec={"containers": [{"name": "main", "resources": {"requests": {"cpu": 2}}}]})
    instance = instance_of(node("n1", cpu=8, memory="32Gi", gpu=4), aligned, burstable, document)
    bindings = {Key("default", name): "n1" for name in ("aligned", "burstable")}
    assert [(each.rule, each.subjects, each.message) for each in verify(instance, Placement.of(bindings))] == [
        (
            "C10",
            ("Pod default/aligned", "Node n1"),
            "Pod default/aligned is refused by the kubelet of Node n1 (unknown, scope container): container main asks "
            "for cpu 2, memory 1Gi, to be aligned by a policy that is not known",
        )
    ]
    for method in ("greedy", "exact", "milp", "auto"):
        result = solve(instance, method=method, time_limit=600)
        assert [binding.pod.name for binding in result.placement.bindings] == ["burstable"], method
        assert {key.name: reason.code for key, reason in result.reasons.items()} == {"aligned": "NumaAlignment"}, method


@pytest.mark.parametrize("version", ["v1alpha1", "v1alpha2"])
@pytest.mark.parametrize("spelling", ["SingleNumaNode", "SingleNUMANode", "single-numa-node", "SingleNUMANodePodLevel"])
def test_six_cores_do_not_go_onto_two_zones_of_four(spelling: str, version: str) -> None:
    asks = {"limits": {"cpu": 6, "memory": "1Gi"}}
    large = pod("large", spec={"containers": [{"name": "main", "resources": asks}]})
    zones = (PLAIN, zone("node-1", cpu=4, memory="16Gi"))
    instance = instance_of(
        node("n1", cpu=8, memory="32Gi"), large, topology(*zones, policies=(spelling,), version=version)
    )
    result = solve(instance, method="greedy")
    assert result.placement == Placement(())
    assert [reason.code for reason in result.reasons.values()] == ["NumaAlignment"]


def test_a_node_that_is_not_there() -> None:
    found, messages = read(topology(PLAIN, name="n9"))
    assert found is None
    assert messages == ["Node n9, named by NodeResourceTopology n9, is not in the instance"]


def test_nothing_is_read_where_the_rule_is_off() -> None:
    broken = topology(zone("node-0"), name="n9", policies=("SingleNuma",))
    assert read(topology(PLAIN), broken, policy(rules={"C10": "off"})) == (None, [])
