"""Plans as an operator reads them: what goes for what, whether less would do, and the steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from placer.base.text import legible
from placer.base.words import and_list, counted, prover_word, some
from placer.problem import Group, GroupKey, Instance, Key, Pod
from placer.problem.disruption import Disruption, DisruptionUnit, lost_pods
from placer.problem.disruptions import WITHOUT_OWNER
from placer.problem.group_names import called
from placer.problem.placement import LOSSES, Placement
from placer.problem.pod_states import DEFAULT_SCHEDULER
from placer.problem.result import Judged, Result, Termination, Verdict
from placer.problem.what_if import ran_on

#: Lines of units, and of steps, that are shown.
SHOWN = 40
#: Gangs, or domains, that a headline names.
FEW = 2
#: The scheduler whose pods ``--apply`` binds.
OWN = "placer"
#: Whether units are evicted, to the words of their proof.
_PROOF_WORDS = {True: ("evicts", "evicted", "fewer units or moves"), False: ("moves", "moved", "fewer units")}
#: Why no more can be had where that is proved, and what else is worth a try where it is not.
_HIGHER = "Pods of equal or higher priority are never evicted; they may be moved."
_ONE_GROUP = ", or one group alone (--for)"
_FEWER = ", a wider tier, or less (--frontier lists the prices)"


def preempt_lines(result: Result) -> Iterator[str]:
    """The plan of :func:`placer.answers.making_room.preempt`."""
    disruption = Disruption(result.instance, result.placement or Placement())
    lacking = sum(bool(result.instance.need_weights.get(key)) for key in _unready(result, disruption))
    if lacking:
        wanted = lacking + len(disruption.admitted)
        had = f"{wanted - lacking:,} of {counted(wanted, 'group')} admitted"
        yield _not_had(result, had, _HIGHER, _ONE_GROUP if wanted > 1 else "", some=wanted > lacking)
    elif not disruption.gone:
        yield "Nothing has to go."
    yield from _going(disruption)
    ready = disruption.outcome.made_ready
    yield from (f"-> {_placed(disruption, group, 'is admitted')}" for group in ready)
    yield from _also_bound(disruption, {key for group in ready for key in group.pending})
    yield from _left(result, disruption)
    yield from _ending(result, disruption)


def rival_lines(instance: Instance, rivals: Sequence[GroupKey]) -> Iterator[str]:
    """Say which waiting groups a plan for one group leaves out though they want its room."""
    if rivals:
        named = (f"{_name(instance, key)} (priority {instance.groups[key].priority:,})" for key in rivals)
        yield (
            f"Left out: {counted(len(rivals), 'waiting group')} at least as urgent that would take this room: "
            f"{and_list(some([*named], FEW))}. `placer solve` decides who gets it."
        )


def plan_sentences(before: Instance, result: Result) -> Iterator[str]:
    """A plan's gain, price and proof in a few sentences; ``before``: the instance as its objects say."""
    placement = result.placement or Placement()
    disruption = Disruption(result.instance, placement)
    yield from _gains(before, result, disruption)
    price = [
        f"{_kinds(disruption, units)} {'is' if len(units) == 1 else 'are'} {'moved' if verb == 'Move' else 'evicted'}"
        for verb, units in _ways(disruption)
    ]
    if price:
        yield f"For this {and_list(price)}."
        yield _proof(result)
    elif not placement.lost:
        yield "Nothing has to go."


def _gains(before: Instance, result: Result, disruption: Disruption) -> Iterator[str]:
    placement, ready = disruption.placement, disruption.outcome.made_ready
    if placement.lost:
        lost = lost_pods(before, result.instance)
        again = sum(key in disruption.outcome.new for key in lost)
        yield _lost(placement.lost, [before.pods[key] for key in sorted(lost)])
        yield f"Placed again: {again:,} of {counted(len(lost), 'pod')}."
    elif placement.freed:
        yield f"Empty then: {and_list(map(legible, some(placement.freed, FEW)))}."
    elif ready:
        yield from _starting(disruption, ready)
    else:
        yield _not_had(result, "no group is admitted", _HIGHER, _ONE_GROUP if len(result.reasons) > 1 else "")


def _starting(disruption: Disruption, ready: Sequence[Group]) -> Iterator[str]:
    what, so = ("has room", "have") if disruption.placement.wanted else ("can start", "can")
    yield from (f"{_placed(disruption, group, what)}." for group in ready[:FEW])
    if len(ready) > FEW:
        yield f"So {so} {len(ready) - FEW:,} more."


def _unready(result: Result, disruption: Disruption) -> list[GroupKey]:
    """Groups that wait still."""
    ready = {group.key for group in disruption.outcome.made_ready}
    return [key for key in result.reasons if key not in ready]


