"""Which groups were admitted and where they are, which wait and why: a line each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from placer.document import GroupPart
from placer.instance import Group, Instance, Key
from placer.legible import legible
from placer.outcome import Outcome
from placer.placement import Placement
from placer.result import Result
from placer.words import and_list, counted, some

__all__ = ["SHOWN", "print_groups"]

#: How many groups of a kind are listed; the Placement has all of them.
SHOWN = 12

#: Single pods that a line names which wait for one reason.
NAMED = 3

Pair = tuple[Group, GroupPart]

#: Groups of one line, and its cells after their names.
Line = tuple[Sequence[GroupPart], list[Text]]


def print_groups(result: Result, parts: Sequence[GroupPart], console: Console, *, wide: bool) -> None:
    """Print the groups that had a pending pod: the admitted ones, then those of which pods wait.

    Parameters
    ----------
    result
        The answer.
    parts
        What its Placement says of the groups.
    console
        Where to print.
    wide
        Name the nodes of each admitted group, too.
    """
    groups = (group for group in result.instance.groups.values() if group.pending)
    pairs = sorted(zip(groups, parts, strict=True), key=_order)
    admitted = [(group, part) for group, part in pairs if part.admitted and len(group.pending) > part.pending]
    waiting = [(group, part) for group, part in pairs if part.reason is not None]
    outcome = Outcome(result.instance, result.placement or Placement())
    placed = [([part], _where(outcome, group, part, wide)) for group, part in admitted]
    _print("Admitted: {}", admitted, placed, console)
    _print(f"Still pending: {{}} ({_tally(waiting)})", waiting, _waiting_lines(waiting), console)


def _order(pair: Pair) -> tuple[int, bool, int, str, str]:
    """By priority, gangs before single pods, the largest first."""
    group, part = pair
    return -group.priority, part.kind == "Pod", -len(group.pending), part.namespace, part.name


def _tally(waiting: Sequence[Pair]) -> str:
    """How many groups wait for each reason."""
    codes = Counter(part.reason.code for _, part in waiting if part.reason is not None)
    return ", ".join(f"{code} {count:,}" for code, count in codes.most_common())


def _count(pairs: Sequence[Pair]) -> str:
    kinds = Counter(part.kind for _, part in pairs)
    return counted_groups(kinds["PodGroup"], kinds["Pod"])


def counted_groups(gangs: int, singles: int) -> str:
    """``3 PodGroups and 1 single pod``."""
    return and_list(counted(count, word) for count, word in ((gangs, "PodGroup"), (singles, "single pod")) if count)


def _print(head: str, pairs: Sequence[Pair], lines: Sequence[Line], console: Console) -> None:
    """Print groups below a head with their number, each in one of some lines; nothing where there is none."""
    if not pairs:
        return
    console.print()
    console.print(head.format(_count(pairs)), style="bold")
    table = Table(box=None, padding=(0, 0, 0, 2), show_header=False)
    table.add_column(overflow="fold", max_width=max(24, console.width // 2))
    table.add_column(no_wrap=True)
    for _ in lines[0][1][1:]:
        table.add_column(overflow="fold")
    for parts, cells in lines[:SHOWN]:
        names = and_list(some([part.name for part in parts], NAMED))
        table.add_row(Text(legible(f"{parts[0].namespace}/{names}")), *cells)
    console.print(table)
    more = sum(len(parts) for parts, _ in lines[SHOWN:])
    if more:
        console.print(f"  ... and {more:,} more (all of them are in the Placement: -o FILE, or --json)")


def _waiting_lines(pairs: Sequence[Pair]) -> list[Line]:
    """Groups one by one, but single pods of a namespace together that wait for one and the same reason."""
    found: dict[object, list[GroupPart]] = {}
    for group, part in pairs:
        why = part.reason if part.kind == "Pod" else None
        kind = group.key if why is None else (part.namespace, group.priority, why.code, why.message)
        found.setdefault(kind, []).append(part)
    return [(parts, _why(parts)) for parts in found.values()]


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
    """Where the pods are, those that ran before included: the smallest common HyperNode, else how many nodes."""
    nodes = {*on, *(instance.pods[key].node or "" for key in bound)}
    if len(nodes) == 1 and on.total() == 1:
        return next(iter(nodes))
    tree = instance.topology
    if tree.hyper_nodes:
        name = tree.smallest_common(nodes)
        return f"{'no common HyperNode' if name is None else name} (tier {tree.tier(name)})"
    return next(iter(nodes)) if len(nodes) == 1 else counted(len(nodes), "node")


def _why(parts: Sequence[GroupPart]) -> list[Text]:
    """How many pods of some groups wait, and the reason that they share."""
    pods, reason = Text(counted(sum(part.pending for part in parts), "pod")), parts[0].reason
    if reason is None:
        return [pods, Text()]
    return [pods, Text.assemble((reason.code, "bold"), f" {legible(reason.message)}")]
