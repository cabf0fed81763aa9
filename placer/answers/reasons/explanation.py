"""One reason per group with pods left: alone, or next to the pods that the placement binds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from itertools import takewhile

import numpy as np
import numpy.typing as npt

from placer.answers.reasons.advice import Steps, next_steps
from placer.answers.reasons.cause import NAMED, Cause, EligibleNodes, plural, pod_names
from placer.answers.reasons.near_misses import calls_cause, zones_cause
from placer.answers.reasons.necessary_conditions import NecessaryConditions, countable
from placer.answers.reasons.neighbour_words import NeighbourWords
from placer.answers.reasons.prerequisites import never_placeable, never_ready, plain_reason
from placer.answers.reasons.relaxations import LoneTrial, undecided
from placer.arrays import Dense, DenseGroup, Solution
from placer.arrays.dense_builder import make_dense
from placer.base.codes import REASONS
from placer.base.deadline import NEVER, Deadline, OutOfTime, wall, within
from placer.base.words import NamedThing, NameList, Sentence
from placer.problem import Group, GroupKey, Instance, Key, Pod, PodState
from placer.problem.outcome import Outcome
from placer.problem.placement import MAXIMISED, Placement
from placer.problem.result import Reason
from placer.search.greedy.best_fit import tops
from placer.search.greedy.state import GreedyLayout, GreedyState

#: The first of several reasons is given.
ORDER = tuple(REASONS)


#: Running pods have no part in these causes.
_OF_ITSELF = ("InvalidGroup", "GangIncomplete", "Unsupported", "NamespaceBudget", "NoEligibleNode", "NotDecided")

#: Seconds, after the limit, for reasons that objects alone show.
SHORT = 0.15

LATE = Reason("NotDecided", "the time limit was reached before it was looked at: not decided in time")
FITS_ALONE = Reason("NotDecided", "fits alone; its reason with this placement was not decided in time")


class Causes:
    """Causes of groups with pods left, each alone with running pods; ``after``: placed pods and the room left."""

    def __init__(self, instance: Instance, dense: Dense, solution: Solution) -> None:
        self.instance, self.dense, self.solution = instance, dense, solution
        layout = GreedyLayout(dense)
        self.groups = _GroupsAlone(instance, layout)
        self.eligible = self.groups.counting.eligible
        self.after = GreedyState(layout, solution)
        self.index = {group.key: number for number, group in enumerate(dense.groups)}
        self.placed = set(dense.placement(solution).node_of)

    @cached_property
    def left(self) -> dict[GroupKey, list[Key]]:
        """Group to its pending pods that are not placed, if any."""
        left = {
            key: [pod for pod in group.pending if pod not in self.placed] for key, group in self.instance.groups.items()
        }
        return {key: pods for key, pods in left.items() if pods}

    @cached_property
    def _steps(self) -> Steps:
        numbers = [self.index[key] for key in self.left if key in self.index]
        return next_steps(self.dense, self.solution, [it for it in numbers if self.after.is_ready(it)])

    @cached_property
    def _further(self) -> _GroupsAlone:
        return _GroupsAlone(self.instance, GreedyLayout(self._steps[0]))

    def ready(self, key: GroupKey) -> bool:
        """Whether a group is ready with its placed pods."""
        return key in self.index and self.after.is_ready(self.index[key])

    def of(self, key: GroupKey) -> Cause | None:
        """Cause that keeps a group with pods left out, of a ready one every pod left; None where there is a place."""
        group, left, number = self.instance.groups[key], self.left[key], self.index.get(key)
        if number is None:  # either it can never be ready, or it is ready and none of its pods can be placed
            reason = never_ready(self.instance, group, self.eligible)
            reason = reason or never_placeable(self.instance, group, left, self.eligible)
            return undecided() if reason is None else Cause.of(reason)
        return self._of_pods_left(number, group, left) if self.ready(key) else self.groups.cause(number)

    @cached_property
    def _ending(self) -> list[Pod]:
        ending = (pod for pod in self.instance.pods.values() if pod.state is PodState.TERMINATING)
        return [pod for pod in ending if pod.node in self.instance.nodes]

    @cached_property
    def _ended(self) -> Causes:
        pods = {key: pod for key, pod in self.instance.pods.items() if pod.state is not PodState.TERMINATING}
        left = replace(self.instance, pods=pods)
        dense = make_dense(left)
        return Causes(left, dense, dense.solution(self.dense.placement(self.solution)))

    def until_ended(self, key: GroupKey, cause: Cause) -> Sentence:
        """Words that a group fits once pods being deleted have ended, those on nodes of ``cause`` first; else empty."""
        if cause.code in _OF_ITSELF or not self._ending or self._ended.of(key) is not None:
            return Sentence()
        asked = {self.instance.pods[pod].constraints for pod in self.left[key]}
        nodes = self.instance.nodes

        def far(pod: Pod) -> tuple[bool, bool, Key]:
            usable = any(each.admits(nodes[pod.node or ""]) for each in asked)
            return pod.node not in (cause.nodes or ()), not usable, pod.key

        ending, count = sorted(self._ending, key=far), len(self._ending)
        verbs = ("is", "has") if count == 1 else ("are", "have")
        once = f"; it fits once {plural(count, 'pod')} that {verbs[0]} being deleted {verbs[1]} ended: "
        return once + pod_names(ending, lambda pod: f"Pod {pod.key} on Node {pod.node}")

    def _of_pods_left(self, number: int, group: Group, left: list[Key]) -> Cause | None:
        """The next step that gets furthest in the catalogue's order."""
        never = [key for key in left if key not in self.dense.class_of]
        reason = never_placeable(self.instance, group, never, self.eligible) if never else None
        found = None if reason is None else Cause.of(reason)
        for step, more in self._steps[1].get(number, ()):
            cause = self._further.cause(step)
            if cause is None:
                return None
            if found is None or ORDER.index(cause.code) > ORDER.index(found.code):
                found = replace(cause, message=f"ready; with {plural(more, 'pod')} more: " + cause.message)
        return found or undecided()


