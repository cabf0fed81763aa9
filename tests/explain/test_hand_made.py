"""Hand-made cases: the right causes, a change that helps, and nothing that a second decision denies.

The second decision shares no code with the first: causes are held against brute force (:mod:`tests.oracle`), with the
rules that are lifted switched off by number; changes are read anew from their documents and decided by the exact model.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import msgspec
import pytest

from placer.answers.explain.cases import Case
from placer.answers.explain.explanation import Explanation, explain, find_groups
from placer.answers.explain.lifts import RULES_OF, lift_causes
from placer.arrays import Solution
from placer.arrays.dense_builder import make_dense
from placer.base.deadline import Deadline
from placer.kube.manifests import from_documents
from placer.problem import GroupKey, Instance
from placer.problem.outcome import Outcome
from placer.problem.placement import Placement
from placer.rules import verify
from placer.search.events import Event, Improved, SearchOptions
from placer.search.exact.method import search
from placer.search.numa.binding_order import aligned
from tests.examples import every
from tests.explain.hand_made import CASES, ZONE, HandMade
from tests.oracle import placements
from tests.solving import carried_out


@cache
def case_of(made: HandMade) -> Case:
    return Case(from_documents(made.documents))


@cache
def explained(at: int) -> tuple[Explanation, GroupKey]:
    case = case_of(CASES[at])
    key = find_groups(case, CASES[at].group)[0]
    (found,) = explain(case, [key], Deadline.within(3600))
    return found, key


#: The reasons of half of the cases are enough for the test command.
each_case = pytest.mark.parametrize("at", every(2, range(len(CASES))), ids=[each.name for each in CASES])


def fits(instance: Instance, key: GroupKey, lifted: Iterable[str]) -> bool:
    """Whether brute force places the group alone with the rules of some causes switched off."""
    return any(True for _ in ready_placements(instance, key, lifted))


def ready_placements(instance: Instance, key: GroupKey, lifted: Iterable[str]) -> Iterator[Placement]:
    """Placements of the group alone that make it ready with the rules of some causes switched off."""
    lifted = set(lifted)
    asks = frozenset(lifted & {"InvalidGroup", "GangIncomplete", "Unsupported", "QueueClosed", "QueueCapability"})
    lone = lift_causes(carried_out(instance, Placement(), key), key, asks)
    off = lone.policy.rules_off | {rule for code in lifted - asks for rule in RULES_OF[code]}
    lone = replace(lone, policy=replace(lone.policy, rules_off=off))
    return (each for each in placements(lone) if Outcome(lone, each).ready(lone.groups[key]))


@each_case
def test_causes(at: int) -> None:
    (found, key), made = explained(at), CASES[at]
    instance = case_of(made).instance
    sets = [frozenset(cause.code for cause in causes) for causes in found.corrections]
    assert sets, found.reason
    assert sets[0] == made.causes, [[(c.code, c.message) for c in causes] for causes in found.corrections]
    assert set(made.others) <= set(sets[1:])
    assert all(cause.message for causes in found.corrections for cause in causes)
    if made.causes == {"Outcompeted"}:
        assert fits(instance, key, ())
        return
    for codes in sets:
        assert fits(instance, key, codes), f"it does not fit with {codes} lifted"
        for code in codes:
            assert not fits(instance, key, codes - {code}), f"it fits with {code} kept"


@each_case
def test_changes(at: int) -> None:
    (found, _), made = explained(at), CASES[at]
    messages = [each.change.message for each in found.changes]
    assert [told for told in made.told if not any(told in message for message in messages)] == [], messages
    for entry in found.as_dict()["changes"]:
        assert made.group in admitted(changed(made, entry)), entry["message"]
        names = {f"{lost['namespace']}/{lost['name']}" for lost in entry["loses"]}
        assert names <= admitted(case_of(made).instance)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nobody to be near to", f"its pods must be in one {ZONE} with pods of app=db: none runs"),
        ("near a cordoned node", "with pods of app=db: Pod default/db is in z1"),
        (
            "kept off by one that runs",
            f"in no {ZONE} with pods of app=g, themselves among them: Pod default/x in z1 is in the way",
        ),
        ("one on each node", "themselves among them: 2 such domains (a, b)"),
        ("no node has the label", "on nodes without this label; no node has this label"),
        (
            "a zone too few",
            "2 domains: there is room for one of them in z1 and on nodes without this label; 1 such domain (z1)",
        ),
        (
            "another Job holds the only rack",
            "in its rack: Job default/x-w-0 holds r1; 1 such domain (r1); Job default/g",
        ),
        ("no node has the rack's label", "needs 2 pods in one domain of rack; no node carries that label"),
        (
            "one of two cordoned",
            "needs room for 2 pods of nvidia.com/gpu 1; 1 of 2 nodes is eligible and has room for 1 in all, 1 too few; "
            "not eligible: 1 node is unschedulable (a)",
        ),
        (
            "one rack too small",
            "needs room for 2 pods of nvidia.com/gpu 8 where the other rules allow them, such as on Node r0-0, which "
            "has room for 1, 1 too few: nvidia.com/gpu 8 free of 8",
        ),
        (
            "far over a thin link",
            "needs room for 1 pod of cpu 4 where the other rules allow it, such as on Node b, which has no room for "
            "it: cpu 0 free of 8",
        ),
        (
            "too many in one zone",
            "needs room where the other rules allow its pods, such as where Node b has nvidia.com/gpu 1 free of 1, 2 "
            "asked for",
        ),
        ("selector of some", "fits with pods on nodes that refuse them: Node b (node selector pool=gpu)"),
        ("missing, and no room", "for its 2 pending pods: needs room for 2 pods of nvidia.com/gpu 8"),
        ("nodes outside", "too few; Node n1 has room and is in no HyperNode of tier <= 1"),
        (
            "a lone pod outcompeted",
            "fits alone; with the waiting groups that are placed: 0/1 nodes have room for a pod of "
            "nvidia.com/gpu 8: 1 insufficient nvidia.com/gpu; Node a comes nearest: nvidia.com/gpu 0 free, 8 too few; "
            "the room went to PodGroup default/rival (1 pod); as things stand, pods of PodGroup default/rival, "
            "priority 100 (its own priority is 0) are placed on Node a, where it fits alone",
        ),
        (
            "cordoned and tainted",
            "0/1 nodes are eligible for 1 pod of nvidia.com/gpu 8: 1 node is unschedulable and untolerated taint "
            "gpu=yes:NoSchedule (a)",
        ),
        ("not ready, and says so by a taint", "for 1 pod of nvidia.com/gpu 8: 1 node is not Ready (a)"),
        ("cordoned and full", "0/1 nodes are eligible for 1 pod of nvidia.com/gpu 8: 1 node is unschedulable"),
    ],
)
def test_a_cause_says_what_is_asked_and_what_there_is(name: str, said: str) -> None:
    (at,) = [at for at, made in enumerate(CASES) if made.name == name]
    messages = [cause.message for causes in explained(at)[0].corrections for cause in causes]
    assert any(said in message for message in messages), messages


def causes_that_say(said: str) -> list[tuple[int, frozenset[str], str]]:
    """Cases with a message that says something: the case, the codes of the set, the message."""
    return [
        (at, frozenset(each.code for each in causes), cause.message)
        for at in range(len(CASES))
        for causes in explained(at)[0].corrections
        for cause in causes
        if said in cause.message
    ]


@pytest.mark.exhaustive
def test_room_is_short_where_the_other_rules_allow_the_pods_as_a_message_says() -> None:
    told = causes_that_say("where the other rules allow")
    assert len(told) >= 10
    for at, codes, message in told:
        instance, key = case_of(CASES[at]).instance, explained(at)[1]
        names = nodes_named(message.split("such as")[1].split(", which")[0])
        allowed = list(ready_placements(instance, key, codes))
        if "such as where" in message:
            assert any(over_full(instance, each) == names for each in allowed), message
        else:
            assert any(set(each.node_of.values()) <= names for each in allowed), message
        for name, free, whole in re.findall(r"([a-z./]+) (\d+) free of (\d+)", message):
            there = [instance.nodes[node].allocatable[name] for node in names]
            held = [pod.requests[name] for pod in instance.pods.values() if pod.node in names]
            unit = 1000 if name == "cpu" else 1
            assert (sum(there) - sum(held), sum(there)) == (int(free) * unit, int(whole) * unit), message
        for asked, room, few in re.findall(r"room for (\d+) pods? of .* has room for (\d+), (\d+) too few", message):
            assert int(room) + int(few) == int(asked), message
            assert sum(room_on(instance, key, node) for node in names) == int(room), message


@pytest.mark.exhaustive
def test_nodes_in_no_hyper_node_have_room_as_a_message_says() -> None:
    told = causes_that_say("in no HyperNode of tier")
    assert len(told) >= 2
    for at, _, message in told:
        instance, key = case_of(CASES[at]).instance, explained(at)[1]
        (tier,) = re.findall(r"in no HyperNode of tier <= (\d+)", message)
        low = {name for each in instance.topology.hyper_nodes.values() if each.tier <= int(tier) for name in each.nodes}
        roomy = {name for name in instance.nodes if room_on(instance, key, name)}
        assert nodes_named(message.split("; ")[-1].split(" have")[0].split(" has")[0]) == roomy - low


def over_full(instance: Instance, placement: Placement) -> set[str]:
    """Nodes on which a placement breaks C2."""
    broken = (each.subjects for each in verify(instance, placement) if each.rule == "C2")
    return {name.removeprefix("Node ") for subjects in broken for name in subjects}


def room_on(instance: Instance, key: GroupKey, node: str) -> int:
    """How many pods of a group rules C2 and C3 allow on a node beside what runs."""
    pods = instance.groups[key].pending
    for count in range(1, len(pods) + 1):
        broken = verify(instance, Placement.of(dict.fromkeys(pods[:count], node)))
        if any(each.rule in ("C2", "C3") for each in broken):
            return count - 1
    return len(pods)


@pytest.mark.exhaustive
def test_nodes_refuse_pods_as_a_message_says() -> None:
    told = causes_that_say("nodes that refuse them")
    assert len(told) >= 6
    for at, codes, message in told:
        instance, key = case_of(CASES[at]).instance, explained(at)[1]
        pods = [instance.pods[each] for each in instance.groups[key].pending]
        admitting = {name for name, node in instance.nodes.items() if all(pod.constraints.admits(node) for pod in pods)}
        names = nodes_named(message)
        assert names.isdisjoint(admitting), message
        assert any(set(each.node_of.values()) <= names | admitting for each in ready_placements(instance, key, codes))
        for node, why in re.findall(r"Node (\S+) \(([^)]*)\)", message):
            assert pods[0].constraints.refusals(instance.nodes[node]) == why.split(" and ")


def nodes_named(message: str) -> set[str]:
    (listed,) = re.findall(r"Nodes? ([a-z0-9-]+(?:(?:, | and )[a-z0-9-]+)*)", message)
    return set(re.split(", | and ", listed))


def changed(made: HandMade, entry: dict[str, Any]) -> Instance:
    """The instance with a change made as its documents say, and no other way."""
    taken = {tuple(words.lower().split("/")) for words in entry["without"]}
    documents = {identity(each): each for each in made.documents}
    documents |= {identity(each): each for each in entry["with"]}
    left = [
        each for (_, kind, namespace, name), each in documents.items() if (kind.lower(), namespace, name) not in taken
    ]
    return Case(from_documents(left)).instance


def identity(document: Any) -> tuple[str, str, str, str]:
    (raw,) = from_documents([msgspec.to_builtins(document)])
    return raw.identity


def admitted(instance: Instance) -> set[str]:
    """Groups that the exact model admits, starting from nothing."""
    told: list[Event] = []
    dense = make_dense(instance)
    search(dense, SearchOptions(Deadline.within(3600)), told.append)
    found = [event.solution for event in told if isinstance(event, Improved)]
    outcome = Outcome(instance, aligned(instance, dense.placement(found[-1] if found else Solution())))
    assert not verify(instance, outcome.placement)
    groups = (group for group in instance.groups.values() if group.pending)
    return {f"{group.key.namespace}/{group.key.name}" for group in groups if outcome.ready(group)}


def test_there_are_enough() -> None:
    assert len(CASES) >= 60
    told = {code for made in CASES for code in made.causes}
    assert told >= {*RULES_OF, "Outcompeted"}
