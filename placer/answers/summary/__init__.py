"""The summary of an answer: verdict, numbers with proofs, admitted and waiting groups.

Belongs here: text for people, in the words of :mod:`placer.base.words`. Does not: deciding, measuring, the command
line.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from io import StringIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from placer.answers.document import GroupPart, PlacementDocument, QueueItem, placement_document
from placer.answers.summary.queue import print_messages, print_queue, print_steps, queue_items
from placer.base.text import legible, short_name
from placer.base.words import (
    amount_digits,
    and_list,
    counted,
    is_amount,
    nodes_worth,
    number_word,
    prover_word,
    some,
    value_word,
)
from placer.problem import Finding, Group, GroupKey, Instance, Key
from placer.problem.disruption import outcome_of
from placer.problem.gpus import Placeable, placeable
from placer.problem.group_names import EVERY, Selection
from placer.problem.outcome import Outcome
from placer.problem.placement import MAXIMISED, Placement, Violation
from placer.problem.result import Judged, Result, Termination, Verdict

#: Workloads that are named.
NAMED = 3

#: Columns of what notebooks show.
NOTEBOOK_WIDTH = 110


def print_summary(
    result: Result,
    console: Console,
    *,
    wide: bool = False,
    document: PlacementDocument | None = None,
    steps: AddSteps | None = None,
    asked: Selection = EVERY,
) -> None:
    """Print the summary of a result.

    ``wide``: with nodes of admitted groups. ``document``: of the result, where it is made already. ``steps``: adds next
    steps to groups. ``asked``: groups that are listed.
    """
    document = document or placement_document(result, versions={})  # which it does not show
    if result.instance.pending or result.placement is None:
        console.print(_headline(document, result))
    else:
        console.print(_nothing_to_place(result.instance))
    console.print()
    console.print(_grid(counts(document, result)))
    if result.instance.pending:
        if any(map(is_shown, result.objective)):
            console.print()
            console.print("Values, in the order they are compared", style="bold")
            console.print(_objective(result, console.width))
        print_groups(result, document.groups, console, wide=wide, steps=steps, asked=asked)
    if result.findings:
        console.print()
    print_findings(result.findings, console)
    print_absent(result.instance.absent_work, console)
    if result.instance.skipped:
        console.print()
        console.print(Text(f"Not read (other kinds): {_kinds(result.instance)}"))


def as_html(printed: Callable[[Console], None]) -> str:
    """What is printed as HTML, as notebooks show it."""
    return _recorded(printed).export_html(
        inline_styles=True, code_format='<pre style="line-height: normal">{code}</pre>'
    )


def as_text(printed: Callable[[Console], None]) -> str:
    """What is printed as plain text, without trailing blanks."""
    return "\n".join(line.rstrip() for line in _recorded(printed).export_text().splitlines())


def _recorded(printed: Callable[[Console], None]) -> Console:
    console = Console(
        file=StringIO(),
        record=True,
        width=NOTEBOOK_WIDTH,
        highlight=False,
        emoji=False,
        color_system=None,
        force_jupyter=False,  # else rich shows in a notebook what is printed here, beside what is returned
    )
    printed(console)
    return console


def _headline(document: PlacementDocument, result: Result) -> Text:
    seconds = document.seconds
    steps = ", ".join(f"{name} {getattr(seconds, name):.1f}" for name in ("read", "build", "solve", "verify"))
    style = {"OPTIMAL": "bold green", "FEASIBLE": "bold yellow"}.get(document.verdict.value, "bold red")
    return Text.assemble(
        (document.verdict.value, style), f"  {verdict_sentence(result)}\n", f"{stopped(result)}\n", f"seconds: {steps}"
    )


def _nothing_to_place(instance: Instance) -> Text:
    name = instance.scheduler_name
    whose = "any scheduler" if name is None else f'scheduler "{legible(name)}"'
    aside = legible(str(instance.set_aside))
    text = Text.assemble(("Nothing to place", "bold"), f": 0 pending for {whose}{f' ({aside})' if aside else ''}")
    others = [legible(each) for each in instance.set_aside.other_schedulers]
    if others:
        first = f"--scheduler-name {others[0]} takes those for {others[0]}"
        text.append(f"\n{first}, --scheduler-name '*' those for every scheduler")
    return text


def counts(document: PlacementDocument, result: Result) -> list[tuple[str, str]]:
    """Sizes of cluster, queue and answer: name and words."""
    instance, part = result.instance, document.instance
    rows = [("cluster", cluster_size(instance))]
    if instance.pending:
        rows += [
            ("pods placed", f"{len(document.bindings):,} of {part.pending:,} pending"),
            ("groups admitted", _admitted(document)),
            ("amount placed", _weight(result)),
        ]
        rows += [("expanded", _expanded(instance))] if instance.expanded else []
        left = placeable(Outcome(instance, result.placement or Placement()))
        if left:
            rows.append(("still fits", still_fits(left)))
        rows += schedulers_rows(instance)
    return rows


def _expanded(instance: Instance) -> str:
    made = instance.expanded
    of = and_list(some([f"{name} ({count:,})" for name, count in made.items()], NAMED))
    return f"{counted(sum(made.values()), 'pod')} that placer made from {legible(of)}, which have none yet"


def schedulers_rows(instance: Instance) -> list[tuple[str, str]]:
    """Which schedulers' pods were looked at, and which were left out."""
    said, aside = looked_at(instance), legible(str(instance.set_aside))
    rows = [("looked at", said)] if said else []
    return [*rows, *([("skipped", f"pods of other schedulers, or gated: {aside}")] if aside else [])]


