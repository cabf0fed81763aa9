"""C10 in the exact model and in parts of it: by hand, row by row, and beside brute force with every other rule."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from ortools.sat.python import cp_model

from placer.arrays import Dense, Solution
from placer.arrays.dense_builder import make_dense
from placer.lab.generate import generate
from placer.rules import verify
from placer.search.decomposed.incumbent_state import IncumbentState
from placer.search.decomposed.repairing import RepairTask, repair
from placer.search.decomposed.subproblem import make_subproblem
from placer.search.events import TooLarge
from placer.search.exact.method import ExactModel
from placer.search.exact.node_sets import make_node_sets
from placer.search.exact.variables import count_sizes, make_bundles
from placer.search.exact.zones import count_choices
from placer.search.greedy.multi_start import greedy
from placer.search.numa.binding_order import aligned
from tests.examples import seed_blocks
from tests.numa_words import demand, numa
from tests.numa_worlds import assigned, ordered, uneven, wide
from tests.oracle import best, binds
from tests.solving import solve_tiny
from tests.support import instance_of
from tests.tiny import tiny
from tests.tiny_numa import tiny_numa
from tests.world import World

SEEDS = range(360)


def allows(dense: Dense, solution: Solution) -> bool:
    """Whether the rows of the model allow a solution, before anything is excluded."""
    model = ExactModel(dense)
    values = model.hint(solution)
    for counts in model.variables.counts:
        for variable in counts.values():
            model.proto.add(variable == values[variable.index])
    return cp_model.CpSolver().solve(model.proto) in (cp_model.OPTIMAL, cp_model.FEASIBLE)


def everything(dense: Dense, node: int = 0) -> Solution:
    """All pods on one node."""
    return Solution({(index, node): each.size for index, each in enumerate(dense.classes)})


# -------------------------------------------------------------------------------------------------------------- by hand


@pytest.mark.parametrize(
    ("world", "allowed", "placed"), [(assigned, True, 1), (ordered, True, 2), (wide, False, 2), (uneven, True, 1)]
)
def test_small_ones(world: Callable[[], World], allowed: bool, placed: int) -> None:
    """Zones can hold all of ``assigned`` and ``ordered``, but the kubelet admits those of the first in no order."""
    instance = world().instance()
    dense = make_dense(instance)
    whole = everything(dense)
    if all(count <= dense.fits(index)[node] for (index, node), count in whole.items()):
        assert allows(dense, whole) == allowed
    solved = solve_tiny(instance, "exact")
    assert len(solved.placement.bindings) == placed
    assert solved.proved
    assert solved.score == best(instance)[0]


def test_what_has_no_order_is_excluded_and_nothing_else() -> None:
    """Of pods a, and b of two containers, both together have no order; each alone does."""
    dense = make_dense(assigned().instance())
    model = ExactModel(dense)
    both, alone = everything(dense), [Solution({place: 1}) for place in everything(dense)]
    assert model.admitted(both) is None
    assert [model.admitted(each) for each in alone] == alone
    assert model.exclude(both)
    assert not model.unsure
    assert not any(map(model.exclude, alone))
    for solution, expected in ((both, cp_model.INFEASIBLE), *((each, cp_model.OPTIMAL) for each in alone)):
        copy, values = model.proto.clone(), model.hint(solution)
        for counts in model.variables.counts:
            for variable in counts.values():
                copy.add(variable == values[variable.index])
        assert cp_model.CpSolver().solve(copy) == expected


def test_equal_nodes_are_excluded_together() -> None:
    """What one node refuses its twin refuses as well: the model need not try."""
    world = World()
    node = numa("single", "container", "2 cpu 9 memory", "4 cpu 9 memory")
    for name in ("n1", "n2"):
        world.node(name, 0, cpu=99_000, numa=node)
    world.pod("a", gpu=0, numa=demand("3 cpu 1 memory"))
    world.pod("b", gpu=0, numa=demand("1 cpu", "2 cpu"))
    dense = make_dense(world.instance())
    model = ExactModel(dense)
    assert model.exclude(everything(dense, 0))
    values = model.hint(Solution())
    for index, counts in enumerate(model.variables.counts):
        assert index < 2
        for place, variable in counts.items():
            model.proto.add(variable == (1 if model.variables.places[place].nodes[0] == 1 else 0))
    assert cp_model.CpSolver().solve(model.proto) == cp_model.INFEASIBLE
    assert len(values) < model.variables.size + 1


# ------------------------------------------------------------------------------------------------------------ who pays


def test_without_zones_the_model_has_nothing_of_them() -> None:
    """As many variables and rows, and the same ones, where no kubelet refuses anybody or C10 is off."""
    compared = 0
    for seed in range(60):
        plain = make_dense(tiny(seed).instance)
        base = tiny_numa(seed)
        if seed % 3 == 2 or not plain.classes:
            continue
        loose = make_dense(replace(base.instance, nodes=tiny(seed).instance.nodes))
        one, other = ExactModel(plain), ExactModel(loose)
        assert one.zones is None
        assert other.zones is None
        if len(plain.classes) == len(loose.classes):
            assert len(one.proto.proto.variables) == len(other.proto.proto.variables), seed
            assert len(one.proto.proto.constraints) == len(other.proto.proto.constraints), seed
            compared += 1
    assert compared > 20


def test_the_size_is_known_before() -> None:
    """What is counted beforehand is never less than the choices that are made."""
    for seed in range(0, 120, 3):
        dense = make_dense(tiny_numa(seed).instance)
        if dense.numa is None:
            continue
        bundles, places = make_bundles(dense), make_node_sets(dense)
        counted = count_choices(dense, bundles, places, count_sizes(dense, bundles, places))
        wide_units = any(unit.width > 1 for row in dense.numa.units for units in row for unit in units)
        zones = ExactModel(dense).zones
        assert zones is not None
        made = sum(len(chosen) for chosen in zones.chosen.values() if len(chosen) > 1)
        assert wide_units or made <= counted, seed


def test_too_large_is_told_before_building() -> None:
    made = generate("numa", nodes=30, zones=(8,), seed=2)
    with pytest.raises(TooLarge):
        ExactModel(make_dense(instance_of(*made.documents)), seconds=1.0)


# ---------------------------------------------------------------------------------------------------------- every rule


@pytest.mark.parametrize("seeds", seed_blocks(len(SEEDS), 60))
def test_beside_brute_force_with_gangs_tiers_and_networks(seeds: range) -> None:
    """Every third instance has a network; what C10 decides is counted over them all in the next test."""
    for seed in seeds:
        instance = tiny_numa(seed).instance
        optimum, _ = best(instance)
        solved = solve_tiny(instance, "exact")
        assert solved.score == optimum, seed
        assert solved.proved, seed


@pytest.mark.exhaustive
def test_the_rule_decides_in_enough_of_them() -> None:
    decided: Counter[str] = Counter()
    enough = {"C10": 20, "of gangs": 10, "with calls": 5}
    for seed in SEEDS:
        instance = tiny_numa(seed).instance
        if make_dense(instance).numa is not None and binds(instance, "C10", best(instance)[0]):
            decided["C10"] += 1
            decided["of gangs"] += any(group.min_member > 1 for group in instance.groups.values())
            decided["with calls"] += instance.network is not None
            if all(decided[what] >= least for what, least in enough.items()):
                return
    pytest.fail(f"{decided} of {enough}")


# --------------------------------------------------------------------------------------------------------------- parts


def starts(seeds: range) -> Iterator[tuple[int, Dense, Solution, random.Random]]:
    for seed in seeds:
        dense, chance = make_dense(tiny_numa(seed).instance), random.Random(seed)
        if dense.numa is not None:
            yield seed, dense, chance.choice([Solution(), greedy(dense)]), chance


@pytest.mark.parametrize("seeds", seed_blocks(300, 100))
def test_a_part_says_what_the_whole_says(seeds: range) -> None:
    """What a step gains in the part it gains in the whole, and kubelets admit what comes of it, with what stayed."""
    changed, aligning = 0, 0
    for seed, dense, solution, chance in starts(seeds):
        incumbent = IncumbentState(dense, solution)
        nodes = chance.sample(range(len(dense.nodes)), 1 + len(dense.nodes) // 2)
        groups = range(len(dense.groups))
        still = chance.sample(groups, chance.randint(0, len(groups) // 2))
        waits = [group for group in chance.sample(groups, (1 + len(groups)) // 2) if group not in still]
        subproblem = make_subproblem(incumbent, nodes, waits, locked=still)
        if not subproblem.dense.classes:
            continue
        criterion = chance.randrange(len(dense.criteria))
        repaired = repair(RepairTask(subproblem.dense, subproblem.start, subproblem.must, criterion, 600.0, 1.0, seed))
        assert repaired.fault is None, seed
        assert repaired.solution is not None, seed
        old = incumbent.values
        incumbent.change(subproblem.named(subproblem.start), subproblem.named(repaired.solution))
        instance = tiny_numa(seed).instance
        assert verify(instance, aligned(instance, dense.placement(incumbent.solution))) == [], seed
        assert list(repaired.gains) == [new - was for new, was in zip(incumbent.values, old, strict=True)], seed
        changed += any(repaired.gains)
        assert subproblem.dense.numa is not None
        aligning += bool(subproblem.dense.numa.held)
    assert changed >= 10
    assert aligning >= 2


def test_a_solution_keeps_the_order_that_was_found() -> None:
    """A planted cluster: the greedy's order is carried through dense solution, placement and alignment."""
    made = generate("numa", nodes=6, zones=(8,), seed=4, fill=0.9)
    instance = instance_of(*made.documents)
    dense = make_dense(instance)
    solution = greedy(dense)
    assert len(solution) > 80
    assert verify(instance, dense.placement(solution)) == []
    assert verify(instance, aligned(instance, dense.placement(solution))) == []
    assert solution.order
