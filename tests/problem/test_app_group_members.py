"""Which pod is of which workload: by its labels in any namespace, else by its owner's kind and name."""

from __future__ import annotations

from typing import Any

import pytest

from placer.problem import Instance, Key
from tests.netdocs import KEP, WORKLOAD, app_group, call, member, network_topology, place, ref, weights
from tests.support import Document, instance_of, pod

NETWORK = network_topology(weights())
SHOP = app_group(workloads={"web": ["db"], "db": []})
Home = tuple[Key | None, str | None]


def build(*docs: Document, **options: Any) -> Instance:
    return instance_of(place("n1"), NETWORK, *docs, **options)


def home(*docs: Document, name: str = "p", namespace: str = "default") -> Home:
    found = build(*docs).pods[Key(namespace, name)]
    return found.app_group, found.workload


def findings(*docs: Document) -> list[tuple[str, str, str]]:
    return [(each.code, each.object, each.message) for each in build(*docs).findings]


def owned(kind: str, name: str, *, labels: dict[str, str] | None = None, namespace: str = "default") -> Document:
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": name, "controller": True}
    return pod("p", metadata={"namespace": namespace, "labels": labels or {}, "ownerReferences": [owner]})


def replica_set(name: str, deployment: str | None) -> Document:
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": deployment, "controller": True}
    metadata = {"name": name, "namespace": "default", "ownerReferences": [owner] if deployment else []}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata}


IN_SHOP: Home = (Key("default", "shop"), "web")
NOWHERE: Home = (None, None)


# by labels


def test_the_label_is_the_selector_and_not_the_name() -> None:
    """The Deployment of the shipped object is web-x, its selector web."""
    docs = (SHOP, member("p", "web-x"))
    assert home(*docs) == (Key("default", "shop"), None)
    message = "Workload web-x of AppGroup default/shop, named by Pod default/p, is not in the instance"
    assert findings(*docs) == [("UnknownReference", "Workload web-x of AppGroup default/shop", message)]


def test_in_the_proposal_the_label_is_the_name() -> None:
    entries = [{"workload": ref("web", selector=False), "dependencies": [call("db", selector=False)]}]
    assert home(app_group(group=KEP, listed=entries), member("p", "web")) == IN_SHOP
    assert home(app_group(group=KEP, listed=entries), member("p", "db")) == (Key("default", "shop"), "db")


def test_an_app_group_that_is_not_there() -> None:
    docs = (member("p", "web", app="gone"), member("q", "web", app="gone"))
    assert home(*docs) == NOWHERE
    message = "AppGroup gone, named by Pod default/p and 1 other, is not in the instance"
    assert findings(*docs) == [("UnknownReference", "AppGroup gone", message)]


def test_a_pod_of_no_workload() -> None:
    docs = (SHOP, member("p"), member("q"))
    assert home(*docs) == (Key("default", "shop"), None)
    message = (
        f"AppGroup default/shop: neither the label {WORKLOAD} nor the owner of Pod default/p and 1 other says which "
        "workload it is of, so that it has no dependencies"
    )
    assert findings(*docs) == [("PodWithoutWorkload", "Pod default/p", message)]
    assert findings(app_group(workloads={"web": []}), member("p")) == []


# by owner


def test_a_replica_set_stands_for_its_deployment() -> None:
    pods = owned("ReplicaSet", "anything")
    assert home(SHOP, replica_set("anything", "web-x"), pods) == IN_SHOP
    assert home(SHOP, replica_set("anything", "other"), pods) == NOWHERE


@pytest.mark.parametrize(("name", "labels"), [("web-x-5d8c", {}), ("web-x-a-b", {"pod-template-hash": "a-b"})])
def test_of_a_replica_set_that_is_not_there_the_name_tells(name: str, labels: dict[str, str]) -> None:
    assert home(SHOP, owned("ReplicaSet", name, labels=labels)) == IN_SHOP


@pytest.mark.parametrize(("namespace", "found"), [("default", IN_SHOP), ("far", NOWHERE)])
def test_a_workload_with_a_namespace_is_of_that_namespace(namespace: str, found: Home) -> None:
    entries = [{"workload": ref("web", namespace="default")}]
    docs = (app_group(listed=entries), owned("Deployment", "web-x", namespace=namespace))
    assert home(*docs, namespace=namespace) == found


# AppGroups of one name


def test_of_two_app_groups_the_one_in_the_pods_namespace_counts() -> None:
    far = app_group(workloads={"web": []}, namespace="far")
    assert home(SHOP, far, member("p", "web")) == IN_SHOP
    assert home(SHOP, far, member("p", "web", namespace="far"), namespace="far") == (Key("far", "shop"), "web")


def test_of_two_in_other_namespaces_none_counts() -> None:
    docs = (SHOP, app_group(workloads={"web": []}, namespace="far"), member("p", "web", namespace="x"))
    assert home(*docs, namespace="x") == NOWHERE
    message = "Pod x/p may be of any of the AppGroups default/shop, far/shop, and so of none"
    assert findings(*docs) == [("AppGroupAmbiguous", "AppGroup default/shop", message)]


# states
