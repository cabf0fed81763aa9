"""Policies and methods side by side on one instance: what each would place, and what is proved of the best.

Each decides in a process of its own, one after another, so that its seconds and its memory are its own
(:func:`decide`); verify and score judge all alike (:func:`row`); what any of them proved is set beside all
(:func:`beside_proofs`). A comparison is of one snapshot: what each would bind now, from one queue, with nothing
arriving or ending.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from placer.errors import NothingFound, PlacerError, UsageError, VerificationFailed
from placer.instance import Instance
from placer.laboratory.deciders import NAMES, Asked, ask, configuration_of
from placer.laboratory.peak_memory import PeakOfTree, high_water
from placer.laboratory.placement_metrics import GroupFate, Metrics, admitted_groups, fates, gpus_placed, measure
from placer.laboratory.policies import POLICIES, Mimicry
from placer.methods.process import ProcessEnd, run_apart
from placer.outcome import Outcome
from placer.placement import MAXIMISED, Placement, Value, better
from placer.result import WEIGHT, Bound, Judged
from placer.score import placed_weight, score
from placer.verify import RULES, verify

__all__ = [
    "DEFAULT",
    "NAMES",
    "ComparisonRow",
    "Decided",
    "Failed",
    "beside_proofs",
    "compare",
    "decide",
    "failed_row",
    "row",
]


@dataclass(frozen=True, slots=True)
class Decided:
    """A placement, not judged yet.

    Parameters
    ----------
    placement
        What it would bind.
    bounds
        What was proved, one per value of the objective; empty for a policy, which proves nothing.
    weight_bound
        What the placed weight of no valid placement exceeds that is at least as good in the order of the objective;
        None: nothing was proved.
    seconds
        From having the instance to having the placement.
    peak_memory
        High-water mark of the process at the end, KiB; 0 where the system does not tell.
    notes
        What of a policy is not mimicked (:class:`placer.laboratory.policies.Mimicry`).
    """

    placement: Placement
    bounds: tuple[Bound | None, ...]
    weight_bound: Bound | None
    seconds: float
    peak_memory: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Failed:
    """Why there is no placement, and the exit code that this has."""

    error: str
    exit_code: int = 1


def decide(instance: Instance, asked: Asked, emit: Callable[[Any], None]) -> Decided | Failed:
    """Decide and measure.

    Parameters
    ----------
    instance
        The problem.
    asked
        Who decides, and the limits.
    emit
        Is told the id of this process, and None when the decision is there (:class:`~placer.laboratory.peak_memory.
        PeakOfTree`).
    """
    emit(os.getpid())
    began = time.monotonic()
    try:
        found = _decide(instance, asked, began)
    except PlacerError as error:
        return Failed(str(error), error.exit_code)
    seconds, peak = time.monotonic() - began, high_water("self")
    emit(None)
    return replace(found, seconds=seconds, peak_memory=peak)


def _decide(instance: Instance, asked: Asked, began: float) -> Decided:
    """The decision; what it took is not known yet."""
    said = ask(instance, asked, began)
    if isinstance(said, Mimicry):
        return Decided(said.placement, (), None, 0.0, 0, said.notes)
    if said.placement is None:
        raise NothingFound(said.nothing_found)
    return Decided(said.placement, tuple(judged.bound for judged in said.objective), said.weight.bound, 0.0, 0)


@dataclass(frozen=True)
class ComparisonRow:
    """One line of a comparison.

    A bound holds for valid placements; a placement with violations may be beyond it.

    Parameters
    ----------
    policy
        Name of the policy or method.
    placed_pods
        Pending pods that get a node.
    placed_groups
        Groups, single pods included, that become ready (:func:`placer.laboratory.placement_metrics.admitted_groups`).
    gpus_placed
        GPUs that these pods request.
    objective
        Values in the order they are compared, each with the best bound that any row proved for placements that equal
        this one on the values above it.
    weight
        Placed weight of all priorities as one sum in micro-nodes, with the best bound that any row proved. It holds for
        placements that are at least as good as that row's in the order of the objective; others may weigh more.
    violations
        Rule to how often it is broken, in the order of the rules; only what is broken.
    examples
        Rule to what the first violation of it says.
    metrics
        See there; None in a row that failed.
    groups
        What becomes of every group with pending pods, in the order of the groups; empty in a row that failed.
    notes
        What the configuration of a policy says and is not mimicked (:class:`placer.laboratory.policies.Mimicry`).
    seconds
        From having the instance to having the placement; reading and judging are not in it.
    peak_memory_mib
        The most that the process and the ones it started held at once, MiB; None where the system does not tell.
    error
        Why there is no placement: every number above is None, or empty, then. Or, beside the numbers, which bound this
        valid placement is beyond, which no sound proof allows.
    exit_code
        That of the error; 0 without one.
    """

    policy: str
    placed_pods: int | None = None
    placed_groups: int | None = None
    gpus_placed: int | None = None
    objective: tuple[Judged, ...] = ()
    weight: Judged | None = None
    violations: Mapping[str, int] = field(default_factory=dict)
    examples: Mapping[str, str] = field(default_factory=dict)
    metrics: Metrics | None = None
    groups: tuple[GroupFate, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float | None = None
    peak_memory_mib: float | None = None
    error: str | None = None
    exit_code: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Plain data with the names of models/interface.md; beside them ``notes`` and ``error`` where there are any."""
        metrics = None
        if self.metrics is not None and self.weight is not None:
            metrics = {"weight": _numbers(self.weight), **self.metrics.as_dict()}
        return {
            "policy": self.policy,
            "placedPods": self.placed_pods,
            "placedGroups": self.placed_groups,
            "gpusPlaced": self.gpus_placed,
            "objective": [_value(judged) for judged in self.objective],
            "violations": dict(self.violations),
            "metrics": metrics,
            "groups": [fate.as_dict() for fate in self.groups],
            "seconds": self.seconds,
            "peakMemoryMiB": self.peak_memory_mib,
            **({"notes": list(self.notes)} if self.notes else {}),
            **({} if self.error is None else {"error": self.error}),
        }


