"""The exact model of instances with calls: complete hints, what is counted together, and its size."""

from __future__ import annotations

import re
from itertools import islice
from pathlib import Path

import pytest
from ortools.sat.python import cp_model

from placer.arrays import Dense, Solution, score_solution
from placer.arrays.dense_builder import make_dense
from placer.problem.reading import read
from placer.search.events import TooLarge
from placer.search.exact import method as search
from placer.search.exact.method import ExactModel
from placer.search.exact.node_sets import make_node_sets
from placer.search.exact.variables import make_bundles
from tests.examples import seed_blocks
from tests.kep import kep_cluster
from tests.oracle import placements
from tests.shop import SHOP, shop
from tests.tiny import tiny_network
from tests.world import World, calls

ROOT = Path(__file__).parents[3]

# Hints


def _check_hint(dense: Dense, criterion: int, solution: Solution) -> None:
    """A solution is a complete hint of all values up to a criterion; it comes back worth the same, or better packed."""
    model = ExactModel(dense, criterion=criterion)
    rows = [model.objective.criterion(each) for each in range(criterion + 1)]
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


@pytest.mark.parametrize("seeds", seed_blocks(80, 20))
def test_any_placement_is_a_complete_hint(seeds: range) -> None:
    for seed in seeds:
        instance = tiny_network(seed).instance
        dense = make_dense(instance)
        found = [dense.solution(each) for each in islice(placements(instance), 300)]
        for solution in (found[0], found[len(found) // 3], found[-1]):
            _check_hint(dense, 0, solution)
            _check_hint(dense, len(dense.criteria) - 1, solution)


# What is counted together


def test_nodes_of_an_area_are_one_place_until_pairs_on_one_node_count() -> None:
    dense = make_dense(shop(kep_cluster(), calls("web>db")).instance())
    assert sorted(place.nodes for place in make_node_sets(dense)) == [(0, 1), (2, 3), (4, 5), (6, 7)]
    assert sorted(place.nodes for place in make_node_sets(dense, apart=True)) == [(node,) for node in range(8)]


def test_nodes_where_no_call_can_meet_stay_one_place() -> None:
    """Callers must be on ssd nodes, callees elsewhere: they never share one."""
    world = World()
    for name, disk in (("n1", "ssd"), ("n2", "ssd"), ("n3", ""), ("n4", "")):
        world.node(name, area="r/x", labels={"disk": disk})
    world.app_group("shop", calls("web>db"))
    world.links("zone", "x=y", 1)
    for name in "ab":
        world.pod(name, app=SHOP, workload="web", selector={"disk": "ssd"})
        world.pod(f"d{name}", app=SHOP, workload="db", selector={"disk": ""})
    dense = make_dense(world.instance())
    assert sorted(place.nodes for place in make_node_sets(dense, apart=True)) == [(0, 1), (2, 3)]


def test_pods_of_a_workload_are_counted_and_those_of_two_never_together() -> None:
    world = kep_cluster()
    world.app_group("shop", calls("web>db"))
    for name in "abcde":
        world.pod(name, app=SHOP, workload="web" if name < "d" else "db")
    world.pod("f")
    bundles = make_bundles(make_dense(world.instance()))
    assert sorted(bundle.many for bundle in bundles.gangs) == [1, 2, 3]


def test_without_a_network_the_models_are_what_the_page_says() -> None:
    """Sizes of shipped instances as they were before the model knew any call."""
    page = (ROOT / "models/exact.md").read_text(encoding="utf-8")
    for path in ("planted/planted-50", "clos/clos-128"):
        row = re.search(rf"^\| {Path(path).name} .*$", page, re.MULTILINE)
        assert row is not None
        cells = [cell.strip() for cell in row[0].strip("|").split("|")]
        dense = make_dense(read(ROOT / f"instances/{path}.json.gz"))
        model = ExactModel(dense)
        model.aim(0)
        first = model.variables.size
        for criterion in range(len(dense.criteria)):
            model.objective.criterion(criterion)
        found = (first, model.variables.size, len(model.proto.proto.constraints))
        assert found == (int(cells[4]), int(cells[5]), int(cells[7]))
        assert model.calls is None


def test_a_model_whose_calls_are_too_many_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    dense = make_dense(shop(kep_cluster(), calls("web>db", 100), calls("web>web", 100)).instance())
    model = ExactModel(dense)
    assert model.calls is not None
    size = 2 * 8 + model.calls.count
    monkeypatch.setattr(search, "MOST_VARIABLES", size)
    ExactModel(dense)
    monkeypatch.setattr(search, "MOST_VARIABLES", size - 1)
    with pytest.raises(TooLarge, match=f"^{size:,} variables, at most {size - 1:,}$"):
        ExactModel(dense)
