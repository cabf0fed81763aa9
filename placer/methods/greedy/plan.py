"""Which pods make a gang ready (C5, C6), by counting alone: where they go is not asked here."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from placer.dense import Dense, DenseGroup

__all__ = ["Block", "everything", "least"]


@dataclass(frozen=True)
class Block:
    """Pods that are placed together: of one subgroup, or those of no subgroup.

    Parameters
    ----------
    sub_group
        Index into ``Dense.sub_groups``; -1: none.
    items
        (class, pods) with at least 1 pod each.
    """

    sub_group: int
    items: tuple[tuple[int, int], ...]

    @property
    def pods(self) -> int:
        """Number of pods."""
        return sum(count for _, count in self.items)


def everything(dense: Dense, group: DenseGroup, prices: Sequence[int]) -> tuple[Block, ...]:
    """All pending pods of the group; ``prices`` as in :func:`least`."""
    return _blocks(dense, group, prices, {index: dense.classes[index].size for index in group.classes})


def least(dense: Dense, group: DenseGroup, prices: Sequence[int], most: Mapping[int, int]) -> tuple[Block, ...] | None:
    """As few and as small pods as make the group ready.

    Parameters
    ----------
    dense
        The instance.
    group
        A gang of which no pending pod is placed yet.
    prices
        What a pod of each class takes; within a block the dearest come first.
    most
        Class to the pods of it that may be used; a class that is not there may be used entirely.

    Returns
    -------
    The blocks, none where nothing is needed; None where the pods do not suffice.
    """
    needs = _Needs(dense, group, most)
    return _blocks(dense, group, prices, needs.take) if needs.meet() else None


def _blocks(dense: Dense, group: DenseGroup, prices: Sequence[int], take: Mapping[int, int]) -> tuple[Block, ...]:
    """Sort pods by subgroup."""
    by_sub: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for index in sorted(group.classes, key=lambda index: (-prices[index], index)):
        if take.get(index, 0):
            by_sub[dense.classes[index].sub_group].append((index, take[index]))
    return tuple(Block(sub_group, tuple(items)) for sub_group, items in by_sub.items())


class _Needs:
    """The counts that are still missing, while pods are chosen one demand after the other."""

    def __init__(self, dense: Dense, group: DenseGroup, most: Mapping[int, int]) -> None:
        self.dense, self.group = dense, group
        sizes = {index: self.dense.classes[index].size for index in group.classes}
        self.left = {index: min(size, most.get(index, size)) for index, size in sizes.items()}
        self.cheap = sorted(group.classes, key=lambda index: (self.dense.classes[index].weight, index))
        self.roles = dict(group.short_by_role)
        self.policies = dict(group.short_by_policy)
        self.total = group.short
        self.take: dict[int, int] = defaultdict(int)
        self.started = {-1} | {sub for sub in group.sub_groups if not self.dense.sub_groups[sub].short}

    def meet(self) -> bool:
        """Choose pods until every count is met; False where they run out."""
        for policy, count in sorted(self.policies.items()):
            subs = [sub for sub in self.group.sub_groups if self.dense.sub_groups[sub].policy == policy]
            if self._start(subs, count) < count:
                return False
        for role in sorted(self.roles):
            if not self._meet_role(role):
                return False
        self._choose(self.cheap, self.total)
        while self.total > 0:
            if not self._start(self.group.sub_groups, 1):
                return False
            self._choose(self.cheap, self.total)
        self._give_back()
        return True

    def _give_back(self) -> None:
        """Leave out pods that a subgroup's size has made one too many, the dearest first."""
        for index in reversed(self.cheap):
            pods = self.dense.classes[index]
            spare = min(self.take[index], -self.total, -self.roles.get(pods.role, self.total))
            part = self.dense.sub_groups[pods.sub_group] if pods.sub_group >= 0 else None
            if part is not None and part.short:
                spare = min(spare, sum(self.take[member] for member in part.classes) - part.short)
            if spare > 0:
                self.take[index] -= spare
                self.total += spare
                if pods.role in self.roles:
                    self.roles[pods.role] += spare

    def _meet_role(self, role: str) -> bool:
        mine = [index for index in self.cheap if self.dense.classes[index].role == role]
        self._choose(mine, self.roles[role])
        while self.roles[role] > 0:
            subs = {self.dense.classes[index].sub_group for index in mine if self.left[index]} - self.started
            if not self._start(subs, 1):
                return False
            self._choose(mine, self.roles[role])
        return True

    def _start(self, subs: Iterable[int], count: int) -> int:
        """Choose the cheapest subgroups that are not started and can be; return how many there were."""
        costs = sorted((self._cost(sub), sub) for sub in subs if sub not in self.started and self._can(sub))
        for _, sub in costs[:count]:
            self.started.add(sub)
            classes = self.dense.sub_groups[sub].classes
            short = self.dense.sub_groups[sub].short
            wanted = [index for index in classes if self.roles.get(self.dense.classes[index].role, 0) > 0]
            for index in sorted(wanted, key=self.cheap.index):
                role = self.dense.classes[index].role
                short -= self._choose([index], min(short, max(0, self.roles[role])))
            self._choose([index for index in self.cheap if index in classes], short)
        return len(costs[:count])

    def _can(self, sub: int) -> bool:
        part = self.dense.sub_groups[sub]
        return sum(self.left[index] for index in part.classes) >= part.short

    def _cost(self, sub: int) -> int:
        part = self.dense.sub_groups[sub]
        missing, cost = part.short, 0
        for weight, index in sorted((self.dense.classes[index].weight, index) for index in part.classes):
            count = min(missing, self.left[index])
            missing -= count
            cost += weight * count
        return cost

    def _choose(self, classes: Iterable[int], count: int) -> int:
        """Take up to ``count`` pods of the classes, of started subgroups or none, and count them everywhere."""
        before = count
        for index in classes:
            pods = self.dense.classes[index]
            if count > 0 and pods.sub_group in self.started:
                taken = min(count, self.left[index])
                self.left[index] -= taken
                self.take[index] += taken
                self.total -= taken
                if pods.role in self.roles:
                    self.roles[pods.role] -= taken
                count -= taken
        return before - count
