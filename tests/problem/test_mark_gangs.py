"""Gangs that marks of other systems declare: who is in them, how many they need, and what refuses them (C4, C5)."""

from __future__ import annotations

from typing import Any

import pytest

import placer
from placer.problem import Group, GroupKey, Instance
from placer.rules import verify
from tests.support import Document, instance_of, node, pod, pod_group

LIGHT, KOORD = "pod-group.scheduling.sigs.k8s.io", "gang.scheduling.koordinator.sh"
KUEUE, YUNIKORN, VOLCANO = "kueue.x-k8s.io", "yunikorn.apache.org", "scheduling.volcano.sh"
MIN_MEMBER = f"{VOLCANO}/group-min-member"

#: A gang of two pods by the marks of each system: labels, annotations, what its key is called.
BY_MARKS: dict[str, tuple[dict[str, str], dict[str, str], GroupKey]] = {
    "light": ({f"{LIGHT}/name": "g", f"{LIGHT}/min-available": "2"}, {}, GroupKey(LIGHT, "default", "g")),
    "koordinator": ({}, {f"{KOORD}/name": "g", f"{KOORD}/min-available": "2"}, GroupKey(KOORD, "default", "g")),
    "kueue": (
        {f"{KUEUE}/pod-group-name": "g"},
        {f"{KUEUE}/pod-group-total-count": "2"},
        GroupKey(KUEUE, "default", "g"),
    ),
    "yunikorn": (
        {"applicationId": "g"},
        {f"{YUNIKORN}/task-group-name": "w", f"{YUNIKORN}/task-groups": '[{"name": "w", "minMember": 2}]'},
        GroupKey(YUNIKORN, "default", "g"),
    ),
    "volcano": ({}, {MIN_MEMBER: "2"}, GroupKey(VOLCANO, "default", "podgroup-u")),
}
#: Values of the mark that states the minimum, none of which is a number.
MALFORMED = ("", "two", "-1", "1.5", "99999999999999999999", "[", "\u0662")


def marked(name: str, system: str, *, bound: str | None = None, **changed: str) -> Document:
    """A pod of the gang of a system; ``minimum`` is another value of the mark that states it."""
    labels, notes, _ = BY_MARKS[system]
    minimum = {f"{LIGHT}/min-available", f"{KOORD}/min-available", f"{KUEUE}/pod-group-total-count", MIN_MEMBER}
    minimum.add(f"{YUNIKORN}/task-groups")
    texts = [
        {key: changed.get("minimum", value) if key in minimum else value for key, value in each.items()}
        for each in (labels, notes)
    ]
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u", "controller": True}
    metadata = {"ownerReferences": [owner]} if system == "volcano" else {}
    return pod(name, cpu=4, node=bound, labels=texts[0], annotations=texts[1], metadata=metadata)


def group_of(instance: Instance, name: str) -> Group:
    key = next(each.group for each in instance.pods.values() if each.name == name)
    assert key is not None
    return instance.groups[key]


def placed(instance: Instance) -> set[str]:
    result = placer.solve(instance, method="greedy")
    assert result.placement is not None
    assert not list(verify(instance, result.placement))
    return {binding.pod.name for binding in result.placement.bindings}


@pytest.mark.parametrize("system", BY_MARKS)
def test_a_gang_by_marks_is_placed_whole_or_not_at_all(system: str) -> None:
    pods = [marked(name, system) for name in ("a", "b")]
    small, large = instance_of(node("n", cpu=4), *pods), instance_of(node("n", cpu=8), *pods)
    assert group_of(small, "a").key == group_of(small, "b").key == BY_MARKS[system][2]
    assert (placed(small), placed(large)) == (set(), {"a", "b"})
    assert small.findings == ()


@pytest.mark.parametrize("system", BY_MARKS)
def test_a_bound_pod_counts(system: str) -> None:
    instance = instance_of(node("n", cpu=8), marked("a", system, bound="n"), marked("b", system))
    assert placed(instance) == {"b"}


@pytest.mark.parametrize("text", MALFORMED)
@pytest.mark.parametrize("system", BY_MARKS)
def test_a_minimum_that_is_none_keeps_the_gang_whole(system: str, text: str) -> None:
    instance = instance_of(node("n", cpu=8), marked("a", system), marked("b", system, minimum=text))
    assert placed(instance) == set()
    why = group_of(instance, "a").invalid
    assert why is not None
    assert "Pod default/b: found " in why
    assert ", expected " in why


