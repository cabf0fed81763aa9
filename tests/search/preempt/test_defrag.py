"""What is moved for room that is wanted: the least there is by trying everything, and bounds that are never beaten."""

from __future__ import annotations

import pytest

from placer.answers.making_room import defrag
from placer.base.errors import UsageError
from placer.problem import GroupKey
from placer.problem.placement import Placement
from placer.problem.result import Result, Verdict
from placer.rules import verify
from tests.world import World, hard

# ------------------------------------------------------------------------------------------------- worked out by hand


def racks() -> tuple[World, list[GroupKey]]:
    """Three racks of two nodes of 4 GPUs, with 1, 2 and 3 pods of 2 GPUs and a high priority that may be anywhere; two
    gangs are wanted, each of a whole rack. Six pods take 12 GPUs of 24, so that there is no room for both.
    """
    world = World()
    for rack in range(3):
        names = [f"n{rack}{node}" for node in range(2)]
        for name in names:
            world.node(name, 4)
        world.hyper(f"r{rack}", 1, " ".join(names))
        for number in range(rack + 1):
            world.running(f"p{rack}{number}", names[number % 2], None, 2, priority=500)
    gangs = [world.gang(f"gang{number}", 2, topology=hard(1), priority=-5) for number in range(2)]
    for number, gang in enumerate(gangs):
        for pod in range(2):
            world.pod(f"g{number}{pod}", gang, 4)
    return world, gangs


def asked(world: World, groups: list[GroupKey], most: int | None = None) -> tuple[Placement, Result]:
    result = defrag(world.instance(), groups, most_moves=most, time_limit=None, workers=1)
    assert result.placement is not None
    assert verify(result.instance, result.placement) == []
    return result.placement, result


def test_the_rack_with_the_fewest_pods_is_emptied_whatever_their_priority() -> None:
    world, gangs = racks()
    placement, result = asked(world, gangs[:1])
    assert result.verdict is Verdict.OPTIMAL
    assert [move.pod.name for move in placement.moves] == ["p00"]
    assert {each.node for each in placement.bindings} == {"n00", "n01"}


def test_what_has_no_room_once_all_is_moved_is_proved_to_have_none() -> None:
    world, gangs = racks()
    placement, result = asked(world, gangs)
    assert result.verdict is Verdict.INFEASIBLE
    assert len(placement.moves) == 1
    assert len({pod.name[:2] for pod in placement.node_of}) == 1


def test_no_more_pods_are_moved_than_may_be() -> None:
    world, gangs = racks()
    placement, result = asked(world, gangs[:1], most=0)
    assert result.verdict is Verdict.INFEASIBLE
    assert not placement.moves
    assert asked(world, gangs[:1], most=1)[1].verdict is Verdict.OPTIMAL
    with pytest.raises(UsageError, match="max moves: found -1, expected at least 0"):
        asked(world, gangs[:1], most=-1)


def test_nothing_else_that_waits_takes_part() -> None:
    world, gangs = racks()
    world.pod("other", None, 4, priority=900)
    placement, _ = asked(world, gangs[:1])
    assert "other" not in {pod.name for pod in placement.node_of}
