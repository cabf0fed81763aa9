"""The summary of an answer: verdict, numbers with proofs, admitted and waiting groups.

Belongs here: text for people, in the words of :mod:`placer.base.words`. Does not: deciding, measuring, the command
line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from placer.answers.document import PlacementDocument, placement_document
from placer.answers.summary.groups import SHOWN, AddSteps, looked_at, print_groups, print_looked_at
from placer.answers.summary.verdict import bound_words, is_shown, name_of, stopped, verdict_sentence
from placer.base.text import legible
from placer.base.words import amount_digits, and_list, counted, nodes_worth, number_word, prover_word, some
from placer.problem import Finding, Instance
from placer.problem.gpus import Placeable, placeable
from placer.problem.group_names import EVERY, Selection
from placer.problem.outcome import Outcome
from placer.problem.placement import Placement, Violation
from placer.problem.result import Judged, Result

__all__ = [
    "as_html",
    "as_text",
    "cluster_size",
    "counts",
    "print_findings",
    "print_looked_at",
    "print_summary",
    "print_violations",
    "schedulers_rows",
    "still_fits",
]

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
    from io import StringIO

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
    counts = (
        (admitted["PodGroup"], asked["PodGroup"], "PodGroup"),
        (admitted["Pod"], asked["Pod"], "single pod"),
    )
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
        (name_of(judged, result), _number(judged), bound_words(judged, result))
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


def _number(judged: Judged) -> str:
    return number_word(judged.value.name, judged.value.value, None if judged.bound is None else judged.bound.value)


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
