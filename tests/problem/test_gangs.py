"""PodGroups of both kinds, roles, subgroups, tier limits, priorities (C5, C6, C7, O1)."""

from __future__ import annotations

from typing import Any

import pytest

from placer.problem import Group, GroupKey, Instance, Key, NetworkTopology
from placer.problem.disruption import Disruption
from placer.problem.instance import NO_TIER
from placer.problem.placement import Placement
from tests.support import Document, hyper_node, instance_of, node, pod, pod_group, policy

VOLCANO, COSCHEDULING = "scheduling.volcano.sh", "scheduling.x-k8s.io"
TREE = (
    node("n1"),
    node("n2"),
    hyper_node("leaf", 1, nodes=("n1",), tier_name="rack"),
    hyper_node("other", 2, nodes=("n2",), tier_name="twice"),
    hyper_node("top", 3, children=("leaf", "other"), tier_name="twice"),
)


def coscheduling(name: str, version: str = COSCHEDULING, **spec: Any) -> Document:
    return pod_group(name, **spec) | {"apiVersion": f"{version}/v1alpha1"}


def priority_class(name: str, value: int, **rest: Any) -> Document:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        **rest,
    }


def only(instance: Instance) -> Group:
    (group,) = instance.groups.values()
    return group


def group_of(*docs: Document, **spec: Any) -> Group:
    return only(instance_of(*TREE, pod_group("g", **spec), *docs))


def codes(instance: Instance) -> list[tuple[str, str]]:
    return [(finding.code, finding.object) for finding in instance.findings]


def names(keys: tuple[Key, ...]) -> list[str]:
    return [key.name for key in keys]


def member(name: str, role: str = "", **rest: Any) -> Document:
    return pod(name, group="g", labels={"volcano.sh/task-spec": role} if role else {}, **rest)


# who is in which group


ANNOTATIONS = ["scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name"]
LABELS = ["scheduling.x-k8s.io/pod-group", "scheduling.sigs.k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io"]


@pytest.mark.parametrize("annotation", ANNOTATIONS)
def test_members_of_a_volcano_group(annotation: str) -> None:
    group = group_of(pod("p", annotations={annotation: "g"}), minMember=1)
    assert (group.key.api_group, names(group.pending)) == (VOLCANO, ["p"])


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("version", [COSCHEDULING, "scheduling.sigs.k8s.io"])
def test_members_of_a_coscheduling_group(label: str, version: str) -> None:
    group = only(instance_of(node("n1"), coscheduling("g", version, minMember=3), pod("p", labels={label: "g"})))
    assert (group.key.api_group, group.min_member, names(group.pending)) == (COSCHEDULING, 3, ["p"])


def test_a_group_is_of_one_namespace() -> None:
    instance = instance_of(node("n1"), pod_group("g", namespace="a"), pod("p", group="g", namespace="b"))
    assert codes(instance) == [("UnknownReference", "PodGroup b/g")]
    assert [(key.namespace, names(group.pending)) for key, group in instance.groups.items()] == [
        ("a", []),
        ("b", ["p"]),
    ]


def test_a_pod_with_two_names_counts_for_the_group_that_exists() -> None:
    both = pod("p", group="g", labels={LABELS[0]: "h"})
    instance = instance_of(node("n1"), coscheduling("h"), both)
    assert only(instance).key == GroupKey(COSCHEDULING, "default", "h")
    instance = instance_of(node("n1"), coscheduling("h"), pod_group("g"), both)
    assert instance.pods[Key("default", "p")].group == GroupKey(VOLCANO, "default", "g")
    assert codes(instance) == [("TwoGroups", "Pod default/p")]


@pytest.mark.parametrize(
    ("stands", "key", "read"),
    [
        ("labels", "scheduling.k8s.io/group-name", "an annotation"),
        ("labels", "scheduling.volcano.sh/group-name", "an annotation"),
        ("annotations", "scheduling.x-k8s.io/pod-group", "a label"),
    ],
)
def test_a_name_that_stands_in_the_wrong_place_is_told(stands: str, key: str, read: str) -> None:
    """As a label Volcano does not see it: the pods are in no gang, and would be bound one by one unseen."""
    wrong: dict[str, Any] = {stands: {key: "g"}}
    pods = [pod(name, **wrong) for name in ("p", "q")]
    bound = pod("r", node="n1", **wrong)
    instance = instance_of(node("n1"), pod_group("g", minMember=1), *pods, bound, member("s"))
    (finding,) = instance.findings
    assert (finding.code, finding.object) == ("GroupNameMisplaced", "Pod default/p")
    assert finding.message == (
        f"{stands[:-1]} {key} of Pod default/p and 1 other is read as {read} only, so each counts as a pod by itself"
    )


