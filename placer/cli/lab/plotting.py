"""``plot``: figures of many runs."""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path
from typing import Any, TextIO

from placer.base.errors import UsageError
from placer.cli import flags, printing

NAMES = ("profile", "placed", "size", "gap")

TEXT = """Draws lines of `placer sweep -o`, several files as one sweep, or the output of `placer compare --json`.
profile: the share of instances on which a policy places a given part of the best result. placed: placed weight over
the optimum, or its bound, by family. size: time and memory by number of nodes, with the slope. gap: weight that is not
placed yet, over time. The extra `lab` has the libraries that it needs."""


def add_plot(commands: Any) -> None:
    """Add ``plot`` and its flags."""
    parser = flags.add_command(commands, "plot", "draw figures from sweep's lines or compare's JSON", _plot)
    parser.description = TEXT
    parser.add_argument("file", nargs="+", metavar="FILE", help="see above")
    parser.add_argument("--figure", choices=NAMES, default="profile", help="the figure to draw (profile)")
    flags.add_output(
        parser, "where to draw: .pdf, .svg, .png; .csv is a table; - is the table on stdout (default)", "-"
    )


def _plot(options: argparse.Namespace) -> int:
    from placer.lab.figures.content import make_figure
    from placer.lab.figures.measured import read_runs

    target = None if options.output == "-" else Path(options.output)
    if target is not None:
        printing.writable([target], (".pdf", ".svg", ".png", ".csv"))
    figure = make_figure(options.figure, read_runs(options.file))
    if target is not None:
        _write(figure, target)
    _tell(figure, target, options)
    return flags.OK


def _write(figure: dict[str, Any], target: Path) -> None:
    from placer.lab.figures.drawing import draw

    if target.suffix != ".csv":
        draw(figure, target)
        return
    try:
        with target.open("w", encoding="utf-8", newline="") as file:
            _write_table(figure, file)
    except OSError as error:
        raise UsageError(f"{target}: cannot be written: {error.strerror}") from error


def _write_table(figure: dict[str, Any], file: TextIO) -> None:
    from placer.lab.figures.content import table

    csv.writer(file, lineterminator="\n").writerows(table(figure))


def _tell(figure: dict[str, Any], target: Path | None, options: argparse.Namespace) -> None:
    series = [each for panel in figure["panels"] for each in panel["series"]]
    if options.json:
        document = printing.headed("Figure", {"file": None if target is None else str(target), **figure})
        printing.tell(document, options, (each["name"] for each in series))
        return
    if target is None:
        _write_table(figure, sys.stdout)
    else:
        count = sum(len(each["points"]) for each in series)
        print(f"{target}: {figure['panels'][0]['title']}; {count:,} points")
    for text in figure["leftOut"]:
        print(f"left out: {text}", file=sys.stderr if target is None else sys.stdout)
