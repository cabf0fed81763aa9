"""Groups that rules about pods around a pod keep out: PodAffinity, PodAntiAffinity, TopologySpread, units."""

import pytest

from placer.answers.solving import solve
from placer.problem.neighbours import Neighbours
from tests.hostile import HOSTILE, hostile_pod
from tests.support import instance_of, node
from tests.world import World, apart, near, spread, unit

WEB = {"app": "web"}


def _world(asks: Neighbours, pods: int) -> World:
    """Two hosts of 8 GPUs in zones a and b, and a gang that needs all its pods."""
    world = World()
    for name, zone in (("n1", "a"), ("n2", "b")):
        world.node(name, 8, labels={"host": name, "zone": zone})
    gang = world.gang("train", pods)
    for number in range(pods):
        world.pod(f"p{number}", gang, labels=WEB, asks=asks)
    return world


@pytest.mark.parametrize(
    ("asks", "pods", "code"),
    [
        (near("zone", app="db"), 2, "PodAffinity"),
        (near("row", app="web"), 2, "PodAffinity"),
        (apart("host", app="web"), 3, "PodAntiAffinity"),
        (spread("zone", 1, 3, app="web"), 3, "TopologySpread"),
        (near("zone", app="web"), 9, "PodAffinity"),
        (near("zone", app="web"), 17, "InsufficientResources"),
    ],
)
def test_the_rule_that_keeps_a_gang_out_is_named(asks: Neighbours, pods: int, code: str) -> None:
    result = solve(_world(asks, pods).instance(), method="greedy")
    assert [reason.code for reason in result.reasons.values()] == [code]


@pytest.mark.parametrize("asks", [near("zone", app="web"), apart("host", app="web"), spread("zone", app="web")])
def test_what_can_be_kept_keeps_nobody_out(asks: Neighbours) -> None:
    assert not solve(_world(asks, 2).instance(), method="greedy").reasons


def test_a_lone_pod_that_is_kept_off_by_one_that_runs() -> None:
    world = World()
    world.node("n1", labels={"zone": "a"})
    world.running("old", "n1", labels={"app": "db"}, asks=apart("zone", app="web"))
    world.pod("p", labels=WEB)
    assert [reason.code for reason in solve(world.instance(), method="greedy").reasons.values()] == ["PodAntiAffinity"]


def _racks(*rooms: int) -> World:
    """Hosts of so many GPUs each, each in a rack of its own, and one in none."""
    world = World()
    for number, room in enumerate(rooms):
        world.node(f"n{number}", room, labels={"rack": f"r{number}"})
    world.node("outside", 8)
    return world


def _reasons(world: World) -> dict[str, tuple[str, str]]:
    found = solve(world.instance(), method="greedy").reasons
    return {key.name: (reason.code, reason.message) for key, reason in found.items()}


def test_a_gang_that_no_domain_of_its_label_holds() -> None:
    """Twelve GPUs, and two for each pod; no rack has room for five pods."""
    world = _racks(8, 4)
    gang = world.gang("g", 5)
    for name in "abcde":
        world.pod(name, gang, 2, asks=unit("PodGroup default/g", "rack"))
    assert _reasons(world) == {
        "g": (
            "TopologyTooNarrow",
            "PodGroup default/g needs 5 pods in one domain of rack; the roomiest (rack=r0) has room for 4, 1 too few",
        )
    }


def test_a_gang_beside_its_running_pods() -> None:
    """Beside a pod in r1 there is room for one more of two that the gang needs; from two racks nothing more comes."""
    world = _racks(8, 4)
    asks = unit("PodGroup default/g", "rack")
    gang = world.gang("g", 3)
    world.running("old", "n1", gang, 2, asks=asks)
    for name in "ab":
        world.pod(name, gang, 2, asks=asks)
    narrow = "PodGroup default/g needs 2 pods in one domain of rack; that of its placed pods (rack=r1) has room for 1"
    assert _reasons(world) == {"g": ("TopologyTooNarrow", f"{narrow}, 1 too few")}
    world.running("far", "n0", gang, 0, asks=asks)
    (reason,) = _reasons(world).values()
    assert reason == (
        "TopologyTooNarrow",
        "PodGroup default/g needs 1 pod in one domain of rack; its running pods are in no one domain of it, but in r0 "
        "and r1",
    )


def test_a_label_that_no_node_carries() -> None:
    world = _racks(8)
    world.pod("p", asks=unit("Job default/j", "row"))
    message = "Job default/j needs 1 pod in one domain of row; no node carries that label"
    assert _reasons(world) == {"p": ("TopologyTooNarrow", message)}


def test_domains_that_others_hold() -> None:
    """Another Job runs in the only rack with room; r1 has room for one pod of two."""
    world = _racks(8, 1)
    world.running("old", "n0", asks=unit("Job default/o", "rack", exclusive=True))
    gang = world.gang("g", 2)
    for name in "ab":
        world.pod(name, gang, asks=unit("Job default/j", "rack", exclusive=True))
    assert _reasons(world) == {
        "g": (
            "Exclusive",
            "Job default/j needs 2 pods in a domain of rack of its own; the roomiest that no other holds (rack=r1) has "
            "room for 1, 1 too few",
        )
    }


def test_a_gang_of_more_units_than_there_are_domains() -> None:
    """Counting says nothing of several units together: trying does."""
    world = _racks(8, 8)
    gang = world.gang("g", 3)
    for name in "abc":
        world.pod(name, gang, asks=unit(f"Job default/{name}", "rack", exclusive=True))
    code, message = _reasons(world)["g"]
    assert (code, message.split(" (")[0]) == (
        "Exclusive",
        "wherever its pods fit otherwise, units would share a domain that each asks for alone",
    )


def test_a_unit_that_another_of_the_placement_keeps_out_is_outcompeted() -> None:
    world = _racks(8)
    for name in "ab":
        world.pod(name, asks=unit(f"Job default/{name}", "rack", exclusive=True))
    (reason,) = _reasons(world).values()
    assert reason[0] == "Outcompeted"
    assert "others hold the only domain" in reason[1]


def test_a_reason_does_not_grow_with_the_terms_that_others_have() -> None:
    """Each pod on a node has a term of its own that keeps off a pod that waits."""
    lengths = []
    for hosts in (12, 24):
        hostile = HOSTILE["broad_terms"](hosts)
        running = [each | {"spec": {**each["spec"], "nodeName": f"n{at}"}} for at, each in enumerate(hostile)]
        waiting = hostile_pod("waits", {"n": "waits"})
        instance = instance_of(*(node(f"n{number}") for number in range(hosts)), *running, waiting)
        (reason,) = solve(instance, method="greedy", time_limit=None).reasons.values()
        assert reason.code == "PodAntiAffinity"
        lengths.append(len(str(reason.message)))
    assert lengths[1] < lengths[0] * 1.1
