"""C10 in the exact model and in parts of it: by hand, row by row, and beside brute force with every other rule."""

from __future__ import annotations

import pytest
from ortools.sat.python import cp_model

from placer.arrays import Dense, Solution
from placer.arrays.dense_builder import make_dense
from placer.lab.generate import generate
from placer.rules import verify
from placer.search.events import TooLarge
from placer.search.exact.method import ExactModel
from placer.search.exact.node_sets import make_node_sets
from placer.search.exact.variables import count_sizes, make_bundles
from placer.search.exact.zones import count_choices
from placer.search.greedy.multi_start import greedy
from placer.search.numa.binding_order import aligned
from tests.numa_words import demand, numa
from tests.numa_worlds import assigned
from tests.support import instance_of
from tests.tiny_numa import tiny_numa
from tests.world import World


def everything(dense: Dense, node: int = 0) -> Solution:
    """All pods on one node."""
    return Solution({(index, node): each.size for index, each in enumerate(dense.classes)})


# -------------------------------------------------------------------------------------------------------------- by hand


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


# --------------------------------------------------------------------------------------------------------------- parts


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
