"""C10 in the MILP: small by hand, rows against verify, the optimum of seeded instances, and what is made for whom."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from placer.arrays import Dense
from placer.arrays.dense_builder import make_dense
from placer.arrays.numa import DenseNuma
from placer.rules import verify
from placer.search.events import Event, SearchOptions, TooLarge
from placer.search.milp import method, zones
from placer.search.milp.method import MilpModel
from placer.search.milp.zones import ByCrowd, ByZone, size_of_plans
from placer.search.numa.binding_order import aligned
from tests.judge import placement
from tests.numa_words import demand, numa
from tests.numa_worlds import (
    HAND,
    assigned,
    crowded,
    initial,
    ordered,
    together,
)
from tests.search.milp.test_milp_flows import model_with_all_values
from tests.solving import solve_tiny
from tests.tiny import tiny
from tests.tiny_numa import tiny_numa
from tests.world import World

# -------------------------------------------------------------------------------------------------------------- by hand


@pytest.mark.parametrize(("world", "fine", "refused"), HAND, ids=lambda value: getattr(value, "__name__", ""))
def test_what_the_kubelet_admits_together(world: Callable[[], World], fine: str, refused: str) -> None:
    """A pod that the zones cannot hold by itself has no count at all: that is a broken eligibility."""

    def broken(pods: str) -> str | None:
        dense = make_dense(world().instance())
        row = MilpModel(dense).broken(dense.solution(placement(together(pods))))
        return None if row is None else row.rstrip("_0123456789")

    for pods in fine.split():
        assert broken(pods) is None, pods
    for pods in refused.split():
        instance = world().instance()
        assert {found.rule for found in verify(instance, aligned(instance, placement(together(pods))))} == {"C10"}
        assert broken(pods) in ("numa", "eligibility"), pods


# ------------------------------------------------------------------------------------------------------ what is made


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


def test_bytes_of_a_zone_are_counted_to_the_last() -> None:
    """Amounts without a common divisor fill both zones exactly, one of them by two pods; a byte more does not fit."""
    zone = 3 * (2**33 + 7)
    for extra, most in ((0, 3), (1, 2)):
        node = numa("single", "container", f"9 cpu {zone} memory", f"9 cpu {2 * zone + 1} memory")
        pods = [demand(f"1 cpu {zone + more} memory") for more in (0, 0, 1 + extra)]
        solved = solve_tiny(crowded(node, pods), "milp")
        assert solved.proved
        assert len(solved.placement.bindings) == most


# -------------------------------------------------------------------------------------------------------------- limits


def told(dense: Dense) -> tuple[str, list[Event]]:
    events: list[Event] = []
    return method.search(dense, SearchOptions(), events.append), events


def test_zones_count_among_the_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two classes on one node, two kinds in two zones."""
    monkeypatch.setattr(method, "MOST_VARIABLES", 5)
    assert told(make_dense(ordered().instance())) == ("finished", [])
    monkeypatch.setattr(method, "MOST_VARIABLES", 6)
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
    monkeypatch.setattr(DenseNuma, "_known", lambda *_: (None, False))
    with pytest.raises(TooLarge, match="numa: too many orders of 1 pods"):
        MilpModel(dense)
    assert told(dense) == ("finished", [])


def test_what_is_dealt_out_but_finds_no_order_is_not_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """By zone the program needs no order; where none is found in time for what it says, that is not shown."""
    dense = make_dense(ordered().instance())
    assert told(dense)[0] == "proved"
    monkeypatch.setattr(DenseNuma, "_known", lambda *_: (None, False))
    assert told(dense) == ("finished", [])