def _not_had(result: Result, had: str, why: str, tries: str, *, some: bool = False) -> str:
    """That not all that was asked for is had, but ``some``: since it cannot be, or since nothing was found in time."""
    if any(pod.numa is not None for pod in result.instance.pending):
        why += " NUMA zones of pods that go count as taken, since no object names them."
    if result.verdict in (Verdict.OPTIMAL, Verdict.INFEASIBLE):
        if some and result.termination is Termination.PROVED:
            return f"{had[0].upper()}{had[1:]}; no more can be had (proved). {why}"
        return f"Cannot {'all ' if some else ''}be had, which is proved: {had}. {why}"
    seconds = result.seconds.get("total", 0.0)
    if result.time_limit is not None:  # reading and the last checks may take longer
        seconds = min(seconds, result.time_limit)
    then = f"The search died: {result.died}." if result.died else f"Try a longer --time-limit{tries}."
    return f"Not found in {seconds:.0f} s: {had}, which is not proved to be all. {then}"


def room_made(result: Result) -> int:
    """How many wanted gangs have room, or how many domains are empty."""
    placement = result.placement or Placement()
    return len(placement.freed) or len(Disruption(result.instance, placement).admitted)


def defrag_lines(result: Result, wanted: int | None = None) -> Iterator[str]:
    """The plan of ``defrag`` or ``free_domains``; ``wanted``: what was asked for, None: all there is room for."""
    disruption, room = Disruption(result.instance, result.placement or Placement()), room_made(result)
    wanted = room if wanted is None else wanted
    if room < wanted:
        had = f"room for {room:,} of {wanted:,}"
        yield _not_had(result, had, "Moving makes no room for more.", _FEWER, some=room > 0)
    elif not disruption.gone:
        yield f"Nothing is moved: {room:,} of {wanted:,} can be had as it is."
    yield from _going(disruption)
    yield from _shortened(f"-> {_placed(disruption, group, 'has room')}" for group in disruption.outcome.made_ready)
    yield from _shortened(f"-> {legible(name)} is empty" for name in disruption.placement.freed)
    yield from _left(result, disruption, "has no room")
    yield from _ending(result, disruption)


def frontier_point(wanted: int, result: Result) -> dict[str, Any]:
    """One line of a frontier (models/interface.md)."""
    moved = {each.value.name: each for each in result.objective if each.value.name in ("moved", "movedUnits")}
    return {
        "wanted": wanted,
        "room": room_made(result),
        "pods": len(result.placement.moves) if result.placement else 0,
        **{
            name: {"value": each.value.value, "bound": None if each.bound is None else each.bound.value}
            for name, each in moved.items()
        },
        "verdict": str(result.verdict),
    }


def frontier_lines(points: Sequence[Result]) -> Iterator[str]:
    """A table of the answers for the first of what is wanted, for the first two, and so on."""
    yield f"{'wanted':>7} {'pods moved':>11} {'units moved':>12}  proved"
    for number, point in enumerate(points, 1):
        row = frontier_point(number, point)
        if row["room"] < number:
            found = "no: not to be had" if point.verdict is Verdict.INFEASIBLE else "no: not found"
            yield f"{number:>7,} {'-':>11} {'-':>12}  {found}"
        else:
            least = "yes" if all(each.met for each in point.objective if each.value.name.startswith("moved")) else "no"
            yield f"{number:>7,} {row['pods']:>11,} {row['movedUnits']['value']:>12,}  {least}"


def repair_lines(before: Instance, result: Result) -> Iterator[str]:
    """The plan of :func:`placer.answers.making_room.repair`; ``before``: the instance as its objects say."""
    placement = result.placement or Placement()
    if not placement.lost:
        yield "Every node is Ready: nothing is lost. --lost NODE,... counts nodes as lost."
        return
    disruption = Disruption(result.instance, placement)
    lost = lost_pods(before, result.instance)
    missing = len(lost - placement.node_of.keys())
    if missing:
        placed = f"{len(lost) - missing:,} of {counted(len(lost), 'lost pod')} placed again"
        yield _not_had(result, placed, "Moving makes no room for more.", "", some=missing < len(lost))
    yield _lost(placement.lost, [before.pods[key] for key in sorted(lost)])
    if lost and not disruption.gone:
        yield "Nothing else is disturbed."
    yield from _going(disruption)
    yield from _shortened(f"-> {line}" for line in _running_on(disruption, lost))
    yield from _also_bound(disruption, lost)
    yield from _not_placed(result, lost)
    yield from _shortened(_staying(before, ran_on(before, placement.lost), lost))
    yield from _made_by_nobody(before, lost)
    yield from _ending(result, disruption)


