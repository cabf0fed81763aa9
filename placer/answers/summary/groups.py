"""Which groups were admitted and where they are, which wait and why: a line each."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from placer.answers.document import GroupPart, QueueItem
from placer.answers.summary.queue import print_messages, print_queue, print_steps, queue_items
from placer.base.text import legible, short_name
from placer.base.words import and_list, counted
from placer.problem import Group, GroupKey, Instance, Key
from placer.problem.disruption import outcome_of
from placer.problem.group_names import EVERY, Selection
from placer.problem.outcome import Outcome
from placer.problem.placement import Placement
from placer.problem.result import Result

#: How many groups of a kind are listed; the Placement has all of them.
SHOWN = 12

Pair = tuple[Group, GroupPart]

#: Adds the next steps to groups.
AddSteps = Callable[[Mapping[GroupKey, QueueItem]], list[QueueItem]]


def print_groups(
    result: Result,
    parts: Sequence[GroupPart],
    console: Console,
    *,
    wide: bool,
    steps: AddSteps | None = None,
    asked: Selection = EVERY,
) -> None:
    """Print the groups that had a pending pod: the admitted ones, then those that wait.

    ``parts``: of the result's Placement. Else as :func:`placer.answers.summary.print_summary`.
    """
    pairs = _pairs(result.instance, parts, asked)
    if asked.words:
        _print_asked(result.instance, asked, len(pairs), len(parts), console)
    admitted = [(group, part) for group, part in pairs if part.admitted and len(group.pending) > part.pending]
    waiting = [(group, part) for group, part in pairs if part.reason is not None]
    placement = result.placement or Placement()
    _print_admitted(admitted, Outcome(result.instance, placement), console, wide=wide)
    if waiting:
        _print_waiting(result, waiting, console, steps, wide)


def _pairs(instance: Instance, parts: Sequence[GroupPart], asked: Selection) -> list[Pair]:
    groups, shown = (group for group in instance.groups.values() if group.pending), set(asked.groups(instance))
    return sorted((pair for pair in zip(groups, parts, strict=True) if pair[0].key in shown), key=_order)


def _print_asked(instance: Instance, asked: Selection, listed: int, every: int, console: Console) -> None:
    words = f"Listed: groups{asked.words} ({listed:,} of {counted(every, 'group')}); all were decided together"
    console.print(Text(f"\n{words if listed else asked.none(instance, 'has pending pods')}"))


def _print_waiting(
    result: Result, waiting: Sequence[Pair], console: Console, steps: AddSteps | None, wide: bool
) -> None:
    console.print()
    console.print(f"Still pending: {_count(waiting)} ({_tally(waiting)})", style="bold")
    now, shown = time.time(), {group.key for group, _ in waiting}
    found = queue_items(outcome_of(result.instance, result.placement or Placement()), result.reasons, now)
    found = {key: item for key, item in found.items() if key in shown}
    every = [*found.values()] if steps is None else steps(found)
    items = [item for item in every if item.reason is not None]
    print_queue(items, console, now, wide=wide)
    print_messages(items, console)
    print_steps(items, console)


def _order(pair: Pair) -> tuple[int, bool, int, str, str]:
    group, part = pair
    return -group.priority, part.kind == "Pod", -len(group.pending), part.namespace, part.name


def _tally(waiting: Sequence[Pair]) -> str:
    codes = Counter(part.reason.code for _, part in waiting if part.reason is not None)
    return ", ".join(f"{code} {count:,}" for code, count in codes.most_common())


def _count(pairs: Sequence[Pair]) -> str:
    kinds = Counter(part.kind for _, part in pairs)
    return counted_groups(kinds["PodGroup"], kinds["Pod"])


def counted_groups(gangs: int, singles: int) -> str:
    """``3 PodGroups and 1 single pod``."""
    return and_list(counted(count, word) for count, word in ((gangs, "PodGroup"), (singles, "single pod")) if count)


def _print_admitted(pairs: Sequence[Pair], outcome: Outcome, console: Console, *, wide: bool) -> None:
    if not pairs:
        return
    console.print()
    console.print(f"Admitted: {_count(pairs)}", style="bold")
    table = Table(box=None, padding=(0, 0, 0, 2), show_header=False)
    table.add_column(overflow="fold", max_width=max(24, console.width // 2))
    table.add_column(no_wrap=True)
    for _ in range(2 if wide else 1):
        table.add_column(overflow="fold")
    most = len(pairs) if wide else SHOWN
    for group, part in pairs[:most]:
        name = part.name if wide else short_name(part.name)
        table.add_row(Text(legible(f"{part.namespace}/{name}")), *_where(outcome, group, part, wide))
    console.print(table)
    if len(pairs) > most:
        console.print(f"  ... and {len(pairs) - most:,} more (-o wide lists all, and -o FILE writes them)")


def _where(outcome: Outcome, group: Group, part: GroupPart, wide: bool) -> list[Text]:
    new = outcome.added(group.pending)
    on = Counter(outcome.new[key] for key in new)
    count = counted(len(new), "pod") if not part.pending else f"{len(new):,} of {counted(len(group.pending), 'pod')}"
    cells = [Text(count), Text(legible(_domain(outcome.instance, group.bound, on)))]
    if wide:
        nodes = (name if count == 1 else f"{name}({count})" for name, count in sorted(on.items()))
        cells.append(Text(legible(", ".join(nodes))))
    return cells


def _domain(instance: Instance, bound: Sequence[Key], on: Counter[str]) -> str:
    nodes = {*on, *(instance.pods[key].node or "" for key in bound)}
    if len(nodes) == 1 and on.total() == 1:
        return next(iter(nodes))
    tree = instance.topology
    if tree.hyper_nodes:
        name = tree.smallest_common(nodes)
        return f"{'no common HyperNode' if name is None else name} (tier {tree.tier(name)})"
    return next(iter(nodes)) if len(nodes) == 1 else counted(len(nodes), "node")


def looked_at(instance: Instance) -> str:
    """Which schedulers' pods were looked at; empty for files in which all name one."""
    if not (instance.of_cluster or len(instance.schedulers) > 1):
        return ""
    name = instance.scheduler_name
    counts = ", ".join(f"{count:,} for {each}" for each, count in instance.schedulers.items())
    return legible(f"pending pods of {'every scheduler' if name is None else f'scheduler {name}'} ({counts or 'none'})")


def print_looked_at(instance: Instance, console: Console, *, counts: bool = True) -> None:
    """Print which schedulers' pods were looked at and, with ``counts``, how many of the whole cluster were left out."""
    said, left_out = looked_at(instance), str(instance.set_aside) if counts else ""
    parts = [*([f"Looked at {said}."] if said else []), *([f"Left out: {legible(left_out)}."] if left_out else [])]
    if parts:
        console.print()
        console.print(Text(" ".join(parts)))
