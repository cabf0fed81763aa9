"""The NodeResourceTopologyMatch plugin's own cases: where it filters a node out, the kubelet would refuse the pod.

The plugin foresees single-numa-node only, and for one pod at a time; as far as it goes the replay says the same, with
the differences that are listed here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from placer.base.quantity import Resources, format_amount
from placer.problem import Key
from placer.problem.numa import TopologyManager
from tests.support import Document, instance_of, node, pod

CASES = {
    case["id"]: case for case in yaml.safe_load((Path(__file__).parent / "data" / "nrt_cases.yaml").read_text("utf-8"))
}
FILTERS = [
    (set_name, index)
    for set_name, case in CASES.items()
    if case["kind"] == "nrt_filter"
    for index in range(len(case["cases"]))
]
#: The plugin lets these in and the kubelet does not: cpus of an init container must be used again before others, and
#: the zone that has them lacks room for what follows.
REUSED = {("nrt-filter-container-scope", 11), ("nrt-filter-container-scope", 12)}
#: What the plugin says to what refuses.
REFUSALS = {
    "cannot align container": "container ",
    "cannot align init container": "init container ",
    "cannot align pod": "the pod ",
}


def _topology(written: Mapping[str, Any]) -> Document:
    zones = []
    for number, amounts in enumerate(written["zones"]):
        resources = [
            {"name": name, "capacity": amount, "allocatable": amount, "available": amount}
            for name, amount in amounts.items()
            if name != "id"
        ]
        zones.append({"name": f"node-{amounts.get('id', number)}", "type": "Node", "resources": resources})
    return {
        "apiVersion": "topology.node.k8s.io/v1alpha2",
        "kind": "NodeResourceTopology",
        "metadata": {"name": "n1"},
        "attributes": [
            {"name": "topologyManagerPolicy", "value": written["policy"]},
            {"name": "topologyManagerScope", "value": written["scope"]},
        ],
        "zones": zones,
    }


def _node(written: Mapping[str, Any]) -> Document:
    total = Resources.parse({"pods": "110", **_texts(written.get("extra", {}))})
    for amounts in written["zones"]:
        total += Resources.parse(_texts({name: amount for name, amount in amounts.items() if name != "id"}))
    return node("n1", None, **{name: format_amount(name, amount) for name, amount in total.items()})


def _texts(amounts: Mapping[str, object]) -> dict[str, str]:
    return {name: str(amount) for name, amount in amounts.items()}


def _pod(case: Mapping[str, Any]) -> Document:
    spec = {"containers": list(_containers(case["containers"], case.get("lim", "equal")))}
    if "init" in case:
        spec["initContainers"] = list(_containers(case["init"], "equal"))
    return pod("p", spec=spec)


def _containers(written: list[dict[str, object]], limits: object) -> Iterator[Document]:
    for number, requests in enumerate(written):
        said = {"equal": requests, "none": {}}.get(limits, limits) if isinstance(limits, str) else limits
        yield {"name": f"c{number}", "resources": {"requests": _texts(requests), "limits": said}}


@pytest.mark.parametrize(("set_name", "index"), FILTERS, ids=lambda value: str(value))
def test_the_kubelet_refuses_what_the_plugin_filters_out(set_name: str, index: int) -> None:
    case = CASES[set_name]["cases"][index]
    written = CASES[set_name]["nodes"][case["node"]]
    instance = instance_of(_node(written), _topology(written), _pod(case))
    refusal = TopologyManager(instance.aligning_nodes["n1"]).admit(instance.pods[Key("default", "p")].numa).refusal
    if (set_name, index) in REUSED:
        assert case["verdict"] == "fit"
        assert "which the kubelet reuses from an earlier init container" in refusal
        return
    assert bool(refusal) == (case["verdict"] != "fit")
    if refusal:
        assert refusal.startswith(REFUSALS[case["verdict"]])


def test_there_are_enough_of_both() -> None:
    verdicts = [CASES[set_name]["cases"][index]["verdict"] for set_name, index in FILTERS]
    assert len(verdicts) >= 45
    assert 15 <= verdicts.count("fit") <= 35


@pytest.mark.parametrize("case", CASES["nrt-config"]["cases"], ids=str)
def test_policy_scope_and_max_numa_nodes(case: Mapping[str, Any]) -> None:
    """But for plain names of policies: the plugin leaves them out, here they mean what they say, as the API has it."""
    document = {
        **_topology({"policy": "none", "scope": "container", "zones": [{"cpu": 1, "memory": "1Gi"}]}),
        "topologyPolicies": case.get("policies", []),
        "attributes": [{"name": name, "value": value} for name, value in case.get("attributes", {}).items()],
    }
    numa = instance_of(node("n1"), document).nodes["n1"].numa
    assert numa is not None
    expected = ["restricted", "container", 8] if "plain" in case.get("name", "") else case["expect"]
    assert [numa.policy, numa.scope, numa.max_numa_nodes] == expected
