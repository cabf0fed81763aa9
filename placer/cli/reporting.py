"""``report``: a cluster, and what a placement makes of it, as one HTML page."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from placer.answers.report import Inputs, contents, page, told_apart, write_page
from placer.base.deadline import Deadline
from placer.base.errors import PlacerError, UsageError
from placer.cli import flags, printing
from placer.cli.commands import REPORT
from placer.problem import Instance
from placer.problem.reading import read_whole_placement
from placer.problem.wanted import wanted_text

#: Least seconds between two pages of ``--every``.
SHORTEST = 1.0


def run(options: argparse.Namespace) -> int:
    """Carry out ``report``."""
    target = options.output or ("-" if options.json else REPORT)
    _refuse(options, target)
    found = _gathered(options, options.began)
    if target != "-":
        with printing.written(target):
            write_page(found, Path(target))
    if options.json:
        printing.tell(printing.headed("Report", found), options)
    elif target == "-":
        sys.stdout.write(page(found))
    elif not options.quiet:
        print(target, flush=True)
    if options.open:
        _open(Path(target))
    if options.every is not None:
        _repeat(options.every, lambda: write_page(_gathered(options, time.monotonic()), Path(target)))
    return flags.OK


def _refuse(options: argparse.Namespace, target: str) -> None:
    if target != "-":
        printing.writable([Path(target)], (".html",))
    elif options.open or options.every is not None:
        raise UsageError(f"{'--open' if options.open else '--every'}: found no file to write, expected -o FILE.html")
    flags.check_limit(options)
    if options.every is not None and not options.every >= SHORTEST:
        raise UsageError(f"--every: found {options.every:g} s, expected at least {SHORTEST:g} s")


def _gathered(options: argparse.Namespace, began: float) -> dict[str, Any]:
    options.instance = []
    inputs = told_apart(options.files, partial(flags.source, options))
    options.instance = [text for text in inputs.instance if text.name != flags.CLUSTER]
    flags.in_cluster(options)
    with printing.progress_of(options, options.time_limit, began) as progress:
        progress.phase("reading")
        instance = _instance(options, inputs)
        progress.phase("gathering facts for the page")
        about = _about(options, inputs)
        until = Deadline(began + options.time_limit)
        return contents(instance, inputs, strict=options.strict, deadline=until, every=options.every, **about)


def _instance(options: argparse.Namespace, inputs: Inputs) -> Instance:
    wanted = read_whole_placement(inputs.placement)[0].wanted if inputs.placement else ()
    options.with_ = wanted_text(wanted)
    return flags.read_instance(options, inputs.instance)


def _about(options: argparse.Namespace, inputs: Inputs) -> dict[str, Any]:
    live = any(text.name == flags.CLUSTER for text in inputs.instance)
    name: str | None = options.cluster_name
    if live and not name:
        from placer.passes.cluster.reading.credentials import context_name

        name = context_name(options.kubeconfig, options.context)
    return {"cluster": name or "", "live": live}


def _repeat(every: float, write: Callable[[], None]) -> None:
    try:
        while True:
            time.sleep(every)
            try:
                write()
            except (PlacerError, OSError) as error:  # a file may be half written, a server away
                print(f"placer: the page is as before: {error}", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        return


def _open(path: Path) -> None:
    import webbrowser

    if not webbrowser.open(path.absolute().as_uri()):
        print(f"placer: --open: found no browser; open {path} in one", file=sys.stderr)
