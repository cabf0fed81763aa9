"""What is said of groups that fit alone: each claim against the rules, in the cluster as the placement leaves it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from functools import cache

import pytest

from placer.answers.reasons import reasons
from placer.answers.reasons.cause import shape_text
from placer.arrays.dense_builder import make_dense
from placer.base.quantity import format_amount
from placer.problem import Group, GroupKey, Instance, Key, Pod, PodState
from placer.problem.outcome import Outcome
from placer.problem.placement import Placement, Violation
from placer.problem.result import Reason
from placer.rules import verify
from placer.search.greedy.multi_start import greedy
from tests.solving import carried_out
from tests.tiny import Tiny, crowded, crowded_network
from tests.tiny_numa import tiny_numa

Make = Callable[[int], Tiny]
MAKES = {crowded: 80, crowded_network: 160, tiny_numa: 150}


class Case:
    """A tiny instance after the greedy, and what is said of the groups that wait."""

    def __init__(self, case: Tiny) -> None:
        self.instance = case.instance
        dense = make_dense(self.instance)
        solution = greedy(dense)
        self.placement = dense.placement(solution)
        self.after = Outcome(self.instance, self.placement).carried_out()
        self.told = reasons(self.instance, dense, solution)

    def outcompeted(self) -> list[tuple[Group, Reason]]:
        """Groups kept out by a rule with this placement."""
        first = self.instance.policy.levels[:1] == ("placed",)
        told = {key: reason for key, reason in self.told.items() if reason.code == "Outcompeted" and first}
        return [(self.after.groups[key], reason) for key, reason in told.items()]

    def broken(self, pod: Pod, node: str) -> list[Violation]:
        """What the rules about places say where one more pod goes to a node as things stand."""
        found = verify(self.after, Placement.of({pod.key: node}))
        return [each for each in found if each.rule not in ("C5", "C6")]

    def pods(self, group: Group, shape: str) -> list[Pod]:
        """Pods left of a group that ask for what a message says."""
        return [pod for key in group.pending if shape_text((pod := self.after.pods[key]).requests) == shape]


@cache
def cases(make: Make) -> tuple[Case, ...]:
    return tuple(Case(make(seed)) for seed in range(MAKES[make]))


makes = pytest.mark.parametrize("make", MAKES, ids=lambda make: make.__name__)


# ------------------------------------------------------------------------------------------------- what is carried out


@makes
def test_what_is_carried_out_is_bound(make: Make) -> None:
    """As the tests say it themselves, but for zones; and every rule says of one more pod what it says of the whole."""
    for case in cases(make):
        left = {key for key in case.after.pods if case.after.pods[key].state is PodState.PENDING}
        assert left == {pod.key for pod in case.instance.pending} - set(case.placement.node_of)
        for key, group in case.after.groups.items():
            expected = carried_out(case.instance, case.placement, key)
            assert group == expected.groups[key]
            assert all(case.after.pods[pod] == expected.pods[pod] for pod in expected.pods)
        if case.instance.policy.network_cost == "all":
            _assert_rules_alike(case, sorted(left))


def _assert_rules_alike(case: Case, left: list[Key]) -> None:
    for key in left[:3]:
        for node in case.instance.nodes:
            more = Placement((*case.placement.bindings, *Placement.of({key: node}).bindings))
            whole = verify(case.instance, more)
            one = verify(case.after, Placement.of({key: node}))
            assert Counter((each.rule, each.amount) for each in whole) == Counter(
                (each.rule, each.amount) for each in one
            )


# --------------------------------------------------------------------------------------------------------- what is said


@makes
def test_who_is_named_holds_something_new(make: Make) -> None:
    named = 0
    for case in cases(make):
        for _, reason in case.outcompeted():
            for kind, name, count in re.findall(r"(PodGroup|Pod) (\S+/\S+) \((\d+) pods?\)", reason.message):
                keys = [key for key in case.instance.groups if str(key) == f"{kind} {name}"]
                assert 1 <= int(count) <= max(_new(case.instance, case.placement, key) for key in keys), reason
                named += 1
    assert named >= (10 if make is tiny_numa else 30)


def _new(instance: Instance, placement: Placement, key: GroupKey) -> int:
    return sum(pod in placement.node_of for pod in instance.groups[key].pending)


@makes
def test_no_node_takes_what_a_node_is_said_to_lack_room_for(make: Make) -> None:
    """Every node breaks C2 or C3 with the pod; the node named lacks the least share, and as much as is said."""
    seen = 0
    text = re.compile(r"(\d+)/(\d+) nodes have room for a pod of (.*?): .*Node (\S+) comes nearest: (.*?)(; |$)")
    for case in cases(make):
        for group, reason in case.outcompeted():
            told = text.search(reason.message)
            if told is None:
                continue
            fits, nodes, shape, best, lacks, _ = told.groups()
            assert (int(fits), int(nodes)) == (0, len(case.after.nodes))
            pods = case.pods(group, shape)
            assert any(_is_nearest(case, pod, best, lacks) for pod in pods), f"{group.key}: {reason}"
            seen += 1
    assert seen >= (3 if make is tiny_numa else 20)


def _is_nearest(case: Case, pod: Pod, best: str, lacks: str) -> bool:
    shares = {}
    for node in case.after.nodes:
        rules = {each.rule for each in case.broken(pod, node)}
        if not rules & {"C2", "C3"}:
            return False  # another pod of the same requests is meant
        if "C3" not in rules:
            shares[node] = _lacking_share(case, pod, node)
    amounts = [each for each in case.broken(pod, best) if each.rule == "C2" and each.subjects == (f"Node {best}",)]
    said = dict(re.findall(r"(\S+) (\S+) free, \S+ too few", lacks))
    fair = all(f"{_over(each)} too few" in lacks for each in amounts) and len(said) == len(amounts)
    clashes = [each for each in case.broken(pod, best) if each.rule == "C2" and len(each.subjects) == 3]
    fair &= all(f"is taken by {each.subjects[2]}" in lacks for each in clashes)
    return fair and shares[best] == min(shares.values())


def _over(violation: Violation) -> str:
    told = re.match(r"Node \S+: (\S+) ", violation.message)
    assert told
    return format_amount(told[1], violation.amount)


def _lacking_share(case: Case, pod: Pod, node: str) -> float:
    held: Counter[str] = Counter()
    for other in case.after.pods.values():
        if other.node == node:
            held.update(dict(other.requests))
    free = {name: case.after.nodes[node].allocatable[name] - held[name] for name in pod.requests}
    return max(max(0, amount - free[name]) / amount for name, amount in pod.requests.items() if amount)


@makes
def test_queues_are_as_full_as_is_said(make: Make) -> None:
    """What is needed and what is taken are more than the capability, and C11 says so of every pod that is needed."""
    seen = 0
    text = re.compile(r"needs (\S+) (\S+) in Queue (\S+): capability (\S+), (\S+) of it taken")
    for case in cases(make):
        for group, reason in case.outcompeted():
            told = text.search(reason.message)
            if told is None:
                continue
            name, asked, queue, capability, taken = told.groups()
            held = sum(
                pod.requests[name]
                for pod in case.after.pods.values()
                if pod.state.on_node and queue in case.after.queue_path(pod.queue)
            )
            most = case.after.queues[queue].capability[name]
            assert (capability, taken) == (format_amount(name, most), format_amount(name, held)), reason
            every = Placement.of({key: next(iter(case.after.nodes)) for key in group.pending})
            assert any(
                each.rule == "C11" and each.subjects == (f"Queue {queue}",) for each in verify(case.after, every)
            )
            needs = {format_amount(name, most - held + over) for over in range(1, 20_000) if most - held + over >= 0}
            assert asked in needs, reason
            seen += 1
    assert seen >= (0 if make is tiny_numa else 2)


@pytest.mark.parametrize("rule", ["C8", "C9"])
def test_calls_are_as_far_or_as_much_as_is_said(rule: str) -> None:
    """The node named breaks the rule in those words, and no node with room breaks it less."""
    seen = 0
    text = re.compile(r"of the nodes with room Node (\S+) comes nearest: (.*?)(; the |; it fits once |$)")
    for case in cases(crowded_network):
        for group, reason in case.outcompeted():
            told = text.search(reason.message)
            if told is None or ("NetworkTopology" in told[2]) != (rule == "C9"):
                continue
            node, words, _ = told.groups()
            checked = [_breaks_least(case, case.after.pods[key], node, words, rule) for key in group.pending]
            assert any(checked), f"{group.key}: {reason}"
            seen += 1
    assert seen >= 3


def _breaks_least(case: Case, pod: Pod, best: str, words: str, rule: str) -> bool:
    amounts = {}
    for node in case.after.nodes:
        broken = case.broken(pod, node)
        first = {each.rule for each in broken} & ({"C2", "C3", "C10"} if rule == "C8" else {"C2", "C3", "C8", "C10"})
        if not first:
            amounts[node] = sum(each.amount for each in broken if each.rule == rule)
    said = words in [each.message for each in case.broken(pod, best)]
    return said and best in amounts and min(amounts.values()) == amounts[best] > 0


@makes
def test_domains_have_the_room_that_is_said(make: Make) -> None:
    """Of one shape of pods: no domain within the limit has room for more, and the one named for so many."""
    seen = 0
    text = re.compile(
        r"needs (\d+) pods? \((?:of \d+, )?([^)]*?)(?: each)?\) in one HyperNode of tier <= (\d+); "
        r"the roomiest \((\S+), tier \d+\) has room for (\d+)"
    )
    for case in cases(make):
        for group, reason in case.outcompeted():
            told = text.search(reason.message)
            if told is None or " x " in told[2]:
                continue
            pods, tree = case.pods(group, told[2]), case.after.topology
            if len({pod.constraints for pod in pods}) != 1 or group.sub_groups:
                continue
            rooms: Counter[str] = Counter()
            for node in case.after.nodes:
                room = _room(case, pods, node)
                rooms.update({name: room for name in tree.path(node) if tree.tier(name) <= int(told[3])})
            assert rooms[told[4]] == max(rooms.values()) == int(told[5]) < int(told[1]), reason
            seen += 1
    assert seen >= (2 if make is crowded else 0)


def test_kubelets_admit_and_refuse_as_is_said() -> None:
    """So many nodes with room admit the pod, and the kubelet of the one named refuses it in those words."""
    seen = 0
    text = re.compile(
        r"(\d+)/(\d+) nodes with room for Pod (\S+) admit it; Node (\S+) comes nearest: (.*?)(; the |; it fits once |$)"
    )
    for case in cases(tiny_numa):
        for reason in case.told.values():
            told = text.search(reason.message)
            if told is None:
                continue
            world = case.after if reason.code == "Outcompeted" else case.instance
            key = Key(*told[3].split("/"))
            broken = {node: verify(world, Placement.of({key: node})) for node in world.nodes}
            rules = {node: {each.rule for each in those} for node, those in broken.items()}
            room = [node for node in world.nodes if not rules[node] & {"C2", "C3"}]
            admitting = [node for node in room if "C10" not in rules[node]]
            assert (int(told[1]), int(told[2])) == (len(admitting), len(room)), reason
            assert any(each.message.endswith(told[5]) for each in broken[told[4]] if each.rule == "C10"), reason
            seen += 1
    assert seen >= 5


def _room(case: Case, pods: list[Pod], node: str) -> int:
    """How many of some equal pods C2 and C3 allow on a node."""
    for count in range(1, len(pods) + 1):
        placement = Placement.of({pod.key: node for pod in pods[:count]})
        if any(each.rule in ("C2", "C3") for each in verify(case.after, placement)):
            return count - 1
    return len(pods)


@makes
def test_most_groups_that_fit_alone_are_told_the_rule(make: Make) -> None:
    """NotDecided stays rare, and every message names numbers."""
    told: Counter[str] = Counter()
    for case in cases(make):
        for key, reason in case.told.items():
            told[reason.code] += 1
            if reason.code == "Outcompeted" and "the policy puts" not in reason.message:
                assert reason.message.startswith("fits alone; with this placement: "), f"{key}: {reason}"
                assert re.search(r"\d", reason.message.removeprefix("fits alone")), f"{key}: {reason}"
    assert told["Outcompeted"] >= 20
    assert told["NotDecided"] <= 0.05 * told.total()
