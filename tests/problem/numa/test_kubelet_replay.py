"""The replay of the kubelet against cases worked out by hand, and against a second reading of the rule (C10)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placer.problem.numa import NumaDemand, NumaNode, TopologyManager
from tests.examples import examples
from tests.numa_cases import CASES, burstable
from tests.numa_drawn import demands, nodes
from tests.numa_naive import replayed
from tests.numa_words import demand, numa, replay, zones_said


@pytest.mark.parametrize("case", CASES)
def test_worked_out_by_hand(case: str) -> None:
    node, pods, expected = CASES[case]
    assert replay(node, *pods) == expected


@pytest.mark.parametrize("case", CASES)
def test_the_second_reading_agrees(case: str) -> None:
    node, pods, expected = CASES[case]
    assert " ".join("-" if zones is None else zones_said(zones) for zones in replayed(node, pods)) == expected


def test_a_pod_that_runs_all_the_same_takes_what_there_is() -> None:
    """3 of 4 cores are taken from the first zone; of 5 more there are 1 and 4, from whatever zone."""
    node = numa("single", "container", "4 cpu 8 memory", "4 cpu 8 memory")
    manager = TopologyManager(node)
    manager.admit(demand("3 cpu 1 memory"))
    assert manager.admit(demand("5 cpu 1 memory")).refusal
    manager.force(demand("6 cpu 1 memory"))
    assert [dict(zone.available) for zone in manager.after().zones] == [{"memory": 6}, {"memory": 8}]


@pytest.mark.parametrize("policy", ["single", "restricted"])
def test_amounts_beyond_those_of_kubelets_are_refused(policy: str) -> None:
    node = numa(policy, "container", f"{2**62} gpu", f"{2**62} gpu")
    assert replay(node, burstable(f"{2**62 - 1} gpu")) == "0"
    assert replay(node, burstable(f"{2**62} gpu")) == "-"


# -------------------------------------------------------------------------------------- against the second reading

ALL_POLICIES = ("none", "best-effort", "restricted", "restricted", "single-numa-node", "single-numa-node")


@examples(600, derandomize=True)
@given(nodes(9, ALL_POLICIES), st.lists(demands(), min_size=1, max_size=6))
def test_the_replay_is_what_the_words_say(node: NumaNode, pods: list[NumaDemand]) -> None:
    """Zone by zone, pod after pod, over all policies and up to nine zones; one that is refused takes nothing."""
    manager, found = TopologyManager(node), list[set[str] | None]()
    for pod in pods:
        before = manager.after()
        zones, refusal = manager.admit(pod)
        assert not refusal or manager.after() == before
        found.append(None if refusal else set(zones))
    assert found == replayed(node, pods)
