"""Gangs of ``scheduling.k8s.io``: PodGroups of 1.36 and 1.37, pod groups of Workloads of 1.35."""

from __future__ import annotations

from typing import Any

import pytest

from placer import solve
from placer.problem import GroupKey, Instance, Key
from placer.problem.neighbours import DomainUnit
from placer.problem.placement import Placement
from placer.rules import verify
from tests.support import instance_of, node, pod, pod_group

Document = dict[str, Any]
UPSTREAM = "scheduling.k8s.io"


def upstream(kind: str = "PodGroup", version: str = "v1beta1", name: str = "g", **spec: Any) -> Document:
    """An object of the API group."""
    return {
        "apiVersion": f"{UPSTREAM}/{version}",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


def gang(count: int, **rest: Any) -> Document:
    return {"schedulingPolicy": {"gang": {"minCount": count}}, **rest}


def member(name: str, group: str = "g", **rest: Any) -> Document:
    return pod(name, spec={"schedulingGroup": {"podGroupName": group}}, **rest)


def of_workload(name: str, key: str | None = None, pod_group: str = "workers", **rest: Any) -> Document:
    """A pod of 1.35."""
    reference = {"name": "w", "podGroup": pod_group} | ({"podGroupReplicaKey": key} if key is not None else {})
    return pod(name, spec={"workloadRef": reference}, **rest)


def workload(policy: Document, version: str = "v1alpha1") -> Document:
    return upstream("Workload", version, "w", podGroups=[{"name": "workers", "policy": policy}])


def waiting(instance: Instance) -> dict[str, str]:
    """Group to the code of why it waits."""
    return {key.name: reason.code for key, reason in solve(instance, method="greedy").reasons.items()}


@pytest.mark.parametrize("version", ["v1alpha2", "v1alpha3", "v1beta1"])
def test_a_pod_group_is_placed_whole_or_not_at_all(version: str) -> None:
    """There is room for two pods of five cores: the gang of two goes, that of three does not."""
    groups = [upstream(version=version, name="two", **gang(2)), upstream(version=version, name="three", **gang(3))]
    pods = [
        member(f"{name}-{index}", name, cpu=5) for name, size in (("two", 2), ("three", 3)) for index in range(size)
    ]
    instance = instance_of(node("n1", cpu=10), *groups, *pods)
    assert {key.name: group.min_member for key, group in instance.groups.items()} == {"two": 2, "three": 3}
    result = solve(instance, method="greedy")
    assert sorted(binding.pod.name for binding in result.placement.bindings) == ["two-0", "two-1"]
    half = Placement.of({Key("default", "three-0"): "n1"})
    assert [each.rule for each in verify(instance, half)] == ["C5"]
    assert waiting(instance) == {"three": "InsufficientResources"}
    assert instance.findings == ()


@pytest.mark.parametrize(
    ("group", "of_class", "of_pod", "never"),
    [
        ({}, None, None, False),
        ({}, None, "Never", True),
        ({"preemptionPolicy": "Never"}, None, None, True),
        ({"preemptionPolicy": "Never"}, None, "PreemptLowerPriority", True),
        ({"preemptionPolicy": "PreemptLowerPriority"}, "Never", "Never", False),
        ({"priorityClassName": "batch"}, "Never", "PreemptLowerPriority", True),
        ({"priorityClassName": "batch"}, None, "Never", True),
        ({"priorityClassName": "gone"}, "Never", None, False),
    ],
)
def test_who_preempts_nothing_the_group_says_else_its_class_else_the_pods(
    group: Document, of_class: str | None, of_pod: str | None, never: bool
) -> None:
    batch = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "batch"}, "value": 5}
    if of_class is not None:
        batch["preemptionPolicy"] = of_class
    spec = {"schedulingGroup": {"podGroupName": "g"}} | ({"preemptionPolicy": of_pod} if of_pod is not None else {})
    made = instance_of(node("n1", cpu=10), batch, upstream(**gang(1, **group)), pod("p", spec=spec))
    assert [each.never_preempts for each in made.pending] == [never]


