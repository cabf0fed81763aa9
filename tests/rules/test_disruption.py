"""D1 to D5: what may be evicted and moved, in which units, for what, in which order; and what it costs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from placer.problem import Instance, Key
from placer.problem.disruption import Disruption, DisruptionUnit
from placer.problem.placement import Binding, Placement, Step, Value, better
from placer.rules import verify
from placer.rules.scoring import score
from tests.support import Document, hyper_node, instance_of, node, pod, pod_group, policy, queue

OWNED = {"ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "job", "controller": True}]}
NEVER = {"placer.dev/disrupt": "never"}


def running(
    name: str, where: str, *, priority: int = 0, spec: Any = None, metadata: Any = None, **more: Any
) -> Document:
    """A pod that a controller would make again; 4 cpu unless told otherwise."""
    amounts = {"cpu": 4} | more
    body = {"priority": priority, **(spec or {})}
    return pod(name, node=where, spec=body, metadata=OWNED if metadata is None else metadata, **amounts)


def waiting(name: str, priority: int = 100, spec: Any = None, **more: Any) -> Document:
    amounts = {"cpu": 4} | more
    return pod(name, spec={"priority": priority, **(spec or {})}, **amounts)


def keys(words: str) -> tuple[Key, ...]:
    return tuple(Key("default", name) for name in words.split())


def bindings(words: str) -> tuple[Binding, ...]:
    """``a@n1 b@n2``."""
    return tuple(Binding(Key("default", name), where) for name, where in (word.split("@") for word in words.split()))


def plan(bind: str = "", evict: str = "", move: str = "", steps: Iterable[tuple[str, str]] | None = None) -> Placement:
    """A placement; without steps of its own with one, in which everything goes and is bound."""
    bound, moved = bindings(bind), bindings(move)
    gone = (*keys(evict), *(each.pod for each in moved))
    one = (Step(gone, tuple(each.pod for each in (*bound, *moved))),)
    made = one if steps is None else tuple(Step(keys(go), keys(come)) for go, come in steps)
    return Placement(bindings=bound, evictions=keys(evict), moves=moved, steps=made)


def broken(instance: Instance, placement: Placement) -> list[tuple[str, str, int]]:
    """Rule, first subject and amount of every violation."""
    return [(each.rule, each.subjects[0], each.amount) for each in verify(instance, placement)]


def messages(instance: Instance, placement: Placement) -> list[str]:
    return [each.message for each in verify(instance, placement)]


# ------------------------------------------------------------------------------------------------------------ kept


FULL = (node("n1"), running("a", "n1"), running("b", "n1"), node("n2", cpu=4), waiting("new", cpu=8))


def test_kept_by_evicting_and_by_moving() -> None:
    instance = instance_of(*FULL)
    assert broken(instance, plan("new@n1", evict="a b")) == []
    assert broken(instance, plan("new@n1", evict="a", move="b@n2")) == []


def test_the_rules_about_new_pods_hold_for_moved_ones() -> None:
    """n2 has room for one of the two, and where they were the new one is."""
    instance = instance_of(*FULL)
    assert broken(instance, plan("new@n1", move="a@n2 b@n2")) == [("C2", "Node n2", 4000)]
    assert broken(instance, plan("new@n1", evict="a")) == [("C2", "Node n1", 4000)]
    assert broken(instance, plan("new@n1", evict="a", move="b@n3")) == [("C3", "Pod default/b", 1)]


def test_what_is_moved_is_not_bound_as_well() -> None:
    instance = instance_of(*FULL)
    assert broken(instance, plan("new@n1 b@n2", evict="a b"))[0] == ("C1", "Pod default/b", 1)


def test_a_moved_pod_that_asks_for_what_is_not_modelled_cannot_be_bound_again() -> None:
    claims = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "x"}]}
    instance = instance_of(node("n1"), node("n2"), running("a", "n1", spec=claims), waiting("new", cpu=8))
    assert broken(instance, plan("new@n1", move="a@n2")) == [("C4", "Pod default/a", 1)]
    assert broken(instance, plan("new@n1", evict="a")) == []


# ------------------------------------------------------------------------------------------------------- D1 units


def gang(size: int, least: int, **spec: Any) -> list[Document]:
    """Pods ``g-0`` and so on of 1 cpu on n1, and their PodGroup."""
    members = (running(f"g-{each}", "n1", cpu=1, metadata=_member(each)) for each in range(size))
    return [pod_group("g", minMember=least, **spec), *members]


def _member(number: int) -> dict[str, Any]:
    notes = {"scheduling.k8s.io/group-name": "g"}
    return {**OWNED, "annotations": notes, "labels": {"part": str(number // 2)}}


def units(instance: Instance, gone: str) -> tuple[DisruptionUnit, ...]:
    return Disruption(instance, Placement(evictions=keys(gone))).units


@pytest.mark.parametrize(
    ("least", "gone", "expected"),
    [
        (4, "g-0", [("PodGroup/default/g", 4)]),
        (3, "g-0", [("Pod/default/g-0", 1)]),
        (2, "g-0 g-3", [("Pod/default/g-0", 1), ("Pod/default/g-3", 1)]),
        (2, "g-0 g-1 g-3", [("PodGroup/default/g", 4)]),
        (0, "g-0 g-1 g-2 g-3", [(f"Pod/default/g-{each}", 1) for each in range(4)]),
    ],
)
def test_units_of_a_gang(least: int, gone: str, expected: list[tuple[str, int]]) -> None:
    instance = instance_of(node("n1"), *gang(4, least))
    assert [(unit.name, len(unit.pods)) for unit in units(instance, gone)] == expected


@pytest.mark.parametrize(
    ("least_parts", "gone", "expected"),
    [
        (1, "g-0", [("SubGroup/default/g/part-0", 2)]),
        (1, "g-0 g-1", [("SubGroup/default/g/part-0", 2)]),
        (2, "g-0", [("PodGroup/default/g", 4)]),
    ],
)
def test_units_of_a_subgroup(least_parts: int, gone: str, expected: list[tuple[str, int]]) -> None:
    parts = {"name": "part", "subGroupSize": 2, "minSubGroups": least_parts, "matchLabelKeys": ["part"]}
    instance = instance_of(node("n1"), *gang(4, 2, subGroupPolicy=[parts]))
    assert [(unit.name, len(unit.pods)) for unit in units(instance, gone)] == expected


@pytest.mark.parametrize("mode", [{"all": {}}, "PodGroup"])
def test_a_group_that_is_disturbed_as_a_whole(mode: object) -> None:
    group = {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "u"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 1}}, "disruptionMode": mode},
    }
    member = {"schedulingGroup": {"podGroupName": "u"}}
    instance = instance_of(node("n1"), group, *(running(name, "n1", cpu=1, spec=member) for name in "abc"))
    assert [(unit.name, len(unit.pods)) for unit in units(instance, "b")] == [("PodGroup/default/u", 3)]


def test_half_a_unit_is_broken_by_those_that_stay() -> None:
    instance = instance_of(node("n1", cpu=4), *gang(4, 4), waiting("new", cpu=1))
    assert broken(instance, plan("new@n1", evict="g-0")) == [("D1", "PodGroup/default/g", 3)]
    assert broken(instance, plan("new@n1", evict="g-0 g-1 g-2 g-3")) == []


def test_a_unit_goes_one_way_and_a_pod_once() -> None:
    instance = instance_of(node("n1", cpu=4), node("n2", cpu=4), *gang(4, 2), waiting("new"))
    found = broken(instance, plan("new@n1", evict="g-0 g-1 g-2", move="g-3@n2"))
    assert ("D1", "PodGroup/default/g", 1) in found
    twice = plan("new@n1", evict="g-0 g-1 g-2 g-3 g-3", steps=[("g-0 g-1 g-2 g-3", "new")])
    assert broken(instance, twice) == [("D1", "Pod default/g-3", 1)]


def test_a_unit_that_is_moved_is_ready_again_in_its_new_place() -> None:
    """Where the gang may lie under one leaf only, each of its pods does after the move."""
    limit = {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}}
    tree = [hyper_node("s1", 1, nodes=("n1",)), hyper_node("s2", 1, nodes=("n2",)), hyper_node("s3", 1, nodes=("n3",))]
    nodes = [node("n1", cpu=2), node("n2", cpu=1), node("n3", cpu=2)]
    instance = instance_of(*nodes, *tree, *gang(2, 2, **limit), waiting("new", cpu=2, spec={"nodeName": ""}))
    assert broken(instance, plan("new@n1", move="g-0@n3 g-1@n3")) == []
    assert broken(instance, plan("new@n1", move="g-0@n3 g-1@n2")) == [("C7", "PodGroup default/g", 1)]


# -------------------------------------------------------------------------------------------------- D2 protection


@pytest.mark.parametrize(
    ("protected", "reason"),
    [
        (running("a", "n1", metadata={}), "no controller would make it again"),
        (running("a", "n1", metadata={**OWNED, "labels": NEVER}), "the Policy protects it"),
        (running("a", "n1", priority=2_000_000_000), "its priority 2000000000 is one of the system's"),
        (
            running("a", "n1", metadata={"ownerReferences": [OWNED["ownerReferences"][0] | {"kind": "DaemonSet"}]}),
            "it belongs to its node, as pods of DaemonSets and static pods do",
        ),
        (
            running("a", "n1", metadata={**OWNED, "deletionTimestamp": "2026-01-01T00:00:00Z"}),
            "it is terminating",
        ),
        (waiting("a", cpu=1), "it is pending"),
        (waiting("b", cpu=1), "it is not in the instance"),
    ],
)
def test_pods_that_are_never_disturbed(protected: Document, reason: str) -> None:
    other = running("c", "n1", cpu=4)
    instance = instance_of(node("n1"), other, protected, waiting("new", priority=2_100_000_000, cpu=1))
    placement = plan("new@n1", evict="a c")
    found = [each for each in verify(instance, placement) if each.rule == "D2"]
    assert [(each.amount, each.message) for each in found] == [
        (1, f"Pod default/a cannot be disturbed: {reason}"),
    ]


@pytest.mark.parametrize(
    ("spec", "more", "expected"),
    [
        ({}, {}, ["labelled"]),
        ({"disruption": {"protect": []}}, {}, []),
        ({"disruption": {"protect": [{"selector": {"matchLabels": {"tier": "gold"}}}]}}, {}, ["gold"]),
        ({"disruption": {"protect": [{"namespaces": ["default"]}]}}, {}, ["gold", "labelled", "plain"]),
        ({"disruption": {"protect": [{"namespaces": ["other"]}]}}, {}, []),
        ({}, {"labels": NEVER}, ["gold", "labelled", "plain"]),
    ],
)
def test_what_a_policy_protects(spec: dict[str, Any], more: dict[str, Any], expected: list[str]) -> None:
    labels = {"labelled": NEVER, "gold": {"tier": "gold"}, "plain": {}}
    pods = [running(name, "n1", cpu=1, metadata={**OWNED, "labels": each}) for name, each in labels.items()]
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", **more}}
    instance = instance_of(node("n1"), namespace, policy(**spec), *pods)
    assert sorted(key.name for key, each in instance.pods.items() if each.protected) == expected


PREEMPTABLE, YUNIKORN = "volcano.sh/preemptable", "yunikorn.apache.org/allow-preemption"
KAI, KOORDINATOR = "kai.scheduler/preemptibility", "quota.scheduling.koordinator.sh/preemptible"
SAFE, KARPENTER = "cluster-autoscaler.kubernetes.io/safe-to-evict", "karpenter.sh/do-not-disrupt"


@pytest.mark.parametrize(
    ("place", "key", "value", "protects"),
    [
        ("annotations", PREEMPTABLE, "false", True),
        ("labels", PREEMPTABLE, "false", True),
        ("labels", PREEMPTABLE, "nonsense", True),  # so does Volcano
        ("annotations", PREEMPTABLE, "true", False),
        ("annotations", SAFE, "false", True),
        ("annotations", SAFE, "true", False),
        ("labels", SAFE, "false", False),
        ("annotations", KARPENTER, "true", True),
        ("annotations", KARPENTER, "false", False),
        ("annotations", "karpenter.sh/do-not-evict", "true", True),
        ("labels", KAI, "non-preemptible", True),
        ("labels", KAI, "semi-preemptible", True),
        ("labels", KAI, "preemptible", False),
        ("annotations", YUNIKORN, "false", True),
        ("labels", KOORDINATOR, "false", True),
        ("labels", KOORDINATOR, "true", False),
    ],
)
def test_pods_that_marks_of_other_systems_protect(place: str, key: str, value: str, protects: bool) -> None:
    marked = running("a", "n1", metadata={**OWNED, place: {key: value}})
    instance = instance_of(node("n1", cpu=4), node("n2", cpu=4), marked, waiting("new"))
    expected = [("D2", "Pod default/a", 1)] if protects else []
    assert broken(instance, plan("new@n1", evict="a")) == expected
    assert broken(instance, plan("new@n1", move="a@n2")) == expected
    words = f'Pod default/a cannot be disturbed: {key}: "{value}" protects it'
    assert messages(instance, plan("new@n1", evict="a")) == [words] * protects


def test_an_annotation_says_before_a_label_whether_a_pod_may_be_preempted() -> None:
    both = {**OWNED, "annotations": {PREEMPTABLE: "true"}, "labels": {PREEMPTABLE: "false"}}
    instance = instance_of(node("n1", cpu=4), running("a", "n1", metadata=both), waiting("new"))
    assert broken(instance, plan("new@n1", evict="a")) == []


@pytest.mark.parametrize("place", ["annotations", "labels"])
def test_the_mark_of_a_group_or_a_job_protects_its_pods(place: str) -> None:
    group, *members = gang(2, 0)
    group["metadata"][place] = {PREEMPTABLE: "false"}
    instance = instance_of(node("n1", cpu=4), group, *members, waiting("new", cpu=3))
    words = f'Pod default/g-0 cannot be disturbed: {PREEMPTABLE}: "false" of PodGroup default/g protects it'
    assert messages(instance, plan("new@n1", evict="g-0")) == [words]
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "job", "namespace": "default", place: {PREEMPTABLE: "false"}},
        "spec": {"template": {"spec": {"containers": []}}},
    }
    instance = instance_of(node("n1", cpu=4), job, running("a", "n1"), waiting("new"))
    words = f'Pod default/a cannot be disturbed: {PREEMPTABLE}: "false" of Job default/job protects it'
    assert messages(instance, plan("new@n1", evict="a")) == [words]


@pytest.mark.parametrize(
    ("field", "label", "protects"),
    [("non-preemptible", None, True), ("preemptible", "non-preemptible", False), (None, "non-preemptible", True)],
)
def test_the_field_of_a_group_of_kai_protects_its_pods_and_counts_before_the_label(
    field: str | None, label: str | None, protects: bool
) -> None:
    group: Document = {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "k", "namespace": "default", "labels": {} if label is None else {KAI: label}},
        "spec": {"minMember": 1, **({} if field is None else {"preemptibility": field})},
    }
    member = running("a", "n1", metadata={**OWNED, "annotations": {"pod-group-name": "k"}})
    instance = instance_of(node("n1", cpu=4), group, member, waiting("new"))
    assert [each[0] for each in broken(instance, plan("new@n1", evict="a"))] == ["D2"] * protects


@pytest.mark.parametrize(("own", "protects"), [({}, True), ({YUNIKORN: "true"}, False), ({YUNIKORN: "false"}, True)])
def test_the_mark_of_a_priority_class_protects_its_pods_unless_they_say_otherwise(
    own: dict[str, str], protects: bool
) -> None:
    driver = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "driver", "annotations": {YUNIKORN: "false"}},
        "value": 5,
    }
    spec, metadata = {"priority": 5, "priorityClassName": "driver"}, {**OWNED, "annotations": own}
    instance = instance_of(node("n1", cpu=4), driver, running("a", "n1", spec=spec, metadata=metadata), waiting("new"))
    assert broken(instance, plan("new@n1", evict="a")) == [("D2", "Pod default/a", 1)] * protects


def of_queue(name: str) -> dict[str, Any]:
    return {**OWNED, "annotations": {"scheduling.volcano.sh/queue-name": name}}


@pytest.mark.parametrize(
    ("asks", "priority", "allowed"), [("kept", 100, True), ("kept", 5, False), ("other", 100, False), ("", 100, False)]
)
def test_what_a_queue_keeps_goes_only_for_a_group_of_it_of_a_higher_priority(
    asks: str, priority: int, allowed: bool
) -> None:
    kept = queue("kept")
    kept["spec"]["reclaimable"] = False
    mine = {"annotations": {"scheduling.volcano.sh/queue-name": asks}} if asks else {}
    new = pod("new", spec={"priority": priority}, metadata=mine, cpu=4)
    there = running("a", "n1", priority=5, metadata=of_queue("kept"))
    instance = instance_of(node("n1", cpu=4), node("n2", cpu=4), kept, queue("other"), there, new)
    assert [each[0] for each in broken(instance, plan("new@n1", move="a@n2"))] == ["D2"] * (not allowed)
    found = [each for each in verify(instance, plan("new@n1", evict="a")) if each.rule == "D2"]
    assert [(each.subjects, each.amount) for each in found] == [(("Pod/default/a", "Queue kept"), 1)] * (not allowed)


def test_what_a_queue_keeps_goes_beside_what_another_group_gains() -> None:
    """What is admitted of the queue need not lie where the pod was."""
    kept = queue("kept")
    kept["spec"]["reclaimable"] = False
    mine = {"annotations": {"scheduling.volcano.sh/queue-name": "kept"}}
    there = running("a", "n1", metadata=of_queue("kept"))
    own = pod("own", spec={"priority": 9}, metadata=mine, cpu=4)
    instance = instance_of(node("n1", cpu=4), node("n2", cpu=4), kept, there, own, waiting("new"))
    assert broken(instance, plan("own@n2 new@n1", evict="a")) == []
    assert broken(instance, plan("new@n1", evict="a"))[0] == ("D2", "Pod/default/a", 1)


def budget(name: str = "b", status: Any = None, **spec: Any) -> Document:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"app": "web"}}} | spec,
        **({} if status is None else {"status": status}),
    }


def web(count: int, pending: int = 0) -> list[Document]:
    of_web = {**OWNED, "labels": {"app": "web"}}
    bound = [running(f"w-{each}", "n1", cpu=1, metadata=of_web) for each in range(count)]
    return bound + [pod(f"x-{each}", metadata=of_web, cpu=100) for each in range(pending)]


@pytest.mark.parametrize(
    ("written", "allowed"),
    [
        (budget(minAvailable=3), 1),
        (budget(minAvailable="50%"), 1),  # of 5 that should be there 3 must stay
        (budget(maxUnavailable=2), 1),  # one is missing already
        (budget(maxUnavailable="50%"), 2),
        (budget(maxUnavailable=0), 0),
        (budget(minAvailable=1, status={"disruptionsAllowed": 0}), 0),
        (budget(minAvailable=9), 0),
        (budget(selector={}, minAvailable=2), 2),
        (budget(selector=None), None),
        (budget(selector={"matchLabels": {"app": "db"}}), None),
    ],
)
def test_what_a_budget_allows(written: Document, allowed: int | None) -> None:
    instance = instance_of(node("n1"), *web(4, pending=1), written)
    assert [each.allowed for each in instance.budgets] == ([] if allowed is None else [allowed])


def test_of_a_budget_no_more_go_than_it_allows_and_two_bind_both() -> None:
    things = [node("n1", cpu=4), *web(4), waiting("new", cpu=2)]
    two = plan("new@n1", evict="w-0 w-1")
    assert broken(instance_of(*things, budget(minAvailable=2)), two) == []
    narrow = instance_of(*things, budget("a", minAvailable=2), budget("b", minAvailable=3), budget("c", minAvailable=4))
    assert broken(narrow, two) == [
        ("D2", "PodDisruptionBudget default/b", 1),
        ("D2", "PodDisruptionBudget default/c", 2),
    ]
    moved = instance_of(*things, node("n2"), budget(maxUnavailable=1))
    assert broken(moved, plan("new@n1", move="w-0@n2 w-1@n2")) == [("D2", "PodDisruptionBudget default/b", 1)]


def test_of_all_pods_no_more_go_than_the_policy_allows() -> None:
    things = [node("n1", cpu=4), node("n2"), *web(4), waiting("new", cpu=2)]
    for allowed, expected in ((2, []), (1, [("D2", "disruption.maxPods of Policy default", 1)])):
        instance = instance_of(*things, policy(disruption={"maxPods": allowed}))
        assert broken(instance, plan("new@n1", evict="w-0 w-1")) == expected
        assert broken(instance, plan("new@n1", evict="w-0", move="w-1@n2")) == expected


# ----------------------------------------------------------------------------------------- D3 priority, D4 gain


@pytest.mark.parametrize(("way", "licence"), [("evict", "may_evict"), ("move", "may_move")])
def test_a_pass_evicts_and_moves_only_where_it_may(way: str, licence: str) -> None:
    instance = instance_of(node("n1", cpu=4), node("n2", cpu=4), running("a", "n1"), waiting("new"))
    there = plan("new@n1", **{way: "a@n2" if way == "move" else "a"})
    assert broken(instance, there) == []
    assert broken(replace(instance, **{licence: False}), there) == [("D3", "Pod/default/a", 1)]


@pytest.mark.parametrize(
    ("priority", "way", "expected"),
    [
        (99, "evict", []),
        (100, "evict", [("D3", "Pod/default/a", 1)]),
        (100, "move", []),
        (101, "move", [("D3", "Pod/default/a", 1)]),
    ],
)
def test_who_may_be_disturbed_for_whom(priority: int, way: str, expected: list[object]) -> None:
    instance = instance_of(node("n1"), node("n2", cpu=4), running("a", "n1", priority=priority), waiting("new", cpu=8))
    given = {"evict": "a"} if way == "evict" else {"move": "a@n2"}
    assert broken(instance, plan("new@n1", **given)) == expected


def test_a_unit_is_as_urgent_as_its_most_urgent_pod() -> None:
    objects = gang(4, 4)
    objects[2]["spec"]["priority"] = 200
    instance = instance_of(node("n1"), *objects, waiting("new", cpu=8))
    assert broken(instance, plan("new@n1", evict="g-0 g-1 g-2 g-3")) == [("D3", "PodGroup/default/g", 4)]


def test_pods_that_go_alone_are_as_urgent_as_they_say() -> None:
    objects = gang(4, 0)
    objects[2]["spec"]["priority"] = 200
    instance = instance_of(node("n1"), *objects, waiting("new", cpu=8))
    assert broken(instance, plan("new@n1", evict="g-0 g-1 g-2 g-3")) == [("D3", "Pod/default/g-1", 1)]


@pytest.mark.parametrize(("decides", "expected"), [("class", [("D3", "PodGroup/default/g", 4)]), ("pods", [])])
def test_the_class_of_what_runs_counts_where_the_policy_says_so(decides: str, expected: list[object]) -> None:
    classes = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "top"}, "value": 200}
    objects = (classes, policy(groupPriority=decides), *gang(4, 4, priorityClassName="top"))
    instance = instance_of(node("n1"), *objects, waiting("new", cpu=8))
    assert broken(instance, plan("new@n1", evict="g-0 g-1 g-2 g-3")) == expected


def test_nothing_goes_for_nothing() -> None:
    instance = instance_of(node("n1"), node("n2"), running("a", "n1"), waiting("new", cpu=4))
    assert broken(instance, plan("new@n1", evict="a")) == [("D4", "Pod/default/a", 1)]
    assert broken(instance, plan("", evict="a")) == [("D4", "Pod/default/a", 1)]
    assert broken(instance, plan("", move="a@n2")) == [("D4", "Pod/default/a", 1)]


def test_optional_pods_disturb_nothing() -> None:
    """The gang runs with one of its two pods; the other one would be welcome."""
    more = pod("e-1", metadata={"annotations": {"scheduling.k8s.io/group-name": "e"}}, spec={"priority": 100}, cpu=4)
    there = running("e-0", "n2", metadata={"annotations": {"scheduling.k8s.io/group-name": "e"}})
    instance = instance_of(node("n1", cpu=4), node("n2"), running("a", "n1"), pod_group("e", minMember=1), there, more)
    assert broken(instance, plan("e-1@n1", evict="a")) == [("D4", "Pod/default/a", 1)]


# --------------------------------------------------------------------------------------------------------- D5 order


def test_each_pod_stands_in_one_step_once() -> None:
    instance = instance_of(*FULL)
    assert broken(instance, plan("new@n1", evict="a b", steps=[])) == [
        ("D5", "Pod default/a", 1),
        ("D5", "Pod default/b", 1),
        ("D5", "Pod default/new", 1),
    ]
    assert broken(instance, plan("new@n1", evict="a b", steps=[("a b", "new"), ("b", "")])) == [
        ("D5", "Pod default/b", 1)
    ]
    assert broken(instance, plan("new@n1", evict="a b", steps=[("a b new", "new b")])) == [
        ("D5", "Pod default/new", 1),
        ("D5", "Pod default/b", 1),
    ]
    assert broken(instance_of(node("n1"), waiting("new")), plan("new@n1", steps=[("", "new")])) == []


def test_room_is_kept_after_every_step() -> None:
    """b can go to n2 only when a has left it for n3."""
    nodes = [node("n1"), node("n2", cpu=4), node("n3", cpu=4)]
    pods = [running("a", "n2"), running("b", "n1", priority=1), running("c", "n1"), waiting("new", cpu=8)]
    instance = instance_of(*nodes, *pods)
    good = plan("new@n1", evict="c", move="b@n2 a@n3", steps=[("a", "a"), ("b c", "b new")])
    assert broken(instance, good) == []
    bad = plan("new@n1", evict="c", move="b@n2 a@n3", steps=[("b", "b"), ("a c", "a new")])
    assert broken(instance, bad) == [("D5", "Node n2", 4000)]
    assert messages(instance, bad) == [
        "after step 1: Node n2: cpu 8 requested (4 before, 4 new) of 4: 4 too much",
    ]


def test_queues_keep_their_room_after_every_step() -> None:
    of_queue = {**OWNED, "annotations": {"scheduling.volcano.sh/queue-name": "q"}}
    new = pod("new", spec={"priority": 9}, metadata=of_queue, cpu=8)
    instance = instance_of(node("n1", cpu=12), queue("q", {"cpu": 8}), running("a", "n1", metadata=of_queue), new)
    assert broken(instance, plan("new@n1", evict="a")) == []
    assert broken(instance, plan("new@n1", evict="a", steps=[("", "new"), ("a", "")])) == [("D5", "Queue q", 4000)]


def test_a_pod_is_not_bound_before_it_goes_and_a_unit_goes_at_once() -> None:
    instance = instance_of(*FULL)
    early = plan("new@n1", evict="a", move="b@n2", steps=[("a", "b"), ("b", "new")])
    assert ("D5", "Pod default/b", 1) in broken(instance, early)
    instance = instance_of(node("n1", cpu=4), *gang(4, 4), waiting("new", cpu=1))
    late = plan("new@n1", evict="g-0 g-1 g-2 g-3", steps=[("g-0 g-1", "new"), ("g-2 g-3", "")])
    assert broken(instance, late) == [("D5", "PodGroup/default/g", 2)]


def _in_a_rack(affinity: dict[str, Any]) -> dict[str, Any]:
    """The same pod affinity, over racks."""
    ((kind, terms),) = affinity["affinity"]["podAffinity"].items()
    return {"affinity": {"podAffinity": {kind: [{**term, "topologyKey": "rack"} for term in terms]}}}


def test_nothing_that_runs_on_is_left_without_its_affinity() -> None:
    """The cache must be beside a database; the last one goes."""
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "db"}}}
    near = {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
    of_db = {**OWNED, "labels": {"app": "db"}}
    pods = [running("cache", "n1", cpu=1, spec=near, priority=200), running("db", "n1", metadata=of_db)]
    labelled = node("n1", {"x": "y"}), waiting("new", cpu=5, spec={"nodeSelector": {"x": "y"}})
    assert broken(instance_of(*labelled, *pods), plan("new@n1", evict="db")) == [("D5", "Pod default/cache", 1)]
    second = running("db-2", "n1", cpu=1, metadata=of_db)
    assert broken(instance_of(*labelled, *pods, second), plan("new@n1", evict="db")) == []
    # No node has a rack: what is in no domain has nothing near that could go.
    rackless = [running("cache", "n1", cpu=1, spec=_in_a_rack(near), priority=200), pods[1]]
    assert broken(instance_of(*labelled, *rackless, second), plan("new@n1", evict="db db-2")) == []


# ----------------------------------------------------------------------------------------------------------- values


def test_values_stand_between_what_is_admitted_and_what_is_placed() -> None:
    """Nodes of 8 and 4 cpu: an average node has 6."""
    instance = instance_of(*FULL)
    found = score(instance, plan("new@n1", evict="a", move="b@n2"))
    assert found == (
        Value("admitted", 1_333_333, 100),
        Value("evicted", 666_666, 0),
        Value("evictedUnits", 1, 0),
        Value("moved", 666_666),
        Value("movedUnits", 1),
        Value("placed", 1_333_333, 100),
        Value("locality", 0),
        Value("span", 0),
        Value("packedHyperNodes", 0),
        Value("packedNodes", 1),
    )
    nothing = score(instance, Placement(), disturbing=True)
    assert [(each.name, each.value) for each in nothing[:4]] == [
        ("admitted", 0),
        ("moved", 0),
        ("movedUnits", 0),
        ("placed", 0),
    ]


def test_a_gang_that_goes_is_one_unit_of_the_priority_of_its_group() -> None:
    instance = instance_of(node("n1", cpu=4), *gang(4, 4), waiting("new", cpu=1))
    found = score(instance, plan("new@n1", evict="g-0 g-1 g-2 g-3"))
    assert found[1:3] == (Value("evicted", 1_000_000, 0), Value("evictedUnits", 1, 0))


def test_less_of_the_highest_priority_that_loses_comes_first() -> None:
    """One pod of priority 5 is worth more than two of priority 3, and nothing evicted is best."""
    low = [running(f"low-{each}", "n2", priority=3) for each in range(2)]
    instance = instance_of(node("n1"), node("n2"), running("high", "n1", priority=5), *low, waiting("new", cpu=8))
    for_high = score(instance, plan("new@n1", evict="high"))
    for_low = score(instance, plan("new@n2", evict="low-0 low-1"))
    neither = score(instance, Placement(), disturbing=True)
    assert better(for_low, for_high)
    assert not better(for_high, for_low)
    assert better(for_high, neither), "what is admitted comes first"
    with pytest.raises(ValueError, match="cannot be compared"):
        better(neither, score(instance, Placement()))


# --------------------------------------------------------------------------------------------------------- repair


def lost_node(name: str) -> Document:
    found = node(name)
    found["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    return found


def anchored(**more: Any) -> list[Document]:
    """Gang g in rack r: a pod on n1, which is lost, and one on n2, beside a pod of priority 300; n3 is in rack s."""
    racks = [hyper_node("r", 1, nodes=("n1", "n2")), hyper_node("s", 1, nodes=("n3",))]
    group = pod_group("g", minMember=2, networkTopology={"mode": "hard", "highestTierAllowed": 1})
    members = [running(f"g-{number}", where, metadata=_member(0)) for number, where in enumerate(("n1", "n2"))]
    beside = running("beside", "n2", priority=300, **more)
    return [lost_node("n1"), node("n2"), node("n3"), *racks, group, *members, beside]


def test_pods_of_a_node_that_is_not_ready_are_bound_again_as_members_of_their_group() -> None:
    small = instance_of(*anchored(cpu=1)[:-2], node("n4"), hyper_node("t", 1, nodes=("n4",)), anchored()[-2])
    assert broken(small, plan("g-0@n2", steps=())) == []
    assert broken(small, plan("g-0@n3", steps=())) == [("C7", "PodGroup default/g", 1)]
    assert broken(small, plan("g-0@n1", steps=())) == [("C3", "Pod default/g-0", 1)]
    assert broken(small, plan("g-1@n3", steps=())) == [("C1", "Pod default/g-1", 1)]


def test_where_lost_nodes_are_repaired_units_of_any_priority_are_moved_and_none_is_evicted() -> None:
    instance = instance_of(*anchored())
    assert broken(instance, plan("g-0@n2", move="beside@n3")) == []
    assert broken(instance, plan("g-0@n2", evict="beside")) == [("D3", "Pod/default/beside", 1)]
    assert broken(instance, plan("g-0@n3", move="g-1@n3")) == []
    assert broken(instance, plan(move="beside@n3")) == [("D4", "Pod/default/beside", 1)]


def test_a_placement_says_which_nodes_are_lost_though_they_are_ready() -> None:
    ready = instance_of(node("n1"), *anchored()[1:])
    moved = plan("g-0@n2", move="beside@n3")
    assert {rule for rule, *_ in broken(ready, moved)} >= {"C1", "D4"}
    assert broken(ready, replace(moved, lost=("n1",))) == []


def test_pods_that_belong_to_a_lost_node_stay_there() -> None:
    daemon = {"ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "controller": True}]}
    instance = instance_of(lost_node("n1"), node("n2"), running("a", "n1", metadata=daemon))
    assert broken(instance, plan("a@n2", steps=())) == [("C1", "Pod default/a", 1)]


def test_a_budget_that_counts_for_itself_takes_lost_pods_as_gone() -> None:
    """Two of the three must run; one is lost, so that no other may be moved. What a status says stands."""
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}},
    }
    web = {**OWNED, "labels": {"app": "web"}}
    pods = [running("a", "n1", metadata=web, cpu=8)]
    pods += [running(name, where, metadata=web) for name, where in (("b", "n2"), ("c", "n3"))]
    said = {**budget, "status": {"disruptionsAllowed": 1}}
    move = plan("a@n2", move="b@n3")
    for written, rules in ((budget, [("D2", "PodDisruptionBudget default/web", 1)]), (said, [])):
        assert broken(instance_of(lost_node("n1"), node("n2"), node("n3"), *pods, written), move) == rules
