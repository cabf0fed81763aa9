"""Half-bound gangs on a real API server: whose they are, who comes first, how they end."""

from __future__ import annotations

import time
from typing import Any

import pytest

from placer.passes.cluster.reading.client import Response
from placer.passes.cluster.reading.gang_record import RecordedGangs, read_record
from tests.cluster.api import Api, Refused
from tests.cluster.faults import PODS, half_bound, refusing, steal
from tests.cluster.passes import Passes, bound, gang, overfull
from tests.cluster.proxy import Proxy, Spoil
from tests.cluster.things import live_pod
from tests.support import node

pytestmark = pytest.mark.usefixtures("lasting_lease")


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
    proxy.rule = lambda *_: None
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
