"""The MILP's rows about workloads that call each other, small by hand: what they forbid, what an optimum is worth."""

from __future__ import annotations

import pytest

from placer.arrays.dense_builder import make_dense
from placer.problem import PodState, Policy
from placer.search.milp.method import MilpModel
from tests.judge import placement
from tests.kep import ONLINE_BOUTIQUE, kep_cluster
from tests.search.milp.test_milp_rules import SOLVERS, broken, values
from tests.shop import MAJORITY_CASES, SHOP, shop, star
from tests.world import World, calls

# ------------------------------------------------------------------------------------------------------------ the rules


@pytest.mark.parametrize(
    ("text", "fine"),
    [
        ("w1@n1 d1@n1", True),
        ("w1@n1 d1@n2", True),
        ("w1@n1 d1@n3", True),
        ("w1@n1 d1@n5", False),
        ("w1@n5 d1@n1", False),
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
    world = shop(kep_cluster(), calls("web>db", 5))
    assert broken(world, text) == (None if fine else "network_cost")


@pytest.mark.parametrize(("text", "rule"), [("w1@n1 d1@n2", None), ("w1@n2 d1@n1", "network_cost")])
def test_network_cost_has_a_direction(text: str, rule: str | None) -> None:
    world = World()
    world.node("n1", area="r/x")
    world.node("n2", area="r/y")
    world.links("zone", "x>y", 3)
    assert broken(shop(world, calls("web>db", 3)), text) == rule


@pytest.mark.parametrize(
    ("text", "fine"), [("", True), ("w1@n6", True), ("w1@n1", False), ("d1@n3", True), ("d1@n5", False)]
)
def test_network_cost_of_running_pods(text: str, fine: bool) -> None:
    """C8: a caller runs in Z1 and a callee in Z3, too far apart, which is nobody's fault but their own."""
    world = shop(kep_cluster(), calls("web>db", 5))
    world.running("r", "n1", app=SHOP, workload="web")
    world.running("s", "n5", app=SHOP, workload="db")
    assert broken(world, text) == (None if fine else "network_cost")


@pytest.mark.parametrize("state", [PodState.TERMINATING, PodState.NOMINATED])
def test_network_cost_heeds_only_who_is_placed(state: PodState) -> None:
    world = shop(kep_cluster(), calls("web>db", 5))
    world.pod("r", app=SHOP, workload="db", state=state, node="n5")
    assert broken(world, "w1@n1") is None


@pytest.mark.parametrize(("text", "fine"), MAJORITY_CASES)
def test_majority(text: str, fine: bool) -> None:
    assert broken(star(), text) == (None if fine else "network_cost")


def test_majority_of_a_running_caller_must_not_get_worse() -> None:
    world = star()
    world.running("w", "n1", app=SHOP, workload="web")
    world.running("far", "n5", app=SHOP, workload="x")
    assert broken(world, "x@n2") is None
    assert broken(world, "y@n6") == "network_cost"
    assert broken(world, "y@n6 z@n1") is None


def test_majority_does_not_count_a_pod_as_its_own_callee() -> None:
    """Two of three replicas together have one callee near and one far each; the third has two far."""
    world = kep_cluster(World(Policy(network_cost="majority")))
    world.app_group("shop", calls("db>db", 0))
    for name in "abcd":
        world.pod(name, app=SHOP, workload="db")
    assert broken(world, "a@n1 b@n2") is None
    assert broken(world, "a@n1 b@n5") == "network_cost"
    assert broken(world, "a@n1 b@n2 c@n5") == "network_cost"
    assert broken(world, "a@n1 b@n2 c@n5 d@n6") == "network_cost"
    assert broken(world, "a@n1 b@n2 c@n2") is None


@pytest.mark.parametrize(("bandwidth", "rule"), [(10 * 2**30, None), (10 * 2**30 + 1, "bandwidth")])
def test_pairs_that_only_majority_allows_cost_and_take_bandwidth(bandwidth: int, rule: str | None) -> None:
    """20 and 10 Gi from region to region."""
    world = star(bandwidth)
    assert broken(world, "web@n1 x@n1 y@n5") == rule
    dense = make_dense(world.instance())
    model, criterion = MilpModel(dense), [name for name, _ in dense.criteria].index("networkCost")
    model.aim(criterion)
    assert model.value(criterion, dense.solution(placement("web@n1 x@n1 y@n5"))) == 20


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
        ("w1@n1 w2@n2 d1@n3", True),
        ("w1@n1 w2@n2 w3@n1 d1@n3", False),
        ("w1@n1 w2@n2 d1@n3 d2@n3", False),
        ("w1@n3 w2@n3 d1@n1 d2@n2", False),
        ("w1@n1 d1@n4", True),
        ("w1@n1 w2@n3 d1@n4", False),
        ("w1@n4 d1@n1 d2@n3", False),
    ],
)
def test_bandwidth(text: str, fine: bool) -> None:
    """C9: 40 a pair."""
    assert broken(shop(two_regions(), calls("web>db", 1, 40)), text) == (None if fine else "bandwidth")


