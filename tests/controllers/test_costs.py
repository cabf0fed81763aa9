"""Costs from measurements: medians, shortest ways, units, and links that nothing is known of."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placer.kube.manifests import from_documents, validate
from placer.lab.generate import generate
from placer.problem import Area, Link
from placer.problem.communication import REGION, ZONE
from placer.problem.instance_builder import read_nodes
from placer.problem.network_objects import Pair, areas_of, measured_costs, read_measurements


def costs(
    measured: dict[tuple[str, str], int], areas: dict[str, tuple[str, str]], unit: int = 1000
) -> dict[tuple[str, str, str], int]:
    """Latencies in microseconds between nodes, nodes by region and zone; links as plain tuples."""
    places = {node: Area(*area) if area[0] else Area("", "", node) for node, area in areas.items()}
    found = measured_costs({Pair(*pair): latency for pair, latency in measured.items()}, places, unit)
    return {(link.kind, link.origin, link.destination): cost for link, cost in found.items()}


TWO = {"n1": ("r1", "a"), "n2": ("r1", "b"), "n3": ("r2", "c")}


def test_regions_and_zones_both_ways() -> None:
    assert costs({("n1", "n2"): 5000, ("n1", "n3"): 20_000}, TWO) == {
        ("region", "r1", "r2"): 20,
        ("region", "r2", "r1"): 20,
        ("zone", "a", "b"): 5,
        ("zone", "b", "a"): 5,
    }


def test_what_was_measured_both_ways_may_differ() -> None:
    found = costs({("n1", "n2"): 5000, ("n2", "n1"): 7000}, TWO)
    assert found == {("zone", "a", "b"): 5, ("zone", "b", "a"): 7}


def test_no_measurement_is_no_entry() -> None:
    """The shipped controller writes 0 for the links between regions, and so for all of them on an empty ConfigMap."""
    assert costs({("n1", "n2"): 5000}, TWO).keys() == {("zone", "a", "b"), ("zone", "b", "a")}
    assert costs({}, TWO) == {}


def test_within_a_zone_nothing_is_a_link() -> None:
    same = {"n1": ("r", "a"), "n2": ("r", "a"), "n3": ("r", ""), "n4": ("", ""), "n5": ("", "")}
    assert costs(dict.fromkeys(permutations(same, 2), 9000), same) == {}


def test_a_node_without_a_zone_counts_for_its_region() -> None:
    areas = {"n1": ("r1", ""), "n2": ("r2", "b"), "n3": ("", "")}
    found = costs({("n1", "n2"): 8000, ("n3", "n2"): 1}, areas)
    assert found == {("region", "r1", "r2"): 8, ("region", "r2", "r1"): 8}


def test_the_shortest_way_counts() -> None:
    """a to c is 9 by way of b, though 50 was measured; c to a has only the measured one; d is not reached at all."""
    areas = {each: ("r", each) for each in "abcd"}
    found = costs(
        {("a", "b"): 4000, ("b", "a"): 60_000, ("b", "c"): 5000, ("c", "b"): 70_000, ("a", "c"): 50_000}, areas
    )
    assert found == {
        ("zone", "a", "b"): 4,
        ("zone", "a", "c"): 9,
        ("zone", "b", "a"): 55,  # by way of c: 5 + 50
        ("zone", "b", "c"): 5,
        ("zone", "c", "a"): 50,
        ("zone", "c", "b"): 54,  # by way of a: 50 + 4
    }


def test_ways_over_other_regions_do_not_serve_zones() -> None:
    areas = {"a": ("r1", "a"), "b": ("r1", "b"), "x": ("r2", "x")}
    assert ("zone", "a", "b") not in costs({("a", "x"): 1000, ("x", "b"): 1000}, areas)


def test_of_several_pairs_the_median_counts_in_whatever_order() -> None:
    """The shipped controller ends at another value for every order."""
    areas = {**{f"a{i}": ("r", "a") for i in range(3)}, "b": ("r", "b")}
    measured = {("a0", "b"): 4000, ("a1", "b"): 90_000, ("a2", "b"): 6000}
    for order in permutations(measured):
        assert costs({pair: measured[pair] for pair in order}, areas)["zone", "a", "b"] == 6
    del measured["a2", "b"]
    assert costs(measured, areas)["zone", "a", "b"] == 90


@pytest.mark.parametrize(
    ("latency", "unit", "cost"), [(0, 1000, 1), (1000, 1000, 1), (1001, 1000, 2), (130, 1, 130), (130, 50, 3)]
)
def test_costs_are_rounded_up_and_at_least_one(latency: int, unit: int, cost: int) -> None:
    assert costs({("n1", "n2"): latency}, TWO, unit)["zone", "a", "b"] == cost


def test_a_way_is_rounded_once() -> None:
    """0.6 and 0.6 are 1.2, so 2 and not 1 + 1; three of 0.3 are 0.9, so 1 and not 3."""
    areas = {each: ("r", each) for each in "abcd"}
    assert costs({("a", "b"): 600, ("b", "c"): 600}, areas)["zone", "a", "c"] == 2
    assert costs({("a", "b"): 300, ("b", "c"): 300, ("c", "d"): 300}, areas)["zone", "a", "d"] == 1


def test_zones_of_one_name_in_two_regions_have_the_larger_cost() -> None:
    areas = {"n1": ("r1", "a"), "n2": ("r1", "b"), "n3": ("r2", "a"), "n4": ("r2", "b")}
    measured = {("n1", "n2"): 3000, ("n3", "n4"): 8000}
    assert costs(measured, areas) == {("zone", "a", "b"): 8, ("zone", "b", "a"): 8}


def test_links_are_sorted() -> None:
    assert list(costs({("n3", "n1"): 1, ("n2", "n1"): 1}, TWO)) == [
        ("region", "r1", "r2"),
        ("region", "r2", "r1"),
        ("zone", "a", "b"),
        ("zone", "b", "a"),
    ]


@given(st.dictionaries(st.sampled_from(list(permutations("abcde", 2))), st.integers(0, 90), max_size=20))
def test_against_walking_all_ways(measured: dict[tuple[str, str], int]) -> None:
    """Every path without a repeated place, by hand."""
    areas = {each: ("r", each) for each in "abcde"}
    both = {(two, one): cost for (one, two), cost in measured.items()} | measured

    def ways(here: str, there: str, over: frozenset[str]) -> list[int]:
        if here == there:
            return [0]
        return [
            both[here, step] + rest
            for step in sorted(set("abcde") - over)
            if (here, step) in both
            for rest in ways(step, there, over | {step})
        ]

    expected = {}
    for one, two in permutations("abcde", 2):
        lengths = ways(one, two, frozenset(one))
        if lengths:
            expected["zone", one, two] = max(1, min(lengths))
    assert costs(measured, areas, 1) == expected


def test_the_generated_config_map_measures_the_generated_costs() -> None:
    """Made without networkx: costs by the user and costs from measurements are the same there."""
    objects = validate(from_documents(generate("network", seed=6, regions=4, zones=3, nodes=30).documents))
    nodes = read_nodes(objects.nodes)
    measured = read_measurements(objects.config_maps[0], nodes)
    assert measured.findings == ()
    found = measured_costs(measured.latencies, areas_of(nodes))
    spec = objects.network_topologies[0].spec
    assert spec is not None
    written = {
        Link(
            REGION if topology.topology_key.endswith("region") else ZONE, origin.origin, cost.destination
        ): cost.network_cost
        for topology in (spec.weights or ())[0].topologies or ()
        for origin in topology.origins or ()
        for cost in origin.costs or ()
    }
    assert len(written) == 4 * 3 + 4 * 3 * 2
    assert found == written
