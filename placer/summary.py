"""What a person reads after a solve: the verdict, the numbers with their proofs, what waits and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from placer.document import PlacementDocument, placement_document
from placer.instance import Finding, Instance
from placer.placement import Violation
from placer.result import Result, Verdict

__all__ = ["print_findings", "print_summary", "print_violations"]

#: How many waiting groups and findings are listed; the Placement has all of them.
SHOWN = 12

MEANING = {
    Verdict.OPTIMAL: "every value meets its bound",
    Verdict.FEASIBLE: "verified; better ones may exist",
    Verdict.INFEASIBLE: "proved: not every pending pod can be placed; this is the best found",
    Verdict.UNKNOWN: "nothing was found in time",
}

WORDS = {
    "admitted": "what admitted groups need, micro-nodes",
    "placed": "all that is placed, micro-nodes",
    "locality": "placed pods × tier, less is better",
    "span": "leaf HyperNodes touched, less is better",
    "networkCost": "network cost, less is better",
    "packedHyperNodes": "empty HyperNodes used, less is better",
    "packedNodes": "empty nodes used, less is better",
}


def print_summary(result: Result, console: Console) -> None:
    """Print the summary of a result."""
    document = placement_document(result)
    console.print(_headline(document, result))
    console.print()
    console.print(_counts(document))
    if document.objective:
        console.print(_objective(document))
    waiting = [group for group in document.groups if group.reason is not None]
    if waiting:
        console.print(_waiting(document))
    print_findings(result.findings, console)
    if result.instance.skipped:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(result.instance.skipped.items()))
        console.print(f"Not read (other kinds): {kinds}", highlight=False)


def _headline(document: PlacementDocument, result: Result) -> Text:
    seconds = document.seconds
    steps = ", ".join(f"{name} {getattr(seconds, name):.1f}" for name in ("read", "build", "solve", "verify"))
    style = {"OPTIMAL": "bold green", "FEASIBLE": "bold yellow"}.get(document.verdict.value, "bold red")
    return Text.assemble(
        (document.verdict.value, style),
        f"  {MEANING[result.verdict]}\n",
        f"{document.termination.value} after {seconds.total:.1f} s ({steps}); placement by {document.method}",
    )


def _counts(document: PlacementDocument) -> Table:
    part = document.instance
    groups = document.groups
    table = Table.grid(padding=(0, 2))
    rows = [
        ("cluster", f"{part.nodes:,} nodes, {part.hyper_nodes:,} HyperNodes, {part.pods:,} pods"),
        ("pods placed", f"{len(document.bindings):,} of {part.pending:,} pending"),
        ("groups admitted", f"{sum(group.admitted for group in groups):,} of {len(groups):,} with pending pods"),
    ]
    if document.weight.gap is not None:
        more = f"at most {document.weight.gap:.2%} more is possible" if document.weight.gap else "no more is possible"
        proof = f"{more} ({document.weight.proved_by})"
        rows.append(("placed weight", f"{document.weight.value / 1e6:,.2f} average nodes; {proof}"))
    for name, value in rows:
        table.add_row(name, value)
    return table


def _objective(document: PlacementDocument) -> Table:
    table = Table(title="Values, in the order they are compared", title_justify="left", box=None, padding=(0, 2))
    table.add_column("value", no_wrap=True)
    for column in ("priority", "found", "bound", "gap"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("proved by", no_wrap=True)
    table.add_column("what it is", style="dim")
    for value in document.objective:
        table.add_row(
            value.name,
            "" if value.priority is None else str(value.priority),
            f"{value.value:,}",
            "-" if value.bound is None else f"{value.bound:,}",
            "-" if value.gap is None else f"{value.gap:.2%}",
            value.proved_by or "",
            WORDS[value.name],
        )
    return table


def _waiting(document: PlacementDocument) -> Table:
    waiting = [group for group in document.groups if group.reason is not None]
    codes = Counter(group.reason.code for group in waiting if group.reason is not None)
    tally = ", ".join(f"{code} {count}" for code, count in codes.most_common())
    table = Table(title=f"Still pending: {tally}", title_justify="left", box=None, padding=(0, 2))
    for column in ("group", "pods", "reason"):
        table.add_column(column, overflow="fold")
    for group in waiting[:SHOWN]:
        if group.reason is not None:
            what = f"[bold]{group.reason.code}[/bold] {escape(group.reason.message)}"
            table.add_row(f"{group.kind} {escape(f'{group.namespace}/{group.name}')}", str(group.pending), what)
    if len(waiting) > SHOWN:
        table.add_row(f"... and {len(waiting) - SHOWN:,} more", "", "(all of them are in the Placement)")
    return table


def print_findings(findings: Iterable[Finding], console: Console) -> None:
    """Print what in the input cannot be as meant."""
    found = list(findings)
    if not found:
        return
    console.print(f"Findings ({len(found):,}):", style="bold")
    for finding in found[:SHOWN]:
        console.print(f"  {finding.code} {finding.object}: {finding.message}", highlight=False, markup=False)
    if len(found) > SHOWN:
        console.print(f"  ... and {len(found) - SHOWN:,} more")


def print_violations(instance: Instance, bindings: int, violations: Iterable[Violation], console: Console) -> None:
    """Print the judgement of a placement: every violation, or that there is none."""
    found = list(violations)
    head = f"{bindings:,} bindings on {len(instance.nodes):,} nodes"
    if not found:
        console.print(f"[bold green]VALID[/bold green]  {head}; no rule is broken")
        return
    rules = ", ".join(f"{rule} {count}" for rule, count in sorted(Counter(v.rule for v in found).items()))
    console.print(f"[bold red]INVALID[/bold red]  {head}; {len(found):,} violations: {rules}", highlight=False)
    for violation in found:
        console.print(f"  {violation.rule} {violation.message}", highlight=False, markup=False)
