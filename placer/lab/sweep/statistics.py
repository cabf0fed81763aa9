"""Statistics of many lines: medians with exact intervals, a row per instance and policy, every two policies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import chain, combinations
from statistics import median

from placer.base.errors import UsageError
from placer.base.extras import how_to_install
from placer.lab.sweep.records import KEY, RunRecord
from placer.problem.placement import Score, Value, better
from placer.problem.result import Verdict
from placer.rules import in_order

try:
    import pandas as pd
    from scipy.stats import binom
except ImportError as missing:
    raise UsageError(f"statistics need pandas and scipy ({missing}): {how_to_install('lab')}") from missing

__all__ = ["duels", "median_of", "references", "rows"]

#: Probability that an interval holds the median, from six figures on.
CONFIDENCE = 0.95

#: Figures of a line that rows are made of.
_FIGURES = ("placed_over_planted", "placed_weight", "weight_bound", "seconds_to_first", "seconds", "peak_memory_mib")
_OTHERS = ("instance", "seed", "policy", "error", "verdict", "violations", "notes")


def median_of(figures: Iterable[float]) -> tuple[float, float, float, int] | None:
    """Median, ends of an interval for the median of the distribution, and number of figures, NaN left out; None of
    nothing.

    The interval goes from the k-th smallest to the k-th largest figure, with the largest k for which the binomial tail
    P(Bin(n, 1/2) < k) on either side leaves :data:`CONFIDENCE`; of fewer than six figures it is their range.

    Examples
    --------
    >>> median_of([3.0, 1.0, 2.0, 5.0, 4.0, 6.0])
    (3.5, 1.0, 6.0, 6)
    """
    found = sorted(figure for figure in figures if not pd.isna(figure))
    if not found:
        return None
    place = max(1, int(binom.ppf((1 - CONFIDENCE) / 2, len(found), 0.5)))
    return median(found), found[place - 1], found[-place], len(found)


def duels(lines: Iterable[RunRecord]) -> list[tuple[str, str, int, int, int, int]]:
    """Compare every two policies by the objective, on all instances and seeds that both were run on.

    A placement that breaks a rule loses against one that breaks none. Where both break rules, or a run failed, it is
    undecided.

    Returns
    -------
    list of tuple
        The two policies; how often the first is better, equal, worse; and undecided.
    """
    by_policy: dict[str, dict[tuple[str, int], RunRecord]] = {}
    for line in lines:
        by_policy.setdefault(line.policy, {})[line.instance, line.seed] = line
    found = []
    for (first, one), (second, other) in combinations(by_policy.items(), 2):
        ends = Counter(_end(one[what], other[what]) for what in one if what in other)
        found.append((first, second, ends[1], ends[0], ends[-1], ends[None]))
    return found


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


def rows(lines: Iterable[RunRecord]) -> pd.DataFrame:
    """Gather lines by instance word and policy, in the order in which these first come.

    Medians (:func:`median_of`, or None) and worst figures (or NaN) are of the runs that did not fail. ``of_bound`` is
    placed weight over the best bound of any run on the same instance and seed, 1 where that is 0; a placement that
    breaks a rule may be above 1. ``optimal`` counts the runs that proved every value.
    """
    blank = {name: field.default for name, field in RunRecord.model_fields.items() if name not in (*KEY, "error")}
    counted = (line if line.error is None else line.model_copy(update=blank) for line in lines)
    names = (*_OTHERS, *_FIGURES)
    runs = pd.DataFrame(([getattr(line, name) for name in names] for line in counted), columns=names)
    runs = runs.astype(dict.fromkeys(_FIGURES, float))
    bound = runs.groupby(["instance", "seed"]).weight_bound.transform("min")
    runs["of_bound"] = (runs.placed_weight / bound).mask((bound == 0) & runs.placed_weight.notna(), 1.0)
    by = runs.groupby(["instance", "policy"], sort=False)
    return by.agg(
        runs=("seed", "size"),
        failed=("error", "count"),
        over_planted=("placed_over_planted", median_of),
        worst_over_planted=("placed_over_planted", "min"),
        of_bound=("of_bound", median_of),
        worst_of_bound=("of_bound", "min"),
        optimal=("verdict", lambda verdicts: sum(each is Verdict.OPTIMAL for each in verdicts)),
        first=("seconds_to_first", median_of),
        seconds=("seconds", median_of),
        worst_seconds=("seconds", "max"),
        peak_memory_mib=("peak_memory_mib", "max"),
        violations=("violations", lambda each: in_order(sum(map(Counter, each), Counter[str]()))),
        notes=("notes", lambda each: tuple(dict.fromkeys(chain.from_iterable(each)))),
    ).reset_index()


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
