"""Calls in the exact model: what its rows allow and what a placement costs, by hand and by trying everything."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from ortools.sat.python import cp_model

from placer.arrays import Solution
from placer.arrays.dense_builder import make_dense
from placer.problem import Instance, PodState, Policy
from placer.problem.placement import Score, better
from placer.problem.reading import read
from placer.search.exact.method import ExactModel, Must
from tests.examples import seed_blocks
from tests.judge import placement, values
from tests.kep import kep_cluster
from tests.oracle import best
from tests.shop import MAJORITY, MAJORITY_CASES, SHOP, shop, star
from tests.shrink import describe
from tests.solving import solve_tiny
from tests.tiny import tiny_network
from tests.world import World, calls

ROOT = Path(__file__).parents[3]


def held(model: ExactModel, solution: Solution) -> cp_model.CpSolver | None:
    """Solve the model with the counts of a solution, whatever that breaks; None where the rows do not allow it."""
    values = model.hint(solution)
    copy = model.proto.clone()
    for counts in model.variables.counts:
        for variable in counts.values():
            copy.add(variable == values[variable.index])
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    return solver if solver.solve(copy) in (cp_model.OPTIMAL, cp_model.FEASIBLE) else None


def allowed(world: World, text: str) -> bool:
    """Whether both models allow a placement: that for O1, and that which O3 is aimed at, which gives it its cost."""
    dense = make_dense(world.instance())
    solution = dense.solution(placement(text))
    coarse = held(ExactModel(dense, criterion=0), solution)
    fine, criterion = ExactModel(dense), [name for name, _ in dense.criteria].index("networkCost")
    fine.aim(criterion)
    solver = held(fine, solution)
    assert (coarse is None) == (solver is None)
    if solver is not None:
        assert [round(solver.objective_value)] == values(world, text, "networkCost")
    return solver is not None


# The rules


@pytest.mark.parametrize(
    ("text", "fine"),
    [
        ("w1@n1 d1@n1", True),
        ("w1@n1 d1@n2", True),
        ("w1@n1 d1@n3", True),
        ("w1@n1 d1@n5", False),
        ("w1@n5 d1@n7", False),
        ("w1@n1 w2@n3 w3@n4 d1@n2 d2@n3", True),
        ("w1@n1 w2@n1 w3@n5 d1@n2", False),
        ("w1@n1 w2@n1 d1@n2 d2@n7", False),
        ("w1@n1 w2@n5", True),
        ("d1@n1 d2@n5", True),
    ],
)
def test_network_cost(text: str, fine: bool) -> None:
    """C8: within 5 are one node, one zone and the zones Z1 and Z2 of us-west-1."""
    assert allowed(shop(kep_cluster(), calls("web>db", 5)), text) == fine


@pytest.mark.parametrize(("text", "fine"), [("w1@n1 d1@n2", True), ("w1@n2 d1@n1", False)])
def test_network_cost_has_a_direction(text: str, fine: bool) -> None:
    world = World()
    world.node("n1", area="r/x")
    world.node("n2", area="r/y")
    world.links("zone", "x>y", 3)
    assert allowed(shop(world, calls("web>db", 3)), text) == fine
    assert allowed(shop(world, calls("db>web", 3)), text) != fine


@pytest.mark.parametrize(
    ("text", "fine"), [("", True), ("w1@n6", True), ("w1@n1", False), ("d1@n3", True), ("d1@n5", False)]
)
def test_nothing_new_is_too_far_from_what_runs(text: str, fine: bool) -> None:
    """A caller runs in Z1 and a callee in Z3, too far apart, which is nobody's fault but their own."""
    world = shop(kep_cluster(), calls("web>db", 5))
    world.running("r", "n1", app=SHOP, workload="web")
    world.running("s", "n5", app=SHOP, workload="db")
    assert allowed(world, text) == fine


@pytest.mark.parametrize("state", [PodState.TERMINATING, PodState.NOMINATED])
def test_pods_that_leave_are_not_too_far(state: PodState) -> None:
    world = shop(kep_cluster(), calls("web>db", 5))
    world.pod("r", app=SHOP, workload="db", state=state, node="n5")
    assert allowed(world, "w1@n1")


def test_a_workload_that_calls_itself_stays_together() -> None:
    world = shop(kep_cluster(), calls("web>web", 5))
    assert allowed(world, "w1@n1 w2@n3 w3@n4")
    assert not allowed(world, "w1@n1 w2@n3 w3@n5")


@pytest.mark.parametrize(("text", "fine"), MAJORITY_CASES)
def test_majority(text: str, fine: bool) -> None:
    assert allowed(star(), text) == fine


