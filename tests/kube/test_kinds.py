"""Schemas: what is read of each kind, quantities, null, the table of kinds."""

from __future__ import annotations

import dataclasses
import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from placer.kube import manifests
from placer.kube.base import Quantities
from placer.kube.core import NodeManifest
from placer.kube.kinds import BY_ATTRIBUTE, KINDS, find_kinds
from placer.kube.manifests import Objects
from placer.kube.reader import Misfit, SchemaReader

SAMPLES = Path(__file__).parent.parent / "data" / "samples"


def one(document: dict[str, Any]) -> Any:
    objects = manifests.validate(manifests.from_documents([document]))
    (found,) = [item for attribute in BY_ATTRIBUTE for item in getattr(objects, attribute)]
    return found


def pod(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec}


@pytest.mark.parametrize(
    ("written", "nano"),
    [
        ("100m", 10**8),
        (0.5, 5 * 10**8),
        ("1Ki", 1024 * 10**9),
        (1e3, 10**12),
        ("0", 0),
        (1e-9, 1),
        ("", None),
    ],
)
def test_quantities(written: object, nano: int | None) -> None:
    text = json.dumps({"cpu": written}).encode()
    if nano is None:
        with pytest.raises(Misfit, match="a quantity such as 500m, 2 or 4Gi"):
            SchemaReader(Quantities).read(text)
    else:
        assert SchemaReader(Quantities).read(text) == {"cpu": nano}


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("9223372036854775808", "at most 2\\^63 - 1 units"),
        ("8Ei", "at most"),
        (10**400, "at most"),
        ("-1", "at least 0"),
        (-0.1, "at least 0"),
        ("1 Gi", "such as"),
        ("1" * 200, "such as"),
        (True, "such as"),
        (None, "such as"),
    ],
)
def test_bad_quantities(written: object, message: str) -> None:
    with pytest.raises(Misfit, match=message):
        SchemaReader(Quantities).read(json.dumps({"cpu": written}).encode())


def test_null_is_left_out() -> None:
    item = one(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": "a",
                "labels": None,
                "creationTimestamp": None,
                "namespace": None,
                "ownerReferences": None,
            },
            "spec": {"containers": None, "nodeName": None, "priority": None, "affinity": {"nodeAffinity": None}},
            "status": None,
        }
    )
    assert (item.namespace, item.spec.containers, item.spec.node_name, item.status) == ("default", None, None, None)


def test_pod_as_the_kubelet_reports_it() -> None:
    status = {
        "phase": "Running",
        "conditions": [{"type": "PodResizePending", "status": "True", "reason": "Infeasible", "lastProbeTime": None}],
        "containerStatuses": [
            {"name": "c", "allocatedResources": {"cpu": "2"}, "resources": {"requests": {"cpu": "1"}}}
        ],
        "initContainerStatuses": [{"name": "i", "resources": {"limits": {"memory": "1Gi"}}}],
        "allocatedResources": {"cpu": "3"},
        "startTime": "2026-01-31T12:00:00Z",
    }
    containers = [
        {"name": "c", "ports": [{"hostPort": 80, "hostIP": "10.0.0.1", "containerPort": 80, "protocol": "UDP"}]}
    ]
    spec = {
        "containers": containers,
        "initContainers": [{"name": "i", "restartPolicy": "Always"}],
        "overhead": {"cpu": "1m"},
    }
    item = one(pod(**spec) | {"status": status})
    assert item.status.conditions[0].reason == "Infeasible"
    assert item.status.container_statuses[0].allocated_resources == {"cpu": 2 * 10**9}
    assert item.status.init_container_statuses[0].resources.limits == {"memory": 2**30 * 10**9}
    assert item.status.start_time == datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert item.spec.init_containers[0].restart_policy == "Always"
    assert (item.spec.containers[0].ports[0].host_ip, item.spec.containers[0].ports[0].host_port) == ("10.0.0.1", 80)
    assert item.spec.overhead == {"cpu": 10**6}


def test_affinity_is_read_by_its_long_names() -> None:
    required, preferred = (f"{word}DuringSchedulingIgnoredDuringExecution" for word in ("required", "preferred"))
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    affinity = {
        "nodeAffinity": {required: {"nodeSelectorTerms": [term]}, preferred: [{"weight": 1, "preference": term}]},
        "podAffinity": {preferred: [{"weight": 1}]},
        "podAntiAffinity": {required: [{"topologyKey": "host", "labelSelector": {"matchLabels": {"a": "b"}}}]},
    }
    found = one(pod(affinity=affinity)).spec.affinity
    assert found.node_affinity.required.node_selector_terms[0].match_expressions[0].values == ("a",)
    assert (len(found.node_affinity.preferred), len(found.pod_affinity.preferred)) == (1, 1)
    assert found.pod_affinity.required is None
    assert found.pod_anti_affinity.required[0].label_selector.match_labels == {"a": "b"}


def test_names_of_attributes_are_no_names_of_fields() -> None:
    assert one(pod(node_name="n", nodeName="m")).spec.node_name == "m"
    assert one(pod(node_name="n")).spec.node_name is None


def test_last_applied_is_not_kept() -> None:
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": "{}", "a": "b"}
    item = one({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "annotations": annotations}, "spec": {}})
    assert item.metadata.annotations == {"a": "b"}


