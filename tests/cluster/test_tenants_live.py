"""Tenants who mean harm, and bad luck that looks like them: what they write, and when, on a real API server."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from placer.cluster.reading.client import STRATEGIC_MERGE
from tests.cluster.api import Api
from tests.cluster.faults import PODS, half_bound
from tests.cluster.passes import Passes, bound, gang, overfull
from tests.cluster.proxy import Proxy, Spoil
from tests.cluster.things import live_pod
from tests.support import Document, node, pod_group

pytestmark = pytest.mark.usefixtures("lasting_lease")

GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces"
EVENTS = "/apis/events.k8s.io/v1/events"
STEPS_UP = "../../../../../.."


def in_namespace(namespace: str, *documents: Document) -> list[Document]:
    """The same objects in a namespace."""
    return [{**each, "metadata": {**each["metadata"], "namespace": namespace}} for each in documents]


def refusing(*pods: str) -> Callable[[str, str, int], Spoil | None]:
    """Bindings of some pods are not allowed."""
    return lambda _method, path, _times: (
        Spoil(403) if path.endswith("/binding") and path.split("/")[-2] in pods else None
    )


def nothing(*_: object) -> None:
    """What a proxy does that spoils nothing."""


def priority_class(name: str = "high", value: int = 1_000_000) -> Document:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }


def test_what_a_pod_says_its_group_is_called_leads_nowhere_else(cluster: Api, passes: Passes) -> None:
    """Neither to another tenant's PodGroup, nor to their pod's status, which a pass may write to."""
    cluster.create(node("n1"), *in_namespace("victim", *gang("train", 2)))
    passes()
    group, pod = f"{GROUPS}/victim/podgroups/train", "/api/v1/namespaces/victim/pods/train-0"
    cluster.patch(f"{pod}/status", {"status": {"phase": "Running"}})
    before = cluster.get(group), cluster.get(pod)
    names = (
        "../../victim/podgroups/train",
        "..%2F..%2Fvictim%2Fpodgroups%2Ftrain",
        f"{STEPS_UP}/api/v1/namespaces/victim/pods/train-0",
        f"{STEPS_UP}/api/v1/namespaces/victim/pods/train-0/status",
    )
    cluster.create(*(live_pod(f"odd-{at}", namespace="evil", group=name, cpu=1) for at, name in enumerate(names)))
    told = passes()
    assert told["bound"] == 0
    assert told["told"] == {"conditions": 4, "events": 4, "groups": 0, "troubles": []}
    assert (cluster.get(group), cluster.get(pod)) == before


def test_events_of_what_has_the_longest_name_there_can_be_are_written(cluster: Api, passes: Passes) -> None:
    long = "a" * 253
    cluster.create(node("n1"), pod_group(long, minMember=1), live_pod("p", group=long, cpu=1), live_pod(long, cpu=99))
    told = passes()
    assert (told["bound"], told["told"]["troubles"]) == (1, [])
    assert sorted(each["reason"] for each in cluster.items(EVENTS)) == ["FailedScheduling", "Scheduled"]
    assert {each["regarding"]["name"] for each in cluster.items(EVENTS)} == {long}


def test_events_whose_text_is_not_of_ascii_are_written(cluster: Api, passes: Passes) -> None:
    """A server counts bytes, 1,024 of them."""
    cluster.create(node("n1"), live_pod("odd", group="\N{CJK UNIFIED IDEOGRAPH-6A5F}" * 3_000, cpu=1))
    told = passes()
    assert told["told"]["troubles"] == []
    (event,) = cluster.items(EVENTS)
    assert event["reason"] == "FailedScheduling"
    assert 990 < len(event["note"].encode()) <= 1_024


def test_pods_that_ask_for_more_than_those_before_them_do_not_come_first(
    cluster: Api, passes: Passes, proxy: Proxy
) -> None:
    """A gang of small pods is begun, all but one are deleted, and large ones are made under their names."""
    cluster.create(node("n1", cpu=20), node("n2", cpu=20), priority_class(), *gang("small", 3, cpu=1))
    proxy.rule = refusing("small-1", "small-2")
    assert half_bound(passes(code=6))["PodGroup default/small"]["bound"] == 1
    proxy.rule = nothing
    for name in ("small-1", "small-2"):
        cluster.delete(f"{PODS}/{name}")
        cluster.create(live_pod(name, group="small", guaranteed=True, cpu=15))
    urgent = [live_pod(f"urgent-{number}", cpu=18, spec={"priorityClassName": "high"}) for number in range(2)]
    cluster.create(*urgent)
    told = passes(code=None)
    assert {"urgent-0", "urgent-1"} <= bound(cluster).keys(), told
    assert overfull(cluster) == []


def test_pods_that_are_made_larger_while_they_wait_do_not_come_first_either(
    cluster: Api, passes: Passes, proxy: Proxy
) -> None:
    """A server lets pods be resized that have no node yet, and their uid stays."""
    cluster.create(node("n1", cpu=20), node("n2", cpu=20), priority_class(), *gang("small", 3, cpu=1))
    proxy.rule = refusing("small-1", "small-2")
    passes(code=6)
    proxy.rule = nothing
    amounts = {"requests": {"cpu": "15"}, "limits": {"cpu": "15"}}
    larger = {"spec": {"containers": [{"name": "main", "resources": amounts}]}}
    for name in ("small-1", "small-2"):
        cluster.call("PATCH", f"{PODS}/{name}/resize", larger, STRATEGIC_MERGE)
    urgent = [live_pod(f"urgent-{number}", cpu=18, spec={"priorityClassName": "high"}) for number in range(2)]
    cluster.create(*urgent)
    told = passes(code=None)
    assert {"urgent-0", "urgent-1"} <= bound(cluster).keys(), told
