"""AppGroups as they are read: workloads, dependencies, both spellings, and what cannot be as meant."""

from __future__ import annotations

from typing import Any

import pytest

from placer.problem import AppGroup, Dependency, Key
from tests.netdocs import APP, KEP, app_group, call, costs, member, network_topology, place, ref, weights
from tests.support import Document, instance_of

SHOP = Key("default", "shop")
NETWORK = network_topology(weights(zone=costs(("z", "y", 5), ("y", "z", 5))))


def read(*docs: Document) -> AppGroup:
    return instance_of(place("n1"), *docs).app_groups[SHOP]


def findings(*docs: Document | str) -> list[tuple[str, str, str]]:
    return [(each.code, each.object, each.message) for each in instance_of(place("n1"), *docs).findings]


def codes(*docs: Document | str) -> list[str]:
    return [code for code, _, _ in findings(*docs)]


def test_the_proposal_knows_names_only() -> None:
    entries = [
        {"workload": ref("P1", selector=False), "dependencies": [call("P2", selector=False)]},
        {"workload": ref("P2", selector=False)},
    ]
    found = read(app_group(group=KEP, listed=entries))
    assert found == AppGroup(SHOP, ("P1", "P2"), (Dependency("P1", "P2", 10),), "KahnSort")


@pytest.mark.parametrize(
    "called", [ref("db"), {"kind": "Deployment", "name": "db-x"}, {"kind": "Other", "name": "db-x"}]
)
def test_a_dependency_may_name_its_callee_by_name_alone(called: dict[str, Any]) -> None:
    found = read(app_group(workloads={"web": [{"workload": called, "maxNetworkCost": 1}], "db": []}))
    assert found == AppGroup(SHOP, ("web", "db"), (Dependency("web", "db", 1),), "KahnSort")


def test_the_group_in_use_counts_where_an_older_one_has_the_same_name() -> None:
    old, new = app_group(workloads={"old": []}, group=KEP), app_group(workloads={"new": []})
    assert read(old, new).workloads == read(new, old).workloads == ("new",)
    message = (
        "AppGroup default/shop is there under the API groups appgroup.diktyo.x-k8s.io, which counts, and "
        "scheduling.sigs.x-k8s.io, which is not read"
    )
    expected = [("SeveralApiGroups", "AppGroup default/shop", message)]
    assert findings(old, new) == findings(new, old) == expected


def test_an_empty_app_group() -> None:
    assert read(app_group()) == AppGroup(SHOP, algorithm="KahnSort")
    assert read({"apiVersion": f"{APP}/v1alpha1", "kind": "AppGroup", "metadata": {"name": "shop"}}) == AppGroup(SHOP)


def test_what_a_controller_has_stored() -> None:
    """A workload without a place is left out, as the plugin would not find it."""
    stored = [{"workload": ref("web"), "index": 2}, {"workload": ref("db"), "index": 1}, {"workload": ref("cache")}]
    found = read({**app_group(workloads={"web": ["db"], "db": []}), "status": {"topologyOrder": stored}})
    assert found.order == {"web": 2, "db": 1}


# what cannot be as meant


def test_a_dependency_on_a_workload_that_is_not_listed() -> None:
    """The workload is called all the same, as the plugin does."""
    written = app_group(workloads={"web": ["db"], "front": ["db"]})
    found = read(written)
    assert found.workloads == ("web", "front", "db")
    assert found.dependencies == (Dependency("web", "db", 10), Dependency("front", "db", 10))
    message = "AppGroup default/shop: web, front depends on db, which is not among its workloads"
    assert findings(written, NETWORK) == [("UnknownReference", "AppGroup default/shop", message)]


def test_a_dependency_on_itself() -> None:
    message = "AppGroup default/shop: workload db depends on itself: its pods call each other"
    written = app_group(workloads={"db": ["db"]})
    assert findings(written, NETWORK) == [("DependsOnItself", "AppGroup default/shop", message)]


def test_a_cycle_is_told_in_the_order_of_the_calls() -> None:
    message = "AppGroup default/shop: workloads call each other in a cycle: b -> c -> a -> b"
    written = app_group(workloads={"z": ["b"], "b": ["c"], "c": ["a"], "a": ["b"]})
    assert findings(written, NETWORK) == [("DependencyCycle", "AppGroup default/shop", message)]


@pytest.mark.parametrize(
    ("algorithm", "found"), [("AlternateTarjan", []), ("kahnSort", ["SortingAlgorithmUnknown"]), (None, [])]
)
def test_sorting_algorithms(algorithm: str | None, found: list[str]) -> None:
    assert codes(app_group(topologySortingAlgorithm=algorithm)) == found


DELETED = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("members", "found"),
    [
        ([], []),
        ([member("a", "web"), member("b", "db", node="n1")], []),
        ([member("a", "web")], ["NumMembers"]),
        ([member("a", "web"), member("b", "web"), member("c", "web")], ["NumMembers"]),
        ([member("a", "web"), member("b", "web", status={"phase": "Succeeded"})], ["NumMembers"]),
        ([member("a", "web"), member("b", "web", node="n1", metadata=DELETED)], ["NumMembers"]),
        ([member("a", "web"), member("b", "web", spec={"schedulingGates": [{"name": "g"}]})], []),
    ],
)
def test_num_members_are_the_pods_there_are(members: list[Document], found: list[str]) -> None:
    """A group without any pod is not there now, which is no fault of its number."""
    written = app_group(workloads={"web": [], "db": []}, numMembers=2)
    assert codes(written, *members) == found


ABSENT = app_group(workloads={"web": [call("db", cost=None), call("cache", cost=None)], "db": [], "cache": []})


def test_a_max_network_cost_left_out_is_0() -> None:
    assert [each.max_network_cost for each in read(ABSENT).dependencies] == [0, 0]
    message = (
        "AppGroup default/shop: maxNetworkCost of web -> cache and 1 other is left out and counts as 0: on one node or "
        "in one zone"
    )
    assert findings(ABSENT, NETWORK) == [("MaxNetworkCostAbsent", "AppGroup default/shop", message)]
    assert codes(app_group(workloads={"web": [call("db", cost=0)], "db": []}), NETWORK) == []


def test_a_workload_that_is_listed_twice() -> None:
    """Its dependencies are taken together."""
    entries = [
        {"workload": ref("web"), "dependencies": [call("db")]},
        {"workload": ref("web"), "dependencies": [call("cache")]},
        {"workload": ref("db")},
        {"workload": ref("cache")},
    ]
    written = app_group(listed=entries)
    assert [str(each) for each in read(written).dependencies] == ["web -> db", "web -> cache"]
    message = "AppGroup default/shop lists workload web more than once; its dependencies are taken together"
    assert findings(written, NETWORK) == [("WorkloadTwice", "AppGroup default/shop", message)]
