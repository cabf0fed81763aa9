"""Which PodGroups Volcano's session lets in, and that the others are not tried."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from placer.base.errors import BadInstance
from placer.base.quantity import Resources
from placer.lab.policies.faults import ConfigReader
from placer.lab.policies.mimicry import run
from placer.lab.policies.volcano.settings import DEFAULT, DEFAULT_LABELS, read_settings
from placer.problem import GroupKey
from tests.world import GPU, World

BARE = ("priority", "gang", "predicates")
ACTIONS = "enqueue, allocate, backfill"


def conf(*names: str, actions: str | None = ACTIONS, factors: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A configuration with these plug-ins; ``factors`` are the arguments of overcommit."""
    plugins = [{"name": name, "arguments": factors or {} if name == "overcommit" else {}} for name in names]
    return {**({} if actions is None else {"actions": actions}), "tiers": [{"plugins": plugins}]}


def bound(world: World, arguments: dict[str, Any] | None = None) -> str:
    placement = run(world.instance(), "volcano", arguments=arguments or conf(*BARE, "overcommit"))
    return " ".join(sorted(binding.pod.name for binding in placement.bindings))


def asks(world: World, key: GroupKey, **least: int) -> None:
    """Write a PodGroup's minResources; ``gpu`` is short for its name."""
    names = {"gpu": GPU}
    home = world.gangs[key]
    amounts = Resources({names.get(name, name): amount for name, amount in least.items()})
    home.group = replace(home.group, min_resources=amounts)


def four() -> World:
    """Two nodes of four GPUs; a gang whose only pod fits on no node, one of three GPUs, one of one, one that asks for
    nothing, in this order.
    """
    world = World()
    world.nodes("n1 n2", gpu=4)
    for priority, (name, gpu) in enumerate((("none", 1), ("one", 1), ("three", 3), ("wide", 6))):
        key = world.gang(name, 1, priority=priority)
        world.pod(name, key, gpu)
        if name != "none":
            asks(world, key, gpu=gpu)
    return world


def test_who_is_let_in_holds_the_door_against_others_though_it_never_fits() -> None:
    """8 GPUs, so 9.6 may be asked for: wide 6, three 9; one would make it 10 and stays outside, beside 5 free GPUs.

    none asks for nothing and is always let in.
    """
    assert bound(four()) == "none three"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (conf(*BARE), "none one three"),  # without the plug-in all are let in
        (conf(*BARE, "overcommit", actions="allocate, backfill"), "none one three"),  # and without the action
        (conf(*BARE, "overcommit", actions=None), "none three"),  # the actions of the default configuration
        (conf(*BARE, "overcommit", factors={"overcommit-factor": 1.25}), "none one three"),  # exactly 10
        (conf(*BARE, "overcommit", factors={"overcommit-factor": 1}), "none one"),  # 8: wide 6, three 9, one 7
        (conf(*BARE, "overcommit", factors={"overcommit-factor": 0.5}), "none three"),  # below 1 it is 1.2
        (conf(*BARE, "overcommit", factors={f"overcommit-factor.{GPU}": 2, "overcommit-factor": 1}), "none one three"),
        (conf(*BARE, "overcommit", factors={"overcommit-factor.cpu": 9}), "none three"),
        (conf(*BARE, "overcommit", actions="enqueue"), ""),
    ],
)
def test_actions_and_factors(arguments: dict[str, Any], expected: str) -> None:
    assert bound(four(), arguments) == expected


def test_one_function_can_be_taken_from_the_plugin() -> None:
    arguments = conf(*BARE, "overcommit")
    arguments["tiers"][0]["plugins"][-1]["enableJobEnqueued"] = False
    assert bound(four(), arguments) == "none one three"


@pytest.mark.parametrize(("used", "expected"), [(1, "none three"), (2, "none one")])
def test_what_pods_take_is_no_longer_there(used: int, expected: str) -> None:
    """Factor 1.2: 9.6 less 1 or 2 is 8.6 or 7.6, so wide 6 and one 7 are in, three (9) is not. Factor 1.25: 9 or 8."""
    world = four()
    for number in range(used):
        world.running(f"r{number}", "n1")
    assert bound(world) == "none one"
    assert bound(world, conf(*BARE, "overcommit", factors={"overcommit-factor": 1.25})) == expected