def cluster_size(instance: Instance) -> str:
    """``50 nodes, 10 HyperNodes, 0 pods running``."""
    running = sum(pod.state.on_node for pod in instance.pods.values())
    hyper_nodes = len(instance.topology.hyper_nodes)
    sizes = ((len(instance.nodes), "node"), *([(hyper_nodes, "HyperNode")] if hyper_nodes else []), (running, "pod"))
    return f"{', '.join(counted(count, word) for count, word in sizes)} running"


def _grid(rows: Iterable[tuple[str, str]]) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, Text(value))
    return table


def still_fits(left: Sequence[Placeable]) -> str:
    """How many more pods of so many GPUs fit: ``1/2/4/8-GPU pods: 12/5/2/0``."""
    counts, sizes = "/".join(f"{each.pods:,}" for each in left), "/".join(str(each.size) for each in left)
    return f"{sizes}-GPU pods: {counts}"


def _admitted(document: PlacementDocument) -> str:
    asked = Counter(group.kind for group in document.groups)
    admitted = Counter(group.kind for group in document.groups if group.admitted)
    counts = ((admitted["PodGroup"], asked["PodGroup"], "PodGroup"), (admitted["Pod"], asked["Pod"], "single pod"))
    return ", ".join(f"{some:,} of {counted(every, word)}" for some, every, word in counts if every)


def _weight(result: Result) -> str:
    weight = result.weight
    asked = sum(result.instance.weights.values())
    digits = amount_digits(weight.value.value, asked)
    said = f"{nodes_worth(weight.value.value, digits)} of {asked / 1e6:,.{digits}f} asked for"
    if weight.gap is None or result.everything_placed or weight.bound is None:
        return said
    more = f"at most {weight.gap:.2%} more is possible" if weight.gap else "no more is possible"
    if weight.gap and not weight.value.value:
        more = f"at most {weight.bound.value / 1e6:,.{digits}f} is possible"
    return f"{said}; {more} ({prover_word(weight.bound.by)})"


