"""C9: what the placed pairs of all dependencies take of a link stays within its bandwidthCapacity."""

import pytest

from placer.problem import Dependency, Key, PodState, Policy
from tests.judge import broken, messages
from tests.kep import kep_cluster
from tests.world import World, calls

NETWORK = "NetworkTopology default/nt-default"
SHOP = Key("default", "shop")


def _c9(link: str, amount: int) -> list[tuple[str, tuple[str, ...], int]]:
    return [("C9", (NETWORK, f"Link {link}"), amount)] if amount else []


def _world(*dependencies: Dependency, policy: Policy | None = None) -> World:
    """Zones x = n1 n2 and y = n3 of region r, zone z = n4 of region s; 100 bit/s between zones, 50 between regions.

    Three pods of web, w1 .. w3, two of db, d1 and d2.
    """
    world = World(policy)
    world.nodes("n1 n2", 9, area="r/x")
    world.node("n3", 9, area="r/y")
    world.node("n4", 9, area="s/z")
    world.links("zone", "x=y", 1, 100)
    world.links("region", "r=s", 1, 50)
    world.app_group("shop", *(dependencies or [calls("web>db", 10, 40)]))
    for name in ("w1", "w2", "w3"):
        world.pod(name, app=SHOP, workload="web")
    for name in ("d1", "d2"):
        world.pod(name, app=SHOP, workload="db")
    return world


@pytest.mark.parametrize(
    ("text", "link", "amount"),
    [
        ("w1@n1 d1@n1", "", 0),
        ("w1@n1 d1@n2", "", 0),
        ("w1@n1 d1@n3", "", 0),
        ("w1@n1 w2@n2 d1@n3", "", 0),
        ("w1@n1 w2@n2 w3@n1 d1@n3", "x -> y", 20),
        ("w1@n1 w2@n2 d1@n3 d2@n3", "x -> y", 60),
        ("w1@n3 d1@n1 d2@n2", "", 0),
        ("w1@n3 w2@n3 d1@n1 d2@n2", "y -> x", 60),
        ("w1@n1 d1@n4", "", 0),
        ("w1@n1 w2@n3 d1@n4", "r -> s", 30),
        ("w1@n4 d1@n1 d2@n3", "s -> r", 30),
        ("w1@n1 w2@n2 w3@n1", "", 0),
    ],
)
def test_pairs_times_bandwidth_above_capacity_are_the_amount(text: str, link: str, amount: int) -> None:
    assert broken(_world(), text) == _c9(link, amount)


def test_the_sentence_names_link_dependency_and_sums() -> None:
    world = _world()
    world.running("w4", "n2", app=SHOP, workload="web")
    world.running("d3", "n3", app=SHOP, workload="db")
    assert messages(world, "w1@n1 w2@n2 d1@n1") == [
        f"{NETWORK}: zone link x -> y carries 120 bit/s (40 before, 80 new, by web -> db of AppGroup default/shop) of "
        "100: 20 too much"
    ]


def test_all_app_groups_share_a_link() -> None:
    world = _world()
    other = world.app_group("other", calls("a>b", 10, 30))
    world.pod("a", app=other, workload="a")
    world.pod("b", app=other, workload="b")
    assert broken(world, "w1@n1 w2@n1 d1@n3") == broken(world, "a@n2 b@n3") == []
    assert broken(world, "w1@n1 w2@n1 d1@n3 a@n2 b@n3") == _c9("x -> y", 10)
    assert "by a -> b of AppGroup default/other and 1 other" in messages(world, "w1@n1 w2@n1 d1@n3 a@n2 b@n3")[0]


@pytest.mark.parametrize(
    ("state", "amount"), [(PodState.BOUND, 20), (PodState.TERMINATING, 20), (PodState.NOMINATED, 0)]
)
def test_terminating_pods_hold_what_they_use(state: PodState, amount: int) -> None:
    """d3 is called by w1, w2 and w3, 120 in all; where it is on its way out too."""
    world = _world()
    world.pod("d3", app=SHOP, workload="db", state=state, node="n3")
    assert broken(world, "w1@n1 w2@n2 w3@n2") == _c9("x -> y", amount)


def test_what_bound_pods_use_is_theirs_until_a_new_pod_uses_the_link() -> None:
    """4 x 40 of 100 run: nothing new may use the link, and everything else may."""
    world = _world()
    for index in range(4):
        world.running(f"r{index}", "n1", app=SHOP, workload="web")
    world.running("d3", "n3", app=SHOP, workload="db")
    assert broken(world, "") == []
    assert broken(world, "w1@n3") == []
    assert broken(world, "d1@n1") == []
    assert broken(world, "w1@n1") == _c9("x -> y", 100)


def test_a_link_without_capacity_is_unlimited() -> None:
    world = World()
    world.node("n1", area="r/x")
    world.node("n2", area="r/y")
    world.node("n3")
    world.links("zone", "x=y", 1)
    shop = world.app_group("shop", calls("web>db", 100, 2**62))
    world.pod("a", app=shop, workload="web")
    world.pod("b", app=shop, workload="db")
    assert broken(world, "a@n1 b@n2") == broken(world, "a@n1 b@n3") == []


def test_a_capacity_without_a_cost_is_a_capacity() -> None:
    """The list that is used has no entry for the link, the one that it takes capacities from has."""
    world = World()
    world.node("n1", area="r/x")
    world.node("n2", area="r/y")
    world.links("zone", "x=y", None, 10)
    shop = world.app_group("shop", calls("web>db", 100, 11))
    world.pod("a", app=shop, workload="web")
    world.pod("b", app=shop, workload="db")
    assert broken(world, "a@n1 b@n2") == _c9("x -> y", 1)


def test_the_example_of_the_kep() -> None:
    """P1 needs 100Mi to P2, P2 250Mi to P3, of 1Gi between zones: 4 replicas of P2 in Z1 reach P3 in Z2, 5 do not."""
    world = kep_cluster()
    group = world.app_group("a1", calls("P1>P2", 30, 100 * 2**20), calls("P2>P3", 20, 250 * 2**20))
    for index in range(5):
        world.pod(f"b{index}", app=group, workload="P2")
    world.pod("c", app=group, workload="P3")
    assert broken(world, "b0@n1 b1@n1 b2@n2 b3@n2 c@n3") == []
    five = "b0@n1 b1@n1 b2@n2 b3@n2 b4@n2 c@n3"
    assert broken(world, five) == _c9("Z1 -> Z2", 5 * 250 * 2**20 - 2**30)
