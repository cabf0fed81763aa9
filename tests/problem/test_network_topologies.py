"""NetworkTopologies as they are read: which one, which list, areas, costs, capacities; and what is odd about them."""

from __future__ import annotations

from typing import Any

import pytest

from placer.answers.solving import solve
from placer.problem import Instance, Key, Link, Network
from placer.problem.placement import Placement
from placer.rules.scoring import score
from tests.netdocs import (
    KEP,
    REGION,
    ZONE,
    app_group,
    call,
    costs,
    member,
    network_topology,
    place,
    weights,
)
from tests.support import DATA, Document, instance_of, node, pod, policy

SHOP = app_group(workloads={"web": ["db"], "db": []})
HERE, THERE = Link("zone", "x", "y"), Link("zone", "y", "x")
#: Zones x and y of region r, zone z of region s.
NODES = (place("n1", "r/x"), place("n2", "r/y"), place("n3", "s/z"))


def both(cost: int, *capacity: object) -> list[dict[str, Any]]:
    return costs(("x", "y", cost, *capacity), ("y", "x", cost, *capacity))


def read(*docs: Document | str, nodes: tuple[Document, ...] = NODES) -> Network:
    found = instance_of(*nodes, *docs).network
    assert found is not None
    return found


def findings(*docs: Document | str, nodes: tuple[Document, ...] = NODES) -> list[tuple[str, str, str]]:
    return [(each.code, each.object, each.message) for each in instance_of(*nodes, SHOP, *docs).findings]


def codes(*docs: Document | str, nodes: tuple[Document, ...] = NODES) -> list[tuple[str, str]]:
    return [(code, subject) for code, subject, _ in findings(*docs, nodes=nodes)]


# costs and capacities


def test_costs_and_capacities() -> None:
    network = read(
        network_topology(
            weights(zone=costs(("x", "y", 5, "1Gi"), ("y", "x", 6)), region=costs(("r", "s", 20, "1500m")))
        )
    )
    region = Link("region", "r", "s")
    assert network.topology == Key("default", "nt-default")
    assert network.costs == {HERE: 5, THERE: 6, region: 20}
    assert network.capacities == {HERE: 2**30, region: 2}
    assert (network.capacities.get(HERE), network.capacities.get(THERE)) == (2**30, None)
    assert [network.cost(*pair) for pair in (("n1", "n1"), ("n1", "n2"), ("n2", "n1"), ("n1", "n3"), ("n3", "n1"))] == [
        0,
        5,
        6,
        20,
        100,
    ]


def test_the_sample_of_the_proposal() -> None:
    """The KEP's spelling of every field; 20 between regions, 5 and 10 between zones."""
    text = (DATA / "samples" / "network-topology-kep.yaml").read_text()
    names = {"us-west-1": ("z1", "z2"), "us-east-1": ("z3", "z4")}
    nodes = tuple(place(zone, f"{region}/{zone}") for region, zones in names.items() for zone in zones)
    network = read(text, nodes=nodes)
    assert [network.cost("z1", other) for other in ("z1", "z2", "z3", "z4")] == [0, 5, 20, 20]
    assert network.cost("z4", "z3") == 10
    assert network.capacities.get(Link("zone", "z1", "z2")) == 2**30
    assert network.capacities.get(Link("region", "us-east-1", "us-west-1")) == 10 * 2**30


# which one


def named(*names: str) -> list[Document]:
    """NetworkTopologies whose costs tell them apart: 1, 2, ..."""
    written = (each.split("/") for each in names)
    return [
        network_topology(weights(zone=both(number)), name=name, namespace=space)
        for number, (space, name) in enumerate(written, 1)
    ]


AMBIGUOUS = "NetworkTopologyAmbiguous"


@pytest.mark.parametrize(
    ("names", "asked", "cost", "found"),
    [
        (["a/only"], None, 1, []),
        (["a/b", "z/nt-default", "a/a"], None, 2, []),
        (["a/b", "z/a"], None, 2, [(AMBIGUOUS, "NetworkTopology z/a")]),
        (["b/a", "a/a"], None, 2, [(AMBIGUOUS, "NetworkTopology a/a")]),
        (["z/nt-default", "y/nt-default", "a/a"], None, 2, [(AMBIGUOUS, "NetworkTopology y/nt-default")]),
        (["a/b", "z/nt-default"], "a/b", 1, []),
        (["a/b", "z/nt-default"], "b/a", 2, [("UnknownReference", "NetworkTopology b/a")]),
    ],
)
def test_which_network_topology(names: list[str], asked: str | None, cost: int, found: list[tuple[str, str]]) -> None:
    docs = [*named(*names), policy(network={"topology": asked})]
    assert read(*docs).costs[HERE] == read(*reversed(docs)).costs[HERE] == cost
    assert codes(*docs) == found


