"""What of each link is taken by pods that have their node, counted by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from placer.kube.manifests import from_documents, validate
from placer.lab.generate import generate
from placer.problem import Policy
from placer.problem.findings import Findings
from placer.problem.instance_builder import make_instance, read_nodes
from placer.problem.network_objects import read_network
from placer.topology.controllers import allocated_bandwidth
from tests.support import instance_of, node, pod

REGION, ZONE, GROUP = "topology.kubernetes.io/region", "topology.kubernetes.io/zone", "appgroup.diktyo.x-k8s.io"
Document = Mapping[str, Any]

#: Zones a and b of region r, zone c of region s, a node of region r in no zone, and one in no region.
NODES = [
    node("a1", {REGION: "r", ZONE: "a"}),
    node("a2", {REGION: "r", ZONE: "a"}),
    node("b1", {REGION: "r", ZONE: "b"}),
    node("c1", {REGION: "s", ZONE: "c"}),
    node("loose", {REGION: "r"}),
    node("lost"),
]


def app_group(name: str, *calls: tuple[str, str, str | None]) -> Document:
    """Who calls whom with how much bandwidth."""
    names = dict.fromkeys(each for one, two, _ in calls for each in (one, two))
    return {
        "apiVersion": "appgroup.diktyo.x-k8s.io/v1alpha1",
        "kind": "AppGroup",
        "metadata": {"name": name},
        "spec": {
            "workloads": [
                {
                    "workload": workload(each),
                    "dependencies": [
                        {"workload": workload(two), "maxNetworkCost": 99} | ({"minBandwidth": need} if need else {})
                        for one, two, need in calls
                        if one == each
                    ],
                }
                for each in names
            ]
        },
    }


def workload(name: str) -> dict[str, str]:
    return {"kind": "Deployment", "name": f"{name}-deployment", "selector": name}


def member(name: str, group: str, where: str | None, **written: Any) -> Document:
    """The workload is the name without its number."""
    labels = {GROUP: group, f"{GROUP}.workload": name.rstrip("0123456789")}
    return pod(name, labels=labels, node=where, **written)


def taken(*documents: Document) -> dict[str, int]:
    found = allocated_bandwidth(instance_of(*NODES, *documents))
    return {str(link): amount for link, amount in found.items()}


def test_every_pair_counts_on_the_link_between_its_places() -> None:
    """web on a, a, b; db on b, c: 2 pairs a to b, 3 pairs r to s, the pair within b takes nothing."""
    group = app_group("shop", ("web", "db", "100M"), ("db", "log", "1k"))
    pods = [
        member("web1", "shop", "a1"),
        member("web2", "shop", "a2"),
        member("web3", "shop", "b1"),
        member("db1", "shop", "b1"),
        member("db2", "shop", "c1"),
        member("log1", "shop", "a1"),
    ]
    assert taken(group, *pods) == {
        "region link r -> s": 300_000_000,
        "region link s -> r": 1000,
        "zone link a -> b": 200_000_000,
        "zone link b -> a": 1000,
    }


def test_who_came_last_does_not_matter() -> None:
    """The shipped controller counts the caller's dependencies when the called one is there, and never the reverse."""
    group = app_group("shop", ("web", "db", "5"))
    assert taken(group, member("db1", "shop", "a1"), member("web1", "shop", "b1")) == {"zone link b -> a": 5}


def test_only_pods_with_a_node_count_until_they_are_gone() -> None:
    group = app_group("shop", ("web", "db", "5"))
    leaving = {"deletionTimestamp": "2026-03-01T11:00:00Z"}
    db = member("db1", "shop", "b1")
    assert taken(group, db, member("web1", "shop", None)) == {}
    assert taken(group, db, member("web1", "shop", "a1", status={"phase": "Succeeded"})) == {}
    assert taken(group, db, member("web1", "shop", "a1", status={"phase": "Pending"})) == {"zone link a -> b": 5}
    assert taken(group, db, member("web1", "shop", "a1", metadata=leaving)) == {"zone link a -> b": 5}
    both = [member("web1", "shop", "a1", metadata=leaving), member("web2", "shop", "a1")]
    assert taken(group, db, *both) == {"zone link a -> b": 10}


def test_a_dependency_without_bandwidth_takes_nothing() -> None:
    group = app_group("shop", ("web", "db", None), ("web", "ads", "0"))
    pods = [member("web1", "shop", "a1"), member("db1", "shop", "b1"), member("ads1", "shop", "b1")]
    assert taken(group, *pods) == {}


def test_places_without_a_name_are_on_no_link() -> None:
    group = app_group("shop", ("web", "db", "5"))
    db = member("db1", "shop", "b1")
    assert taken(group, db, member("web1", "shop", "loose")) == {}
    assert taken(group, db, member("web1", "shop", "lost")) == {}
    assert taken(group, member("db1", "shop", "c1"), member("web1", "shop", "loose")) == {"region link r -> s": 5}


def test_app_groups_add_up_and_do_not_mix() -> None:
    groups = app_group("one", ("web", "db", "5")), app_group("two", ("web", "db", "7"))
    pods = [member("web1", "one", "a1"), member("db1", "one", "b1"), member("web2", "two", "a1")]
    assert taken(*groups, *pods) == {"zone link a -> b": 5}
    assert taken(*groups, *pods, member("db2", "two", "b1")) == {"zone link a -> b": 12}


def test_what_the_generator_planted_fills_its_tight_links() -> None:
    """All pods run there: every link that is used is used up, by another count than the generator's."""
    made = generate("network", seed=8, running=1.0, regions=3, zones=3, nodes=27, app_groups=6)
    objects = validate(from_documents(made.documents))
    nodes = read_nodes(objects.nodes)
    network = read_network(objects.network_topologies, Policy(), nodes, Findings())
    assert network is not None
    found = allocated_bandwidth(make_instance(objects))
    assert len(found) > 10
    assert all(network.capacities[link] == max(amount, 10**7) for link, amount in found.items())
    assert {network.capacities[link] for link in network.capacities.keys() - found.keys()} == {10**7}
