"""The replay of the kubelet against cases worked out by hand, and against a second reading of the rule (C10)."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placer.instance.numa import Kubelet, NumaContainer, NumaDemand, NumaNode, Qos, Stage, kubelets_of
from placer.quantity import Resources
from tests.numa_cases import CASES, FOUR, SMALL, TWO, burstable
from tests.numa_drawn import demands, nodes
from tests.numa_naive import replayed
from tests.numa_words import demand, left, numa, replay


@pytest.mark.parametrize("case", CASES)
def test_worked_out_by_hand(case: str) -> None:
    node, pods, expected = CASES[case]
    assert replay(node, *pods) == expected


@pytest.mark.parametrize("case", CASES)
def test_the_second_reading_agrees(case: str) -> None:
    node, pods, expected = CASES[case]
    found = ("-" if zones is None else "".join(sorted(zones)).replace("node-", "") for zones in replayed(node, pods))
    assert " ".join(word or "any" for word in found) == expected


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
    kubelet = Kubelet(node)
    state = kubelet.start(node)
    for pod in before:
        answer = kubelet.admit(state, kubelet.units(pod))
        assert answer is not None
        state = answer[0]
        assert kubelet.refusal(state, pod) == ""
    assert kubelet.admit(state, kubelet.units(last)) is None
    assert kubelet.refusal(state, last) == message


def test_equal_nodes_share_a_kubelet_whatever_is_available() -> None:
    one, other = numa("single", "pod", *TWO), numa("single", "pod", "1 of 4 cpu 8 memory 2 gpu", TWO[1])
    found = kubelets_of(
        {"a": one, "b": other, "c": numa("single", "container", *TWO), "d": numa("single", "pod", *FOUR)}
    )
    assert found["a"] is found["b"]
    assert len({id(kubelet) for kubelet in found.values()}) == 3
    assert found["a"].start(one) != found["a"].start(other)


def test_names_of_containers_do_not_tell_pods_apart() -> None:
    requests = Resources({"cpu": 1000})
    one, other = (NumaDemand(Qos.GUARANTEED, (NumaContainer(name, Stage.APP, requests),)) for name in "ab")
    assert one == other
    assert hash(one) == hash(other)


# -------------------------------------------------------------------------------------- against the second reading

ALL_POLICIES = ("none", "best-effort", "restricted", "restricted", "single-numa-node", "single-numa-node")


@settings(max_examples=600, deadline=None, derandomize=True)
@given(nodes(9, ALL_POLICIES), st.lists(demands(), min_size=1, max_size=6))
def test_the_replay_is_what_the_words_say(node: NumaNode, pods: list[NumaDemand]) -> None:
    """Zone by zone, pod after pod, over all policies; with more than eight zones too, where sets are not listed."""
    kubelet = Kubelet(node)
    state, found = kubelet.start(node), list[set[str] | None]()
    for pod in pods:
        answer = kubelet.admit(state, kubelet.units(pod))
        assert (answer is None) == bool(kubelet.refusal(state, pod))
        state = state if answer is None else answer[0]
        found.append(None if answer is None else set(kubelet.names(answer[1])))
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
