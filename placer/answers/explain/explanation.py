"""Why groups wait, and changes that would admit each of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from placer.answers.explain.cases import Case, Gated, Placed
from placer.answers.explain.causes import Correction, GroupCause, corrections
from placer.answers.explain.decisions import LoneGroup
from placer.answers.explain.lifts import RULES_OF, rules_of
from placer.answers.explain.question import Question, Say, numbered, silent
from placer.answers.explain.shortages import named_nodes
from placer.answers.explain.tried_changes import TriedChange, changes
from placer.answers.making_room import preempt
from placer.answers.reasons import LATE, reasons_beside
from placer.answers.reasons.cause import plural
from placer.answers.solving import solve
from placer.arrays.dense_builder import make_dense
from placer.base.codes import REASONS
from placer.base.deadline import GRACE, Deadline, OutOfTime, wall, within
from placer.base.errors import UsageError, VerificationFailed
from placer.base.words import and_list, some
from placer.problem import Group, GroupKey, Instance, Key
from placer.problem.group_names import HOME, CalledGroup, waiting_like
from placer.problem.outcome import Outcome
from placer.problem.placement import Placement
from placer.problem.result import Reason, Result
from placer.problem.what_if import empty
from placer.search.answer_by_name import FIRST_FIT, first_fit

NAMED = 8

#: Seconds of a search where the greedy does not admit a group; with less time left none is begun.
SEARCH, LEAST_SEARCH = 1.0, 1.0

DISTURBING = 6.0


@dataclass(frozen=True)
class Explanation:
    """Why one group waits.

    Parameters
    ----------
    admitted
        None of its pods waits but optional ones, of which ``corrections`` and ``changes`` then are.
    pods, needed
        Waiting pods, and how many of these it needs at least.
    equal
        Other waiting groups that nothing tells from it: a change admits any one of them.
    empty
        It needs no pod, and none of it is placed.
    never
        Why it does not fit on the empty cluster either; empty: it does, or that is not known.
    """

    group: GroupKey
    admitted: bool
    corrections: tuple[Correction, ...] = ()
    changes: tuple[TriedChange, ...] = ()
    reason: Reason | None = None
    gated: Mapping[Key, Gated] = field(default_factory=dict)
    pods: int = 0
    needed: int = 0
    equal: tuple[GroupKey, ...] = ()
    empty: bool = False
    never: str = ""

    def __str__(self) -> str:
        """The group with its reason, and a line for each change that was tried."""
        unknown = "it does not wait" if self.admitted else "the reason was not decided in time"
        said = unknown if self.reason is None else self.reason.message
        return "\n".join([f"{self.group}: {said}", *(f"  - {each.change.message}" for each in self.changes)])

    def as_dict(self) -> dict[str, Any]:
        """Plain data (models/interface.md)."""
        sets = [[_cause_dict(cause) for cause in causes] for causes in self.corrections]
        return {
            "group": self.group.as_dict(),
            "causes": sets[0] if sets else [],
            "otherCauses": sets[1:],
            "admitted": self.admitted,
            "pods": self.pods,
            "equal": [{"namespace": key.namespace, "name": key.name} for key in self.equal],
            "changes": [_change_dict(each) for each in self.changes],
            "gated": [
                {"namespace": key.namespace, "name": key.name, "gates": list(pod.gates)}
                for key, pod in sorted(self.gated.items())
            ],
        }


def _cause_dict(cause: GroupCause) -> dict[str, Any]:
    return {"code": cause.code, "rules": list(cause.rules), "message": cause.message}


def _change_dict(tried: TriedChange) -> dict[str, Any]:
    return {
        "message": tried.change.message,
        "with": list(tried.objects),
        "without": list(tried.change.without),
        "admitted": True,
        "loses": [{"namespace": key.namespace, "name": key.name} for key in tried.loses],
    }


def find_groups(case: Case, words: str, namespace: str | None = None, home: str = HOME) -> list[GroupKey]:
    """Find a group by ``[KIND[.GROUP]/][NAMESPACE/]NAME``, by a pod of it, or all groups of a workload.

    ``namespace``: where the words state none; None: ``home``, else the only one. None found, or several of that name:
    :class:`UsageError`.
    """
    instance, name = case.instance, CalledGroup.of(words, namespace)
    found = name.groups(instance, home)
    name.refuse_several(found, f"--group {words}")
    held = _held(case, name, found)
    if found and not held:
        return sorted(found)
    raise UsageError(f"--group {words}: {held or _not_found(case, name)}")


_ABSENT = "; work without pods needs its own object in the input, such as deployments,jobs of `kubectl get`"


def _not_found(case: Case, name: CalledGroup) -> str:
    running = [pod for pod in case.instance.pods.values() if pod.node is not None and name.made(pod)]
    if running:
        pods = "a pod" if len(running) == 1 else f"{len(running):,} pods"
        return f"found {pods} on Node {running[0].node}, expected one that waits"
    nothing = f"no group, and no pod that waits, has that name; {waiting_like(case.instance, name)}"
    absent = "" if case.instance.of_cluster else _ABSENT
    return case.without_pods(name.name, name.namespace) or f"{nothing}{absent}"


def _held(case: Case, name: CalledGroup, found: set[GroupKey]) -> str:
    keys = {key for key in found if not case.instance.groups[key].pending and not case.instance.groups[key].bound}
    gated = {
        key: pod
        for key, pod in case.gated.items()
        if pod.group in keys or name.means_pod(key, {} if found else pod.labels)
    }
    return f"found {gates_words(gated)}, expected pods that wait without" if gated else ""


def gates_words(gated: Mapping[Key, Gated]) -> str:
    """How many pods scheduling gates hold back, and by which."""
    names = sorted({name for pod in gated.values() for name in pod.gates})
    gates = f"scheduling gate{'s' if len(names) > 1 else ''} {and_list(names)}"
    return f"{plural(len(gated), 'pod')} that no scheduler may place: {gates}"


def place_by_search(instance: Instance, deadline: Deadline) -> Placed | None:
    """Place all that waits by ``auto``; None: no time."""
    seconds = min(SEARCH, deadline.left)
    if seconds < LEAST_SEARCH:
        return None
    return Placed(instance, solve(instance, time_limit=seconds).placement or Placement())


def disturb_by_search(instance: Instance, key: GroupKey, deadline: Deadline) -> Result | None:
    """Evictions and moves for a group; None: no time."""
    seconds = min(DISTURBING, deadline.left)
    return None if seconds < LEAST_SEARCH else preempt(instance, key, time_limit=seconds, costs=False)


def as_things_stand(case: Case, deadline: Deadline, keys: Sequence[GroupKey] | None = None) -> Placed:
    """Place all that waits, by ``auto`` where the greedy leaves a group of ``keys`` (None: any) that may fit.

    A placement that breaks a rule raises :class:`VerificationFailed`.
    """
    instance = case.instance  # reading always finishes
    try:
        with wall(Deadline(deadline.at + GRACE)):
            placed = case.placed
    except OutOfTime:
        return Placed(instance, first_fit(instance, Deadline.within(FIRST_FIT)))
    if placed is None:
        raise VerificationFailed("the greedy's answer breaks a rule; this is a bug in placer")
    told = reasons_of(placed, deadline)
    asked = told.values() if keys is None else [told[key] for key in keys if key in told]
    beaten = any(reason.code in ("Outcompeted", "NotDecided") for reason in asked)
    return (place_by_search(case.instance, deadline) if beaten else None) or placed


def waiting(placed: Placed, also: Collection[GroupKey] = ()) -> list[GroupKey]:
    """Groups that are not admitted, whose optional pods get no node, or that are in ``also``."""
    groups, there = placed.instance.groups.items(), placed.placement.node_of.keys()
    return [key for key, group in groups if group.pending and (key in also or not there >= set(group.pending))]


def explain(
    case: Case, keys: Sequence[GroupKey] | None, deadline: Deadline, placed: Placed | None = None, say: Say = silent
) -> Iterator[Explanation]:
    """Explain ``keys`` (None: all that wait) as soon as each is found, with equal shares of the time.

    ``placed``: None: of :func:`as_things_stand`, with its error. ``say`` is given words about each step.
    """
    placed = placed or as_things_stand(case, deadline, keys)
    told = reasons_of(placed, deadline)
    keys = waiting(placed) if keys is None else keys
    equal: dict[GroupKey, frozenset[GroupKey]] = within(deadline, lambda: equal_pods(placed.instance), {})
    found: dict[object, Explanation] = {}
    kinds = {key: (equal.get(key, key), told.get(key)) for key in keys}
    left = len({*kinds.values()})
    for key, kind in kinds.items():
        if kind not in found:
            share = Deadline.within(max(0.0, deadline.left) / (left - len(found)))
            steps = numbered(key, len(found), left, say)
            ask = partial(_explained, case, key, placed, told.get(key), share, equal.get(key, frozenset()), steps)
            group = placed.instance.groups[key]
            late = Explanation(
                key, admitted=False, reason=told.get(key, LATE), pods=len(group.pending), needed=group.need
            )
            found[kind] = within(deadline, ask, late)
        yield replace(found[kind], group=key, equal=_waiting_like(key, kind, equal, told))


def equal_pods(instance: Instance) -> dict[GroupKey, frozenset[GroupKey]]:
    """Pods in no PodGroup to all that no rule or value tells from each, itself included."""
    kinds: dict[object, set[GroupKey]] = defaultdict(set)
    meant = {each.pods[0]: each.neighbours for each in make_dense(instance).classes}
    for pod in instance.pending:
        if pod.group is not None and not pod.group.api_group:
            plain = replace(pod, name="", group=None, created=0.0, labels={})
            kinds[plain, meant.get(pod.key)].add(pod.group)
    return {key: frozenset(keys) for keys in kinds.values() if len(keys) > 1 for key in keys}


def _waiting_like(
    key: GroupKey, kind: object, equal: Mapping[GroupKey, frozenset[GroupKey]], told: Mapping[GroupKey, Reason]
) -> tuple[GroupKey, ...]:
    return tuple(sorted(each for each in equal.get(key, ()) if each != key and (equal[each], told.get(each)) == kind))


def reasons_of(placed: Placed, deadline: Deadline) -> dict[GroupKey, Reason]:
    """Why pods wait next to the placed ones; late where there is no time."""
    return reasons_beside(placed.instance, placed.placement, deadline)


def _explained(
    case: Case,
    key: GroupKey,
    placed: Placed,
    reason: Reason | None,
    deadline: Deadline,
    equal: frozenset[GroupKey],
    say: Say,
) -> Explanation:
    if key in placed.admitted or not case.instance.groups[key].pending:
        return _optional(case, case.instance.groups[key], placed, reason, deadline, say)
    lone = LoneGroup(case.instance, key, deadline)
    fits = lone.confirmed().fits
    sets = [(_outcompeted(case, lone, placed, reason),)] if fits else corrections(lone) or []
    question = Question(case, key, placed, tuple(sets), deadline, equal=equal, say=say)
    gated = {pod: each for pod, each in case.gated.items() if each.group == key}
    never = "" if fits is not False else _never(lone, sets)
    tried, group = tuple(changes(question, place_by_search, disturb_by_search)), case.instance.groups[key]
    return Explanation(key, False, tuple(sets), tried, reason, gated, len(group.pending), group.need, never=never)


def _never(lone: LoneGroup, sets: Sequence[Correction]) -> str:
    """Why a group that lacks room lacks it on the empty cluster, too."""
    codes = {cause.code for causes in sets for cause in causes}
    if lone.deadline.over or not {"InsufficientResources", "TopologyTooNarrow"} & codes:
        return ""
    found = LoneGroup(empty(lone.instance), lone.key, lone.deadline).confirmed()
    return str(found.cause.message) if found.fits is False and found.cause is not None else ""


def _optional(
    case: Case, group: Group, placed: Placed, reason: Reason | None, deadline: Deadline, say: Say
) -> Explanation:
    if reason is None:
        return Explanation(group.key, admitted=True)
    left = sum(key not in placed.placement.node_of for key in group.pending)
    rules = rules_of(reason.code, group) if reason.code in RULES_OF else ()
    cause = GroupCause(reason.code, rules, reason.message)
    admitted = Outcome(placed.instance, placed.placement).admitted(group)
    tried = _one_more(case, group, placed, deadline, say)
    return Explanation(group.key, admitted, ((cause,),), tried, reason, pods=left, empty=not admitted)


def _one_more(case: Case, group: Group, placed: Placed, deadline: Deadline, say: Say) -> tuple[TriedChange, ...]:
    """Nothing that runs goes for an optional pod (D4)."""
    there = placed.placement.node_of
    now = sum(key in there for key in group.pending)
    asking = case.needing(group.key, group.placed_before + now + 1)
    without = {key: node for key, node in there.items() if key not in group.pending}
    beside = Placed(asking.instance, Placement.of(without))
    lone = LoneGroup(asking.instance, group.key, deadline)
    fits = lone.confirmed().fits
    sets = [(_outcompeted(asking, lone, beside, None),)] if fits else corrections(lone) or []
    question = Question(asking, group.key, beside, tuple(sets), deadline, say=say)
    tried = changes(question, place_by_search, lambda *_: None)
    return tuple(each for change in tried for each in _as_optional(case, group, placed, now, change))


def _as_optional(case: Case, group: Group, placed: Placed, now: int, tried: TriedChange) -> Iterator[TriedChange]:
    """Required pods of others go before an optional one."""
    after = case.changed(tried.change).placed
    if after is not None and sum(key in after.placement.node_of for key in group.pending) > now:
        lost = (placed.admitted & frozenset(after.instance.groups)) - after.admitted
        yield replace(tried, loses=tuple(sorted(lost)))


def _outcompeted(case: Case, lone: LoneGroup, placed: Placed, reason: Reason | None) -> GroupCause:
    key = lone.key
    beside = LoneGroup(Outcome(case.instance, placed.placement).carried_out(), key, Deadline()).fits()
    rules = RULES_OF.get(beside.cause.code, ()) if beside.cause is not None else ()
    message = reason.message if reason is not None and reason.code == "Outcompeted" else REASONS["Outcompeted"].meaning
    message = message.replace("with this placement", "with the waiting groups that are placed")
    named = beside.cause is not None and beside.cause.holds is None
    rivals = "" if named else _rivals(case.instance, placed, lone)
    return GroupCause("Outcompeted", rules, f"{message}; {rivals}" if rivals else message)


def _rivals(instance: Instance, placed: Placed, lone: LoneGroup) -> str:
    nodes = set((lone.fits().placement or Placement()).node_of.values())
    there = (instance.pods[pod].group for pod, node in placed.placement.node_of.items() if node in nodes)
    found = [instance.groups[key] for key in sorted({key for key in there if key is not None} - {lone.key})]
    if not found:
        return ""
    named = some([f"{each.key}, priority {each.priority}" for each in found], NAMED)
    its = instance.groups[lone.key].priority
    where = f"{named_nodes(sorted(nodes))}, where it fits alone"
    return f"as things stand, pods of {and_list(named)} (its own priority is {its}) are placed on {where}"
