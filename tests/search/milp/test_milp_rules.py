"""Every rule and value of the MILP small by hand: which row a placement breaks, and what the optimum is worth."""

from __future__ import annotations

from itertools import islice

import pytest

from placer.arrays import Solution, score_solution
from placer.arrays.dense_builder import make_dense
from placer.problem import NetworkTopology, Policy, SubGroupPolicy
from placer.search.milp.method import MilpModel
from tests.judge import placement
from tests.oracle import placements
from tests.solving import solve_tiny
from tests.tiny import tiny
from tests.world import World, hard, port, soft

SOLVERS = ("HiGHS", "COIN_CMD")


def broken(world: World, text: str) -> str | None:
    """Rule of the first row that the placement breaks."""
    dense = make_dense(world.instance())
    row = MilpModel(dense).broken(dense.solution(placement(text)))
    return None if row is None else row.rstrip("_0123456789")


def values(world: World, solver: str, *names: str) -> list[int]:
    solved = solve_tiny(world.instance(), "milp", solver)
    assert solved.proved
    return [value.value for value in solved.score if value.name in names]


def two_leaves() -> World:
    """Two leaves of two nodes of 4 GPUs each, under one spine."""
    world = World()
    world.nodes("n1 n2 n3 n4")
    world.hyper("leaf1", 1, "n1 n2")
    world.hyper("leaf2", 1, "n3 n4")
    world.hyper("spine", 2, "leaf1 leaf2")
    return world


def test_once() -> None:
    """C1: a class of two pods is counted three times."""
    world = World()
    world.nodes("n1 n2")
    world.pods_of("a b", world.gang("train", 0))
    dense = make_dense(world.instance())
    assert MilpModel(dense).broken(Solution({(0, 0): 1, (0, 1): 1})) is None
    assert str(MilpModel(dense).broken(Solution({(0, 0): 2, (0, 1): 1}))).startswith("once")


@pytest.mark.parametrize(("where", "rule"), [("a@n1 b@n2", None), ("a@n1 b@n1", "capacity")])
def test_capacity(where: str, rule: str | None) -> None:
    """C2: 3 and 2 GPUs on a node of 4."""
    world = World()
    world.nodes("n1 n2")
    world.pod("a", gpu=3)
    world.pod("b", gpu=2)
    assert broken(world, where) == rule


@pytest.mark.parametrize(
    ("one", "other", "rule"),
    [("0.0.0.0", "10.0.0.1", "ports"), ("10.0.0.1", "10.0.0.1", "ports"), ("10.0.0.1", "10.0.0.2", None)],
)
def test_host_ports_do_not_clash(one: str, other: str, rule: str | None) -> None:
    """C2: every address clashes with each, two addresses do not clash, not even beside a third pod that takes all."""
    world = World()
    world.nodes("n1 n2")
    world.pod("a", ports=[port(80, one)])
    world.pod("b", gpu=2, ports=[port(80, other)])
    world.pod("c", gpu=3, ports=[port(80)])
    assert broken(world, "a@n1 b@n1 c@n2") == rule
    assert broken(world, "a@n1 b@n2") is None
    assert broken(world, "b@n1 c@n1") is not None


@pytest.mark.parametrize(("where", "rule"), [("a@n1", None), ("a@n2", "eligibility")])
def test_eligibility(where: str, rule: str | None) -> None:
    """C3: n2 is tainted."""
    world = World()
    world.node("n1")
    world.node("n2", taints=["gpu"])
    world.pod("a")
    assert broken(world, where) == rule


def test_refusal() -> None:
    """C4: a pod that needs what is not modelled is in no class."""
    world = World()
    world.node("n1")
    world.pod("a", unsupported=["spec.resourceClaims: devices"])
    assert values(world, "HiGHS", "placed") == [0]
    assert not MilpModel(make_dense(world.instance())).variables.count


@pytest.mark.parametrize(("where", "rule"), [("", None), ("a@n1 b@n1", None), ("a@n1", "gang"), ("a@n1 c@n1", None)])
def test_gang(where: str, rule: str | None) -> None:
    """C5: minMember 2."""
    world = World()
    world.nodes("n1")
    world.pods_of("a b c", world.gang("train", 2))
    assert broken(world, where) == rule


@pytest.mark.parametrize(("where", "rule"), [("m@n1 w1@n1", None), ("w1@n1 w2@n1", "gang")])
def test_gang_by_role(where: str, rule: str | None) -> None:
    """C5: one master and one worker at least."""
    world = World()
    world.nodes("n1")
    gang = world.gang("train", 2, roles={"master": 1, "worker": 1})
    for name in ("m", "w1", "w2"):
        world.pod(name, gang, role="master" if name == "m" else "worker")
    assert broken(world, where) == rule


@pytest.mark.parametrize(("where", "rule"), [("a@n1 b@n1", None), ("a@n1", "gang"), ("free@n1", "gang")])
def test_gang_by_policy(where: str, rule: str | None) -> None:
    """C5 and C6: one subgroup of two at least; the free pod alone is not enough."""
    world = World()
    world.nodes("n1")
    gang = world.gang("train", 0, policies=[SubGroupPolicy("task", 2, 1)])
    world.pods_of("a b", gang, part="x")
    world.pod("free", gang, gpu=0)
    assert broken(world, where) == rule


