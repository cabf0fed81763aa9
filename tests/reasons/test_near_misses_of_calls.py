"""Groups that calls keep out: the whole messages, and each code against brute force without the rule."""

from __future__ import annotations

from dataclasses import replace

import pytest

from placer.problem import GroupKey, Key, Policy
from tests.examples import exhaustive
from tests.reasons.reasons_true import codes_told
from tests.reasons.test_explanation import only
from tests.tiny import tiny_network
from tests.world import World, calls, hard

HERE = {"kubernetes.io/hostname": "n1"}
SHOP = Key("default", "shop")
TRIED = "(tried every way; pod by pod there is room)"
CARRIED = "wherever its pods fit otherwise, links would carry more than they have room for"
DEAR = "wherever its pods fit otherwise, calls would cost more than they may"


def shop(cost: int, bandwidth: int | None = None, *, policy: Policy | None = None) -> World:
    """Zone a with n1, which db-1 fills, and zone b with n2 and n3; web calls db."""
    world = World(policy)
    world.node("n1", 1, area="r/a")
    world.nodes("n2 n3", 1, area="r/b")
    world.links("zone", "a=b", 10, 100)
    world.app_group("shop", calls("web>db", cost, bandwidth))
    world.running("db-1", "n1", app=SHOP, workload="db")
    return world


def webs(world: World, names: str, gang: GroupKey) -> None:
    for name in names.split():
        world.pod(name, gang, app=SHOP, workload="web")


def test_too_far_from_what_runs() -> None:
    world = shop(5)
    world.pod("web-1", app=SHOP, workload="web")
    said = "web calls db at a cost of 5 at most, 1/3 nodes are near enough to 1 bound pod of db; "
    said += "of the nodes with room Node n2 comes nearest: AppGroup default/shop: web -> db allows cost 5, "
    said += "and 1 new pair from zone b of region r to zone a of region r has 10"
    assert only(world) == (
        "NetworkCost",
        f"{DEAR} {TRIED}: {said}",
    )


def test_too_much_for_a_link_together() -> None:
    world = shop(20, 60)
    webs(world, "web-1 web-2", world.gang("g", 2))
    said = "web calls db with 60 bit/s a pair of pods"
    assert only(world) == (
        "Bandwidth",
        f"{CARRIED} {TRIED}: {said}",
    )


def test_the_cost_comes_before_the_bandwidth() -> None:
    world = shop(5, 160)
    world.pod("web-1", app=SHOP, workload="web")
    assert only(world)[0] == "NetworkCost"


def test_tiers_and_room_come_before_both() -> None:
    world = shop(5, 160)
    world.hyper("l1", 1, "n1")
    world.hyper("l2", 1, "n2")
    world.hyper("l3", 1, "n3")
    world.hyper("root", 2, "l1 l2 l3")
    webs(world, "web-1 web-2", world.gang("g", 2, topology=hard(1)))
    assert only(world)[0] == "TopologyTooNarrow"
    world = shop(5, 160)
    webs(world, "web-1 web-2 web-3", world.gang("g", 3))
    assert only(world)[0] == "InsufficientResources"


def test_members_of_one_group_too_far_from_each_other() -> None:
    """No area has room for both ends."""
    world = World()
    world.node("n1", 1, area="r/a")
    world.node("n2", 1, area="r/b")
    world.links("zone", "a=b", 10)
    world.app_group("shop", calls("web>db", 5))
    gang = world.gang("g", 2)
    world.pod("web-1", gang, app=SHOP, workload="web")
    world.pod("db-1", gang, app=SHOP, workload="db")
    said = "web calls db at a cost of 5 at most"
    assert only(world) == (
        "NetworkCost",
        f"{DEAR} {TRIED}: {said}",
    )


def test_a_callee_that_is_too_far_from_its_caller() -> None:
    world = World()
    world.node("n1", 1, area="r/a")
    world.node("n2", 1, area="r/b")
    world.links("zone", "a>b", 10)
    world.links("zone", "b>a", 1)
    world.app_group("shop", calls("web>db", 5))
    world.running("web-1", "n1", app=SHOP, workload="web")
    world.pod("db-1", app=SHOP, workload="db")
    said = "web calls db at a cost of 5 at most, 1/2 nodes are near enough to 1 bound pod of web; "
    said += "of the nodes with room Node n2 comes nearest: AppGroup default/shop: web -> db allows cost 5, "
    said += "and 1 new pair from zone a of region r to zone b of region r has 10"
    assert only(world) == (
        "NetworkCost",
        f"{DEAR} {TRIED}: {said}",
    )


def test_one_more_pod_of_a_group_that_is_ready() -> None:
    world = shop(20, 60)
    webs(world, "web-1 web-2", world.gang("g", 1))
    code, message = only(world)
    assert code == "Bandwidth"
    assert message.startswith(f"ready; with 1 pod more: {CARRIED}")


def test_outcompeted_for_a_link() -> None:
    world = shop(20, 60)
    world.pod("web-1", app=SHOP, workload="web", priority=1)
    world.pod("web-2", app=SHOP, workload="web")
    said = (
        "web calls db with 60 bit/s a pair of pods; of the nodes with room Node n3 comes nearest: "
        "NetworkTopology default/nt-default: zone link b -> a carries 120 bit/s (60 before, 60 new, by web -> db of "
        "AppGroup default/shop) of 100: 20 too much; the link carries calls of Pod default/web-1 (1 pod)"
    )
    rule = f"{CARRIED} {TRIED}"
    assert only(world) == ("Outcompeted", f"fits alone; with this placement: {rule}: {said}")


