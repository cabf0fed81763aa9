"""Which domains are emptied: the least there is by trying everything, and bounds that are never beaten."""

from __future__ import annotations

from dataclasses import replace

import pytest

from placer.answers.making_room import free_domains
from placer.base.deadline import NEVER
from placer.lab.generate import generate
from placer.problem import Instance, Key, PodState
from placer.problem.placement import FREED, Binding, Placement, Step
from placer.problem.result import Verdict
from placer.rules import verify
from placer.rules.scoring import score
from placer.search.events import SearchOptions
from placer.search.preempt.domains import disturbance
from placer.search.preempt.emptying import emptied_by_pods, empty, first_emptied
from placer.search.preempt.first_plan import Carried, Known
from tests.examples import exhaustive, seed_blocks
from tests.oracle_disruption import best_preempting
from tests.shrink import describe
from tests.support import instance_of
from tests.tiny_disruption import tiny_emptying
from tests.world import World

MOVED = ("moved", "movedUnits")


def emptied(instance: Instance, tier: int, count: int) -> tuple[Placement, list[Known]]:
    """The best placement that is found without a process of its own, and what is told to be known."""
    events = first_emptied(instance, tier, count, NEVER)
    first = next((each.placement for each in events if isinstance(each, Carried)), None)
    empty(instance, first, tier, count, SearchOptions(workers=1), events.append)
    found = [each.placement for each in events if isinstance(each, Carried)]
    return found[-1] if found else Placement(), [each for each in events if isinstance(each, Known)]


@pytest.mark.parametrize("seeds", seed_blocks(512, 32))
def test_nothing_better_is_found_by_trying_everything(seeds: range) -> None:
    """A pod for each domain that keeps off all others, tried everywhere, empties as many and moves as much."""
    met = 0
    for seed in seeds:
        instance, tier, count = tiny_emptying(seed)
        placement, known = emptied(instance, tier, count)
        best, by_pods = best_preempting(emptied_by_pods(instance, tier, count))
        told = f"seed {seed}\n{describe(instance)}"
        assert verify(instance, placement) == [], told
        most = sum(key.name.startswith("empty-") for key in by_pods.node_of)
        least = [each.value for each in best if each.name in MOVED]
        found = [each.value for each in score(instance, placement, disturbing=True) if each.name in MOVED]
        assert len(placement.freed) <= most, told
        assert len(placement.freed) < most or found >= least, told
        for each in known:
            bounds = [value.value for value in each.values]
            if each.values[0].name == FREED:
                assert bounds[0] >= most, told
            elif most == count:
                assert bounds <= least[: len(bounds)], told
        met += len(placement.freed) == most and found == least
    assert met > len(seeds) * 3 // 4


# ------------------------------------------------------------------------------------------------- worked out by hand


def racks() -> World:
    """Racks of two nodes of 4 GPUs: r0 with one pod of 2, r1 with two, r2 with one of a DaemonSet, r3 full of pods
    without an owner.
    """
    world = World()
    for rack, pods in enumerate((1, 2, 1, 4)):
        names = [f"n{rack}{node}" for node in range(2)]
        for name in names:
            world.node(name, 4)
        world.hyper(f"r{rack}", 1, " ".join(names))
        for number in range(pods):
            world.running(f"p{rack}{number}", names[number % 2], None, 2, priority=500)
            key = Key("default", f"p{rack}{number}")
            why = "it has no owner" if rack == 3 else ""
            world.pods[key] = replace(world.pods[key], protected=why, daemon=rack == 2)
    return world


def freed(count: int, most: int | None = None) -> tuple[tuple[str, ...], int, Verdict]:
    result = free_domains(racks().instance(), 1, count, most_moves=most, time_limit=None, workers=1)
    assert result.placement is not None
    assert verify(result.instance, result.placement) == []
    return result.placement.freed, len(result.placement.moves), result.verdict


def test_the_cheapest_domains_are_emptied_and_empty_ones_count() -> None:
    assert freed(1)[:2] == (("r2",), 0)
    assert freed(2)[:2] == (("r0", "r2"), 1)


def test_a_domain_of_which_no_node_takes_pods_may_be_empty_and_pods_on_their_way_out_stay() -> None:
    """As literally as verify has it: the rack is closed, and one of its pods is being deleted."""
    instance = racks().instance()
    nodes = {name: replace(node, ready=node.ready and name[1] != "0") for name, node in instance.nodes.items()}
    leaving = replace(instance.pods[Key("default", "p00")], state=PodState.TERMINATING)
    closed = replace(instance, nodes=nodes, pods={**instance.pods, leaving.key: leaving}, moves_only=True)
    placement, _ = emptied(closed, 1, 2)
    assert (placement.freed, placement.moves) == (("r0", "r2"), ())
    _, by_pods = best_preempting(emptied_by_pods(closed, 1, 2))
    assert len(by_pods.node_of) == 2


def test_what_cannot_be_had_is_proved() -> None:
    """r0, r1 and r2 hold two pods of 2 GPUs that would have to go where there is no room, and r3 cannot be emptied."""
    assert freed(3) == (("r0", "r2"), 1, Verdict.INFEASIBLE)
    assert freed(2, most=0) == (("r2",), 0, Verdict.INFEASIBLE)


def test_verify_says_what_is_not_empty_or_was_before() -> None:
    instance = racks().instance()
    moved, step = Binding(Key("default", "p00"), "n20"), Step((Key("default", "p00"),), (Key("default", "p00"),))
    plan = Placement(moves=(moved,), steps=(step,), freed=("r0",))
    assert verify(instance, plan) == []
    for wrong, message in [
        (replace(plan, freed=("r1",)), "HyperNode r1 is to be empty, and 2 pods would be there"),
        (replace(plan, freed=("r0", "r2")), "HyperNode r2 is to be empty, and 1 pod would be there"),
        (replace(plan, freed=("r9",)), "HyperNode r9 is to be empty, and is not in the instance"),
        (Placement(freed=("r0",)), "HyperNode r0 is to be empty, and 1 pod would be there"),
    ]:
        assert (message, "D4") in [(each.message, each.rule) for each in verify(instance, wrong)]
    (needless,) = verify(instance, replace(plan, moves=(replace(moved, node="n10"),), freed=("r2",)))
    assert (needless.rule, needless.amount) == ("D4", 1)
    assert needless.message == "1 pod would go, and all that is to be empty is so before"


@pytest.mark.parametrize("seed", [0, *exhaustive(1, 2, 3)])
def test_what_is_planted_is_reached_and_proved(seed: int) -> None:
    made = generate("fragmented", nodes=64, seed=seed, domains=3)
    instance = instance_of(*made.documents)
    result = free_domains(instance, 1, 3, time_limit=None, workers=1)
    assert made.least is not None
    assert result.placement is not None
    planted = score(result.instance, made.least, disturbing=True)
    assert disturbance(score(result.instance, result.placement, disturbing=True)) == disturbance(planted)
    assert all(judged.met for judged in result.objective if judged.value.name in MOVED)
