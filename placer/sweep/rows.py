"""Many lines in few figures: a row per instance and policy."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from placer.result import Verdict
from placer.sweep.line import Line

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
    median_over_planted, worst_over_planted
        Placed over planted weight; of the runs where something is planted.
    worst_gap
        Largest gap of the weight; None also where a run proved no bound.
    optimal
        How many runs proved every value.
    median_first
        Seconds to the first answer; of the runs that had one.
    median_seconds, worst_seconds
        Of the whole call.
    peak_memory_mib
        Largest of all runs.
    """

    instance: str
    policy: str
    runs: int
    failed: int
    median_over_planted: float | None
    worst_over_planted: float | None
    worst_gap: float | None
    optimal: int
    median_first: float | None
    median_seconds: float | None
    worst_seconds: float | None
    peak_memory_mib: float | None


def rows(lines: Iterable[Line]) -> list[Row]:
    """Gather lines by instance word and policy, in the order in which these first come."""
    gathered: dict[tuple[str, str], list[Line]] = {}
    for line in lines:
        gathered.setdefault((line.instance, line.policy), []).append(line)
    return [_row(instance, policy, found) for (instance, policy), found in gathered.items()]


def _row(instance: str, policy: str, lines: list[Line]) -> Row:
    good = [line for line in lines if line.error is None]
    shares = [line.placed_over_planted for line in good if line.placed_over_planted is not None]
    gaps = [line.weight_gap for line in good if line.weight_gap is not None]
    firsts = [line.seconds_to_first for line in good if line.seconds_to_first is not None]
    seconds = [line.seconds for line in good if line.seconds is not None]
    return Row(
        instance=instance,
        policy=policy,
        runs=len(lines),
        failed=len(lines) - len(good),
        median_over_planted=_median(shares),
        worst_over_planted=min(shares, default=None),
        worst_gap=max(gaps, default=None) if len(gaps) == len(good) else None,
        optimal=sum(line.verdict is Verdict.OPTIMAL for line in good),
        median_first=_median(firsts),
        median_seconds=_median(seconds),
        worst_seconds=max(seconds, default=None),
        peak_memory_mib=max((line.peak_memory_mib for line in good if line.peak_memory_mib is not None), default=None),
    )


def _median(values: list[float]) -> float | None:
    return median(values) if values else None
