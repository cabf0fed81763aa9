"""What is moved for pods of lost nodes: the least there is by trying everything, and bounds that are never beaten."""

from __future__ import annotations

from dataclasses import replace

import pytest

from placer.answers.making_room import lost_named, repair
from placer.base.errors import UsageError
from placer.lab.generate import generate
from placer.problem import Instance, Key
from placer.problem.placement import Placement
from placer.problem.result import Verdict
from placer.rules import verify
from placer.rules.scoring import score
from placer.search.preempt.domains import disturbance
from tests.examples import exhaustive
from tests.support import instance_of
from tests.world import World, hard

# ------------------------------------------------------------------------------------------------- worked out by hand


def anchored(*, spare: int, protected: bool = False, members: int = 4) -> World:
    """A gang of 2 GPUs a pod in a rack of two nodes, beside a pod of 4 and a high priority; one node is lost, on which
    two pods of it ran. Another rack has ``spare`` GPUs.
    """
    world = World()
    for name in ("lost", "n1", "n2"):
        world.node(name, 4)
    world.node("n3", spare)
    world.hyper("r0", 1, "lost n1 n2")
    world.hyper("r1", 1, "n3")
    gang = world.gang("gang", members, topology=hard(1), priority=0)
    for number in range(4):
        world.running(f"gang-{number}", "lost" if number < 2 else "n1", gang, 2)
    world.running("beside", "n2", None, 4, priority=500)
    if protected:
        key = Key("default", "beside")
        world.pods[key] = replace(world.pods[key], protected="the Policy protects it")
    return world


def repaired(instance: Instance) -> tuple[Placement, Verdict]:
    result = repair(instance, ["lost"], time_limit=None, workers=1)
    assert result.placement is not None
    assert result.placement.lost == ("lost",)
    assert verify(instance, result.placement) == []
    return result.placement, result.verdict


def test_what_is_beside_a_gang_is_moved_whatever_its_priority() -> None:
    placement, verdict = repaired(anchored(spare=4).instance())
    assert verdict is Verdict.OPTIMAL
    assert [(move.pod.name, move.node) for move in placement.moves] == [("beside", "n3")]
    assert {each.pod.name: each.node for each in placement.bindings} == {"gang-0": "n2", "gang-1": "n2"}


def test_a_gang_is_moved_as_a_whole_where_it_cannot_be_whole_again_at_its_place() -> None:
    placement, verdict = repaired(anchored(spare=8, protected=True).instance())
    assert verdict is Verdict.OPTIMAL
    assert {move.pod.name: move.node for move in placement.moves} == {"gang-2": "n3", "gang-3": "n3"}
    assert {each.node for each in placement.bindings} == {"n3"}


def test_nothing_is_moved_for_what_cannot_be_had() -> None:
    placement, verdict = repaired(anchored(spare=3, protected=True).instance())
    assert verdict is Verdict.INFEASIBLE
    assert not placement.moves
    assert not placement.bindings


def test_pods_that_their_group_does_not_need_disturb_nothing() -> None:
    placement, _ = repaired(anchored(spare=8, members=2).instance())
    assert not placement.moves
    assert not placement.bindings


def test_groups_that_lost_nothing_wait_on() -> None:
    world = anchored(spare=4)
    world.pod("other", None, 4, priority=900)
    placement, _ = repaired(world.instance())
    assert "other" not in {each.pod.name for each in placement.bindings}
    assert placement.moves


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("seed", [0, *exhaustive(1, 2, 3)])
def test_what_is_planted_is_reached_and_proved(seed: int, kept: bool) -> None:
    made = generate("lost", nodes=48, seed=seed, lost=2, kept=kept)
    instance = instance_of(*made.documents)
    result = repair(instance, lost_named(instance, None), time_limit=None, workers=1)
    assert made.least is not None
    assert result.placement is not None
    planted = score(result.instance, made.least, disturbing=True)
    assert disturbance(score(result.instance, result.placement, disturbing=True)) == disturbance(planted)
    assert all(judged.met for judged in result.objective if judged.value.name in ("admitted", "moved", "movedUnits"))


def test_lost_nodes_are_those_that_are_named_or_not_ready() -> None:
    instance = anchored(spare=1).instance()
    nodes = {**instance.nodes, "n1": replace(instance.nodes["n1"], ready=False)}
    instance = replace(instance, nodes=nodes)
    assert lost_named(instance, None) == ["n1"]
    assert lost_named(instance, "n3,n2") == ["n2", "n3"]
    with pytest.raises(UsageError, match="--lost: found n9, expected names of nodes"):
        lost_named(instance, "n2,n9")
