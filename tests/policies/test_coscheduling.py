"""Coscheduling: who waits, who is bound, who gives up; and the ways it is known to get stuck."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from placer.instance import GroupKey, Instance
from placer.policies import run
from placer.policies.coscheduling import Coscheduling, rejects
from placer.policies.faults import Reader
from placer.policies.ledger import Ledger
from placer.verify import verify
from tests.policies.cases import plugin_cases
from tests.world import COSCHEDULING, World


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


@pytest.mark.parametrize(
    "case",
    [
        each
        for each in plugin_cases()["podgroup-prefilter"]["cases"]
        if not {"gated", "minResources", "group"} & each.keys()
    ],
    ids=str,
)
def test_who_is_tried(case: Mapping[str, Any]) -> None:
    """A group without minMember pods is not tried at all; minResources and gates are not part of an instance."""
    world = World()
    world.nodes("n1 n2", gpu=4)
    gang(world, "g", case["minMember"], " ".join(f"p{number}" for number in range(case["pods"])))
    ledger = Ledger(world.instance(), seed=0)
    plugin = Coscheduling(ledger, {}, Reader("-", "test"))
    assert plugin.admits(ledger.tasks[0]) == case["ok"]


def test_all_are_bound_once_the_last_one_needed_has_its_node_and_the_rest_at_once() -> None:
    world = World()
    world.node("n1", gpu=8)
    gang(world, "g", 3, "a b c d e")
    plugin_order = placed(world.instance())
    assert plugin_order == ["a", "b", "c", "d", "e"]
    ledger = Ledger(world.instance(), seed=0)
    plugin = Coscheduling(ledger, {}, Reader("-", "test"))
    assert [len(plugin.placed(task).bind) for task in ledger.tasks] == [0, 0, 3, 1, 1]


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
