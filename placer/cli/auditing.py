"""``audit``: what runs against the rules and against the best there is, and what the cluster has left."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from itertools import filterfalse, groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from placer.answers.audit.groups import AuditEntry, Quality, Standing, audit
from placer.answers.audit.sums import LargestGang, largest_gangs
from placer.answers.summary import print_findings
from placer.base.deadline import Deadline, within
from placer.base.quantity import format_amount
from placer.base.table import Column, print_tables
from placer.base.text import short_name
from placer.base.words import and_list, counted, some
from placer.cli import flags, printing
from placer.problem import GroupKey, Instance
from placer.problem.findings import counted as first_of
from placer.problem.group_names import full_name
from placer.problem.stranding import AlikePods, Stranded, stranded

if TYPE_CHECKING:
    Sums = tuple[Sequence[Stranded], Sequence[LargestGang]]

VIOLATES = 1  #: exit code where something that runs breaks a rule

NAMED = 3  #: groups that break one rule in one way, by name
WIDEST = 253  #: characters of a name
SHOWN = 40  #: groups that are listed, the worst first; ``-o wide`` lists all


def run(options: argparse.Namespace) -> int:
    """Carry out ``audit``."""
    flags.check_limit(options)
    paths = flags.source(options)
    deadline = Deadline(options.began + options.time_limit)
    with printing.progress_of(options, options.time_limit) as progress:
        progress.phase("reading")
        instance = flags.read_instance(options, paths)
        asked = set(flags.selection(options).groups(instance))
        entries = [] if options.sums else audit(instance, deadline, asked, progress.phase)

    def counted_sums() -> Sums | None:
        useless = stranded(instance, instance.held, deadline)
        return None if useless is None else (useless, largest_gangs(instance))

    sums = partial(within, deadline, counted_sums, None)
    if options.json:
        rows = (each.as_dict() for each in entries)
        printing.tell(
            printing.headed("AuditSums", _sums(sums())) if options.sums else printing.listed("AuditList", rows), options
        )
    else:
        if not options.sums:
            _print_groups(entries, flags.selection(options).none(instance, "runs"), wide=options.wide)
            _print_lost(instance)
        _print_sums(instance, sums(), flags.selection(options).words)
        if instance.findings:
            printing.say([""])
        print_findings(instance.findings, printing.console())
    return VIOLATES if any(each.standing is Standing.VIOLATION for each in entries) else flags.OK


def _sums(sums: Sums | None) -> dict[str, Any]:
    if sums is None:
        return {"stranded": None, "largestGangs": None}
    found, gangs = sums
    return {"stranded": [each.as_dict() for each in found], "largestGangs": [each.as_dict() for each in gangs]}


def _print_groups(entries: Sequence[AuditEntry], none: str, *, wide: bool) -> None:
    terminal = printing.console()
    if not entries:
        terminal.print(none, markup=False)
        return
    judged = filterfalse(attrgetter("late"), entries)
    worst = sorted(judged if wide else filterfalse(_is_sound_pod, judged), key=_badness)
    sound = 0 if wide else sum(map(_is_sound_pod, entries))
    shown = worst if wide else worst[:SHOWN]
    if shown:
        called = _names([each.group for each in shown])
        cells, most = (called, 2 * WIDEST) if wide else ([*map(short_name, called)], 48)
        print_tables(terminal, Column("group", cells, text=True, most=most), _columns(shown))
    _print_rest(entries, sound, len(worst) - len(shown))
    _print_violations(shown)


def _print_rest(entries: Sequence[AuditEntry], sound: int, more: int) -> None:
    terminal = printing.console()
    if sound:
        breaks = "breaks" if sound == 1 else "break"
        terminal.print(f"{counted(sound, 'single pod')} {breaks} nothing and cannot be nearer (-o wide lists all)")
    _print_late(entries)
    if more:
        terminal.print(f"... and {more:,} more, none of them worse (-o wide lists all)")


def _print_violations(shown: Sequence[AuditEntry]) -> None:
    broken: dict[str, list[str]] = {}
    for name, entry in zip(_names([each.group for each in shown], str), shown, strict=True):
        for violation in entry.violations:
            broken.setdefault(violation, []).append(name)
    # Lone pods of one workload break what they ask for together.
    printing.say(f"{and_list(some(those, NAMED))}: {violation}" for violation, those in broken.items())


def _print_late(entries: Sequence[AuditEntry]) -> None:
    late, every = sum(each.late for each in entries), counted(len(entries), "group")
    unproved = sum(each.score is None and str(each.standing) == "MATCH" for each in entries)
    for count, what in ((late, "not judged"), (unproved, "judged, but the best place was not proved")):
        if count:
            printing.console().print(f"{count:,} of {every}: {what} in time (--time-limit)")


def _is_sound_pod(entry: AuditEntry) -> bool:
    """Whether this is a single pod that breaks nothing and has nothing to gain."""
    return not entry.group.api_group and str(entry.standing) == "MATCH" and entry.score == 1.0


def _names(groups: Sequence[GroupKey], short: Callable[[GroupKey], str] | None = None) -> list[str]:
    names = [f"{each.namespace}/{each.name}" if short is None else short(each) for each in groups]
    counts = Counter(names)
    return [full_name(key) if counts[name] > 1 else name for name, key in zip(names, groups, strict=True)]


def _print_lost(instance: Instance) -> None:
    if not instance.nodes:
        printing.console().print("The instance has no Node, so running groups cannot be judged.")
        return
    lost = {f"Node {pod.node}" for pod in instance.pods.values() if pod.state.on_node and pod.node}
    lost -= {f"Node {name}" for name in instance.nodes}
    if lost:
        printing.say([f"{first_of(lost)}: not in the instance, so that pods there are not judged"])


def _badness(entry: AuditEntry) -> tuple[bool, float]:
    return not entry.violations, 1.0 if entry.score is None else entry.score


def _columns(entries: Sequence[AuditEntry]) -> list[Column]:
    found = [Column("rules", [str(each.standing) for each in entries], text=True)]
    found += _quality_columns("", [each.quality for each in entries])
    found += _quality_columns("best\n", [each.best for each in entries])
    return [*found, Column("score", ["-" if each.score is None else f"{each.score:.2f}" for each in entries])]


def _quality_columns(head: str, those: Sequence[Quality | None]) -> list[Column]:
    columns = []
    for word, name in _QUALITIES:
        values = (None if it is None else getattr(it, name) for it in those)
        cells = ["-" if value is None else f"{value:,}" for value in values]
        if {*cells} != {"-"}:  # a cluster without HyperNodes has no tiers, one without AppGroups no costs
            columns.append(Column(f"{head}{word}", cells))
    return columns


_QUALITIES = (("tier", "tier"), ("leaves", "leaves"), ("cost", "network_cost"))


def _looked_at(instance: Instance) -> str:
    pods, nodes = instance.pods.values(), instance.nodes.values()
    left_out = {
        "NUMA zones": any(node.numa is not None and node.numa.strict for node in nodes),
        "rules about other pods": any(pod.neighbours for pod in pods),
        "host ports": any(pod.host_ports for pod in pods),
        "queues": any(queue.capability for queue in instance.queues.values()),
    }
    fewer = and_list(what for what, counts in left_out.items() if counts)
    return f", by amounts and node labels ({fewer} may allow fewer pods)" if fewer else ""


def _print_sums(instance: Instance, sums: Sums | None, asked: str) -> None:
    if sums is None:
        printing.console().print("The cluster's sums were not counted in time (--time-limit)")
        return
    where = " in the whole cluster" if asked else ""
    _print_stranded(sums[0], where)
    _print_largest(sums[1], f"{where}{_looked_at(instance)}")


def _print_stranded(found: Sequence[Stranded], where: str) -> None:
    terminal = printing.console()
    terminal.print(f"\nStranded{where}: free, and of no use to any pod of this cluster")
    for each in found:
        where = f"on {counted(len(each.nodes), 'node')}"
        printing.say([f"  {each.resource} {format_amount(each.resource, each.amount)} {where}: {each.reason}"])
    if not found:
        terminal.print("  nothing")


def _print_largest(gangs: Sequence[LargestGang], looked_at: str) -> None:
    terminal = printing.console()
    tiers = any(each.hyper_node for each in gangs)
    terminal.print(f"\nLargest gang that still fits{' under one HyperNode' if tiers else ''}{looked_at}")
    rows = _folded(gangs)
    names = Column("of pods that ask for", [words for words, _ in rows], text=True, most=60)
    columns = [Column("pods", [f"{each[0].pods:,}" for _, each in rows])]
    if tiers:
        where = [(each[0].hyper_node or "the whole cluster") if each[0].pods else "-" for _, each in rows]
        spans = [str(each[0].tier) + (f"-{each[-1].tier}" if len(each) > 1 else "") for _, each in rows]
        columns = [Column("tier", spans), *columns, Column("where", where, text=True)]
    print_tables(terminal, names, columns)


def _folded(gangs: Sequence[LargestGang]) -> list[tuple[str, list[LargestGang]]]:
    """Rows by words, with a difference where it matters; tiers of one shape that hold as many pods share a row."""
    shapes: dict[str, dict[AlikePods, list[LargestGang]]] = {}
    for each in gangs:
        shapes.setdefault(each.words, {}).setdefault(each.shape, []).append(each)
    rows: list[tuple[str, list[LargestGang]]] = []
    for words, alike in shapes.items():
        sums = {tuple((each.tier, each.pods) for each in found): shape for shape, found in reversed(alike.items())}
        for shape in reversed(sums.values()):
            said = words if len(sums) == 1 else f"{words}{_tolerated(shape)}"
            rows += [(said, [*same]) for _, same in groupby(alike[shape], attrgetter("pods"))]
    return rows


def _tolerated(shape: AlikePods) -> str:
    keys = [each.key or "all taints" for each in shape.constraints.tolerations]
    return f" (tolerates {and_list(some(keys, NAMED))})" if keys else " (tolerates no taint)"
