"""Evictions, moves and lost pods: in words, and pod by pod."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from placer.answers.summary.preempting import defrag_lines, preempt_lines, repair_lines

if TYPE_CHECKING:
    from placer.answers.report.answers import Answer


def disturbed(answer: Answer) -> dict[str, Any]:
    """Gather what happens to running pods.

    ``lines`` as the command prints them; columns of ``pods``: ``step`` (0: gone already), ``unit`` (D1), ``pod``,
    ``what`` (``evicted``, ``moved``, ``lost``), ``priority``.
    """
    placement = answer.outcome.placement
    rows = sorted(_rows(answer))
    columns = {
        name: [row[place] for row in rows] for place, name in enumerate(("step", "unit", "pod", "what", "priority"))
    }
    if not (rows or placement.lost):
        return {"lines": [], "pods": columns}
    return {"lines": list(_lines(answer)), "pods": columns}


def _lines(answer: Answer) -> Iterator[str]:
    placement = answer.outcome.placement
    if placement.lost:
        return repair_lines(answer.before, answer.result)
    return defrag_lines(answer.result) if placement.wanted or placement.freed else preempt_lines(answer.result)


def _rows(answer: Answer) -> Iterator[tuple[int, str, int, str, int]]:
    pods, disruption = answer.before.pods, answer.disruption
    index = {key: number for number, key in enumerate(pods)}
    for key in answer.lost:
        yield 0, str(pods[key].group or f"Pod {key}"), index[key], "lost", pods[key].priority
    step_of = {key: number for number, step in enumerate(disruption.placement.steps, 1) for key in step.go}
    for unit in disruption.units:
        for key in disruption.gone.intersection(unit.pods):
            what = "moved" if key in disruption.moved else "evicted"
            yield step_of.get(key, 0), unit.name, index[key], what, unit.priority
