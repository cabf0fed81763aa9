"""The exact model, which milp solves too, against the judge: its rows allow what the rules allow.

No search and no bound takes part: counts are given, and the rows say whether they may be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from random import Random

import pytest
from ortools.sat.python import cp_model

from placer.arrays import Dense, Solution, score_solution
from placer.arrays.dense_builder import make_dense
from placer.problem import Instance
from placer.rules import verify
from placer.search.exact.integer_form import IntegerForm
from placer.search.exact.method import ExactModel
from placer.search.numa.binding_order import aligned
from tests.examples import seed_blocks
from tests.oracle import placements
from tests.tiny import tiny, tiny_network
from tests.tiny_neighbours import tiny_neighbours

#: Tiny instances by seed.
Drawn = Callable[[int], Instance]


def plain(seed: int) -> Instance:
    return tiny(seed).instance


def network(seed: int) -> Instance:
    return tiny_network(seed).instance


def neighbours(seed: int) -> Instance:
    return tiny_neighbours(seed).instance


#: Rules that are broken alone in at least as many solutions of sixty instances.
ALONE: dict[Drawn, dict[str, int]] = {
    plain: {"C2": 20, "C5": 20, "C6": 5, "C7": 10, "C11": 3},
    network: {"C8": 10, "C9": 10},
    neighbours: {"C12": 5, "C13": 5, "C14": 5},
}


def somewhere(dense: Dense, random: Random, most: int) -> Iterator[Solution]:
    """Solutions of all sorts, most of which break something; near together, so that it is not always the same."""
    for _ in range(most):
        nodes = random.sample(range(len(dense.nodes)), random.randint(1, len(dense.nodes)))
        found: Counter[tuple[int, int]] = Counter()
        for index, pod_class in enumerate(dense.classes):
            allowed = [node for node in nodes if dense.fits(index)[node]]
            for _ in pod_class.pods:
                if allowed and random.random() < 0.8:
                    found[index, random.choice(allowed)] += 1
        yield Solution(found)


def broken_rules(instance: Instance, dense: Dense, solution: Solution) -> set[str]:
    """As ``verify`` sees it in the best order."""
    return {found.rule for found in verify(instance, aligned(instance, dense.placement(solution)))}


def held(model: ExactModel, solution: Solution) -> Solution | None:
    """What the exact model makes of the counts of a solution; None where its rows do not allow them."""
    try:
        values, copy = model.hint(solution), model.proto.clone()
    except (KeyError, StopIteration):  # such a count has no variable, or such pods of a node no filling
        return None
    for counts in model.variables.counts:
        for variable in counts.values():
            copy.add(variable == values[variable.index])
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    if solver.solve(copy) not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None
    return model.read(list(solver.response_proto.solution))


drawn = pytest.mark.parametrize("make", ALONE, ids=lambda make: str(make.__name__))


@drawn
@pytest.mark.parametrize("seeds", seed_blocks(300, 60))
def test_the_integers_of_a_solution_keep_the_rows_exactly_where_it_keeps_the_rules(make: Drawn, seeds: range) -> None:
    """As milp has them; where they do, they are read as a valid solution, maybe with equal nodes exchanged."""
    alone: Counter[str] = Counter()
    for seed in seeds:
        instance = make(seed)
        dense = make_dense(instance)
        model = ExactModel(dense)
        program = IntegerForm(model.proto)
        for solution in somewhere(dense, Random(f"rows {seed}"), 15):
            rules = broken_rules(instance, dense, solution)
            alone.update(rules if len(rules) == 1 else ())
            try:
                values = model.hint(solution)
            except (KeyError, StopIteration):  # such a count has no variable, or such pods of a node no filling
                assert rules, f"seed {seed}: {solution} cannot be said"
                continue
            if program.allows(values):
                assert broken_rules(instance, dense, model.read(values)) == set(), f"seed {seed}: {solution}"
            else:
                assert rules, f"seed {seed}: {solution} is not allowed"
    assert not {rule: alone[rule] for rule, least in ALONE[make].items() if alone[rule] < least}


@drawn
@pytest.mark.parametrize("seeds", seed_blocks(240, 10))
def test_no_values_of_other_variables_allow_what_the_rules_do_not(make: Drawn, seeds: range) -> None:
    """Kubelets are not asked here: zones without an order are excluded one by one."""
    forbidden = 0
    for seed in seeds:
        instance = make(seed)
        dense = make_dense(instance)
        model = ExactModel(dense)
        for solution in somewhere(dense, Random(f"rows {seed}"), 10):
            found = held(model, solution)
            assert found is not None or broken_rules(instance, dense, solution), f"seed {seed}: {solution}"
            if found is not None:
                assert broken_rules(instance, dense, found) == set(), f"seed {seed}: {solution} is read as {found}"
            forbidden += found is None
    assert forbidden > len(seeds)


@drawn
@pytest.mark.parametrize("seeds", seed_blocks(80, 10))
def test_what_is_valid_is_a_complete_hint_of_the_exact_model(make: Drawn, seeds: range) -> None:
    """A solution is a hint of all values up to a criterion; it comes back worth the same, or better packed."""
    for seed in seeds:
        instance = make(seed)
        dense = make_dense(instance)
        found = [dense.solution(each) for each in islice(placements(instance), 300)]
        for solution in (found[0], found[len(found) // 3], found[-1]):
            for criterion in {0, len(dense.criteria) - 1} if dense.criteria else ():
                assert_complete(dense, criterion, solution)


def assert_complete(dense: Dense, criterion: int, solution: Solution) -> None:
    model = ExactModel(dense, criterion=criterion)
    rows = [model.criterion(each) for each in range(criterion + 1)]
    hinted = model.hint(solution)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.fix_variables_to_their_hinted_value = True
    assert solver.solve(model.proto) in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    before, after = score_solution(dense, solution), score_solution(dense, model.read(hinted))
    for number, row in enumerate(rows):
        name, _ = dense.criteria[number]
        assert after[number] <= before[number] if name == "packedNodes" else after[number] == before[number]
        if name == "networkCost":
            assert row.at(lambda variable: hinted[variable.index]) == before[number]
