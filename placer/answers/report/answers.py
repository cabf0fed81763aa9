"""A placement judged: proofs, broken rules, reasons of waiting groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from placer.answers.document import PlacementDocument, stated_bounds, stated_weight_bound, statement
from placer.base.codes import REASONS, ReasonCode
from placer.base.deadline import NEVER, Deadline, within
from placer.kube.manifests import Text
from placer.problem import Finding, GroupKey, Instance, Key
from placer.problem.disruption import Disruption, as_asked, lost_pods, outcome_of
from placer.problem.outcome import Outcome
from placer.problem.placement import Placement, Value, Violation
from placer.problem.reading import read_whole_placement
from placer.problem.result import WEIGHT, Judged, Reason, Result, Termination, Verdict
from placer.rules import verify
from placer.rules.scoring import placed_weight, score

#: Said of a group that would fit by itself while nothing is decided.
UNDECIDED = "nothing keeps it out by itself: it waits to be decided upon (placer solve)"


@dataclass(frozen=True)
class Answer:
    """An instance, a placement of it, and what is known.

    Parameters
    ----------
    before
        The instance as its objects say.
    outcome
        With the placement laid over it; what is evicted or ran on lost nodes waits in it.
    decided
        Whether there is a placement.
    result
        Values with bounds; of unknown origin without.
    stated
        Whether the placement's file says how it came about, for this instance.
    """

    before: Instance
    outcome: Outcome
    decided: bool
    result: Result
    stated: bool
    violations: tuple[Violation, ...]
    reasons: Mapping[GroupKey, Reason]
    findings: tuple[Finding, ...]

    @cached_property
    def disruption(self) -> Disruption:
        """What is evicted and moved."""
        return Disruption(self.result.instance, self.outcome.placement)

    @cached_property
    def lost(self) -> tuple[Key, ...]:
        """Pods that run on nodes that are lost, sorted."""
        return tuple(sorted(lost_pods(self.before, self.result.instance)))


def answer_of(instance: Instance, text: Text | None, *, strict: bool = False, deadline: Deadline = NEVER) -> Answer:
    """Judge a placement; nothing is believed that can be made out here.

    ``text``: a Placement or v1 Bindings; None: the cluster as it is. ``strict``: unknown keys are errors. ``deadline``:
    later reasons are ``NotDecided``. Errors of :func:`placer.problem.reading.read_whole_placement`.
    """
    if text is None:
        return _answer(instance, Placement(), None, (), deadline, decided=False)
    placement, unread = read_whole_placement(text, strict=strict)
    said = statement(text)
    findings = list(unread.findings)
    if said is not None and said.instance.sha256 != instance.digest:
        words = "the Placement was made for other input than this; its bounds are dropped, its reasons recomputed"
        findings.append(Finding("PlacementOfOtherInput", text.name, f"{text.name}: {words}"))
        said = None
    return _answer(instance, placement, said, tuple(findings), deadline, decided=True)


def answer_of_result(result: Result) -> Answer:
    """Take a result that was verified when it was made."""
    placement = result.placement or Placement()
    outcome = outcome_of(result.instance, placement)
    return Answer(result.instance, outcome, True, result, True, (), result.reasons, result.findings)


def _answer(
    instance: Instance,
    placement: Placement,
    said: PlacementDocument | None,
    findings: tuple[Finding, ...],
    deadline: Deadline,
    *,
    decided: bool,
) -> Answer:
    before, instance = instance, as_asked(instance, placement)
    outcome = outcome_of(instance, placement)
    violations = tuple(verify(instance, placement))
    believed = None if violations else said
    reasons = _reasons(outcome, believed, deadline, decided=decided, valid=not violations)
    objective = _judged(instance, placement, believed)
    weight = Judged(
        Value(WEIGHT, placed_weight(instance, placement)), None if believed is None else stated_weight_bound(believed)
    )
    met = bool(objective) and all(judged.met for judged in objective)
    result = Result(
        instance=instance,
        placement=placement,
        verdict=Verdict.OPTIMAL if met else Verdict.FEASIBLE,
        objective=objective,
        weight=weight,
        reasons=reasons,
        findings=tuple(sorted({*instance.findings, *findings})),
        trace=(),
        **_origin(said),
    )
    return Answer(before, outcome, decided, result, believed is not None, violations, reasons, result.findings)


def _origin(said: PlacementDocument | None) -> dict[str, Any]:
    if said is None:
        seconds = dict.fromkeys(("read", "build", "solve", "verify", "total"), 0.0)
        return {"method": "another program", "termination": Termination.FINISHED, "seconds": seconds}
    return {
        "method": said.method,
        "termination": said.termination,
        "seconds": said.seconds.as_dict(),
        "seed": said.seed,
        "time_limit": said.limits.seconds,
        "work_limit": said.limits.work,
    }


def _judged(instance: Instance, placement: Placement, said: PlacementDocument | None) -> tuple[Judged, ...]:
    values = score(instance, placement)
    bounds = (None,) * len(values) if said is None else stated_bounds(said, values)
    return tuple(Judged(value, bound) for value, bound in zip(values, bounds, strict=True))


def _reasons(
    outcome: Outcome, said: PlacementDocument | None, deadline: Deadline, *, decided: bool, valid: bool
) -> dict[GroupKey, Reason]:
    evicted = Disruption(outcome.before, outcome.placement).evicted
    groups, apart = outcome.instance.groups.values(), outcome.new.keys() | set(evicted)
    waiting = [group.key for group in groups if any(key not in apart for key in group.pending)]
    if not waiting:
        return {}
    if said is not None:
        return _stated_reasons(waiting, said)
    from placer.answers.reasons import in_short, reasons_beside

    if decided and valid:
        return reasons_beside(outcome.instance, outcome.placement, deadline)
    found = within(deadline, lambda: _reasons_alone(outcome, waiting, deadline), dict[GroupKey, Reason]())
    return found | in_short(outcome.instance, [key for key in waiting if key not in found])


def _stated_reasons(waiting: list[GroupKey], said: PlacementDocument) -> dict[GroupKey, Reason]:
    codes: dict[str, ReasonCode] = {code: code for code in REASONS}
    stated: dict[tuple[str, str, str], Reason] = {
        (part.kind, part.namespace, part.name): Reason(codes[part.reason.code], part.reason.message)
        for part in said.groups
        if part.reason is not None and part.reason.code in codes
    }
    names = {key: (key.kind, key.namespace, key.name) for key in waiting}
    return {key: stated[name] for key, name in names.items() if name in stated}


def _reasons_alone(outcome: Outcome, waiting: list[GroupKey], deadline: Deadline) -> dict[GroupKey, Reason]:
    from placer.answers.reasons.explanation import Causes
    from placer.arrays import Solution
    from placer.arrays.dense_builder import make_dense

    causes = Causes(outcome.instance, make_dense(outcome.instance), Solution())
    found = {key: causes.of(key) for key in deadline.each(waiting)}
    return {key: Reason("NotDecided", UNDECIDED) if cause is None else cause.reason for key, cause in found.items()}
