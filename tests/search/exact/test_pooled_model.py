"""Pooled pods by hand on small trees, and value after value against every placement of tiny instances."""

from __future__ import annotations

from itertools import islice

import pytest
from ortools.sat.python import cp_model

from placer.arrays import Dense, Solution, score_solution
from placer.arrays.dense_builder import make_dense
from placer.problem import Instance, SubGroupPolicy
from placer.rules import verify
from placer.search.events import TooLarge
from placer.search.exact.count_model import solver_form
from placer.search.exact.integer_form import IntegerForm, columns_of
from placer.search.exact.pooled_model import PooledModel
from placer.search.greedy.multi_start import greedy
from tests.bounds.test_bounds_hold import MOST
from tests.examples import seed_blocks
from tests.oracle import placements
from tests.search.decomposed.test_tree_master import criterion_of, solver, spines
from tests.tiny import tiny, tiny_network
from tests.world import World, calls, hard, soft


def of_world(world: World) -> int:
    """Least ``locality``."""
    model, found = PooledModel(make_dense(world.instance())), solver()
    value = model.makers["locality"](None)
    model.proto.minimize(solver_form(value) + value.constant)
    assert found.solve(model.proto) == cp_model.OPTIMAL
    return round(found.objective_value)


def pooled(dense: Dense) -> list[int]:
    """Criteria that the model of pooled pods decides, none where it does not tell all."""
    names = PooledModel(dense).makers if dense.classes and PooledModel.knows(dense) else {}
    return [index for index, (name, _) in enumerate(dense.criteria) if name in names]


def decided(dense: Dense, model: PooledModel) -> Solution:
    """Value after value, each kept; the solution of the last."""
    found = solver()
    for criterion in pooled(dense):
        model.aim(criterion)
        assert found.solve(model.proto) == cp_model.OPTIMAL
        model.keep(criterion, round(found.objective_value))
    return model.read(list(found.response_proto.solution))


# By hand


def test_what_fits_alone_does_not_fit_together() -> None:
    # Five gangs of 5 GPUs, leaves of 8: the fifth is in what is left of two leaves.
    world = spines()
    for name in "pqrst":
        world.pods_of(" ".join(f"{name}{number}" for number in range(5)), world.gang(name, 5, topology=soft()))
    assert of_world(world) == 30


def test_spines_are_full_before_their_leaves_are() -> None:
    # Three gangs of 6 GPUs and one of 12 take 30 of 32. The 12 beside a 6 are more than a spine of 16: either they are
    # on both spines (36) and each 6 in a leaf (18), or they are in one (24), two of the 6 in leaves (12), one on both.
    world = spines()
    for name in "pqr":
        world.pods_of(" ".join(f"{name}{number}" for number in range(6)), world.gang(name, 6, topology=soft()))
    world.pods_of(" ".join(f"s{number}" for number in range(12)), world.gang("s", 12, topology=soft()))
    assert of_world(world) == 54


def test_homes_of_subgroups_are_inside_those_of_their_group() -> None:
    # Two subgroups of 5, each in a leaf of 8, and the group in one spine.
    world = spines()
    gang = world.gang("g", 10, topology=hard(2), policies=[SubGroupPolicy("part", 5, 0, hard(1))])
    for part in "xy":
        world.pods_of(" ".join(f"{part}{number}" for number in range(5)), gang, part=part)
    assert of_world(world) == 10 * 2 + 10 * 1


def test_it_says_nothing_where_pods_of_one_shape_differ() -> None:
    drawn = (make_dense(tiny_network(seed).instance) for seed in range(20))
    assert not any(PooledModel.knows(dense) for dense in drawn if dense.network)


