"""``compare``: policies and methods on one instance, side by side."""

from __future__ import annotations

import argparse
import itertools
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from rich.console import Console
from rich.markup import escape

from placer.answers.summary import print_findings, print_looked_at
from placer.base.errors import BadInstance
from placer.base.table import Column, print_tables
from placer.base.text import legible
from placer.base.words import amount_digits, counted, is_amount, value_word
from placer.cli import flags, printing
from placer.cli.lab.comparing_passes import compare_passes
from placer.cli.lab.shared import BREAKS, BROKEN, columns_of, print_notes, scheduler_configs
from placer.kube.manifests import Text
from placer.lab.comparing import DEFAULT, ComparisonRow, beside_proofs, beside_today, compare
from placer.lab.placement_metrics import GroupFate, differing
from placer.problem import Group, Instance
from placer.problem.group_names import EVERY, Selection
from placer.problem.placement import Value
from placer.problem.result import reach_words


def run(options: argparse.Namespace) -> int:
    """Carry out ``compare``."""
    if options.passes is not None:
        return compare_passes(options)
    printing.check_output(options)
    arguments = scheduler_configs(options.scheduler_config, options.scheduler_name)
    paths = flags.source(options)
    rows: list[ComparisonRow] = []
    todays: list[ComparisonRow] = []
    names = DEFAULT if options.policies is None else [name.strip() for name in options.policies.split(",")]
    asked = printing.Interruptible(rows, len({*names}), "row")
    with printing.progress_of(options) as progress, asked:
        progress.phase("reading")
        instance = flags.read_instance(options, paths)
        run = partial(_run, options=options, names=names, arguments=arguments, phase=progress.phase)
        run(instance, rows, "")
        if flags.is_edited(options):
            progress.phase("reading the instance without the what-if options")
            _run_today(options, paths, run, rows, todays)
    rows[:], todays[:] = beside_proofs(rows), beside_proofs(todays)
    _show(instance, beside_today(rows, todays) if flags.is_edited(options) else rows, options)
    asked.again()
    return min((row.exit_code for row in [*rows, *todays] if row.error is not None), default=flags.OK)


def _run_today(
    options: argparse.Namespace,
    paths: Sequence[str | Text],
    run: Callable[[Instance, list[ComparisonRow], str], None],
    rows: Sequence[ComparisonRow],
    todays: list[ComparisonRow],
) -> None:
    try:
        run(flags.read_instance(options, paths, edited=False), todays, " today")
    except BadInstance as error:  # what was asked is answered; of today only this can be said
        todays += [ComparisonRow(row.policy, error=f"today: {error}") for row in rows]


def _run(
    instance: Instance,
    rows: list[ComparisonRow],
    when: str,
    *,
    options: argparse.Namespace,
    names: Sequence[str],
    arguments: dict[str, Any],
    phase: Callable[[str], None],
) -> None:
    numbers, pods = itertools.count(1), counted(len(instance.pending), "pending pod")
    compare(
        instance,
        names,
        time_limit=flags.time_limit_of(options),
        work_limit=options.work_limit,
        workers=options.workers,
        seed=options.seed,
        arguments=arguments,
        strict=options.strict,
        begin=lambda name: phase(f"{pods}: {name}{when} ({next(numbers)} of {len({*names})})"),
        done=rows.append,
    )


def _todays(rows: Sequence[ComparisonRow]) -> list[ComparisonRow]:
    return [row.today for row in rows if row.today is not None]


def _show(instance: Instance, rows: list[ComparisonRow], options: argparse.Namespace) -> None:
    if printing.put_or_tell(printing.listed("ComparisonList", (row.as_dict() for row in rows)), options):
        print_rows(instance, rows, printing.console(), flags.selection(options))


_HEAD = 12  #: characters of a line of what stands above a value

#: Groups that fare differently; ``--json`` has all.
SHOWN = 20

#: Mark of a valid placement beyond a bound of placements that are better by what counts first; and what it says.
_MORE = "+"
_MORE_SAYS = f"{_MORE} more in all, and less of the values before it: the bound is of placements without that loss"
#: Mark of pods that were bound although their gang is not ready; and what it says.
_HALF = "!"
_HALF_SAYS = f"{_HALF} bound although the gang is not ready"


def print_rows(
    instance: Instance, rows: list[ComparisonRow], terminal: Console, asked: Selection | None = None
) -> None:
    """Print a comparison; of groups that fare differently those that are ``asked`` about, None: all."""
    sizes = (
        (len(instance.pending), "pending pod"),
        (len(instance.nodes), "node"),
        (len(instance.topology.hyper_nodes), "HyperNode"),
    )
    terminal.print(", ".join(counted(count, word) for count, word in sizes), style="bold")

    print_looked_at(instance, terminal)
    good = [row for row in rows if row.metrics is not None]
    if good:
        _print_tables(good, reach_words(sum(bool(pod.unsupported) for pod in instance.pending)), terminal)
        _print_today(good, terminal)
        _print_fates(instance, good, terminal, asked or EVERY)
        _explain(good, terminal)
    print_notes({row.policy: row.notes for row in rows}, terminal)
    _print_errors([*rows, *_todays(rows)], terminal)
    if instance.findings:
        terminal.print()
        print_findings(instance.findings, terminal)


