"""Coscheduling: who waits, who is bound, who gives up; and the ways it is known to get stuck."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from placer.base.quantity import Resources
from placer.lab.policies.coscheduling import Coscheduling, rejects
from placer.lab.policies.faults import ConfigReader
from placer.lab.policies.framework import ClusterState
from placer.lab.policies.mimicry import run
from placer.problem import GroupKey, Instance, Key
from placer.rules import verify
from tests.lab.policies.cases import plugin_cases
from tests.support import Document, instance_of, node, pod
from tests.world import COSCHEDULING, GPU, World


def placed(instance: Instance, **arguments: Any) -> list[str]:
    profile = {
        "plugins": {
            "multiPoint": {"enabled": [{"name": "Coscheduling"}]},
            "queueSort": {"enabled": [{"name": "Coscheduling"}], "disabled": [{"name": "*"}]},
        },
        "pluginConfig": [{"name": "Coscheduling", "args": arguments}],
    }
    placement = run(instance, "coscheduling", arguments=profile)
    assert not any(violation.rule == "C5" for violation in verify(instance, placement))
    return [binding.pod.name for binding in placement.bindings]


def gang(world: World, name: str, least: int, pods: str, gpu: int = 1, priority: int = 0) -> GroupKey:
    key = world.gang(name, least, api_group=COSCHEDULING, priority=priority)
    for each in pods.split():
        world.pod(each, key, gpu, priority=priority)
    return key


@pytest.mark.parametrize("case", plugin_cases()["podgroup-postfilter"]["cases"], ids=str)
def test_who_gives_up(case: Mapping[str, Any]) -> None:
    assert rejects(round(100 * case["threshold"]), case["minMember"], case["assigned"]) == case["reject"]


def coscheduling_group(**spec: Any) -> Document:
    return {"apiVersion": f"{COSCHEDULING}/v1alpha1", "kind": "PodGroup", "metadata": {"name": "g"}, "spec": spec}


def is_admitted(instance: Instance, name: str = "p0") -> bool:
    state = ClusterState(instance, seed=0)
    return Coscheduling(state, {}, ConfigReader("-", "test")).admits(state.task_of[Key("default", name)])


def in_group(name: str, group: str | None, **more: Any) -> Document:
    labels = {"scheduling.x-k8s.io/pod-group": group} if group is not None else {}
    return pod(name, labels=labels, **more)


@pytest.mark.parametrize("case", plugin_cases()["podgroup-prefilter"]["cases"], ids=str)
def test_who_is_tried(case: Mapping[str, Any]) -> None:
    """A group without minMember pods that are not gated, or whose minResources are not free, is not tried at all."""
    group = case.get("group", "g")
    gated = {"schedulingGates": [{"name": "example.com/wait"}]}
    first = case.get("pods", 1) - case.get("gated", 0)
    instance = instance_of(
        node("n1", cpu=4),
        node("n2", cpu=4),
        coscheduling_group(
            minMember=case.get("minMember", 1),
            minResources={name: str(amount) for name, amount in case.get("minResources", {}).items()},
        ),
        *(
            in_group(f"p{number}", group, cpu=1, spec=gated if number >= first else None)
            for number in range(case.get("pods", 1))
        ),
    )
    assert is_admitted(instance) == case["ok"]


@pytest.mark.parametrize("case", plugin_cases()["podgroup-cluster-resource"]["cases"], ids=str)
def test_what_counts_as_free(case: Mapping[str, Any]) -> None:
    """The sum over all nodes; what pods of the group itself hold counts as free."""
    nodes = plugin_cases()["podgroup-cluster-resource"]["nodes"]
    own = {None: None, "pg1": "g"}
    instance = instance_of(
        *(node(name, cpu=cpu) for name, cpu in nodes.items()),
        coscheduling_group(minMember=1, minResources={"cpu": str(case["want_cpu"])}),
        *(in_group(f"r{number}", own[group], node=on, cpu=cpu) for number, (on, cpu, group) in enumerate(case["used"])),
        in_group("p0", "g", cpu=1),
    )
    assert is_admitted(instance) == case["ok"]


def test_what_was_found_free_once_is_not_looked_at_again() -> None:
    """4 cpu for the group: both its pods are let through, though two are left for the second one. Of another group of
    4 none is, as long as these are there.
    """
    world = World()
    world.node("n1", gpu=4)
    for name in ("first", "second"):
        key = gang(world, name, 2, f"{name}-a {name}-b", gpu=2)
        world.gangs[key].group = replace(world.gangs[key].group, min_resources=Resources({GPU: 4}))
    state = ClusterState(world.instance(), seed=0)
    plugin = Coscheduling(state, {}, ConfigReader("-", "test"))
    tasks = {task.pod.name: task for task in state.tasks}
    assert plugin.admits(tasks["first-a"])
    state.assume(tasks["first-a"], 0)
    assert plugin.admits(tasks["first-b"])
    assert not plugin.admits(tasks["second-a"])
    state.forget(tasks["first-a"])
    assert plugin.admits(tasks["second-a"])


def test_all_are_bound_once_the_last_one_needed_has_its_node_and_the_rest_at_once() -> None:
    world = World()
    world.node("n1", gpu=8)
    gang(world, "g", 3, "a b c d e")
    plugin_order = placed(world.instance())
    assert plugin_order == ["a", "b", "c", "d", "e"]
    state = ClusterState(world.instance(), seed=0)
    plugin = Coscheduling(state, {}, ConfigReader("-", "test"))
    assert [len(plugin.placed(task).bind) for task in state.tasks] == [0, 0, 3, 1, 1]


def test_a_gang_that_does_not_fit_gives_its_room_to_the_next_one() -> None:
    """first (older by name) holds 2 of 2, its third pod fails, all give up; second then fits."""
    world = World()
    world.nodes("n1 n2", gpu=1)
    gang(world, "first", 3, "a0 a1 a2")
    gang(world, "second", 2, "b0 b1")
    assert placed(world.instance()) == ["b0", "b1"]


def test_a_gang_that_lacks_little_keeps_its_room_until_it_times_out() -> None:
    """9 of 10 placed: 10 percent are missing, so it waits; other has failed by then. Once it gives up, other is tried
    before it: it failed earlier.
    """
    world = World()
    world.nodes(" ".join(f"n{number}" for number in range(9)), gpu=1)
    gang(world, "large", 10, " ".join(f"a{number}" for number in range(10)))
    gang(world, "other", 2, "b0 b1")
    assert placed(world.instance()) == ["b0", "b1"]
    assert placed(world.instance(), podGroupRejectPercentage=0) == ["b0", "b1"]


def test_fragments_that_add_up_are_of_no_use() -> None:
    """scheduler-plugins #429: three pods of 4 on nodes with 6, 2, 2, 2: the sum is there, the gang never fits."""
    world = World()
    for number, gpu in enumerate((6, 2, 2, 2)):
        world.node(f"n{number}", gpu)
    gang(world, "g", 3, "a b c", gpu=4)
    assert placed(world.instance()) == []