@pytest.mark.parametrize(("where", "rule"), [("a@n1 b@n1", None), ("a@n1", "subgroup"), ("free@n1", None)])
def test_subgroup(where: str, rule: str | None) -> None:
    """C6: both of the subgroup or none; the group itself asks for nothing."""
    world = World()
    world.nodes("n1")
    gang = world.gang("train", 0, policies=[SubGroupPolicy("task", 2)])
    world.pods_of("a b", gang, part="x")
    world.pod("free", gang, gpu=0)
    assert broken(world, where) == rule


@pytest.mark.parametrize(
    ("limit", "where", "fine"),
    [
        (hard(1), "a@n1 b@n2", True),
        (hard(1), "a@n2 b@n3", False),
        (hard(2), "a@n2 b@n3", True),
        (soft(1), "a@n2 b@n3", True),
    ],
)
def test_tier_limit(limit: NetworkTopology, where: str, fine: bool) -> None:
    """C7: across leaves only where tier 2 is allowed; soft never forbids."""
    world = two_leaves()
    world.pods_of("a b", world.gang("train", 2, topology=limit))
    assert (broken(world, where) is None) == fine


@pytest.mark.parametrize(("where", "fine"), [("a@n2", True), ("a@n3", False)])
def test_tier_limit_heeds_what_runs(where: str, fine: bool) -> None:
    """C7: the gang runs on n1 already; n3 is in another leaf."""
    world = two_leaves()
    gang = world.gang("train", 1, topology=hard(1))
    world.running("r", "n1", gang)
    world.pod("a", gang)
    assert (broken(world, where) is None) == fine


@pytest.mark.parametrize(("where", "rule"), [("a@n1", None), ("a@n1 b@n2", "queue")])
def test_queue(where: str, rule: str | None) -> None:
    """C11: the queue has 3 GPUs, the pods ask for 2 each."""
    world = World()
    world.nodes("n1 n2")
    world.queue("tight", gpu=3)
    world.pods_of("a b", world.gang("train", 1, queue="tight"), 2)
    assert broken(world, where) == rule


@pytest.mark.parametrize("solver", SOLVERS)
def test_placed(solver: str) -> None:
    """O1: 6 GPUs for a gang of two pods of 2 (2/3 of a node) and two lone pods of 2: any three of the four pods."""
    world = World()
    world.node("n1", 6)
    world.pods_of("a b", world.gang("train", 2), 2)
    world.pod("c", gpu=2)
    world.pod("d", gpu=2)
    assert values(world, solver, "admitted", "placed") == [999_999, 999_999]


@pytest.mark.parametrize("solver", SOLVERS)
def test_locality_and_span(solver: str) -> None:
    """O2: one pod runs in leaf1 beside 1 free GPU each on n1 and n2; of three new ones two fit there.

    All three must be placed, so the home is the spine: (1 + 3) x 2 = 8. Both leaves are touched.
    """
    world = two_leaves()
    gang = world.gang("train", 3, topology=soft())
    world.running("r", "n1", gang, 3)
    world.running("other", "n2", gpu=3)
    world.pods_of("a b c", gang)
    assert values(world, solver, "locality", "span") == [8, 2]


@pytest.mark.parametrize("solver", SOLVERS)
def test_locality_of_an_elastic_gang(solver: str) -> None:
    """O2: three pods in one leaf are worth 3 x 1; where locality counts more than pods, none is placed."""
    world = two_leaves()
    world.policy = Policy(levels=("locality", "placed"))
    world.pods_of("a b c", world.gang("train", 2, topology=soft()))
    assert values(world, solver, "locality", "span", "placed") == [0, 0, 0]
    world.policy = Policy(levels=("placed", "locality"))
    assert values(world, solver, "placed", "locality", "span") == [750_000, 3, 1]


@pytest.mark.parametrize("solver", SOLVERS)
def test_packing(solver: str) -> None:
    """O4: leaf1 is in use with 4 GPUs free on n2; 6 GPUs in pods of 2 and 4 need one more leaf, the spine is in use."""
    world = two_leaves()
    world.running("r", "n1", gpu=4)
    world.pod("a", gpu=4)
    world.pod("b", gpu=2)
    assert values(world, solver, "packedHyperNodes", "packedNodes") == [1, 2]


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_daemon_opens_nothing(solver: str) -> None:
    """O4: a DaemonSet's pod leaves its node empty."""
    world = two_leaves()
    world.pod("a", daemon=True)
    assert values(world, solver, "placed", "packedHyperNodes", "packedNodes") == [250_000, 0, 0]


@pytest.mark.parametrize("seed", range(60))
def test_every_valid_placement_keeps_all_rows_and_has_its_values(seed: int) -> None:
    """The program forbids nothing that the rules allow, and values it as the score does."""
    instance = tiny(seed).instance
    dense = make_dense(instance)
    model = MilpModel(dense)
    criteria = range(len(dense.criteria))
    for criterion in criteria:
        model.objective.criterion(criterion)
    for each in islice(placements(instance), 50):
        solution = dense.solution(each)
        assert model.broken(solution) is None
        assert tuple(model.value(criterion, solution) for criterion in criteria) == score_solution(dense, solution)
