"""Changes around the group: capability of queues, pods that are being deleted, gangs that end, what must go for it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from placer.answers.explain.cases import LEAST_SEARCH, Change, needed, pod_words
from placer.answers.explain.node_changes import LAST
from placer.answers.making_room import preempt
from placer.answers.reasons.cause import NAMED, plural
from placer.base.quantity import format_amount
from placer.base.words import and_list, some
from placer.problem import Key, Pod, PodState
from placer.problem.disruption import Disruption, protections
from placer.problem.gangs import VOLCANO
from placer.problem.placement import LOSSES
from placer.problem.queues import NAMESPACES
from placer.problem.what_if import with_pods, without

if TYPE_CHECKING:
    from placer.answers.explain.question import Question
    from placer.problem import Instance
    from placer.problem.result import Result


#: How much these changes disturb, the least first; evictions as a higher priority does, by which others may go as well.
WAIT, QUEUE, END, DISTURB = -1, 3, 6, 7

#: Most seconds of a search for evictions and moves.
DISTURBING = 6.0

#: Labels that Deployments, ReplicaSets and StatefulSets give to their pods, which never end by themselves.
_ENDLESS = frozenset({"pod-template-hash", "statefulset.kubernetes.io/pod-name"})

#: Gangs that are screened, the smallest first.
SCREENED = 30

TOGETHER = 6

#: A running gang, or a pod of none, by name, and its pods.
Unit: TypeAlias = "tuple[str, list[Pod]]"


def larger_queues(question: Question) -> Iterator[Change]:
    """Queues opened, and their capability raised by the group's need."""
    new = _placed_without_queues(question)
    names = sorted({each for pod in new for each in question.instance.queue_path(pod.queue)})
    edits = [edit for name in names for edit in _raised(question, name, new)]
    if edits:
        message = and_list([said for said, _ in edits])
        yield Change(message, (QUEUE, len(edits)), set_=tuple(words for _, words in edits))


def _placed_without_queues(question: Question) -> list[Pod]:
    codes = frozenset({"QueueClosed", "QueueCapability"})
    if question.codes.isdisjoint(codes):
        return []
    found = question.decide(question.instance, codes).placement
    return [] if found is None else [question.instance.pods[key] for key in found.node_of]


def _raised(question: Question, name: str, new: list[Pod]) -> Iterator[tuple[str, str]]:
    queue = question.instance.queues[name]
    words = question.case.words("Queue", "", name, VOLCANO)
    if not queue.open:
        yield f"open Queue {name}", f"{words}:status.state=Open"
    namespaces = queue.namespaces
    others = {pod.namespace for pod in new} - namespaces if namespaces is not None else None
    if others and namespaces is not None:
        said = f"name {and_list(sorted(others))} in the annotation {NAMESPACES} of Queue {name}"
        yield said, f"{words}:metadata.annotations[{NAMESPACES}]={','.join(sorted(others | namespaces))}"
    for resource, limit in sorted(queue.capability.items()):
        asked = _asked(question, name, resource, new)
        if asked > limit:
            more, most = format_amount(resource, asked - limit), format_amount(resource, asked)
            said = f"raise {resource} in the capability of Queue {name} by {more}"
            yield said, f"{words}:spec.capability[{resource}]={most}"


def _asked(question: Question, queue: str, resource: str, new: list[Pod]) -> int:
    path = question.instance.queue_path
    there = (pod for pod in question.instance.pods.values() if pod.state.on_node)
    return sum(pod.requests[resource] for pod in (*there, *new) if queue in path(pod.queue))


def deleted_pods(question: Question) -> Iterator[Change]:
    """The end of pods that are being deleted."""
    ending = sorted(pod.key for pod in question.instance.pods.values() if pod.state is PodState.TERMINATING)

    def fits(keys: Sequence[Key]) -> bool:
        return question.fits(without(question.instance, frozenset(keys)))

    if ending and fits(ending):
        keys = needed(ending, lambda less: bool(less) and fits(less))
        names = and_list(some([f"Pod {key}" for key in keys], NAMED))
        verb = "is" if len(keys) == 1 else "are"
        message = f"wait for the end of {names}, which {verb} being deleted already"
        yield Change(message, (WAIT, len(keys)), without=pod_words(keys))


