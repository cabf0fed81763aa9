"""C10 in the MILP: small by hand, rows against verify, the optimum of seeded instances, and what is made for whom."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import islice
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placer.arrays import Dense
from placer.arrays.admission_orders import Ordering, Orders
from placer.arrays.dense_builder import make_dense
from placer.arrays.numa import DenseNuma
from placer.problem import Instance
from placer.problem.numa import NumaDemand, NumaNode
from placer.problem.placement import Score
from placer.rules import verify
from placer.search.events import Event, SearchOptions, TooLarge
from placer.search.milp import method as search
from placer.search.milp import zones
from placer.search.milp.method import MilpModel
from placer.search.milp.zones import ByCrowd, ByZone, size_of_plans
from placer.search.numa.binding_order import aligned
from tests.examples import examples, seed_blocks
from tests.judge import placement
from tests.numa_drawn import demands, nodes
from tests.numa_words import demand, numa
from tests.numa_worlds import (
    FOUR,
    HAND,
    TWO,
    alone,
    assigned,
    crowded,
    gone,
    initial,
    ordered,
    piecewise,
    reused,
    roomy,
    together,
    uneven,
    whole,
    wide,
)
from tests.oracle import best, binds
from tests.search.milp.test_milp_flows import model_with_all_values, somewhere
from tests.search.milp.test_milp_rules import SOLVERS, broken
from tests.shrink import describe, shrink
from tests.solving import solve_tiny
from tests.tiny import tiny
from tests.tiny_numa import tiny_numa
from tests.world import World

SEEDS = range(300)
#: How many of those instances the rule must decide.
ENOUGH = 20


# -------------------------------------------------------------------------------------------------------------- by hand


@pytest.mark.parametrize(("world", "fine", "refused"), HAND, ids=lambda value: getattr(value, "__name__", ""))
def test_what_the_kubelet_admits_together(world: Callable[[], World], fine: str, refused: str) -> None:
    """A pod that the zones cannot hold by itself has no count at all: that is a broken eligibility."""
    for pods in fine.split():
        assert broken(world(), together(pods)) is None, pods
    for pods in refused.split():
        instance = world().instance()
        assert {found.rule for found in verify(instance, aligned(instance, placement(together(pods))))} == {"C10"}
        assert broken(world(), together(pods)) in ("numa", "eligibility"), pods


MOST = [
    (assigned, 1),
    (ordered, 2),
    (wide, 2),
    (uneven, 1),
    (whole, 2),
    (piecewise, 2),
    (initial, 2),
    (reused, 2),
    (gone, 3),
]


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(("world", "most"), MOST, ids=lambda value: getattr(value, "__name__", ""))
def test_as_many_are_placed_as_the_kubelet_admits(world: Callable[[], World], most: int, solver: str) -> None:
    """C10 and nothing else stops them; the placement is verified in its order."""
    solved = solve_tiny(world().instance(), "milp", solver)
    assert solved.proved
    assert len(solved.placement.bindings) == most


# ------------------------------------------------------------------------------------------------------ rows as a whole


@pytest.mark.parametrize("seeds", seed_blocks(len(SEEDS), 60, quick=2))
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


@pytest.mark.parametrize("seeds", seed_blocks(len(SEEDS), 60))
def test_the_optimum_is_found_and_proved(seeds: range) -> None:
    for seed in seeds:
        if complaint(tiny_numa(seed).instance, optimum(seed)):
            small = shrink(tiny_numa(seed).instance, lambda instance: bool(complaint(instance, best(instance)[0])))
            pytest.fail(f"seed {seed}, shrunk: {complaint(small, best(small)[0])}\n{describe(small)}")


@examples(150, derandomize=True)
@given(nodes(4), st.lists(demands(), min_size=1, max_size=4))
def test_what_fits_of_pods_by_chance_is_what_fits_by_trying(node: NumaNode, pods: list[NumaDemand]) -> None:
    instance = crowded(node, pods)
    assert complaint(instance, best(instance)[0]) == ""


@pytest.mark.exhaustive
def test_the_rule_decides_in_enough_of_them() -> None:
    """Without C10 there is a better placement."""
    decided = (seed for seed in SEEDS if binds(tiny_numa(seed).instance, "C10", optimum(seed)))
    assert len(list(islice(decided, ENOUGH))) == ENOUGH


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
        model = MilpModel(dense)
        assert not model.zones.plans
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
        model = MilpModel(make_dense(tiny_numa(seed).instance))
        made = [each for each in model.program.variables if each.name[0] in "ep"]
        plans = model.zones.plans
        assert len(made) <= size_of_plans(plans)
        ways.update(map(type, plans.values()))
    assert min(ways[ByZone], ways[ByCrowd]) >= 20


def test_pods_for_one_zone_are_counted_by_zone_and_others_by_crowd() -> None:
    """Of two equal classes and a third: one variable per zone and kind. What fits no zone has none."""
    for world, kind in ((ordered(), ByZone), (assigned(), ByCrowd)):
        (plan,) = MilpModel(make_dense(world.instance())).zones.plans.values()
        assert type(plan) is kind
    world = alone(numa("single", "container", "4 cpu 9 memory", "2 cpu 9 memory"), a=TWO, b=TWO, c=FOUR)
    model = MilpModel(make_dense(world.instance()))
    assert [len(kind.classes) for plan in model.zones.plans.values() for kind in plan.kinds] == [2, 1]
    assert {each.name: each.upBound for each in model.program.variables if each.name[0] == "e"} == {
        "e_0_0_0": 2,
        "e_0_0_1": 1,
        "e_0_1_0": 1,
    }


def test_bytes_of_a_zone_are_counted_to_the_last() -> None:
    """Amounts without a common divisor fill both zones exactly, one of them by two pods; a byte more does not fit."""
    zone = 3 * (2**33 + 7)
    for extra, most in ((0, 3), (1, 2)):
        node = numa("single", "container", f"9 cpu {zone} memory", f"9 cpu {2 * zone + 1} memory")
        pods = [demand(f"1 cpu {zone + more} memory") for more in (0, 0, 1 + extra)]
        solved = solve_tiny(crowded(node, pods), "milp")
        assert solved.proved
        assert len(solved.placement.bindings) == most


def test_crowds_of_equal_hardware_depend_on_what_is_available() -> None:
    """Zones of 4 cores take both pods of ``assigned``; where 2 of zone 0 are gone, either."""
    world = assigned()
    for name, first in (("n1", "2 of 4"), ("n2", "4")):
        node = numa("single", "container", f"{first} cpu 9 memory", "4 cpu 9 memory")
        world.node(name, 0, cpu=99_000, numa=node)
    assert broken(world, "a@n1 b@n1") == "numa"
    assert broken(world, "a@n2 b@n2") is None
    assert broken(world, "a@n1 b@n2") is None


# -------------------------------------------------------------------------------------------------------------- limits


def told(dense: Dense) -> tuple[str, list[Event]]:
    events: list[Event] = []
    return search.search(dense, SearchOptions(), events.append), events


def test_zones_count_among_the_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two classes on one node, two kinds in two zones."""
    monkeypatch.setattr(search, "MOST_VARIABLES", 5)
    assert told(make_dense(ordered().instance())) == ("finished", [])
    monkeypatch.setattr(search, "MOST_VARIABLES", 6)
    assert told(make_dense(ordered().instance()))[0] == "proved"


