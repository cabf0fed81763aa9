"""``kube-preempt`` and ``volcano-preempt``: whom they evict, for whom, and how many of these for nothing."""

from __future__ import annotations

from typing import Any

import pytest

from placer.lab.comparing import compare
from placer.lab.generate import generate
from placer.lab.placement_metrics import Victims, victims
from placer.lab.policies.mimicry import PREEMPTING, run
from placer.problem import Instance, Key
from placer.problem.placement import Binding, Placement, Step
from placer.rules import verify
from tests.support import Document, hyper_node, instance_of, node, pod, pod_group, queue
from tests.world import World

OWNED = {"ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "job", "controller": True}]}


def running(name: str, where: str, priority: int = 0, group: str | None = None, born: int = 0, **more: Any) -> Document:
    labels = more.pop("labels", {})
    notes = {"scheduling.k8s.io/group-name": group} if group else {}
    made = {"creationTimestamp": f"2026-01-01T00:00:{born:02d}Z", "labels": labels, "annotations": notes}
    return pod(name, node=where, metadata={**OWNED, **made}, spec={"priority": priority}, **({"cpu": 4} | more))


def waiting(name: str, priority: int = 100, group: str | None = None, cpu: int = 8, **spec: Any) -> Document:
    return pod(name, group=group, spec={"priority": priority, **spec}, cpu=cpu)


def budget(allowed: int, **labels: str) -> Document:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b"},
        "spec": {"selector": {"matchLabels": labels}},
        "status": {"disruptionsAllowed": allowed},
    }


def evicted(policy: str, *documents: Document, seed: int = 0) -> list[str]:
    return sorted(key.name for key in run(instance_of(*documents), policy, seed=seed).evictions)


# ------------------------------------------------------------------------------------------------------------ upstream


SEEDS = range(4)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_node_where_no_budget_is_broken_comes_first(seed: int) -> None:
    """Though its victim has a higher priority."""
    web = running("web", "n1", labels={"app": "web"}, cpu=8)
    assert evicted(
        "kube-preempt",
        node("n1"),
        node("n2"),
        web,
        running("other", "n2", 9, cpu=8),
        budget(0, app="web"),
        waiting("x"),
        seed=seed,
    ) == ["other"]


@pytest.mark.parametrize("seed", SEEDS)
def test_then_the_lowest_highest_priority_then_the_least_sum_then_the_fewest_pods(seed: int) -> None:
    nodes = [node("n1"), node("n2")]
    high = [running("high", "n1", 5, cpu=8), *(running(f"low-{each}", "n2", 4) for each in range(2))]
    assert evicted("kube-preempt", *nodes, *high, waiting("x"), seed=seed) == ["low-0", "low-1"]
    sums = [running("a", "n1", 5), running("b", "n1", 3), running("c", "n2", 5), running("d", "n2", 2)]
    assert evicted("kube-preempt", *nodes, *sums, waiting("x"), seed=seed) == ["c", "d"]
    fewer = [running("a", "n1", 5, cpu=8), running("c", "n2", 5), running("d", "n2", -(2**31) + 1)]
    assert evicted("kube-preempt", *nodes, *fewer, waiting("x"), seed=seed) == ["a"]


@pytest.mark.parametrize("seed", SEEDS)
def test_of_equal_ones_the_node_whose_victims_started_last(seed: int) -> None:
    old, young = running("old", "n1", born=1, cpu=8), running("young", "n2", born=2, cpu=8)
    assert evicted("kube-preempt", node("n1"), node("n2"), old, young, waiting("x"), seed=seed) == ["young"]


def test_who_need_not_go_is_added_back_the_most_important_first() -> None:
    pods = [running("a", "n1", 1, cpu=2), running("b", "n1", 3, cpu=2), running("c", "n1", 2, cpu=4)]
    assert evicted("kube-preempt", node("n1"), *pods, waiting("x", cpu=4)) == ["c"]
    assert evicted("kube-preempt", node("n1"), *pods, waiting("x", cpu=2)) == ["a"]


def test_those_of_a_broken_budget_are_added_back_first() -> None:
    pods = [running("web", "n1", 0, labels={"app": "web"}), running("other", "n1", 3)]
    assert evicted("kube-preempt", node("n1"), *pods, budget(0, app="web"), waiting("x", cpu=4)) == ["other"]
    assert evicted("kube-preempt", node("n1"), *pods, budget(1, app="web"), waiting("x", cpu=4)) == ["web"]


