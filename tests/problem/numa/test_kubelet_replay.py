"""The replay of the kubelet against cases worked out by hand, and against a second reading of the rule (C10)."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placer.base.quantity import Resources
from placer.problem.numa import NumaContainer, NumaDemand, NumaNode, Qos, Stage, TopologyManager
from tests.examples import examples
from tests.numa_cases import CASES, SMALL, TWO, burstable
from tests.numa_drawn import demands, nodes
from tests.numa_naive import replayed
from tests.numa_words import demand, left, numa, replay, zones_said


@pytest.mark.parametrize("case", CASES)
def test_worked_out_by_hand(case: str) -> None:
    node, pods, expected = CASES[case]
    assert replay(node, *pods) == expected


@pytest.mark.parametrize("case", CASES)
def test_the_second_reading_agrees(case: str) -> None:
    node, pods, expected = CASES[case]
    assert " ".join("-" if zones is None else zones_said(zones) for zones in replayed(node, pods)) == expected


def test_the_cases_cover_every_policy_scope_class_and_kind_of_resource() -> None:
    seen: Counter[object] = Counter()
    for node, pods, expected in CASES.values():
        seen.update([(node.policy, node.scope), *((node.policy, pod.qos) for pod in pods)])
        seen.update((node.scope, each.stage) for pod in pods for each in pod.containers)
        seen.update((node.policy, name) for pod in pods for each in pod.containers for name in each.requests)
        seen.update((node.policy, "refused") for word in expected.split() if word == "-")
    strict = ("single-numa-node", "restricted")
    for policy in strict:
        for what in (Qos.GUARANTEED, Qos.BURSTABLE, "pod", "container", "cpu", "memory", "nvidia.com/gpu", "refused"):
            assert seen[policy, what] >= 2, (policy, what)
    for scope in ("pod", "container"):
        assert all(seen[scope, stage] >= 2 for stage in Stage)
    assert len(CASES) >= 60


def test_what_is_left() -> None:
    """6 cores and 10 memory over two zones: zone 0 gives 4 and 8, zone 1 the rest; the gpu comes from zone 0."""
    node = numa("restricted", "container", *TWO)
    assert left(node, demand("6 cpu 10 memory"), burstable("1 gpu")) == ["1 gpu", "2 cpu 6 memory 2 gpu"]
    assert left(node, demand("init: 6 cpu 10 memory")) == left(node) == ["4 cpu 8 memory 2 gpu"] * 2
    assert left(numa("single", "container", "0.5 of 1 cpu")) == ["0.5 cpu"]


REFUSALS = {
    "no zone has it": (
        numa("single", "container", "4 cpu 8 memory", "1 of 4 cpu 8 memory"),
        [SMALL, demand("1 cpu 1 memory", "4 cpu 1 memory")],
        "container c1 asks for cpu 4, memory 1 in one zone: node-0 has cpu 2, memory 6; node-1 has cpu 1, memory 8",
    ),
    "an init container": (
        numa("single", "container", "4 cpu 8 memory"),
        [demand("init: 5 cpu 1 memory", "1 cpu 1 memory")],
        "init container c0 asks for cpu 5, memory 1 in one zone: node-0 has cpu 4, memory 8",
    ),
    "a sidecar": (
        numa("single", "container", "4 cpu 8 memory"),
        [demand("sidecar: 5 cpu 1 memory", "1 cpu 1 memory")],
        "sidecar c0 asks for cpu 5, memory 1 in one zone: node-0 has cpu 4, memory 8",
    ),
    "the pod": (
        numa("single", "pod", "4 cpu 8 memory"),
        [demand("3 cpu 1 memory", "3 cpu 1 memory")],
        "the pod asks for cpu 6, memory 2 in one zone: node-0 has cpu 4, memory 8",
    ),
    "where an init container was": (
        numa("single", "container", "3 cpu 8 memory", "4 cpu 8 memory"),
        [demand("init: 1 cpu 1 memory", "4 cpu 1 memory")],
        "container c1 asks for cpu 4, memory 1 in one zone with node-0, which the "
        "kubelet reuses from an earlier init container: node-0 has cpu 3, memory 8; node-1 has cpu 4, memory 8",
    ),
    "widths differ": (
        numa("restricted", "pod", *TWO),
        [demand("6 cpu 8 memory")],
        "the pod asks for cpu 6, memory 8, which takes different numbers of zones: cpu 2, memory 1",
    ),
    "more than there is": (
        numa("restricted", "container", *TWO),
        [demand("9 cpu 99 memory")],
        "container c0 asks for cpu 9, memory 99, of cpu, memory more than all zones have together",
    ),
    "no set of zones": (
        numa("restricted", "container", "1 of 4 gpu", "4 gpu"),
        [burstable("6 gpu")],
        "container c0 asks for nvidia.com/gpu 6 in 2 zones: node-0 has nvidia.com/gpu 1; node-1 has nvidia.com/gpu 4",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_a_refusal_says_who_asks_for_what_and_what_the_zones_have(case: str) -> None:
    node, (*before, last), message = REFUSALS[case]
    manager = TopologyManager(node)
    assert [manager.admit(pod).refusal for pod in before] == [""] * len(before)
    assert manager.admit(last) == ((), message)


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


def test_names_of_containers_do_not_tell_pods_apart() -> None:
    requests = Resources({"cpu": 1000})
    one, other = (NumaDemand(Qos.GUARANTEED, (NumaContainer(name, Stage.APP, requests),)) for name in "ab")
    assert one == other
    assert hash(one) == hash(other)


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


def test_some_of_what_is_tried_is_refused_and_some_takes_several_zones() -> None:
    """The property above is worth something only where both happen often."""
    seen: Counter[str] = Counter()

    @settings(max_examples=300, deadline=None, derandomize=True, database=None)
    @given(nodes(), st.lists(demands(), min_size=3, max_size=5))
    def count(node: NumaNode, pods: list[NumaDemand]) -> None:
        for zones in replayed(node, pods):
            seen["refused" if zones is None else "several" if len(zones) > 1 else "one" if zones else "any"] += 1

    count()
    assert min(seen["refused"], seen["one"]) > 200, seen
    assert seen["several"] > 40, seen
