"""Every family that is hard, in one command: what is reached of what is known, how fast, and which goals that meets.

``-o`` keeps a line of ``placer sweep`` for each run, and resumes where it was broken off; ``--tables`` runs nothing and
writes the tables of ``models/benchmarks.md`` from such lines, and one of all figures by method. Instances in files are
run with the first seed alone, families with each. Figures of time are worth something on an idle machine only::

    python -m tests.benchmarks.families -o lines.jsonl
    python -m tests.benchmarks.families -o lines.jsonl --families openb-gpuspec33,mixed-l --seeds 1-9 --policies auto
    python -m tests.benchmarks.families -o lines.jsonl --families neighbours-m,neighbours-l --seeds 1-10
    python -m tests.benchmarks.families --tables lines.jsonl

It is meant to be called in the folder of the sources: lines name shipped instances by their path from there.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from placer.base.errors import PlacerError
from placer.lab.sweep.machine import this_machine
from placer.lab.sweep.records import RunRecord, Store, read_lines
from placer.lab.sweep.runs import Run, make, parse_seeds, parse_subject, plan, sweep
from tests.benchmarks import redrawn
from tests.benchmarks.goals import (
    Goal,
    above_bound,
    as_good_as_known,
    first,
    full_within,
    goals_table,
    late,
    methods_table,
    optimal,
    over_known,
    placed,
    placed_table,
    processor,
    share,
    weight_gap,
    worst_priority,
)
from tests.benchmarks.start_up import measured

#: Where instances that are cut out of the shipped ones are drawn, in the folder of the sources; git ignores it.
REDRAWN = Path("build", "redrawn")
FULL_IN_TIME = Goal("runs with everything placed within 30 s", full_within(30), share, least=0.9, shown="{:.0%}")
PROVED = Goal("runs proved OPTIMAL on all values", optimal, share, least=0.9, shown="{:.0%}")
IN_TIME = Goal("seconds beyond the limit, worst", late, max, most=2.0, shown="{:.1f}")
PARTLY_FULL = "--leaves-per-spine 16 --soft 0"
ODD = "--pod-sizes 1,2,3,4,5,6,8 --subgroup-sizes 3,5,6 --held 0.45"
MIXED = "--pod-sizes 1,2,4,8 --subgroup-sizes 3,6 --held 0.55"
HETERO = "--pod-sizes 1,2,4,6,8 --node-types 3 --uneven 0.5 --held 0.25"
CALLS = "--regions 3 --zones 4 --replicas 1 --workloads 7,12 --wide 0 --apart 0 --bandwidth 0 --fill 1"
CALL_GOALS = (
    Goal("networkCost over that of the best placement known, median", over_known("networkCost"), median, most=1.02),
    Goal("networkCost above its bound, median", above_bound("networkCost"), median, most=0.05),
)


@dataclass(frozen=True)
class BenchmarkFamily:
    """Instances that are hard in one way, and what is to be reached on them.

    Parameters
    ----------
    text
        What they are, for people.
    words
        As ``placer sweep`` takes them: families with options, shipped instances.
    goals
        What is to be reached in 60 seconds on two cores.
    started
        Method whose start is measured in an interpreter of its own, in processor seconds, in place of runs of a sweep;
        empty: none.
    seeds
        So many of the seeds asked for at most; None: all of them.
    """

    text: str
    words: tuple[str, ...]
    goals: tuple[Goal, ...]
    started: str = ""
    seeds: int | None = None


def shipped(*names: str) -> tuple[str, ...]:
    """Words of shipped instances."""
    return tuple(f"instances/{name}.json.gz" for name in names)


def cut_out(names: str, seeds: int) -> tuple[str, ...]:
    """Words of instances that are cut out of shipped ones, so many seeds of each family."""
    return tuple(
        f"{REDRAWN.as_posix()}/{name}-{seed}.json.gz" for name in names.split() for seed in range(1, seeds + 1)
    )


def starting(text: str, word: str, goal: Goal, method: str = "greedy") -> BenchmarkFamily:
    """A family of one instance whose start is measured."""
    return BenchmarkFamily(text, (word,), (goal,), method)


def _openb(name: str) -> BenchmarkFamily:
    goals = (
        Goal("placed of the bound, median", placed, median, least=0.999),
        Goal("gap proved, median", weight_gap, median, most=0.001, shown="{:.3%}"),
    )
    words = shipped(*(f"openb/openb-noshare-{name}-130-{number}" for number in (1, 2)))
    return BenchmarkFamily(f"openb, 130 % of the GPUs asked for ({name})", words, goals)


FAMILIES: dict[str, BenchmarkFamily] = {
    "openb-gpuspec33": _openb("gpuspec33"),
    "openb-cpu250": _openb("cpu250"),
    "hetero-m": BenchmarkFamily(
        "three node types with selectors, 1,024 nodes",
        (
            *shipped("hard/planted-hetero-m-1", "hard/planted-hetero-m-2"),
            f"planted --nodes 1024 {PARTLY_FULL} {HETERO}",
        ),
        (FULL_IN_TIME, Goal("placed, worst", placed, min, least=0.999)),
    ),
    "small": BenchmarkFamily(
        "three node types, mixed and odd sizes, up to 500 nodes",
        (
            *shipped("hard/planted-hetero-s-1", "hard/planted-hetero-s-2"),
            f"planted --nodes 128 {PARTLY_FULL} {HETERO}",
            f"planted --nodes 256 {PARTLY_FULL} {ODD}",
            f"planted --nodes 500 {PARTLY_FULL} {MIXED}",
        ),
        (PROVED,),
    ),
    "small-redrawn": BenchmarkFamily(
        "three node types on 128 nodes, odd sizes on 256, mixed ones on 512",
        cut_out("hetero-s odd-s mixed-s", 8),
        (PROVED,),
    ),
    "hetero-m-redrawn": BenchmarkFamily(
        "three node types, 1,024 nodes",
        cut_out("hetero-m", 8),
        (FULL_IN_TIME, Goal("placed, worst", placed, min, least=0.999)),
    ),
    "odd-m-redrawn": BenchmarkFamily("odd sizes, 1,024 nodes", cut_out("odd-m", 4), (FULL_IN_TIME,)),
    "mixed-l-redrawn": BenchmarkFamily(
        "1 to 8 GPUs on half-full equal nodes, 4,096 nodes",
        cut_out("mixed-l", 2),
        (FULL_IN_TIME,),
    ),
    "odd-m": BenchmarkFamily(
        "odd sizes, 1,024 nodes",
        (*shipped("hard/planted-odd-m-1", "hard/planted-odd-m-2"), f"planted --nodes 1024 {PARTLY_FULL} {ODD}"),
        (FULL_IN_TIME,),
    ),
    "elastic": BenchmarkFamily(
        "mixed sizes, 1,024 nodes, half of the gangs elastic",
        (f"planted --nodes 1024 {PARTLY_FULL} {MIXED} --elastic 0.5",),
        (FULL_IN_TIME,),
    ),
    "mixed-l": BenchmarkFamily(
        "1 to 8 GPUs on half-full equal nodes, 4,096 nodes",
        (
            *shipped("hard/planted-mixed-l-1", "hard/planted-mixed-l-2"),
            f"planted --nodes 4096 --leaves-per-spine 32 --soft 0 {MIXED}",
        ),
        (FULL_IN_TIME,),
    ),
    "neighbours-m": BenchmarkFamily(
        "30 % of the pods spread, 20 % of the gangs one pod per host, 10 % near others, 1,000 nodes",
        ("neighbours --nodes 1000",),
        (Goal("placed, worst", placed, min, least=0.999),),
    ),
    "neighbours-l": BenchmarkFamily(
        "the same on 5,000 nodes",
        ("neighbours --nodes 5000",),
        (Goal("placed, worst", placed, min, least=0.999),),
        seeds=2,
    ),
    "label-racks-m": BenchmarkFamily(
        "neighbours-m without HyperNodes: racks are labels of nodes, gangs ask for one value",
        ("neighbours --nodes 1000 --by-label",),
        (Goal("placed, worst", placed, min, least=0.999),),
    ),
    "over-prio-m": BenchmarkFamily(
        "four priorities that fit and a fifth below",
        (
            *shipped("hard/over-prio-m-1", "hard/over-prio-m-2"),
            f"planted --nodes 1024 {PARTLY_FULL} {MIXED} --priorities 4 --overfull 0.2 --beyond-last",
        ),
        (Goal("placed of the priority that falls shortest, worst", worst_priority, min, least=1.0),),
    ),
    "app-groups-12": BenchmarkFamily(
        "12 AppGroups on 29 nodes",
        (
            *shipped("hard/network-fleet-s-1", "hard/network-fleet-s-2"),
            f"network --app-groups 12 --nodes 29 {CALLS}",
        ),
        CALL_GOALS,
    ),
    "app-groups-48": BenchmarkFamily(
        "48 AppGroups on 109 nodes",
        (
            *shipped("hard/network-fleet-m-1", "hard/network-fleet-m-2"),
            f"network --app-groups 48 --nodes 109 {CALLS}",
        ),
        CALL_GOALS,
    ),
    "app-groups-200": BenchmarkFamily(
        "200 AppGroups on 1,000 nodes", (f"network --app-groups 200 --nodes 1000 {CALLS}",), CALL_GOALS
    ),
    "scale-queue": BenchmarkFamily(
        "10,000 nodes in 4 tiers, half-full",
        (
            "planted --nodes 10000 --leaf-size 20 --leaves-per-spine 20 --spines-per-pod 5 --soft 0"
            " --pod-sizes 1,2,4,8 --subgroup-sizes 4,6,8 --held 0.5",
        ),
        (Goal("placed, median", placed, median, least=0.99), IN_TIME),
    ),
    "busy-5120": BenchmarkFamily(
        "5,120 nodes, 50,000 pods run, 12 priorities",
        (
            "planted --nodes 5120 --leaf-size 16 --leaves-per-spine 16 --pod-sizes 1,2,4,8 --held 0.85 --services 8"
            " --priorities 12",
        ),
        (Goal("placed of the priority that falls shortest, worst", worst_priority, min, least=0.9999), IN_TIME),
    ),
    "span": BenchmarkFamily(
        "leaf switches: NVL racks, Clos",
        (*shipped("hard/topology-nvl-m-1", "hard/topology-nvl-m-2"), "planted --nodes 512 --leaf-size 16 --soft 0.5"),
        (Goal("span above its bound, median", above_bound("span"), median, most=0.02),),
    ),
    "packed": BenchmarkFamily(
        "whole-node queues that leave nodes empty",
        ("planted --nodes 512 --like-volcano", "planted --nodes 512 --leaf-size 16 --fill 0.6"),
        (Goal("packedHyperNodes above its bound, median", above_bound("packedHyperNodes"), median, most=0.02),),
    ),
    "former": BenchmarkFamily(
        "families of former benchmarks",
        shipped(
            "planted/planted-200-mixed",
            "planted/planted-200-tight",
            "clos/clos-128-mixed",
            "clos/clos-512",
            "lingjun/lingjun",
            "network/tight-30",
            "numa/numa-50-restricted",
            "numa/numa-1000",
        ),
        (
            Goal("placed, worst", placed, min, least=1.0),
            Goal("runs as good as the best placement known", as_good_as_known, share, least=1.0, shown="{:.0%}"),
        ),
    ),
    "start-5120": starting(
        "first answer, 5,120 nodes",
        "planted --nodes 5120 --leaf-size 16 --leaves-per-spine 16",
        Goal("processor s to the first answer", first, median, most=1.5, shown="{:.2f}", method="greedy"),
    ),
    "start-10000": starting(
        "first answer, 10,000 nodes",
        "planted --nodes 10000 --leaf-size 20 --leaves-per-spine 20 --spines-per-pod 5",
        Goal("processor s to the first answer", first, median, most=4.0, shown="{:.2f}", method="greedy"),
    ),
    "start-tiny": starting(
        "`placer solve` on six pods",
        "instances/tiny/o1_placed.yaml",
        Goal("processor s of the whole command", processor, median, most=0.4, shown="{:.2f}"),
        method="auto",
    ),
}

#: ``config`` of lines whose run was a command in an interpreter of its own.
STARTED = "start-up"


def planned(family: BenchmarkFamily, options: argparse.Namespace, seeds: Sequence[int]) -> Iterator[Run]:
    """List the runs of a family, those of instances in files with the first seed alone."""
    for word in family.words:
        alone = parse_subject(word).family is None
        yield from plan(
            [word],
            seeds=seeds[:1] if alone else seeds[: family.seeds],
            policies=options.policies.split(","),
            time_limit=options.time_limit,
            workers=options.workers,
        )


def start_runs(family: BenchmarkFamily, options: argparse.Namespace, seeds: Sequence[int]) -> Iterator[Run]:
    """List the one run of a family whose start is measured."""
    for word in family.words:
        yield from plan(
            [word], seeds=seeds[:1], policies=[family.started], time_limit=options.time_limit, workers=options.workers
        )


def draw_missing(words: Iterable[str]) -> None:
    """Draw instances that are cut out of the shipped ones, where they are not there."""
    for word in words:
        path = Path(word)
        if path.parent == REDRAWN and not redrawn.beside(path, "best").exists():
            REDRAWN.mkdir(parents=True, exist_ok=True)
            name, _, seed = path.name.partition(".")[0].rpartition("-")
            redrawn.carry_out([name], [int(seed)], REDRAWN)


def started(run: Run) -> RunRecord:
    """The line of a command in an interpreter of its own; both figures are processor seconds."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(run.subject.word)
        if run.subject.family is not None:
            path = Path(folder, "instance.json")
            if fault := make(run, str(path), lambda _: None):
                raise PlacerError(fault)
        found = measured(path, run.policy, 5)
    return run.line().model_copy(
        update={
            "config": STARTED,
            "seconds_to_first": found["first"],
            "processor_seconds": found["whole"],
            "machine": this_machine(),
        }
    )