def test_terminating_pods_count_for_nothing_in_their_group() -> None:
    deleted = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    policies = [{"name": "s", "matchLabelKeys": ["part"]}]
    instance = instance_of(
        *TREE,
        pod_group("g", subGroupPolicy=policies),
        pod("p", group="g", node="n1", metadata=deleted, labels={"part": "0"}, spec={"priority": 9}),
    )
    group = only(instance)
    assert (group.bound, group.sub_groups, group.priority, group.placed_before) == ((), (), 0, 0)
    assert instance.pods[Key("default", "p")].group == group.key
    assert instance.pods[Key("default", "p")].sub_group is None


# what the group needs


def test_succeeded_members_count_by_role_and_subgroup_in_volcano() -> None:
    done = {"phase": "Succeeded"}
    policies = [{"name": "s", "subGroupSize": 2, "minSubGroups": 1, "matchLabelKeys": ["part"]}]
    instance = instance_of(
        *TREE,
        pod_group("g", minMember=4, minTaskMember={"w": 3}, subGroupPolicy=policies),
        pod("a", group="g", node="n1", status=done, labels={"volcano.sh/task-spec": "w", "part": "0"}),
        pod("b", group="g", node="n1", status=done, labels={"volcano.sh/task-spec": "w", "part": "0"}),
        pod("c", group="g", node="n1", status={"phase": "Failed"}, labels={"part": "0"}),
        pod("d", group="g", node="n1", labels={"part": "0"}),
        pod("e", group="g", labels={"part": "1"}),
    )
    group = only(instance)
    assert group.succeeded == {"w": 2}
    assert (group.placed_before, group.need) == (3, 1)
    first, second = group.sub_groups
    assert (first.name, first.succeeded, names(first.bound), first.placed_before) == ("s-0", 2, ["d"], 3)
    assert (second.name, second.succeeded, names(second.pending)) == ("s-1", 0, ["e"])
    assert [key.name for key in instance.pods] == ["d", "e"]


# subgroups


def split(policies: list[dict[str, Any]], **pods: dict[str, str]) -> Instance:
    members = [pod(name, group="g", labels=labels) for name, labels in pods.items()]
    return instance_of(*TREE, pod_group("g", subGroupPolicy=policies), *members)


def parts(instance: Instance) -> dict[str, list[str]]:
    return {each.name: names(each.pending) for each in only(instance).sub_groups}


def test_the_first_policy_that_matches_takes_the_pod() -> None:
    instance = split(
        [
            {"name": "left", "labelSelector": {"matchLabels": {"side": "left"}}, "matchLabelKeys": ["part"]},
            {"name": "any", "matchLabelKeys": ["part"]},
        ],
        p={"side": "left", "part": "0"},
        q={"side": "right", "part": "0"},
        r={"side": "left", "part": "1"},
        s={"side": "left"},
    )
    assert parts(instance) == {"left-0": ["p"], "left-1": ["r"], "any-0": ["q"]}
    assert [each.policy for each in only(instance).sub_groups] == [0, 0, 1]
    assert [each.sub_group for each in instance.pods.values()] == [0, 2, 1, None]


def test_a_policy_without_keys_takes_nothing() -> None:
    instance = split([{"name": "s", "minSubGroups": 2, "subGroupSize": 3}], p={"part": "0"})
    assert ("PolicyMatchesNothing", "PodGroup default/g") in codes(instance)
    assert "spec.subGroupPolicy[0] (s)" in instance.findings[0].message
    assert (only(instance).sub_groups, only(instance).need) == ((), 6)


# tiers

TIERS = {
    "hard is the default": ({"highestTierAllowed": 2}, NetworkTopology(True, 2), 2),
    "soft never forbids": ({"mode": "soft", "highestTierAllowed": 2}, NetworkTopology(False, 2), None),
    "soft without a limit": ({"mode": "soft"}, NetworkTopology(False, None), None),
    "tier 0": ({"mode": "hard", "highestTierAllowed": 0}, NetworkTopology(True, 0), 0),
    "a name": ({"mode": "hard", "highestTierName": "rack"}, NetworkTopology(True, 1, "rack"), 1),
    "an empty name is none": ({"highestTierName": "", "highestTierAllowed": 3}, NetworkTopology(True, 3), 3),
}


