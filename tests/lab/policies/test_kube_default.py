"""kube-scheduler: its formulas worked out by hand, its queue, and what it leaves pending."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from placer.base.errors import BadInstance, UsageError
from placer.lab.policies.framework import ClusterState, SchedulingCycle, Score, enough
from placer.lab.policies.mimicry import POLICIES, run
from placer.lab.policies.resources import (
    Allocation,
    balanced,
    broken_line,
    least_allocated,
    most_allocated,
    to_capacity_ratio,
)
from placer.problem import Key
from placer.rules import verify
from tests.support import Document, instance_of, node, pod
from tests.world import World

Shape = list[tuple[int, int]]


def part(requested: list[int], capacity: list[int], weights: list[int] | None = None) -> Allocation:
    return Allocation(np.array([requested]), np.array([capacity]), np.array(weights or [1] * len(requested)))


@pytest.mark.parametrize(
    ("requested", "capacity", "weights", "least", "most"),
    [
        ([1000, 2], [4000, 8], None, 75, 25),
        ([1000, 3], [3000, 7], None, 61, 37),  # 66 and 57; 33 and 42, each rounded down, then (66 + 57) / 2
        ([1000, 2], [4000, 8], [3, 1], 75, 25),
        ([0, 8], [4000, 8], [3, 1], 75, 25),
        ([5000, 4], [4000, 8], None, 25, 75),  # more than there is: 0, and as if it were all
        ([1000, 2], [0, 8], None, 75, 25),  # what the node does not have does not count
        ([1000], [0], None, 0, 0),
    ],
)
def test_least_and_most(
    requested: list[int], capacity: list[int], weights: list[int] | None, least: int, most: int
) -> None:
    asked = part(requested, capacity, weights)
    assert (least_allocated(asked).tolist(), most_allocated(asked).tolist()) == ([least], [most])


@pytest.mark.parametrize(
    ("requested", "capacity", "score"),
    [
        ([1000, 4], [4000, 8], 87),  # shares 0.25 and 0.5: deviation 0.125
        ([4000, 8], [4000, 8], 100),
        ([9000, 8], [4000, 8], 100),  # a share is at most 1
        ([1000, 4, 4], [4000, 8, 4], 68),  # 0.25, 0.5, 1: mean 0.5833, variance 0.0972, deviation 0.3118
        ([1000, 4], [4000, 0], 100),  # a single share has no deviation
    ],
)
def test_balanced(requested: list[int], capacity: list[int], score: int) -> None:
    assert balanced(part(requested, capacity)).tolist() == [score]


@pytest.mark.parametrize(
    ("shape", "share", "score"),
    [
        ([(0, 0), (100, 10)], 37, 37),
        ([(0, 10), (100, 0)], 37, 63),
        ([(20, 3), (60, 9)], 10, 30),
        ([(20, 3), (60, 9)], 33, 49),  # 30 + 60 * 13 / 40 = 49.5
        ([(0, 10), (40, 0)], 11, 73),  # 100 - 100 * 11 / 40 = 100 - 27.5, rounded towards 0 before it is taken off
        ([(20, 3), (60, 9)], 90, 90),
    ],
)
def test_broken_line(shape: Shape, share: int, score: int) -> None:
    assert broken_line(shape, share) == score


def test_to_capacity_ratio_leaves_out_resources_that_score_nothing_and_rounds() -> None:
    line = [(0, 0), (100, 10)]
    assert to_capacity_ratio(part([0, 4], [4000, 8]), line).tolist() == [50]
    assert to_capacity_ratio(part([1000, 4], [4000, 8], [1, 2]), line).tolist() == [42]  # (25 + 100) / 3 = 41.7
    assert to_capacity_ratio(part([5000], [4000]), line).tolist() == [100]


@pytest.mark.parametrize(
    ("nodes", "percentage", "expected"),
    [(100, 0, 100), (101, 0, 100), (250, 0, 120), (1000, 0, 420), (5000, 0, 500), (20_000, 0, 1000), (1000, 70, 700)],
)
def test_how_many_nodes_are_enough(nodes: int, percentage: int, expected: int) -> None:
    """250 nodes: 50 - 2 = 48 percent are 120; 5,000: 50 - 40 = 10 percent."""
    assert enough(nodes, percentage) == expected


def test_a_search_begins_where_the_last_one_ended() -> None:
    world = World()
    world.nodes(" ".join(f"n{number:03}" for number in range(250)))
    world.pod("p")
    state = ClusterState(world.instance(), seed=0)
    step = SchedulingCycle(state, [state.fits], [])
    found = [step.feasible(state.tasks[0], state.everywhere).tolist() for _ in range(3)]
    order = state.everywhere.tolist()
    assert found == [order[:120], order[120:240], [*order[240:], *order[:110]]]


# ------------------------------------------------------------------------------------------------------------ policies


def bound(*objects: Document, policy: str = "kube-default", seed: int = 0, **profile: Any) -> dict[str, str]:
    placement = run(instance_of(*objects), policy, seed=seed, arguments=profile or None)
    return {binding.pod.name: binding.node for binding in placement.bindings}


def test_as_is_binds_nobody() -> None:
    assert bound(node("n1"), pod("p", cpu=1), policy="as-is") == {}


def test_an_unknown_policy() -> None:
    with pytest.raises(UsageError, match="policy: found yarn, expected one of as-is, kube-default"):
        run(instance_of(node("n1")), "yarn")
    assert len(POLICIES) == 9


def test_higher_priority_then_older_then_by_name() -> None:
    def aged(name: str, day: int, **spec: Any) -> Document:
        return pod(name, cpu=8, spec=spec, metadata={"name": name, "creationTimestamp": f"2026-01-0{day}T00:00:00Z"})

    pods = [aged("a", 2), aged("b", 1), aged("c", 3, priority=7), aged("d", 2)]
    order = run(instance_of(*(node(f"n{number}") for number in range(4)), *pods), "kube-default").bindings
    assert [binding.pod.name for binding in order] == ["c", "b", "a", "d"]
    assert list(bound(node("n1"), *pods)) == ["c"]


def test_pods_spread_by_default_and_pack_with_most_allocated() -> None:
    objects = [node("n1"), node("n2"), pod("r", node="n2", cpu=1, memory="4Gi"), pod("p", cpu=1, memory="4Gi")]
    fit = {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}}
    shape = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
    ratio = {"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": {"shape": shape}}
    assert bound(*objects)["p"] == "n1"
    assert bound(*objects, pluginConfig=[fit])["p"] == "n2"
    assert bound(*objects, pluginConfig=[{**fit, "args": {"scoringStrategy": ratio}}])["p"] == "n2"


def test_a_pod_without_requests_counts_a_little() -> None:
    """100m and 200Mi of 8 cpu and 32Gi leave 98 and 99 percent, in the mean 98; with another such pod 97 and 98."""
    state = ClusterState(instance_of(node("n1"), node("n2"), pod("r", node="n1"), pod("p")), seed=0)
    asked = Allocation.of(state, state.tasks[0], np.array([0, 1]), {"cpu": 1, "memory": 1}, least=True)
    assert asked.requested.tolist() == [[200, 400 * 2**20], [100, 200 * 2**20]]
    assert least_allocated(asked).tolist() == [97, 98]


def test_a_device_counts_only_for_pods_that_ask_for_it() -> None:
    objects = [node("n1", gpu=4), node("n2", gpu=4), pod("r", node="n1", gpu=2), pod("p", gpu=1), pod("q", cpu=1)]
    state = ClusterState(instance_of(*objects), seed=0)
    weights = {"cpu": 1, "nvidia.com/gpu": 1}
    shapes = [Allocation.of(state, task, np.array([0]), weights, least=True).requested.shape for task in state.tasks]
    assert shapes == [(1, 2), (1, 1)]


def test_ties_are_seeded() -> None:
    world = World()
    world.nodes("n1 n2 n3")
    world.pod("p")
    found = [run(world.instance(), "kube-default", seed=seed).bindings[0].node for seed in range(30)]
    assert set(found) == {"n1", "n2", "n3"}
    assert found == [run(world.instance(), "kube-default", seed=seed).bindings[0].node for seed in range(30)]


def test_what_keeps_a_pod_off() -> None:
    world = World()
    world.node("cordoned", unschedulable=True)
    world.node("tainted", taints=["gpu"])
    world.node("full", gpu=0)
    world.node("other", labels={"zone": "b"})
    for number in range(3):
        world.pod(
            f"p{number}", selector={"zone": "a"} if number == 0 else None, tolerates=["gpu"] if number == 1 else ()
        )
    world.pod("q", gpu=4, unsupported=["spec.affinity.podAffinity: required"])
    found = {binding.pod.name: binding.node for binding in run(world.instance(), "kube-default").bindings}
    assert "p0" not in found
    assert "q" not in found
    assert found.keys() == {"p1", "p2"}
    assert found["p2"] == "other"
    assert verify(world.instance(), run(world.instance(), "kube-default")) == []


def test_host_ports_do_not_clash() -> None:
    ports = {"containers": [{"name": "main", "ports": [{"containerPort": 80, "hostPort": 80}]}]}
    assert len(bound(node("n1"), *(pod(name, spec=ports) for name in "abc"))) == 1


def test_gangs_are_not_known() -> None:
    world = World()
    world.nodes("n1 n2", gpu=1)
    world.pods_of("a b c", world.gang("g", 3))
    placement = run(world.instance(), "kube-default")
    assert len(placement.bindings) == 2
    assert [violation.rule for violation in verify(world.instance(), placement)] == ["C5"]


def test_without_the_filter_of_resources_nodes_are_overcommitted() -> None:
    """As the shipped sample of NetworkOverhead has it; nothing of that is hidden."""
    disabled = {"multiPoint": {"disabled": [{"name": "NodeResourcesFit"}]}}
    instance = instance_of(node("n1", cpu=1), pod("a", cpu=1), pod("b", cpu=1))
    placement = run(instance, "kube-default", arguments={"plugins": disabled})
    assert len(placement.bindings) == 2
    assert [violation.rule for violation in verify(instance, placement)] == ["C2"]


def test_scores_are_normalised_and_weighted() -> None:
    world = World()
    world.nodes("n1 n2 n3")
    world.pod("p")
    state = ClusterState(world.instance(), seed=0)
    one = Score("one", 2, lambda _task, nodes: nodes.astype(np.float64), lambda raw: 100 - raw)
    two = Score("two", 0.5, lambda _task, nodes: 10 * nodes.astype(np.float64))
    step = SchedulingCycle(state, [], [one, two])
    assert step.total(state.tasks[0], np.array([0, 1, 2])).tolist() == [200, 203, 206]
    assert step.choose(state.tasks[0], np.array([0, 1, 2])) == 2
    assert step.choose(state.tasks[0], np.array([], dtype=np.int64)) is None


def test_what_a_forgotten_pod_took_is_there_again() -> None:
    world = World()
    world.node("n1", gpu=2)
    world.pod("p", gpu=2)
    state = ClusterState(world.instance(), seed=0)
    before = state.idle.copy(), state.scored.copy()
    heard: list[tuple[Key, int, int]] = []
    state.listeners.append(lambda task, where, sign: heard.append((task.key, where, sign)))
    state.assume(state.tasks[0], 0)
    assert not state.fits(state.tasks[0], np.array([0]))[0]
    state.forget(state.tasks[0])
    assert (state.idle == before[0]).all()
    assert (state.scored == before[1]).all()
    assert heard == [(Key("default", "p"), 0, 1), (Key("default", "p"), 0, -1)]


def test_faults_of_arguments_name_the_policy() -> None:
    with pytest.raises(BadInstance, match="kube-default: percentageOfNodesToScore: found 'all', expected an integer"):
        bound(node("n1"), percentageOfNodesToScore="all")
