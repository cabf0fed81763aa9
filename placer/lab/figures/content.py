"""A figure as numbers: panels with axes and series, and the runs that are left out; also a table."""

from __future__ import annotations

import math
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import repeat
from pathlib import Path
from statistics import linear_regression, median
from typing import TYPE_CHECKING, Any

import numpy as np

from placer.base.errors import BadInstance, Fault
from placer.base.words import counted
from placer.lab.sweep.statistics import median_of

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FIGURES", "make_figure", "table"]

#: Why runs are not drawn, and which: a column of booleans.
_REASONS: Mapping[str, Callable[[pd.DataFrame], Any]] = {
    "that failed": lambda runs: runs.failed,
    "of placements that break rules": lambda runs: runs.broken,
    "without a placed weight or an error": lambda runs: ~runs.failed & runs.placed.isna(),
    "without a placed weight": lambda runs: runs.placed.isna(),
    "of which nothing is known to compare with": lambda runs: ~(runs.most > 0),
    "with one answer and no trace": lambda runs: runs.trace.map(len) == 0,
    "whose number of nodes is not stated": lambda runs: ~(runs.nodes > 0),
    "without seconds": lambda runs: ~(runs.seconds > 0),
}
FAILED, BREAKING, UNTOLD, NO_WEIGHT, NOTHING_KNOWN, ONE_ANSWER, NO_SIZE, NO_SECONDS = _REASONS

#: Seconds; a logarithmic axis has no zero.
MOMENT = 0.001


def make_figure(name: str, runs: pd.DataFrame) -> dict[str, Any]:
    """Make a figure of :data:`FIGURES`; a :class:`BadInstance` says what is missing where no run has what it shows.

    An axis with ``names`` of 0, 1, ... is upright, the first at the top. A series has points with an interval ``low``
    to ``high``, and a ``kind``: ``steps`` (each height holds up to the next point), ``line``, ``points``, or ``dots``
    with intervals. ``of`` is the series whose colour it has.
    """
    left_out: Counter[str] = Counter()
    panels = FIGURES[name](runs, left_out)
    words = [f"{count:,} runs {why}" for why, count in left_out.items()]
    if not any(series["points"] for panel in panels for series in panel["series"]):
        expected = "runs that this figure can show"
        raise BadInstance([Fault(path, None, "", name, "; ".join(words), expected) for path in runs.file.unique()])
    return {"name": name, "panels": panels, "leftOut": words}


