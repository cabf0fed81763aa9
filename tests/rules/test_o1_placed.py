"""O1: per priority, highest first, ``admitted`` and ``placed``, in micro-nodes."""

from fractions import Fraction

import pytest

from placer.problem import PodState, Policy, SubGroupPolicy
from placer.rules.scoring import score
from tests.judge import placement, values
from tests.world import GPU, World


def o1(world: World, text: str) -> list[int]:
    return values(world, text, "admitted", "placed")


def test_a_pod_that_fills_an_average_node_weighs_a_million() -> None:
    """Nodes of 2 and 6 GPUs: the average has 4. Weights: 4 GPUs 10^6; 1 GPU 250,000; 3 GPUs 750,000."""
    world = World()
    world.node("n1", 2)
    world.node("n2", 6)
    world.pod("a", gpu=4)
    world.pod("b", gpu=1)
    world.pod("c", gpu=3)
    assert o1(world, "") == [0, 0]
    assert o1(world, "a@n2") == [1_000_000, 1_000_000]
    assert o1(world, "a@n2 b@n1") == [1_250_000, 1_250_000]
    assert o1(world, "c@n2 b@n1") == [1_000_000, 1_000_000]


def test_the_largest_share_counts_and_is_rounded_down() -> None:
    """Of 3 GPUs one is 333,333.3; of 2000m cpu 1500m are 750,000; of 110 pods one is 9,090.9."""
    world = World()
    world.node("n1", 3, cpu=2000)
    world.pod("gpu", gpu=1, cpu=100)
    world.pod("cpu", gpu=1, cpu=1500)
    world.pod("none", gpu=0)
    assert o1(world, "gpu@n1") == [333_333, 333_333]
    assert o1(world, "cpu@n1") == [750_000, 750_000]
    assert o1(world, "none@n1") == [9_090, 9_090]


def test_nodes_without_the_resource_are_not_in_the_average() -> None:
    """Two of three nodes have 8 GPUs: 4 are half of such a node."""
    world = World()
    world.nodes("n1 n2", 8)
    world.node("n3", 0)
    world.pod("a", gpu=4)
    assert o1(world, "a@n1") == [500_000, 500_000]


def test_every_pod_weighs_at_least_one() -> None:
    """With only cpu looked at, a pod without cpu has no share; with cpu x 0.000001, 100m of 1000m are 0.1, floor 0."""
    for weights in ({"cpu": Fraction(1)}, {"cpu": Fraction(1, 10**6)}):
        world = World(Policy(resource_weights=weights))
        world.node("n1", 4, cpu=1000)
        world.pod("a", gpu=4, cpu=0 if weights["cpu"] == 1 else 100)
        assert o1(world, "a@n1") == [1, 1]


def test_a_policy_chooses_and_scales_the_resources() -> None:
    """GPUs x 2.5 alone: 2 of 4 are 1,250,000; the cpu share of 10^6 is not looked at."""
    world = World(Policy(resource_weights={GPU: Fraction("2.5")}))
    world.node("n1", 4, cpu=1000)
    world.pod("a", gpu=2, cpu=1000)
    assert o1(world, "a@n1") == [1_250_000, 1_250_000]


def test_optional_pods_are_placed_but_not_admitted() -> None:
    """minMember 2 of three pods of 1, 1 and 2 of 4 GPUs. Needs 2 x 250,000; the third adds 500,000 to placed."""
    world = World()
    world.nodes("n1 n2", 4)
    gang = world.gang("train", 2)
    world.pods_of("a b", gang, 1)
    world.pod("c", gang, 2)
    assert o1(world, "a@n1 b@n1") == [500_000, 500_000]
    assert o1(world, "a@n1 c@n1") == [500_000, 750_000]
    assert o1(world, "a@n1 b@n1 c@n1") == [500_000, 1_000_000]


def test_a_gang_with_running_members_needs_what_is_missing() -> None:
    """minMember 3, one runs: two of the three pending ones, each 250,000."""
    world = World()
    world.nodes("n1 n2", 4)
    gang = world.gang("train", 3)
    world.running("r", "n1", gang)
    world.pods_of("a b c", gang)
    assert o1(world, "") == [0, 0]
    assert o1(world, "a@n1 b@n1") == [500_000, 500_000]
    assert o1(world, "a@n1 b@n1 c@n2") == [500_000, 750_000]


def test_a_gang_that_is_ready_already_needs_nothing() -> None:
    world = World()
    world.nodes("n1", 4)
    gang = world.gang("train", 1)
    world.running("r", "n1", gang)
    world.pods_of("a", gang)
    assert o1(world, "") == [0, 0]
    assert o1(world, "a@n1") == [0, 250_000]


@pytest.mark.parametrize(
    ("least", "roles", "policies", "need"),
    [
        (3, {}, [], 3),
        (1, {"w": 2, "m": 2}, [], 4),
        (1, {}, [SubGroupPolicy("p", 2, 1)], 2),
        (1, {"w": 1}, [SubGroupPolicy("p", 2, 1), SubGroupPolicy("q", 1, 1)], 3),
    ],
)
def test_the_need_is_the_largest_of_the_minimums(
    least: int, roles: dict[str, int], policies: list[SubGroupPolicy], need: int
) -> None:
    """Four pods of 250,000 each, all placed: two masters w and two workers m; subgroups of 2 and of 1."""
    world = World()
    world.nodes("n1", 4)
    gang = world.gang("train", least, roles=roles, policies=policies)
    parts = [("x", 0), ("x", 0), ("y", 1), (None, 0)] if len(policies) == 2 else [("x", 0)] * 2 + [(None, 0)] * 2
    for name, role, (part, policy) in zip("abcd", "wwmm", parts, strict=True):
        world.pod(name, gang, role=role, part=part if policies else None, policy=policy)
    assert o1(world, "a@n1 b@n1 c@n1 d@n1") == [need * 250_000, 1_000_000]


def test_priorities_are_compared_one_by_one() -> None:
    """Groups of priority 9 and 5; a third one without pending pods makes no value."""
    world = World()
    world.nodes("n1 n2", 4)
    world.pods_of("a", world.gang("high", 1, priority=9))
    world.pods_of("b c", world.gang("low", 1, priority=5))
    world.running("r", "n1", world.gang("runs", 1, priority=7))
    assert o1(world, "a@n1") == [250_000, 250_000, 0, 0]
    assert o1(world, "a@n1 b@n1 c@n1") == [250_000, 250_000, 250_000, 500_000]


def test_a_pods_weight_counts_by_the_priority_of_its_group() -> None:
    world = World()
    world.nodes("n1", 4)
    world.pod("a", world.gang("train", 1, priority=5), priority=100)
    assert [value.priority for value in score(world.instance(), placement("a@n1"))[:2]] == [5, 5]


def test_what_cannot_be_carried_out_counts_for_nothing() -> None:
    world = World()
    world.nodes("n1 n2", 4)
    world.pod("a")
    world.pod("t", state=PodState.TERMINATING, node="n1")
    assert o1(world, "ghost@n1 t@n1 a@n9") == [0, 0]
    assert o1(world, "a@n1 a@n2") == [250_000, 250_000]
