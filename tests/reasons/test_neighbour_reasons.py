"""Groups that rules about pods around a pod keep out: PodAffinity, PodAntiAffinity, TopologySpread."""

import pytest

from placer.instance.problem import Neighbours
from placer.solve import solve
from tests.world import World, apart, near, spread

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