def ended_gangs(question: Question) -> Iterator[Change]:
    """Running gangs whose end alone lets the group in, the smallest first."""
    ending = (unit for unit in _units(question).items() if all(_ENDLESS.isdisjoint(pod.labels) for pod in unit[1]))
    units = sorted(ending, key=lambda unit: (len(unit[1]), unit[0]))[:SCREENED]
    helping = (unit for at in range(0, len(units), TOGETHER) for unit in _helping(question, units[at : at + TOGETHER]))
    yield from (_end_of(question, *unit) for unit in question.deadline.each(helping))


def _end_of(question: Question, name: str, pods: Sequence[Pod]) -> Change:
    called = any((pod.app_group, pod.workload) in _partners(question) for pod in pods)
    kept = protections(question.placed.instance, (pod.key for pod in pods))
    change = f"wait until {name} ends ({'; '.join([plural(len(pods), 'pod'), *kept[:1]])})"
    rank = LAST if called else END, len(pods)
    calls = ", though they call each other" if called else ""
    return Change(change + calls, rank, without=pod_words(pod.key for pod in pods))


def _partners(question: Question) -> set[tuple[Key, str]]:
    mine = {(pod.app_group, pod.workload) for pod in question.pods if pod.app_group and pod.workload}
    ends = {
        (app, end)
        for app, _ in mine
        for each in question.instance.app_groups[app].dependencies
        if not mine.isdisjoint({(app, each.origin), (app, each.destination)})
        for end in (each.origin, each.destination)
    }
    return ends - mine


def _helping(question: Question, units: Sequence[Unit]) -> Iterator[Unit]:
    """No unit helps alone where all of them together do not, unless the group wants pods near it, or counted."""
    wants = any(pod.neighbours.affinity or pod.neighbours.spread for pod in question.kinds)
    if not question.deadline.over and (wants or _fits_without(question, units)):
        yield from (unit for unit in question.deadline.each(units) if _fits_without(question, [unit]))


def _fits_without(question: Question, units: Sequence[Unit]) -> bool:
    keys = frozenset(pod.key for _, pods in units for pod in pods)
    return question.fits(without(question.instance, keys))


def _units(question: Question) -> dict[str, list[Pod]]:
    """DaemonSet and static pods stay."""
    units: dict[str, list[Pod]] = defaultdict(list)
    for pod in question.placed.instance.pods.values():
        if pod.state is PodState.BOUND and not pod.daemon and pod.group != question.key:
            units[f"Pod {pod.key}" if pod.group is None else str(pod.group)].append(pod)
    return units


def least_disturbed(question: Question) -> Iterator[Change]:
    """Evictions and moves for the group alone, or next to those that are placed where it fits alone."""
    seconds = min(DISTURBING, question.deadline.left)
    if question.disturbs and not question.lifted and seconds >= LEAST_SEARCH:
        result = preempt(_with_new_pods_kept(question), question.key, time_limit=seconds, costs=False)
        if result.placement is not None and result.placement.disturbs:
            yield _change(question, result, Disruption(result.instance, result.placement))


def _with_new_pods_kept(question: Question) -> Instance:
    """Pods that do not run yet can be neither evicted nor moved."""
    pods, new = question.instance.pods, question.placed.placement.node_of
    kept = [key for key in new if pods[key].node is not None]
    return with_pods(question.instance, kept, lambda pod: replace(pod, protected="it does not run yet"))


def _change(question: Question, result: Result, disruption: Disruption) -> Change:
    counted = [each for each in result.objective if each.value.name in (*LOSSES, "moved", "movedUnits")]
    proved = "proved to be the least" if all(each.met for each in counted) else "the least that was found"
    key, moves = question.key, sorted(disruption.moved.items())
    beside = "" if "Outcompeted" in question.codes else f" --for {key.namespace}/{key.name}"
    return Change(
        f"{_going_words(disruption)} ({proved}; placer preempt{beside})",
        (DISTURB, len(disruption.gone)),
        without=pod_words(disruption.evicted),
        set_=tuple(f"{words}:spec.nodeName={each.node}" for pod, each in moves for words in pod_words([pod])),
    )


def _going_words(disruption: Disruption) -> str:
    named: dict[str, list[str]] = {"evict": [], "move": []}
    for unit in disruption.units:
        verb = "move" if set(unit.pods) <= disruption.moved.keys() else "evict"
        named[verb].append(f"{unit.name} ({plural(len(unit.pods), 'pod')})")
    return and_list(f"{verb} {and_list(some(names, NAMED))}" for verb, names in named.items() if names)
