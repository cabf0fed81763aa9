"""A figure as numbers: panels with axes and series, and the runs that are left out; also a table."""

from __future__ import annotations

import math
import textwrap
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from placer.errors import BadInstance, Fault
from placer.laboratory.figures.measured import MeasuredRun
from placer.laboratory.sweep.statistics import median_of
from placer.words import counted

__all__ = ["FIGURES", "Axis", "Figure", "Panel", "Point", "Series", "make_figure"]


@dataclass(frozen=True, slots=True)
class Axis:
    """Its label, whether it is logarithmic, and the names of 0, 1, ...; one with names is upright, the first at the
    top.
    """

    label: str
    log: bool = False
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Point:
    """A point, and an interval around its height where there is one."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Series:
    """Points of one name. ``kind`` is ``steps`` (each height holds up to the next point), ``line``, ``points``, or
    ``dots`` with intervals; ``of`` is the series whose colour it has.
    """

    name: str
    kind: str
    points: tuple[Point, ...]
    of: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    """One pair of axes."""

    title: str
    x: Axis
    y: Axis
    series: tuple[Series, ...]


@dataclass(frozen=True, slots=True)
class Figure:
    """Panels side by side, and in words the runs that could not be drawn."""

    name: str
    panels: tuple[Panel, ...]
    left_out: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        plain = asdict(self)
        plain["leftOut"] = plain.pop("left_out")
        return plain

    def table(self) -> list[tuple[str, ...]]:
        """Every point as a row, the head first; on an axis with names ``x`` is a name."""
        rows: list[tuple[str, ...]] = [("figure", "panel", "series", "x", "y", "low", "high")]
        for panel in self.panels:
            for series in panel.series:
                for point in series.points:
                    x = panel.x.names[int(point.x)] if panel.x.names else _number(point.x)
                    heights = map(_number, (point.y, point.low, point.high))
                    rows.append((self.name, panel.title, series.name, x, *heights))
        return rows


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"


#: Why a run is not drawn, and whether that is so.
Check = tuple[str, Callable[[MeasuredRun], bool]]


@dataclass
class _LeftOut:
    counts: Counter[str] = field(default_factory=Counter)

    def keep(self, runs: Iterable[MeasuredRun], *checks: Check) -> list[MeasuredRun]:
        kept = []
        for run in runs:
            why = next((text for text, bad in checks if bad(run)), None)
            if why is None:
                kept.append(run)
            else:
                self.counts[why] += 1
        return kept

    @property
    def told(self) -> tuple[str, ...]:
        return tuple(f"{count:,} runs {why}" for why, count in self.counts.items())


FAILED: Check = ("that failed", lambda run: run.failed)
BREAKING: Check = ("of placements that break rules", lambda run: run.broken)
UNTOLD: Check = ("without a placed weight or an error", lambda run: not run.failed and run.placed is None)
NO_WEIGHT: Check = ("without a placed weight", lambda run: run.placed is None)
NOTHING_KNOWN: Check = ("of which nothing is known to compare with", lambda run: not run.most)
ONE_ANSWER: Check = ("with one answer and no trace", lambda run: not run.trace)
NO_SIZE: Check = ("whose number of nodes is not stated", lambda run: not run.nodes)
NO_SECONDS: Check = ("without seconds", lambda run: not run.seconds)


def make_figure(name: str, runs: Sequence[MeasuredRun]) -> Figure:
    """Make a figure of :data:`FIGURES`; a :class:`BadInstance` says what is missing where no run has what it shows."""
    left_out = _LeftOut()
    panels = FIGURES[name](runs, left_out)
    if not any(series.points for panel in panels for series in panel.series):
        found = "; ".join(left_out.told)
        expected = "runs that this figure can show"
        files = dict.fromkeys(run.file for run in runs)
        raise BadInstance([Fault(path, None, "", name, found, expected) for path in files])
    return Figure(name, tuple(panels), left_out.told)


def _by_policy(runs: Iterable[MeasuredRun]) -> dict[str, list[MeasuredRun]]:
    found: dict[str, list[MeasuredRun]] = {}
    for run in runs:
        found.setdefault(run.policy, []).append(run)
    return found


def _profile(runs: Sequence[MeasuredRun], left_out: _LeftOut) -> list[Panel]:
    """Share of instances on which a policy places at least 1/x of the best (Dolan and Moré, 2002).

    A run that failed, or breaks a rule, is at no finite distance. Instances without a run of every policy are left out,
    so that all are measured by the same ones.
    """
    common = _common(left_out.keep(runs, UNTOLD), left_out)
    ratios: dict[str, list[float]] = defaultdict(list)
    for case in common:
        best = max(map(_weight, case))
        for run in case:
            ratios[run.policy].append(_ratio(best, _weight(run)))
    end = max((ratio for found in ratios.values() for ratio in found if ratio < math.inf), default=1.0)
    series = tuple(Series(policy, "steps", _shares(found, end)) for policy, found in ratios.items())
    x = Axis("placed weight of the best over that of the policy")
    return [Panel(f"Performance profile, {counted(len(common), 'instance')}", x, Axis("share of instances"), series)]


def _common(runs: Sequence[MeasuredRun], left_out: _LeftOut) -> list[list[MeasuredRun]]:
    policies = {run.policy for run in runs}
    by_case: dict[tuple[str, int], dict[str, MeasuredRun]] = defaultdict(dict)
    for run in runs:
        by_case[run.instance, run.seed][run.policy] = run
    common = [list(case.values()) for case in by_case.values() if len(case) == len(policies)]
    rest = sum(map(len, by_case.values())) - sum(map(len, common))
    if rest:
        left_out.counts["of instances that not every policy was run on"] += rest
    return common


def _ratio(best: int, weight: int) -> float:
    if weight:
        return best / weight
    return math.inf if best else 1.0


def _weight(run: MeasuredRun) -> int:
    return 0 if run.failed or run.broken else run.placed or 0


def _shares(ratios: Sequence[float], end: float) -> tuple[Point, ...]:
    finite = sorted({1.0, end, *(ratio for ratio in ratios if ratio < math.inf)})
    return tuple(Point(x, sum(ratio <= x for ratio in ratios) / len(ratios)) for x in finite)


def _placed(runs: Sequence[MeasuredRun], left_out: _LeftOut) -> list[Panel]:
    kept = left_out.keep(runs, FAILED, BREAKING, NO_WEIGHT, NOTHING_KNOWN)
    instances = list(dict.fromkeys(run.instance for run in kept))
    series = []
    for policy, found in _by_policy(kept).items():
        points = []
        for index, instance in enumerate(instances):
            shares = [100 * (run.placed or 0) / (run.most or 1) for run in found if run.instance == instance]
            middle = median_of(shares)
            if middle is not None:
                points.append(Point(index, middle.value, middle.low, middle.high))
        series.append(Series(policy, "dots", tuple(points)))
    names = tuple(map(_short, instances))
    y = Axis("placed weight, % of the optimum or its bound")
    return [Panel("Placed over the optimum, median", Axis("family or instance", names=names), y, tuple(series))]


def _short(instance: str) -> str:
    path = Path(instance)
    if " " not in instance and (len(path.parts) > 1 or path.suffix):
        return path.name.split(".")[0]
    return textwrap.fill(instance, 40, break_on_hyphens=False)


def _size(runs: Sequence[MeasuredRun], left_out: _LeftOut) -> list[Panel]:
    """Each with the line of least squares in the logarithms and its slope."""
    kept = left_out.keep(runs, FAILED, NO_SIZE, NO_SECONDS)
    seconds = _by_size(kept, lambda run: run.seconds)
    memory = _by_size(kept, lambda run: run.memory)
    nodes = Axis("nodes", log=True)
    return [
        Panel("Time by size", nodes, Axis("seconds of the whole call", log=True), seconds),
        Panel("Memory by size", nodes, Axis("peak memory, MiB", log=True), memory),
    ]


def _by_size(runs: Sequence[MeasuredRun], measure: Callable[[MeasuredRun], float | None]) -> tuple[Series, ...]:
    series: list[Series] = []
    for policy, found in _by_policy(runs).items():
        pairs = sorted((float(run.nodes or 1), value) for run in found if (value := measure(run)))
        points = tuple(Point(x, y) for x, y in pairs)
        series.append(Series(policy, "points", points))
        fit = _fit(pairs)
        if fit is not None:
            slope, height = fit
            ends = (pairs[0][0], pairs[-1][0])
            line = tuple(Point(x, math.exp(height + slope * math.log(x))) for x in ends)
            series.append(Series(f"{policy}: slope {slope:.2f}", "line", line, of=policy))
    return tuple(series)


def _fit(pairs: Sequence[tuple[float, float]]) -> tuple[float, float] | None:
    logs = [(math.log(x), math.log(y)) for x, y in pairs]
    if len({x for x, _ in logs}) < 2:
        return None
    mean_x, mean_y = (sum(column) / len(logs) for column in zip(*logs, strict=True))
    slope = sum((x - mean_x) * (y - mean_y) for x, y in logs) / sum((x - mean_x) ** 2 for x, _ in logs)
    return slope, mean_y - slope * mean_x


def _gap(runs: Sequence[MeasuredRun], left_out: _LeftOut) -> list[Panel]:
    """Before the first answer nothing is placed."""
    kept = left_out.keep(runs, FAILED, NOTHING_KNOWN, ONE_ANSWER)
    series = []
    for policy, found in _by_policy(kept).items():
        times = sorted({seconds for run in found for seconds, _ in run.trace})
        ends = [run.seconds for run in found if run.seconds]
        times += [max(ends)] if ends and max(ends) > times[-1] else []
        points = tuple(Point(max(time, MOMENT), median(_missing(run, time) for run in found)) for time in times)
        series.append(Series(policy, "steps", points))
    y = Axis("not placed yet, % of the optimum or its bound", log=True)
    return [Panel(f"Gap over time, median of {len(kept)} runs", Axis("seconds", log=True), y, tuple(series))]


MOMENT = 0.001  #: seconds; a logarithmic axis has no zero


def _missing(run: MeasuredRun, time: float) -> float:
    placed = [weight for seconds, weight in run.trace if seconds <= time]
    return 100 * max(0.0, 1 - (placed[-1] if placed else 0) / (run.most or 1))


#: Figures by name.
FIGURES: Mapping[str, Callable[[Sequence[MeasuredRun], _LeftOut], list[Panel]]] = {
    "profile": _profile,
    "placed": _placed,
    "size": _size,
    "gap": _gap,
}
