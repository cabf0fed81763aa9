"""The least step for pods left of a ready group: placed pods, and one pod or subgroup more."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from placer.arrays import (
    Dense,
    DenseGroup,
    DenseNetwork,
    DenseScope,
    DenseSubGroup,
    PodClass,
    Solution,
    placed_by_class,
)
from placer.arrays.numa import DenseNuma

#: Groups that are each a ready one's placed pods and the least step more, all needed; and group of the whole instance
#: to its steps: a group of the first, and how many pods more.
Steps = tuple[Dense, Mapping[int, tuple[tuple[int, int], ...]]]


def next_steps(dense: Dense, solution: Solution, groups: Iterable[int]) -> Steps:
    """Make the next steps: one pod of a class with pods left, or a subgroup's least number (C6)."""
    placed = placed_by_class(solution)
    made = _StepsBuilder(dense, placed)
    of: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for number in groups:
        for sizes, more in _steps(dense, dense.groups[number], placed):
            of[number].append((made.add(dense.groups[number], sizes, more), more))
    return made.dense(), {number: tuple(steps) for number, steps in of.items()}


def _steps(dense: Dense, gang: DenseGroup, placed: Counter[int]) -> Iterator[tuple[dict[int, int], int]]:
    now = {index: placed[index] for index in gang.classes}
    new = [sub for sub in gang.sub_groups if _is_new(dense.sub_groups[sub], placed)]
    for sub in new:
        part = dense.sub_groups[sub]
        yield now | {index: dense.classes[index].size for index in part.classes}, part.short
    for index in gang.classes:
        if placed[index] < dense.classes[index].size and dense.classes[index].sub_group not in new:
            yield now | {index: placed[index] + 1}, 1


def _is_new(part: DenseSubGroup, placed: Counter[int]) -> bool:
    return part.short > 0 and not any(placed[index] for index in part.classes)


def _copies(classes: Iterable[int], at: Mapping[int, int]) -> tuple[int, ...]:
    return tuple(at[index] for index in classes if index in at)


@dataclass
class _StepsBuilder:
    whole: Dense
    placed: Counter[int]
    classes: list[PodClass] = field(default_factory=list)
    groups: list[DenseGroup] = field(default_factory=list)
    sub_groups: list[DenseSubGroup] = field(default_factory=list)
    scopes: list[DenseScope] = field(default_factory=list)
    origin: list[int] = field(default_factory=list)

    def add(self, gang: DenseGroup, sizes: dict[int, int], more: int) -> int:
        number, dense = len(self.groups), self.whole
        taken = [index for index in gang.classes if sizes[index]]
        at = {index: place for place, index in enumerate(taken, len(self.classes))}
        subs = [sub for sub in gang.sub_groups if not at.keys().isdisjoint(dense.sub_groups[sub].classes)]
        sub_at = {sub: place for place, sub in enumerate(subs, len(self.sub_groups))}
        for index in taken:
            it = dense.classes[index]
            pods = it.pods[: sizes[index]]
            self.classes.append(replace(it, pods=pods, group=number, sub_group=sub_at.get(it.sub_group, -1)))
        for sub in subs:
            part = dense.sub_groups[sub]
            scope = self._scope(part.scope, at)
            self.sub_groups.append(replace(part, group=number, classes=_copies(part.classes, at), scope=scope))
        short = sum(self.placed[index] for index in gang.classes) + more
        scope = self._scope(gang.scope, at)
        mine = tuple(sub_at.values())
        self.groups.append(replace(gang, classes=tuple(at.values()), sub_groups=mine, short=short, scope=scope))
        self.origin += taken
        return number

    def _scope(self, scope: int, at: dict[int, int]) -> int:
        it = self.whole.scopes[scope]
        self.scopes.append(replace(it, classes=_copies(it.classes, at)))
        return len(self.scopes) - 1

    def dense(self) -> Dense:
        copies: dict[int, list[int]] = defaultdict(list)
        for index, origin in enumerate(self.origin):
            copies[origin].append(index)
        rows = tuple(
            replace(row, classes=tuple(copy for index in row.classes for copy in copies[index]))
            for row in self.whole.queue_rows
        )
        return replace(
            self.whole,
            classes=tuple(self.classes),
            groups=tuple(self.groups),
            sub_groups=tuple(self.sub_groups),
            scopes=tuple(self.scopes),
            queue_rows=rows,
            network=self._network(copies),
            numa=self._numa(),
            neighbours=None if self.whole.neighbours is None else self.whole.neighbours.renumbered(copies),
        )

    def _numa(self) -> DenseNuma | None:
        numa = self.whole.numa
        return None if numa is None else replace(numa, units=tuple(numa.units[origin] for origin in self.origin))

    def _network(self, copies: Mapping[int, list[int]]) -> DenseNetwork | None:
        """Each copy is an origin, since only groups alone are ever asked about."""
        network = self.whole.network
        if network is None:
            return None
        workloads = tuple(
            replace(each, classes=tuple(copy for index in each.classes for copy in copies.get(index, ())))
            for each in network.workloads
        )
        return replace(network, workloads=workloads)
