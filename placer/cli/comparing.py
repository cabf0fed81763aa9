"""``compare``: policies and methods on one instance, side by side."""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placer.cli.common import (
    OK,
    add_command,
    add_reading,
    add_scheduler_config,
    add_what_if,
    console,
    read_instance,
    scheduler_configs,
    writable,
    write,
)
from placer.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from placer.compare import Row
    from placer.instance import Instance
    from placer.result import Judged

__all__ = ["add_compare"]

#: Values beside each other in a table; with many priorities there are several tables.
BESIDE = 8

TEXT = """What other schedulers would bind now, what placer's methods would, and what is proved of the best: one
snapshot of one queue, in which nothing arrives or ends. Each runs in a process of its own; verify and score judge all
alike. What a policy breaks is counted, not hidden."""


def add_compare(commands: Any) -> None:
    """Add ``compare`` and its flags."""
    parser = add_command(commands, "compare", "run policies and methods on one instance, one table", _compare)
    parser.description = TEXT
    parser.add_argument("instance", nargs="+", metavar="INSTANCE", help="files, folders or - (YAML, JSON, gzip)")
    add_reading(parser)
    rows = parser.add_argument_group("rows")
    rows.add_argument(
        "--policies", metavar="LIST", help="names with commas: policies, methods of solve (every policy, greedy, auto)"
    )
    add_scheduler_config(rows)
    rows.add_argument("--time-limit", type=float, metavar="SECONDS", help="of each method (default 60)")
    rows.add_argument("--work-limit", type=float, metavar="N", help="deterministic work in place of time")
    rows.add_argument("--workers", type=int, metavar="N", help="solver threads (default: the cores there are)")
    rows.add_argument("--seed", type=int, default=0, metavar="N", help="default 0")
    add_what_if(parser)
    parser.add_argument("-o", dest="output", metavar="FILE", help="the rows: .json, .yaml, each also .gz; - is stdout")


def _compare(options: argparse.Namespace) -> int:
    from placer.compare import DEFAULT, compare
    from placer.progress import Progress

    if options.output not in (None, "-"):
        writable([Path(options.output)])
    names = DEFAULT if options.policies is None else [name.strip() for name in options.policies.split(",")]
    arguments = scheduler_configs(options.scheduler_config, options.scheduler_name)
    limit = 60.0 if options.time_limit is None and options.work_limit is None else options.time_limit
    with Progress(quiet=options.quiet, began=options.began, limit=None) as progress:
        progress.phase("reading")
        instance = read_instance(options, options.instance)
        rows = compare(
            instance,
            names,
            time_limit=limit,
            work_limit=options.work_limit,
            workers=options.workers,
            seed=options.seed,
            arguments=arguments,
            begin=lambda name: progress.phase(f"{len(instance.pending):,} pending pods: {name}"),
        )
    _show(instance, rows, options)
    return min((row.exit_code for row in rows if row.error is not None), default=OK)


def _show(instance: Instance, rows: list[Row], options: argparse.Namespace) -> None:
    documents = [row.as_dict() for row in rows]
    text = json.dumps(documents, indent=2) + "\n"
    if options.output not in (None, "-"):
        _write(documents, text, options.output)
    if options.json or options.output == "-":
        sys.stdout.write(text)
    else:
        _print(instance, rows, console())


def _write(documents: list[dict[str, Any]], text: str, target: str) -> None:
    """In JSON the array that ``--json`` prints, in YAML a document for each row."""
    if not target.removesuffix(".gz").endswith(".json"):
        write(documents, target)
        return
    data = text.encode()
    try:
        Path(target).write_bytes(gzip.compress(data, mtime=0) if target.endswith(".gz") else data)
    except OSError as error:
        raise UsageError(f"{target}: cannot be written: {error.strerror}") from error


# ------------------------------------------------------------------------------------------------------------ a table


def _print(instance: Instance, rows: list[Row], terminal: Console) -> None:
    from rich.markup import escape

    head = f"{len(instance.pending):,} pending pods, {len(instance.nodes):,} nodes, "
    terminal.print(f"{head}{len(instance.topology.hyper_nodes):,} HyperNodes", style="bold")
    good = [row for row in rows if row.metrics is not None]
    if good:
        terminal.print(_figures(good))
        terminal.print("\nValues, in the order they are compared (priority below the name)")
        for begin in range(0, len(good[0].objective), BESIDE):
            terminal.print(_objective(good, begin))
    _explain(good, terminal)
    for row in rows:
        if row.error is not None:
            error = row.error.replace("\n", "\n    ")
            terminal.print(f"[bold red]{row.policy}[/bold red]: {escape(error)}")


def _explain(rows: list[Row], terminal: Console) -> None:
    """What is wrong with rows that break rules: of each rule how often, and one of the times."""
    from rich.markup import escape

    for row in rows:
        if row.violations:
            terminal.print(f"\n[bold]{row.policy}[/bold] is not valid here:")
        for rule, count in row.violations.items():
            more = f" (and {count - 1:,} more)" if count > 1 else ""
            terminal.print(f"  {rule}: {escape(row.examples[rule])}{more}")


def _figures(rows: list[Row]) -> Table:
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("policy", no_wrap=True)
    heads = ("pods", "groups", "GPUs", "weight\nof bound", "GPUs\nin use", "more pods of\n1/2/4/8 GPUs", "excess\nspan")
    for head in heads:
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("gangs by tier", overflow="fold")
    table.add_column("breaks", overflow="fold")
    for head in ("s", "MiB"):
        table.add_column(head, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*_cells(row))
    return table


def _cells(row: Row) -> list[str]:
    metrics = row.metrics
    if metrics is None:
        return [row.policy]
    ratio = metrics.gpu_allocation_ratio
    return [
        row.policy,
        f"{row.placed_pods:,}",
        f"{row.placed_groups:,}",
        f"{row.gpus_placed:,}",
        _of_bound(row.weight),
        "-" if ratio is None else f"{ratio:.1%}",
        "/".join(f"{each.pods:,}" for each in metrics.placeable) or "-",
        f"{metrics.excess_span:,}",
        ", ".join(f"{tier}: {share:.0%}" for tier, share in metrics.tiers.items()) or "-",
        ", ".join(f"{rule} {count:,}" for rule, count in row.violations.items()),
        f"{row.seconds:.2f}",
        "-" if row.peak_memory_mib is None else f"{row.peak_memory_mib:,.0f}",
    ]


def _of_bound(weight: Judged | None) -> str:
    if weight is None or weight.bound is None:
        return "-"
    if not weight.bound.value:
        return "-" if weight.value.value else "100.00%"
    return f"{weight.value.value / weight.bound.value:.2%}"


def _objective(rows: list[Row], begin: int) -> Table:
    """Values from ``begin`` on, a column for each; the first line is what is proved of the best."""
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("", no_wrap=True)
    shown = range(begin, min(begin + BESIDE, len(rows[0].objective)))
    for index in shown:
        value = rows[0].objective[index].value
        head = value.name if value.priority is None else f"{value.name}\n{value.priority}"
        table.add_column(head, justify="right", no_wrap=True)
    bounds = [_bound(rows, index) for index in shown]
    table.add_row("bound", *("-" if bound is None else f"{bound:,}" for bound in bounds), style="bold")
    for row in rows:
        table.add_row(row.policy, *(f"{row.objective[index].value.value:,}" for index in shown))
    return table


def _bound(rows: list[Row], index: int) -> int | None:
    """What is proved of a value: of the first the same in all rows, further down only in those as good as the best."""
    judged = (row.objective[index].bound for row in rows)
    return next((bound.value for bound in judged if bound is not None), None)