@pytest.mark.parametrize("system", BY_MARKS)
def test_pods_of_daemon_sets_and_static_ones_are_in_no_gang(system: str) -> None:
    static = dict(marked("s", system))
    notes = {**static["metadata"]["annotations"], "kubernetes.io/config.mirror": "m"}
    static["metadata"] = {**static["metadata"], "annotations": notes}
    daemon = dict(marked("d", system))
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "r", "uid": "u", "controller": True}
    daemon["metadata"] = {**daemon["metadata"], "ownerReferences": [owner]}
    instance = instance_of(node("n", cpu=32), static, daemon, marked("a", system))
    assert [key.name for key in group_of(instance, "a").pending] == ["a"]
    assert placed(instance) == {"s", "d"}


def test_minimums_that_differ_are_a_finding_and_the_largest_counts() -> None:
    instance = instance_of(
        node("n"), marked("a", "koordinator"), marked("b", "koordinator", minimum="3"), marked("c", "koordinator")
    )
    assert group_of(instance, "a").min_member == 3
    assert [each.code for each in instance.findings] == ["MarksDisagree"]
    assert "3 (Pod default/b) and 2 (Pod default/a)" in instance.findings[0].message


def test_fewer_pods_than_the_total_number_wait() -> None:
    notes = {f"{KOORD}/name": "g", f"{KOORD}/min-available": "1", f"{KOORD}/total-number": "3"}
    pods = [pod(name, cpu=1, annotations=notes) for name in "abc"]
    assert placed(instance_of(node("n"), *pods)) == {"a", "b", "c"}
    instance = instance_of(node("n"), *pods[:2])
    assert placed(instance) == set()
    (reason,) = placer.solve(instance, method="greedy").reasons.values()
    assert (reason.code, f"{KOORD}/total-number is 3" in reason.message) == ("GangIncomplete", True)


def test_succeeded_pods_count_in_kueue_and_not_in_koordinator() -> None:
    for system, expected in (("kueue", {"b"}), ("koordinator", set())):
        done = {**marked("a", system, bound="n"), "status": {"phase": "Succeeded"}}
        assert placed(instance_of(node("n"), done, marked("b", system))) == expected


def test_fast_admission_needs_one_pod() -> None:
    labels, notes, _ = BY_MARKS["kueue"]
    fast = notes | {f"{KUEUE}/pod-group-fast-admission": "true"}
    assert placed(instance_of(node("n", cpu=4), pod("a", cpu=4, labels=labels, annotations=fast))) == {"a"}


def task_groups(*groups: tuple[str, int]) -> dict[str, str]:
    text = ", ".join(
        f'{{"name": "{name}", "minMember": {least}, "minResource": {{"cpu": "1"}}}}' for name, least in groups
    )
    return {f"{YUNIKORN}/task-groups": f"[{text}]"}


def member(name: str, group: str, **notes: Any) -> Document:
    return pod(
        name, cpu=4, labels={"applicationId": "app"}, annotations={f"{YUNIKORN}/task-group-name": group, **notes}
    )


def test_each_task_group_has_a_minimum() -> None:
    """Any pod states them, one that has ended too; three workers do not stand in for a driver."""
    stated = task_groups(("driver", 1), ("worker", 1))
    ended = {**member("origin", "driver", **stated), "status": {"phase": "Succeeded"}}
    workers = [member(f"w{number}", "worker") for number in range(2)]
    workers.append(member("w2", "worker", **{f"{YUNIKORN}/placeholder": "true"}))  # a pod like others
    assert placed(instance_of(node("n", cpu=64), ended, *workers)) == set()
    assert placed(instance_of(node("n", cpu=64), ended, *workers, member("d", "driver"))) == {"w0", "w1", "w2", "d"}


def test_a_task_group_that_nobody_states_makes_the_gang_invalid() -> None:
    instance = instance_of(node("n"), member("a", "other", **task_groups(("worker", 1))))
    assert "found 'other', expected one of worker" in str(group_of(instance, "a").invalid)
    assert "expected one that" in str(group_of(instance_of(node("n"), member("a", "x")), "a").invalid)


