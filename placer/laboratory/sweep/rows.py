"""Many lines in few figures: a row per instance and policy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain

from placer.laboratory.sweep.line import Line
from placer.laboratory.sweep.medians import Median, median_of
from placer.result import Verdict
from placer.verify import RULES

__all__ = ["Row", "rows"]


@dataclass(frozen=True, slots=True)
class Row:
    """All seeds of one instance word under one policy; figures are of the runs that did not fail, None without any.

    Parameters
    ----------
    instance, policy
        Of all its lines.
    runs, failed
        How many lines, and how many of them have an error.
    over_planted, worst_over_planted
        Placed over planted weight; of the runs where something is planted.
    of_bound, worst_of_bound
        Placed weight over the best bound that any run proved on the same instance and seed, 1 where that is 0; of the
        runs where there is one. A placement that breaks a rule may be above 1.
    worst_gap
        Largest gap of the weight; None also where a run proved no bound.
    optimal
        How many runs proved every value.
    violations
        Rule to how often it is broken in all runs.
    first
        Seconds to the first answer; of the runs that had one.
    seconds, worst_seconds
        Of the whole call.
    peak_memory_mib
        Largest of all runs.
    notes
        What is not mimicked, of any run.
    """

    instance: str
    policy: str
    runs: int
    failed: int
    over_planted: Median | None
    worst_over_planted: float | None
    of_bound: Median | None
    worst_of_bound: float | None
    worst_gap: float | None
    optimal: int
    first: Median | None
    seconds: Median | None
    worst_seconds: float | None
    peak_memory_mib: float | None
    violations: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def rows(lines: Iterable[Line]) -> list[Row]:
    """Gather lines by instance word and policy, in the order in which these first come."""
    gathered: dict[tuple[str, str], list[Line]] = {}
    bounds: dict[tuple[str, int], int] = {}
    for line in lines:
        gathered.setdefault((line.instance, line.policy), []).append(line)
        if line.weight_bound is not None and line.error is None:
            what = line.instance, line.seed
            bounds[what] = min(line.weight_bound, bounds.get(what, line.weight_bound))
    return [_row(instance, policy, found, bounds) for (instance, policy), found in gathered.items()]


def _row(instance: str, policy: str, lines: list[Line], bounds: Mapping[tuple[str, int], int]) -> Row:
    good = [line for line in lines if line.error is None]
    shares = _known(line.placed_over_planted for line in good)
    of_bounds = _shares_of_bounds(good, bounds)
    gaps = _known(line.weight_gap for line in good)
    seconds = _known(line.seconds for line in good)
    return Row(
        instance=instance,
        policy=policy,
        runs=len(lines),
        failed=len(lines) - len(good),
        over_planted=median_of(shares),
        worst_over_planted=min(shares, default=None),
        of_bound=median_of(of_bounds),
        worst_of_bound=min(of_bounds, default=None),
        worst_gap=max(gaps, default=None) if len(gaps) == len(good) else None,
        optimal=sum(line.verdict is Verdict.OPTIMAL for line in good),
        first=median_of(_known(line.seconds_to_first for line in good)),
        seconds=median_of(seconds),
        worst_seconds=max(seconds, default=None),
        peak_memory_mib=max(_known(line.peak_memory_mib for line in good), default=None),
        violations=_violations(good),
        notes=tuple(dict.fromkeys(chain.from_iterable(line.notes for line in good))),
    )


def _known(figures: Iterable[float | None]) -> list[float]:
    return [figure for figure in figures if figure is not None]


def _shares_of_bounds(lines: Iterable[Line], bounds: Mapping[tuple[str, int], int]) -> list[float]:
    known = [(line.placed_weight, bounds.get((line.instance, line.seed))) for line in lines]
    return [weight / bound if bound else 1.0 for weight, bound in known if weight is not None and bound is not None]


def _violations(lines: Iterable[Line]) -> dict[str, int]:
    """How often each rule is broken in all of them, in the order of the rules."""
    found = sum((Counter(line.violations) for line in lines), Counter[str]())
    return {rule: found[rule] for rule, _ in RULES if found[rule]}
