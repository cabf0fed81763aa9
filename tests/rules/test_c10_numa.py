"""C10: the kubelet of a node with a strict policy admits every new pod, in plan order."""

from __future__ import annotations

import pytest

from placer.problem import PodState, Policy
from placer.problem.numa import NumaDemand
from tests.judge import broken, messages
from tests.numa_words import demand, numa
from tests.world import World

TWO, THREE, FOUR = (demand(f"{cores} cpu 1 memory") for cores in (2, 3, 4))


def _world(policy: str = "single", scope: str = "container", off: bool = False, **pods: NumaDemand) -> World:
    """Node n1 with zones of 4 and 2 cores, n2 whose kubelet aligns nothing, and pending pods."""
    world = World(Policy(rules_off=frozenset({"C10"} if off else ())))
    world.node("n1", 0, numa=numa(policy, scope, "4 cpu 8 memory", "2 cpu 8 memory"))
    world.node("n2", 0, numa=numa("none", "container", "99 cpu 99 memory"))
    for name, asked in pods.items():
        world.pod(name, gpu=0, numa=asked)
    return world


def refused(*names: str) -> list[tuple[str, tuple[str, ...], int]]:
    return [("C10", (f"Pod default/{name}", "Node n1"), 1) for name in names]


def test_kept_in_an_order_that_the_kubelet_admits() -> None:
    """4 cores fill zone 0, 2 fill zone 1."""
    assert broken(_world(a=TWO, b=FOUR), "b@n1 a@n1") == []


def test_broken_in_another_order() -> None:
    """2 cores go to zone 0, where 2 are left; 4 fit nowhere. The sum over the node is kept."""
    assert broken(_world(a=TWO, b=FOUR), "a@n1 b@n1") == refused("b")
    assert messages(_world(a=TWO, b=FOUR), "a@n1 b@n1") == [
        "Pod default/b is refused by the kubelet of Node n1 (single-numa-node, scope container): container c0 asks for "
        "cpu 4, memory 1 in one zone: node-0 has cpu 2, memory 7; node-1 has cpu 2, memory 8"
    ]


def test_each_refused_pod_is_one_and_takes_nothing() -> None:
    """3 are in zone 0; 4 and 3 are refused; 2 go to zone 1 as if they had not been there."""
    world = _world(a=THREE, b=FOUR, c=THREE, d=TWO)
    world.node("n1", 0, cpu=99_000, numa=numa("single", "container", "4 cpu 8 memory", "2 cpu 8 memory"))
    assert broken(world, "a@n1 b@n1 c@n1 d@n1") == refused("b", "c")


def test_scope_pod() -> None:
    """3 + 3 cores: one by one in zones of 4, together in none."""
    both = demand("3 cpu 1 memory", "3 cpu 1 memory")
    for scope, expected in (("container", []), ("pod", refused("a"))):
        world = World()
        world.node("n1", 0, numa=numa("single", scope, "4 cpu 8 memory", "4 cpu 8 memory"))
        world.pod("a", gpu=0, numa=both)
        assert broken(world, "a@n1") == expected
    assert messages(world, "a@n1") == [
        "Pod default/a is refused by the kubelet of Node n1 (single-numa-node, scope pod): the pod asks for cpu 6, "
        "memory 2 in one zone: node-0 has cpu 4, memory 8; node-1 has cpu 4, memory 8"
    ]


def test_restricted() -> None:
    """5 cores need both zones, and 9 memory do; 5 cores and 1 memory never agree."""
    assert broken(_world("restricted", a=demand("5 cpu 9 memory")), "a@n1") == []
    assert broken(_world("restricted", a=demand("5 cpu 1 memory")), "a@n1") == refused("a")


@pytest.mark.parametrize("policy", ["none", "best-effort"])
def test_other_policies_refuse_nobody(policy: str) -> None:
    assert broken(_world(policy, a=TWO, b=FOUR), "a@n1 b@n1") == []


def test_a_policy_may_switch_the_rule_off() -> None:
    assert broken(_world(off=True, a=TWO, b=FOUR), "a@n1 b@n1") == []


def test_pods_that_align_nothing_go_anywhere() -> None:
    """5 cores of a Burstable pod fit into no zone and need not."""
    assert broken(_world(a=demand("5 cpu 1 memory", qos="Burstable")), "a@n1") == []
    world = _world()
    world.pod("a", gpu=0, cpu=6000)
    assert broken(world, "a@n1") == []


@pytest.mark.parametrize("state", [PodState.BOUND, PodState.TERMINATING, PodState.NOMINATED])
def test_what_is_available_has_the_bound_pods_taken_out_already(state: PodState) -> None:
    """A pod of 4 cores that is on the node before is not counted again."""
    world = _world(a=FOUR)
    world.node("n1", 0, cpu=4000, numa=numa("single", "container", "4 cpu 8 memory", "2 cpu 8 memory"))
    world.pod("r", None, 0, numa=FOUR, state=state, node="n1")
    assert broken(world, "a@n1") == []