def _objective(result: Result, width: int) -> Table:
    rows = [
        (name_of(judged, result), number_of(judged), bound_words(judged, result))
        for judged in result.objective
        if is_shown(judged)
    ]
    table = Table(box=None, padding=(0, 0, 0, 2), show_header=False)
    for taken in _widths(list(zip(*rows, strict=True)), width):
        table.add_column(width=taken)
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _widths(columns: Sequence[Sequence[str]], width: int) -> list[int]:
    least = [max(len(word) for cell in column for word in cell.split()) for column in columns]
    room = max(0, width - sum(least) - 2 * len(columns))
    found = []
    for words, column in zip(least, columns, strict=True):
        more = min(room, max(map(len, column)) - words)
        found.append(words + more)
        room -= more
    return found


def _kinds(instance: Instance) -> str:
    kinds = [f"{count:,} {legible(kind)}" for kind, count in sorted(instance.skipped.items())]
    more = [f"and {len(kinds) - SHOWN:,} more kinds"] if len(kinds) > SHOWN else []
    return ", ".join([*kinds[:SHOWN], *more])


def print_absent(sentences: Sequence[str], console: Console) -> None:
    """Print which work is suspended or held back by gates."""
    if sentences:
        console.print()
        console.print(f"Not there yet ({len(sentences):,}):", style="bold")
    for sentence in sentences[:SHOWN]:
        console.print(Text(f"  {legible(sentence)}"))
    if len(sentences) > SHOWN:
        console.print(f"  ... and {len(sentences) - SHOWN:,} more")


def print_findings(findings: Iterable[Finding], console: Console, *, brief: str = "") -> None:
    """Print what in the input cannot be as meant; ``brief``: in one line that begins so."""
    found = list(findings)
    if brief and found:
        codes = ", ".join(f"{code} {count}" for code, count in Counter(each.code for each in found).most_common())
        console.print(Text(f"{brief} ({len(found):,}): {codes} (-o wide lists them)"))
        return
    if not found:
        return
    console.print(f"Findings ({len(found):,}):", style="bold")
    for finding in found[:SHOWN]:
        console.print(Text(f"  {finding}"))
    if len(found) > SHOWN:
        console.print(f"  ... and {len(found) - SHOWN:,} more")


def print_violations(
    instance: Instance, placement: Placement, violations: Iterable[Violation], console: Console
) -> None:
    """Print the judgement of a placement: every violation, or that there is none."""
    found = list(violations)
    head = f"{counted(len(placement.bindings), 'binding')} on {counted(len(instance.nodes), 'node')}"
    if placement.disturbs:
        head += f", {counted(len(placement.evictions), 'eviction')}, {counted(len(placement.moves), 'move')}"
    if not found:
        console.print(f"[bold green]VALID[/bold green]  {head}; no rule is broken")
        return
    rules = ", ".join(f"{rule} {count}" for rule, count in sorted(Counter(v.rule for v in found).items()))
    console.print(f"[bold red]INVALID[/bold red]  {head}; {counted(len(found), 'violation')}: {rules}", highlight=False)
    for violation in found:
        console.print(f"  {violation.rule} {legible(violation.message)}", highlight=False, markup=False)


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
    print_messages(items, console, wide=wide)
    print_steps(items, console)


def _order(pair: Pair) -> tuple[int, bool, int, str, str]:
    group, part = pair
    return -group.priority, part.kind == "Pod", -len(group.pending), part.namespace, part.name


def _tally(waiting: Sequence[Pair]) -> str:
    codes = Counter(part.reason.code for _, part in waiting if part.reason is not None)
    return ", ".join(f"{code} {count:,}" for code, count in codes.most_common())


def _count(pairs: Sequence[Pair]) -> str:
    kinds: Counter[str] = Counter(part.kind for _, part in pairs)
    words = (("PodGroup", "PodGroup"), ("Pod", "single pod"))
    return and_list(counted(kinds[kind], word) for kind, word in words if kinds[kind])


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


def is_shown(judged: Judged) -> bool:
    """Whether a value says anything: not 0 with nothing better."""
    if judged.value.value:
        return True
    return is_amount(judged.value.name) and (judged.bound is None or judged.bound.value != 0)


