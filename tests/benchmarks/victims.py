"""What goes at the least, beside what is known: planted clusters of every family in which something has to go.

Each run makes an instance, asks ``placer preempt``, ``defrag`` or ``repair`` about it in a process of its own, and is a
line of JSON; what has a line is not run again. The table counts, of the seeds of a family and a size, how often the
known least was reached, and how often it was proved, with medians and the worst of times. Processor seconds are those
of the call and what it starts; seconds by the clock are worth something on an idle machine only::

    python -m tests.benchmarks.victims -o lines.jsonl
    python -m tests.benchmarks.victims -o lines.jsonl --families budget,lost --nodes 500 --seeds 1-3 --workers 1
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
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from placer.cores import usable_cores
from placer.disruption import as_asked
from placer.laboratory.generate import generate
from placer.laboratory.sweep.machine import this_machine
from placer.laboratory.sweep.runs import parse_seeds
from placer.methods.preempt.domains import disturbance
from placer.placement import Score, Value, better
from placer.score import score
from tests.support import instance_of

NODES = (64, 500, 5000)
SEEDS = "1-10"
LIMIT = 60


class VictimFamily(NamedTuple):
    """Instances of one kind.

    Parameters
    ----------
    words
        Family of ``placer generate``, and its options.
    command
        What is asked about them.
    """

    words: tuple[str, ...]
    command: tuple[str, ...] = ("preempt",)


class Limits(NamedTuple):
    """What one run may take."""

    seconds: float
    workers: int


FAMILIES: Mapping[str, VictimFamily] = {
    "one": VictimFamily(("victims",)),
    "budget": VictimFamily(("victims", "--budget")),
    "gangs": VictimFamily(("victims", "--spanning")),
    "stranded": VictimFamily(("stranded",)),
    "empty": VictimFamily(("fragmented",), ("defrag", "--free-domains", "2@1")),
    "lost": VictimFamily(("lost",), ("repair",)),
    "lost-kept": VictimFamily(("lost", "--kept"), ("repair",)),
}


def run_of(name: str, nodes: int, seed: int, limits: Limits) -> dict[str, Any]:
    """Make the instance, ask about it, and hold the answer against what is known."""
    family = FAMILIES[name]
    made = generate(family.words[0], nodes=nodes, seed=seed, **{word[2:]: True for word in family.words[1:]})
    assert made.least is not None
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder, "instance.json"), Path(folder, "out.json")
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": made.documents}), encoding="utf-8")
        command = [sys.executable, "-m", "placer", *family.command, str(path), "--json", "--quiet"]
        command += ["--time-limit", str(limits.seconds), "--workers", str(limits.workers)]
        before, start = os.times(), time.monotonic()
        with out.open("w", encoding="utf-8") as target:
            code = subprocess.run(command, stdout=target, check=False).returncode
        seconds, after = time.monotonic() - start, os.times()
        answer = json.loads(out.read_text(encoding="utf-8"))
    used = after.children_user + after.children_system - before.children_user - before.children_system
    judged = answer["objective"]
    judged = judged[: [each["name"] for each in judged].index("movedUnits") + 1]
    found = tuple(Value(each["name"], each["value"], each.get("priority")) for each in judged)
    instance = as_asked(instance_of(*made.documents), made.least)
    least = disturbance(score(instance, made.least, disturbing=True))
    return {
        "family": name,
        "nodes": nodes,
        "seed": seed,
        "reached": not better(least, found),
        "beaten": better(found, least),
        "proved": all(each["bound"] == each["value"] for each in judged),
        "exit": code,
        "first": first_answer(answer["trace"], found),
        "seconds": round(seconds, 2),
        "processor": round(used, 2),
        "values": {f"{each.name} {each.priority or ''}".strip(): each.value for each in found},
        "limit": limits.seconds,
        "workers": limits.workers,
        "load": round(os.getloadavg()[0], 1),
        "machine": this_machine().model_dump(),
    }


def first_answer(trace: Sequence[Mapping[str, Any]], found: Score) -> float | None:
    """Seconds until something was found that admits what waits, or empties what is to be empty."""
    at = [point["seconds"] for point in trace if found[0].name != "admitted" or point["values"][0] == found[0].value]
    return min(at, default=None)


def lines_of(path: Path) -> list[dict[str, Any]]:
    """The lines that are there."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def carry_out(path: Path, names: Iterable[str], nodes: Iterable[int], seeds: Iterable[int], limits: Limits) -> None:
    """Every run that has no line yet; small ones first."""
    there = {(line["family"], line["nodes"], line["seed"]) for line in lines_of(path)}
    for size, name, seed in product(sorted(nodes), names, seeds):
        if (name, size, seed) not in there:
            line = run_of(name, size, seed, limits)
            with path.open("a", encoding="utf-8") as target:
                print(json.dumps(line), file=target)
            print(f"{name}, {size:,} nodes, seed {seed}: {told(line)}", file=sys.stderr, flush=True)


def told(line: Mapping[str, Any]) -> str:
    """One run in words."""
    reached = "reached" if line["reached"] else "not reached"
    return f"{reached}{', proved' if line['proved'] else ''}, {line['processor']} s of processor, {line['seconds']} s"


def table(lines: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """What was reached of what is known, a row per family and size."""
    rows: dict[tuple[str, int], list[Mapping[str, Any]]] = defaultdict(list)
    for line in lines:
        rows[line["family"], line["nodes"]].append(line)
    yield "| family | nodes | runs | reached | proved | first s, worst | processor s, median | worst | s, worst |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    for (name, nodes), runs in sorted(rows.items(), key=lambda row: (list(FAMILIES).index(row[0][0]), row[0][1])):
        used = [run["processor"] for run in runs]
        first = [run["first"] for run in runs if run["first"] is not None]
        counts = name, f"{nodes:,}", len(runs), sum(run["reached"] for run in runs), sum(run["proved"] for run in runs)
        times = max(first, default=0), median(used), max(used), max(run["seconds"] for run in runs)
        yield f"| {' | '.join([*map(str, counts), *(f'{each:.1f}' for each in times)])} |"


def main() -> int:
    """Run what has no line yet, or write the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("-o", metavar="FILE", type=Path, help="where lines go; what has one is not run again")
    parser.add_argument("--tables", metavar="FILE", type=Path, help="write the table of these lines, and run nothing")
    parser.add_argument("--families", default=",".join(FAMILIES), metavar="A,B")
    parser.add_argument("--nodes", default=",".join(map(str, NODES)), metavar="N,M")
    parser.add_argument("--seeds", default=SEEDS, metavar="A-B")
    parser.add_argument("--time-limit", type=float, default=LIMIT, metavar="S")
    parser.add_argument("--workers", type=int, default=usable_cores(), metavar="N")
    asked = parser.parse_args()
    if asked.o is not None:
        nodes = [int(each) for each in asked.nodes.split(",")]
        limits = Limits(asked.time_limit, asked.workers)
        carry_out(asked.o, asked.families.split(","), nodes, parse_seeds(asked.seeds), limits)
    for line in table(lines_of(asked.tables or asked.o)):
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