@pytest.mark.parametrize(
    ("priority", "spec", "expected"),
    [(5, {}, []), (6, {}, ["a"]), (6, {"preemptionPolicy": "Never"}, []), (6, {"nodeSelector": {"x": "y"}}, [])],
)
def test_only_lower_priorities_go_and_only_where_it_helps(
    priority: int, spec: dict[str, Any], expected: list[str]
) -> None:
    assert evicted("kube-preempt", node("n1"), running("a", "n1", 5), waiting("x", priority, **spec)) == expected


def test_where_nothing_would_help_nothing_goes() -> None:
    assert evicted("kube-preempt", node("n1"), running("a", "n1"), waiting("x", cpu=9)) == []


def test_gangs_are_not_known() -> None:
    """One pod of a gang that needs all, for one of two pods of a gang of which the other has no room."""
    group = [pod_group("g", minMember=2), running("g-0", "n1", group="g"), running("g-1", "n1", group="g")]
    instance = instance_of(node("n1"), *group, pod_group("w", minMember=2), *_gang("w", 2, cpu=6))
    placement = run(instance, "kube-preempt")
    assert len(placement.evictions) == 2
    assert {each.rule for each in verify(instance, placement)} == {"C5", "D4"}
    assert told(instance, placement) == Victims(2, 1, 2)


def _gang(name: str, count: int, cpu: int, priority: int = 100) -> list[Document]:
    return [waiting(f"{name}-{each}", priority, group=name, cpu=cpu) for each in range(count)]


def told(instance: Instance, placement: Placement) -> Victims | None:
    return victims(instance, placement, verify(instance, placement))


# ------------------------------------------------------------------------------------------------------------- Volcano


def low(*pods: Document) -> list[Document]:
    return [{**pod_group("low", minMember=1), "spec": {"minMember": 1, "priorityClassName": "low"}}, *CLASSES, *pods]


CLASSES = [
    {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
    for name, value in (("low", 1), ("high", 100))
]


def high(least: int, **spec: Any) -> Document:
    return pod_group("w", minMember=least, priorityClassName="high", **spec)


def test_a_statement_is_kept_only_where_the_job_becomes_ready() -> None:
    victim = [running("l-0", "n1", 1, group="low"), running("l-1", "n2", 1, group="low", cpu=8)]
    nodes = [node("n1"), node("n2")]
    assert evicted("volcano-preempt", *nodes, *low(*victim), high(2), *_gang("w", 2, cpu=8)) == ["l-0", "l-1"]
    assert evicted("volcano-preempt", *nodes, *low(*victim), high(3), *_gang("w", 3, cpu=8)) == []
    assert evicted("volcano-preempt", *nodes, *low(*victim), high(1), *_gang("w", 2, cpu=8))[1:] == []


def test_victims_go_from_the_lowest_job_and_the_youngest_pod_until_there_is_room() -> None:
    pods = [running(f"l-{each}", "n1", 1, group="low", born=each, cpu=2) for each in range(4)]
    assert evicted("volcano-preempt", node("n1"), *low(*pods), high(1), *_gang("w", 1, cpu=3)) == ["l-2", "l-3"]


def test_only_jobs_of_the_queue_with_a_lower_priority_go() -> None:
    other = pod_group("low", minMember=1, priorityClassName="low", queue="other")
    pods = [running("l-0", "n1", 1, group="low", cpu=8)]
    things = [node("n1"), queue("other"), *CLASSES, *pods, high(1), *_gang("w", 1, cpu=8)]
    assert evicted("volcano-preempt", other, *things) == []
    same = pod_group("low", minMember=1, priorityClassName="high")
    assert evicted("volcano-preempt", same, *things) == []
    assert evicted("volcano-preempt", pod_group("low", minMember=1, priorityClassName="low"), *things) == ["l-0"]


def test_within_a_job_pods_of_a_higher_priority_take_the_place_of_others() -> None:
    """That is kept though the job, which needs both, does not become ready by it."""
    gang = [high(2), running("w-old", "n1", 1, group="w", cpu=8), waiting("w-new", 5, group="w")]
    instance = instance_of(node("n1"), *CLASSES, *gang)
    placement = run(instance, "volcano-preempt")
    assert [key.name for key in placement.evictions] == ["w-old"]
    assert told(instance, placement) == Victims(1, 1, 1)


def test_that_a_gang_is_broken_is_not_asked() -> None:
    pods = [running(f"l-{each}", "n1", 1, group="low") for each in range(2)]
    gang = [pod_group("low", minMember=2, priorityClassName="low"), *CLASSES, *pods]
    instance = instance_of(node("n1"), *gang, high(1), *_gang("w", 1, cpu=4))
    placement = run(instance, "volcano-preempt")
    assert len(placement.evictions) == 1
    assert [each.rule for each in verify(instance, placement)] == ["D1"]
    assert told(instance, placement) == Victims(1, 1, 0)


LIMIT = {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}}


