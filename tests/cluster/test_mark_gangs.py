"""Gangs that marks declare in a cluster: passes bind them whole, tell of them, and find them again half-bound."""

from __future__ import annotations

import json
from typing import Any

import pytest

import placer
from placer.passes.cluster.reading.anonymize import anonymized
from placer.passes.cluster.reading.earlier_passes import prepared
from placer.passes.cluster.reading.gang_record import digests
from placer.problem import Instance
from placer.problem.instance_builder import make_instance
from tests.cluster.snapshots import snapshot_of
from tests.cluster.test_any_object import Double, pass_at
from tests.cluster.test_earlier_passes import recorded
from tests.cluster.things import live_pod
from tests.problem.test_mark_gangs import BY_MARKS, KOORD, MIN_MEMBER
from tests.support import Document, node

#: Systems whose gangs are no objects of a cluster.
SYSTEMS = [system for system in BY_MARKS if system != "volcano"]


def gang(system: str, name: str, *, cpu: int = 4, bound: int = 0, **options: Any) -> list[Document]:
    """Two pods of a gang, of which some are bound."""
    labels, notes, _ = BY_MARKS[system]
    texts = [{key: name if value == "g" else value for key, value in each.items()} for each in (labels, notes)]
    return [
        live_pod(
            f"{name}-{number}",
            labels=texts[0],
            annotations=texts[1],
            cpu=cpu,
            node="n1" if number < bound else None,
            metadata={"uid": f"uid-{name}-{number}"},
            **options,
        )
        for number in range(2)
    ]


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_pass_binds_it_whole_and_tells_of_it_by_a_pod(system: str) -> None:
    server, done = pass_at(Double([node("n1", cpu=12), *gang(system, "fits"), *gang(system, "large", cpu=8)], []))
    assert set(server.bound) == {"fits-0", "fits-1"}
    assert done.result is not None
    assert {key.name: reason.code for key, reason in done.result.reasons.items()} == {"large": "InsufficientResources"}
    events = {
        body["reason"]: (body["regarding"]["kind"], body["regarding"]["name"], body["note"].split(":")[0])
        for path, body in server.written
        if path.endswith("/events")
    }
    assert events == {
        "Scheduled": ("Pod", "fits-0", "gang fits"),
        "FailedScheduling": ("Pod", "large-0", "gang large"),
    }
    assert not [path for path, _ in server.written if "podgroups" in path]


def test_in_a_cluster_pods_wait_for_the_pod_group_of_volcanos_controller() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "r", "controller": True}
    pods = [
        live_pod(name, cpu=1, annotations={MIN_MEMBER: "1"}, metadata={"uid": name, "ownerReferences": [owner]})
        for name in "ab"
    ]
    server, done = pass_at(Double([node("n1"), *pods], []))
    assert server.bound == {}
    assert done.result is not None
    (reason,) = done.result.reasons.values()
    assert (reason.code, "is not there yet" in reason.message) == ("InvalidGroup", True)


@pytest.mark.parametrize("system", SYSTEMS)
def test_one_that_is_half_bound_comes_first(system: str) -> None:
    urgent = live_pod("urgent", cpu=4, spec={"priority": 1000}, metadata={"uid": "uid-urgent"})
    key = BY_MARKS[system][2]
    record = recorded("half", group=key.api_group, pods=digests(["uid-half-0", "uid-half-1"]))
    made = prepared(snapshot_of([node("n1", cpu=8), *gang(system, "half", bound=1), urgent]), (), record)
    assert [each.name for each in made.half_bound] == ["half"]
    result = placer.solve(made.instance, method="greedy")
    assert result.placement is not None
    assert [binding.pod.name for binding in result.placement.bindings] == ["half-1"]


def shape(instance: Instance) -> list[tuple[int, list[int], int, bool, int]]:
    """How large the gangs are, without a name."""
    return sorted(
        (
            group.min_member,
            sorted(group.min_task_member.values()),
            len(group.pending),
            group.invalid is None,
            sum(bool(instance.pods[pod].unsupported) for pod in group.pending),
        )
        for group in instance.groups.values()
    )


@pytest.mark.parametrize("system", SYSTEMS)
def test_gangs_survive_other_names(system: str) -> None:
    broken = gang(system, "broken")[0]
    notes = {f"{KOORD}/groups": '["default/tenant-secret", "x/y"]', f"{KOORD}/match-policy": "tenant-secret"}
    broken = {
        **broken,
        "metadata": {**broken["metadata"], "annotations": {**broken["metadata"]["annotations"], **notes}},
    }
    before = snapshot_of([node("n1"), *gang(system, "tenant-secret"), broken])
    after = anonymized(before)
    assert "tenant-secret" not in json.dumps([item.decode() for item in after.items])
    instances = [
        make_instance(each.objects(), scheduler_name=each.scheduler_name, cluster=True) for each in (before, after)
    ]
    assert shape(instances[0]) == shape(instances[1])
    assert {group.key.api_group for group in instances[1].groups.values()} == {BY_MARKS[system][2].api_group}
