"""``sweep``: the same question over many instances and seeds."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import math
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from placer.base.cores import usable_cores
from placer.base.errors import StrictFindings
from placer.base.table import Column, print_tables
from placer.base.text import legible
from placer.cli import flags, printing
from placer.cli.lab.shared import BREAKS, BROKEN, columns_of, print_notes, scheduler_configs
from placer.lab.sweep.records import Key, RunRecord, Store
from placer.lab.sweep.runs import Run, sweep

FAILED = 1  #: a run has no result, or one that cannot be trusted

SHOWN = 12  #: errors below the table; the lines have all of them


def run(options: argparse.Namespace) -> int:
    """Carry out ``sweep``."""
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
        _print_competition(found, terminal)
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


def _print_competition(found: Iterable[tuple[Any, ...]], terminal: Console) -> None:
    firsts, seconds, *counts = zip(*found, strict=True)
    heads = ("better", "equal", "worse", "undecided")
    columns = [Column(head, [f"{each:,}" for each in those]) for head, those in zip(heads, counts, strict=True)]
    print_tables(terminal, Column("", firsts), [Column("against", seconds, text=True), *columns])


def _shown(value: float | None, factor: int = 1, digits: int | None = None) -> str:
    if value is None or math.isnan(value):
        return "-"
    return f"{factor * value:,.{digits}f}" if digits is not None else f"{factor * value:.{1 if factor == 1 else 2}f}"