def carry_out(options: argparse.Namespace, names: Sequence[str]) -> None:
    """Run what has no line yet, family by family."""
    seeds = parse_seeds(options.seeds)
    chosen = [FAMILIES[name] for name in names]
    draw_missing(word for family in chosen for word in family.words)
    runs = [run for family in chosen if not family.started for run in planned(family, options, seeds)]
    starts = [run for family in chosen if family.started for run in start_runs(family, options, seeds)]
    keys = {run: (*run.key[:-1], STARTED) for run in starts}
    store = Store(options.output, [*(run.key for run in runs), *keys.values()])
    done = {key for key, line in store.known.items() if line.error is None}
    left = [run for run in runs if run.key not in done]
    for line in sweep(left, begin=lambda run: said(run, left)):
        store.add(line)
        if line.error is not None:
            print(f"  failed: {line.error.splitlines()[0]}", file=sys.stderr, flush=True)
    for run in starts:
        if keys[run] not in done:
            said(run, starts)
            store.add(started(run))


def said(run: Run, runs: Sequence[Run]) -> None:
    """Say which run begins."""
    where = f"{runs.index(run) + 1} of {len(runs)}"
    print(f"{time.strftime('%H:%M:%S')} {where}: {run.subject.word}, seed {run.seed}, {run.policy}", file=sys.stderr)


