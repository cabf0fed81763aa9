"""Each rule and level decides: the optimum by hand without it and with it, found by every method that proves.

Nodes hold 4 GPUs unless said otherwise, so a pod of one GPU weighs 250,000 micro-nodes.
"""

import pytest

from placer.problem import NetworkTopology, Policy, SubGroupPolicy
from tests.solving import solve_tiny
from tests.world import World, hard, soft

pytestmark = pytest.mark.optimal


def optimum(world: World, method: str, *names: str) -> list[int]:
    solved = solve_tiny(world.instance(), method)
    assert solved.proved
    return [value.value for value in solved.score if value.name in names]


def where(world: World, method: str) -> dict[str, str]:
    return {pod.name: node for pod, node in solve_tiny(world.instance(), method).placement.node_of.items()}


@pytest.mark.parametrize(("runs", "placed"), [(False, 500_000), (True, 0)])
def test_c1_a_bound_pod_keeps_its_node(method: str, runs: bool, placed: int) -> None:
    """2 GPUs do not fit beside the 3 that run."""
    world = World()
    world.nodes("n1")
    if runs:
        world.running("r", "n1", gpu=3)
    world.pod("a", gpu=2)
    assert optimum(world, method, "placed") == [placed]


@pytest.mark.parametrize(("gpu", "placed"), [(5, 1_000_000), (4, 750_000)])
def test_c2_capacity(method: str, gpu: int, placed: int) -> None:
    """3 and 2 GPUs fill a node of 5 (3/5 + 2/5); of a node of 4 the larger one takes 3/4."""
    world = World()
    world.node("n1", gpu)
    world.pod("a", gpu=3)
    world.pod("b", gpu=2)
    assert optimum(world, method, "placed") == [placed]


@pytest.mark.parametrize(("tolerates", "placed"), [(["gpu"], 500_000), ([], 0)])
def test_c3_eligibility(method: str, tolerates: list[str], placed: int) -> None:
    """Only the tainted node has room for 3 GPUs: 3 of the average 6 are 500,000."""
    world = World()
    world.node("n1", 10, taints=["gpu"])
    world.node("n2", 2)
    world.pod("a", gpu=3, tolerates=tolerates)
    assert optimum(world, method, "placed") == [placed]


@pytest.mark.parametrize(("unsupported", "placed"), [([], 500_000), (["spec.resourceClaims: devices"], 0)])
def test_c4_refusal(method: str, unsupported: list[str], placed: int) -> None:
    """One of two that need each other cannot be placed."""
    world = World()
    world.nodes("n1")
    gang = world.gang("train", 2)
    world.pod("a", gang)
    world.pod("b", gang, unsupported=unsupported)
    assert optimum(world, method, "placed") == [placed]


@pytest.mark.parametrize(("least", "placed"), [(2, 1_000_000), (3, 0)])
def test_c5_gang(method: str, least: int, placed: int) -> None:
    """Two of three pods of 2 GPUs fit."""
    world = World()
    world.nodes("n1")
    world.pods_of("a b c", world.gang("train", least), 2)
    assert optimum(world, method, "admitted", "placed") == [placed, placed]


@pytest.mark.parametrize(("size", "placed"), [(1, 1_000_000), (2, 1_000_000), (3, 250_000)])
def test_c6_subgroup(method: str, size: int, placed: int) -> None:
    """A subgroup of three pods of 2 GPUs, and a free pod of 1: two of the subgroup fit, or the free one alone."""
    world = World()
    world.nodes("n1")
    gang = world.gang("train", 0, policies=[SubGroupPolicy("task", size)])
    world.pods_of("x1 x2 x3", gang, 2, part="x")
    world.pod("free", gang, 1)
    assert optimum(world, method, "placed") == [placed]


@pytest.mark.parametrize(("topology", "placed"), [(None, 1_500_000), (hard(2), 1_500_000), (hard(1), 0)])
def test_c7_tier_limit(method: str, topology: NetworkTopology | None, placed: int) -> None:
    """Two pods of 3 GPUs need two nodes, and every leaf has one."""
    world = World()
    world.nodes("n1 n2")
    world.hyper("leaf1", 1, "n1")
    world.hyper("leaf2", 1, "n2")
    world.hyper("spine", 2, "leaf1 leaf2")
    world.pods_of("a b", world.gang("train", 2, topology=topology), 3)
    assert optimum(world, method, "placed") == [placed]