@pytest.mark.parametrize("case", TIERS)
def test_tier_limits(case: str) -> None:
    written, expected, limit = TIERS[case]
    instance = instance_of(*TREE, pod_group("g", networkTopology=written), member("p"))
    topology = only(instance).topology
    assert topology == expected
    assert topology.limit == limit
    # The name that stands on two tiers is the only finding.
    assert codes(instance) == [("TierNameAmbiguous", "HyperNode other")]


LIMITLESS = {
    "hard without a limit": ({"mode": "hard"}, "HardWithoutLimit", None),
    "nothing said": ({}, "HardWithoutLimit", None),
    "unknown name": ({"highestTierName": "x"}, "TierNameUnknown", NO_TIER),
    "name on two tiers": ({"highestTierName": "twice"}, "TierNameAmbiguous", NO_TIER),
    "unknown name, soft": ({"mode": "soft", "highestTierName": "x"}, "TierNameUnknown", None),
}


@pytest.mark.parametrize("case", LIMITLESS)
@pytest.mark.parametrize("scope", ["group", "policy"])
def test_limits_that_cannot_be_as_meant(case: str, scope: str) -> None:
    written, code, limit = LIMITLESS[case]
    spec: dict[str, Any] = {"networkTopology": written}
    if scope == "policy":
        spec = {"subGroupPolicy": [{"name": "s", "matchLabelKeys": ["part"], **spec}]}
    instance = instance_of(*TREE, pod_group("g", **spec), member("p"))
    group = only(instance)
    topology = group.topology if scope == "group" else group.policies[0].topology
    assert topology is not None
    assert topology.limit == limit
    assert group.invalid is None
    assert (code, "PodGroup default/g") in codes(instance)


BOTH = {"highestTierAllowed": 1, "highestTierName": "rack"}
BOTH_SAID = "sets both highestTierAllowed (1) and highestTierName (rack), expected one of them"


@pytest.mark.parametrize("mode", ["hard", "soft"])
def test_both_limits_make_the_group_invalid(mode: str) -> None:
    group = group_of(member("p"), networkTopology=BOTH | {"mode": mode})
    assert group.invalid == f"spec.networkTopology {BOTH_SAID}"


def test_a_limit_without_any_hyper_node_is_a_finding() -> None:
    limit = {"mode": "hard", "highestTierAllowed": 1}
    soft = pod_group("s", networkTopology={"mode": "soft", "highestTierAllowed": 1})
    instance = instance_of(node("n1"), pod_group("g", networkTopology=limit), soft)
    assert codes(instance) == [("NoHyperNodes", "PodGroup default/g")]


def test_locality_all_marks_every_pod_group_without_a_network_topology() -> None:
    marked = pod_group("m", networkTopology={"mode": "hard", "highestTierAllowed": 1})
    instance = instance_of(*TREE, policy(locality="all"), pod_group("g"), marked, coscheduling("c"), pod("p"))
    topologies = {key.name: group.topology for key, group in instance.groups.items()}
    soft = NetworkTopology(hard=False)
    assert topologies == {"g": soft, "c": soft, "m": NetworkTopology(True, 1), "p": None}


# priorities

CLASSES = (priority_class("high", 100), priority_class("low", -5), priority_class("std", 10, globalDefault=True))

PRIORITIES = {
    "its own number": ({"priority": 3, "priorityClassName": "high"}, 3),
    "its class": ({"priorityClassName": "high"}, 100),
    "the global default": ({}, 10),
    "a class of every cluster": ({"priorityClassName": "system-node-critical"}, 2_000_001_000),
}


@pytest.mark.parametrize("case", PRIORITIES)
def test_priority_of_a_pod(case: str) -> None:
    spec, expected = PRIORITIES[case]
    instance = instance_of(node("n1"), *CLASSES, pod("p", spec=spec))
    assert instance.pods[Key("default", "p")].priority == only(instance).priority == expected
    assert instance.findings == ()


def test_of_two_global_defaults_the_lower_counts() -> None:
    instance = instance_of(node("n1"), *CLASSES, priority_class("other", 4, globalDefault=True), pod("p"))
    assert only(instance).priority == 4


