"""``preempt`` and ``repair``: which running pods must go for others, the least of them, with a proof."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placer.cli.applying import add_apply, apply_plan, check_apply
from placer.cli.sources import SECONDS, add_source, source
from placer.terminal import OK, add_command, add_what_if, console, read_instance, writable, write

if TYPE_CHECKING:
    from placer.instance import Instance
    from placer.result import Result

__all__ = ["add_preempt", "add_repair"]

NOT_TO_BE_HAD = 5  #: exit code where something that was asked for is not admitted, or not placed again


def add_preempt(commands: Any) -> None:
    """Add ``preempt`` and its flags."""
    parser = add_command(commands, "preempt", "what must go for a group that waits: the least, with a proof", _preempt)
    add_source(parser)
    asking = _add_limits(parser)
    asking.add_argument(
        "--for", dest="group", metavar="NAMESPACE/NAME", help="one group, or the one of a pod (default: all that wait)"
    )
    add_what_if(parser)
    add_apply(parser)


def add_repair(commands: Any) -> None:
    """Add ``repair`` and its flags."""
    parser = add_command(commands, "repair", "pods of lost nodes placed again, the rest disturbed least", _repair)
    add_source(parser)
    asking = _add_limits(parser)
    asking.add_argument("--lost", metavar="NODE,...", help="nodes to count as lost (default: those that are not Ready)")
    add_what_if(parser)
    add_apply(parser)


def _add_limits(parser: argparse.ArgumentParser) -> Any:
    """Add what both take; give the group of flags."""
    asking = parser.add_argument_group("asking")
    asking.add_argument("--time-limit", type=float, default=SECONDS, metavar="SECONDS", help="of the call (default 60)")
    asking.add_argument("--workers", type=int, metavar="N", help="solver threads (default: the cores there are)")
    asking.add_argument("--seed", type=int, default=0, metavar="N", help="default 0")
    asking.add_argument(
        "-o", dest="output", metavar="FILE", help="the Placement: .json, .yaml, each also .gz; - is stdout"
    )
    return asking


def _preempt(options: argparse.Namespace) -> int:
    from placer.preempt import group_named, preempt
    from placer.summary.preempting import preempt_lines

    def decide(instance: Instance, **limits: Any) -> Result:
        return preempt(instance, None if options.group is None else group_named(instance, options.group), **limits)

    _, result = _made(options, decide, lambda _, result: preempt_lines(result))
    return OK if _admitted(result) else NOT_TO_BE_HAD


def _repair(options: argparse.Namespace) -> int:
    from placer.disruption import leaving_protected
    from placer.preempt import lost_named, repair
    from placer.summary.preempting import repair_lines

    def decide(instance: Instance, **limits: Any) -> Result:
        lost = lost_named(instance, options.lost)
        return repair(leaving_protected(instance, lost) if options.apply else instance, lost, **limits)

    before, result = _made(options, decide, repair_lines)
    return OK if _placed_again(before, result) else NOT_TO_BE_HAD


def _made(
    options: argparse.Namespace, decide: Callable[..., Result], lines: Callable[[Instance, Result], Iterable[str]]
) -> tuple[Instance, Result]:
    """Decide, tell it, and carry it out where that is asked for; what was there before, and what was decided."""
    check_apply(options)
    _check_output(options)
    if not options.apply:
        before, result = _decided(options, decide)
        _tell(options, result, lines(before, result))
        return before, result
    from placer.preempt_pass import make_plan

    seen: list[Instance] = []

    def show(before: Instance, result: Result) -> None:
        seen.append(before)
        _tell(options, result, lines(before, result))

    result = apply_plan(options, partial(make_plan, decide=decide, show=show))
    return seen[0], result


def _decided(options: argparse.Namespace, decide: Callable[..., Result]) -> tuple[Instance, Result]:
    """Read the instance and decide."""
    from placer.progress import Progress

    paths = source(options)
    with Progress(quiet=options.quiet, began=options.began, limit=options.time_limit) as progress:
        progress.phase("reading")
        instance = read_instance(options, paths)
        limits = {"time_limit": options.time_limit, "workers": options.workers, "seed": options.seed}
        return instance, decide(instance, **limits, began=options.began, watch=progress.point)


def _check_output(options: argparse.Namespace) -> None:
    writable([Path(options.output)] if options.output not in (None, "-") else [])


def _tell(options: argparse.Namespace, result: Result, lines: Iterable[str]) -> None:
    """Write the Placement where that is asked for, and print the lines, or it."""
    from placer.document import placement_document
    from placer.summary import print_findings

    document = placement_document(result).as_dict()
    if options.output:
        write(document, options.output)
    if options.json and options.output != "-":
        write(document, "-")
    elif options.output != "-":
        terminal = console()
        for line in lines:
            terminal.print(line, markup=False, soft_wrap=True)
        print_findings(result.findings, terminal)


def _admitted(result: Result) -> bool:
    """Whether every group that waits is admitted."""
    from placer.disruption import outcome_of
    from placer.placement import Placement

    outcome, needs = outcome_of(result.instance, result.placement or Placement()), result.instance.need_weights
    return all(outcome.ready(group) for key, group in outcome.instance.groups.items() if needs.get(key))


def _placed_again(before: Instance, result: Result) -> bool:
    """Whether every pod that ran on a lost node has another one."""
    from placer.disruption import ran_on
    from placer.placement import Placement

    placement = result.placement or Placement()
    return placement.node_of.keys() >= set(ran_on(before, placement.lost))