def test_a_gang_of_which_pods_run_is_in_and_keeps_what_it_asked_for() -> None:
    """run asked for 5 and has 2, so 3 are kept for it: 9.6 less 2 is 7.6, and 3 with 3 is in, another 3 is not.

    Its own pending pod is tried without being asked.
    """
    world = World()
    world.nodes("n1 n2 n3 n4", gpu=2)
    started = world.gang("run", 2, priority=9)
    asks(world, started, gpu=5)
    world.running("r1", "n1", started)
    world.running("r2", "n1", started)
    world.pod("r3", started)
    for name in ("x", "y"):
        key = world.gang(name, 1, priority=1)
        asks(world, key, gpu=3)
        world.pod(name, key)
    assert bound(world) == "r3 x"
    # Below minMember it is not running as a gang, and nothing is kept.
    world.gangs[started].group = replace(world.gangs[started].group, min_member=3)
    assert bound(world) == "r3 x y"


@pytest.mark.parametrize(
    ("inside", "expected"), [("", "none three"), ("one", "none one"), ("wide one three", "none one three")]
)
def test_a_group_that_is_in_already_is_tried_and_holds_what_it_asks_for(inside: str, expected: str) -> None:
    """9.6 may be asked for. With one inside, wide makes it 7, and three 10; groups inside are never asked again."""
    world = four()
    for key, home in world.gangs.items():
        home.group = replace(home.group, inqueue=key.name in inside.split())
    assert bound(world) == expected


def test_a_group_that_is_in_without_pods_holds_what_it_asks_for() -> None:
    world = four()
    empty = world.gang("empty", 1)
    asks(world, empty, gpu=6)
    world.gangs[empty].group = replace(world.gangs[empty].group, inqueue=True)
    assert bound(world) == "none three"
    asks(world, empty, gpu=7)
    assert bound(world) == "none one"


def test_jobs_that_can_never_run_are_let_in_as_well() -> None:
    """short has one pod of the two it needs: it is not tried, and holds 6 of 9.6."""
    world = World()
    world.nodes("n1 n2", gpu=4)
    short = world.gang("short", 2, priority=9)
    asks(world, short, gpu=6)
    world.pod("short", short)
    other = world.gang("other", 1)
    asks(world, other, gpu=4)
    world.pod("other", other)
    assert bound(world) == ""


def test_the_queue_with_the_least_share_is_asked_first_to_its_end() -> None:
    """Shares count what runs: b has nothing, so both jobs of b come before the one of a, whatever its priority.

    8 GPUs x 1.2 less the one that runs: 8.6; b 4, b 8, a 9.
    """
    world = World()
    world.nodes("n1 n2", gpu=4)
    for queue in ("a", "b"):
        world.queue(queue)
    world.running("r", "n1", world.gang("ran", 1, queue="a"))
    for name, queue, gpu in (("a1", "a", 1), ("b1", "b", 4), ("b2", "b", 4)):
        key = world.gang(name, 1, queue=queue, priority=5 if queue == "a" else 0)
        asks(world, key, gpu=gpu)
        world.pod(name, key, 1)
    assert bound(world, conf(*BARE, "proportion", "overcommit")) == "b1 b2"
    # Without proportion all queues have the same share, and a comes first by name: 1, 5; 9 is too much.
    assert bound(world) == "a1 b1"


def test_quotas_that_the_job_controller_writes_beside_requests_do_not_count() -> None:
    world = World()
    world.node("n1", gpu=4)
    key = world.gang("g", 1)
    asks(world, key, gpu=1, **{"requests.cpu": 10**9, "count/pods": 999, f"requests.{GPU}": 99})
    world.pod("g", key)
    assert bound(world) == "g"
    asks(world, key, gpu=1, **{"example.com/foo": 1})  # of which no node has any
    assert bound(world) == ""


def test_the_default_configurations_have_it() -> None:
    for written in (DEFAULT, DEFAULT_LABELS):
        settings = read_settings(written, ConfigReader("-", "test"))
        assert settings.overcommit == {"": 1.2}
        assert settings.actions == {"enqueue", "allocate", "backfill"}


def test_faults() -> None:
    reader = ConfigReader("conf", "volcano-scheduler.conf")
    read_settings(conf("gang", "overcommit", actions="enqueue, alocate", factors={"overcommit-factor": "much"}), reader)
    with pytest.raises(BadInstance) as raised:
        reader.raise_any()
    assert [str(fault) for fault in raised.value.faults] == [
        "conf: volcano-scheduler.conf: actions: found 'alocate', expected one of enqueue, allocate, backfill, preempt, "
        "reclaim, shuffle, gangpreempt, gangreclaim",
        "conf: volcano-scheduler.conf: tiers[0].plugins[1].arguments[overcommit-factor]: found 'much', expected a "
        "number",
    ]
