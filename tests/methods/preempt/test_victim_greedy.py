"""The greedy of victims: who goes is the cheapest that makes room, whole, within budgets, and not without need."""

from __future__ import annotations

from dataclasses import replace

from placer.disruption import Disruption
from placer.instance import Instance, Key
from placer.instance.problem import DisruptionBudget
from placer.methods.events import SearchOptions
from placer.methods.preempt.lifting import waiting
from placer.methods.preempt.first_plan import Carried
from placer.methods.preempt.search import search
from placer.methods.preempt.victim_greedy import Evictions, cheapest_evictions
from placer.score import score
from placer.verify import verify
from tests.world import World, hard


def key(name: str) -> Key:
    return Key("default", name)


def racks() -> World:
    """Two racks of two nodes of four GPUs: a gang of low priority on both nodes of r1, single pods on r2."""
    world = World()
    for name in ("a1", "a2", "b1", "b2"):
        world.node(name, 4)
    world.hyper("r1", 1, "a1 a2")
    world.hyper("r2", 1, "b1 b2")
    gang = world.gang("gang", 2, priority=5)
    world.running("g1", "a1", gang, 4, priority=5)
    world.running("g2", "a2", gang, 4, priority=5)
    for name, node in (("x1", "b1"), ("x2", "b1"), ("x3", "b2")):
        world.running(name, node, None, 2, priority=1)
    return world


def chosen(world: World, *kept: str) -> tuple[Instance, Evictions]:
    instance = world.instance()
    return instance, cheapest_evictions(instance, waiting(instance), [*map(key, kept)])


def test_the_domain_where_the_lowest_priority_goes_is_taken_and_free_room_used() -> None:
    world = racks()
    wanted = world.gang("wanted", 2, topology=hard(1), priority=10)
    world.pods_of("w1 w2", wanted, 2)
    _, (bound, gone) = chosen(world)
    assert gone == (frozenset({key("x1")}),) or gone == (frozenset({key("x2")}),) or gone == (frozenset({key("x3")}),)
    assert set(bound.values()) <= {"b1", "b2"}
    assert bound.keys() == {key("w1"), key("w2")}


def test_what_is_kept_stays_and_a_gang_goes_whole() -> None:
    world = racks()
    wanted = world.gang("wanted", 1, topology=hard(1), priority=10)
    world.pods_of("w1", wanted, 4)
    assert chosen(world)[1].gone == (frozenset({key("x3")}),)
    assert chosen(world, "x3")[1].gone == (frozenset({key("x1")}), frozenset({key("x2")}))
    assert chosen(world, "x3", "x1")[1].gone == (frozenset({key("g1"), key("g2")}),)
    assert chosen(world, "x3", "x1", "g2")[1] == Evictions({}, ())


def test_a_gang_that_went_leaves_room_for_what_follows() -> None:
    world = racks()
    for name in ("one", "two"):
        world.pods_of(f"{name}-1", world.gang(name, 1, topology=hard(1), priority=10), 4)
    _, (bound, gone) = chosen(world, "x1", "x2", "x3")
    assert gone == (frozenset({key("g1"), key("g2")}),)
    assert sorted(bound.values()) == ["a1", "a2"]


def test_only_lower_priorities_go_and_the_first_group_has_the_cheapest() -> None:
    world = racks()
    world.pods_of("high-1", world.gang("high", 1, topology=hard(1), priority=10), 4)
    world.pods_of("low-1", world.gang("low", 1, topology=hard(1), priority=5), 4)
    _, (bound, gone) = chosen(world)
    assert gone == (frozenset({key("x3")}), frozenset({key("x1")}), frozenset({key("x2")}))
    assert bound == {key("high-1"): "b2", key("low-1"): "b1"}
    _, (bound, gone) = chosen(world, "x1")
    assert gone == (frozenset({key("x3")}),)
    assert bound == {key("high-1"): "b2"}


def test_budgets_bind() -> None:
    world = racks()
    for name in ("one", "two"):
        world.pods_of(f"{name}-1", world.gang(name, 1, topology=hard(1), priority=10), 2)
    world.running("y", "b2", None, 2, priority=1)
    instance = world.instance()
    pods = frozenset(map(key, ("x1", "x2", "x3", "y")))
    limited = replace(instance, budgets=(DisruptionBudget(key("budget"), pods, 1),))
    assert len(cheapest_evictions(instance, waiting(instance)).gone) == 2
    gone = cheapest_evictions(limited, waiting(limited)).gone
    assert sorted(map(len, gone)) == [1, 2]
    assert frozenset({key("g1"), key("g2")}) in gone


def test_nothing_goes_where_there_is_room() -> None:
    """Half of b2 is free: nothing goes for what fits there."""
    world = racks()
    wanted = world.gang("wanted", 1, topology=hard(1), priority=10)
    world.pods_of("w1", wanted, 2)
    instance = world.instance()
    bound, gone = cheapest_evictions(instance, waiting(instance))
    assert gone == ()
    assert bound == {key("w1"): "b2"}


def test_what_has_its_room_still_stays_after_all() -> None:
    """The second group makes the gang go, which leaves room beside it for the pod that went for the first."""
    world = World()
    for name in ("a", "b"):
        world.node(name, 4)
    world.running("x", "b", None, 1, priority=1)
    gang = world.gang("gang", 2, priority=5)
    world.running("g1", "a", gang, 4, priority=5)
    world.running("g2", "b", gang, 3, priority=5)
    world.pods_of("w1", world.gang("first", 1, priority=10), 1)
    world.pods_of("w2", world.gang("second", 1, priority=9), 4)
    instance = world.instance()
    bound, gone = cheapest_evictions(instance, waiting(instance))
    assert bound == {key("w1"): "b", key("w2"): "a"}
    assert gone == (frozenset({key("g1"), key("g2")}),)


def test_its_answer_comes_first_and_keeps_the_rules() -> None:
    world = racks()
    for name in ("one", "two"):
        world.pods_of(f"{name}-1", world.gang(name, 1, topology=hard(1), priority=10), 4)
    instance, heard = world.instance(), []
    search(instance, None, SearchOptions(None, workers=1, seed=0), heard.append)
    answers = [each for each in heard if isinstance(each, Carried)]
    by = [each.by for each in answers]
    assert by[:2] == ["greedy", "victims"]
    first = answers[1].placement
    assert verify(instance, first) == []
    assert {unit.pods for unit in Disruption(instance, first).units} == {(key("x1"),), (key("x2"),), (key("x3"),)}
    values = [score(instance, each.placement, disturbing=True) for each in answers]
    assert values[1][0].value == max(each[0].value for each in values)
