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
    written,
)

if TYPE_CHECKING:
    from placer.compare import Row
    from placer.instance import Instance

__all__ = ["add_compare"]

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
    from placer.words import counted

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
            begin=lambda name: progress.phase(f"{counted(len(instance.pending), 'pending pod')}: {name}"),
        )
    _show(instance, rows, options)
    return min((row.exit_code for row in rows if row.error is not None), default=OK)


def _show(instance: Instance, rows: list[Row], options: argparse.Namespace) -> None:
    from placer.cli.compared import print_rows

    documents = [row.as_dict() for row in rows]
    text = json.dumps(documents, indent=2) + "\n"
    if options.output not in (None, "-"):
        _write(documents, text, options.output)
    if options.json or options.output == "-":
        sys.stdout.write(text)
    else:
        print_rows(instance, rows, console())


def _write(documents: list[dict[str, Any]], text: str, target: str) -> None:
    """In JSON the array that ``--json`` prints, in YAML a document for each row."""
    if not target.removesuffix(".gz").endswith(".json"):
        write(documents, target)
        return
    data = text.encode()
    with written(target):
        Path(target).write_bytes(gzip.compress(data, mtime=0) if target.endswith(".gz") else data)
