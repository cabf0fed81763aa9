"""Statistics of many lines: medians with exact intervals, a row per instance and policy, every two policies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain, combinations
from math import comb
from statistics import median

from placer.laboratory.sweep.records import RunRecord
from placer.placement import Score, Value, better
from placer.result import Verdict
from placer.verify import in_order

__all__ = ["CONFIDENCE", "Duel", "Median", "SweepRow", "duels", "median_of", "references", "rows"]


#: How sure an interval is to hold the median, where there are figures enough.
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Median:
    """The median of some figures, and an interval for the median of their distribution.

    Parameters
    ----------
    low, high
        Ends of the interval; both are figures.
    confidence
        Probability that such an interval holds the true median: at least :data:`CONFIDENCE` from six figures on; less
        of fewer, whose interval is their range; 0 of one.
    """

    value: float
    low: float
    high: float
    confidence: float


def median_of(figures: Iterable[float]) -> Median | None:
    """Take the median; None of nothing.

    The interval goes from the k-th smallest to the k-th largest figure, with the largest k for which the binomial tail
    P(Bin(n, 1/2) < k) on either side leaves enough confidence. Nothing is assumed of the distribution.

    Examples
    --------
    >>> median_of([3.0, 1.0, 2.0, 5.0, 4.0, 6.0])
    Median(value=3.5, low=1.0, high=6.0, confidence=0.96875)
    """
    found = sorted(figures)
    if not found:
        return None
    count, place = len(found), 1
    while 2 * (place + 1) <= count and _confidence(count, place + 1) >= CONFIDENCE:
        place += 1
    return Median(median(found), found[place - 1], found[count - place], _confidence(count, place))


def _confidence(count: int, place: int) -> float:
    return 1 - 2 * sum(comb(count, below) for below in range(place)) / (1 << count)


@dataclass(frozen=True, slots=True)
class Duel:
    """Two policies over all instances and seeds that both were run on, compared by the objective.

    A placement that breaks a rule loses against one that breaks none. Where both break rules, or a run failed, it is
    ``open``.
    """

    first: str
    second: str
    wins: int
    losses: int
    ties: int
    open: int


def duels(lines: Iterable[RunRecord]) -> list[Duel]:
    """Let every two policies compete, in the order in which they first come."""
    by_policy: dict[str, dict[tuple[str, int], RunRecord]] = {}
    for line in lines:
        by_policy.setdefault(line.policy, {})[line.instance, line.seed] = line
    return [_duel(first, second, by_policy[first], by_policy[second]) for first, second in combinations(by_policy, 2)]


def _duel(
    first: str, second: str, one: dict[tuple[str, int], RunRecord], other: dict[tuple[str, int], RunRecord]
) -> Duel:
    ends = [_end(one[what], other[what]) for what in one if what in other]
    return Duel(first, second, ends.count(1), ends.count(-1), ends.count(0), ends.count(None))


def _end(one: RunRecord, other: RunRecord) -> int | None:
    """1: ``one`` is better; -1: ``other`` is; 0: equal; None: undecided."""
    if one.error is not None or other.error is not None or (one.violations and other.violations):
        return None
    if one.violations or other.violations:
        return -1 if one.violations else 1
    mine, theirs = _score(one), _score(other)
    return better(mine, theirs) - better(theirs, mine)


def _score(line: RunRecord) -> Score:
    return tuple(Value(each.name, each.value, each.priority) for each in line.objective)


@dataclass(frozen=True, slots=True)
class SweepRow:
    """All seeds of one instance word under one policy; figures are of the runs that did not fail, None without any.

    Parameters
    ----------
    over_planted, worst_over_planted
        Placed over planted weight.
    of_bound, worst_of_bound
        Placed weight over the best bound of any run on the same instance and seed, 1 where that is 0. A placement that
        breaks a rule may be above 1.
    worst_gap
        Largest gap of the weight; None also where a run proved no bound.
    optimal
        How many runs proved every value.
    violations
        Rule to number of violations in all runs.
    first
        Seconds to the first answer.
    seconds, worst_seconds
        Of the whole call.
    peak_memory_mib
        Largest of all runs.
    notes
        Not mimicked, of any run.
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


def rows(lines: Iterable[RunRecord]) -> list[SweepRow]:
    """Gather lines by instance word and policy, in the order in which these first come."""
    gathered: dict[tuple[str, str], list[RunRecord]] = {}
    bounds: dict[tuple[str, int], int] = {}
    for line in lines:
        gathered.setdefault((line.instance, line.policy), []).append(line)
        if line.weight_bound is not None and line.error is None:
            what = line.instance, line.seed
            bounds[what] = min(line.weight_bound, bounds.get(what, line.weight_bound))
    return [_row(instance, policy, found, bounds) for (instance, policy), found in gathered.items()]


def _row(instance: str, policy: str, lines: list[RunRecord], bounds: Mapping[tuple[str, int], int]) -> SweepRow:
    good = [line for line in lines if line.error is None]
    shares = _known(good, "placed_over_planted")
    of_bounds = _shares_of_bounds(good, bounds)
    gaps = _known(good, "weight_gap")
    seconds = _known(good, "seconds")
    return SweepRow(
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
        first=median_of(_known(good, "seconds_to_first")),
        seconds=median_of(seconds),
        worst_seconds=max(seconds, default=None),
        peak_memory_mib=max(_known(good, "peak_memory_mib"), default=None),
        violations=_violations(good),
        notes=tuple(dict.fromkeys(chain.from_iterable(line.notes for line in good))),
    )


def _known(lines: Iterable[RunRecord], figure: str) -> list[float]:
    return [found for line in lines if (found := getattr(line, figure)) is not None]


def _shares_of_bounds(lines: Iterable[RunRecord], bounds: Mapping[tuple[str, int], int]) -> list[float]:
    known = [(line.placed_weight, bounds.get((line.instance, line.seed))) for line in lines]
    return [weight / bound if bound else 1.0 for weight, bound in known if weight is not None and bound is not None]


def _violations(lines: Iterable[RunRecord]) -> dict[str, int]:
    found = sum((Counter(line.violations) for line in lines), Counter[str]())
    return in_order(found)


def references(lines: Iterable[RunRecord]) -> dict[tuple[str, int], int]:
    """The reference for placed weights by instance and seed: the least bound that any line or the best known placement
    proves, else the weight of that placement.
    """
    bounds: dict[tuple[str, int], list[int]] = {}
    known: dict[tuple[str, int], int] = {}
    for line in lines:
        key = line.instance, line.seed
        proved = [line.weight_bound, None if line.known is None else line.known.weight_bound]
        bounds.setdefault(key, []).extend(each for each in proved if each is not None)
        if line.known is not None:
            known[key] = line.known.weight
    return {key: min(found) if found else known[key] for key, found in bounds.items() if found or key in known}