def test_the_group_in_use_counts_where_an_older_one_has_the_same_name() -> None:
    old = network_topology(weights(zone=both(1)), group=KEP)
    new = network_topology(weights(zone=both(2)))
    assert read(old, new).costs == read(new, old).costs == {HERE: 2, THERE: 2}
    message = (
        "NetworkTopology default/nt-default is there under the API groups networktopology.diktyo.x-k8s.io, which "
        "counts, and scheduling.sigs.x-k8s.io, which is not read"
    )
    expected = [("SeveralApiGroups", "NetworkTopology default/nt-default", message)]
    assert findings(old, new) == findings(new, old) == expected


@pytest.mark.parametrize("spec", [None, {}, {"configmapName": "netperf"}, {"weights": []}])
def test_a_network_without_lists_is_told(spec: dict[str, Any] | None) -> None:
    bare = {key: value for key, value in network_topology().items() if key != "spec"}
    document = bare if spec is None else {**bare, "spec": spec}
    subject = "NetworkTopology default/nt-default"
    message = f"{subject} has no lists (spec.weights): every link costs 100 and none has a capacity"
    assert findings(document) == [("NetworkTopologyEmpty", subject, message)]
    # Nobody looks at it without dependencies; and one area needs no costs.
    assert instance_of(*NODES, document).findings == ()
    assert findings(network_topology(weights())) == []


LISTS = (weights("NetperfCosts", zone=both(1)), weights("UserDefined", zone=both(2)), weights("Third", zone=both(3)))


@pytest.mark.parametrize(
    ("lists", "asked", "cost"),
    [(LISTS, None, 2), (LISTS, "Third", 3), (LISTS[::2], None, 1), (LISTS[::2], "Third", 3), (LISTS, "gone", 2)],
)
def test_which_list(lists: tuple[dict[str, Any], ...], asked: str | None, cost: int) -> None:
    docs = (network_topology(*lists), policy(network={"weights": asked}))
    assert read(*docs).costs[HERE] == cost
    missing = ("UnknownReference", "Weights gone of NetworkTopology default/nt-default")
    assert codes(*docs) == ([missing] if asked == "gone" else [])


def test_a_network_topology_without_lists_knows_no_cost() -> None:
    network = read(network_topology())
    assert (network.costs, network.capacities, network.cost("n1", "n2")) == ({}, {}, 100)


def test_capacities_come_from_the_users_list_where_the_list_has_none() -> None:
    """One link with a capacity of its own, one without, one that only the user's list has."""
    measured = weights("NetperfCosts", zone=costs(("x", "y", 7, "1k"), ("y", "x", 8)))
    user = weights(zone=costs(("x", "y", 1, "2k"), ("y", "x", 2, "3k")), region=costs(("r", "s", 3, "4k")))
    network = read(network_topology(measured, user), policy(network={"weights": "NetperfCosts"}))
    assert network.costs == {HERE: 7, THERE: 8}
    assert network.capacities == {HERE: 1000, THERE: 3000, Link("region", "r", "s"): 4000}


def measurements(name: str = "netperf", namespace: str = "default", **latencies: str) -> Document:
    """Milliseconds from node to node, as ``n1_n2="5"``; p90."""
    data = {
        "netperf.p90.latency.milliseconds.origin.{}.destination.{}".format(*pair.split("_")): value
        for pair, value in latencies.items()
    }
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace},
        "data": data,
    }


def naming(document: Document, config_map: str = "netperf") -> Document:
    return {**document, "spec": {**document["spec"], "configmapName": config_map}}


MEASURED = policy(network={"weights": "NetperfCosts"})


def test_measurements_decide_where_the_policy_chooses_them() -> None:
    """n1 and n2 are in zones x and y, of which the user says 2; capacities stay the user's."""
    topology = naming(network_topology(weights(zone=both(2, "1k"))))
    network = read(topology, measurements(n1_n2="7", n2_n1="8"), MEASURED)
    assert (network.costs, network.weights) == ({HERE: 7, THERE: 8}, "NetperfCosts")
    assert network.capacities == {HERE: 1000, THERE: 1000}
    assert findings(topology, measurements(n1_n2="7", n2_n1="8"), MEASURED) == []
    usual = read(topology, measurements(n1_n2="7"))
    assert (usual.costs, usual.weights) == ({HERE: 2, THERE: 2}, "UserDefined")


def test_without_measurements_the_list_of_that_name_decides() -> None:
    written = naming(network_topology(weights("NetperfCosts", zone=both(5)), weights(zone=both(2))))
    for docs in ((), (measurements(namespace="other", n1_n2="7"),)):
        assert read(written, MEASURED, *docs).costs == {HERE: 5, THERE: 5}
        assert codes(written, MEASURED, *docs) == []


