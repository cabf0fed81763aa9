"""An instance without all or nothing for gangs, and the way back: gangs placed pod by pod inside the search.

A step looks at a few nodes and can admit no gang whose room lies in pieces on the whole cluster. Here each piece
counts, a gang grows over many steps, and the gangs that become whole are chosen afterwards.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain

from ortools.sat.python import cp_model

from placer.arrays import Dense, DenseGroup, DenseScope, DenseSubGroup, PodClass, QueueRow, Solution, placed_by_class
from placer.arrays.affinity_orders import Attraction
from placer.arrays.dense_neighbours import DenseNeighbours, SpreadRow
from placer.problem import GroupKey
from placer.problem.placement import MAXIMISED
from placer.search.exact.count_model import limited_solver


def relaxable(dense: Dense, criterion: int) -> bool:
    """Say whether a relaxation may help with a value: ``admitted``, where no call and no NUMA zone ties pods."""
    before = dense.criteria[: criterion + 1]
    return (
        before[-1][0] == "admitted"
        and all(name in MAXIMISED for name, _ in before)
        and dense.network is None
        and dense.numa is None
    )


class GangRelaxation:
    """An instance in which gangs may have a part of their pods (``gangs``), for ``admitted`` of one priority.

    Gangs that need all of their pods are relaxed: of this priority each that does not run in part, of higher priorities
    those that are whole. Lower priorities are left out, except those that let others in.
    """

    def __init__(self, dense: Dense, criterion: int, solution: Solution) -> None:
        self.whole, self.priority = dense, dense.criteria[criterion][1] or 0
        placed = placed_by_class(solution)
        self._needed = _needed(dense)
        self.gangs = [group for group in range(len(dense.groups)) if self._relaxes(group, placed)]
        relaxed = frozenset(self.gangs)
        # Class of the relaxed instance to that of the instance, as far as it has one alone; the others by kind.
        self.kept, self.merged = self._parted(relaxed)
        alone = [[index] for index in self.kept]
        self.class_of = {index: number for number, each in enumerate((*alone, *self.merged)) for index in each}
        self.dense = self._dense(criterion, relaxed)

    def _parted(self, relaxed: frozenset[int]) -> tuple[list[int], list[list[int]]]:
        kinds: dict[Hashable, list[int]] = {}
        kept: list[int] = []
        for index, one in enumerate(self.whole.classes):
            if one.group in relaxed and not self._tied(index):
                kinds.setdefault(self._kind(index), []).append(index)
            elif self.whole.groups[one.group].priority >= self.priority or one.group in self._needed:
                kept.append(index)
        return kept, list(kinds.values())

    def _relaxes(self, number: int, placed: Counter[int]) -> bool:
        dense, group = self.whole, self.whole.groups[number]
        scope, size = dense.scopes[group.scope], sum(dense.classes[index].size for index in group.classes)
        if group.priority < self.priority or scope.bound or self._stays_whole(number, size):
            return False
        all_placed = sum(placed[index] for index in group.classes) == size
        needs_all = group.need_weight == dense.weight_of(group.classes)
        return needs_all and (group.priority == self.priority or all_placed)

    def _stays_whole(self, number: int, size: int) -> bool:
        dense, group = self.whole, self.whole.groups[number]
        limited = dense.scopes[group.scope].limit is not None and not group.sub_groups
        return (size > 1 and number in self._needed) or (limited and dense.neighbours is None)

    def _tied(self, index: int) -> bool:
        dense = self.whole
        if dense.neighbours is not None and index in dense.neighbours.in_units:
            return True
        return any(dense.scopes[scope].limit is not None for scope in dense.scopes_of(index))

    def _kind(self, index: int) -> Hashable:
        one, dense = self.whole.classes[index], self.whole
        return dense.groups[one.group].priority, *one.shape, one.weight, one.daemon, tuple(dense.rows_of[index])

    def _dense(self, criterion: int, relaxed: frozenset[int]) -> Dense:
        whole = self.whole
        groups = _numbers(whole.classes[index].group for index in self.kept)
        subs = _numbers({whole.classes[index].sub_group for index in self.kept} - {-1})
        merged = {whole.groups[whole.classes[each[0]].group].priority for each in self.merged}
        pools = _numbers(merged, len(groups))
        classes = (*self._kept_classes(groups, subs, relaxed), *self._pooled_classes(pools))
        scopes = [replace(scope, classes=self._alone(scope.classes)) for scope in whole.scopes]
        made = [self._group(group, subs, group in relaxed) for group in groups]
        for priority, number in pools.items():
            mine = tuple(index for index, one in enumerate(classes) if one.group == number)
            key = GroupKey("pods", "", f"one by one {priority}")
            made.append(DenseGroup(key, mine, (), 0, (), (), priority, 0.0, 0, len(scopes)))
            scopes.append(DenseScope(mine, None, wanted=False))
        return replace(
            whole,
            classes=classes,
            groups=tuple(made),
            sub_groups=tuple(self._sub_group(sub, groups) for sub in subs),
            scopes=tuple(scopes),
            queue_rows=tuple(map(self._queue_row, whole.queue_rows)),
            neighbours=self._neighbours(),
            criteria=(*whole.criteria[:criterion], ("placed", whole.criteria[criterion][1])),
            constant_locality=0,
            constant_span=0,
            constant_network=0,
        )

    def _kept_classes(
        self, groups: dict[int, int], subs: dict[int, int], relaxed: frozenset[int]
    ) -> Iterator[PodClass]:
        for index in self.kept:
            one = self.whole.classes[index]
            group, sub = groups[one.group], subs.get(one.sub_group, -1)
            yield replace(one, group=group, sub_group=sub, weight=self._weight(index, relaxed))

    def _pooled_classes(self, pools: dict[int, int]) -> Iterator[PodClass]:
        for each in self.merged:
            first = self.whole.classes[each[0]]
            pods = tuple(chain.from_iterable(self.whole.classes[index].pods for index in each))
            yield replace(first, pods=pods, group=pools[self.whole.groups[first.group].priority], sub_group=-1)

    def _neighbours(self) -> DenseNeighbours | None:
        copies = {index: (number,) for index, number in self.class_of.items()}
        return None if self.whole.neighbours is None else self.whole.neighbours.renumbered(copies)

    def _queue_row(self, row: QueueRow) -> QueueRow:
        numbers = {self.class_of[index] for index in row.classes if index in self.class_of}
        return replace(row, classes=tuple(sorted(numbers)))

    def _weight(self, index: int, relaxed: frozenset[int]) -> int:
        """A subgroup that is kept together weighs as much as its gang."""
        one, whole = self.whole.classes[index], self.whole
        if one.group not in relaxed or one.sub_group < 0:
            return one.weight
        gang, sub = whole.groups[one.group], whole.sub_groups[one.sub_group]
        return one.weight * whole.weight_of(gang.classes) // max(1, whole.weight_of(sub.classes))

    def _alone(self, classes: Iterable[int]) -> tuple[int, ...]:
        numbers = (self.class_of.get(index, len(self.kept)) for index in classes)
        return tuple(number for number in numbers if number < len(self.kept))

    def _group(self, index: int, sub_number: dict[int, int], relaxed: bool) -> DenseGroup:
        group = self.whole.groups[index]
        subs = tuple(sub_number[sub] for sub in group.sub_groups if sub in sub_number)
        kept = replace(group, classes=self._alone(group.classes), sub_groups=subs)
        return replace(kept, short=0, short_by_role=(), short_by_policy=(), need_weight=0) if relaxed else kept

    def _sub_group(self, index: int, group_number: dict[int, int]) -> DenseSubGroup:
        sub = self.whole.sub_groups[index]
        return replace(sub, group=group_number[sub.group], classes=self._alone(sub.classes))

    def relaxed(self, solution: Solution) -> Solution:
        """A solution of the instance as one of the relaxed instance."""
        found: Counter[tuple[int, int]] = Counter()
        for (index, node), count in solution.items():
            if index in self.class_of:
                found[self.class_of[index], node] += count
        return Solution(found)

    @property
    def is_tied(self) -> bool:
        """Whether pods that are placed one by one ask something of others, or others of them."""
        neighbours, pooled = self.dense.neighbours, range(len(self.kept), len(self.dense.classes))
        return neighbours is not None and not all(each.isdisjoint(pooled) for each in neighbours.components)

    def restored(self, solution: Solution) -> Solution | None:
        """The whole gangs of a solution of the relaxed instance, those worth most, and all pods that were not relaxed.

        None where gangs of a higher priority would not all be whole.
        """
        chosen = self._chosen(placed_by_class(solution))
        if chosen is None:
            return None
        dense, relaxed = self.whole, frozenset(self.gangs)
        found: Counter[tuple[int, int]] = Counter()
        places: dict[int, list[int]] = defaultdict(list)
        for (number, node), count in sorted(solution.items()):
            if number >= len(self.kept):
                places[number] += [node] * count
                continue
            index = self.kept[number]
            group = dense.classes[index].group
            if group not in relaxed or group in chosen:
                found[index, node] += count
        for group in sorted(chosen):
            for index in dense.groups[group].classes:
                if self.class_of[index] >= len(self.kept):
                    for _ in range(dense.classes[index].size):
                        found[index, places[self.class_of[index]].pop()] += 1
        return Solution(found)

    def _chosen(self, placed: Counter[int]) -> frozenset[int] | None:
        """Only gangs compete that ask for a class of which fewer pods are placed than all ask for."""
        rows = [(asked, placed[number]) for number, asked in self._asked.items() if asked.total() > placed[number]]
        competing = set(chain.from_iterable(asked for asked, _ in rows))
        chosen = self._worth_most(sorted(competing), rows)
        return None if chosen is None else frozenset(self.gangs) - competing | chosen

    def _worth_most(self, gangs: Sequence[int], rows: Iterable[tuple[Counter[int], int]]) -> frozenset[int] | None:
        """Gangs of higher priorities must all be whole; a row is sizes of gangs, and the most that they sum to."""
        groups, model = self.whole.groups, cp_model.CpModel()
        whole = {group: model.new_bool_var("") for group in gangs}
        for asked, most in rows:
            model.add(sum(size * whole[group] for group, size in asked.items()) <= most)
        model.add_bool_and(variable for group, variable in whole.items() if groups[group].priority > self.priority)
        model.maximize(sum(groups[group].need_weight * variable for group, variable in whole.items()))
        solver = limited_solver(work=0.5)
        if solver.solve(model) not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return None
        return frozenset(group for group, variable in whole.items() if solver.value(variable))

    @cached_property
    def _asked(self) -> dict[int, Counter[int]]:
        asked: dict[int, Counter[int]] = defaultdict(Counter)
        for group in self.gangs:
            for index in self.whole.groups[group].classes:
                asked[self.class_of[index]][group] += self.whole.classes[index].size
        return asked


def _needed(dense: Dense) -> frozenset[int]:
    """Groups whose pods let others in: by affinity (C12), or as the count of a spread (C14)."""
    found: set[int] = set()
    if dense.neighbours is None:
        return frozenset()
    rows: tuple[Attraction | SpreadRow, ...] = (*dense.neighbours.attractions, *dense.neighbours.spreads)
    for row in rows:
        owners = {dense.classes[index].group for index in row.owners}
        found.update(group for index in row.matched if owners - {group := dense.classes[index].group})
    return frozenset(found)


def _numbers(found: Iterable[int], first: int = 0) -> dict[int, int]:
    return {each: place for place, each in enumerate(sorted(set(found)), first)}
