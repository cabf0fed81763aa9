"""``topology show``: the tier tree as text, with bars of what is used and free, no line wider than 80 columns."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from placer.answers.summary import print_findings
from placer.base.errors import UsageError
from placer.base.quantity import CPU, PODS, is_bytes
from placer.base.text import found_like, shown
from placer.base.words import and_list, some
from placer.cli import flags, printing
from placer.cli.commands import MOST
from placer.problem import Instance
from placer.problem.domains import DomainReport, DomainUse, ResourceUse, domains_of
from placer.problem.gpus import is_gpu

WIDTH = 80  #: columns that are used at most

NAMED = 3  #: NetworkTopologies that are named

BAR, NAME = 10, 12  #: least columns of a bar and of a name

_GAP = "  "


class BarMarks(NamedTuple):
    """Characters of a bar, and what stands where a name is cut."""

    used: str
    free: str
    closed: str
    cut: str


BLOCKS = BarMarks("█", "░", "▒", "…")
ASCII = BarMarks("#", "-", "x", "~")


def run(options: argparse.Namespace) -> int:
    """Carry out ``topology show``."""
    if options.depth is not None and options.depth < 1:
        raise UsageError(f"--depth: found {options.depth}, expected a whole number, at least 1")
    printing.check_output(options)
    instance = _instance(options)
    report = domains_of(instance)
    _known(options.resource, report.whole.room)
    if options.domain is not None:
        report = report.under(options.domain)
    if options.depth is not None:
        report = report.cut(options.depth)
    if printing.put_or_tell(printing.headed("TopologyReport", report.as_dict()), options):
        _print(report, options, printing.console())
        _print_networks(instance, options, printing.console())
    return flags.OK


def _instance(options: argparse.Namespace) -> Instance:
    if not flags.in_cluster(options):
        return flags.read_instance(options, options.instance)
    from placer.passes.cluster.reading.earlier_passes import instance_in
    from placer.problem.reading import refuse_findings

    instance = instance_in(flags.snapshot(options))
    if options.strict:
        refuse_findings(["cluster"], instance.findings)
    return instance


def _known(resource: str | None, room: ResourceUse) -> None:
    if resource is not None and resource not in room.resources:
        known = ", ".join(room.resources) or "none, for there is no node"
        like = found_like(resource, room.resources)
        raise UsageError(f"--resource: found {resource!r}, expected one of {known}{like}")


# ---------------------------------------------------------------------------------------------------------------- text


def _print(report: DomainReport, options: argparse.Namespace, terminal: Console) -> None:
    marks = BLOCKS if _encodes(terminal, BLOCKS) else ASCII
    resource = options.resource or _scarcest(report.whole.room)
    cut = report if options.depth is not None else report.cut(_levels(report.domains))
    rows = list(_rows(cut, options.domain is None))
    for line in _lines(rows, resource, marks, min(WIDTH, terminal.width)):
        _line(line, terminal)
    _line("", terminal)
    for line in _notes(report, cut, resource, marks, rows):
        _line(line, terminal, wrapped=True)
    if report.findings:
        terminal.print()
        print_findings(report.findings, terminal)


def _print_networks(instance: Instance, options: argparse.Namespace, terminal: Console) -> None:
    if instance.network_costs:
        names = and_list(some([shown(str(key), 300) for key in instance.network_costs], NAMED))
        _line(f"NetworkTopology {names}: the costs of calls are printed by", terminal, wrapped=True)
        _line(f"  {shlex.join(['placer', 'topology', 'costs', *flags.source_words(options)])}", terminal)


def _line(text: str, terminal: Console, *, wrapped: bool = False) -> None:
    terminal.print(Text(text), soft_wrap=not wrapped, width=min(WIDTH, terminal.width) if wrapped else None)


def _encodes(terminal: Console, marks: BarMarks) -> bool:
    try:
        "".join(marks).encode(terminal.encoding)
    except UnicodeEncodeError:
        return False
    return True


def _scarcest(room: ResourceUse) -> str:
    """GPUs where there are any, else what most of is used, cpu where nothing is; ``pods`` are never meant."""

    def rank(resource: str) -> tuple[bool, float, bool]:
        return is_gpu(resource), room.share(resource), resource == CPU

    return max((each for each in room.resources if each != PODS), key=rank, default=CPU)


def _levels(domains: Sequence[DomainUse]) -> int:
    depths = sorted(each.depth for each in domains)
    if len(depths) <= MOST:
        return len(depths) + 1
    return max(1, depths[MOST] - depths[0])


#: A name, a tier and a domain.
_TreeLine = tuple[str, str, DomainUse]


def _rows(report: DomainReport, from_root: bool) -> Iterator[_TreeLine]:
    if from_root:
        yield "cluster", str(report.whole.tier), report.whole
    top = min((each.depth for each in report.domains), default=0)
    for each in report.domains:
        yield _GAP * (each.depth - top + from_root) + shown(each.name, 300), str(each.tier), each
    if from_root and report.outside.nodes and report.domains:
        yield f"{_GAP}(in no domain)", "", report.outside


def _lines(rows: Sequence[_TreeLine], resource: str, marks: BarMarks, width: int) -> Iterator[str]:
    table = [("domain", "tier", "nodes", "used", "free")]
    for title, tier, each in rows:
        used, free = (_short(resource, part.get(resource, 0)) for part in (each.room.used, each.room.free))
        table.append((title, tier, f"{each.nodes:,}", used, free))
    longest, *numbers = [max(map(cell_len, column)) for column in zip(*table, strict=True)]
    left = width - sum(numbers) - len(_GAP) * len(numbers)
    name = min(longest, max(NAME, left - BAR - len(_GAP)))
    bar = left - name - len(_GAP)
    if bar < BAR:
        name, bar = max(NAME, min(longest, left)), 0
    for index, cells in enumerate(table):
        parts = [_fitted(cells[0], name, marks.cut)]
        parts += [cell.rjust(columns) for cell, columns in zip(cells[1:], numbers, strict=True)]
        if bar:
            parts.append(_bar(rows[index - 1][2].room, resource, marks, bar) if index else shown(resource, 300)[:bar])
        yield _GAP.join(parts)


def _fitted(text: str, columns: int, cut: str) -> str:
    """A text in so many columns; of a longer one the beginning and the end, where names differ."""
    if cell_len(text) <= columns:
        return set_cell_size(text, columns)
    end = (columns - 1) // 2
    kept = set_cell_size(text, columns - 1 - end).rstrip()
    return set_cell_size(f"{kept}{cut}{text[len(text) - end :]}", columns)


def _bar(room: ResourceUse, resource: str, marks: BarMarks, columns: int) -> str:
    """A bar: what is there at all takes one column at least; empty where there is none of the resource."""
    parts = [part.get(resource, 0) for part in (room.used, room.free, room.closed)]
    if not sum(parts):
        return " " * columns
    counts = _apportioned(parts, columns)
    return marks.used * counts[0] + marks.free * counts[1] + marks.closed * counts[2]


def _apportioned(parts: Sequence[int], columns: int) -> list[int]:
    whole = sum(parts)
    counts = [max(part * columns // whole, min(part, 1)) for part in parts]
    while sum(counts) != columns:  # what is most too short grows, what is most too long shrinks
        step = 1 if sum(counts) < columns else -1
        wanting = {
            step * (parts[index] * columns - counts[index] * whole): index
            for index in range(len(parts))
            if parts[index] and counts[index] + step
        }
        counts[wanting[max(wanting)]] += step
    return counts


def _short(resource: str, amount: int) -> str:
    if resource == CPU:
        return f"{amount / 1000:,.0f}" if amount % 1000 == 0 or amount >= 100_000 else f"{amount / 1000:,.1f}"
    if not is_bytes(resource):
        return f"{amount:,}"
    size, units = float(amount), ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]
    while size >= 1000 and len(units) > 1:
        size, units = size / 1024, units[1:]
    return f"{size:.0f}{units[0]}" if size >= 100 or size == int(size) else f"{size:.1f}{units[0]}"


def _notes(
    report: DomainReport, cut: DomainReport, resource: str, marks: BarMarks, rows: Sequence[_TreeLine]
) -> Iterator[str]:
    told = f"{shown(resource, 300)}: {marks.used} used, {marks.free} free"
    if any(each.room.closed.get(resource) for *_, each in rows):
        told += f", {marks.closed} left on nodes that take no pods (cordoned, not Ready)"
    yield told
    names = sorted({(each.tier, each.tier_name) for each in cut.domains if each.tier_name})
    if names:
        yield "tiers: " + ", ".join(f"{tier} {shown(name, 300)}" for tier, name in names)
    more = len(report.domains) - len(cut.domains)
    if more:
        yield f"{more:,} domains more are below these: --depth N or --domain NAME shows them"
    if not report.domains:
        yield "no domains: there is no sound HyperNode, and no Policy names topologyKeys that a node carries"