def test_pods_of_a_basic_group_are_optional() -> None:
    instance = instance_of(
        node("n1", cpu=5), upstream(schedulingPolicy={"basic": {}}), member("a", cpu=5), member("b", cpu=5)
    )
    (group,) = instance.groups.values()
    assert (group.key, group.min_member) == (GroupKey(UPSTREAM, "default", "g"), 0)
    assert len(solve(instance, method="greedy").placement.bindings) == 1


POLICIES = {
    "neither": ({}, "spec.schedulingPolicy: found neither, expected one of basic and gang"),
    "both": (
        {"schedulingPolicy": {"basic": {}, "gang": {"minCount": 1}}},
        "spec.schedulingPolicy: found both, expected one of basic and gang",
    ),
    "no count": (
        {"schedulingPolicy": {"gang": {}}},
        "spec.schedulingPolicy.gang.minCount: found none, expected at least 1",
    ),
}


@pytest.mark.parametrize("case", POLICIES)
def test_a_policy_that_says_no_number_makes_the_group_invalid(case: str) -> None:
    spec, expected = POLICIES[case]
    instance = instance_of(node("n1"), upstream(**spec), member("a"))
    assert [group.invalid for group in instance.groups.values()] == [expected]
    assert waiting(instance) == {"g": "InvalidGroup"}


def test_the_priority_is_that_of_the_pods_else_the_class_else_the_number() -> None:
    classes = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "high"},
        "value": 100,
    }
    groups = {
        "class": gang(1, priorityClassName="high", priority=7),
        "number": gang(1, priority=7),
        "pods": gang(1),
        "gone": gang(1, priorityClassName="gone", priority=7),
        "above": gang(1, priority=7),
    }
    stated = {"pods": {"priority": 3}, "above": {"priority": 3}}
    objects = [upstream(name=name, **spec) for name, spec in groups.items()]
    instance = instance_of(
        node("n1"),
        classes,
        *objects,
        *(
            pod(f"{name}-0", spec={"schedulingGroup": {"podGroupName": name}, **stated.get(name, {})})
            for name in groups
        ),
    )
    assert {key.name: group.priority for key, group in instance.groups.items()} == {
        "class": 100,
        "number": 7,
        "pods": 3,
        "gone": 7,
        "above": 3,
    }
    above = [each.message for each in instance.findings if each.code == "PriorityAboveItsPods"]
    stated = "spec.priority of PodGroup default/above is 7, and Pod default/above-0 states 3"
    assert above == [f"{stated}, which counts: expected at most 3"]


UNSUPPORTED = {
    "part of a CompositePodGroup": (
        [
            upstream("CompositePodGroup", "v1alpha3", "c", schedulingPolicy={"gang": {"minGroupCount": 1}}),
            upstream(**gang(1, parentCompositePodGroupName="c")),
        ],
        "spec.parentCompositePodGroupName: c, and no CompositePodGroup is read",
    ),
    "a version that is not read": (
        [upstream(version="v2", **gang(1))],
        "its version is not read, of API scheduling.k8s.io",
    ),
}


@pytest.mark.parametrize("case", UNSUPPORTED)
def test_no_pod_of_a_gang_that_is_not_modelled_is_bound(case: str) -> None:
    objects, what = UNSUPPORTED[case]
    instance = instance_of(node("n1"), *objects, member("a", cpu=1), pod("free", cpu=1))
    assert instance.pods[Key("default", "a")].unsupported == (f"PodGroup default/g: {what}",)
    assert waiting(instance) == {"g": "Unsupported"}
    placed = Placement.of({Key("default", name): "n1" for name in ("a", "free")})
    assert [(each.rule, each.subjects) for each in verify(instance, placed)] == [("C4", ("Pod default/a",))]


