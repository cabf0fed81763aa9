"""``preempt``: which running pods must go for groups that wait, the least of them, with a proof."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placer.cli.applying import add_apply, apply_plan, check_apply
from placer.cli.sources import SECONDS, add_source, source
from placer.terminal import OK, add_command, add_what_if, console, read_instance, writable, write

if TYPE_CHECKING:
    from placer.result import Result

__all__ = ["add_preempt"]

NOT_TO_BE_HAD = 5  #: exit code where something that was asked for is not admitted, whatever goes


def add_preempt(commands: Any) -> None:
    """Add ``preempt`` and its flags."""
    parser = add_command(commands, "preempt", "what must go for a group that waits: the least, with a proof", _preempt)
    add_source(parser)
    asking = parser.add_argument_group("asking")
    asking.add_argument(
        "--for", dest="group", metavar="NAMESPACE/NAME", help="one group, or the one of a pod (default: all that wait)"
    )
    asking.add_argument("--time-limit", type=float, default=SECONDS, metavar="SECONDS", help="of the call (default 60)")
    asking.add_argument("--workers", type=int, metavar="N", help="solver threads (default: the cores there are)")
    asking.add_argument("--seed", type=int, default=0, metavar="N", help="default 0")
    asking.add_argument(
        "-o", dest="output", metavar="FILE", help="the Placement: .json, .yaml, each also .gz; - is stdout"
    )
    add_what_if(parser)
    add_apply(parser)


def _preempt(options: argparse.Namespace) -> int:
    from placer.preempt import group_named, preempt
    from placer.progress import Progress

    writable([Path(options.output)] if options.output not in (None, "-") else [])
    check_apply(options)
    if options.apply:
        from placer.preempt_pass import make_plan

        result = apply_plan(options, partial(make_plan, group=options.group, show=partial(_tell, options)))
        return OK if _admitted(result) else NOT_TO_BE_HAD
    paths = source(options)
    with Progress(quiet=options.quiet, began=options.began, limit=options.time_limit) as progress:
        progress.phase("reading")
        instance = read_instance(options, paths)
        result = preempt(
            instance,
            None if options.group is None else group_named(instance, options.group),
            time_limit=options.time_limit,
            workers=options.workers,
            seed=options.seed,
            began=options.began,
            watch=progress.point,
        )
    _tell(options, result)
    return OK if _admitted(result) else NOT_TO_BE_HAD


def _tell(options: argparse.Namespace, result: Result) -> None:
    """Write and show the plan."""
    from placer.document import placement_document

    document = placement_document(result).as_dict()
    if options.output:
        write(document, options.output)
    if options.json and options.output != "-":
        write(document, "-")
    elif options.output != "-":
        _show(result)


def _admitted(result: Result) -> bool:
    """Whether every group that waits is admitted."""
    from placer.disruption import outcome_of
    from placer.placement import Placement

    outcome, needs = outcome_of(result.instance, result.placement or Placement()), result.instance.need_weights
    return all(outcome.ready(group) for key, group in outcome.instance.groups.items() if needs.get(key))


def _show(result: Result) -> None:
    from placer.summary import print_findings
    from placer.summary.preempting import preempt_lines

    terminal = console()
    for line in preempt_lines(result):
        terminal.print(line, markup=False, soft_wrap=True)
    print_findings(result.findings, terminal)
