"""Changes of running pods: the least that must be evicted or moved for the group."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from placer.answers.explain.cases import Change, pod_words
from placer.answers.reasons.cause import plural
from placer.base.words import and_list, some
from placer.problem.disruption import Disruption, DisruptionUnit
from placer.problem.placement import LOSSES
from placer.problem.what_if import with_pods

if TYPE_CHECKING:
    from placer.answers.explain.question import Question
    from placer.problem import Instance
    from placer.problem.result import Result

#: How much these changes disturb: as a higher priority does, by which others may go as well.
DISTURB = 7

NAMED = 3


def least_disturbed(question: Question) -> Iterator[Change]:
    """Evictions and moves for the group alone, or next to those that are placed where it fits alone."""
    if question.disturb is not None and not question.lifted:
        result = question.disturb(_with_new_pods_kept(question), question.key, question.deadline)
        if result is not None and result.placement is not None and result.placement.disturbs:
            yield _change(question, result, Disruption(result.instance, result.placement))


def _with_new_pods_kept(question: Question) -> Instance:
    """Pods that do not run yet can be neither evicted nor moved."""
    pods, new = question.instance.pods, question.placed.placement.node_of
    kept = [key for key in new if pods[key].node is not None]
    return with_pods(question.instance, kept, lambda pod: replace(pod, protected="it does not run yet"))


def _change(question: Question, result: Result, disruption: Disruption) -> Change:
    counted = [each for each in result.objective if each.value.name in (*LOSSES, "moved", "movedUnits")]
    proved = "proved to be the least" if all(each.met for each in counted) else "the least that was found"
    key, moves = question.key, sorted(disruption.moved.items())
    beside = "" if "Outcompeted" in question.codes else f" --for {key.namespace}/{key.name}"
    return Change(
        f"{_units(disruption)} ({proved}; placer preempt{beside})",
        (DISTURB, len(disruption.gone)),
        without=pod_words(disruption.evicted),
        set_=tuple(f"{words}:spec.nodeName={each.node}" for pod, each in moves for words in pod_words([pod])),
    )


def _units(disruption: Disruption) -> str:
    moved = [unit for unit in disruption.units if set(unit.pods) <= disruption.moved.keys()]
    evicted = [unit for unit in disruption.units if unit not in moved]
    parts = [f"{word} {_named(units)}" for word, units in (("evict", evicted), ("move", moved)) if units]
    return and_list(parts)


def _named(units: list[DisruptionUnit]) -> str:
    return and_list(some([f"{unit.name} ({plural(len(unit.pods), 'pod')})" for unit in units], NAMED))
