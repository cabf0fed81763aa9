"""Schemas: what is read of each kind, quantities, null, the table of kinds."""

from __future__ import annotations

import dataclasses
import json
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


def sample(name: str) -> Objects:
    return manifests.load([SAMPLES / name])


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
