"""``report``: a cluster, and what a placement makes of it, as one HTML page."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import Any

from placer.errors import UsageError
from placer.terminal import (
    CLUSTER,
    OK,
    add_cluster,
    add_command,
    add_inputs,
    add_output,
    add_reading,
    headed,
    read_instance,
    refuse_both,
    source,
    tell,
    writable,
    written,
)

__all__ = ["add_report"]

TEXT = """One HTML page that needs no network: the cluster as a picture, and every fact of it in tables.
placer recognises files by their content: objects of the instance, a Placement (or v1 Bindings), rows of `compare`.
Without a placement the page shows the cluster as it is, with one before and after. Without an instance it shows
the objects of a cluster."""


def add_report(commands: Any) -> None:
    """Add ``report`` and its flags."""
    parser = add_command(commands, "report", "write one HTML page that shows a cluster and a placement", _report)
    parser.description = TEXT
    text = "INSTANCE..., and if wanted a PLACEMENT and a COMPARISON; - is stdin; default: the cluster as it is"
    add_inputs(parser, text, needed=False, dest="files", metavar="FILE")
    add_reading(parser)
    add_cluster(parser)
    add_output(parser, "the page, .html; - is stdout (default, not a terminal)", "-")


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
    options.instance = []
    inputs = told_apart(options.files, partial(source, options))
    options.instance = [text for text in inputs.instance if text.name != CLUSTER]
    refuse_both(options)
    with Progress(quiet=options.quiet, began=options.began, limit=None) as progress:
        progress.phase("reading")
        wanted = read_whole_placement(inputs.placement)[0].wanted if inputs.placement else ()
        options.with_ = wanted_text(wanted)
        instance = read_instance(options, inputs.instance)
        progress.phase("looking")
        found = contents(instance, inputs, strict=options.strict)
    if not to_stdout:
        with written(options.output):
            Path(options.output).write_text(page(found), encoding="utf-8")
    if options.json:
        tell(headed("Report", found), options)
    elif to_stdout:
        sys.stdout.write(page(found))
    return OK