@pytest.mark.parametrize(
    ("status", "found"),
    [
        ({"allocatable": {"cpu": "1"}, "capacity": {"cpu": "2"}}, {"cpu": 10**9}),
        ({"capacity": {"cpu": "2"}}, {"cpu": 2 * 10**9}),
        ({"allocatable": {}, "capacity": {"cpu": "2"}}, {}),
        (None, {}),
    ],
)
def test_allocatable_falls_back_on_capacity(status: object, found: Quantities) -> None:
    node = one({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": status})
    assert isinstance(node, NodeManifest)
    assert node.allocatable == found


def test_objects_cannot_be_changed() -> None:
    item = one(pod())
    with pytest.raises(AttributeError, match="immutable"):
        item.spec = None


def sample(name: str) -> Objects:
    return manifests.load([SAMPLES / name])


def test_app_group_sample() -> None:
    (group,) = sample("app-group.yaml").app_groups
    dependency = group.spec.workloads[0].dependencies[0]
    assert (dependency.workload.selector, dependency.max_network_cost) == ("P2", 30)
    assert dependency.min_bandwidth == 100 * 2**20 * 10**9
    assert group.spec.topology_sorting_algorithm == "KahnSort"


def test_network_topology_in_both_spellings() -> None:
    (kep,) = sample("network-topology-kep.yaml").network_topologies
    region, zone = kep.spec.weights[0].topologies
    assert (kep.spec.configmap_name, region.topology_key) == ("netperfMetrics", "topology.kubernetes.io/region")
    assert (zone.origins[2].origin, zone.origins[2].costs[0].destination, zone.origins[2].costs[0].network_cost) == (
        "z3",
        "z4",
        10,
    )
    costs = [{"destination": "z4", "networkCost": 10, "bandwidthCapacity": "1Gi"}]
    origins = [{"origin": "z3", "costList": costs}]
    weights = [
        {"name": "UserDefined", "topologyList": [{"topologyKey": "topology.kubernetes.io/zone", "originList": origins}]}
    ]
    shipped = one(
        {
            "apiVersion": "networktopology.diktyo.x-k8s.io/v1alpha1",
            "kind": "NetworkTopology",
            "metadata": {"name": "nt"},
            "spec": {"configmapName": "c", "weights": weights},
        }
    )
    assert shipped.spec.weights[0].topologies[0].origins[0].costs == zone.origins[2].costs


@pytest.mark.parametrize("group", ["scheduling.sigs.x-k8s.io", "diktyo.k8s.io", "appgroup.diktyo.x-k8s.io"])
def test_groups_of_the_proposal(group: str) -> None:
    workload = {"kind": "Deployment", "apiVersion": "apps/v1", "namespace": "default", "name": "w"}
    spec = {"workloads": [{"workload": workload}]}
    item = one({"apiVersion": f"{group}/v1alpha1", "kind": "AppGroup", "metadata": {"name": "a"}, "spec": spec})
    assert (item.group, item.spec.workloads[0].workload.selector) == (group, None)


def test_numa_samples() -> None:
    (old,), (new,) = (sample(f"numa-{version}.yaml").node_resource_topologies for version in ("v1alpha1", "v1alpha2"))
    assert (old.topology_policies, len(old.zones)) == (("SingleNUMANode",), 4)
    cpu = old.zones[0].resources[0]
    assert (cpu.name, cpu.capacity, cpu.allocatable, cpu.available) == ("cpu", 20 * 10**9, 15 * 10**9, 10 * 10**9)
    assert new.zones[1].resources[1].name == "example.com/deviceA"


def policy(spec: object) -> Any:
    return one({"apiVersion": "placer.dev/v1alpha1", "kind": "Policy", "metadata": {"name": "p"}, "spec": spec})


def test_policy() -> None:
    spec = policy(
        {
            "levels": ["locality", "placed"],
            "networkCost": "majority",
            "network": {"topology": "net/nt", "weights": "UserDefined"},
            "topologyKeys": ["switch", "rack"],
            "locality": "all",
            "resourceWeights": {"cpu": 0.1, "nvidia.com/gpu": 3},
            "rules": {"C8": "off", "C9": False, "C10": None},
        }
    ).spec
    assert (spec.levels, spec.network_cost, spec.locality) == (("locality", "placed"), "majority", "all")
    assert spec.resource_weights == {"cpu": Decimal("0.1"), "nvidia.com/gpu": 3}
    assert (spec.rules.c8, spec.rules.c9, spec.rules.c10, spec.rules.c11) == ("off", "off", None, None)
    assert policy(None).spec is None
    assert policy({"network": {"topology": None, "weights": None}}).spec.network.topology is None


def test_off_without_quotes_in_yaml() -> None:
    text = b"apiVersion: placer.dev/v1alpha1\nkind: Policy\nmetadata: {name: p}\nspec: {rules: {C9: off}}\n"
    (found,) = manifests.validate(manifests.split([manifests.Text("p", text)])).policies
    assert found.spec is not None
    assert found.spec.rules is not None
    assert found.spec.rules.c9 == "off"


def test_every_kind_has_a_place_of_its_own() -> None:
    places = {field.name for field in dataclasses.fields(Objects)}
    assert set(BY_ATTRIBUTE) <= places
    assert {info.attribute for info in KINDS.values()} == set(BY_ATTRIBUTE)


@pytest.mark.parametrize(
    ("word", "groups"),
    [
        ("no", [""]),
        ("deploy", ["apps"]),
        ("job", ["batch.volcano.sh", "batch"]),
        ("vcjob", ["batch.volcano.sh"]),
        ("jobs.v1.batch", ["batch"]),
        ("podgroup", ["scheduling.volcano.sh", "scheduling.x-k8s.io", "scheduling.k8s.io", "scheduling.run.ai"]),
        ("podgroup.scheduling.x-k8s.io", ["scheduling.x-k8s.io"]),
        ("hn", ["topology.volcano.sh"]),
        ("PVC", [""]),
        ("service", []),
        ("podgroup.apps", []),
    ],
)
def test_kinds_as_kubectl_calls_them(word: str, groups: list[str]) -> None:
    assert [info.group for info in find_kinds(word)] == groups
