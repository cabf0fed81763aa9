"""``preempt``, ``defrag`` and ``repair``: which running pods must go, the least of them, with a proof."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from placer.base.errors import UsageError
from placer.cli import flags, printing
from placer.cli.applying import add_apply, apply_plan, check_apply

if TYPE_CHECKING:
    from placer.answers.progress import Progress
    from placer.kube.manifests import Text
    from placer.problem import Finding, Instance
    from placer.problem.result import Result

#: Reads the instance with objects added to it, each given as JSON.
Adding = Callable[[Sequence[str]], "Instance"]

NOT_TO_BE_HAD = 5  #: exit code where something that was asked for is not admitted, or not placed again


def add_preempt(commands: Any) -> None:
    """Add ``preempt`` and its flags."""
    parser = flags.add_command(commands, "preempt", "find the fewest pods to evict for a waiting group", _preempt)
    flags.add_source(parser)
    flags.add_asking(parser)
    asking = _add_limits(parser)
    asking.add_argument(
        "--for",
        dest="groups",
        action="append",
        metavar="[KIND/][NAMESPACE/]NAME",
        help="one group, or those of a pod or workload; may be repeated (default: all that wait)",
    )
    flags.add_what_if(parser)
    add_apply(parser)


def add_defrag(commands: Any) -> None:
    """Add ``defrag`` and its flags."""
    text = "find the fewest pods to move so that a future job fits, or domains become empty"
    parser = flags.add_command(commands, "defrag", text, _defrag)
    flags.add_source(parser)
    asking = _add_limits(parser)
    room = asking.add_mutually_exclusive_group(required=True)
    room.add_argument(
        "--want",
        metavar="SHAPE|FILE",
        help="'N x PODS x RESOURCES [@ TIER]', such as '4 x 8 x nvidia.com/gpu=8,cpu=96 @ 1'; or a file with a job",
    )
    room.add_argument("--free-domains", metavar="K@TIER", help="K HyperNodes of a tier that are to be empty")
    asking.add_argument("--max-moves", type=int, metavar="M", help="never move more pods (default: any number)")
    asking.add_argument("--frontier", action="store_true", help="a table: moves for 1, 2, ... of the wanted gangs")
    flags.add_what_if(parser)
    add_apply(parser)


def add_repair(commands: Any) -> None:
    """Add ``repair`` and its flags."""
    parser = flags.add_command(
        commands, "repair", "place pods of lost nodes again, and disturb the rest least", _repair
    )
    flags.add_source(parser)
    asking = _add_limits(parser)
    asking.add_argument("--lost", metavar="NODE,...", help="nodes to count as lost (default: those that are not Ready)")
    flags.add_what_if(parser)
    add_apply(parser)


def _add_limits(parser: argparse.ArgumentParser) -> Any:
    asking = parser.add_argument_group("asking")
    flags.add_time_limit(asking, "of the call")
    flags.add_workers(asking)
    flags.add_output(asking, "the Placement: .json, .yaml, each also .gz; - is stdout")
    return asking


def _preempt(options: argparse.Namespace) -> int:
    from placer.answers.explain.prices import rivals
    from placer.answers.making_room import groups_named, preempt
    from placer.answers.summary.preempting import preempt_lines, rival_lines
    from placer.problem.what_if import only_waiting

    def decide(instance: Instance, _adding: Adding, **limits: Any) -> Result:
        asked = set(() if options.groups else flags.selection(options).groups(instance))
        for name in options.groups or ():
            asked |= groups_named(instance, name, options.namespace, flags.home_of(options))
        return preempt(only_waiting(instance, asked), **limits)

    def lines(instance: Instance, result: Result) -> Iterator[str]:
        if not result.instance.pending:
            yield flags.selection(options).none(instance, "waits")
            return
        yield from preempt_lines(result)
        if options.groups:
            yield from rival_lines(instance, rivals(instance, result))

    _, result = _made(options, decide, lines)
    return flags.OK if _admitted(result) else NOT_TO_BE_HAD


def _defrag(options: argparse.Namespace) -> int:
    from placer.answers.making_room import room_asked
    from placer.answers.summary.preempting import defrag_lines, room_made

    if options.frontier:
        return _defrag_frontier(options)
    asked: list[int] = []

    def decide(instance: Instance, adding: Adding, **limits: Any) -> Result:
        count, ask = room_asked(options.want, options.free_domains, options.max_moves, instance, adding)
        asked.append(count)
        return ask(count, **limits)

    def is_whole(result: Result) -> bool:
        return room_made(result) == asked[0]

    def lines(_: Instance, result: Result) -> Iterator[str]:
        yield from defrag_lines(result, asked[0])
        if options.apply and not is_whole(result):
            yield "Nothing is carried out: no pod is moved for less than was asked for."

    _, result = _made(options, decide, lines, is_whole)
    return flags.OK if is_whole(result) else NOT_TO_BE_HAD


def _defrag_frontier(options: argparse.Namespace) -> int:
    from placer.answers.making_room import room_asked
    from placer.answers.summary.preempting import room_made

    if options.apply:
        raise UsageError("--apply: found --frontier with it, expected one of the two: one plan is carried out")
    printing.check_output(options)
    paths = flags.source(options)
    with printing.progress_of(options, options.time_limit) as progress:
        progress.phase("reading")
        both = _read_both(options, paths)
        count, ask = room_asked(options.want, options.free_domains, options.max_moves, *both)
        limits = {"workers": options.workers, "seed": options.seed, "watch": progress.plan}
        points = list(_frontier(partial(ask, **limits), count, options, progress))
    _tell_frontier(options, points)
    return flags.OK if len(points) == count and room_made(points[-1]) == count else NOT_TO_BE_HAD


def _read_both(options: argparse.Namespace, paths: Sequence[str | Text]) -> tuple[Instance, Adding]:
    """The instance, without pods where a shape is wanted of it, and what reads it with objects added."""
    from placer.base.errors import BadInstance
    from placer.kube.manifests import read_texts
    from placer.problem.reading import read_frame
    from placer.problem.wanted import is_shape, wanted_text

    texts = read_texts(paths)  # what comes from standard input comes once

    def adding(objects: Sequence[str]) -> Instance:
        added = argparse.Namespace(**vars(options) | {"with_": [*options.with_, *wanted_text(objects)]})
        return flags.read_instance(added, texts)

    if is_shape(getattr(options, "want", None) or ""):
        edits = {"with_": options.with_, "without": options.without, "set_": options.set_}
        with suppress(BadInstance):  # reading all of it tells all faults
            return read_frame(texts, scheduler_name=options.scheduler_name, lenient=options.lenient, **edits), adding
    return flags.read_instance(options, texts), adding


def _frontier(
    ask: Callable[..., Result], most: int, options: argparse.Namespace, progress: Progress
) -> Iterator[Result]:
    from placer.problem.result import Verdict

    for count in range(1, most + 1):
        now = time.monotonic()
        left = max(0.0, options.began + options.time_limit - now) / (most + 1 - count)
        progress.phase(f"looking for the fewest moves, {count:,} of {most:,} wanted")
        found = ask(count, time_limit=left, began=now)
        yield found
        if found.verdict is Verdict.INFEASIBLE:
            break


def _repair(options: argparse.Namespace) -> int:
    from placer.answers.making_room import lost_named, repair
    from placer.answers.summary.preempting import repair_lines
    from placer.problem.what_if import leaving_protected

    def decide(instance: Instance, _adding: Adding, **limits: Any) -> Result:
        lost = lost_named(instance, options.lost)
        return repair(leaving_protected(instance, lost) if options.apply else instance, lost, **limits)

    before, result = _made(options, decide, repair_lines)
    return flags.OK if _placed_again(before, result) else NOT_TO_BE_HAD


def _made(
    options: argparse.Namespace,
    decide: Callable[..., Result],
    lines: Callable[[Instance, Result], Iterable[str]],
    is_whole: Callable[[Result], bool] = lambda _: True,
) -> tuple[Instance, Result]:
    """``decide`` is given the instance, a reader with objects added, and the limits; a plan is carried out if whole."""
    check_apply(options)
    printing.check_output(options)
    if not options.apply:
        before, result = _decided(options, decide)
        _tell(options, result, lines(before, result))
        return before, result
    from placer.passes.preempt_pass import make_plan

    seen: list[Instance] = []

    def show(before: Instance, result: Result) -> bool:
        seen.append(before)
        _tell(options, result, lines(before, result))
        return is_whole(result)

    result = apply_plan(options, partial(make_plan, decide=decide, show=show))
    return seen[0], result


def _decided(options: argparse.Namespace, decide: Callable[..., Result]) -> tuple[Instance, Result]:

    paths = flags.source(options)
    with printing.progress_of(options, options.time_limit) as progress:
        progress.phase("reading")
        instance, adding = _read_both(options, paths)
        limits = {"time_limit": options.time_limit, "workers": options.workers, "seed": options.seed}
        progress.phase("looking for the fewest pods that must go or move")
        return instance, decide(instance, adding, **limits, began=options.began, watch=progress.plan)


def _tell_frontier(options: argparse.Namespace, points: Sequence[Result]) -> None:
    from placer.answers.document import placement_document
    from placer.answers.summary.preempting import frontier_lines, frontier_point

    if options.output:
        printing.write(placement_document(points[-1]).as_dict(), options.output)
    if options.json and options.output != "-":
        rows = ((frontier_point(*each), placement_document(each[1]).as_dict()) for each in enumerate(points, 1))
        entries = (row | {"placement": document} for row, document in rows)
        printing.tell(printing.listed("FrontierList", entries), options, _going(points[-1]))
    elif options.output != "-":
        _print(frontier_lines(points), points[-1].findings)


def _tell(options: argparse.Namespace, result: Result, lines: Iterable[str]) -> None:
    from placer.answers.document import placement_document

    if printing.put_or_tell(placement_document(result).as_dict(), options, _going(result)):
        _print(lines, [each for each in result.findings if each.code != "ProtectionCosts"])  # a line says it


def _print(lines: Iterable[str], findings: Sequence[Finding]) -> None:
    from placer.answers.summary import print_findings

    printing.say(lines)
    print_findings(findings, printing.console())


def _going(result: Result) -> list[str]:
    if result.placement is None:
        return []
    gone = (*result.placement.evictions, *(each.pod for each in result.placement.moves))
    return sorted(f"pod/{each}" for each in gone)


def _admitted(result: Result) -> bool:
    from placer.problem.disruption import outcome_of
    from placer.problem.placement import Placement

    outcome, needs = outcome_of(result.instance, result.placement or Placement()), result.instance.need_weights
    return all(outcome.ready(group) for key, group in outcome.instance.groups.items() if needs.get(key))


def _placed_again(before: Instance, result: Result) -> bool:
    from placer.problem.placement import Placement
    from placer.problem.what_if import ran_on

    placement = result.placement or Placement()
    return placement.node_of.keys() >= set(ran_on(before, placement.lost))
