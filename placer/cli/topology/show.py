"""``topology show``: the tier tree as text, with bars of what is used and free, no line wider than 80 columns."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from placer.base.errors import UsageError
from placer.base.text import found_like, shown
from placer.base.words import and_list, some
from placer.cli import flags, printing

if TYPE_CHECKING:
    from rich.console import Console

    from placer.problem import Instance
    from placer.problem.domains import DomainReport, DomainUse, ResourceUse

WIDTH = 80  #: columns that are used at most

MOST = 60  #: domains that are shown where --depth does not say how many levels

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


def add_show(topics: Any) -> None:
    """Add ``topology show`` and its flags."""
    parser = flags.add_command(topics, "show", "print the tier tree with used and free resources of each domain", _show)
    flags.add_source(parser, lenient=False)
    group = parser.add_argument_group("showing")
    group.add_argument("--domain", metavar="NAME", help="one domain and those below it; default: all of them")
    group.add_argument(
        "--depth",
        type=int,
        metavar="N",
        help=f"levels of domains, from the top; default all of them (of text as many as have {MOST} domains together)",
    )
    group.add_argument(
        "--resource",
        metavar="NAME",
        help="resource of the bars; default: GPUs if there are any, else the most used one",
    )
    flags.add_output(parser, "write the JSON to FILE: .json, .yaml, each also .gz; - is stdout")


def _show(options: argparse.Namespace) -> int:
    from placer.problem.domains import domains_of

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
    from placer.answers.summary import print_findings

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
    from rich.text import Text

    terminal.print(Text(text), soft_wrap=not wrapped, width=min(WIDTH, terminal.width) if wrapped else None)


def _encodes(terminal: Console, marks: BarMarks) -> bool:
    try:
        "".join(marks).encode(terminal.encoding)
    except UnicodeEncodeError:
        return False
    return True


def _scarcest(room: ResourceUse) -> str:
    """GPUs where there are any, else what most of is used, cpu where nothing is; ``pods`` are never meant."""
    from placer.base.quantity import CPU, PODS
    from placer.problem.gpus import is_gpu

    def rank(resource: str) -> tuple[bool, float, bool]:
        return is_gpu(resource), room.share(resource), resource == CPU

    return max((each for each in room.resources if each != PODS), key=rank, default=CPU)


def _levels(domains: Sequence[DomainUse]) -> int:
    depths = sorted(each.depth for each in domains)
    if len(depths) <= MOST:
        return len(depths) + 1
    return max(1, depths[MOST] - depths[0])


@dataclass(frozen=True, slots=True)
class _TreeLine:
    name: str
    tier: str
    nodes: str
    room: ResourceUse


def _rows(report: DomainReport, from_root: bool) -> Iterator[_TreeLine]:
    if from_root:
        yield _row("cluster", report.whole)
    top = min((each.depth for each in report.domains), default=0)
    for each in report.domains:
        yield _row(_GAP * (each.depth - top + from_root) + shown(each.name, 300), each)
    if from_root and report.outside.nodes and report.domains:
        yield replace(_row(f"{_GAP}(in no domain)", report.outside), tier="")


def _row(name: str, each: DomainUse) -> _TreeLine:
    return _TreeLine(name, str(each.tier), f"{each.nodes:,}", each.room)


def _lines(rows: Sequence[_TreeLine], resource: str, marks: BarMarks, width: int) -> Iterator[str]:
    table = [("domain", "tier", "nodes", "used", "free")]
    for row in rows:
        used, free = (_short(resource, part.get(resource, 0)) for part in (row.room.used, row.room.free))
        table.append((row.name, row.tier, row.nodes, used, free))
    longest, *numbers = [max(map(_cells, column)) for column in zip(*table, strict=True)]
    left = width - sum(numbers) - len(_GAP) * len(numbers)
    name = min(longest, max(NAME, left - BAR - len(_GAP)))
    bar = left - name - len(_GAP)
    if bar < BAR:
        name, bar = max(NAME, min(longest, left)), 0
    for index, cells in enumerate(table):
        parts = [_fitted(cells[0], name, marks.cut)]
        parts += [cell.rjust(columns) for cell, columns in zip(cells[1:], numbers, strict=True)]
        if bar:
            parts.append(_bar(rows[index - 1].room, resource, marks, bar) if index else shown(resource, 300)[:bar])
        yield _GAP.join(parts)


def _cells(text: str) -> int:
    from rich.cells import cell_len

    return cell_len(text)


def _fitted(text: str, columns: int, cut: str) -> str:
    """A text in so many columns; of a longer one the beginning and the end, where names differ."""
    from rich.cells import set_cell_size

    if _cells(text) <= columns:
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
    from placer.base.quantity import CPU, is_bytes

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
    if any(row.room.closed.get(resource) for row in rows):
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
