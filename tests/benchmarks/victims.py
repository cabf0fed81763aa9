"""What goes at the least, beside what is known and beside what other schedulers evict.

Planted clusters of every family in which something has to go, and real ones that are filled to 95 %, in which gangs of
a higher priority wait (``tests.benchmarks.filled``). Each run makes an instance, asks ``placer preempt``, ``defrag`` or
``repair`` about it in a process of its own, or a policy that evicts, judges the placement, and is a line of JSON; what
has a line is not run again, but for what failed. Methods have a short limit first where there are few nodes, and the
whole one where that was not enough for a proof. ``--tables`` writes the tables of ``models/benchmarks.md``. Processor
seconds are those of the call and what it starts, of a policy without reading; seconds by the clock are worth something
on an idle machine only::

    python -m tests.benchmarks.victims -o lines.jsonl
    python -m tests.benchmarks.victims -o lines.jsonl --families budget,lost --nodes 500 --seeds 1-10 --workers 1
    python -m tests.benchmarks.victims --tables lines.jsonl
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from placer.base.cores import usable_cores
from placer.base.deadline import Deadline
from placer.lab.deciders import Asked
from placer.lab.generate import generate
from placer.lab.generate.objects import Document
from placer.lab.own_policies import Proposal
from placer.lab.placement_metrics import groups_gaining, victims
from placer.lab.policies.mimicry import PREEMPTING
from placer.lab.sweep.machine import this_machine
from placer.lab.sweep.runs import parse_seeds
from placer.problem import Instance
from placer.problem.disruption import as_asked, outcome_of
from placer.problem.placement import Placement, Score, Value, better
from placer.problem.reading import read_placement
from placer.rules import in_order, verify
from placer.rules.scoring import score
from placer.search.preempt.domains import disturbance
from placer.search.process import run_apart
from tests.benchmarks.filled import filled
from tests.benchmarks.goals import Goal, markdown, share, shown
from tests.support import instance_of

ROOT = Path(__file__).parent.parent.parent
NODES = (64, 500, 5000)
SEEDS = "1-3"
LIMIT = 60
#: Up to so many nodes a method has so many seconds first.
FEW, SHORT = 1000, 10
#: Of real clusters and of those with more nodes than that only so many seeds are run.
FEW_SEEDS = 2
#: The method that goals are about, as it stands in lines beside the policies.
OURS = "placer"
METHODS = (OURS, *PREEMPTING)

Line = Mapping[str, Any]


class VictimFamily(NamedTuple):
    """Instances of one kind.

    Parameters
    ----------
    words
        Family of ``placer generate``, and its options.
    command
        What is asked about them.
    shipped
        The instance whose cluster is filled, in place of a family; nobody knows the least.
    nodes
        Of that instance.
    """

    words: tuple[str, ...] = ()
    command: tuple[str, ...] = ("preempt",)
    shipped: str = ""
    nodes: int = 0

    @property
    def methods(self) -> tuple[str, ...]:
        """Who is asked: other schedulers only what they answer."""
        return METHODS if self.command == ("preempt",) else (OURS,)


class Limits(NamedTuple):
    """What one run may take."""

    seconds: float
    workers: int


class Run(NamedTuple):
    """One method on one instance."""

    family: str
    nodes: int
    seed: int
    method: str


FAMILIES: Mapping[str, VictimFamily] = {
    "one": VictimFamily(("victims",)),
    "budget": VictimFamily(("victims", "--budget")),
    "gangs": VictimFamily(("victims", "--spanning")),
    "stranded": VictimFamily(("stranded",)),
    "empty": VictimFamily(("fragmented",), ("defrag", "--free-domains", "2@1")),
    "lost": VictimFamily(("lost",), ("repair",)),
    "lost-kept": VictimFamily(("lost", "--kept"), ("repair",)),
    "lingjun-95": VictimFamily(shipped="instances/lingjun/lingjun.json.gz", nodes=847),
    "openb-95": VictimFamily(shipped="instances/openb/openb-noshare-gpuspec33-130-1.json.gz", nodes=1213),
}


@dataclass(frozen=True)
class MadeInstance:
    """What is asked about, and the best answer where one is known."""

    documents: Sequence[Document]
    least: Placement | None = None

    @cached_property
    def instance(self) -> Instance:
        """It, read."""
        return instance_of(*self.documents)


def make(run: Run) -> MadeInstance:
    """Make the instance of a run."""
    family = FAMILIES[run.family]
    if family.shipped:
        return MadeInstance(filled(ROOT / family.shipped, run.seed))
    options = {word[2:]: True for word in family.words[1:]}
    made = generate(family.words[0], nodes=run.nodes, seed=run.seed, **options)
    return MadeInstance(made.documents, made.least)


# ----------------------------------------------------------------------------------------------------------------- runs


def line_of(run: Run, made: MadeInstance, limits: Limits) -> dict[str, Any]:
    """Ask, and hold the answer against the rules and what is known."""
    before, start = os.times(), time.monotonic()
    placement, told = _command(run, made, limits) if run.method == OURS else _policy(run, made, limits)
    seconds, after = time.monotonic() - start, os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return {
        **run._asdict(),
        **told,
        **judged(as_asked(made.instance, placement), placement),
        "seconds": round(seconds, 2),
        "processor": round(used, 2),
        "limit": limits.seconds,
        "workers": limits.workers,
        "load": round(os.getloadavg()[0], 1),
        "machine": this_machine().model_dump(),
    }


def _command(run: Run, made: MadeInstance, limits: Limits) -> tuple[Placement, dict[str, Any]]:
    """What placer answers, and what it proves."""
    with tempfile.TemporaryDirectory() as folder:
        path, plan = Path(folder, "instance.json"), Path(folder, "plan.json")
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": made.documents}), encoding="utf-8")
        command = [sys.executable, "-m", "placer", *FAMILIES[run.family].command, str(path), "--quiet", "-o", str(plan)]
        command += ["--time-limit", str(limits.seconds), "--workers", str(limits.workers)]
        # Who is still there by then hangs; it is an error, and the next run begins.
        ended = subprocess.run(command, stdout=subprocess.DEVNULL, check=False, timeout=3 * limits.seconds + 120)
        answer, placement = json.loads(plan.read_text(encoding="utf-8")), read_placement(plan)
    values = answer["objective"]
    values = values[: [each["name"] for each in values].index("movedUnits") + 1]
    found = tuple(Value(each["name"], each["value"], each.get("priority")) for each in values)
    told = {
        "proved": all(each["bound"] == each["value"] for each in values),
        "exit": ended.returncode,
        "first": first_answer(answer["trace"], found),
        "values": {f"{each.name} {each.priority or ''}".strip(): each.value for each in found},
    }
    if made.least is not None:
        least = disturbance(score(as_asked(made.instance, made.least), made.least, disturbing=True))
        told |= {"reached": not better(least, found), "beaten": better(found, least)}
    return placement, told


def _policy(run: Run, made: MadeInstance, limits: Limits) -> tuple[Placement, dict[str, Any]]:
    """What another scheduler evicts and binds; it proves nothing."""
    asked, until = Asked(run.method, seed=run.seed), Deadline.within(3 * limits.seconds)
    ended = run_apart("placer.lab.comparing:decide", (made.instance, asked), lambda _: None, until)
    if not isinstance(ended.value, Proposal):
        raise ValueError(f"{ended.how.value} {ended.detail}: {ended.value}")
    return ended.value.placement, {}


def judged(instance: Instance, placement: Placement) -> dict[str, Any]:
    """Who waits and gets in, who goes for it, and which rules that breaks."""
    broken = verify(instance, placement)
    lost = victims(instance, placement, broken)
    budgets = (each for each in broken if each.rule == "D2" and each.subjects[0].startswith("PodDisruptionBudget "))
    return {
        "waiting": sum(bool(group.pending) for group in instance.groups.values()),
        "admitted": len(groups_gaining(outcome_of(instance, placement), broken)),
        "victims": len(placement.evictions),
        "nothing": 0 if lost is None else lost.for_nothing,
        "moves": len(placement.moves),
        "budgets": sum(each.amount for each in budgets),
        "breaks": in_order(Counter(each.rule for each in broken)),
    }


def first_answer(trace: Sequence[Line], found: Score) -> float | None:
    """Seconds until something was found that admits what waits, or empties what is to be empty."""
    at = [point["seconds"] for point in trace if found[0].name != "admitted" or point["values"][0] == found[0].value]
    return min(at, default=None)


def lines_of(path: Path) -> dict[Run, dict[str, Any]]:
    """The lines that are there; of a run that has several the last one."""
    texts = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    lines = (json.loads(text) for text in texts)
    return {Run(*(line[name] for name in Run._fields)): line for line in lines}


def planned(names: Iterable[str], nodes: Iterable[int], seeds: Sequence[int]) -> list[Run]:
    """Every run, small ones first; methods on one instance follow each other."""
    found = list[Run]()
    for name in names:
        family = FAMILIES[name]
        for size in [family.nodes] if family.shipped else nodes:
            several = seeds[:FEW_SEEDS] if family.shipped or size > FEW else seeds
            found += [Run(name, size, seed, method) for seed in several for method in family.methods]
    return sorted(found, key=lambda run: run.nodes)


def carry_out(path: Path, runs: Iterable[Run], limits: Limits) -> None:
    """Every run that has no line yet, or failed; one that fails is a line with its error, and the next one begins."""
    there = lines_of(path)
    last: tuple[Run, MadeInstance] | None = None
    for run in runs:
        if run not in there or "error" in there[run]:
            try:
                if last is None or last[0][:3] != run[:3]:
                    last = run, make(run)
                line = enough(run, last[1], limits)
            except Exception as error:  # whatever it is: the other runs have nothing to do with it
                line = {**run._asdict(), "error": f"{type(error).__name__}: {error}"}
            with path.open("a", encoding="utf-8") as target:
                print(json.dumps(line), file=target)
            print(f"{run.family}, {run.nodes:,} nodes, seed {run.seed}, {run.method}: {told(line)}", file=sys.stderr)


def enough(run: Run, made: MadeInstance, limits: Limits) -> dict[str, Any]:
    """The line of a run, with a short limit first where there are few nodes."""
    if run.method == OURS and run.nodes <= FEW and limits.seconds > SHORT:
        line = line_of(run, made, limits._replace(seconds=SHORT))
        if line["proved"] and line.get("reached", True):
            return line
    return line_of(run, made, limits)


def told(line: Line) -> str:
    """One run in words."""
    if "error" in line:
        return f"failed: {line['error']}"
    marks = [word for word in ("reached", "proved") if line.get(word)]
    gains = f"{line['admitted']} of {line['waiting']} in, {line['victims']} evicted, {line['moves']} moved"
    return ", ".join([*marks, gains, f"{line['processor']} s of processor, {line['seconds']} s"])


# --------------------------------------------------------------------------------------------------------------- tables

_GOOD = "runs in which the known least is reached"
SMALL_GOALS = (
    Goal(f"{_GOOD} and proved", lambda line, _: float(line["reached"] and line["proved"]), share, least=1.0),
)
LARGE_GOALS = (Goal(_GOOD, lambda line, _: float(line["reached"]), share, least=0.9),)
EVERY_GOAL = (
    Goal("seconds to the first answer, worst", lambda line, _: line["first"], max, most=10.0, shown="{:.1f}"),
    Goal("victims for nothing, most", lambda line, _: line["nothing"], max, most=0.0, shown="{:.0f}"),
    Goal("rules broken, most", lambda line, _: len(line["breaks"]), max, most=0.0, shown="{:.0f}"),
)


def goals_table(lines: Iterable[Line]) -> list[str]:
    """What is to be reached, and what is; a run that failed reaches nothing."""
    ours = [line for line in lines if line["method"] == OURS]
    planted = [line for line in ours if not FAMILIES[line["family"]].shipped]
    parts = {
        f"planted, up to {NODES[1]:,} nodes": (SMALL_GOALS, [line for line in planted if line["nodes"] <= NODES[1]]),
        f"planted, more than {NODES[1]:,} nodes": (LARGE_GOALS, [line for line in planted if line["nodes"] > NODES[1]]),
        "all": (EVERY_GOAL, ours),
    }
    rows = [["runs of", "goal", "wanted", "reached", "runs", ""]]
    for name, (goals, of_part) in parts.items():
        for goal in goals if of_part else ():
            found = _figure(goal, of_part)
            said = "" if found is None else "yes" if goal.reached(found) else "**no**"
            rows.append([name, goal.text, goal.wanted, shown(found, goal.shown), str(len(of_part)), said])
    return markdown(rows, left=2)


def _figure(goal: Goal, lines: Sequence[Line]) -> float | None:
    """The figure of a goal; None where a run failed or does not tell."""
    figures = [None if "error" in line else goal.measure(line, None) for line in lines]
    known = [each for each in figures if each is not None]
    return goal.gather(known) if len(known) == len(figures) else None


def victims_table(lines: Iterable[Line]) -> list[str]:
    """Who got in and who went for it: a row per family and method, sums over sizes and seeds."""
    heads = "family", "method", "runs", "gangs that wait", "got in", "victims", "for nothing", "moves"
    rows = [[*heads, "above budgets", "proved", "first s, worst", "breaks"]]
    found: dict[tuple[str, str], list[Line]] = defaultdict(list)
    for line in lines:
        found[line["family"], line["method"]].append(line)
    for (family, method), runs in sorted(found.items(), key=lambda row: _order(*row[0])):
        good = [run for run in runs if "error" not in run]
        failed = f" ({len(runs) - len(good)} failed)" if len(good) < len(runs) else ""
        names = "waiting", "admitted", "victims", "nothing", "moves", "budgets"
        sums = [f"{sum(run[name] for run in good):,}" for name in names]
        first = [run["first"] for run in good if run.get("first") is not None]
        broken = in_order(Counter(rule for run in good for rule in run["breaks"]))
        breaks = ", ".join(f"{rule} in {count}" for rule, count in broken.items()) or "-"
        worst = shown(max(first, default=None), "{:.1f}")
        rows.append([family, f"`{method}`", f"{len(runs)}{failed}", *sums, _count(good, "proved"), worst, breaks])
    return markdown(rows, left=2)


def _order(family: str, method: str) -> tuple[int, int]:
    return list(FAMILIES).index(family), METHODS.index(method)


def _count(lines: Sequence[Line], name: str) -> str:
    """Of how many runs something is true; a dash where it is not asked."""
    asked = [line[name] for line in lines if name in line]
    return str(sum(asked)) if asked else "-"


def tables(lines: Sequence[Line]) -> str:
    """The tables of the page."""
    threads = sorted({line["workers"] for line in lines if "error" not in line})
    head = f"{len(lines)} lines; {', '.join(map(str, threads))} threads."
    return "\n".join([head, "", *goals_table(lines), "", *victims_table(lines)])


def main() -> int:
    """Run what has no line yet, or write the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("-o", metavar="FILE", type=Path, help="where lines go; what has one is not run again")
    parser.add_argument("--tables", metavar="FILE", type=Path, help="write the tables of these lines, and run nothing")
    parser.add_argument("--families", default=",".join(FAMILIES), metavar="A,B")
    parser.add_argument("--nodes", default=",".join(map(str, NODES)), metavar="N,M", help="of planted clusters")
    parser.add_argument("--seeds", default=SEEDS, metavar="A-B", help=f"of more than {FEW:,} nodes the first two")
    parser.add_argument("--time-limit", type=float, default=LIMIT, metavar="S")
    parser.add_argument("--workers", type=int, default=usable_cores(), metavar="N")
    asked = parser.parse_args()
    if (asked.tables is None) == (asked.o is None):
        parser.error("found both or none of -o and --tables, expected one of them")
    if asked.o is not None:
        nodes = [int(each) for each in asked.nodes.split(",")]
        runs = planned(asked.families.split(","), nodes, parse_seeds(asked.seeds))
        carry_out(asked.o, runs, Limits(asked.time_limit, asked.workers))
    print(tables([*lines_of(asked.tables or asked.o).values()]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
