"""A row: one placement judged, measured and set beside what is proved of the best."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from placer.errors import VerificationFailed
from placer.instance import Instance
from placer.laboratory.compare.decide import Decided, Failed
from placer.laboratory.compare.fates import GroupFate, fates
from placer.laboratory.compare.metrics import Metrics, admitted_groups, gpus_placed, measure
from placer.laboratory.deciders import Asked
from placer.outcome import Outcome
from placer.placement import MAXIMISED, Value, better
from placer.result import WEIGHT, Bound, Judged
from placer.score import placed_weight, score
from placer.verify import RULES, verify

__all__ = ["Row", "beside_proofs", "failed_row", "row"]


@dataclass(frozen=True)
class Row:
    """One line of a comparison.

    A bound holds for valid placements; a placement with violations may be beyond it.

    Parameters
    ----------
    policy
        Name of the policy or method.
    placed_pods
        Pending pods that get a node.
    placed_groups
        Groups, single pods included, that become ready (:func:`placer.laboratory.compare.metrics.admitted_groups`).
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


def failed_row(asked: Asked, failed: Failed) -> Row:
    """Make the row of what has no placement."""
    return Row(asked.name, error=failed.error, exit_code=failed.exit_code)


def row(instance: Instance, asked: Asked, decided: Decided, peak: int) -> Row:
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
    return Row(
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


def beside_proofs(rows: Sequence[Row]) -> list[Row]:
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


def _doubted(one: Row, rows: Sequence[Row]) -> Row:
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


def _at_least(one: Row, other: Row) -> bool:
    """Whether a row is at least as good as another one in the order of the objective."""
    mine, theirs = (tuple(judged.value for judged in row.objective) for row in (one, other))
    return not better(theirs, mine)


def _placed_in_order(one: Row) -> list[tuple[tuple[tuple[int, ...], Value], Judged]]:
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