def test_the_only_node_left_is_too_far() -> None:
    """The issue's own: web -> db allows 30, near enough is full of another's pod, and the node left costs 40."""
    world = World()
    world.node("n1", 2, area="r/a")
    world.node("n2", 1, area="r/b")
    world.links("zone", "a=b", 40)
    world.app_group("shop", calls("web>db", 30))
    world.running("db-1", "n1", app=SHOP, workload="db")
    world.pod("other", priority=1, selector={"kubernetes.io/hostname": "n1"})
    world.node_list["n1"] = replace(world.node_list["n1"], labels={**world.node_list["n1"].labels, **HERE})
    world.pod("web-1", app=SHOP, workload="web")
    said = (
        "web calls db at a cost of 30 at most, 1/2 nodes are near enough to 1 bound pod of db; of the nodes "
        "with room Node n2 comes nearest: AppGroup default/shop: web -> db allows cost 30, "
        "and 1 new pair from zone b of region r to zone a of region r has 40; "
        "the room went to Pod default/other (1 pod)"
    )
    rule = f"{DEAR} {TRIED}"
    assert only(world) == ("Outcompeted", f"fits alone; with this placement: {rule}: {said}")


def test_a_callee_bound_too_far_away_by_the_same_placement() -> None:
    """Alone web fits anywhere; db took the only node that is large enough, where nothing is left near it."""
    world = World()
    world.node("n1", 4, area="r/a")
    world.node("n2", 1, area="r/b")
    world.links("zone", "a=b", 40)
    world.app_group("shop", calls("web>db", 30))
    world.pod("db-1", gpu=4, priority=1, app=SHOP, workload="db")
    world.pod("web-1", app=SHOP, workload="web")
    code, message = only(world)
    assert code == "Outcompeted"
    assert "allows cost 30, and 1 new pair from zone b of region r to zone a of region r has 40" in message
    assert "; the other end of its calls is Pod default/db-1 (1 pod)" in message


def test_nodes_that_it_may_not_use_are_not_where_its_room_went() -> None:
    """n1 and n3 are near db, and web may not use n3: of the two that took room there one is in its way."""
    world = World()
    world.node("n1", 2, area="r/a")
    world.node("n2", 1, area="r/b")
    world.node("n3", 1, area="r/a")
    world.links("zone", "a=b", 40)
    world.app_group("shop", calls("web>db", 30))
    world.running("db-1", "n1", app=SHOP, workload="db")
    world.pod("other", priority=1, not_on=["n2", "n3"])
    world.pod("elsewhere", priority=1, not_on=["n1", "n2"])
    world.pod("web-1", app=SHOP, workload="web", not_on=["n3"])
    _, message = only(world)
    assert message.endswith("has 40; the room went to Pod default/other (1 pod)")


def test_the_other_end_of_a_call_is_no_pod_of_its_own_workload() -> None:
    """web-1 and db-1 take n1, and web-2 calls db, not web-1."""
    world = World()
    world.node("n1", 5, area="r/a")
    world.node("n2", 1, area="r/b")
    world.links("zone", "a=b", 40)
    world.app_group("shop", calls("web>db", 30))
    world.pod("db-1", gpu=4, priority=2, app=SHOP, workload="db")
    world.pod("web-1", priority=1, app=SHOP, workload="web")
    world.pod("web-2", app=SHOP, workload="web")
    _, message = only(world)
    assert "; the other end of its calls is Pod default/db-1 (1 pod); the room went to " in message


def test_a_link_that_only_its_own_call_would_use_carries_no_calls_of_others() -> None:
    """db-1 takes the only node that is large enough: for web-1 is left n2, and the link takes no call at all."""
    world = World()
    world.node("n1", 4, area="r/a")
    world.node("n2", 1, area="r/b")
    world.links("zone", "a=b", 10, 50)
    world.app_group("shop", calls("web>db", 20, 60))
    world.pod("db-1", gpu=4, priority=1, app=SHOP, workload="db")
    world.pod("web-1", app=SHOP, workload="web")
    code, message = only(world)
    assert code == "Outcompeted"
    assert "zone link b -> a carries 60 bit/s (0 before, 60 new, by web -> db of AppGroup" in message
    assert "carries calls of" not in message


def test_who_calls_over_another_link_is_not_in_its_way() -> None:
    """web-1 calls from b over the link that web-3 lacks; web-2 of the same workload, in c, does not."""
    world = World()
    world.node("n1", 1, area="r/a")
    world.nodes("n2 n3", 1, area="r/b")
    world.node("n4", 1, area="r/c")
    world.links("zone", "a=b", 10, 100)
    world.links("zone", "a=c", 10, 100)
    world.links("zone", "b=c", 10, 100)
    world.app_group("shop", calls("web>db", 20, 60))
    world.running("db-1", "n1", app=SHOP, workload="db")
    world.pod("web-1", priority=1, app=SHOP, workload="web", not_on=["n4"])
    world.pod("web-2", priority=1, app=SHOP, workload="web", not_on=["n2", "n3"])
    world.pod("web-3", app=SHOP, workload="web", not_on=["n4"])
    _, message = only(world)
    assert message.endswith("of 100: 20 too much; the link carries calls of Pod default/web-1 (1 pod)")


@pytest.mark.parametrize("seeds", [75, *exhaustive(250)])
def test_reasons_are_true(seeds: int) -> None:
    """C8 or C9 keeps out what fits without it."""
    codes = codes_told(
        tiny_network,
        range(seeds),
        {
            "NetworkCost": ((("C9",), False), (("C8", "C9"), True)),
            "Bandwidth": ((("C9",), True),),
        },
    )
    assert codes["NetworkCost"] >= seeds // 12, codes
    assert codes["Bandwidth"] >= seeds // 12, codes
    assert codes["NotDecided"] <= 0.02 * codes.total(), codes
