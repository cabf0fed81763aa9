"""The contents of the page as one value, ready for JSON; the same input gives the same value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePath
from typing import Any

import msgspec

from placer.answers.report.answers import Answer, answer_of, answer_of_result
from placer.answers.report.comparison import OWN, beside
from placer.answers.report.inputs import ComparedRow, Inputs
from placer.answers.report.inventory import Inventory
from placer.answers.summary import (
    bound_words,
    cluster_size,
    counts,
    is_shown,
    name_of,
    number_of,
    schedulers_rows,
    still_fits,
    stopped,
    verdict_sentence,
)
from placer.answers.summary.preempting import defrag_lines, plan_sentences, preempt_lines, repair_lines
from placer.base.codes import FINDINGS, REASONS, Code
from placer.base.deadline import NEVER, Deadline
from placer.base.quantity import Resources
from placer.base.version import __version__
from placer.base.words import counted, value_meaning
from placer.problem import Instance
from placer.problem.gpus import gpus_in, gpus_placed, placeable
from placer.problem.outcome import Outcome
from placer.problem.result import Judged, Result, Verdict
from placer.problem.stranding import stranded
from placer.rules import rules_said


def contents(
    instance: Instance, inputs: Inputs, *, strict: bool = False, deadline: Deadline = NEVER, **about: Any
) -> dict[str, Any]:
    """Judge the placement of a call, and gather what the page shows.

    ``about``: ``cluster``, its name; ``live``: it was read at ``inputs.moment``; ``every``: seconds between reloads.
    Errors of :func:`~placer.answers.report.answers.answer_of`.
    """
    answer = answer_of(instance, inputs.placement, strict=strict, deadline=deadline)
    return _contents(answer, inputs, deadline, **about)


def contents_of_result(result: Result, moment: float, **about: Any) -> dict[str, Any]:
    """Gather what the page shows of a verified pass that began at ``moment``, in seconds since the epoch."""
    return _contents(answer_of_result(result), Inputs([], None, None, [], moment), live=True, **about)


def _contents(
    answer: Answer,
    inputs: Inputs,
    deadline: Deadline = NEVER,
    *,
    cluster: str = "",
    live: bool = False,
    every: float | None = None,
) -> dict[str, Any]:
    inventory = Inventory(answer)
    return {
        "placer": __version__,
        "cluster": cluster or _cluster_name(inputs),
        "moment": inputs.moment and int(inputs.moment),
        "live": live,
        "every": every,
        "headline": _headline(answer),
        "files": {
            "instance": [text.name for text in inputs.instance],
            "placement": None if inputs.placement is None else inputs.placement.name,
            "comparison": inputs.comparison,
        },
        "decided": answer.decided,
        "verdict": _verdict(answer),
        "counts": _counts(answer),
        "values": [_value(judged, answer) for judged in answer.result.objective if is_shown(judged)],
        **inventory.as_dict(),
        "disturbed": _disturbed(answer),
        "stranded": _stranded(inventory, answer, deadline),
        "findings": [each.as_dict() for each in answer.result.findings],
        "violations": [{"rule": v.rule, "subjects": list(v.subjects), "message": v.message} for v in answer.violations],
        "codes": _codes(answer),
        "comparison": beside(inputs.rows, _own_row(answer), inventory.group_index) if inputs.rows else None,
    }


def _cluster_name(inputs: Inputs) -> str:
    first = inputs.instance[0].name if inputs.instance else ""
    return PurePath(first).name.partition(".")[0].strip("-") or "cluster"


def _own_row(answer: Answer) -> ComparedRow | None:
    if not answer.decided:
        return None
    document = answer.document.as_dict()
    row = {
        **{name: document[name] for name in ("objective", "groups")},
        "policy": OWN,
        "placedPods": len(answer.outcome.new),
        "placedGroups": len(answer.outcome.made_ready),
        "gpusPlaced": gpus_placed(answer.outcome),
        "violations": dict(sorted(Counter(violation.rule for violation in answer.violations).items())),
        "metrics": {"weight": document["weight"]},
    }
    return msgspec.convert(row, ComparedRow)


def _headline(answer: Answer) -> str:
    """Give the answer in one to three sentences."""
    if not answer.decided:
        return _as_it_is(answer.outcome.instance)
    if answer.violations:
        return f"T{_broken_words(answer)[1:]}."
    placement = answer.outcome.placement
    if placement.lost or placement.wanted or placement.freed or answer.disruption.gone:
        return " ".join(plan_sentences(answer.before, answer.result))
    return " ".join(_placed(answer))


def _broken_words(answer: Answer) -> str:
    broken = rules_said(Counter(violation.rule for violation in answer.violations))
    return f"the placement breaks rules: {counted(len(answer.violations), 'violation')} ({broken})"


def _waiting_groups(instance: Instance) -> int:
    return sum(bool(group.pending) for group in instance.groups.values())


def _as_it_is(instance: Instance) -> str:
    pending, groups = instance.pending, _waiting_groups(instance)
    if not pending:
        return "No pod waits."
    gpus = sum(gpus_in(pod.requests) for pod in pending)
    asked = f" that ask for {counted(gpus, 'GPU')}" if gpus else ""
    wait = "waits" if groups == 1 else "wait"
    return f"{counted(groups, 'group')} {wait}: {counted(len(pending), 'pod')}{asked}. Nothing is decided yet."


def _placed(answer: Answer) -> list[str]:
    parts, pending, pods = answer.document.groups, len(answer.outcome.instance.pending), len(answer.outcome.new)
    if not pending:
        return ["No pod waits."]
    admitted, groups = sum(part.admitted for part in parts), len(parts)
    if pods == pending:
        found = [f"All {counted(groups, 'group')} that wait can be placed: {counted(pods, 'pod')}."]
    else:
        found = [
            f"{admitted:,} of {counted(groups, 'group')} that {'waits' if groups == 1 else 'wait'} can start: "
            f"{pods:,} of {counted(pending, 'pod')} have a place."
        ]
    proved = answer.stated and answer.result.verdict is Verdict.OPTIMAL
    return [*found, *(["Proved: no placement is better."] if proved else [])]


def _verdict(answer: Answer) -> dict[str, str]:
    if not answer.decided:
        waiting = len(answer.outcome.instance.pending)
        said = f"{counted(waiting, 'pod')} wait{'s' if waiting == 1 else ''}" if waiting else "no pod waits"
        return {"word": "AS IS", "sentence": f"the cluster as it runs now, before any decision; {said}", "stopped": ""}
    if answer.violations:
        return {"word": "INVALID", "sentence": _broken_words(answer), "stopped": ""}
    if not answer.stated:
        said = "the placement keeps every rule; how much better one may be is not proved here: placer solve says that"
        return {"word": "VALID", "sentence": said, "stopped": ""}
    result = answer.result
    return {"word": result.verdict.value, "sentence": verdict_sentence(result), "stopped": stopped(result)}


def _counts(answer: Answer) -> list[tuple[str, str]]:
    if answer.decided:
        return counts(answer.document, answer.result)
    instance = answer.outcome.instance
    left = placeable(Outcome(instance, answer.outcome.placement))
    return [
        ("cluster", cluster_size(instance)),
        ("waiting", f"{counted(len(instance.pending), 'pod')} of {counted(_waiting_groups(instance), 'group')}"),
        *([("still fits", still_fits(left))] if left else []),
        *schedulers_rows(instance),
    ]


def _value(judged: Judged, answer: Answer) -> dict[str, Any]:
    result, bound = answer.result, judged.bound
    return {
        "name": name_of(judged, result),
        "number": number_of(judged),
        "proved": bound_words(judged, result) if answer.decided else "nothing is decided yet",
        "best": None if bound is None else judged.met,
        "meaning": value_meaning(judged.value.name),
    }


def _disturbed(answer: Answer) -> dict[str, Any]:
    """What happens to running pods, in lines as the command prints them, and by columns."""
    placement, rows = answer.outcome.placement, sorted(_disturbed_pods(answer))
    names = ("step", "unit", "pod", "what", "priority")
    columns = {name: [row[place] for row in rows] for place, name in enumerate(names)}
    lines: Iterable[str] = ()
    if placement.lost:
        lines = repair_lines(answer.before, answer.result)
    elif rows:
        plan_lines = defrag_lines if placement.wanted or placement.freed else preempt_lines
        lines = plan_lines(answer.result)
    return {"lines": list(lines), "pods": columns}


def _disturbed_pods(answer: Answer) -> Iterator[tuple[int, str, int, str, int]]:
    """Step (0: gone already), unit (D1), index, what happens, priority."""
    pods, disruption = answer.before.pods, answer.disruption
    index = {key: number for number, key in enumerate(pods)}
    for key in answer.lost:
        yield 0, str(pods[key].group or f"Pod {key}"), index[key], "lost", pods[key].priority
    step_of = {key: number for number, step in enumerate(disruption.placement.steps, 1) for key in step.go}
    for unit in disruption.units:
        for key in disruption.gone.intersection(unit.pods):
            what = "moved" if key in disruption.moved else "evicted"
            yield step_of.get(key, 0), unit.name, index[key], what, unit.priority


def _stranded(inventory: Inventory, answer: Answer, deadline: Deadline) -> dict[str, list[dict[str, Any]] | None]:
    """Before and after; null: not all was looked at in time."""
    after = _useless(inventory, inventory.after.held, deadline) if answer.decided else []
    return {"before": _useless(inventory, inventory.before.held, deadline), "after": after}


def _useless(inventory: Inventory, held: Mapping[str, Resources], deadline: Deadline) -> list[dict[str, Any]] | None:
    index, found = inventory.node_index, stranded(inventory.instance, held, deadline)
    rows = (each.as_dict() | {"nodes": [index[name] for name in each.nodes]} for each in found or ())
    return None if found is None else list(rows)


def _codes(answer: Answer) -> dict[str, dict[str, str]]:
    used: set[str] = {reason.code for reason in answer.result.reasons.values()}
    if not answer.decided:
        used -= {"NotDecided"}  # no search ran out of time: there was none, as the message says
    used |= {finding.code for finding in answer.result.findings}
    codes: list[tuple[str, Code]] = [*REASONS.items(), *FINDINGS.items()]
    return {name: {"meaning": code.meaning, "remedy": code.remedy} for name, code in codes if name in used}