def _value(judged: Judged) -> dict[str, Any]:
    value = judged.value
    priority = {} if value.priority is None else {"priority": value.priority}
    return {"name": value.name, **priority, **_numbers(judged)}


def _numbers(judged: Judged) -> dict[str, Any]:
    bound, gap = judged.bound, judged.gap
    return {
        "value": judged.value.value,
        "bound": None if bound is None else bound.value,
        "gap": None if gap is None else round(gap, 6),
        "provedBy": None if bound is None else bound.by,
    }


def failed_row(asked: Asked, failed: Failed) -> ComparisonRow:
    """Make the row of what has no placement."""
    return ComparisonRow(asked.name, error=failed.error, exit_code=failed.exit_code)


def row(instance: Instance, asked: Asked, decided: Decided, peak: int) -> ComparisonRow:
    """Judge and measure a placement; its own bounds only (:func:`beside_proofs` adds those of others).

    Parameters
    ----------
    instance, asked, decided
        The problem, who decided, and what.
    peak
        Of the process and the ones it started, KiB, as seen from outside.
    """
    placement = decided.placement
    values = score(instance, placement)
    bounds = decided.bounds or (None,) * len(values)
    violations = verify(instance, placement)
    broken = Counter(violation.rule for violation in violations)
    memory = max(peak, decided.peak_memory)
    return ComparisonRow(
        policy=asked.name,
        placed_pods=len(Outcome(instance, placement).new),
        placed_groups=len(admitted_groups(instance, placement)),
        gpus_placed=gpus_placed(instance, placement),
        objective=tuple(Judged(value, bound) for value, bound in zip(values, bounds, strict=True)),
        weight=Judged(Value(WEIGHT, placed_weight(instance, placement)), decided.weight_bound),
        violations={name: broken[name] for name, _ in RULES if broken[name]},
        examples={each.rule: each.message for each in reversed(violations)},
        metrics=measure(instance, placement),
        groups=fates(instance, placement),
        notes=decided.notes,
        seconds=round(decided.seconds, 3),
        peak_memory_mib=round(memory / 1024, 1) or None,
    )


def beside_proofs(rows: Sequence[ComparisonRow]) -> list[ComparisonRow]:
    """Put beside every value the best bound that any row proved.

    A bound of a value holds among the placements that equal those of its row on the values above; so it is put only
    beside rows that do. A bound of the placed weight holds for every valid placement that is at least as good as its
    own row in the order of the objective; the best one is put beside all rows, since it is what the best placement
    could weigh at most. A row that is valid and beyond a bound that holds for it gets an error: the proof or the judge
    is wrong.
    """
    proofs: dict[tuple[tuple[int, ...], Value], Bound] = {}
    for each in rows:
        for key, judged in _placed_in_order(each):
            _keep_best(proofs, key, judged)
    of_weight = _best((each.weight.bound for each in rows if each.weight is not None), maximised=True)
    found = [
        replace(
            each,
            objective=tuple(Judged(judged.value, proofs.get(key)) for key, judged in _placed_in_order(each)),
            weight=None if each.weight is None else Judged(each.weight.value, of_weight),
        )
        for each in rows
    ]
    return [_doubted(each, rows) for each in found]


def _doubted(one: ComparisonRow, rows: Sequence[ComparisonRow]) -> ComparisonRow:
    """Add the error of a valid row that is beyond a bound that some row proved for it."""
    beyond = [judged for judged in one.objective if judged.beyond]
    if one.weight is not None:
        bound = _best((each.weight.bound for each in rows if each.weight and _at_least(one, each)), maximised=True)
        weight = Judged(one.weight.value, bound)
        beyond += [weight] if weight.beyond else []
    claims = [
        f"{judged.bound.by} claimed that {judged.value.name} cannot be better than {judged.bound.value}, but this "
        f"valid placement has {judged.value.value}"
        for judged in beyond
        if judged.bound is not None
    ]
    if not claims or one.violations:
        return one
    return replace(one, error="; ".join((*claims, "this is a bug in placer")), exit_code=VerificationFailed.exit_code)