class _GroupsAlone:
    def __init__(self, instance: Instance, layout: GreedyLayout) -> None:
        self.instance, self.layout, self.dense = instance, layout, layout.dense
        self.counting, self.alone = NecessaryConditions(instance, countable(layout)), LoneTrial(layout)
        self._cache: dict[object, Cause | None] = {}

    def cause(self, number: int) -> Cause | None:
        kind = self._kind(number)
        counted = self._once(("counted", kind), lambda: self.counting.cause(number))
        if counted is not None:
            return self._once(("first", kind), lambda: self._first(number, counted))
        return self._once(("alone", kind), lambda: self._tried(number))

    def _first(self, number: int, counted: Cause) -> Cause:
        found = self.alone.first(number, counted)
        return counted if found is counted else self._named(number, found)

    def _tried(self, number: int) -> Cause | None:
        alone = self.layout.lone_kind(number) is not None and self.dense.numa is None
        if alone and self.dense.classes[self.dense.groups[number].classes[0]].neighbours < 0:
            return None  # of one pod alone counting says everything
        fits = self.alone.fits(number)
        if fits:
            return None
        if fits is None:
            return undecided()
        return self._named(number, self.alone.blame(number))

    def _named(self, number: int, found: Cause) -> Cause:
        if found.code == "NumaAlignment":
            return zones_cause(self.instance, self.dense, number, found)
        if found.code == "TopologyTooNarrow":
            return self.counting.labels.naming_units(self.dense.groups[number], found)
        return self._neighbours.cause(self.dense, number, calls_cause(self.instance, self.dense, number, found))

    @cached_property
    def _neighbours(self) -> NeighbourWords:
        return NeighbourWords(self.instance)

    def _once(self, key: object, ask: Callable[[], Cause | None]) -> Cause | None:
        if key not in self._cache:
            self._cache[key] = ask()
        return self._cache[key]

    def _kind(self, number: int) -> tuple[object, ...]:
        gang, dense = self.dense.groups[number], self.dense
        subs = {sub: place for place, sub in enumerate(gang.sub_groups)}
        classes = tuple(
            (
                self.layout.shape_of[index],
                # Arrays cut requests for which there is no room at all: messages do not.
                self.instance.pods[dense.classes[index].pods[0]].requests,
                dense.classes[index].size,
                dense.classes[index].role,
                dense.workload_of.get(index),
                subs.get(dense.classes[index].sub_group),
                self.dense.rows_of[index],
            )
            for index in gang.classes
        )
        parts = tuple(
            (part.name, part.short, part.policy, *self._scope(part.scope))
            for part in (dense.sub_groups[sub] for sub in gang.sub_groups)
        )
        counts = (gang.short, gang.short_by_role, gang.short_by_policy)
        return classes, parts, counts, self._scope(gang.scope), self._asked(gang)

    def _scope(self, scope: int) -> tuple[object, ...]:
        it = self.dense.scopes[scope]
        return it.limit, it.wanted, it.bound

    def _asked(self, gang: DenseGroup) -> tuple[object, ...]:
        """A message may quote these tier names."""
        group = self.instance.groups[gang.key]
        return group.topology, tuple(policy.topology for policy in group.policies)


