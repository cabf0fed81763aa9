"""What a family of the benchmark is to reach, measured on lines of ``placer sweep``, and the tables of that.

A measure is a figure of one run, None where the line does not tell; a goal says what is made of the figures of all runs
(median, worst, share) and what that should be. Weights are set beside the least that any line of the same instance and
seed proves, and the best placement known where nothing is proved.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from placer.lab.sweep.records import RunRecord
from placer.lab.sweep.statistics import references
from placer.problem.placement import MAXIMISED, Value, better
from placer.problem.result import Verdict
from placer.search import METHODS

#: A line, and what its weight is set beside; None: nothing is known.
Measure = Callable[[RunRecord, int | None], float | None]

#: The method that goals are about.
METHOD = "auto"


@dataclass(frozen=True)
class Goal:
    """What is to be reached.

    Parameters
    ----------
    text
        In words, without the figure.
    measure, gather
        A figure of each run, and one of all of them.
    least, most
        What it should be at least, or at most.
    shown
        How a figure is written.
    method
        Of the lines that it is about.
    """

    text: str
    measure: Callable[[Any, int | None], float | None]
    gather: Callable[[Sequence[float]], float]
    least: float | None = None
    most: float | None = None
    shown: str = "{:.2%}"
    method: str = METHOD

    @property
    def wanted(self) -> str:
        """The goal as a figure."""
        if self.least is not None:
            return f"≥ {self.shown.format(self.least)}"
        return f"≤ {self.shown.format(self.most)}"

    def reached(self, figure: float) -> bool:
        """Whether a figure is good enough."""
        return (self.least is None or figure >= self.least) and (self.most is None or figure <= self.most)


# ------------------------------------------------------------------------------------------------------------- measures


def share(figures: Sequence[float]) -> float:
    """Mean of figures that are 0 or 1: of how many runs it is true."""
    return sum(figures) / len(figures)


def placed(line: RunRecord, most: int | None) -> float | None:
    """Placed weight over what it is set beside; a placement that breaks rules counts for nothing."""
    if line.placed_weight is None or most is None or line.violations:
        return None
    return line.placed_weight / most if most else 1.0


def full_within(limit: float) -> Measure:
    """Whether everything that can be placed was placed after so many seconds."""

    def measure(line: RunRecord, most: int | None) -> float | None:
        if most is None:
            return None
        weights = [each.name == "placed" for each in line.objective]
        return float(
            any(
                point.seconds <= limit and sum(v for v, of in zip(point.values, weights, strict=True) if of) >= most
                for point in line.trace
            )
        )

    return measure


def worst_priority(line: RunRecord, _: int | None) -> float | None:
    """Of the priorities the one that is farthest below what the best placement known places of it."""
    if line.known is None:
        return None
    pairs = zip(line.objective, line.known.values, strict=True)
    return min((each.value / best for each, best in pairs if each.name == "placed" and best), default=None)


def weight_gap(line: RunRecord, _: int | None) -> float | None:
    """How far the bound on the weight that the run proved itself is from what it placed."""
    return line.weight_gap


def over_known(name: str) -> Measure:
    """A value that should be small over that of the best placement known, where the values above it are as good."""

    def measure(line: RunRecord, _: int | None) -> float | None:
        for index, each in enumerate(line.objective):
            best = line.known.values[index] if line.known is not None else None
            if each.name == name and best is not None:
                return each.value / best if best else float(each.value == 0)
            if best is None or _worse(each.name, each.value, best):
                return None
        return None

    return measure


def above_bound(name: str) -> Measure:
    """A value's distance from its bound over the bound; of the line, else of the best placement known where the values
    above it are the same.
    """

    def measure(line: RunRecord, _: int | None) -> float | None:
        same = line.known is not None
        for index, each in enumerate(line.objective):
            if each.name == name:
                known = line.known.bounds[index] if line.known is not None and same else None
                bound = each.bound if each.bound is not None else known
                return None if bound is None else abs(each.value - bound) / max(1, bound)
            same = same and line.known is not None and each.value == line.known.values[index]
        return None

    return measure


def _worse(name: str, value: int, best: int) -> bool:
    return value < best if name in MAXIMISED else value > best


def as_good_as_known(line: RunRecord, _: int | None) -> float | None:
    """Whether the values are as good as those of the best placement known."""
    if line.known is None or not line.objective:
        return None
    mine = tuple(Value(each.name, each.value, each.priority) for each in line.objective)
    best = tuple(Value(each.name, value, each.priority) for each, value in zip(mine, line.known.values, strict=True))
    return float(not better(best, mine))


def optimal(line: RunRecord, _: int | None) -> float | None:
    """Whether every value is proved."""
    return float(line.verdict is Verdict.OPTIMAL)


def late(line: RunRecord, _: int | None) -> float | None:
    """Seconds beyond the limit, which methods have and policies have not."""
    return None if line.seconds is None or line.policy not in METHODS else max(0.0, line.seconds - line.limit)


def first(line: RunRecord, _: int | None) -> float | None:
    """Seconds to the first answer."""
    return line.seconds_to_first


def processor(line: RunRecord, _: int | None) -> float | None:
    """Processor seconds of the whole call, imports included."""
    return line.processor_seconds


def memory(line: RunRecord, _: int | None) -> float | None:
    """Peak memory in MiB."""
    return line.peak_memory_mib


def seconds(line: RunRecord, _: int | None) -> float | None:
    """Seconds of the whole call."""
    return line.seconds


# --------------------------------------------------------------------------------------------------------------- tables


#: Columns of the table of methods: head to measure, how the figures of all runs become one, and how that is written.
COLUMNS: Mapping[str, tuple[Measure, Callable[[Sequence[float]], float], str]] = {
    "placed, median": (placed, median, "{:.2%}"),
    "worst": (placed, min, "{:.2%}"),
    "gap": (weight_gap, median, "{:.3%}"),
    "OPTIMAL": (optimal, sum, "{:.0f}"),
    "first s": (first, median, "{:.1f}"),
    "s": (seconds, median, "{:.1f}"),
    "late s": (late, max, "{:.1f}"),
    "processor s": (processor, median, "{:.1f}"),
    "MiB": (memory, max, "{:,.0f}"),
}


def figure(
    lines: Sequence[RunRecord],
    beside: Mapping[tuple[str, int], int],
    measure: Measure,
    gather: Callable[[Sequence[float]], float],
) -> float | None:
    """One figure of all lines; None where a line does not tell, so that no goal is reached by what is left out."""
    found = [measure(line, beside.get((line.instance, line.seed))) for line in lines]
    told = [each for each in found if each is not None]
    return gather(told) if told and len(told) == len(found) else None


def methods_table(families: Mapping[str, Sequence[RunRecord]]) -> list[str]:
    """Markdown: a row for each family and method."""
    rows = [["family", "method", "runs", *COLUMNS, "breaks"]]
    for name, lines in families.items():
        beside = references(lines)
        for policy in dict.fromkeys(line.policy for line in lines):
            of_policy = [line for line in lines if line.policy == policy]
            good = [line for line in of_policy if line.error is None]
            failed = f" ({len(of_policy) - len(good)} failed)" if len(good) < len(of_policy) else ""
            cells = [shown(figure(good, beside, measure, gather), text) for measure, gather, text in COLUMNS.values()]
            rows.append([name, f"`{policy}`", f"{len(of_policy)}{failed}", *cells, _broken(good) or "-"])
    return markdown(rows, left=2)


def placed_table(families: Mapping[str, Sequence[RunRecord]]) -> list[str]:
    """Markdown: placed weight of each method, or the rules that it breaks, of families with several methods."""
    policies = list(dict.fromkeys(line.policy for lines in families.values() for line in lines))
    rows = [["family", *(f"`{policy}`" for policy in policies)]]
    for name, lines in families.items():
        beside = references(lines)
        of = [[line for line in lines if line.policy == policy and line.error is None] for policy in policies]
        if len({line.policy for line in lines}) > 1:
            rows.append(
                [name, *(_broken(good) or shown(figure(good, beside, placed, median), "{:.2%}") for good in of)]
            )
    return markdown(rows, left=1)


def _broken(lines: Sequence[RunRecord]) -> str:
    return ", ".join(sorted({rule for line in lines for rule in line.violations}, key=lambda rule: int(rule[1:])))


def goals_table(families: Mapping[str, tuple[Sequence[Goal], Sequence[RunRecord]]]) -> list[str]:
    """Markdown: a row for each goal of families that have lines of its method; nothing without such lines."""
    rows = [["family", "goal", "wanted", "reached", "runs", ""]]
    for name, (goals, lines) in families.items():
        beside = references(lines)
        for goal in goals:
            mine = [line for line in lines if line.policy == goal.method]
            if not mine:
                continue
            good = [line for line in mine if line.error is None]
            found = figure(good, beside, goal.measure, goal.gather) if len(good) == len(mine) else None
            said = "" if found is None else "yes" if goal.reached(found) else "**no**"
            rows.append([name, goal.text, goal.wanted, shown(found, goal.shown), str(len(mine)), said])
            name = ""  # once for all of its goals
    return [*markdown(rows, left=2), ""] if len(rows) > 1 else []


def shown(value: float | None, text: str) -> str:
    """A figure as it is written; a dash where there is none."""
    return "-" if value is None else text.format(value)


def markdown(rows: list[list[str]], left: int) -> list[str]:
    """Lines of a table, its head first; so many columns are of words."""
    ruler = ["---" if index < left else "---:" for index in range(len(rows[0]))]
    return ["| " + " | ".join(cells) + " |" for cells in (rows[0], ruler, *rows[1:])]
