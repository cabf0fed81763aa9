"""C8: each placed pod of a workload and each of a workload it calls are near enough; networkCost: majority."""

import pytest

from placer.problem import Key, PodState, Policy
from tests.judge import broken, messages
from tests.kep import kep_cluster
from tests.world import World, calls

SHOP = "AppGroup default/shop"
MAJORITY = Policy(network_cost="majority")


def _pair(cost: int, policy: Policy | None = None) -> World:
    """Pod a of workload web calls pod b of workload db."""
    world = kep_cluster(World(policy))
    shop = world.app_group("shop", calls("web>db", cost))
    world.pod("a", app=shop, workload="web")
    world.pod("b", app=shop, workload="db")
    return world


def _c8(amount: int, dependency: str = "web -> db") -> list[tuple[str, tuple[str, ...], int]]:
    return [("C8", (SHOP, f"Dependency {dependency}"), amount)] if amount else []


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("a@n1 b@n1", 0),
        ("a@n1 b@n2", 0),
        ("a@n1 b@n3", 5),
        ("a@n4 b@n2", 5),
        ("a@n5 b@n7", 10),
        ("a@n1 b@n5", 20),
        ("a@n8 b@n3", 20),
        ("a@n1", 0),
        ("b@n1", 0),
    ],
)
@pytest.mark.parametrize("limit", [0, 4, 5, 9, 10, 19, 20])
def test_what_a_pair_costs_above_the_limit_is_the_amount(text: str, cost: int, limit: int) -> None:
    """On one node and in one zone no limit is too small, though a pair in one zone counts 1 in O3."""
    assert broken(_pair(limit), text) == _c8(max(0, cost - limit))


def test_the_sentence_names_dependency_areas_and_cost() -> None:
    world = _pair(15)
    world.pod("c", app=Key("default", "shop"), workload="web")
    origin, destination = "zone Z1 of region us-west-1", "zone Z3 of region us-east-1"
    assert messages(world, "a@n1 b@n5 c@n2") == [
        f"{SHOP}: web -> db allows cost 15, and 2 new pairs from {origin} to {destination} have 20"
    ]
    assert messages(world, "a@n1 b@n5") == [
        f"{SHOP}: web -> db allows cost 15, and 1 new pair from {origin} to {destination} has 20"
    ]


def test_a_link_has_a_direction() -> None:
    world = World()
    world.node("n1", area="r/x")
    world.node("n2", area="r/y")
    world.links("zone", "x>y", 3)
    shop = world.app_group("shop", calls("web>db", 3))
    world.pod("a", app=shop, workload="web")
    world.pod("b", app=shop, workload="db")
    assert broken(world, "a@n1 b@n2") == []
    assert broken(world, "a@n2 b@n1") == _c8(100 - 3)


def test_zone_entries_apply_inside_a_region_and_region_entries_across() -> None:
    """Zone x of r costs 1 to zone y of r, and what the regions say to zone y of s."""
    world = World()
    for name, area in (("n1", "r/x"), ("n2", "r/y"), ("n3", "s/y"), ("n4", "s/x")):
        world.node(name, area=area)
    world.links("zone", "x=y", 1)
    world.links("region", "r=s", 30)
    world.links("region", "r=r", 7)
    shop = world.app_group("shop", calls("web>db", 0))
    world.pod("a", app=shop, workload="web")
    world.pod("b", app=shop, workload="db")
    assert broken(world, "a@n1 b@n2") == _c8(1)
    assert broken(world, "a@n1 b@n3") == _c8(30)
    assert broken(world, "a@n1 b@n4") == _c8(30)


@pytest.mark.parametrize(("limit", "amount"), [(99, 1), (100, 0), (500, 0)])
@pytest.mark.parametrize("text", ["a@n1 b@n2", "a@n1 b@n3", "a@n1 b@n4", "a@n4 b@n1", "a@n4 b@n5"])
def test_an_unknown_cost_is_100(text: str, limit: int, amount: int) -> None:
    """n2 is in another zone, n3 in another region, n4 and n5 are in none, and no link has an entry."""
    world = World()
    for name, area in (("n1", "r/x"), ("n2", "r/y"), ("n3", "s/x"), ("n4", ""), ("n5", "")):
        world.node(name, area=area)
    world.links("zone", "u=v", 1)
    shop = world.app_group("shop", calls("web>db", limit))
    world.pod("a", app=shop, workload="web")
    world.pod("b", app=shop, workload="db")
    assert broken(world, text) == _c8(amount)


def test_nodes_of_a_region_without_a_zone_are_one_zone_of_it() -> None:
    world = World()
    for name, area in (("n1", "r"), ("n2", "r"), ("n3", "r/x"), ("n4", "s")):
        world.node(name, area=area)
    world.links("region", "r=s", 20)
    shop = world.app_group("shop", calls("web>db", 0))
    world.pod("a", app=shop, workload="web")
    world.pod("b", app=shop, workload="db")
    assert broken(world, "a@n1 b@n2") == []
    assert broken(world, "a@n1 b@n3") == _c8(100)
    assert broken(world, "a@n1 b@n4") == _c8(20)


