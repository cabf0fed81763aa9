"""What calls cost at least, against values worked out by hand."""

from __future__ import annotations

import pytest

from placer.arrays import score_solution
from placer.arrays.dense_builder import make_dense
from placer.bounds import CallCosts, bounds_for
from placer.bounds.call_costs import standing_cost
from tests.judge import placement
from tests.kep import kep_cluster
from tests.shop import SHOP, shop
from tests.world import World, calls


def least(world: World) -> dict[int, int]:
    """AppGroup to what its calls add at least when all its pods are placed."""
    dense = make_dense(world.instance())
    assert dense.network is not None
    return CallCosts(dense, dense.network, [each.size for each in dense.classes]).by_app


def star(gpu: int) -> World:
    """A hub calls four others; zones have two nodes."""
    world = kep_cluster(gpu=gpu)
    world.app_group("shop", *(calls(f"hub>{name}", 100) for name in "abcd"))
    for name in ("hub", *"abcd"):
        world.pod(name, app=SHOP, workload=name)
    return world


@pytest.mark.parametrize(("gpu", "cost"), [(5, 0), (4, 1), (3, 1), (2, 1 + 5), (1, 2 + 2 * 5)])
def test_pieces_of_an_app_are_tied_to_each_other(gpu: int, cost: int) -> None:
    """Nodes of 5 take all; of 4 and 3 two must do, in one zone; of 2 three, in two zones; of 1 five, in three."""
    assert least(star(gpu))[0] == cost


def test_replicas_make_the_cut_thicker() -> None:
    """3 callers and 2 callees on nodes of 3: a caller apart is two pairs, any other piece more."""
    assert least(shop(kep_cluster(gpu=3), calls("web>db", 100)))[0] == 2
    assert least(shop(kep_cluster(gpu=3), calls("web>db", 100), calls("db>web", 100)))[0] == 4


@pytest.mark.parametrize(("not_on", "cost"), [((), 0), (("n1",), 2), (("n1", "n2"), 2 * 5)])
def test_beside_running_pods_each_is_on_the_best_node_for_it(not_on: tuple[str, ...], cost: int) -> None:
    world = kep_cluster()
    world.app_group("shop", calls("web>db", 100))
    world.running("s", "n1", app=SHOP, workload="db")
    for name in ("w1", "w2"):
        world.pod(name, app=SHOP, workload="web", not_on=not_on)
    assert sum(least(world).values()) == cost


def test_what_runs_already_costs_what_it_costs() -> None:
    """A caller in Z1 and a callee in Z3: 20, which no placement can better."""
    world = shop(kep_cluster(), calls("web>db", 100), web="w1", db="d1")
    world.running("r", "n1", app=SHOP, workload="web")
    world.running("s", "n5", app=SHOP, workload="db")
    dense = make_dense(world.instance())
    assert standing_cost(dense) == 20
    values = score_solution(dense, dense.solution(placement("w1@n1 d1@n5")))
    criterion = [name for name, _ in dense.criteria].index("networkCost")
    assert values[criterion] == 4 * 20
    assert {each.bound for each in bounds_for(dense, values) if each.criterion == criterion} == {20}
