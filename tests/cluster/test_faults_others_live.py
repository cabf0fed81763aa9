"""Others in the cluster during a pass: they take room, bind, cordon, delete and make anew; on a real API server."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from placer.passes.cluster import Client
from placer.passes.cluster.planning.scheduler_cache import SchedulerCache
from placer.problem import Key
from tests.cluster.api import PATIENCE, Api
from tests.cluster.faults import PODS, at_first_binding, before_bindings, half_bound, recreate, steal
from tests.cluster.passes import Passes, bound, gang, overfull
from tests.cluster.things import live_pod
from tests.support import Document, node


def test_room_that_is_taken_before_the_binding_leaves_the_gang(
    cluster: Api, passes: Passes, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.create(node("n1"), node("n2"), *gang("train", 2, cpu=8))

    def work(cache: Any) -> None:
        theirs = steal(cluster, "thief", "n1", cpu=1)
        assert cache.wait(PATIENCE, lambda: cache.is_bound(theirs))

    before_bindings(monkeypatch, work)
    told = passes()
    assert (told["planned"], told["bound"], told["gangs"]["left"]) == (2, 0, 1)
    assert told["left"] == {"PodGroup default/train": "the room is gone on Node n1: cpu 8 of 7 left"}
    assert bound(cluster) == {"thief": "n1"}
    status = cluster.get(f"{PODS}/train-0")["status"]
    (found,) = [each for each in status["conditions"] if each["type"] == "PodScheduled"]
    assert (found["reason"], found["status"]) == ("SchedulerError", "False")


def test_only_the_gangs_whose_room_is_gone_are_left(
    cluster: Api, passes: Passes, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.create(node("n1"), node("n2"), *gang("a", 2, cpu=4), *gang("b", 2, cpu=4))

    def work(cache: Any) -> None:
        theirs = steal(cluster, "thief", "n2", cpu=1)
        assert cache.wait(PATIENCE, lambda: cache.is_bound(theirs))

    before_bindings(monkeypatch, work)
    told = passes()
    assert told["gangs"]["left"] == 1
    assert told["bound"] == 2
    assert overfull(cluster) == []
    assert {name.partition("-")[0] for name in bound(cluster)} in ({"a", "thief"}, {"b", "thief"})


def test_a_race_that_cannot_be_excluded_is_found_and_reported(
    cluster: Api, passes: Passes, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.create(node("n1"), live_pod("ours", cpu=8))
    at_first_binding(monkeypatch, lambda _: steal(cluster, "thief", "n1", cpu=1))
    told = passes(code=6)
    assert told["overfull"] == ["Node n1: cpu 9 of 8"]
    notes = [
        each["note"] for each in cluster.items("/apis/events.k8s.io/v1/events") if each["reason"] == "NodeOverfull"
    ]
    assert notes == ["pods request too much: Node n1: cpu 9 of 8"]


def test_a_node_that_is_cordoned_or_gone_gets_nothing(
    cluster: Api, passes: Passes, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.create(node("n1", cpu=4), node("n2", cpu=5), live_pod("a", cpu=4), live_pod("b", cpu=5))

    def work(cache: Any) -> None:
        cluster.patch("/api/v1/nodes/n1", {"spec": {"unschedulable": True}})
        cluster.delete("/api/v1/nodes/n2")
        assert cache.wait(PATIENCE, lambda: not cache.nodes.keys() - {"n1"} and cache.nodes["n1"].unschedulable)

    before_bindings(monkeypatch, work)
    assert passes()["left"] == {
        "Pod default/a": "Pod default/a may no longer run on Node n1: node is unschedulable",
        "Pod default/b": "Node n2 is gone",
    }
    assert bound(cluster) == {}


def test_a_pod_made_anew_during_the_search_drops_its_gang(
    cluster: Api, passes: Passes, monkeypatch: pytest.MonkeyPatch
) -> None:
    group, first, second = gang("train", 2)
    cluster.create(node("n1"), group, first, second, live_pod("lone", cpu=1))
    before_bindings(monkeypatch, lambda cache: _recreated(cluster, first, cache))
    told = passes()
    assert told["left"] == {"PodGroup default/train": "Pod default/train-0 has changed since the snapshot"}
    assert bound(cluster) == {"lone": "n1"}


def _recreated(cluster: Api, document: Document, cache: Any) -> None:
    recreate(cluster, document)
    assert cache.wait(PATIENCE, lambda: Key("default", document["metadata"]["name"]) in cache.changed())


def test_a_pod_made_anew_at_the_last_moment_does_not_get_the_node(
    cluster: Api, passes: Passes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The uid keeps it off; the gang is half-bound, told so, and the first thing that the next pass completes."""
    group, first, second = gang("train", 2, cpu=4)
    cluster.create(node("n1"), group, first, second)
    at_first_binding(monkeypatch, lambda _: recreate(cluster, second), "train-1")
    told = passes(code=6)
    assert bound(cluster) == {"train-0": "n1"}
    assert half_bound(told) == {
        "PodGroup default/train": {
            "group": "PodGroup default/train",
            "state": "halfBound",
            "bound": 1,
            "missing": {"default/train-1": "another pod has its name now"},
            "reason": None,
        }
    }
    reasons = {each["reason"] for each in cluster.items("/apis/events.k8s.io/v1/events")}
    assert reasons == {"Scheduled", "HalfBound", "FailedScheduling"}
    # Pods of a higher priority wait now: 4 of 8 cpu are left, and the gang needs them to be of use.
    urgent = live_pod("urgent", cpu=4, spec={"priority": 1000})
    cluster.create(
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "high"},
            "value": 1000,
        }
    )
    cluster.create({**urgent, "spec": {**urgent["spec"], "priorityClassName": "high"}})
    told = passes()
    assert bound(cluster) == {"train-0": "n1", "train-1": "n1"}
    assert told["gangs"]["bound"] == 1