def _lost(nodes: Sequence[str], pods: Sequence[Pod]) -> str:
    groups = len({pod.group for pod in pods} - {None})
    alone = sum(pod.group is None for pod in pods)
    whose = and_list(counted(count, word) for count, word in ((groups, "gang"), (alone, "single pod")) if count)
    named = ", ".join(map(legible, some(nodes, SHOWN)))
    ran = f"{counted(len(pods), 'pod')} of {whose} ran there" if pods else "nothing ran there that could be elsewhere"
    return f"{counted(len(nodes), 'node')} lost, {named}: {ran}."


def _running_on(disruption: Disruption, lost: set[Key]) -> Iterator[str]:
    outcome = disruption.outcome
    for group in disruption.instance.groups.values():
        again = sorted(lost & set(outcome.added(group.pending)))
        if again:
            after = outcome.instance.groups[group.key]
            running = (*after.bound, *outcome.added(after.pending))
            _, domain = outcome.common(group.topology, running)
            where = f"{_nodes(outcome.new[key] for key in again)}" + (f" in {legible(domain)}" if domain else "")
            total = len(after.bound) + len(after.pending)
            many = f", {len(running):,} of {counted(total, 'pod')} run" if group.key.api_group else ""
            yield f"{_name(disruption.instance, group.key)}: {counted(len(again), 'lost pod')} on {where}{many}"


def _also_bound(disruption: Disruption, named: Collection[Key]) -> Iterator[str]:
    """Pods that the plan binds, next to those ``named`` by other lines."""
    for group in disruption.instance.groups.values():
        more = [key for key in disruption.outcome.added(group.pending) if key not in named]
        if more:
            nodes = _nodes(disruption.outcome.new[key] for key in more)
            name = _name(disruption.instance, group.key)
            yield f"-> {name}: {counted(len(more), 'more pod')} that waited, on {nodes}"


def _not_placed(result: Result, lost: set[Key]) -> Iterator[str]:
    placed = result.placement.node_of if result.placement else {}
    for key, group in result.instance.groups.items():
        missing = len(lost & set(group.pending) - placed.keys())
        if missing:
            reason = result.reasons.get(key)
            why = f": {legible(reason.message)}" if reason else ""
            yield f"{_name(result.instance, group.key)} has no node for {counted(missing, 'lost pod')}{why}"


def _staying(before: Instance, ran: Iterable[Key], lost: set[Key]) -> Iterator[str]:
    for key in ran:
        if key not in lost:
            yield f"Pod {legible(str(key))} keeps its node: {before.pods[key].protected}"


def _made_by_nobody(before: Instance, lost: set[Key]) -> Iterator[str]:
    alone = [str(key) for key in sorted(lost) if before.pods[key].protected == WITHOUT_OWNER]
    if alone:
        yield f"No controller makes these pods again: {', '.join(map(legible, some(alone, SHOWN)))}"


def _going(disruption: Disruption) -> Iterator[str]:
    for verb, units in _ways(disruption):
        yield f"{verb} {_kinds(disruption, units)}:"
        yield from _shortened(f"  {_unit(disruption, unit)}" for unit in units)


def _ending(result: Result, disruption: Disruption) -> Iterator[str]:
    if disruption.gone:
        yield f"{_proof(result).removesuffix('.')}{result.reach}."
    for each in result.findings:
        if each.code == "ProtectionCosts":
            yield f"{legible(each.message)}."
    if disruption.gone:
        yield from _steps(disruption)
    yield from _other_schedulers(disruption)


def _other_schedulers(disruption: Disruption) -> Iterator[str]:
    others = [legible(name) for name in disruption.instance.schedulers if name != OWN]
    if {*others} - {DEFAULT_SCHEDULER} and (disruption.gone or disruption.outcome.new):
        one = len(others) == 1
        who = f"Scheduler {others[0]} chooses" if one else f"Schedulers {and_list(others)} choose"
        yield (
            f"{who} nodes of {'its' if one else 'their'} pods {'itself' if one else 'themselves'}: use --apply for "
            "pods with schedulerName placer only; for others, cordon the nodes that must be free."
        )


def _ways(disruption: Disruption) -> Iterator[tuple[str, list[DisruptionUnit]]]:
    moved = [unit for unit in disruption.units if disruption.moved.keys() >= set(unit.pods)]
    evicted = [unit for unit in disruption.units if unit not in moved]
    yield from ((verb, units) for verb, units in (("Evict", evicted), ("Move", moved)) if units)


