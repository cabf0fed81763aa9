"""The next step for groups that wait, with its price: pods that must go for the first of them."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Sequence
from itertools import dropwhile

from placer.answers.document import NextStepPart
from placer.answers.explain.cases import place
from placer.answers.making_room import preempt
from placer.base.codes import REASONS
from placer.base.deadline import Deadline, within
from placer.base.words import and_list, counted
from placer.problem import GroupKey, Instance
from placer.problem.disruption import Disruption, outcome_of
from placer.problem.group_names import CalledGroup, called, full_name
from placer.problem.placement import Placement
from placer.problem.result import Result, Verdict
from placer.problem.what_if import without

FEW = 3

#: Most seconds of the search for one price, and the least for one.
PRICING, LEAST = 10.0, 0.5

#: Reasons against which pods that run can go: room, places and queues that they hold.
_HELD = frozenset(dropwhile(lambda code: code != "QueueCapability", REASONS)) - {"Outcompeted", "NotDecided"}

_SAYS = "finds the fewest pods that must go for it"
_LATE = "its price is not known: the time limit is near"
_SHORT = "found no plan in the short time here; it may find one with more"


def next_step(
    instance: Instance, key: GroupKey, code: str, source: Sequence[str], *, optional: bool = False
) -> NextStepPart:
    """The command that helps with a group that waits.

    ``code``: its reason. ``source``: words of the input. ``optional``: nothing that goes helps.
    """
    several = sum((each.namespace, each.name) == (key.namespace, key.name) for each in instance.groups) > 1
    name, job = full_name(key) if several else f"{key.namespace}/{key.name}", called(instance, key)
    if job != name and CalledGroup.of(job).groups(instance) == {key}:
        name = job
    if code in _HELD and not optional:
        return NextStepPart(command=shlex.join(["placer", "preempt", "--for", name, *source]), message=_SAYS)
    words = ["placer", "explain", "--group", name, *source]
    says = "decides it alone, with the whole time limit" if code == "NotDecided" else "says which change would admit it"
    return NextStepPart(command=shlex.join(words), message=says)


def priced(
    instance: Instance, steps: Iterable[tuple[GroupKey, NextStepPart]], deadline: Deadline, say: Callable[[str], None]
) -> dict[GroupKey, NextStepPart]:
    """Find the pods that must go for steps by ``preempt``, as far as there is time."""
    found = {}
    for key, step in steps:
        found[key] = step
        if step.message == _SAYS:
            say(f"looking for the fewest pods that must go for {key.namespace}/{key.name}")
            seconds = min(PRICING, deadline.left)
            if seconds < LEAST:
                found[key] = NextStepPart(command=step.command, message=_LATE)
            else:
                found[key] = _with_price(step, preempt(instance, key, time_limit=seconds, costs=False))
    return found


def rivals(instance: Instance, result: Result) -> list[GroupKey]:
    """Waiting groups, at least as urgent, whose room a plan for one group takes; empty where there is no time."""
    placement, limit = result.placement or Placement(), result.time_limit
    left = None if limit is None else max(0.0, limit - result.seconds["total"])
    ready = outcome_of(result.instance, placement).made_ready

    def admitted(world: Instance) -> frozenset[GroupKey]:
        placed = place(world, more=0.0)
        return frozenset() if placed is None else placed.admitted

    def found() -> list[GroupKey]:
        lost = admitted(without(instance, {key for group in ready for key in group.pending}))
        lost -= admitted(outcome_of(instance, placement).carried_out())
        lost -= {key for key, group in result.instance.groups.items() if group.pending}
        least = max(group.priority for group in ready)
        return sorted(each for each in lost if instance.groups[each].priority >= least)

    return within(Deadline.within(left), found, []) if ready else []


def _with_price(step: NextStepPart, result: Result) -> NextStepPart:
    disruption = Disruption(result.instance, result.placement or Placement())
    evicted, moved = len(disruption.evicted), len(disruption.moved)
    if evicted or moved:
        counts = ((evicted, "evict"), (moved, "move"))
        does = and_list(f"{verb} {counted(count, 'pod')}" for count, verb in counts if count)
        least = "" if result.verdict is Verdict.OPTIMAL else ", the least that was found"
        return NextStepPart(command=step.command, evicted=evicted, moved=moved, message=f"would {does}{least}")
    if disruption.admitted:
        return NextStepPart(command=step.command, evicted=0, moved=0, message="would admit it alone, and nothing goes")
    if result.verdict in (Verdict.INFEASIBLE, Verdict.OPTIMAL):
        instead = step.command.replace("placer preempt --for", "placer explain --group")
        return NextStepPart(command=instead, message="lists changes that help: evictions do not (proved)")
    short = f"its price is not known: the search for it died ({result.died})" if result.died else _SHORT
    return NextStepPart(command=step.command, message=short)