def test_bound_pods_count_but_not_among_themselves() -> None:
    """r runs in Z1 and s in Z3, 20 apart where 5 is allowed: c may come where both ends of its calls are within 5."""
    world = _pair(5)
    shop = Key("default", "shop")
    world.running("r", "n1", app=shop, workload="web")
    world.running("s", "n5", app=shop, workload="db")
    assert broken(world, "") == []
    assert broken(world, "a@n6") == []
    assert broken(world, "a@n1") == _c8(15)
    assert broken(world, "b@n3") == []
    assert broken(world, "a@n6 b@n3") == _c8(15)


@pytest.mark.parametrize(
    ("state", "amount"), [(PodState.BOUND, 20), (PodState.TERMINATING, 0), (PodState.NOMINATED, 0)]
)
def test_only_placed_pods_count(state: PodState, amount: int) -> None:
    world = _pair(0)
    world.pod("r", app=Key("default", "shop"), workload="db", state=state, node="n5")
    assert broken(world, "a@n1") == _c8(amount)


def test_without_a_network_the_rule_does_not_apply() -> None:
    world = _pair(0)
    world.network = None
    assert broken(world, "a@n1 b@n5") == []


# majority


def _star(policy: Policy = MAJORITY) -> World:
    """Workload web calls x, y and z with limit 5; one pod each, named after its workload."""
    world = kep_cluster(World(policy))
    shop = world.app_group("shop", *(calls(f"web>{name}", 5) for name in "xyz"))
    for name in ("web", "x", "y", "z"):
        world.pod(name, app=shop, workload=name)
    return world


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("web@n1 x@n1 y@n2 z@n5", 0),
        ("web@n1 x@n1 y@n5 z@n5", 1),
        ("web@n1 x@n5 y@n6 z@n7", 3),
        ("web@n1 x@n3 y@n5", 0),
        ("web@n1 x@n5", 1),
        ("x@n1 y@n5 z@n7", 0),
    ],
)
def test_majority_lets_a_pod_violate_as_many_pairs_as_it_satisfies(text: str, amount: int) -> None:
    found = [("C8", (SHOP, "Workload web"), amount)] if amount else []
    assert broken(_star(), text) == found
    assert len(broken(_star(Policy()), text)) == sum(
        each in text for each in ("x@n5", "y@n5", "y@n6", "z@n5", "z@n7")
    ) * ("web" in text)


def test_majority_says_how_many() -> None:
    area = "zone Z1 of region us-west-1"
    assert messages(_star(), "web@n1 x@n1 y@n5 z@n5") == [
        f"{SHOP}: each of 1 pod of web in {area} has 2 callees too far and 1 near enough"
    ]


def test_majority_of_a_bound_caller_must_not_get_worse() -> None:
    """w runs with one callee too far already, its own fault; one more is one too many, unless a near one comes too."""
    world = _star()
    shop = Key("default", "shop")
    world.running("w", "n1", app=shop, workload="web")
    world.running("far", "n5", app=shop, workload="x")
    assert broken(world, "") == []
    assert broken(world, "y@n6") == [("C8", (SHOP, "Workload web"), 1)]
    assert broken(world, "y@n6 z@n1") == []


def test_majority_does_not_count_a_pod_as_its_own_callee() -> None:
    world = kep_cluster(World(MAJORITY))
    shop = world.app_group("shop", calls("db>db", 0))
    for name in "abc":
        world.pod(name, app=shop, workload="db")
    assert broken(world, "a@n1 b@n5") == 2 * [("C8", (SHOP, "Workload db"), 1)]
    assert broken(world, "a@n1 b@n2 c@n5") == [("C8", (SHOP, "Workload db"), 2)]


# the cases of the plugin's own tests and of the KEP


@pytest.mark.parametrize(
    ("pod", "node", "fits"), [("p1", "n1", False), ("p1", "n6", True), ("p2", "n5", False), ("p2", "n7", True)]
)
@pytest.mark.parametrize("policy", [Policy(), MAJORITY])
def test_cases_of_the_plugin(policy: Policy, pod: str, node: str, fits: bool) -> None:
    """TestNetworkOverheadFilter: p1 calls p2, p2 calls p3, no maxNetworkCost; they run on n2, n5 and n8.

    The pod of the case comes new, in place of its running replica, so that only its own calls are new.
    """
    world = kep_cluster(World(policy))
    group = world.app_group("basic", calls("p1>p2"), calls("p2>p3"))
    for name, where in (("p1", "n2"), ("p2", "n5"), ("p3", "n8")):
        if name != pod and not (pod == "p2" and name == "p1"):
            world.running(name, where, app=group, workload=name)
    world.pod("new", app=group, workload=pod)
    assert (broken(world, f"new@{node}") == []) == fits


@pytest.mark.parametrize("node", range(1, 9))
def test_the_example_of_the_kep(node: int) -> None:
    """P2 runs on N1 and maxNetworkCost is 15: N1 to N4 pass, N5 to N8 are filtered out."""
    world = kep_cluster()
    group = world.app_group("a1", calls("P1>P2", 15))
    world.running("p2", "n1", app=group, workload="P2")
    world.pod("p1", app=group, workload="P1")
    assert (broken(world, f"p1@n{node}") == []) == (node <= 4)
