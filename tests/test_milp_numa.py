"""C10 in the MILP: small by hand, rows against verify, the optimum of seeded instances, and what is made for whom."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placer.alignment import aligned
from placer.dense import Dense, DenseNuma, make_dense
from placer.instance import Instance
from placer.instance.numa import NumaDemand, NumaNode, Ordering, Orders
from placer.methods.events import Event, SearchOptions
from placer.methods.milp import search, zones
from placer.methods.milp.model import Model
from placer.methods.milp.program import TooLarge
from placer.methods.milp.zones import ByCrowd, ByZone, size_of_plans
from placer.placement import Score
from placer.quantity import Resources
from placer.verify import verify
from tests.judge import placement
from tests.numa_drawn import NAMES, demands, nodes
from tests.numa_words import demand, numa
from tests.oracle import best, binds
from tests.shrink import describe, shrink
from tests.solving import solve_tiny
from tests.test_milp_flows import model_with_all_values, somewhere
from tests.test_milp_rules import SOLVERS, broken
from tests.tiny import tiny
from tests.tiny_numa import tiny_numa
from tests.world import World

BLOCK = 60
BLOCKS = [range(first, first + BLOCK) for first in range(0, 300, BLOCK)]
#: How many of those instances the rule must decide.
ENOUGH = 20

ONE, TWO, THREE, FOUR = (demand(f"{cores} cpu 1 memory") for cores in (1, 2, 3, 4))


def alone(node: NumaNode, **pods: NumaDemand) -> World:
    """One node, n1, with more cores than its zones have, and pods in no group."""
    world = World()
    world.node("n1", 0, cpu=99_000, numa=node)
    for name, asked in pods.items():
        world.pod(name, gpu=0, numa=asked)
    return world


# -------------------------------------------------------------------------------------------------------------- by hand


def assigned() -> World:
    """Zones of 2 and 4 cores could hold 2, and 3 + 1; but the 1, which comes before the 2 in its pod, goes to zone 0.

    With the 3 in zone 1, nowhere are 2 left; before the 3, the 2 goes to zone 1, where then 2 are left.
    """
    return alone(numa("single", "container", "2 cpu 9 memory", "4 cpu 9 memory"), a=THREE, b=demand("1 cpu", "2 cpu"))


def ordered() -> World:
    """Only the 4 before the 2 works: else the 2 go to zone 0, where the 4 belong."""
    return alone(numa("single", "container", "4 cpu 9 memory", "2 cpu 9 memory"), a=TWO, b=FOUR)


def wide() -> World:
    """Pods of 6 cores take two zones of 4: with one of 2, wherever it goes, 8 are full."""
    node = numa("restricted", "container", "4 cpu 9 memory", "4 cpu 9 memory")
    return alone(node, a=demand("6 cpu 12 memory"), b=TWO, c=ONE)


def uneven() -> World:
    """5 cores take two zones, 1 of memory takes one: refused. 5 and 12 take two each."""
    node = numa("restricted", "container", "4 cpu 9 memory", "4 cpu 9 memory")
    return alone(node, a=demand("5 cpu 1 memory"), b=demand("5 cpu 12 memory"))


def whole() -> World:
    """Scope pod: 3 + 3 cores fit into no zone together, 3 + 1 into one each."""
    both, less = (demand("3 cpu 1 memory", f"{cores} cpu 1 memory") for cores in (3, 1))
    return alone(numa("single", "pod", "4 cpu 9 memory", "4 cpu 9 memory"), a=both, b=less, c=less)


def piecewise() -> World:
    """The same with scope container: the first leaves 1 core in each zone, the other two fill one zone each."""
    both, less = (demand("3 cpu 1 memory", f"{cores} cpu 1 memory") for cores in (3, 1))
    return alone(numa("single", "container", "4 cpu 9 memory", "4 cpu 9 memory"), a=both, b=less, c=less)


def initial() -> World:
    """Each needs a whole zone at first and keeps half of one. Zone 0, zone 1 and again zone 1 are whole for the first
    three, of which the second stays in zone 0; the fourth finds none.
    """
    pod = demand("init: 4 cpu 1 memory", "2 cpu 1 memory")
    return alone(numa("single", "container", "4 cpu 9 memory", "4 cpu 9 memory"), a=pod, b=pod, c=pod, d=pod)


def initial_whole() -> World:
    """Scope pod: what needs a whole zone at first keeps half of that one, so there is no third."""
    pod = demand("init: 4 cpu 1 memory", "2 cpu 1 memory")
    return alone(numa("single", "pod", "4 cpu 9 memory", "4 cpu 9 memory"), a=pod, b=pod, c=pod)


def gone() -> World:
    """Who runs there took 3 of zone 0: 2 and 4 cores fit only one to zone 1, and 1 besides."""
    return alone(numa("single", "container", "1 of 4 cpu 9 memory", "4 cpu 9 memory"), a=TWO, b=FOUR, c=ONE, d=ONE)


def parts() -> World:
    """2.5 cores are not pinned, wherever they are; 2 are, and find no second zone."""
    node = numa("single", "container", "2 cpu 9 memory", "1 cpu 9 memory")
    return alone(node, a=demand("2.5 cpu 1 memory"), b=demand("2.5 cpu 9 memory"), c=TWO, d=TWO)


def over() -> World:
    """Scope pod: overhead counts where a container has the resource aligned, and 1.5 cores are not."""
    node = numa("single", "pod", "2 cpu 9 memory", "2 cpu 9 memory")
    return alone(
        node,
        a=demand("1.5 cpu 1 memory", overhead="3 cpu 1 memory"),
        b=demand("1 cpu 1 memory", overhead="2 cpu"),
        c=demand("1 cpu 1 memory", overhead="1 cpu"),
    )


def led() -> World:
    """Alone, the first container of a takes zone 0, where the second belongs; b, which takes the GPU there, helps."""
    node = numa("single", "container", "4 cpu 9 memory 1 gpu", "3 cpu 9 memory 1 gpu")
    return alone(node, a=demand("2 cpu 1 gpu", "4 cpu 1 memory"), b=demand("1 gpu 1 memory"))


def drained() -> World:
    """Restricted: 5 cores take 4 of zone 0 and 1 of zone 1, where 3 and the GPU are left for the other container; the
    other way round they would not be.
    """
    node = numa("restricted", "container", "4 cpu 9 memory", "4 cpu 9 memory 1 gpu")
    return alone(node, a=demand("5 cpu 12 memory", "3 cpu 1 memory 1 gpu"), b=ONE)


def empty() -> World:
    """Restricted: 3 cores go to one zone, because an empty one could hold them, and wait for it."""
    return alone(numa("restricted", "container", "2 of 4 cpu 9 memory", "2 of 4 cpu 9 memory"), a=THREE, b=TWO, c=TWO)


#: Pods that can be placed together, and such as cannot.
HAND: list[tuple[Callable[[], World], str, str]] = [
    (assigned, "a b", "ab"),
    (ordered, "a b ab", ""),
    (wide, "a b ab bc ac", "abc"),
    (uneven, "b", "a ab"),
    (whole, "b c bc", "a ab"),
    (piecewise, "a b c bc", "ab ac abc"),
    (initial, "a ab abc", "abcd"),
    (initial_whole, "a ab", "abc"),
    (drained, "a b", "ab"),
    (empty, "b bc", "a ab"),
    (over, "a c ac", "b ab"),
    (led, "b ab", "a"),
    (parts, "a b c ab abc", "cd abcd"),
    (gone, "a b c d bc ac acd", "ab abc bcd abcd"),
]


def together(pods: str) -> str:
    return " ".join(f"{pod}@n1" for pod in pods)


@pytest.mark.parametrize(("world", "fine", "refused"), HAND, ids=lambda value: getattr(value, "__name__", ""))
def test_what_the_kubelet_admits_together(world: Callable[[], World], fine: str, refused: str) -> None:
    """A pod that the zones cannot hold by itself has no count at all: that is a broken eligibility."""
    for pods in fine.split():
        assert broken(world(), together(pods)) is None, pods
    for pods in refused.split():
        instance = world().instance()
        assert {found.rule for found in verify(instance, aligned(instance, placement(together(pods))))} == {"C10"}
        assert broken(world(), together(pods)) in ("numa", "eligibility"), pods


MOST = [(assigned, 1), (ordered, 2), (wide, 2), (uneven, 1), (whole, 2), (piecewise, 2), (initial, 3), (gone, 3)]


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(("world", "most"), MOST, ids=lambda value: getattr(value, "__name__", ""))
def test_as_many_are_placed_as_the_kubelet_admits(world: Callable[[], World], most: int, solver: str) -> None:
    """C10 and nothing else stops them; the placement is verified in its order."""
    solved = solve_tiny(world().instance(), "milp", solver)
    assert solved.proved
    assert len(solved.placement.bindings) == most


# ------------------------------------------------------------------------------------------------------ rows as a whole


def roomy(instance: Instance) -> Instance:
    """The instance with room on every node for all pods, as far as its zones are not looked at."""
    more = Resources(dict.fromkeys(NAMES, 99_000))
    nodes = {name: replace(node, allocatable=node.allocatable + more) for name, node in instance.nodes.items()}
    return replace(instance, nodes=nodes)


@pytest.mark.parametrize("seeds", BLOCKS, ids=lambda block: f"{block[0]}-{block[-1]}")
def test_a_row_is_broken_exactly_where_a_rule_is(seeds: range) -> None:
    """Every rule together as ``verify`` sees it in the best order, on nodes with more room than their zones. Where only
    C10 is broken, its row is, or a count is more than the zones hold of its class.
    """
    seen: Counter[bool] = Counter()
    for seed in seeds:
        instance = roomy(tiny_numa(seed).instance)
        dense = make_dense(instance)
        model = model_with_all_values(dense)
        for solution in somewhere(dense, Random(f"rows {seed}"), 15):
            found = aligned(instance, dense.placement(solution))
            rules = {violation.rule for violation in verify(instance, found)}
            row = (model.broken(solution) or "").rstrip("_0123456789")
            assert bool(row) == bool(rules), f"seed {seed}: {solution} breaks {row or rules}"
            if rules <= {"C10"}:
                assert row in ("", "numa", "x")
                seen[bool(rules)] += 1
            elif row == "numa":
                assert "C10" in rules
    assert min(seen[True], seen[False]) >= 25, seen


@cache
def optimum(seed: int) -> Score:
    return best(tiny_numa(seed).instance)[0]


def complaint(instance: Instance, most: Score) -> str:
    """What is wrong with the answer to an instance whose best score is ``most``."""
    try:
        solved = solve_tiny(instance, "milp")
    except (AssertionError, RuntimeError) as error:
        return f"milp: {error}"
    if solved.score != most:
        return f"milp found {solved.score} by {solved.placement}, there is {most}"
    return "" if solved.proved else f"milp did not prove {most}"


@pytest.mark.parametrize("seeds", BLOCKS, ids=lambda block: f"{block[0]}-{block[-1]}")
def test_the_optimum_is_found_and_proved(seeds: range) -> None:
    for seed in seeds:
        if complaint(tiny_numa(seed).instance, optimum(seed)):
            small = shrink(tiny_numa(seed).instance, lambda instance: bool(complaint(instance, best(instance)[0])))
            pytest.fail(f"seed {seed}, shrunk: {complaint(small, best(small)[0])}\n{describe(small)}")


def crowded(node: NumaNode, pods: list[NumaDemand]) -> Instance:
    """Pods in no group and one node with room for all of them, but for its zones."""
    world = World()
    world.node("n1", 0, numa=node)
    for number, asked in enumerate(pods):
        world.pod(f"p{number}", gpu=0, numa=asked)
    return roomy(world.instance())


@settings(max_examples=150, deadline=None, derandomize=True)
@given(nodes(4), st.lists(demands(), min_size=1, max_size=4))
def test_what_fits_of_pods_by_chance_is_what_fits_by_trying(node: NumaNode, pods: list[NumaDemand]) -> None:
    instance = crowded(node, pods)
    assert complaint(instance, best(instance)[0]) == ""


def test_the_rule_decides_in_enough_of_them() -> None:
    """Without C10 there is a better placement."""
    seeds = (seed for block in BLOCKS for seed in block)
    assert sum(binds(tiny_numa(seed).instance, "C10", optimum(seed)) for seed in seeds) >= ENOUGH


# ------------------------------------------------------------------------------------------------------ what is made

#: Everything that tells one variable or row from another, but for the numbers in the names of rows.
Written = tuple[list[tuple[str, int, str]], list[tuple[str, dict[str, int], int, int]]]


def written(dense: Dense) -> Written:
    """Variables and rows of the whole program, without those of C10."""
    program = model_with_all_values(dense).program
    variables = [(each.name, each.upBound, each.cat) for each in program.variables if each.name[0] not in "ep"]
    rows = [
        (row.name.rstrip("_0123456789"), {each.name: by for each, by in row.items()}, row.sense, row.constant)
        for row in program.problem.constraints()
    ]
    return variables, [row for row in rows if row[0] != "numa"]


def only_weak(instance: Instance) -> Instance:
    """The instance with kubelets that refuse nothing."""
    nodes = {
        name: replace(node, numa=replace(node.numa, policy="best-effort") if node.numa is not None else None)
        for name, node in instance.nodes.items()
    }
    return replace(instance, nodes=nodes)


def without_zones(instance: Instance) -> Instance:
    nodes = {name: replace(node, numa=None) for name, node in instance.nodes.items()}
    pods = {key: replace(pod, numa=None) for key, pod in instance.pods.items()}
    return replace(instance, nodes=nodes, pods=pods)


def switched_off(instance: Instance) -> Instance:
    policy = replace(instance.policy, rules_off=instance.policy.rules_off | {"C10"})
    return replace(instance, policy=policy)


@pytest.mark.parametrize("without", [only_weak, switched_off], ids=lambda value: str(value.__name__))
def test_where_no_kubelet_refuses_pods_the_program_is_what_it_was(without: Callable[[Instance], Instance]) -> None:
    """Variable by variable and row by row, and none of C10."""
    for seed in range(60):
        dense = make_dense(without(tiny_numa(seed).instance))
        assert written(dense) == written(make_dense(without_zones(tiny_numa(seed).instance)))
        model = Model(dense)
        assert not model.variables.zones.plans
        assert not [each.name for each in model.program.variables if each.name[0] in "ep"]
        assert not [row.name for row in model.program.problem.constraints() if row.name.startswith("numa")]


def test_without_node_resource_topologies_nothing_is_of_c10() -> None:
    for seed in range(40):
        names = [each.name for each in model_with_all_values(make_dense(tiny(seed).instance)).program.variables]
        assert not [name for name in names if name[0] in "ep"]


def test_what_is_made_is_known_before() -> None:
    """The limit on variables is checked against a number that is never less than what C10 comes to."""
    ways: Counter[type] = Counter()
    for seed in range(120):
        model = Model(make_dense(tiny_numa(seed).instance))
        made = [each for each in model.program.variables if each.name[0] in "ep"]
        plans = model.variables.zones.plans
        assert len(made) <= size_of_plans(plans)
        ways.update(map(type, plans.values()))
    assert min(ways[ByZone], ways[ByCrowd]) >= 20


def test_pods_for_one_zone_are_counted_by_zone_and_others_by_crowd() -> None:
    """Of two equal classes and a third: one variable per zone and kind. What fits no zone has none."""
    for world, kind in ((ordered(), ByZone), (assigned(), ByCrowd)):
        (plan,) = Model(make_dense(world.instance())).variables.zones.plans.values()
        assert type(plan) is kind
    world = alone(numa("single", "container", "4 cpu 9 memory", "2 cpu 9 memory"), a=TWO, b=TWO, c=FOUR)
    model = Model(make_dense(world.instance()))
    assert [len(kind.classes) for plan in model.variables.zones.plans.values() for kind in plan.kinds] == [2, 1]
    assert {each.name: each.upBound for each in model.program.variables if each.name[0] == "e"} == {
        "e_0_0_0": 2,
        "e_0_0_1": 1,
        "e_0_1_0": 1,
    }


def test_bytes_of_a_zone_are_counted_to_the_last() -> None:
    """Amounts without a common divisor fill both zones exactly; a byte more does not fit."""
    zone = 3 * (2**33 + 7)
    for extra, most in ((0, 2), (1, 1)):
        node = numa("single", "container", f"9 cpu {zone} memory", f"9 cpu {2 * zone + 1} memory")
        world = alone(node, a=demand(f"1 cpu {zone} memory"), b=demand(f"1 cpu {2 * zone + 1 + extra} memory"))
        solved = solve_tiny(world.instance(), "milp")
        assert solved.proved
        assert len(solved.placement.bindings) == most


# -------------------------------------------------------------------------------------------------------------- limits


def told(dense: Dense) -> tuple[str, list[Event]]:
    events: list[Event] = []
    return search(dense, SearchOptions(), events.append), events


def test_too_many_crowds_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four equal pods with init containers: 0 .. 4 of them, of which nobody needs no search."""
    dense = make_dense(initial().instance())
    monkeypatch.setattr(zones, "MOST_CROWDS", 3)
    with pytest.raises(TooLarge, match="numa: more than 3 crowds"):
        Model(dense)
    assert told(dense) == ("finished", [])
    monkeypatch.setattr(zones, "MOST_CROWDS", 4)
    assert told(dense)[0] == "proved"


def test_orders_that_nobody_can_tell_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A crowd is not left out because the search for its order was given up: what is proved then would not be so."""
    dense = make_dense(assigned().instance())
    monkeypatch.setattr(DenseNuma, "_known", lambda *_: Ordering(Orders.NONE, None, proved=False))
    with pytest.raises(TooLarge, match="numa: too many orders of 1 pods"):
        Model(dense)
    assert told(dense) == ("finished", [])


def test_what_is_dealt_out_but_finds_no_order_is_not_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """By zone the program needs no order; where none is found in time for what it says, that is not shown."""
    dense = make_dense(ordered().instance())
    assert told(dense)[0] == "proved"
    monkeypatch.setattr(DenseNuma, "_known", lambda *_: Ordering(Orders.NONE, None, proved=False))
    assert told(dense) == ("finished", [])
