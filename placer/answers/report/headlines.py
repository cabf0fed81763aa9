"""The answer in a few sentences, the first line of the page."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from placer.answers.document import placement_document
from placer.answers.summary.preempting import plan_sentences
from placer.base.words import counted
from placer.problem.gpus import gpus_in
from placer.problem.result import Verdict
from placer.rules import rules_said

if TYPE_CHECKING:
    from placer.answers.report.answers import Answer


def headline(answer: Answer) -> str:
    """Give the answer in one to three sentences."""
    if not answer.decided:
        return _as_it_is(answer)
    if answer.violations:
        broken = rules_said(Counter(violation.rule for violation in answer.violations))
        return f"The placement breaks rules: {counted(len(answer.violations), 'violation')} ({broken})."
    if _is_plan(answer):
        return " ".join(plan_sentences(answer.before, answer.result))
    return " ".join(_placed(answer))


def _is_plan(answer: Answer) -> bool:
    placement = answer.outcome.placement
    return bool(placement.lost or placement.wanted or placement.freed or answer.disruption.gone)


def _as_it_is(answer: Answer) -> str:
    instance = answer.outcome.instance
    pending = instance.pending
    if not pending:
        return "No pod waits."
    groups = sum(bool(group.pending) for group in instance.groups.values())
    gpus = sum(gpus_in(pod.requests) for pod in pending)
    asked = f" that ask for {counted(gpus, 'GPU')}" if gpus else ""
    wait = "waits" if groups == 1 else "wait"
    return f"{counted(groups, 'group')} {wait}: {counted(len(pending), 'pod')}{asked}. Nothing is decided yet."


def _placed(answer: Answer) -> list[str]:
    document, pending = placement_document(answer.result), len(answer.outcome.instance.pending)
    if not pending:
        return ["No pod waits."]
    admitted, groups = sum(part.admitted for part in document.groups), len(document.groups)
    pods = len(answer.outcome.new)
    if pods == pending:
        found = [f"All {counted(groups, 'group')} that wait can be placed: {counted(pods, 'pod')}."]
    else:
        found = [
            f"{admitted:,} of {counted(groups, 'group')} that {'waits' if groups == 1 else 'wait'} can start: "
            f"{pods:,} of {counted(pending, 'pod')} have a place."
        ]
    proved = answer.stated and answer.result.verdict is Verdict.OPTIMAL
    return [*found, *(["Proved: no placement is better."] if proved else [])]
