"""``solve``, ``verify``, ``expand``: what is done with one instance."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placer.base.errors import NothingFound, UsageError
from placer.cli import flags, printing
from placer.passes.configuration import METHOD_HELP
from placer.search import METHODS

if TYPE_CHECKING:
    from placer.answers.document import PlacementDocument
    from placer.problem.result import Result

VIOLATIONS, REQUIRE_ALL_NOT_MET = 1, 5


def add_solve(commands: Any) -> None:
    """Add ``solve`` and its flags."""
    parser = flags.add_command(commands, "solve", "decide, print a summary, write a Placement", _solve)
    flags.add_source(parser)
    search = parser.add_argument_group("searching")
    search.add_argument("--method", choices=METHODS, metavar="METHOD", default="auto", help=METHOD_HELP)
    flags.add_search_limits(search)
    search.add_argument(
        "--milp-solver", default="HiGHS", metavar="NAME", help="PuLP's name of the solver of --method milp (HiGHS)"
    )
    search.add_argument(
        "--namespace-budget", default="off", metavar="BUDGET", help="budget of each namespace, or default (off)"
    )
    search.add_argument("--require-all", action="store_true", help="exit 5 unless every pending pod was placed")
    flags.add_asking(parser, "which groups the summary lists; all are decided")
    flags.add_what_if(parser)
    output = parser.add_argument_group("writing")
    output.add_argument("--wide", action="store_true", help="name the nodes of each admitted group in the summary")
    flags.add_output(output, "the Placement: .json, .yaml, each also .gz; - is stdout")
    output.add_argument("--bindings", metavar="FILE", help="the bindings as a v1 List of v1 Bindings, in plan order")


def add_verify(commands: Any) -> None:
    """Add ``verify`` and its flags."""
    parser = flags.add_command(commands, "verify", "judge any placement, print every violation", _verify)
    flags.add_inputs(parser, "files, folders or -", needed=True)
    parser.add_argument("placement", metavar="PLACEMENT", help="a Placement, or a List of v1 Bindings; - is stdin")
    flags.add_reading(parser, lenient=True)


def add_expand(commands: Any) -> None:
    """Add ``expand`` and its flags."""
    parser = flags.add_command(commands, "expand", "print the PodGroups and Pods that workloads would make", _expand)
    flags.add_inputs(parser, "files, folders or -", needed=True)
    flags.add_reading(parser)
    flags.add_output(parser, "where to write; default standard output", "-")


def _solve(options: argparse.Namespace) -> int:
    from placer.answers.document import bindings_document, placement_document
    from placer.answers.solving import solve
    from placer.problem.namespace_budget import within_budget

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


def _verify(options: argparse.Namespace) -> int:
    from placer.answers.summary import print_findings, print_violations
    from placer.problem.disruption import as_asked, outcome_of
    from placer.problem.reading import read_whole_placement
    from placer.problem.wanted import wanted_text
    from placer.rules import verify
    from placer.rules.scoring import score
    from placer.search.numa.binding_order import misstated

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


def _expand(options: argparse.Namespace) -> int:
    from placer.problem.reading import read_expansion

    printing.writable([Path(options.output)] if options.output != "-" else [])
    documents, findings = read_expansion(options.instance, scheduler_name=options.scheduler_name, strict=options.strict)
    printing.put(documents, options)
    if not documents:
        print("placer: no workload among these objects makes pods that are not there already", file=sys.stderr)
    for finding in findings:
        print(f"placer: {finding}", file=sys.stderr)
    return flags.OK
