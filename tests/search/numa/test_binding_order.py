"""A whole placement is put into orders that kubelets admit, with the zones they will choose (C10)."""

from __future__ import annotations

import importlib.resources
import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placer.answers.document import placement_document
from placer.answers.solving import solve
from placer.arrays.dense_builder import make_dense
from placer.base.errors import BadInstance
from placer.kube.manifests import dump
from placer.problem import Key, PodState, Policy
from placer.problem.numa import NumaDemand, NumaNode
from placer.problem.placement import Binding, Placement
from placer.problem.reading import read_placement
from placer.rules import verify
from placer.search.greedy.multi_start import greedy
from placer.search.numa.binding_order import aligned, misstated
from tests.examples import examples
from tests.judge import placement
from tests.numa_drawn import demands, nodes
from tests.numa_naive import some_order
from tests.numa_words import demand, numa
from tests.tiny_numa import tiny_numa
from tests.world import SPACE, World

FOUR_AND_TWO = numa("single", "container", "4 cpu 8 memory", "2 cpu 8 memory")
TWO_AND_FOUR = numa("single", "container", "2 cpu 8 memory", "4 cpu 8 memory")
TWO, FOUR = (demand(f"{cores} cpu 1 memory") for cores in (2, 4))


def told(world: World, text: str) -> tuple[list[str], tuple[str, ...]]:
    """Bindings after alignment as ``pod@node:zones``, and the nodes to be bound one by one."""
    found = aligned(world.instance(), placement(text))
    lines = [f"{each.pod.name}@{each.node}:{''.join(each.numa_zones).replace('node-', '')}" for each in found.bindings]
    return lines, found.one_by_one


def _world(**zones: NumaNode) -> World:
    world = World()
    for name, node in zones.items():
        world.node(name, 0, numa=node)
    return world


def test_a_node_that_needs_one_order_is_named() -> None:
    """Of the same second: only 4 before 2 works, so the kubelet must get them one by one."""
    world = _world(n1=FOUR_AND_TWO)
    world.pod("a", gpu=0, numa=TWO)
    world.pod("b", gpu=0, numa=FOUR)
    assert told(world, "a@n1 b@n1") == (["b@n1:0", "a@n1:1"], ("n1",))


def test_creation_order_is_enough_where_it_works() -> None:
    world = _world(n1=FOUR_AND_TWO)
    world.pod("a", gpu=0, numa=TWO, created=9)
    world.pod("b", gpu=0, numa=FOUR, created=8)
    assert told(world, "a@n1 b@n1") == (["b@n1:0", "a@n1:1"], ())


def test_only_places_of_the_same_node_are_exchanged() -> None:
    """a and b change places; c, which has no zones, and d on the other node keep theirs."""
    world = _world(n1=FOUR_AND_TWO, n2=FOUR_AND_TWO)
    world.pod("a", gpu=0, numa=TWO)
    world.pod("b", gpu=0, numa=FOUR)
    world.pod("c", gpu=0, numa=demand("1 cpu 1 memory", qos="Burstable"))
    world.pod("d", gpu=0, numa=FOUR)
    assert told(world, "c@n1 a@n1 d@n2 b@n1") == (["c@n1:", "b@n1:0", "d@n2:0", "a@n1:1"], ("n1",))


def test_what_no_order_admits_stays_as_it_is() -> None:
    """Verify names the pod that is refused; it has no zones."""
    world = _world(n1=FOUR_AND_TWO)
    world.pod("a", gpu=0, numa=demand("2 cpu 1 memory", "4 cpu 1 memory"))
    world.pod("b", gpu=0, numa=TWO)
    assert told(world, "b@n1 a@n1") == (["b@n1:0", "a@n1:"], ())


def test_where_the_rule_does_not_apply_nothing_is_said() -> None:
    for world in (_world(n1=numa("best-effort", "pod", "4 cpu 8 memory")), World(Policy(rules_off=frozenset({"C10"})))):
        world.node("n2", 0, numa=FOUR_AND_TWO if world.policy.rules_off else None)
        world.pod("a", gpu=0, numa=TWO)
        given_in = placement("a@n1" if "n1" in world.node_list else "a@n2")
        assert aligned(world.instance(), given_in) == given_in


def test_bindings_that_cannot_be_carried_out_are_left_alone() -> None:
    """A pod that runs, one that is not there, a second binding, and a node that is not there."""
    world = _world(n1=FOUR_AND_TWO)
    world.pod("a", gpu=0, numa=TWO)
    world.pod("r", None, 0, numa=TWO, state=PodState.BOUND, node="n1")
    assert told(world, "r@n1 x@n1 a@n1 a@n1 a@n9")[0] == ["r@n1:", "x@n1:", "a@n1:0", "a@n1:", "a@n9:"]