# What the pods of a group state, and its PodGroup: how urgent it is while it waits, and its findings.
GROUPS: dict[str, tuple[list[Document], Document, int, list[str]]] = {
    "its least urgent pod": (
        [{"priority": 7}, {"priorityClassName": "high"}],
        {},
        7,
        ["PodsOfSeveralPriorities"],
    ),
    "its pods, whatever its class says": (
        [{"priority": 7}],
        {"priorityClassName": "high"},
        7,
        ["PriorityAboveItsPods"],
    ),
    "its pods, where its class says less": ([{"priority": 7}], {"priorityClassName": "low"}, 7, []),
    "its class, where no pod states one": ([{}, {}], {"priorityClassName": "high"}, 100, []),
    "those of its pods that state one": ([{}, {"priority": 30}], {"priorityClassName": "low"}, 30, []),
    "the global default": ([{}], {}, 10, []),
    "the default of a group without pods": ([], {}, 10, []),
    "the class of a group without pods": ([], {"priorityClassName": "high"}, 100, []),
    "a class that is not there": ([{}], {"priorityClassName": "x"}, 10, ["UnknownReference"]),
    "pods whose class is not there": (
        [{"priorityClassName": "x"}],
        {"priorityClassName": "high"},
        100,
        ["UnknownReference"],
    ),
}


@pytest.mark.parametrize("case", GROUPS)
def test_priority_of_a_group_that_waits(case: str) -> None:
    pods, spec, expected, found = GROUPS[case]
    members = [member(f"p{index}", spec=each) for index, each in enumerate(pods)]
    instance = instance_of(node("n1"), *CLASSES, pod_group("g", **spec), *members)
    assert only(instance).priority == expected
    assert [code for code, _ in codes(instance)] == found


def test_a_running_pod_counts_for_its_group_and_a_gated_or_terminating_one_does_not() -> None:
    waits = member("p", spec={"priority": 7})
    assert group_of(waits, member("q", node="n1", spec={"priority": 3})).priority == 3
    gone = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    assert group_of(waits, member("q", node="n1", spec={"priority": 3}, metadata=gone)).priority == 7
    assert group_of(waits, member("q", spec={"priority": 3, "schedulingGates": [{"name": "x"}]})).priority == 7


def test_under_group_priority_class_the_class_decides_in_silence() -> None:
    pods = (member("p", spec={"priority": 7}), member("q", spec={"priority": 9}))
    classes = (policy(groupPriority="class"), *CLASSES)
    instance = instance_of(node("n1"), *classes, pod_group("g", priorityClassName="high"), *pods)
    assert only(instance).priority == 100
    assert codes(instance) == []
    assert only(instance_of(node("n1"), *classes, pod_group("g"), *pods)).priority == 7


def test_what_runs_is_as_urgent_as_its_most_urgent_pod() -> None:
    def units(*docs: Document, **spec: Any) -> list[tuple[str, int]]:
        instance = instance_of(node("n1"), *CLASSES, pod_group("g", **spec), *docs)
        gone = tuple(key for key in instance.pods)
        return [(unit.name, unit.priority) for unit in Disruption(instance, Placement(evictions=gone)).units]

    running = [member("p", node="n1", spec={"priority": 7}), member("q", node="n1", spec={"priority": 9})]
    assert units(*running, minMember=2) == [("PodGroup/default/g", 9)]
    assert units(*running) == [("Pod/default/p", 7), ("Pod/default/q", 9)]
    assert units(*running, priorityClassName="high") == [("Pod/default/p", 7), ("Pod/default/q", 9)]
    silent = member("p", node="n1", spec={})
    assert units(silent, priorityClassName="high") == [("Pod/default/p", 100)]
    assert units(policy(groupPriority="class"), *running, priorityClassName="high", minMember=2) == [
        ("PodGroup/default/g", 100)
    ]


# pods that belong to their nodes


def mirror(name: str, **metadata: Any) -> Document:
    made = member(name, node="n1")
    notes = {**made["metadata"].get("annotations", {}), "kubernetes.io/config.mirror": "m"}
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "u", "controller": True}
    return {**made, "metadata": {**made["metadata"], "annotations": notes, "ownerReferences": [owner], **metadata}}


def test_a_mirror_pod_is_no_member_and_anchors_nothing() -> None:
    hard = {"mode": "hard", "highestTierAllowed": 1}
    waits = [member(f"p{index}") for index in range(2)]
    instance = instance_of(*TREE, pod_group("g", minMember=2, networkTopology=hard), mirror("m"), *waits)
    group = only(instance)
    assert (group.bound, group.need) == ((), 2)
    assert ("NoMember", "Pod default/m") in codes(instance)
    (message,) = [each.message for each in instance.findings if each.code == "NoMember"]
    assert message == (
        "PodGroup default/g is named by Pod default/m: found static or DaemonSet pods, which are no members; expected "
        "pods that can run on other nodes"
    )
