"""An instance that is put together from kept facts equals one that is read afresh, whatever has happened meanwhile."""

from __future__ import annotations

import random
from dataclasses import fields, replace
from typing import Any

import pytest

from placer.base.errors import BadInstance
from placer.passes.cluster.reading.earlier_passes import instance_in
from placer.problem import Instance
from placer.problem.instance_builder import KeptFacts
from tests.cluster.snapshots import snapshot_of
from tests.support import Document, node, pod, pod_group, policy, queue


def read(documents: list[Document], kept: KeptFacts | None) -> Instance | str:
    try:
        return instance_in(replace(snapshot_of(documents), kept=kept))
    except BadInstance as bad:
        return str(bad)


def differing(one: Instance | str, other: Instance | str) -> dict[str, tuple[Any, Any]]:
    """The parts in which two instances differ; texts of errors as a whole."""
    if isinstance(one, str) or isinstance(other, str):
        return {} if one == other else {"error": (one, other)}
    parts = ((each.name, getattr(one, each.name), getattr(other, each.name)) for each in fields(Instance))
    return {name: (left, right) for name, left, right in parts if left != right}


def world() -> list[list[Document | None]]:
    """Objects that others depend on, each in all its forms; None: it is not there."""
    label, claim = {"labels": {"disk": "ssd"}}, {"persistentVolumeClaim": {"claimName": "data"}}
    owner = [{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}]
    of_group = {"scheduling.k8s.io/group-name": "g"}
    protected = {"volcano.sh/preemptable": "false"}
    groups = [pod_group("g", minMember=1), pod_group("g", minMember=2, queue="q1")]
    groups += [{**groups[0], "metadata": {**groups[0]["metadata"], "annotations": protected}}]
    groups += [pod_group("g", minMember=1, priorityClassName="high")]
    volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"}, "spec": {}}
    claims: list[Document | None] = [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data", "namespace": "default"},
            "spec": {"volumeName": "v", "accessModes": [mode]},
            "status": {"phase": phase},
        }
        for mode, phase in (("ReadWriteOnce", "Bound"), ("ReadWriteOncePod", "Bound"), ("ReadWriteOnce", "Pending"))
    ]
    spaces: list[Document | None] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", **more}}
        for more in ({}, {"labels": {"team": "a"}}, {"deletionTimestamp": "2026-01-01T00:00:00Z"})
    ]
    classes: list[Document | None] = [
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": value}
        | more
        for value, more in ((10, {}), (20, {"globalDefault": True}), (10, {"preemptionPolicy": "Never"}))
    ]
    protect = {"protect": [{"selector": {"matchLabels": {"team": "a"}}}]}
    policies = [policy(disruption=protect), policy(groupPriority="class"), policy(gangs="owners")]

    gang = {"schedulingPolicy": {"gang": {"minCount": 1}}}
    upstream: list[Document | None] = [
        {
            "apiVersion": "scheduling.k8s.io/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": "u", "namespace": "default"},
            "spec": gang | more,
        }
        for more in (
            {},
            {"schedulingConstraints": {"topology": [{"key": "rack"}]}},
            {"preemptionPolicy": "Never"},
            {"priorityClassName": "high"},
        )
    ]

    def mine(name: str, **options: Any) -> list[Document | None]:
        metadata = {"name": name, "namespace": "default", "uid": name, **options.pop("metadata", {})}
        spec = {"schedulerName": "placer", **options.pop("spec", {})}
        return [pod(name, metadata=metadata, spec=spec, **options), None]

    of_nodes = queue("q1")
    of_nodes = {**of_nodes, "spec": {**of_nodes["spec"], "affinity": {"nodeGroupAffinity": {REQUIRED: ["a"]}}}}
    in_queue = {"annotations": {"scheduling.volcano.sh/queue-name": "q1"}}
    return [
        [node("n1", label["labels"], cpu=8), node("n1", cpu=8), None],
        [node("n2", {"kubernetes.io/os": "windows"}, cpu=8), node("n2", cpu=4)],
        [*groups, None],
        [*upstream, None],
        [queue("q1"), of_nodes, None],
        [*claims, None],
        [volume, None],
        [*spaces, None],
        [*classes, None],
        [*policies, None],
        mine("runs", node="n1", metadata={"ownerReferences": owner}),
        mine("member", metadata={"annotations": of_group, "ownerReferences": owner}),
        mine("bound", node="n1", metadata={"annotations": of_group, "ownerReferences": owner}),
        mine("stores", spec={"volumes": [{"name": "data", **claim}]}),
        mine("shares", spec={"volumes": [{"name": "data", **claim}]}),
        mine("urgent", spec={"priorityClassName": "high"}),
        mine("upstream", spec={"schedulingGroup": {"podGroupName": "u"}}),
        mine("queued", metadata=in_queue),
        mine("windows", spec={"os": {"name": "windows"}}),
    ]


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@pytest.mark.parametrize(
    "events", [400, pytest.param(10_000, marks=pytest.mark.exhaustive)], ids=lambda events: str(events)
)
def test_what_others_are_changes_a_pod_that_is_the_same(events: int) -> None:
    draw, kept, forms = random.Random(0), KeptFacts(), world()
    now = [each[0] for each in forms]
    for number in range(events):
        at = draw.randrange(len(forms))
        now[at] = draw.choice(forms[at])
        if not draw.randrange(20):
            kept.forget_unused()
        there = [each for each in now if each is not None]
        assert not differing(read(there, kept), read(there, None)), number


def test_a_pod_that_has_not_changed_is_made_once_and_forgotten_once_it_is_gone() -> None:
    kept = KeptFacts()
    first, second = node("n1", cpu=8), [pod(name, node="n1", cpu=1) for name in ("a", "b")]
    one = read([first, *second], kept)
    kept.forget_unused()
    other = read([first, second[0], pod("c", node="n1", cpu=1)], kept)
    assert isinstance(one, Instance)
    assert isinstance(other, Instance)
    same = {key.name for key, each in other.pods.items() if each is one.pods.get(key)}
    assert same == {"a"}
    kept.forget_unused()
    assert {manifest.name for manifest, _, _ in kept.pods._known.values()} == {"a", "c"}
    assert len(kept.objects._raws) == len(kept.objects._typed) == 3