def test_too_many_crowds_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three equal pods with init containers: 0 .. 3 of them, of which nobody needs no search."""
    dense = make_dense(initial().instance())
    monkeypatch.setattr(zones, "MOST_CROWDS", 2)
    with pytest.raises(TooLarge, match="numa: more than 2 crowds"):
        MilpModel(dense)
    assert told(dense) == ("finished", [])
    monkeypatch.setattr(zones, "MOST_CROWDS", 3)
    assert told(dense)[0] == "proved"


def test_orders_that_nobody_can_tell_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A crowd is not left out because the search for its order was given up: what is proved then would not be so."""
    dense = make_dense(assigned().instance())
    monkeypatch.setattr(DenseNuma, "_known", lambda *_: Ordering(Orders.NONE, None, proved=False))
    with pytest.raises(TooLarge, match="numa: too many orders of 1 pods"):
        MilpModel(dense)
    assert told(dense) == ("finished", [])


def test_what_is_dealt_out_but_finds_no_order_is_not_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """By zone the program needs no order; where none is found in time for what it says, that is not shown."""
    dense = make_dense(ordered().instance())
    assert told(dense)[0] == "proved"
    monkeypatch.setattr(DenseNuma, "_known", lambda *_: Ordering(Orders.NONE, None, proved=False))
    assert told(dense) == ("finished", [])
