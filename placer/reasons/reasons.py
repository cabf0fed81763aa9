"""One reason per group that has pods left."""

from __future__ import annotations

from collections.abc import Callable

from placer.dense import Dense, Solution
from placer.instance import Group, GroupKey, Instance, Key
from placer.methods.greedy import Layout, is_ready
from placer.reasons.alone import Alone, Takers, undecided
from placer.reasons.counting import Counting
from placer.reasons.standing import standing, standing_of_pods
from placer.result import Reason

__all__ = ["reasons"]


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
        One entry per group with a pending pod that ``solution`` does not place. The code is the first of the contract's
        order that keeps the group out when it is alone with the pods that run now; or its pods left, where it is ready.
    """
    return _Reasons(instance, dense, solution, decided).all()


class _Reasons:
    def __init__(self, instance: Instance, dense: Dense, solution: Solution, decided: bool) -> None:
        self.instance, self.dense, self.decided = instance, dense, decided
        layout = Layout(dense)
        self.layout = layout
        self.counting, self.alone = Counting(instance, layout), Alone(layout)
        self.takers = Takers(self.alone.state, solution)
        self.index = {group.key: number for number, group in enumerate(dense.groups)}
        self.placed = set(dense.placement(solution).node_of)
        self._cache: dict[object, Reason | None] = {}

    def all(self) -> dict[GroupKey, Reason]:
        """Look at every group with pods left."""
        found: dict[GroupKey, Reason] = {}
        for key, group in self.instance.groups.items():
            left = [pod for pod in group.pending if pod not in self.placed]
            if left:
                found[key] = self._reason(group, left)
        return found

    def _reason(self, group: Group, left: list[Key]) -> Reason:
        number = self.index.get(group.key)
        if number is None:  # either it can never be ready, or it is ready and none of its pods can be placed
            found = standing(self.instance, group) or standing_of_pods(self.instance, group, left)
            return found or undecided()
        if not is_ready(self.takers.after, number):
            return self._counted(number, whole=False)
        return standing_of_pods(self.instance, group, left) or self._counted(number, whole=True)

    def _counted(self, number: int, *, whole: bool) -> Reason:
        kind = (*self._kind(number), whole)
        counted = self._once(("counted", kind), lambda: self.counting.reason(number, whole=whole))
        if counted is not None:
            return counted
        if not self.decided:
            return Reason("NotDecided", "counting does not exclude it: no time to tell")
        return self._once(("alone", kind), lambda: self._tried(number, whole)) or self.takers.reason(number)

    def _tried(self, number: int, whole: bool) -> Reason | None:
        if self.layout.lone_kind(number) is not None:
            return None  # of one pod alone counting says everything
        fits = self.alone.fits(number, whole=whole)
        if fits:
            return None
        return undecided() if fits is None else self.alone.blame(number, whole=whole)

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