def test_calls_between_pods_that_run_are_a_constant() -> None:
    """No placeable pod calls any other, and still ``networkCost`` is among the values that are kept."""
    world = World()
    world.nodes("n1", area="r/z1")
    world.nodes("n2", area="r/z2")
    world.hyper("leaf", 1, "n1 n2")
    world.links("zone", "z1=z2", 7)
    app = world.app_group("shop", calls("web>db", 100))
    world.running("web", "n1", app=app, workload="web")
    world.running("db", "n2", app=app, workload="db")
    world.pods_of("p q", world.gang("gang", least=2))
    dense = make_dense(world.instance())
    assert dense.network is None
    assert PooledModel.knows(dense)
    criterion = criterion_of(dense, "networkCost")
    model, cost = PooledModel(dense), dense.constant_network
    value = model.aim(criterion)
    assert (value.variables, value.constant, cost) == ([], cost, 7)
    model.limit(criterion, cost)
    model.keep(criterion, cost)
    assert solver().solve(model.proto) == cp_model.OPTIMAL
    program, columns = IntegerForm(model.proto), columns_of(value)
    assert program.allows(model.encode(greedy(dense)))
    assert columns.at(lambda _: 0) == cost
    model.keep(criterion, cost - 1)
    assert solver().solve(model.proto) == cp_model.INFEASIBLE


# Against every placement


def full(dense: Dense, solution: Solution) -> bool:
    return sum(solution.values()) == sum(one.size for one in dense.classes)


class PlacementsOfEverything:
    """Placements of an instance that leave no pod out, where the model of pooled pods tells all of it: else none.

    Parameters
    ----------
    instance
        So small that most of its placements can be looked at.
    """

    def __init__(self, instance: Instance) -> None:
        self.instance, self.dense = instance, make_dense(instance)
        self.criteria = pooled(self.dense)
        every = [self.dense.solution(each) for each in islice(placements(instance), MOST)] if self.criteria else []
        self.are_all = len(every) < MOST
        self.whole = [each for each in every if full(self.dense, each)]

    def values(self, solution: Solution) -> list[int]:
        """Those that the model decides."""
        values = score_solution(self.dense, solution)
        return [values[criterion] for criterion in self.criteria]

    def assert_best(self, solution: Solution, seed: int) -> None:
        """The solution is valid, places everything, and none of these is better."""
        assert verify(self.instance, self.dense.placement(solution)) == [], seed
        assert full(self.dense, solution), seed
        best, reached = min(map(self.values, self.whole)), self.values(solution)
        assert reached <= best, seed
        assert not self.are_all or reached == best, seed


blocks = pytest.mark.parametrize("seeds", seed_blocks(500, 50, quick=2))


@blocks
def test_value_after_value_is_the_best_of_all_placements_of_everything(seeds: range) -> None:
    looked_at = 0
    for seed in seeds:
        every = PlacementsOfEverything(tiny(seed).instance)
        if every.whole:
            looked_at += 1
            every.assert_best(decided(every.dense, PooledModel(every.dense)), seed)
    assert looked_at


@blocks
def test_every_placement_is_a_point_with_its_values(seeds: range) -> None:
    looked_at = 0
    for seed in seeds:
        instance = tiny(seed).instance
        dense = make_dense(instance)
        criteria = pooled(dense)
        for placement in islice(placements(instance), 40) if criteria else ():
            solution = dense.solution(placement)
            if full(dense, solution):
                looked_at += 1
                model = PooledModel(dense)
                values = [model.aim(criterion) for criterion in criteria]
                for index, value in enumerate(model.encode(solution)):
                    domain = model.proto.proto.variables[index].domain
                    domain.clear()
                    domain.extend([value, value])
                found = solver()
                assert found.solve(model.proto) == cp_model.OPTIMAL, seed
                point = list(found.response_proto.solution)
                shown = [each.at(lambda variable, point=point: point[variable.index]) for each in values]  # type: ignore[misc]
                assert shown == [score_solution(dense, solution)[each] for each in criteria], seed
    assert looked_at


def test_too_many_columns_are_not_built() -> None:
    dense = make_dense(spines().instance())
    world = spines()
    world.pods_of("a b", world.gang("g", 2, topology=soft()))
    dense = make_dense(world.instance())
    columns = PooledModel(dense).columns
    PooledModel(dense, columns)
    with pytest.raises(TooLarge, match=f"{columns} columns, at most {columns - 1}"):
        PooledModel(dense, columns - 1)
