"""The packed kubelet of the methods against the plain one of verify, and against cases worked out by hand (C10)."""

from __future__ import annotations

import pickle
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placer.arrays.packed_kubelet import PackedKubelet
from placer.problem.numa import NumaDemand, NumaNode, TopologyManager
from tests.examples import examples
from tests.numa_cases import CASES, TWO
from tests.numa_drawn import demands, nodes
from tests.numa_words import demand, numa, zones_said

STRICT = ("unknown", *["restricted"] * 4, *["single-numa-node"] * 3)


def answers(node: NumaNode, pods: list[NumaDemand]) -> list[tuple[tuple[str, ...] | None, list[list[int]]]]:
    """Zones of each pod, None where it is refused, and what all zones have left then."""
    kubelet = PackedKubelet(node)
    state, found = kubelet.start(node), []
    for pod in pods:
        answer = kubelet.admit(state, kubelet.units(pod))
        state = state if answer is None else answer[0]
        found.append((None if answer is None else kubelet.names(answer[1]), kubelet.amounts(state)))
    return found


@pytest.mark.parametrize("case", [case for case, (node, _, _) in CASES.items() if node.strict])
def test_worked_out_by_hand(case: str) -> None:
    node, pods, expected = CASES[case]
    assert " ".join("-" if zones is None else zones_said(zones) for zones, _ in answers(node, pods)) == expected


@examples(750, derandomize=True)
@given(nodes(10, STRICT), st.lists(demands(), min_size=1, max_size=8))
def test_packed_and_plain_choose_the_same_zones_and_leave_the_same_room(node: NumaNode, pods: list[NumaDemand]) -> None:
    manager, expected = TopologyManager(node), []
    for pod in pods:
        zones, refusal = manager.admit(pod)
        left = [[room[name] for name in manager.resources] for room in manager.left]
        expected.append((None if refusal else zones, left))
    assert answers(node, pods) == expected


def test_much_of_what_is_drawn_is_refused_and_much_takes_several_zones() -> None:
    """The property above is worth something only where all of it happens often."""
    seen: Counter[str] = Counter()

    @settings(max_examples=300, deadline=None, derandomize=True, database=None)
    @given(nodes(10, STRICT), st.lists(demands(), min_size=3, max_size=8))
    def count(node: NumaNode, pods: list[NumaDemand]) -> None:
        for zones, _ in answers(node, pods):
            seen["refused" if zones is None else "several" if len(zones) > 1 else "one" if zones else "any"] += 1
        seen["more than eight zones"] += len(node.zones) > 8

    count()
    assert min(seen["refused"], seen["one"]) > 200, seen
    assert seen["several"] > 40, seen
    assert seen["more than eight zones"] > 10, seen


def test_what_is_remembered_of_pods_stays_behind() -> None:
    """A kubelet travels to worker processes with every step; it makes units anew there, and the same ones."""
    node, pod = numa("single", "pod", *TWO), demand("2 cpu 1 memory")
    kubelet = PackedKubelet(node)
    units, empty = kubelet.units(pod), len(pickle.dumps(PackedKubelet(node)))
    sent = pickle.dumps(kubelet)
    assert len(sent) == empty
    assert pickle.loads(sent).units(pod) == units