@pytest.mark.parametrize(("policy", "placed"), [(Policy(rules_off=frozenset({"C11"})), 1_000_000), (Policy(), 500_000)])
def test_c11_queue(method: str, policy: Policy, placed: int) -> None:
    """The queue has 3 GPUs; pods ask for 2."""
    world = World(policy)
    world.nodes("n1")
    world.queue("tight", gpu=3)
    world.pods_of("a b", world.gang("train", 1, queue="tight"), 2)
    assert optimum(world, method, "placed") == [placed]


@pytest.mark.parametrize(("priority", "placed"), [(0, [1_000_000]), (9, [250_000, 0])])
def test_o1_a_higher_priority_goes_first(method: str, priority: int, placed: list[int]) -> None:
    """Room for the gang of two pods of 2 GPUs, or for the pod of 1 GPU that outranks it."""
    world = World()
    world.nodes("n1")
    world.pods_of("a b", world.gang("large", 2), 2)
    world.pod("small", gpu=1, priority=priority)
    assert optimum(world, method, "placed") == placed


def test_o1_optional_pods_yield_to_another_gangs_required_ones(method: str) -> None:
    """6 GPUs: elastic asks for 2 of its three pods of 2 GPUs, rigid for its one of 1. All of elastic would be 6 placed.

    Both gangs admitted: 4/6 + 1/6. Placed is as much: the third pod of elastic does not fit into the last GPU.
    """
    world = World()
    world.node("n1", 6)
    world.pods_of("e1 e2 e3", world.gang("elastic", 2), 2)
    world.pods_of("r", world.gang("rigid", 1), 1)
    assert optimum(world, method, "admitted", "placed") == [833_332, 833_332]


@pytest.mark.parametrize(("topology", "locality"), [(None, [0, 0]), (soft(), [2, 1])])
def test_o2_pods_are_near_each_other(method: str, topology: NetworkTopology | None, locality: list[int]) -> None:
    """leaf1 has 1 GPU on each of two nodes, leaf2 one on one node and none free on the other: both pods go to leaf1."""
    world = World()
    world.nodes("n1 n2 n3 n4", 1)
    world.hyper("leaf1", 1, "n1 n2")
    world.hyper("leaf2", 1, "n3 n4")
    world.hyper("spine", 2, "leaf1 leaf2")
    world.running("r", "n4")
    world.pods_of("a b", world.gang("train", 2, topology=topology))
    assert optimum(world, method, "locality", "span") == locality
    if topology is not None:
        assert where(world, method) == {"a": "n1", "b": "n2"}


@pytest.mark.parametrize(
    ("levels", "values"), [(("placed",), {}), (("placed", "packing"), {"packedHyperNodes": 0, "packedNodes": 0})]
)
def test_o4_whole_domains_stay_free(method: str, levels: tuple[str, ...], values: dict[str, int]) -> None:
    """Of two leaves one is in use with 3 GPUs free: a pod of 3 goes there."""
    world = World(Policy(levels=levels))
    world.nodes("n1 n2")
    world.hyper("leaf1", 1, "n1")
    world.hyper("leaf2", 1, "n2")
    world.running("r", "n2")
    world.pod("a", gpu=3)
    assert optimum(world, method, *values) == list(values.values())
    if values:
        assert where(world, method) == {"a": "n2"}


@pytest.mark.parametrize(
    ("levels", "expected"),
    [(("placed", "packing"), [750_000, 1]), (("packing", "placed"), [0, 0])],
)
def test_the_policys_order_decides(method: str, levels: tuple[str, ...], expected: list[int]) -> None:
    """Where an empty node counts more than a placed pod, nothing is placed."""
    world = World(Policy(levels=levels))
    world.nodes("n1")
    world.pod("a", gpu=3)
    assert sorted(optimum(world, method, "placed", "packedNodes"), reverse=True) == expected
