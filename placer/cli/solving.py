"""``solve``, ``verify``, ``expand``: what is done with one instance."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

from placer.answers.document import PlacementDocument, bindings_document, placement_document
from placer.base.errors import NothingFound, UsageError
from placer.cli import flags, printing
from placer.problem.disruption import as_asked, outcome_of
from placer.problem.namespace_budget import within_budget
from placer.problem.reading import read_expansion, read_whole_placement
from placer.problem.result import Result
from placer.problem.wanted import wanted_text
from placer.rules import verify
from placer.rules.scoring import score
from placer.search.numa.binding_order import misstated

VIOLATIONS, REQUIRE_ALL_NOT_MET = 1, 5


def run_solve(options: argparse.Namespace) -> int:
    """Carry out ``solve``."""
    from placer.answers.solving import solve

    if options.output == options.bindings == "-":
        raise UsageError("-o - --bindings -: found two documents for standard output, expected one")
    budget = flags.namespace_budget(options.namespace_budget)
    targets = [Path(target) for target in (options.output, options.bindings) if target not in (None, "-")]
    printing.writable(targets)
    paths = flags.source(options)
    with printing.progress_of(options, flags.time_limit_of(options)) as progress:
        progress.phase("reading")
        instance = within_budget(flags.read_instance(options, paths), budget)
        progress.knows(instance)
        result = solve(
            instance,
            method=options.method,
            time_limit=flags.time_limit_of(options),
            work_limit=options.work_limit,
            workers=options.workers,
            seed=options.seed,
            require_all=options.require_all,
            milp_solver=options.milp_solver,
            began=options.began,
            watch=progress.point,
        )
    if result.placement is None:
        raise NothingFound(result.nothing_found)
    if options.bindings:
        printing.write(bindings_document(result.placement), options.bindings)
    document = placement_document(result, _no_versions(options))
    if options.output:
        printing.write(document.as_dict(), options.output)
    if "-" not in (options.output, options.bindings):  # else standard output has its one document
        _show(result, document, options)
    return REQUIRE_ALL_NOT_MET if options.require_all and not result.everything_placed else flags.OK


def _no_versions(options: argparse.Namespace) -> dict[str, str] | None:
    """None where they are written; people are not told, and to find them takes longer than to decide little."""
    return None if options.output or options.json else {}


def _show(result: Result, document: PlacementDocument, options: argparse.Namespace) -> None:
    if options.json:
        printing.tell(document.as_dict(), options)
    else:
        from placer.answers.summary import print_summary
        from placer.cli.queueing import with_steps

        steps = partial(with_steps, result.instance, source=flags.source_words(options))
        asked = flags.selection(options)
        print_summary(result, printing.console(), wide=options.wide, document=document, steps=steps, asked=asked)


def run_verify(options: argparse.Namespace) -> int:
    """Carry out ``verify``."""
    from placer.answers.summary import print_findings, print_violations

    placement, unread = read_whole_placement(options.placement, strict=options.strict)
    options.with_ = wanted_text(placement.wanted)
    instance = as_asked(flags.read_instance(options, options.instance), placement)
    violations = verify(instance, placement)
    outcome = outcome_of(instance, placement)
    findings = [*instance.findings, *misstated(outcome.instance, outcome.placement), *unread.findings]
    if options.json:
        document = {
            "valid": not violations,
            "violations": [
                {"rule": v.rule, "subjects": list(v.subjects), "amount": v.amount, "message": v.message}
                for v in violations
            ],
            "objective": [
                {"name": v.name, **({} if v.priority is None else {"priority": v.priority}), "value": v.value}
                for v in score(instance, placement)
            ],
            "findings": [each.as_dict() for each in findings],
            "notRead": {"unknown": list(unread.unknown), "notJudged": list(unread.not_judged)},
        }
        printing.tell(printing.headed("Verification", document), options)
    else:
        terminal = printing.console()
        print_violations(instance, placement, violations, terminal)
        if unread.not_judged:
            printing.say([f"Not judged: {', '.join(unread.not_judged)}"])
        print_findings(findings, terminal)
    return VIOLATIONS if violations else flags.OK


def run_expand(options: argparse.Namespace) -> int:
    """Carry out ``expand``."""
    printing.check_output(options)
    documents, findings = read_expansion(options.instance, scheduler_name=options.scheduler_name, strict=options.strict)
    printing.put(documents, options)
    if not documents:
        print("placer: no workload among these objects makes pods that are not there already", file=sys.stderr)
    for finding in findings:
        print(f"placer: {finding}", file=sys.stderr)
    return flags.OK
