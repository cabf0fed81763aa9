"""Hand-made cases: the right causes, a change that helps, and nothing that a second decision denies.

The second decision shares no code with the first: causes are held against brute force (:mod:`tests.oracle`), with the
rules that are lifted switched off by number; changes are read anew from their documents and decided by the exact model.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from typing import Any

import msgspec
import pytest

from placer.deadline import Deadline
from placer.dense import Solution
from placer.dense.build import make_dense
from placer.explain.cases import Case
from placer.explain.explanation import Explanation, explain, find_group
from placer.explain.lifts import RULES_OF, lift
from placer.instance import GroupKey, Instance
from placer.manifests import from_documents
from placer.methods.events import Event, Improved, SearchOptions
from placer.methods.exact.search import search
from placer.methods.numa.binding_order import aligned
from placer.outcome import Outcome
from placer.placement import Placement
from placer.verify import verify
from tests.explain.hand_made import CASES, ZONE, HandMade
from tests.methods.greedy.test_greedy import carried_out
from tests.oracle import placements


@cache
def case_of(made: HandMade) -> Case:
    return Case(from_documents(made.documents))


@cache
def explained(at: int) -> tuple[Explanation, GroupKey]:
    case = case_of(CASES[at])
    key = find_group(case.instance, CASES[at].group)
    (found,) = explain(case, [key], Deadline.within(60))
    return found, key


def fits(instance: Instance, key: GroupKey, lifted: Iterable[str]) -> bool:
    """Whether brute force places the group alone with the rules of some causes switched off."""
    lifted = set(lifted)
    asks = frozenset(lifted & {"InvalidGroup", "GangIncomplete", "Unsupported"})
    lone = lift(carried_out(instance, Placement(), key), key, asks)
    off = lone.policy.rules_off | {rule for code in lifted - asks for rule in RULES_OF[code]}
    lone = replace(lone, policy=replace(lone.policy, rules_off=off))
    return any(Outcome(lone, each).ready(lone.groups[key]) for each in placements(lone))


@pytest.mark.parametrize("at", range(len(CASES)), ids=[each.name for each in CASES])
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


@pytest.mark.parametrize("at", range(len(CASES)), ids=[each.name for each in CASES])
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
        ("near a cordoned node", "with pods of app=db: default/db runs in z1"),
        ("kept off by one that runs", f"in no {ZONE} with pods of app=g, themselves among them: default/x runs in z1"),
        ("one on each node", "themselves among them: 2 such domains (a, b)"),
        ("no node has the label", f"spread over {ZONE} with maxSkew 2: no node has this label"),
        ("a zone too few", "with maxSkew 1, at least 2 domains: 1 such domain (z1)"),
        ("one of two cordoned", "needs room for 2 pods of nvidia.com/gpu 1; the nodes have room for 1, 1 too few"),
        ("cordoned and full", "0/1 nodes are eligible for 1 pod of nvidia.com/gpu 8: 1 node is unschedulable"),
    ],
)
def test_a_cause_says_what_is_asked_and_what_there_is(name: str, said: str) -> None:
    (at,) = [at for at, made in enumerate(CASES) if made.name == name]
    messages = [cause.message for cause in explained(at)[0].corrections[0]]
    assert any(said in message for message in messages), messages


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
    search(dense, SearchOptions(seconds=20), told.append)
    found = [event.solution for event in told if isinstance(event, Improved)]
    outcome = Outcome(instance, aligned(instance, dense.placement(found[-1] if found else Solution())))
    assert not verify(instance, outcome.placement)
    groups = (group for group in instance.groups.values() if group.pending)
    return {f"{group.key.namespace}/{group.key.name}" for group in groups if outcome.ready(group)}


def test_there_are_enough() -> None:
    assert len(CASES) >= 60
    told = {code for made in CASES for code in made.causes}
    assert told >= {*RULES_OF, "Outcompeted"} - {"Exclusive"}
