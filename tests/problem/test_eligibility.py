"""Tolerations, selectors, node affinity, volumes: what keeps a pod off a node (C3); host ports (C2)."""

from __future__ import annotations

from typing import Any

import pytest

from placer.problem import HostPort, Instance, Key
from tests.support import instance_of, node, pod

TAINT = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}


def only(instance: Instance, name: str = "p") -> Any:
    return instance.pods[Key("default", name)]


def admitted(spec: dict[str, Any], *nodes: Any) -> set[str]:
    instance = instance_of(*nodes, pod("p", spec=spec))
    return {name for name, each in instance.nodes.items() if only(instance).constraints.admits(each)}


def tainted(name: str, *taints: dict[str, str], **spec: Any) -> Any:
    return {**node(name), "spec": {"taints": list(taints), **spec}}


def affinity(*terms: dict[str, Any]) -> dict[str, Any]:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return {"affinity": {"nodeAffinity": required}}


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    found: dict[str, Any] = {"key": key, "operator": operator}
    return {**found, "values": list(values)} if values else found


TOLERATIONS = {
    "none": ([], False),
    "equal": ([{"key": "gpu", "operator": "Equal", "value": "yes", "effect": "NoSchedule"}], True),
    "equal is the default, any effect where none is named": ([{"key": "gpu", "value": "yes"}], True),
    "another value": ([{"key": "gpu", "value": "no"}], False),
    "another key": ([{"key": "cpu", "value": "yes"}], False),
    "another effect": ([{"key": "gpu", "operator": "Exists", "effect": "NoExecute"}], False),
    "exists": ([{"key": "gpu", "operator": "Exists"}], True),
    "everything": ([{"operator": "Exists"}], True),
    "comparing numbers is behind a gate that is off": ([{"key": "gpu", "operator": "Gt", "value": "yes"}], False),
}


@pytest.mark.parametrize("case", TOLERATIONS)
def test_tolerations(case: str) -> None:
    tolerations, expected = TOLERATIONS[case]
    assert (admitted({"tolerations": tolerations}, tainted("n1", TAINT)) == {"n1"}) is expected


def test_no_execute_keeps_pods_off() -> None:
    assert admitted({}, tainted("n1", {"key": "a", "effect": "NoExecute"})) == set()


@pytest.mark.parametrize(
    ("conditions", "ready"), [([], True), (["True"], True), (["False"], False), (["Unknown"], False)]
)
def test_a_node_without_a_ready_condition_is_ready(conditions: list[str], ready: bool) -> None:
    status = {"allocatable": {"pods": 1}, "conditions": [{"type": "Ready", "status": each} for each in conditions]}
    other = {"type": "DiskPressure", "status": "False"}
    status["conditions"].append(other)
    assert (admitted({"tolerations": [{"operator": "Exists"}]}, {**node("n1"), "status": status}) == {"n1"}) is ready


OPERATORS = {
    "In": (expression("size", "In", "4", "8"), {"n4", "n8"}),
    "NotIn takes nodes without the label": (expression("size", "NotIn", "4"), {"n8", "none", "word"}),
    "Exists": (expression("size", "Exists"), {"n4", "n8", "word"}),
    "DoesNotExist": (expression("size", "DoesNotExist"), {"none"}),
    "Gt compares integers": (expression("size", "Gt", "4"), {"n8"}),
    "Lt compares integers": (expression("size", "Lt", "8"), {"n4"}),
}
SIZES = (node("n4", {"size": "4"}), node("n8", {"size": "8"}), node("none"), node("word", {"size": "big"}))


@pytest.mark.parametrize("case", OPERATORS)
def test_operators_of_node_affinity(case: str) -> None:
    written, expected = OPERATORS[case]
    assert admitted(affinity({"matchExpressions": [written]}), *SIZES) == expected


def test_terms_are_alternatives_and_expressions_are_not() -> None:
    both = {"matchExpressions": [expression("size", "Exists"), expression("size", "NotIn", "word", "8")]}
    field = {"matchFields": [expression("metadata.name", "In", "none")]}
    assert admitted(affinity(both, field), *SIZES) == {"n4", "none", "word"}


def test_an_empty_term_takes_no_node() -> None:
    assert admitted(affinity({}), *SIZES) == set()
    assert admitted(affinity({}, {"matchExpressions": [expression("size", "Gt", "7")]}), *SIZES) == {"n8"}


def claim(name: str, volume: str | None = None, phase: str | None = "Bound", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {**spec, **({"volumeName": volume} if volume else {})},
        "status": {"phase": phase} if phase else {},
    }


def volume(name: str, zone: str | None) -> dict[str, Any]:
    required = {"nodeSelectorTerms": [{"matchExpressions": [expression("zone", "In", zone)]}]} if zone else None
    spec = {"nodeAffinity": {"required": required}} if required else {}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}


def claims(*names: str) -> dict[str, Any]:
    return {"volumes": [{"name": f"v-{name}", "persistentVolumeClaim": {"claimName": name}} for name in names]}


ZONES = (node("a", {"zone": "a"}), node("b", {"zone": "b"}))


def test_a_bound_volume_decides_where_the_pod_can_run() -> None:
    spec = claims("data", "scratch") | {"nodeSelector": {"zone": "b"}}
    instance = instance_of(
        *ZONES,
        claim("data", "pv1"),
        claim("scratch", "pv2"),
        volume("pv1", "b"),
        volume("pv2", None),
        pod("p", spec=spec),
        pod("q", spec=claims("data")),
    )
    assert only(instance).unsupported == ()
    for name in ("p", "q"):
        constraints = only(instance, name).constraints
        assert [each for each in instance.nodes if constraints.admits(instance.nodes[each])] == ["b"]


def test_a_bound_claim_of_an_unknown_volume_is_a_finding() -> None:
    instance = instance_of(*ZONES, claim("data", "pv1"), pod("p", spec=claims("data")))
    assert only(instance).unsupported == ()
    assert [(each.code, each.object) for each in instance.findings] == [("UnknownReference", "PersistentVolume pv1")]


PORTS = {
    "no host port": ({"containerPort": 80}, False, ()),
    "a host port": ({"containerPort": 80, "hostPort": 8080}, False, (HostPort("TCP", "0.0.0.0", 8080),)),
    "protocol and address": (
        {"hostPort": 53, "protocol": "UDP", "hostIP": "10.0.0.1"}, False, (HostPort("UDP", "10.0.0.1", 53),),
    ),
    "with hostNetwork every port is one": ({"containerPort": 80}, True, (HostPort("TCP", "0.0.0.0", 80),)),
}  # fmt: skip


@pytest.mark.parametrize("case", PORTS)
def test_host_ports(case: str) -> None:
    port, host_network, expected = PORTS[case]
    spec = {"containers": [{"name": "a", "ports": [port]}], "hostNetwork": host_network}
    assert only(instance_of(node("n1"), pod("p", spec=spec))).host_ports == expected


def test_host_ports_of_sidecars_count_and_of_init_containers_do_not() -> None:
    starting = {"name": "i", "ports": [{"hostPort": 1}]}
    staying = {"name": "s", "ports": [{"hostPort": 2}], "restartPolicy": "Always"}
    spec = {"containers": [{"name": "a"}], "initContainers": [starting, staying]}
    assert [port.port for port in only(instance_of(node("n1"), pod("p", spec=spec))).host_ports] == [2]