def name_of(judged: Judged, result: Result) -> str:
    """The name of a value among those of an answer."""
    several = len({judged.value.priority for judged in result.objective} - {None}) > 1
    return value_word(judged.value.name, judged.value.priority if several else None)


def number_of(judged: Judged) -> str:
    """A value with the digits that tell it from its bound."""
    return number_word(judged.value.name, judged.value.value, None if judged.bound is None else judged.bound.value)


def verdict_sentence(result: Result) -> str:
    """What is proved, and the first value that may still improve."""
    if result.placement is None:
        return result.nothing_found
    open_values = [judged for judged in result.objective if not judged.met]
    parts = [part for part in (_of_placed(result), *_of_open(result, open_values)) if part]
    if not open_values:
        parts.append("every value is at its best (proved)")
    if result.verdict is Verdict.INFEASIBLE:
        parts.insert(0, "not every pending pod can be placed (proved), and this is the best that was found")
    return f"{'; '.join(parts)}{result.reach}"


def _of_placed(result: Result) -> str:
    if result.everything_placed:
        return "all pending pods are placed"
    amounts = [judged for judged in result.objective if judged.value.name in MAXIMISED]
    if not amounts or not all(judged.met for judged in amounts):
        return ""
    if result.objective[0].value.name in MAXIMISED:
        return "all that can be placed is placed (proved)"
    return "as much is placed as the values compared before allow (proved)"


def _of_open(result: Result, open_values: list[Judged]) -> list[str]:
    if not open_values:
        return []
    first, after = open_values[0], open_values[1:]
    rest = _limit(first) or "and how much better it may be is not proved"
    said = f"{name_of(first, result)}: {number_of(first)}, {rest}"
    return [said, *(["the values after it may improve, too"] if any(map(is_shown, after)) else [])]


def _limit(judged: Judged) -> str:
    value, bound = judged.value, judged.bound
    if bound is None:
        return ""
    limit = "at most" if value.name in MAXIMISED else "at least"
    if is_amount(value.name):
        return f"{limit} {bound.value / 1e6:,.{amount_digits(value.value, bound.value)}f}"
    return f"{limit} {bound.value:,}"


def bound_words(judged: Judged, result: Result) -> str:
    """What is proved of one value."""
    bound = judged.bound
    if bound is None or judged.gap is None:
        return "not proved"
    if _is_all(judged, result):
        return "best: nothing more is asked for"
    by = f"proved by {prover_word(bound.by)}"
    gap = f" (gap {judged.gap:.2%})" if judged.value.value else ""  # of nothing there is no share
    return f"best, {by}" if judged.met else f"{_limit(judged)}{gap}, {by}"


def stopped(result: Result) -> str:
    """Why the search ended, and who found and proved the answer."""
    told = [j for j in result.objective if is_shown(j) and not _is_all(j, result)]
    provers = list(dict.fromkeys(prover_word(judged.bound.by) for judged in told if judged.bound is not None))
    proved = f", {'proved' if result.verdict is Verdict.OPTIMAL else 'bounds proved'} by {and_list(provers)}"
    found = _FIRST_FIT if result.method == "first-fit" else f"found by {result.method}"
    return f"{_end(result)}; {found}{proved if provers else ''}"


#: In place of a search.
_FIRST_FIT = "no time was left for a search, and pods were placed by first fit: a longer --time-limit finds more"


def _is_all(judged: Judged, result: Result) -> bool:
    return judged.value.name in MAXIMISED and judged.met and result.everything_placed


def _end(result: Result) -> str:
    seconds = result.seconds["total"]
    if result.termination is Termination.TIME:
        limits = [
            *([f"the {result.time_limit:g} s limit"] if result.time_limit is not None else []),
            *([f"the work limit of {result.work_limit:g}"] if result.work_limit is not None else []),
        ]
        return f"stopped at {' or '.join(limits) or 'its limit'}"
    word = {Termination.PROVED: "proved", Termination.INTERRUPTED: "interrupted"}.get(result.termination, "finished")
    return f"{word} after {seconds:.1f} s"