def _print_tables(rows: list[ComparisonRow], reach: str, terminal: Console) -> None:
    names = [row.policy for row in rows]
    shown = _figures(rows)
    figures = columns_of(rows, shown, ("gangs by tier", "breaks"))
    print_tables(terminal, Column("policy", names), figures)
    terminal.print(_VICTIMS_SAY if shown is _FIGURES else "", end="")
    amounts = "priority below the name; needs and placed pods in nodes"
    terminal.print(f"\nValues, in the order they are compared ({amounts}){reach}")
    print_tables(terminal, Column("", ["bound", *names]), list(_values(rows)), bold=0)
    shares = [_of_bound(row) for row in rows]
    if any(share.endswith(BROKEN) for share in shares):
        terminal.print(f"\n{BREAKS}")
    if any(share.endswith(_MORE) for share in shares):
        terminal.print(f"\n{_MORE_SAYS}")


def _figures(rows: Sequence[ComparisonRow]) -> Mapping[str, Callable[[ComparisonRow], str]]:
    evicts = any(row.victims for row in rows)
    return _FIGURES if evicts else {head: figure for head, figure in _FIGURES.items() if head != _VICTIMS}


def _print_errors(rows: Sequence[ComparisonRow], terminal: Console) -> None:
    for row in rows:
        if row.error is not None:
            error = row.error.replace("\n", "\n    ")
            terminal.print(f"[bold red]{row.policy}[/bold red]: {escape(error)}")


def _print_today(rows: list[ComparisonRow], terminal: Console) -> None:
    both = [(row, row.today) for row in rows if row.today is not None and row.today.metrics is not None]
    if not both:
        return
    names = Column("policy", [row.policy for row, _ in both])
    terminal.print("\nWhat if, and today: figures, then the values in the order they are compared")
    for columns in (_figure_pairs(both), _value_pairs(both)):
        print_tables(terminal, names, columns)


#: Rows under a *what if*, each with that of today.
_Both = list[tuple["ComparisonRow", "ComparisonRow"]]


def _figure_pairs(both: _Both) -> list[Column]:
    return [column for head in _BESIDE for column in _pair(head, _FIGURES[head], both)]


def _value_pairs(both: _Both) -> list[Column]:
    names = (replace(judged.value, value=0) for judged in both[0][0].objective)
    return [column for name in names for column in _pair("\n".join(_value_head(name)), _value_cell(name, both), both)]


def _pair(head: str, cell: Callable[[ComparisonRow], str], both: _Both) -> list[Column]:
    return [
        Column(f"{head}\n{when}", [cell(pair[at]) for pair in both]) for at, when in enumerate(("what if", "today"))
    ]


def _value_cell(name: Value, both: _Both) -> Callable[[ComparisonRow], str]:
    known = [each for pair in both for row in pair if (each := _value_of(row, name)) is not None]
    number = _amount(amount_digits(*known)) if is_amount(name.name) else _count
    return lambda row: "-" if (value := _value_of(row, name)) is None else number(value)


def _value_of(row: ComparisonRow, name: Value) -> int | None:
    found = (each.value for each in row.objective)
    return next((value.value for value in found if replace(value, value=0) == name), None)


def _explain(rows: list[ComparisonRow], terminal: Console) -> None:
    for row in rows:
        if row.violations:
            terminal.print(f"\n[bold]{row.policy}[/bold] is not valid here:")
        for rule, count in row.violations.items():
            more = f" (and {count - 1:,} more)" if count > 1 else ""
            terminal.print(f"  {rule}: {escape(legible(row.examples[rule]))}{more}")


#: What stands above a column of the first table to what stands in it; one of these is of words.
_VICTIMS = "victims\n(for nothing)"
_VICTIMS_SAY = (
    "\nvictims for nothing: on nodes that no group has afterwards which is admitted and keeps its tier limits; "
    "nothing that is proved here is of placements that evict\n"
)
_FIGURES: Mapping[str, Callable[[ComparisonRow], str]] = {
    "pods": lambda row: f"{row.placed_pods:,}",
    "groups": lambda row: f"{row.placed_groups:,}",
    "GPUs": lambda row: f"{row.gpus_placed:,}",
    _VICTIMS: lambda row: "-" if row.victims is None else f"{row.victims.pods:,} ({row.victims.for_nothing:,})",
    "weight\nof bound": lambda row: _of_bound(row),
    "GPUs\nin use": lambda row: _in_use(row),
    "still fits:\n1/2/4/8-GPU pods": lambda row: _more_pods(row),
    "excess\nspan": lambda row: "-" if row.metrics is None else f"{row.metrics.excess_span:,}",
    "gangs by tier": lambda row: _by_tier(row),
    "breaks": lambda row: ", ".join(f"{rule} {count:,}" for rule, count in row.violations.items()),
    "s": lambda row: f"{row.seconds:.2f}",
    "MiB": lambda row: "-" if row.peak_memory_mib is None else f"{row.peak_memory_mib:,.0f}",
}