def test_a_topology_key_makes_the_pods_one_unit_and_one_that_no_node_carries_is_a_finding() -> None:
    group = upstream(**gang(2, schedulingConstraints={"topology": [{"key": "rack"}]}))
    pods = [member("a", cpu=1), member("b", cpu=1)]
    split = [node("n1", {"rack": "a"}, cpu=1), node("n2", {"rack": "b"}, cpu=1)]
    instance = instance_of(*split, group, *pods)
    unit = DomainUnit("PodGroup default/g", "rack")
    assert [pod.neighbours.units for pod in instance.pods.values()] == [(unit,), (unit,)]
    assert waiting(instance) == {"g": "TopologyTooNarrow"}
    assert waiting(instance_of(node("n3", {"rack": "a"}, cpu=1), *split, group, *pods)) == {}
    found = instance_of(node("n1"), group, *pods)
    assert waiting(found) == {"g": "TopologyTooNarrow"}
    assert [(each.code, each.message) for each in found.findings] == [
        ("UnknownReference", "Node label rack, named by PodGroup default/g, is not in the instance")
    ]


# ------------------------------------------------------------------------------------------------ Workloads of v1alpha1


def test_each_replica_of_a_workloads_pod_group_is_a_gang() -> None:
    """Two pods of key 0, one of key 1, two without a key: three gangs of two, of which one lacks a pod."""
    pods = [*(of_workload(f"a{index}", "0") for index in "01"), of_workload("b", "1")]
    pods += [of_workload(f"c{index}") for index in "01"]
    instance = instance_of(node("n1"), workload({"gang": {"minCount": 2}}), *pods)
    assert {key.name: (group.min_member, len(group.pending)) for key, group in instance.groups.items()} == {
        "w/workers": (2, 2),
        "w/workers/0": (2, 2),
        "w/workers/1": (2, 1),
    }
    assert waiting(instance) == {"w/workers/1": "GangIncomplete"}


@pytest.mark.parametrize(
    ("objects", "pod_group"),
    [([], "workers"), ([workload({"gang": {"minCount": 1}})], "others"), ([upstream("Workload", name="w")], "workers")],
    ids=["no Workload", "no such pod group", "a template"],
)
def test_a_pod_group_that_no_workload_declares_is_waited_for(objects: list[Document], pod_group: str) -> None:
    instance = instance_of(node("n1"), *objects, of_workload("a", "0", pod_group))
    assert waiting(instance) == {f"w/{pod_group}/0": "InvalidGroup"}


# -------------------------------------------------------------------------------------- one gang described by two APIs


@pytest.mark.parametrize(
    ("scheduler", "first"),
    [
        (None, UPSTREAM),
        ("default-scheduler", UPSTREAM),
        ("volcano", "scheduling.volcano.sh"),
        ("scheduler-plugins-scheduler", "scheduling.x-k8s.io"),
        ("placer", UPSTREAM),
    ],
)
def test_a_gang_of_several_apis_counts_once(scheduler: str | None, first: str) -> None:
    """For the API that the pod's scheduler would read, else Kubernetes' own."""
    named = {"schedulingGroup": {"podGroupName": "g"}} | ({"schedulerName": scheduler} if scheduler else {})
    labels = {"scheduling.x-k8s.io/pod-group": "s"}
    coscheduling = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "s", "namespace": "default"},
        "spec": {"minMember": 1},
    }
    instance = instance_of(
        node("n1"),
        upstream(**gang(1)),
        pod_group("v", minMember=1),
        coscheduling,
        pod("a", group="v", spec=named, labels=labels),
    )
    with_pods = [key.api_group for key, group in instance.groups.items() if group.pending]
    assert with_pods == [first]
    assert [each.code for each in instance.findings] == ["TwoGroups"]
    name = {"scheduling.k8s.io": "g", "scheduling.volcano.sh": "v", "scheduling.x-k8s.io": "s"}[first]
    assert instance.findings[0].message.startswith(f"PodGroup {name} of {first} and ")