def _cordon(cluster: Api) -> None:
    cluster.patch("/api/v1/nodes/n2", {"spec": {"unschedulable": True}})


def _shrink(cluster: Api) -> None:
    cluster.patch("/api/v1/nodes/n2/status", {"status": {"allocatable": {"cpu": "3"}}})


def _remove(cluster: Api) -> None:
    cluster.delete("/api/v1/nodes/n2")


def _fill(cluster: Api) -> None:
    steal(cluster, "thief", "n2", cpu=8)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (_cordon, "Pod default/train-{} may no longer run on Node n2: node is unschedulable"),
        (_shrink, "the room is gone on Node n2: cpu 4 of "),
        (_remove, "Node n2 is gone"),
        (_fill, "the room is gone on Node n2: cpu 4 of "),
    ],
)
def test_a_node_that_changes_after_the_first_binding_of_a_gang_gets_nothing_more(
    cluster: Api, passes: Passes, monkeypatch: pytest.MonkeyPatch, change: Callable[[Api], None], why: str
) -> None:
    """What could still go on other nodes goes; what was to come to this one is missing, and that is told."""
    cluster.create(node("n1"), node("n2"), *gang("train", 4, cpu=4))
    heard = threading.Event()
    really = SchedulerCache.node_happened, SchedulerCache.pod_happened

    def node_happened(self: SchedulerCache, kind: str, item: bytes) -> None:
        really[0](self, kind, item)
        heard.set()

    def pod_happened(self: SchedulerCache, kind: str, item: bytes) -> None:
        really[1](self, kind, item)
        if b'"thief"' in item and b'"nodeName"' in item:
            heard.set()

    def after_first(self: Client, method: str, path: str, *rest: Any, **options: Any) -> Any:
        answer = sent(self, method, path, *rest, **options)
        if path.endswith("/binding") and not changed:
            changed.append(path)
            change(cluster)
            assert heard.wait(PATIENCE)
        return answer

    changed: list[str] = []
    sent = Client.send
    monkeypatch.setattr(SchedulerCache, "node_happened", node_happened)
    monkeypatch.setattr(SchedulerCache, "pod_happened", pod_happened)
    monkeypatch.setattr(Client, "send", after_first)
    # The first goes to n1: binding by binding, in the order of the plan.
    told = passes("--bind-workers", "1", code=6)
    where = {name: home for name, home in bound(cluster).items() if name != "thief"}
    (found,) = half_bound(told).values()
    missing = {pod.rpartition("-")[2]: text for pod, text in found["missing"].items()}
    assert all(text.startswith(why.format(number)) for number, text in missing.items()), missing
    assert (len(where), len(missing)) == (2, 2)
    assert set(where.values()) == {"n1"}
    assert told["overfull"] == []
