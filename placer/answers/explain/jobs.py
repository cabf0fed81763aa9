"""A job that is not submitted yet: whether it fits now, when something changes, or never."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Any

from placer.answers.explain.cases import Case, Placed
from placer.answers.explain.causes import Correction, corrections
from placer.answers.explain.decisions import Decision, LoneGroup
from placer.answers.explain.explanation import Explanation, disturb_by_search, equal_pods, gates_words, place_by_search
from placer.answers.explain.question import Question, Say, numbered, silent
from placer.answers.explain.tried_changes import changes
from placer.base.deadline import Deadline, within
from placer.base.errors import UsageError
from placer.problem import GroupKey, Instance
from placer.problem.outcome import Outcome
from placer.problem.placement import Placement
from placer.problem.what_if import empty


class JobFits(StrEnum):
    """When a job fits."""

    NOW = "now"  #: beside what runs, others that wait left out
    CHANGE = "change"  #: not beside what runs, and what of the job fits before it, but on the empty cluster
    NEVER = "never"  #: not even where only DaemonSet and static pods run


@dataclass(frozen=True)
class JobAnswer:
    """When one group of a job fits (None: undecided), and why not now; of one that never fits on the empty cluster.

    ``tier``, ``hyper_node``: where it fits now; None: the virtual root. ``decided_by``: who decided and confirmed.
    """

    answer: JobFits | None
    explanation: Explanation
    tier: int | None = None
    hyper_node: str | None = None
    decided_by: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Plain data (models/interface.md)."""
        plain = self.explanation.as_dict()
        where = {"tier": self.tier, "hyperNode": self.hyper_node} if self.answer is JobFits.NOW else {}
        return {**plain, "answer": self.answer and str(self.answer), **where, "decidedBy": list(self.decided_by)}


def job_groups(case: Case, without: Case) -> list[GroupKey]:
    """Groups whose pods wait and are not there without the job; none is a :class:`UsageError`."""
    there = without.instance.pods
    found = dict.fromkeys(pod.group for pod in case.instance.pending if pod.key not in there and pod.group is not None)
    if not found:
        gated = {key: pod for key, pod in case.gated.items() if key not in without.gated}
        what = gates_words(gated) if gated else "no new pod that would wait"
        raise UsageError(
            f"--job: found {what}, expected Pods that are not there yet and have no node, or a workload that makes them"
        )
    return list(found)


def explain_job(case: Case, keys: Sequence[GroupKey], deadline: Deadline, say: Say = silent) -> Iterator[JobAnswer]:
    """When each group of a job fits, next to those before it that do; others that wait are left out."""
    instance, before = case.instance, Placement()
    equal: Mapping[GroupKey, frozenset[GroupKey]] = within(deadline, lambda: equal_pods(instance), {})
    refused: dict[frozenset[GroupKey], JobAnswer] = {}
    for at, key in enumerate(keys):
        known = refused.get(equal.get(key, frozenset()))
        if known is not None:
            yield replace(known, explanation=replace(known.explanation, group=key))
            continue
        share = Deadline.within(max(0.0, deadline.left) / (len(keys) - at))
        lone = LoneGroup(instance, key, share)
        steps = numbered(key, at, len(keys), say)
        decision = within(deadline, lone.confirmed, Decision(None))
        if decision.fits and decision.placement is not None:
            yield _now(instance, key, decision)
            instance = Outcome(instance, decision.placement).carried_out()
            before = Placement((*before.bindings, *decision.placement.bindings))
            refused = {}
        else:
            ask = partial(_later, case.with_only(key, before), lone, decision, share, steps)
            answer = within(deadline, ask, JobAnswer(None, Explanation(key, admitted=False)))
            refused |= {equal[key]: answer} if key in equal else {}
            yield answer


def _now(instance: Instance, key: GroupKey, decision: Decision) -> JobAnswer:
    nodes = set((decision.placement or Placement()).node_of.values())
    nodes |= {instance.pods[pod].node or "" for pod in instance.groups[key].bound}
    where = instance.topology.smallest_common(nodes)
    explanation = Explanation(key, admitted=True)
    return JobAnswer(JobFits.NOW, explanation, instance.topology.tier(where), where, decision.by)


def _later(case: Case, lone: LoneGroup, decision: Decision, deadline: Deadline, say: Say) -> JobAnswer:
    on_empty = LoneGroup(empty(lone.instance), lone.key, deadline)
    ever = on_empty.confirmed() if decision.fits is False else Decision(None)
    never = ever.fits is False
    sets: Sequence[Correction] = corrections(on_empty if never else lone) or ()
    asked = Question(case, lone.key, Placed(lone.instance, Placement()), tuple(sets), deadline, say=say)
    tried = tuple(changes(asked, place_by_search, disturb_by_search)) if decision.fits is False else ()
    explanation = Explanation(lone.key, admitted=False, corrections=tuple(sets), changes=tried)
    answer = None if ever.fits is None else JobFits.NEVER if never else JobFits.CHANGE
    return JobAnswer(answer, explanation, decided_by=ever.by if never else decision.by)
