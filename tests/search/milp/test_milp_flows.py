"""The MILP's counts and pairs say what verify and score say; no more of them is made than is known before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice, product
from pathlib import Path
from random import Random

import pulp
import pytest

from placer.arrays import Dense, Solution, score_solution
from placer.arrays.dense_builder import make_dense
from placer.problem import Dependency
from placer.problem.reading import read
from placer.rules import verify
from placer.search.milp.flows import groups_of, size_of_flows
from placer.search.milp.method import MilpModel
from placer.search.milp.variables import PulpProgram, Values, Variable
from tests.examples import seed_blocks
from tests.kep import kep_cluster
from tests.oracle import placements
from tests.shop import SHOP, shop
from tests.tiny import tiny_network
from tests.world import World, calls

PLANTED = Path(__file__).parents[3] / "instances" / "planted"


def model_with_all_values(dense: Dense) -> MilpModel:
    model = MilpModel(dense)
    for criterion in range(len(dense.criteria)):
        model.objective.criterion(criterion)
    return model


# --------------------------------------------------------------------------------------------------- rows as a whole


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


@pytest.mark.parametrize("seeds", seed_blocks(300, 50, quick=2))
def test_a_row_is_broken_exactly_where_a_rule_is(seeds: range) -> None:
    """Every rule together as ``verify`` sees it; where only C8 or C9 is broken, the row has the name of one of them."""
    names = {"network_cost": "C8", "bandwidth": "C9"}
    seen: Counter[str] = Counter()
    for seed in seeds:
        instance = tiny_network(seed).instance
        dense = make_dense(instance)
        model = model_with_all_values(dense)
        for solution in somewhere(dense, Random(f"rows {seed}"), 30):
            rules = {found.rule for found in verify(instance, dense.placement(solution))}
            row = (model.broken(solution) or "").rstrip("_0123456789")
            assert bool(row) == bool(rules), f"seed {seed}: {solution} breaks {row or rules}"
            if row in names:
                assert names[row] in rules
            if rules <= {"C8", "C9"}:
                assert row in ("", *names)
                seen.update(rules)
    assert seen["C8"] >= 10
    assert seen["C9"] >= 10


@pytest.mark.parametrize("seeds", seed_blocks(120, 40))
def test_every_valid_placement_keeps_all_rows_and_has_its_values(seeds: range) -> None:
    for seed in seeds:
        instance = tiny_network(seed).instance
        dense = make_dense(instance)
        model = model_with_all_values(dense)
        for each in islice(placements(instance), 50):
            solution = dense.solution(each)
            assert model.broken(solution) is None
            found = tuple(model.value(criterion, solution) for criterion in range(len(dense.criteria)))
            assert found == score_solution(dense, solution)


def lowest_and_highest(program: PulpProgram, variable: Variable, values: Values) -> tuple[int, int]:
    """What the rows leave of a variable's range when all others have their values."""
    lowest, highest = 0, int(variable.upBound)
    for row in program.problem.constraints():
        coefficient = int(row.get(variable, 0))
        if coefficient:
            assert row.sense == pulp.LpConstraintLE
            rest = sum(c * values[other] for other, c in row.items() if other is not variable) + int(row.constant)
            if coefficient > 0:
                highest = min(highest, -rest // coefficient)
            else:
                lowest = max(lowest, -(rest // coefficient))
    return lowest, highest


@pytest.mark.parametrize("dependencies", [[calls("web>db", 9)], [calls("db>web", 0)], [calls("web>web", 9)]], ids=str)
def test_rows_leave_no_pairs_but_the_product(dependencies: list[Dependency]) -> None:
    """With counts given, y cannot be less than the pairs and s cannot be more: no solver is asked."""
    world = World()
    world.nodes("n1 n2", area="r/x")
    world.node("n3", area="r/y")
    world.links("zone", "x=y", 9)
    shop(world, *dependencies)
    dense = make_dense(world.instance())
    model, tried = model_with_all_values(dense), 0
    assert [pod_class.size for pod_class in dense.classes] == [2, 3]
    pairs = [variable for variable in model.program.variables if variable.name[0] in "ys"]
    assert {variable.name[0] for variable in pairs} == {"y", "s"}
    for counts in product(range(3), range(3), range(3), range(4), range(4), range(4)):
        solution = Solution({divmod(place, 3): count for place, count in enumerate(counts) if count})
        if sum(counts[:3]) <= 2 and sum(counts[3:]) <= 3 and model.broken(solution) is None:
            point = model.values(solution)
            assert point is not None
            for variable in pairs:
                end = lowest_and_highest(model.program, variable, point)["ys".index(variable.name[0])]
                assert point[variable] == end, (solution, variable)
            tried += 1
    assert tried >= 50


# ------------------------------------------------------------------------------------------------------ what is made


def test_without_calls_the_program_is_what_it_was() -> None:
    """Sizes as models/milp.md has had them since there were no networks."""
    model = MilpModel(make_dense(read(PLANTED / "planted-50.json.gz")))
    few = len(model.program.variables)
    for criterion in range(len(model.dense.criteria)):
        model.objective.criterion(criterion)
    rows = model.program.problem.constraints()
    terms = sum(len(row) for row in rows)
    assert (few, len(model.program.variables), len(rows), terms) == (1029, 1201, 1651, 14344)


def test_calls_of_nobody_who_is_pending_add_nothing() -> None:
    sizes = []
    for workloads in (("web", "db"), ("", ""), ("cache", "cache")):
        world = kep_cluster()
        world.app_group("shop", calls("web>db", 5, 10), calls("db>web", 5))
        for name, workload in zip("ab", workloads, strict=True):
            world.pod(name, app=SHOP if workload else None, workload=workload or None)
        model = model_with_all_values(make_dense(world.instance()))
        sizes.append((len(model.program.variables), len(model.program.problem.constraints())))
    assert sizes[1] == sizes[2]
    assert min(sizes[0]) > max(sizes[1])


@pytest.mark.parametrize("seed", range(100))
def test_what_is_made_is_known_before(seed: int) -> None:
    """The limit on variables is checked against a number that is never less than what the network comes to."""
    dense = make_dense(tiny_network(seed).instance)
    names = [each.name for each in model_with_all_values(dense).program.variables if each.name[0] != "q"]
    others = [each.name for each in model_with_all_values(replace(dense, network=None)).program.variables]
    made = [name for name in names if name[0] in "cuys"]
    assert set(names) - set(made) == {name for name in others if name[0] != "q"}
    assert len(made) <= size_of_flows(dense, [dense.fits(index) for index in range(len(dense.classes))])
    assert dense.network is not None or not made


def test_areas_that_look_alike_are_one_group() -> None:
    """From Z1: itself, Z2, and the other region as a whole; every one of them has its link."""
    dense = make_dense(shop(kep_cluster(), calls("web>db", 5)).instance())
    assert dense.network is not None
    found = groups_of(dense.network, int(dense.network.area[dense.node_index["n1"]]))
    assert [(group.own, group.cost, len(group.areas)) for group in found] == [
        (True, 1, 1),
        (False, 5, 1),
        (False, 20, 2),
    ]
    assert [group.link >= 0 for group in found] == [False, True, True]