def _kinds(disruption: Disruption, units: Sequence[DisruptionUnit]) -> str:
    alone = [disruption.instance.pods[unit.pods[0]].group for unit in units if unit.name.startswith("Pod/")]
    members = sum(key is not None and bool(key.api_group) for key in alone)
    counts = ((len(units) - len(alone), "gang"), (members, "gang member"), (len(alone) - members, "single pod"))
    return and_list(counted(count, word) for count, word in counts if count)


def _unit(disruption: Disruption, unit: DisruptionUnit) -> str:
    pods = [disruption.instance.pods[key] for key in unit.pods]
    parts = [_unit_name(disruption, unit), counted(len(pods), "pod"), f"priority {unit.priority:,}"]
    began = min(pod.created for pod in pods)
    if began:
        parts.append(f"since {datetime.fromtimestamp(began, UTC):%Y-%m-%d %H:%M} UTC")
    parts.append(f"from {_nodes(pod.node or '' for pod in pods)}")
    targets = [disruption.moved[key].node for key in unit.pods if key in disruption.moved]
    return ", ".join(parts) + (f" to {_nodes(targets)}" if targets else "")


def _unit_name(disruption: Disruption, unit: DisruptionUnit) -> str:
    kind, _, name = unit.name.partition("/")
    gang = disruption.instance.pods[unit.pods[0]].group
    return legible(name) if gang is None or kind != "PodGroup" else _name(disruption.instance, gang)


def _nodes(names: Iterable[str]) -> str:
    found = sorted(set(names))
    return legible(found[0]) if len(found) == 1 else f"{len(found):,} nodes"


def _placed(disruption: Disruption, group: Group, what: str) -> str:
    outcome, new = disruption.outcome, disruption.outcome.added(group.pending)
    _, domain = outcome.common(group.topology, (*group.bound, *new))
    where = f"in {legible(domain)}" if domain else f"on {_nodes(outcome.new[key] for key in new)}"
    some = len(new) < len(group.pending)
    pods = f"{len(new):,} of {counted(len(group.pending), 'pod')}" if some else counted(len(new), "pod")
    pods = f"all {pods}" if not some and len(new) > 1 else pods
    return f"{_name(disruption.instance, group.key)} {what}: {pods} {where}"


def _name(instance: Instance, key: GroupKey) -> str:
    return legible(called(instance, key))


def _left(result: Result, disruption: Disruption, what: str = "still waits") -> Iterator[str]:
    for key in _unready(result, disruption):
        if result.instance.need_weights.get(key):
            yield f"{_name(result.instance, key)} {what}: {legible(result.reasons[key].message)}"


def _proof(result: Result) -> str:
    values = [each for each in result.objective if each.value.name in (*LOSSES, "moved", "movedUnits")]
    verb, work, rest = _PROOF_WORDS[values[0].value.name in LOSSES]
    unproved = [each for each in values if not each.met]
    if not unproved:
        return f"Proved by {_provers(values)}: no other choice {verb} less work: weight, then units."
    if work not in {each.value.name for each in unproved}:
        return f"Proved: no other choice {verb} less work; whether {rest} would do is not proved."
    return _not_proved(unproved[0])


def _not_proved(first: Judged) -> str:
    if first.bound is None or first.bound.value <= 0 or first.value.name.endswith("Units"):
        return "Not proved: less might do."
    share = 100 * first.bound.value // first.value.value
    return f"Not proved: less might do, but at least {share} % of this work has to be {first.value.name}."


def _provers(values: Iterable[Judged]) -> str:
    told = (judged.bound for judged in values if judged.value.value)
    return and_list(dict.fromkeys(prover_word(bound.by) for bound in told if bound is not None))


def _steps(disruption: Disruption) -> Iterator[str]:
    steps = disruption.placement.steps
    if len(steps) < 2:
        return
    yield f"In {len(steps)} steps:"
    numbered = list(enumerate(steps, 1))
    yield from _shortened(f"  {number}. {_step(step.go, step.bind, disruption)}" for number, step in numbered)


def _step(go: tuple[object, ...], bind: tuple[object, ...], disruption: Disruption) -> str:
    back = Counter(key in disruption.moved for key in bind)
    parts = [(len(go), "{} go{}"), (back[True], "{} moved"), (back[False], "{} bound")]
    words = [text.format(counted(count, "pod"), "es" if count == 1 else "") for count, text in parts if count]
    return ", ".join(words)


def _shortened(lines: Iterable[str]) -> Iterator[str]:
    found = list(lines)
    yield from found[:SHOWN]
    if len(found) > SHOWN:
        yield f"  ... and {len(found) - SHOWN:,} more (-o and --json have all)"