#: Those of them that stand beside today's under a *what if*.
_BESIDE = ("pods", "groups", "GPUs", "GPUs\nin use", "still fits:\n1/2/4/8-GPU pods", "excess\nspan", "breaks")


def _in_use(row: ComparisonRow) -> str:
    ratio = row.metrics.gpu_allocation_ratio if row.metrics is not None else None
    return "-" if ratio is None else f"{ratio:.1%}"


def _more_pods(row: ComparisonRow) -> str:
    placeable = row.metrics.placeable if row.metrics is not None else ()
    return "/".join(f"{each.pods:,}" for each in placeable) or "-"


def _by_tier(row: ComparisonRow) -> str:
    tiers = row.metrics.tiers if row.metrics is not None else {}
    return ", ".join(f"{tier}: {share:.0%}" for tier, share in tiers.items()) or "-"


def _of_bound(row: ComparisonRow) -> str:
    weight = row.weight
    if weight is None or weight.bound is None:
        return "-"
    mark = BROKEN if row.violations else _MORE if weight.beyond else ""
    if not weight.bound.value:
        return f"-{mark}" if weight.value.value else f"100.00%{mark}"
    return f"{weight.value.value / weight.bound.value:.2%}{mark}"


def _values(rows: Sequence[ComparisonRow]) -> Iterator[Column]:
    for index, judged in enumerate(rows[0].objective):
        value, bound = judged.value, _bound(rows, index)
        lines = _value_head(value)
        digits = amount_digits(bound, *(row.objective[index].value.value for row in rows))
        number = _amount(digits) if is_amount(value.name) else _count
        own = ((row.objective[index], row.violations) for row in rows)
        cells = [f"{number(each.value.value)}{BROKEN if each.beyond and broken else ''}" for each, broken in own]
        yield Column("\n".join(lines), ["-" if bound is None else number(bound), *cells])


def _value_head(value: Value) -> list[str]:
    priority = [] if value.priority is None else [f"({value.priority:,})"]
    return textwrap.wrap(value_word(value.name), _HEAD) + priority


def _amount(digits: int) -> Callable[[int], str]:
    return lambda value: f"{value / 1e6:,.{digits}f}"


def _count(value: int) -> str:
    return f"{value:,}"


def _bound(rows: Sequence[ComparisonRow], index: int) -> int | None:
    """The bound of the first value is the same in all rows, further down only in those as good as the best."""
    judged = (row.objective[index].bound for row in rows)
    return next((bound.value for bound in judged if bound is not None), None)


def _print_fates(instance: Instance, rows: list[ComparisonRow], terminal: Console, selected: Selection) -> None:
    # What is bound already places nothing, so that every group would differ.
    asked, shown, words = [row for row in rows if row.policy != "as-is"], set(selected.groups(instance)), selected.words
    groups = [group for group in _differing(instance, asked) if group.key in shown]
    if groups:
        rest = f", the first {SHOWN} of {len(groups):,}; --json has all" if len(groups) > SHOWN else ""
        terminal.print(f"\nGroups{words} that fare differently: new pods of each{rest}", markup=False)
        _print_fates_of(groups[:SHOWN], asked, terminal)
    elif words:
        terminal.print(f"\n{selected.none(instance, 'fares differently')}", markup=False)


def _print_fates_of(shown: list[Group], asked: list[ComparisonRow], terminal: Console) -> None:
    names = Column("group", [f"{group.key.namespace}/{group.key.name}" for group in shown], text=True, most=36)
    columns = [Column("pods", [f"{len(group.pending):,}" for group in shown])]
    for row in asked:
        columns += [_fates(shown, row)]
        columns += [] if row.today is None else [_fates(shown, row.today, "\ntoday")]
    print_tables(terminal, names, columns)
    if any(_HALF in cell for column in columns for cell in column.cells):
        terminal.print(f"\n{_HALF_SAYS}")


def _differing(instance: Instance, rows: list[ComparisonRow]) -> list[Group]:
    found = differing(row.groups for row in (*rows, *_todays(rows)) if row.groups)
    groups = [instance.groups[key] for key in found if key in instance.groups]
    return sorted(groups, key=lambda group: (-group.priority, -instance.need_weights[group.key], group.key))


def _fates(groups: list[Group], row: ComparisonRow, when: str = "") -> Column:
    fates = {fate.group: fate for fate in row.groups}
    return Column(row.policy.replace(":", ":\n") + when, [_fate(group, fates.get(group.key)) for group in groups])


def _fate(group: Group, fate: GroupFate | None) -> str:
    """Nothing where the group does not wait."""
    if fate is None:
        return ""
    new = fate.placed - len(group.bound)
    return f"{new:,}{'' if fate.admitted else _HALF}" if new else "-"
