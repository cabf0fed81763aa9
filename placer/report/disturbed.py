"""What a placement evicts and moves, and what lost nodes ran: in words, and pod by pod."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from placer.summary.preempting import preempt_lines, repair_lines

if TYPE_CHECKING:
    from placer.report.answers import Answer

__all__ = ["disturbed"]


def disturbed(answer: Answer) -> dict[str, Any]:
    """Gather what happens to pods that run.

    Parameters
    ----------
    answer
        What there is, and what comes of it.

    Returns
    -------
    dict
        ``lines``, as the command prints them, and columns of ``pods`` by group: ``pod`` (its index), ``what``
        (``evicted``, ``moved``, ``lost``), ``unit`` (what goes together, D1), ``priority`` of the unit, and the number
        of the ``step`` in which it goes (0: it is gone already). All are empty where nothing is disturbed.
    """
    placement, disruption = answer.result.placement, answer.disruption
    columns: dict[str, list[Any]] = {name: [] for name in ("pod", "what", "unit", "priority", "step")}
    if placement is None or not (disruption.gone or placement.lost):
        return {"lines": [], "pods": columns}
    step_of = {key: number for number, step in enumerate(placement.steps, 1) for key in step.go}
    index = {key: number for number, key in enumerate(answer.before.pods)}
    lost = [
        ("lost", str(answer.before.pods[key].group or key), answer.before.pods[key].priority, key)
        for key in answer.lost
    ]
    gone = [
        ("moved" if key in disruption.moved else "evicted", unit.name, unit.priority, key)
        for unit in disruption.units
        for key in unit.pods
        if key in disruption.gone
    ]
    for what, unit, priority, key in (*lost, *gone):
        row = (index[key], what, unit, priority, step_of.get(key, 0))
        for column, value in zip(columns.values(), row, strict=True):
            column.append(value)
    lines = repair_lines(answer.before, answer.result) if placement.lost else preempt_lines(answer.result)
    return {"lines": list(lines), "pods": columns}
