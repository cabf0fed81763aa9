"""What goes for groups that wait: the least there is by trying everything, and bounds that are never beaten."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from placer.deadline import NEVER
from placer.disruption import Disruption
from placer.instance import Instance, Key
from placer.instance.problem import NO_NEIGHBOURS
from placer.methods.events import BoundFound, Event, Improved, SearchOptions
from placer.methods.exact import disturbing
from placer.methods.preempt.domains import DomainSearch, disturbance
from placer.methods.preempt.lifting import lift, may_be_disturbed, waiting
from placer.methods.preempt.plans import plan_of
from placer.placement import MAXIMISED, Placement, Score, Value, better
from placer.preempt import preempt
from placer.result import Verdict
from placer.score import score
from placer.verify import verify
from tests.examples import seed_blocks
from tests.oracle_disruption import best_preempting, only_for
from tests.shrink import describe
from tests.tiny_disruption import tiny_disruption
from tests.world import World, hard

blocks = pytest.mark.parametrize("seeds", seed_blocks(608, 16))


@cache
def optimum(seed: int) -> tuple[Score, Placement]:
    return best_preempting(tiny_disruption(seed).instance)


def whole(instance: Instance) -> tuple[Placement, list[BoundFound], str]:
    """What the whole model finds, its bounds, and how it ended."""
    highest = max(group.priority for group in waiting(instance))
    lifted = lift(instance, may_be_disturbed(instance, highest))
    events: list[Event] = []
    ended = disturbing.search(lifted, SearchOptions(workers=1), events.append)
    found = next(each for each in events if isinstance(each, Improved))
    return plan_of(lifted, found.solution), [each for each in events if isinstance(each, BoundFound)], ended


@blocks
def test_the_whole_model_finds_the_least_there_is(seeds: range) -> None:
    """What it finds keeps the rules, and is the least where nothing had to be left out: then it is proved."""
    proved = 0
    for seed in seeds:
        instance = tiny_disruption(seed).instance
        asked = any(pod.neighbours != NO_NEIGHBOURS for pod in instance.pods.values())  # not asked then
        if waiting(instance) and not asked:
            placement, bounds, ended = whole(instance)
            assert verify(instance, placement) == [], f"seed {seed}\n{describe(instance)}"
            found, best = score(instance, placement, disturbing=True), optimum(seed)[0]
            assert not better(found, best), f"seed {seed}: {found} beats {best}\n{describe(instance)}"
            assert ended == "proved"
            if bounds:
                proved += 1
                assert not better(best, found), f"seed {seed}: {best} beats {found}\n{describe(instance)}"
    assert proved > len(seeds) // 4


def beaten(values: Score, best: Score) -> Value | None:
    """The first of some values that is said to be the best there is and is not."""
    there = {(each.name, each.priority): each.value for each in best}
    for each in values:
        value = there.get((each.name, each.priority), 0)
        if value != each.value:
            return each if (value > each.value) == (each.name in MAXIMISED) else None
    return None


@blocks
def test_no_bound_of_the_domains_is_beaten_and_what_they_find_keeps_all_rules(seeds: range) -> None:
    reached = known = 0
    for seed in seeds:
        instance = tiny_disruption(seed).instance
        for group in waiting(instance)[:1]:
            alone = only_for(instance, group.key)
            best = best_preempting(alone)[0]
            domains = DomainSearch(alone, group, NEVER)
            for placement in domains.run():
                assert verify(alone, placement) == []
            if domains.bound is not None:
                known += 1
                wrong = beaten(domains.bound, best)
                assert wrong is None, f"seed {seed}: {wrong}, but there is {best}\n{describe(alone)}"
            if domains.best is not None:
                reached += not better(disturbance(best), disturbance(domains.best[0]))
    assert known > len(seeds) // 5
    assert reached >= len(seeds) // 5


# ------------------------------------------------------------------------------------------------- worked out by hand


def full_racks(racks: int, *, spare: int = 0) -> World:
    """Racks of two nodes of 4 GPUs, each node full with a gang of two; in the last rack with one gang of 2 and a lone
    pod; ``spare`` more nodes that are empty, in no rack.
    """
    world = World()
    for rack in range(racks):
        names = [f"n{rack}0", f"n{rack}1"]
        for name in names:
            world.node(name, 4)
        world.hyper(f"r{rack}", 1, " ".join(names))
        for name in names:
            if (rack, name) == (racks - 1, names[0]):
                world.running("lone", name, None, 4)
            else:
                gang = world.gang(f"g-{name}", 2, priority=0)
                world.running(f"{name}-a", name, gang, 2)
                world.running(f"{name}-b", name, gang, 2)
    for number in range(spare):
        world.node(f"s{number}", 4)
    train = world.gang("train", 1, topology=hard(1), priority=10)
    world.pods_of("train-0", train, 4)
    return world


def test_one_unit_goes_where_one_will_do_and_that_is_proved() -> None:
    """The lone pod and any gang weigh the same, so that one of them goes, and no group is touched in part."""
    result = preempt(full_racks(3).instance(), time_limit=None, workers=1)
    placement = result.placement or Placement()
    assert result.verdict is Verdict.OPTIMAL
    assert len(Disruption(result.instance, placement).units) == 1
    assert not placement.moves
    assert placement.evictions


def test_what_has_room_elsewhere_is_moved_and_not_evicted() -> None:
    result = preempt(full_racks(3, spare=1).instance(), time_limit=None, workers=1)
    placement = result.placement or Placement()
    assert result.verdict is Verdict.OPTIMAL
    assert {move.node for move in placement.moves} == {"s0"}
    assert not placement.evictions
    assert [len(step.go) > 0 for step in placement.steps] == [True, False]


def test_domains_prove_the_least_without_the_whole_model() -> None:
    instance = full_racks(40).instance()
    (group,) = waiting(instance)
    domains = DomainSearch(instance, group, NEVER)
    placements = list(domains.run())
    assert placements
    assert domains.best is not None
    assert domains.bound is not None
    assert not better(domains.bound, disturbance(domains.best[0]))


def test_nothing_goes_for_a_group_that_does_not_fit_then() -> None:
    world = full_racks(2)
    huge = world.gang("huge", 9, topology=hard(1), priority=20)
    world.pods_of(" ".join(f"huge-{each}" for each in range(9)), huge)
    result = preempt(world.instance(), time_limit=None, workers=1)
    assert result.verdict is Verdict.INFEASIBLE
    placement = result.placement or Placement()
    assert {key.name for key in placement.node_of} == {"train-0"}
    assert placement.evictions


def test_a_pod_that_is_protected_stays() -> None:
    world = full_racks(1)
    instance = world.instance()
    pods = {key: replace(pod, protected="the Policy protects it") for key, pod in instance.pods.items() if pod.node}
    result = preempt(replace(instance, pods={**instance.pods, **pods}), time_limit=None, workers=1)
    assert (result.placement or Placement()).node_of.get(Key("default", "train-0")) is None
    assert result.verdict is Verdict.INFEASIBLE
