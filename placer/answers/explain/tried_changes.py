"""Changes that admit a group, each tried by placing everything again, those that disturb least first."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any, TypeAlias

from placer.answers.explain.cases import Case, Change, Placed, place, place_by_search
from placer.answers.explain.cluster_changes import deleted_pods, ended_gangs, larger_queues, least_disturbed
from placer.answers.explain.group_changes import (
    calls,
    corrected,
    fewer_members,
    higher_priority,
    looser_neighbours,
    wider_tier,
)
from placer.answers.explain.node_changes import ADD, added_nodes, freed_nodes, labelled_domains
from placer.answers.explain.pod_changes import other_labels, smaller_pods
from placer.answers.explain.question import Question
from placer.base.errors import PlacerError
from placer.problem import GroupKey

Proposal: TypeAlias = "Callable[[Question], Iterator[Change]]"

#: Seconds for searches of more changes where some help already.
MORE = 1.5

#: First changes of pairs that are tried, and pairs that are shown.
FIRSTS, PAIRS = 24, 3

#: Proposals of changes, in the order in which they are tried while there is time.
PROPOSALS: tuple[Proposal, ...] = (
    deleted_pods,
    freed_nodes,
    labelled_domains,
    corrected,
    larger_queues,
    wider_tier,
    fewer_members,
    other_labels,
    smaller_pods,
    calls,
    looser_neighbours,
    ended_gangs,
    higher_priority,
    added_nodes,
)

PAIRED = tuple(each for each in PROPOSALS if each not in (calls, ended_gangs, higher_priority))


@dataclass(frozen=True)
class TriedChange:
    """A change that admits the group: whole ``objects`` added, and groups that ``loses`` their admission."""

    change: Change
    objects: tuple[dict[str, Any], ...]
    loses: tuple[GroupKey, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain data (models/interface.md)."""
        return {
            "message": self.change.message,
            "with": list(self.objects),
            "without": list(self.change.without),
            "admitted": True,
            "loses": [{"namespace": key.namespace, "name": key.name} for key in self.loses],
        }


def changes(question: Question) -> list[TriedChange]:
    """Find changes that admit a group, fewest losses first, as far as there is time.

    Where the greedy shows none of a kind to help, a search is asked.
    """
    found = {propose: _admitting(question, propose) for propose in PROPOSALS}
    single = list(chain(*found.values()))
    thorough = replace(question, thorough=True)
    every = [*single, *_pairs_beside(question, single), *_admitting(thorough, least_disturbed)]
    if every:
        thorough = replace(thorough, deadline=question.deadline.at_most(MORE))
    every += chain(*(_admitting(thorough, propose) for propose, told in found.items() if not told))
    return sorted(every, key=lambda each: (len(each.loses), each.change.rank, each.change.message))


def _pairs_beside(question: Question, single: Sequence[TriedChange]) -> list[TriedChange]:
    several = any(len(causes) > 1 for causes in question.corrections[:1])
    if not several and any(each.change.rank[0] < ADD for each in single):
        return []
    seconds = MORE if single else question.deadline.left / 2
    return list(islice(_pairs(replace(question, deadline=question.deadline.at_most(seconds)), single), PAIRS))


def _pairs(question: Question, single: Sequence[TriedChange]) -> Iterator[TriedChange]:
    """The first would admit it with other causes lifted; the second is proposed after the first."""
    told = {each.change.edits for each in single}
    for first in question.deadline.each(islice(_firsts(question), FIRSTS)):
        if first.edits not in told:
            pair = next(_after(question, first, told), None)
            told |= {first.edits} if pair is None else {first.edits, pair.change.edits}
            yield from () if pair is None else (pair,)


def _firsts(question: Question) -> Iterator[Change]:
    for causes in question.corrections:
        codes = frozenset(cause.code for cause in causes) - {"Outcompeted"}
        for code in sorted(codes):
            lifted = replace(question, lifted=codes - {code} or codes)
            for propose in PAIRED:
                yield from propose(lifted)


def _after(question: Question, first: Change, told: Collection[frozenset[str]]) -> Iterator[TriedChange]:
    try:
        after = question.after(first)
    except PlacerError:
        return
    for propose in (*PAIRED, calls):
        for second in question.deadline.each(propose(after)):
            pair = first.then(second)
            new = second.edits not in told and pair.edits not in told
            if new and {first.rank[0], second.rank[0]} != {ADD}:  # twice as many nodes are no second kind
                tried = _tried(question, pair)
                yield from () if tried is None else (tried,)


def _admitting(question: Question, propose: Proposal) -> list[TriedChange]:
    found: list[TriedChange] = []
    for change in () if question.deadline.over else propose(question):
        if question.deadline.over:
            break
        tried = _tried(question, change)
        if tried is not None:
            found.append(tried)
            if len(found) == _ENOUGH.get(propose):
                break
    return found


#: Of these the proposals grow in what they disturb, so that only the first ones that help are shown.
_ENOUGH: Mapping[Proposal, int] = {calls: 1, higher_priority: 1, ended_gangs: 2}


def _tried(question: Question, change: Change) -> TriedChange | None:
    question.say(change.message)
    try:
        case = question.case.changed(change)
        lost, objects = _lost(question, case), tuple(case.objects_beside(question.case))
    except PlacerError:
        return None
    return None if lost is None else TriedChange(change, objects, lost)


def _lost(question: Question, case: Case) -> tuple[GroupKey, ...] | None:
    """The greedy's first order is enough where it admits the group and nothing waits for it."""
    lost = _left_out(question, place(case.instance, more=0.0))
    if lost == ():
        return lost
    lost = _left_out(question, case.placed)
    if lost is None and question.thorough:
        lost = _left_out(question, place_by_search(case.instance, question.deadline))
    return lost


def _left_out(question: Question, placed: Placed | None) -> tuple[GroupKey, ...] | None:
    """Of equal groups it does not matter which of them are admitted."""
    equal, before = question.equal or frozenset({question.key}), question.placed.admitted
    if placed is None or len(equal & placed.admitted) <= len(equal & before):
        return None
    return tuple(sorted((before & frozenset(placed.instance.groups)) - placed.admitted - equal))