def test_running_members_count_so_that_a_part_may_be_placed_alone() -> None:
    world = World()
    world.nodes("n1 n2", gpu=1)
    key = world.gang("g", 2, api_group=COSCHEDULING)
    world.running("r", "n1", key)
    world.pod("a", key)
    assert placed(world.instance()) == ["a"]


def test_two_gangs_of_one_age_interleave_by_the_names_of_their_pods() -> None:
    """a, b, c, d take the four nodes, two of each gang. e finds none: x lacks a third and gives up; f completes y."""
    world = World()
    world.nodes("n1 n2 n3 n4", gpu=1)
    x = world.gang("x", 3, api_group=COSCHEDULING)
    y = world.gang("y", 3, api_group=COSCHEDULING)
    for name, key in zip("abcdef", (x, y, x, y, x, y), strict=True):
        world.pod(name, key)
    assert placed(world.instance()) == ["b", "d", "f"]


def test_lone_pods_are_bound_at_once_and_pods_of_a_missing_group_never() -> None:
    world = World()
    world.node("n1", gpu=4)
    key = world.gang("missing", 0, api_group=COSCHEDULING, invalid="PodGroup default/missing is not in the instance")
    world.pod("a", key)
    world.pod("b")
    assert placed(world.instance()) == ["b"]


def test_priority_goes_first_then_the_age_of_the_group() -> None:
    world = World()
    world.node("n1", gpu=2)
    gang(world, "low", 2, "a0 a1")
    gang(world, "high", 2, "z0 z1", priority=5)
    assert placed(world.instance()) == ["z0", "z1"]


def test_volcanos_groups_are_gangs_here_too() -> None:
    world = World()
    world.nodes("n1 n2", gpu=1)
    world.pods_of("a b c", world.gang("g", 3))
    assert placed(world.instance()) == []
