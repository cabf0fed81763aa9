"""``topology costs``: what calls between regions and between zones cost."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from rich.console import Console

from placer.answers.summary import print_findings
from placer.base.table import Column, print_tables
from placer.base.text import legible
from placer.cli import flags, printing
from placer.problem.reading import refuse_findings
from placer.topology.network_costs import CostReport, Matrix, costs_of, read_costs

WIDE = 16  #: places beside each other in a table; --json has matrices of any size

SHOWN = 12  #: links that are listed; --json has all of them


def run(options: argparse.Namespace) -> int:
    """Carry out ``topology costs``."""
    printing.check_output(options)
    report = _report(options)
    if options.strict:
        refuse_findings(options.instance or ["cluster"], report.findings)
    if printing.put_or_tell(printing.headed("NetworkCostReport", report.as_dict()), options):
        _print(report, printing.console())
    return flags.OK


def _report(options: argparse.Namespace) -> CostReport:
    if flags.in_cluster(options):
        objects = flags.snapshot(options).objects()
        return costs_of(objects, "cluster", percentile=options.percentile, unit=options.unit)
    return read_costs(*options.instance, percentile=options.percentile, unit=options.unit)


def _print(report: CostReport, terminal: Console) -> None:
    others = [each for each in report.lists if each != report.weights]
    also = f" (not {', '.join(others)})" if others else ""
    used = "no list of costs" if report.weights is None else f"list {report.weights}"
    terminal.print(legible(f"NetworkTopology {report.topology}: {used}{also}"), markup=False, style="bold")
    unknown = [_print_matrix(matrix, terminal) for matrix in report.matrices]
    unknown += _print_measured(report, terminal)
    if any(unknown):
        terminal.print("\n* no entry, counts as 100", markup=False)
    if report.capacities or report.allocated:
        _print_links(report, terminal)
    if report.findings:
        terminal.print()
        print_findings(report.findings, terminal)


def _print_measured(report: CostReport, terminal: Console) -> list[bool]:
    if report.measured is not None:
        head = legible(f"ConfigMap {report.config_map}: measured, p{report.measured.percentile}")
        terminal.print(f"\n{head}, {report.measured.unit:,} microseconds cost 1", markup=False, style="bold")
        return [_print_matrix(matrix, terminal) for matrix in report.measured.matrices]
    if report.config_map is not None:
        told = f"ConfigMap {report.config_map}: not in the instance, so nothing is measured"
        terminal.print(f"\n{legible(told)}", markup=False)
    return []


def _print_matrix(matrix: Matrix, terminal: Console) -> bool:
    terminal.print()
    title = legible(_title(matrix))
    if not matrix.names:
        terminal.print(f"{title}: none", markup=False)
    elif len(matrix.names) > WIDE:
        terminal.print(f"{title}: {len(matrix.names)} of them, too many for a table (--json has all)", markup=False)
    else:
        terminal.print(title, markup=False)
        print_tables(terminal, Column("from \\ to", list(matrix.names)), list(_columns(matrix)))
    return any(not matrix.known(one, two) for one in matrix.names for two in matrix.names)


def _title(matrix: Matrix) -> str:
    if matrix.kind == "region":
        return "Between regions"
    return f"Between zones of region {matrix.region}" if matrix.region else "Between zones that no node is in"


def _columns(matrix: Matrix) -> Iterator[Column]:
    for name in matrix.names:
        yield Column(legible(name), [_cell(matrix, origin, name) for origin in matrix.names])


def _cell(matrix: Matrix, origin: str, destination: str) -> str:
    cost = matrix.cost(origin, destination)
    return "-" if cost is None else f"{cost:,}{'' if matrix.known(origin, destination) else '*'}"


def _print_links(report: CostReport, terminal: Console) -> None:
    def used(link: Any) -> float:
        capacity, taken = report.capacities.get(link), report.allocated.get(link, 0)
        return taken / max(capacity, 1) if capacity is not None else 0.0

    terminal.print("\nBandwidth, bit/s; the fullest links first", style="bold")
    links = sorted({*report.capacities, *report.allocated}, key=lambda link: (-used(link), link))
    capacities = [report.capacities.get(link) for link in links[:SHOWN]]
    names = [f"{link.kind} {link.origin} -> {link.destination}" for link in links[:SHOWN]]
    columns = [
        Column("capacity", ["unlimited" if each is None else f"{each:,}" for each in capacities]),
        Column("in use", [f"{report.allocated.get(link, 0):,}" for link in links[:SHOWN]]),
        Column("full", ["-" if link not in report.capacities else f"{used(link):.0%}" for link in links[:SHOWN]]),
    ]
    print_tables(terminal, Column("link", names, text=True, most=48), columns)
    if len(links) > SHOWN:
        terminal.print(f"... and {len(links) - SHOWN:,} more")