def test_in_a_cluster_the_controller_makes_the_gang() -> None:
    pods = [
        {**marked(name, "volcano"), "spec": {**marked(name, "volcano")["spec"], "schedulerName": "placer"}}
        for name in "ab"
    ]
    waits = instance_of(node("n"), *pods, cluster=True)
    assert "is not there yet" in str(group_of(waits, "a").invalid)
    there = instance_of(node("n"), *pods, pod_group("podgroup-u", minMember=1), cluster=True)
    assert (group_of(there, "a").invalid, group_of(there, "a").min_member) == (None, 1)


# ---------------------------------------------------------------------------------------------------------- two gangs


def both(scheduler: str | None) -> Document:
    return pod(
        "p",
        group="v",
        labels={f"{LIGHT}/name": "l", f"{LIGHT}/min-available": "1", "grove.io/podgang": "x"},
        annotations={f"{KOORD}/name": "k", "pod-group-name": "kai"},
        spec={"schedulerName": scheduler} if scheduler else {},
    )


@pytest.mark.parametrize(
    ("scheduler", "first"),
    [
        (None, "v"),
        ("volcano", "v"),
        ("koord-scheduler", "l"),
        ("scheduler-plugins-scheduler", "l"),
        ("kai-scheduler", "kai"),
    ],
)
def test_of_two_gangs_the_one_counts_that_the_scheduler_reads(scheduler: str | None, first: str) -> None:
    kai = {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "kai"},
        "spec": {"minMember": 1},
    }
    instance = instance_of(node("n"), pod_group("v", minMember=1), kai, both(scheduler))
    assert group_of(instance, "p").key.name == first
    told = next(each for each in instance.findings if each.code == "TwoGroups")
    assert told.message.startswith(f"PodGroup {first} of ")
    assert all(f"{name} of " in told.message for name in ("v", "l", "k", "kai", "x"))


# -------------------------------------------------------------------------------------------------------- what refuses

#: Annotations that refuse a gang, whoever declares it, and a word of the reason.
ADDED = {
    f"{KOORD}/match-policy": ("only-waiting", "only-waiting"),
    f"{KOORD}/groups": ('["default/g", "default/h"]', "admitted together"),
    f"{LIGHT}/groups": ('["default/g", "default/h"]', "admitted together"),
    f"{KOORD}/network-topology-spec": (
        '{"gatherStrategy": [{"layer": "spine", "strategy": "MustGather"}]}',
        "MustGather",
    ),
    f"{KUEUE}/podset-slice-required-topology": ("rack", "slices"),
    f"{KUEUE}/podset-slice-size": ("2", "slices"),
}


@pytest.mark.parametrize("mark", ADDED)
def test_what_adds_to_a_gang_refuses_all_of_it(mark: str) -> None:
    value, word = ADDED[mark]
    instance = instance_of(
        node("n"),
        pod_group("g", minMember=1),
        pod("a", group="g", annotations={mark: value}),
        pod("b", group="g"),
        pod("c", annotations={mark: value}),
        pod("free"),
    )
    assert placed(instance) == {"free"}
    for name in "abc":
        (why,) = next(each.unsupported for each in instance.pods.values() if each.name == name)
        assert mark in why
        assert word in why
    assert {each.code for each in instance.findings} == {"UnsupportedKind"}


@pytest.mark.parametrize("mark", [mark for mark in ADDED if "slice" not in mark])
def test_what_adds_to_a_gang_and_cannot_be_read_refuses_it(mark: str) -> None:
    instance = instance_of(node("n"), pod_group("g", minMember=1), pod("a", group="g", annotations={mark: "{"}))
    assert placed(instance) == set()
    (why,) = next(iter(instance.pods.values())).unsupported
    assert "found '{', expected " in why


def test_gangs_that_are_named_with_one_wait_with_it_in_its_namespace() -> None:
    def gang(name: str, namespace: str, **notes: str) -> Document:
        return pod(name, namespace=namespace, annotations={f"{KOORD}/name": name, **notes})

    names = '["default/k", "default/l", "other/m"]'
    instance = instance_of(
        node("n"), gang("k", "default", **{f"{KOORD}/groups": names}), gang("l", "default"), gang("m", "other")
    )
    assert placed(instance) == {"m"}
    alone = instance_of(node("n"), gang("k", "default", **{f"{KOORD}/groups": '["default/k"]'}))
    assert placed(alone) == {"k"}


