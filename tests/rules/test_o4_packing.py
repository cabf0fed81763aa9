"""O4: ``packedHyperNodes`` and ``packedNodes``, what was empty and is not any more."""

import pytest

from placer.problem import PodState
from tests.judge import values
from tests.world import World


def o4(world: World, text: str) -> list[int]:
    return values(world, text, "packedHyperNodes", "packedNodes")


def _cluster() -> World:
    """Tier 1: leaf1 = n1 n2, leaf2 = n3; tier 2: spine = leaf1 leaf2; n4 in none."""
    world = World()
    world.nodes("n1 n2 n3 n4")
    world.hyper("leaf1", 1, "n1 n2")
    world.hyper("leaf2", 1, "n3")
    world.hyper("spine", 2, "leaf1 leaf2")
    for name in "abc":
        world.pod(name)
    return world


@pytest.mark.parametrize(
    ("text", "hyper_nodes", "nodes"),
    [
        ("", 0, 0),
        ("a@n1", 2, 1),
        ("a@n1 b@n1", 2, 1),
        ("a@n1 b@n2", 2, 2),
        ("a@n1 b@n3", 3, 2),
        ("a@n4", 0, 1),
        ("a@n4 b@n1 c@n3", 3, 3),
    ],
)
def test_every_tier_counts_and_the_root_does_not(text: str, hyper_nodes: int, nodes: int) -> None:
    assert o4(_cluster(), text) == [hyper_nodes, nodes]


def test_what_is_in_use_already_costs_nothing() -> None:
    """Something runs on n1: leaf1 and the spine are in use, n2 is not."""
    world = _cluster()
    world.running("r", "n1")
    assert o4(world, "a@n1") == [0, 0]
    assert o4(world, "a@n2") == [0, 1]
    assert o4(world, "a@n3") == [1, 1]


@pytest.mark.parametrize("state", [PodState.TERMINATING, PodState.NOMINATED])
def test_whoever_leaves_or_has_not_come_yet_uses_nothing(state: PodState) -> None:
    world = _cluster()
    world.pod("t", state=state, node="n1")
    assert o4(world, "a@n1") == [2, 1]


def test_daemons_use_nothing() -> None:
    world = _cluster()
    world.running("d", "n1", daemon=True)
    assert o4(world, "a@n1") == [2, 1]


def test_a_new_daemon_uses_nothing() -> None:
    world = _cluster()
    world.pod("d", daemon=True)
    assert o4(world, "d@n1") == [0, 0]
    assert o4(world, "d@n1 a@n1") == [2, 1]


def test_a_running_pod_on_a_node_that_is_gone_uses_nothing() -> None:
    world = _cluster()
    world.running("r", "gone")
    assert o4(world, "a@n1") == [2, 1]
