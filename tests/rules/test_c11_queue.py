"""C11: pods placed in a Volcano queue stay within its capability; a closed queue takes no new pods."""

import pytest

from placer.problem import PodState, Policy
from tests.judge import broken, messages
from tests.world import World

TIGHT = ("Queue tight",)


def _world(policy: Policy | None = None) -> World:
    """Queue tight of 4 GPUs, and a gang in it of three pods with 2 GPUs and 500m each."""
    world = World(policy)
    world.nodes("n1 n2", 8, cpu=8000)
    world.queue("tight", gpu=4)
    gang = world.gang("train", 0, queue="tight")
    world.pods_of("a b c", gang, 2, cpu=500)
    return world


def test_kept_to_the_last_piece() -> None:
    assert broken(_world(), "a@n1 b@n2") == []


def test_what_is_above_is_the_amount() -> None:
    assert broken(_world(), "a@n1 b@n2 c@n1") == [("C11", TIGHT, 2)]
    assert messages(_world(), "a@n1 b@n2 c@n1") == [
        "Queue tight: nvidia.com/gpu 6 requested (0 before, 6 new) of 4: 2 too much"
    ]


@pytest.mark.parametrize(("state", "amount"), [(PodState.BOUND, 1), (PodState.TERMINATING, 1), (PodState.NOMINATED, 0)])
def test_bound_and_terminating_pods_count(state: PodState, amount: int) -> None:
    """3 GPUs of 4 are in use: 2 more are one too many. A nominated pod is not in the queue yet."""
    world = _world()
    world.pod("r", gpu=3, queue="tight", state=state, node="n1")
    assert broken(world, "a@n1") == ([("C11", TIGHT, amount)] if amount else [])


def test_what_bound_pods_break_is_theirs_until_a_new_pod_asks_for_the_same() -> None:
    """7 of 4 GPUs run: a pod without GPUs may come, one with 2 makes it 5 too many."""
    world = _world()
    world.running("r", "n1", gpu=7, queue="tight")
    world.pod("d", gpu=0, cpu=100, queue="tight")
    assert broken(world, "") == []
    assert broken(world, "d@n2") == []
    assert broken(world, "a@n2") == [("C11", TIGHT, 5)]


def test_only_listed_resources_are_limited_and_a_listed_0_is_a_limit() -> None:
    world = _world()
    world.queue("none", gpu=0)
    world.pod("d", gpu=0, cpu=4000, queue="none")
    world.pod("e", gpu=1, queue="none")
    assert broken(world, "d@n1") == []
    assert broken(world, "e@n1") == [("C11", ("Queue none",), 1)]


def test_pods_are_a_resource_too() -> None:
    world = _world()
    world.queue("few", pods=1)
    world.pod("d", queue="few")
    world.pod("e", queue="few")
    assert broken(world, "d@n1 e@n1") == [("C11", ("Queue few",), 1)]


def test_a_closed_queue_costs_one_per_new_pod() -> None:
    world = _world()
    world.queue("closed", closed=True)
    world.pod("d", queue="closed")
    world.pod("e", queue="closed")
    world.running("r", "n1", queue="closed")
    assert broken(world, "a@n1") == []
    assert broken(world, "d@n1 e@n1") == [("C11", ("Queue closed",), 2)]
    assert messages(world, "d@n1") == ["Queue closed is closed and gets 1 new pod"]


def test_a_queue_that_names_namespaces_takes_their_new_pods_only() -> None:
    world = _world()
    world.queue("whose", namespaces=frozenset({"ml", "web"}))
    world.queue("below", parent="whose")
    world.queue("mine", namespaces=frozenset({"default"}))
    world.pod("d", queue="whose")
    world.pod("e", queue="below")
    world.pod("f", queue="mine")
    world.running("r", "n1", queue="whose")
    assert broken(world, "a@n1 f@n1") == []
    assert broken(world, "d@n1 e@n1") == [("C11", ("Queue whose",), 2)]
    assert messages(world, "d@n1") == ["Queue whose takes pods of ml, web only and gets 1 new pod of default"]


def _family() -> World:
    """Queue root of 5 GPUs above left and right without a limit; both have a pod of 3 GPUs."""
    world = World()
    world.nodes("n1 n2", 8)
    world.queue("root", gpu=5)
    world.queue("left", parent="root")
    world.queue("right", parent="root", gpu=3)
    world.pod("l", gpu=3, queue="left")
    world.pod("r", gpu=3, queue="right")
    return world


def test_a_parent_counts_the_pods_of_its_children() -> None:
    assert broken(_family(), "l@n1") == []
    assert broken(_family(), "r@n1") == []
    assert broken(_family(), "l@n1 r@n2") == [("C11", ("Queue root",), 1)]


def test_a_closed_parent_closes_its_children() -> None:
    world = _family()
    world.queue("root", closed=True)
    assert broken(world, "l@n1 r@n2") == [("C11", ("Queue root",), 2)]


@pytest.mark.parametrize("queue", [None, "unknown"])
def test_no_queue_and_an_unknown_one_limit_nothing(queue: str | None) -> None:
    world = _world()
    world.pod("d", gpu=8, queue=queue)
    assert broken(world, "d@n1") == []


def test_an_unknown_parent_limits_nothing() -> None:
    world = _world()
    world.queue("orphan", parent="unknown", gpu=2)
    world.pod("d", gpu=3, queue="orphan")
    assert broken(world, "d@n1") == [("C11", ("Queue orphan",), 1)]


def test_a_policy_may_switch_the_rule_off() -> None:
    assert broken(_world(Policy(rules_off=frozenset({"C11"}))), "a@n1 b@n2 c@n1") == []
