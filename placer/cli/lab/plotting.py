"""``plot``: figures of many runs."""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path
from typing import Any, TextIO

from placer.cli import flags, printing


def run(options: argparse.Namespace) -> int:
    """Carry out ``plot``."""
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
    with printing.written(str(target)), target.open("w", encoding="utf-8", newline="") as file:
        _write_table(figure, file)


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
