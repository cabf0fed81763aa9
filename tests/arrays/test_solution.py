"""Binding order as a part of a solution, not as an accident of how its entries came about."""

from __future__ import annotations

import pickle
import random
from itertools import pairwise

from placer.arrays import Solution
from placer.arrays.dense_builder import make_dense
from placer.lab.generate import generate
from placer.search.decomposed.incumbent_state import IncumbentState
from placer.search.decomposed.subproblem import make_subproblem
from placer.search.greedy.multi_start import greedy
from placer.search.greedy.state import GreedyLayout, GreedyState
from placer.search.numa.binding_order import aligned
from placer.search.numa.zone_bins import ZoneBins
from tests.support import instance_of


def test_a_solution_is_read_in_its_binding_order() -> None:
    solution = Solution({(2, 9): 5, (4, 7): 3, (6, 7): 1, (1, 7): 2}, {7: (6, 4)})
    at_seven = [(index, count) for index, node, count in solution.in_order() if node == 7]
    assert at_seven == [(6, 1), (4, 3), (1, 2)]
    assert solution == {(2, 9): 5, (4, 7): 3, (6, 7): 1, (1, 7): 2}
    for same in (solution.copy(), pickle.loads(pickle.dumps(solution))):
        assert (same, same.order) == (solution, solution.order)
    part = solution.only(lambda index, _: index != 4)
    assert (part, part.order) == ({(2, 9): 5, (6, 7): 1, (1, 7): 2}, {7: (6,)})
    other = solution.renumbered(lambda index: index + 10, lambda node: -node)
    assert other.order == {-7: (16, 14)}
    assert other[16, -7] == 1


def test_which_entry_comes_first_says_nothing_of_the_binding_order() -> None:
    """Entries are shuffled: placements, states, bins and subproblems of the solution stay what they were."""
    made = generate("numa", nodes=6, zones=(8,), seed=4, fill=0.9)
    instance = instance_of(*made.documents)
    dense = make_dense(instance)
    assert dense.numa is not None
    given = greedy(dense)
    entries, placements, orders = list(given.items()), [], []
    for seed in range(4):
        random.Random(seed).shuffle(entries)
        solution = Solution(dict(entries), given.order)
        assert [*solution] != [*given]
        incumbent = IncumbentState(dense, solution)
        found = [
            solution,
            incumbent.solution,
            make_subproblem(incumbent, range(3), [0]).start,
            GreedyState(GreedyLayout(dense), solution).solution(),
            ZoneBins(dense, solution, random.Random(0)).solution(),
            dense.numa.ordered(Solution(dict(entries))),
        ]
        orders.append([None if each is None else each.order for each in found])
        placements.append([dense.placement(solution), aligned(instance, dense.placement(solution))])
    assert all(one == other for one, other in pairwise(orders))
    assert all(one == other for one, other in pairwise(placements))
    assert all(orders[0][:5])
    assert dense.placement(given) == placements[0][0]