@pytest.mark.parametrize(("state", "fine"), [(PodState.BOUND, False), (PodState.TERMINATING, False), (None, True)])
def test_bandwidth_is_held_by_who_runs_and_who_leaves(state: PodState | None, fine: bool) -> None:
    """C9: two pairs of 40 are there before, 20 of 100 are left; a new caller takes 40 to the old callee."""
    world = shop(two_regions(), calls("web>db", 1, 40))
    if state is not None:
        world.pod("r", app=SHOP, workload="web", state=state, node="n1")
        world.pod("s", app=SHOP, workload="web", state=state, node="n2")
    world.running("t", "n3", app=SHOP, workload="db")
    assert broken(world, "w1@n2") == (None if fine else "bandwidth")
    assert broken(world, "w1@n3") is None


@pytest.mark.parametrize(("text", "fine"), [("w1@n1", False), ("w1@n4", False), ("w1@n3", True), ("d1@n1", True)])
def test_bandwidth_of_calls_to_who_leaves(text: str, fine: bool) -> None:
    """C9: three callees in zone y are being deleted; a new caller in another zone takes 3 x 40 of 100 or 50."""
    world = shop(two_regions(), calls("web>db", 1, 40))
    for name in "rst":
        world.pod(name, app=SHOP, workload="db", state=PodState.TERMINATING, node="n3")
    assert broken(world, text) == (None if fine else "bandwidth")


@pytest.mark.parametrize(
    ("text", "rule"), [("w1@n1", "bandwidth"), ("w1@n3", None), ("d1@n3", "bandwidth"), ("d1@n1", None), ("", None)]
)
def test_bandwidth_of_a_link_that_is_full_before(text: str, rule: str | None) -> None:
    """C9: three callers and one callee take 120 of 100 by themselves; nothing new may use that link."""
    world = shop(two_regions(), calls("web>db", 1, 40))
    for name, node in (("r", "n1"), ("s", "n1"), ("t", "n2")):
        world.running(name, node, app=SHOP, workload="web")
    world.running("u", "n3", app=SHOP, workload="db")
    assert broken(world, text) == rule


def test_bandwidth_is_shared_by_all_who_call() -> None:
    world = shop(two_regions(), calls("web>db", 1, 60))
    other = world.app_group("other", calls("a>b", 1, 50))
    for name in "ab":
        world.pod(name, app=other, workload=name)
    assert broken(world, "w1@n1 d1@n3") is None
    assert broken(world, "w1@n1 d1@n3 a@n3 b@n1") is None
    assert broken(world, "w1@n1 d1@n3 a@n2 b@n3") == "bandwidth"


@pytest.mark.parametrize(("rule", "text"), [("C8", "w1@n1 d1@n5"), ("C9", "w1@n1 d1@n3")])
def test_a_rule_that_is_off_has_no_rows(rule: str, text: str) -> None:
    for off in (frozenset[str](), frozenset({rule})):
        world = shop(kep_cluster(World(Policy(rules_off=off))), calls("web>db", 5, 2**31))
        assert (broken(world, text) is None) == bool(off)


# ------------------------------------------------------------------------------------------------------------ the value


@pytest.mark.parametrize("solver", SOLVERS)
def test_network_cost_is_counted_pair_by_pair(solver: str) -> None:
    """O3: n1 and n2 of zone x and n3 of y, 7 away, with room for two pods each; two callers and three callees.

    At least one is on n3, and a callee there costs least, 2 x 7. Of the others a caller and a callee on each node
    cost 1 + 1, both callers on one and both callees on the other 4.
    """
    world = World()
    world.nodes("n1 n2", 2, area="r/x")
    world.node("n3", 2, area="r/y")
    world.links("zone", "x=y", 7)
    shop(world, calls("web>db", 7), web="w1 w2", db="d1 d2 d3")
    assert values(world, solver, "networkCost") == [16]


@pytest.mark.parametrize("solver", SOLVERS)
def test_network_cost_counts_who_runs(solver: str) -> None:
    """O3: a caller runs on n1, which is full, a callee on n7: 20, whatever comes. A new callee goes beside the caller;
    if there is a new caller too, both go to n7, where only the old caller is far away.
    """
    world = kep_cluster(gpu=1)
    world.app_group("shop", calls("web>db", 20))
    world.running("r", "n1", app=SHOP, workload="web")
    world.running("s", "n7", gpu=0, app=SHOP, workload="db")
    world.pod("d", app=SHOP, workload="db")
    assert values(world, solver, "networkCost") == [20 + 1]
    world.pod("w", gpu=0, app=SHOP, workload="web")
    assert values(world, solver, "networkCost") == [20 + 20]


@pytest.mark.parametrize(("room", "least"), [(2, 84), (3, 29)])
def test_the_online_boutique(room: int, least: int) -> None:
    """O3 of the KEP's eleven workloads on its eight nodes; the optima by all cuts: tests/test_network_instances.py."""
    world = kep_cluster(gpu=room)
    pairs = [(origin, name) for origin, called in ONLINE_BOUTIQUE.items() for name in called.split()]
    world.app_group("shop", *(calls(f"{origin}>{name}", 20) for origin, name in pairs))
    for number in range(1, 12):
        world.pod(f"p{number}", app=SHOP, workload=f"P{number}")
    assert values(world, "HiGHS", "networkCost") == [least]


def test_networks_of_pods_that_cannot_be_placed_cost_what_they_cost() -> None:
    """O3: nothing of the AppGroup is pending; what runs costs 5."""
    world = kep_cluster()
    world.app_group("shop", calls("web>db"))
    world.running("r", "n1", app=SHOP, workload="web")
    world.running("s", "n3", app=SHOP, workload="db")
    world.pod("a")
    assert make_dense(world.instance()).network is None
    assert values(world, "HiGHS", "networkCost") == [5]