BoolArray = npt.NDArray[np.bool_]


class Beside:
    """The cluster once a placement that keeps all rules is carried out, where waiting groups are asked again.

    ``causes``: of groups alone. ``ending``: whether there is time to find pods being deleted that a group waits for.
    """

    def __init__(self, causes: Causes, solution: Solution, *, ending: bool = True) -> None:
        self.causes, self.solution, self.ending = causes, solution, ending
        self.instance, self.dense, self.layout = causes.instance, causes.dense, causes.groups.layout
        prices = self.layout.class_prices
        entries = [(index, node, count, prices[index] * count) for (index, node), count in sorted(solution.items())]
        self.classes, self.nodes, self.pods, self.prices = np.array(entries, dtype=np.int64).reshape(-1, 4).T
        self.groups = np.array([each.group for each in self.dense.classes], dtype=np.int64)[self.classes]
        self._names: dict[tuple[int, GroupKey | None], tuple[Cause, Sentence]] = {}
        self._usable: dict[object, BoolArray] = {}

    @cached_property
    def _after(self) -> Causes:
        instance = Outcome(self.instance, self.dense.placement(self.solution)).carried_out()
        return Causes(instance, make_dense(instance), Solution())

    def reason(self, key: GroupKey) -> Reason:
        """The rule that keeps out a group that fits alone, by how much, and the holders; NotDecided without proof."""
        cause = self._after.of(key)
        first = [name for name, _ in takewhile(lambda criterion: criterion[0] not in MAXIMISED, self.dense.criteria)]
        if (cause is None or cause.code == "NotDecided") and first:
            return Reason("Outcompeted", f"fits alone; the policy puts {', '.join(first)} before placing it")
        if cause is None:
            return Reason("NotDecided", "fits alone, and with this placement, too: not decided in time")
        held = self._held_once(cause, key)
        if cause.code == "NotDecided":
            message = "fits alone; with this placement, counting does not exclude it, and no place was found"
            return Reason("NotDecided", message + held + ": not decided in time")
        until = self._after.until_ended(key, cause) if self.ending else ""
        return Reason("Outcompeted", "fits alone; with this placement: " + cause.message + held + until)

    def _held_once(self, cause: Cause, key: GroupKey) -> Sentence:
        """Groups of which nothing is placed share a cause and the pods in their way."""
        # The cause is kept with the text, so that its id stays its own.
        place = id(cause), key if self.causes.ready(key) else None
        if place not in self._names:
            self._names[place] = cause, self._held(cause, key)
        return self._names[place][1]

    def _held(self, cause: Cause, key: GroupKey) -> Sentence:
        number = self.causes.index[key]
        wherever = self._held_wherever(cause, number)
        if wherever and cause.nodes is None:
            return wherever
        names = self._listed(self._at(cause.nodes)[self.nodes], number, self.prices)
        if not names and not wherever and cause.holds is not None:
            names = self._listed(self._usable_by(number)[self.nodes], number, self.prices)
        return wherever + ("; the room went to " + names if names else "")

    def _held_wherever(self, cause: Cause, number: int) -> Sentence:
        if not cause.held or cause.holds is None:
            return Sentence()
        pods = [self.instance.pods[each.pods[0]] for each in self.dense.classes]
        entries = zip(self.classes.tolist(), self.nodes.tolist(), strict=True)
        holding = [cause.holds(pods[index], self.dense.nodes[node]) for index, node in entries]
        names = self._listed(np.array(holding, dtype=bool), number, self.pods)
        return f"; {cause.held} " + names if names else names

    def _at(self, names: frozenset[str] | None) -> BoolArray:
        found = np.zeros(len(self.dense.nodes), dtype=bool)
        found[[self.dense.node_index[name] for name in names or ()]] = True
        return found

    def _usable_by(self, group: int) -> BoolArray:
        gang = self.dense.groups[group]
        masks = tuple(sorted({self.dense.classes[index].mask for index in gang.classes}))
        scope = self.dense.scopes[gang.scope]
        key = (masks, scope.limit, scope.bound)
        if key not in self._usable:
            within = np.zeros(len(self.dense.nodes), dtype=bool)
            for domain in tops(self.causes.groups.alone.state, gang.scope, self.layout.domains.root):
                begin, end = self.layout.slice_of(domain)
                within[begin:end] = True
            self._usable[key] = within & self.dense.masks[list(masks)].any(axis=0)
        return self._usable[key]

    def _listed(self, there: BoolArray, own: int, much: Sequence[int] | npt.NDArray[np.int64]) -> Sentence:
        amounts = np.zeros(len(self.dense.groups), dtype=np.int64)
        pods = np.zeros(len(self.dense.groups), dtype=np.int64)
        np.add.at(amounts, self.groups[there], np.asarray(much)[there])
        np.add.at(pods, self.groups[there], self.pods[there])
        pods[own] = 0
        order = sorted(np.flatnonzero(pods).tolist(), key=lambda group: (-int(amounts[group]), group))
        names = tuple(self._name(self.dense.groups[group].key, int(pods[group])) for group in order)
        return Sentence.of(NameList(names, NAMED, "group")) if names else Sentence()

    def _name(self, key: GroupKey, pods: int) -> NamedThing:
        return NamedThing(key.namespace, f"{key} ({plural(pods, 'pod')})", self.instance.groups[key].priority, pods)