def table(figure: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Every point as a row, the head first; on an axis with names ``x`` is a name."""
    rows: list[tuple[str, ...]] = [("figure", "panel", "series", "x", "y", "low", "high")]
    for panel in figure["panels"]:
        names = panel["x"]["names"]
        for series in panel["series"]:
            for point in series["points"]:
                x, *heights = ("" if value is None else f"{value:.6g}" for value in point.values())
                name = names[point["x"]] if names else x
                rows.append((figure["name"], panel["title"], series["name"], name, *heights))
    return rows


def _kept(runs: pd.DataFrame, left_out: Counter[str], *reasons: str) -> pd.DataFrame:
    """Runs that no reason is against; the first one that is gets counted."""
    why = np.select([_REASONS[reason](runs) for reason in reasons], reasons, "")
    left_out.update(why[why != ""].tolist())
    return runs[why == ""]


def _axis(label: str, *, log: bool = False, names: Sequence[str] = ()) -> dict[str, Any]:
    return {"label": label, "log": log, "names": list(names)}


def _panel(title: str, x: dict[str, Any], y: dict[str, Any], series: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {"title": title, "x": x, "y": y, "series": list(series)}


def _series(
    name: str,
    kind: str,
    points: Iterable[tuple[float, float]],
    intervals: Iterable[tuple[float | None, float | None]] = repeat((None, None)),
    of: str = "",
) -> dict[str, Any]:
    drawn = [{"x": x, "y": y, "low": low, "high": high} for (x, y), (low, high) in zip(points, intervals, strict=False)]
    return {"name": name, "kind": kind, "points": drawn, "of": of}


def _profile(runs: pd.DataFrame, left_out: Counter[str]) -> list[dict[str, Any]]:
    """Share of instances on which a policy places at least 1/x of the best (Dolan and Moré, 2002).

    A run that failed, or breaks a rule, is at no finite distance. Only instances with a run of every policy count.
    """
    kept = _kept(runs, left_out, UNTOLD)
    weight = kept.placed.fillna(0).mask(kept.failed | kept.broken, 0)
    cases = kept.assign(weight=weight).drop_duplicates(["instance", "seed", "policy"], keep="last")
    weights = cases.set_index(["instance", "seed", "policy"]).weight.unstack("policy", sort=False)
    common = weights.dropna()
    rest = weights.count().sum() - common.size
    left_out.update({"of instances that not every policy was run on": int(rest)} if rest else {})
    ratios = common.rdiv(common.max(axis="columns"), axis="index").fillna(1.0)
    end = max(ratios.replace(math.inf, 1.0).max(), default=1.0)
    series = []
    for policy, found in ratios.items() if len(ratios) else ():
        ends = sorted({1.0, float(end), *(ratio for ratio in found.tolist() if ratio < math.inf)})
        series.append(_series(policy, "steps", [(x, float((found <= x).mean())) for x in ends]))
    x = _axis("placed weight of the best over that of the policy")
    return [_panel(f"Performance profile, {counted(len(common), 'instance')}", x, _axis("share of instances"), series)]


def _placed(runs: pd.DataFrame, left_out: Counter[str]) -> list[dict[str, Any]]:
    kept = _kept(runs, left_out, FAILED, BREAKING, NO_WEIGHT, NOTHING_KNOWN)
    instances = kept.instance.unique().tolist()
    shares = 100 * kept.placed / kept.most
    series = []
    for policy, found in shares.groupby(kept.policy, sort=False):
        middles = found.groupby(kept.instance).agg(median_of)
        places = [index for index, instance in enumerate(instances) if instance in middles]
        values = [middles[instances[index]] for index in places]
        points = [(index, value[0]) for index, value in zip(places, values, strict=True)]
        series.append(_series(policy, "dots", points, [value[1:3] for value in values]))
    y = _axis("placed weight, % of the optimum or its bound")
    x = _axis("family or instance", names=[_short(instance) for instance in instances])
    return [_panel("Placed over the optimum, median", x, y, series)]


def _short(instance: str) -> str:
    path = Path(instance)
    if " " not in instance and (len(path.parts) > 1 or path.suffix):
        return path.name.split(".")[0]
    return textwrap.fill(instance, 40, break_on_hyphens=False)


def _size(runs: pd.DataFrame, left_out: Counter[str]) -> list[dict[str, Any]]:
    kept = _kept(runs, left_out, FAILED, NO_SIZE, NO_SECONDS)
    nodes = _axis("nodes", log=True)
    seconds, memory = _axis("seconds of the whole call", log=True), _axis("peak memory, MiB", log=True)
    return [
        _panel("Time by size", nodes, seconds, _by_size(kept, "seconds")),
        _panel("Memory by size", nodes, memory, _by_size(kept, "memory")),
    ]


def _by_size(runs: pd.DataFrame, measure: str) -> list[dict[str, Any]]:
    series = []
    for policy, found in runs.groupby("policy", sort=False):
        pairs = sorted(found.loc[found[measure] > 0, ["nodes", measure]].itertuples(index=False, name=None))
        series.append(_series(policy, "points", pairs))
        if len({x for x, _ in pairs}) > 1:
            slope, height = linear_regression(*zip(*np.log(pairs).tolist(), strict=True))
            line = [(x, math.exp(height + slope * math.log(x))) for x in (pairs[0][0], pairs[-1][0])]
            series.append(_series(f"{policy}: slope {slope:.2f}", "line", line, of=policy))
    return series


def _gap(runs: pd.DataFrame, left_out: Counter[str]) -> list[dict[str, Any]]:
    kept = _kept(runs, left_out, FAILED, NOTHING_KNOWN, ONE_ANSWER)
    series = []
    for policy, found in kept.groupby("policy", sort=False):
        times = sorted({seconds for trace in found.trace for seconds, _ in trace})
        times += [end] if (end := float(found.seconds.max())) > times[-1] else []
        runs_of = list(zip(found.trace, found.most, strict=True))
        points = ((max(time, MOMENT), median(_missing(*each, time) for each in runs_of)) for time in times)
        series.append(_series(policy, "steps", points))
    y = _axis("not placed yet, % of the optimum or its bound", log=True)
    return [_panel(f"Gap over time, median of {len(kept)} runs", _axis("seconds", log=True), y, series)]


def _missing(trace: Sequence[tuple[float, int]], most: float, time: float) -> float:
    placed = [weight for seconds, weight in trace if seconds <= time]
    return 100 * max(0.0, 1 - (placed[-1] if placed else 0) / most)


#: Figures by name.
FIGURES: Mapping[str, Callable[[pd.DataFrame, Counter[str]], list[dict[str, Any]]]] = {
    "profile": _profile,
    "placed": _placed,
    "size": _size,
    "gap": _gap,
}