def test_what_decides_nothing_is_a_finding() -> None:
    prefers = '{"gatherStrategy": [{"layer": "spine", "strategy": "PreferGather"}]}'
    notes = {f"{KOORD}/name": "g", f"{KOORD}/mode": "NonStrict", f"{KOORD}/network-topology-spec": prefers}
    instance = instance_of(node("n"), pod("a", annotations=notes | {f"{KOORD}/match-policy": "once-satisfied"}))
    assert placed(instance) == {"a"}
    assert [each.code for each in instance.findings] == ["PreferenceIgnored"] * 2


@pytest.mark.parametrize(
    ("labels", "annotations"),
    [
        ({f"{LIGHT}/name": ""}, {}),
        ({f"{LIGHT}/min-available": "2"}, {}),
        ({}, {f"{KOORD}/name": ""}),
        ({}, {f"{KOORD}/min-available": "2"}),
        ({}, {f"{KUEUE}/pod-group-total-count": "2"}),
        ({f"{KUEUE}/pod-group-name": ""}, {}),
        ({}, {f"{YUNIKORN}/task-group-name": ""}),
        ({}, {"pod-group-name": ""}),
        ({"grove.io/podgang": ""}, {}),
    ],
)
def test_a_gang_without_a_name_is_refused(labels: dict[str, str], annotations: dict[str, str]) -> None:
    instance = instance_of(node("n"), pod("a", labels=labels, annotations=annotations))
    assert placed(instance) == set()
    assert [each.code for each in instance.findings] == ["UnsupportedKind"]


def test_a_gang_without_a_minimum_is_invalid() -> None:
    for labels in ({f"{LIGHT}/name": "g"}, {f"{KUEUE}/pod-group-name": "g"}):
        instance = instance_of(node("n"), pod("a", labels=labels))
        assert "found on none of the pods" in str(group_of(instance, "a").invalid)


def test_a_version_that_is_not_read_stops_no_group_of_one_that_is() -> None:
    def kai(name: str, version: str) -> Document:
        metadata = {"name": name}
        return {"apiVersion": f"scheduling.run.ai/{version}", "kind": "PodGroup", "metadata": metadata, "spec": {}}

    pods = [pod(name, annotations={"pod-group-name": name}) for name in ("new", "old")]
    instance = instance_of(node("n"), kai("new", "v9"), kai("old", "v2alpha2"), *pods)
    assert placed(instance) == {"old"}
    assert (
        "PodGroup default/new: its version is not read, of API scheduling.run.ai"
        in instance.pods[group_of(instance, "new").pending[0]].unsupported
    )


def test_limits_of_a_task_group_decide_nothing_and_say_so() -> None:
    text = '[{"name": "w", "minMember": 1, "nodeSelector": {"gpu": "yes"}, "tolerations": []}]'
    notes = {"yunikorn.apache.org/task-group-name": "w", "yunikorn.apache.org/task-groups": text}
    findings = instance_of(node("n1"), pod("p", labels={"applicationId": "a"}, annotations=notes)).findings
    (ignored,) = (each for each in findings if each.code == "FieldIgnored")
    assert ignored.message.endswith("nodeSelector of task group w decides nothing: that of its pods does")


#: Values of marks in JSON that are of a wrong type somewhere, and the text that was expected.
WRONG_JSON = [
    ("groups", '["a"]', "expected namespace/name in place of 'a'"),
    ("groups", '["a/b/c"]', "expected namespace/name in place of 'a/b/c'"),
    ("groups", "20", "expected a JSON list of namespace/name"),
    ("network-topology-spec", '{"gatherStrategy": [{"strategy": "Foo"}]}', "expected MustGather or PreferGather"),
    ("network-topology-spec", '{"gatherStrategy": [{}]}', "found strategy '', expected MustGather or PreferGather"),
    ("network-topology-spec", '{"gatherStrategy": [{"strategy": 5}]}', "expected JSON with a list gatherStrategy"),
]


@pytest.mark.parametrize(("mark", "text", "expected"), WRONG_JSON)
def test_a_value_of_the_wrong_type_says_what_was_expected(mark: str, text: str, expected: str) -> None:
    notes = {f"{KOORD}/name": "k", f"{KOORD}/{mark}": text}
    (why,) = next(iter(instance_of(node("n"), pod("p", annotations=notes)).pods.values())).unsupported
    assert f"annotation {KOORD}/{mark} of Pod default/p: found " in why
    assert expected in why
