"""Changes of what runs: the least that must be evicted or moved for the group."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from placer.disruption import Disruption, DisruptionUnit
from placer.explain.cases import Change, pod_words
from placer.placement import LOSSES
from placer.reasons.cause import plural
from placer.words import and_list, some

if TYPE_CHECKING:
    from placer.explain.question import Question
    from placer.instance import GroupKey
    from placer.result import Result

__all__ = ["least_disturbed"]

#: How much these changes disturb: as a higher priority does, by which others may go as well.
DISTURB = 7

#: Units that a message names.
NAMED = 3


def least_disturbed(question: Question) -> Iterator[Change]:
    """The evictions and moves that are found for the group alone, where something may be disturbed for it."""
    if question.disturb is not None and not question.lifted:
        result = question.disturb(question.placed.instance, question.key, question.deadline)
        if result is not None and result.placement is not None and result.placement.disturbs:
            yield _change(question.key, result, Disruption(result.instance, result.placement))


def _change(key: GroupKey, result: Result, disruption: Disruption) -> Change:
    counted = [each for each in result.objective if each.value.name in (*LOSSES, "moved", "movedUnits")]
    proved = "proved to be the least" if all(each.met for each in counted) else "the least that was found"
    moves = sorted(disruption.moved.items())
    return Change(
        f"{_units(disruption)} ({proved}; placer preempt --for {key.namespace}/{key.name})",
        (DISTURB, len(disruption.gone)),
        without=pod_words(disruption.evicted),
        set_=tuple(f"{words}:spec.nodeName={each.node}" for pod, each in moves for words in pod_words([pod])),
    )


def _units(disruption: Disruption) -> str:
    """What goes, in words."""
    moved = [unit for unit in disruption.units if set(unit.pods) <= disruption.moved.keys()]
    evicted = [unit for unit in disruption.units if unit not in moved]
    parts = [f"{word} {_named(units)}" for word, units in (("evict", evicted), ("move", moved)) if units]
    return and_list(parts)


def _named(units: list[DisruptionUnit]) -> str:
    """Some units with the number of their pods."""
    return and_list(some([f"{unit.name} ({plural(len(unit.pods), 'pod')})" for unit in units], NAMED))
