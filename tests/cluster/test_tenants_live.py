"""Tenants who mean harm, and bad luck that looks like them: what they write, and when, on a real API server."""

from __future__ import annotations

from typing import Any

import pytest

from placer.base.quantity import Resources
from placer.passes.cluster import Client
from placer.passes.cluster.planning.scheduler_cache import SchedulerCache
from placer.passes.cluster.reading.client import Response
from tests.cluster.api import PATIENCE, Api, Refused
from tests.cluster.faults import PODS, at_first_binding, before_bindings, half_bound, steal
from tests.cluster.passes import Passes, bound, gang, leaves
from tests.cluster.proxy import Proxy, Spoil
from tests.cluster.things import live_pod
from tests.support import Document, node

pytestmark = pytest.mark.usefixtures("lasting_lease")

GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces"
EVENTS = "/apis/events.k8s.io/v1/events"


def in_namespace(namespace: str, *documents: Document) -> list[Document]:
    """The same objects in a namespace."""
    return [{**each, "metadata": {**each["metadata"], "namespace": namespace}} for each in documents]


def test_events_whose_text_is_not_of_ascii_are_written(cluster: Api, passes: Passes) -> None:
    """A server counts bytes, 1,024 of them."""
    cluster.create(node("n1"), live_pod("odd", group="\N{CJK UNIFIED IDEOGRAPH-6A5F}" * 3_000, cpu=1))
    told = passes()
    assert told["told"]["troubles"] == []
    (event,) = cluster.items(EVENTS)
    assert event["reason"] == "FailedScheduling"
    assert 990 < len(event["note"].encode()) <= 1_024


def test_a_gang_whose_minimum_grows_in_the_middle_of_a_pass_is_bound_and_told_right(
    cluster: Api, passes: Passes, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.create(node("n1"), *gang("train", 3, least=2))
    more = {"spec": {"minMember": 5}}
    at_first_binding(monkeypatch, lambda _: cluster.patch(f"{GROUPS}/default/podgroups/train", more))
    assert passes()["gangs"]["bound"] == 1
    told = passes()
    assert (told["unfinished"], told["incomplete"]) == ([], [])  # what was bound was all that it had
    cluster.create(*gang("train", 5)[4:])
    assert passes()["bound"] == 2
    assert len(bound(cluster)) == 5


def test_a_namespace_that_is_deleted_in_the_middle_of_a_gang_costs_nobody_else_anything(
    cluster: Api, passes: Passes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest of the gang is refused; it is half-bound, told so, and rolled back like any other."""
    cluster.create(node("n1"), *in_namespace("tenant", *gang("train", 4)), *gang("fine", 2))
    sent, deleted = Client.send, list[str]()

    def send(self: Client, method: str, path: str, *rest: Any, **options: Any) -> Response:
        answer = sent(self, method, path, *rest, **options)
        if path.endswith("/binding") and "/tenant/" in path and not deleted:
            deleted.append(path)
            cluster.delete("/api/v1/namespaces/tenant")
        return answer

    monkeypatch.setattr(Client, "send", send)
    told = passes("--bind-workers", "1", code=6)
    (found,) = half_bound(told).values()
    assert (found["group"], found["bound"]) == ("PodGroup tenant/train", 1)
    assert all("is being terminated" in why for why in found["missing"].values())
    assert {"fine-0", "fine-1"} <= bound(cluster).keys()
    told = passes("--roll-back")
    assert told["gangs"]["rolledBack"] == 1


AMOUNTS = (
    *("0.1", "100u", "0.0001", "1e3", "1E3", "1e-3", "1n", ".5", "5.", "+3", "1Ki", "0.5Gi", "1.5e3", "12e6", "1m"),
    *("1500m", "1.0005", "0.0005Gi", "1e1", "1E", "2E", "1Mi", "1M", "4611686018427387904", "1e18", "0.000000001"),
    *("1e-9", "1e-10", "-0", "0", "+0.1", "0.1e1", "1.e3", "00012", "1k", "9223372036854775807"),
)


def test_amounts_in_odd_spellings_are_what_the_server_makes_of_them(cluster: Api) -> None:
    """Else a tenant's pod would take more of a node than it is counted with."""
    taken = 0
    for resource in ("cpu", "memory", "example.com/x"):
        for number, amount in enumerate(AMOUNTS):
            made = live_pod(f"q-{number}")
            requests = {resource: amount}
            made["spec"]["containers"][0]["resources"] = {"requests": requests, "limits": requests}
            try:
                found = cluster.call("POST", PODS, made)
            except Refused:
                continue
            taken += 1
            written = found["spec"]["containers"][0]["resources"]["requests"]
            assert Resources.parse(requests) == Resources.parse(written), (amount, written)
            cluster.delete(f"{PODS}/q-{number}")
    assert taken > 60


def test_a_static_pod_that_names_a_gang_ties_it_to_no_rack(cluster: Api, passes: Passes) -> None:
    """The kubelet of a rack without room makes it, in the namespace of the gang."""
    mirror = live_pod("m", group="train", node="n-01-00", cpu=1)
    mirror["metadata"]["annotations"] |= {"kubernetes.io/config.mirror": "x"}
    cluster.create(*leaves(2, 1, cpu=8), live_pod("filler", node="n-01-00", cpu=7), mirror)
    cluster.create(*gang("train", 4, tier=1, cpu=2))
    told = passes()
    assert told["bound"] == 4
    assert {node for name, node in bound(cluster).items() if name.startswith("train")} == {"n-00-00"}


def test_a_later_try_asks_all_rules_again(
    cluster: Api, passes: Passes, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server has no time for the first, and meanwhile somebody comes next to whom the pod may not be."""
    caches: list[SchedulerCache] = []
    before_bindings(monkeypatch, caches.append)

    def rule(_method: str, path: str, times: int) -> Spoil | None:
        if not path.endswith("/shy/binding") or times > 1:
            return None
        loud = steal(cluster, "loud", "n1", cpu=1, labels={"app": "loud"})
        assert caches[0].wait(PATIENCE, lambda: caches[0].is_bound(loud))
        return Spoil(503)

    proxy.rule = rule
    term = {"labelSelector": {"matchLabels": {"app": "loud"}}, "topologyKey": "kubernetes.io/hostname"}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    cluster.create(node("n1", {"kubernetes.io/hostname": "n1"}), live_pod("shy", cpu=1, spec={"affinity": apart}))
    told = passes(code=None)
    assert bound(cluster) == {"loud": "n1"}
    assert "anti-affinity" in told["left"]["Pod default/shy"]