#: Cost of asking next to the placement before the first answer, as a multiple of making the arrays: they are made
#: once more, of an instance that is made before.
REBUILT = 2.5


def reasons(
    instance: Instance, dense: Dense, solution: Solution, *, deadline: Deadline = NEVER, build: float = 0.0
) -> dict[GroupKey, Reason]:
    """One reason per group with a pending pod that ``solution``, which keeps all rules, does not place.

    The code is the first of the catalogue's order that keeps the group out alone, of a ready group each pod left. One
    that fits so is asked again next to the pods that ``solution`` binds. ``deadline``: later groups are
    ``NotDecided``. ``build``: seconds that making the arrays took, against late work.
    """
    causes = Causes(instance, dense, solution)
    alone = _alone(causes, deadline, build)
    beside = Beside(causes, solution, ending=deadline.left > 2 * REBUILT * build)
    fits = [key for key, reason in alone.items() if reason is FITS_ALONE] if deadline.left > REBUILT * build else []
    asked = {key: beside.reason(key) for key in deadline.each(fits)}
    missed = in_short(instance, [key for key in causes.left if key not in alone])
    return {key: asked.get(key) or alone.get(key) or missed[key] for key in causes.left}


def reasons_beside(instance: Instance, placement: Placement, deadline: Deadline) -> dict[GroupKey, Reason]:
    """The same of an instance without arrays yet, next to a placement that keeps all rules."""

    def found() -> dict[GroupKey, Reason]:
        began, dense = time.monotonic(), make_dense(instance)
        build = time.monotonic() - began
        return reasons(instance, dense, dense.solution(placement), deadline=deadline, build=build)

    reached = within(deadline, found, None) if _left(instance, placement) else {}
    return late(instance, placement) if reached is None else reached


def _left(instance: Instance, placement: Placement) -> list[GroupKey]:
    placed = placement.node_of.keys()
    return [key for key, group in instance.groups.items() if not placed >= {*group.pending}]


def late(instance: Instance, placement: Placement) -> dict[GroupKey, Reason]:
    """Reasons of groups with a pending pod that is not placed, none of which was looked at in time."""
    return in_short(instance, _left(instance, placement))


def in_short(instance: Instance, keys: Iterable[GroupKey]) -> dict[GroupKey, Reason]:
    """Reasons of groups that their objects alone show within a moment; of all others that time was short."""
    found, eligible, until = dict.fromkeys(keys, LATE), EligibleNodes(instance), Deadline.within(SHORT)
    with suppress(OutOfTime), wall(until):
        for key in until.each(found):
            found[key] = plain_reason(instance, instance.groups[key], eligible) or LATE
    return found


def _alone(causes: Causes, deadline: Deadline, build: float) -> dict[GroupKey, Reason]:
    found = {key: causes.of(key) for key in deadline.each(causes.left)}
    kept = {key: cause for key, cause in found.items() if cause is not None}
    ending = kept if deadline.left > REBUILT * build else {}
    until = {key: causes.until_ended(key, kept[key]) for key in deadline.each(ending)}
    told = {key: Reason(cause.code, cause.message + until.get(key, Sentence())) for key, cause in kept.items()}
    return {key: told.get(key, FITS_ALONE) for key in found}