def _at_least(one: ComparisonRow, other: ComparisonRow) -> bool:
    """Whether a row is at least as good as another one in the order of the objective."""
    mine, theirs = (tuple(judged.value for judged in row.objective) for row in (one, other))
    return not better(theirs, mine)


def _placed_in_order(one: ComparisonRow) -> list[tuple[tuple[tuple[int, ...], Value], Judged]]:
    """Every value with the numbers above it and what it is called: what a bound of it speaks about."""
    numbers = tuple(judged.value.value for judged in one.objective)
    return [((numbers[:index], replace(judged.value, value=0)), judged) for index, judged in enumerate(one.objective)]


def _keep_best(
    proofs: dict[tuple[tuple[int, ...], Value], Bound], key: tuple[tuple[int, ...], Value], judged: Judged
) -> None:
    best = _best((proofs.get(key), judged.bound), maximised=judged.value.name in MAXIMISED)
    if best is not None:
        proofs[key] = best


def _best(bounds: Iterable[Bound | None], *, maximised: bool) -> Bound | None:
    """The tightest bound; of equal ones the first."""
    proved = [bound for bound in bounds if bound is not None]
    return min(proved, key=lambda bound: bound.value if maximised else -bound.value, default=None)


#: What is compared where nothing is chosen: every policy, and what placer itself does, fast and by default.
DEFAULT = (*POLICIES, "greedy", "auto")


def compare(
    instance: Instance,
    names: Sequence[str] = DEFAULT,
    *,
    time_limit: float | None = 60.0,
    work_limit: float | None = None,
    workers: int | None = None,
    seed: int = 0,
    arguments: Mapping[str, Mapping[str, Any]] | None = None,
    begin: Callable[[str], None] | None = None,
) -> list[ComparisonRow]:
    """Compare policies and methods.

    Parameters
    ----------
    instance
        The problem.
    names
        Of :data:`NAMES`; one given twice counts once.
    time_limit, work_limit, workers
        Of each method, as :func:`placer.solve` takes them. Policies run to their end.
    seed
        Of each, 0 .. 2^31 - 1.
    arguments
        Policy to its configuration (:func:`placer.laboratory.policies.config.read_config`).
    begin
        Called with each name before it runs (progress).

    Returns
    -------
    list[Row]
        One per name, in their order; one that fails is a row with its error. The first value of every row, and each
        further one as far as the row is as good as the best, has the best bound that any method proved.

    Raises
    ------
    UsageError
        With every argument that makes no sense.
    """
    configured = arguments or {}
    _check(names, configured, time_limit, work_limit, workers, seed)
    rows = []
    for name in dict.fromkeys(names):
        if begin is not None:
            begin(name)
        asked = Asked(name, configuration_of(name, configured), time_limit, work_limit, workers, seed)
        rows.append(_run(instance, asked))
    return beside_proofs(rows)


def _check(
    names: Sequence[str],
    arguments: Mapping[str, Any],
    time_limit: float | None,
    work_limit: float | None,
    workers: int | None,
    seed: int,
) -> None:
    endless = float("inf")
    bare = {name.partition(":")[0] for name in names}
    faults = [
        f"{what}: found {found}, expected {expected}"
        for what, found, expected, fine in (
            ("policies", "none", "at least one", bool(names)),
            *(("policy", repr(name), f"one of {', '.join(NAMES)}", name in NAMES) for name in names),
            *(("configuration", f"one for {name}", "it among the policies", name in bare) for name in arguments),
            ("time limit", time_limit, "seconds, at least 0", time_limit is None or 0 <= time_limit < endless),
            ("work limit", work_limit, "a number above 0", work_limit is None or 0 < work_limit < endless),
            ("workers", workers, "at least 1", workers is None or workers >= 1),
            ("seed", seed, "0 to 2147483647", 0 <= seed < 2**31),
        )
        if not fine
    ]
    if faults:
        raise UsageError("; ".join(faults))


def _run(instance: Instance, asked: Asked) -> ComparisonRow:
    """Decide in another process, judge in this one: what judging takes is not the decision's."""
    with PeakOfTree() as tree:
        ended = run_apart("placer.laboratory.compare:decide", (instance, asked), tree.hear)
    if ended.how is ProcessEnd.INTERRUPTED:
        raise KeyboardInterrupt
    found: Decided | Failed = ended.value or Failed(f"the process of the row ended with {ended.detail}")
    if isinstance(found, Failed):
        return failed_row(asked, found)
    return row(instance, asked, found, tree.peak)
