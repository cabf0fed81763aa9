"""Others in the cluster during a pass: they take room, bind, cordon, delete and make anew; on a real API server."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.api import PATIENCE, Api
from tests.cluster.controllers import priority_class
from tests.cluster.faults import PODS, at_first_binding, before_bindings, half_bound, recreate, steal
from tests.cluster.passes import Passes, bound, gang
from tests.cluster.things import live_pod
from tests.support import node


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
    cluster.create(priority_class("high", 1000))
    cluster.create({**urgent, "spec": {**urgent["spec"], "priorityClassName": "high"}})
    told = passes()
    assert bound(cluster) == {"train-0": "n1", "train-1": "n1"}
    assert told["gangs"]["bound"] == 1