def test_measurements_that_are_not_there_are_told() -> None:
    """Then the user's list decides."""
    written = naming(network_topology(weights(zone=both(2))))
    list_is_missing = ("UnknownReference", "Weights NetperfCosts of NetworkTopology default/nt-default")
    assert codes(written, MEASURED) == [("UnknownReference", "ConfigMap default/netperf"), list_is_missing]
    assert read(written, MEASURED).weights == "UserDefined"
    unusable = measurements(n1_n9="7")
    assert codes(written, unusable, MEASURED) == [("NetperfNode", "ConfigMap default/netperf"), list_is_missing]


def test_a_list_that_says_something_else_than_the_measurements_is_told() -> None:
    outdated = naming(network_topology(weights("NetperfCosts", zone=both(5))))
    assert read(outdated, measurements(n1_n2="7"), MEASURED).costs == {HERE: 7, THERE: 7}
    assert codes(outdated, measurements(n1_n2="7"), MEASURED) == [
        ("NetperfListDiffers", "NetworkTopology default/nt-default")
    ]
    assert codes(outdated, measurements(n1_n2="5"), MEASURED) == []


def test_solve_obeys_measurements() -> None:
    """db runs in zone x; web must be near it: by the list no other zone is, by what was measured zone y is."""
    topology = naming(network_topology(weights(zone=both(90))))
    group = app_group(workloads={"web": [call("db", cost=30)], "db": []})
    db, web = member("db", "db", node="n1", cpu=8), member("web", "web", cpu=8)
    docs = (*NODES, topology, measurements(n1_n2="10"), group, db, web)
    assert solve(instance_of(*docs), method="greedy").placement == Placement(())
    instance = instance_of(*docs, MEASURED)
    result = solve(instance, method="exact", time_limit=600)
    assert result.placement is not None
    assert [(binding.pod.name, binding.node) for binding in result.placement.bindings] == [("web", "n2")]
    assert {value.name: value.value for value in score(instance, result.placement)}["networkCost"] == 10


# what is odd


def test_a_topology_key_that_is_neither_zone_nor_region() -> None:
    written = network_topology(weights(zone=both(5), rack=costs(("x", "y", 1))))
    subject = "NetworkTopology default/nt-default"
    message = f"{subject}: topologyKey rack is neither {ZONE} nor {REGION}, its costs are unused"
    assert findings(written) == [("TopologyKeyUnknown", subject, message)]
    assert read(written).costs == {HERE: 5, THERE: 5}


def test_a_link_in_one_direction_only() -> None:
    zones, regions = costs(("x", "y", 5)), costs(("r", "s", 20), ("r", "gone", 1), ("s", "s", 1))
    subject = "NetworkTopology default/nt-default"
    told = "given in one direction only, so that the other one costs 100"
    assert findings(network_topology(weights(zone=zones, region=regions))) == [
        ("LinkOneWay", subject, f"{subject}: region r -> s: {told}"),
        ("LinkOneWay", subject, f"{subject}: zone x -> y: {told}"),
    ]


def test_a_region_and_a_zone_of_one_name() -> None:
    nodes = (place("n1", "x/x"), place("n2", "x/y"))
    (found,) = findings(network_topology(weights(zone=both(5))), nodes=nodes)
    subject = "NetworkTopology default/nt-default"
    message = "x is a region and a zone; the NetworkOverhead plugin mixes up their costs"
    assert found == ("RegionAndZone", subject, f"{subject}: {message}")
    in_entries = network_topology(weights(zone=both(5), region=costs(("x", "r", 1))))
    assert codes(in_entries) == [("RegionAndZone", subject)]


def test_zones_of_one_name_in_two_regions_share_the_capacity_of_a_link() -> None:
    nodes = (place("n1", "r/x"), place("n2", "r/y"), place("n3", "s/x"), place("n4", "s/y"))
    found = findings(network_topology(weights(zone=both(5, "1Gi"))), nodes=nodes)
    assert [(code, message.partition(": ")[2]) for code, _, message in found] == [
        ("ZoneInTwoRegions", "zone x is in regions r and s, which share the capacity of its links"),
        ("ZoneInTwoRegions", "zone y is in regions r and s, which share the capacity of its links"),
    ]
    assert findings(network_topology(weights(zone=both(5))), nodes=nodes) == []


