"""``queue``: what waits or was just placed, a line per group, and the next step with its price; who costs what."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Literal

from placer.answers.document import CostItem, CostListDocument, QueueItem, QueueListDocument
from placer.answers.explain.prices import FEW, next_step, priced
from placer.answers.progress import Progress
from placer.answers.solving import solve
from placer.answers.summary import print_absent, print_findings, print_looked_at
from placer.answers.summary.queue import (
    NEVER,
    equal_reasons,
    lone_jobs,
    nothing_waits,
    print_messages,
    print_queue,
    print_steps,
    queue_items,
)
from placer.base.deadline import Deadline
from placer.base.table import Column, print_tables
from placer.cli import flags, printing
from placer.problem import Finding, GroupKey, Instance
from placer.problem.disruption import outcome_of
from placer.problem.namespace_budget import NamespaceBudget, NamespaceCost, dearest, within_budget
from placer.problem.placement import Placement

#: Most seconds for deciding, and the most of what is left: prices take the rest.
DECIDING, SHARE = 10.0, 0.5

API_VERSION: Literal["placer.dev/v1alpha1"] = "placer.dev/v1alpha1"


def run(options: argparse.Namespace) -> int:
    """Carry out ``queue``."""
    flags.check_limit(options)
    budget = flags.namespace_budget(options.namespace_budget)
    deadline = Deadline(options.began + options.time_limit)
    paths = flags.source(options)
    with printing.progress_of(options, options.time_limit) as progress:
        progress.phase("reading")
        instance = within_budget(flags.read_instance(options, paths), budget)
        items, findings = ({}, ()) if options.cost else _items(options, instance, deadline, progress)
        listed = with_steps(instance, items, flags.source_words(options), deadline, progress.phase)
    if options.cost:
        _show_costs(options, instance, budget)
    else:
        _show(options, instance, listed, findings)
    return flags.OK


def _items(
    options: argparse.Namespace, instance: Instance, deadline: Deadline, progress: Progress
) -> tuple[dict[GroupKey, QueueItem], tuple[Finding, ...]]:
    seconds = max(min(DECIDING, deadline.left * SHARE), 1e-3)
    progress.knows(instance)
    result = solve(instance, time_limit=seconds, watch=progress.point)
    asked = set(flags.selection(options).groups(instance))
    found = queue_items(outcome_of(instance, result.placement or Placement()), result.reasons, time.time())
    return {key: item for key, item in found.items() if key in asked}, result.findings


def _show(options: argparse.Namespace, instance: Instance, items: list[QueueItem], findings: Sequence[Finding]) -> None:
    if options.json:
        printing.tell(QueueListDocument(api_version=API_VERSION, kind="QueueList", items=items).as_dict(), options)
        return
    terminal = printing.console()
    if not items:
        for line in nothing_waits(instance, flags.selection(options)):
            terminal.print(line, markup=False)
    else:
        print_queue(items, terminal, time.time(), wide=options.wide)
        if options.wide:
            print_messages(items, terminal, wide=True)
        print_steps(items, terminal)
        printing.say(lone_jobs(instance, items))
        print_absent(flags.selection(options).absent_work(instance), terminal)
    print_findings(findings, terminal, brief="" if options.wide else "Findings")
    print_looked_at(instance, terminal, counts=not flags.selection(options).words)


def with_steps(
    instance: Instance,
    items: Mapping[GroupKey, QueueItem],
    source: Sequence[str],
    deadline: Deadline | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> list[QueueItem]:
    """Add the next step to the first lines that wait; with a price where there is a deadline for it."""
    waiting = {key: item for key, item in items.items() if item.reason is not None}
    first = {id(row[0]) for row in equal_reasons(waiting.values())[:FEW]}
    steps = {
        key: next_step(instance, key, item.reason.code, source, optional=item.admitted or item.words in NEVER)
        for key, item in waiting.items()
        if id(item) in first and item.reason is not None
    }
    found = steps if deadline is None else priced(instance, steps.items(), deadline, say)
    return [item.with_next(found.get(key)) for key, item in items.items()]


def _show_costs(options: argparse.Namespace, instance: Instance, budget: NamespaceBudget | None) -> None:
    costs, of = dearest(instance, budget, None), budget or NamespaceBudget()
    if options.json:
        items = [CostItem(**cost.as_dict(), share=round(cost.share(of), 6)) for cost in costs]
        limits = None if budget is None else asdict(budget)
        document = CostListDocument(api_version=API_VERSION, kind="NamespaceCostList", budget=limits, items=items)
        printing.tell(document.as_dict(), options, [f"namespace/{cost.namespace}" for cost in costs])
    elif costs:
        _print_costs(costs, budget, [f"{cost.share(of):.1%}" for cost in costs])
    else:
        printing.console().print("No namespace has a pod.")


def _print_costs(costs: Sequence[NamespaceCost], budget: NamespaceBudget | None, shares: Sequence[str]) -> None:
    terminal = printing.console()
    names = Column("NAMESPACE", [cost.namespace for cost in costs], text=True, most=48)
    columns = [Column(head, [f"{cost.of(kind):,}" for cost in costs]) for head, kind in _COUNTS]
    columns += [Column(head, [_of_budget(cost, kind, budget) for cost in costs]) for head, kind in _SPENT]
    print_tables(terminal, names, [*columns, Column("SHARE", shares)])
    whose = "the budget that is set" if budget is not None else "the default budget (none is set)"
    terminal.print(f"SHARE: the largest part that a namespace spends of {whose}.")


#: Counts of a namespace, and what a budget is of, each by what stands above it.
_COUNTS = (("PENDING", "pending"), ("OVER BUDGET", "waiting"), ("DAEMONSET PODS", "daemons"))
_SPENT = (("TERMS", "terms"), ("RESOURCES", "resources"), ("BYTES", "bytes"))


def _of_budget(cost: NamespaceCost, kind: str, budget: NamespaceBudget | None) -> str:
    spent = f"{cost.of(kind):,}"
    return spent if budget is None else f"{spent} of {getattr(budget, kind):,}"
