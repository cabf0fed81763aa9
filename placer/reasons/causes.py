"""What keeps each group out while it is alone: the first cause in the catalogue's order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

from placer.codes import ReasonCode
from placer.dense import Dense, DenseGroup, Solution
from placer.instance import Group, GroupKey, Instance, Key
from placer.methods.greedy import GreedyLayout, GreedyState
from placer.reasons.alone import Alone, undecided
from placer.reasons.calls import calls_cause
from placer.reasons.cause import Cause
from placer.reasons.counting import Counting, countable
from placer.reasons.more import Steps, next_steps
from placer.reasons.standing import standing, standing_of_pods
from placer.reasons.words import plural
from placer.reasons.zones import zones_cause

__all__ = ["Causes"]

#: Which is said where several hold: the first.
ORDER: tuple[ReasonCode, ...] = (
    "InvalidGroup",
    "GangIncomplete",
    "Unsupported",
    "NoEligibleNode",
    "QueueCapability",
    "InsufficientResources",
    "TopologyTooNarrow",
    "NumaAlignment",
    "NetworkCost",
    "Bandwidth",
    "NotDecided",
)


class Causes:
    """What keeps groups out that have pods left, each alone beside what runs.

    Parameters
    ----------
    instance, dense, solution, decided
        As of :func:`placer.reasons.reasons`.

    Attributes
    ----------
    after
        What is placed and what is left of the room.
    """

    def __init__(self, instance: Instance, dense: Dense, solution: Solution, decided: bool) -> None:
        self.instance, self.dense, self.solution, self.decided = instance, dense, solution, decided
        layout = GreedyLayout(dense)
        self.groups = _Groups(instance, layout)
        self.eligible = self.groups.counting.eligible
        self.after = GreedyState(layout, solution)
        self.index = {group.key: number for number, group in enumerate(dense.groups)}
        self.placed = set(dense.placement(solution).node_of)

    @cached_property
    def left(self) -> dict[GroupKey, list[Key]]:
        """Group to those of its pending pods that are not placed; only groups with any."""
        left = {
            key: [pod for pod in group.pending if pod not in self.placed] for key, group in self.instance.groups.items()
        }
        return {key: pods for key, pods in left.items() if pods}

    @cached_property
    def _steps(self) -> Steps:
        numbers = [self.index[key] for key in self.left if key in self.index]
        return next_steps(self.dense, self.solution, [it for it in numbers if self.after.is_ready(it)])

    @cached_property
    def _further(self) -> _Groups:
        """The next steps of ready groups."""
        return _Groups(self.instance, GreedyLayout(self._steps.dense))

    def ready(self, key: GroupKey) -> bool:
        """Whether a group is ready with what is placed of it."""
        return key in self.index and self.after.is_ready(self.index[key])

    def of(self, key: GroupKey) -> Cause | None:
        """What keeps a group out that has pods left; None where there is a place for what makes it ready.

        Where it is ready already: what keeps every pod left out; None where there is a place for one more.
        """
        group, left, number = self.instance.groups[key], self.left[key], self.index.get(key)
        if number is None:  # either it can never be ready, or it is ready and none of its pods can be placed
            reason = standing(self.instance, group, self.eligible)
            reason = reason or standing_of_pods(self.instance, group, left, self.eligible)
            return undecided() if reason is None else Cause.of(reason)
        return self._of_pods_left(number, group, left) if self.ready(key) else self.groups.cause(number, self.decided)

    def _of_pods_left(self, number: int, group: Group, left: list[Key]) -> Cause | None:
        """Of all the ways to go on, the one that gets furthest in the catalogue's order."""
        never = [key for key in left if key not in self.dense.class_of]
        reason = standing_of_pods(self.instance, group, never, self.eligible) if never else None
        found = None if reason is None else Cause.of(reason)
        for step, more in self._steps.of.get(number, ()):
            cause = self._further.cause(step, self.decided)
            if cause is None:
                return None
            if found is None or ORDER.index(cause.code) > ORDER.index(found.code):
                found = replace(cause, message=f"ready; with {plural(more, 'pod')} more: {cause.message}")
        return found or undecided()


class _Groups:
    """Groups of some arrays, each alone with what runs now; alike ones are looked at once."""

    def __init__(self, instance: Instance, layout: GreedyLayout) -> None:
        self.instance, self.layout, self.dense = instance, layout, layout.dense
        self.counting, self.alone = Counting(instance, countable(layout)), Alone(layout)
        self._cache: dict[object, Cause | None] = {}

    def cause(self, number: int, decided: bool) -> Cause | None:
        """What keeps a group from what it needs; None where it fits alone."""
        kind = self._kind(number)
        counted = self._once(("counted", kind), lambda: self.counting.cause(number))
        if counted is not None:
            first = counted  # bound here for the closure
            return self._once(("first", kind), lambda: self.alone.first(number, first)) if decided else counted
        if not decided:
            return Cause("NotDecided", "counting does not exclude it: no time to tell")
        return self._once(("alone", kind), lambda: self._tried(number))

    def _tried(self, number: int) -> Cause | None:
        if self.layout.lone_kind(number) is not None and self.dense.numa is None:
            return None  # of one pod alone counting says everything
        fits = self.alone.fits(number)
        if fits:
            return None
        if fits is None:
            return undecided()
        found = self.alone.blame(number)
        if found.code == "NumaAlignment":
            return zones_cause(self.instance, self.dense, number, found)
        return calls_cause(self.instance, self.dense, number, found)

    def _once(self, key: object, ask: Callable[[], Cause | None]) -> Cause | None:
        if key not in self._cache:
            self._cache[key] = ask()
        return self._cache[key]

    def _kind(self, number: int) -> tuple[object, ...]:
        """What tells a group from others while it is alone."""
        gang, dense = self.dense.groups[number], self.dense
        subs = {sub: place for place, sub in enumerate(gang.sub_groups)}
        classes = tuple(
            (
                self.layout.shape_of[index],
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
        """The tier names that a message may quote."""
        group = self.instance.groups[gang.key]
        return group.topology, tuple(policy.topology for policy in group.policies)
