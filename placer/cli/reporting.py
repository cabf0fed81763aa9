"""``report``: a cluster, and what a placement makes of it, as one HTML page."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from placer.errors import UsageError
from placer.terminal import OK, add_command, add_reading, read_instance, writable, written

__all__ = ["add_report"]

TEXT = """One HTML page that needs no network: the cluster as a picture, and every fact of it in tables.
placer recognises files by their content: objects of the instance, a Placement (or v1 Bindings), rows of `compare`.
Without a placement the page shows the cluster as it is, with one before and after."""


def add_report(commands: Any) -> None:
    """Add ``report`` and its flags."""
    parser = add_command(commands, "report", "one HTML page that shows a cluster and a placement", _report)
    parser.description = TEXT
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="INSTANCE..., and if wanted a PLACEMENT and a COMPARISON; - is stdin"
    )
    add_reading(parser)
    parser.add_argument(
        "-o", dest="output", metavar="FILE", default="-", help="the page, .html; - is stdout (default, not a terminal)"
    )


def _report(options: argparse.Namespace) -> int:
    from placer.progress import Progress
    from placer.read import read_whole_placement
    from placer.report import contents, page, told_apart
    from placer.wanted import wanted_text

    to_stdout = options.output == "-"
    if not to_stdout:
        writable([Path(options.output)], (".html",))
    elif sys.stdout.isatty() and not options.json:
        raise UsageError("found no -o FILE.html, and standard output is a terminal, which shows no page")
    with Progress(quiet=options.quiet, began=options.began, limit=None) as progress:
        progress.phase("reading")
        inputs = told_apart(options.files)
        wanted = read_whole_placement(inputs.placement)[0].wanted if inputs.placement else ()
        options.with_ = wanted_text(wanted)
        instance = read_instance(options, inputs.instance)
        progress.phase("looking")
        found = contents(instance, inputs, strict=options.strict)
    if not to_stdout:
        with written(options.output):
            Path(options.output).write_text(page(found), encoding="utf-8")
    if options.json:
        print(json.dumps(found))
    elif to_stdout:
        sys.stdout.write(page(found))
    return OK
