"""The six orders of an AppGroup: the KEP's table row by row, ties, circles, and what holds of any graph."""

from __future__ import annotations

from itertools import pairwise

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placer.problem.network_objects import ALGORITHMS, WorkloadOrder, find_cycle, sort_workloads

#: The Online Boutique of KEP-260, callers to callees in the order of the spec: 11 workloads, 15 calls.
BOUTIQUE = {
    "P1": ["P2", "P3", "P4", "P6", "P8", "P9", "P10"],
    "P2": ["P11"],
    "P8": ["P2", "P3", "P4", "P5", "P6", "P7"],
    "P9": ["P3"],
}
WORKLOADS = [f"P{number}" for number in range(1, 12)]
#: The order in which the roots have to be taken to give the KEP's rows that end in Tarjan.
KEP_ROOTS = ["P3", "P6", "P10", "P9", "P1"]

TABLE = {
    "KahnSort": "P1 P10 P9 P8 P7 P6 P5 P4 P3 P2 P11",
    "AlternateKahn": "P1 P11 P10 P2 P9 P3 P8 P4 P7 P5 P6",
    "ReverseKahn": "P11 P2 P3 P4 P5 P6 P7 P8 P9 P10 P1",
    "TarjanSort": "P1 P8 P7 P5 P4 P2 P11 P9 P10 P6 P3",
    "AlternateTarjan": "P1 P3 P8 P6 P7 P10 P5 P9 P4 P11 P2",
    "ReverseTarjan": "P3 P6 P10 P9 P11 P2 P4 P5 P7 P8 P1",
}


def order(
    algorithm: str | None, workloads: list[str], calls: dict[str, list[str]], roots: list[str] | None = None
) -> str:
    return " ".join(sort_workloads(algorithm, workloads, calls, roots or ()).workloads)


def test_the_online_boutique_has_11_workloads_and_15_calls() -> None:
    assert len(WORKLOADS) == 11
    assert sum(len(called) for called in BOUTIQUE.values()) == 15


@pytest.mark.parametrize("algorithm", TABLE)
def test_the_row_of_the_kep(algorithm: str) -> None:
    roots = KEP_ROOTS if "Tarjan" in algorithm else []
    assert order(algorithm, WORKLOADS, BOUTIQUE, roots) == TABLE[algorithm]


@pytest.mark.parametrize("algorithm", [each for each in TABLE if "Kahn" in each])
def test_with_one_root_the_order_of_the_roots_changes_no_kahn_row(algorithm: str) -> None:
    assert order(algorithm, WORKLOADS, BOUTIQUE, KEP_ROOTS) == TABLE[algorithm]


def test_tarjan_takes_the_roots_in_the_order_of_the_spec() -> None:
    """Depth first from P1: P11 P2 P3 P4 P6 P5 P7 P8 P9 P10 P1 are done in this order."""
    assert order("TarjanSort", WORKLOADS, BOUTIQUE) == "P1 P10 P9 P8 P7 P5 P6 P4 P3 P2 P11"


def test_an_unknown_algorithm_is_kahn() -> None:
    for unknown in (None, "", "kahnsort", "Quick"):
        found = sort_workloads(unknown, WORKLOADS, BOUTIQUE)
        assert found == WorkloadOrder("KahnSort", tuple(TABLE["KahnSort"].split()))
    assert sort_workloads("ReverseTarjan", ["a"], {}).algorithm == "ReverseTarjan"


def test_indices_count_from_one() -> None:
    assert sort_workloads("ReverseKahn", ["c", "b", "a"], {"c": ["b"], "b": ["a"]}).indices == {"a": 1, "b": 2, "c": 3}


def test_who_is_only_called_comes_after_those_of_the_spec() -> None:
    assert order("TarjanSort", ["a", "b"], {"a": ["z"], "y": ["b"]}) == "y b a z"


@pytest.mark.parametrize("algorithm", [*ALGORITHMS, "unknown"])
def test_a_circle_is_told_and_the_order_is_that_of_the_spec(algorithm: str) -> None:
    found = sort_workloads(algorithm, ["z", "y", "x", "w"], {"w": ["z"], "z": ["y"], "y": ["x", "z"]})
    assert found.workloads == ("z", "y", "x", "w")
    assert found.cycle == ("z", "y")


def test_a_call_of_itself_is_a_circle() -> None:
    assert sort_workloads("KahnSort", ["a", "b"], {"b": ["b"]}) == WorkloadOrder("KahnSort", ("a", "b"), ("b",))


def test_a_root_that_is_no_workload_is_named() -> None:
    with pytest.raises(ValueError, match="roots: found P12, expected workloads of the AppGroup"):
        sort_workloads("KahnSort", WORKLOADS, BOUTIQUE, ["P1", "P12"])


def test_a_long_chain_needs_no_deep_stack() -> None:
    names = [f"w{number}" for number in range(5000)]
    calls = {one: [two] for one, two in pairwise(names)}
    for algorithm in ("KahnSort", "TarjanSort"):
        assert list(sort_workloads(algorithm, names, calls).workloads) == names
    assert len(sort_workloads("TarjanSort", names, {**calls, names[-1]: [names[0]]}).cycle) == 5000


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[str], dict[str, list[str]]]:
    names = [f"w{number}" for number in range(draw(st.integers(1, 8)))]
    pairs = draw(st.lists(st.tuples(st.sampled_from(names), st.sampled_from(names)), max_size=14))
    calls: dict[str, list[str]] = {}
    for caller, called in pairs:
        calls.setdefault(caller, []).append(called)
    return draw(st.permutations(names)), calls


@given(graphs(), st.sampled_from([*ALGORITHMS]))
def test_of_any_graph(made: tuple[list[str], dict[str, list[str]]], algorithm: str) -> None:
    """Against networkx: a circle is found exactly where there is one, it is one, and callers come first."""
    names, calls = made
    graph: nx.MultiDiGraph[str] = nx.MultiDiGraph([(one, two) for one, called in calls.items() for two in called])
    found = sort_workloads(algorithm, names, calls)
    assert sorted(found.workloads) == sorted(names)
    assert bool(found.cycle) != nx.is_directed_acyclic_graph(graph)
    assert find_cycle(calls) == () or find_cycle(calls)[0] in calls
    if found.cycle:
        assert list(found.workloads) == names
        assert len(set(found.cycle)) == len(found.cycle)
        around = (*found.cycle, found.cycle[0])
        assert all(graph.has_edge(one, two) for one, two in pairwise(around))
    elif not algorithm.startswith("Alternate"):
        place = found.indices
        ahead = 1 if algorithm.startswith("Reverse") else -1
        assert all((place[one] - place[two]) * ahead > 0 for one, two in graph.edges())
