"""What is written into a NetworkTopology: the measured list, nothing of the user's, and a status."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from placer.kube.core import ConfigMapManifest
from placer.problem import Link, Node
from placer.problem.communication import REGION, ZONE
from placer.problem.instance_builder import read_nodes
from placer.problem.network_objects import NETPERF_COSTS
from placer.topology.controllers import NetworkTopologyUpdate, network_topology_update
from tests.support import node, objects_of

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
REGION_LABEL, ZONE_LABEL = "topology.kubernetes.io/region", "topology.kubernetes.io/zone"
PLACES = {"n1": ("r1", "a"), "n2": ("r1", "b"), "n3": ("r2", "c")}

USER = {
    "name": "UserDefined",
    "topologyList": [
        {
            "topologyKey": REGION_LABEL,
            "originList": [
                {
                    "origin": "r1",
                    "originInterStatistics": {"minCost": 3},
                    "costList": [
                        {"destination": "r2", "networkCost": 77, "bandwidthCapacity": "10Gi", "isAllowed": True}
                    ],
                }
            ],
        }
    ],
}
OTHER = {"name": "Friday", "topologyList": [], "note": "not in any schema"}


def nodes() -> dict[str, Node]:
    labels = {name: {REGION_LABEL: region, ZONE_LABEL: zone} for name, (region, zone) in PLACES.items()}
    return read_nodes(objects_of(*(node(name, each) for name, each in labels.items())).nodes)


def config_map(latencies: Mapping[tuple[str, str], int]) -> ConfigMapManifest:
    """Latencies in milliseconds."""
    data = {
        f"netperf.p90.latency.milliseconds.origin.{one}.destination.{two}": str(latency)
        for (one, two), latency in latencies.items()
    }
    document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "netperf-metrics"}, "data": data}
    return objects_of(document).config_maps[0]


MEASURED = config_map({("n1", "n2"): 5, ("n1", "n3"): 20})


def topology(*weights: Mapping[str, Any], status: Mapping[str, Any] | None = None, **top: Any) -> dict[str, Any]:
    return {
        "apiVersion": "networktopology.diktyo.x-k8s.io/v1alpha1",
        "kind": "NetworkTopology",
        "metadata": {"name": "nt-default"},
        "spec": {"configmapName": "netperf-metrics", "weights": list(weights)},
        **({} if status is None else {"status": status}),
        **top,
    }


def update(written: Mapping[str, Any], **options: Any) -> NetworkTopologyUpdate:
    """The written object is not changed, which is checked each time."""
    before = copy.deepcopy(written)
    settings: dict[str, Any] = {"nodes": nodes(), "config_map": MEASURED, "allocated": {}, "now": NOW}
    made = network_topology_update(written, **settings | options)
    assert written == before
    return made


def with_update(written: Mapping[str, Any], made: NetworkTopologyUpdate) -> dict[str, Any]:
    return {**written, "spec": {**written["spec"], "weights": made.weights}, "status": made.status}


def entries(made: NetworkTopologyUpdate) -> dict[tuple[str, str], Mapping[str, Any]]:
    """Entries of the measured list without their destination."""
    (found,) = (each for each in made.weights if each["name"] == NETPERF_COSTS)
    return {
        (origin["origin"], entry["destination"]): {key: value for key, value in entry.items() if key != "destination"}
        for part in found["topologyList"]
        for origin in part["originList"]
        for entry in origin["costList"]
    }


def test_the_measured_list_stands_beside_the_users_own() -> None:
    made = update(topology(USER, OTHER))
    assert made.weights[:2] == [USER, OTHER]
    assert made.weights[2] == {
        "name": "NetperfCosts",
        "topologyList": [
            {
                "topologyKey": REGION_LABEL,
                "originList": [
                    {
                        "origin": "r1",
                        "costList": [
                            {
                                "destination": "r2",
                                "networkCost": 20,
                                "bandwidthCapacity": "10Gi",
                                "bandwidthAllocated": "0",
                            }
                        ],
                    },
                    {
                        "origin": "r2",
                        "costList": [{"destination": "r1", "networkCost": 20, "bandwidthAllocated": "0"}],
                    },
                ],
            },
            {
                "topologyKey": ZONE_LABEL,
                "originList": [
                    {"origin": "a", "costList": [{"destination": "b", "networkCost": 5, "bandwidthAllocated": "0"}]},
                    {"origin": "b", "costList": [{"destination": "a", "networkCost": 5, "bandwidthAllocated": "0"}]},
                ],
            },
        ],
    }
    assert made.status == {"nodeCount": 3, "weightCalculationTime": "2026-03-01T12:00:00Z"}
    assert made.findings == ()


def test_what_is_written_reads_as_what_was_meant() -> None:
    """Through the schema, so that the names of the fields are those that are read."""
    made = with_update(topology(USER), update(topology(USER)))
    (read,) = objects_of(made).network_topologies
    assert read.spec is not None
    assert [(each.name, len(each.topologies or ())) for each in read.spec.weights or ()] == [
        ("UserDefined", 1),
        ("NetperfCosts", 2),
    ]


def test_saying_nothing_new_changes_nothing() -> None:
    written = topology(USER, OTHER)
    first = with_update(written, update(written))
    again = update(first, now=NOW + timedelta(days=2))
    assert with_update(first, again) == first


def test_new_costs_have_a_new_time_and_the_old_place() -> None:
    written = topology(USER)
    made = update(written).weights[1]
    first = topology(made, USER, status={"nodeCount": 9, "weightCalculationTime": "2026-01-01T00:00:00Z"})
    later = update(first, config_map=config_map({("n1", "n2"): 6, ("n1", "n3"): 20}))
    assert [each["name"] for each in later.weights] == ["NetperfCosts", "UserDefined"]
    assert entries(later)["a", "b"]["networkCost"] == 6
    assert later.status == {"nodeCount": 3, "weightCalculationTime": "2026-03-01T12:00:00Z"}


def test_bandwidth_is_written_beside_measured_costs_only_and_is_no_new_calculation() -> None:
    written = topology(USER)
    first = with_update(written, update(written))
    taken = {Link(REGION, "r1", "r2"): 300_000_000, Link(ZONE, "b", "a"): 7, Link(ZONE, "a", "zz"): 5}
    made = update(first, allocated=taken, now=NOW + timedelta(days=1))
    assert made.weights[0] == USER
    assert {pair: entry["bandwidthAllocated"] for pair, entry in entries(made).items()} == {
        ("r1", "r2"): "300000000",
        ("r2", "r1"): "0",
        ("a", "b"): "0",
        ("b", "a"): "7",
    }
    assert made.status == first["status"]


def test_a_link_that_is_not_measured_any_more_has_no_entry() -> None:
    written = topology(USER)
    first = with_update(written, update(written))
    made = update(first, config_map=config_map({("n1", "n2"): 5}))
    assert entries(made).keys() == {("a", "b"), ("b", "a")}
    nothing = update(first, config_map=config_map({}))
    assert nothing.weights == [USER]
    assert nothing.status == {"nodeCount": 3, "weightCalculationTime": "2026-03-01T12:00:00Z"}


def test_without_a_config_map_measured_costs_stay_and_none_are_made_up() -> None:
    made = update(topology(USER), config_map=None)
    assert (made.weights, made.status) == ([USER], {"nodeCount": 3})
    first = with_update(topology(USER), update(topology(USER)))
    kept = update(first, config_map=None, now=NOW + timedelta(days=1), allocated={Link(ZONE, "a", "b"): 4})
    assert entries(kept)["a", "b"] == {"networkCost": 5, "bandwidthAllocated": "4"}
    assert kept.status == first["status"]


def test_other_fields_of_measured_entries_stay_and_the_users_capacity_wins() -> None:
    first = with_update(topology(USER), update(topology(USER)))
    measured = first["spec"]["weights"][1]["topologyList"]
    measured[0]["originList"][0]["costList"][0] |= {"isAllowed": False, "bandwidthCapacity": "1G"}
    measured[1]["originList"][0]["costList"][0] |= {"bandwidthCapacity": "5G"}
    made = entries(update(first))
    assert made["r1", "r2"] == {
        "networkCost": 20,
        "isAllowed": False,
        "bandwidthCapacity": "10Gi",
        "bandwidthAllocated": "0",
    }
    assert made["a", "b"] == {"networkCost": 5, "bandwidthCapacity": "5G", "bandwidthAllocated": "0"}


def test_an_object_of_the_kep_is_written_in_its_spelling() -> None:
    user = {
        "name": "UserDefined",
        "costList": [
            {
                "topologyKey": ZONE_LABEL,
                "originCosts": [
                    {"origin": "a", "costs": [{"destination": "b", "networkCost": 5, "bandwidthCapacity": "1Gi"}]}
                ],
            }
        ],
    }
    written = topology(user, apiVersion="scheduling.sigs.x-k8s.io/v1alpha1")
    made = update(written, config_map=config_map({("n1", "n2"): 5}))
    costs = made.weights[1]["costList"]
    assert costs[0]["originCosts"][0] == {
        "origin": "a",
        "costs": [{"destination": "b", "networkCost": 5, "bandwidthCapacity": "1Gi", "bandwidthAllocated": "0"}],
    }
    first = with_update(written, made)
    assert with_update(first, update(first, config_map=config_map({("n1", "n2"): 5}), now=NOW + timedelta(1))) == first


def test_unit_and_percentile_are_the_callers() -> None:
    data = {
        "netperf_p99_latency_microseconds.origin.n1.destination.n2": "650",
        "netperf_p50_latency_microseconds.origin.n1.destination.n2": "130",
    }
    measured = ConfigMapManifest(api_version="v1", kind="ConfigMap", metadata=MEASURED.metadata, data=data)
    made = update(topology(), config_map=measured, percentile=99, unit=100)
    assert entries(made)["a", "b"]["networkCost"] == 7
    assert [finding.code for finding in update(topology(), config_map=measured).findings] == ["NetperfPercentile"]


def test_an_object_without_spec_or_lists() -> None:
    bare = {
        "apiVersion": "networktopology.diktyo.x-k8s.io/v1alpha1",
        "kind": "NetworkTopology",
        "metadata": {"name": "n"},
    }
    assert update(bare, config_map=None).weights == []
    assert [each["name"] for each in update(bare).weights] == ["NetperfCosts"]
