"""One reason per group that has pods left."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from placer.codes import ReasonCode
from placer.dense import Dense, Solution
from placer.instance import Group, GroupKey, Instance, Key
from placer.methods.greedy import Layout, is_ready
from placer.reasons.alone import Alone, Takers, undecided
from placer.reasons.calls import calls_text
from placer.reasons.counting import Counting, countable
from placer.reasons.more import Steps, next_steps
from placer.reasons.standing import standing, standing_of_pods
from placer.reasons.words import plural
from placer.reasons.zones import zones_text
from placer.result import Reason

__all__ = ["reasons"]

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


def reasons(instance: Instance, dense: Dense, solution: Solution, *, decided: bool = True) -> dict[GroupKey, Reason]:
    """Say why pods stay pending.

    Parameters
    ----------
    instance
        The problem.
    dense
        Its arrays.
    solution
        What is placed; keeps all rules.
    decided
        False: there is no time to try groups alone, and what counting cannot exclude is ``NotDecided``.

    Returns
    -------
    dict
        One entry per group with a pending pod that ``solution`` does not place. The code is the first of the
        catalogue's order that keeps the group out when it is alone with the pods that run now. Where it is ready,
        every pod left is optional: then the first that keeps each of them out beside those placed of the group, one
        more at a time.
    """
    return _Reasons(instance, dense, solution, decided).all()


class _Reasons:
    def __init__(self, instance: Instance, dense: Dense, solution: Solution, decided: bool) -> None:
        self.instance, self.dense, self.solution, self.decided = instance, dense, solution, decided
        layout = Layout(dense)
        self.groups = _Groups(instance, layout)
        self.eligible = self.groups.counting.eligible
        self.takers = Takers(self.groups.alone.state, solution)
        self.index = {group.key: number for number, group in enumerate(dense.groups)}
        self.placed = set(dense.placement(solution).node_of)

    def all(self) -> dict[GroupKey, Reason]:
        """Look at every group with pods left."""
        return {key: self._reason(self.instance.groups[key], left) for key, left in self._left.items()}

    @cached_property
    def _left(self) -> dict[GroupKey, list[Key]]:
        left = {
            key: [pod for pod in group.pending if pod not in self.placed] for key, group in self.instance.groups.items()
        }
        return {key: pods for key, pods in left.items() if pods}

    @cached_property
    def _steps(self) -> Steps:
        numbers = [self.index[key] for key in self._left if key in self.index]
        return next_steps(self.dense, self.solution, [it for it in numbers if is_ready(self.takers.after, it)])

    @cached_property
    def _further(self) -> _Groups:
        """The next steps of ready groups."""
        return _Groups(self.instance, Layout(self._steps.dense))

    def _reason(self, group: Group, left: list[Key]) -> Reason:
        number = self.index.get(group.key)
        if number is None:  # either it can never be ready, or it is ready and none of its pods can be placed
            found = standing(self.instance, group, self.eligible)
            return found or standing_of_pods(self.instance, group, left, self.eligible) or undecided()
        if not is_ready(self.takers.after, number):
            return self.groups.reason(number, self.decided) or self.takers.reason(number)
        return self._of_pods_left(number, group, left)

    def _of_pods_left(self, number: int, group: Group, left: list[Key]) -> Reason:
        """Of all the ways to go on, the one that gets furthest in the catalogue's order."""
        never = [key for key in left if key not in self.dense.class_of]
        found = standing_of_pods(self.instance, group, never, self.eligible) if never else None
        for step, more in self._steps.of.get(number, ()):
            reason = self._further.reason(step, self.decided)
            if reason is None:
                return self.takers.reason(number)
            if found is None or ORDER.index(reason.code) > ORDER.index(found.code):
                found = Reason(reason.code, f"ready; with {plural(more, 'pod')} more: {reason.message}")
        return found or undecided()


class _Groups:
    """Groups of some arrays, each alone with what runs now; alike ones are looked at once."""

    def __init__(self, instance: Instance, layout: Layout) -> None:
        self.instance, self.layout, self.dense = instance, layout, layout.dense
        self.counting, self.alone = Counting(instance, countable(layout)), Alone(layout)
        self._cache: dict[object, Reason | None] = {}

    def reason(self, number: int, decided: bool) -> Reason | None:
        """What keeps a group from what it needs; None where it fits alone."""
        kind = self._kind(number)
        counted = self._once(("counted", kind), lambda: self.counting.reason(number))
        if counted is not None:
            first = counted  # bound here for the closure
            return self._once(("first", kind), lambda: self.alone.first(number, first)) if decided else counted
        if not decided:
            return Reason("NotDecided", "counting does not exclude it: no time to tell")
        return self._once(("alone", kind), lambda: self._tried(number))

    def _tried(self, number: int) -> Reason | None:
        if self.layout.lone_kind(number) is not None and self.dense.numa is None:
            return None  # of one pod alone counting says everything
        fits = self.alone.fits(number)
        if fits:
            return None
        if fits is None:
            return undecided()
        found = self.alone.blame(number)
        if found.code == "NumaAlignment":
            said = zones_text(self.instance, self.dense, number)
        else:
            said = calls_text(self.instance, self.dense, number, found.code)
        return Reason(found.code, f"{found.message}: {said}") if said else found

    def _once(self, key: object, ask: Callable[[], Reason | None]) -> Reason | None:
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
                self.layout.rows_of[index],
            )
            for index in gang.classes
        )
        parts = tuple(
            (part.name, part.short, part.policy, *self._scope(part.scope))
            for part in (dense.sub_groups[sub] for sub in gang.sub_groups)
        )
        counts = (gang.short, gang.short_by_role, gang.short_by_policy)
        return classes, parts, counts, self._scope(gang.scope)

    def _scope(self, scope: int) -> tuple[object, ...]:
        it = self.dense.scopes[scope]
        return it.limit, it.wanted, it.bound
