"""Half-bound gangs on a real API server: whose they are, who comes first, how they end."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from placer.passes.cluster.reading.client import Response
from placer.passes.cluster.reading.gang_record import RecordedGangs, read_record
from tests.cluster.api import Api, Refused
from tests.cluster.faults import PODS, half_bound, recreate, steal
from tests.cluster.passes import Passes, bound, gang, leaves, overfull
from tests.cluster.proxy import Proxy, Spoil
from tests.cluster.things import live_pod
from tests.support import Document, node, pod_group

pytestmark = pytest.mark.usefixtures("lasting_lease")

GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"


def refusing(*pods: str) -> Callable[[str, str, int], Spoil | None]:
    """Bindings of some pods are not allowed."""
    return lambda _method, path, _times: (
        Spoil(403) if path.endswith("/binding") and path.split("/")[-2] in pods else None
    )


def nothing(*_: object) -> None:
    """What a proxy does that spoils nothing."""


def with_short_patience(passes: Passes, code: int) -> dict[str, Any]:
    """A pass in which what has been half-bound since an earlier one has been so for too long."""
    time.sleep(2)  # the server tells its time in whole seconds, so what is a second old may look new
    return passes("--half-bound-patience", "0.1", code=code)


def recorded(cluster: Api) -> RecordedGangs:
    class Server:
        def get(self, path: str, *_: object) -> Response:
            import json

            try:
                return Response(200, json.dumps(cluster.get(path)).encode())
            except Refused as refusal:
                return Response(refusal.status, b"{}")

    return read_record(Server(), "placer", "placer-gangs")


def terminating(cluster: Api) -> set[str]:
    """Pods that are being deleted; they end here, as their kubelet would end them."""
    found = {
        each["metadata"]["name"] for each in cluster.items("/api/v1/pods") if each["metadata"].get("deletionTimestamp")
    }
    for name in found:
        cluster.delete(f"{PODS}/{name}")
    return found


def high(name: str = "high") -> Document:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": 1_000_000,
    }


def urgent(name: str, **amounts: Any) -> Document:
    found = live_pod(name, **amounts)
    return {**found, "spec": {**found["spec"], "priorityClassName": "high"}}


def reasons(cluster: Api) -> list[str]:
    return [each["reason"] for each in cluster.items("/apis/events.k8s.io/v1/events")]


@pytest.mark.exhaustive
def test_two_that_hold_each_others_room_do_not_do_so_for_ever(cluster: Api, passes: Passes, proxy: Proxy) -> None:
    cluster.create(node("n1", cpu=4), node("n2", cpu=4), node("n3", cpu=4), node("n4", cpu=4))
    cluster.create(*gang("a", 2, cpu=4), *gang("b", 2, cpu=4))
    proxy.rule = refusing("a-1", "b-1")
    told = passes(code=6)
    assert {name: each["bound"] for name, each in half_bound(told).items()} == {
        "PodGroup default/a": 1,
        "PodGroup default/b": 1,
    }
    free = sorted({"n1", "n2", "n3", "n4"} - set(bound(cluster).values()))
    for number, where in enumerate(free):
        steal(cluster, f"thief-{number}", where, cpu=4)
    proxy.rule = nothing
    told = passes(code=6)  # patience is not over: nothing happens, and it is told
    assert (told["bound"], told["gangs"]["halfBound"], told["gangs"]["rolledBack"]) == (0, 2, 0)
    told = with_short_patience(passes, code=6)
    states = {each["group"]: each["state"] for each in told["incomplete"]}
    assert states == {"PodGroup default/a": "halfBound", "PodGroup default/b": "rolledBack"}
    assert terminating(cluster) == {"b-0"}
    assert reasons(cluster).count("RolledBack") == 1
    record = {key.name: each for key, each in recorded(cluster).gangs.items()}
    assert (record["b"].rolled_back, record["b"].pods) == (1, frozenset())

    cluster.create(gang("b", 2, cpu=4)[1])  # its controller makes it anew
    told = passes()
    assert told["gangs"]["bound"] == 1
    assert {"a-0", "a-1"} <= set(bound(cluster))
    assert list(told["backingOff"]) == ["PodGroup default/b"]
    status = cluster.get(f"{PODS}/b-0")["status"]
    (found,) = [each for each in status["conditions"] if each["type"] == "PodScheduled"]
    assert found["message"].startswith("rolled back, since half-bound; tried again at ")
    assert overfull(cluster) == []


def test_what_earlier_passes_bound_goes_too(cluster: Api, passes: Passes, proxy: Proxy) -> None:
    cluster.create(node("n1"), *gang("train", 4), live_pod("lone", cpu=1))
    proxy.rule = refusing("train-2", "train-3")
    assert passes(code=6)["bound"] == 3
    proxy.rule = refusing("train-3")
    told = passes("--roll-back")
    assert (told["bound"], told["gangs"]["rolledBack"]) == (0, 1)
    assert terminating(cluster) == {"train-0", "train-1", "train-2"}
    assert set(bound(cluster)) == {"lone"}


@pytest.mark.exhaustive
def test_one_whose_missing_pod_is_gone_is_still_told(cluster: Api, passes: Passes, proxy: Proxy) -> None:
    cluster.create(node("n1"), *gang("train", 3))
    proxy.rule = refusing("train-2")
    passes(code=6)
    cluster.delete(f"{PODS}/train-2")
    for _ in range(2):
        told = passes(code=6)
        (found,) = half_bound(told).values()
        assert (found["bound"], found["reason"]) == (2, "2 of minMember 3 placed (2 before, 0 new)")
        (condition,) = cluster.get(f"{GROUPS}/train")["status"]["conditions"]
        assert condition["type"] == "Unschedulable"
        assert condition["message"].startswith("half-bound: 2 of 3 run since ")
        assert condition["message"].endswith(" unless it is complete; 2 of minMember 3 placed (2 before, 0 new)")
    with_short_patience(passes, code=0)
    assert terminating(cluster) == {"train-0", "train-1"}
    assert passes()["unfinished"] == []


def test_a_tenants_pod_with_a_node_of_its_own_beats_no_priority(cluster: Api, passes: Passes) -> None:
    """Room for one pod of 4: the gang's second one, or another user's of high priority."""
    first, second = gang("half", 2, cpu=4)[1:]
    notes = {"placer.dev/bound-by": "placer", "placer.dev/numa-zones": "node-0"}
    first["metadata"]["annotations"] = {**first["metadata"].get("annotations", {}), **notes}
    first["spec"]["nodeName"] = "n1"
    cluster.create(node("n1"), pod_group("half", minMember=2), high())
    cluster.create(first, second, urgent("urgent", cpu=4))
    told = passes()
    assert (told["unfinished"], told["incomplete"]) == ([], [])
    assert set(bound(cluster)) == {"half-0", "urgent"}


def test_what_placer_bound_itself_comes_before_every_priority(cluster: Api, passes: Passes, proxy: Proxy) -> None:
    cluster.create(node("n1"), *gang("half", 2, cpu=4))
    proxy.rule = refusing("half-1")
    passes(code=6)
    proxy.rule = nothing
    cluster.create(high())
    cluster.create(urgent("urgent", cpu=4))
    told = passes()
    assert told["unfinished"] == ["PodGroup default/half"]
    assert set(bound(cluster)) == {"half-0", "half-1"}
    assert dict(recorded(cluster).gangs) == {}


def test_a_gang_that_was_made_anew_under_its_name_is_not_half_bound(cluster: Api, passes: Passes, proxy: Proxy) -> None:
    cluster.create(node("n1"), *gang("half", 2, cpu=4))
    proxy.rule = refusing("half-1")
    passes(code=6)
    _, first, second = gang("half", 2, cpu=4)
    recreate(cluster, second)
    recreate(cluster, {**first, "spec": {**first["spec"], "nodeName": "n1"}})
    cluster.create(high())
    cluster.create(urgent("urgent", cpu=4))
    proxy.rule = nothing
    assert passes()["unfinished"] == []
    assert set(bound(cluster)) == {"half-0", "urgent"}


def test_nothing_is_deleted_of_a_gang_that_was_completed_meanwhile(cluster: Api, passes: Passes, proxy: Proxy) -> None:
    cluster.create(node("n1"), *gang("train", 2))
    done: list[str] = []

    def completed(method: str, path: str, times: int) -> Spoil | None:
        if (method, path) == ("GET", PODS) and not done:
            done.append(path)
            cluster.bind("default", "train-1", "n1")
        return refusing("train-1")(method, path, times)

    proxy.rule = completed
    told = passes("--roll-back")
    assert (told["gangs"]["bound"], told["gangs"]["rolledBack"]) == (1, 0)
    assert terminating(cluster) == set()
    assert len(bound(cluster)) == 2


def test_nor_of_one_that_was_completed_between_the_last_look_and_the_deletion(
    cluster: Api, passes: Passes, proxy: Proxy
) -> None:
    """Whoever completes it writes to its pods: they are another version than the one that was to be deleted."""
    cluster.create(node("n1"), *gang("train", 2))
    done: list[str] = []

    def completed(method: str, path: str, times: int) -> Spoil | None:
        if method == "DELETE" and not done:
            done.append(path)
            cluster.bind("default", "train-1", "n1")
            cluster.patch(f"{PODS}/train-0", {"metadata": {"labels": {"started": "yes"}}})
        return refusing("train-1")(method, path, times)

    proxy.rule = completed
    told = passes("--roll-back")
    assert done
    assert told["gangs"]["rolledBack"] == 0
    assert terminating(cluster) == set()
    assert len(bound(cluster)) == 2


def test_without_the_right_to_delete_it_stays_and_is_told(cluster: Api, passes: Passes, proxy: Proxy) -> None:
    cluster.create(node("n1"), *gang("train", 2))

    def rule(method: str, path: str, times: int) -> Spoil | None:
        return Spoil(403) if method == "DELETE" else refusing("train-1")(method, path, times)

    proxy.rule = rule
    told = passes("--roll-back", code=6)
    (found,) = half_bound(told).values()
    assert (found["bound"], found["reason"]) == (1, "it could not be rolled back: 403 spoilt")
    assert bound(cluster) == {"train-0": "n1"}


def test_without_a_record_nothing_is_bound(cluster: Api, passes: Passes, proxy: Proxy) -> None:
    cluster.create(node("n1"), *gang("train", 2))
    proxy.rule = lambda method, path, _times: Spoil(403) if "configmaps" in path and method == "POST" else None
    told = passes(code=6)
    assert "the record of half-bound gangs: 403" in told["error"]
    assert bound(cluster) == {}


def test_room_that_a_half_bound_gang_can_use_is_left_to_it(cluster: Api, passes: Passes, proxy: Proxy) -> None:
    """Two of its pods are not bound, and another scheduler takes the node of one: no pass uses the other one's."""
    cluster.create(*leaves(2, 4, cpu=4), *gang("half", 4, tier=1, cpu=4))
    proxy.rule = refusing("half-2", "half-3")
    passes(code=6)
    where = set(bound(cluster).values())
    rack = sorted(where)[0].rpartition("-")[0]
    first, second = sorted({f"{rack}-{number:02d}" for number in range(4)} - where)
    thief = steal(cluster, "thief", first, cpu=4)
    proxy.rule = nothing
    cluster.create(*gang("more", 3, cpu=4), *gang("new", 2, cpu=4), live_pod("lone", cpu=4))
    for _ in range(2):
        told = passes(code=6)
        assert told["unfinished"] == ["PodGroup default/half"]
        assert second not in bound(cluster).values()
        (found,) = cluster.get(f"{PODS}/half-2")["status"]["conditions"]
        assert found["message"].endswith(", 1 too few")  # the room that is held is its own
    assert len(bound(cluster)) == 3 + 4  # the other rack is full
    cluster.delete(f"{PODS}/{thief.pod.name}")
    passes()
    assert {bound(cluster)[f"half-{number}"] for number in (2, 3)} == {first, second}
    assert dict(recorded(cluster).gangs) == {}
    assert overfull(cluster) == []


def test_and_to_others_once_patience_with_it_is_over(cluster: Api, passes: Passes, proxy: Proxy) -> None:
    cluster.create(*leaves(1, 4, cpu=4), *gang("half", 4, tier=1, cpu=4))
    proxy.rule = refusing("half-2", "half-3")
    passes(code=6)
    free = sorted({f"n-00-{number:02d}" for number in range(4)} - set(bound(cluster).values()))
    steal(cluster, "thief", free[0], cpu=4)
    proxy.rule = nothing
    cluster.create(live_pod("lone", cpu=4))
    passes(code=6)
    assert "lone" not in bound(cluster)
    assert with_short_patience(passes, code=0)["gangs"]["rolledBack"] == 1
    assert bound(cluster)["lone"] == free[1]
    assert terminating(cluster) == {"half-0", "half-1"}
