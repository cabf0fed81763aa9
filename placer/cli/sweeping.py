"""``sweep``: the same question over many instances and seeds."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placer.cli.common import OK, add_command, console, writable

if TYPE_CHECKING:
    from placer.sweep import Line, Row, Run

__all__ = ["add_sweep"]

FAILED = 1  #: a run has no result, or one that cannot be trusted

SHOWN = 12  #: errors below the table; the lines have all of them

TEXT = """Each argument is the path of an instance (a file or folder), or a family of `placer generate` with its options
in one quoted word: "planted --nodes 1000 --pod-sizes 1,2,4,8". Every run is a whole call in a process of its own."""


def add_sweep(commands: Any) -> None:
    """Add ``sweep`` and its flags."""
    parser = add_command(commands, "sweep", "run policies over many instances and seeds, a line for each run", _sweep)
    parser.description = TEXT
    parser.add_argument("word", nargs="+", metavar="FAMILY|INSTANCE", help="see above")
    parser.add_argument(
        "--seeds", default="1-5", metavar="LIST", help="of families: their seed; of instances: the solver's (1-5)"
    )
    parser.add_argument("--policies", default="greedy,auto", metavar="LIST", help="methods of solve (greedy,auto)")
    parser.add_argument("--time-limit", type=float, default=60.0, metavar="SECONDS", help="of each run (default 60)")
    parser.add_argument("--workers", type=int, metavar="N", help="solver threads of a run (default: cores / jobs)")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="runs at once (1); more disturb each other")
    parser.add_argument(
        "--executor", default="local", metavar="NAME", help="where runs start: local, inline or package.module:function"
    )
    parser.add_argument(
        "-o",
        dest="output",
        metavar="FILE",
        help="a JSON line per run as soon as it is done; runs whose line is in FILE are not run again; - is stdout",
    )


def _sweep(options: argparse.Namespace) -> int:
    from placer.sweep import Store

    runs = _plan(options)
    aloud = options.output == "-"
    store = None
    if options.output is not None and not aloud:
        writable([Path(options.output)], (".jsonl",))
        store = Store(options.output, runs)
    known = {} if store is None else dict(store.known)
    before = len(known)
    with contextlib.closing(_new_lines(options, [run for run in runs if run.key not in known])) as lines:
        for line in lines:
            known[line.key] = line
            if store is not None:
                store.add(line)
            elif aloud:
                print(line.text(), flush=True)
    all_lines = [known[run.key] for run in runs]
    if options.json and not aloud:
        print(json.dumps([line.as_dict() for line in all_lines], indent=2))
    elif not aloud:
        _print(all_lines, before)
    return FAILED if any(line.error is not None for line in all_lines) else OK


def _plan(options: argparse.Namespace) -> list[Run]:
    from placer.sweep import parse_seeds, plan

    return plan(
        options.word,
        seeds=parse_seeds(options.seeds),
        policies=[name.strip() for name in options.policies.split(",")],
        time_limit=options.time_limit,
        workers=_workers(options),
    )


def _new_lines(options: argparse.Namespace, runs: list[Run]) -> Generator[Line, None, None]:
    """Carry out what is not known yet, and show on a terminal what goes on."""
    from placer.progress import Progress
    from placer.sweep import sweep

    with Progress(quiet=options.quiet, began=options.began, limit=None) as progress:
        numbers = itertools.count(1)

        def begin(run: Run) -> None:
            progress.phase(f"run {next(numbers)} of {len(runs)}: {run.subject.word}, seed {run.seed}, {run.policy}")

        yield from sweep(runs, executor=options.executor, jobs=options.jobs, begin=begin)


def _workers(options: argparse.Namespace) -> int:
    """Solver threads of a run, so that all jobs together use the cores this process may use."""
    given: int | None = options.workers
    jobs: int = options.jobs
    if given is not None:
        return given
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores // max(1, jobs))


def _print(lines: list[Line], known: int) -> None:
    from rich.markup import escape

    from placer.sweep import rows

    terminal = console()
    terminal.print(_table(rows(lines)))
    failed = [line for line in lines if line.error is not None]
    told = f"{len(lines):,} runs" + (f", {known:,} of them known from before" if known else "")
    terminal.print(f"{told}{f'; {len(failed):,} failed:' if failed else ''}")
    for line in failed[:SHOWN]:
        where = f"{line.instance}, seed {line.seed}, {line.policy}"
        error = (line.error or "").replace("\n", "\n    ")
        terminal.print(f"  [bold red]{escape(where)}[/bold red]: {escape(error)}")
    if len(failed) > SHOWN:
        terminal.print(f"  ... and {len(failed) - SHOWN:,} more")


def _table(found: list[Row]) -> Any:
    """Make the table; ``-`` where nothing is known."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("instance", overflow="fold")
    table.add_column("policy", no_wrap=True)
    for head in (
        "runs",
        "of planted\nmedian",
        "\nworst",
        "gap\nworst",
        "OPTIMAL",
        "first s\nmedian",
        "total s\nmedian",
        "\nworst",
        "peak\nMiB",
    ):
        table.add_column(head, justify="right", no_wrap=True)
    for row in found:
        table.add_row(
            escape(row.instance),
            row.policy,
            f"{row.runs}" + (f" ({row.failed} failed)" if row.failed else ""),
            _shown(row.median_over_planted, ".3%"),
            _shown(row.worst_over_planted, ".3%"),
            _shown(row.worst_gap, ".3%"),
            str(row.optimal),
            _shown(row.median_first, ".2f"),
            _shown(row.median_seconds, ".2f"),
            _shown(row.worst_seconds, ".2f"),
            _shown(row.peak_memory_mib, ",.0f"),
        )
    return table


def _shown(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)
