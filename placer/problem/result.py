"""Why it stopped, what there is, and what is proved: three questions, three values.

==============================  ===========  ==========  =========================================================
situation                       termination  verdict     shown
==============================  ===========  ==========  =========================================================
every value meets its bound     proved       OPTIMAL     the placement, gap 0 on every value
search ended without a proof    finished     FEASIBLE    the placement, bounds as far as proved
search died (``SolverDied``)    finished     FEASIBLE    the same, of what it had reported before
time or work limit, an answer   time         FEASIBLE    the same
time limit, proof was in hand   proved       OPTIMAL     a bound may come from counting alone, without a search
Ctrl-C or SIGTERM               interrupted  FEASIBLE    the best answer so far
``exact`` found nothing         time         UNKNOWN     no placement; exit 4
``--require-all``, impossible   any          INFEASIBLE  the best placement; a bound proves that one pod stays out
==============================  ===========  ==========  =========================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Any

from placer.base.codes import ReasonCode
from placer.base.words import Sentence
from placer.problem import Finding, GroupKey, Instance, Pod
from placer.problem.placement import MAXIMISED, Binding, Placement, Score, Value


class Termination(StrEnum):
    """Why it stopped."""

    PROVED = "proved"
    FINISHED = "finished"
    TIME = "time"
    INTERRUPTED = "interrupted"


class Verdict(StrEnum):
    """How much is proved of the answer."""

    OPTIMAL = "OPTIMAL"
    FEASIBLE = "FEASIBLE"
    INFEASIBLE = "INFEASIBLE"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True)
class Reason:
    """Why pods stay pending: a code (:data:`placer.base.codes.REASONS`) and one sentence, with a text for each
    reader.
    """

    code: ReasonCode
    text: str | Sentence

    @property
    def message(self) -> str:
        """The sentence for operators, which names everything."""
        return str(self.text)

    def told(self, namespace: str) -> str:
        """The sentence for readers of a Namespace, which names nothing of others."""
        return self.text if isinstance(self.text, str) else self.text.told(namespace)


#: Name of the placed weight of all priorities together, which is no value of the objective; more of it is better.
WEIGHT = "weight"


@dataclass(frozen=True, slots=True)
class Bound:
    """A number that no placement beats, and who proved it."""

    value: int
    by: str


@dataclass(frozen=True, slots=True)
class Judged:
    """A value with what is proved about it."""

    value: Value
    bound: Bound | None = None

    @property
    def gap(self) -> float | None:
        """|bound - value| / max(1, |value|); None without a bound."""
        if self.bound is None:
            return None
        return abs(self.bound.value - self.value.value) / max(1, abs(self.value.value))

    @property
    def met(self) -> bool:
        """Whether the value meets its bound."""
        return self.bound is not None and self.bound.value == self.value.value

    @property
    def beyond(self) -> bool:
        """Whether the value is better than its bound."""
        if self.bound is None:
            return False
        if self.value.name in MAXIMISED or self.value.name == WEIGHT:
            return self.value.value > self.bound.value
        return self.value.value < self.bound.value


def doubts(judged: Iterable[Judged]) -> list[Finding]:
    """Say of which values a verified placement is better than the bound."""
    return [
        Finding(
            "BoundContradicted",
            each.value.name,
            f"{each.bound.by} claimed that {each.value.name} cannot be better than {each.bound.value}, but a verified "
            f"placement has {each.value.value}; no bound of this run is shown.",
        )
        for each in judged
        if each.bound is not None and each.beyond
    ]


@dataclass(frozen=True, slots=True)
class TracePoint:
    """The answer or a bound got better, so many seconds after the call began."""

    seconds: float
    phase: str
    values: tuple[int, ...]
    bounds: tuple[int | None, ...]


def judge(score: Score, bounds: Sequence[Bound | None]) -> tuple[tuple[Judged, ...], list[Finding]]:
    """Put bounds next to values: a bound counts only while every value above it is proved.

    Where a value is better than its bound, no bound is shown, and it is a finding. ``bounds``: one entry per value;
    each holds for placements that equal the answer on the values above.
    """
    found: list[Judged] = []
    proved = True
    for value, bound in zip(score, bounds, strict=True):
        judged = Judged(value, bound if proved else None)
        found.append(judged)
        proved = proved and judged.met
    contradicted = doubts(found)
    return tuple(map(Judged, score) if contradicted else found), contradicted


def reach_words(unread: int) -> str:
    """Say, behind a proof, that pods are no part of it; empty where there are none.

    Examples
    --------
    >>> reach_words(0), reach_words(3)
    ('', ', of all that placer reads; 3 pods are not read')
    """
    verb = "s are" if unread != 1 else " is"
    return f", of all that placer reads; {unread:,} pod{verb} not read" if unread else ""


@dataclass(frozen=True)
class Result:
    """A verified answer with everything that is known about it.

    Parameters
    ----------
    instance
        The question.
    placement
        The answer; None only where the verdict is UNKNOWN.
    method
        Which produced the placement.
    termination, verdict
        Why it stopped, and how much is proved.
    objective
        Values with bounds in the order they are compared; empty where there is no placement.
    weight
        Placed weight of all priorities as one sum (micro-nodes), with a bound on that sum: no placement that is at
        least as good in the order of the objective has more. Without a bound where the policy leaves ``placed`` out.
    reasons
        Why pods of a group stay pending; only groups of which some do.
    findings
        Those of the instance, and about the solver.
    trace
        How the answer and the bounds got better.
    seconds
        Wall clock by step: read, build, solve, verify, total.
    seed, time_limit, work_limit
        As asked (seconds, deterministic units; None: unlimited).
    plan
        Of a plan that ``placer.preempt``, ``defrag`` or ``repair`` made, the printed lines of the command of that name.
    """

    instance: Instance
    placement: Placement | None
    method: str
    termination: Termination
    verdict: Verdict
    objective: tuple[Judged, ...]
    weight: Judged
    reasons: Mapping[GroupKey, Reason]
    findings: tuple[Finding, ...]
    trace: tuple[TracePoint, ...]
    seconds: Mapping[str, float]
    seed: int = 0
    time_limit: float | None = None
    work_limit: float | None = None
    plan: tuple[str, ...] = ()

    @property
    def unsupported(self) -> int:
        """How many pods wait since they, or their gang, ask for more than is modelled (C4)."""
        placed = {binding.pod for binding in self.placement.bindings} if self.placement is not None else set()
        return sum(self._is_unsupported(pod) for pod in self.instance.pending if pod.key not in placed)

    def _is_unsupported(self, pod: Pod) -> bool:
        reason = self.reasons.get(pod.group) if pod.group is not None else None
        return bool(pod.unsupported) if reason is None else reason.code == "Unsupported"

    @property
    def reach(self) -> str:
        """Which pods the verdict is not about."""
        return reach_words(self.unsupported)

    def __repr__(self) -> str:
        """Say in one line what came of it."""
        bindings = len(self.placement.bindings) if self.placement is not None else 0
        groups = len(self.reasons)
        waiting = f", {groups:,} group{' waits' if groups == 1 else 's wait'}" if groups else ""
        return (
            f"<Result {self.verdict}: {bindings:,} of {len(self.instance.pending):,} pending pods placed{waiting}; "
            f"{self.termination} after {self.seconds.get('total', 0.0):.1f} s, found by {self.method}{self.reach}>"
        )

    def _repr_html_(self) -> str:
        return str(_shown(self, "html_of"))

    @property
    def bindings(self) -> tuple[Binding, ...]:
        """Pods and their nodes, in the order of binding."""
        return self.placement.bindings if self.placement is not None else ()

    def summary(self, *, wide: bool = False) -> str:
        """What the command prints that decides so, as text.

        Parameters
        ----------
        wide
            Name the nodes of each admitted group, too.
        """
        return str(_shown(self, "summary_of", wide))

    def save(self, path: str | Path, *, bindings: bool = False) -> None:
        """Write the Placement, as ``placer solve -o`` does.

        Parameters
        ----------
        path
            A file: ``.json`` or ``.yaml``, each also ``.gz``.
        bindings
            Write the v1 Bindings alone, as ``placer solve --bindings`` does.

        Raises
        ------
        NothingFound
            There is no placement.
        UsageError
            The file has another ending, or cannot be written.
        """
        _shown(self, "save_result", path, bindings)

    @property
    def died(self) -> str | None:
        """How its search died, if it did."""
        return next((finding.message for finding in self.findings if finding.code == "SolverDied"), None)

    @property
    def nothing_found(self) -> str:
        """Why there is no placement, in words."""
        if self.died is not None:
            return f"{self.method} found nothing: {self.died}"
        if self.termination is Termination.FINISHED:
            return f"{self.method} found nothing: its model of this instance would be too large"
        return f"{self.method} found nothing before it had to stop ({self.termination})"

    @property
    def everything_placed(self) -> bool:
        """Whether every pending pod got a node (``--require-all``)."""
        return self.placement is not None and len(self.placement.node_of) == len(self.instance.pending)


def _shown(result: Result, name: str, *arguments: Any) -> Any:
    """Call a function of ``placer.api``: what shows and writes results stands above them."""
    return getattr(import_module("placer.api"), name)(result, *arguments)
