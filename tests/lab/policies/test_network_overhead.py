"""NetworkOverhead and TopologicalSort: the plug-in's own numbers, and what the order of pods lets it see."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import permutations
from typing import Any

import numpy as np
import pytest

from placer.base.errors import BadInstance, UsageError
from placer.lab.policies.framework import ClusterState
from placer.lab.policies.mimicry import SORTED, run
from placer.lab.policies.network_aware import Overhead, QueuedPod, judge, normalised, places
from placer.problem import AppGroup, Dependency, Instance, Key
from placer.rules import verify
from tests.lab.policies.cases import plugin_cases
from tests.netdocs import app_group, call, costs, member, network_topology, place, ref, weights
from tests.problem.test_workload_sorts import BOUTIQUE, TABLE, WORKLOADS
from tests.support import Document, instance_of

SETS = ("networkoverhead-basic", "networkoverhead-kep-example")
CASES = [(name, index) for name in SETS for index in range(len(plugin_cases()[name]["cases"]))]


def links(table: Mapping[str, Mapping[str, int]]) -> list[dict[str, Any]]:
    return costs(*((origin, to, cost) for origin, row in table.items() for to, cost in row.items()))


def instance_for(name: str, case: Mapping[str, Any]) -> Instance:
    written = plugin_cases()[name]
    calls = {origin: [call(to, cost=cost) for to, cost in each] for origin, each in written["dependencies"].items()}
    return instance_of(
        *(place(node, "/".join(area)) for node, area in written["nodes"].items()),
        app_group(workloads=calls),
        network_topology(weights(region=links(written["region_costs"]), zone=links(written["zone_costs"]))),
        *(member(f"placed-{number}", who, node=node) for number, (who, node) in enumerate(case["placed"])),
        member("asked", case["pod"]),
    )


@pytest.mark.parametrize(("name", "index"), CASES)
def test_the_plugins_own_numbers(name: str, index: int) -> None:
    case = plugin_cases()[name]["cases"][index]
    state = ClusterState(instance_for(name, case), seed=0)
    overhead, task = Overhead(state), state.task_of[Key("default", "asked")]
    nodes = [case["node"]] if "node" in case else case.get("candidates", list(state.names))
    where = np.array([state.number[node] for node in nodes])
    satisfied, violated, cost = overhead.tally(task, where)
    if "satisfied" in case:
        assert (satisfied[0], violated[0]) == (case["satisfied"], case["violated"])
    if "fit" in case:
        assert overhead.filter(task, where).tolist() == [case["fit"]]
    if "cost" in case:
        assert dict(zip(nodes, cost.tolist(), strict=True)) == case["cost"]
        scores = normalised(overhead.score(task, where))
        assert dict(zip(nodes, scores.tolist(), strict=True)) == case["score"]


@pytest.mark.parametrize(
    ("here", "there", "expected"),
    [
        (("r", "a"), ("r", "a"), (1, 0, 1)),
        (("r", "a"), ("r", "b"), (1, 0, 5)),
        (("r", "a"), ("r", "c"), (0, 1, 30)),
        (("r", "a"), ("r", "d"), (0, 0, 100)),  # unknown: neither
        (("r", "a"), ("s", "a"), (0, 1, 200)),  # a known cost is not cut to 100
        (("r", "a"), ("t", "a"), (0, 0, 100)),
        (("r", "a"), ("", ""), (0, 1, 100)),  # the placed pod's node has no label
        (("", ""), ("", "a"), (0, 0, 100)),
    ],
)
def test_one_call(here: tuple[str, str], there: tuple[str, str], expected: tuple[int, int, int]) -> None:
    known = {("a", "b"): 5, ("a", "c"): 30, ("r", "s"): 200}
    assert judge(here, there, known, limit=10) == expected


def test_of_a_region_and_a_zone_of_one_name_the_zone_counts() -> None:
    instance = instance_of(
        place("n1", "x/x"),
        place("n2", "y/x2"),
        app_group(workloads={"a": [call("b", cost=50)], "b": []}),
        network_topology(weights(region=costs(("x", "y", 40)), zone=costs(("x", "y", 60)))),
        member("b-0", "b", node="n2"),
        member("a-0", "a"),
    )
    state = ClusterState(instance, seed=0)
    counts = Overhead(state).tally(state.tasks[0], np.array([0, 1]))
    assert [each.tolist() for each in counts] == [[0, 1], [1, 0], [60, 0]]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [([0.0, 0.0], [0.0, 0.0]), ([7.0, 7.0], [100.0, 100.0]), ([0.0, 1.0, 5.0, 20.0], [100.0, 95.0, 75.0, 0.0])],
)
def test_normalising(raw: list[float], expected: list[float]) -> None:
    assert normalised(np.array(raw)).tolist() == expected


def test_a_majority_may_outvote_a_callee_that_is_too_far() -> None:
    """Two callees near n1, one in the other region: 2 satisfied, 1 violated. The pod goes there, and breaks C8."""
    instance = instance_of(
        place("n1", "r/a"),
        app_group(workloads={"a": [call("b", cost=5)], "b": []}),
        place("far", "s/b"),
        network_topology(weights(region=costs(("r", "s", 50), ("s", "r", 50)))),
        member("b-0", "b", node="n1", cpu=1),
        member("b-1", "b", node="n1", cpu=1),
        member("b-2", "b", node="far", cpu=1),
        member("a-0", "a", cpu=1),
    )
    placement = run(instance, "network-overhead")
    assert [binding.node for binding in placement.bindings] == ["n1"]
    assert [violation.rule for violation in verify(instance, placement)] == ["C8"]


def test_a_pod_of_the_group_on_a_node_that_is_gone_keeps_callers_pending() -> None:
    instance = instance_of(
        place("n1", "r/a"),
        app_group(workloads={"a": [call("b")], "b": []}),
        network_topology(weights(region=costs(("r", "s", 50)))),
        member("b-0", "b", node="gone"),
        member("a-0", "a"),
        member("b-1", "b"),
    )
    assert [binding.pod.name for binding in run(instance, "network-overhead").bindings] == ["b-1"]


# ---------------------------------------------------------------------------------------------------------- the order


def key(group: str, selector: str, priority: int = 0, at: float = 0) -> QueuedPod:
    index = plugin_cases()["topologicalsort-less"]["index"]
    return QueuedPod(Key("default", group), index[selector], (-priority, at))


@pytest.mark.parametrize("case", plugin_cases()["topologicalsort-less"]["cases"], ids=str)
def test_less(case: Mapping[str, Any]) -> None:
    assert (key(*case["a"]) < key(*case["b"])) == case["less"]


def test_less_is_no_order() -> None:
    """One place each: both are before the other. Priority counts outside the group only: A < B < Z < A."""
    assert key("ob", "P2") < key("ob", "P2")
    a, b, z = key("ob", "P1", 0), key("ob", "P2", 100), key("other", "P1", 50)
    assert a < b < z < a


@pytest.mark.parametrize("algorithm", [name for name in TABLE if "Kahn" in name])
def test_places_are_those_of_the_table(algorithm: str) -> None:
    calls = tuple(Dependency(origin, to) for origin, called in BOUTIQUE.items() for to in called)
    found = places(AppGroup(Key("default", "ob"), tuple(WORKLOADS), calls), algorithm)
    assert " ".join(sorted(found, key=found.__getitem__)) == TABLE[algorithm]


def test_without_dependency_no_place_and_in_a_circle_that_of_the_object() -> None:
    loose = AppGroup(Key("default", "x"), ("c", "a", "b"), (Dependency("a", "b"),))
    assert places(loose, "KahnSort") == {"a": 1, "b": 2}
    circle = AppGroup(Key("default", "x"), ("z", "y", "x"), (Dependency("z", "y"), Dependency("y", "z")))
    assert places(circle, "TarjanSort") == {"z": 1, "y": 2, "x": 3}


def seen(instance: Instance, algorithm: str) -> int:
    """How many of the calls have their callee placed before their caller: those that the plug-in looks at."""
    profile = {
        "plugins": {
            "multiPoint": {"enabled": [{"name": "NetworkOverhead", "weight": 5}]},
            "queueSort": {"enabled": [{"name": "TopologicalSort"}], "disabled": [{"name": "*"}]},
        },
        "pluginConfig": [{"name": "TopologicalSort", "args": {"topologySortingAlgorithm": algorithm}}],
    }
    order = [binding.pod.name for binding in run(instance, "network-overhead", arguments=profile).bindings]
    assert sorted(order) == sorted(WORKLOADS)
    return sum(order.index(to) < order.index(origin) for origin, called in BOUTIQUE.items() for to in called)


@pytest.mark.parametrize(
    ("algorithm", "count"),
    [("KahnSort", 0), ("TarjanSort", 0), ("AlternateKahn", 3), ("ReverseKahn", 15), ("ReverseTarjan", 15)],
)
def test_how_many_calls_the_plugin_sees(algorithm: str, count: int) -> None:
    """Of 15. AlternateKahn: P1 P11 P10 P2 ... lets P2 see P11, P8 see P2 and P3, and nobody else anybody."""
    zones = [f"{region}/{region}{zone}" for region in "rs" for zone in "ab"]
    calls = {who: [call(to, cost=100) for to in BOUTIQUE.get(who, ())] for who in WORKLOADS}
    instance = instance_of(
        *(place(f"n{number}", area) for number, area in enumerate(zones)),
        app_group(workloads=calls),
        network_topology(weights(region=links({a: {b: 20} for a, b in permutations("rs", 2)}))),
        *(member(who, who, cpu=1) for who in WORKLOADS),
    )
    assert seen(instance, algorithm) == count


def boutique(**spec: Any) -> Document:
    return app_group(workloads={who: BOUTIQUE.get(who, ()) for who in WORKLOADS}, **spec)


def order_of(document: Document, policy: str = "network-overhead") -> list[str]:
    """Workloads in the order in which their pods, one of each, are tried; all fit on the one node."""
    instance = instance_of(place("n1"), document, *(member(who, who, cpu=0.1) for who in WORKLOADS))
    return [binding.pod.name for binding in run(instance, policy).bindings]


def test_the_order_is_what_the_name_says_else_what_is_stored_else_what_the_app_group_asks_for() -> None:
    asked = boutique(topologySortingAlgorithm="ReverseKahn")
    assert " ".join(order_of(asked)) == TABLE["ReverseKahn"]
    assert " ".join(order_of(boutique(topologySortingAlgorithm="Bogo"))) == TABLE["KahnSort"]
    # As the controller stores it where names are not selectors: by the bytes of the selector.
    stored = [{"workload": ref(who), "index": place} for place, who in enumerate(sorted(WORKLOADS), 1)]
    assert order_of({**asked, "status": {"topologyOrder": stored}}) == sorted(WORKLOADS)
    for name in ("KahnSort", "AlternateKahn", "ReverseKahn"):
        found = order_of({**asked, "status": {"topologyOrder": stored}}, f"network-overhead:{name}")
        assert " ".join(found) == TABLE[name]


def test_every_sort_has_a_name() -> None:
    assert set(SORTED) == {f"network-overhead:{name}" for name in TABLE}
    with pytest.raises(UsageError, match="policy: found network-overhead:Bogo, expected one of as-is"):
        run(instance_of(place("n1")), "network-overhead:Bogo")


def test_an_unknown_sort_is_refused() -> None:
    instance = instance_of(place("n1"), member("a", "a"))
    profile = {
        "plugins": {"queueSort": {"enabled": [{"name": "TopologicalSort"}], "disabled": [{"name": "*"}]}},
        "pluginConfig": [{"name": "TopologicalSort", "args": {"topologySortingAlgorithm": "BubbleSort"}}],
    }
    with pytest.raises(BadInstance, match="topologySortingAlgorithm: found 'BubbleSort', expected one of KahnSort"):
        run(instance, "network-overhead", arguments=profile)