def test_majority_of_a_running_caller_must_not_get_worse() -> None:
    world = star()
    world.running("w", "n1", app=SHOP, workload="web")
    world.running("far", "n5", app=SHOP, workload="x")
    assert allowed(world, "x@n2")
    assert not allowed(world, "y@n6")
    assert allowed(world, "y@n6 z@n1")


def test_majority_does_not_count_a_pod_as_its_own_callee() -> None:
    """Two replicas together, two elsewhere: each has one callee near and two far."""
    world = kep_cluster(World(MAJORITY))
    world.app_group("shop", calls("db>db", 0))
    for name in "abcd":
        world.pod(name, app=SHOP, workload="db")
    assert allowed(world, "a@n1 b@n2")
    assert not allowed(world, "a@n1 b@n5")
    assert not allowed(world, "a@n1 b@n2 c@n5 d@n6")


def test_majority_of_pods_that_are_held_is_what_the_whole_allows() -> None:
    """As running pods w and the far x may keep their surplus of 1; where they are new pods that a part holds, not."""
    world = star()
    world.running("w", "n1", app=SHOP, workload="web")
    world.running("far", "n5", app=SHOP, workload="x")
    dense = make_dense(world.instance())
    assert dense.network is not None
    web = next(number for number, each in enumerate(dense.network.workloads) if each.bound and each.bound[0][0] == 0)
    must = Must(surplus={(web, int(dense.network.area[0])): 0})
    solution = dense.solution(placement("y@n1"))
    assert held(ExactModel(dense, must), solution) is not None
    assert held(ExactModel(dense), Solution()) is not None
    assert held(ExactModel(dense, must), Solution()) is None


def two_regions() -> World:
    """Zones x = n1 n2 and y = n3 of region r, zone z = n4 of region s; 100 bit/s between zones, 50 between regions."""
    world = World()
    world.nodes("n1 n2", area="r/x")
    world.node("n3", area="r/y")
    world.node("n4", area="s/z")
    world.links("zone", "x=y", 1, 100)
    world.links("region", "r=s", 1, 50)
    return world


@pytest.mark.parametrize(
    ("text", "fine"),
    [
        ("w1@n1 w2@n2 w3@n1 d1@n1 d2@n2", True),
        ("w1@n1 w2@n2 d1@n3 d2@n3", True),  # 4 pairs of 25
        ("w1@n1 w2@n2 w3@n1 d1@n3 d2@n3", False),  # 6 pairs
        ("w1@n1 w2@n2 w3@n3 d1@n3 d2@n3", True),
        ("w1@n1 w2@n2 d1@n4", True),  # 2 pairs of 25 on the region link
        ("w1@n1 w2@n3 w3@n3 d1@n4", False),  # zones of one region share it
        ("w1@n3 w2@n3 w3@n3 d1@n1 d2@n4", False),
        ("w1@n3 w2@n3 d1@n1 d2@n4", True),
        ("w1@n4 w2@n4 d1@n1 d2@n3", False),  # the way back is another link, as narrow
        ("w1@n4 w2@n4 d1@n1", True),
    ],
)
def test_bandwidth(text: str, fine: bool) -> None:
    assert allowed(shop(two_regions(), calls("web>db", 100, 25)), text) == fine


@pytest.mark.parametrize(
    ("text", "fine"),
    [
        ("w1@n1", True),
        ("w1@n1 w2@n1", False),
        ("d1@n3", False),
        ("w1@n3 w2@n3 w3@n3 d2@n1", True),
        ("w1@n3 w2@n3 w3@n3 d1@n1 d2@n1", False),
    ],
)
@pytest.mark.parametrize("state", [PodState.BOUND, PodState.TERMINATING])
def test_running_and_leaving_pods_hold_their_links(state: PodState, text: str, fine: bool) -> None:
    """2 callers in x and a callee in y take 60 of 100 from x to y: a third caller fits, and no second callee.

    From y to x is room for the calls of three callers to one callee.
    """
    world = shop(two_regions(), calls("web>db", 100, 30))
    for name in ("r1", "r2"):
        world.pod(name, app=SHOP, workload="web", state=state, node="n2")
    world.pod("s", app=SHOP, workload="db", state=state, node="n3")
    assert allowed(world, text) == fine


def test_what_runs_beyond_a_capacity_lets_nothing_new_over_it() -> None:
    world = shop(two_regions(), calls("web>db", 100, 60))
    for name in ("r1", "r2"):
        world.running(name, "n2", app=SHOP, workload="web")
    world.running("s", "n3", app=SHOP, workload="db")
    assert allowed(world, "w1@n3 d1@n2")
    assert not allowed(world, "w1@n1")


def test_rules_that_are_off_forbid_nothing() -> None:
    world = shop(
        replace_policy(two_regions(), Policy(rules_off=frozenset({"C8", "C9"}))), calls("web>db", 0, 1_000_000)
    )
    assert allowed(world, "w1@n1 w2@n2 w3@n4 d1@n3 d2@n4")


