"""``sweep``: the same question over many instances and seeds."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import math
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placer.base.cores import usable_cores
from placer.base.errors import StrictFindings
from placer.base.table import Column, print_tables
from placer.base.text import legible
from placer.cli import flags, printing
from placer.cli.lab.shared import (
    BREAKS,
    BROKEN,
    add_scheduler_config,
    columns_of,
    print_notes,
    scheduler_configs,
)

if TYPE_CHECKING:
    from rich.console import Console

    from placer.lab.sweep.records import Key, RunRecord, Store
    from placer.lab.sweep.runs import Run

FAILED = 1  #: a run has no result, or one that cannot be trusted

SHOWN = 12  #: errors below the table; the lines have all of them

TEXT = """Each argument is the path of an instance (a file or folder), or a family of `placer generate` with its options
in one quoted word: "planted --nodes 1000 --pod-sizes 1,2,4,8". Every run is a whole call in a process of its own.
The interval in brackets behind a median is by order statistics. It holds the true one with a probability of at least
95 percent for six runs, of 94 for five. For fewer runs it is their range."""


def add_sweep(commands: Any) -> None:
    """Add ``sweep`` and its flags."""
    parser = flags.add_command(
        commands, "sweep", "run policies over many instances and seeds, a line for each run", _sweep
    )
    parser.description = TEXT
    flags.add_inputs(parser, "see above", needed=True, dest="word", metavar="FAMILY|INSTANCE")
    parser.add_argument(
        "--seeds", default="1-5", metavar="LIST", help="of families: their seed; of instances: the policy's (1-5)"
    )
    parser.add_argument(
        "--policies",
        default="greedy,auto",
        metavar="LIST",
        help="names with commas: policies, methods, and your own, NAME=package.module:function or NAME=PLACEMENT "
        "(greedy,auto)",
    )
    add_scheduler_config(parser)
    flags.add_reading(parser)
    flags.add_time_limit(parser, "of each method")
    parser.add_argument("--workers", type=int, metavar="N", help="solver threads of a run (default: cores / jobs)")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="runs at once (1); more disturb each other")
    parser.add_argument(
        "--executor",
        default="local",
        metavar="NAME",
        help="where runs start: local, inline, dask:ADDRESS or package.module:function",
    )
    text = "a JSON line per run as soon as it is done; runs that FILE has without an error are skipped; - is stdout"
    flags.add_output(parser, text)


def _sweep(options: argparse.Namespace) -> int:
    runs = _plan(options)
    aloud = options.output == "-"
    store = None if options.output is None or aloud else _store(options.output, runs)
    known = _settled(store, options.strict)
    before = len(known)
    asked = printing.Interruptible(known, len(runs), "run")
    with asked, contextlib.closing(_new_lines(options, [run for run in runs if run.key not in known])) as lines:
        for line in lines:
            known[line.key] = line
            if store is not None:
                store.add(line)
            elif aloud:
                print(line.text(), flush=True)
    code = _shown_code([known[run.key] for run in runs if run.key in known], before, options, aloud=aloud)
    asked.again()
    return code


def _shown_code(lines: list[RunRecord], before: int, options: argparse.Namespace, *, aloud: bool) -> int:
    if not aloud:
        _show(lines, before, options)
    return _exit_code(lines, strict=options.strict)


def _store(target: str, runs: Iterable[Run]) -> Store:
    from placer.lab.sweep.records import Store

    printing.writable([Path(target)], (".jsonl",))
    return Store(target, (run.key for run in runs))


def _exit_code(lines: list[RunRecord], *, strict: bool) -> int:
    failed = [line for line in lines if line.error is not None]
    if strict and any(line.findings for line in failed):
        return StrictFindings.exit_code
    return FAILED if failed else flags.OK


def _settled(store: Store | None, strict: bool) -> dict[Key, RunRecord]:
    """Lines that are in the file already; a run that failed, or has findings where they are errors, is run again."""
    known = {} if store is None else store.known
    return {key: line for key, line in known.items() if line.error is None and not (strict and line.findings)}


def _show(lines: list[RunRecord], known: int, options: argparse.Namespace) -> None:
    if options.json:
        names = (f"{line.policy} {line.instance} {line.seed}" for line in lines)
        printing.tell(printing.listed("SweepRunList", (line.as_dict() for line in lines)), options, names)
    else:
        _print(lines, known)


def _plan(options: argparse.Namespace) -> list[Run]:
    from placer.lab.sweep.runs import parse_seeds, plan

    if not (options.output == "-" or options.json):
        import placer.lab.sweep.statistics  # noqa: F401  # a missing library shows before hours of runs

    return plan(
        options.word,
        seeds=parse_seeds(options.seeds),
        policies=[name.strip() for name in options.policies.split(",")],
        time_limit=options.time_limit,
        workers=_workers(options),
        arguments=scheduler_configs(options.scheduler_config, options.scheduler_name),
        scheduler_name=options.scheduler_name,
        strict=options.strict,
    )


def _new_lines(options: argparse.Namespace, runs: list[Run]) -> Generator[RunRecord, None, None]:
    from placer.lab.sweep.runs import sweep

    with printing.progress_of(options) as progress:
        numbers = itertools.count(1)

        def begin(run: Run) -> None:
            progress.phase(f"run {next(numbers)} of {len(runs)}: {run.subject.word}, seed {run.seed}, {run.policy}")

        yield from sweep(runs, executor=options.executor, jobs=options.jobs, begin=begin)


def _workers(options: argparse.Namespace) -> int:
    given: int | None = options.workers
    jobs: int = options.jobs
    if given is not None:
        return given
    return max(1, usable_cores() // max(1, jobs))


def _print(lines: list[RunRecord], known: int) -> None:
    from rich.markup import escape

    from placer.lab.sweep.statistics import duels, rows

    terminal = printing.console()
    found_rows = list(rows(lines).itertuples(index=False))
    _print_tables(found_rows, terminal)
    print_notes(_notes(found_rows), terminal)
    _print_findings(lines, terminal)
    found = duels(lines)
    if found:
        terminal.print(
            "\nAgainst each other, by the objective; who breaks a rule loses, undecided where both do or a run failed"
        )
        terminal.print(_competition(found))
        terminal.print()
    failed = [line for line in lines if line.error is not None]
    told = f"{len(lines):,} runs" + (f", {known:,} of them known from before" if known else "")
    terminal.print(f"{told}{f'; {len(failed):,} failed:' if failed else ''}")
    for line in failed[:SHOWN]:
        where = f"{line.instance}, seed {line.seed}, {line.policy}"
        error = (line.error or "").replace("\n", "\n    ")
        terminal.print(f"  [bold red]{escape(legible(where))}[/bold red]: {escape(error)}")
    if len(failed) > SHOWN:
        terminal.print(f"  ... and {len(failed) - SHOWN:,} more")


#: What stands above a column of an instance's table to what stands in it; ``-`` where nothing is known.
_FIGURES: Mapping[str, Callable[[Any], str]] = {
    "runs": lambda row: f"{row.runs}" + (f" ({row.failed} failed)" if row.failed else ""),
    "% of planted\nmedian": lambda row: _median(row.over_planted, 100),
    "% of planted\nworst": lambda row: _shown(row.worst_over_planted, 100),
    "% of bound\nmedian": lambda row: _marked(_median(row.of_bound, 100), row),
    "% of bound\nworst": lambda row: _marked(_shown(row.worst_of_bound, 100), row),
    "OPTI-\nMAL": lambda row: str(row.optimal),
    "first s\nmedian": lambda row: _shown(row.first and row.first[0]),
    "total s\nmedian": lambda row: _median(row.seconds),
    "total s\nworst": lambda row: _shown(row.worst_seconds),
    "peak\nMiB": lambda row: _shown(row.peak_memory_mib, digits=0),
    "breaks": lambda row: ", ".join(f"{rule} {count:,}" for rule, count in row.violations.items()),
}


def _print_tables(found: list[Any], terminal: Console) -> None:
    from rich.markup import escape

    for instance, of_instance in itertools.groupby(found, key=lambda row: row.instance):
        shown = list(of_instance)
        terminal.print(escape(legible(instance)), style="bold")
        names = Column("policy", [row.policy for row in shown])
        print_tables(terminal, names, columns_of(shown, _FIGURES, ("breaks",)))
    if any(row.violations and row.of_bound is not None for row in found):
        terminal.print(f"\n{BREAKS}")


def _notes(found: Iterable[Any]) -> dict[str, dict[str, None]]:
    notes: dict[str, dict[str, None]] = {}
    for row in found:
        notes.setdefault(row.policy, {}).update(dict.fromkeys(row.notes))
    return notes


def _print_findings(lines: list[RunRecord], terminal: Console) -> None:
    found: dict[str, Counter[str]] = {}
    for line in lines:
        if line.findings:
            found[line.instance] = found.get(line.instance, Counter()) | Counter(line.findings)
    if found:
        terminal.print("\nFindings (`placer solve` shows each; --strict makes them errors)")
    for instance, codes in found.items():
        told = ", ".join(f"{code} {count:,}" for code, count in codes.items())
        printing.say([f"  {instance}: {told}"])


def _marked(share: str, row: Any) -> str:
    return f"{share}{BROKEN}" if row.violations and row.of_bound is not None else share


def _median(value: tuple[float, float, float, int] | None, factor: int = 1) -> str:
    if value is None or value[-1] == 1:
        return _shown(value and value[0], factor)
    middle, low, high = (_shown(each, factor) for each in value[:3])
    return f"{middle} [{low} {high}]"


def _competition(found: Iterable[tuple[Any, ...]]) -> Any:
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0))
    for head in ("", "against"):
        table.add_column(head, overflow="fold")
    for head in ("better", "equal", "worse", "undecided"):
        table.add_column(head, justify="right", no_wrap=True)
    for first, second, *counts in found:
        table.add_row(first, second, *(f"{count:,}" for count in counts))
    return table


def _shown(value: float | None, factor: int = 1, digits: int | None = None) -> str:
    if value is None or math.isnan(value):
        return "-"
    return f"{factor * value:,.{digits}f}" if digits is not None else f"{factor * value:.{1 if factor == 1 else 2}f}"