def racks(*sizes: int) -> list[Document]:
    names = [[f"r{rack}-{each}" for each in range(size)] for rack, size in enumerate(sizes)]
    tree = [hyper_node(f"rack-{rack}", 1, nodes=tuple(each)) for rack, each in enumerate(names)]
    return [*(node(name) for each in names for name in each), *tree]


def test_with_a_topology_jobs_go_in_a_domain_one_after_another_until_it_works() -> None:
    """One of the two that the rack is full of would do, and so does the first one; what fits alone evicts nobody."""
    groups = [pod_group(name, minMember=2, priorityClassName="low") for name in "ab"]
    pods = [running(f"{name}-{each}", f"r0-{each}", 1, group=name) for name in "ab" for each in range(2)]
    things = [*racks(2), *CLASSES, *groups, *pods]
    placement = run(instance_of(*things, high(2, **LIMIT), *_gang("w", 2, cpu=4)), "volcano-preempt")
    assert {key.name[0] for key in placement.evictions} in ({"a"}, {"b"})
    assert len(placement.evictions) == len(placement.bindings) == 2
    both = run(instance_of(*things, high(2, **LIMIT), *_gang("w", 2, cpu=8)), "volcano-preempt")
    assert len(both.evictions) == 4


def test_pods_that_a_gang_can_spare_go_before_whole_gangs() -> None:
    groups = [
        pod_group("a", minMember=1, priorityClassName="low"),
        pod_group("b", minMember=1, priorityClassName="low"),
    ]
    pods = [
        running("a-0", "r0-0", 1, group="a"),
        running("a-1", "r0-1", 1, group="a"),
        running("b-0", "r0-0", 1, group="b"),
    ]
    pods.append(running("c-0", "r0-1", 1))
    instance = instance_of(*racks(2), *CLASSES, *groups, *pods, high(1, **LIMIT), *_gang("w", 1, cpu=4))
    assert [key.name for key in run(instance, "volcano-preempt").evictions] == ["a-0"]


# ------------------------------------------------------------------------------------------------------------- compare


def test_compare_tells_victims_and_how_many_are_for_nothing() -> None:
    made = generate("victims", nodes=64, seed=1, spanning=True)
    instance = instance_of(*made.documents)
    rows = {row.policy: row for row in compare(instance, ["as-is", *PREEMPTING, "greedy"])}
    assert rows["as-is"].victims is rows["greedy"].victims is None
    kube, volcano = rows["kube-preempt"].victims, rows["volcano-preempt"].victims
    assert kube is not None
    assert volcano is not None
    assert kube.for_nothing == kube.pods > 0, "the tier limit is broken"
    assert rows["kube-preempt"].violations["C7"] == 1
    assert volcano.for_nothing == 0
    assert made.least is not None
    assert volcano.pods > len(made.least.evictions)
    assert rows["volcano-preempt"].as_dict()["victims"] == {
        "pods": volcano.pods,
        "units": volcano.units,
        "forNothing": 0,
    }
    assert rows["volcano-preempt"].placed_groups == 1
    assert all(judged.bound is None for judged in rows["volcano-preempt"].objective)
    assert rows["volcano-preempt"].error is None


def test_a_pod_is_not_evicted_for_nothing_where_another_is_moved_to_its_node() -> None:
    """The gang has the node of the pod that is moved, and that one has the node of the pod that goes."""
    world = World()
    world.nodes("n0 n1", 2)
    world.running("goes", "n0", None, 2)
    world.running("moves", "n1", None, 2)
    world.pods_of("new", world.gang("new", 1, priority=10), 2)
    goes, moves, new = (Key("default", name) for name in ("goes", "moves", "new"))
    room = Step((goes, moves), (new, moves))
    placement = Placement((Binding(new, "n1"),), evictions=(goes,), moves=(Binding(moves, "n0"),), steps=(room,))
    counted = victims(world.instance(), placement, ())
    assert counted is not None
    assert (counted.pods, counted.for_nothing) == (1, 0)