def test_nodes_without_labels() -> None:
    nodes = (*NODES, place("a", "r"), place("b", "r"), place("c", "s"), place("d", ""), place("e", ""))
    region = "a place of its own that costs 100 from anywhere"
    assert findings(network_topology(weights(zone=both(5))), nodes=nodes) == [
        ("NodeWithoutRegion", "Node d", f"Node d and 1 other: without the label {REGION}, each {region}"),
        (
            "NodeWithoutZone",
            "Node a",
            f"Node a and 1 other: without the label {ZONE}, taken together as one zone of region r",
        ),
        ("NodeWithoutZone", "Node c", f"Node c: without the label {ZONE}, taken together as one zone of region s"),
    ]


def test_two_costs_for_one_link() -> None:
    """The later one counts, as in the plugin; the same cost once more is none."""
    written = network_topology(weights(zone=[*both(5), *both(5), *costs(("x", "y", 6))]))
    assert read(written).costs[HERE] == 6
    subject = "NetworkTopology default/nt-default"
    message = f"{subject}: the zone link x -> y has two costs, the later one counts"
    assert findings(written) == [("LinkTwice", subject, message)]


# what bound pods break


def bound(workload: str, *nodes: str) -> list[Document]:
    return [member(f"{workload}-{index}", workload, node=name) for index, name in enumerate(nodes)]


def broken(*docs: Document, **spec: Any) -> list[tuple[str, str]]:
    network = network_topology(weights(zone=both(5, "100"), region=costs(("r", "s", 20), ("s", "r", 20))))
    found: Instance = instance_of(*NODES, network, *docs, policy(**spec))
    assert {each.code for each in found.findings} <= {"BoundPodsViolate"}
    return [(each.object, each.message) for each in found.findings]


def test_bound_pods_that_are_too_far_apart() -> None:
    tight = app_group(workloads={"web": [call("db", cost=4)], "db": []})
    pods = bound("web", "n1", "n1", "n2") + bound("db", "n1", "n3")
    message = "C8: 4 of the bound pairs cost more than 4, up to 20, in web -> db of AppGroup default/shop"
    assert broken(tight, *pods) == [("AppGroup default/shop", message)]
    assert broken(tight, *pods, rules={"C8": "off"}) == []
    assert broken(tight, *bound("web", "n1"), *bound("db", "n1")) == []


def test_bound_pods_under_majority() -> None:
    """web-0 has 1 of 2 callees near, web-1 none."""
    tight = app_group(workloads={"web": [call("db", cost=4)], "db": []})
    pods = bound("web", "n1", "n3") + bound("db", "n1", "n2")
    message = (
        "C8: 1 of the bound pods have more callees too far than near enough, in workload web of AppGroup default/shop"
    )
    assert broken(tight, *pods, networkCost="majority") == [("AppGroup default/shop", message)]


def test_bound_pods_that_use_more_than_a_link_has() -> None:
    """2 x 1 pairs of 60 on 100 bit/s; terminating pods hold theirs."""
    wide = app_group(workloads={"web": [call("db", cost=50, bandwidth=60)], "db": []})
    pods = bound("web", "n1", "n1") + bound("db", "n2")
    message = "C9: bound pods use 120 bit/s of the zone link x -> y, whose bandwidthCapacity is 100"
    assert broken(wide, *pods) == [("NetworkTopology default/nt-default", message)]
    assert broken(wide, *pods, rules={"C9": "off"}) == []
    assert broken(wide, *pods[1:]) == []
    (web, _, db) = pods
    leaving = {**db, "metadata": {**db["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    assert broken(wide, web, pods[1], leaving) == [("NetworkTopology default/nt-default", message)]


# bandwidth as a resource of nodes


BANDWIDTH = "network.aware.com/bandwidth"
INGRESS, EGRESS = "kubernetes.io/ingress-bandwidth", "kubernetes.io/egress-bandwidth"


def wide(amount: object) -> dict[str, Any]:
    return {BANDWIDTH: amount}


@pytest.mark.parametrize(
    ("notes", "missing"),
    [
        ((INGRESS, EGRESS), ()),
        ((INGRESS,), (EGRESS,)),
        ((EGRESS,), (INGRESS,)),
        ((), (INGRESS, EGRESS)),
    ],
)
@pytest.mark.parametrize("on", [None, "n1"])
def test_bandwidth_that_nothing_holds_a_pod_to(
    on: str | None, notes: tuple[str, ...], missing: tuple[str, ...]
) -> None:
    annotations = dict.fromkeys(notes, "10M")
    pods = [pod(name, node=on, annotations=annotations, **wide("10M")) for name in ("a", "b")]
    found = instance_of(node("n1", **wide("1G")), *pods).findings
    lacking = f"request of {BANDWIDTH} without the annotation {' and '.join(missing)}, so nothing holds the pod to it"
    expected = [("BandwidthNotLimited", "Pod default/a", f"Pod default/a and 1 other: {lacking}")] if missing else []
    assert [(each.code, each.object, each.message) for each in found] == expected