def tables(path: Path) -> str:
    """The tables of the page, from lines."""
    lines, there = _by_family(path)
    goals = {f"{name}: {FAMILIES[name].text}": (FAMILIES[name].goals, found) for name, found in there.items()}
    limits = sorted({f"{line.limit:g} s and {line.workers} threads" for line in lines})
    return "\n".join(
        [
            f"{len(lines)} lines; methods had {', '.join(limits)}.",
            "",
            *goals_table(goals),
            *placed_table(_swept(there)),
        ]
    )


def _by_family(path: Path) -> tuple[list[RunRecord], dict[str, list[RunRecord]]]:
    lines = list(read_lines(path))
    of = {name: [line for line in lines if _belongs(line, family)] for name, family in FAMILIES.items()}
    return lines, {name: found for name, found in of.items() if found}


def _swept(families: dict[str, list[RunRecord]]) -> dict[str, list[RunRecord]]:
    return {name: found for name, found in families.items() if not FAMILIES[name].started}


def _belongs(line: RunRecord, family: BenchmarkFamily) -> bool:
    return line.instance in family.words and (line.config == STARTED) == bool(family.started)


def main() -> None:
    """Run the benchmark, or write its tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", dest="output", metavar="FILE", help="a JSON line per run; what it has is not run again")
    parser.add_argument("--families", default=",".join(FAMILIES), metavar="LIST", help=f"of {', '.join(FAMILIES)}")
    parser.add_argument("--seeds", default="1-3", metavar="LIST", help="of generated instances (1-3)")
    parser.add_argument("--policies", default="greedy,auto,volcano,kube-default", metavar="LIST")
    parser.add_argument("--time-limit", type=float, default=60.0, metavar="SECONDS", help="of each method (60)")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, metavar="N", help="solver threads")
    parser.add_argument("--tables", metavar="FILE", type=Path, help="write tables of these lines, run nothing")
    options = parser.parse_args()
    if (options.tables is None) == (options.output is None):
        parser.error("found both or none of -o and --tables, expected one of them")
    names = options.families.split(",")
    unknown = [name for name in names if name not in FAMILIES]
    if unknown:
        parser.error(f"families: found {', '.join(unknown)}, expected some of {', '.join(FAMILIES)}")
    try:
        if options.tables is not None:
            print(tables(options.tables), "", *methods_table(_swept(_by_family(options.tables)[1])), sep="\n")
        else:
            carry_out(options, names)
    except PlacerError as error:
        parser.exit(error.exit_code, f"{error}\n")


if __name__ == "__main__":
    main()