def replace_policy(world: World, policy: Policy) -> World:
    world.policy = policy
    return world


# The level


def test_pairs_on_one_node_cost_nothing() -> None:
    """Callers on n1 (2) and n2, callees on n1 and n3: 0 + 0 + 1, 5 x 3; with a callee that runs on n2 1 + 1 + 0."""
    world = shop(kep_cluster(), calls("web>db", 100))
    assert values(world, "w1@n1 w2@n1 w3@n2 d1@n1 d2@n3", "networkCost") == [16]
    assert allowed(world, "w1@n1 w2@n1 w3@n2 d1@n1 d2@n3")
    world.running("s", "n2", app=SHOP, workload="db")
    assert values(world, "w1@n1 w2@n1 w3@n2 d1@n1 d2@n3", "networkCost") == [18]
    assert allowed(world, "w1@n1 w2@n1 w3@n2 d1@n1 d2@n3")


def test_calls_both_ways_and_of_itself_cost_each() -> None:
    world = shop(kep_cluster(), calls("web>db", 100), calls("db>web", 100), calls("web>web", 100), calls("web>db", 100))
    text = "w1@n1 w2@n2 w3@n5 d1@n1 d2@n6"
    # web to db: w1 0 + 20, w2 1 + 20, w3 20 + 1; web to web, both ways: w1 w2 1, w1 w3 20, w2 w3 20.
    assert values(world, text, "networkCost") == [3 * 62 + 2 * 41]
    assert allowed(world, text)


def optimum(world: World) -> list[int]:
    solved = solve_tiny(world.instance(), "exact")
    assert solved.proved
    return [value.value for value in solved.score if value.name in ("placed", "networkCost")]


def test_together_as_far_as_there_is_room() -> None:
    """5 pods on nodes of 2: three in Z1's two nodes and one in Z2 at best, a call each from the hub to four others."""
    world = kep_cluster(gpu=2)
    world.app_group("shop", *(calls(f"hub>{name}", 100) for name in "abcd"))
    for name in ("hub", *"abcd"):
        world.pod(name, app=SHOP, workload=name)
    # hub and a on n1: 0; b and c on n2: 1 each; d in Z2: 5.
    assert optimum(world)[1] == 7


def test_a_limit_keeps_out_what_cannot_be_near() -> None:
    """Z1 has room for 2 and the callee runs there: the third caller waits, though 3 zones are empty."""
    world = kep_cluster(gpu=1)
    world.app_group("shop", calls("web>db", 4))
    world.running("s", "n1", gpu=0, app=SHOP, workload="db")
    for name in "abc":
        world.pod(name, app=SHOP, workload="web")
    assert optimum(world) == [2_000_000, 1]


@pytest.mark.parametrize(("pods", "cost"), [(2, 84), (3, 29)])
def test_the_online_boutique(pods: int, cost: int) -> None:
    instance = read(ROOT / f"instances/network/online-boutique-{pods}.yaml")
    solved = solve_tiny(instance, "exact")
    assert solved.proved
    assert [value.value for value in solved.score if value.name == "networkCost"] == [cost]


# Trying everything

SEEDS = range(300)
#: How many of the instances each rule must decide, with gangs and with any.
ENOUGH = 20


def without(instance: Instance, rule: str) -> Score:
    """The optimum without a rule, by the model."""
    policy = replace(instance.policy, rules_off=instance.policy.rules_off | {rule})
    return solve_tiny(replace(instance, policy=policy), "exact").score


@cache
def decided(seed: int) -> Counter[str]:
    """Compare the model with trying everything; count the rules without which it reaches more."""
    instance, found = tiny_network(seed).instance, Counter[str]()
    solved = solve_tiny(instance, "exact")
    assert solved.score == best(instance)[0], describe(instance)
    assert solved.proved, describe(instance)
    gangs = any(group.min_member > 1 for group in instance.groups.values())
    for rule in {"C8", "C9"} - instance.policy.rules_off:
        free = without(instance, rule)
        assert not better(solved.score, free), describe(instance)
        if better(free, solved.score):
            found.update([rule, *([f"{rule} beside gangs"] if gangs else [])])
    return found


@pytest.mark.parametrize("seeds", seed_blocks(len(SEEDS), 50))
def test_the_model_and_trying_everything_agree(seeds: range) -> None:
    for seed in seeds:
        decided(seed)


@pytest.mark.exhaustive
def test_each_rule_decides_enough_of_them() -> None:
    total = sum((decided(seed) for seed in SEEDS), Counter[str]())
    assert total >= Counter({name: ENOUGH for rule in ("C8", "C9") for name in (rule, f"{rule} beside gangs")}), total