def test_zones_that_somebody_named_are_corrected() -> None:
    world = _world(n1=FOUR_AND_TWO)
    world.pod("a", gpu=0, numa=TWO)
    wrong = Placement((Binding(Key(SPACE, "a"), "n1", ("node-1",)),), ("n1", "n7"))
    assert aligned(world.instance(), wrong) == Placement((Binding(Key(SPACE, "a"), "n1", ("node-0",)),))


def test_the_document_tells_zones_and_nodes_to_be_bound_one_by_one(tmp_path: Path) -> None:
    """... only where the rule applies: c is on a node without zones. What is read back is what was written."""
    world = _world(n1=FOUR_AND_TWO)
    world.node("n2", 4)
    world.pod("a", gpu=0, numa=TWO)
    world.pod("b", gpu=0, numa=FOUR)
    world.pod("c", gpu=4)
    result = solve(world.instance(), method="greedy")
    said = placement_document(result).as_dict()
    schema = (importlib.resources.files("placer") / "schemas" / "placement.schema.json").read_text()
    jsonschema.validate(said, json.loads(schema))
    assert [(each["pod"], each["node"], each.get("numaZones")) for each in said["bindings"]] == [
        ("b", "n1", ["node-0"]),
        ("a", "n1", ["node-1"]),
        ("c", "n2", None),
    ]
    assert said["oneByOne"] == ["n1"]
    dump(said, tmp_path / "placement.json")
    assert read_placement(tmp_path / "placement.json") == result.placement


def test_names_that_are_none_are_a_fault_of_the_placement(tmp_path: Path) -> None:
    """Both at once."""
    written = {
        "apiVersion": "placer.dev/v1alpha1",
        "kind": "Placement",
        "bindings": [{"namespace": "default", "pod": "a", "node": "n1", "numaZones": [0]}],
        "oneByOne": "n1",
    }
    dump(written, tmp_path / "placement.json")
    with pytest.raises(BadInstance) as raised:
        read_placement(tmp_path / "placement.json")
    assert [(fault.field, fault.found, fault.expected) for fault in raised.value.faults] == [
        ("bindings[0].numaZones", "[0]", "a list of names"),
        ("oneByOne", "'n1'", "a list of names"),
    ]


@examples(150, derandomize=True)
@given(nodes(3), st.lists(demands(), min_size=1, max_size=4))
def test_verify_is_content_exactly_where_some_order_works(node: NumaNode, asked: list[NumaDemand]) -> None:
    world = World(Policy())
    world.node("n1", 0, numa=node)
    for number, each in enumerate(asked):
        world.pod(f"p{number}", gpu=0, numa=each)
    instance = world.instance()
    found = aligned(instance, placement(" ".join(f"p{number}@n1" for number in range(len(asked)))))
    assert {binding.pod for binding in found.bindings} == {pod.key for pod in instance.pending}
    refused = [violation for violation in verify(instance, found) if violation.rule == "C10"]
    assert (refused == []) == (some_order(node, asked) is not None)


def test_what_a_placement_says_wrongly_of_kubelets_is_found() -> None:
    """By age the pod of 2 cores takes the zone of 4, and that of 4 is refused."""
    world = _world(n1=FOUR_AND_TWO)
    world.pod("a", gpu=0, numa=TWO, created=1.0)
    world.pod("b", gpu=0, numa=FOUR, created=2.0)
    instance = world.instance()
    right = aligned(instance, placement("b@n1 a@n1"))
    assert right.one_by_one == ("n1",)
    assert misstated(instance, right) == []
    first, second = right.bindings
    swapped = replace(first, numa_zones=second.numa_zones), replace(second, numa_zones=first.numa_zones)
    found = misstated(instance, Placement(swapped))
    assert [(each.code, each.object) for each in found] == [
        ("BoundOneByOne", "Node n1"),
        ("NumaZonesDiffer", "Pod default/a"),
        ("NumaZonesDiffer", "Pod default/b"),
    ]
    assert [each.code for each in misstated(instance, placement("b@n1 a@n1"))] == ["BoundOneByOne"], "nothing is said"


def test_what_is_aligned_says_nothing_wrong() -> None:
    told = 0
    for seed in range(120):
        instance = tiny_numa(seed).instance
        found = aligned(instance, make_dense(instance).placement(greedy(make_dense(instance))))
        assert misstated(instance, found) == [], seed
        told += any(binding.numa_zones for binding in found.bindings)
    assert told >= 40
