"""The arrays say what the instance says: eligibility, amounts, the tree, the values, and the way back to names."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from placer.arrays.amounts import SAFE, Scale
from placer.arrays.dense_builder import make_dense
from placer.arrays.eligibility import Eligibility
from placer.base.quantity import Resources
from placer.problem import (
    Constraints,
    Instance,
    Node,
    Pod,
    PodState,
    Requirement,
    Taint,
    Term,
    Toleration,
)
from placer.problem.nodes import TOPOLOGY_POLICY, NodeMark
from placer.search.greedy.multi_start import greedy
from tests.tiny import tiny
from tests.world import GPU, World, hard, port

SEEDS = range(150)

names = st.sampled_from(["a", "b", "c"])
values = st.sampled_from(["", "1", "2", "10", "x"])
taints = st.builds(Taint, names, values, st.sampled_from(["NoSchedule", "NoExecute"]))
tolerations = st.builds(
    Toleration,
    st.sampled_from(["", "a", "b", "node.kubernetes.io/unschedulable"]),
    st.sampled_from(["Exists", "Equal"]),
    values,
    st.sampled_from(["", "NoSchedule", "NoExecute"]),
)
operators = st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"])
requirements = st.builds(Requirement, names, operators, st.lists(values, max_size=2).map(tuple))
fields = st.builds(
    Requirement,
    st.sampled_from(["metadata.name", "metadata.namespace"]),
    st.sampled_from(["In", "NotIn"]),
    st.lists(st.sampled_from(["n0", "n1", "n2"]), min_size=1, max_size=2).map(tuple),
)
terms = st.builds(Term, st.lists(requirements, max_size=2).map(tuple), st.lists(fields, max_size=1).map(tuple))
constraints = st.builds(
    Constraints,
    st.lists(tolerations, max_size=2).map(tuple),
    st.lists(st.tuples(names, values), max_size=1).map(tuple),
    st.lists(st.lists(terms, max_size=2).map(tuple), max_size=2).map(tuple),
)


@st.composite
def some_nodes(draw: st.DrawFn) -> list[Node]:
    count = draw(st.integers(1, 4))
    return [
        Node(
            f"n{index}",
            Resources({}),
            draw(st.dictionaries(names, values, max_size=2)),
            tuple(draw(st.lists(taints, max_size=2))),
            draw(st.booleans()),
            draw(st.integers(0, 4)) > 0,
        )
        for index in range(count)
    ]


marks = st.sampled_from(
    [
        NodeMark("not in the group", Term((Requirement("a", "In", ("x", "y")),))),
        NodeMark("in the group", Term((Requirement("a", "NotIn", ("x",)),))),
        NodeMark("of another policy", Term((), (Requirement(TOPOLOGY_POLICY, "In", ("restricted",)),))),
    ]
)


@given(some_nodes(), st.lists(marks, max_size=2), st.sets(st.integers(0, 5)))
def test_rows_of_marks_say_what_marks_say(nodes: list[Node], asked: list[NodeMark], strict: set[int]) -> None:
    told = [replace(node, topology_policy="restricted") if at in strict else node for at, node in enumerate(nodes)]
    each = Constraints(tolerations=(Toleration(operator="Exists"),), marks=tuple(sorted(asked)))
    assert Eligibility(told).row(each).tolist() == [each.admits(node) for node in told]


@given(some_nodes(), st.lists(constraints, min_size=1, max_size=4))
def test_rows_of_eligibility_say_what_constraints_say(nodes: list[Node], asked: list[Constraints]) -> None:
    eligibility = Eligibility(nodes)
    for each in asked:
        assert eligibility.row(each).tolist() == [each.admits(node) for node in nodes]


def some_pods(amounts: list[dict[str, int]]) -> list[Pod]:
    return [
        Pod("default", f"p{index}", PodState.PENDING, Resources(each), Constraints())
        for index, each in enumerate(amounts)
    ]


amounts = st.dictionaries(st.sampled_from(["cpu", "memory", GPU]), st.integers(0, 40), max_size=3)
rooms = st.dictionaries(st.sampled_from(["cpu", "memory", GPU, "other"]), st.integers(-5, 60), max_size=4)


@given(st.lists(amounts, min_size=1, max_size=5), rooms, st.integers(1, 10**9), st.data())
def test_scaling_loses_nothing(
    asked: list[dict[str, int]], room: dict[str, int], unit: int, data: st.DataObject
) -> None:
    """Any choice of pods fits the scaled room if and only if it fits the room."""
    pods = some_pods([{name: amount * unit for name, amount in each.items()} for each in asked])
    free = Resources({name: amount * unit + amount % 7 for name, amount in room.items()})
    scale = Scale([pod.requests for pod in pods], [free])
    chosen = data.draw(st.lists(st.sampled_from(pods), unique=True))
    total = sum((scale.request(pod.requests) for pod in chosen), np.zeros(len(scale.resources), dtype=np.int64))
    by_name: Counter[str] = Counter()
    for pod in chosen:
        by_name.update(dict(pod.requests))
    fits = all(by_name[name] <= max(0, free[name]) for name in scale.resources)
    assert bool((total <= scale.room([free])[0]).all()) == fits


def test_amounts_beyond_sixty_bits_are_rounded_to_the_safe_side() -> None:
    pods = some_pods([{"memory": 2**61 + 1}, {"memory": 2**61 + 3}])
    free = Resources({"memory": 2**62})
    scale = Scale([pod.requests for pod in pods], [free])
    (divisor,) = scale.divisors
    assert divisor > 1
    one, other = (int(scale.request(pod.requests)[0]) for pod in pods)
    room = int(scale.room([free])[0, 0])
    assert one * divisor >= 2**61 + 1
    assert other * divisor >= 2**61 + 3
    assert room * divisor <= 2**62
    assert one + other > room  # 2^62 + 4 does not fit into 2^62
    assert max(one + other, room) <= 2 * SAFE


def instances(seeds: range = SEEDS) -> Iterator[Instance]:
    return (tiny(seed).instance for seed in seeds)


def test_names_and_indices_lead_back_to_each_other() -> None:
    for instance in instances():
        dense = make_dense(instance)
        solution = greedy(dense)
        placement = dense.placement(solution)
        assert dense.solution(placement) == solution
        assert len(placement.node_of) == sum(solution.values())


def test_it_survives_pickling() -> None:
    for instance in instances(range(20)):
        dense = make_dense(instance)
        copy = pickle.loads(pickle.dumps(dense))
        solution = greedy(dense)
        assert greedy(copy) == solution
        assert copy.placement(solution) == dense.placement(solution)


def test_limit_domains_are_the_highest_within_the_limit() -> None:
    world = World()
    world.nodes("a b c d e", 2)
    for name, members in (("l0", "a b"), ("l1", "c"), ("l2", "d")):
        world.hyper(name, 1, members)
    world.hyper("s0", 2, "l0 l1")
    for tier in (1, 2, 3):
        gang = world.gang(f"g{tier}", 1, topology=hard(tier))
        world.pod(f"p{tier}", gang)
    held = world.gang("held", 2, topology=hard(2))
    world.running("runs", "c", held)
    world.pod("more", held)
    dense = make_dense(world.instance())
    tops = {gang.key.name: dense.limit_domains(gang.scope) for gang in dense.groups}
    named = {
        name: found if found is None else [dense.domains.names[at] for at in found] for name, found in tops.items()
    }
    assert named == {"g1": ["l0", "l1", "l2"], "g2": ["l2", "s0"], "g3": None, "held": ["s0"]}


def test_fits_counts_host_ports() -> None:
    world = World()
    world.nodes("n0 n1", 4)
    world.running("holder", "n0", ports=[port(80)])
    gang = world.gang("g", 2)
    for name in ("p0", "p1"):
        world.pod(name, gang, ports=[port(80)])
    assert make_dense(world.instance()).fits(0).tolist() == [0, 1]
